//! Questions in a client's own dialog: noted at once, written behind.
//!
//! Such a question lives and dies with a connection that this process holds: a killed gateway takes the call, the dialog
//! and the question along. So nobody waits for its row to be written. Here the row is the truth, and the store's
//! follows in order, through the writer; until it is [shared](Record::share), the row is claimed, and other gateways leave
//! it alone. What happens in one go is written as one: an answer that is delivered at once never gets to the disk.

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::Transition;
use mcp_elicit_core::question::{Ending, NewQuestion, content_json, result_json};
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;

use super::apply::Applied;
use super::delivery::InTransit;
use super::row::{Rejected, RowChange, Stepped};
use super::transitions::verdict_of;
use super::{
    Known, Live, Record, RecordError, Recorded, SessionIdentity, Verdict, associated_data, audit,
};
use crate::store::{Change, Durability, Row, Write};

/// A question that only this gateway may settle. Its row here is the truth.
#[derive(Clone)]
pub(super) struct WrittenBehind {
    pub(super) row: Row,
    /// The person's answer, JSON, while it waits to be delivered.
    content: Option<String>,
    /// The version that the writer was given last.
    written: Option<u64>,
    /// The audit entries of the events since.
    pub(super) audit: Vec<String>,
}

impl Record {
    /// Notes a question whose write nobody has to wait for, with the answer in mind that comes through this process.
    /// `None` where it must be raised instead: it may stand in the record already, others share that, or the writer is
    /// full. [`Record::write_behind`] is to follow.
    pub fn create_behind(
        &self,
        who: &SessionIdentity,
        asked: &NewQuestion,
        question: SessionKey,
        tell: &mpsc::UnboundedSender<RecordEvent>,
    ) -> Result<Option<Recorded>, RecordError> {
        if !self.store.has_room() {
            return Ok(None);
        }
        let binding = who.binding(&self.keys.identity, asked)?;
        if !self.is_new(&binding) {
            return Ok(None);
        }
        let mut row = self.new_row(who, asked, binding)?;
        row.exclusive = true;
        let id = row.id.clone();
        let row_same = row.binding.clone();
        let noted = WrittenBehind {
            audit: vec![audit::entry("asked", &row, self.now())],
            row,
            content: None,
            written: None,
        };
        let live = Live {
            question,
            tell: tell.clone(),
            binding: row_same,
            known: Known::WrittenBehind(Box::new(noted)),
        };
        self.live().insert(id.clone(), live);
        self.counters.asked.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Recorded {
            id,
            answered: false,
            refused: false,
        }))
    }

    /// The client's answer to a noted question; `None` where it is not noted. [`Record::write_behind`] is to follow.
    pub fn submit_behind(&self, id: &str, outcome: &Outcome, by: &str) -> Option<Verdict> {
        let content = content_json(outcome);
        let act = Transition::acted(outcome, by);
        self.step_behind(id, &act, content.as_deref())
            .map(verdict_of)
    }

    /// Takes answers out, all or none and only once; `None` where not all are noted and answered. Their values never reach
    /// the store, unless the server refuses them. [`Record::write_behind`] is to follow, and what became of the delivery.
    pub fn deliver_behind(&self, ids: &[String]) -> Option<Vec<String>> {
        let now = self.now();
        let deliver = RowChange::step(Transition::Deliver);
        let mut live = self.live();
        let mut taken = Vec::with_capacity(ids.len());
        for id in ids {
            let noted = live.get(id)?.noted()?;
            let action = noted.row.lifecycle.phase().action()?;
            let stepped = noted.row.clone().step(&deliver, now).ok()?;
            taken.push((stepped.row, result_json(action, noted.content.as_deref())));
        }
        let mut replies = Vec::with_capacity(ids.len());
        for (id, (row, reply)) in ids.iter().zip(taken) {
            if let Some(noted) = live.get_mut(id).and_then(Live::behind_mut) {
                noted.row = row;
                let transit = InTransit {
                    content: noted.content.take(),
                    arguments: noted.row.arguments.take(),
                    delivered: audit::entry("delivered", &noted.row, now),
                };
                self.in_transit().insert(id.clone(), transit);
            }
            self.effects(id, &deliver);
            replies.push(reply);
        }
        Some(replies)
    }

    /// A noted question ended without an action, or its call did before its answer was taken: then the answer waits for
    /// the same call. `false` where it is not noted.
    pub fn end_behind(&self, id: &str, ending: Ending) -> Result<bool, RecordError> {
        if self.step_behind(id, &ending.transition(), None).is_none() {
            return Ok(false);
        }
        self.drop_draft(id);
        self.unclaim(id, None)?;
        self.live().remove(id);
        self.changed();
        Ok(true)
    }

    /// A transition of a question that this gateway has exclusively, in memory; `None` where it has not.
    pub(super) fn step_behind(
        &self,
        id: &str,
        transition: &Transition,
        content: Option<&str>,
    ) -> Option<Applied> {
        let now = self.now();
        let mut live = self.live();
        let noted = live.get_mut(id)?.behind_mut()?;
        let mut change = RowChange::step(transition.clone());
        let (stepped, rejected) = match noted.row.clone().step(&change, now) {
            Ok(stepped) => (Some(stepped), false),
            Err(Rejected::Late) => {
                change = RowChange::step(Transition::Expire);
                (noted.row.clone().step(&change, now).ok(), true)
            }
            Err(Rejected::Over) => (None, true),
        };
        let stepped = stepped.filter(Stepped::is_changed);
        let is_changed = stepped.is_some();
        if let Some(stepped) = stepped {
            noted.row = stepped.row;
            noted.content = content.filter(|_| !rejected).map(str::to_owned);
            noted.audit.extend(stepped.audit);
        }
        let applied = if rejected {
            Applied::Rejected(Box::new(noted.row.clone()))
        } else {
            Applied::Done
        };
        drop(live);
        if is_changed {
            self.effects(id, &change);
        }
        Some(applied)
    }

    /// Hands what happened to a noted question on to be written, in its turn. One that is over is let go of. An answer
    /// that waits to be delivered is not handed on: written by itself and then delivered, it would be delivered once more
    /// after a kill between the two. Nor is one on its way to the server: it is written together with what became of it.
    pub fn write_behind(&self, id: &str) -> Result<(), RecordError> {
        self.hand_on_behind(id, false)
    }

    /// [`Record::write_behind`]; `in_transit` says that an answer on its way is handed on, too.
    pub(super) fn hand_on_behind(&self, id: &str, in_transit: bool) -> Result<(), RecordError> {
        let mut live = self.live();
        let Some(noted) = live.get_mut(id).and_then(Live::behind_mut) else {
            return Ok(());
        };
        if !in_transit && self.in_transit().contains_key(id) {
            return Ok(());
        }
        let lifecycle = &noted.row.lifecycle;
        let open = lifecycle.is_open();
        let acted = lifecycle.phase().action().is_some();
        let undelivered = acted && lifecycle.delivered_at().is_none();
        if noted.audit.is_empty() || undelivered {
            return Ok(());
        }
        self.seal_content(noted)?;
        if open {
            let audit = std::mem::take(&mut noted.audit);
            let seen = noted.written.replace(noted.row.lifecycle.version());
            self.hand_on(noted.row.clone(), seen, audit);
        } else if let Some(Known::WrittenBehind(over)) = live.remove(id).map(|live| live.known) {
            self.hand_on(over.row, over.written, over.audit);
        }
        drop(live);
        self.changed();
        Ok(())
    }

    /// The row has its answer, sealed, if one waits in it.
    fn seal_content(&self, noted: &mut WrittenBehind) -> Result<(), RecordError> {
        let id = &noted.row.id;
        let sealed = noted.content.as_deref().map(|text| {
            self.keys
                .encryption
                .seal(&associated_data(id, "content"), text)
        });
        noted.row.content = sealed.transpose()?;
        Ok(())
    }

    /// Under the lock of what is live, which keeps the order.
    fn hand_on(&self, row: Row, seen: Option<u64>, audit: Vec<String>) {
        // An answer that waits is told from one that was delivered in the same write, and was never there before.
        let durability = if row.content.is_some() {
            Durability::Flushed
        } else {
            Durability::Committed
        };
        self.store.queue_behind(match seen {
            None => Write::Insert {
                row: Box::new(row),
                audit,
            },
            Some(seen) => Write::Change(vec![Change {
                row,
                seen,
                audit,
                durability,
            }]),
        });
    }

    /// The row is handed on as one that anybody may change, and is no longer the truth here. `whose`: only of this
    /// session.
    fn unclaim(
        &self,
        id: &str,
        whose: Option<&mpsc::UnboundedSender<RecordEvent>>,
    ) -> Result<(), RecordError> {
        let mut live = self.live();
        let Some(known) = live
            .get_mut(id)
            .filter(|live| whose.is_none_or(|whose| live.tell.same_channel(whose)))
        else {
            return Ok(());
        };
        let Some(noted) = known.behind_mut() else {
            return Ok(());
        };
        noted.row.exclusive = false;
        self.seal_content(noted)?;
        let lifecycle = &noted.row.lifecycle;
        let left = lifecycle.is_open() || lifecycle.phase().action().is_some();
        let left = left.then(|| noted.row.binding.clone());
        if let Known::WrittenBehind(shared) = std::mem::replace(&mut known.known, Known::Nothing) {
            self.hand_on(shared.row, shared.written, shared.audit);
        }
        if let Some(binding) = left {
            self.presence.may_hold(&binding);
        }
        Ok(())
    }

    /// Anybody may settle these questions from now on, by the record. Completes when they are written.
    pub(super) async fn share(&self, ids: &[String]) -> Result<(), RecordError> {
        for id in ids {
            self.unclaim(id, None)?;
        }
        Ok(self.store.flush().await?)
    }

    /// Every noted question is for all.
    pub(super) async fn share_all(&self) -> Result<(), RecordError> {
        let noted = |(id, live): (&String, &Live)| live.noted().map(|_| id.clone());
        let ids: Vec<String> = self.live().iter().filter_map(noted).collect();
        if ids.is_empty() {
            return Ok(());
        }
        self.share(&ids).await
    }

    /// The session that waited is gone: its questions stay, for the same call made again. Completes when they are
    /// written; what could not be is let go of all the same, and the first fault told.
    pub async fn release_session(
        &self,
        tell: &mpsc::UnboundedSender<RecordEvent>,
    ) -> Result<(), RecordError> {
        let own = |(id, live): (&String, &Live)| live.tell.same_channel(tell).then(|| id.clone());
        let mut done = Ok(());
        loop {
            let ids: Vec<String> = self.live().iter().filter_map(own).collect();
            if ids.is_empty() {
                break;
            }
            for id in ids {
                let unclaimed = self.unclaim(&id, Some(tell));
                let written = self.write_submitted(&id).await;
                done = done.and(unclaimed).and(written);
                let live = self.live().remove(&id);
                if let Some(live) = live {
                    self.presence.may_hold(&live.binding);
                }
            }
        }
        self.release_calls(tell);
        self.changed();
        done.and(self.store.flush().await.map_err(Into::into))
    }
}
