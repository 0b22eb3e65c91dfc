//! The client's requests in progress: their waiting clients, and the streams of their answers.
//!
//! | file | contents |
//! | --- | --- |
//! | `call` | one request: its waiting client, and its state at the server |
//! | `call_progress` | its progress tokens |
//! | `call_rounds` | the rounds that the server has asked in it |
//! | `candidates` | the calls that a question may be for |
//! | `request` | the request of a call, with the parts that depend on its kind |
//! | `index` | the calls by the names under which frames mean them |
//! | `summary` | the thing that it calls, read out of the request |

mod call;
mod call_progress;
mod call_rounds;
mod candidates;
mod index;
mod request;
mod summary;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use mcp_elicit_core::wire::{CallDefect, Id};
use rustc_hash::FxHashMap;

use crate::parts::call_budget::CallBudget;
use crate::parts::progress_seen::ProgressSeen;
use crate::parts::server_round::Round;
use crate::{AccessNumber, CallId, CallSummary, ServerForward, StreamId, Timestamp};
pub(crate) use call::{Call, Finished};
pub(crate) use call_progress::CallProgress;
pub(crate) use candidates::OTHERS;
use index::CallIndex;
pub(crate) use request::{AskingCall, Request};
pub(crate) use summary::{progress_token, summary, summary_for_rules, too_long_target};

/// All requests in progress.
pub(crate) struct Calls {
    budget: CallBudget,
    // The keys are the relay's own numbers, which no peer chooses.
    by_key: FxHashMap<CallId, Call>,
    by_upstream: HashMap<Id, CallId>,
    index: CallIndex,
    last: u64,
    /// The number of calls in which the server could ask and that it has finished.
    ended: u64,
}

impl Calls {
    /// Creates an empty table; the first call gets the key after `last`.
    pub(crate) fn after(last: u64, budget: CallBudget) -> Self {
        Self {
            budget,
            by_key: FxHashMap::default(),
            by_upstream: HashMap::new(),
            index: CallIndex::default(),
            last,
            ended: 0,
        }
    }

    /// Returns the limits on the client's open requests.
    pub(crate) fn budget(&self) -> &CallBudget {
        &self.budget
    }

    /// Adds a call that goes to the server under its upstream id. Returns `None` if another call has that id.
    pub(crate) fn insert(&mut self, mut call: Call) -> Option<CallId> {
        call.recount();
        let key = CallId(self.last + 1);
        match self.by_upstream.entry(call.upstream_id().clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(free) => free.insert(key),
        };
        self.last += 1;
        self.index.add(key, &call);
        self.by_key.insert(key, call);
        Some(key)
    }

    /// Returns a number that no call has.
    pub(crate) fn next_key(&mut self) -> CallId {
        self.last += 1;
        CallId(self.last)
    }

    /// Adds a call that the server does not know of.
    pub(crate) fn insert_unsent(&mut self, mut call: Call) -> CallId {
        call.end_upstream();
        call.recount();
        self.last += 1;
        let key = CallId(self.last);
        self.index.add(key, &call);
        self.by_key.insert(key, call);
        key
    }

    pub(crate) fn get(&self, key: CallId) -> Option<&Call> {
        self.by_key.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: CallId) -> Option<&mut Call> {
        self.by_key.get_mut(&key)
    }

    pub(crate) fn remove(&mut self, key: CallId) -> Option<Call> {
        let call = self.by_key.remove(&key)?;
        if call.has_upstream_id() {
            self.ended += u64::from(call.kind().is_some());
            self.by_upstream.remove(call.upstream_id());
        }
        self.index.remove(key, &call);
        Some(call)
    }

    /// Detaches the client from the call. Returns the stream on which it waited.
    pub(crate) fn detach(&mut self, key: CallId) -> Option<StreamId> {
        self.rename(key, Call::detach)?
    }

