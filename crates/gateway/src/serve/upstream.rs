//! A server over Streamable HTTP: every frame a POST, answered with JSON or a stream of events; in the pushed era also
//! a session and a stream that the server may write to at any time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt as _;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_elicit_core::wire::{Revision, method};
use reqwest::{Client, Response, Url};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::session::{ServerSide, Session};
use super::sse::EventReader;
use crate::office::StartFault;
use crate::relay::glance::{self, Glance, Shape};
use crate::relay::{CallKey, Door, Event};

/// The header of the session (2025-06-18 and 2025-11-25).
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header of the revision.
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header of the method (2026-07-28).
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The header of what is called (2026-07-28).
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How long to wait before a lost stream is opened again.
const BREATH: Duration = Duration::from_millis(500);
/// How often a lost stream is opened again before its call is given up.
const TRIES: u32 = 5;

/// A server at a URL.
pub struct HttpServer {
    client: Client,
    url: Url,
    max_frame: usize,
    session: OnceLock<Weak<Session>>,
    state: Mutex<State>,
    /// Notifications and answers, sent one after the other; a request waits for those before it.
    queue: mpsc::UnboundedSender<Outgoing>,
}

#[derive(Default)]
struct State {
    session_id: Option<HeaderValue>,
    /// The revision of the session; `None` where every request speaks for itself.
    revision: Option<HeaderValue>,
    /// Headers of the client's requests, by their streams.
    carried: HashMap<Door, HeaderMap>,
    /// The last `Authorization`, for requests that the gateway makes on the client's behalf.
    authorization: Option<HeaderValue>,
    calls: HashMap<CallKey, AbortHandle>,
    listening: Option<AbortHandle>,
}

struct Outgoing {
    frame: Vec<u8>,
    call: Option<CallKey>,
    headers: HeaderMap,
}

/// The upstream's answer, or why there is none.
type Sent = Result<Response, reqwest::Error>;

impl HttpServer {
    /// A server at this URL. Runs in a tokio runtime.
    pub fn new(url: &str, max_frame: usize) -> Result<Arc<Self>, StartFault> {
        mcp_elicit_client::tls::ready();
        let address = |why: String| StartFault::Address { why };
        let url = Url::parse(url).map_err(|error| address(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(address("only http and https are spoken".to_owned()));
        }
        let client = Client::builder()
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| address(error.to_string()))?;
        let (queue, outgoing) = mpsc::unbounded_channel();
        let server = Arc::new(Self {
            client,
            url,
            max_frame,
            session: OnceLock::new(),
            state: Mutex::default(),
            queue,
        });
        tokio::spawn(send_in_order(Arc::downgrade(&server), outgoing));
        Ok(server)
    }

    /// Ties the server to its session.
    pub fn attach(&self, session: &Arc<Session>) {
        let _set_once = self.session.set(Arc::downgrade(session));
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.get().and_then(Weak::upgrade)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, frame: Vec<u8>, headers: &HeaderMap) -> impl Future<Output = Sent> + use<> {
        let mut request = self.client.post(self.url.clone()).headers(headers.clone());
        request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        let session = self.session_headers();
        // A server with a session speaks the pushed era, whatever the client's frame says of itself.
        if session.is_empty() {
            request = request.headers(rounds_headers(&frame));
        }
        for (name, value) in session {
            request = request.header(name, value);
        }
        request.body(frame).send()
    }

