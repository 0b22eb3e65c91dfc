//! A question moves on: seen, acted on, or ended without an act. By compare-and-set, so the first wins.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::Transition;
use mcp_elicit_core::question::{Ending, content_json};

use super::apply::Applied;
use super::row::RowChange;
use super::{Record, RecordError, Verdict, associated_data};
use crate::RecordEvent;

/// Returns the result of submitting an answer, by the result of its change.
pub(super) fn verdict_of(applied: Applied) -> Verdict {
    match applied {
        Applied::Done => Verdict::Won,
        Applied::Rejected(row) => Verdict::Late(row),
        Applied::Gone => Verdict::Gone,
    }
}

impl Record {
    /// Notes that a person has seen the question.
    pub async fn mark_shown(&self, id: &str) -> Result<(), RecordError> {
        self.step(id, Transition::Show, None).await.map(|_| ())
    }

    /// A person acted; the first act wins.
    pub async fn submit(
        &self,
        id: &str,
        outcome: &Outcome,
        by: &str,
    ) -> Result<Verdict, RecordError> {
        let content = content_json(outcome);
        let act = Transition::acted(outcome, by);
        let applied = self.step(id, act, content.as_deref()).await?;
        let verdict = verdict_of(applied);
        if verdict == Verdict::Won {
            self.notify_answered(id);
        }
        Ok(verdict)
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
        let ended = self.step(id, ending.transition(), None).await?;
        if let (Applied::Done, Some((mark, binding))) = (ended, left) {
            self.presence.holds_none(&binding, mark);
        }
        written
    }

    /// Makes a transition of a question: in memory where this gateway has it exclusively, else in the store.
    async fn step(
        &self,
        id: &str,
        transition: Transition,
        content: Option<&str>,
    ) -> Result<Applied, RecordError> {
        if let Some(applied) = self.step_behind(id, &transition, content) {
            if matches!(
                (&applied, transition),
                (Applied::Done, Transition::Act { .. })
            ) {
                // A page or a script has answered: it is told when that is written, and delivered by the record.
                self.share(std::slice::from_ref(&id.to_owned())).await?;
            } else {
                self.write_behind(id)?;
                self.flush().await?;
            }
            return Ok(applied);
        }
        let content = content
            .map(|text| {
                self.keys
                    .encryption
                    .seal(&associated_data(id, "content"), text)
            })
            .transpose()?;
        let change = RowChange::Step {
            transition,
            content,
        };
        self.apply(id, &change).await
    }
}
