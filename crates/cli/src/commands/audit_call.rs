//! A call for `audit --call`: its evidence, by which the audit names the calls that people were asked about, and those
//! that they approved.

use mcp_elicit_core::digest;
use mcp_elicit_core::wire::{CallFrame, CallKind};
use mcp_elicit_record::IdentityKey;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

use crate::failure::Failure;

/// A call as it is written for the command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall<'a> {
    #[serde(borrow, default)]
    tool: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    prompt: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Returns the evidence of a call, JSON: `{"tool": "NAME", "arguments": {..}}`.
pub(super) fn evidence(text: &str, key: &IdentityKey) -> Result<String, Failure> {
    let hint = "write it as {\"tool\": \"NAME\", \"arguments\": {..}}, or with `prompt` or `resource` instead of `tool`.";
    let call: WrittenCall<'_> = serde_json::from_str(text).map_err(|error| {
        Failure::usage("the call cannot be read")
            .because(error)
            .hint(hint)
    })?;
    let (kind, target) = match (call.tool, call.prompt, call.resource) {
        (Some(name), None, None) => (CallKind::Tool, name),
        (None, Some(name), None) => (CallKind::Prompt, name),
        (None, None, Some(uri)) => (CallKind::Resource, uri),
        _ => {
            let failure = Failure::usage("a call has one of `tool`, `prompt` and `resource`");
            return Err(failure.hint(hint));
        }
    };
    let frame = CallFrame {
        target,
        arguments: call.arguments.map(RawValue::get),
    };
    let digest = digest::of_call(kind, &frame)
        .map_err(|defect| Failure::usage("no gateway makes this call").because(defect))?;
    Ok(key.evidence(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_in_any_spelling_and_no_other_one_is() {
        let key = IdentityKey::random().unwrap();
        let of = |text: &str| evidence(text, &key);
        let one = of(r#"{"tool": "rm", "arguments": {"a": 1, "b": "x"}}"#).unwrap();
        assert_eq!(
            of(r#"{"arguments":{"b":"\u0078","a":1},"tool":"rm"}"#).unwrap(),
            one
        );
        for other in [
            r#"{"tool": "rm", "arguments": {"a": 2, "b": "x"}}"#,
            r#"{"prompt": "rm", "arguments": {"a": 1, "b": "x"}}"#,
            r#"{"tool": "rm"}"#,
        ] {
            assert_ne!(of(other).unwrap(), one, "{other}");
        }
        for wrong in [
            "",
            "[]",
            r#"{"tool": "a", "prompt": "b"}"#,
            "{}",
            r#"{"tool":"a","args":{}}"#,
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
