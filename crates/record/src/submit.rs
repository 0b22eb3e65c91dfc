//! Changes of a question after its creation: shown, answered, or ended without an action. The first action wins.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::Transition;
use mcp_elicit_core::question::Ending;
use tokio::sync::{mpsc, oneshot};

use super::commit::CommitEffect;
use super::known::{KnownRow, Live, Promised, UnstoredAnswer};
use super::row::RowChange;
use super::{Applied, Durability, Record, RecordError, Verdict};
use crate::RecordEvent;
use crate::store::Row;

/// The time that a session has to deliver a person's answer before it is written by itself: the server may not read
/// anything.
const DELIVERY_WAIT: Duration = Duration::from_secs(2);

impl Record {
    /// Records that a person has seen the question.
    pub async fn mark_shown(&self, id: &str) -> Result<(), RecordError> {
        self.step(id, Transition::Show, |_| true).await.map(drop)
    }

    /// Submits a person's action; the first one wins.
    ///
    /// [`Durability::WithDelivery`] is for callers that inform the person: the answer is in the store by then, and if a
    /// session here waits for it, its delivery is in the same write. [`Durability::BeforeSeen`] leaves the delivery to a
    /// write of its own. [`Durability::Behind`] is for the waiting session itself: it begins the delivery, or calls
    /// [`Record::write_behind`].
    pub fn submit(
        self: &Arc<Self>,
        id: &str,
        outcome: &Outcome,
        by: &str,
        durability: Durability,
    ) -> Applied<Verdict> {
        self.submit_with_reason(id, outcome, None, by, durability)
    }

    /// Like [`submit`](Self::submit), with the person's reason for a decline, which the server gets in the `_meta` of
    /// its result. It is dropped with the delivery.
    pub fn submit_with_reason(
        self: &Arc<Self>,
        id: &str,
        outcome: &Outcome,
        reason: Option<&str>,
        by: &str,
        durability: Durability,
    ) -> Applied<Verdict> {
        let answer = UnstoredAnswer::new(outcome, by, reason);
        if durability == Durability::Behind
            && let Some(verdict) = self.submit_here(id, &answer)
        {
            return Applied::Now(verdict);
        }
        let (record, id) = (self.clone(), id.to_owned());
        Applied::pending(async move {
            if durability == Durability::WithDelivery
                && let Some(verdict) = record.submit_with_delivery(&id, &answer).await?
            {
                return Ok(verdict);
            }
            let verdict = record.submit_alone(&id, &answer).await?;
            if verdict == Verdict::Won && durability != Durability::Behind {
                record.notify_answered(&id, None);
            }
            Ok(verdict)
        })
    }

    /// Holds an answer to a question that this gateway has exclusively, or that is not known to have changed since it
    /// was written. `None` if neither is the case.
    fn submit_here(&self, id: &str, answer: &UnstoredAnswer) -> Option<Verdict> {
        if let Some(verdict) = self.step_exclusive(id, &answer.act, Some(answer)) {
            return Some(verdict);
        }
        let mut live = self.live();
        let known = live.get_mut(id)?.known.as_mut()?;
        if !known.is_stored() || self.is_exclusive_elsewhere(&known.row) {
            return None;
        }
        known.answer(answer, self.now()).ok()?;
        Some(Verdict::Won)
    }

    /// Holds a person's answer to a question that a session here waits for, and notifies the session. The answer is
    /// written together with its delivery, or by itself if that cannot begin. `None` if it was not held.
    async fn submit_with_delivery(
        &self,
        id: &str,
        answer: &UnstoredAnswer,
    ) -> Result<Option<Verdict>, RecordError> {
        if !self.sessions_deliver {
            return Ok(None);
        }
        self.share(id)?;
        let Some(is_known) = self.live().get(id).map(|live| live.known.is_some()) else {
            return Ok(None);
        };
        let row = if is_known { None } else { self.find(id).await? };
        let Some((mut kept, tell)) = self.hold(id, row.map(KnownRow::stored), answer) else {
            return Ok(None);
        };
        tokio::select! {
            biased;
            kept = &mut kept => return kept.ok().transpose(),
            () = tell.closed() => {}
            () = tokio::time::sleep(DELIVERY_WAIT) => {}
        }
        self.write_held(id).await?;
        // A write that is under way has taken the promise with it.
        let left = self.live().get_mut(id).and_then(|live| live.promise.take());
        drop(left);
        kept.await.ok().transpose()
    }

