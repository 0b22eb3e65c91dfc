//! Requests of sessions and retries of calls that are at another gateway: they are sent there.

use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use mcp_elicit_relay::holder_of_state;

use super::Via;
use super::handlers::EndpointState;
use super::header_checks::RequestCredentials;
use super::request::ClientMessage;
use crate::callers::ProvenCaller;
use crate::headers::SESSION;
use crate::listener::peers::Peers;
use crate::listener::peers::forward::{ForwardRequest, NoResponse};
use crate::listener::peers::forwarded::other_gateway;

/// The gateway of a session or a call that is not here.
pub(super) struct ElsewhereAt<'h> {
    peers: Arc<Peers>,
    name: &'h str,
    /// The headers of the request.
    headers: &'h HeaderMap,
}

impl EndpointState {
    pub(super) fn peers(&self) -> Option<&Arc<Peers>> {
        self.endpoint.runtime.peers.as_ref()
    }

    /// Returns the way to the gateway whose session these headers name; `None` if it is this one, if they name none, or if
    /// the request was forwarded already.
    pub(super) fn elsewhere<'h>(&self, headers: &'h HeaderMap) -> Option<ElsewhereAt<'h>> {
        let own = self.peers()?.name();
        self.at_gateway(other_gateway(headers, own)?, headers)
    }

    /// Returns the way to the gateway of this name; `None` if it is this one, or if the request was forwarded already.
    pub(super) fn at_gateway<'h>(
        &self,
        name: &'h str,
        headers: &'h HeaderMap,
    ) -> Option<ElsewhereAt<'h>> {
        let peers = self.peers().filter(|peers| *peers.name() != *name)?;
        (self.via == Via::Client).then(|| ElsewhereAt {
            peers: peers.clone(),
            name,
            headers,
        })
    }

    /// Returns the name of the gateway that asked what this retry answers, if retries are sent there.
    pub(super) fn asker(&self, headers: &HeaderMap, message: &ClientMessage) -> Option<String> {
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
    pub(super) async fn forward(
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
    pub(super) async fn forward_retry(
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
