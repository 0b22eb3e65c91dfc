//! The selection of audit events, and the latest events that match.

use mcp_elicit_core::lifecycle::{AuditEvent as Event, Timestamp};

use super::spelling::{AuditedEvent, Member};
use crate::store::{AuditEntry, RecordStore, RecordStoreError};

/// The number of links in which matches are looked for at once.
pub(super) const AT_ONCE: u64 = 5_000;
/// The most links in which matches are looked for, because they may be rare.
pub(super) const MAX_READ: u64 = 50_000;

/// The outcomes of questions and calls, each with its event.
pub const OUTCOMES: [(&str, Event); 7] = [
    ("accepted", Event::Answered),
    ("declined", Event::Declined),
    ("cancelled", Event::Cancelled),
    ("timed-out", Event::TimedOut),
    ("withdrawn", Event::Withdrawn),
    ("failed", Event::Failed),
    ("refused", Event::RefusedByRule),
];

/// Returns the name of the event of an outcome.
pub fn events_of_outcome(outcome: &str) -> Option<&'static str> {
    let mut all = OUTCOMES.iter();
    let found = all.find(|(name, _)| *name == outcome);
    found.map(|(_, event)| event.as_str())
}

/// The selection of audit events. Absent parts select all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// The names of the events.
    pub events: Vec<String>,
    /// The server.
    pub server: Option<String>,
    /// The beginning of the question's id.
    pub question: Option<String>,
    /// The ids of the questions.
    pub questions: Vec<String>,
    /// A person who acted, or whom an event of logins is about; or another actor in the words of the audit.
    pub person: Option<String>,
    /// The callers by the names of the record; the beginning of a name is enough.
    pub callers: Vec<String>,
    /// The keyed digest of exactly this call.
    pub call: Option<String>,
    /// The earliest time.
    pub since: Option<Timestamp>,
    /// The time before which events are.
    pub until: Option<Timestamp>,
}

impl AuditFilter {
    /// Returns `true` if it selects all events.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns `true` if it selects this entry.
    pub fn fits(&self, entry: &AuditedEvent) -> bool {
        let text = |member| entry.text(member);
        let is = |wanted: &Option<String>, member| {
            wanted
                .as_deref()
                .is_none_or(|wanted| text(member) == Some(wanted))
        };
        let at = entry.at();
        let id = text(Member::Id);
        (self.events.is_empty()
            || text(Member::Event).is_some_and(|event| self.events.iter().any(|one| one == event)))
            && is(&self.server, Member::Server)
            && is(&self.call, Member::Call)
            && self
                .question
                .as_deref()
                .is_none_or(|wanted| id.is_some_and(|id| id.starts_with(wanted)))
            && (self.questions.is_empty()
                || id.is_some_and(|id| self.questions.iter().any(|one| one == id)))
            && self.person.as_deref().is_none_or(|person| {
                text(Member::Person) == Some(person)
                    || text(Member::By) == Some(person)
                    || entry.by().is_some_and(|by| by.is_person(person))
            })
            && (self.callers.is_empty()
                || text(Member::Principal).is_some_and(|caller| {
                    self.callers.iter().any(|wanted| caller.starts_with(wanted))
                }))
            && self
                .since
                .is_none_or(|since| at.is_some_and(|at| at >= since))
            && self
                .until
                .is_none_or(|until| at.is_some_and(|at| at < until))
    }
}

/// A page of events.
#[derive(Clone, Debug, Default)]
pub struct LatestEvents {
    /// The events, the latest first.
    pub links: Vec<AuditEntry>,
    /// The number before which older events may match; `None` if there are none.
    pub older: Option<u64>,
}

/// Returns the latest `most` events that match, before this number if there is one. Matches are looked for in a bounded
/// number of links: an empty page may have older ones.
///
/// # Errors
/// If the store fails.
pub async fn latest_events(
    store: &dyn RecordStore,
    filter: &AuditFilter,
    before: Option<u64>,
    most: usize,
) -> Result<LatestEvents, RecordStoreError> {
    let end = store.audit_end().await?.saturating_add(1);
    let mut until = before.unwrap_or(u64::MAX).min(end);
    let first = first_number(store).await?;
    let last_read = until.saturating_sub(MAX_READ).max(first);
    let mut page = LatestEvents::default();
    while until > last_read {
        let from = until.saturating_sub(AT_ONCE).max(last_read);
        let left = most - page.links.len();
        let found = store
            .audit_matching(filter.clone(), from..until, left)
            .await?;
        page.links.extend(found);
        if page.links.len() >= most {
            let last = page.links.last().map_or(first, |link| link.number);
            page.older = (last > first).then_some(last);
            return Ok(page);
        }
        until = from;
    }
    page.older = (until > first).then_some(until);
    Ok(page)
}

/// Returns the number of the first event that was not deleted; 1 if there is none.
pub(super) async fn first_number(store: &dyn RecordStore) -> Result<u64, RecordStoreError> {
    let first = store.audit(1, 1).await?;
    Ok(first.first().map_or(1, |link| link.number))
}
