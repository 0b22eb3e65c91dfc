//! The calls that wait for a person, by their contents: the same call made again may show that its client has given up
//! the first.

use std::collections::{BTreeSet, HashMap};

use rustc_hash::FxHashMap;

use crate::CallId;
use crate::parts::calls::Call;

/// The calls that wait for a person, or have waited for one.
#[derive(Default)]
pub(crate) struct WaitingCalls {
    known: FxHashMap<CallId, Contents>,
    /// The number of calls of each target.
    targets: HashMap<String, usize>,
    by_digest: HashMap<String, BTreeSet<CallId>>,
}

/// The contents of a call.
struct Contents {
    target: String,
    digest: String,
}

impl WaitingCalls {
    /// Records that a call waits for a person, or may, unless it cannot be read.
    pub(crate) fn add_call(&mut self, key: CallId, call: Option<&mut Call>) {
        if let Some(summary) = call.and_then(Call::summary) {
            self.add(key, &summary.target, &summary.digest);
        }
    }

    /// Adds a call, unless it is known.
    fn add(&mut self, call: CallId, target: &str, digest: &str) {
        if self.known.contains_key(&call) {
            return;
        }
        let contents = Contents {
            target: target.to_owned(),
            digest: digest.to_owned(),
        };
        *self.targets.entry(contents.target.clone()).or_default() += 1;
        let alike = self.by_digest.entry(contents.digest.clone());
        alike.or_default().insert(call);
        self.known.insert(call, contents);
    }

    /// Removes a call that has ended.
    pub(crate) fn remove(&mut self, call: CallId) {
        let Some(Contents { target, digest }) = self.known.remove(&call) else {
            return;
        };
        if let Some(count) = self.targets.get_mut(&target) {
            *count -= 1;
            if *count == 0 {
                self.targets.remove(&target);
            }
        }
        if let Some(alike) = self.by_digest.get_mut(&digest) {
            alike.remove(&call);
            if alike.is_empty() {
                self.by_digest.remove(&digest);
            }
        }
    }

    /// Returns `true` while there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns `true` if a call of this target is known.
    pub(crate) fn has_target(&self, target: &str) -> bool {
        self.targets.contains_key(target)
    }

    /// Returns the calls of this digest, oldest first.
    pub(crate) fn of(&self, digest: &str) -> impl Iterator<Item = CallId> {
        self.by_digest.get(digest).into_iter().flatten().copied()
    }

    /// Returns the number of names under which calls are found.
    #[cfg(test)]
    pub(crate) fn names(&self) -> usize {
        self.known.len() + self.targets.len() + self.by_digest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_its_contents_until_it_has_ended() {
        let mut calls = WaitingCalls::default();
        calls.add(CallId(1), "deploy", "d1");
        calls.add(CallId(2), "deploy", "d2");
        calls.add(CallId(1), "deploy", "d1");
        assert!(calls.has_target("deploy") && !calls.has_target("read"));
        assert_eq!(calls.of("d1").collect::<Vec<_>>(), [CallId(1)]);
        calls.remove(CallId(1));
        calls.remove(CallId(1));
        assert_eq!(calls.of("d1").count(), 0);
        assert!(calls.has_target("deploy"));
        calls.remove(CallId(2));
        assert!(calls.is_empty() && calls.names() == 0);
    }
}
