//! The state of one run of a handler in the rounds era.

use std::collections::HashMap;
use std::task::Waker;
use std::time::Duration;

use rmcp::model::{InputRequest, InputResponses};

use super::tracked_waker::TrackedWaker;
use crate::journal::{Journal, OccurrenceKey};
use crate::question::QuestionDigest;

/// The questions, replies and steps of one run.
#[derive(Debug, Default)]
pub(super) struct RunState {
    pub(super) journal: Journal,
    /// Questions whose response came with this request.
    pub(super) news: Vec<FreshReply>,
    /// Responses that came without a state, by the author's key.
    pub(super) loose: InputResponses,
    /// The number of times that each question was asked in this run.
    pub(super) asked: HashMap<QuestionDigest, u32>,
    pub(super) steps: HashMap<String, u32>,
    pub(super) open: Vec<OpenAsk>,
    pub(super) running_steps: usize,
    /// The number of changes, so that the runner sees whether a poll changed anything.
    pub(super) changes: u64,
    /// The waker to notify of changes between polls.
    pub(super) runner: Option<Waker>,
    pub(super) turn: Option<TrackedWaker>,
}

/// A question whose response came with this request.
#[derive(Debug)]
pub(super) struct FreshReply {
    pub(super) slot: OccurrenceKey,
    pub(super) open_for: Duration,
    /// The beginning of its message. Absent if the next run may not need the question: a visit is asked for only until
    /// its result is stored.
    pub(super) message: Option<String>,
}

/// A question that is open in this run.
#[derive(Debug)]
pub(super) struct OpenAsk {
    pub(super) slot: OccurrenceKey,
    pub(super) key: String,
    pub(super) message: String,
    pub(super) request: InputRequest,
    pub(super) url: bool,
    pub(super) for_ms: u64,
}

impl RunState {
    /// Returns the waker to poll the handler with. Changes during the poll are seen right after it.
    pub(super) fn begin_turn(&mut self, runner: &Waker) -> Waker {
        self.runner = None;
        let turn = self.turn.take().filter(|turn| turn.is_for(runner));
        let turn = self
            .turn
            .insert(turn.unwrap_or_else(|| TrackedWaker::new(runner)));
        turn.begin().clone()
    }

    /// Returns `true` if another task has kept the waker.
    pub(super) fn may_be_woken(&self) -> bool {
        self.turn.as_ref().is_some_and(TrackedWaker::may_be_woken)
    }

    /// Counts a change, and wakes the runner if it waits.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
        if let Some(runner) = self.runner.take() {
            runner.wake();
        }
    }
}

/// Returns the author's key, or one derived from the question; unique within the round.
pub(super) fn free_key(run: &RunState, slot: OccurrenceKey, wished: Option<&str>) -> String {
    let base = wished.map_or_else(|| format!("q-{}", slot.digest), str::to_owned);
    let taken = |key: &str| run.open.iter().any(|open| open.key == key);
    if slot.occurrence == 0 && !taken(&base) {
        return base;
    }
    let mut number = slot.occurrence + 1;
    loop {
        let key = format!("{base}-{number}");
        if !taken(&key) {
            return key;
        }
        number += 1;
    }
}
