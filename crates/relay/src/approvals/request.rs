//! The question about a call: its message, and a field for each argument that an approver may change.

use mcp_elicit_core::form::Form;
use mcp_elicit_core::question::CallSummary;
use mcp_elicit_core::text::shortened;
use mcp_elicit_core::wire::ElicitRequest;
use mcp_elicit_core::wire::members::Members;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::claims::MAX_DEFAULT;
use super::edits::names_of;
use crate::decisions::Approval;

/// The longest title of an argument in a tool's schema that is shown, in characters.
const MAX_TITLE: usize = 80;

/// The most arguments that an approver may change.
const MAX_EDITS: usize = 20;

/// Returns the question about a call: one field for each argument that an approver may change, as the tool's schema
/// allows.
pub(super) fn approval_request(
    call: &CallSummary,
    approval: &Approval,
    schema: Option<&str>,
) -> ElicitRequest {
    let mut words = format!(
        "Approve this call? The rule `{}` requires approval before it is made.",
        approval.people.rule
    );
    if schema.is_none() && !approval.edit.is_empty() {
        words.push_str(" Its arguments can be approved or declined, but not changed, because the server does not describe them.");
    }
    let schema: Value = schema
        .and_then(|schema| serde_json::from_str(schema).ok())
        .unwrap_or_default();
    // A call without the member `arguments` has no place for them.
    let arguments = call.arguments.clone();
    let arguments = arguments.and_then(|arguments| RawValue::from_string(arguments).ok());
    let mut fields = serde_json::Map::new();
    let mut shown_only = Vec::new();
    for pointer in approval.edit.iter().take(MAX_EDITS) {
        let arguments = arguments.as_deref();
        let field = arguments.and_then(|arguments| editable(pointer, &schema, arguments));
        let Some(field) = field else {
            continue;
        };
        let alone = json!({"type": "object", "properties": {pointer: field}});
        // A page would change the line endings.
        let has_returns = field["default"]
            .as_str()
            .is_some_and(|text| text.contains('\r'));
        if !has_returns && Form::from_value(&alone).is_ok() {
            fields.insert(pointer.clone(), field);
        } else {
            shown_only.push(pointer.as_str());
        }
    }
    if !shown_only.is_empty() {
        let names = shown_only.join("`, `");
        words = format!(
            "{words} `{names}` can be approved or declined, but not changed: no field holds its value as it is."
        );
    }
    tell_apart(&mut fields);
    // A call keeps what it has.
    let is_given = |(name, field): (_, &Value)| field.get("default").map(|_| name);
    let required: Vec<&String> = fields.iter().filter_map(is_given).collect();
    let whole = json!({"type": "object", "properties": fields, "required": required});
    let none = json!({"type": "object", "properties": {}});
    let is_form = Form::from_value(&whole).is_ok();
    ElicitRequest::form(words, if is_form { &whole } else { &none })
}

/// Uses JSON Pointers as titles of fields that share a title.
fn tell_apart(fields: &mut serde_json::Map<String, Value>) {
    let titles: Vec<Value> = fields
        .values()
        .map(|field| field["title"].clone())
        .collect();
    for (pointer, field) in fields.iter_mut() {
        let alike = titles.iter().filter(|title| **title == field["title"]);
        if alike.count() > 1 {
            field["title"] = pointer.as_str().into();
        }
    }
}

/// Returns the field for one argument; `None` if it is not a text, number or boolean in the tool's schema, or would be
/// spelled differently by a form. One that the call leaves out has no default: left empty, it stays left out.
fn editable(pointer: &str, schema: &Value, arguments: &RawValue) -> Option<Value> {
    let mut declared = schema;
    let mut written = arguments.to_owned();
    let names = names_of(pointer)?;
    for (at, name) in names.iter().enumerate() {
        declared = declared.get("properties")?.get(name)?;
        // An answer can replace or add a member, but not an item of a list.
        let members = Members::read(&written, "arguments").ok()?;
        let Some(member) = members.get(name).map(ToOwned::to_owned) else {
            let is_last = at + 1 == names.len();
            return is_last.then(|| absent(declared, &names)).flatten();
        };
        written = member;
    }
    let present: Value = serde_json::from_str(written.get()).ok()?;
    let kind = declared.get("type")?.as_str()?;
    let copied: &[&str] = match kind {
        // A blank text is not an answer in a form.
        "string" if present.as_str().is_some_and(is_filled) => {
            &["minLength", "maxLength", "format", "enum"]
        }
        // Numbers that a form would round or respell are shown, and cannot be changed.
        "integer" if present.is_i64() => &["minimum", "maximum"],
        "number" if is_plain(written.get(), &present) => &["minimum", "maximum"],
        "boolean" if present.is_boolean() => &[],
        _ => return None,
    };
    let mut field = field_of(declared, kind, &names, copied);
    field["default"] = present;
    Some(field)
}

