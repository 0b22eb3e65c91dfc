//! One session of a client, or what the requests of one caller in the era of rounds share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_elicit_record::clock;
use mcp_elicit_relay::Event;

use super::eviction::Evictable;
use super::header_checks::RequestCredentials;
use crate::callers::SessionCaller;
use crate::listener::response_streams::ResponseStreams;
use crate::session::child_pool::Pool;

/// The name of a session in the table of its server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum SessionName {
    /// Of a client that opened it: the value of `Mcp-Session-Id`.
    Opened(String),
    /// Of the requests of one caller in the era of rounds, which no client can name.
    Rounds {
        /// The binding of the caller.
        principal: String,
        /// The digest of the credentials that its requests pass to the server.
        credentials: String,
    },
}

/// One session of a client, or the shared state of one principal's rounds-era requests.
pub(super) struct ClientSession {
    pub(super) pool: Arc<Pool>,
    pub(super) client: Arc<ResponseStreams>,
    /// The binding of the caller.
    pub(super) principal: String,
    /// The caller, with the proofs of its requests.
    pub(super) caller: Arc<SessionCaller>,
    /// The credentials of its requests that are forwarded to the server.
    pub(super) credentials: RequestCredentials,
    /// The digest of those of a caller that may serve several users, which all requests of the session pass.
    pub(super) passed: String,
    pub(super) stream_ids: AtomicU64,
    /// The time of the last use, in milliseconds since 1970.
    pub(super) used: AtomicU64,
}

impl Evictable for ClientSession {
    fn caller(&self) -> &str {
        &self.principal
    }

    fn last_used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn has_work(&self) -> bool {
        self.pool.open() != (0, 0)
    }

    fn is_listened_to(&self) -> bool {
        self.client.is_listened_to()
    }
}

impl ClientSession {
    /// Ends the session and all its streams, and tells waiting clients that no answer will come.
    pub(super) fn end(&self) {
        self.pool.tell_all(|| Event::SessionEnded);
        self.client.end();
        self.pool.end();
    }

    /// Records that it is in use.
    pub(super) fn touch(&self) {
        self.used.store(clock::now().as_millis(), Ordering::Relaxed);
    }
}
