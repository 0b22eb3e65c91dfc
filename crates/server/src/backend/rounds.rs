//! The rounds backend (2026-07-28): the handler runs, asks its questions, and is dropped; it runs again when the
//! answers are there.
//!
//! ```text
//! round 1   run ── ask A? ──(nothing known)── ask B? in join! ──(nothing known)── nothing left to do
//!               └── dropped; A and B go out in one input_required, with the sealed journal
//! round 2   run ── ask A? ──(answered)── ask B? ──(answered)── step "start" ── ask C? ──(nothing known)
//!               └── dropped; C goes out; the journal holds A, B and the result of "start"
//! round 3   run ── A, B, "start", C all known ── the result
//! ```
//!
//! A run is ended only while at least one ask is open, no step is running, and nothing else can make progress: no other
//! task has kept the handler's waker, or one more poll has changed nothing. A handler that waits for anything else,
//! with no ask open, keeps running.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_elicit_core::wire::{Capability, Mode, Revision};
use rmcp::model::{ElicitRequest, InputRequest, InputRequests, InputResponses};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::call_wait::CallWait;
use super::question_params::{beginning, params, read_reply};
use super::run_state::{FreshReply, OpenAsk, RunState, free_key};
use super::{AdmitFn, AskResult, StepMemory, StepTurn, script};
use crate::error::ElicitError;
use crate::guard;
use crate::journal::{Journal, OccurrenceKey, ReceivedAnswer, SentQuestion};
use crate::question::OutgoingQuestion;
use crate::running_step;

/// One run of a handler in the rounds era.
#[derive(Debug)]
pub(crate) struct Rounds {
    revision: Revision,
    capability: Capability,
    now_ms: u64,
    run: Mutex<RunState>,
    /// Cancelled when this run is ended: asks that a spawned task still holds must end.
    over: CancellationToken,
    /// The reason why the run ended, once it has.
    end: OnceLock<RunEnd>,
    call_wait: Arc<CallWait>,
    /// The results of steps that ran in the first run of a test.
    log: Option<script::RunLog>,
}

/// The reason why a run ended, for asks that a spawned task still holds.
#[derive(Debug, Clone, Copy)]
enum RunEnd {
    /// The handler returned.
    Returned,
    /// The questions of the run have been sent.
    GivenUp,
}

/// The end of a run.
pub(crate) enum RunResult<T> {
    /// The handler finished.
    Finished(T),
    /// The handler waits for these questions, and for nothing else.
    Waiting(InputRequests),
    /// The handler asked one question, and asks another now that it has the answer.
    Changed(ChangedQuestion),
}

/// The beginnings of two messages: of a question that was answered and is no longer asked, and of the one that replaced
/// it.
#[derive(Debug)]
pub(crate) struct ChangedQuestion {
    pub(crate) was: String,
    pub(crate) now: String,
}

impl From<ChangedQuestion> for ElicitError {
    fn from(changed: ChangedQuestion) -> Self {
        let ChangedQuestion { was, now } = changed;
        let what = if was == now {
            format!("the form of {was:?} changed after it was answered")
        } else {
            format!("{was:?} was answered, and now {now:?} is asked instead")
        };
        Self::Author(format!(
            "it changes from run to run: {what}; put what changes into a step (`elicit.step`)"
        ))
    }
}

/// The input of a retried request.
pub(crate) struct RetryInput {
    pub(crate) journal: Journal,
    pub(crate) had_state: bool,
    pub(crate) responses: InputResponses,
}

