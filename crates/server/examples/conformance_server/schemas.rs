//! Two tools whose input schemas are written by hand, because a Rust type cannot express them.

use rmcp::handler::server::router::tool::{ToolRoute, ToolRouter};
use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};

use super::{Conformance, text};

fn route(name: &'static str, description: &'static str, schema: Value) -> ToolRoute<Conformance> {
    let schema: JsonObject = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    let tool = Tool::new(name, description, std::sync::Arc::new(schema));
    ToolRoute::new_dyn(tool, |_| {
        Box::pin(std::future::ready(Ok(text("done").into())))
    })
}

pub(crate) fn tools() -> ToolRouter<Conformance> {
    let preserved = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    });
    let mirrored = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        "required": ["region"]
    });
    let mut router = ToolRouter::new();
    router.add_route(route(
        "json_schema_2020_12_tool",
        "Tool with JSON Schema 2020-12 features",
        preserved,
    ));
    router.add_route(route(
        "test_custom_header",
        "Tool with an argument that is mirrored in a header",
        mirrored,
    ));
    router
}
