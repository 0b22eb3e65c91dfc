//! Two oracles over random forms: the `jsonschema` crate must give the same verdicts, and the official JSON Schemas of
//! each revision must accept the forms as written.

use mcp_elicit_core::answer::{Draft, DraftValue};
use mcp_elicit_core::form::{Form, UnsupportedForm};
use mcp_elicit_core::wire::Revision;
use mcp_elicit_testkit::spec::{Spec, examples};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

const WORDS: [&str; 6] = ["a", "bb", "low", "é", "x y", ""];
const NAMES: [&str; 8] = ["name", "age", "a", "b/c", "d~e", "f", "tags", "é"];

fn number() -> impl Strategy<Value = Value> {
    let odd = [
        json!(9_007_199_254_740_993_i64),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!(0.1),
        json!(-0.0),
    ];
    prop_oneof![
        (-20i64..20).prop_map(Value::from),
        (-80i32..80).prop_map(|n| json!(f64::from(n) / 4.0)),
        select(odd.to_vec()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        select(WORDS.as_slice()).prop_map(str::to_owned),
        "[a-c@.\\-_\"\\[\\] :/é0-9]{0,12}",
        "[a-z.+]{1,6}@[a-z0-9.-]{1,10}",
        "[a-z]{0,4}:[/a-z0-9?#%\\[\\]:@ ]{0,12}",
        "(19|20)[0-9]{2}-[0-2][0-9]-[0-3][0-9]",
        "202[0-9]-0[1-9]-[0-2][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,3})?(Z|z|[+-][0-2][0-9]:[0-6][0-9]|)",
        "\\PC{0,6}",
    ]
}

fn put(schema: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        schema.insert(key.to_owned(), value.into());
    }
}

fn typed(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(kind))])
}

fn text_field() -> impl Strategy<Value = Value> {
    let formats = select(vec!["email", "uri", "date", "date-time"]);
    let patterns = select(vec!["^a", "b+$", "^[a-z]{2,}$", "[0-9]-", "."]);
    let rules = (
        option::of(0u64..4),
        option::of(2u64..9),
        option::of(formats),
        option::weighted(0.2, patterns),
        option::weighted(0.2, text()),
    );
    rules.prop_map(|(min, max, format, pattern, default)| {
        let mut schema = typed("string");
        put(&mut schema, "minLength", min);
        put(&mut schema, "maxLength", max);
        put(&mut schema, "format", format);
        put(&mut schema, "pattern", pattern);
        put(&mut schema, "default", default);
        Value::Object(schema)
    })
}

fn number_field() -> impl Strategy<Value = Value> {
    let bound = || option::weighted(0.4, number());
    let step = option::weighted(0.2, select(vec![json!(2), json!(3), json!(0.25), json!(7)]));
    let rules = (
        any::<bool>(),
        bound(),
        bound(),
        bound(),
        bound(),
        step,
        option::weighted(0.1, number()),
    );
    rules.prop_map(|(whole, low, high, above, below, step, constant)| {
        let mut schema = typed(if whole { "integer" } else { "number" });
        put(&mut schema, "minimum", low);
        put(&mut schema, "maximum", high);
        put(&mut schema, "exclusiveMinimum", above);
        put(&mut schema, "exclusiveMaximum", below);
        put(&mut schema, "multipleOf", step);
        put(&mut schema, "const", constant);
        Value::Object(schema)
    })
}

fn options() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(WORDS.to_vec(), 1..=WORDS.len())
}

fn titled(options: &[&str]) -> Value {
    let titled = |option: &&str| json!({ "const": option, "title": format!("<{option}>") });
    options.iter().map(titled).collect()
}

fn choice_field() -> impl Strategy<Value = Value> {
    let rules = (options(), 0..3, option::of(select(WORDS.as_slice())));
    rules.prop_map(|(options, spelling, default)| {
        let mut schema = typed("string");
        match spelling {
            0 => put(&mut schema, "enum", Some(options)),
            1 => {
                let names: Vec<_> = options.iter().map(|option| format!("<{option}>")).collect();
                put(&mut schema, "enumNames", Some(names));
                put(&mut schema, "enum", Some(options));
            }
            _ => put(&mut schema, "oneOf", Some(titled(&options))),
        }
        put(&mut schema, "default", default);
        Value::Object(schema)
    })
}

