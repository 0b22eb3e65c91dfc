use serde_json::{Value, json};

use super::*;

/// Returns each finding as "level code pointer".
fn told(report: &LintReport) -> Vec<String> {
    let told = |finding: &LintFinding| {
        format!(
            "{} {} {}",
            finding.level.as_str(),
            finding.code,
            finding.pointer
        )
    };
    report.findings.iter().map(told).collect()
}

/// Returns the findings about one field `a` that has a title and a description, as "level code place", `place` within
/// the field.
fn field(keywords: &Value) -> Vec<String> {
    field_named("a", keywords)
}

fn field_named(name: &str, keywords: &Value) -> Vec<String> {
    let mut schema = json!({"title": "A label", "description": "What it is for."});
    for (key, value) in keywords.as_object().expect("keywords") {
        schema[key] = value.clone();
    }
    let mut properties = json!({});
    properties[name] = schema;
    let form = json!({"type": "object", "properties": properties});
    let report = lint(&form.to_string(), None);
    let at = format!("/properties/{name}");
    told(&report)
        .iter()
        .map(|line| line.replace(&at, "").trim_end().to_owned())
        .collect()
}

#[test]
fn a_pattern_that_is_none_gets_a_reason() {
    for (pattern, reason) in [("(", "unclosed group"), ("(?i)x", "ECMA-262")] {
        let form =
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        let report = lint(&form.to_string(), None);
        let finding = report
            .findings
            .iter()
            .find(|finding| finding.code == "pattern-syntax");
        assert!(
            finding.is_some_and(|finding| finding.help.contains(reason)),
            "{report:?}"
        );
    }
}

#[test]
fn an_illegal_form_is_looked_at_for_the_rest_too() {
    let form = json!({"type": "object", "required": ["zz"], "properties": {
        "password": {"type": "strin", "title": "Password", "description": "Of your account."},
        "email": {"type": "string", "format": "mail", "title": "E-mail", "description": "See https://files.acme.org."},
        "a/b": {"type": "boolean", "default": true, "title": "Delete all", "description": "What there is."},
    }});
    let report = lint(&form.to_string(), None);
    assert!(
        Revision::ALL
            .iter()
            .all(|revision| !report.legal.on(*revision))
    );
    assert_eq!(
        told(&report),
        [
            "error unknown-type /properties/password/type",
            "error unsupported-format /properties/email/format",
            "error required-unknown /required/0",
            "error asks-for-secret /properties/password",
            "warning link-in-form /properties/email/description",
            "warning risky-default /properties/a~1b/default",
            "note read-as /properties/password/type",
            "note read-as /properties/email/format",
            "note read-as /required/0",
        ]
    );
}

#[test]
fn a_good_form_has_no_findings() {
    let schema = json!({"type": "object", "properties": {
        "environment": {"type": "string", "title": "Environment", "description": "Where it goes.", "enum": ["staging", "production"]},
        "note": {"type": "string", "title": "Note", "description": "Shown in the log.", "maxLength": 200},
        "sure": {"type": "boolean", "title": "Deploy now", "description": "It takes a minute.", "default": false}
    }, "required": ["environment"]});
    let request = json!({"method": "elicitation/create", "params": {"message": "Where to?", "requestedSchema": schema}});
    for text in [schema.to_string(), request.to_string()] {
        let report = lint(&text, None);
        assert_eq!(told(&report), [""; 0]);
        assert!(
            Revision::ALL
                .into_iter()
                .all(|revision| report.legal.on(revision))
        );
    }
}