    /// Holds a person's answer and notifies the session; the receiver gets the result.
    fn hold(
        &self,
        id: &str,
        row: Option<KnownRow>,
        answer: &UnstoredAnswer,
    ) -> Option<(
        oneshot::Receiver<Promised>,
        mpsc::UnboundedSender<RecordEvent>,
    )> {
        let mut live = self.live();
        let live = live.get_mut(id)?;
        if live.known.is_none() {
            live.known = row.map(Box::new);
        }
        let known = live.known.as_mut()?;
        if !known.is_stored() || self.is_exclusive_elsewhere(&known.row) {
            return None;
        }
        known.answer(answer, self.now()).ok()?;
        let (promise, kept) = oneshot::channel();
        live.promise = Some(promise);
        live.notify_answered(Some(id.to_owned()));
        Some((kept, live.tell.clone()))
    }

    /// Writes an answer by itself, after a held one.
    async fn submit_alone(
        &self,
        id: &str,
        answer: &UnstoredAnswer,
    ) -> Result<Verdict, RecordError> {
        self.write_held(id).await?;
        self.share(id)?;
        let content = answer.content.as_deref();
        let content = content
            .map(|text| self.seal_content(id, text))
            .transpose()?;
        let transition = answer.act.clone();
        let change = RowChange::Step {
            transition,
            content,
        };
        self.apply(id, &change).await
    }

    pub(super) fn notify_answered(&self, id: &str, held: Option<String>) {
        if let Some(live) = self.live().get(id) {
            live.notify_answered(held);
        }
    }

    /// Ends a question without an action, or releases it because its call ended before its answer was taken: the answer
    /// then waits for the same call.
    pub fn end(self: &Arc<Self>, id: &str, ending: Ending) -> Applied<()> {
        match self.end_exclusive(id, ending) {
            Ok(true) => Applied::Now(()),
            Err(fault) => Err(fault).into(),
            Ok(false) => {
                let (record, id) = (self.clone(), id.to_owned());
                Applied::pending(async move { record.end_awaited(&id, ending).await })
            }
        }
    }

    fn end_exclusive(&self, id: &str, ending: Ending) -> Result<bool, RecordError> {
        let transition = ending.transition();
        if self.step_exclusive(id, &transition, None).is_none() {
            return Ok(false);
        }
        self.commit_behind(None, &[(id, CommitEffect::CallEnded)], || ());
        self.share(id)?;
        self.live().remove(id);
        self.changed();
        Ok(true)
    }

    pub(super) async fn end_awaited(&self, id: &str, ending: Ending) -> Result<(), RecordError> {
        // A client's answer counts, even if its call did not wait for it.
        let written = self.write_held(id).await;
        self.in_transit().remove(id);
        self.commit_behind(None, &[(id, CommitEffect::CallEnded)], || ());
        // If it was answered before, the answer is for the same call made again.
        let live = self.live().remove(id);
        // A question that another gateway has taken over is its call's. Only a round that was asked elsewhere ends here
        // without having waited here.
        let was_here = live.is_some();
        let left = live.map(|live| (self.presence.may_hold(&live.binding), live.binding));
        let may = |row: &Row| !was_here || self.lock_file.is_mine(&row.owner);
        let ended = self.step(id, ending.transition(), may).await?;
        match (ended, left) {
            (Verdict::Won, Some((mark, binding))) => self.presence.holds_none(&binding, mark),
            // It was answered.
            (Verdict::Late(_), Some(_)) => self.leave(id).await?,
            (Verdict::Won | Verdict::Late(_), None) | (Verdict::Gone, _) => {}
        }
        written
    }

    /// Makes a transition without an answer: in memory if this gateway has the question exclusively, else in the store.
    async fn step(
        &self,
        id: &str,
        transition: Transition,
        may: impl Fn(&Row) -> bool + Send,
    ) -> Result<Verdict, RecordError> {
        if let Some(verdict) = self.step_exclusive(id, &transition, None) {
            self.hand_on(id, false);
            self.flush().await?;
            return Ok(verdict);
        }
        if self.is_held(id) {
            // It counts as answered for every reader.
            return Ok(Verdict::Won);
        }
        let change = RowChange::step(transition);
        self.apply_to_those(id, &change, may).await
    }
}

impl Live {
    fn notify_answered(&self, held: Option<String>) {
        let question = self.question;
        // A session that is gone has released its questions, or will.
        let _ = self.tell.send(RecordEvent::Answered { question, held });
    }
}
