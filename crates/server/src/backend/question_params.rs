//! The parameters that rmcp sends for a question, and the reading of the response.

use mcp_elicit_core::text;
use mcp_elicit_core::wire::{self, Mode, Revision};
use rmcp::model::ElicitRequestParams;
use serde_json::Value;

use crate::error::ElicitError;
use crate::journal::ReceivedAnswer;
use crate::question::{OutgoingBody, OutgoingQuestion};

/// Returns the beginning of a question's message, short enough to travel with the state.
pub(crate) fn beginning(message: &str) -> String {
    const LONGEST: usize = 160;
    if message.len() <= LONGEST {
        return message.to_owned();
    }
    format!("{}...", text::beginning(message, LONGEST))
}

/// Returns the parameters that rmcp sends for a question. Tasks use them too.
pub(crate) fn params(
    question: &OutgoingQuestion,
    revision: Revision,
) -> Result<ElicitRequestParams, ElicitError> {
    let message = question.message.clone();
    Ok(match &question.subject {
        OutgoingBody::Form(form) => ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema: form.typed(revision)?,
        },
        // 2026-07-28 has no elicitation id; rmcp sends the empty one that it is given.
        OutgoingBody::Url { url, .. } => ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message,
            url: url.clone(),
            elicitation_id: String::new(),
        },
    })
}

/// Reads an `ElicitResult`.
pub(crate) fn read_reply(value: &Value, mode: Mode) -> ReceivedAnswer {
    match wire::ElicitResult::from_value(value, mode) {
        Ok(reply) => {
            if reply.dropped_content() {
                tracing::debug!("a reply had content where none counts; it was dropped");
            }
            ReceivedAnswer::Result((&reply).into())
        }
        Err(defect) => ReceivedAnswer::Broken(defect.to_string()),
    }
}
