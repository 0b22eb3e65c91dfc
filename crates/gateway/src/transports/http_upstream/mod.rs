//! A server over Streamable HTTP: every frame a POST, answered with JSON or a stream of events; in the pushed era also
//! a session and a stream that the server may write to at any time.

mod connection_thread;
mod exchange;
mod failure;
mod param_headers;
mod sign_in;
#[cfg(feature = "teams")]
mod token_exchange;
#[cfg(not(feature = "teams"))]
#[path = "token_exchange_absent.rs"]
mod token_exchange;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_elicit_client::connection::BearerToken;
use mcp_elicit_core::link::without_userinfo;
use mcp_elicit_core::wire;
use mcp_elicit_core::wire::frame::{FrameIndex, Shape};
use mcp_elicit_core::wire::method;
use mcp_elicit_relay::{CallId, DeliveryId, Event, StreamId, is_trace_parent};
use reqwest::{Client, Response, Url};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use crate::frame::FrameBytes;
use crate::headers::{PARAM_PREFIX, SESSION, VERSION, only_text, rounds_headers};
use crate::runtime::StartError;
use crate::server_challenge::ServerChallenge;
use crate::session::{ForwardedHeaders, ServerTransport, Session};

pub use connection_thread::ConnectionThread;
use connection_thread::Connections;
pub use sign_in::{UpstreamSignIn, sign_in_folder};
pub(crate) use token_exchange::TokenExchange;

/// The address of a server over HTTP.
#[derive(Clone, Debug)]
pub struct HttpTarget {
    /// Its endpoint.
    pub url: String,
    /// The token for clients that send no `Authorization`.
    pub token: Option<BearerToken>,
    /// Headers for every request, which replace those of clients. Their values are marked as sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The operator's sign-in, whose token replaces the `Authorization` of clients.
    pub sign_in: Option<UpstreamSignIn>,
    /// The thread of its connections.
    pub thread: ConnectionThread,
}

/// An unusable address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAddress {
    /// Not a URL.
    #[error("`{url}` is not a URL: {why}")]
    NoUrl {
        /// The text.
        url: String,
        /// The reason.
        why: String,
    },
    /// A URL of another kind.
    #[error("`{url}` cannot be spoken to: only http and https are spoken")]
    Scheme {
        /// The text.
        url: String,
    },
}

impl HttpTarget {
    /// Creates the address without credentials.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: None,
            headers: Vec::new(),
            sign_in: None,
            thread: ConnectionThread::default(),
        }
    }

    /// Returns `true` if the operator's own credentials replace those of clients.
    pub fn has_own_authorization(&self) -> bool {
        self.sign_in.is_some() || self.headers.iter().any(|(name, _)| *name == AUTHORIZATION)
    }

    /// Checks that a server can be at this URL.
    pub fn check(url: &str) -> Result<(), NoAddress> {
        Self::read(url).map(drop)
    }

    fn read(url: &str) -> Result<Url, NoAddress> {
        let read = Url::parse(url).map_err(|error| NoAddress::NoUrl {
            url: without_userinfo(url).into_owned(),
            why: error.to_string(),
        })?;
        match read.scheme() {
            "http" | "https" => Ok(read),
            _ => Err(NoAddress::Scheme {
                url: without_userinfo(url).into_owned(),
            }),
        }
    }

    fn authorization(&self) -> Option<HeaderValue> {
        let token = self.token.as_ref()?;
        // A token contains only characters that a header allows.
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.secret())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// A server at a URL.
pub(crate) struct HttpUpstream {
    client: Client,
    connections: Arc<Connections>,
    url: Url,
    max_frame: usize,
    repeating: HeaderSource,
    session: OnceLock<Weak<Session>>,
    state: Mutex<UpstreamState>,
    /// Notifications and answers, sent one after the other; a request waits for those before it.
    queue: mpsc::UnboundedSender<OutgoingRequest>,
    /// The number of messages in the queue or in transmission.
    queued: AtomicUsize,
    /// Their bytes.
    queued_bytes: AtomicUsize,
    /// `true` once more waits for the server than [`UNSENT`] and [`UNSENT_BYTES`] allow.
    is_overfull: AtomicBool,
    /// The signal that it is.
    overfull: Notify,
    me: Weak<Self>,
    /// Held while a session is opened in place of one that the server forgot.
    reopening: tokio::sync::Mutex<()>,
    runtime: Handle,
    /// The exchange of callers' tokens for the server's own.
    exchange: OnceLock<Arc<TokenExchange>>,
    /// The operator's token, for clients that send none.
    own_authorization: Option<HeaderValue>,
    /// The operator's headers.
    own_headers: Vec<(HeaderName, HeaderValue)>,
    sign_in: Option<UpstreamSignIn>,
}

