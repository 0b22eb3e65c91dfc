//! Checks of a request's headers, and their refusals.

use std::borrow::Cow;

use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_elicit_core::digest;
use mcp_elicit_core::fault::code;
use mcp_elicit_core::wire::{Frame, FrameIndex, FramePart};
use mcp_elicit_core::wire::{Revision, SessionVersion, members, message, meta, method};
use serde_json::{Value, json};

use crate::headers::{METHOD, NAME, PARAM_PREFIX, RequestFacts, VERSION, repeats};
use crate::runtime::StartError;

/// Headers of a client's request that are forwarded to the server.
const CARRIED: [&str; 5] = [
    "authorization",
    "traceparent",
    "tracestate",
    "baggage",
    "x-request-id",
];

/// The credentials of a request that are forwarded to the server.
#[derive(Clone, Debug)]
pub(super) enum RequestCredentials {
    /// None.
    Withheld,
    /// Those in this header, as `Authorization`.
    Passed(HeaderName),
    /// The caller's token, for the upstream transport to exchange.
    Exchanged,
}

impl RequestCredentials {
    /// Returns a name for the credentials that a request passes to the server, by which requests with the same ones share
    /// a session with it.
    pub(super) fn digest(&self, headers: &HeaderMap) -> String {
        let Self::Passed(header) = self else {
            return String::new();
        };
        let values = headers.get_all(header).iter();
        digest::hex(&digest::of_parts(values.map(HeaderValue::as_bytes)), 16)
    }

    /// Returns `true` if the client can provide the credentials that the server wants.
    pub(super) fn are_passed(&self) -> bool {
        matches!(self, Self::Passed(_))
    }
}

/// Returns the headers for the server; credentials only if they are meant for it.
pub(super) fn carried(headers: &HeaderMap, credentials: &RequestCredentials) -> HeaderMap {
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
        RequestCredentials::Withheld => return all,
        RequestCredentials::Passed(header) => header,
        RequestCredentials::Exchanged => &AUTHORIZATION,
    };
    for value in headers.get_all(source) {
        let mut value = value.clone();
        value.set_sensitive(true);
        all.append(AUTHORIZATION, value);
    }
    all
}

/// Returns headers whose `Authorization` has the value of another header too, if that is there.
pub(super) fn with_credentials_of<'h>(
    headers: &'h HeaderMap,
    header: &HeaderName,
) -> Cow<'h, HeaderMap> {
    let Some(passed) = headers.get(header).filter(|_| *header != AUTHORIZATION) else {
        return Cow::Borrowed(headers);
    };
    let own = headers
        .get(AUTHORIZATION)
        .map_or(&b""[..], HeaderValue::as_bytes);
    let both = HeaderValue::from_bytes(&[own, b" ", passed.as_bytes()].concat());
    let mut named = headers.clone();
    named.insert(AUTHORIZATION, both.unwrap_or_else(|_| passed.clone()));
    Cow::Owned(named)
}

