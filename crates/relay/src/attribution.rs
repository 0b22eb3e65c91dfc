//! The attribution of a pushed question to a call. It is certain if the question came on the call's own stream, or if
//! the call is the only one with the server; otherwise ([`turns`](crate::parts::turns) lists the cases) the question
//! may belong to any of several calls.
//!
//! An answer finds its question by the question's own id, so a wrong attribution never sends an answer to the wrong
//! call. But an ambiguous question is never asked in one of the calls, its answer is never reused, the person is told
//! of all the calls, and all are held for it.

use std::time::Duration;

use mcp_elicit_core::wire::Mode;

use crate::parts::asks::{Ask, Attribution};
use crate::parts::calls::Call;
use crate::{AskId, AskedVia, CallId, Relay, Timestamp};

/// Calls that come within this time of each other count as one batch, from a client that makes several at once.
const ONE_GO: Duration = Duration::from_millis(250);

/// The most calls besides the likeliest that are named and held.
pub(crate) const OTHERS: usize = 63;
/// The same limit if the client's own dialog shows the question, which names no call: these calls are only held for it.
const OTHERS_OF_DIALOG: usize = 16;

impl Relay {
    /// Returns the call that a pushed question in this mode is for, which came on the stream of `via`.
    pub(crate) fn attribute(&self, via: Option<CallId>, mode: Option<Mode>) -> Attribution {
        let known = |key: &CallId| {
            self.calls
                .get(*key)
                .is_some_and(|call| call.kind().is_some())
        };
        if let Some(key) = via.filter(known) {
            return key.into();
        }
        let mut asking: Vec<_> = self.calls.asking().collect();
        let Some(last) = asking.iter().map(|(_, call)| call.since()).max() else {
            return Attribution::default();
        };
        let newest = asking.iter().map(|(key, _)| *key).max();
        let in_dialog = mode.is_some_and(|mode| self.shown_by_client().has(mode));
        let others = if in_dialog { OTHERS_OF_DIALOG } else { OTHERS };
        if asking.len() > others + 1 {
            asking.select_nth_unstable_by_key(others, |(key, call)| likely(last, *key, call));
            asking.truncate(others + 1);
        }
        asking.sort_by_key(|(key, call)| likely(last, *key, call));
        Attribution::among(asking.into_iter().map(|(key, _)| key), newest)
    }

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

    /// Leaves a question of this call, which ends, to one that has ended here before. Returns `false` if there is none.
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

/// Returns a sort key; smaller is likelier: a call that waits for no answer yet; then the latest, and within its batch
/// the first, since a server usually processes a batch in order.
fn likely(last: Timestamp, key: CallId, call: &Call) -> (bool, bool, u64) {
    let waits = !call.asks().is_empty();
    let earlier = last.since(call.since()) > ONE_GO;
    let turn = if earlier { u64::MAX - key.0 } else { key.0 };
    (waits, earlier, turn)
}
