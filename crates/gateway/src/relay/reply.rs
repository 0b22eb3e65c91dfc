//! An answer as the record says it: what the server is told where the client's own words may not go on as they are.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::wire::Action;

/// Returns what the person answered, JSON.
pub(crate) fn content_of(outcome: &Outcome) -> Option<String> {
    let answers = outcome.answers()?;
    Some(answers.to_value().to_string())
}

/// An `ElicitResult`, JSON.
pub(crate) fn reply(action: Action, content: Option<&str>) -> String {
    match content {
        Some(content) => format!(r#"{{"action":"{action}","content":{content}}}"#),
        None => format!(r#"{{"action":"{action}"}}"#),
    }
}

/// Returns what the record says once this answer is in it.
pub(super) fn recorded(outcome: &Outcome) -> String {
    reply(outcome.action(), content_of(outcome).as_deref())
}
