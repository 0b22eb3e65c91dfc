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
    /// `true` if the server said for which call it is.
    is_certain: bool,
    /// `true` if it may be for a call that has ended here.
    may_be_past: bool,
}

impl From<CallId> for Attribution {
    /// That is certain.
    fn from(call: CallId) -> Self {
        Self {
            call: Some(call),
            is_certain: true,
            ..Self::default()
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
            ..Self::default()
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

    /// It may be for a call that has ended here.
    pub(crate) fn add_past(&mut self) {
        self.may_be_past = true;
    }

    /// Returns `true` if it may be for a call that has ended here.
    pub(super) fn may_be_past(&self) -> bool {
        self.may_be_past
    }

    /// Returns `true` if the server said for which call it is.
    pub(crate) fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// Returns `true` if several calls may be meant.
    pub(crate) fn is_ambiguous(&self) -> bool {
        !self.others.is_empty() || self.may_be_past
    }

    /// Returns all calls that may be meant.
    pub(crate) fn candidates(&self) -> Vec<CallId> {
        self.call
            .into_iter()
            .chain(self.others.iter().copied())
            .collect()
    }
}
