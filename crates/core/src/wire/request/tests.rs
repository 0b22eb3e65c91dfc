use serde_json::json;

use super::*;

fn parse(params: &Value, revision: Revision) -> Result<ElicitRequest, WireError> {
    ElicitRequest::from_value(params, revision)
}

fn url(id: Option<&str>) -> ElicitRequest {
    ElicitRequest::Url {
        message: "Connect".into(),
        url: "https://example.com/c".into(),
        elicitation_id: id.map(Into::into),
    }
}

#[test]
fn a_form_is_read_with_and_without_mode() {
    let schema = json!({"type": "object", "properties": {}});
    for revision in Revision::ALL {
        let bare = json!({"message": "m", "requestedSchema": schema});
        let told = json!({"mode": "form", "message": "m", "requestedSchema": schema});
        assert_eq!(
            parse(&bare, revision).unwrap(),
            ElicitRequest::form("m", &schema)
        );
        assert_eq!(
            parse(&told, revision).unwrap(),
            ElicitRequest::form("m", &schema)
        );
    }
}

#[test]
fn each_revision_spells_a_form_its_own_way() {
    let request = ElicitRequest::form("m", &json!({"type": "object", "properties": {}}));
    let schema = json!({"type": "object", "properties": {}});
    assert_eq!(
        request.to_params(Revision::V2025_06_18).unwrap(),
        json!({"message": "m", "requestedSchema": schema})
    );
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        assert_eq!(
            request.to_params(revision).unwrap(),
            json!({"mode": "form", "message": "m", "requestedSchema": schema})
        );
    }
}

#[test]
fn each_revision_spells_a_url_its_own_way() {
    let request = url(Some("id-1"));
    assert_eq!(
        request.to_params(Revision::V2025_06_18),
        Err(UnsupportedQuestion::UrlMode {
            revision: Revision::V2025_06_18
        })
    );
    assert_eq!(
        request.to_params(Revision::V2025_11_25).unwrap(),
        json!({"mode": "url", "message": "Connect", "url": "https://example.com/c", "elicitationId": "id-1"})
    );
    assert_eq!(
        request.to_params(Revision::V2026_07_28).unwrap(),
        json!({"mode": "url", "message": "Connect", "url": "https://example.com/c"})
    );
    for id in [None, Some("")] {
        assert_eq!(
            url(id).to_params(Revision::V2025_11_25),
            Err(UnsupportedQuestion::NoElicitationId {
                revision: Revision::V2025_11_25
            })
        );
    }
}

#[test]
fn an_elicitation_id_belongs_to_one_revision() {
    let with_id = json!({"mode": "url", "message": "Connect", "url": "https://example.com/c", "elicitationId": "id-1"});
    let without = json!({"mode": "url", "message": "Connect", "url": "https://example.com/c"});
    let empty = json!({"mode": "url", "message": "Connect", "url": "https://example.com/c", "elicitationId": ""});
    assert_eq!(
        parse(&with_id, Revision::V2025_11_25).unwrap(),
        url(Some("id-1"))
    );
    assert_eq!(parse(&with_id, Revision::V2026_07_28).unwrap(), url(None));
    assert_eq!(parse(&without, Revision::V2026_07_28).unwrap(), url(None));
    assert_eq!(
        parse(&without, Revision::V2025_11_25),
        Err(WireError::Missing {
            member: "elicitationId"
        })
    );
    assert!(parse(&empty, Revision::V2025_11_25).is_err());
    assert_eq!(
        parse(&with_id, Revision::V2025_06_18),
        Err(WireError::ModeNotInRevision {
            mode: Mode::Url,
            revision: Revision::V2025_06_18
        })
    );
}

#[test]
fn a_schema_that_is_absent_or_under_another_name_is_what_was_meant() {
    let fields = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for (params, expected) in [
        (json!({"message": "m"}), json!({})),
        (json!({"message": "m", "requestedSchema": null}), json!({})),
        (json!({"message": "m", "requestedSchema": []}), json!({})),
        (json!({"message": "m", "schema": fields}), fields.clone()),
        (
            json!({"message": "m", "requestedSchema": null, "schema": fields}),
            fields.clone(),
        ),
        (
            json!({"message": "m", "requestedSchema": fields, "schema": {}}),
            fields.clone(),
        ),
    ] {
        let request = ElicitRequest::from_value(&params, Revision::LATEST).unwrap();
        let ElicitRequest::Form { schema, .. } = &request else {
            panic!("{request:?}")
        };
        let schema: Value = serde_json::from_str(schema.get()).unwrap();
        assert_eq!(schema, expected, "{params}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let revision = Revision::LATEST;
    let schema = json!({});
    let cases = [
        (
            json!({"requestedSchema": schema}),
            WireError::Missing { member: "message" },
        ),
        (
            json!({"message": 1, "requestedSchema": schema}),
            WireError::Type {
                member: "message",
                expected: "a string",
            },
        ),
        (
            json!({"message": "m", "requestedSchema": "x"}),
            WireError::Type {
                member: "requestedSchema",
                expected: "an object",
            },
        ),
        (
            json!({"message": "m", "requestedSchema": [1]}),
            WireError::Type {
                member: "requestedSchema",
                expected: "an object",
            },
        ),
        (
            json!({"mode": "voice", "message": "m"}),
            WireError::UnknownMode,
        ),
        (
            json!({"mode": "url", "message": "m"}),
            WireError::Missing { member: "url" },
        ),
        (json!([]), WireError::NotObject { location: "params" }),
    ];
    for (params, defect) in cases {
        assert_eq!(parse(&params, revision), Err(defect), "{params}");
    }
}

#[test]
fn the_schema_keeps_its_bytes() {
    let text = r#"{"message":"m","requestedSchema":{ "type":"object","properties":{"n":{"type":"number","maximum":1.0}}, "x":12345678901234567890 }}"#;
    let raw = RawValue::from_string(text.to_owned()).unwrap();
    let request = ElicitRequest::parse(&raw, Revision::V2025_06_18).unwrap();
    assert_eq!(
        request.to_raw_params(Revision::V2025_06_18).unwrap().get(),
        text
    );
}

#[test]
fn params_of_a_value_are_those_of_its_text() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "number", "maximum": 1.5}}});
    for revision in Revision::ALL {
        let request = ElicitRequest::form("m", &schema);
        assert_eq!(
            ElicitRequest::form_params("m", schema.clone(), revision).to_string(),
            request.to_raw_params(revision).unwrap().get(),
            "{revision}"
        );
    }
}

