//! The load of one connection with the server, for a shell that distributes calls over several.

use bytes::Bytes;
use mcp_elicit_core::wire::Id;
use mcp_elicit_core::wire::frame::{Frame, FramePart};

use crate::parts::calls;
use crate::parts::own_tasks;
use crate::parts::request_state::{CallBinding, StateDefect};
use crate::parts::turns::Rule;
use crate::{CallId, CallKind, Relay, StreamId, Timestamp};

impl Relay {
    /// Returns the time since which the oldest call waits that another connection with the server could take.
    pub fn queued_since(&self) -> Option<Timestamp> {
        if self.rule() != Rule::Single {
            return None;
        }
        let waits = |key: CallId| self.movable_since(key);
        self.turns.queue().waiting().find_map(waits)
    }

    /// Returns the time since which the call waits, if another connection could take it. An approved call stays.
    fn movable_since(&self, key: CallId) -> Option<Timestamp> {
        let call = self.calls.get(key)?;
        call.movable_since()
            .filter(|_| !self.approvals.is_approved(key))
    }

    /// Takes out the oldest call that waits for its turn, for another connection: its stream, and the request as the
    /// client wrote it.
    pub fn take_queued(&mut self) -> Option<(StreamId, Bytes)> {
        self.queued_since()?;
        let waits = |key: &CallId| self.movable_since(*key).is_some();
        let key = self.turns.queue().waiting().find(waits)?;
        let call = self.remove_call(key)?;
        Some((call.stream()?, call.moving_frame()?.into_bytes()))
    }

    /// Returns `true` if another call in which the server may ask can start at once, with certain attribution.
    pub fn is_free(&self) -> bool {
        let waits = self.early_requests.iter().any(|frame| {
            let method = frame.method();
            method.and_then(CallKind::of_method).is_some()
        });
        !waits
            && !self.has_given_up_call()
            && self.turns.queue().is_empty()
            && self.calls.asking().next().is_none()
    }

    /// Returns `true` if a call was given up that the server may still be processing: its questions would be attributed
    /// to another.
    pub fn has_given_up_call(&self) -> bool {
        self.turns.has_given_up_call() && self.rule() == Rule::Single
    }

    /// Returns the number of calls in progress or waiting for their turn.
    pub fn load(&self) -> usize {
        self.early_requests.len() + self.turns.queue().len() + self.calls.asking().count()
    }

    /// Returns `true` if more connections with the server could take calls from this one.
    pub fn can_share_calls(&self) -> bool {
        self.rule() == Rule::Single
    }

    /// Returns `true` if the request continues something that is held here: the retry of a round, or a call that was
    /// handed back or given up.
    pub fn continues_here(&self, now: Timestamp, kind: CallKind, frame: Frame<'_>) -> bool {
        if let Some(state) = frame.text_member(FramePart::Params, "requestState") {
            return self.round_states.knows(&state);
        }
        !self.unattended.is_empty()
            && calls::summary(kind, frame)
                .is_ok_and(|calling| self.unattended.of(&calling.digest).next().is_some())
            || self.given_up_call(now, kind, frame).is_some()
    }

    /// Returns `true` if the request is the retry of a round for this caller and server: its state was sealed for them,
    /// whether or not it can still be used.
    pub fn has_sealed_state(&self, now: Timestamp, kind: CallKind, frame: Frame<'_>) -> bool {
        let Some(state) = frame.text_member(FramePart::Params, "requestState") else {
            return false;
        };
        let binding = CallBinding::of_frame(kind, frame);
        let opened = self.round_states.open(&binding, &state, now);
        !matches!(opened, Err(StateDefect::Foreign))
    }

    /// Returns `true` if a request is about a task that a call here became.
    pub fn has_task_of(&self, frame: Frame<'_>) -> bool {
        let Some(task) = frame.text_member(FramePart::Params, "taskId") else {
            return false;
        };
        let own = own_tasks::record_id(&task);
        self.task_questions.knows(&task) || own.is_some_and(|record| self.own_tasks.knows(record))
    }

    /// Returns `true` if the client knows a call by this id.
    pub fn knows_call(&self, id: &Id) -> bool {
        self.calls.by_client(id).is_some()
    }
}
