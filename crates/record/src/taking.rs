//! Answers are taken out for the server: all of a round or none, and only once.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::Transition;
use mcp_elicit_core::question::{content_json, result_json};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::delivery::InTransit;
use super::settling::Stepped;
use super::{Book, BookFault, Known, audit, place};
use crate::store::{Change, Durability, Row, Store as _};

/// A client's answer that is not written yet: it is to be written together with its delivery. The question was written
/// before it was asked; the client waits with its request until the server has the answer, and would lose the two together.
#[derive(Clone)]
pub(super) struct InHand {
    /// The row as it was written last.
    before: Row,
    step: Transition,
    /// The person's answer, JSON.
    content: Option<String>,
}

impl Book {
    /// The client's answer to a question that was written and that nobody is known to have changed since; `false` where that
    /// cannot be said. [`Book::take`] or [`Book::write_in_hand`] is to follow.
    pub fn settle_in_hand(&self, id: &str, outcome: &Outcome, by: &str) -> bool {
        let step = Transition::acted(outcome, by);
        let mut live = self.live();
        let Some(live) = live.get_mut(id) else {
            return false;
        };
        let Some(before) = live.take_guess() else {
            return false;
        };
        if before.exchange.step(&step, self.now()).is_err() || self.is_anothers(&before) {
            live.known = Known::Guess(Box::new(before));
            return false;
        }
        live.known = Known::InHand(Box::new(InHand {
            before,
            step,
            content: content_json(outcome),
        }));
        true
    }

    fn take_in_hand(&self, id: &str) -> Option<InHand> {
        let mut live = self.live();
        let known = &mut live.get_mut(id)?.known;
        match std::mem::replace(known, Known::Nothing) {
            Known::InHand(hand) => Some(*hand),
            other => {
                *known = other;
                None
            }
        }
    }

    /// Returns what could not be written stays in hand.
    fn put_in_hand(&self, id: &str, hand: InHand) {
        if let Some(live) = self.live().get_mut(id)
            && matches!(live.known, Known::Nothing | Known::Guess(_))
        {
            live.known = Known::InHand(Box::new(hand));
        }
    }

    /// Writes an answer that is in hand by itself; nothing where there is none.
    pub async fn write_in_hand(&self, id: &str) -> Result<(), BookFault> {
        let Some(hand) = self.take_in_hand(id) else {
            return Ok(());
        };
        match self.step(id, &hand.step, hand.content.as_deref()).await {
            Ok(stepped) => {
                // Whoever was first has told.
                self.acted(id, stepped);
                Ok(())
            }
            Err(fault) => {
                self.put_in_hand(id, hand);
                Err(fault)
            }
        }
    }

    /// Takes answers out, all or none and only once; `None` when any is not there to be taken.
    pub async fn take(&self, ids: &[String]) -> Result<Option<Vec<String>>, BookFault> {
        let in_hand = |id: &String| Some((id.clone(), self.take_in_hand(id)?));
        let hands: HashMap<String, InHand> = ids.iter().filter_map(in_hand).collect();
        let taken = self.take_with(ids, &hands).await;
        if matches!(taken, Ok(Some(_))) || hands.is_empty() {
            return taken;
        }
        for (id, hand) in hands {
            self.put_in_hand(&id, hand);
        }
        taken?;
        // Somebody else has changed the row, or not all of a round is there.
        for id in ids {
            self.write_in_hand(id).await?;
        }
        self.take_with(ids, &HashMap::new()).await
    }

    async fn take_with(
        &self,
        ids: &[String],
        hands: &HashMap<String, InHand>,
    ) -> Result<Option<Vec<String>>, BookFault> {
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
                Some(hand) => self.delivered_from_hand(hand),
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
        self.counts
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
    async fn delivered(&self, id: &str) -> Result<Option<(Change, String)>, BookFault> {
        let Some(row) = self.answered(id).await? else {
            return Ok(None);
        };
        let Some(action) = row.exchange.phase().action() else {
            return Ok(None);
        };
        let Ok(exchange) = row.exchange.step(&Transition::Deliver, self.now()) else {
            return Ok(None);
        };
        let content = row
            .content
            .as_deref()
            .map(|sealed| self.keys.seal.open(&place(id, "content"), sealed))
            .transpose()?;
        let seen = row.exchange.version();
        let row = Row { exchange, ..row };
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
    fn delivered_from_hand(&self, hand: &InHand) -> Option<(Change, String)> {
        let now = self.now();
        let seen = hand.before.exchange.version();
        let mut row = hand.before.clone();
        row.exchange = row.exchange.step(&hand.step, now).ok()?;
        let action = row.exchange.phase().action()?;
        let answered = audit::entry(row.exchange.phase().as_str(), &row, now);
        row.exchange = row.exchange.step(&Transition::Deliver, now).ok()?;
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
    fn delivered_entry(&self, hand: &InHand) -> String {
        let now = self.now();
        let mut row = hand.before.clone();
        for step in [&hand.step, &Transition::Deliver] {
            if let Ok(next) = row.exchange.step(step, now) {
                row.exchange = next;
            }
        }
        audit::entry("delivered", &row, now)
    }

    /// The row, read again when what is remembered of it is no answer: another gateway's page may have given it.
    async fn answered(&self, id: &str) -> Result<Option<Row>, BookFault> {
        match self.find_or_recall(id).await? {
            Some(row) if row.exchange.phase().action().is_some() => Ok(Some(row)),
            _ => self.find(id).await,
        }
    }
}
