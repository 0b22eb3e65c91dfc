//! Clients over Streamable HTTP: sessions with streams in the pushed era, single requests in the rounds era.

pub(crate) mod batch;
mod eviction;
pub(crate) mod header_checks;
mod request;
mod response;

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, StatusCode, Uri};
use mcp_elicit_core::wire::frame::Shape;
use mcp_elicit_core::wire::{Revision, method};
use mcp_elicit_record::peers::session_id;
use mcp_elicit_record::{clock, encryption};
use mcp_elicit_relay::{ClientWaits, Event, RelaySettings, holder_of_state};
use serde_json::json;
use tokio::runtime::Handle;

use crate::callers::resource::Resource;
use crate::callers::{EndedTokens, ProvenCaller, SessionCaller, SessionStanding, Unauthenticated};
use crate::config::{ByteLimits, ConfiguredServer, ServerTarget, UpstreamCredentials};
use crate::headers::{LAST_EVENT, RequestFacts, SESSION, VERSION};
use crate::listener::app::nowhere;
use crate::listener::call_memory::{ArrivingMessage, CallMemory};
use crate::listener::origin_guard::{OriginGuard, is_json};
use crate::listener::peers::Peers;
use crate::listener::peers::forward::{ForwardRequest, NoResponse};
use crate::listener::peers::forwarded::{NotTaken, other_gateway, taken};
use crate::listener::requests_at_work::{RequestKind, RequestsAtWork, TooMany, WorkPermit};
use crate::listener::response_streams::{ResponseStreams, StreamError};
use crate::listener::server_table::{ServedPath, ServerTable};
use crate::runtime::current_file::ServedServer;
use crate::runtime::{Runtime, StartError};
use crate::server_challenge::ServerChallenge;
use crate::session::Session;
use crate::session::child_pool::{self, Pool, SameCallerSession, StartSession, StartedSession};
use crate::transports::child::ChildTransport;
use crate::transports::http_upstream::{HeaderSource, HttpUpstream, TokenExchange};
use crate::transports::stdio::{drive, fault_of};
use eviction::{Evictable, Full, SharedChildren, make_room};
use header_checks::{
    RequestCredentials, cannot_start, from_elsewhere, no_session, refusal, with_credentials_of,
    with_id, wrong_in_rounds, wrong_in_session,
};
use request::{Arrived, ClientMessage};
use response::{DisconnectGuard, StreamOpening, stream, take};

/// The address that a request came from.
type PeerAddress = Option<Extension<ConnectInfo<SocketAddr>>>;

/// The time after which an idle session is ended.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// The same for requests of the rounds era with a server that a later file defines otherwise: other requests go to that one.
const IDLE_ROUNDS: Duration = Duration::from_secs(15 * 60);
/// The time in which a request that came before a change of the file may open a session, in milliseconds.
const MAY_STILL_OPEN: u64 = 60_000;
/// The beginning of the name of a session for requests of the rounds era.
const ROUNDS: &str = "rounds ";
/// The interval of checks that callers may still be served.
const REVOCATION_CHECK: Duration = Duration::from_secs(1);

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
    resources: RwLock<Arc<[String]>>,
    sessions: Mutex<HashMap<String, Arc<ClientSession>>>,
    children: Arc<SharedChildren>,
    at_work: Arc<RequestsAtWork>,
    memory: Arc<CallMemory>,
    tokio: Handle,
}

/// The handlers of all servers' paths, for one way on which requests come.
#[derive(Clone)]
struct ServerRoutes {
    table: Arc<ServerTable>,
    via: Via,
}

/// The server of one request, under one of its paths.
struct EndpointState {
    endpoint: Arc<McpEndpoint>,
    at: Arc<ServedPath>,
    via: Via,
}

/// The way on which a request came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// From a client.
    Client,
    /// From a client through another gateway, which has authenticated its caller. It is for a session or a call here.
    Gateway,
}

