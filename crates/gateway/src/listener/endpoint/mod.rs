//! Clients over Streamable HTTP: sessions with streams in the pushed era, single requests in the rounds era.

pub(crate) mod batch;
mod callers;
mod client_session;
mod eviction;
mod forwarding;
mod handlers;
pub(crate) mod header_checks;
mod request;
mod response;
mod sessions;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use mcp_elicit_record::clock;
use serde_json::json;
use tokio::runtime::Handle;

use crate::callers::ProvenCaller;
use crate::config::{ByteLimits, ConfiguredServer, UpstreamCredentials};
use crate::headers::SESSION;
use crate::listener::call_memory::CallMemory;
use crate::listener::origin_guard::OriginGuard;
use crate::listener::requests_at_work::{RequestKind, RequestsAtWork, TooMany, WorkPermit};
use crate::replaceable::Replaceable;
use crate::runtime::Runtime;
use crate::runtime::current_file::ServedServer;
use crate::transports::http_upstream::TokenExchange;
use callers::end_revoked_callers;
use client_session::{ClientSession, SessionName};
use eviction::SharedChildren;
pub(crate) use handlers::{Via, routes};
use header_checks::refusal;

/// The time after which an idle session is ended.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// The same for requests of the rounds era with a server that a later file defines otherwise: other requests go to that one.
const IDLE_ROUNDS: Duration = Duration::from_secs(15 * 60);
/// The time in which a request that came before a change of the file may open a session, in milliseconds.
const MAY_STILL_OPEN: u64 = 60_000;

/// The sessions of one server, by name.
type Sessions = HashMap<SessionName, Arc<ClientSession>>;

/// The evicted session, if any.
type Evicted = Option<Arc<ClientSession>>;

/// The parts that the endpoints of all servers share.
#[derive(Clone)]
pub(crate) struct EndpointContext {
    children: Arc<SharedChildren>,
    at_work: Arc<RequestsAtWork>,
    memory: Arc<CallMemory>,
}

impl EndpointContext {
    /// Creates the parts of a gateway with these limits.
    pub(crate) fn new(limits: &ByteLimits) -> Self {
        Self {
            children: Arc::default(),
            at_work: Arc::default(),
            memory: CallMemory::new(limits),
        }
    }

    /// Returns the bytes that the calls of all callers hold.
    pub(crate) fn call_bytes(&self) -> usize {
        self.memory.held()
    }

    /// Replaces the limits.
    pub(crate) fn set_limits(&self, limits: &ByteLimits) {
        self.memory.set_limits(limits);
    }
}

/// One server as HTTP clients see it.
pub(crate) struct McpEndpoint {
    runtime: Runtime,
    served: Arc<ServedServer>,
    /// The time, in milliseconds since 1970, since which a later file has another server in its place, or none: it gets no new
    /// session. 0 if there is none.
    retired_at: AtomicU64,
    origin_guard: OriginGuard,
    /// The exchange of callers' tokens for the server's.
    exchange: Option<Arc<TokenExchange>>,
    /// Its addresses, one of which must be an access token's audience.
    resources: Replaceable<[String]>,
    sessions: Mutex<Sessions>,
    children: Arc<SharedChildren>,
    at_work: Arc<RequestsAtWork>,
    memory: Arc<CallMemory>,
    tokio: Handle,
}

