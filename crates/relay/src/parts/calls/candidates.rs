//! The calls that a pushed question may be for. A stream of its own says so, and so does being the only call with the server; where
//! neither does ([`turns`](crate::parts::turns) says when), the question may be for any of several calls.

use std::time::Duration;

use super::{Call, Calls};
use crate::parts::asks::Attribution;
use crate::{CallId, Timestamp};

/// Calls that come within this time of each other came in one go, from a client that makes several at once.
const ONE_GO: Duration = Duration::from_millis(250);

/// The number of calls besides the likeliest that are named and held.
pub(crate) const OTHERS: usize = 63;
/// That number where the client's own dialog shows the question, which names no call: only those are held for it.
const OTHERS_OF_DIALOG: usize = 16;

impl Calls {
    /// Returns the call that a pushed question is for, which came on the stream of `via`; `in_dialog` if the client's own dialog shows it.
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
        let others = if in_dialog { OTHERS_OF_DIALOG } else { OTHERS };
        if asking.len() > others + 1 {
            asking.select_nth_unstable_by_key(others, |(key, call)| likely(last, *key, call));
            asking.truncate(others + 1);
        }
        asking.sort_by_key(|(key, call)| likely(last, *key, call));
        Attribution::among(asking.into_iter().map(|(key, _)| key), newest)
    }
}

/// Smaller is likelier: a call that waits for no answer yet; then the last that came, and of those that came in one go
/// with it the first, since a server mostly gets to them in turn.
fn likely(last: Timestamp, key: CallId, call: &Call) -> (bool, bool, u64) {
    let waits = !call.asks().is_empty();
    let earlier = last.since(call.since()) > ONE_GO;
    let turn = if earlier { u64::MAX - key.0 } else { key.0 };
    (waits, earlier, turn)
}
