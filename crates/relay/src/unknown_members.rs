//! Members of a question that the gateway does not know: they go on to a client of another era or revision.

use mcp_elicit_core::wire::ElicitRequest;
use mcp_elicit_core::wire::members::{Members, raw_value};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The members of a question's params that are unknown here. Of `_meta` it keeps what is not the protocol's own.
pub(crate) fn unknown_members(params: &RawValue) -> Vec<(String, Box<RawValue>)> {
    let Ok(all) = Members::read(params, "params") else {
        return Vec::new();
    };
    let is_unknown = |name: &str| name == "_meta" || !ElicitRequest::MEMBERS.contains(&name);
    let unknown = all.iter().filter(|(name, _)| is_unknown(name));
    unknown
        .filter_map(|(name, value)| {
            let value = match name {
                "_meta" => of_others(value)?,
                _ => value.to_owned(),
            };
            Some((name.to_owned(), value))
        })
        .collect()
}

/// Returns what of `_meta` is neither the protocol's nor about one message.
fn of_others(meta: &RawValue) -> Option<Box<RawValue>> {
    let mut meta: Map<String, Value> = serde_json::from_str(meta.get()).ok()?;
    meta.retain(|name, _| name != "progressToken" && !name.starts_with("io.modelcontextprotocol/"));
    (!meta.is_empty()).then(|| raw_value(&Value::Object(meta)))
}

/// The params with these members added, where they are not there already.
pub(crate) fn with_members(
    params: &RawValue,
    unknown: &[(String, Box<RawValue>)],
) -> Option<Box<RawValue>> {
    let mut params = params.to_owned();
    for (name, value) in unknown {
        let all = Members::read(&params, "params").ok()?;
        if all.get(name).is_none() {
            params = all.with(name, Some(value));
        }
    }
    Some(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_goes_on_and_what_is_a_revisions_own_does_not() {
        let params = r#"{"mode":"form","message":"m","x-hint":{"a":1.0},"_meta":{"progressToken":1,"vendor/x":2,
            "io.modelcontextprotocol/related-task":{}},"requestedSchema":{}}"#;
        let unknown = unknown_members(serde_json::from_str(params).unwrap());
        let into: Box<RawValue> = serde_json::from_str(r#"{"message":"m"}"#).unwrap();
        let made = with_members(&into, &unknown).unwrap();
        assert_eq!(
            made.get(),
            r#"{"message":"m","x-hint":{"a":1.0},"_meta":{"vendor/x":2}}"#
        );
        assert!(unknown_members(serde_json::from_str("7").unwrap()).is_empty());
    }
}
