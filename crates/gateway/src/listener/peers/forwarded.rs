//! A request as one gateway sends it to another: the headers that pass, and the check where it arrives.
//!
//! It has the path, the session and the body of the client's request. Two headers are added: the gateway that it is for, and
//! the caller. Whoever gets one for another gateway does not send it on.

use axum::response::Response;
use http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_elicit_record::peers::gateway_of_session;

use crate::callers::{ProvenCaller, forwarded};
use crate::headers::{LAST_EVENT, METHOD, NAME, PARAM_PREFIX, SESSION, VERSION, only_text};
use crate::listener::endpoint::header_checks::refusal;

/// The header with the gateway that a request is for.
const FORWARDED_TO: HeaderName = HeaderName::from_static("mcp-elicit-forwarded-to");
/// The header with the caller.
const CALLER: HeaderName = HeaderName::from_static("mcp-elicit-caller");

/// The headers of a request that pass, besides credentials and those of arguments.
const OF_REQUEST: [HeaderName; 11] = [
    ACCEPT,
    CONTENT_TYPE,
    SESSION,
    VERSION,
    METHOD,
    NAME,
    LAST_EVENT,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("baggage"),
    HeaderName::from_static("x-request-id"),
];
/// The headers of a response that pass.
const OF_RESPONSE: [HeaderName; 5] = [
    CONTENT_TYPE,
    CACHE_CONTROL,
    SESSION,
    WWW_AUTHENTICATE,
    RETRY_AFTER,
];

/// Returns the gateway that has the session which these headers name; `None` if it is this one, or none.
pub(crate) fn other_gateway<'h>(headers: &'h HeaderMap, own: &str) -> Option<&'h str> {
    let gateway = gateway_of_session(only_text(headers, SESSION)?)?;
    (gateway != own).then_some(gateway)
}

/// Returns the headers of a request for the gateway of this name. Credentials pass only in these headers. `None` if no
/// gateway can be told of the caller.
pub(crate) fn request_headers(
    headers: &HeaderMap,
    credentials: &[HeaderName],
    to: &str,
    caller: &ProvenCaller,
) -> Option<HeaderMap> {
    let passes = |name: &HeaderName| {
        credentials.contains(name)
            || *name != AUTHORIZATION
                && (OF_REQUEST.contains(name) || name.as_str().starts_with(PARAM_PREFIX))
    };
    let mut all = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| passes(name)) {
        let mut value = value.clone();
        value.set_sensitive(credentials.contains(name));
        all.append(name.clone(), value);
    }
    all.insert(FORWARDED_TO, HeaderValue::from_str(to).ok()?);
    all.insert(CALLER, forwarded::to_header(caller)?);
    Some(all)
}