#[test]
fn texts_that_leave_a_person_in_the_dark() {
    assert_eq!(
        field(&json!({"type": "boolean", "title": " "})),
        ["warning no-title /title"]
    );
    assert_eq!(
        field(&json!({"type": "boolean", "description": ""})),
        ["note no-description"]
    );
    assert_eq!(
        field(&json!({"type": "boolean", "title": "x".repeat(81)})),
        ["note long-text /title"]
    );
    assert_eq!(
        field(&json!({"type": "boolean", "description": "x".repeat(501)})),
        ["note long-text /description"]
    );
    assert_eq!(
        field(&json!({"type": "boolean", "title": "safe\u{202e}evil"})),
        ["warning invisible-characters /title"]
    );
    assert_eq!(
        field(&json!({"type": "boolean", "title": "👩\u{200d}💻"})),
        [""; 0]
    );
    assert_eq!(
        field_named("startDate", &json!({"type": "string"})),
        ["note no-format"]
    );
    assert_eq!(
        field_named("startDate", &json!({"type": "string", "format": "date"})),
        [""; 0]
    );

    let bare = json!({"type": "object", "properties": {"note": {"type": "string"}, "dst_env2": {"type": "string"}}});
    assert_eq!(
        told(&lint(&bare.to_string(), None)),
        [
            "warning no-title /properties/dst_env2",
            "note no-title /properties/note",
            "note no-description /properties/note",
            "note no-description /properties/dst_env2"
        ]
    );
}

#[test]
fn secrets_and_links() {
    assert_eq!(
        field_named("api_key", &json!({"type": "string"})),
        ["error asks-for-secret"]
    );
    assert_eq!(
        field_named("token", &json!({"type": "string"})),
        ["warning may-ask-for-secret"]
    );
    assert_eq!(
        field_named("token_limit", &json!({"type": "integer"})),
        [""; 0]
    );
    assert_eq!(
        field(&json!({"type": "string", "description": "See https://evil.test/x."})),
        ["warning link-in-form /description"]
    );
    assert_eq!(
        field(&json!({"type": "string", "title": "www.evil.net"})),
        ["warning link-in-form /title"]
    );

    let params = json!({"message": "Enter your password at https://evil.test", "requestedSchema": {"type": "object", "properties": {
        "a": {"type": "string", "title": "A", "description": "B"}, "b": {"type": "string", "title": "C", "description": "D"}}}});
    assert_eq!(
        told(&lint(&params.to_string(), None)),
        [
            "error asks-for-secret /message",
            "warning link-in-form /message"
        ]
    );
}

#[test]
fn defaults_that_surprise() {
    let risky = ["warning risky-default /default"];
    assert_eq!(
        field_named("confirm", &json!({"type": "boolean", "default": true})),
        risky
    );
    assert_eq!(
        field(&json!({"type": "boolean", "default": true, "title": "Delete all branches"})),
        risky
    );
    assert_eq!(
        field(&json!({"type": "boolean", "default": true, "description": "Overwrites the file."})),
        risky
    );
    assert_eq!(
        field(
            &json!({"type": "string", "enum": ["staging", "production"], "default": "production"})
        ),
        risky
    );
    assert_eq!(
        field(
            &json!({"type": "array", "items": {"type": "string", "enum": ["keep", "purge", "x"]}, "default": ["purge"]})
        )[0],
        risky[0]
    );

    assert_eq!(
        field(&json!({"type": "boolean", "default": true, "title": "Show line numbers"})),
        [""; 0]
    );
    assert_eq!(
        field(&json!({"type": "boolean", "default": true, "title": "Ask before deleting"})),
        [""; 0]
    );
    assert_eq!(
        field(&json!({"type": "boolean", "default": false, "title": "Delete all"})),
        [""; 0]
    );
    assert_eq!(
        field(&json!({"type": "string", "enum": ["staging", "production"], "default": "staging"})),
        [""; 0]
    );
}

