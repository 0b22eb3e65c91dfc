//! Figures for a monitor, from the audit: outcomes, times, deliveries, messages and refusals since the gateway started.
//!
//! They are counted when they are read, so that no question pays for them. Labels are names of the configuration; what
//! exceeds a bound is counted under [`OTHER`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mcp_elicit_core::lifecycle::{AuditEvent as Event, Timestamp};

use crate::audit::{AuditedEvent, Member};
use crate::store::{RecordStore, RecordStoreError};

/// The label of what exceeds a bound.
pub const OTHER: &str = "other";

/// The most different values of one label.
const MOST_NAMES: usize = 100;
/// The longest value of a label, in bytes.
const LONGEST_NAME: usize = 100;
/// The most questions whose times are remembered.
const MOST_TIMES: usize = 100_000;
/// The number of links that are read at once.
const AT_ONCE: usize = 1_000;

/// The bounds of times to an answer, in seconds.
const TO_ANSWER: [f64; 10] = [
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0,
];
/// The bounds of times from an answer to its delivery, in seconds.
const TO_DELIVERY: [f64; 8] = [0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 900.0];

/// The bounds of times of writes, in seconds.
const OF_WRITES: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// The measurements of a time.
#[derive(Clone, Debug)]
pub struct Times {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
    count: u64,
}

impl Times {
    fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len()],
            sum: 0.0,
            count: 0,
        }
    }

    /// Creates empty measurements of the time of a write.
    pub(crate) fn of_writes() -> Self {
        Self::new(&OF_WRITES)
    }

    fn add(&mut self, from: Timestamp, to: Timestamp) {
        self.add_seconds(to.since(from).as_secs_f64());
    }

    pub(crate) fn add_seconds(&mut self, seconds: f64) {
        for (count, bound) in self.counts.iter_mut().zip(self.bounds) {
            *count += u64::from(seconds <= *bound);
        }
        self.sum += seconds;
        self.count += 1;
    }

    /// Returns each bound in seconds, with the number of times up to it.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().copied();
        bounds.zip(self.counts.iter().copied()).collect()
    }

    /// Returns the sum of all times, in seconds.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// The values of a label, at most [`MOST_NAMES`].
#[derive(Clone, Debug, Default)]
struct LabelNames(BTreeSet<String>);

impl LabelNames {
    fn of(&mut self, name: &str) -> String {
        if self.0.contains(name) {
            return name.to_owned();
        }
        if self.0.len() >= MOST_NAMES || name.len() > LONGEST_NAME {
            return OTHER.to_owned();
        }
        self.0.insert(name.to_owned());
        name.to_owned()
    }
}

