//! Streamable HTTP, with limits, and with the exact parameters of questions preserved. rmcp drives sessions, streams
//! and retries; this file posts a message and reads the response.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use mcp_elicit_core::fault::with_causes;
use mcp_elicit_core::text::beginning;
use reqwest::Response;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::finding::ProtocolFinding;
use super::incoming::{Heard, PendingMessages};
use super::stdio::UNREAD;
use super::transport_error::{Health, TransportError};
use super::unanswered::UnansweredRequests;
use super::{ConnectError, ConnectOptions};

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const BOTH: &str = "application/json, text/event-stream";
const SESSION: &str = "mcp-session-id";
/// The part of an error page that is read, in bytes.
const ERROR_LIMIT: usize = 64 * 1024;
/// The time in which the body of a refusal is read.
const REFUSAL: Duration = Duration::from_secs(5);
/// The longest part of a media type that is shown, in bytes.
const LONGEST_TYPE: usize = 100;
/// The longest kept message of a refusal, in bytes.
const LONGEST_REASON: usize = 2_000;

/// The shortest pause before a stream that has ended is opened again, although its server asks for less.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

type ExtraHeaders = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;
type SseEvents = BoxStream<'static, Result<Sse, SseError>>;

/// The HTTP side of one connection, for [`Connection::open_wrapped`](super::Connection::open_wrapped).
///
/// ```
/// use mcp_elicit_client::connection::Http;
/// use mcp_elicit_client::{ConnectError, ConnectOptions, Connection, ElicitingClient};
///
/// /// rmcp's `AuthClient`, or a client that adds headers, goes where the closure returns the client as it is.
/// async fn open(url: &str, eliciting: ElicitingClient<()>) -> Result<Connection<()>, ConnectError> {
///     Connection::open_wrapped(url, eliciting, &ConnectOptions::default(), |http: Http| http).await
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Http {
    client: reqwest::Client,
    health: Health,
    messages: PendingMessages,
    /// The server's requests whose answers are not posted yet.
    unanswered: UnansweredRequests,
    limit: usize,
}