/// Returns the field for an argument that the call leaves out; `None` if it is not a text, number or boolean in the
/// tool's schema.
fn absent(declared: &Value, names: &[String]) -> Option<Value> {
    let kind = declared.get("type")?.as_str()?;
    let copied: &[&str] = match kind {
        "string" => &["minLength", "maxLength", "format", "enum"],
        "integer" | "number" => &["minimum", "maximum"],
        "boolean" => &[],
        _ => return None,
    };
    let mut field = field_of(declared, kind, names, copied);
    let mut words = "The call leaves it out.".to_owned();
    if let Some(default) = declared.get("default") {
        let default = shortened(&default.to_string(), MAX_DEFAULT);
        words = format!("{words} By the server's word, it is then {default}.");
    }
    if let Some(title) = field.get("description").and_then(Value::as_str) {
        words = format!("{words} {title}");
    }
    field["description"] = words.into();
    Some(field)
}

/// Returns a field with these keywords of the tool's schema. Its label is the argument's path, as in the review and in the
/// call: the server's title could name another argument, so it stands below as the server's words.
fn field_of(declared: &Value, kind: &str, names: &[String], copied: &[&str]) -> Value {
    let label = names.join(".");
    let title = declared.get("title").and_then(Value::as_str);
    let title = title.filter(|title| is_filled(title) && title.trim() != label);
    let mut field = json!({"type": kind, "title": label});
    if let Some(title) = title {
        let words = shortened(title.trim(), MAX_TITLE);
        field["description"] = format!("In the server's words: {words}").into();
    }
    for name in copied {
        if let Some(value) = declared.get(name) {
            field[*name] = value.clone();
        }
    }
    field
}

/// Returns `true` if the text has more than white space.
fn is_filled(text: &str) -> bool {
    !text.trim().is_empty()
}

