//! The queue of calls that wait for their turn with the server: its limit, and the times at which it is checked.
//!
//! The turn of a call depends only on its target and on [`TurnState`]. While the state is the same, every call of the
//! queue keeps waiting, so the queue is not checked.

use std::collections::BTreeMap;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::Capability;
use serde_json::json;

use crate::frame_edit::ErrorResponse;
use crate::parts::turns::{OtherCalls, Rule};
use crate::{CallId, CallKind};

/// The counts and settings that change whenever the turn of a call may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnMarks {
    /// The rule in force.
    pub(crate) rule: Rule,
    /// The modes that the client shows itself.
    pub(crate) shown: Capability,
    /// Increases when a tool is seen to ask, or no longer suspected.
    pub(crate) habits: u64,
    /// Increases when the server has finished with a call.
    pub(crate) calls: u64,
    /// Increases when a question is asked or ends.
    pub(crate) questions: u64,
}

/// Everything that the turn of a call depends on, except its own target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnState {
    marks: TurnMarks,
    others: OtherCalls,
}

impl TurnState {
    /// Creates the state with these marks, beside these calls.
    pub(crate) fn new(marks: TurnMarks, others: OtherCalls) -> Self {
        Self { marks, others }
    }

    /// Returns `true` if every call has the same turn in the other state.
    fn is_like(&self, other: &Self) -> bool {
        let settings = |state: &Self| (state.marks.rule, state.marks.shown, state.marks.habits);
        settings(self) == settings(other) && self.others == other.others
    }
}

/// The kind and the name or URI of a waiting call.
type Target = (CallKind, String);

/// The calls that wait for their turn. Keys increase with time, so their order is that of arrival.
pub(crate) struct CallQueue {
    most: usize,
    waiting: BTreeMap<CallId, Target>,
    /// Calls without a waiting client: they are started when they are made again.
    left: BTreeMap<CallId, Target>,
    /// The state in which each call of `waiting` was last found to wait.
    checked: Option<TurnState>,
    /// The time of the next check that does not depend on the state.
    next_check: Option<Timestamp>,
    /// The number of ended calls and questions when it last changed, and that time.
    moved: (u64, Timestamp),
}

