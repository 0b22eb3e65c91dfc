use serde_json::{Value, json};

use super::super::tests::form as strict;
use super::*;
use crate::answer::{Draft, DraftValue};
use crate::wire::Revision;

#[track_caller]
fn read(schema: &Value) -> Form {
    Form::parse_leniently(&schema.to_string()).unwrap_or_else(|defects| panic!("{defects}"))
}

/// Returns the form with one field `f`.
#[track_caller]
fn field(schema: &Value) -> Form {
    read(&json!({"type": "object", "properties": {"f": schema}, "required": ["f"]}))
}

fn kinds(form: &Form) -> Vec<&'static str> {
    form.adjustments()
        .iter()
        .map(|adjustment| adjustment.kind.as_str())
        .collect()
}

fn defects(schema: &Value) -> Vec<String> {
    let defects = Form::parse_leniently(&schema.to_string()).unwrap_err();
    defects
        .iter()
        .map(|defect| format!("{} {}", defect.pointer, defect.code))
        .collect()
}

/// Returns the content that a person's text for `f` becomes.
#[track_caller]
fn typed(form: &Form, text: &str) -> Value {
    let mut draft = Draft::for_form(form);
    draft.set("f", DraftValue::Text(text.to_owned()));
    let answers = form.read(&draft).unwrap_or_else(|why| panic!("{why}"));
    answers.to_value()["f"].clone()
}

fn options(form: &Form) -> Vec<(String, Value)> {
    let options = match form.fields()[0].kind() {
        Kind::Choice(choice) => &choice.options,
        Kind::Choices(choices) => &choices.options,
        other => panic!("{other:?}"),
    };
    options
        .iter()
        .map(|option| (option.label().to_owned(), option.sent()))
        .collect()
}

/// A schema of a few kilobytes had an error of megabytes.
#[test]
fn alternatives_by_reference_name_each_defect_once_and_twenty_at_most() {
    let mut definitions = serde_json::Map::new();
    for number in 0..25 {
        let next = format!("#/$defs/d{}", number + 1);
        let alternatives = vec![json!({"$ref": next}); 8];
        definitions.insert(format!("d{number}"), json!({"anyOf": alternatives}));
    }
    definitions.insert("d25".to_owned(), json!({"type": "string"}));
    let field = json!({"anyOf": [{"$ref": "#/$defs/d0"}, {"type": "null"}]});
    let schema = json!({"type": "object", "properties": {"a": field}, "$defs": definitions});
    let defects = Form::parse_leniently(&schema.to_string()).unwrap_err();
    assert!(defects.iter().count() <= 8, "{}", defects.iter().count());
    assert!(defects.to_string().len() < 2_000, "{defects}");

    let fields: serde_json::Map<_, _> = (0..30)
        .map(|number| (format!("f{number}"), json!({"type": "object"})))
        .collect();
    let schema = json!({"type": "object", "properties": fields});
    let defects = Form::parse_leniently(&schema.to_string()).unwrap_err();
    assert_eq!(defects.iter().count(), 30);
    assert!(defects.to_string().ends_with("; and 10 more"), "{defects}");
}

#[test]
fn a_legal_form_has_no_adjustments() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "pattern": "(?=x)"},
        "b": {"type": "array", "items": {"enum": ["x", "y"]}, "default": ["x"]},
        "c": {"type": "integer", "minimum": 1}
    }, "required": ["a"], "additionalProperties": false});
    let form = read(&schema);
    assert_eq!(form, Form::from_value(&schema).unwrap());
    assert_eq!(form.adjustments(), []);
}

#[test]
fn null_beside_a_type_makes_a_field_optional() {
    for (schema, expected) in [
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}),
            json!("5"),
        ),
        (
            json!({"oneOf": [{"type": "null"}, {"type": "integer", "minimum": 1}]}),
            json!(5),
        ),
        (json!({"type": ["number", "null"], "title": "N"}), json!(5)),
        (
            json!({"type": "string", "nullable": true, "format": "x"}),
            json!("5"),
        ),
        (
            json!({"type": ["null", "integer"], "enum": [5, null]}),
            json!(5),
        ),
        (
            json!({"anyOf": [{"enum": [5, 6]}, {"const": null}]}),
            json!(5),
        ),
    ] {
        let form = field(&schema);
        assert!(
            kinds(&form).contains(&"null-option"),
            "{schema}: {:?}",
            kinds(&form)
        );
        assert!(!form.fields()[0].required());
        assert_eq!(typed(&form, "5"), expected, "{schema}");
        // The schema requires the member, and accepts null for it.
        assert_eq!(
            form.read(&Draft::for_form(&form)).unwrap().to_value(),
            json!({"f": null})
        );
        assert_eq!(
            form.check(json!({"f": null})).unwrap().to_value(),
            json!({"f": null})
        );

        let optional = read(&json!({"type": "object", "properties": {"f": schema}}));
        assert_eq!(optional.read(&Draft::new()).unwrap().to_value(), json!({}));
        assert_eq!(
            optional.check(json!({"f": null})).unwrap().to_value(),
            json!({})
        );
    }
}

