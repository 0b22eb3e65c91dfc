//! Reports of traced questions that ended, once their end is in the store: by the process that wrote it, and by no other.

use mcp_elicit_core::lifecycle::{AuditEvent, Timestamp};

use crate::audit::{AuditedEvent, ENDS};
use crate::store::{Row, Write};

/// A traced question that ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedQuestion<'a> {
    /// Its row.
    pub row: &'a Row,
    /// The event that ended it.
    pub event: AuditEvent,
    /// The time of that event.
    pub at: Timestamp,
}

/// The receiver of reports. It must not wait: the writer of the record calls it.
pub type EndObserver = Box<dyn Fn(EndedQuestion<'_>) + Send + Sync>;

/// Reports the ends among the writes that were made.
pub(crate) fn report(writes: &[Write], done: &[bool], observer: &EndObserver) {
    for (write, _) in writes.iter().zip(done).filter(|(_, done)| **done) {
        match write {
            Write::Insert { row, audit } => report_end(row, audit, observer),
            Write::Change(changes) => {
                for change in changes {
                    report_end(&change.row, &change.audit, observer);
                }
            }
            Write::Note(_) | Write::PurgeAudit { .. } => {}
        }
    }
}

fn report_end(row: &Row, audit: &[String], observer: &EndObserver) {
    if row.body.trace.is_none() {
        return;
    }
    let end = audit.iter().find_map(|entry| {
        let entry = AuditedEvent::read(entry)?;
        let event = entry.event().filter(|event| ENDS.contains(event))?;
        Some((event, entry.at()?))
    });
    if let Some((event, at)) = end {
        observer(EndedQuestion { row, event, at });
    }
}
