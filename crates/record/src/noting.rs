//! Questions in a client's own dialog: noted at once, written behind.
//!
//! Such a question lives and dies with a connection that this process holds: a killed gateway takes the call, the dialog
//! and the question along. So nobody waits for its row to be written. Here the row is the truth, and the store's
//! follows in order, through the journal; until it is [shared](Book::share), the row is claimed, and other gateways leave
//! it alone. What happens in one go is written as one: an answer that is delivered at once never gets to the disk.

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::Transition;
use mcp_elicit_core::question::{Ending, NewQuestion, content_json, result_json};
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;

use super::delivery::InTransit;
use super::settling::{Stepped, is_late};
use super::{Book, BookFault, Known, Live, Raised, SessionIdentity, Settling, audit, place};
use crate::store::{Change, Durability, Row, Write};

/// A question that only this gateway may settle. Its row here is the truth.
#[derive(Clone)]
pub(super) struct Noted {
    pub(super) row: Row,
    /// The person's answer, JSON, while it waits to be delivered.
    content: Option<String>,
    /// The version that the journal was given last.
    written: Option<u64>,
    /// The audit entries of the events since.
    pub(super) audit: Vec<String>,
}

impl Book {
    /// Notes a question whose write nobody has to wait for, with the answer in mind that comes through this process.
    /// `None` where it must be raised instead: it may stand in the record already, others share that, or the journal is
    /// full. [`Book::write_behind`] is to follow.
    pub fn note(
        &self,
        who: &SessionIdentity,
        asked: &NewQuestion,
        question: SessionKey,
        tell: &mpsc::UnboundedSender<RecordEvent>,
    ) -> Result<Option<Raised>, BookFault> {
        if !self.store.has_room() {
            return Ok(None);
        }
        let same = who.same(&self.keys.identity, asked)?;
        if !self.is_new(&same) {
            return Ok(None);
        }
        let mut row = self.new_row(who, asked, same)?;
        row.claimed = true;
        let id = row.id.clone();
        let row_same = row.same.clone();
        let noted = Noted {
            audit: vec![audit::entry("asked", &row, self.now())],
            row,
            content: None,
            written: None,
        };
        let live = Live {
            question,
            tell: tell.clone(),
            same: row_same,
            known: Known::Noted(Box::new(noted)),
        };
        self.live().insert(id.clone(), live);
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Raised {
            id,
            answered: false,
            refused: false,
        }))
    }

    /// The client's answer to a noted question; `None` where it is not noted. [`Book::write_behind`] is to follow.
    pub fn settle_noted(&self, id: &str, outcome: &Outcome, by: &str) -> Option<Settling> {
        let content = content_json(outcome);
        let stepped = self.step_noted(id, &Transition::acted(outcome, by), content.as_deref())?;
        Some(self.acted(id, stepped))
    }

    /// Takes answers out, all or none and only once; `None` where not all are noted and answered. Their values never reach
    /// the store, unless the server refuses them. [`Book::write_behind`] is to follow, and what became of the delivery.
    pub fn take_noted(&self, ids: &[String]) -> Option<Vec<String>> {
        let now = self.now();
        let mut live = self.live();
        let mut taken = Vec::with_capacity(ids.len());
        for id in ids {
            let noted = live.get(id)?.noted()?;
            let action = noted.row.exchange.phase().action()?;
            let exchange = noted.row.exchange.step(&Transition::Deliver, now).ok()?;
            taken.push((exchange, result_json(action, noted.content.as_deref())));
        }
        let mut replies = Vec::with_capacity(ids.len());
        for (id, (exchange, reply)) in ids.iter().zip(taken) {
            if let Some(noted) = live.get_mut(id).and_then(Live::noted_mut) {
                noted.row.exchange = exchange;
                let transit = InTransit {
                    content: noted.content.take(),
                    arguments: noted.row.arguments.take(),
                    delivered: audit::entry("delivered", &noted.row, now),
                };
                self.in_transit().insert(id.clone(), transit);
            }
            replies.push(reply);
        }
        let count = replies.len() as u64;
        self.counts.delivered.fetch_add(count, Ordering::Relaxed);
        Some(replies)
    }

    /// A noted question ended without an action, or its call did before its answer was taken: then the answer waits for
    /// the same call. `false` where it is not noted.
    pub fn end_noted(&self, id: &str, ending: Ending) -> Result<bool, BookFault> {
        let Some(stepped) = self.step_noted(id, &ending.transition(), None) else {
            return Ok(false);
        };
        if matches!(stepped, Stepped::Done) {
            self.counts.ended.fetch_add(1, Ordering::Relaxed);
        }
        self.drop_draft(id);
        self.unclaim(id, None)?;
        self.live().remove(id);
        self.changed();
        Ok(true)
    }

    /// A step of a noted question, here only; `None` where it is not noted.
    pub(super) fn step_noted(
        &self,
        id: &str,
        step: &Transition,
        content: Option<&str>,
    ) -> Option<Stepped> {
        let now = self.now();
        let mut live = self.live();
        let noted = live.get_mut(id)?.noted_mut()?;
        let (exchange, refused) = match noted.row.exchange.step(step, now) {
            Ok(next) => (Some(next), false),
            Err(refused) if is_late(refused) => {
                (noted.row.exchange.step(&Transition::Expire, now).ok(), true)
            }
            Err(_) => (None, true),
        };
        if let Some(exchange) = exchange
            && exchange.version() != noted.row.exchange.version()
        {
            noted.row.exchange = exchange;
            noted.content = content.filter(|_| !refused).map(str::to_owned);
            let event = noted.row.exchange.phase().as_str();
            noted.audit.push(audit::entry(event, &noted.row, now));
        }
        Some(if refused {
            Stepped::Refused(Box::new(noted.row.clone()))
        } else {
            Stepped::Done
        })
    }

    /// Hands what happened to a noted question on to be written, in its turn. One that is over is let go of. An answer
    /// that waits to be delivered is not handed on: written by itself and then delivered, it would be delivered once more
    /// after a kill between the two. Nor is one on its way to the server: it is written together with what became of it.
    pub fn write_behind(&self, id: &str) -> Result<(), BookFault> {
        self.hand_on_noted(id, false)
    }

    /// [`Book::write_behind`]; `in_transit` says that an answer on its way is handed on, too.
    pub(super) fn hand_on_noted(&self, id: &str, in_transit: bool) -> Result<(), BookFault> {
        let mut live = self.live();
        let Some(noted) = live.get_mut(id).and_then(Live::noted_mut) else {
            return Ok(());
        };
        if !in_transit && self.in_transit().contains_key(id) {
            return Ok(());
        }
        let exchange = &noted.row.exchange;
        let open = exchange.is_open();
        let acted = exchange.phase().action().is_some();
        let undelivered = acted && exchange.delivered_at().is_none();
        if noted.audit.is_empty() || undelivered {
            return Ok(());
        }
        self.seal_content(noted)?;
        if open {
            let audit = std::mem::take(&mut noted.audit);
            let seen = noted.written.replace(noted.row.exchange.version());
            self.hand_on(noted.row.clone(), seen, audit);
        } else if let Some(Known::Noted(over)) = live.remove(id).map(|live| live.known) {
            self.hand_on(over.row, over.written, over.audit);
        }
        drop(live);
        self.changed();
        Ok(())
    }

    /// The row has its answer, sealed, if one waits in it.
    fn seal_content(&self, noted: &mut Noted) -> Result<(), BookFault> {
        let id = &noted.row.id;
        let sealed = noted
            .content
            .as_deref()
            .map(|text| self.keys.seal.close(&place(id, "content"), text));
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
        self.store.behind(match seen {
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
    ) -> Result<(), BookFault> {
        let mut live = self.live();
        let Some(known) = live
            .get_mut(id)
            .filter(|live| whose.is_none_or(|whose| live.tell.same_channel(whose)))
        else {
            return Ok(());
        };
        let Some(noted) = known.noted_mut() else {
            return Ok(());
        };
        noted.row.claimed = false;
        self.seal_content(noted)?;
        let exchange = &noted.row.exchange;
        let left = exchange.is_open() || exchange.phase().action().is_some();
        let left = left.then(|| noted.row.same.clone());
        if let Known::Noted(shared) = std::mem::replace(&mut known.known, Known::Nothing) {
            self.hand_on(shared.row, shared.written, shared.audit);
        }
        if let Some(same) = left {
            self.company.left_behind(&same);
        }
        Ok(())
    }

    /// Anybody may settle these questions from now on, by the record. Completes when they are written.
    pub(super) async fn share(&self, ids: &[String]) -> Result<(), BookFault> {
        for id in ids {
            self.unclaim(id, None)?;
        }
        Ok(self.store.flush().await?)
    }

    /// Every noted question is for all.
    pub(super) async fn share_all(&self) -> Result<(), BookFault> {
        let noted = |(id, live): (&String, &Live)| live.noted().map(|_| id.clone());
        let ids: Vec<String> = self.live().iter().filter_map(noted).collect();
        if ids.is_empty() {
            return Ok(());
        }
        self.share(&ids).await
    }

    /// The session that waited is gone: its questions stay, for the same call made again. Completes when they are
    /// written; what could not be is let go of all the same, and the first fault told.
    pub async fn let_go(&self, tell: &mpsc::UnboundedSender<RecordEvent>) -> Result<(), BookFault> {
        let own = |(id, live): (&String, &Live)| live.tell.same_channel(tell).then(|| id.clone());
        let mut done = Ok(());
        loop {
            let ids: Vec<String> = self.live().iter().filter_map(own).collect();
            if ids.is_empty() {
                break;
            }
            for id in ids {
                let unclaimed = self.unclaim(&id, Some(tell));
                let written = self.write_in_hand(&id).await;
                done = done.and(unclaimed).and(written);
                let live = self.live().remove(&id);
                if let Some(live) = live {
                    self.company.left_behind(&live.same);
                }
            }
        }
        self.let_go_of_calls(tell);
        self.changed();
        done.and(self.store.flush().await.map_err(Into::into))
    }
}
