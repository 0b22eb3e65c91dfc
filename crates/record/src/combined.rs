//! Answers are taken out for the server: all of a round or none, and only once.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::Transition;
use mcp_elicit_core::question::{content_json, result_json};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::delivery::InTransit;
use super::transitions::Stepped;
use super::{Known, Record, RecordError, associated_data, audit};
use crate::store::{Change, Durability, Row, Store as _};

/// A client's answer that is not written yet: it is to be written together with its delivery. The question was written
/// before it was asked; the client waits with its request until the server has the answer, and would lose the two together.
#[derive(Clone)]
pub(super) struct Submitted {
    /// The row as it was written last.
    before: Row,
    step: Transition,
    /// The person's answer, JSON.
    content: Option<String>,
}

impl Record {
    /// The client's answer to a question that was written and that nobody is known to have changed since; `false` where that
    /// cannot be said. [`Record::take`] or [`Record::write_submitted`] is to follow.
    pub fn submit_with_delivery(&self, id: &str, outcome: &Outcome, by: &str) -> bool {
        let step = Transition::acted(outcome, by);
        let mut live = self.live();
        let Some(live) = live.get_mut(id) else {
            return false;
        };
        let Some(before) = live.take_guess() else {
            return false;
        };
        if before.lifecycle.step(&step, self.now()).is_err() || self.is_exclusive_elsewhere(&before)
        {
            live.known = Known::Guess(Box::new(before));
            return false;
        }
        live.known = Known::Submitted(Box::new(Submitted {
            before,
            step,
            content: content_json(outcome),
        }));
        true
    }

    fn take_submitted(&self, id: &str) -> Option<Submitted> {
        let mut live = self.live();
        let known = &mut live.get_mut(id)?.known;
        match std::mem::replace(known, Known::Nothing) {
            Known::Submitted(hand) => Some(*hand),
            other => {
                *known = other;
                None
            }
        }
    }

    /// Returns what could not be written stays in hand.
    fn put_back_submitted(&self, id: &str, hand: Submitted) {
        if let Some(live) = self.live().get_mut(id)
            && matches!(live.known, Known::Nothing | Known::Guess(_))
        {
            live.known = Known::Submitted(Box::new(hand));
        }
    }

    /// Writes an answer that is in hand by itself; nothing where there is none.
    pub async fn write_submitted(&self, id: &str) -> Result<(), RecordError> {
        let Some(hand) = self.take_submitted(id) else {
            return Ok(());
        };
        match self.step(id, &hand.step, hand.content.as_deref()).await {
            Ok(stepped) => {
                // Whoever was first has told.
                self.acted(id, stepped);
                Ok(())
            }
            Err(fault) => {
                self.put_back_submitted(id, hand);
                Err(fault)
            }
        }
    }

    /// Takes answers out, all or none and only once; `None` when any is not there to be taken.
    pub async fn deliver(&self, ids: &[String]) -> Result<Option<Vec<String>>, RecordError> {
        let in_hand = |id: &String| Some((id.clone(), self.take_submitted(id)?));
        let hands: HashMap<String, Submitted> = ids.iter().filter_map(in_hand).collect();
        let taken = self.take_with(ids, &hands).await;
        if matches!(taken, Ok(Some(_))) || hands.is_empty() {
            return taken;
        }
        for (id, hand) in hands {
            self.put_back_submitted(&id, hand);
        }
        taken?;
        // Somebody else has changed the row, or not all of a round is there.
        for id in ids {
            self.write_submitted(id).await?;
        }
        self.take_with(ids, &HashMap::new()).await
    }

    async fn take_with(
        &self,
        ids: &[String],
        hands: &HashMap<String, Submitted>,
    ) -> Result<Option<Vec<String>>, RecordError> {
        // Some may be noted here only, and others not.
        let is_noted = |id: &&String| {
            self.live()
                .get(*id)
                .is_some_and(|live| live.noted().is_some())
        };
        let noted: Vec<String> = ids.iter().filter(is_noted).cloned().collect();
        if !noted.is_empty() {
            self.share(&noted).await?;
        }
        let mut changes = Vec::new();
        let mut replies = Vec::new();
        for id in ids {
            let taken = match hands.get(id) {
                Some(hand) => self.delivered_with_answer(hand),
                None => self.delivered(id).await?,
            };
            let Some((change, reply)) = taken else {
                return Ok(None);
            };
            changes.push(change);
            replies.push(reply);
        }
        if !self.store.change(changes).await? {
            return Ok(None);
        }
        for (id, hand) in hands {
            let transit = InTransit {
                content: hand.content.clone(),
                arguments: hand.before.arguments.clone(),
                delivered: self.delivered_entry(hand),
            };
            self.in_transit().insert(id.clone(), transit);
            self.acted(id, Stepped::Done);
        }
        self.counters
            .delivered
            .fetch_add(ids.len() as u64, Ordering::Relaxed);
        let mut live = self.live();
        for id in ids {
            live.remove(id);
        }
        drop(live);
        self.changed();
        Ok(Some(replies))
    }

    /// An answer that is written, and its row as delivered; its values are kept until that is confirmed.
    async fn delivered(&self, id: &str) -> Result<Option<(Change, String)>, RecordError> {
        let Some(row) = self.answered(id).await? else {
            return Ok(None);
        };
        let Some(action) = row.lifecycle.phase().action() else {
            return Ok(None);
        };
        let Ok(lifecycle) = row.lifecycle.step(&Transition::Deliver, self.now()) else {
            return Ok(None);
        };
        let content = row
            .content
            .as_deref()
            .map(|sealed| {
                self.keys
                    .encryption
                    .open(&associated_data(id, "content"), sealed)
            })
            .transpose()?;
        let seen = row.lifecycle.version();
        let row = Row { lifecycle, ..row };
        let reply = result_json(action, content.as_deref());
        let change = Change {
            row,
            seen,
            // That it was delivered is said when the server has accepted it.
            audit: Vec::new(),
            durability: Durability::Flushed,
        };
        Ok(Some((change, reply)))
    }

    /// An answer in hand, and its row as answered and delivered in one.
    fn delivered_with_answer(&self, hand: &Submitted) -> Option<(Change, String)> {
        let now = self.now();
        let seen = hand.before.lifecycle.version();
        let mut row = hand.before.clone();
        row.lifecycle = row.lifecycle.step(&hand.step, now).ok()?;
        let action = row.lifecycle.phase().action()?;
        let answered = audit::entry(row.lifecycle.phase().as_str(), &row, now);
        row.lifecycle = row.lifecycle.step(&Transition::Deliver, now).ok()?;
        row.arguments = None;
        let audit = vec![answered];
        let reply = result_json(action, hand.content.as_deref());
        // The value was never written, so nothing can be sent twice.
        let durability = Durability::Committed;
        let change = Change {
            row,
            seen,
            audit,
            durability,
        };
        Some((change, reply))
    }

    /// Returns what the audit says of an answer in hand once the server has accepted it.
    fn delivered_entry(&self, hand: &Submitted) -> String {
        let now = self.now();
        let mut row = hand.before.clone();
        for step in [&hand.step, &Transition::Deliver] {
            if let Ok(next) = row.lifecycle.step(step, now) {
                row.lifecycle = next;
            }
        }
        audit::entry("delivered", &row, now)
    }

    /// The row, read again when what is remembered of it is no answer: another gateway's page may have given it.
    async fn answered(&self, id: &str) -> Result<Option<Row>, RecordError> {
        match self.find_or_remembered(id).await? {
            Some(row) if row.lifecycle.phase().action().is_some() => Ok(Some(row)),
            _ => self.find(id).await,
        }
    }
}
