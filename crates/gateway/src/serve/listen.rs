//! Clients over Streamable HTTP: sessions with streams for the pushed era, single requests for the rounds era.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_elicit_core::wire::{Revision, method};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::child::ChildServer;
use super::clock;
use super::session::{ServerSide, Session};
use super::streams::{Streams, Told};
use super::upstream::{HttpServer, METHOD, NAME, SESSION, Said, VERSION};
use crate::config::{Server, Target};
use crate::office::{Office, StartFault};
use crate::record::seal;
use crate::relay::glance::{Glance, Shape};
use crate::relay::{Door, Event, Settings};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Sessions at once, over all clients.
const SESSIONS: usize = 10_000;
/// How long a session may be idle before it is ended.
const IDLE: Duration = Duration::from_hours(1);
/// How long an answer may take before its request gets a stream: a client that hears nothing may give up, and one with
/// a session that loses its connection needs an event to go on from.
const SOON: Duration = Duration::from_millis(500);
/// The same for a request of the rounds era, where errors have HTTP statuses, which a stream has no room for.
const LATER: Duration = Duration::from_secs(10);
/// Headers of a client's request that go on to the server.
const CARRIED: [&str; 5] = [
    "authorization",
    "traceparent",
    "tracestate",
    "baggage",
    "x-request-id",
];

/// One server as HTTP clients see it.
pub struct Front {
    office: Office,
    server: Server,
    max_frame: usize,
    /// Whether only names of this machine are answered to.
    local: bool,
    sessions: Mutex<HashMap<String, Arc<Held>>>,
}

/// One session of a client, or what the rounds-era requests of one principal share.
struct Held {
    session: Arc<Session>,
    client: Arc<Streams>,
    principal: String,
    doors: AtomicU64,
    /// Milliseconds since 1970.
    used: AtomicU64,
}

impl Front {
    /// A server to be served; `local` when the address is a loopback one.
    pub fn new(office: Office, server: Server, max_frame: usize, local: bool) -> Arc<Self> {
        let front = Arc::new(Self {
            office,
            server,
            max_frame,
            local,
            sessions: Mutex::default(),
        });
        let weak = Arc::downgrade(&front);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_mins(1)).await;
                let Some(front) = weak.upgrade() else { return };
                front.end_idle();
            }
        });
        front
    }

    /// The routes of this server, to be put under its path.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/", get(listen).post(post).delete(end))
            .layer(DefaultBodyLimit::max(self.max_frame))
            .with_state(self.clone())
    }

    /// Hands back every held call, before the gateway stops.
    pub fn drain(&self) {
        for held in self.sessions().values() {
            held.session.drain();
        }
    }

    /// How many sessions, calls and questions are open.
    pub fn open(&self) -> (usize, usize, usize) {
        let sessions = self.sessions();
        let (calls, questions) = sessions
            .values()
            .map(|held| held.session.open())
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (sessions.len(), calls, questions)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Held>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_idle(&self) {
        let now = clock::now().as_millis();
        let idle = u64::try_from(IDLE.as_millis()).unwrap_or(u64::MAX);
        self.sessions().retain(|_, held| {
            let keep = now.saturating_sub(held.used.load(Ordering::Relaxed)) < idle
                || held.session.open() != (0, 0);
            if !keep {
                held.session.end();
            }
            keep
        });
    }

    /// Names and pages that may reach this: a page elsewhere must not talk to what listens on this machine.
    fn refuses(&self, headers: &HeaderMap) -> bool {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(HOST).is_some_and(|host| !self.local || is_local(host));
        let origin = match headers.get(ORIGIN) {
            None => true,
            Some(_) => text(ORIGIN)
                .and_then(|origin| origin.split("://").nth(1))
                .is_some_and(is_local),
        };
        !host || !origin
    }

    fn open_session(&self, principal: &str) -> Result<Arc<Held>, StartFault> {
        let client = Arc::new(Streams::default());
        let settings = Settings {
            many_doors: true,
            ..self.server.settings.clone()
        };
        let who = self.office.who(&settings.server, principal);
        let book = self.office.book.clone();
        let session = match &self.server.target {
            Target::Program(program) => {
                let fault = |source| StartFault::Program {
                    server: settings.server.clone(),
                    source,
                };
                let (child, stdout) =
                    ChildServer::start(program.clone(), self.max_frame, true).map_err(fault)?;
                let side: Arc<dyn ServerSide> = child.clone();
                let (session, driver) =
                    Session::new(settings.clone(), who, client.clone(), side, book);
                child.attach(&session, stdout).map_err(fault)?;
                super::stdio::drive(driver).map_err(fault)?;
                session
            }
            Target::Url(url) => {
                let upstream = HttpServer::new(url, self.max_frame)?;
                let (session, driver) =
                    Session::new(settings, who, client.clone(), upstream.clone(), book);
                upstream.attach(&session);
                tokio::spawn(driver.run());
                session
            }
        };
        Ok(Arc::new(Held {
            session,
            client,
            principal: principal.to_owned(),
            doors: AtomicU64::new(0),
            used: AtomicU64::new(clock::now().as_millis()),
        }))
    }

    /// What the rounds-era requests of one principal share: no client ever names it.
    fn shared(&self, principal: &str) -> Result<Arc<Held>, StartFault> {
        let name = format!("rounds {principal}");
        let mut sessions = self.sessions();
        if let Some(held) = sessions.get(&name) {
            return Ok(held.clone());
        }
        let held = self.open_session(principal)?;
        sessions.insert(name, held.clone());
        Ok(held)
    }

    fn named(&self, headers: &HeaderMap) -> Result<Arc<Held>, Box<Response>> {
        let name = headers.get(SESSION).and_then(|name| name.to_str().ok());
        let Some(name) = name else {
            return Err(Box::new(refusal(
                StatusCode::BAD_REQUEST,
                -32600,
                "`Mcp-Session-Id` is missing",
            )));
        };
        let held = self.sessions().get(name).cloned();
        // Another principal's session is not there, as far as this one can tell.
        match held.filter(|held| held.principal == principal(headers) && !name.contains(' ')) {
            Some(held) => {
                held.used.store(clock::now().as_millis(), Ordering::Relaxed);
                Ok(held)
            }
            None => Err(Box::new(refusal(
                StatusCode::NOT_FOUND,
                -32600,
                "no such session",
            ))),
        }
    }
}