fn choices_field() -> impl Strategy<Value = Value> {
    let rules = (
        options(),
        0..3,
        option::of(0u64..3),
        option::of(0u64..4),
        any::<bool>(),
    );
    rules.prop_map(|(options, spelling, min, max, unique)| {
        let items = match spelling {
            0 => json!({ "type": "string", "enum": options }),
            1 => json!({ "anyOf": titled(&options) }),
            _ => json!({ "oneOf": titled(&options) }),
        };
        let mut schema = typed("array");
        put(&mut schema, "items", Some(items));
        put(&mut schema, "minItems", min);
        put(&mut schema, "maxItems", max);
        put(&mut schema, "uniqueItems", unique.then_some(true));
        Value::Object(schema)
    })
}

fn field() -> impl Strategy<Value = Value> {
    let boolean = option::of(any::<bool>()).prop_map(|constant| {
        let mut schema = typed("boolean");
        put(&mut schema, "const", constant);
        Value::Object(schema)
    });
    prop_oneof![3 => text_field(), 2 => number_field(), 1 => boolean, 2 => choice_field(), 2 => choices_field()]
}

fn schema() -> impl Strategy<Value = Value> {
    let parts = (
        vec(field(), 0..=NAMES.len()),
        vec(any::<bool>(), NAMES.len()),
        any::<bool>(),
    );
    parts.prop_map(|(fields, wanted, closed)| {
        let names = &NAMES[..fields.len()];
        let required = names.iter().zip(&wanted).filter(|(_, wanted)| **wanted);
        let required: Vec<_> = required.map(|(name, _)| *name).collect();
        let properties: Map<_, _> = names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(fields)
            .collect();
        let mut schema =
            json!({ "type": "object", "properties": properties, "required": required });
        if closed {
            schema["additionalProperties"] = json!(false);
        }
        schema
    })
}

fn value() -> impl Strategy<Value = Value> {
    let strange = [
        Value::Null,
        json!({}),
        json!([1]),
        json!([null, "a"]),
        json!([["a"]]),
    ];
    prop_oneof![
        4 => text().prop_map(Value::from),
        3 => number(),
        2 => any::<bool>().prop_map(Value::from),
        3 => vec(select(WORDS.as_slice()), 0..4).prop_map(Value::from),
        1 => select(strange.to_vec()),
    ]
}

fn content() -> impl Strategy<Value = Value> {
    let names: Vec<_> = NAMES.into_iter().chain(["other"]).collect();
    let entries = vec((select(names), value()), 0..10);
    let object = entries.prop_map(|entries| {
        let entries = entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        Value::Object(entries.collect())
    });
    prop_oneof![30 => object, 1 => value()]
}

/// The `jsonschema` crate divides floats in binary, where 1e300 happens to be a multiple of 3; core uses the digits as
/// written.
fn binary_multiple(field: &Value, value: &Value) -> bool {
    field.get("multipleOf").is_some() && value.as_f64().is_some_and(|n| n.abs() > 1e15)
}

fn oracle(schema: &Value) -> jsonschema::Validator {
    let options = jsonschema::options().should_validate_formats(true);
    options
        .build(schema)
        .expect("a legal form is a JSON Schema")
}