#[test]
fn options_that_cannot_be_found_or_told_apart() {
    let many: Vec<String> = (0..30).map(|n| format!("option {n}")).collect();
    assert_eq!(
        field(&json!({"type": "string", "enum": many})),
        ["warning many-options"]
    );
    assert_eq!(
        field(&json!({"type": "string", "enum": ["only"]})),
        ["warning single-option"]
    );
    assert_eq!(
        field(&json!({"type": "string", "enum": ["a", ""]})),
        ["warning empty-option"]
    );
    assert_eq!(
        field(&json!({"type": "string", "enum": ["Yes", "yes "]})),
        ["warning same-option-label"]
    );
    assert_eq!(
        field(&json!({"type": "string", "enum": ["0184d0a1-7e55", "5f2b9c0d1e"]})),
        ["warning untitled-option"]
    );
    assert_eq!(
        field(&json!({"type": "string", "enum": ["2024", "2025"]})),
        [""; 0]
    );
    assert_eq!(
        field(&json!({"type": "string", "enum": ["a", "b\u{202e}"]})),
        ["warning invisible-characters"]
    );
}

#[test]
fn bounds_that_no_answer_reaches() {
    for (keywords, expected) in [
        (
            json!({"type": "string", "format": "date", "maxLength": 9}),
            "warning unreachable-bounds /maxLength",
        ),
        (
            json!({"type": "string", "format": "date", "minLength": 11}),
            "warning unreachable-bounds /minLength",
        ),
        (
            json!({"type": "string", "format": "email", "maxLength": 2}),
            "warning unreachable-bounds /maxLength",
        ),
        (
            json!({"type": "string", "maxLength": 0}),
            "warning unreachable-bounds /maxLength",
        ),
        (
            json!({"type": "string", "minLength": 5000}),
            "warning unreachable-bounds /minLength",
        ),
        (
            json!({"type": "integer", "minimum": 3, "maximum": 3}),
            "warning single-value",
        ),
        (
            json!({"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_993_u64}),
            "note inexact-bound",
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 3}),
            "warning unreachable-bounds /maxItems",
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 2}),
            "warning single-value /minItems",
        ),
    ] {
        let told = field(&keywords);
        assert!(
            told.iter().any(|line| line == expected),
            "{keywords}: {told:?}"
        );
    }
    let stepped = |low: i64, high: i64, step: i64| {
        field(&json!({"type": "integer", "minimum": low, "maximum": high, "multipleOf": step}))
    };
    assert!(stepped(1, 4, 5).contains(&"warning unreachable-bounds /multipleOf".to_owned()));
    assert!(stepped(-4, -1, 5).contains(&"warning unreachable-bounds /multipleOf".to_owned()));
    for (low, high, step) in [(1, 5, 5), (-4, 4, 5), (5, 9, 5), (0, 4, 5)] {
        assert!(
            !stepped(low, high, step)
                .iter()
                .any(|line| line.contains("unreachable")),
            "{low} {high} {step}"
        );
    }
    let required = json!({"type": "object", "properties": {"d": {"type": "string", "format": "date", "maxLength": 4}}, "required": ["d"]});
    assert_eq!(
        told(&lint(&required.to_string(), None))[0],
        "error unreachable-bounds /properties/d/maxLength"
    );
}

