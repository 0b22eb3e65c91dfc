//! Calls without a waiting client, and calls that follow one of another session.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::parts::call_budget::Permit;
use crate::{CallId, StreamId};

/// The calls of this session without a waiting client, and the lookups of other sessions' calls.
#[derive(Default)]
pub(crate) struct Unattended {
    /// By the digest of the call, oldest first.
    by_digest: HashMap<String, VecDeque<CallId>>,
    /// Calls that wait for the result of the same call in another session, with the address at which a person can answer
    /// its question.
    following: FxHashMap<CallId, Option<String>>,
    /// `true` if the record has calls without a waiting client.
    in_record: bool,
    /// Calls that are being looked up in the record.
    lookups: Vec<Lookup>,
}

/// A call that is being looked up in the record.
struct Lookup {
    stream: StreamId,
    /// `false` once its client has closed the stream.
    is_waited_for: bool,
    permit: Permit,
}

impl Unattended {
    /// Adds a call without a waiting client.
    pub(crate) fn add(&mut self, digest: String, call: CallId) {
        self.by_digest.entry(digest).or_default().push_back(call);
    }

    /// Removes a call that a client waits for again, or that has ended.
    pub(crate) fn remove(&mut self, call: CallId) {
        self.by_digest.retain(|_, calls| {
            calls.retain(|known| *known != call);
            !calls.is_empty()
        });
    }

    /// Returns the calls of this digest, oldest first.
    pub(crate) fn of(&self, digest: &str) -> impl Iterator<Item = CallId> {
        self.by_digest.get(digest).into_iter().flatten().copied()
    }

    /// Returns `true` while no call of this session is unattended.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }

    /// Makes the call wait for the result of the same call in another session, whose question a person can answer at this
    /// address.
    pub(crate) fn follow(&mut self, call: CallId, link: Option<String>) {
        self.following.insert(call, link);
    }

    /// Returns the address at which a person can answer the question that this call waits for in another session.
    pub(crate) fn followed_link(&self, call: CallId) -> Option<String> {
        self.following.get(&call).cloned().flatten()
    }

    /// Returns `true` while the call waits for another session's.
    pub(crate) fn follows(&self, call: CallId) -> bool {
        self.following.contains_key(&call)
    }

    /// Ends the wait for another session's call. Returns `false` if the call did not wait.
    pub(crate) fn end_following(&mut self, call: CallId) -> bool {
        self.following.remove(&call).is_some()
    }

    /// Records whether the record has calls without a waiting client.
    pub(crate) fn record_has_calls(&mut self, known: bool) {
        self.in_record = known;
    }

    /// Returns `true` if the record has calls without a waiting client.
    pub(crate) fn is_in_record(&self) -> bool {
        self.in_record
    }

    /// Records that the call on this stream is being looked up.
    pub(crate) fn begin_lookup(&mut self, stream: StreamId, permit: Permit) {
        self.lookups.push(Lookup {
            stream,
            is_waited_for: true,
            permit,
        });
    }

    /// Ends a lookup. Returns the permit of its call; `None` if no client waits for it.
    pub(crate) fn end_lookup(&mut self, stream: StreamId) -> Option<Permit> {
        let mut all = self.lookups.iter();
        let at = all.position(|known| known.stream == stream)?;
        let ended = self.lookups.swap_remove(at);
        ended.is_waited_for.then_some(ended.permit)
    }

    /// Records that a stream was closed; its lookups hold their requests until the record has answered.
    pub(crate) fn stream_closed(&mut self, stream: StreamId) {
        for lookup in &mut self.lookups {
            lookup.is_waited_for &= lookup.stream != stream;
        }
    }
}
