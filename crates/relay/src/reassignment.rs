//! Pushed questions that go over to another call when the one ends that they were taken to be for.
//!
//! An answer finds its question by the question's own id, so no guess brings an answer to the wrong call. But a question that may be for
//! several calls ([`candidates`](crate::parts::calls)) is never asked in one of them, its answer is never used again, whoever is asked is
//! told of all of them, and all are held for it.

use crate::parts::asks::Ask;
use crate::{AskId, AskedVia, CallId, Relay, Timestamp};

impl Relay {
    /// A question that was taken to be for this call, which ends, is now taken to be for another. `false` when there is
    /// none.
    pub(crate) fn reassign(&mut self, now: Timestamp, key: AskId, from: CallId) -> bool {
        let Some(question) = self.asks.get(key) else {
            return false;
        };
        let named = |call: &&CallId| self.calls.may_ask(**call);
        let named = question.others().iter().find(named).copied();
        // More may have been on their way than are named.
        let unnamed = || self.calls.oldest_asking(question.newest()?, from);
        let Some(to) = named.or_else(unnamed) else {
            return self.leave_to_past(key, from);
        };
        if let Some(call) = self.calls.get_mut(from) {
            call.remove_ask(key);
        }
        if let Some(call) = self.calls.get_mut(to) {
            call.add_ask(key);
        }
        let Some(question) = self.asks.get_mut(key) else {
            return false;
        };
        question.reassign(to);
        if question.is_open() {
            match question.via() {
                AskedVia::People => self.hold(now, to),
                AskedVia::Client => self.present_round(now, to),
            }
        }
        true
    }

    /// A question that was taken to be for this call, which ends, may be for one that has ended here before. `false` when it is not.
    fn leave_to_past(&mut self, key: AskId, from: CallId) -> bool {
        let may_be_past = self.asks.get(key).is_some_and(Ask::may_be_past);
        if may_be_past {
            if let Some(call) = self.calls.get_mut(from) {
                call.remove_ask(key);
            }
            if let Some(question) = self.asks.get_mut(key) {
                question.leave_call();
            }
        }
        may_be_past
    }
}
