//! Requests to other gateways: each has a connection of its own, and is sent once.
//!
//! The connection ends with the response, with the client that waits for it, or with the gateway at its other end, whichever
//! is first.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::header::{HOST, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use mcp_elicit_record::peers::Peer;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::counts::ForwardResult;
use super::forwarded::{request_headers, response_headers};
use super::{HEAD, Peers};
use crate::callers::ProvenCaller;
use crate::listener::endpoint::header_checks::{no_session, refusal};
use crate::listener::held_body::with_held;

/// The most requests that are forwarded at once, with the streams of sessions.
pub(super) const FORWARDED: usize = 1_024;
/// The most connections that are made at once.
pub(super) const CONNECTING: usize = 64;
/// The time limit for a connection, and for its turn to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// The time limit for the other gateway to begin it. One that stands still does not.
const REACH: Duration = Duration::from_secs(1);
/// The pause before a connection that the other end has closed is made again.
const AGAIN: Duration = Duration::from_millis(10);
/// The time limit for the head of a response: a gateway begins one within half a second.
const RESPONSE: Duration = Duration::from_secs(15);
/// The time after which a client may send its request again, in seconds.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("2");

/// A client's request for a session at another gateway.
pub(crate) struct ForwardRequest<'r> {
    pub(crate) method: Method,
    pub(crate) path: &'r str,
    pub(crate) headers: &'r HeaderMap,
    /// The headers with credentials for the server or the issuer.
    pub(crate) credentials: &'r [http::HeaderName],
    pub(crate) caller: &'r ProvenCaller,
    pub(crate) body: Option<Bytes>,
}

/// The reason why there is no response of the other gateway.
pub(crate) enum NoResponse {
    /// It takes no requests, or has ended.
    Ended,
    /// It could not be reached in time. Nothing was sent.
    Unreachable,
    /// Too many requests are forwarded.
    TooMany,
    /// The connection broke, or the response is not one of a gateway's.
    Failed(String),
    /// The response was late.
    Late,
}

impl NoResponse {
    fn result(&self) -> ForwardResult {
        match self {
            Self::Ended => ForwardResult::Ended,
            Self::Unreachable => ForwardResult::Unreachable,
            Self::TooMany => ForwardResult::TooMany,
            Self::Failed(_) => ForwardResult::Failed,
            Self::Late => ForwardResult::Late,
        }
    }

    /// Returns `true` if nothing was sent, since that gateway has ended or cannot be reached.
    pub(crate) fn is_unreached(&self) -> bool {
        matches!(self, Self::Ended | Self::Unreachable)
    }

    /// Returns the response for the client.
    pub(crate) fn response(&self) -> Response {
        let again = |why| {
            let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, -32000, why);
            response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
            response
        };
        match self {
            Self::Ended => no_session(),
            Self::Unreachable => {
                again("the gateway of this session cannot be reached now; send this again")
            }
            Self::TooMany => {
                again("too many requests for other gateways are at work; send this again")
            }
            Self::Failed(_) => {
                let why = "the connection to the gateway of this session broke: it is not known if the request was handled";
                refusal(StatusCode::BAD_GATEWAY, -32000, why)
            }
            Self::Late => {
                let why = "the gateway of this session did not respond in time: it is not known if the request was handled";
                refusal(StatusCode::GATEWAY_TIMEOUT, -32000, why)
            }
        }
    }
}

impl Peers {
    /// Forwards a request to the gateway of this name, and returns its response.
    pub(crate) async fn forward(
        self: &Arc<Self>,
        to: &str,
        request: ForwardRequest<'_>,
    ) -> Result<Response, NoResponse> {
        let sent = self.response_of(to, request).await;
        let Err(fault) = &sent else {
            self.counts.sent(ForwardResult::Answered);
            return sent;
        };
        let result = fault.result();
        match fault {
            NoResponse::Ended => {
                tracing::debug!(gateway = %to, "the gateway of a session has ended");
            }
            NoResponse::Failed(error) => tracing::warn!(
                gateway = %to, %error, "a forwarded request has no response"
            ),
            NoResponse::Unreachable | NoResponse::TooMany | NoResponse::Late => {
                tracing::warn!(gateway = %to, ?result, "a request was not forwarded");
            }
        }
        self.counts.sent(result);
        sent
    }

