//! Calls without a waiting client, and calls that follow one of another session.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::parts::call_budget::Permit;
use crate::parts::indexed_frame::IndexedFrame;
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
    /// Requests that are being looked up in the record.
    lookups: Vec<Lookup>,
}

/// A request that is being looked up in the record.
struct Lookup {
    number: CallId,
    stream: StreamId,
    request: IndexedFrame,
    /// `false` once its client has closed the stream.
    is_waited_for: bool,
    permit: Permit,
}

/// A request that was looked up in the record.
pub(crate) struct EndedLookup {
    /// The stream that it came on.
    pub(crate) stream: StreamId,
    pub(crate) request: IndexedFrame,
    /// Its permit; `None` if its client has closed the stream, and so no longer waits.
    pub(crate) permit: Option<Permit>,
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

    /// Records that a request, which came on this stream, is being looked up under this number. It holds the permit.
    pub(crate) fn begin_lookup(
        &mut self,
        number: CallId,
        stream: StreamId,
        request: IndexedFrame,
        mut permit: Permit,
    ) {
        permit.set_bytes(request.size());
        self.lookups.push(Lookup {
            number,
            stream,
            request,
            is_waited_for: true,
            permit,
        });
    }

    /// Ends the lookup of this number; `None` if it has ended before.
    pub(crate) fn end_lookup(&mut self, number: CallId) -> Option<EndedLookup> {
        let mut all = self.lookups.iter();
        let at = all.position(|known| known.number == number)?;
        let ended = self.lookups.swap_remove(at);
        Some(EndedLookup {
            stream: ended.stream,
            request: ended.request,
            permit: ended.is_waited_for.then_some(ended.permit),
        })
    }

    /// Records that a stream was closed; its lookups hold their requests until the record has answered.
    pub(crate) fn stream_closed(&mut self, stream: StreamId) {
        for lookup in &mut self.lookups {
            lookup.is_waited_for &= lookup.stream != stream;
        }
    }
}