async fn post(State(front): State<Arc<Front>>, headers: HeaderMap, body: Bytes) -> Response {
    if front.refuses(&headers) {
        return refusal(
            StatusCode::FORBIDDEN,
            -32600,
            "this address was reached from elsewhere",
        );
    }
    let Some((shape, glance)) =
        Glance::at(&body).and_then(|glance| Some((glance.shape()?, glance)))
    else {
        return refusal(
            StatusCode::BAD_REQUEST,
            -32700,
            "the body is not one JSON-RPC message",
        );
    };
    let said = Said::of(&body);
    let in_rounds = said.as_ref().is_some_and(|said| said.revision.is_some())
        || headers
            .get(VERSION)
            .is_some_and(|version| version == Revision::V2026_07_28.as_str());
    if in_rounds {
        if let Some(said) = &said
            && let Err(header) = headers_match(&headers, said)
        {
            let why = format!("the header {header} does not match the message");
            return with_id(&body, &glance, StatusCode::BAD_REQUEST, -32020, &why);
        }
        return match front.shared(&principal(&headers)) {
            Ok(held) => take(&held, shape, &headers, &body, None, true).await,
            Err(fault) => cannot_start(&fault),
        };
    }
    let opens = said
        .as_ref()
        .is_some_and(|said| said.method == method::INITIALIZE);
    if !opens {
        return match front.named(&headers) {
            Ok(held) => take(&held, shape, &headers, &body, None, false).await,
            Err(response) => *response,
        };
    }
    if front.sessions().len() >= SESSIONS {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, -32000, "too many sessions");
    }
    let (Ok(name), opened) = (
        seal::unguessable(),
        front.open_session(&principal(&headers)),
    ) else {
        return refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            -32603,
            "no randomness for a session",
        );
    };
    match opened {
        Ok(held) => {
            front.sessions().insert(name.clone(), held.clone());
            take(&held, shape, &headers, &body, Some(name), false).await
        }
        Err(fault) => cannot_start(&fault),
    }
}

