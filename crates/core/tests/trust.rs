//! Links, secrets and lint under arbitrary input: the opened link is the shown one, nothing panics, and the official
//! JSON Schemas accept every form that lint calls legal.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::{Link, mentions};
use mcp_elicit_core::lint::lint;
use mcp_elicit_core::secrecy;
use mcp_elicit_core::wire::Revision;
use mcp_elicit_testkit::spec::{Spec, examples};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Prepared once per thread: reading the schemas takes longer than the cases.
fn spec(revision: Revision) -> Rc<Spec> {
    thread_local! {
        static SPECS: RefCell<HashMap<Revision, Rc<Spec>>> = RefCell::default();
    }
    let read = || Rc::new(Spec::from_revision(revision.as_str()).expect("the schemas are there"));
    SPECS.with(|specs| Rc::clone(specs.borrow_mut().entry(revision).or_insert_with(read)))
}

fn url_text() -> impl Strategy<Value = String> {
    let schemes = select(vec![
        "https://",
        "http://",
        "HTTPS://",
        "https:",
        "javascript:",
        "",
        "//",
        "https:///",
    ]);
    let user = select(vec!["", "", "user@", "google.com:x@", "a@b@"]);
    let hosts = prop_oneof![
        select(vec![
            "example.com",
            "xn--80ak6aa92e.com",
            "раураl.com",
            "2130706433",
            "0x7f.1",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "localhost",
            "co.uk",
            "me.github.io",
            "paypal.com.evil.net",
            "a..b",
            ".",
            "example.com.",
            "食狮.中国",
            "EXAMPLE.com",
            "exa\u{ad}mple.com",
            "",
        ])
        .prop_map(str::to_owned),
        "[a-zа-я0-9.-]{0,20}",
    ];
    let rest = prop_oneof![
        select(vec![
            "",
            "/",
            ":8443/x",
            ":99999",
            "?token=x",
            "?u=https://evil.net/",
            "#access_token=x",
            "/a@b.cc",
            "/%E2%80%AE",
            "\\@evil.net",
            " x"
        ])
        .prop_map(str::to_owned),
        "[/?#&=%a-z0-9:@.\\PC]{0,30}",
    ];
    prop_oneof![
        (schemes, user, hosts, rest)
            .prop_map(|(scheme, user, host, rest)| format!("{scheme}{user}{host}{rest}")),
        ".{0,60}",
    ]
}

/// Words that are significant to the modules under test, and some that are not.
fn prose() -> impl Strategy<Value = String> {
    let words = select(vec![
        "enter",
        "your",
        "password",
        "api",
        "key",
        "token",
        "limit",
        "of",
        "the",
        "not",
        "secret",
        "name",
        "mot",
        "de",
        "passe",
        "密码",
        "p4ssw0rd",
        "s",
        "e",
        "c",
        "https://evil.net/x",
        "www.evil.net",
        "(",
        ".",
        "\u{202e}",
        "\u{200b}",
        "camelCaseToken",
        "snake_case_pin",
    ]);
    prop_oneof![
        vec(words, 0..12).prop_map(|words| words.join(" ")),
        "\\PC{0,40}",
        ".{0,40}"
    ]
}

fn field() -> impl Strategy<Value = Value> {
    let kinds = select(vec![
        json!({"type": "string"}),
        json!({"type": "string", "format": "date", "maxLength": 4}),
        json!({"type": "string", "enum": ["a", "b"], "default": "a"}),
        json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}),
        json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 7}),
        json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}),
        json!({"type": "integer", "minimum": 1, "maximum": 4, "multipleOf": 5}),
        json!({"type": "number", "exclusiveMinimum": 1}),
        json!({"type": "boolean", "default": true}),
        json!({"type": "object"}),
        json!({"type": ["string", "null"]}),
        json!({"$ref": "#/x"}),
        json!(true),
    ]);
    (
        kinds,
        proptest::option::of(prose()),
        proptest::option::of(prose()),
    )
        .prop_map(|(mut field, title, description)| {
            if let Some(keywords) = field.as_object_mut() {
                title.map(|title| keywords.insert("title".to_owned(), title.into()));
                description.map(|text| keywords.insert("description".to_owned(), text.into()));
            }
            field
        })
}

fn schema() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        select(vec![
            "environment",
            "api_key",
            "confirm",
            "a/b",
            "c~d",
            "",
            "é"
        ])
        .prop_map(str::to_owned),
        prose()
    ];
    vec((names, field()), 0..6).prop_map(|fields| {
        let properties: serde_json::Map<String, Value> = fields.into_iter().collect();
        json!({"type": "object", "properties": properties})
    })
}

