//! A question moves on: seen, acted on, or ended without an act. By compare-and-set, so the first wins.

use crate::RecordEvent;
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::{Transition, TransitionError};
use mcp_elicit_core::question::{Ending, content_json};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Book, BookFault, Settling, TRIES, audit, place};
use crate::store::Row;

/// The number of waits for a gateway that claimed a question, and the length of each: it shares what it claimed as soon as
/// it sees that it has company.
const WAITS: usize = 30;
const WAIT: Duration = Duration::from_millis(100);

/// The result of a step.
pub(super) enum Stepped {
    Done,
    Refused(Box<Row>),
    Gone,
}

/// Returns whether the step came after the question's time had run out, which is not in its row yet; else the row stays as it is.
pub(super) fn is_late(refused: TransitionError) -> bool {
    match refused {
        TransitionError::Late => true,
        TransitionError::Ended { .. }
        | TransitionError::NotDue
        | TransitionError::Open
        | TransitionError::Delivered
        | TransitionError::NotDelivered
        | TransitionError::Lapsed
        | TransitionError::Changed { .. } => false,
    }
}

impl Book {
    /// Notes that a person has seen the question.
    pub async fn shown(&self, id: &str) -> Result<(), BookFault> {
        self.step(id, &Transition::Show, None).await.map(|_| ())
    }

    /// A person acted; the first act wins.
    pub async fn settle(
        &self,
        id: &str,
        outcome: &Outcome,
        by: &str,
    ) -> Result<Settling, BookFault> {
        let content = content_json(outcome);
        let step = Transition::acted(outcome, by);
        let stepped = self.step(id, &step, content.as_deref()).await?;
        let settling = self.acted(id, stepped);
        if settling == Settling::Won {
            self.tell_settled(id);
        }
        Ok(settling)
    }

    /// Returns what became of an act, by what came of its step.
    pub(super) fn acted(&self, id: &str, stepped: Stepped) -> Settling {
        match stepped {
            Stepped::Done => {
                self.counts.acted.fetch_add(1, Ordering::Relaxed);
                self.drop_draft(id);
                Settling::Won
            }
            Stepped::Refused(row) => Settling::Late(row),
            Stepped::Gone => Settling::Gone,
        }
    }

    pub(super) fn tell_settled(&self, id: &str) {
        if let Some(live) = self.live().get(id) {
            // A session that is gone has let go of its questions, or will.
            let _ = live.tell.send(RecordEvent::Settled {
                question: live.question,
            });
        }
    }

    /// The question ended without an action.
    pub async fn end(&self, id: &str, ending: Ending) -> Result<(), BookFault> {
        if self.end_noted(id, ending)? {
            return self.flush().await;
        }
        // A client's answer is an answer, though its call did not wait for it.
        let written = self.write_in_hand(id).await;
        self.in_transit().remove(id);
        self.drop_draft(id);
        // Where it was answered before, the answer is for the same call made again.
        let live = self.live().remove(id);
        let left = live.map(|live| (self.company.left_behind(&live.same), live.same));
        if matches!(
            self.step(id, &ending.transition(), None).await?,
            Stepped::Done
        ) {
            self.counts.ended.fetch_add(1, Ordering::Relaxed);
            if let Some((mark, same)) = left {
                self.company.nothing_left(&same, mark);
            }
        }
        written
    }

    pub(super) async fn step(
        &self,
        id: &str,
        step: &Transition,
        content: Option<&str>,
    ) -> Result<Stepped, BookFault> {
        if let Some(stepped) = self.step_noted(id, step, content) {
            if matches!((&stepped, step), (Stepped::Done, Transition::Act { .. })) {
                // A page or a script has answered: it is told when that is written, and taken by the record.
                self.share(std::slice::from_ref(&id.to_owned())).await?;
            } else {
                self.write_behind(id)?;
                self.flush().await?;
            }
            return Ok(stepped);
        }
        let content = content
            .map(|text| self.keys.seal.close(&place(id, "content"), text))
            .transpose()?;
        let mut tries = 0..TRIES;
        let mut waits = 0..WAITS;
        while tries.next().is_some() {
            let Some(row) = self.find_or_recall(id).await? else {
                return Ok(Stepped::Gone);
            };
            if self.is_anothers(&row) {
                match (step, waits.next()) {
                    // It knows by itself who has seen what.
                    (Transition::Show, _) => return Ok(Stepped::Done),
                    (_, None) => break,
                    (_, Some(_)) => {
                        tries = 0..TRIES;
                        tokio::time::sleep(WAIT).await;
                        continue;
                    }
                }
            }
            let seen = row.exchange.version();
            let exchange = match row.exchange.step(step, self.now()) {
                Ok(next) => next,
                Err(refused) if is_late(refused) => {
                    self.expire(&row).await?;
                    continue;
                }
                Err(_) => return Ok(Stepped::Refused(Box::new(row))),
            };
            if exchange.version() == seen {
                return Ok(Stepped::Done);
            }
            let content = content.clone().or_else(|| row.content.clone());
            let next = Row {
                exchange,
                content,
                ..row
            };
            let entry = audit::entry(next.exchange.phase().as_str(), &next, self.now());
            if self.put(next.clone(), seen, vec![entry]).await? {
                self.remember(next);
                self.changed();
                return Ok(Stepped::Done);
            }
        }
        Err(BookFault::Contended)
    }

    pub(super) async fn expire(&self, row: &Row) -> Result<(), BookFault> {
        self.end_by_itself(row, &Transition::Expire).await
    }

    /// A row that nothing but the clock, or a look at it, has ended.
    pub(super) async fn end_by_itself(
        &self,
        row: &Row,
        step: &Transition,
    ) -> Result<(), BookFault> {
        if self.is_anothers(row) {
            return Ok(());
        }
        if self.step_noted(&row.id, step, None).is_some() {
            return self.write_behind(&row.id);
        }
        let Ok(exchange) = row.exchange.step(step, self.now()) else {
            return Ok(());
        };
        let next = Row {
            exchange,
            ..row.clone()
        };
        let entry = audit::entry(next.exchange.phase().as_str(), &next, self.now());
        let seen = row.exchange.version();
        if self.put(next, seen, vec![entry]).await? {
            self.drop_draft(&row.id);
            self.counts.ended.fetch_add(1, Ordering::Relaxed);
            self.changed();
        }
        Ok(())
    }
}