/// Takes a message in, and gives what comes of it.
async fn take(
    held: &Arc<Held>,
    shape: Shape,
    headers: &HeaderMap,
    body: &[u8],
    session: Option<String>,
    in_rounds: bool,
) -> Response {
    let line;
    let frame = if memchr::memchr2(b'\n', b'\r', body).is_some() {
        line = body
            .iter()
            .map(|byte| {
                if matches!(byte, b'\n' | b'\r') {
                    b' '
                } else {
                    *byte
                }
            })
            .collect::<Vec<u8>>();
        line.trim_ascii()
    } else {
        body.trim_ascii()
    };
    let door = Door(held.doors.fetch_add(1, Ordering::Relaxed) + 1);
    let carried = carried(headers);
    if !carried.is_empty() {
        held.session.carry(door, carried);
    }
    if shape != Shape::Request {
        held.session.from_client(door, frame);
        return StatusCode::ACCEPTED.into_response();
    }
    let told = held.client.open(door);
    held.session.from_client(door, frame);
    let left = Left {
        held: held.clone(),
        door,
        in_rounds,
        primes: headers
            .get(VERSION)
            .is_some_and(|version| version == Revision::V2025_11_25.as_str()),
    };
    let mut response = answer(told, left, in_rounds).await;
    if let Some(name) = session.and_then(|name| HeaderValue::from_str(&name).ok()) {
        response.headers_mut().insert(SESSION, name);
    }
    response
}

/// One JSON body when the answer is all there is, else a stream.
async fn answer(mut told: mpsc::UnboundedReceiver<Told>, left: Left, in_rounds: bool) -> Response {
    let first = match tokio::time::timeout(if in_rounds { LATER } else { SOON }, told.recv()).await
    {
        Ok(Some(first)) => first,
        Ok(None) => {
            return refusal(
                StatusCode::INTERNAL_SERVER_ERROR,
                -32603,
                "the session ended",
            );
        }
        Err(_) => return stream(Opening::Primer, told, left),
    };
    if first.last {
        left.done();
        let status = if in_rounds {
            status_of(&first.frame)
        } else {
            StatusCode::OK
        };
        return (status, [(CONTENT_TYPE, "application/json")], first.frame).into_response();
    }
    stream(Opening::Told(first), told, left)
}

/// How a stream begins.
enum Opening {
    /// With nothing: it is there for what may come.
    Nothing,
    /// With something that says that it is there, since its answer takes a while.
    Primer,
    /// With what came first.
    Told(Told),
}

fn stream(opening: Opening, told: mpsc::UnboundedReceiver<Told>, left: Left) -> Response {
    let with_ids = !left.in_rounds;
    let rest = futures::stream::unfold(
        (opening, told, left),
        move |(opening, mut told, left)| async move {
            let next = match opening {
                Opening::Told(first) => first,
                Opening::Primer => {
                    let primer = Bytes::from(left.primer());
                    return Some((Ok(primer), (Opening::Nothing, told, left)));
                }
                Opening::Nothing => told.recv().await?,
            };
            let event = next.written(with_ids);
            if next.last {
                left.done();
            }
            Some((
                Ok::<_, std::convert::Infallible>(Bytes::from(event)),
                (Opening::Nothing, told, left),
            ))
        },
    );
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(rest)).into_response()
}

/// Notices when the client leaves before its answer.
struct Left {
    held: Arc<Held>,
    door: Door,
    in_rounds: bool,
    /// Whether the client knows events without data.
    primes: bool,
}

impl Left {
    fn done(&self) {
        self.held.client.close(self.door);
    }

    /// An event to go on from (2025-11-25, transports: its data is empty), or a comment for those who could not.
    fn primer(&self) -> String {
        if self.primes {
            format!("id: {}-0\nretry: 1000\ndata: \n\n", self.door.0)
        } else {
            ": working on it\n\n".to_owned()
        }
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        // In the pushed era the stream can be taken up again; in the rounds era leaving gives the request up.
        if self.in_rounds && self.held.client.close(self.door) {
            self.held.session.tell(Event::DoorClosed(self.door));
        }
    }
}

