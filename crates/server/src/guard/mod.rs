//! What must not be asked, decided before anything is sent.

pub(crate) mod rate;

use mcp_elicit_core::link::Link;

use crate::question::{Question, Subject};
use crate::unanswered::Unanswered;

/// Refuses what the specification says a server must not send, and warns of what it should not.
pub(crate) fn may_ask(question: &Question) -> Result<(), Unanswered> {
    match &question.subject {
        Subject::Form(_) => Ok(()),
        Subject::Url { url, .. } => may_send(url),
    }
}

/// "Safe URL Handling": no credentials and no personal data in a URL, https outside development.
fn may_send(url: &str) -> Result<(), Unanswered> {
    let link = Link::parse(url).map_err(|fault| Unanswered::Author(fault.to_string()))?;
    if let Some(caution) = link.refused_for_asking().next() {
        return Err(Unanswered::Author(caution.to_string()));
    }
    for caution in link.unwise_for_asking() {
        tracing::warn!(target: "mcp_elicit", host = link.host().ascii(), %caution, "a link that a server should not send");
    }
    Ok(())
}