#[derive(Default)]
struct UpstreamState {
    session_id: Option<HeaderValue>,
    /// The state of the session, as far as 400 may mean that the server has forgotten it.
    session_use: SessionUse,
    /// The client's `initialize`, for a server that forgets the session.
    opening: Option<Bytes>,
    /// The revision of the session; `None` if every request describes itself.
    revision: Option<HeaderValue>,
    /// Headers of the clients' requests in progress, by their streams.
    carried: HashMap<StreamId, HeaderMap>,
    /// The client's last `Authorization`, or the operator's before it sends one: for requests without.
    authorization: Option<HeaderValue>,
    calls: HashMap<CallId, AbortHandle>,
    listening: Option<AbortHandle>,
    /// The arguments of calls that headers repeat.
    params: param_headers::ParamHeaders,
}

/// The use of a session, as far as 400 may mean that the server has forgotten it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SessionUse {
    /// No request has been answered in it yet.
    #[default]
    New,
    /// A request was answered in it.
    Works,
    /// It was opened because of a 400, and no request has been answered in it yet.
    OpenedAnew,
}

/// The side that adds the headers for a tool's arguments (2026-07-28, transports, custom headers from tool parameters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderSource {
    /// The client: it speaks HTTP and the era with such headers, and the server checks for missing ones.
    Client,
    /// The gateway, for a client without such headers.
    Gateway,
}

struct OutgoingRequest {
    frame: Bytes,
    /// The positions of its parts.
    index: FrameIndex,
    call: Option<CallId>,
    headers: HeaderMap,
    /// The delivery of the answers in it.
    delivery: Option<DeliveryId>,
}

impl OutgoingRequest {
    fn is_request(&self) -> bool {
        self.call.is_some() || self.index.shape() == Some(Shape::Request)
    }

    /// Returns its parts; `None` if it is not text.
    fn parts(&self) -> Option<wire::Frame<'_>> {
        wire::Frame::new(&self.frame, &self.index)
    }

    fn has_method(&self, name: &str) -> bool {
        self.index.method_in(&self.frame) == Some(name)
    }
}

/// The upstream's response, or the reason why there is none.
type UpstreamResult = Result<Response, reqwest::Error>;

/// The reason why a message has no response of the upstream.
enum Unsent {
    /// Sending failed.
    Failed(reqwest::Error),
    /// It was not sent, because there is no token for the server. In words.
    NoToken(String),
}

