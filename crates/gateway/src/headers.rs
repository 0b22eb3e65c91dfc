//! HTTP headers of MCP.

use std::borrow::Cow;

use data_encoding::BASE64;
use http::header::AsHeaderName;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_elicit_core::wire::frame::FrameIndex;
use mcp_elicit_core::wire::{Frame, FramePart, Revision, meta};

/// The header of the session (2025-06-18 and 2025-11-25).
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header of the revision.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header of the method (2026-07-28).
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The header of the called name (2026-07-28).
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The prefix of headers that repeat arguments of a call.
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";
/// The header of the last event received.
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Returns the text of a header that occurs once.
pub(crate) fn only_text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

/// Returns the parts of a rounds-era request that its headers repeat (2026-07-28, transports).
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

/// Returns the headers that repeat parts of a request of 2026-07-28, by its text; none for any other text.
pub fn headers_of(request: &str) -> HeaderMap {
    let index = FrameIndex::at(request.as_bytes());
    let frame = index.as_ref().map(|index| Frame::of_text(request, index));
    frame.map(rounds_headers).unwrap_or_default()
}

/// The marks of a value that needs encoding in a header (2026-07-28, transports, value encoding).
const ENCODED: (&str, &str) = ("=?base64?", "?=");

fn encoded(text: &str) -> Option<&str> {
    text.strip_prefix(ENCODED.0)?.strip_suffix(ENCODED.1)
}

/// Returns a value of a message as a header repeats it.
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

/// Returns `true` if a header repeats this value.
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
    /// The name or URI of its target, or its task.
    pub name: Option<String>,
    /// `true` if a header must repeat the name.
    pub names: bool,
    /// `true` if its `_meta` declares the client's capabilities.
    pub declares: bool,
}

impl RequestFacts {
    /// Reads them from a request; `None` for a frame without a method.
    pub(crate) fn of(frame: Frame<'_>) -> Option<Self> {
        let method = frame.method()?.to_owned();
        let text = |part, name| Some(frame.text_member(part, name)?.into_owned());
        let revision = text(FramePart::Meta, meta::PROTOCOL_VERSION);
        let declares = frame.member(FramePart::Meta, meta::CLIENT_CAPABILITIES);
        let declares = declares.is_some();
        let member = match method.as_str() {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" => Some("uri"),
            // From the tasks extension; not every client of it sends the header.
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
    fn a_request_of_rounds_repeats_its_name_encoded() {
        let request = |revision: &str| {
            let meta = serde_json::json!({ meta::PROTOCOL_VERSION: revision });
            let params = serde_json::json!({"name": "größe", "arguments": {}, "_meta": meta});
            serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
                .to_string()
        };
        let headers = headers_of(&request("2026-07-28"));
        assert_eq!(headers[VERSION], "2026-07-28");
        assert_eq!(headers[METHOD], "tools/call");
        assert_eq!(headers[NAME], "=?base64?Z3LDtsOfZQ==?=");
        assert!(headers_of(&request("2025-11-25")).is_empty());
        assert!(headers_of("[]").is_empty());
    }

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
