//! `_meta`: the progress token of every revision, and the self-description of a rounds-era request.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::capability::Capability;
use super::error::WireError;
use super::id::Id;
use super::members::{self, Members};
use super::revision::Revision;

/// The revision of a request (2026-07-28, where it is required).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Name and version of the client, as it claims them (2026-07-28).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The client's capabilities for this request (2026-07-28, where they are required).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The minimum level of log messages for this request (2026-07-28).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Name and version of the server, as it claims them (2026-07-28, in results).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The task that a message belongs to (2025-11-25, tasks).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The token for progress notifications (every revision).
pub const PROGRESS_TOKEN: &str = "progressToken";

/// The `_meta` of a request.
#[derive(Clone, Debug)]
pub struct Meta<'a> {
    members: Option<Members<'a>>,
}

impl<'a> Meta<'a> {
    /// Reads `_meta` from a request's params. Absent or `null` reads as empty.
    pub fn from_params(params: Option<&'a RawValue>) -> Result<Self, WireError> {
        let meta = match params {
            None => None,
            Some(params) => members::only_member(params, "_meta", "params")?,
        };
        let meta = meta.filter(|meta| !members::is_null(meta));
        Ok(Self {
            members: meta.map(|meta| Members::read(meta, "_meta")).transpose()?,
        })
    }

    /// Returns a member as written.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.members.as_ref()?.get(key)
    }

    /// Returns `true` if the request describes itself, as every request of the rounds era must.
    pub fn is_rounds(&self) -> bool {
        self.get(PROTOCOL_VERSION).is_some()
    }

    /// Returns the revision as claimed, supported or not.
    pub fn protocol_version(&self) -> Option<Cow<'a, str>> {
        self.get(PROTOCOL_VERSION).and_then(members::text)
    }

    /// Returns `clientInfo` as written.
    pub fn client_info(&self) -> Option<&'a RawValue> {
        self.get(CLIENT_INFO)
    }

    /// Returns `clientCapabilities` as written.
    pub fn client_capabilities(&self) -> Option<&'a RawValue> {
        self.get(CLIENT_CAPABILITIES)
    }

    /// Returns the elicitation capability that this request declares.
    pub fn capability(&self, revision: Revision) -> Capability {
        let Some(elicitation) = self
            .client_capabilities()
            .and_then(|all| members::member(all, "elicitation"))
        else {
            return Capability::NONE;
        };
        serde_json::from_str::<Value>(elicitation.get()).map_or(Capability::NONE, |value| {
            Capability::read(Some(&value), revision)
        })
    }

    /// Returns the token for progress. `None` if it is absent or neither string nor number.
    pub fn progress_token(&self) -> Option<Id> {
        self.get(PROGRESS_TOKEN).and_then(Id::read)
    }
}

/// Returns params with one member of `_meta` set (`Some`) or removed (`None`), every other byte unchanged. Absent
/// params or an absent `_meta` are created if a value is set.
pub fn with(
    params: Option<&RawValue>,
    key: &str,
    value: Option<&RawValue>,
) -> Result<Box<RawValue>, WireError> {
    let params = params.map_or("{}", RawValue::get);
    let params = Members::read_text(params, "params")?;
    let meta = params.get("_meta").filter(|meta| !members::is_null(meta));
    let meta = match (meta, value) {
        (None, None) => return Ok(params.with("_meta", params.get("_meta"))),
        (None, Some(_)) => Members::read_text("{}", "_meta")?.with(key, value),
        (Some(meta), _) => Members::read(meta, "_meta")?.with(key, value),
    };
    Ok(params.with("_meta", Some(&meta)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_rounds_request_speaks_for_itself() {
        let params = raw(
            r#"{"name":"t","_meta":{"progressToken":"p-1","io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},
            "io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}}"#,
        );
        let meta = Meta::from_params(Some(&params)).unwrap();
        assert!(meta.is_rounds());
        assert_eq!(meta.protocol_version().as_deref(), Some("2026-07-28"));
        assert_eq!(meta.capability(Revision::V2026_07_28), Capability::URL);
        assert_eq!(meta.progress_token(), Some(Id::text("p-1")));
        assert_eq!(
            meta.client_info().unwrap().get(),
            r#"{"name":"c","version":"1"}"#
        );
    }

    #[test]
    fn absent_meta_is_empty() {
        for params in [None, Some(raw("{}")), Some(raw(r#"{"_meta":null}"#))] {
            let meta = Meta::from_params(params.as_deref()).unwrap();
            assert!(!meta.is_rounds());
            assert!(meta.progress_token().is_none());
            assert_eq!(meta.capability(Revision::LATEST), Capability::NONE);
        }
        let params = raw(r#"{"_meta":[]}"#);
        assert!(Meta::from_params(Some(&params)).is_err());
    }

    #[test]
    fn one_key_is_set_and_the_rest_stays() {
        let two = raw("2");
        let params = raw(r#"{ "a":1.0, "_meta": {"x": 1e-7 } }"#);
        assert_eq!(
            with(Some(&params), "y", Some(&two)).unwrap().get(),
            r#"{ "a":1.0, "_meta": {"x": 1e-7,"y":2 } }"#
        );
        assert_eq!(
            with(Some(&params), "x", None).unwrap().get(),
            r#"{ "a":1.0, "_meta": { } }"#
        );
        assert_eq!(
            with(None, "y", Some(&two)).unwrap().get(),
            r#"{"_meta":{"y":2}}"#
        );
        assert_eq!(with(None, "y", None).unwrap().get(), "{}");
    }
}
