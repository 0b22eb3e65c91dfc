//! A question for the tests of this crate, including those in `tests/`.

use std::sync::Arc;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;

use super::{CallerSummary, ChannelSummary};

/// Returns a question with a form, a tool and arguments.
pub(crate) fn summary(properties: &str) -> ChannelSummary {
    let form = format!(r#"{{"type":"object","properties":{properties}}}"#);
    ChannelSummary {
        question: "5f2c8a".to_owned(),
        version: 3,
        server: "deploy".to_owned(),
        tool: Some("deploy_app".to_owned()),
        rule: Some("deploy-production".to_owned()),
        caller: CallerSummary {
            issuer: "https://id.example.com".to_owned(),
            subject: "248289761001".to_owned(),
            name: "Ada Lovelace".to_owned(),
        },
        message: "Deploy version 4 to production?".to_owned(),
        arguments: Some(r#"{"environment":"production","version":4}"#.to_owned()),
        explain: None,
        runbook: None,
        missing: None,
        reasons_reach: "The caller is told it.".to_owned(),
        good_for: None,
        form: Some(Arc::new(Form::parse(&form).unwrap())),
        form_texts: Vec::new(),
        address: None,
        addressed: vec!["group:ops".to_owned()],
        need: 2,
        agreed: Vec::new(),
        dropped: Vec::new(),
        claimed_by: None,
        needs_page: false,
        is_approval: false,
        asked_at: Timestamp::from_millis(1_795_341_600_000),
        deadline: Timestamp::from_millis(1_795_343_400_000),
        ending: None,
        link: "https://ask.example.com/q/5f2c8a".to_owned(),
    }
}