impl Rounds {
    /// Sorts the responses of a retried request into the journal. The second value holds the responses to questions
    /// that are not ours: they go on to the handler, which may have built its own rounds.
    pub(crate) fn new(
        revision: Revision,
        capability: Capability,
        now_ms: u64,
        call_wait: Arc<CallWait>,
        brought: RetryInput,
    ) -> (Self, InputResponses) {
        let RetryInput {
            mut journal,
            had_state,
            mut responses,
        } = brought;
        let mut news = Vec::new();
        for out in journal.take_out() {
            let Some(value) = responses.remove(&out.key) else {
                // Not answered yet: it is sent again, with its first deadline.
                journal.send_out(out);
                continue;
            };
            let mode = if out.url { Mode::Url } else { Mode::Form };
            let given = if out.in_time(now_ms) {
                read_reply(&value, mode)
            } else {
                ReceivedAnswer::Late
            };
            journal.resolve(out.slot, given);
            news.push(FreshReply {
                slot: out.slot,
                open_for: Duration::from_millis(now_ms.saturating_sub(out.since_ms)),
                message: (!out.url).then_some(out.message),
            });
        }
        let loose = if had_state {
            InputResponses::default()
        } else {
            responses.clone()
        };
        let run = RunState {
            journal,
            news,
            loose,
            ..RunState::default()
        };
        let rounds = Self {
            revision,
            capability,
            now_ms,
            run: Mutex::new(run),
            over: CancellationToken::new(),
            end: OnceLock::new(),
            call_wait,
            log: None,
        };
        (rounds, responses)
    }