impl CallQueue {
    /// Creates an empty queue of at most `most` calls.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            waiting: BTreeMap::new(),
            left: BTreeMap::new(),
            checked: None,
            next_check: None,
            moved: (0, Timestamp::from_millis(0)),
        }
    }

    /// Returns `true` while no more calls may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.most
    }

    /// Returns the refusal of a call for the server of this name while the queue is full.
    pub(crate) fn refusal(&self, server: &str) -> ErrorResponse {
        let most = self.most;
        let why = format!(
            "the server {server} is at work on another call, and {most} calls of this session wait for their turn, which is the most; \
             this call was not made: make it again when one of them has ended"
        );
        let data = json!({"limit": "waiting-calls", "most": most});
        ErrorResponse::new(-32000, why).with_data(data)
    }

    /// Adds a call, newer than all others, that has to wait in this state.
    pub(crate) fn push(&mut self, call: CallId, target: Target, state: TurnState) {
        let is_first = self.waiting.is_empty();
        let same = self.checked.is_some_and(|last| last.is_like(&state));
        self.checked = (is_first || same).then_some(state);
        self.waiting.insert(call, target);
    }

    /// Removes a call.
    pub(crate) fn remove(&mut self, call: CallId) {
        self.waiting.remove(&call);
        self.left.remove(&call);
    }

    /// Records that the client of a call no longer waits.
    pub(crate) fn leave(&mut self, call: CallId) {
        if let Some(target) = self.waiting.remove(&call) {
            self.left.insert(call, target);
        }
    }

    /// Records that a client waits for a call again, which keeps its old place.
    pub(crate) fn come_back(&mut self, call: CallId) {
        if let Some(target) = self.left.remove(&call) {
            self.waiting.insert(call, target);
            self.checked = None;
        }
    }

    /// Returns the oldest call without a waiting client.
    pub(crate) fn oldest_left(&self) -> Option<CallId> {
        self.left.keys().next().copied()
    }

    /// Returns the first call after this one whose client waits, with its target; the oldest if there is none before.
    pub(crate) fn next_after(&self, last: Option<CallId>) -> Option<(CallId, &Target)> {
        let from = last.map_or(CallId(0), |last| CallId(last.0 + 1));
        let (key, target) = self.waiting.range(from..).next()?;
        Some((*key, target))
    }

    /// Returns the calls whose clients wait, oldest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = CallId> {
        self.waiting.keys().copied()
    }

    /// Returns `true` while a client waits for a call of the queue.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns `true` while the queue has no call.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of calls.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.left.len()
    }

    /// Returns `true` if nothing that a call may wait for has changed since these marks.
    pub(crate) fn is_as_at(&self, marks: &TurnMarks) -> bool {
        self.checked.is_some_and(|last| last.marks == *marks)
    }

    /// Records the state. Returns `true` if the turn of some call may differ in it.
    pub(crate) fn must_check(&mut self, state: TurnState) -> bool {
        let last = self.checked.replace(state);
        !last.is_some_and(|last| last.is_like(&state))
    }

    /// Records that the planned check is due.
    pub(crate) fn check_is_due(&mut self) {
        self.next_check = None;
        self.recheck();
    }

    /// Records that the turn of some call may differ for a reason that is not part of the state.
    pub(crate) fn recheck(&mut self) {
        self.checked = None;
    }

    /// Plans a check at this time. Returns `false` if one is planned before.
    pub(crate) fn plan_check(&mut self, at: Timestamp) -> bool {
        let is_earlier = self.next_check.is_none_or(|known| at < known);
        if is_earlier {
            self.next_check = Some(at);
        }
        is_earlier
    }

    /// Records the number of calls and questions that have ended.
    pub(crate) fn note_ended(&mut self, now: Timestamp, ended: u64) {
        if self.moved.0 != ended {
            self.moved = (ended, now);
        }
    }

    /// Returns the time since which no call and no question has ended.
    pub(crate) fn still_since(&self) -> Timestamp {
        self.moved.1
    }

    /// Records that all calls that still wait do so in this state.
    pub(crate) fn checked(&mut self, state: TurnState) {
        self.checked = Some(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(calls: u64) -> TurnMarks {
        TurnMarks {
            rule: Rule::Single,
            shown: Capability::NONE,
            habits: 0,
            calls,
            questions: 0,
        }
    }

    fn state(calls: u64, others: OtherCalls) -> TurnState {
        TurnState::new(marks(calls), others)
    }

    fn push(queue: &mut CallQueue, key: u64, state: TurnState) {
        queue.push(CallId(key), (CallKind::Tool, "t".to_owned()), state);
    }

    #[test]
    fn a_queue_is_checked_only_when_a_call_may_have_another_turn() {
        let (busy, free) = (OtherCalls::BUSY, OtherCalls::NONE);
        let mut queue = CallQueue::new(2);
        push(&mut queue, 1, state(5, busy));
        assert!(queue.is_as_at(&marks(5)));
        assert!(!queue.is_as_at(&marks(6)));
        assert!(!queue.must_check(state(6, busy)), "the others are the same");
        assert!(queue.is_as_at(&marks(6)));
        assert!(queue.must_check(state(7, free)));
        // A call that came in another state than the last has not been checked.
        push(&mut queue, 2, state(7, busy));
        assert!(!queue.is_as_at(&marks(7)));
        assert!(queue.must_check(state(7, busy)));
        assert!(queue.is_full());
    }

    #[test]
    fn a_call_that_is_left_keeps_its_place_and_counts() {
        let mut queue = CallQueue::new(2);
        push(&mut queue, 1, state(0, OtherCalls::BUSY));
        push(&mut queue, 2, state(0, OtherCalls::BUSY));
        queue.leave(CallId(1));
        assert_eq!(queue.waiting().collect::<Vec<_>>(), [CallId(2)]);
        assert_eq!(queue.oldest_left(), Some(CallId(1)));
        assert!(queue.is_full());
        queue.come_back(CallId(1));
        assert_eq!(queue.waiting().collect::<Vec<_>>(), [CallId(1), CallId(2)]);
        assert!(!queue.is_as_at(&marks(0)), "it may go by now");
        queue.remove(CallId(1));
        queue.remove(CallId(2));
        assert!(queue.is_empty());
    }
}