impl From<reqwest::Error> for Unsent {
    fn from(error: reqwest::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<String> for Unsent {
    fn from(why: String) -> Self {
        Self::NoToken(why)
    }
}

impl HttpUpstream {
    /// Creates a server at this URL. Must be called in a tokio runtime.
    pub(crate) fn new(
        at: &HttpTarget,
        max_frame: usize,
        repeating: HeaderSource,
    ) -> Result<Arc<Self>, StartError> {
        mcp_elicit_client::tls::ready();
        let address = |why: String| StartError::Address { why };
        let url = HttpTarget::read(&at.url).map_err(|fault| address(fault.to_string()))?;
        let mut client = Client::builder()
            .tcp_nodelay(true)
            .redirect(mcp_elicit_client::tls::redirects_within_origin())
            .referer(false);
        if url.scheme() == "http" {
            // No redirect leads to https, and reading the system's certificates takes longer than everything
            // else.
            client = client.tls_certs_only([]);
        }
        let client = client.build().map_err(|error| address(error.to_string()))?;
        let connections = at.thread.start();
        let connections = connections.map_err(|error| address(error.to_string()))?;
        let (queue, outgoing) = mpsc::unbounded_channel();
        let server = Arc::new_cyclic(|me| Self {
            client,
            connections,
            url,
            max_frame,
            repeating,
            session: OnceLock::new(),
            state: Mutex::new(UpstreamState {
                authorization: at.authorization(),
                ..UpstreamState::default()
            }),
            queue,
            queued: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
            is_overfull: AtomicBool::new(false),
            overfull: Notify::new(),
            me: me.clone(),
            reopening: tokio::sync::Mutex::default(),
            runtime: Handle::current(),
            exchange: OnceLock::new(),
            own_authorization: at.authorization(),
            own_headers: at.headers.clone(),
            sign_in: at.sign_in.clone(),
        });
        tokio::spawn(send_in_order(Arc::downgrade(&server), outgoing));
        Ok(server)
    }

    /// Sends an exchanged token in place of each caller's.
    pub(crate) fn exchange_tokens(&self, exchange: Arc<TokenExchange>) {
        let _set_once = self.exchange.set(exchange);
    }

    /// Returns the headers for the server: with the operator's, and with an exchanged token or that of the operator's
    /// sign-in in place of a caller's, if configured. Redirects are not followed, so they go nowhere else.
    ///
    /// # Errors
    /// If there is no token, in words.
    async fn authorized(&self, mut headers: HeaderMap) -> Result<HeaderMap, String> {
        for (name, value) in &self.own_headers {
            headers.insert(name.clone(), value.clone());
        }
        if let Some(sign_in) = &self.sign_in {
            headers.remove(AUTHORIZATION);
            headers.extend(
                sign_in
                    .authorization()
                    .await?
                    .map(|own| (AUTHORIZATION, own)),
            );
            return Ok(headers);
        }
        if let Some(exchange) = self.exchange.get()
            && let Some(callers) = headers.remove(AUTHORIZATION)
            && let Some(own) = exchange.authorization(&callers).await?
        {
            headers.insert(AUTHORIZATION, own);
        }
        Ok(headers)
    }

    /// Returns `true` if a request with this refusal should be retried with a new token.
    fn renews_token(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        if status == StatusCode::UNAUTHORIZED
            && let Some(exchange) = self.exchange.get()
            && let Some(callers) = headers.get(AUTHORIZATION)
        {
            exchange.drop_for(callers);
            return true;
        }
        false
    }

    /// Posts a message, and repeats it if its token is no longer accepted.
    async fn post(&self, outgoing: &OutgoingRequest) -> Result<Response, Unsent> {
        let headers = self.authorized(outgoing.headers.clone()).await?;
        if let Some(sign_in) = &self.sign_in {
            return self.post_signed_in(sign_in, outgoing, headers).await;
        }
        let response = self.post_with(outgoing, headers).await?;
        if !self.renews_token(response.status(), &outgoing.headers) {
            return Ok(response);
        }
        let headers = self.authorized(outgoing.headers.clone()).await?;
        Ok(self.post_with(outgoing, headers).await?)
    }

    /// Posts a message with the token of the operator's sign-in, and repeats it with a renewed one if the server refuses
    /// that before it reads the message.
    async fn post_signed_in(
        &self,
        sign_in: &UpstreamSignIn,
        outgoing: &OutgoingRequest,
        mut headers: HeaderMap,
    ) -> Result<Response, Unsent> {
        let sent = headers.get(AUTHORIZATION).cloned();
        let mut response = self.post_with(outgoing, headers.clone()).await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(own) = sign_in.renewed(sent.as_ref()).await?
        {
            headers.insert(AUTHORIZATION, own);
            response = self.post_with(outgoing, headers).await?;
        }
        match sign_in.refusal(response.status(), response.headers()) {
            Some(why) => Err(why.into()),
            None => Ok(response),
        }
    }

    /// Ties the server to its session.
    pub(crate) fn attach(&self, session: &Arc<Session>) {
        let _set_once = self.session.set(Arc::downgrade(session));
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.get().and_then(Weak::upgrade)
    }

    fn state(&self) -> MutexGuard<'_, UpstreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post_with(
        &self,
        outgoing: &OutgoingRequest,
        headers: HeaderMap,
    ) -> impl Future<Output = UpstreamResult> + use<> {
        let mut request = self.client.post(self.url.clone());
        request = request.headers(headers);
        request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        // A server with a session speaks the pushed era, whatever the client's frame says about itself. It is asked for
        // the rounds era outside of it.
        let session = if outgoing.has_method(method::DISCOVER) {
            Vec::new()
        } else {
            self.session_headers()
        };
        if session.is_empty() {
            let parts = outgoing.parts();
            let mut headers = parts.map(rounds_headers).unwrap_or_default();
            if outgoing.has_method("tools/call") {
                let given = outgoing.headers.iter();
                let params = given.filter(|(name, _)| name.as_str().starts_with(PARAM_PREFIX));
                headers.extend(params.map(|(name, value)| (name.clone(), value.clone())));
                if let (Some(parts), HeaderSource::Gateway) = (parts, self.repeating) {
                    self.state().params.complete(parts, &mut headers);
                }
            }
            request = request.headers(headers);
        }
        for (name, value) in session {
            request = request.header(name, value);
        }
        let connections = self.connections.clone();
        let sent = request.body(outgoing.frame.clone()).send();
        async move { connections.connecting(sent).await }
    }

    fn session_headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let state = self.state();
        let session = state.session_id.clone().map(|id| (SESSION, id));
        let revision = state.revision.clone().map(|revision| (VERSION, revision));
        session.into_iter().chain(revision).collect()
    }

