//! Streamable HTTP, with limits and the exact parameters of questions kept. rmcp drives sessions, streams and retries;
//! this file posts a message and reads what comes back.

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

use super::credential_mask::CredentialMask;
use super::transport_error::{Health, TransportError};
use super::{ConnectError, ConnectOptions};
use crate::raw_params;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const BOTH: &str = "application/json, text/event-stream";
const SESSION: &str = "mcp-session-id";
/// The part of an error page that is read, in bytes.
const ERROR_LIMIT: usize = 64 * 1024;
/// The time that a refusal may take to say why.
const REFUSAL: Duration = Duration::from_secs(5);
/// The part of a refusal's words that is kept, in bytes.
const LONGEST_REASON: usize = 2_000;

type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

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
    limit: usize,
}

impl Http {
    /// The client for the server at this URL.
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
            // Headers and arguments are for this server, and for none that it names.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| ConnectError::Setup(Box::new(error)))?;
        Ok(Self::new(client, options.frame_limit, health))
    }

    /// Frames of at most `limit` bytes.
    pub(crate) fn new(client: reqwest::Client, limit: usize, health: Health) -> Self {
        Self {
            client,
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
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let sent = CredentialMask::of(token.as_deref(), &headers);
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
        let response = request.json(&message).send().await.map_err(undelivered)?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status.is_success() {
            self.read_success(response, &message).await
        } else {
            self.read_failure(response, &message, session.is_some(), &sent)
                .await
        }
    }

    async fn read_success(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let session = text_of(&response, SESSION);
        let awaits_reply = matches!(message, ClientJsonRpcMessage::Request(_));
        match text_of(&response, CONTENT_TYPE.as_str()) {
            Some(kind) if kind.starts_with(EVENTS) => Ok(StreamableHttpPostResponse::Sse(
                self.events(response),
                session,
            )),
            _ if !awaits_reply => Ok(StreamableHttpPostResponse::Accepted),
            Some(kind) if kind.starts_with(JSON) => {
                let body = self.body(response, self.limit).await?;
                let message = raw_params::read(&body).map_err(|error| self.broken(error))?;
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    /// A failure keeps the JSON-RPC error in its body, if there is one. A refused `server/discover` always becomes an
    /// error response: it is how an older server says that it is one (2026-07-28, transports, backward compatibility).
    async fn read_failure(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        had_session: bool,
        sent: &CredentialMask,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        if status.is_redirection() {
            return Err(redirected(&response));
        }
        // The code that asks for an authorization reads the challenge.
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
                let mut words = sent.apply_to(&error.message);
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
            error.message = sent.apply_to(&error.message).into();
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

    fn broken(&self, error: serde_json::Error) -> Failed {
        self.health.broke(if error.is_data() {
            TransportError::NotAMessage
        } else {
            TransportError::BrokenJson {
                why: error.to_string(),
            }
        });
        StreamableHttpError::Deserialize(error)
    }

    /// The events of a response, each within the limit and with its questions kept.
    fn events(&self, response: Response) -> Events {
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
        let health = self.health.clone();
        SseStream::from_bytes_stream(bounded)
            .map(move |event| event.map(|event| preserve(event, &health)))
            .boxed()
    }
}

/// Returns the start of a body, or nothing of one that cannot be read.
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

/// Returns the JSON-RPC error that a body is, if it is one.
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

/// Keeps the parameters in an event. rmcp skips an event that it cannot read, and the call behind it would wait for
/// ever, so such an event is recorded here.
fn preserve(mut event: Sse, health: &Health) -> Sse {
    if let Some(data) = event.data.as_mut().filter(|data| !data.trim().is_empty()) {
        if let Cow::Owned(rewritten) = raw_params::keep(data.as_bytes())
            && let Ok(rewritten) = String::from_utf8(rewritten)
        {
            *data = rewritten;
        } else if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(data) {
            health.broke(TransportError::BrokenJson {
                why: error.to_string(),
            });
        }
    }
    event
}

/// rmcp reports only the first of a client error's causes; the last one names the problem.
fn undelivered(error: reqwest::Error) -> Failed {
    StreamableHttpError::Io(std::io::Error::other(with_causes(&error.without_url())))
}

fn unexpected(status: StatusCode) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}")))
}

/// Returns the error for a redirect, which is not followed: headers and arguments were meant for this server alone.
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
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.post(uri, message, session_id, auth_header, custom_headers)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
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
        custom_headers: Headers,
    ) -> Result<Events, Failed> {
        let events = self
            .client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                custom_headers,
                self.limit,
            )
            .await?;
        let health = self.health.clone();
        Ok(events
            .map(move |event| event.map(|event| preserve(event, &health)))
            .boxed())
    }
}
