//! One line of the log for each step of a question, when it is in the store: who did what, and never a value.

use mcp_elicit_core::lifecycle::AuditEvent as Event;
use tracing::Level;

use crate::audit::{Actor, AuditedEvent, Member, event_in_words};
use crate::store::Write;

/// The target of these lines.
const TARGET: &str = "mcp_elicit::question";

/// The events whose reasons are this program's or the server's words, not a person's.
const WITH_REASON: [Event; 9] = [
    Event::TimedOut,
    Event::Withdrawn,
    Event::Failed,
    Event::DeliveryFailed,
    Event::InDoubt,
    Event::Lapsed,
    Event::ClientNotAPerson,
    Event::ActRefused,
    Event::NotificationFailed,
];

/// Logs the steps of the writes that were made.
pub(crate) fn log_written(writes: &[Write], done: &[bool]) {
    if !tracing::enabled!(target: TARGET, Level::INFO) {
        return;
    }
    for (write, _) in writes.iter().zip(done).filter(|(_, done)| **done) {
        match write {
            Write::Insert { audit, .. } => audit.iter().for_each(|entry| log(entry)),
            Write::Change(changes) => {
                let entries = changes.iter().flat_map(|change| &change.audit);
                entries.for_each(|entry| log(entry));
            }
            Write::Note(entry) | Write::PurgeAudit { entry, .. } => log(entry),
        }
    }
}

fn log(entry: &str) {
    let Some(entry) = AuditedEvent::read(entry) else {
        return;
    };
    let text = |member| entry.text(member);
    let (Some(event), Some(id)) = (text(Member::Event), entry.question()) else {
        return;
    };
    let words = event_in_words(event);
    let question: String = id.chars().take(8).collect();
    let actor = |member| text(member).map(|words| Actor::read(words).in_words());
    let (by, to) = (actor(Member::By), actor(Member::To));
    let with_reason = WITH_REASON.iter().any(|known| known.as_str() == event);
    let reason = text(Member::Reason).filter(|_| with_reason);
    if event == Event::Notified.as_str() {
        // There is one for each person and channel.
        tracing::debug!(target: TARGET, question, to, channel = text(Member::Channel), "{words}");
        return;
    }
    tracing::info!(
        target: TARGET,
        question,
        server = text(Member::Server),
        tool = text(Member::Target),
        rule = text(Member::Rule),
        by,
        to,
        reason,
        "{words}"
    );
}
