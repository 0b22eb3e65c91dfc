//! What HTTP headers repeat of a message, and which they are.

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_elicit_core::wire::{Revision, meta};

use crate::relay::glance::{self, Glance};

/// The header of the session (2025-06-18 and 2025-11-25).
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header of the revision.
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header of the method (2026-07-28).
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The header of what is called (2026-07-28).
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The header of the last event that was read.
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// What a request of the rounds era says in its headers, too (2026-07-28, transports).
pub(super) fn rounds_headers(frame: &[u8], glance: &Glance) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Some(said) = Said::of(frame, glance) else {
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
    if let Some(name) = said
        .name
        .as_deref()
        .and_then(|name| HeaderValue::from_bytes(name.as_bytes()).ok())
    {
        headers.insert(NAME, name);
    }
    headers
}

/// What a request says that headers repeat.
pub struct Said {
    /// Its method.
    pub method: String,
    /// The revision in its `_meta`.
    pub revision: Option<String>,
    /// The name or URI of what it calls.
    pub name: Option<String>,
    /// Whether its `_meta` says what the client can do.
    pub declares: bool,
}

impl Said {
    /// Reads it where a glance at the frame found its parts; `None` for what has no method.
    pub fn of(frame: &[u8], glance: &Glance) -> Option<Self> {
        let method = String::from_utf8_lossy(&frame[glance.method.clone()?]).into_owned();
        let params = glance.params.as_ref();
        let text =
            |range: std::ops::Range<usize>| serde_json::from_slice::<String>(&frame[range]).ok();
        let in_meta = |name: &str| glance::member(frame, glance.meta.as_ref()?, name);
        let revision = in_meta(meta::PROTOCOL_VERSION).and_then(text);
        let declares = in_meta(meta::CLIENT_CAPABILITIES).is_some();
        let member = match method.as_str() {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" => Some("uri"),
            _ => None,
        };
        let name = member
            .and_then(|member| glance::member(frame, params?, member))
            .and_then(text);
        Some(Self {
            method,
            revision,
            name,
            declares,
        })
    }
}
