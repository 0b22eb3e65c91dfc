//! The handlers of the three methods of Streamable HTTP.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};
use mcp_elicit_core::wire::frame::Shape;
use mcp_elicit_core::wire::{Revision, method};

use super::client_session::ClientSession;
use super::header_checks::{no_session, refusal, with_id, wrong_in_rounds};
use super::request::{Arrived, ClientMessage};
use super::response::{DisconnectGuard, StreamOpening, stream, take};
use super::{McpEndpoint, batch, session_of};
use crate::callers::ProvenCaller;
use crate::headers::{LAST_EVENT, RequestFacts, SESSION, VERSION};
use crate::listener::app::nowhere;
use crate::listener::call_memory::ArrivingMessage;
use crate::listener::origin_guard::is_json;
use crate::listener::peers::forwarded::NotTaken;
use crate::listener::requests_at_work::{RequestKind, TooMany};
use crate::listener::response_streams::{ResponseStreams, StreamError};
use crate::listener::server_table::{ServedPath, ServerTable};
use crate::server_challenge::ServerChallenge;

/// The handlers of all servers' paths, for one way on which requests come.
#[derive(Clone)]
struct ServerRoutes {
    table: Arc<ServerTable>,
    via: Via,
}

/// The server of one request, under one of its paths.
pub(super) struct EndpointState {
    pub(super) endpoint: Arc<McpEndpoint>,
    pub(super) at: Arc<ServedPath>,
    pub(super) via: Via,
}

/// A request to a server whose caller is proven.
struct ProvenRequest {
    state: EndpointState,
    caller: ProvenCaller,
}

/// The response to a refused request.
struct RefusedRequest(Box<Response>);

/// The way on which a request came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// From a client.
    Client,
    /// From a client through another gateway, which has authenticated its caller. It is for a session or a call here.
    Gateway,
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
        from: Option<IpAddr>,
    ) -> Result<ProvenCaller, Box<Response>> {
        let (endpoint, resource) = (&self.endpoint, &self.at.resource);
        match self.via {
            Via::Client => endpoint.caller(headers, from, resource).await,
            Via::Gateway => endpoint.forwarded_caller(headers, resource).await,
        }
    }
}

impl FromRequestParts<ServerRoutes> for ProvenRequest {
    type Rejection = RefusedRequest;

    async fn from_request_parts(
        parts: &mut Parts,
        routes: &ServerRoutes,
    ) -> Result<Self, RefusedRequest> {
        let Some(state) = routes.server_of(&parts.uri, &parts.headers) else {
            return Err(RefusedRequest(Box::new(nowhere().await)));
        };
        let from = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let from = from.map(|ConnectInfo(from)| from.ip());
        let caller = state.caller(&parts.headers, from).await?;
        Ok(Self { state, caller })
    }
}

impl From<Box<Response>> for RefusedRequest {
    fn from(response: Box<Response>) -> Self {
        Self(response)
    }
}