impl Http {
    /// Creates the client for the server at this URL.
    pub(super) fn for_server(
        url: &str,
        options: &ConnectOptions,
        health: Health,
    ) -> Result<Self, ConnectError> {
        let parsed = reqwest::Url::parse(url);
        if !parsed.is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            return Err(ConnectError::Url {
                url: mcp_elicit_core::link::without_userinfo(url).into_owned(),
            });
        }
        let client = crate::tls::client()
            .connect_timeout(options.within)
            .redirect(crate::tls::redirects_within_origin())
            .referer(false)
            .build()
            .map_err(|error| ConnectError::Setup(Box::new(error)))?;
        Ok(Self::new(client, options.frame_limit, health))
    }

    /// Creates a client that reads frames of at most `limit` bytes.
    pub(crate) fn new(client: reqwest::Client, limit: usize, health: Health) -> Self {
        Self {
            client,
            messages: PendingMessages::new(health.clone()),
            unanswered: UnansweredRequests::default(),
            health,
            limit,
        }
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: ExtraHeaders,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let _until_posted = self.unanswered.answered_by(&message);
        self.health.sends(token.as_deref(), &headers);
        let mut request = self.client.post(uri.as_ref()).header(ACCEPT, BOTH);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = &session {
            request = request.header(SESSION, session.as_ref());
        }
        self.messages.sends(&message);
        let body = self.messages.written(&message)?;
        let request = request.header(CONTENT_TYPE, JSON).body(body);
        let response = request.send().await.map_err(undelivered)?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status.is_success() {
            self.read_success(response, &message).await
        } else {
            self.read_failure(response, &message, session.is_some())
                .await
        }
    }

    async fn read_success(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let session = text_of(&response, SESSION);
        if session.is_some() {
            self.health.named_session();
        }
        let awaits_reply = matches!(message, ClientJsonRpcMessage::Request(_));
        match media_type(&response) {
            Some(kind) if kind.starts_with(EVENTS) => Ok(StreamableHttpPostResponse::Sse(
                self.events(response),
                session,
            )),
            _ if !awaits_reply => Ok(StreamableHttpPostResponse::Accepted),
            Some(kind) if kind.starts_with(JSON) => {
                let body = self.body(response, self.limit).await?;
                let message = self.read_body(&body)?;
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            kind => {
                let body = self.body(response, self.limit).await?;
                let Heard::Message(message, _) = self.messages.read(&body) else {
                    return Err(wrong_type(
                        kind.as_deref(),
                        "application/json or text/event-stream",
                    ));
                };
                let found = shown_type(kind.as_deref());
                self.health.found(ProtocolFinding::general(format!(
                    "the media type of a response is {found}; it must be application/json or text/event-stream"
                )));
                Ok(StreamableHttpPostResponse::Json(*message, session))
            }
        }
    }

    /// Reads a failed response, and keeps the JSON-RPC error in its body, if there is one. A rejected `server/discover`
    /// always becomes an error response, because that is how an older server can be recognised (2026-07-28, transports,
    /// backward compatibility).
    async fn read_failure(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        had_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        if status.is_redirection() {
            return Err(redirected(&response));
        }
        // The code that requests an authorization reads the challenge.
        let challenge = text_of(&response, WWW_AUTHENTICATE.as_str());
        let refused = match (status, challenge) {
            (StatusCode::UNAUTHORIZED, challenge) => {
                let required = AuthRequiredError::new(challenge.unwrap_or_default());
                Some(StreamableHttpError::AuthRequired(required))
            }
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                let lacking = InsufficientScopeError::new(challenge, None);
                Some(StreamableHttpError::InsufficientScope(lacking))
            }
            _ => None,
        };
        if let Some(refused) = refused {
            let body = tokio::time::timeout(REFUSAL, start_of(response)).await;
            let words = body.ok().and_then(|body| error_in(&body));
            let words = words.map(|error| {
                let mut words = self.health.masked(&error.message);
                words.truncate(beginning(&words, LONGEST_REASON).len());
                words
            });
            self.health.was_refused(words);
            return Err(refused);
        }
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let body = self.body(response, ERROR_LIMIT).await.unwrap_or_default();
        let told = error_in(&body).map(|mut error| {
            error.message = self.health.masked(&error.message).into();
            error
        });
        let ClientJsonRpcMessage::Request(request) = message else {
            return Err(unexpected(status));
        };
        let probing = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let error = match told {
            Some(error) => error,
            None if probing && status.is_client_error() && !had_session => {
                ErrorData::invalid_request(format!("HTTP {status}"), None)
            }
            None => return Err(unexpected(status)),
        };
        Ok(StreamableHttpPostResponse::Json(
            ServerJsonRpcMessage::error(error, Some(request.id.clone())),
            None,
        ))
    }

    async fn body(&self, response: Response, limit: usize) -> Result<Bytes, Failed> {
        let mut stream = response.bytes_stream();
        let mut body = BytesMut::new();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(StreamableHttpError::Client)?;
            if body.len() + chunk.len() > limit {
                self.health.broke(TransportError::TooLarge { limit });
                return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// Reads the response in a body.
    fn read_body(&self, body: &[u8]) -> Result<ServerJsonRpcMessage, Failed> {
        let trouble = match self.messages.read(body) {
            Heard::Message(message, _) => return Ok(*message),
            Heard::Batch(messages) => {
                let is_response = |message: &ServerJsonRpcMessage| {
                    matches!(
                        message,
                        ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)
                    )
                };
                match messages.into_iter().find(is_response) {
                    Some(message) => return Ok(message),
                    None => TransportError::NotAMessage,
                }
            }
            Heard::Stray => TransportError::NotAMessage,
            Heard::Broken { why, .. } => TransportError::BrokenJson { why },
        };
        let error = serde::de::Error::custom(trouble.to_string());
        self.health.broke(trouble);
        Err(StreamableHttpError::Deserialize(error))
    }

    async fn events_of_server(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: ExtraHeaders,
    ) -> Result<SseEvents, Failed> {
        self.health.sends(token.as_deref(), &headers);
        let mut request = self.client.get(uri.as_ref()).header(ACCEPT, EVENTS);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // A stream that is resumed has the response to a call. A server that lost the session, such as another one behind the
        // same address, never sends it.
        let resumes = session.is_some() && last_event.is_some();
        if let Some(session) = session {
            request = request.header(SESSION, session.as_ref());
        }
        if let Some(event) = last_event {
            request = request.header("last-event-id", event);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(undelivered)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && resumes {
            self.health.broke(TransportError::SessionGone);
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if let Some(challenge) = text_of(&response, WWW_AUTHENTICATE.as_str()) {
            match status {
                StatusCode::UNAUTHORIZED => {
                    let required = AuthRequiredError::new(challenge);
                    return Err(StreamableHttpError::AuthRequired(required));
                }
                StatusCode::FORBIDDEN => {
                    let lacking = InsufficientScopeError::new(challenge, None);
                    return Err(StreamableHttpError::InsufficientScope(lacking));
                }
                _ => {}
            }
        }
        if !status.is_success() {
            return Err(unexpected(status));
        }
        match media_type(&response) {
            Some(kind) if kind.starts_with(EVENTS) || kind.starts_with(JSON) => {
                Ok(self.events(response))
            }
            kind => Err(wrong_type(kind.as_deref(), EVENTS)),
        }
    }

    /// Returns the events of a response, each within the limit and with its questions preserved.
    fn events(&self, response: Response) -> SseEvents {
        let limit = self.limit;
        let health = self.health.clone();
        let mut since_event = 0_usize;
        let mut last = 0_u8;
        let bounded = response
            .bytes_stream()
            .map(move |chunk| -> Result<Bytes, EventFailed> {
                let chunk = chunk.map_err(|error| EventFailed::Read(error.without_url()))?;
                for byte in chunk.iter().copied() {
                    let ends = byte == b'\n' && last == b'\n';
                    since_event = if ends { 0 } else { since_event + 1 };
                    if byte != b'\r' {
                        last = byte;
                    }
                    if since_event > limit {
                        health.broke(TransportError::TooLarge { limit });
                        return Err(EventFailed::TooLarge { limit });
                    }
                }
                Ok(chunk)
            });
        let (health, messages) = (self.health.clone(), self.messages.clone());
        let unanswered = self.unanswered.clone();
        let asked = unanswered.clone();
        SseStream::from_bytes_stream(bounded)
            .map(move |event| event.map(|event| preserve(paced(event), &health, &messages, &asked)))
            .take_while(move |_| std::future::ready(!unanswered.are_too_many()))
            .boxed()
    }
}

/// Returns the start of a body, or nothing if it cannot be read.
async fn start_of(response: Response) -> Bytes {
    let mut stream = response.bytes_stream();
    let mut body = BytesMut::new();
    while let Some(Ok(chunk)) = stream.next().await {
        if body.len() + chunk.len() > ERROR_LIMIT {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    body.freeze()
}

/// Returns the JSON-RPC error in a body, if it is one.
fn error_in(body: &[u8]) -> Option<ErrorData> {
    match serde_json::from_slice::<ServerJsonRpcMessage>(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
        _ => None,
    }
}

#[derive(Debug, thiserror::Error)]
enum EventFailed {
    #[error("reading the event stream failed")]
    Read(#[source] reqwest::Error),
    #[error("an event was larger than {limit} bytes")]
    TooLarge { limit: usize },
}

/// Raises the pause that an event asks for to the shortest one: a stream that ends at once would be opened without end.
fn paced(event: Sse) -> Sse {
    let shortest = u64::try_from(SHORTEST_PAUSE.as_millis()).unwrap_or(u64::MAX);
    let retry = event.retry.map(|pause| pause.max(shortest));
    Sse { retry, ..event }
}

/// Puts into an event what rmcp can read of it, and nothing if it is no message. rmcp skips an event that it cannot read,
/// and its call would wait forever, so a response that is not JSON is recorded here.
fn preserve(
    mut event: Sse,
    health: &Health,
    messages: &PendingMessages,
    unanswered: &UnansweredRequests,
) -> Sse {
    let Some(data) = event.data.as_mut().filter(|data| !data.trim().is_empty()) else {
        return event;
    };
    match messages.read(data.as_bytes()) {
        Heard::Message(message, text) => {
            if let ServerJsonRpcMessage::Request(request) = &*message
                && !unanswered.asked(&request.id, text.len())
            {
                health.broke(TransportError::Unread { limit: UNREAD });
            }
            if let Ok(text) = String::from_utf8(text) {
                *data = text;
            }
        }
        // rmcp reads one message of an event: the one that a call waits for.
        Heard::Batch(batch) => {
            let response = batch.into_iter().find_map(|message| match message {
                ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => {
                    serde_json::to_string(&message).ok()
                }
                ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
            });
            *data = response.unwrap_or_default();
        }
        Heard::Stray => {
            health.heard_stray_line(data.as_bytes());
            data.clear();
        }
        Heard::Broken { why, answers } => {
            health.heard_stray_line(data.as_bytes());
            data.clear();
            if answers.is_some_and(|id| messages.awaits(&id)) {
                health.broke(TransportError::BrokenJson { why });
            }
        }
    }
    event
}

/// Returns the error with the last of its causes, which names the problem; rmcp reports only the first.
fn undelivered(error: reqwest::Error) -> Failed {
    StreamableHttpError::Io(std::io::Error::other(with_causes(&error.without_url())))
}

fn unexpected(status: StatusCode) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}")))
}

/// Returns the longest part of a media type that is shown; `missing` if there is none.
fn shown_type(kind: Option<&str>) -> String {
    kind.map_or("missing", |kind| beginning(kind, LONGEST_TYPE))
        .to_owned()
}

/// Returns the error for a response of this media type where another is needed.
fn wrong_type(kind: Option<&str>, needed: &str) -> Failed {
    let found = shown_type(kind);
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!(
        "the media type of the response is {found}, not {needed}; is this the URL of an MCP server?"
    )))
}

/// Returns the error for a redirect that is not followed: headers and arguments were meant for this server alone.
fn redirected(response: &Response) -> Failed {
    let to = text_of(response, LOCATION.as_str())
        .and_then(|location| response.url().join(&location).ok())
        .map_or_else(String::new, |to| {
            format!(" to {}", to.origin().ascii_serialization())
        });
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!(
        "HTTP {}: the server redirects{to}, which is not followed; use that server's own URL if you trust it",
        response.status().as_u16()
    )))
}

/// Returns the media type of a response in small letters, since it may be written in any case (RFC 9110, 8.3.1).
fn media_type(response: &Response) -> Option<String> {
    text_of(response, CONTENT_TYPE.as_str()).map(|kind| kind.trim().to_ascii_lowercase())
}

fn text_of(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

impl StreamableHttpClient for Http {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: ExtraHeaders,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.post(uri, message, session_id, auth_header, custom_headers)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: ExtraHeaders,
    ) -> Result<(), Failed> {
        self.client
            .delete_session(uri, session_id, auth_header, custom_headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: ExtraHeaders,
    ) -> Result<SseEvents, Failed> {
        self.events_of_server(uri, session_id, last_event_id, auth_header, custom_headers)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_asks_for_no_pause_is_given_one() {
        let pause = |retry| {
            let event = Sse {
                retry,
                ..Sse::default()
            };
            paced(event).retry
        };
        assert_eq!(pause(Some(0)), Some(100));
        assert_eq!(pause(Some(5_000)), Some(5_000));
        assert_eq!(pause(None), None);
    }
}
