//! Checks of a request's headers, and the refusals.

use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_elicit_core::fault::code;
use mcp_elicit_core::wire::{Frame, FrameIndex, FramePart};
use mcp_elicit_core::wire::{Revision, meta, method};
use serde_json::{Value, json};

use crate::headers::{METHOD, NAME, PARAM_PREFIX, RequestFacts, VERSION, repeats};
use crate::runtime::StartError;

/// Headers of a client's request that go on to the server.
const CARRIED: [&str; 5] = [
    "authorization",
    "traceparent",
    "tracestate",
    "baggage",
    "x-request-id",
];

/// The credentials of a request that go on to the server.
#[derive(Clone, Debug)]
pub(super) enum Credentials {
    /// None.
    Withheld,
    /// Those in this header, as `Authorization`.
    Passed(HeaderName),
    /// The caller's token as far as the upstream transport, which exchanges it.
    Exchanged,
}

impl Credentials {
    /// Returns `true` if the client can bring what the server wants.
    pub(super) fn are_passed(&self) -> bool {
        matches!(self, Self::Passed(_))
    }
}

/// Returns the headers that go on to the server; credentials only where they are meant for it.
pub(super) fn carried(headers: &HeaderMap, credentials: &Credentials) -> HeaderMap {
    let goes = |name: &HeaderName| {
        *name != AUTHORIZATION
            && (CARRIED.contains(&name.as_str()) || name.as_str().starts_with(PARAM_PREFIX))
    };
    let mut all: HeaderMap = headers
        .iter()
        .filter(|(name, _)| goes(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let source = match credentials {
        Credentials::Withheld => return all,
        Credentials::Passed(header) => header,
        Credentials::Exchanged => &AUTHORIZATION,
    };
    for value in headers.get_all(source) {
        let mut value = value.clone();
        value.set_sensitive(true);
        all.append(AUTHORIZATION, value);
    }
    all
}

/// The headers that repeat what the message says (2026-07-28, transports); the first that does not.
fn headers_match(headers: &HeaderMap, said: &RequestFacts) -> Result<(), &'static str> {
    let same = |name: &HeaderName, value: Option<&str>| {
        let mut all = headers.get_all(name).iter();
        // Of two, another reader might take the other.
        match (all.next(), value, all.next()) {
            (Some(header), Some(value), None) => repeats(header, value),
            (header, value, other) => header.is_none() && value.is_none() && other.is_none(),
        }
    };
    if !same(&VERSION, said.revision.as_deref()) {
        return Err("MCP-Protocol-Version");
    }
    if !same(&METHOD, Some(&said.method))
        && (headers.contains_key(METHOD) || !method::is_notification(&said.method))
    {
        return Err("Mcp-Method");
    }
    if said.name.is_some()
        && (said.names || headers.contains_key(NAME))
        && !same(&NAME, said.name.as_deref())
    {
        return Err("Mcp-Name");
    }
    Ok(())
}

/// Revisions with a session, of which a server may have agreed on any.
const WITH_SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A request within a session that names a revision nobody speaks is refused (2025-06-18, transports, protocol version
/// header).
pub(super) fn wrong_in_session(headers: &HeaderMap) -> Option<Response> {
    let spoken = |version: &HeaderValue| {
        WITH_SESSIONS
            .iter()
            .any(|known| version == known.as_bytes())
    };
    let unknown = headers.get_all(VERSION).iter().any(|name| !spoken(name));
    unknown.then(|| {
        let why = "`MCP-Protocol-Version` names a revision that is not spoken here";
        refusal(StatusCode::BAD_REQUEST, -32600, why)
    })
}

/// Why a request of the rounds era goes no further (2026-07-28, transports, and `_meta` of each request).
pub(super) fn wrong_in_rounds(
    headers: &HeaderMap,
    said: &RequestFacts,
) -> Option<(StatusCode, Value)> {
    let error = |code: i32, why: &str| json!({"code": code, "message": why});
    let missing = |what: &str| error(code::INVALID_PARAMS, &format!("`_meta` has no `{what}`"));
    let newest = Revision::V2026_07_28.as_str();
    let Some(revision) = &said.revision else {
        return Some((StatusCode::BAD_REQUEST, missing(meta::PROTOCOL_VERSION)));
    };
    if let Err(header) = headers_match(headers, said) {
        let why = format!("the header {header} does not match the message");
        return Some((StatusCode::BAD_REQUEST, error(code::HEADER_MISMATCH, &why)));
    }
    if revision != newest {
        let mut wrong = error(code::UNSUPPORTED_REVISION, "Unsupported protocol version");
        wrong["data"] = json!({"supported": [newest], "requested": revision});
        return Some((StatusCode::BAD_REQUEST, wrong));
    }
    if !said.declares {
        return Some((StatusCode::BAD_REQUEST, missing(meta::CLIENT_CAPABILITIES)));
    }
    method::GONE_IN_ROUNDS
        .contains(&said.method.as_str())
        .then(|| {
            let why = format!("{newest} has no {}", said.method);
            (StatusCode::NOT_FOUND, error(code::METHOD_NOT_FOUND, &why))
        })
}

/// The longest answer, in bytes, that is looked at for whether it refuses what is not a message.
const REFUSAL: usize = 1_024;

/// Returns the status of a response in a session: a refusal of something that is not a message says so in its status.
pub(super) fn status_in_session(frame: &[u8]) -> StatusCode {
    if frame.len() > REFUSAL {
        return StatusCode::OK;
    }
    let index = FrameIndex::at(frame).unwrap_or_default();
    let parts = Frame::new(frame, &index);
    match parts {
        Some(parts) if parts.part(FramePart::Error).is_some() && parts.id().is_none() => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

/// Errors of the rounds era that have a status of their own (2026-07-28, transports).
pub(super) fn status_of(frame: &[u8]) -> StatusCode {
    let index = FrameIndex::at(frame).unwrap_or_default();
    match Frame::new(frame, &index).and_then(Frame::error_code) {
        Some(-32022..=-32020) => StatusCode::BAD_REQUEST,
        Some(-32601) => StatusCode::NOT_FOUND,
        _ => status_in_session(frame),
    }
}

pub(crate) fn refusal(status: StatusCode, code: i32, why: &str) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": why}});
    (status, axum::Json(body)).into_response()
}

/// The answer to a request that came from elsewhere.
pub(super) fn from_elsewhere() -> Response {
    let why = "this address was reached under a name that is not its own, or from a page of another site: see `public-url` and `allow-origins`";
    refusal(StatusCode::FORBIDDEN, -32600, why)
}

pub(super) fn with_id(request: Frame<'_>, (status, error): (StatusCode, Value)) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": request.id().map(|id| id.to_raw()), "error": error});
    (status, axum::Json(body)).into_response()
}

pub(super) fn cannot_start(fault: &StartError) -> Response {
    let cause = std::error::Error::source(fault).map(ToString::to_string);
    tracing::error!(%fault, cause, "a session could not be opened");
    let why = match fault {
        StartError::Program { .. } => "the server's program cannot be started",
        _ => "the server cannot be reached",
    };
    refusal(StatusCode::BAD_GATEWAY, -32603, why)
}