/// Checks that headers repeat the message correctly (2026-07-28, transports); the error is the first that does not.
fn headers_match(headers: &HeaderMap, said: &RequestFacts) -> Result<(), &'static str> {
    let same = |name: &HeaderName, value: Option<&str>| {
        let mut all = headers.get_all(name).iter();
        // With two, another reader might use the other.
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

/// Returns the refusal of a request within a session that names an unsupported revision (2025-06-18, transports,
/// protocol version header).
pub(super) fn wrong_in_session(headers: &HeaderMap) -> Option<Response> {
    let spoken = |version: &HeaderValue| {
        SessionVersion::all().any(|known| version == known.as_str().as_bytes())
    };
    let unknown = headers.get_all(VERSION).iter().any(|name| !spoken(name));
    unknown.then(|| {
        let why = "`MCP-Protocol-Version` names a revision that is not spoken here";
        refusal(StatusCode::BAD_REQUEST, -32600, why)
    })
}

/// Returns the refusal of an invalid request of the rounds era (2026-07-28, transports, and `_meta` of each request).
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

/// The longest response, in bytes, that is checked for being the refusal of an invalid message.
const REFUSAL: usize = 1_024;

/// Returns the status of a response in a session: the refusal of an invalid message has its own status.
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

/// Returns the status of an error of the rounds era (2026-07-28, transports).
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

/// Returns the response to a request of a session that is not known, or is another principal's.
pub(crate) fn no_session() -> Response {
    let why = "no such session: open one with `initialize`";
    refusal(StatusCode::NOT_FOUND, -32600, why)
}

/// Returns the response to a request from elsewhere.
pub(super) fn from_elsewhere() -> Response {
    let why = "this address was reached under a name that is not its own, or from a page of another site: see `public-url` and `allow-origins`";
    refusal(StatusCode::FORBIDDEN, -32600, why)
}

/// Returns an error response to this request, with its id as it is written: no other JSON value may stand for it.
pub(super) fn with_id(request: Frame<'_>, (status, error): (StatusCode, Value)) -> Response {
    let error = members::raw_value(&error);
    let body = message::error(request.id().as_ref(), &error);
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn callers_with_other_credentials_for_the_server_are_others() {
        let wiki = HeaderName::from_static("x-wiki-authorization");
        let named = |authorization: Option<&'static str>, passed: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            let all = [(AUTHORIZATION, authorization), (wiki.clone(), passed)];
            for (name, value) in all {
                headers.extend(value.map(|value| (name, HeaderValue::from_static(value))));
            }
            let named = with_credentials_of(&headers, &wiki);
            named.get(AUTHORIZATION).cloned()
        };
        assert_eq!(named(None, None), None);
        let all = [
            (None, Some("a")),
            (None, Some("b")),
            (Some("a"), None),
            (Some("a"), Some("a")),
        ];
        let values = all.map(|(authorization, passed)| named(authorization, passed).unwrap());
        for (at, name) in values.iter().enumerate() {
            assert!(!values[..at].contains(name), "{name:?}");
        }
    }

    /// Ids as JSON may spell them: numbers beyond every range, whole numbers with a fraction or an exponent, escapes.
    fn any_id() -> impl Strategy<Value = String> {
        let digits = "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,4})?";
        let text = "\"([ -!#-\\[\\]-~]|\\\\[nrt\"/\\\\bf]|\\\\u00[0-9a-f]{2}){0,30}\"";
        prop_oneof![digits, text]
    }

    fn any_value() -> impl Strategy<Value = HeaderValue> {
        let bytes = prop::collection::vec(any::<u8>(), 0..12);
        let any = bytes.prop_filter_map("not a header's value", |bytes| {
            HeaderValue::from_bytes(&bytes).ok()
        });
        let usual = prop_oneof![
            "2026-07-28",
            "tools/call",
            "tools/list",
            "t",
            "=\\?base64\\?.{0,9}\\?="
        ];
        let usual = usual.prop_filter_map("not a header's value", |text| {
            HeaderValue::from_str(&text).ok()
        });
        prop_oneof![any, usual]
    }

    /// Returns the text of a member of a JSON object, as written.
    fn raw_member(body: &str, name: &str) -> String {
        let all: std::collections::HashMap<String, Box<serde_json::value::RawValue>> =
            serde_json::from_str(body).unwrap();
        all[name].get().to_owned()
    }

    fn refused(headers: &HeaderMap, frame: &str) -> Option<(StatusCode, String)> {
        let index = FrameIndex::read(frame.as_bytes()).unwrap();
        let parts = Frame::of_text(frame, &index);
        let wrong = wrong_in_rounds(headers, &RequestFacts::of(parts)?)?;
        let response = with_id(parts, wrong);
        let status = response.status();
        let body = futures::executor::block_on(axum::body::to_bytes(response.into_body(), 1 << 20));
        Some((status, String::from_utf8(body.unwrap().to_vec()).unwrap()))
    }

    #[test]
    fn an_error_has_the_id_of_its_request_in_every_spelling() {
        let long = format!("\"{}\"", "9".repeat(500));
        let digits = "9".repeat(400);
        for id in [
            "1e400",
            "-1e999",
            "1.5e-400",
            "0.1e309",
            "1.0",
            "-0",
            "-0.0",
            "1E+2",
            "12345678901234567890123",
            "\"\\u0061\"",
            "\"\"",
            &long,
            &digits,
        ] {
            let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}");
            let (status, body) = refused(&HeaderMap::new(), &frame).unwrap();
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert_eq!(raw_member(&body, "id"), id);
        }
    }

    proptest! {
        #[test]
        fn no_id_and_no_header_stops_the_checks(
            id in any_id(),
            version in prop::collection::vec(any_value(), 0..3),
            method in prop::collection::vec(any_value(), 0..3),
            name in prop::collection::vec(any_value(), 0..3),
            says_version in any::<bool>(),
        ) {
            let mut headers = HeaderMap::new();
            for (header, values) in [(VERSION, version), (METHOD, method), (NAME, name)] {
                for value in values {
                    headers.append(header.clone(), value);
                }
            }
            let meta = if says_version {
                "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""
            } else {
                ""
            };
            let frame = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"t\",\"_meta\":{{{meta}}}}}}}"
            );
            let _any_verdict = wrong_in_session(&headers);
            if let Some((status, body)) = refused(&headers, &frame) {
                prop_assert!(status.is_client_error());
                prop_assert_eq!(raw_member(&body, "id"), id);
            }
        }
    }
}
