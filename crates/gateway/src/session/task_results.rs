//! The bytes of the results of tasks that are stored, of each caller and of all: they stay when their session has ended.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use mcp_elicit_core::lifecycle::Timestamp;

use crate::byte_account::{ByteAccount, ByteShare};

/// The bytes that the results of all callers may have. One caller may have a quarter of what the others leave.
const ALL: usize = 256 * 1024 * 1024;
/// The bytes that the results of a caller may always have.
const ALWAYS: usize = 64 * 1024;
/// The bytes that a result takes besides its own, roughly.
const ROW: usize = 4_096;

static ACCOUNT: ByteAccount = ByteAccount::new(ALL, 4, ALWAYS);
static RESULTS: LazyLock<Mutex<TaskResults>> =
    LazyLock::new(|| Mutex::new(TaskResults::new(&ACCOUNT)));

/// Counts a result of this caller that is stored from now on until its time is over. Returns `false`, and counts nothing,
/// if the caller has too many.
pub(super) fn count(caller: &str, bytes: usize, now: Timestamp, until: Timestamp) -> bool {
    let mut all = RESULTS.lock().unwrap_or_else(PoisonError::into_inner);
    all.count(caller, bytes, now, until)
}

struct TaskResults {
    account: &'static ByteAccount,
    by_caller: HashMap<String, OfCaller>,
}

struct OfCaller {
    share: ByteShare,
    /// The ends of their times, the next one first, and their bytes.
    stored: BinaryHeap<Reverse<(Timestamp, usize)>>,
}

impl TaskResults {
    fn new(account: &'static ByteAccount) -> Self {
        Self {
            account,
            by_caller: HashMap::new(),
        }
    }

    fn count(&mut self, caller: &str, bytes: usize, now: Timestamp, until: Timestamp) -> bool {
        self.expire(now);
        let bytes = bytes.saturating_add(ROW);
        let known = self.by_caller.entry(caller.to_owned());
        let known = known.or_insert_with(|| OfCaller {
            share: ByteShare::new(self.account),
            stored: BinaryHeap::new(),
        });
        known.share.add(bytes);
        if known.share.is_exceeded() {
            known.share.remove(bytes);
            return false;
        }
        known.stored.push(Reverse((until, bytes)));
        true
    }

    fn expire(&mut self, now: Timestamp) {
        for known in self.by_caller.values_mut() {
            while let Some(Reverse((until, bytes))) = known.stored.peek().copied()
                && until <= now
            {
                known.stored.pop();
                known.share.remove(bytes);
            }
        }
        self.by_caller.retain(|_, known| !known.stored.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_so_many_bytes_of_results_until_their_time_is_over() {
        const RESULT: usize = 4 * 1024 * 1024;
        let at = Timestamp::from_millis;
        let account: &'static ByteAccount = Box::leak(Box::new(ByteAccount::new(ALL, 4, ALWAYS)));
        let mut all = TaskResults::new(account);
        let mut stored = 0;
        while all.count("a", RESULT, at(1), at(10)) {
            stored += RESULT;
        }
        assert!((ALL / 5..=ALL / 4).contains(&stored), "{stored}");
        assert!(!all.count("a", RESULT, at(9), at(10)));
        // Others have theirs.
        assert!(all.count("b", RESULT, at(9), at(12)));
        assert!(all.count("a", RESULT, at(10), at(11)));
        assert!(account.total() > 2 * RESULT && account.total() < 3 * RESULT);
        all.expire(at(12));
        assert!(account.total() == 0 && all.by_caller.is_empty());
    }
}
