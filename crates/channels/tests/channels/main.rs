//! Each channel with a real other end: a mail server, a verifier of webhooks, a browser's decryption, Slack's own models, a renderer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod mail;
mod push;
mod slack;
mod teams;
mod webhook;

use std::sync::Arc;

use mcp_elicit_channels::secret::SecretText;
use mcp_elicit_channels::{CallerSummary, Event, Notice, NotificationId, Recipient, Summary};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::rules::Reveal;
use serde_json::Value;

/// A question with a form, a tool and arguments, open for a long time.
fn summary(properties: &str) -> Summary {
    let form = format!(r#"{{"type":"object","properties":{properties}}}"#);
    Summary {
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
        form: Some(Arc::new(Form::parse(&form).unwrap())),
        address: None,
        addressed: vec!["group:ops".to_owned()],
        need: 1,
        claimed_by: None,
        needs_page: false,
        asked_at: Timestamp::from_millis(1_795_341_600_000),
        deadline: Timestamp::from_millis(4_102_444_800_000),
        ending: None,
        link: "https://ask.example.com/q/5f2c8a".to_owned(),
    }
}

fn person(mail: &str) -> Recipient {
    Recipient::Person {
        name: "ops-1".to_owned(),
        mail: Some(mail.to_owned()),
    }
}

fn notice(id: &str, to: Recipient, event: Event, reveal: Reveal, summary: Summary) -> Notice {
    Notice {
        id: NotificationId::new(id).unwrap(),
        event,
        at: summary.asked_at,
        to,
        summary: Arc::new(summary),
        reveal,
        waiting: Some(2),
    }
}

fn secret(text: &str) -> SecretText {
    SecretText::new(text)
}

/// Asks a stand-in over HTTP.
async fn ask(url: &str, body: Option<Value>) -> Value {
    let client = reqwest::Client::new();
    let request = match body {
        Some(body) => client.post(url).body(body.to_string()),
        None => client.get(url),
    };
    let reply = request.send().await.unwrap();
    let text = reply.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{url} said {text}"))
}