/// Returns `true` if a form spells the number the same way: a whole number without a decimal point.
fn is_plain(written: &str, number: &Value) -> bool {
    let digits = written.bytes().filter(u8::is_ascii_digit).count();
    let is_decimal = written
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    let said = number.to_string();
    let is_same = number.is_number() && said == written;
    let is_zero = number.as_f64() == Some(0.0);
    let is_short = digits <= 15 && !written.ends_with(".0");
    written == "0" || (is_decimal && is_short && is_same && !is_zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_elicit_core::form::Field;
    use mcp_elicit_core::question::ProofNumber;

    use crate::CallKind;
    use crate::tests::approvals::people;

    #[test]
    fn a_field_comes_from_the_tools_schema_and_from_nothing_else() {
        let schema = json!({"properties": {"path": {"type": "string", "maxLength": 9, "pattern": "x"}, "n": {"type": "integer"},
            "deep": {"type": "object", "properties": {"on": {"type": "boolean"}, "by": {"type": "string", "title": "Who"}}},
            "list": {"type": "array", "properties": {"0": {"type": "string"}}},
            "cluster": {"type": "string", "enum": ["staging", "production"], "default": "staging"}, "far": {"type": "object", "properties": {"on": {"type": "boolean"}}}}});
        let arguments = raw(
            r#"{"path": "/tmp/a", "n": 12345678901234567890, "deep": {"on": true, "by": "a"}, "list": ["x"]}"#,
        );
        let arguments = &*arguments;
        let field = editable("/path", &schema, arguments).unwrap();
        assert_eq!(
            field,
            json!({"type": "string", "title": "path", "maxLength": 9, "default": "/tmp/a"})
        );
        let title = |pointer| editable(pointer, &schema, arguments).unwrap()["title"].clone();
        assert_eq!(title("/deep/on"), "deep.on");
        let renamed = editable("/deep/by", &schema, arguments).unwrap();
        assert_eq!(renamed["title"], "deep.by", "no title renames an argument");
        assert_eq!(renamed["description"], "In the server's words: Who");
        // The call leaves it out.
        assert_eq!(
            editable("/cluster", &schema, arguments).unwrap(),
            json!({"type": "string", "title": "cluster", "enum": ["staging", "production"],
                "description": "The call leaves it out. By the server's word, it is then \"staging\"."})
        );
        for shown_only in [
            "/n",
            "/deep",
            "/other",
            "/deep/on/x",
            "",
            "/list/0",
            "/far",
            "/far/on",
        ] {
            assert_eq!(
                editable(shown_only, &schema, arguments),
                None,
                "{shown_only}"
            );
        }
        assert_eq!(editable("/path", &Value::Null, arguments), None);
    }

    #[test]
    fn two_arguments_of_one_title_are_told_apart() {
        let field = |title: &str| json!({"type": "string", "title": title});
        let fields = json!({"/a": field("Where"), "/b": field("Where"), "/c": field("Who")});
        let Value::Object(mut fields) = fields else {
            unreachable!("it is an object")
        };
        tell_apart(&mut fields);
        let titles = fields.values().map(|field| field["title"].clone());
        assert_eq!(titles.collect::<Vec<_>>(), ["/a", "/b", "Who"]);
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_number_that_a_form_would_write_in_another_way_is_not_offered() {
        let schema = json!({"properties": {"n": {"type": "number"}}});
        let offered = |number: &str| {
            let arguments = raw(&format!(r#"{{"n":{number}}}"#));
            editable("/n", &schema, &arguments).is_some()
        };
        for plain in ["0", "1", "-7", "0.1", "12.5", "100000"] {
            assert!(offered(plain), "{plain}");
        }
        for other in [
            "123456789012345678901",
            "0.1000000000000000055511151231257827",
            "10.0000000000000001",
            "-0",
            "-0.0",
            "0.0",
            "1e22",
            "1E2",
            "1.50",
            "1.0",
            "-20.0",
        ] {
            assert!(!offered(other), "{other}");
        }
    }

    #[test]
    fn a_blank_text_is_not_offered() {
        let schema = json!({"properties": {"path": {"type": "string"}}});
        for (text, is_offered) in [
            ("", false),
            (" ", false),
            ("\n", false),
            ("\u{2028}", false),
            ("a", true),
            (" a", true),
        ] {
            let arguments = raw(&json!({"path": text}).to_string());
            let field = editable("/path", &schema, &arguments);
            assert_eq!(field.is_some(), is_offered, "{text:?}");
        }
    }

    #[test]
    fn one_argument_that_no_field_holds_takes_no_other_along() {
        let schema = json!({"properties": {"mail": {"type": "string", "format": "email"}, "path": {"type": "string"},
            "text": {"type": "string"}}});
        let arguments = json!({"mail": " x@example.com ", "path": "/tmp/a", "text": "a\r\nb"});
        let call = CallSummary {
            kind: CallKind::Tool,
            target: "run".to_owned(),
            arguments: Some(arguments.to_string()),
            digest: "d".to_owned(),
            proof: ProofNumber::default(),
        };
        let approval = Approval {
            people: people(),
            edit: ["/mail", "/path", "/text"].map(str::to_owned).to_vec(),
        };
        let request = approval_request(&call, &approval, Some(&schema.to_string()));
        let ElicitRequest::Form { message, schema } = request else {
            panic!("no form");
        };
        let form = Form::parse(schema.get()).unwrap();
        let names: Vec<_> = form.fields().iter().map(Field::name).collect();
        assert_eq!(names, ["/path"]);
        assert!(
            message.contains("`/mail`, `/text` can be approved"),
            "{message}"
        );
    }
}