/// The server, the rule (empty for none) and the outcome of questions and calls.
pub type OutcomeLabels = (String, String, &'static str);

/// The figures since a link of the audit.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The number of the next link.
    next: u64,
    servers: LabelNames,
    rules: LabelNames,
    reasons: LabelNames,
    channels: LabelNames,
    asked: BTreeMap<String, u64>,
    outcomes: BTreeMap<OutcomeLabels, u64>,
    to_answer: BTreeMap<String, Times>,
    to_delivery: Times,
    deliveries: BTreeMap<&'static str, u64>,
    messages: BTreeMap<(String, &'static str), u64>,
    refusals: BTreeMap<(&'static str, String), u64>,
    /// The times at which open questions were asked, and answered ones were answered.
    asked_at: HashMap<String, Timestamp>,
    acted_at: HashMap<String, Timestamp>,
}

impl Figures {
    /// Begins after the last link.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn begin(store: &dyn RecordStore) -> Result<Self, RecordStoreError> {
        Ok(Self::after(store.audit_end().await?))
    }

    fn after(last: u64) -> Self {
        let deliveries = ["confirmed", "refused", "in-doubt", "lapsed"];
        Self {
            next: last.saturating_add(1),
            servers: LabelNames::default(),
            rules: LabelNames::default(),
            reasons: LabelNames::default(),
            channels: LabelNames::default(),
            asked: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            to_answer: BTreeMap::new(),
            to_delivery: Times::new(&TO_DELIVERY),
            // A rate of what has not happened yet needs a zero.
            deliveries: deliveries.map(|result| (result, 0)).into(),
            messages: BTreeMap::new(),
            refusals: BTreeMap::new(),
            asked_at: HashMap::new(),
            acted_at: HashMap::new(),
        }
    }

    /// Counts the links since the last reading.
    ///
    /// # Errors
    /// If the store fails; what was read so far is counted.
    pub async fn read_on(&mut self, store: &dyn RecordStore) -> Result<(), RecordStoreError> {
        loop {
            let page = store.audit(self.next, AT_ONCE).await?;
            for link in &page {
                self.next = link.number.saturating_add(1);
                if let Some(entry) = AuditedEvent::read(&link.entry) {
                    self.add(&entry, store).await?;
                }
            }
            if page.len() < AT_ONCE {
                return Ok(());
            }
        }
    }

    async fn add(
        &mut self,
        entry: &AuditedEvent,
        store: &dyn RecordStore,
    ) -> Result<(), RecordStoreError> {
        let text = |member| entry.text(member).unwrap_or_default();
        let Some(event) = entry.event() else {
            return Ok(());
        };
        let at = entry.at().unwrap_or_default();
        let id = text(Member::Id);
        let left_out = entry.number(Member::LeftOut);
        let count = left_out.unwrap_or_default().saturating_add(1);
        let outcome = match event {
            Event::Answered if entry.is_approval() => Some("approved"),
            Event::Answered => Some("accepted"),
            Event::Declined => Some("declined"),
            Event::Cancelled => Some("cancelled"),
            Event::TimedOut => Some("timed-out"),
            Event::Withdrawn => Some("withdrawn"),
            Event::Failed => Some("failed"),
            Event::RefusedByRule => Some("refused"),
            _ => None,
        };
        if let Some(outcome) = outcome {
            let server = self.servers.of(text(Member::Server));
            let labels = (server.clone(), self.rules.of(text(Member::Rule)), outcome);
            *self.outcomes.entry(labels).or_default() += count;
            let asked_at = match self.asked_at.remove(id) {
                Some(at) => Some(at),
                // Asked before this gateway started.
                None if id.is_empty() => None,
                None => {
                    let row = store.find(id.to_owned()).await?;
                    row.map(|row| row.lifecycle.asked_at())
                }
            };
            let is_act = matches!(event, Event::Answered | Event::Declined | Event::Cancelled);
            if let Some(asked_at) = asked_at.filter(|_| is_act) {
                let times = self.to_answer.entry(server);
                times
                    .or_insert_with(|| Times::new(&TO_ANSWER))
                    .add(asked_at, at);
                remember(&mut self.acted_at, id, at);
            }
        }
        let delivery = match event {
            Event::Delivered => Some("confirmed"),
            Event::DeliveryFailed => Some("refused"),
            Event::InDoubt => Some("in-doubt"),
            Event::Lapsed => Some("lapsed"),
            _ => None,
        };
        if let Some(result) = delivery {
            *self.deliveries.entry(result).or_default() += 1;
            let acted_at = self.acted_at.remove(id);
            if let Some(acted_at) = acted_at.filter(|_| event == Event::Delivered) {
                self.to_delivery.add(acted_at, at);
            }
        }
        let refusal = match event {
            Event::CallerRefused => Some(("caller", text(Member::Reason))),
            Event::ActRefused => Some(("action", text(Member::Reason))),
            Event::SignInRefused => Some(("sign-in", text(Member::Reason))),
            Event::RefusedByRule => Some(("rule", text(Member::Rule))),
            _ => None,
        };
        if let Some((kind, reason)) = refusal {
            // Codes have no spaces; texts are not labels.
            let reason = if kind != "rule" && reason.contains(' ') {
                OTHER
            } else {
                reason
            };
            let labels = (kind, self.reasons.of(reason));
            *self.refusals.entry(labels).or_default() += count;
        }
        match event {
            Event::Asked => {
                let server = self.servers.of(text(Member::Server));
                *self.asked.entry(server).or_default() += 1;
                remember(&mut self.asked_at, id, at);
            }
            Event::Notified | Event::NotificationFailed => {
                let result = if event == Event::Notified {
                    "sent"
                } else {
                    "failed"
                };
                let labels = (self.channels.of(text(Member::Channel)), result);
                *self.messages.entry(labels).or_default() += count;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the numbers of questions asked, by server.
    pub fn asked(&self) -> impl Iterator<Item = (&str, u64)> {
        self.asked
            .iter()
            .map(|(server, count)| (server.as_str(), *count))
    }

    /// Returns the numbers of outcomes, by server, rule and outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&OutcomeLabels, u64)> {
        self.outcomes.iter().map(|(labels, count)| (labels, *count))
    }

    /// Returns the times from question to act, by server.
    pub fn to_answer(&self) -> impl Iterator<Item = (&str, &Times)> {
        self.to_answer
            .iter()
            .map(|(server, times)| (server.as_str(), times))
    }

    /// Returns the times from act to confirmed delivery.
    pub fn to_delivery(&self) -> &Times {
        &self.to_delivery
    }

    /// Returns the numbers of deliveries, by result.
    pub fn deliveries(&self) -> impl Iterator<Item = (&str, u64)> {
        self.deliveries
            .iter()
            .map(|(result, count)| (*result, *count))
    }

    /// Returns the numbers of messages to people, by channel and result.
    pub fn messages(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let all = self.messages.iter();
        all.map(|((channel, result), count)| (channel.as_str(), *result, *count))
    }

    /// Returns the numbers of refusals, by kind and reason.
    pub fn refusals(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let all = self.refusals.iter();
        all.map(|((kind, reason), count)| (*kind, reason.as_str(), *count))
    }
}

fn remember(times: &mut HashMap<String, Timestamp>, id: &str, at: Timestamp) {
    if times.len() < MOST_TIMES {
        times.insert(id.to_owned(), at);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::store::{Memory, Write};

    async fn write(store: &Memory, entries: Vec<Value>) {
        let notes = entries.iter().map(|entry| Write::Note(entry.to_string()));
        store.write(Arc::new(notes.collect())).await.unwrap();
    }

    #[tokio::test]
    async fn each_event_is_counted_once_under_bounded_labels() {
        let store = Memory::default();
        write(
            &store,
            vec![json!({"at": 0, "event": "asked", "id": "before", "server": "s"})],
        )
        .await;
        let mut figures = Figures::begin(&store).await.unwrap();
        write(
            &store,
            vec![
                json!({"at": 1_000, "event": "asked", "id": "q", "server": "s"}),
                json!({"at": 3_000, "event": "answered", "id": "q", "server": "s", "rule": "r", "approval": true}),
                json!({"at": 3_100, "event": "delivered", "id": "q", "server": "s"}),
                json!({"at": 4_000, "event": "caller-refused", "server": "s", "reason": "unknown-key", "leftOut": 4}),
                json!({"at": 4_000, "event": "notified", "id": "q", "channel": "mail"}),
                json!({"at": 4_000, "event": "notification-failed", "id": "q", "channel": "mail", "reason": "no-address"}),
            ],
        )
        .await;
        for _ in 0..2 {
            figures.read_on(&store).await.unwrap();
        }
        let outcomes: Vec<_> = figures.outcomes().collect();
        assert_eq!(
            outcomes,
            [(&("s".to_owned(), "r".to_owned(), "approved"), 1)]
        );
        let (server, times) = figures.to_answer().next().unwrap();
        assert_eq!((server, times.count()), ("s", 1));
        assert!((times.sum() - 2.0).abs() < 1e-9);
        assert_eq!(times.buckets()[..2], [(1.0, 0), (5.0, 1)]);
        assert_eq!(figures.to_delivery().count(), 1);
        assert_eq!(
            figures.refusals().collect::<Vec<_>>(),
            [("caller", "unknown-key", 5)]
        );
        assert_eq!(
            figures.messages().collect::<Vec<_>>(),
            [("mail", "failed", 1), ("mail", "sent", 1)]
        );
        assert_eq!(figures.asked().collect::<Vec<_>>(), [("s", 1)]);
        let many = (0..2 * MOST_NAMES).map(
            |number| json!({"at": 1, "event": "asked", "id": "x", "server": format!("s{number}")}),
        );
        write(&store, many.collect()).await;
        figures.read_on(&store).await.unwrap();
        assert_eq!(figures.asked().count(), MOST_NAMES + 1);
        let all: u64 = figures.asked().map(|(_, count)| count).sum();
        assert_eq!(all, 1 + 2 * MOST_NAMES as u64);
    }
}
