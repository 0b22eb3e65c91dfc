//! The official JSON Schemas as an oracle for `lint`: on each revision, its verdict on a form is that of the published
//! schema, with the listed exceptions and no others.

use std::collections::BTreeSet;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lint::{EXCEPTIONS, Severity, lint};
use mcp_elicit_core::wire::Revision;
use mcp_elicit_testkit::peers::forms_record;
use mcp_elicit_testkit::spec::Spec;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// The official schemas, prepared once for each thread.
struct Oracle(Vec<Spec>);

thread_local! {
    static ORACLE: Oracle = Oracle(
        Revision::ALL
            .iter()
            .map(|revision| Spec::from_revision(revision.as_str()).expect("every revision has a schema"))
            .collect(),
    );
}

/// Returns the official verdict of each revision.
fn official(schema: &Value) -> [bool; 3] {
    let params = json!({ "message": "m", "requestedSchema": schema });
    let request =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params });
    ORACLE.with(|Oracle(specs)| {
        let verdicts = specs
            .iter()
            .map(|spec| spec.problems("ElicitRequest", &request).is_empty());
        verdicts
            .collect::<Vec<_>>()
            .try_into()
            .expect("three revisions")
    })
}

/// Compares `lint` with the oracle, and returns the codes of the exceptions that made a difference.
fn agree(schema: &Value) -> Result<BTreeSet<&'static str>, String> {
    let text = schema.to_string();
    let official = official(schema);
    let overall = lint(&text, None);
    let mut used = BTreeSet::new();
    for (revision, accepted) in Revision::ALL.into_iter().zip(official) {
        let report = lint(&text, Some(revision));
        let legal = report.legal.on(revision);
        if legal != overall.legal.on(revision) {
            return Err(format!(
                "{text}: the verdict on {revision} depends on the option"
            ));
        }
        if legal && !accepted {
            return Err(format!("{text}: legal on {revision}, but not officially"));
        }
        if accepted && !legal {
            let excepted: Vec<_> = EXCEPTIONS
                .iter()
                .filter(|(code, _)| report.findings.iter().any(|finding| finding.code == *code))
                .collect();
            if excepted.is_empty() {
                return Err(format!(
                    "{text}: officially legal on {revision}, without an exception"
                ));
            }
            used.extend(excepted.into_iter().map(|(code, _)| *code));
        }
        // What is not legal where it was asked for is an error; an error on something legal says why.
        if !legal && !report.has_errors() {
            return Err(format!("{text}: not legal on {revision}, but no error"));
        }
        let unexplained = report.findings.iter().find(|finding| {
            accepted && legal && finding.level == Severity::Error && finding.help.is_empty()
        });
        if let Some(finding) = unexplained {
            return Err(format!("{text}: an error without a reason: {finding:?}"));
        }
    }
    let nowhere = Revision::ALL
        .iter()
        .all(|revision| !overall.legal.on(*revision));
    if nowhere && !overall.has_errors() {
        return Err(format!("{text}: legal nowhere, but no error"));
    }
    Ok(used)
}

