//! Calls without a waiting client, and calls that follow one of another session.

use std::collections::{HashMap, VecDeque};

use mcp_elicit_core::wire::Id;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::lookups::Lookups;
use crate::{CallId, CallKind};

/// The calls of this session without a waiting client, and the lookups of other sessions' calls.
#[derive(Default)]
pub(crate) struct Unattended {
    /// By the digest of the call, oldest first.
    by_digest: HashMap<String, VecDeque<CallId>>,
    /// Those in which nothing was asked when they were looked at last.
    quiet: FxHashSet<CallId>,
    /// Calls that wait for the result of the same call in another session.
    following: FxHashMap<CallId, Followed>,
    /// `true` if the record has calls without a waiting client.
    in_record: bool,
    lookups: Lookups<MadeCall>,
}

/// The same call in another session.
struct Followed {
    digest: String,
    /// The address at which a person can answer its question.
    link: Option<String>,
}

/// A call that is looked up in the record.
pub(crate) struct MadeCall {
    pub(crate) kind: CallKind,
    /// The id that the client knows it by.
    pub(crate) id: Id,
    pub(crate) digest: String,
    pub(crate) request: IndexedFrame,
}

impl Unattended {
    /// Adds a call without a waiting client.
    pub(crate) fn add(&mut self, digest: String, call: CallId) {
        self.by_digest.entry(digest).or_default().push_back(call);
    }

    /// Removes a call that a client waits for again, or that has ended.
    pub(crate) fn remove(&mut self, call: CallId) {
        self.quiet.remove(&call);
        self.by_digest.retain(|_, calls| {
            calls.retain(|known| *known != call);
            !calls.is_empty()
        });
    }

    /// Records whether something is asked in a call. Returns `true` if nothing was when it was looked at last.
    pub(crate) fn set_quiet(&mut self, call: CallId, is_quiet: bool) -> bool {
        if is_quiet {
            !self.quiet.insert(call)
        } else {
            self.quiet.remove(&call)
        }
    }

    /// Returns the calls of this digest, oldest first.
    pub(crate) fn of(&self, digest: &str) -> impl Iterator<Item = CallId> {
        self.by_digest.get(digest).into_iter().flatten().copied()
    }

    /// Returns `true` if no client waits for this call of the session.
    pub(crate) fn has(&self, call: CallId) -> bool {
        self.by_digest.values().any(|calls| calls.contains(&call))
    }

    /// Returns `true` while no call of this session is unattended.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }

    /// Makes the call of this digest wait for the result of the same call in another session, whose question a person can
    /// answer at this address.
    pub(crate) fn follow(&mut self, call: CallId, digest: String, link: Option<String>) {
        self.following.insert(call, Followed { digest, link });
    }

    /// Returns the address at which a person can answer the question that this call waits for in another session.
    pub(crate) fn followed_link(&self, call: CallId) -> Option<String> {
        self.following.get(&call)?.link.clone()
    }

    /// Returns `true` while the call waits for another session's.
    pub(crate) fn follows(&self, call: CallId) -> bool {
        self.following.contains_key(&call)
    }

    /// Ends the wait for another session's call. Returns the digest of the call; `None` if it did not wait.
    pub(crate) fn end_following(&mut self, call: CallId) -> Option<String> {
        Some(self.following.remove(&call)?.digest)
    }

    /// Records whether the record has calls without a waiting client.
    pub(crate) fn record_has_calls(&mut self, known: bool) {
        self.in_record = known;
    }

    /// Returns `true` if the record has calls without a waiting client.
    pub(crate) fn is_in_record(&self) -> bool {
        self.in_record
    }

    /// Returns the calls that are being looked up in the record.
    pub(crate) fn lookups_mut(&mut self) -> &mut Lookups<MadeCall> {
        &mut self.lookups
    }
}
