//! The values of a call's arguments in the form of its approval: defaults of fields that are named by JSON Pointers. The
//! stored form has none of them, because arguments are stored sealed and end with the question.

use serde_json::{Map, Value};

/// The member of a field that has the value.
const DEFAULT: &str = "default";

/// Returns the params of an approval without values.
pub(crate) fn without_values(params: &str) -> Option<String> {
    changed(params, |_, field| {
        field.remove(DEFAULT);
    })
}

/// Returns the params of an approval with the values of these arguments, which are JSON.
pub(crate) fn with_values(params: &str, arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    changed(params, |pointer, field| {
        if let Some(value) = arguments.pointer(pointer) {
            field.insert(DEFAULT.to_owned(), value.clone());
        }
    })
}

fn changed(params: &str, mut change: impl FnMut(&str, &mut Map<String, Value>)) -> Option<String> {
    let mut params: Value = serde_json::from_str(params).ok()?;
    let fields = params.pointer_mut("/requestedSchema/properties")?;
    for (pointer, field) in fields.as_object_mut()? {
        change(pointer, field.as_object_mut()?);
    }
    Some(params.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_taken_out_comes_back_from_the_arguments() {
        let field =
            |kind: &str, default: Value| json!({"type": kind, "title": "t", "default": default});
        let params = json!({"message": "Approve?", "requestedSchema": {"type": "object", "properties": {
            "/path": field("string", json!("/tmp/a b\u{1f511}")), "/deep/n~1m": field("integer", json!(7)), "/sure": field("boolean", json!(false)),
            "/absent": {"type": "string", "title": "t"}}, "required": ["/path"]}})
        .to_string();
        let arguments = r#"{"path":"/tmp/a b🔑","deep":{"n/m":7},"sure":false,"other":"x"}"#;
        let stored = without_values(&params).unwrap();
        assert!(!stored.contains("/tmp/a b") && !stored.contains("default"));
        assert!(stored.contains("/absent") && stored.contains("required"));
        assert_eq!(with_values(&stored, arguments).unwrap(), params);
        // Rows of earlier versions have them.
        assert_eq!(with_values(&params, arguments).unwrap(), params);
    }

    #[test]
    fn what_is_no_form_is_left_alone() {
        for params in ["", "{}", "[]", r#"{"requestedSchema":{"properties":[]}}"#] {
            assert_eq!(without_values(params), None, "{params}");
        }
        let params = r#"{"requestedSchema":{"properties":{}}}"#;
        assert_eq!(with_values(params, "{"), None);
    }
}
