//! The ids of forwarded requests: the gateway's own, and those chosen by a peer if they are free.
//!
//! An id names one request on a connection. If two requests shared one, the answer to the first would end the second,
//! and a question would be attributed to another call. Ids are compared by their meaning, never as written.

use mcp_elicit_core::wire::Id;

use crate::Relay;
use crate::frame_edit::may_be_own;

impl Relay {
    /// Returns a new id for a request of the gateway's own, to the server or to the client.
    pub(crate) fn new_id(&mut self) -> Id {
        loop {
            let id = self.effects.next_id();
            if self.is_free_at_server(&id) && self.is_free_at_client(&id) {
                return id;
            }
        }
    }

    /// Returns a new id for a request of the client at the server; `None` if its own is free.
    pub(crate) fn other_id_at_server(&mut self, id: &Id) -> Option<Id> {
        let has_own = !may_be_own(id) && self.is_free_at_server(id);
        (!has_own).then(|| self.new_id())
    }

    /// Returns a new id for a request of the server at the client; `None` if its own is free.
    pub(crate) fn other_id_at_client(&mut self, id: &Id) -> Option<Id> {
        let has_own = !may_be_own(id) && self.is_free_at_client(id);
        (!has_own).then(|| self.new_id())
    }

    /// Returns a new progress token for a call at the server; `None` if the client's own is free.
    pub(crate) fn other_token(&mut self, token: &Id) -> Option<Id> {
        if !may_be_own(token) && self.calls.by_upstream_token(token).is_none() {
            return None;
        }
        Some(self.new_token())
    }

    /// Returns a new progress token of the gateway's own, for a call at the server.
    pub(crate) fn new_token(&mut self) -> Id {
        loop {
            let own = self.new_id();
            if self.calls.by_upstream_token(&own).is_none() {
                return own;
            }
        }
    }

    fn is_free_at_server(&self, id: &Id) -> bool {
        self.calls.by_upstream(id).is_none()
            && !self.past_calls.has(id)
            && !self.opening_ids.has(id)
    }

    /// Returns `true` if no waiting request at the client has this id.
    pub(crate) fn is_free_at_client(&self, id: &Id) -> bool {
        self.asks.by_client_id(id).is_none() && !self.server_requests.has(id)
    }
}