/// One session of a client, or the shared state of one principal's rounds-era requests.
struct ClientSession {
    pool: Arc<Pool>,
    client: Arc<ResponseStreams>,
    /// The binding of the caller.
    principal: String,
    /// The caller, with the proofs of its requests.
    caller: Arc<SessionCaller>,
    /// The credentials of its requests that are forwarded to the server.
    credentials: RequestCredentials,
    /// The digest of those of a caller that may serve several users, which all requests of the session pass.
    passed: String,
    stream_ids: AtomicU64,
    /// The time of the last use, in milliseconds since 1970.
    used: AtomicU64,
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
            resources: RwLock::default(),
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
        let mut resources = self
            .resources
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if !resources.iter().any(|known| known == url) {
            let all = resources.iter().cloned().chain([url.to_owned()]);
            *resources = all.collect();
        }
    }

    fn resources(&self) -> Arc<[String]> {
        self.resources
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
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
        let name = headers.get(SESSION).and_then(|name| name.to_str().ok());
        name.is_some_and(|name| self.sessions().contains_key(name))
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

    /// Returns the caller of a request; the refusal if it comes from a page elsewhere, or has no valid caller.
    async fn caller(
        &self,
        headers: &HeaderMap,
        from: PeerAddress,
        resource: &Resource,
    ) -> Result<ProvenCaller, Box<Response>> {
        if !self.origin_guard.admits(headers) {
            return Err(Box::new(from_elsewhere()));
        }
        let from = from.map(|Extension(ConnectInfo(from))| from.ip());
        let callers = &self.runtime.callers;
        // Without authentication, callers are told apart by the credentials that they send to the server.
        let named = match self.credentials() {
            RequestCredentials::Passed(header) if callers.forwards_credentials() => {
                with_credentials_of(headers, &header)
            }
            RequestCredentials::Passed(_)
            | RequestCredentials::Withheld
            | RequestCredentials::Exchanged => Cow::Borrowed(headers),
        };
        let resources = self.resources();
        match callers.identify(&named, from, &resources).await {
            Ok(caller) => Ok(caller),
            Err(refused) => Err(Box::new(self.refusal(refused, resource).await)),
        }
    }

    /// Returns the caller of a request that another gateway has forwarded to this one, and that may still be served; the
    /// refusal if there is none.
    async fn forwarded_caller(
        &self,
        headers: &HeaderMap,
        resource: &Resource,
    ) -> Result<ProvenCaller, Box<Response>> {
        let callers = &self.runtime.callers;
        let Some(peers) = &self.runtime.peers else {
            return Err(Box::new(NotTaken::OtherGateway.response()));
        };
        let caller = match taken(headers, peers.name(), callers.logs_in()) {
            Ok(caller) => caller,
            Err(refused) => {
                peers.counts().refused();
                tracing::warn!(%refused, "a request of another gateway was refused");
                return Err(Box::new(refused.response()));
            }
        };
        peers.counts().taken();
        match callers.forwarded(caller, headers) {
            Ok(caller) => Ok(caller),
            Err(refused) => Err(Box::new(self.refusal(refused, resource).await)),
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

    /// Returns and records the response to a request without a valid caller.
    async fn refusal(&self, refused: Unauthenticated, resource: &Resource) -> Response {
        let callers = &self.runtime.callers;
        let server = &self.server().settings.server;
        let noted = callers.note_refused(&self.runtime.record, server, refused);
        noted.await;
        refused.response(resource, callers.issuer())
    }

    /// Asks the issuer again about the tokens of waiting or listening callers, if it may have revoked them.
    #[cfg(feature = "teams")]
    async fn ask_again(&self) {
        // Under the lock: a session held here would count as being served, and could not be evicted.
        let sessions = self
            .sessions()
            .values()
            .filter(|held| held.has_work() || held.client.is_listened_to())
            .map(|held| (held.caller.clone(), held.pool.accesses()))
            .collect();
        self.runtime.callers.ask_again(sessions).await;
    }

    /// Ends the sessions of callers that may no longer be served, and in the others the calls that came with tokens that have
    /// ended. Their questions stay in the record until they expire.
    fn end_revoked(&self) {
        let callers = &self.runtime.callers;
        // Every request waits for the lock, and the record may be slow or away, so it is asked before. A session held here
        // would count as being served, and could not be evicted.
        let sessions: Vec<_> = self
            .sessions()
            .iter()
            .map(|(name, held)| (name.clone(), held.caller.clone()))
            .collect();
        let mut known = HashMap::new();
        let standings: HashMap<String, (Arc<SessionCaller>, SessionStanding)> = sessions
            .into_iter()
            .map(|(name, caller)| {
                let standing = callers.standing_of_session(&caller, &mut known);
                (name, (caller, standing))
            })
            .collect();
        let (mut expired, mut ended, mut in_part) = (Vec::new(), Vec::new(), Vec::new());
        self.sessions().retain(|name, held| {
            let of_this = standings.get(name);
            let of_this = of_this.filter(|(caller, _)| Arc::ptr_eq(caller, &held.caller));
            match of_this.map(|(_, standing)| *standing) {
                Some(SessionStanding::Valid | SessionStanding::Unknown) => {
                    let tokens = callers.take_ended_tokens(&held.caller, &held.pool.accesses());
                    if tokens != EndedTokens::default() {
                        in_part.push((held.clone(), tokens));
                    }
                }
                Some(SessionStanding::MayComeBack) => expired.push(held.clone()),
                Some(SessionStanding::Ended) => {
                    ended.push(held.clone());
                    return false;
                }
                // It was opened meanwhile.
                None => {}
            }
            true
        });
        for held in expired {
            // The same caller collects the results with its next token, and opens the session's stream with it.
            held.pool.hand_back();
            held.client.hang_up();
        }
        for (held, tokens) in in_part {
            held.pool.end_tokens(&tokens);
            if !tokens.revoked.is_empty() {
                held.client.hang_up();
            }
        }
        for held in ended {
            held.end();
        }
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

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<ClientSession>>> {
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
            let is_left = is_retired && name.starts_with(ROUNDS);
            let idle = millis(if is_left { IDLE_ROUNDS } else { IDLE });
            let keep = now.saturating_sub(held.used.load(Ordering::Relaxed)) < idle
                || held.pool.open() != (0, 0);
            if !keep {
                held.end();
            }
            keep
        });
    }

    /// Returns the starter of sessions for this caller, whose frames go to `client`.
    fn starts(
        self: &Arc<Self>,
        caller: &Arc<SessionCaller>,
        passed: &str,
        client: &Arc<ResponseStreams>,
    ) -> StartSession {
        let (endpoint, caller, client) = (self.clone(), caller.clone(), client.clone());
        let passed = passed.to_owned();
        Box::new(move |beside| endpoint.start_session(&caller, &passed, &client, beside))
    }

    fn start_session(
        &self,
        caller: &Arc<SessionCaller>,
        passed: &str,
        client: &Arc<ResponseStreams>,
        beside: SameCallerSession,
    ) -> Result<StartedSession, StartError> {
        let opened_by = caller.opened_by();
        let settings = RelaySettings {
            client_streams: true,
            first_call: beside.first_call,
            is_pushed: beside.is_pushed,
            task_caller: self.task_caller(opened_by),
            client_waits: self.client_waits(opened_by),
            byte_accounts: self.memory.of(opened_by),
            ..self.server().settings.clone()
        };
        let who = self.runtime.session_context(&self.served, caller, passed);
        let record = self.runtime.record.clone();
        match &self.server().target {
            ServerTarget::Program(program) => {
                let account = self.children.limit.of(caller.opened_by());
                let counted = beside.slot.or_else(|| account.count());
                let counted = counted.ok_or(StartError::TooManyChildren)?;
                // Without waiting: these threads serve all clients.
                let room_wait = Duration::ZERO;
                let (program, most) = (program.clone(), self.served.max_frame);
                let (child, stdout) = ChildTransport::start(
                    program,
                    &self.server().settings.server,
                    most,
                    room_wait,
                    Some(counted),
                )
                .map_err(fault_of(self.server()))?;
                let (session, driver) =
                    Session::new(settings, who, client.clone(), child.clone(), record);
                child
                    .attach(&session, stdout)
                    .map_err(fault_of(self.server()))?;
                let driver = drive(driver).map_err(fault_of(self.server()))?;
                let driver = Some(driver);
                Ok(StartedSession { session, driver })
            }
            ServerTarget::Url(url) => {
                let repeating = if client.is_of_one_client() {
                    HeaderSource::Gateway
                } else {
                    HeaderSource::Client
                };
                let settings = RelaySettings {
                    server_streams: true,
                    ..settings
                };
                let upstream = HttpUpstream::new(url, self.served.max_frame, repeating)?;
                let (session, driver) =
                    Session::new(settings, who, client.clone(), upstream.clone(), record);
                if let Some(exchange) = &self.exchange {
                    upstream.exchange_tokens(exchange.clone());
                }
                upstream.attach(&session);
                self.tokio.spawn(driver.run());
                let driver = None;
                Ok(StartedSession { session, driver })
            }
        }
    }

    /// Returns the caller whose tasks are kept apart from others': an authenticated one, at a server that sees only the
    /// gateway.
    fn task_caller(&self, caller: &ProvenCaller) -> Option<String> {
        let is_alone = matches!(self.credentials(), RequestCredentials::Withheld);
        (caller.is_authenticated() && is_alone).then(|| caller.binding().to_owned())
    }

    /// Returns the observed timeouts of the caller's clients: an authenticated one's are its own.
    fn client_waits(&self, caller: &ProvenCaller) -> ClientWaits {
        let all = &self.server().settings.client_waits;
        if caller.is_authenticated() {
            return all.of_caller(caller.binding().to_owned());
        }
        all.clone()
    }

    /// Returns the credentials that are forwarded to the server.
    fn credentials(&self) -> RequestCredentials {
        match &self.server().credentials {
            UpstreamCredentials::Usual if self.runtime.callers.forwards_credentials() => {
                RequestCredentials::Passed(AUTHORIZATION)
            }
            UpstreamCredentials::Usual | UpstreamCredentials::Operator => {
                RequestCredentials::Withheld
            }
            UpstreamCredentials::Pass(header) => RequestCredentials::Passed(header.clone()),
            UpstreamCredentials::Exchange { .. } => RequestCredentials::Exchanged,
        }
    }

    /// Returns the digest of the credentials that a request passes to the server, of a caller that may serve several users:
    /// their questions, answers and results are kept apart. Empty for a caller who is one person, whose credentials may be
    /// renewed, and without authentication, where the caller's name has it.
    fn passed_by(&self, caller: &ProvenCaller, headers: &HeaderMap) -> String {
        if caller.may_serve_several() {
            self.credentials().digest(headers)
        } else {
            String::new()
        }
    }

    fn client_session(
        &self,
        pool: Arc<Pool>,
        client: Arc<ResponseStreams>,
        caller: Arc<SessionCaller>,
        passed: String,
    ) -> Arc<ClientSession> {
        Arc::new(ClientSession {
            pool,
            client,
            principal: caller.opened_by().binding().to_owned(),
            caller,
            credentials: self.credentials(),
            passed,
            stream_ids: AtomicU64::new(0),
            used: AtomicU64::new(clock::now().as_millis()),
        })
    }

    /// Returns the shared state of one principal's rounds-era requests with a server, which no client can name. Requests
    /// with other credentials for the server have another.
    async fn shared(
        self: &Arc<Self>,
        caller: ProvenCaller,
        headers: &HeaderMap,
    ) -> Result<Arc<ClientSession>, Box<Response>> {
        let (held, evicted) = self.find_or_add_shared(caller.clone(), headers)?;
        end_evicted(evicted);
        if !held.pool.has_sessions() {
            self.begin(&held.pool, &caller).await?;
        }
        Ok(held)
    }

    fn name_in_rounds(&self, caller: &ProvenCaller, headers: &HeaderMap) -> String {
        let principal = caller.binding();
        format!("{ROUNDS}{principal} {}", self.credentials().digest(headers))
    }

    /// Returns the state of a principal's rounds-era requests if this message goes on with something in it. `is_other` is
    /// `true` if the current server is another one, which can read none of its rounds.
    fn continued(
        &self,
        caller: &ProvenCaller,
        headers: &HeaderMap,
        message: &ClientMessage,
        is_other: bool,
    ) -> Option<Arc<ClientSession>> {
        let name = self.name_in_rounds(caller, headers);
        let held = self.sessions().get(&name).cloned()?;
        let goes_on = held.caller.has_room_for(caller)
            && !held.pool.is_over()
            && held.pool.continues_here(message.parts(), is_other);
        goes_on.then(|| {
            held.touch();
            held
        })
    }

    /// Returns the shared state of one principal's rounds-era requests, and the evicted session. One whose server has
    /// ended is replaced.
    fn find_or_add_shared(
        self: &Arc<Self>,
        caller: ProvenCaller,
        headers: &HeaderMap,
    ) -> Result<(Arc<ClientSession>, Evicted), Box<Response>> {
        let principal = caller.binding();
        let name = self.name_in_rounds(&caller, headers);
        let mut sessions = self.sessions();
        let mut evicted = None;
        if let Some(held) = sessions.get(&name) {
            let has_room = held.caller.has_room_for(&caller);
            if has_room && !held.pool.is_over() {
                held.touch();
                return Ok((held.clone(), None));
            }
            if !has_room && held.has_work() {
                return Err(Box::new(full()));
            }
            held.end();
        } else {
            evicted = make_room(&mut sessions, principal).map_err(|Full| Box::new(full()))?;
        }
        let client = Arc::new(ResponseStreams::of_caller(principal));
        let passed = self.passed_by(&caller, headers);
        let caller = SessionCaller::of_any_client(caller);
        let start = self.starts(&caller, &passed, &client);
        let most = match &self.server().target {
            ServerTarget::Program(_) if !self.server().share_child => child_pool::CHILDREN,
            ServerTarget::Program(_) | ServerTarget::Url(_) => 1,
        };
        let account = self.children.limit.of(caller.opened_by());
        let pool = Pool::growing(start, most, account);
        let held = self.client_session(pool, client, caller, passed);
        sessions.insert(name, held.clone());
        Ok((held, evicted))
    }

    /// Starts the first server of a pool of this caller, evicting an idle one if too many run.
    async fn begin(&self, pool: &Pool, caller: &ProvenCaller) -> Result<(), Box<Response>> {
        let slot = match &self.server().target {
            ServerTarget::Program(_) => {
                let slot = self.children.slot(self, caller).await;
                Some(slot.map_err(|none| Box::new(none.response()))?)
            }
            ServerTarget::Url(_) => None,
        };
        match pool.first_in(slot) {
            Ok(_) => Ok(()),
            Err(StartError::TooManyChildren) => Err(Box::new(full())),
            Err(fault) => Err(Box::new(cannot_start(&fault))),
        }
    }

    /// Opens a session for a client, under an unguessable name.
    async fn own(
        self: &Arc<Self>,
        caller: ProvenCaller,
        passed: String,
    ) -> Result<(String, Arc<ClientSession>), Box<Response>> {
        let evicted =
            make_room(&mut self.sessions(), caller.binding()).map_err(|Full| Box::new(full()))?;
        end_evicted(evicted);
        let name = match &self.runtime.peers {
            Some(peers) => session_id(peers.name()),
            None => encryption::random_id(),
        };
        let Ok(name) = name else {
            let why = "no randomness for a session";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return Err(Box::new(refusal(status, -32603, why)));
        };
        let client = Arc::new(ResponseStreams::of_one_client(caller.binding()));
        let caller = SessionCaller::new(caller);
        let pool = Pool::of_one(self.starts(&caller, &passed, &client));
        self.begin(&pool, caller.opened_by()).await?;
        let held = self.client_session(pool, client, caller, passed);
        let room = {
            let mut sessions = self.sessions();
            // Others may have opened sessions meanwhile.
            let room = make_room(&mut sessions, &held.principal);
            if room.is_ok() {
                sessions.insert(name.clone(), held.clone());
            }
            room
        };
        let Ok(evicted) = room else {
            held.end();
            return Err(Box::new(full()));
        };
        end_evicted(evicted);
        Ok((name, held))
    }

    fn named(
        &self,
        headers: &HeaderMap,
        caller: &ProvenCaller,
    ) -> Result<Arc<ClientSession>, Box<Response>> {
        if let Some(wrong) = wrong_in_session(headers) {
            return Err(Box::new(wrong));
        }
        let name = headers.get(SESSION).and_then(|name| name.to_str().ok());
        let Some(name) = name else {
            return Err(Box::new(refusal(
                StatusCode::BAD_REQUEST,
                -32600,
                "`Mcp-Session-Id` is missing",
            )));
        };
        let held = self.sessions().get(name).cloned();
        // Another principal's session looks like a missing one, and so does one with other credentials for the server.
        let is_own = |held: &Arc<ClientSession>| {
            held.principal == caller.binding()
                && held.passed == self.passed_by(caller, headers)
                && !name.contains(' ')
        };
        match held.filter(is_own) {
            // A client whose proofs differ too often opens another one.
            Some(held) if held.caller.has_room_for(caller) => {
                held.touch();
                Ok(held)
            }
            Some(_) | None => Err(Box::new(no_session())),
        }
    }
}

/// Returns the handlers of all servers' paths, for requests that come on this way.
pub(crate) fn routes(table: &Arc<ServerTable>, via: Via) -> MethodRouter {
    let table = table.clone();
    get(listen)
        .post(post)
        .delete(end)
        .with_state(ServerRoutes { table, via })
}

impl ServerRoutes {
    /// Returns the server of a request to this path.
    fn server_of(&self, uri: &Uri, headers: &HeaderMap) -> Option<EndpointState> {
        let at = self.table.at(uri.path())?;
        let endpoint = at.of_request(headers)?.clone();
        let via = self.via;
        Some(EndpointState { endpoint, at, via })
    }
}

impl EndpointState {
    /// Returns the shared state for a rounds-era request of this caller: with an earlier server if the request goes on with
    /// something there, else with the current one.
    async fn shared(
        &self,
        caller: &ProvenCaller,
        headers: &HeaderMap,
        message: &ClientMessage,
    ) -> Result<Arc<ClientSession>, Box<Response>> {
        let current = self.at.current();
        let continued = |earlier: &Arc<McpEndpoint>| {
            let is_same =
                current.is_some_and(|current| current.served.is_same_server(&earlier.served));
            earlier.continued(caller, headers, message, !is_same)
        };
        if let Some(held) = self.at.earlier().find_map(continued) {
            return Ok(held);
        }
        match current {
            Some(current) => current.shared(caller.clone(), headers).await,
            None => Err(Box::new(self.at.gone())),
        }
    }

    /// Returns the caller of a request; the refusal if there is none.
    async fn caller(
        &self,
        headers: &HeaderMap,
        from: PeerAddress,
    ) -> Result<ProvenCaller, Box<Response>> {
        let (endpoint, resource) = (&self.endpoint, &self.at.resource);
        match self.via {
            Via::Client => endpoint.caller(headers, from, resource).await,
            Via::Gateway => endpoint.forwarded_caller(headers, resource).await,
        }
    }

    fn peers(&self) -> Option<&Arc<Peers>> {
        self.endpoint.runtime.peers.as_ref()
    }

    /// Returns the way to the gateway whose session these headers name; `None` if it is this one, if they name none, or if
    /// the request was forwarded already.
    fn elsewhere<'h>(&self, headers: &'h HeaderMap) -> Option<ElsewhereAt<'h>> {
        let own = self.peers()?.name();
        self.at_gateway(other_gateway(headers, own)?, headers)
    }

    /// Returns the way to the gateway of this name; `None` if it is this one, or if the request was forwarded already.
    fn at_gateway<'h>(&self, name: &'h str, headers: &'h HeaderMap) -> Option<ElsewhereAt<'h>> {
        let peers = self.peers().filter(|peers| *peers.name() != *name)?;
        (self.via == Via::Client).then(|| ElsewhereAt {
            peers: peers.clone(),
            name,
            headers,
        })
    }

    /// Returns the name of the gateway that asked what this retry answers, if retries are sent there.
    fn asker(&self, headers: &HeaderMap, message: &ClientMessage) -> Option<String> {
        self.peers().filter(|_| !headers.contains_key(SESSION))?;
        let state = message.request_state()?;
        holder_of_state(&state).map(str::to_owned)
    }

    /// Sends a request to another gateway.
    async fn send(
        &self,
        to: ElsewhereAt<'_>,
        method: Method,
        caller: &ProvenCaller,
        body: Option<Bytes>,
    ) -> Result<Response, NoResponse> {
        let mut credentials = Vec::new();
        match self.endpoint.credentials() {
            RequestCredentials::Withheld => {}
            RequestCredentials::Passed(header) => credentials.push(header),
            RequestCredentials::Exchanged => credentials.push(AUTHORIZATION),
        }
        if self.endpoint.runtime.callers.asks_about_tokens() {
            credentials.push(AUTHORIZATION);
        }
        let request = ForwardRequest {
            method,
            path: &self.at.path,
            headers: to.headers,
            credentials: &credentials,
            caller,
            body,
        };
        to.peers.forward(to.name, request).await
    }

    /// Forwards a request of a session, and returns the response.
    async fn forward(
        &self,
        to: ElsewhereAt<'_>,
        method: Method,
        caller: &ProvenCaller,
        body: Option<Bytes>,
    ) -> Response {
        let sent = self.send(to, method, caller, body).await;
        sent.unwrap_or_else(|fault| fault.response())
    }

    /// Forwards the retry of a call, and returns the response; `None` if the gateway that asked is gone.
    async fn forward_retry(
        &self,
        to: ElsewhereAt<'_>,
        caller: &ProvenCaller,
        body: Bytes,
    ) -> Option<Response> {
        match self.send(to, Method::POST, caller, Some(body)).await {
            Err(fault) if fault.is_unreached() => None,
            sent => Some(sent.unwrap_or_else(|fault| fault.response())),
        }
    }
}

