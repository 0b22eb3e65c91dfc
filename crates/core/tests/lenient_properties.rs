//! Properties of the lenient reading over random schemas, most of which are illegal.

use mcp_elicit_core::answer::Draft;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::Revision;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Returns a value that a keyword may have, rightly or wrongly.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!([])),
        Just(json!({})),
        any::<bool>().prop_map(Value::from),
        (-3i64..6).prop_map(Value::from),
        Just(json!(1.5)),
        Just(json!("a")),
        Just(json!("2")),
        Just(json!("uuid")),
        Just(json!("(?i)x")),
        Just(json!("#/$defs/D")),
        Just(json!(["a", 1, true, null])),
        Just(json!(["string", "null"])),
        Just(json!(["integer", "string"])),
    ]
}

fn kind() -> impl Strategy<Value = Value> {
    let names = [
        "string", "number", "integer", "boolean", "array", "object", "null", "int",
    ];
    prop::sample::select(names.to_vec()).prop_map(Value::from)
}

fn schema() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "default",
        "const",
        "enum",
        "enumNames",
        "format",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "multipleOf",
        "minItems",
        "maxItems",
        "uniqueItems",
        "title",
        "$ref",
        "required",
        "nullable",
        "not",
        "type",
    ]);
    let leaf = (
        prop::option::of(kind()),
        prop::collection::vec((keyword, scalar()), 0..4),
    )
        .prop_map(|(kind, keywords)| {
            let mut schema = Map::new();
            schema.extend(kind.map(|kind| ("type".to_owned(), kind)));
            let keywords = keywords.into_iter();
            schema.extend(keywords.map(|(key, value)| (key.to_owned(), value)));
            Value::Object(schema)
        });
    leaf.prop_recursive(3, 24, 4, |inner| {
        let several = prop::collection::vec(inner.clone(), 0..4);
        let key = prop::sample::select(vec!["anyOf", "oneOf", "allOf"]);
        prop_oneof![
            (key, several).prop_map(|(key, parts)| json!({ key: parts })),
            inner.prop_map(|items| json!({"type": "array", "items": items})),
        ]
    })
}

fn form() -> impl Strategy<Value = Value> {
    let fields = prop::collection::vec(schema(), 0..4);
    (fields, schema(), prop::option::of(Just("object"))).prop_map(|(fields, definition, kind)| {
        let fields = fields.into_iter().enumerate();
        let properties: Map<String, Value> =
            fields.map(|(i, field)| (format!("f{i}"), field)).collect();
        let mut form =
            json!({"properties": properties, "required": ["f0", "f9"], "$defs": {"D": definition}});
        if let Some(kind) = kind {
            form["type"] = kind.into();
        }
        form
    })
}

proptest! {
    #[test]
    fn every_form_that_is_read_can_be_answered_and_has_a_legal_spelling(schema in form()) {
        let strict = Form::from_value(&schema);
        let read = Form::from_value_leniently(&schema);
        if let Ok(strict) = &strict {
            prop_assert_eq!(read.as_ref().ok(), Some(strict));
        }
        let Ok(form) = read else { return Ok(()) };
        prop_assert_eq!(form.adjustments().is_empty(), strict.is_ok());
        let emitted = form.emit(Revision::LATEST).unwrap();
        let legal = Form::from_value(&emitted);
        prop_assert!(legal.is_ok(), "{} {:?}", emitted, legal.err());
        for field in &form {
            if let Some(default) = field.default() {
                let content = json!({ field.name(): default });
                let broken = form.violations(&content);
                prop_assert_eq!(broken.for_field(field.name()).count(), 0);
            }
        }
        // Answers are the same in either spelling, and when they are checked again.
        if let Ok(answers) = form.read(&Draft::for_form(&form)) {
            let content = answers.to_value();
            prop_assert_eq!(form.check(content.clone()).unwrap().to_value(), content);
        }
        if let Ok(answers) = legal.unwrap().with_defaults(Map::new()) {
            prop_assert!(form.check_emitted(answers.to_value()).is_ok(), "{} {}", schema, emitted);
        }
    }
}