#[test]
fn a_bottomless_schema_is_refused() {
    let deep = format!("{}{}", "{\"a\":".repeat(5000), "1") + &"}".repeat(5000);
    let params = format!("{{\"message\":\"m\",\"requestedSchema\":{deep}}}");
    let raw = RawValue::from_string(params).unwrap();
    assert_eq!(
        ElicitRequest::parse(&raw, Revision::LATEST),
        Err(WireError::TooDeep {
            member: "requestedSchema",
            limit: members::MAX_SCHEMA_DEPTH
        })
    );
    let made = ElicitRequest::Form {
        message: "m".into(),
        schema: RawValue::from_string(deep).unwrap(),
    };
    assert_eq!(
        made.to_params(Revision::LATEST),
        Err(UnsupportedQuestion::TooDeep {
            limit: members::MAX_SCHEMA_DEPTH
        })
    );
}

#[test]
fn a_url_stays_out_of_debug() {
    let shown = format!("{:?}", url(Some("id-1")));
    assert!(!shown.contains("example.com"), "{shown}");
}

#[test]
fn a_question_that_two_readers_could_read_differently_is_refused() {
    for params in [
        r#"{"message":"m","requestedSchema":{},"Message":"other"}"#,
        r#"{"message":"m","requestedSchema":{},"requestedschema":{}}"#,
        r#"{"message":"m","requestedSchema":{},"URL":"https://a.example"}"#,
        r#"{"message":"m","requestedSchema":{},"mod\u0045":"url"}"#,
        r#"{"message":"m","requestedSchema":{},"requested_schema":{}}"#,
        r#"{"message":"m","requestedSchema":{},"elicitation-id":"e"}"#,
    ] {
        let raw = RawValue::from_string(params.to_owned()).unwrap();
        let location = "params";
        for revision in Revision::ALL {
            let read = ElicitRequest::parse(&raw, revision);
            assert_eq!(read, Err(WireError::Spelling { location }), "{params}");
        }
    }
}

#[test]
fn a_form_that_two_readers_could_read_differently_is_refused() {
    let location = "requestedSchema";
    for schema in [
        r#"{"type":"object","properties":{},"Properties":{"password":{"type":"string"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","Title":"Password"}}}"#,
        r#"{"properties":{"a":{"type":"array","items":{"enum":["a"],"Enum":["b"]}}}}"#,
        r#"{"properties":{"a":{"oneOf":[{"const":"a","title":"A","tItle":"B"}]}}}"#,
        r#"{"properties":{"a":{"type":"string","enum":["a"],"enum_names":["B"]}}}"#,
        r#"{"properties":{"a":{"type":"string","max_length":1}}}"#,
    ] {
        let params = format!(r#"{{"message":"m","requestedSchema":{schema}}}"#);
        let raw = RawValue::from_string(params).unwrap();
        let read = ElicitRequest::parse(&raw, Revision::LATEST);
        assert_eq!(read, Err(WireError::Spelling { location }), "{schema}");
    }
    // A field's name may be any text.
    let params = r#"{"message":"m","requestedSchema":{"properties":{"Type":{"type":"string"},"Title":{"type":"string"}}}}"#;
    let raw = RawValue::from_string(params.to_owned()).unwrap();
    assert!(ElicitRequest::parse(&raw, Revision::LATEST).is_ok());
}

#[test]
fn a_question_with_members_of_both_modes_is_refused() {
    let question = |mode: &str, members: &str| {
        let params = format!(r#"{{"message":"m",{mode}{members}}}"#);
        RawValue::from_string(params).unwrap()
    };
    let link = r#""url":"https://a.example/","elicitationId":"e""#;
    let form = r#""requestedSchema":{"type":"object","properties":{}}"#;
    let both = format!("{link},{form}");
    for mode in ["", r#""mode":"form","#, r#""mode":"url","#] {
        let read = ElicitRequest::parse(&question(mode, &both), Revision::V2025_11_25);
        assert!(matches!(read, Err(WireError::OtherMode { .. })), "{mode}");
    }
    let id = format!(r#"{form},"elicitationId":"e""#);
    assert!(ElicitRequest::parse(&question("", &id), Revision::LATEST).is_err());
    let null = format!(r#"{form},"url":null"#);
    assert!(ElicitRequest::parse(&question("", &null), Revision::LATEST).is_ok());
    let null = format!(r#""mode":"url",{link},"requestedSchema":null"#);
    assert!(ElicitRequest::parse(&question("", &null), Revision::LATEST).is_ok());
}