#[test]
fn definitions_are_read_in_place() {
    let definitions = json!({
        "Color": {"type": "string", "enum": ["red", "blue"], "title": "Color"},
        "Level/x": {"type": "integer", "enum": [1, 2]},
        "Again": {"$ref": "#/$defs/Color"}
    });
    for (field, definition, label) in [
        (json!({"$ref": "#/$defs/Color"}), "$defs", "Color"),
        (
            json!({"$ref": "#/$defs/Again", "title": "Mine"}),
            "$defs",
            "Mine",
        ),
        (
            json!({"allOf": [{"$ref": "#/$defs/Color"}], "default": "blue"}),
            "$defs",
            "Color",
        ),
        (
            json!({"anyOf": [{"$ref": "#/$defs/Color"}, {"type": "null"}]}),
            "$defs",
            "Color",
        ),
        (
            json!({"$ref": "#/definitions/Level~1x"}),
            "definitions",
            "f",
        ),
        (
            json!({"type": "array", "items": {"$ref": "#/$defs/Level~1x"}}),
            "$defs",
            "f",
        ),
    ] {
        let schema = json!({"type": "object", "properties": {"f": field}, definition: definitions});
        let form = read(&schema);
        assert_eq!(form.fields()[0].label(), label, "{field}");
        assert_eq!(options(&form).len(), 2);
        assert!(kinds(&form).contains(&"reference"), "{:?}", kinds(&form));
    }
    let root = json!({"$ref": "#/$defs/Model", "$defs": {"Model": {"type": "object",
        "properties": {"a": {"type": "string"}}, "required": ["a"]}}});
    let form = read(&root);
    assert!(form.field("a").unwrap().required());
}