    async fn response_of(
        self: &Arc<Self>,
        to: &str,
        request: ForwardRequest<'_>,
    ) -> Result<Response, NoResponse> {
        let permit = self.forwarding.clone().try_acquire_owned();
        let permit = permit.map_err(|_| NoResponse::TooMany)?;
        let peer = self.peer(to).await.ok_or(NoResponse::Ended)?;
        let Some(stream) = self.connected(&peer).await else {
            // It may have just ended.
            self.gateways.decide(vec![to]).await;
            return Err(if self.gateways.is_running(to) {
                NoResponse::Unreachable
            } else {
                NoResponse::Ended
            });
        };
        let failed = |error: hyper::Error| NoResponse::Failed(error.to_string());
        let request = http_request(request, &peer)
            .ok_or_else(|| NoResponse::Failed("it cannot be forwarded".to_owned()))?;
        let mut http = http1::Builder::new();
        http.max_buf_size(HEAD);
        let (mut sender, connection) = http
            .handshake::<_, Body>(TokioIo::new(stream))
            .await
            .map_err(failed)?;
        let (peers, name) = (self.clone(), to.to_owned());
        let connection = tokio::spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection to another gateway has ended");
                    }
                }
                () = peers.ended(&name) => {}
            }
        });
        let open = OpenForward {
            connection,
            _permit: permit,
        };
        let response = tokio::time::timeout(RESPONSE, sender.send_request(request)).await;
        let response = response.map_err(|_| NoResponse::Late)?.map_err(failed)?;
        if response.status() == StatusCode::MISDIRECTED_REQUEST {
            return Err(NoResponse::Failed(
                "the other gateway did not take it".to_owned(),
            ));
        }
        let (head, body) = response.into_parts();
        let mut response = Response::new(with_held(Body::new(body), open));
        *response.status_mut() = head.status;
        *response.headers_mut() = response_headers(&head.headers);
        Ok(response)
    }

    /// Returns the running gateway of this name, if it takes requests.
    async fn peer(&self, name: &str) -> Option<Peer> {
        let find = || {
            let peers = self.gateways.peers();
            peers.iter().find(|peer| peer.name() == name).cloned()
        };
        if let Some(peer) = find() {
            return Some(peer);
        }
        // It may have just joined.
        self.gateways.refresh().await;
        find()
    }

    /// Connects to a gateway; `None` if that fails, or takes too long.
    async fn connected(&self, peer: &Peer) -> Option<TlsStream<TcpStream>> {
        let connecting = async {
            let turn = self.connecting.acquire().await;
            let _turn = turn.map_err(io::Error::other)?;
            let settings = self.key.client(peer.key());
            let tls = TlsConnector::from(Arc::new(settings.map_err(io::Error::other)?));
            loop {
                match self.connect_once(peer, &tls).await {
                    // Among many strangers it may have been closed before its turn. Nothing of the request was sent.
                    Err(error) if is_broken(&error) => tokio::time::sleep(AGAIN).await,
                    connected => return connected,
                }
            }
        };
        match tokio::time::timeout(CONNECT, connecting).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(gateway = %peer.name(), %error, "no connection to a gateway");
                None
            }
            Err(_) => None,
        }
    }

    async fn connect_once(
        &self,
        peer: &Peer,
        tls: &TlsConnector,
    ) -> io::Result<TlsStream<TcpStream>> {
        let reached = async {
            let mut stream = TcpStream::connect(peer.address()).await?;
            stream.set_nodelay(true)?;
            self.opening.open(&mut stream, peer.key()).await?;
            Ok::<_, io::Error>(stream)
        };
        let stream = tokio::time::timeout(REACH, reached).await??;
        // The key is the name.
        let name = ServerName::try_from("gateway").map_err(io::Error::other)?;
        tls.connect(name, stream).await
    }
}

/// Returns `true` if the other end has closed the connection.
fn is_broken(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kind = error.kind();
    matches!(
        kind,
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
    )
}

fn http_request(request: ForwardRequest<'_>, peer: &Peer) -> Option<Request<Body>> {
    let ForwardRequest {
        method,
        path,
        headers,
        credentials,
        caller,
        body,
    } = request;
    let mut headers = request_headers(headers, credentials, peer.name(), caller)?;
    headers.insert(HOST, HeaderValue::from_str(peer.address()).ok()?);
    let mut sent = Request::new(body.map_or_else(Body::empty, Body::from));
    *sent.method_mut() = method;
    *sent.uri_mut() = path.parse().ok()?;
    *sent.headers_mut() = headers;
    Some(sent)
}

/// The connection of a forwarded request, which ends when this is dropped.
struct OpenForward {
    connection: JoinHandle<()>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for OpenForward {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
