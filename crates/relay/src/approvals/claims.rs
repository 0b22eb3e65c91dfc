//! The server's claims about a tool, for the people who approve a call of it.

use std::collections::HashSet;

use mcp_elicit_core::question::{AbsentArgument, CallSummary, ToolClaims};
use mcp_elicit_core::text::shortened;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::decisions::ToolFacts;

/// The longest kept name of an argument, and the longest kept default, in characters.
const MAX_NAME: usize = 200;
pub(super) const MAX_DEFAULT: usize = 200;

/// The part of an input schema that names arguments.
#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    properties: serde_json::Map<String, Value>,
}

/// Returns the claims that the server lists of the tool of this call.
pub(super) fn claims(call: &CallSummary, tool: &ToolFacts) -> ToolClaims {
    let mut absent = absent_arguments(call, tool).unwrap_or_default();
    let more_absent = absent.len().saturating_sub(ToolClaims::MAX_ABSENT);
    absent.truncate(ToolClaims::MAX_ABSENT);
    ToolClaims {
        description: tool.description.as_deref().map(str::to_owned),
        read_only: tool.read_only,
        destructive: tool.destructive,
        idempotent: tool.idempotent,
        open_world: tool.open_world,
        absent,
        more_absent,
    }
}

/// Returns the arguments in the tool's schema that the call leaves out: those with a default first.
fn absent_arguments(call: &CallSummary, tool: &ToolFacts) -> Option<Vec<AbsentArgument>> {
    let schema: Schema = serde_json::from_str(tool.input_schema.as_deref()?).ok()?;
    let arguments = call.arguments.as_deref().unwrap_or("{}");
    let given: std::collections::HashMap<String, &RawValue> =
        serde_json::from_str(arguments).ok()?;
    let given: HashSet<&str> = given.keys().map(String::as_str).collect();
    let absent = schema
        .properties
        .iter()
        .filter(|(name, _)| !given.contains(name.as_str()));
    let mut absent: Vec<AbsentArgument> = absent
        .map(|(name, declared)| AbsentArgument {
            name: shortened(name, MAX_NAME),
            default: declared
                .get("default")
                .map(|default| shortened(&default.to_string(), MAX_DEFAULT)),
        })
        .collect();
    absent.sort_by_key(|argument| argument.default.is_none());
    Some(absent)
}

#[cfg(test)]
mod tests {
    use super::*;

    use mcp_elicit_core::question::ProofNumber;

    use crate::CallKind;

    #[test]
    fn arguments_that_a_call_leaves_out_are_named_with_their_defaults() {
        let call = |arguments: Option<&str>| CallSummary {
            kind: CallKind::Tool,
            target: "delete".to_owned(),
            arguments: arguments.map(str::to_owned),
            digest: "d".to_owned(),
            proof: ProofNumber::default(),
        };
        let schema = r#"{"type":"object","properties":{"name":{"type":"string"},"note":{"type":"string"},
            "cluster":{"type":"string","default":"staging"},"force":{"type":"boolean","default":false}}}"#;
        let tool = ToolFacts {
            input_schema: Some(schema.into()),
            ..ToolFacts::default()
        };
        let absent = |arguments: Option<&str>| -> Vec<String> {
            let claims = claims(&call(arguments), &tool);
            assert_eq!(claims.more_absent, 0);
            let words =
                |one: AbsentArgument| format!("{}={}", one.name, one.default.unwrap_or_default());
            claims.absent.into_iter().map(words).collect()
        };
        assert_eq!(
            absent(Some(r#"{"name":"tmp1"}"#)),
            [r#"cluster="staging""#, "force=false", "note="]
        );
        assert_eq!(absent(None).len(), 4);
        assert_eq!(
            absent(Some(
                r#"{"name":"","note":null,"cluster":"","force":true,"other":1}"#
            )),
            [""; 0]
        );
        assert_eq!(absent(Some("[1]")), [""; 0]);
    }

    #[test]
    fn what_a_server_claims_is_bounded() {
        let properties: serde_json::Map<String, Value> = (0..50)
            .map(|n| {
                (
                    format!("{n:02}{}", "x".repeat(1_000)),
                    serde_json::json!({"default": "é".repeat(10_000)}),
                )
            })
            .collect();
        let tool = ToolFacts {
            input_schema: Some(
                serde_json::json!({"properties": properties})
                    .to_string()
                    .into(),
            ),
            ..ToolFacts::default()
        };
        let call = CallSummary {
            kind: CallKind::Tool,
            target: "t".to_owned(),
            arguments: Some("{}".to_owned()),
            digest: "d".to_owned(),
            proof: ProofNumber::default(),
        };
        let claims = claims(&call, &tool);
        assert_eq!((claims.absent.len(), claims.more_absent), (20, 30));
        for one in claims.absent {
            assert_eq!(one.name.chars().count(), MAX_NAME + 1);
            assert_eq!(one.default.unwrap().chars().count(), MAX_DEFAULT + 1);
        }
    }
}