    fn session_headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let state = self.state();
        let session = state.session_id.clone().map(|id| (SESSION, id));
        let revision = state.revision.clone().map(|revision| (VERSION, revision));
        session.into_iter().chain(revision).collect()
    }

    /// Sends a request and reads what comes of it.
    async fn exchange(self: Arc<Self>, outgoing: Outgoing) {
        let Outgoing {
            frame,
            call,
            headers,
        } = outgoing;
        let glance = Glance::at(&frame);
        let id = glance
            .as_ref()
            .and_then(|glance| glance.id.clone())
            .map(|range| frame[range].to_vec());
        let opens = glance
            .as_ref()
            .and_then(|glance| glance.method.clone())
            .is_some_and(|range| &frame[range] == method::INITIALIZE.as_bytes());
        let sent = self.post(frame, &headers).await;
        let answered = match sent {
            Ok(response) => {
                self.answered(response, call, &headers, opens, id.as_deref())
                    .await
            }
            Err(error) => Err(error.without_url().to_string()),
        };
        if let Some(call) = call {
            self.state().calls.remove(&call);
        }
        if let (Err(why), Some(id), Some(session)) = (answered, id, self.session()) {
            session.from_server(call, &failed(&id, &why));
        }
    }

    async fn answered(
        &self,
        response: Response,
        call: Option<CallKey>,
        headers: &HeaderMap,
        opens: bool,
        id: Option<&[u8]>,
    ) -> Result<(), String> {
        let status = response.status();
        if opens && let Some(id) = response.headers().get(SESSION) {
            self.state().session_id = Some(id.clone());
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        if kind.starts_with("text/event-stream") {
            return self.read_stream(response, call, headers, opens).await;
        }
        let body = self.body(response).await?;
        if let Some(frame) = response_to(body.trim_ascii(), id) {
            if opens {
                self.note_revision(&frame);
            }
            if let Some(session) = self.session() {
                session.from_server(call, &frame);
            }
            return Ok(());
        }
        if status == StatusCode::NOT_FOUND && self.state().session_id.is_some() {
            if let Some(session) = self.session() {
                session.tell(Event::ServerGone(
                    "it does not know the session any more".to_owned(),
                ));
            }
            return Ok(());
        }
        Err(format!(
            "the server answered with HTTP status {}",
            status.as_u16()
        ))
    }

    async fn body(&self, response: Response) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| error.without_url().to_string())?;
            body.extend_from_slice(&chunk);
            if body.len() > self.max_frame {
                return Err(format!(
                    "the server's answer has more than {} bytes",
                    self.max_frame
                ));
            }
        }
        Ok(body)
    }

    /// Reads a call's stream to its response; a stream that is lost before is taken up where it was (SSE resumption).
    async fn read_stream(
        &self,
        response: Response,
        call: Option<CallKey>,
        headers: &HeaderMap,
        opens: bool,
    ) -> Result<(), String> {
        let mut last_id = None;
        let mut response = Some(response);
        for _ in 0..TRIES {
            let Some(stream) = response.take() else { break };
            if self.read_events(stream, call, &mut last_id, opens).await? {
                return Ok(());
            }
            let Some(id) = &last_id else { break };
            tokio::time::sleep(BREATH).await;
            response = self
                .listen(Some(id), headers)
                .await
                .ok()
                .filter(|response| response.status().is_success());
        }
        Err("the server's stream ended before its answer".to_owned())
    }

    /// Whether the stream brought a response.
    async fn read_events(
        &self,
        response: Response,
        call: Option<CallKey>,
        last_id: &mut Option<String>,
        opens: bool,
    ) -> Result<bool, String> {
        let mut reader = EventReader::default();
        let mut answered = false;
        let mut chunks = response.bytes_stream();
        while let Some(Ok(chunk)) = chunks.next().await {
            let Some(session) = self.session() else {
                return Ok(true);
            };
            reader.read(&chunk, |event| {
                if event.id.is_some() {
                    last_id.clone_from(&event.id);
                }
                if event.data.is_empty() {
                    return;
                }
                if Glance::at(&event.data)
                    .is_some_and(|glance| glance.shape() == Some(Shape::Response))
                {
                    answered = true;
                    if opens {
                        self.note_revision(&event.data);
                    }
                }
                session.from_server(call, &event.data);
            });
            if reader.held() > self.max_frame {
                return Err(format!(
                    "the server sent an event of more than {} bytes",
                    self.max_frame
                ));
            }
        }
        Ok(answered)
    }

    /// Every later request of the session names the revision that was agreed on.
    fn note_revision(&self, frame: &[u8]) {
        let revision = Glance::at(frame)
            .and_then(|glance| glance.result)
            .and_then(|result| glance::member(frame, &result, "protocolVersion"))
            .and_then(|range| serde_json::from_slice::<String>(&frame[range]).ok())
            .and_then(|revision| HeaderValue::from_str(&revision).ok());
        if revision.is_some() {
            self.state().revision = revision;
        }
    }

    async fn listen(&self, last_id: Option<&str>, headers: &HeaderMap) -> Sent {
        let mut request = self
            .client
            .get(self.url.clone())
            .headers(headers.clone())
            .header(ACCEPT, "text/event-stream");
        for (name, value) in self.session_headers() {
            request = request.header(name, value);
        }
        if let Some(id) = last_id {
            request = request.header(LAST_EVENT, id);
        }
        request.send().await
    }

    /// The stream on which a server of the pushed era says what belongs to no request.
    async fn listen_for_session(self: Arc<Self>, headers: HeaderMap) {
        let mut last_id = None;
        for _ in 0..TRIES {
            match self.listen(last_id.as_deref(), &headers).await {
                Ok(response) if response.status().is_success() => {
                    if self
                        .read_events(response, None, &mut last_id, false)
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
                // A server need not have one.
                Ok(_) => return,
                Err(_) => {}
            }
            tokio::time::sleep(BREATH).await;
        }
    }

    fn headers_for(&self, door: Option<Door>) -> HeaderMap {
        let mut state = self.state();
        let mut headers = door
            .and_then(|door| state.carried.remove(&door))
            .unwrap_or_default();
        if !headers.contains_key(AUTHORIZATION)
            && let Some(authorization) = &state.authorization
        {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        headers
    }

    async fn deliver(self: &Arc<Self>, outgoing: Outgoing) {
        if outgoing.call.is_some() || is_request(&outgoing.frame) {
            let call = outgoing.call;
            let task = tokio::spawn(self.clone().exchange(outgoing));
            if let Some(call) = call
                && !task.is_finished()
            {
                self.state().calls.insert(call, task.abort_handle());
            }
            return;
        }
        let opened = is_method(&outgoing.frame, method::INITIALIZED);
        let headers = outgoing.headers.clone();
        if let Err(error) = self.post(outgoing.frame, &outgoing.headers).await {
            tracing::warn!(error = %error.without_url(), "a message could not be sent to the server");
        }
        if opened && self.state().listening.is_none() {
            let task = tokio::spawn(self.clone().listen_for_session(headers));
            self.state().listening = Some(task.abort_handle());
        }
    }
}

async fn send_in_order(server: Weak<HttpServer>, mut outgoing: mpsc::UnboundedReceiver<Outgoing>) {
    while let Some(next) = outgoing.recv().await {
        let Some(server) = server.upgrade() else {
            return;
        };
        server.deliver(next).await;
    }
}

impl ServerSide for HttpServer {
    fn send(&self, frame: &[u8], call: Option<CallKey>, door: Option<Door>) {
        let headers = self.headers_for(door);
        // Fails only when the runtime is shutting down.
        let _ = self.queue.send(Outgoing {
            frame: frame.to_vec(),
            call,
            headers,
        });
    }

    fn flush(&self) {}

    fn carry(&self, door: Door, headers: HeaderMap) {
        let mut state = self.state();
        if let Some(authorization) = headers.get(AUTHORIZATION) {
            state.authorization = Some(authorization.clone());
        }
        state.carried.insert(door, headers);
    }

    fn abandon(&self, call: CallKey) {
        // Closing the stream gives the request up where there is no session (2026-07-28, transports).
        let mut state = self.state();
        if state.session_id.is_none()
            && let Some(task) = state.calls.remove(&call)
        {
            task.abort();
        }
    }

    fn restart(&self) {
        let session = self.session();
        tokio::spawn(async move {
            if let Some(session) = session {
                session.tell(Event::Restarted);
            }
        });
    }

    fn close(&self) {
        let mut state = self.state();
        for (_, task) in state.calls.drain() {
            task.abort();
        }
        if let Some(task) = state.listening.take() {
            task.abort();
        }
        let Some(id) = state.session_id.take() else {
            return;
        };
        let mut request = self.client.delete(self.url.clone()).header(SESSION, id);
        if let Some(authorization) = &state.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        drop(state);
        // A server that does not take it keeps the session until it times out there.
        tokio::spawn(request.send());
    }
}

fn is_request(frame: &[u8]) -> bool {
    Glance::at(frame).is_some_and(|glance| glance.shape() == Some(Shape::Request))
}

fn is_method(frame: &[u8], name: &str) -> bool {
    Glance::at(frame)
        .and_then(|glance| glance.method)
        .is_some_and(|range| &frame[range] == name.as_bytes())
}

/// What a request of the rounds era says in its headers, too (2026-07-28, transports).
fn rounds_headers(frame: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Some(said) = Said::of(frame) else {
        return headers;
    };
    if said.revision.as_deref() != Some(Revision::V2026_07_28.as_str()) {
        return headers;
    }
    headers.insert(
        VERSION,
        HeaderValue::from_static(Revision::V2026_07_28.as_str()),
    );
    if let Ok(method) = HeaderValue::from_str(&said.method) {
        headers.insert(METHOD, method);
    }
    if let Some(name) = said
        .name
        .as_deref()
        .and_then(|name| HeaderValue::from_bytes(name.as_bytes()).ok())
    {
        headers.insert(NAME, name);
    }
    headers
}

/// What a request says that headers repeat.
pub struct Said {
    /// Its method.
    pub method: String,
    /// The revision in its `_meta`.
    pub revision: Option<String>,
    /// The name or URI of what it calls.
    pub name: Option<String>,
}

impl Said {
    /// Reads it; `None` for what is no request.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let glance = Glance::at(frame)?;
        let method = String::from_utf8_lossy(&frame[glance.method?]).into_owned();
        let params = glance.params;
        let text =
            |range: std::ops::Range<usize>| serde_json::from_slice::<String>(&frame[range]).ok();
        let revision = params
            .as_ref()
            .and_then(|params| glance::member(frame, params, "_meta"))
            .and_then(|meta| {
                glance::member(frame, &meta, mcp_elicit_core::wire::meta::PROTOCOL_VERSION)
            })
            .and_then(text);
        let member = match method.as_str() {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" => Some("uri"),
            _ => None,
        };
        let name = member
            .and_then(|member| glance::member(frame, params.as_ref()?, member))
            .and_then(text);
        Some(Self {
            method,
            revision,
            name,
        })
    }
}

/// The body as the response to the request of this id. A server that refuses a request before it has read it answers
/// with an error whose id is null.
fn response_to<'a>(body: &'a [u8], id: Option<&[u8]>) -> Option<Cow<'a, [u8]>> {
    let glance = Glance::at(body).filter(|glance| glance.shape() == Some(Shape::Response))?;
    let told = glance.id?;
    match id {
        Some(id) if &body[told.clone()] == b"null" => {
            Some([&body[..told.start], id, &body[told.end..]].concat().into())
        }
        _ => Some(body.into()),
    }
}

fn failed(id: &[u8], why: &str) -> Vec<u8> {
    let error = serde_json::json!({"code": -32603, "message": why});
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#,
        String::from_utf8_lossy(id)
    )
    .into_bytes()
}