#[test]
fn what_only_shows_in_the_whole_form() {
    let twice = json!({"type": "object", "properties": {
        "a": {"type": "boolean", "title": "Same", "description": "x"}, "b": {"type": "boolean", "title": "same", "description": "y"}}});
    assert_eq!(
        told(&lint(&twice.to_string(), None)),
        ["warning same-label /properties/b"]
    );
    assert_eq!(
        told(&lint(r#"{"type":"object","properties":{}}"#, None)),
        ["note no-fields /properties"]
    );
    let many: serde_json::Map<String, Value> = (0..13)
        .map(|n| {
            (
                format!("field{n}"),
                json!({"type": "boolean", "title": format!("T {n}"), "description": "d"}),
            )
        })
        .collect();
    let many = json!({"type": "object", "properties": many});
    assert_eq!(
        told(&lint(&many.to_string(), None)),
        ["warning many-fields /properties"]
    );
    let silent = json!({"message": " ", "requestedSchema": {"type": "object", "properties": {}}});
    assert_eq!(
        told(&lint(&silent.to_string(), None)),
        [
            "warning no-message /message",
            "note no-fields /requestedSchema/properties"
        ]
    );
}

#[test]
fn what_the_parser_notes_and_refuses_is_told() {
    assert_eq!(
        field(&json!({"type": "integer", "exclusiveMinimum": 1})),
        ["warning not-portable /exclusiveMinimum"]
    );
    assert_eq!(
        field(&json!({"type": "string", "pattern": "(?=a)b"})),
        ["warning pattern-not-enforced /pattern"]
    );
    assert_eq!(
        field(&json!({"type": "string", "x-ui": 1})),
        ["note unknown-keyword /x-ui"]
    );

    let nested = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "object"}}}});
    let report = lint(&nested.to_string(), None);
    assert_eq!(
        told(&report)[0],
        "error nested /requestedSchema/properties/a/type"
    );
    assert!(
        report.has_errors()
            && !Revision::ALL
                .into_iter()
                .any(|revision| report.legal.on(revision))
    );
}

#[test]
fn revisions_differ() {
    let legal = |keywords: &Value, revision| {
        let form = json!({"type": "object", "properties": {"a": keywords}});
        let report = lint(&form.to_string(), revision);
        (
            Revision::ALL.map(|revision| report.legal.on(revision)),
            told(&report),
        )
    };
    let several = json!({"type": "array", "title": "T", "description": "d", "items": {"type": "string", "enum": ["a", "b"]}});
    let titled = json!({"type": "string", "title": "T", "description": "d", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]});
    let old = json!({"type": "string", "title": "T", "description": "d", "enum": ["a", "b"], "enumNames": ["A", "B"]});
    let new_only = [false, true, true];

    assert_eq!(
        legal(&several, None),
        (
            new_only,
            vec!["note not-in-revision /properties/a".to_owned()]
        )
    );
    assert_eq!(
        legal(&several, Some(Revision::V2025_06_18)),
        (
            new_only,
            vec!["error not-in-revision /properties/a".to_owned()]
        )
    );
    assert_eq!(
        legal(&several, Some(Revision::V2025_11_25)),
        (new_only, vec![])
    );
    assert_eq!(
        legal(&titled, Some(Revision::V2025_06_18)),
        (
            new_only,
            vec!["error not-in-revision /properties/a/oneOf".to_owned()]
        )
    );
    assert_eq!(
        legal(&old, None),
        (
            [true; 3],
            vec!["note deprecated-enum-names /properties/a/enumNames".to_owned()]
        )
    );
    assert_eq!(
        legal(&old, Some(Revision::V2025_06_18)),
        ([true; 3], vec![])
    );
    let with_default = json!({"type": "string", "title": "T", "description": "d", "default": "x"});
    assert_eq!(
        legal(&with_default, Some(Revision::V2025_06_18)),
        (
            [true; 3],
            vec!["note default-ignored /properties/a/default".to_owned()]
        )
    );
    assert_eq!(legal(&with_default, None), ([true; 3], vec![]));
}

#[test]
fn parts_that_together_exclude_every_revision_are_errors() {
    let titled = json!({"type": "string", "title": "T", "description": "d", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]});
    let form = json!({"type": "object", "properties": {"a": titled}, "$schema": null});
    let report = lint(&form.to_string(), None);
    assert_eq!(report.legal, Legal::nowhere());
    assert_eq!(
        told(&report),
        [
            "error not-in-revision /properties/a/oneOf",
            "error not-in-schema /$schema"
        ]
    );
}

#[test]
fn a_field_beside_a_defect_is_compared_with_the_schema() {
    let form = json!({"type": "object", "properties": {
        "a": {"type": "integer", "title": "A", "description": "d", "enum": null},
        "b": {"type": "array", "title": "B", "description": "d", "items": {"enum": ["a", "b"]}},
    }});
    let report = lint(&form.to_string(), Some(Revision::LATEST));
    assert_eq!(report.legal, Legal::nowhere());
    let told = told(&report);
    assert!(
        told.contains(&"error not-in-schema /properties/b/items".to_owned()),
        "{told:?}"
    );
}