    /// Skips the steps that `log` knows.
    pub(crate) fn with_log(mut self, log: script::RunLog) -> Self {
        self.log = Some(log);
        self
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn capability(&self) -> Capability {
        self.capability
    }

    /// Returns the wait for steps, and for a person's actions outside of MCP.
    pub(crate) fn call_wait(&self) -> &CallWait {
        &self.call_wait
    }

    /// Returns the response if it is known; otherwise the question is open until this run is ended.
    pub(crate) async fn put(
        self: &Arc<Self>,
        question: &OutgoingQuestion,
        admit: AdmitFn<'_>,
    ) -> Result<AskResult, ElicitError> {
        if self.over.is_cancelled() {
            return Err(self.ended());
        }
        if self.call_wait.is_cancelled() {
            return Err(ElicitError::CallCancelled);
        }
        let slot = self.take_slot(question);
        if let Some(put) = self.known(slot, question)? {
            return Ok(put);
        }
        if self.lock().journal.out(slot).is_none() {
            admit()?;
        }
        let _open = self.open(slot, question)?;
        self.given_up(question.timeout).await
    }

    /// Returns the error of an ask whose run is over.
    fn ended(&self) -> ElicitError {
        match self.end.get() {
            Some(RunEnd::Returned) => ElicitError::HandlerReturned,
            Some(RunEnd::GivenUp) => ElicitError::Suspended,
            // The call was dropped.
            None => ElicitError::CallCancelled,
        }
    }

    fn take_slot(&self, question: &OutgoingQuestion) -> OccurrenceKey {
        let digest = question.digest();
        let mut run = self.lock();
        let count = run.asked.entry(digest).or_default();
        let slot = OccurrenceKey {
            digest,
            occurrence: *count,
        };
        *count += 1;
        slot
    }

    fn known(
        &self,
        slot: OccurrenceKey,
        question: &OutgoingQuestion,
    ) -> Result<Option<AskResult>, ElicitError> {
        let mut run = self.lock();
        if run.journal.given(slot).is_none() && slot.occurrence == 0 {
            // A response without a state counts only under a key that the author gave: by giving it, the author states
            // that the key means the same question in every call.
            let loose = question.key.as_ref().and_then(|key| run.loose.remove(key));
            if let Some(value) = loose {
                // It was never asked, so `may_ask` has not been checked yet.
                guard::may_ask(question)?;
                run.journal
                    .resolve(slot, read_reply(&value, question.mode()));
                run.news.push(FreshReply {
                    slot,
                    open_for: Duration::ZERO,
                    message: None,
                });
            }
        }
        let Some(given) = run.journal.given(slot).cloned() else {
            return Ok(None);
        };
        let open_for = run
            .news
            .iter()
            .find(|news| news.slot == slot)
            .map(|news| news.open_for);
        Ok(Some(AskResult {
            number: None,
            given,
            slot: Some(slot),
            open_for: open_for.unwrap_or_default(),
            known: open_for.is_none(),
        }))
    }

    fn open(
        self: &Arc<Self>,
        slot: OccurrenceKey,
        question: &OutgoingQuestion,
    ) -> Result<OpenGuard, ElicitError> {
        let request =
            InputRequest::Elicitation(ElicitRequest::new(params(question, self.revision)?));
        let mut run = self.lock();
        let key = free_key(&run, slot, question.key.as_deref());
        let for_ms = u64::try_from(question.timeout.as_millis()).unwrap_or(u64::MAX);
        run.open.push(OpenAsk {
            slot,
            key,
            message: beginning(&question.message),
            request,
            url: question.mode() == Mode::Url,
            for_ms,
        });
        run.changed();
        drop(run);
        Ok(OpenGuard {
            rounds: Arc::clone(self),
            slot,
        })
    }

    /// Records that the response for `slot` broke the rules: from now on only the reasons are kept.
    pub(crate) fn wrong(&self, slot: OccurrenceKey, reasons: &str) {
        self.lock()
            .journal
            .resolve(slot, ReceivedAnswer::Wrong(reasons.to_owned()));
    }

    /// Records that the response for `slot` passed the author's own check, which then skips it.
    pub(crate) fn passed(&self, slot: OccurrenceKey) {
        self.lock().journal.pass(slot);
    }

    /// Returns the result of the step `name` from an earlier run, or permission to run it now.
    pub(crate) fn begin_step(self: &Arc<Self>, name: &str) -> StepTurn {
        let mut run = self.lock();
        let count = run.steps.entry(name.to_owned()).or_default();
        let occurrence = *count;
        *count += 1;
        if let Some(value) = run.journal.step(name, occurrence) {
            return StepTurn::Remembered(value.to_owned());
        }
        let logged = self.log.as_ref().and_then(|log| log.step(name, occurrence));
        if let Some(value) = logged {
            run.journal.remember(name, occurrence, value.clone());
            return StepTurn::Remembered(value);
        }
        run.running_steps += 1;
        run.changed();
        drop(run);
        StepTurn::Run(StepMemory::Journal(StepGuard {
            rounds: Arc::clone(self),
            name: name.to_owned(),
            occurrence,
        }))
    }

    /// Waits until this run is over, and returns the error of the ask.
    async fn given_up(&self, timeout: Duration) -> Result<AskResult, ElicitError> {
        let mut over = std::pin::pin!(self.over.cancelled());
        let mut stuck: Option<Pin<Box<tokio::time::Sleep>>> = None;
        std::future::poll_fn(|context| {
            let run = self.lock();
            // An ask within the handler is dropped with it and needs no wake-up, because the run waits for nothing
            // then.
            let part_of_it = run
                .turn
                .as_ref()
                .is_some_and(|turn| turn.is(context.waker()));
            let in_step = run.running_steps > 0;
            drop(run);
            if part_of_it && !self.over.is_cancelled() {
                return Poll::Pending;
            }
            if over.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(self.ended()));
            }
            // A step that waits for the task that asks would wait forever: the question cannot be sent before the step
            // ends.
            let sleep = stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
            if sleep.as_mut().poll(context).is_ready() {
                if in_step {
                    return Poll::Ready(Err(running_step::inside_some_step()));
                }
                stuck = None;
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }

    /// Drives the handler until it finishes or waits for nothing but asks.
    pub(crate) async fn drive<F: Future>(&self, mut handler: Pin<&mut F>) -> RunResult<F::Output> {
        // Also when this future is dropped, as for a client that has disconnected.
        let _over = self.over.clone().drop_guard();
        let mut settled_at = None;
        let finished = std::future::poll_fn(|context| {
            let waker = self.lock().begin_turn(context.waker());
            if let Poll::Ready(output) = handler.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(Ok(output));
            }
            drop(waker);
            let mut run = self.lock();
            run.runner = Some(context.waker().clone());
            if run.open.is_empty() || run.running_steps > 0 {
                settled_at = None;
                return Poll::Pending;
            }
            let alone = !run.may_be_woken();
            if alone || settled_at == Some(run.changes) {
                return Poll::Ready(Err(alone));
            }
            settled_at = Some(run.changes);
            drop(run);
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        let (end, ended) = match finished {
            Ok(output) => (RunEnd::Returned, RunResult::Finished(output)),
            Err(alone) => match self.changed(alone) {
                Some(changed) => (RunEnd::Returned, RunResult::Changed(changed)),
                None => (RunEnd::GivenUp, RunResult::Waiting(self.send_out())),
            },
        };
        // Set only once, because a run ends once.
        let _first = self.end.set(end);
        ended
    }

    /// Returns a question that changed after it was answered: no response of this request was used, and another
    /// question is sent.
    ///
    /// If nothing else can make progress (`alone`), that is certain. Otherwise another branch of the handler may have
    /// been faster this time, so it counts when it happens twice in a row.
    /// been faster this time, so it counts when it happens twice in a row.
    fn changed(&self, alone: bool) -> Option<ChangedQuestion> {
        let mut run = self.lock();
        let first = run.news.iter().find_map(|news| news.message.clone())?;
        let used = |news: &FreshReply| {
            let asked = run.asked.get(&news.slot.digest);
            asked.is_some_and(|asked| *asked > news.slot.occurrence)
        };
        let instead = run
            .open
            .iter()
            .find(|open| run.journal.out(open.slot).is_none())
            .map(|open| open.message.clone());
        let unused = !run.news.iter().any(used);
        let (true, Some(now)) = (unused, instead) else {
            run.journal.used_replies();
            return None;
        };
        let before = run.journal.unused_replies();
        (alone || before).then_some(ChangedQuestion { was: first, now })
    }

    /// Records the questions that are sent. A question that was already out keeps its first deadline.
    fn send_out(&self) -> InputRequests {
        let mut run = self.lock();
        let before = run.journal.take_out();
        let mut requests = InputRequests::new();
        for open in std::mem::take(&mut run.open) {
            let earlier = before.iter().find(|out| out.slot == open.slot);
            let since_ms = earlier.map_or(self.now_ms, |out| out.since_ms);
            let OpenAsk {
                slot,
                key,
                message,
                request,
                url,
                for_ms,
            } = open;
            run.journal.send_out(SentQuestion {
                key: key.clone(),
                slot,
                message,
                url,
                since_ms,
                for_ms,
            });
            requests.insert(key, request);
        }
        requests
    }

    /// Returns the journal when the run is over.
    pub(crate) fn take_journal(&self) -> Journal {
        std::mem::take(&mut self.lock().journal)
    }

    fn lock(&self) -> MutexGuard<'_, RunState> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that withdraws the question when the ask is dropped, as the losing branch of a `select!` is.
struct OpenGuard {
    rounds: Arc<Rounds>,
    slot: OccurrenceKey,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        let mut run = self.rounds.lock();
        run.open.retain(|open| open.slot != self.slot);
        run.changed();
    }
}

/// A step that is running.
pub(crate) struct StepGuard {
    rounds: Arc<Rounds>,
    name: String,
    occurrence: u32,
}

impl StepGuard {
    /// Stores the step's result for later runs.
    pub(crate) fn remember(self, value: Box<RawValue>) {
        self.rounds
            .lock()
            .journal
            .remember(&self.name, self.occurrence, value);
    }
}

impl Drop for StepGuard {
    fn drop(&mut self) {
        let mut run = self.rounds.lock();
        run.running_steps -= 1;
        run.changed();
    }
}
