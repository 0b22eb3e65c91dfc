//! Answers are taken out for the server: all of a round or none, and only once.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::Transition;
use mcp_elicit_core::question::{content_json, result_json};
use std::collections::HashMap;

use super::delivery::InTransit;
use super::row::{RowChange, Stepped};
use super::{Known, Record, RecordError, associated_data, audit};
use crate::store::{Row, Store as _};

/// A client's answer that is not written yet: it is to be written together with its delivery. The question was written
/// before it was asked; the client waits with its request until the server has the answer, and would lose the two together.
#[derive(Clone)]
pub(super) struct Submitted {
    /// The row as it was written last.
    before: Row,
    act: Transition,
    /// The person's answer, JSON.
    content: Option<String>,
}

/// An answer that is about to be delivered.
struct Delivered {
    stepped: Stepped,
    change: RowChange,
    /// The `ElicitResult`, JSON.
    reply: String,
    /// The values that the store does not have.
    transit: Option<InTransit>,
}

impl Record {
    /// The client's answer to a question that was written and that nobody is known to have changed since; `false` where that
    /// cannot be said. [`Record::deliver`] or [`Record::write_submitted`] is to follow.
    pub fn submit_with_delivery(&self, id: &str, outcome: &Outcome, by: &str) -> bool {
        let act = Transition::acted(outcome, by);
        let mut live = self.live();
        let Some(live) = live.get_mut(id) else {
            return false;
        };
        let Some(before) = live.take_guess() else {
            return false;
        };
        if before.lifecycle.step(&act, self.now()).is_err() || self.is_exclusive_elsewhere(&before)
        {
            live.known = Known::Guess(Box::new(before));
            return false;
        }
        live.known = Known::Submitted(Box::new(Submitted {
            before,
            act,
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
        let sealed = |text: &String| {
            self.keys
                .encryption
                .seal(&associated_data(id, "content"), text)
        };
        let content = hand.content.as_ref().map(sealed).transpose()?;
        let transition = hand.act.clone();
        let change = RowChange::Step {
            transition,
            content,
        };
        match self.apply(id, &change).await {
            // An answer that was first has been told.
            Ok(_) => Ok(()),
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
        let mut in_transit = Vec::new();
        for id in ids {
            let delivered = match hands.get(id) {
                Some(hand) => self.delivered_with_answer(hand),
                None => self.delivered(id).await?,
            };
            let Some(delivered) = delivered else {
                return Ok(None);
            };
            changes.push(delivered.stepped.into_write());
            replies.push(delivered.reply);
            in_transit.push((id, delivered.change, delivered.transit));
        }
        if !self.store.change(changes).await? {
            return Ok(None);
        }
        for (id, change, transit) in in_transit {
            if let Some(transit) = transit {
                self.in_transit().insert(id.clone(), transit);
            }
            self.effects(id, &change);
        }
        let mut live = self.live();
        for id in ids {
            live.remove(id);
        }
        drop(live);
        self.changed();
        Ok(Some(replies))
    }

    /// Returns the delivery of an answer that is written; its values are kept until that is confirmed.
    async fn delivered(&self, id: &str) -> Result<Option<Delivered>, RecordError> {
        let Some(row) = self.answered(id).await? else {
            return Ok(None);
        };
        let Some(action) = row.lifecycle.phase().action() else {
            return Ok(None);
        };
        let sealed = row.content.clone();
        let change = RowChange::step(Transition::Deliver);
        let Ok(stepped) = row.step(&change, self.now()) else {
            return Ok(None);
        };
        let content = sealed
            .map(|sealed| {
                self.keys
                    .encryption
                    .open(&associated_data(id, "content"), &sealed)
            })
            .transpose()?;
        let reply = result_json(action, content.as_deref());
        Ok(Some(Delivered {
            stepped,
            change,
            reply,
            transit: None,
        }))
    }

    /// Returns the delivery of an answer that is not written yet, in one change with the answer.
    fn delivered_with_answer(&self, hand: &Submitted) -> Option<Delivered> {
        let now = self.now();
        let act = hand.act.clone();
        let change = RowChange::ActAndDeliver { act };
        let stepped = hand.before.clone().step(&change, now).ok()?;
        let action = stepped.row.lifecycle.phase().action()?;
        let reply = result_json(action, hand.content.as_deref());
        let transit = InTransit {
            content: hand.content.clone(),
            arguments: hand.before.arguments.clone(),
            delivered: audit::entry("delivered", &stepped.row, now),
        };
        Some(Delivered {
            stepped,
            change,
            reply,
            transit: Some(transit),
        })
    }

    /// The row, read again when what is remembered of it is no answer: another gateway's page may have given it.
    async fn answered(&self, id: &str) -> Result<Option<Row>, RecordError> {
        match self.find_or_remembered(id).await? {
            Some(row) if row.lifecycle.phase().action().is_some() => Ok(Some(row)),
            _ => self.find(id).await,
        }
    }
}