/// The gateway of a session or a call that is not here.
struct ElsewhereAt<'h> {
    peers: Arc<Peers>,
    name: &'h str,
    /// The headers of the request.
    headers: &'h HeaderMap,
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
    fn end(&self) {
        self.pool.tell_all(|| Event::SessionEnded);
        self.client.end();
        self.pool.end();
    }

    /// Records that it is in use.
    fn touch(&self) {
        self.used.store(clock::now().as_millis(), Ordering::Relaxed);
    }
}

/// Ends the sessions of revoked callers while the endpoint exists.
async fn end_revoked_callers(endpoint: Weak<McpEndpoint>) {
    loop {
        tokio::time::sleep(REVOCATION_CHECK).await;
        let Some(endpoint) = endpoint.upgrade() else {
            return;
        };
        #[cfg(feature = "teams")]
        endpoint.ask_again().await;
        // Ending a session may wait for its driver.
        let ended = tokio::task::spawn_blocking(move || endpoint.end_revoked()).await;
        if let Err(error) = ended {
            tracing::error!(%error, "sessions of revoked callers could not be ended");
        }
    }
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

async fn post(
    State(routes): State<ServerRoutes>,
    uri: Uri,
    from: PeerAddress,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(state) = routes.server_of(&uri, &headers) else {
        return nowhere().await;
    };
    let endpoint = &state.endpoint;
    let caller = match state.caller(&headers, from).await {
        Ok(caller) => caller,
        Err(refusal) => return *refusal,
    };
    let arriving = match endpoint.begin_request(&caller, RequestKind::Arrival) {
        Ok(arriving) => arriving,
        Err(refusal) => return *refusal,
    };
    if !is_json(&headers) {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return refusal(status, -32600, "`Content-Type` must be application/json");
    }
    let counted = ArrivingMessage::new(endpoint.memory.of(&caller));
    let arrived =
        match ClientMessage::read(&headers, body, endpoint.served.max_frame, counted).await {
            Ok(arrived) => arrived,
            Err(response) => return *response,
        };
    // The body may have been slow, and the caller's key may have been revoked meanwhile.
    if let Err(refused) = endpoint.runtime.callers.check_again(&caller) {
        return endpoint.refusal(refused, &state.at.resource).await;
    }
    let message = match arrived {
        Arrived::One(message) => message,
        Arrived::Batch(..) if state.via == Via::Gateway && !headers.contains_key(SESSION) => {
            return NotTaken::OtherGateway.response();
        }
        Arrived::Batch(body, _counted) => {
            if let Some(to) = state.elsewhere(&headers) {
                let sent = state.forward(to, Method::POST, &caller, Some(body)).await;
                return arriving.until_sent(sent);
            }
            drop(arriving);
            return batch::respond(endpoint, &caller, &body, &headers).await;
        }
    };
    let permit = if message.shape == Shape::Request {
        drop(arriving);
        match endpoint.at_work.begin(&caller, RequestKind::Work) {
            Ok(at_work) => at_work,
            Err(refused) => {
                let response = with_id(message.parts(), refused.error());
                return TooMany::retry_later(response);
            }
        }
    } else {
        arriving
    };
    let response = respond(&state, caller, &message, &headers).await;
    permit.until_sent(response)
}

/// Responds to a message that has arrived.
async fn respond(
    state: &EndpointState,
    caller: ProvenCaller,
    message: &ClientMessage,
    headers: &HeaderMap,
) -> Response {
    let endpoint = &state.endpoint;
    let asker = state.asker(headers, message);
    if state.via == Via::Gateway {
        if headers.contains_key(SESSION) {
            return match endpoint.named(headers, &caller) {
                Ok(held) => take(&held, &caller, message, headers, None, false).await,
                Err(response) => *response,
            };
        }
        let own = state.peers().map(|peers| peers.name());
        if asker.is_none() || asker.as_deref() != own {
            return NotTaken::OtherGateway.response();
        }
    }
    let said = RequestFacts::of(message.parts());
    let in_rounds = said.as_ref().is_some_and(|said| said.revision.is_some())
        || headers
            .get(VERSION)
            .is_some_and(|version| version == Revision::V2026_07_28.as_str());
    if in_rounds {
        if message.shape == Shape::Request
            && let Some(said) = &said
            && let Some(wrong) = wrong_in_rounds(headers, said)
        {
            return with_id(message.parts(), wrong);
        }
        let asker = asker.as_deref();
        if let Some(to) = asker.and_then(|name| state.at_gateway(name, headers)) {
            let sent = state.forward_retry(to, &caller, message.frame.clone());
            if let Some(response) = sent.await {
                return response;
            }
        }
        return match state.shared(&caller, headers, message).await {
            Ok(held) => take(&held, &caller, message, headers, None, true).await,
            Err(response) => *response,
        };
    }
    if state.via == Via::Gateway {
        return NotTaken::OtherGateway.response();
    }
    let opens = said
        .as_ref()
        .is_some_and(|said| said.method == method::INITIALIZE);
    if !opens {
        if let Some(to) = state.elsewhere(headers) {
            let body = Some(message.frame.clone());
            return state.forward(to, Method::POST, &caller, body).await;
        }
        return match endpoint.named(headers, &caller) {
            Ok(held) => take(&held, &caller, message, headers, None, false).await,
            Err(response) => *response,
        };
    }
    if !state.at.is_current(endpoint) {
        return match state.at.current() {
            // It named a session of an earlier one.
            Some(_) => no_session(),
            None => state.at.gone(),
        };
    }
    let passed = endpoint.passed_by(&caller, headers);
    match endpoint.own(caller.clone(), passed).await {
        Ok((name, held)) => {
            let named = Some(name.clone());
            let response = take(&held, &caller, message, headers, named, false).await;
            if ServerChallenge::is(response.status()) {
                // The client opens another session when it has the required credentials.
                endpoint.sessions().remove(&name);
                held.end();
            }
            response
        }
        Err(response) => *response,
    }
}

/// Handles GET: the session's own stream, or a lost one.
async fn listen(
    State(routes): State<ServerRoutes>,
    uri: Uri,
    from: PeerAddress,
    headers: HeaderMap,
) -> Response {
    let Some(state) = routes.server_of(&uri, &headers) else {
        return nowhere().await;
    };
    let endpoint = &state.endpoint;
    let caller = match state.caller(&headers, from).await {
        Ok(caller) => caller,
        Err(refusal) => return *refusal,
    };
    let last = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok());
    let kind = if ResponseStreams::is_of_request(last) {
        RequestKind::Work
    } else {
        RequestKind::Stream
    };
    if let Some(to) = state.elsewhere(&headers) {
        let permit = match endpoint.begin_request(&caller, kind) {
            Ok(permit) => permit,
            Err(refusal) => return *refusal,
        };
        let response = state.forward(to, Method::GET, &caller, None).await;
        return permit.until_sent(response);
    }
    let held = match endpoint.named(&headers, &caller) {
        Ok(held) => held,
        Err(_) if !headers.contains_key(SESSION) => {
            return refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                -32600,
                "there is no stream without a session",
            );
        }
        Err(response) => return *response,
    };
    let permit = match endpoint.begin_request(&caller, kind) {
        Ok(permit) => permit,
        Err(refusal) => return *refusal,
    };
    let (stream_id, told) = match held.client.listen(last) {
        Ok(listened) => listened,
        Err(StreamError::Open) => {
            let why = "the session's stream is open already";
            return refusal(StatusCode::CONFLICT, -32600, why);
        }
        Err(StreamError::Done) => {
            let why = "the stream of this event has ended";
            return refusal(StatusCode::BAD_REQUEST, -32600, why);
        }
    };
    permit.until_sent(stream(
        StreamOpening::Nothing,
        told,
        DisconnectGuard::watching(held, stream_id),
    ))
}

async fn end(
    State(routes): State<ServerRoutes>,
    uri: Uri,
    from: PeerAddress,
    headers: HeaderMap,
) -> Response {
    let Some(state) = routes.server_of(&uri, &headers) else {
        return nowhere().await;
    };
    let endpoint = &state.endpoint;
    let caller = match state.caller(&headers, from).await {
        Ok(caller) => caller,
        Err(refusal) => return *refusal,
    };
    let _arriving = match endpoint.begin_request(&caller, RequestKind::Arrival) {
        Ok(arriving) => arriving,
        Err(refusal) => return *refusal,
    };
    if let Some(to) = state.elsewhere(&headers) {
        return state.forward(to, Method::DELETE, &caller, None).await;
    }
    match endpoint.named(&headers, &caller) {
        Ok(held) => {
            let name = headers
                .get(SESSION)
                .and_then(|name| name.to_str().ok())
                .unwrap_or_default();
            endpoint.sessions().remove(name);
            held.end();
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => *response,
    }
}
