//! A form in rmcp's type, which rounds and tasks have to use because their `InputRequest` takes no other.
//!
//! rmcp's schema has the keywords that the revisions list, and drops the others that a
//! [`Form`](mcp_elicit_core::form::Form) enforces. A person would break such a rule without ever having seen it, so the
//! description of its field states it in words.

use rmcp::model::ElicitationSchema;
use serde_json::{Map, Value};

/// Reads `schema` as rmcp's type.
pub(crate) fn typed(mut schema: Value) -> Result<ElicitationSchema, String> {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in properties.into_iter().flat_map(Map::values_mut) {
        say_in_words(field);
    }
    serde_json::from_value(schema).map_err(|error| format!("rmcp cannot carry this form: {error}"))
}

fn say_in_words(field: &mut Value) {
    let rules: Vec<String> = [
        ("pattern", "Must match the pattern"),
        ("multipleOf", "Must be a multiple of"),
        ("exclusiveMinimum", "Must be more than"),
        ("exclusiveMaximum", "Must be less than"),
    ]
    .into_iter()
    .filter_map(|(keyword, words)| {
        Some(match field.get(keyword)? {
            Value::String(text) => format!("{words} {text}"),
            other => format!("{words} {other}"),
        })
    })
    .collect();
    if rules.is_empty() {
        return;
    }
    let rules = rules.join("; ");
    let description = field.get("description").and_then(Value::as_str);
    let said = description.map_or_else(|| rules.clone(), |said| format!("{said} ({rules})"));
    field["description"] = said.into();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_that_rmcp_drops_is_said_in_words() {
        let schema = json!({
            "type": "object",
            "properties": {
                "tag": { "type": "string", "description": "A tag", "pattern": "^[a-z]+$" },
                "price": { "type": "number", "multipleOf": 0.5, "exclusiveMinimum": 0 },
                "name": { "type": "string", "description": "Yours", "maxLength": 9 }
            }
        });
        let typed = serde_json::to_value(typed(schema).unwrap()).unwrap();
        let said = |field: &str| typed["properties"][field]["description"].clone();
        assert_eq!(said("tag"), "A tag (Must match the pattern ^[a-z]+$)");
        assert_eq!(
            said("price"),
            "Must be a multiple of 0.5; Must be more than 0"
        );
        assert_eq!(said("name"), "Yours");
        assert_eq!(typed["properties"]["name"]["maxLength"], 9);
    }
}