impl IntoResponse for RefusedRequest {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// Handles POST: a message of a client.
async fn post(
    ProvenRequest { state, caller }: ProvenRequest,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, RefusedRequest> {
    let endpoint = &state.endpoint;
    let arriving = endpoint.begin_request(&caller, RequestKind::Arrival)?;
    if !is_json(&headers) {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let why = "`Content-Type` must be application/json";
        return Ok(refusal(status, -32600, why));
    }
    let counted = ArrivingMessage::new(endpoint.memory.of(&caller));
    let arrived = ClientMessage::read(&headers, body, endpoint.served.max_frame, counted).await?;
    // The body may have been slow, and the caller's key may have been revoked meanwhile.
    if let Err(refused) = endpoint.runtime.callers.check_again(&caller) {
        return Ok(endpoint.refusal(refused, &state.at.resource).await);
    }
    let message = match arrived {
        Arrived::One(message) => message,
        Arrived::Batch(..) if state.via == Via::Gateway && !headers.contains_key(SESSION) => {
            return Ok(NotTaken::OtherGateway.response());
        }
        Arrived::Batch(body, _counted) => {
            if let Some(to) = state.elsewhere(&headers) {
                let sent = state.forward(to, Method::POST, &caller, Some(body)).await;
                return Ok(arriving.until_sent(sent));
            }
            drop(arriving);
            return Ok(batch::respond(endpoint, &caller, &body, &headers).await);
        }
    };
    let permit = if message.shape == Shape::Request {
        drop(arriving);
        match endpoint.at_work.begin(&caller, RequestKind::Work) {
            Ok(at_work) => at_work,
            Err(refused) => {
                let response = with_id(message.parts(), refused.error());
                return Ok(TooMany::retry_later(response));
            }
        }
    } else {
        arriving
    };
    let response = respond(&state, caller, &message, &headers).await?;
    Ok(permit.until_sent(response))
}

/// Responds to a message that has arrived.
async fn respond(
    state: &EndpointState,
    caller: ProvenCaller,
    message: &ClientMessage,
    headers: &HeaderMap,
) -> Result<Response, RefusedRequest> {
    let endpoint = &state.endpoint;
    let asker = state.asker(headers, message);
    if state.via == Via::Gateway {
        if headers.contains_key(SESSION) {
            let held = endpoint.named(headers, &caller)?;
            return Ok(take(&held, &caller, message, headers, None, false).await);
        }
        let own = state.peers().map(|peers| peers.name());
        if asker.is_none() || asker.as_deref() != own {
            return Ok(NotTaken::OtherGateway.response());
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
            return Ok(with_id(message.parts(), wrong));
        }
        let asker = asker.as_deref();
        if let Some(to) = asker.and_then(|name| state.at_gateway(name, headers)) {
            let sent = state.forward_retry(to, &caller, message.frame.clone());
            if let Some(response) = sent.await {
                return Ok(response);
            }
        }
        let held = state.shared(&caller, headers, message).await?;
        return Ok(take(&held, &caller, message, headers, None, true).await);
    }
    if state.via == Via::Gateway {
        return Ok(NotTaken::OtherGateway.response());
    }
    let opens = said
        .as_ref()
        .is_some_and(|said| said.method == method::INITIALIZE);
    if !opens {
        if let Some(to) = state.elsewhere(headers) {
            let body = Some(message.frame.clone());
            return Ok(state.forward(to, Method::POST, &caller, body).await);
        }
        let held = endpoint.named(headers, &caller)?;
        return Ok(take(&held, &caller, message, headers, None, false).await);
    }
    if !state.at.is_current(endpoint) {
        return Ok(match state.at.current() {
            // It named a session of an earlier one.
            Some(_) => no_session(),
            None => state.at.gone(),
        });
    }
    let passed = endpoint.passed_by(&caller, headers);
    let (name, held) = endpoint.own(caller.clone(), passed).await?;
    let named = Some(name.clone());
    let response = take(&held, &caller, message, headers, named, false).await;
    if ServerChallenge::is(response.status()) {
        // The client opens another session when it has the required credentials.
        endpoint.remove_opened(&name);
        held.end();
    }
    Ok(response)
}

/// Handles GET: the session's own stream, or a lost one.
async fn listen(
    ProvenRequest { state, caller }: ProvenRequest,
    headers: HeaderMap,
) -> Result<Response, RefusedRequest> {
    let endpoint = &state.endpoint;
    let last = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok());
    let kind = if ResponseStreams::is_of_request(last) {
        RequestKind::Work
    } else {
        RequestKind::Stream
    };
    if let Some(to) = state.elsewhere(&headers) {
        let permit = endpoint.begin_request(&caller, kind)?;
        let response = state.forward(to, Method::GET, &caller, None).await;
        return Ok(permit.until_sent(response));
    }
    let held = match endpoint.named(&headers, &caller) {
        Ok(held) => held,
        Err(_) if !headers.contains_key(SESSION) => {
            let why = "there is no stream without a session";
            return Ok(refusal(StatusCode::METHOD_NOT_ALLOWED, -32600, why));
        }
        Err(response) => return Err(response.into()),
    };
    let permit = endpoint.begin_request(&caller, kind)?;
    let (stream_id, told) = match held.client.listen(last) {
        Ok(listened) => listened,
        Err(StreamError::Open) => {
            let why = "the session's stream is open already";
            return Ok(refusal(StatusCode::CONFLICT, -32600, why));
        }
        Err(StreamError::Done) => {
            let why = "the stream of this event has ended";
            return Ok(refusal(StatusCode::BAD_REQUEST, -32600, why));
        }
    };
    let guard = DisconnectGuard::watching(held, stream_id);
    Ok(permit.until_sent(stream(StreamOpening::Nothing, told, guard)))
}

/// Handles DELETE: the end of a session.
async fn end(
    ProvenRequest { state, caller }: ProvenRequest,
    headers: HeaderMap,
) -> Result<Response, RefusedRequest> {
    let endpoint = &state.endpoint;
    let _arriving = endpoint.begin_request(&caller, RequestKind::Arrival)?;
    if let Some(to) = state.elsewhere(&headers) {
        return Ok(state.forward(to, Method::DELETE, &caller, None).await);
    }
    let held = endpoint.named(&headers, &caller)?;
    if let Some(name) = session_of(&headers) {
        endpoint.remove_opened(name);
    }
    held.end();
    Ok(StatusCode::NO_CONTENT.into_response())
}