#[test]
fn definitions_without_end_are_unreadable_in_bounded_time() {
    for definitions in [
        json!({"A": {"$ref": "#/$defs/A"}}),
        json!({"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}}),
        json!({"A": {"allOf": [{"$ref": "#/$defs/B"}]}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}),
        json!({"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}),
        json!({}),
    ] {
        let schema = json!({"type": "object", "$defs": definitions,
            "properties": {"f": {"$ref": "#/$defs/A"}}});
        assert!(!defects(&schema).is_empty(), "{schema}");
    }
    // Definitions that multiply: 16^8 parts if they were all visited.
    let mut definitions = serde_json::Map::new();
    for i in 0..8 {
        let next = json!({"$ref": format!("#/$defs/D{}", i + 1)});
        definitions.insert(format!("D{i}"), json!({"allOf": vec![next; 16]}));
    }
    definitions.insert("D8".to_owned(), json!({"type": "string", "format": "x"}));
    let schema = json!({"type": "object", "$defs": definitions,
        "properties": {"f": {"$ref": "#/$defs/D0"}}});
    assert_eq!(defects(&schema)[0].split(' ').nth(1), Some("too-large"));
}

#[test]
fn options_are_sent_with_their_type() {
    for (schema, sent) in [
        (
            json!({"type": "integer", "enum": [1, 2, 3]}),
            vec![json!(1), json!(2), json!(3)],
        ),
        (
            json!({"enum": [0.5, 1.0, "auto", true]}),
            vec![json!(0.5), json!(1.0), json!("auto"), json!(true)],
        ),
        (
            json!({"type": "boolean", "enum": [true]}),
            vec![json!(true)],
        ),
        (json!({"const": 7}), vec![json!(7)]),
        (
            json!({"type": "integer", "oneOf": [{"const": 1, "title": "Low"}, {"const": 2, "title": "High"}]}),
            vec![json!(1), json!(2)],
        ),
        (
            json!({"anyOf": [{"const": "a"}, {"enum": [4, 5]}]}),
            vec![json!("a"), json!(4), json!(5)],
        ),
        (
            json!({"enum": [1, "1", true, "true"]}),
            vec![json!(1), json!("1"), json!(true), json!("true")],
        ),
    ] {
        let form = field(&schema);
        let values: Vec<_> = options(&form).into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, sent, "{schema}");
        for value in sent {
            let answers = form.check(json!({"f": value})).unwrap().to_value();
            // The spelling of a number is the form's.
            assert_eq!(answers["f"].to_string(), value.to_string(), "{schema}");
        }
        assert!(form.check(json!({"f": "other"})).is_err());
        assert_eq!(
            form.check(json!({"f": [1]}))
                .unwrap_err()
                .iter()
                .next()
                .unwrap()
                .rule()
                .code(),
            "enum"
        );
    }
    let form = field(&json!({"type": "integer", "enum": [1, 2], "default": 2}));
    assert_eq!(form.fields()[0].default(), Some(json!(2)));
    assert_eq!(
        form.read(&Draft::for_form(&form)).unwrap().to_value(),
        json!({"f": 2})
    );
    assert_eq!(typed(&form, "1"), json!(1));
    assert_eq!(
        form.check(json!({"f": 2.0})).unwrap().to_value(),
        json!({"f": 2})
    );
}

#[test]
fn lists_of_typed_options_are_picked() {
    for items in [
        json!({"type": "integer", "enum": [1, 2, 2, null]}),
        json!({"enum": [1, 2]}),
        json!({"anyOf": [{"const": 1, "title": "One"}, {"const": 2}]}),
        json!({"oneOf": [{"const": 1}, {"const": 2}, {"type": "null"}]}),
    ] {
        let form = field(&json!({"type": "array", "items": items, "minItems": 1, "default": [2]}));
        assert_eq!(options(&form).len(), 2, "{items}");
        assert_eq!(form.fields()[0].default(), Some(json!([2])));
        let mut draft = Draft::new();
        draft.set(
            "f",
            DraftValue::Picked(vec!["1".to_owned(), "2".to_owned()]),
        );
        assert_eq!(form.read(&draft).unwrap().to_value(), json!({"f": [1, 2]}));
        assert_eq!(typed(&form, "2, 1"), json!([2, 1]));
        assert!(form.check(json!({"f": ["1"]})).is_err());
        assert!(form.check(json!({"f": []})).is_err());
    }
}

#[test]
fn options_in_odd_spellings_and_options_that_cannot_be_shown() {
    for (schema, expected) in [
        (
            json!({"oneOf": [{"const": "low", "title": "Low"}, {"const": "high", "title": "High"}]}),
            ["Low", "High"],
        ),
        (
            json!({"type": "string", "anyOf": [{"const": "low", "title": "Low"}, {"const": "high", "title": "High"}]}),
            ["Low", "High"],
        ),
        (
            json!({"enum": ["a", "b"], "enumNames": ["Low", "High"]}),
            ["Low", "High"],
        ),
        (
            json!({"type": "string", "enum": ["Low", "Low", "High"]}),
            ["Low", "High"],
        ),
        (
            json!({"type": "string", "enum": ["Low", null, "High"]}),
            ["Low", "High"],
        ),
        (
            json!({"type": "string", "enum": ["Low", "High", {"a": 1}]}),
            ["Low", "High"],
        ),
        (
            json!({"type": "string", "enum": ["Low", "High"], "oneOf": [{"const": "Low"}, {"const": "High"}]}),
            ["Low", "High"],
        ),
        (
            json!({"type": "string", "enum": ["Low", "High"], "minLength": 2, "default": "Lowest"}),
            ["Low", "High"],
        ),
        (
            json!({"anyOf": [{"enum": ["Low"]}, {"enum": ["High"]}]}),
            ["Low", "High"],
        ),
    ] {
        let form = field(&schema);
        let labels: Vec<_> = options(&form).into_iter().map(|(label, _)| label).collect();
        assert_eq!(labels, expected, "{schema}");
        assert_eq!(form.fields()[0].default(), None);
    }
    assert_eq!(
        defects(&json!({"type": "object", "properties": {"f": {"enum": [{"a": 1}, ["x"]]}}})),
        ["/properties/f/enum option-shape"]
    );
    let empty = field(&json!({"type": "string", "enum": []}));
    assert_eq!(kinds(&empty), ["no-options"]);
    assert_eq!(typed(&empty, "x"), json!("x"));
}

#[test]
fn rules_that_cannot_be_enforced_are_not() {
    for (schema, text, kind) in [
        (
            json!({"type": "string", "format": "uuid"}),
            "x",
            "format-not-enforced",
        ),
        (
            json!({"type": "string", "pattern": "(?i)^abc$"}),
            "ABC",
            "pattern-not-enforced",
        ),
        (
            json!({"type": "string", "pattern": r"\Aabc\Z"}),
            "x",
            "pattern-not-enforced",
        ),
        (
            json!({"type": "string", "pattern": "("}),
            "x",
            "pattern-not-enforced",
        ),
        (
            json!({"type": "string", "pattern": "x".repeat(2000)}),
            "y",
            "pattern-not-enforced",
        ),
        (
            json!({"type": "string", "pattern": 3}),
            "x",
            "keyword-ignored",
        ),
        (
            json!({"type": "string", "minLength": 5, "maxLength": 3}),
            "abcdefg",
            "bound-not-enforced",
        ),
        (
            json!({"type": "string", "minLength": -1}),
            "x",
            "bound-not-enforced",
        ),
        (
            json!({"type": "string", "maxLength": 1.5}),
            "xyz",
            "bound-not-enforced",
        ),
        (
            json!({"type": "string", "maxLength": "3"}),
            "abcd",
            "bound-not-enforced",
        ),
        (
            json!({"type": "integer", "minimum": 9, "maximum": 3}),
            "1",
            "bound-not-enforced",
        ),
        (
            json!({"type": "number", "minimum": "1"}),
            "0",
            "bound-not-enforced",
        ),
        (
            json!({"type": "number", "multipleOf": 0}),
            "0.3",
            "bound-not-enforced",
        ),
        (
            json!({"type": "string", "not": {"const": "x"}}),
            "x",
            "rule-not-enforced",
        ),
        (
            json!({"type": "string", "const": "ab", "maxLength": 1}),
            "a",
            "rule-not-enforced",
        ),
        (
            json!({"type": "string", "additionalProperties": false}),
            "x",
            "keyword-ignored",
        ),
        (
            json!({"type": "string", "title": 3, "maxLength": null}),
            "x",
            "keyword-ignored",
        ),
        (
            json!({"type": "string", "default": 3}),
            "x",
            "default-dropped",
        ),
        (json!({"type": "uuid"}), "x", "type-name"),
        (json!({"type": "int"}), "1", "type-name"),
        (json!({"title": "Any"}), "x", "type-assumed"),
        (json!({"minLength": 2}), "xx", "type-assumed"),
        (json!({"maximum": 2}), "1", "type-assumed"),
        (json!(true), "x", "type-assumed"),
        (json!([]), "x", "empty-list"),
    ] {
        let form = field(&schema);
        assert!(kinds(&form).contains(&kind), "{schema}: {:?}", kinds(&form));
        typed(&form, text);
        let emitted = form.emit(Revision::LATEST).unwrap();
        Form::from_value(&emitted).unwrap_or_else(|why| panic!("{schema}: {why}"));
    }
    // The rules that can be enforced still are.
    let form = field(&json!({"type": "string", "format": "uuid", "maxLength": 3}));
    assert!(form.check(json!({"f": "abcd"})).is_err());
    assert_eq!(form.remarks().count(), 1);
}

#[test]
fn impossible_bounds_of_lists() {
    let items = json!({"type": "string", "enum": ["a", "b"]});
    for (schema, selections) in [
        (
            json!({"type": "array", "items": items, "minItems": 3}),
            0..=2,
        ),
        (
            json!({"type": "array", "items": items, "minItems": 2, "maxItems": 1}),
            0..=2,
        ),
        (
            json!({"type": "array", "items": items, "minItems": -1, "maxItems": 1}),
            0..=1,
        ),
    ] {
        let form = field(&schema);
        assert_eq!(kinds(&form), ["bound-not-enforced"], "{schema}");
        for count in 0..=2 {
            let picked = &["a", "b"][..count];
            assert_eq!(
                form.check(json!({"f": picked})).is_ok(),
                selections.contains(&count)
            );
        }
    }
}

#[test]
fn a_union_sends_the_first_type_that_fits() {
    let union = |schema: Value| field(&schema);
    for (schema, cases) in [
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
            vec![
                ("5", json!(5)),
                ("five", json!("five")),
                ("1.5", json!("1.5")),
                ("+49 30", json!("+49 30")),
            ],
        ),
        (
            json!({"type": ["string", "integer"]}),
            vec![("5", json!("5"))],
        ),
        (
            json!({"type": ["number", "boolean", "string"]}),
            vec![
                ("1.5", json!(1.5)),
                ("true", json!(true)),
                ("yes", json!("yes")),
            ],
        ),
        (
            json!({"oneOf": [{"type": "integer", "maximum": 9}, {"type": "string", "format": "date"}]}),
            vec![("5", json!(5)), ("2026-02-03", json!("2026-02-03"))],
        ),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}),
            vec![
                ("1", json!(1)),
                ("yes", json!(true)),
                ("1 000", json!(1000)),
            ],
        ),
        (
            json!({"anyOf": [{"enum": ["auto"]}, {"type": "integer"}, {"type": "null"}]}),
            vec![("auto", json!("auto")), ("3", json!(3))],
        ),
        (
            json!({"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "string"}]}),
            vec![("x", json!("x"))],
        ),
    ] {
        let form = union(schema.clone());
        for (text, expected) in cases {
            assert_eq!(typed(&form, text), expected, "{schema} {text}");
        }
    }
    let form = union(
        json!({"anyOf": [{"type": "integer", "maximum": 9}, {"type": "string", "format": "date"}]}),
    );
    let broken = |content: Value| {
        form.violations(&content)
            .iter()
            .map(|v| v.rule().code())
            .collect::<Vec<_>>()
    };
    assert_eq!(broken(json!({"f": 12})), ["maximum"]);
    assert_eq!(broken(json!({"f": true})), ["type"]);
    assert_eq!(broken(json!({"f": "x"})), ["format"]);
}

#[test]
fn lists_without_options_are_written_one_value_per_line() {
    for (items, text, expected) in [
        (
            Some(json!({"type": "string"})),
            "a, b\n\n c \r\nd",
            json!(["a, b", " c ", "d"]),
        ),
        (None, "a\nb", json!(["a", "b"])),
        (None, r#"["a", "b\nc"]"#, json!(["a", "b\nc"])),
        (Some(json!({})), "a", json!(["a"])),
        (Some(json!({"type": "integer"})), "1\n2", json!([1, 2])),
        (
            Some(json!({"type": "number", "minimum": 0})),
            "0.5",
            json!([0.5]),
        ),
        (
            Some(json!({"type": "string", "format": "date"})),
            "2026/2/3\n2026-01-01",
            json!(["2026-02-03", "2026-01-01"]),
        ),
        (
            Some(json!({"anyOf": [{"type": "integer"}, {"type": "string"}]})),
            "1\nx",
            json!([1, "x"]),
        ),
        (
            Some(json!({"type": "boolean"})),
            "yes\nfalse",
            json!([true, false]),
        ),
    ] {
        let mut schema = json!({"type": "array", "minItems": 1});
        if let Some(items) = &items {
            schema["items"] = items.clone();
        }
        let form = field(&schema);
        assert!(kinds(&form).contains(&"lines"));
        assert_eq!(typed(&form, text), expected, "{items:?}");
        assert!(form.check(json!({"f": []})).is_err());
        assert!(form.check(json!({"f": "a"})).is_err());
    }
    let form = field(
        &json!({"type": "array", "items": {"type": "integer"}, "maxItems": 2, "uniqueItems": true,
        "default": [1, 2]}),
    );
    assert_eq!(
        form.read(&Draft::for_form(&form)).unwrap().to_value(),
        json!({"f": [1, 2]})
    );
    let broken = |content: Value| {
        form.violations(&content)
            .iter()
            .map(|v| v.rule().code())
            .collect::<Vec<_>>()
    };
    assert_eq!(broken(json!({"f": [1, 1, 1]})), ["maxItems", "uniqueItems"]);
    assert_eq!(broken(json!({"f": ["x"]})), ["type"]);
}

#[test]
fn a_form_without_fields_is_a_confirmation() {
    for (schema, kind) in [
        (json!(null), Some("no-schema")),
        (json!({}), Some("no-properties")),
        (json!({"type": "object"}), Some("no-properties")),
        (
            json!({"type": "object", "properties": null}),
            Some("no-properties"),
        ),
        (
            json!({"type": "object", "properties": []}),
            Some("empty-list"),
        ),
        (json!([]), Some("empty-list")),
        (json!({"type": "object", "properties": {}}), None),
        (json!({"properties": {}, "required": []}), Some("root-type")),
    ] {
        let form = read(&schema);
        assert!(form.fields().is_empty(), "{schema}");
        assert_eq!(kinds(&form).first().copied(), kind, "{schema}");
        assert!(form.check(json!({})).is_ok());
    }
}

#[test]
fn the_schema_itself_is_read_by_its_fields() {
    let properties = json!({"a": {"type": "string"}, "b": {"type": "boolean"}});
    for (schema, kind) in [
        (
            json!({"properties": properties, "required": ["a"]}),
            "root-type",
        ),
        (
            json!({"type": ["object", "null"], "properties": properties, "required": ["a"]}),
            "root-type",
        ),
        (
            json!({"type": "object", "properties": properties, "required": ["a", "zz", 3]}),
            "required-dropped",
        ),
        (
            json!({"type": "object", "properties": properties, "required": ["a"], "oneOf": [{"required": ["b"]}]}),
            "rule-not-enforced",
        ),
        (
            json!({"type": "object", "properties": properties, "required": ["a"], "minProperties": 1}),
            "rule-not-enforced",
        ),
        (
            json!({"type": "object", "properties": properties, "required": ["a"], "additionalProperties": {"type": "string"}}),
            "rule-not-enforced",
        ),
        (
            json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "boolean"}}}]}),
            "all-of",
        ),
        (
            json!({"anyOf": [{"type": "object", "properties": properties, "required": ["a"]}, {"type": "null"}]}),
            "root-type",
        ),
    ] {
        let form = read(&schema);
        let names: Vec<_> = form.iter().map(Field::name).collect();
        assert_eq!(names, ["a", "b"], "{schema}");
        assert!(form.fields()[0].required() && !form.fields()[1].required());
        assert!(kinds(&form).contains(&kind), "{schema}: {:?}", kinds(&form));
    }
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "required": true}, "n": {"type": "null"}}});
    let form = read(&schema);
    assert!(form.fields()[0].required());
    assert_eq!(form.fields().len(), 1);
    assert_eq!(kinds(&form), ["field-dropped"]);
}

