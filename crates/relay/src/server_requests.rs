//! The server's requests that went to the client and are not questions (sampling, roots, ping).

use std::collections::HashSet;

use mcp_elicit_core::wire::Id;

/// The number of these requests that may wait for the client.
const REQUESTS: usize = 1_024;

/// The ids of the requests that wait for the client.
#[derive(Default)]
pub(crate) struct ServerRequests {
    open: HashSet<Id>,
}

impl ServerRequests {
    /// Notes a request. `false` when too many wait.
    pub(crate) fn open(&mut self, id: Id) -> bool {
        let free = self.open.len() < REQUESTS;
        if free {
            self.open.insert(id);
        }
        free
    }

    /// Ends a request, which was answered or cancelled. `false` where none waits under this id.
    pub(crate) fn end(&mut self, id: &Id) -> bool {
        self.open.remove(id)
    }
}
