//! The legal parts of an illegal form, which are linted too, because a person would see their dangers as well.

use serde_json::{Map, Value, json};

use super::legality::field_of;
use crate::form::{Defects, Form};

/// Returns the form without its defects: a defective field keeps only its name and texts, a defective root its fields.
/// `None` if there are no usable fields, or if the rest is still not a form.
pub(super) fn form(schema: &str, defects: &Defects) -> Option<Form> {
    let mut root: Map<String, Value> = serde_json::from_str(schema).ok()?;
    let mut properties = root.remove("properties")?;
    for defect in defects {
        if let Some(name) = field_of(&defect.pointer)
            && let Some(field) = properties.get_mut(&name)
        {
            *field = texts_of(field);
        }
    }
    if properties.as_object()?.is_empty() {
        return None;
    }
    Form::from_value(&json!({ "type": "object", "properties": properties })).ok()
}

/// Returns a text field in place of a defective one, whose rules are unknown.
fn texts_of(field: &Value) -> Value {
    // An empty pattern, so that no missing check is reported for the defective field.
    let mut texts = json!({ "type": "string", "pattern": "" });
    for key in ["title", "description"] {
        if let Some(text) = field.get(key).and_then(Value::as_str) {
            texts[key] = text.into();
        }
    }
    texts
}
