//! The official JSON Schema of each revision, as code: the forms that it accepts as written. The test `lint_oracle`
//! compares it with the published files.
//!
//! The published schemas are open: a keyword that they do not name is no defect, whatever its value is. So a form can
//! be accepted although no answer satisfies it; those defects are reported with their own clause.

use serde_json::{Map, Value};

use crate::wire::Revision;

const FORMATS: [&str; 4] = ["date", "date-time", "email", "uri"];

/// Returns `true` if the revision accepts the schema's root; its fields are not looked at.
pub(super) fn accepts_root(schema: &Value, revision: Revision) -> bool {
    let Some(root) = schema.as_object() else {
        return false;
    };
    let named = |key: &str| root.get(key);
    let dialect = has_defaults(revision).then(|| named("$schema")).flatten();
    named("type").is_some_and(|kind| kind == "object")
        && named("properties").is_some_and(Value::is_object)
        && named("required").is_none_or(is_texts)
        && dialect.is_none_or(Value::is_string)
}

/// Returns `true` if the revision accepts the schema of a field (`PrimitiveSchemaDefinition`).
pub(super) fn accepts_field(schema: &Value, revision: Revision) -> bool {
    let Some(field) = schema.as_object() else {
        return false;
    };
    let keyword = |key: &str, holds: fn(&Value) -> bool| field.get(key).is_none_or(holds);
    // The oldest revision names `default` for booleans only.
    let default = |holds: fn(&Value) -> bool| {
        !has_defaults(revision) || field.get("default").is_none_or(holds)
    };
    if !keyword("title", Value::is_string) || !keyword("description", Value::is_string) {
        return false;
    }
    match field.get("type").and_then(Value::as_str) {
        Some("string") => {
            let text = keyword("format", is_format)
                && keyword("minLength", is_integer)
                && keyword("maxLength", is_integer);
            default(Value::is_string) && (text || has_text_options(field, revision))
        }
        Some("number" | "integer") => {
            keyword("minimum", Value::is_number)
                && keyword("maximum", Value::is_number)
                && default(Value::is_number)
        }
        Some("boolean") => keyword("default", Value::is_boolean),
        Some("array") if has_several_choices(revision) => {
            keyword("minItems", is_integer)
                && keyword("maxItems", is_integer)
                && keyword("default", is_texts)
                && field.get("items").is_some_and(is_items)
        }
        Some(_) | None => false,
    }
}

/// Returns `true` for the options of one choice: `enum`, or `oneOf` with titles from 2025-11-25 on.
fn has_text_options(field: &Map<String, Value>, revision: Revision) -> bool {
    let names = match revision {
        // `EnumSchema`, the only one with options, has the names.
        Revision::V2025_06_18 => field.get("enumNames").is_none_or(is_texts),
        // `UntitledSingleSelectEnumSchema` does not know them.
        Revision::V2025_11_25 | Revision::V2026_07_28 => true,
    };
    let untitled = names && field.get("enum").is_some_and(is_texts);
    let titled = has_several_choices(revision) && field.get("oneOf").is_some_and(is_titled);
    untitled || titled
}

fn is_items(items: &Value) -> bool {
    let untitled = items["type"] == "string" && items.get("enum").is_some_and(is_texts);
    items.is_object() && (untitled || items.get("anyOf").is_some_and(is_titled))
}

fn is_titled(options: &Value) -> bool {
    let titled = |option: &Value| option["const"].is_string() && option["title"].is_string();
    options.as_array().is_some_and(|all| all.iter().all(titled))
}

fn is_texts(list: &Value) -> bool {
    list.as_array()
        .is_some_and(|all| all.iter().all(Value::is_string))
}

fn is_format(format: &Value) -> bool {
    format.as_str().is_some_and(|name| FORMATS.contains(&name))
}

/// Returns `true` for a whole number, however it is written (JSON Schema Core, section 4.2.3).
fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn has_several_choices(revision: Revision) -> bool {
    revision != Revision::V2025_06_18
}

fn has_defaults(revision: Revision) -> bool {
    revision != Revision::V2025_06_18
}