    fn headers_for(&self, stream: Option<StreamId>) -> HeaderMap {
        let state = self.state();
        // A client's request has its own credentials, or the operator's; not those of an earlier request.
        if let Some(carried) = stream.and_then(|stream| state.carried.get(&stream)) {
            let mut headers = carried.clone();
            if let Some(own) = &self.own_authorization
                && !headers.contains_key(AUTHORIZATION)
            {
                headers.insert(AUTHORIZATION, own.clone());
            }
            return headers;
        }
        let authorization = state.authorization.iter();
        let authorization = authorization.map(|value| (AUTHORIZATION, value.clone()));
        authorization.collect()
    }

    /// Sends a request in a separate task.
    fn start(self: Arc<Self>, outgoing: OutgoingRequest) {
        let call = outgoing.call;
        // Under the lock: an exchange that ends at once must not be recorded after it was forgotten.
        let mut state = self.state();
        let task = self.runtime.spawn(self.clone().exchange(outgoing));
        if let Some(call) = call {
            state.calls.insert(call, task.abort_handle());
        }
    }

    /// Forgets the exchange that runs here. It may have started another of the same call, which stays.
    fn forget(&self, call: CallId) {
        let mut state = self.state();
        let here = tokio::task::try_id();
        if state.calls.get(&call).map(AbortHandle::id) == here {
            state.calls.remove(&call);
        }
    }

    async fn deliver(self: &Arc<Self>, outgoing: OutgoingRequest) {
        if outgoing.is_request() {
            self.clone().start(outgoing);
            return;
        }
        self.deliver_alone(&outgoing).await;
        if outgoing.has_method(method::INITIALIZED) && self.state().listening.is_none() {
            let task = tokio::spawn(self.clone().listen_for_session(outgoing.headers));
            self.state().listening = Some(task.abort_handle());
        }
    }
}

