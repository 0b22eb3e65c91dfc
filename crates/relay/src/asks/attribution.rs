//! The attribution of a question to calls: to one for certain, or to one of several.

use crate::CallId;

/// The calls that a question may be for.
#[derive(Default)]
pub(crate) struct Attribution {
    /// The call it is taken to be for.
    call: Option<CallId>,
    /// Others that it may be for, the likeliest first.
    others: Vec<CallId>,
    /// The last call that was on its way when it came, where that is a guess.
    newest: Option<CallId>,
}

impl From<CallId> for Attribution {
    /// That is certain.
    fn from(call: CallId) -> Self {
        Self {
            call: Some(call),
            others: Vec::new(),
            newest: None,
        }
    }
}

impl Attribution {
    /// A question for one of these calls, the likeliest first. `newest` was the last on its way: no later one is meant.
    pub(crate) fn among(calls: impl IntoIterator<Item = CallId>, newest: Option<CallId>) -> Self {
        let mut calls = calls.into_iter();
        Self {
            call: calls.next(),
            others: calls.collect(),
            newest,
        }
    }

    /// Returns the call it is taken to be for.
    pub(crate) fn call(&self) -> Option<CallId> {
        self.call
    }

    /// Returns others that it may be for, the likeliest first.
    pub(crate) fn others(&self) -> &[CallId] {
        &self.others
    }

    /// Returns the last call that was on its way when it came, where the call is a guess.
    pub(super) fn newest(&self) -> Option<CallId> {
        self.newest
    }

    /// It is for no call any more.
    pub(super) fn leave_call(&mut self) {
        self.call = None;
    }

    /// It is taken to be for this call now.
    pub(super) fn reassign(&mut self, to: CallId) {
        self.call = Some(to);
        self.others.retain(|call| *call != to);
    }

    /// Returns `true` if several calls may be meant.
    pub(crate) fn is_ambiguous(&self) -> bool {
        !self.others.is_empty()
    }

    /// Returns all calls that may be meant.
    pub(crate) fn candidates(&self) -> Vec<CallId> {
        self.call
            .into_iter()
            .chain(self.others.iter().copied())
            .collect()
    }
}