#[test]
fn nested_objects_stay_unreadable() {
    let one = |field: Value| {
        defects(&json!({"type": "object", "properties": {"ok": {"type": "string"}, "f": field}}))
    };
    for field in [
        json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        json!({"type": "object"}),
        json!({"properties": {}}),
        json!({"anyOf": [{"type": "object"}, {"type": "null"}]}),
        json!({"type": "array", "items": {"type": "object", "properties": {}}}),
        json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
        json!({"$ref": "https://example.org/schema"}),
        json!({"$ref": "#/$defs/Missing"}),
        json!("string"),
        json!(false),
    ] {
        let found = one(field.clone());
        assert_eq!(found.len(), 1, "{field}: {found:?}");
        assert!(found[0].starts_with("/properties/f"), "{field}: {found:?}");
    }
    assert_eq!(defects(&json!("x")), [" not-an-object"]);
    assert_eq!(
        defects(&json!({"type": "array", "items": {"type": "string"}})),
        ["/type root-type"]
    );
    let two = Form::parse_leniently(
        r#"{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"integer","enum":[1]}}}"#,
    );
    assert!(two.is_err());
}

#[test]
fn every_form_has_a_legal_spelling_whose_answers_are_read_back() {
    let schema = json!({"properties": {
        "level": {"type": "integer", "enum": [1, 2], "default": 2},
        "levels": {"type": "array", "items": {"oneOf": [{"const": 1, "title": "One"}, {"const": true, "title": "Yes"}]}},
        "any": {"anyOf": [{"type": "integer"}, {"type": "string"}], "description": "Anything"},
        "number": {"type": ["integer", "number"]},
        "tags": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
        "id": {"type": "string", "format": "uuid", "pattern": "(?i)x"},
        "nick": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}
    }, "required": ["level", "tags", "nick"]});
    let form = read(&schema);
    assert!(form.emits_other_types());
    let emitted = form.emit(Revision::V2025_11_25).unwrap();
    let legal = Form::from_value(&emitted).unwrap();
    assert_eq!(
        emitted["properties"]["level"],
        json!({"type": "string", "enum": ["1", "2"], "default": "2"})
    );
    assert_eq!(
        emitted["properties"]["tags"],
        json!({"type": "string", "description": "One value per line.", "default": "a\nb"})
    );
    assert_eq!(
        emitted["properties"]["any"]["description"],
        json!("Anything Accepted: a whole number, or text.")
    );
    assert_eq!(emitted["properties"]["id"], json!({"type": "string"}));
    assert_eq!(emitted["required"], json!(["level", "tags"]));

    let answered = json!({"level": "1", "levels": ["1", "true"], "any": "12", "number": 1.5, "tags": "x\ny, z", "id": "q"});
    legal.check(answered.clone()).unwrap();
    let answers = form.check_emitted(answered).unwrap().to_value();
    assert_eq!(
        answers,
        json!({"level": 1, "levels": [1, true], "any": 12, "number": 1.5, "tags": ["x", "y, z"],
        "id": "q", "nick": null})
    );
    // What is already typed stays as it is.
    assert_eq!(
        form.check_emitted(answers.clone()).unwrap().to_value(),
        answers
    );
    assert!(
        form.check_emitted(json!({"level": "3", "tags": "x"}))
            .is_err()
    );
    assert_eq!(
        form.check_emitted(json!({"level": "1", "tags": "x", "any": ""}))
            .unwrap()
            .to_value(),
        json!({"level": 1, "tags": ["x"], "nick": null})
    );
    assert!(!strict(r#"{"a":{"type":"string"}}"#).emits_other_types());
}

#[test]
fn adjustments_name_the_field_and_the_place() {
    let form = read(
        &json!({"type": "object", "properties": {"a/b": {"type": "string", "format": "uuid"}}}),
    );
    let [adjustment] = form.adjustments() else {
        panic!("{:?}", form.adjustments())
    };
    assert_eq!(adjustment.pointer, "/properties/a~1b/format");
    assert_eq!(adjustment.field.as_deref(), Some("a/b"));
    assert_eq!(
        adjustment.to_string(),
        "the server asks for the format `uuid`, which is not checked here"
    );
    let mut codes: Vec<_> = AdjustmentKind::ALL
        .iter()
        .map(|kind| kind.as_str())
        .collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), AdjustmentKind::ALL.len());
}

