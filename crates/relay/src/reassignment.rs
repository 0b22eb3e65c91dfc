//! Pushed questions that are reassigned to another call when the assumed call ends.
//!
//! The question's own id connects its answer to it, so a wrong guess never sends an answer to the wrong call. But a
//! question that may belong to several calls ([`candidates`](crate::parts::calls)) is never asked in one of them, and
//! its answer is never reused. Everyone who is asked is shown all of them, and all are held for it.

use crate::parts::asks::Ask;
use crate::{AskId, AskedVia, CallId, Relay, Timestamp};

impl Relay {
    /// Reassigns a question of this call, which ends, to another call. Returns `false` if there is none.
    pub(crate) fn reassign(&mut self, now: Timestamp, key: AskId, from: CallId) -> bool {
        let Some(question) = self.asks.get(key) else {
            return false;
        };
        let named = |call: &&CallId| self.calls.may_ask(**call);
        let named = question.others().iter().find(named).copied();
        // More calls may have been in progress than are named.
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

    /// Leaves a question of this call, which ends, to a call that has ended here before. Returns `false` if there is
    /// none.
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