/// The messages that may wait for a server that does not accept them, before more are refused.
const QUEUED: usize = 1_024;

/// The messages that may wait for a server that does not accept them, answers to its own requests included, before the
/// session with it ends.
const UNSENT: usize = 16_384;

/// The bytes that may wait for such a server, before requests are refused and the session with it ends.
const UNSENT_BYTES: usize = 64 * 1024 * 1024;

/// The reason why a session with such a server ended.
const OVERFULL: &str = "it does not accept what it is sent: more than 16,384 messages or 64 MiB of answers to its own requests waited for it";

/// The time for which the stream of a cancelled request is read further in a session.
const AFTER_CANCELLATION: Duration = Duration::from_secs(10);
/// The time limit for a server to accept an answer or a notification.
const ACCEPTS: Duration = Duration::from_secs(60);

/// The result of sent answers.
enum Fate {
    Accepted,
    Refused(String),
    Lost(String),
}

impl Fate {
    /// Returns the result for the status of the response to the answers' message.
    fn of_status(status: StatusCode) -> Self {
        if status.is_success() {
            Self::Accepted
        } else if status.is_client_error() || status.is_redirection() {
            Self::Refused(words_of(status))
        } else {
            Self::Lost(words_of(status))
        }
    }

    /// Returns the reason why the answers were not accepted, in words; empty if they were.
    fn why(&self) -> String {
        match self {
            Self::Accepted => String::new(),
            Self::Refused(why) | Self::Lost(why) => why.clone(),
        }
    }

    /// Returns the result for a failure of sending to this address.
    fn of_failure(error: &Unsent, at: &Url) -> Self {
        let error = match error {
            Unsent::Failed(error) => error,
            Unsent::NoToken(why) => return Self::Refused(why.clone()),
        };
        // Nothing was sent without a connection.
        let never_sent = error.is_connect() || error.is_builder();
        let why = failure::words(error, at);
        if never_sent {
            Self::Refused(why)
        } else {
            Self::Lost(why)
        }
    }
}

/// Returns a status in words.
fn words_of(status: StatusCode) -> String {
    let code = status.as_u16();
    match status {
        StatusCode::UNAUTHORIZED => {
            format!("the server requires authorization (HTTP status {code})")
        }
        StatusCode::FORBIDDEN => {
            format!("the authorization shown is not enough for the server (HTTP status {code})")
        }
        _ if status.is_redirection() => format!(
            "the server redirects to another address, which is not followed; use that address as the server's URL (HTTP status {code})"
        ),
        _ if status.is_success() => format!(
            "the server's answer has no response; is this the URL of an MCP server? (HTTP status {code})"
        ),
        _ => format!("the server answered with HTTP status {code}"),
    }
}

impl HttpUpstream {
    /// Sends a message without a response of its own.
    async fn deliver_alone(&self, outgoing: &OutgoingRequest) {
        let sent = tokio::time::timeout(ACCEPTS, self.post(outgoing)).await;
        let mut challenge = None;
        let fate = match sent {
            Ok(Ok(response)) => {
                challenge = ServerChallenge::of(response.status(), response.headers());
                Fate::of_status(response.status())
            }
            Ok(Err(error)) => Fate::of_failure(&error, &self.url),
            Err(_) => Fate::Lost("the server did not say in time whether it has it".to_owned()),
        };
        if outgoing.delivery.is_none()
            && let Fate::Refused(why) | Fate::Lost(why) = &fate
        {
            tracing::warn!(%why, "a message could not be sent to the server");
        }
        self.tell_fate(outgoing.delivery, fate, challenge.as_ref());
    }