#[test]
fn url_questions_are_looked_at_too() {
    let url = |url: &str, id: bool, revision| {
        let mut params = json!({"mode": "url", "message": "Sign in", "url": url});
        if id {
            params["elicitationId"] = json!("550e8400");
        }
        let report = lint(
            &json!({"method": "elicitation/create", "params": params}).to_string(),
            revision,
        );
        (
            Revision::ALL.map(|revision| report.legal.on(revision)),
            told(&report),
        )
    };
    let clean = "https://mcp.example.com/connect";
    assert_eq!(
        url(clean, true, Some(Revision::V2025_11_25)),
        ([false, true, true], vec![])
    );
    assert_eq!(
        url(clean, false, Some(Revision::V2025_11_25)),
        (
            [false, false, true],
            vec!["error not-in-revision /params/url".to_owned()]
        )
    );
    assert_eq!(
        url("javascript:x", true, None)
            .1
            .first()
            .map(String::as_str),
        Some("error url-scheme /params/url")
    );
    assert_eq!(url("javascript:x", true, None).0, [false; 3]);
    let bad = url(
        "http://mcp.example.com/?token=1",
        false,
        Some(Revision::V2026_07_28),
    )
    .1;
    assert_eq!(
        bad,
        [
            "error credential-in-url /params/url",
            "warning plain-http /params/url"
        ]
    );
}

#[test]
fn several_questions_of_a_result_are_all_looked_at() {
    let ask = |schema: Value| json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": schema}});
    let result = json!({"resultType": "input_required", "inputRequests": {
        "one": ask(json!({"type": "object", "properties": {}})),
        "two": ask(json!({"type": "object"})),
    }});
    let report = lint(&result.to_string(), None);
    assert_eq!(
        told(&report),
        [
            "error no-properties /inputRequests/two/params/requestedSchema",
            "warning read-as /inputRequests/two/params/requestedSchema",
            "note no-fields /inputRequests/one/params/requestedSchema/properties",
            "note no-fields /inputRequests/two/params/requestedSchema/properties",
        ]
    );
    assert!(!report.legal.on(Revision::V2026_07_28));
}

#[test]
fn a_report_reads_as_documented() {
    let report = lint(
        r#"{"type":"object","properties":{"pin_code":{"type":"boolean","title":"T"}}}"#,
        None,
    );
    assert_eq!(
        serde_json::to_value(&report).expect("a report is JSON"),
        json!({
            "legal": {"2025-06-18": true, "2025-11-25": true, "2026-07-28": true},
            "reading": "as-written",
            "findings": [{
                "level": "note", "code": "no-description", "pointer": "/properties/pin_code",
                "message": "there is no description: a person is not told what it is for",
                "help": "give a `description` of one sentence"
            }]
        })
    );
}