#[test]
fn a_format_or_pattern_that_is_not_enforced_still_tells_of_credentials() {
    for field in [
        json!({"type": "string", "format": "password", "title": "Value"}),
        json!({"type": "string", "pattern": "(?i)^ghp_[a-z0-9]{36}$"}),
        json!({"anyOf": [{"type": "string", "format": "password"}, {"type": "integer"}]}),
        json!({"type": "array", "items": {"type": "string", "format": "Password"}}),
    ] {
        let form = read(&json!({"type": "object", "properties": {"f": field}}));
        assert_eq!(crate::secrecy::inspect(&form, "Please").len(), 1, "{field}");
    }
}

#[test]
fn a_number_among_the_options_is_sent_in_the_servers_own_spelling() {
    for (options, typed, sent) in [
        (
            "12345678901234567890123, 1",
            "12345678901234567890123",
            "12345678901234567890123",
        ),
        (
            "-12345678901234567890123, 1",
            "-12345678901234567890123",
            "-12345678901234567890123",
        ),
        (
            "18446744073709551616",
            "18446744073709551616",
            "18446744073709551616",
        ),
        ("1.50, 2.5", "1.5", "1.50"),
        ("1e2, 1e3", "100", "1e2"),
        ("1E+2", "100", "1E+2"),
        (
            "0.1000000000000000055511151231257827, 7",
            "0.1",
            "0.1000000000000000055511151231257827",
        ),
        ("-0, 4", "-0", "-0"),
        (
            "18446744073709551615",
            "18446744073709551615",
            "18446744073709551615",
        ),
        (
            "9007199254740993, 9007199254740992",
            "9007199254740993",
            "9007199254740993",
        ),
        ("2.5, \"2.5\"", "2.5", "2.5"),
    ] {
        let schema = format!(
            r#"{{"type":"object","properties":{{"s":{{"type":"string","title":"1e9 \" 5.0"}},"a":{{"enum":[{options}]}},
                "many":{{"type":"array","items":{{"enum":[{options}]}}}}}}}}"#
        );
        let form = Form::parse_leniently(&schema).unwrap();
        let mut draft = Draft::default();
        draft.set("a", DraftValue::Text(typed.to_owned()));
        let answers = form.read(&draft).unwrap();
        assert_eq!(
            serde_json::to_string(&answers).unwrap(),
            format!(r#"{{"a":{sent}}}"#),
            "{options}"
        );
        // Content in another spelling is the same option; a list is spelled as a whole.
        let content = format!(r#"{{"many":[{sent}],"a":{sent}}}"#);
        let answers = form.check_text(&content).unwrap();
        assert_eq!(
            serde_json::to_string(&answers).unwrap(),
            format!(r#"{{"a":{sent},"many":[{sent}]}}"#)
        );
        let value = form.check(serde_json::from_str(&content).unwrap()).unwrap();
        assert_eq!(value, answers);
        let result = crate::wire::ElicitResult::from(&crate::answer::Outcome::Accept(answers));
        assert_eq!(
            result.content_or_empty(),
            format!(r#"{{"a":{sent},"many":[{sent}]}}"#)
        );
    }
}

#[test]
fn options_that_differ_only_in_digits_that_are_not_kept_are_not_shown() {
    for options in [
        "12345678901234567890123, 12345678901234567890124",
        "1, 12345678901234567890123, 2, 1.2345678901234567890123e22",
    ] {
        let schema = format!(r#"{{"type":"object","properties":{{"a":{{"enum":[{options}]}}}}}}"#);
        let defects = Form::parse_leniently(&schema).unwrap_err();
        assert!(
            defects.first().to_string().contains("could mean either"),
            "{defects:?}"
        );
    }
}

/// Returns a schema of `count` fields that all refer to one definition.
fn shared(count: usize, definition: &Value) -> Value {
    let fields = (0..count).map(|i| (format!("f{i}"), json!({"$ref": "#/$defs/a"})));
    let fields: serde_json::Map<_, _> = fields.collect();
    json!({"type": "object", "properties": fields, "$defs": {"a": definition}})
}

#[test]
fn a_definition_that_many_fields_share_is_not_multiplied_without_limit() {
    let long = "x".repeat(200_000);
    let options: Vec<_> = (0..700)
        .map(|i| format!("{i} {}", "x".repeat(300)))
        .collect();
    for definition in [
        json!({"type": "string", "title": long}),
        json!({"type": "string", "description": long}),
        json!({"type": "string", "default": long}),
        json!({"type": "string", "format": long}),
        json!({"enum": options}),
        json!({"anyOf": [{"type": "string", "description": long}, {"type": "null"}]}),
        json!({"oneOf": options.iter().map(|one| json!({"const": one, "title": one})).collect::<Vec<_>>()}),
    ] {
        let found = defects(&shared(256, &definition));
        assert!(
            found[0].ends_with(" too-large"),
            "{}: {}",
            clip(&definition.to_string()),
            found[0]
        );
    }
    // Ordinary forms share definitions.
    let options: Vec<_> = (0..1_000)
        .map(|i| format!("Option {i:04} of the list"))
        .collect();
    for definition in [
        json!({"type": "string", "title": "Country", "enum": options}),
        json!({"oneOf": options.iter().map(|one| json!({"const": one, "title": one})).collect::<Vec<_>>()}),
        json!({"type": "array", "items": {"enum": options}}),
    ] {
        let form = read(&shared(20, &definition));
        assert_eq!(form.fields().len(), 20);
    }
    let text = json!({"type": "string", "format": "uuid", "description": "x".repeat(2_000)});
    assert_eq!(read(&shared(256, &text)).fields().len(), 256);
}

#[test]
fn rules_and_names_are_not_multiplied_without_limit() {
    let text = "x".repeat(100_000);
    let many = |part: &Value| vec![part.clone(); 20_000];
    let a = json!({"$ref": "#/$defs/a"});
    let names: Vec<_> = (0..20_000).map(|i| format!("n{i}")).collect();
    let merged = |definition: &Value| json!({"type": "object", "properties": {"f": {"allOf": many(&a)}}, "$defs": {"a": definition}});
    let null = json!({"const": 1, "title": null});
    let long_name = json!({"type": "object", "properties": {(&text): {"oneOf": many(&null)}}});
    let wide: Vec<_> = (0..64)
        .map(|i| json!({"type": "string", "minLength": i}))
        .collect();
    for schema in [
        // Each part is compared with the first, or has its own list of required fields.
        merged(&json!({"const": text})),
        merged(&json!({"anyOf": [{"title": text}]})),
        json!({"allOf": many(&a), "properties": {"f": {"type": "string"}}, "$defs": {"a": {"required": names}}}),
        // Each adjustment repeats the name of its field.
        long_name,
        // Each alternative has the rules beside the list.
        json!({"type": "object", "properties": {"f": {"default": "x".repeat(200_000), "const2": 1, "format": text, "anyOf": wide}}}),
        shared(256, &json!({"anyOf": wide, "format": "x".repeat(2_000)})),
    ] {
        let found = defects(&schema);
        assert!(
            found.iter().any(|one| one.ends_with(" too-large")),
            "{}: {}",
            clip(&schema.to_string()),
            clip(&found.join(", "))
        );
    }
}

#[test]
fn no_field_has_more_types_or_alternatives_than_are_compared() {
    let types: Vec<_> = (0..65).map(|i| format!("t{i}")).collect();
    let within = |first: usize| -> Vec<_> {
        (first..first + 40)
            .map(|i| json!({"type": "string", "minLength": i}))
            .collect()
    };
    for schema in [
        json!({"type": types}),
        json!({"anyOf": [{"anyOf": within(0)}, {"anyOf": within(100)}]}),
    ] {
        let found = defects(&json!({"type": "object", "properties": {"f": schema}}));
        assert!(found[0].ends_with(" too-many-options"), "{}", found[0]);
    }
    let some = json!({"anyOf": [{"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}, {"type": ["boolean", "number"]}]});
    assert_eq!(field(&some).fields().len(), 1);
}