    /// Attaches a client that has made the call again with this id and waits on this stream. Returns `false` if there
    /// is no such call.
    pub(crate) fn attach(
        &mut self,
        key: CallId,
        now: Timestamp,
        stream: StreamId,
        id: Option<Id>,
    ) -> bool {
        let attach = |call: &mut Call| call.attach(now, stream, id);
        self.rename(key, attach).is_some()
    }

    /// Reads the call's progress token from its request, unless it was read before. The gateway reports progress of its
    /// own on it from now on, above what the server has reported before.
    pub(crate) fn learn_token(&mut self, key: CallId, seen: &ProgressSeen) {
        self.rename(key, Call::learn_token);
        if let Some(call) = self.by_key.get_mut(&key)
            && let Some(token) = call.progress().upstream_token()
            && let Some(last) = seen.last(token)
        {
            call.progress_mut().continue_above(last);
        }
    }

    /// Returns `true` for the call of a task of the gateway.
    pub(crate) fn is_of_task(&self, key: CallId) -> bool {
        let stream = self.get(key).and_then(Call::stream);
        stream.is_some_and(StreamId::is_of_task)
    }

    /// Changes a call, and updates its names in the index.
    fn rename<T>(&mut self, key: CallId, change: impl FnOnce(&mut Call) -> T) -> Option<T> {
        let call = self.by_key.get_mut(&key)?;
        self.index.remove(key, call);
        let changed = change(call);
        self.index.add(key, call);
        Some(changed)
    }

    /// Returns the call that the server answers with this id.
    pub(crate) fn by_upstream(&self, id: &Id) -> Option<CallId> {
        self.by_upstream.get(id).copied()
    }

    /// Returns the only request that the server has not answered, if there is exactly one.
    pub(crate) fn only_at_server(&self) -> Option<CallId> {
        let mut all = self.by_upstream.values();
        let only = all.next().copied();
        only.filter(|_| all.next().is_none())
    }

    /// Sends the call to the server again, under another id. Returns `false` if another call has that id.
    pub(crate) fn renew(&mut self, key: CallId, id: Id) -> bool {
        self.end_upstream(key);
        let Some(call) = self.by_key.get_mut(&key) else {
            return false;
        };
        let Entry::Vacant(free) = self.by_upstream.entry(id.clone()) else {
            return false;
        };
        free.insert(key);
        call.sent_again(id);
        true
    }

    /// Records that the server has finished with this upstream id; the call continues.
    pub(crate) fn end_upstream(&mut self, key: CallId) {
        if let Some(call) = self.by_key.get_mut(&key)
            && call.end_upstream()
        {
            self.ended += u64::from(call.kind().is_some());
            self.by_upstream.remove(call.upstream_id());
        }
    }

    /// Returns a number that increases when the server has finished with a call in which it may ask.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// Returns `true` if the server is still processing the call.
    pub(crate) fn is_upstream(&self, key: CallId) -> bool {
        self.get(key).is_some_and(Call::is_upstream)
    }

    /// Returns the call that the client knows by this id, preferably one with a waiting client.
    pub(crate) fn by_client(&self, id: &Id) -> Option<CallId> {
        self.index.by_client(id)
    }

    /// Returns the calls that wait on this stream.
    pub(crate) fn on_stream(&self, stream: StreamId) -> Vec<CallId> {
        self.index.on_stream(stream)
    }

    /// Returns the call whose progress the server reports with this token.
    pub(crate) fn by_upstream_token(&self, token: &Id) -> Option<CallId> {
        self.index.by_upstream_token(token)
    }

    /// Returns `true` if the server may be asking in this call now.
    pub(crate) fn may_ask(&self, key: CallId) -> bool {
        self.get(key).is_some_and(Call::may_ask)
    }

    /// Returns the calls in which the server may be asking now, in no order.
    pub(crate) fn asking(&self) -> impl Iterator<Item = (CallId, &Call)> {
        let calls = self.by_key.iter().map(|(key, call)| (*key, call));
        calls.filter(|(_, call)| call.may_ask())
    }

    /// Reads the summary of each call in which the server may be asking now, unless it was read before.
    pub(crate) fn read_asking(&mut self) {
        for call in self.by_key.values_mut().filter(|call| call.may_ask()) {
            call.summary();
        }
    }