fn official(revision: Revision, schema: &Value) -> Vec<String> {
    let params = json!({ "message": "m", "requestedSchema": schema });
    let request =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params });
    let spec = Spec::from_revision(revision.as_str()).expect("every revision has a schema");
    spec.problems("ElicitRequest", &request)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn verdicts_are_json_schemas(schema in schema(), contents in vec(content(), 8)) {
        let Ok(form) = Form::from_value(&schema) else { return Ok(()) };
        let validator = oracle(&schema);
        for content in contents {
            let fields = schema["properties"].as_object().expect("properties");
            if fields.iter().any(|(name, field)| content.get(name).is_some_and(|v| binary_multiple(field, v))) {
                continue;
            }
            let violations = form.violations(&content);
            let theirs = validator.is_valid(&content);
            prop_assert_eq!(violations.is_empty(), theirs, "{} on {}: {}", schema, content, violations);
            let by_text = form.check_text(&content.to_string());
            prop_assert_eq!(by_text.is_ok(), theirs);
            let by_value = form.check(content);
            prop_assert_eq!(by_value.is_ok(), theirs);
            if let (Ok(by_value), Ok(by_text)) = (by_value, by_text) {
                prop_assert_eq!(&by_value, &by_text);
                prop_assert!(validator.is_valid(&by_value.into_value()));
            }
        }
    }

    #[test]
    fn each_field_alone_has_json_schemas_verdict(field in field(), values in vec(value(), 16)) {
        let schema = json!({ "type": "object", "properties": { "f": field }, "required": ["f"] });
        let Ok(form) = Form::from_value(&schema) else { return Ok(()) };
        let validator = oracle(&schema);
        for value in values {
            if binary_multiple(&schema["properties"]["f"], &value) {
                continue;
            }
            let content = json!({ "f": value });
            let violations = form.violations(&content);
            prop_assert_eq!(violations.is_empty(), validator.is_valid(&content), "{} on {}: {}", schema, content, violations);
        }
    }

    #[test]
    fn no_text_makes_it_panic(schema in "\\PC{0,80}", content in "\\PC{0,40}") {
        if let Ok(form) = Form::parse(&schema) {
            let _ = form.check_text(&content);
        }
    }

    #[test]
    fn what_a_person_types_passes_the_check_or_is_refused(schema in schema(), typed in vec(text(), NAMES.len())) {
        let Ok(form) = Form::from_value(&schema) else { return Ok(()) };
        let complete = form.without_default().next().is_none();
        prop_assert_eq!(form.with_defaults(Map::new()).is_ok(), complete);
        let mut draft = Draft::for_form(&form);
        for (field, text) in form.fields().iter().zip(typed) {
            draft.set(field.name(), DraftValue::Text(text));
        }
        let alone = form.fields().iter().all(|field| form.read_field(field.name(), draft.get(field.name())).is_ok());
        let whole = form.read(&draft);
        prop_assert_eq!(whole.is_ok(), alone);
        if let Ok(answers) = whole {
            prop_assert!(oracle(&schema).is_valid(&answers.into_value()));
        }
    }
}

proptest! {
    // The official schemas are large, so each case costs milliseconds.
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_is_emitted_is_official_and_reads_back(schema in schema()) {
        let Ok(form) = Form::parse(&schema.to_string()) else { return Ok(()) };
        for revision in Revision::ALL {
            match form.emit(revision) {
                Ok(emitted) => {
                    prop_assert_eq!(official(revision, &emitted), Vec::<String>::new(), "{}", emitted);
                    let again = Form::from_value(&emitted).expect("what is emitted is legal");
                    prop_assert_eq!(again.fields(), form.fields());
                }
                Err(UnsupportedForm { field, .. }) => {
                    prop_assert_eq!(revision, Revision::V2025_06_18);
                    prop_assert_eq!(&schema["properties"][field]["type"], "array");
                }
            }
        }
    }
}

#[test]
fn the_official_examples_are_forms() {
    for name in ["ElicitRequestFormParams", "ElicitRequest"] {
        for (path, text) in examples("2026-07-28", name).expect("examples") {
            let value: Value = serde_json::from_str(&text).expect("JSON");
            let inside = value.pointer("/params/requestedSchema");
            let schema = value.get("requestedSchema").or(inside).expect("a schema");
            let form = Form::from_value(schema).unwrap_or_else(|d| panic!("{path}: {d}"));
            assert!(form.notes().is_empty(), "{path}");
        }
    }
}
