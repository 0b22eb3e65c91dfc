//! The index of calls by the names in frames.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash};

use mcp_elicit_core::wire::Id;
use rustc_hash::FxHashMap;

use super::call::Call;
use crate::{CallId, StreamId};

/// The calls by the client's id, by the server's progress token, and by the stream on which the client waits. Several
/// calls may share each.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CallIndex {
    /// Calls with a waiting client sort after those without, and later ones after earlier.
    of_client: HashMap<Id, BTreeSet<(bool, CallId)>>,
    with_token: HashMap<Id, BTreeSet<CallId>>,
    // The numbers of streams are the gateway's own.
    on_stream: FxHashMap<StreamId, BTreeSet<CallId>>,
}

impl CallIndex {
    /// Adds a call under all of its names.
    pub(super) fn add(&mut self, key: CallId, call: &Call) {
        let waiting = (call.stream().is_some(), key);
        let known = self.of_client.entry(call.client_id().clone());
        known.or_default().insert(waiting);
        if let Some(token) = call.progress().upstream_token() {
            let known = self.with_token.entry(token.clone());
            known.or_default().insert(key);
        }
        if let Some(stream) = call.stream() {
            self.on_stream.entry(stream).or_default().insert(key);
        }
    }

    /// Removes a call, which must be unchanged since it was added.
    pub(super) fn remove(&mut self, key: CallId, call: &Call) {
        let waiting = (call.stream().is_some(), key);
        take(&mut self.of_client, call.client_id(), &waiting);
        if let Some(token) = call.progress().upstream_token() {
            take(&mut self.with_token, token, &key);
        }
        if let Some(stream) = call.stream() {
            take(&mut self.on_stream, &stream, &key);
        }
    }

    /// Returns the call that the client knows by this id: preferably one with a waiting client, and of those the last.
    pub(super) fn by_client(&self, id: &Id) -> Option<CallId> {
        self.of_client.get(id)?.last().map(|(_, key)| *key)
    }

    /// Returns the oldest call with this progress token.
    pub(super) fn by_upstream_token(&self, token: &Id) -> Option<CallId> {
        self.with_token.get(token)?.first().copied()
    }

    /// Returns the calls that wait on this stream, oldest first.
    pub(super) fn on_stream(&self, stream: StreamId) -> Vec<CallId> {
        let calls = self.on_stream.get(&stream).into_iter().flatten();
        calls.copied().collect()
    }

    /// Returns the number of names that are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.of_client.len() + self.with_token.len() + self.on_stream.len()
    }
}

fn take<K: Hash + Eq, V: Ord, S: BuildHasher>(
    calls: &mut HashMap<K, BTreeSet<V>, S>,
    name: &K,
    call: &V,
) {
    if let Some(named) = calls.get_mut(name) {
        named.remove(call);
        if named.is_empty() {
            calls.remove(name);
        }
    }
}