    /// Tells the session the result of sent answers.
    fn tell_fate(
        &self,
        delivery: Option<DeliveryId>,
        fate: Fate,
        challenge: Option<&ServerChallenge>,
    ) {
        let (Some(delivery), Some(session)) = (delivery, self.session()) else {
            return;
        };
        let event = match fate {
            Fate::Accepted => Event::Accepted(delivery),
            Fate::Refused(why) => Event::Refused { delivery, why },
            Fate::Lost(why) => Event::Lost { delivery, why },
        };
        session.tell_challenged(event, challenge);
    }
}

/// Removes headers of a client that could tell an approved call something that its approvers have not seen. As in
/// `_meta`, the trace headers stay, in their own format.
fn remove_unshown(headers: &mut HeaderMap) {
    for name in ["tracestate", "baggage", "x-request-id"] {
        headers.remove(name);
    }
    let is_trace = only_text(headers, "traceparent").is_some_and(is_trace_parent);
    if !is_trace {
        headers.remove("traceparent");
    }
}

async fn send_in_order(
    server: Weak<HttpUpstream>,
    mut outgoing: mpsc::UnboundedReceiver<OutgoingRequest>,
) {
    while let Some(next) = outgoing.recv().await {
        let Some(server) = server.upgrade() else {
            return;
        };
        let (bytes, delivery) = (next.frame.len(), next.delivery);
        tokio::select! {
            biased;
            () = server.deliver(next) => {}
            () = server.overfull.notified() => {
                let why = "the server did not say whether it has it".to_owned();
                server.tell_fate(delivery, Fate::Lost(why), None);
                return server.end_overfull(outgoing);
            }
        }
        server.queued.fetch_sub(1, Ordering::AcqRel);
        server.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}

impl HttpUpstream {
    /// Queues a message, or ends the session with the server if too much waits before it.
    fn queue(&self, outgoing: OutgoingRequest) {
        let bytes = outgoing.frame.len();
        let before = self.queued.fetch_add(1, Ordering::AcqRel);
        let bytes_before = self.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
        // A single message may have any length. Requests are held back where the client is read.
        let fits = before == 0
            || outgoing.is_request()
            || (before < UNSENT && bytes_before + bytes <= UNSENT_BYTES);
        if fits {
            // Fails only when the runtime is shutting down.
            let _ = self.queue.send(outgoing);
        } else {
            self.is_overfull.store(true, Ordering::Release);
            self.overfull.notify_one();
            self.refuse_overfull(outgoing.delivery);
        }
    }

    /// Reports, outside the relay's lock, that answers were not sent because too much waits for the server: they stay in
    /// the record.
    fn refuse_overfull(&self, delivery: Option<DeliveryId>) {
        if let (Some(_), Some(server)) = (delivery, self.me.upgrade()) {
            self.runtime.spawn(async move {
                server.tell_fate(delivery, Fate::Refused(OVERFULL.to_owned()), None);
            });
        }
    }

    /// Ends the session with a server for which too much waits. Answers that were not sent stay in the record.
    fn end_overfull(&self, mut outgoing: mpsc::UnboundedReceiver<OutgoingRequest>) {
        outgoing.close();
        while let Ok(unsent) = outgoing.try_recv() {
            let fate = Fate::Refused(OVERFULL.to_owned());
            self.tell_fate(unsent.delivery, fate, None);
        }
        // A client is told of the end rather than held back.
        self.queued.store(0, Ordering::Release);
        self.queued_bytes.store(0, Ordering::Release);
        if let Some(session) = self.session() {
            session.tell(Event::ServerGone(OVERFULL.to_owned()));
        }
        self.close();
    }
}

impl ServerTransport for HttpUpstream {
    fn send(
        &self,
        frame: FrameBytes<'_>,
        call: Option<CallId>,
        stream: Option<StreamId>,
        delivery: Option<DeliveryId>,
        beside: ForwardedHeaders,
    ) {
        // The relay sends only frames whose parts can be found.
        let (index, frame) = (frame.index(), frame.to_bytes());
        let mut headers = self.headers_for(stream);
        if beside == ForwardedHeaders::Shown {
            remove_unshown(&mut headers);
        }
        param_headers::remove_unrepeated(
            &self.state().params,
            || wire::Frame::new(&frame, &index),
            &mut headers,
        );
        let outgoing = OutgoingRequest {
            frame,
            index,
            call,
            headers,
            delivery,
        };
        if self.is_overfull.load(Ordering::Acquire) {
            return self.refuse_overfull(outgoing.delivery);
        }
        // With nothing before it, a request need not be queued. Frames come one at a time, under the relay's lock, so
        // nothing gets in between.
        if self.queued.load(Ordering::Acquire) == 0
            && outgoing.is_request()
            && let Some(server) = self.me.upgrade()
        {
            return server.start(outgoing);
        }
        self.queue(outgoing);
    }

    fn flush(&self) {}

    fn is_up(&self) -> bool {
        !self.is_overfull.load(Ordering::Acquire)
    }

    fn has_room(&self) -> bool {
        self.queued.load(Ordering::Acquire) < QUEUED
            && self.queued_bytes.load(Ordering::Acquire) < UNSENT_BYTES
    }

    fn set_request_headers(&self, stream: StreamId, headers: Option<HeaderMap>) {
        let mut state = self.state();
        let Some(headers) = headers else {
            state.carried.remove(&stream);
            return;
        };
        if let Some(authorization) = headers.get(AUTHORIZATION) {
            state.authorization = Some(authorization.clone());
        }
        state.carried.insert(stream, headers);
    }

    fn abandon(&self, call: CallId) {
        let mut state = self.state();
        let Some(task) = state.calls.remove(&call) else {
            return;
        };
        // Closing the stream cancels the request if there is no session (2026-07-28, transports).
        if state.session_id.is_none() {
            task.abort();
            return;
        }
        // In a session the cancellation is a message, after which the server should end the stream.
        self.runtime.spawn(async move {
            tokio::time::sleep(AFTER_CANCELLATION).await;
            task.abort();
        });
    }

    fn restart(&self) {
        let session = self.session();
        tokio::spawn(async move {
            if let Some(session) = session {
                session.tell(Event::Restarted);
            }
        });
    }

    fn leave_session(&self) {
        let mut state = self.state();
        state.revision = None;
        state.opening = None;
        if let Some(task) = state.listening.take() {
            task.abort();
        }
        let id = state.session_id.take();
        let authorization = state.authorization.clone();
        drop(state);
        if let Some(id) = id {
            self.delete_session(id, authorization);
        }
    }

    fn close(&self) {
        let mut state = self.state();
        for (_, task) in state.calls.drain() {
            task.abort();
        }
        if let Some(task) = state.listening.take() {
            task.abort();
        }
        let id = state.session_id.take();
        let authorization = state.authorization.clone();
        drop(state);
        if let Some(id) = id {
            self.delete_session(id, authorization);
        }
    }
}

impl HttpUpstream {
    /// Ends a session at the server. A server that does not accept it keeps the session until it times out there.
    fn delete_session(&self, id: HeaderValue, authorization: Option<HeaderValue>) {
        let mut request = self.client.delete(self.url.clone()).header(SESSION, id);
        let (me, connections) = (self.me.upgrade(), self.connections.clone());
        self.runtime.spawn(async move {
            let headers = authorization.map(|value| (AUTHORIZATION, value));
            let headers = match me {
                Some(me) => me.authorized(headers.into_iter().collect()).await,
                // No credentials go to a server that is no longer known.
                None => Ok(HeaderMap::new()),
            };
            if let Ok(headers) = headers {
                request = request.headers(headers);
            }
            let _ = connections.connecting(request.send()).await;
        });
    }
}

#[cfg(test)]
mod tests;
