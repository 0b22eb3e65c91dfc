//! Calls that wait for their turn at the server.

use std::collections::VecDeque;

use crate::CallId;

/// The calls that wait, oldest first.
#[derive(Default)]
pub(crate) struct CallQueue {
    waiting: VecDeque<CallId>,
    /// `true` if a call was given up that the server may still be at work on.
    gave_up: bool,
}

impl CallQueue {
    /// Adds a call at the end.
    pub(crate) fn push(&mut self, call: CallId) {
        self.waiting.push_back(call);
    }

    /// Removes a call.
    pub(crate) fn remove(&mut self, call: CallId) {
        self.waiting.retain(|known| *known != call);
    }

    /// Takes all calls out.
    pub(crate) fn take(&mut self) -> VecDeque<CallId> {
        std::mem::take(&mut self.waiting)
    }

    /// Returns the calls, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = CallId> {
        self.waiting.iter().copied()
    }

    /// Returns `true` while no call waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns how many calls wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Notes that the client gave up a call that the server may still be at work on.
    pub(crate) fn note_given_up(&mut self) {
        self.gave_up = true;
    }

    /// Returns `true` if the server may still be at work on a call that was given up.
    pub(crate) fn has_given_up_call(&self) -> bool {
        self.gave_up
    }
}
