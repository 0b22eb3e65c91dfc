//! Bounds on a peer's description of itself, which each of its questions is recorded with.

use mcp_elicit_core::text::shortened;
use serde_json::{Map, Value};

/// The longest `clientInfo` or `serverInfo` that is kept as it is, in bytes.
const MAX_INFO: usize = 4 << 10;
/// The longest name, title and version of a longer one, in characters.
const MAX_NAME: usize = 200;
/// The longest capabilities that are passed on to a server in another era, in bytes.
const MAX_CAPABILITIES: usize = 64 << 10;

/// Returns `clientInfo` or `serverInfo` as it is, or the beginnings of its names if it is long.
pub(super) fn bounded_info(info: &str) -> String {
    if info.len() <= MAX_INFO {
        return info.to_owned();
    }
    let read: Value = serde_json::from_str(info).unwrap_or_default();
    let names = ["name", "title", "version"].into_iter();
    let names = names.filter_map(|name| Some((name, read.get(name)?.as_str()?)));
    let names = names.map(|(name, text)| (name.to_owned(), shortened(text, MAX_NAME).into()));
    Value::Object(names.collect::<Map<_, _>>()).to_string()
}

/// Returns capabilities as they are, or none if they are longer than any that are known.
pub(super) fn bounded_capabilities(capabilities: &str) -> String {
    let is_short = capabilities.len() <= MAX_CAPABILITIES;
    if is_short { capabilities } else { "{}" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_description_is_kept_in_part() {
        let short = r#"{"name":"n", "version":"1","icons":[]}"#;
        assert_eq!(bounded_info(short), short);
        let long = format!(
            r#"{{"name":"{}","version":"1","icons":["{}"]}}"#,
            "é".repeat(3_000),
            "x".repeat(1 << 20)
        );
        let kept = bounded_info(&long);
        assert!(kept.len() < 1_000, "{}", kept.len());
        let kept: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(kept["name"], format!("{}…", "é".repeat(MAX_NAME)));
        assert_eq!(kept["version"], "1");
        assert!(kept.get("icons").is_none());
        assert_eq!(bounded_info(&"[".repeat(1 << 20)), "{}");
        assert_eq!(bounded_capabilities(&long), "{}");
        assert_eq!(bounded_capabilities("{\"a\":{}}"), "{\"a\":{}}");
    }
}