#[test]
fn whatever_text_there_is_a_report() {
    let deep = "[".repeat(300_000);
    let open = r#"{"a":"#.repeat(100_000);
    let many: String = format!(
        r#"{{"type":"object","properties":{{{}}}}}"#,
        (0..5_000)
            .map(|n| format!(r#""f{n}":{{"type":"null"}}"#))
            .collect::<Vec<_>>()
            .join(",")
    );
    for text in [
        "",
        "\u{0}",
        "nul",
        "[]",
        "3",
        "\"x\"",
        "null",
        "{}",
        &deep,
        &open,
        &many,
        &"x".repeat(17 << 20),
    ] {
        let report = lint(text, None);
        assert!(report.has_errors(), "{}", &text[..text.len().min(20)]);
        assert!(report.findings.len() <= 1_000);
        assert!(!report.legal.on(Revision::LATEST));
    }
}

/// Returns the reading of a form, the levels and codes of its errors and warnings, and the sentences of `read-as`.
fn reading(text: &str) -> (Option<Presentation>, Vec<String>, Vec<String>) {
    let report = lint(text, None);
    let graver = report
        .findings
        .iter()
        .filter(|finding| finding.level != Severity::Note && !finding.code.starts_with("no-"));
    let codes = graver.map(|finding| format!("{} {}", finding.level.as_str(), finding.code));
    let read = report
        .findings
        .iter()
        .filter(|finding| finding.code == "read-as")
        .map(|finding| finding.message.clone());
    (report.reading, codes.collect(), read.collect())
}

#[test]
fn how_a_form_is_read_is_told() {
    let field = |keywords: &str| {
        reading(&format!(
            r#"{{"type":"object","properties":{{"a":{keywords}}}}}"#
        ))
    };
    let (who, codes, read) = field(r#"{"type":"string","title":"T"}"#);
    assert_eq!(
        (who, codes.len(), read.len()),
        (Some(Presentation::AsWritten), 0, 0)
    );

    // Legal on every revision, and still not the same everywhere.
    let (who, codes, read) = field(r#"{"type":"integer","title":"T","enum":[1,2,3]}"#);
    assert_eq!(who, Some(Presentation::Leniently));
    assert_eq!(codes, ["warning enum-not-string"]);
    assert!(read[0].contains("sent as such"), "{read:?}");

    let (who, codes, read) = field(r#"{"title":"T","anyOf":[{"type":"string"},{"type":"null"}]}"#);
    assert_eq!(who, Some(Presentation::Leniently));
    assert_eq!(codes, ["error unsupported-keyword", "error missing-type"]);
    assert!(read[0].contains("may be left empty"), "{read:?}");

    let (who, _, read) = field(r#"{"type":"object","properties":{}}"#);
    assert_eq!((who, read.len()), (Some(Presentation::OnlyByClients), 0));
    // Of several forms, the one that the fewest show counts.
    let ask = |schema: Value| json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": schema}});
    let result = json!({"inputRequests": {
        "one": ask(json!({"type": "object", "properties": {"a": {"type": "object"}}})),
        "two": ask(json!({"type": "object", "properties": {}})),
    }});
    assert_eq!(
        reading(&result.to_string()).0,
        Some(Presentation::OnlyByClients)
    );
}

#[test]
fn a_question_without_its_schema_is_read_as_it_was_meant() {
    for (text, at, read_as) in [
        (r#"{"message":"m"}"#, "", "asks to confirm"),
        (r#"{"mode":"form","message":"m"}"#, "", "asks to confirm"),
        (
            r#"{"message":"m","schema":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
            "/schema",
            "probably meant",
        ),
        (
            r#"{"message":"m","requestedSchema":[]}"#,
            "/requestedSchema",
            "asks to confirm",
        ),
        (
            r#"{"message":"m","requestedSchema":{}}"#,
            "/requestedSchema",
            "asks to confirm",
        ),
        (
            r#"{"message":"m","requestedSchema":null}"#,
            "/requestedSchema",
            "asks to confirm",
        ),
    ] {
        let report = lint(text, None);
        assert!(report.has_errors(), "{text}: it is not legal");
        assert!(!report.legal.on(Revision::LATEST), "{text}");
        assert_eq!(report.reading, Some(Presentation::Leniently), "{text}");
        let warned = report.findings.iter().any(|finding| {
            finding.level == Severity::Warning
                && finding.code == "read-as"
                && finding.pointer == at
                && finding.message.contains(read_as)
        });
        assert!(warned, "{text}: {:?}", report.findings);
    }
    let other = lint(
        r#"{"message":"m","schema":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
        None,
    );
    let titles = other
        .findings
        .iter()
        .filter(|finding| finding.pointer == "/schema/properties/a");
    assert_eq!(titles.count(), 2, "the fields are looked at in their place");
}
