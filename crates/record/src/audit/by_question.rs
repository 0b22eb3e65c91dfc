//! The audit with one row per question: its call, its outcome, and the number of its events.

use std::collections::HashMap;

use mcp_elicit_core::lifecycle::{AuditEvent as Event, Timestamp};

use super::filter::{AT_ONCE, AuditFilter, MAX_READ, first_number};
use super::spelling::{AuditedEvent, Member};
use crate::store::{RecordStore, RecordStoreError};

/// The most links that are read at once about the questions of a page.
const MOST_OF_PAGE: usize = 20_000;

/// The events that end a question.
pub(crate) const ENDS: [Event; 6] = [
    Event::Answered,
    Event::Declined,
    Event::Cancelled,
    Event::TimedOut,
    Event::Withdrawn,
    Event::Failed,
];

/// A question in the audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditedQuestion {
    /// Its id.
    pub id: String,
    /// The number of its latest event that matches.
    pub number: u64,
    /// The time at which it was asked, if that is among the events that were read.
    pub asked_at: Option<Timestamp>,
    /// The time of its latest event.
    pub last_at: Timestamp,
    /// The server.
    pub server: String,
    /// The tool, prompt or resource; empty if it is unknown.
    pub target: String,
    /// The caller by the name of the record.
    pub caller: String,
    /// The rule; empty if there is none.
    pub rule: String,
    /// `true` if the gateway asked for approval of a call.
    pub is_approval: bool,
    /// The event that ended it; `None` while it is open.
    pub outcome: Option<String>,
    /// The actor of the outcome; empty if there is none.
    pub by: String,
    /// The reason of the outcome; empty if there is none.
    pub reason: String,
    /// The last event of its delivery; `None` if nothing was delivered.
    pub delivery: Option<String>,
    /// The number of its events that were read.
    pub events: u64,
}

/// A page of questions.
#[derive(Clone, Debug, Default)]
pub struct LatestQuestions {
    /// The questions, the one with the latest matching event first.
    pub questions: Vec<AuditedQuestion>,
    /// The number before which older events may match; `None` if there are none.
    pub older: Option<u64>,
}

/// Returns the latest `most` questions with an event that matches, before this number if there is one. Each question is
/// at its latest match, and so on one page only. A bounded number of links is read.
///
/// # Errors
/// If the store fails.
pub async fn latest_questions(
    store: &dyn RecordStore,
    filter: &AuditFilter,
    before: Option<u64>,
    most: usize,
) -> Result<LatestQuestions, RecordStoreError> {
    let end = store.audit_end().await?.saturating_add(1);
    let before = before.unwrap_or(u64::MAX).min(end);
    let first = first_number(store).await?;
    let last_read = before.saturating_sub(MAX_READ).max(first);
    let mut page = LatestQuestions::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut until = before;
    'read: while until > last_read {
        let from = until.saturating_sub(AT_ONCE).max(last_read);
        let most_links = usize::try_from(until - from).unwrap_or(0);
        let found = store
            .audit_matching(filter.clone(), from..until, most_links)
            .await?;
        for link in found {
            let Some(id) = id_of(&link.entry) else {
                continue;
            };
            if places.contains_key(&id) {
                continue;
            }
            if page.questions.len() >= most {
                page.older = Some(link.number.saturating_add(1));
                break 'read;
            }
            places.insert(id.clone(), page.questions.len());
            page.questions.push(AuditedQuestion {
                id,
                number: link.number,
                ..AuditedQuestion::default()
            });
        }
        until = from;
        page.older = (until > first).then_some(until);
    }
    if before < end {
        drop_shown(store, filter, before, end, &mut page.questions).await?;
    }
    read_events(store, &mut page.questions, end).await?;
    Ok(page)
}

fn id_of(entry: &str) -> Option<String> {
    AuditedEvent::read(entry)?.question().map(str::to_owned)
}

/// Drops the questions whose latest match is on an earlier page.
async fn drop_shown(
    store: &dyn RecordStore,
    filter: &AuditFilter,
    before: u64,
    end: u64,
    questions: &mut Vec<AuditedQuestion>,
) -> Result<(), RecordStoreError> {
    if questions.is_empty() {
        return Ok(());
    }
    let filter = AuditFilter {
        questions: questions.iter().map(|one| one.id.clone()).collect(),
        ..filter.clone()
    };
    let later = before..before.saturating_add(MAX_READ).min(end);
    let shown = store.audit_matching(filter, later, MOST_OF_PAGE).await?;
    let shown: std::collections::HashSet<String> =
        shown.iter().filter_map(|link| id_of(&link.entry)).collect();
    questions.retain(|one| !shown.contains(&one.id));
    Ok(())
}

/// Reads all events of the questions around their latest matches.
async fn read_events(
    store: &dyn RecordStore,
    questions: &mut [AuditedQuestion],
    end: u64,
) -> Result<(), RecordStoreError> {
    let numbers = || questions.iter().map(|one| one.number);
    let (Some(first), Some(last)) = (numbers().min(), numbers().max()) else {
        return Ok(());
    };
    let filter = AuditFilter {
        questions: questions.iter().map(|one| one.id.clone()).collect(),
        ..AuditFilter::default()
    };
    let from = first.saturating_sub(MAX_READ / 2).max(1);
    let until = last.saturating_add(MAX_READ / 2).min(end);
    let mut links = store
        .audit_matching(filter, from..until, MOST_OF_PAGE)
        .await?;
    links.reverse();
    let places: HashMap<String, usize> = questions
        .iter()
        .enumerate()
        .map(|(place, one)| (one.id.clone(), place))
        .collect();
    for link in links {
        let Some(entry) = AuditedEvent::read(&link.entry) else {
            continue;
        };
        let place = entry.question().and_then(|id| places.get(id));
        if let Some(&place) = place {
            questions[place].add(&entry);
        }
    }
    Ok(())
}

impl AuditedQuestion {
    /// Adds an event, in order.
    fn add(&mut self, entry: &AuditedEvent) {
        let text = |member| entry.text(member);
        let at = entry.at().unwrap_or_default();
        self.events += 1;
        self.last_at = at;
        for (value, member) in [
            (&mut self.server, Member::Server),
            (&mut self.target, Member::Target),
            (&mut self.caller, Member::Principal),
            (&mut self.rule, Member::Rule),
        ] {
            if let Some(text) = text(member) {
                text.clone_into(value);
            }
        }
        self.is_approval |= entry.is_approval();
        let Some(event) = text(Member::Event) else {
            return;
        };
        if event == Event::Asked.as_str() {
            self.asked_at.get_or_insert(at);
        }
        if ENDS.iter().any(|end| end.as_str() == event) {
            self.outcome = Some(event.to_owned());
            text(Member::By)
                .unwrap_or_default()
                .clone_into(&mut self.by);
            text(Member::Reason)
                .unwrap_or_default()
                .clone_into(&mut self.reason);
        }
        let deliveries = [
            Event::Delivered,
            Event::DeliveryFailed,
            Event::InDoubt,
            Event::Lapsed,
        ];
        if deliveries.iter().any(|one| one.as_str() == event) {
            self.delivery = Some(event.to_owned());
        }
    }
}