/// GET: the session's own stream, or one that was lost.
async fn listen(State(front): State<Arc<Front>>, headers: HeaderMap) -> Response {
    if front.refuses(&headers) {
        return refusal(
            StatusCode::FORBIDDEN,
            -32600,
            "this address was reached from elsewhere",
        );
    }
    let held = match front.named(&headers) {
        Ok(held) => held,
        Err(response) if response.status() == StatusCode::BAD_REQUEST => {
            return refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                -32600,
                "there is no stream without a session",
            );
        }
        Err(response) => return *response,
    };
    let last = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok());
    let Some((door, told)) = held.client.listen(last) else {
        return refusal(
            StatusCode::CONFLICT,
            -32600,
            "the session's stream is open already",
        );
    };
    stream(
        Opening::Nothing,
        told,
        Left {
            held,
            door,
            in_rounds: false,
            primes: false,
        },
    )
}

async fn end(State(front): State<Arc<Front>>, headers: HeaderMap) -> Response {
    if front.refuses(&headers) {
        return refusal(
            StatusCode::FORBIDDEN,
            -32600,
            "this address was reached from elsewhere",
        );
    }
    match front.named(&headers) {
        Ok(held) => {
            let name = headers
                .get(SESSION)
                .and_then(|name| name.to_str().ok())
                .unwrap_or_default();
            front.sessions().remove(name);
            held.session.end();
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => *response,
    }
}

/// Whose request it is: told apart by the credentials it carries.
fn principal(headers: &HeaderMap) -> String {
    match headers.get(AUTHORIZATION) {
        None => "anonymous".to_owned(),
        Some(value) => {
            let hash = Sha256::digest(value.as_bytes());
            format!("bearer-{}", crate::hex::text(&hash[..8]))
        }
    }
}

fn carried(headers: &HeaderMap) -> HeaderMap {
    let goes = |name: &HeaderName| {
        CARRIED.contains(&name.as_str()) || name.as_str().starts_with("mcp-param-")
    };
    headers
        .iter()
        .filter(|(name, _)| goes(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The headers that repeat what the message says (2026-07-28, transports); the first that does not.
fn headers_match(headers: &HeaderMap, said: &Said) -> Result<(), &'static str> {
    let same = |name: &HeaderName, value: Option<&str>| {
        let header = headers.get(name).map(HeaderValue::as_bytes);
        header == value.map(str::as_bytes)
    };
    if !same(&VERSION, said.revision.as_deref()) {
        return Err("MCP-Protocol-Version");
    }
    if !same(&METHOD, Some(&said.method))
        && (headers.contains_key(METHOD) || !said.method.starts_with("notifications/"))
    {
        return Err("Mcp-Method");
    }
    if said.name.is_some() && !same(&NAME, said.name.as_deref()) {
        return Err("Mcp-Name");
    }
    Ok(())
}

/// Errors of the rounds era that have a status of their own (2026-07-28, transports).
fn status_of(frame: &[u8]) -> StatusCode {
    let code = Glance::at(frame)
        .and_then(|glance| glance.error)
        .and_then(|error| crate::relay::glance::member(frame, &error, "code"))
        .and_then(|range| serde_json::from_slice::<i64>(&frame[range]).ok());
    match code {
        Some(-32022..=-32020) => StatusCode::BAD_REQUEST,
        Some(-32601) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

fn is_local(host: &str) -> bool {
    let name = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

fn refusal(status: StatusCode, code: i32, why: &str) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": why}});
    (status, axum::Json(body)).into_response()
}

fn with_id(body: &[u8], glance: &Glance, status: StatusCode, code: i32, why: &str) -> Response {
    let id = glance
        .id
        .clone()
        .and_then(|range| serde_json::from_slice(&body[range]).ok())
        .unwrap_or(serde_json::Value::Null);
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}});
    (status, axum::Json(body)).into_response()
}

fn cannot_start(fault: &StartFault) -> Response {
    tracing::error!(%fault, "a session could not be opened");
    refusal(
        StatusCode::BAD_GATEWAY,
        -32603,
        "the server cannot be reached",
    )
}
