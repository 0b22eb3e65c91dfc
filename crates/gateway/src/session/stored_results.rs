//! The bytes of stored results that no client waits for, of each caller and of all: those of tasks, and those of calls
//! that were handed back or given up. They stay when their session has ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_relay::{ByteLimit, CallId};

use crate::byte_account::{ByteShare, SharedByteAccount};

/// The bytes that the results of all callers may have. One caller may have a quarter of what the others leave.
const ALL: usize = 256 * 1024 * 1024;
/// The bytes that the results of a caller may always have.
const ALWAYS: usize = 64 * 1024;
/// The bytes that a result takes besides its own, roughly.
const ROW: usize = 4_096;
/// The name of the limit in refusals.
const NAME: &str = "stored-results";

static ACCOUNT: SharedByteAccount = SharedByteAccount::new(ALL, 4, ALWAYS);
static RESULTS: LazyLock<Mutex<StoredResults>> =
    LazyLock::new(|| Mutex::new(StoredResults::new(&ACCOUNT)));

fn all() -> MutexGuard<'static, StoredResults> {
    RESULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a result of this caller that is stored from now on until its time is over.
///
/// # Errors
/// If the caller has too many: then nothing is counted.
pub(super) fn count(
    caller: &str,
    bytes: usize,
    now: Timestamp,
    until: Timestamp,
) -> Result<StoredResult, ByteLimit> {
    all().count(caller, bytes, now, until)
}

/// A counted result: the end of its time, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredResult(Timestamp, u64);

/// The counted results of a session's calls.
#[derive(Default)]
pub(super) struct ResultsOfCalls(Mutex<HashMap<CallId, StoredResult>>);

impl ResultsOfCalls {
    fn by_call(&self) -> MutexGuard<'_, HashMap<CallId, StoredResult>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the counted result of a call.
    pub(super) fn add(&self, call: CallId, result: StoredResult) {
        self.by_call().insert(call, result);
    }

    /// Ends the count of the result of this caller's call, if it has one.
    pub(super) fn end(&self, caller: &str, call: CallId) {
        if let Some(result) = self.by_call().remove(&call) {
            all().end(caller, result);
        }
    }
}

struct StoredResults {
    account: &'static SharedByteAccount,
    by_caller: HashMap<String, OfCaller>,
    last: u64,
}

struct OfCaller {
    share: ByteShare,
    /// The bytes of each result, the one whose time ends next first.
    stored: BTreeMap<StoredResult, usize>,
}

impl StoredResults {
    fn new(account: &'static SharedByteAccount) -> Self {
        Self {
            account,
            by_caller: HashMap::new(),
            last: 0,
        }
    }

    fn count(
        &mut self,
        caller: &str,
        bytes: usize,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<StoredResult, ByteLimit> {
        self.expire(now);
        let bytes = bytes.saturating_add(ROW);
        let known = self.by_caller.entry(caller.to_owned());
        let known = known.or_insert_with(|| OfCaller {
            share: ByteShare::new(self.account),
            stored: BTreeMap::new(),
        });
        known.share.add(bytes);
        if known.share.is_exceeded() {
            known.share.remove(bytes);
            return Err(ByteLimit {
                name: NAME,
                most: known.share.most(),
            });
        }
        self.last += 1;
        let result = StoredResult(until, self.last);
        known.stored.insert(result, bytes);
        Ok(result)
    }

    fn end(&mut self, caller: &str, result: StoredResult) {
        if let Some(known) = self.by_caller.get_mut(caller)
            && let Some(bytes) = known.stored.remove(&result)
        {
            known.share.remove(bytes);
        }
    }

    fn expire(&mut self, now: Timestamp) {
        for known in self.by_caller.values_mut() {
            while let Some(next) = known.stored.first_entry()
                && next.key().0 <= now
            {
                known.share.remove(next.remove());
            }
        }
        self.by_caller.retain(|_, known| !known.stored.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: usize = 4 * 1024 * 1024;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn results() -> StoredResults {
        StoredResults::new(Box::leak(Box::new(SharedByteAccount::new(ALL, 4, ALWAYS))))
    }

    #[test]
    fn a_caller_has_so_many_bytes_of_results_until_their_time_is_over() {
        let mut all = results();
        let mut stored = 0;
        while all.count("a", RESULT, at(1), at(10)).is_ok() {
            stored += RESULT;
        }
        assert!((ALL / 5..=ALL / 4).contains(&stored), "{stored}");
        let limit = all.count("a", RESULT, at(9), at(10)).unwrap_err();
        assert_eq!((limit.name, limit.most), (NAME, ALL / 4));
        // Others have theirs.
        assert!(all.count("b", RESULT, at(9), at(12)).is_ok());
        assert!(all.count("a", RESULT, at(10), at(11)).is_ok());
        let total = all.account.total();
        assert!(total > 2 * RESULT && total < 3 * RESULT);
        all.expire(at(12));
        assert!(all.account.total() == 0 && all.by_caller.is_empty());
    }

    #[test]
    fn a_result_that_was_fetched_leaves_its_room_to_others() {
        let mut all = results();
        let mut counted = Vec::new();
        while let Ok(result) = all.count("a", RESULT, at(1), at(10)) {
            counted.push(result);
        }
        all.end("a", counted[0]);
        all.end("a", counted[0]);
        all.end("b", counted[1]);
        assert!(all.count("a", RESULT, at(1), at(9)).is_ok());
        assert!(all.count("a", RESULT, at(1), at(9)).is_err());
        all.expire(at(10));
        assert_eq!(all.account.total(), 0);
    }
}
