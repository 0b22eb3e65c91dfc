//! The server's requests that went to the client and are not questions (sampling, roots, ping).

use std::collections::HashMap;

use mcp_elicit_core::wire::Id;

/// The number of these requests that may wait for the client.
const REQUESTS: usize = 1_024;

/// The ids of the requests that wait for the client.
#[derive(Default)]
pub(crate) struct ServerRequests {
    /// The server's id of each, by the one that the client knows.
    open: HashMap<Id, Id>,
}

impl ServerRequests {
    /// Returns `true` while no more requests may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= REQUESTS
    }

    /// Records a request of the server that the client knows by the free id `shown`.
    pub(crate) fn open(&mut self, shown: Id, id: Id) {
        self.open.insert(shown, id);
    }

    /// Returns `true` if a request waits that the client knows by this id.
    pub(crate) fn has(&self, shown: &Id) -> bool {
        self.open.contains_key(shown)
    }

    /// Ends a request that the client has answered. Returns the server's id; `None` if none waits.
    pub(crate) fn answered(&mut self, shown: &Id) -> Option<Id> {
        self.open.remove(shown)
    }

    /// Returns `true` if a request with this id of the server waits.
    pub(crate) fn is_of_server(&self, id: &Id) -> bool {
        self.open.values().any(|known| known == id)
    }

    /// Ends a request that the server cancels. Returns the id that the client knows it by; `None` if none waits.
    pub(crate) fn cancelled(&mut self, id: &Id) -> Option<Id> {
        let shown = self.open.iter().find(|(_, known)| *known == id);
        let shown = shown.map(|(shown, _)| shown.clone())?;
        self.open.remove(&shown);
        Some(shown)
    }
}
