//! A question moves on: seen, acted on, or ended without an act. By compare-and-set, so the first wins.

use crate::RecordEvent;
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::{Transition, TransitionError};
use mcp_elicit_core::question::{Ending, content_json};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Record, RecordError, TRIES, Verdict, associated_data, audit};
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

impl Record {
    /// Notes that a person has seen the question.
    pub async fn mark_shown(&self, id: &str) -> Result<(), RecordError> {
        self.step(id, &Transition::Show, None).await.map(|_| ())
    }

    /// A person acted; the first act wins.
    pub async fn submit(
        &self,
        id: &str,
        outcome: &Outcome,
        by: &str,
    ) -> Result<Verdict, RecordError> {
        let content = content_json(outcome);
        let step = Transition::acted(outcome, by);
        let stepped = self.step(id, &step, content.as_deref()).await?;
        let verdict = self.acted(id, stepped);
        if verdict == Verdict::Won {
            self.notify_answered(id);
        }
        Ok(verdict)
    }

    /// Returns what became of an act, by what came of its step.
    pub(super) fn acted(&self, id: &str, stepped: Stepped) -> Verdict {
        match stepped {
            Stepped::Done => {
                self.counters.acted.fetch_add(1, Ordering::Relaxed);
                self.drop_draft(id);
                Verdict::Won
            }
            Stepped::Refused(row) => Verdict::Late(row),
            Stepped::Gone => Verdict::Gone,
        }
    }

    pub(super) fn notify_answered(&self, id: &str) {
        if let Some(live) = self.live().get(id) {
            // A session that is gone has let go of its questions, or will.
            let _ = live.tell.send(RecordEvent::Answered {
                question: live.question,
            });
        }
    }

    /// The question ended without an action.
    pub async fn end(&self, id: &str, ending: Ending) -> Result<(), RecordError> {
        if self.end_behind(id, ending)? {
            return self.flush().await;
        }
        // A client's answer is an answer, though its call did not wait for it.
        let written = self.write_submitted(id).await;
        self.in_transit().remove(id);
        self.drop_draft(id);
        // Where it was answered before, the answer is for the same call made again.
        let live = self.live().remove(id);
        let left = live.map(|live| (self.presence.may_hold(&live.binding), live.binding));
        if matches!(
            self.step(id, &ending.transition(), None).await?,
            Stepped::Done
        ) {
            self.counters.ended.fetch_add(1, Ordering::Relaxed);
            if let Some((mark, binding)) = left {
                self.presence.holds_none(&binding, mark);
            }
        }
        written
    }

    pub(super) async fn step(
        &self,
        id: &str,
        step: &Transition,
        content: Option<&str>,
    ) -> Result<Stepped, RecordError> {
        if let Some(stepped) = self.step_behind(id, step, content) {
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
            .map(|text| {
                self.keys
                    .encryption
                    .seal(&associated_data(id, "content"), text)
            })
            .transpose()?;
        let mut tries = 0..TRIES;
        let mut waits = 0..WAITS;
        while tries.next().is_some() {
            let Some(row) = self.find_or_remembered(id).await? else {
                return Ok(Stepped::Gone);
            };
            if self.is_exclusive_elsewhere(&row) {
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
            let seen = row.lifecycle.version();
            let lifecycle = match row.lifecycle.step(step, self.now()) {
                Ok(next) => next,
                Err(refused) if is_late(refused) => {
                    self.expire(&row).await?;
                    continue;
                }
                Err(_) => return Ok(Stepped::Refused(Box::new(row))),
            };
            if lifecycle.version() == seen {
                return Ok(Stepped::Done);
            }
            let content = content.clone().or_else(|| row.content.clone());
            let next = Row {
                lifecycle,
                content,
                ..row
            };
            let entry = audit::entry(next.lifecycle.phase().as_str(), &next, self.now());
            if self.put(next.clone(), seen, vec![entry]).await? {
                self.remember(next);
                self.changed();
                return Ok(Stepped::Done);
            }
        }
        Err(RecordError::Contended)
    }

    pub(super) async fn expire(&self, row: &Row) -> Result<(), RecordError> {
        self.end_by_itself(row, &Transition::Expire).await
    }

    /// A row that nothing but the clock, or a look at it, has ended.
    pub(super) async fn end_by_itself(
        &self,
        row: &Row,
        step: &Transition,
    ) -> Result<(), RecordError> {
        if self.is_exclusive_elsewhere(row) {
            return Ok(());
        }
        if self.step_behind(&row.id, step, None).is_some() {
            return self.write_behind(&row.id);
        }
        let Ok(lifecycle) = row.lifecycle.step(step, self.now()) else {
            return Ok(());
        };
        let next = Row {
            lifecycle,
            ..row.clone()
        };
        let entry = audit::entry(next.lifecycle.phase().as_str(), &next, self.now());
        let seen = row.lifecycle.version();
        if self.put(next, seen, vec![entry]).await? {
            self.drop_draft(&row.id);
            self.counters.ended.fetch_add(1, Ordering::Relaxed);
            self.changed();
        }
        Ok(())
    }
}
