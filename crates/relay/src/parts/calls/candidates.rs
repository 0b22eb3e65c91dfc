//! The calls that a pushed question may belong to. The call is certain if the question came on its own stream, or if it
//! is the only call at the server. Otherwise (see [`turns`](crate::parts::turns)), the question may belong to any of
//! several calls.

use std::time::Duration;

use super::{Call, Calls};
use crate::parts::asks::Attribution;
use crate::{CallId, Timestamp};

/// The time within which calls count as made together, by a client that makes several at once.
const ONE_GO: Duration = Duration::from_millis(250);

/// The number of calls besides the likeliest that are named and held.
pub(crate) const OTHERS: usize = 63;
/// The same number if each of the others waits for an answer to a question of its own, for which it is held.
const OTHERS_THAT_WAIT: usize = 15;
/// The same number for a question in the client's own dialog, which names no call: they are only held for it.
const OTHERS_OF_DIALOG: usize = 16;

impl Calls {
    /// Returns the call that a pushed question belongs to, which came on the stream of `via`; `in_dialog` if the
    /// client's own dialog shows it.
    pub(crate) fn attribute(&self, via: Option<CallId>, in_dialog: bool) -> Attribution {
        let known = |key: &CallId| self.get(*key).is_some_and(|call| call.kind().is_some());
        if let Some(key) = via.filter(known) {
            return key.into();
        }
        let mut asking: Vec<_> = self.asking().collect();
        let Some(last) = asking.iter().map(|(_, call)| call.since()).max() else {
            return Attribution::default();
        };
        let newest = asking.iter().map(|(key, _)| *key).max();
        let at_work = asking.iter().filter(|(_, call)| call.asks().is_empty());
        let others_wait = at_work.count() == 1;
        let others = match (in_dialog, others_wait) {
            (true, _) => OTHERS_OF_DIALOG,
            (false, true) => OTHERS_THAT_WAIT,
            (false, false) => OTHERS,
        };
        if asking.len() > others + 1 {
            asking.select_nth_unstable_by_key(others, |(key, call)| likely(last, *key, call));
            asking.truncate(others + 1);
        }
        asking.sort_by_key(|(key, call)| likely(last, *key, call));
        Attribution::among(asking.into_iter().map(|(key, _)| key), newest)
            .with_waiting_others(others_wait)
    }
}

/// Returns the sort key of a call; the smallest is the likeliest. Calls that do not wait for an answer come first; then
/// the last call. Of the calls made together with it, the first comes first, because servers mostly process them in
/// order.
fn likely(last: Timestamp, key: CallId, call: &Call) -> (bool, bool, u64) {
    let waits = !call.asks().is_empty();
    let earlier = last.since(call.since()) > ONE_GO;
    let turn = if earlier { u64::MAX - key.0 } else { key.0 };
    (waits, earlier, turn)
}
