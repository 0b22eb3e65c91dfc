//! Sessions of clients: they are opened with their servers, found by their names, and shared by the requests of one caller in
//! the era of rounds.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::response::Response;
use http::{HeaderMap, StatusCode};
use mcp_elicit_record::peers::session_id;
use mcp_elicit_record::{clock, encryption};
use mcp_elicit_relay::{ClientWaits, RelaySettings};

use super::client_session::{ClientSession, SessionName};
use super::eviction::{Evictable as _, Full, make_room};
use super::header_checks::{
    RequestCredentials, cannot_start, no_session, refusal, wrong_in_session,
};
use super::request::ClientMessage;
use super::{Evicted, McpEndpoint, end_evicted, full, session_of};
use crate::callers::{ProvenCaller, SessionCaller};
use crate::config::ServerTarget;
use crate::listener::response_streams::ResponseStreams;
use crate::runtime::StartError;
use crate::session::Session;
use crate::session::child_pool::{self, Pool, SameCallerSession, StartSession, StartedSession};
use crate::transports::child::ChildTransport;
use crate::transports::http_upstream::{HeaderSource, HttpUpstream};
use crate::transports::stdio::{drive, fault_of};

impl McpEndpoint {
    /// Returns the starter of sessions for this caller, whose frames go to `client`.
    pub(super) fn starts(
        self: &Arc<Self>,
        caller: &Arc<SessionCaller>,
        passed: &str,
        client: &Arc<ResponseStreams>,
    ) -> StartSession {
        let (endpoint, caller, client) = (self.clone(), caller.clone(), client.clone());
        let passed = passed.to_owned();
        Box::new(move |beside| endpoint.start_session(&caller, &passed, &client, beside))
    }

    pub(super) fn start_session(
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
    pub(super) fn task_caller(&self, caller: &ProvenCaller) -> Option<String> {
        let is_alone = matches!(self.credentials(), RequestCredentials::Withheld);
        (caller.is_authenticated() && is_alone).then(|| caller.binding().to_owned())
    }

    /// Returns the observed timeouts of the caller's clients: an authenticated one's are its own.
    pub(super) fn client_waits(&self, caller: &ProvenCaller) -> ClientWaits {
        let all = &self.server().settings.client_waits;
        if caller.is_authenticated() {
            return all.of_caller(caller.binding().to_owned());
        }
        all.clone()
    }

    pub(super) fn client_session(
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
    pub(super) async fn shared(
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

    pub(super) fn name_in_rounds(&self, caller: &ProvenCaller, headers: &HeaderMap) -> SessionName {
        SessionName::Rounds {
            principal: caller.binding().to_owned(),
            credentials: self.credentials().digest(headers),
        }
    }

    /// Returns the state of a principal's rounds-era requests if this message goes on with something in it. `is_other` is
    /// `true` if the current server is another one, which can read none of its rounds.
    pub(super) fn continued(
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
    pub(super) fn find_or_add_shared(
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
    pub(super) async fn begin(
        &self,
        pool: &Pool,
        caller: &ProvenCaller,
    ) -> Result<(), Box<Response>> {
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
    pub(super) async fn own(
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
                sessions.insert(SessionName::Opened(name.clone()), held.clone());
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

    pub(super) fn named(
        &self,
        headers: &HeaderMap,
        caller: &ProvenCaller,
    ) -> Result<Arc<ClientSession>, Box<Response>> {
        if let Some(wrong) = wrong_in_session(headers) {
            return Err(Box::new(wrong));
        }
        let Some(name) = session_of(headers) else {
            return Err(Box::new(refusal(
                StatusCode::BAD_REQUEST,
                -32600,
                "`Mcp-Session-Id` is missing",
            )));
        };
        let name = SessionName::Opened(name.to_owned());
        let held = self.sessions().get(&name).cloned();
        // Another principal's session looks like a missing one, and so does one with other credentials for the server.
        let is_own = |held: &Arc<ClientSession>| {
            held.principal == caller.binding() && held.passed == self.passed_by(caller, headers)
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