    /// Returns the oldest call in which the server may be asking now, of those up to `newest` and without `except`.
    pub(crate) fn oldest_asking(&self, newest: CallId, except: CallId) -> Option<CallId> {
        let asking = self.asking().map(|(key, _)| key);
        asking.filter(|key| *key <= newest && *key != except).min()
    }

    /// Returns the summaries of these calls, without those that cannot be read.
    pub(crate) fn summaries(&mut self, keys: &[CallId]) -> Vec<CallSummary> {
        let summary = |key: &CallId| self.get_mut(*key).and_then(Call::summary).cloned();
        keys.iter().filter_map(summary).collect()
    }

    /// Returns the targets of these calls, each once.
    pub(crate) fn targets(&mut self, keys: &[CallId]) -> Vec<String> {
        let mut targets: Vec<String> = Vec::new();
        for key in keys {
            let summary = self.get_mut(*key).and_then(Call::summary);
            if let Some(summary) = summary
                && !targets.contains(&summary.target)
            {
                targets.push(summary.target.clone());
            }
        }
        targets
    }

    /// Returns the reason why the first unreadable one of these calls cannot be read in full.
    pub(crate) fn defect_in(&mut self, keys: &[CallId]) -> Option<CallDefect> {
        let mut keys = keys.iter();
        keys.find_map(|key| self.get_mut(*key).and_then(Call::unreadable))
    }

    /// Takes out the records whose answers go to the server when the call is made again.
    pub(crate) fn take_deliveries(&mut self, key: CallId) -> Vec<String> {
        let call = self.get_mut(key);
        call.map_or_else(Vec::new, |call| call.rounds_mut().take_deliveries())
    }

    /// Returns the oldest call with a round of which a request that is not a question was pushed to the client under
    /// this id.
    pub(crate) fn by_pushed(&self, id: &Id) -> Option<CallId> {
        let has_pushed = |call: &Call| call.round().is_some_and(|round| round.has_pushed(id));
        let calls = self.by_key.iter();
        let pushed = calls.filter(|(_, call)| has_pushed(call));
        pushed.map(|(key, _)| *key).min()
    }

    /// Returns the number of calls that wait at clients for the response to a request that is not a question.
    pub(crate) fn at_client(&self) -> usize {
        let waits = |call: &&Call| {
            call.stream().is_none()
                && call.asks().is_empty()
                && call.round().is_some_and(Round::waits_for_others)
        };
        self.by_key.values().filter(waits).count()
    }

    /// Returns the stream of a server's frame in the client's session: that of the call that it came with, or the
    /// session's.
    pub(crate) fn stream_in_session(&self, via: Option<CallId>) -> StreamId {
        let stream = via.and_then(|key| self.get(key)?.stream());
        stream.unwrap_or(StreamId::SESSION)
    }

    /// Returns the route of a server's frame on [`stream_in_session`](Self::stream_in_session).
    pub(crate) fn forward_in_session(&self, via: Option<CallId>) -> ServerForward {
        ServerForward::AsIs {
            stream: self.stream_in_session(via),
            last: false,
        }
    }

    /// Returns the keys of the matching calls, oldest first.
    pub(crate) fn keys(&self, fits: impl Fn(&Call) -> bool) -> Vec<CallId> {
        let mut keys: Vec<_> = self
            .by_key
            .iter()
            .filter(|(_, call)| fits(call))
            .map(|(key, _)| *key)
            .collect();
        keys.sort_unstable();
        keys
    }

    /// Returns the access token of each call, in no order.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = AccessNumber> {
        self.by_key.values().map(Call::access)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the number of names under which calls are found.
    #[cfg(test)]
    pub(crate) fn names(&self) -> usize {
        self.index.len()
    }

    /// Checks that the derived tables agree with the calls.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let mut index = CallIndex::default();
        for (key, call) in &self.by_key {
            index.add(*key, call);
            call.check();
        }
        assert_eq!(self.index, index);
    }
}