proptest! {
    #[test]
    fn what_is_shown_is_what_is_opened(text in url_text()) {
        let Ok(link) = Link::parse(&text) else { return Ok(()) };
        let shown = link.shown();
        prop_assert_eq!(format!("{}{}{}", shown.before, shown.domain, shown.after), link.as_str());
        prop_assert!(link.as_str().bytes().all(|byte| byte.is_ascii_graphic()), "{}", link);
        prop_assert!(!shown.domain.is_empty() && link.host().ascii().ends_with(shown.domain));
        prop_assert!(matches!(link.scheme(), "http" | "https"));
        // The shown text is the same link again, with nothing changed on the way.
        let again = Link::parse(link.as_str());
        prop_assert!(again.is_ok(), "{}: {:?}", link, again);
        let again = again.expect("checked above");
        prop_assert_eq!(again.as_str(), link.as_str());
        prop_assert_eq!(again.host(), link.host());
        for caution in link.warnings() {
            prop_assert!(!caution.to_string().chars().any(char::is_control), "{}", caution);
        }
    }

    #[test]
    fn a_person_who_types_with_at_sign_sees_the_real_host(user in "[a-z.]{1,12}", host in "[a-z]{1,10}\\.(com|org|net)") {
        let link = Link::parse(&format!("https://{user}@{host}/")).expect("a link");
        prop_assert_eq!(link.host().ascii(), host.as_str());
        prop_assert!(link.warnings().iter().any(|caution| caution.code() == "userinfo"));
    }

    #[test]
    fn links_in_texts_are_pieces_of_them(text in prose()) {
        for link in mentions(&text) {
            prop_assert!(!link.is_empty() && text.contains(link));
        }
    }

    #[test]
    fn suspicions_name_fields_that_exist(schema in schema(), message in prose()) {
        let Ok(form) = Form::from_value(&schema) else { return Ok(()) };
        let suspicions = secrecy::inspect(&form, &message);
        let fields: HashSet<_> = suspicions.iter().filter_map(|suspicion| suspicion.field()).collect();
        prop_assert!(fields.iter().all(|field| form.field(field).is_some()));
        prop_assert!(suspicions.len() <= form.fields().len() + 1);
        prop_assert!(suspicions.iter().all(|suspicion| !suspicion.to_string().chars().any(char::is_control)));
    }

    #[test]
    fn what_lint_calls_legal_the_official_schemas_take(schema in schema(), message in prose()) {
        let params = json!({"message": message, "requestedSchema": schema});
        let report = lint(&params.to_string(), None);
        for revision in Revision::ALL.into_iter().filter(|revision| report.legal.on(*revision)) {
            let spec = spec(revision);
            let kind = if spec.defines("ElicitRequestFormParams") { "ElicitRequestFormParams" } else { "ElicitRequest" };
            let value = if kind == "ElicitRequest" {
                json!({"method": "elicitation/create", "params": params})
            } else {
                params.clone()
            };
            let problems = spec.problems(kind, &value);
            prop_assert!(problems.is_empty(), "{}: {:?}\n{}", revision, problems, value);
        }
        // Every finding points into the input.
        for finding in &report.findings {
            let mut pointer = finding.pointer.as_str();
            if params.pointer(pointer).is_none() {
                pointer = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
            }
            prop_assert!(params.pointer(pointer).is_some(), "{:?}", finding);
        }
    }

    #[test]
    fn lint_has_a_report_for_anything(text in prop_oneof![".{0,80}", schema().prop_map(|schema| schema.to_string())], cut in 0usize..400) {
        let end = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
        let report = lint(&text[..end], Some(Revision::LATEST));
        prop_assert_eq!(report.legal.on(Revision::LATEST), !report.findings.iter().any(|finding| {
            finding.level == mcp_elicit_core::lint::Severity::Error && is_about_legality(finding.code)
        }));
    }
}

/// Errors that concern the person and not the revision.
fn is_about_legality(code: &str) -> bool {
    !matches!(code, "asks-for-secret" | "unreachable-bounds")
}

#[test]
fn the_specifications_own_examples_are_in_order() {
    for (kind, many) in [
        ("ElicitRequest", 1),
        ("ElicitRequestFormParams", 2),
        ("ElicitRequestURLParams", 1),
    ] {
        let examples = examples("2026-07-28", kind).expect("the examples are there");
        assert!(examples.len() >= many, "{kind}");
        for (name, text) in examples {
            let report = lint(&text, Some(Revision::V2026_07_28));
            assert!(
                !report.has_errors() && report.legal.on(Revision::V2026_07_28),
                "{name}: {report:?}"
            );
            assert!(
                report
                    .findings
                    .iter()
                    .all(|finding| !finding.code.contains("secret")),
                "{name}: {report:?}"
            );
        }
    }
}