fn field(keywords: &str) -> Value {
    let text = format!(r#"{{"type":"object","properties":{{"a":{keywords}}}}}"#);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{keywords}: {error}"))
}

/// Each line is a field; the digits are the official verdicts on the three revisions.
const FIELDS: &[(&str, &str)] = &[
    ("111", r#"{"type":"integer","enum":[1,2,3]}"#),
    ("111", r#"{"type":"number","enum":[0.5,1]}"#),
    ("111", r#"{"type":"boolean","enum":[true]}"#),
    ("111", r#"{"type":"string","enum":["a","a"]}"#),
    ("111", r#"{"type":"string","enum":["a",null]}"#),
    ("111", r#"{"type":"string","enum":["a"],"default":"c"}"#),
    ("111", r#"{"type":"string","enum":[]}"#),
    ("111", r#"{"type":"string","minLength":5,"maxLength":3}"#),
    ("111", r#"{"type":"string","minLength":-1}"#),
    ("000", r#"{"type":"string","minLength":"1"}"#),
    ("111", r#"{"type":"string","pattern":"(?i)a"}"#),
    ("111", r#"{"type":"string","pattern":"\\Aa\\Z"}"#),
    ("111", r#"{"type":"string","pattern":3}"#),
    ("111", r#"{"type":"string","const":"a"}"#),
    ("111", r##"{"type":"string","$ref":"#/$defs/x"}"##),
    ("111", r#"{"type":"string","not":{}}"#),
    (
        "111",
        r#"{"type":"string","anyOf":[{"minLength":1},{"type":"null"}]}"#,
    ),
    ("100", r#"{"type":"string","default":null}"#),
    ("100", r#"{"type":"integer","default":"1"}"#),
    ("000", r#"{"type":"boolean","default":"yes"}"#),
    ("000", r#"{"type":"string","format":"uuid"}"#),
    ("111", r#"{"type":"string","format":"uuid","enum":["a"]}"#),
    (
        "011",
        r#"{"type":"string","format":"time","oneOf":[{"const":"a","title":"A"}]}"#,
    ),
    ("111", r#"{"type":"integer","minimum":1.5,"multipleOf":0}"#),
    ("000", r#"{"type":"integer","minimum":"1"}"#),
    (
        "000",
        r#"{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}"#,
    ),
    ("000", r#"{"type":["string","null"]}"#),
    ("000", r##"{"$ref":"#/$defs/Color"}"##),
    ("000", r#"{"oneOf":[{"const":"a","title":"A"}]}"#),
    ("000", r#"{"enum":["a","b"]}"#),
    ("000", r#"{"type":"array","items":{"type":"string"}}"#),
    ("000", r#"{"type":"array","items":{"enum":["a"]}}"#),
    (
        "000",
        r#"{"type":"array","items":{"oneOf":[{"const":"a","title":"A"}]}}"#,
    ),
    (
        "000",
        r#"{"type":"array","items":{"anyOf":[{"const":"a"}]}}"#,
    ),
    (
        "011",
        r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}],"minLength":2}}"#,
    ),
    (
        "011",
        r#"{"type":"array","items":{"type":"string","enum":["a","a"]},"uniqueItems":3}"#,
    ),
    ("000", r#"{"type":"object","properties":{}}"#),
    ("000", r#"{"type":"null"}"#),
    ("000", "{}"),
    ("000", "true"),
    ("000", r#"{"type":"string","title":3}"#),
];

const ROOTS: &[(&str, &str)] = &[
    ("000", "null"),
    ("000", "[]"),
    ("000", "{}"),
    ("000", r#"{"type":"object"}"#),
    ("000", r#"{"properties":{}}"#),
    ("000", r#"{"type":"object","properties":[]}"#),
    ("000", r#"{"type":"object","properties":null}"#),
    ("000", r#"{"type":"object","properties":{},"required":"a"}"#),
    ("000", r#"{"type":"object","properties":{},"required":[1]}"#),
    (
        "111",
        r#"{"type":"object","properties":{},"required":["a","a"]}"#,
    ),
    (
        "111",
        r#"{"type":"object","properties":{},"oneOf":[{"required":["a"]}]}"#,
    ),
    (
        "111",
        r#"{"type":"object","properties":{},"additionalProperties":{"type":"string"}}"#,
    ),
    (
        "111",
        r##"{"type":"object","properties":{},"$ref":"#/$defs/x","minProperties":1}"##,
    ),
    ("100", r#"{"type":"object","properties":{},"$schema":3}"#),
    (
        "111",
        r#"{"type":"object","properties":{},"title":3,"description":[]}"#,
    ),
];

#[test]
fn hand_written_forms() {
    let roots = ROOTS.iter().map(|(verdict, text)| {
        (
            *verdict,
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}")),
        )
    });
    let fields = FIELDS.iter().map(|(verdict, text)| (*verdict, field(text)));
    let mut used = BTreeSet::new();
    for (verdict, schema) in fields.chain(roots) {
        let seen: String = official(&schema)
            .map(|yes| if yes { '1' } else { '0' })
            .iter()
            .collect();
        assert_eq!(seen, verdict, "{schema}: the official verdict");
        used.extend(agree(&schema).unwrap_or_else(|why| panic!("{why}")));
    }
    assert_eq!(used, BTreeSet::from([]), "a verdict differs");
}

/// Each exception makes a difference in the one case that it is for.
#[test]
fn every_exception_is_used() {
    let many = |count: usize, one: &str| vec![one; count].join(",");
    let options: Vec<String> = (0..5_001).map(|n| n.to_string()).collect();
    let fields: Map<String, Value> = (0..257)
        .map(|n| (n.to_string(), json!({ "type": "string" })))
        .collect();
    for (code, text) in [
        ("not-in-revision", r#"{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}}"#.to_owned()),
        ("duplicate-field", r#"{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"string"}}}"#.to_owned()),
        ("duplicate-member", r#"{"type":"object","type":"object","properties":{}}"#.to_owned()),
        ("not-json", format!(r#"{{"type":"object","properties":{{}},"x":{}0{}}}"#, "[".repeat(130), "]".repeat(130))),
        ("too-large", format!(r#"{{"type":"object","properties":{{}},"x":[{}]}}"#, many(400_000, "10"))),
        ("too-many-fields", json!({ "type": "object", "properties": fields }).to_string()),
        ("too-many-options", json!({ "type": "object", "properties": { "a": { "type": "string", "enum": options } } }).to_string()),
        ("pattern-cost", json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "a".repeat(1_025) } } }).to_string()),
    ] {
        let report = lint(&text, Some(Revision::V2025_06_18));
        assert!(report.findings.iter().any(|finding| finding.code == code), "{code}: {:?}", report.findings.first());
        assert!(!report.legal.on(Revision::V2025_06_18), "{code}");
        assert!(EXCEPTIONS.iter().any(|(listed, reason)| *listed == code && !reason.is_empty()), "{code}");
    }
    assert_eq!(EXCEPTIONS.len(), 8);
}

/// The forms that SDKs send, as they were recorded.
#[test]
fn forms_of_sdks() {
    let record = std::fs::read_to_string(forms_record()).expect("the record is there");
    let mut count = 0;
    for line in record.lines() {
        let row: Value = serde_json::from_str(line).expect("a row is JSON");
        if let Some(sent) = row.get("sent") {
            let used =
                agree(sent).unwrap_or_else(|why| panic!("{} {}: {why}", row["sdk"], row["kind"]));
            assert!(
                used.iter().all(|code| *code == "not-in-revision"),
                "{used:?}"
            );
            count += 1;
        }
    }
    assert!(count > 300, "{count} forms");
}

fn any_value() -> impl Strategy<Value = Value> {
    let values = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(2),
        json!(2.0),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("a"),
        json!("uuid"),
        json!("email"),
        json!("date-time"),
        json!("(?i)a"),
        json!([]),
        json!({}),
        json!(["a"]),
        json!(["a", "a"]),
        json!(["a", "b"]),
        json!(["a", 1]),
        json!(["a", null]),
        json!([1, 2]),
        json!([true]),
        json!([{ "const": "a", "title": "A" }]),
        json!([{ "const": "a" }]),
        json!([{ "const": 1, "title": "One" }]),
        json!([{ "title": "A" }]),
        json!([{ "type": "string" }, { "type": "null" }]),
        json!(["string", "null"]),
        json!({ "type": "string" }),
        json!({ "type": "string", "enum": ["a"] }),
        json!({ "enum": ["a", "b"] }),
        json!({ "anyOf": [{ "const": "a", "title": "A" }] }),
        json!({ "oneOf": [{ "const": "a", "title": "A" }] }),
        json!({ "type": "integer", "enum": [1] }),
        json!({ "$ref": "#/$defs/x" }),
    ];
    select(values.to_vec())
}

fn any_field() -> impl Strategy<Value = Value> {
    let kinds = select(vec![
        json!("string"),
        json!("string"),
        json!("string"),
        json!("integer"),
        json!("number"),
        json!("boolean"),
        json!("array"),
        json!("array"),
        json!("object"),
        json!("null"),
        json!("text"),
        json!(["string", "null"]),
        json!(3),
    ]);
    let keys = [
        "title",
        "description",
        "default",
        "format",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "multipleOf",
        "enum",
        "enumNames",
        "oneOf",
        "anyOf",
        "allOf",
        "items",
        "minItems",
        "maxItems",
        "uniqueItems",
        "const",
        "$ref",
        "properties",
        "required",
        "x-ui",
        "examples",
        "nullable",
    ];
    let keywords = vec((select(keys.to_vec()), any_value()), 0..4);
    (proptest::option::weighted(0.9, kinds), keywords).prop_map(|(kind, keywords)| {
        let mut field = Map::new();
        if let Some(kind) = kind {
            field.insert("type".to_owned(), kind);
        }
        field.extend(
            keywords
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value)),
        );
        Value::Object(field)
    })
}

fn any_form() -> impl Strategy<Value = Value> {
    let keys = [
        "type",
        "properties",
        "required",
        "$schema",
        "title",
        "additionalProperties",
        "oneOf",
        "$defs",
        "minProperties",
        "x-a",
    ];
    let fields = vec(
        (select(vec!["a", "b", "c/d", "e~f", ""]), any_field()),
        0..3,
    );
    let root = vec((select(keys.to_vec()), any_value()), 0..3);
    (fields, proptest::option::weighted(0.3, root)).prop_map(|(fields, root)| {
        let properties: Map<_, _> = fields
            .into_iter()
            .map(|(name, field)| (name.to_owned(), field))
            .collect();
        let mut form = json!({ "type": "object", "properties": properties });
        for (key, value) in root.into_iter().flatten() {
            form[key] = value;
        }
        form
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn generated_fields(field in any_field()) {
        let schema = json!({ "type": "object", "properties": { "a": field } });
        agree(&schema).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn generated_forms(form in any_form()) {
        agree(&form).map_err(TestCaseError::fail)?;
        // A form that the parser accepts and `lint` calls legal is not warned of as illegal.
        let strict = Form::from_value(&form).is_ok();
        prop_assert!(strict || !lint(&form.to_string(), None).findings.is_empty());
    }
}
