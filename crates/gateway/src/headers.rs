//! HTTP headers of MCP, and the reading of a header that stands once.

use std::borrow::Cow;

use data_encoding::BASE64;
use http::header::AsHeaderName;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_elicit_core::wire::{Frame, FramePart, Revision, meta};

/// The header of the session (2025-06-18 and 2025-11-25).
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header of the revision.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header of the method (2026-07-28).
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The header of what is called (2026-07-28).
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The beginning of the names of headers that repeat arguments of a call.
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";
/// The header of the last event that was read.
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Returns the text of a header that stands once.
pub(crate) fn only_text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

/// Returns what a request of the rounds era says in its headers, too (2026-07-28, transports).
pub(crate) fn rounds_headers(frame: Frame<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Some(said) = RequestFacts::of(frame) else {
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
    let name = said.name.as_deref().map(in_header);
    if let Some(name) = name.and_then(|name| HeaderValue::from_str(&name).ok()) {
        headers.insert(NAME, name);
    }
    headers
}

/// The marks of a value that cannot stand in a header as it is (2026-07-28, transports, value encoding).
const ENCODED: (&str, &str) = ("=?base64?", "?=");

fn encoded(text: &str) -> Option<&str> {
    text.strip_prefix(ENCODED.0)?.strip_suffix(ENCODED.1)
}

/// A value of a message as a header repeats it.
pub(crate) fn in_header(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && value.trim_matches(' ') == value
        && encoded(value).is_none();
    if plain {
        return Cow::Borrowed(value);
    }
    let text = BASE64.encode(value.as_bytes());
    Cow::Owned(format!("{}{text}{}", ENCODED.0, ENCODED.1))
}

/// Returns whether a header repeats this value.
pub(crate) fn repeats(header: &HeaderValue, value: &str) -> bool {
    match header.to_str().ok().and_then(encoded) {
        Some(text) => BASE64
            .decode(text.as_bytes())
            .is_ok_and(|text| text == value.as_bytes()),
        None => header.as_bytes() == value.as_bytes(),
    }
}

/// The parts of a request that headers repeat.
pub(crate) struct RequestFacts {
    /// Its method.
    pub method: String,
    /// The revision in its `_meta`.
    pub revision: Option<String>,
    /// The name or URI of what it calls, or the task that it is about.
    pub name: Option<String>,
    /// `true` if a header has to repeat the name.
    pub names: bool,
    /// `true` if its `_meta` says what the client can do.
    pub declares: bool,
}

impl RequestFacts {
    /// Reads them out of a request; `None` for a frame without a method.
    pub(crate) fn of(frame: Frame<'_>) -> Option<Self> {
        let method = frame.method()?.to_owned();
        let text = |part, name| Some(frame.text_member(part, name)?.into_owned());
        let revision = text(FramePart::Meta, meta::PROTOCOL_VERSION);
        let declares = frame.member(FramePart::Meta, meta::CLIENT_CAPABILITIES);
        let declares = declares.is_some();
        let member = match method.as_str() {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" => Some("uri"),
            // The tasks extension; not every client of it sends the header.
            "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
            _ => None,
        };
        let names = member.is_some_and(|member| member != "taskId");
        let name = member.and_then(|member| text(FramePart::Params, member));
        Some(Self {
            method,
            revision,
            name,
            names,
            declares,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_out_of_its_header() {
        for (value, header) in [
            ("deploy", "deploy"),
            ("file:///a b", "file:///a b"),
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            (" lead", "=?base64?IGxlYWQ=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(in_header(value), header);
            let header = HeaderValue::from_str(header).unwrap();
            assert!(repeats(&header, value), "{value}");
            assert!(!repeats(&header, "other"));
        }
        assert!(!repeats(
            &HeaderValue::from_static("=?base64?!?="),
            "=?base64?!?="
        ));
    }
}