/// Returns the headers of a response for the client.
pub(crate) fn response_headers(headers: &HeaderMap) -> HeaderMap {
    let passing = headers
        .iter()
        .filter(|(name, _)| OF_RESPONSE.contains(*name));
    passing
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The reason why a gateway does not take a forwarded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotTaken {
    /// It is for another gateway, or was forwarded before.
    #[error("this request is for another gateway, and none is sent on twice")]
    OtherGateway,
    /// It has no caller.
    #[error("a forwarded request has one caller")]
    NoCaller,
}

impl NotTaken {
    /// Returns the response.
    pub(crate) fn response(self) -> Response {
        let status = match self {
            Self::OtherGateway => StatusCode::MISDIRECTED_REQUEST,
            Self::NoCaller => StatusCode::BAD_REQUEST,
        };
        refusal(status, -32600, &self.to_string())
    }
}

/// Returns the caller of a request that another gateway has forwarded to this one: for a session here, or without one.
/// `logs_in` is the issuer at which people log in here.
///
/// # Errors
/// If it is for another gateway, was forwarded before, or has no caller.
pub(crate) fn taken(
    headers: &HeaderMap,
    own: &str,
    logs_in: Option<&str>,
) -> Result<ProvenCaller, NotTaken> {
    let is_mine = only_text(headers, FORWARDED_TO) == Some(own);
    let session = only_text(headers, SESSION).and_then(gateway_of_session);
    if !is_mine || headers.contains_key(SESSION) && session != Some(own) {
        return Err(NotTaken::OtherGateway);
    }
    let mut callers = headers.get_all(CALLER).iter();
    match (callers.next(), callers.next()) {
        (Some(caller), None) => forwarded::from_header(caller, logs_in).ok_or(NotTaken::NoCaller),
        (Some(_) | None, _) => Err(NotTaken::NoCaller),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "fedcba9876543210fedcba9876543210";

    fn session(gateway: &str) -> String {
        mcp_elicit_record::peers::session_id(gateway).unwrap()
    }

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn ada() -> ProvenCaller {
        ProvenCaller::of_subject("https://id.example", "ada", None)
    }

    #[test]
    fn only_the_id_of_another_gateways_session_leads_there() {
        let named = |id: &str| headers(&[("mcp-session-id", id)]);
        assert_eq!(other_gateway(&named(&session(OTHER)), OWN), Some(OTHER));
        assert_eq!(other_gateway(&named(&session(OWN)), OWN), None);
        for none in ["", OTHER, "rounds key-0a1b", "r'--", &"r".repeat(9_000)] {
            assert_eq!(other_gateway(&named(none), OWN), None, "{none}");
        }
        assert_eq!(other_gateway(&headers(&[]), OWN), None);
        let id = session(OTHER);
        let twice = headers(&[("mcp-session-id", &id), ("mcp-session-id", &id)]);
        assert_eq!(other_gateway(&twice, OWN), None);
    }

    #[test]
    fn a_request_passes_with_its_caller_and_the_headers_of_mcp_only() {
        let id = session(OTHER);
        let client = headers(&[
            ("mcp-session-id", &id),
            ("mcp-protocol-version", "2025-11-25"),
            ("content-type", "application/json"),
            ("accept", "text/event-stream"),
            ("last-event-id", "1-2"),
            ("mcp-param-region", "eu"),
            ("traceparent", "00-1-2-3"),
            ("authorization", "Bearer secret"),
            ("cookie", "a=b"),
            ("x-forwarded-user", "root"),
            ("host", "gateway"),
            ("connection", "keep-alive"),
            ("transfer-encoding", "chunked"),
            ("content-length", "3"),
            ("mcp-elicit-caller", "bWU="),
            ("mcp-elicit-forwarded-to", OWN),
        ]);
        let sent = request_headers(&client, &[], OTHER, &ada()).unwrap();
        let mut names: Vec<_> = sent.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = [
            "accept",
            "content-type",
            "last-event-id",
            "mcp-elicit-caller",
            "mcp-elicit-forwarded-to",
            "mcp-param-region",
            "mcp-protocol-version",
            "mcp-session-id",
            "traceparent",
        ];
        assert_eq!(names, expected);
        assert!(taken(&sent, OTHER, None) == Ok(ada()));
        // A credential passes where the server gets it.
        let with = request_headers(&client, &[AUTHORIZATION], OTHER, &ada()).unwrap();
        assert_eq!(with[AUTHORIZATION], "Bearer secret");
        assert!(with[AUTHORIZATION].is_sensitive());
        assert!(request_headers(&client, &[], OTHER, &ProvenCaller::local()).is_none());
    }

    #[test]
    fn a_request_for_another_gateway_or_without_its_caller_is_not_taken() {
        let id = session(OWN);
        let client = headers(&[("mcp-session-id", &id)]);
        let right = request_headers(&client, &[], OWN, &ada()).unwrap();
        assert!(taken(&right, OWN, None).is_ok());
        let value = |text: &str| HeaderValue::from_str(text).unwrap();
        // The right headers without those of this name, and with these.
        let not_taken = |name: HeaderName, with: &[HeaderValue]| {
            let mut headers = right.clone();
            headers.remove(&name);
            for value in with {
                headers.append(&name, value.clone());
            }
            taken(&headers, OWN, None).unwrap_err()
        };
        let (own, other) = (value(OWN), value(OTHER));
        let (here, there) = (value(&id), value(&session(OTHER)));
        for (name, with) in [
            (FORWARDED_TO, &[][..]),
            (FORWARDED_TO, &[other]),
            // Forwarded before.
            (FORWARDED_TO, &[own.clone(), own]),
            (SESSION, std::slice::from_ref(&there)),
            (SESSION, &[here, there.clone()]),
        ] {
            assert_eq!(not_taken(name, with), NotTaken::OtherGateway, "{with:?}");
        }
        // The retry of a call has no session.
        let mut retry = right.clone();
        retry.remove(SESSION);
        assert!(taken(&retry, OWN, None).is_ok());
        let caller = right[CALLER].clone();
        for with in [&[][..], &[caller.clone(), caller], &[value("e30=")]] {
            assert_eq!(not_taken(CALLER, with), NotTaken::NoCaller, "{with:?}");
        }
        let status = NotTaken::OtherGateway.response().status();
        assert_eq!(status, StatusCode::MISDIRECTED_REQUEST);
        assert!(taken(&right, OTHER, None).is_err());
    }

    #[test]
    fn a_response_passes_without_the_headers_of_its_connection() {
        let all = headers(&[
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache"),
            ("mcp-session-id", "a"),
            ("www-authenticate", "Bearer"),
            ("www-authenticate", "Basic"),
            ("retry-after", "2"),
            ("transfer-encoding", "chunked"),
            ("connection", "close"),
            ("set-cookie", "a=b"),
        ]);
        let passed = response_headers(&all);
        assert_eq!(passed.len(), 6);
        assert!(!passed.contains_key("set-cookie") && !passed.contains_key("connection"));
    }
}