impl McpEndpoint {
    /// Creates the endpoint of a server for admitted callers. Must be called in a tokio runtime.
    pub(crate) fn new(
        runtime: Runtime,
        served: Arc<ServedServer>,
        origin_guard: OriginGuard,
        EndpointContext {
            children,
            at_work,
            memory,
        }: EndpointContext,
    ) -> Arc<Self> {
        let exchange = match &served.config.credentials {
            UpstreamCredentials::Exchange { resource, scopes } => {
                runtime.callers.token_exchange(resource, scopes)
            }
            UpstreamCredentials::Usual
            | UpstreamCredentials::Operator
            | UpstreamCredentials::Pass(_) => None,
        };
        let endpoint = Arc::new(Self {
            exchange,
            runtime,
            served,
            retired_at: AtomicU64::new(0),
            origin_guard,
            resources: Replaceable::default(),
            sessions: Mutex::default(),
            children,
            at_work,
            memory,
            tokio: Handle::current(),
        });
        let weak = Arc::downgrade(&endpoint);
        endpoint.children.add(weak.clone());
        if endpoint.runtime.callers.can_be_revoked() {
            tokio::spawn(end_revoked_callers(weak.clone()));
        }
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(60)).await;
                let Some(endpoint) = weak.upgrade() else {
                    return;
                };
                // Ending a session may wait for its driver.
                let ended = tokio::task::spawn_blocking(move || endpoint.end_idle()).await;
                if let Err(error) = ended {
                    tracing::error!(%error, "idle sessions could not be ended");
                }
            }
        });
        endpoint
    }

    /// Returns the server, with its parts in this process.
    pub(crate) fn served(&self) -> &Arc<ServedServer> {
        &self.served
    }

    fn server(&self) -> &ConfiguredServer {
        &self.served.config
    }

    /// Accepts access tokens for this address, too.
    pub(crate) fn add_resource(&self, url: &str) {
        self.resources.update(|known| {
            let is_new = !known.iter().any(|known| known == url);
            is_new.then(|| known.iter().cloned().chain([url.to_owned()]).collect())
        });
    }

    /// Leaves new sessions to the server of a later file.
    pub(crate) fn retire(&self) {
        let now = clock::now().as_millis().max(1);
        let set = Ordering::AcqRel;
        // The first time counts.
        let _before = self
            .retired_at
            .compare_exchange(0, now, set, Ordering::Acquire);
    }

    /// Returns `true` if it has sessions, or may get some: a request that came before it was retired is still on its way.
    pub(crate) fn may_have_sessions(&self) -> bool {
        let retired_at = self.retired_at.load(Ordering::Acquire);
        let since = clock::now().as_millis().saturating_sub(retired_at);
        retired_at == 0 || since < MAY_STILL_OPEN || !self.sessions().is_empty()
    }

    /// Returns `true` if these headers name a session here.
    pub(crate) fn has_session_of(&self, headers: &HeaderMap) -> bool {
        let name = session_of(headers).map(|name| SessionName::Opened(name.to_owned()));
        name.is_some_and(|name| self.sessions().contains_key(&name))
    }

    /// Hands back every held call, before the gateway stops.
    pub(crate) fn drain(&self) {
        for held in self.all() {
            held.pool.drain();
        }
    }

    /// Returns `true` while a client waits for the response to a request.
    pub(crate) fn has_waiting_clients(&self) -> bool {
        self.all()
            .iter()
            .any(|held| held.client.has_open_requests())
    }

    /// Tells waiting clients that no answer will come.
    pub(crate) fn stop(&self) {
        for held in self.all() {
            held.pool.stop();
        }
    }

    /// Ends every session, and waits until its server has been notified.
    pub(crate) fn end_all(&self) {
        let ended: Vec<Arc<ClientSession>> =
            self.sessions().drain().map(|(_, held)| held).collect();
        for held in &ended {
            held.pool.end();
        }
        for held in &ended {
            held.pool.join();
        }
    }

    /// Counts a request of this caller before its message is known; the refusal if it has too many.
    fn begin_request(
        &self,
        caller: &ProvenCaller,
        kind: RequestKind,
    ) -> Result<WorkPermit, Box<Response>> {
        self.at_work.begin(caller, kind).map_err(|refused| {
            let (status, error) = refused.error();
            let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
            let response = (status, axum::Json(body)).into_response();
            Box::new(TooMany::retry_later(response))
        })
    }

    /// Returns the numbers of open sessions, calls and questions.
    pub(crate) fn open(&self) -> (usize, usize, usize) {
        // Under the lock, as above.
        let sessions = self.sessions();
        let (calls, questions) = sessions
            .values()
            .map(|held| held.pool.open())
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (sessions.len(), calls, questions)
    }

    /// Removes a session that a client opened.
    fn remove_opened(&self, name: &str) {
        let name = SessionName::Opened(name.to_owned());
        self.sessions().remove(&name);
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<ClientSession>> {
        self.sessions().values().cloned().collect()
    }

    fn end_idle(&self) {
        let now = clock::now().as_millis();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let is_retired = self.retired_at.load(Ordering::Acquire) != 0;
        self.sessions().retain(|name, held| {
            let is_left = is_retired && matches!(name, SessionName::Rounds { .. });
            let idle = millis(if is_left { IDLE_ROUNDS } else { IDLE });
            let keep = now.saturating_sub(held.used.load(Ordering::Relaxed)) < idle
                || held.pool.open() != (0, 0);
            if !keep {
                held.end();
            }
            keep
        });
    }
}

/// Returns the name of the session in these headers.
fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|name| name.to_str().ok())
}

/// Ends the evicted session, if any.
fn end_evicted(evicted: Evicted) {
    if let Some(held) = evicted {
        tracing::debug!("an idle session ended for another");
        held.end();
    }
}

/// Returns the response if no session may be opened, since all are busy.
fn full() -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let why = "too many sessions are at work";
    refusal(status, -32000, why)
}
