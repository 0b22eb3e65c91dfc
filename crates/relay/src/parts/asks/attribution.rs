//! The attribution of a question to calls: certainly to one, or to one of several.

use crate::CallId;

/// The calls that a question may belong to.
#[derive(Default)]
pub(crate) struct Attribution {
    /// The assumed call.
    call: Option<CallId>,
    /// The other possible calls, the likeliest first.
    others: Vec<CallId>,
    /// The last call in progress when it came, if the call is a guess.
    newest: Option<CallId>,
    /// `true` if the server named the call.
    is_certain: bool,
    /// `true` if every other possible call was waiting for an answer to a question of its own.
    others_wait: bool,
    /// `true` if it may belong to a call that has ended here.
    may_be_past: bool,
}

impl From<CallId> for Attribution {
    /// Creates a certain attribution.
    fn from(call: CallId) -> Self {
        Self {
            call: Some(call),
            is_certain: true,
            ..Self::default()
        }
    }
}

impl Attribution {
    /// Creates an attribution to one of these calls, the likeliest first. `newest` was the last in progress: no later
    /// one is meant.
    pub(crate) fn among(calls: impl IntoIterator<Item = CallId>, newest: Option<CallId>) -> Self {
        let mut calls = calls.into_iter();
        Self {
            call: calls.next(),
            others: calls.collect(),
            newest,
            ..Self::default()
        }
    }

    /// Records that every other possible call was waiting for an answer to a question of its own.
    pub(crate) fn with_waiting_others(self, others_wait: bool) -> Self {
        Self {
            others_wait,
            ..self
        }
    }

    /// Returns `true` if the assumed call is the only one that was not waiting for an answer when it came.
    pub(super) fn is_likely(&self) -> bool {
        self.is_certain || self.others_wait
    }

    /// Returns the assumed call.
    pub(crate) fn call(&self) -> Option<CallId> {
        self.call
    }

    /// Returns the other possible calls, the likeliest first.
    pub(crate) fn others(&self) -> &[CallId] {
        &self.others
    }

    /// Returns the last call in progress when it came, if the call is a guess.
    pub(super) fn newest(&self) -> Option<CallId> {
        self.newest
    }

    /// Removes the attribution to any call.
    pub(super) fn leave_call(&mut self) {
        self.call = None;
    }

    /// Changes the assumed call.
    pub(super) fn reassign(&mut self, to: CallId) {
        self.call = Some(to);
        self.others_wait = false;
        self.others.retain(|call| *call != to);
    }

    /// Records that it may belong to a call that has ended here.
    pub(crate) fn add_past(&mut self) {
        self.may_be_past = true;
    }

    /// Returns `true` if it may belong to a call that has ended here.
    pub(super) fn may_be_past(&self) -> bool {
        self.may_be_past
    }

    /// Returns `true` if the server named the call.
    pub(crate) fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// Returns `true` if several calls may be meant.
    pub(crate) fn is_ambiguous(&self) -> bool {
        !self.others.is_empty() || self.may_be_past
    }

    /// Returns all possible calls.
    pub(crate) fn candidates(&self) -> Vec<CallId> {
        self.call
            .into_iter()
            .chain(self.others.iter().copied())
            .collect()
    }
}
