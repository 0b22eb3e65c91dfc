use serde_json::json;

use super::*;
use crate::wire::message;

fn parse(text: &str) -> Result<Envelope<'_>, WireError> {
    Envelope::parse(text.as_bytes())
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn each_kind_is_told_apart() {
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            MessageKind::Request,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{}}"#,
            MessageKind::Notification,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","result":{}}"#,
            MessageKind::Result,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}"#,
            MessageKind::Error,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}"#,
            MessageKind::Error,
        ),
        (
            r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}"#,
            MessageKind::Error,
        ),
    ];
    for (text, kind) in cases {
        assert_eq!(parse(text).unwrap().kind(), kind, "{text}");
    }
}

#[test]
fn parts_are_found_in_any_order_and_stay_as_written() {
    let text = "\n{ \"x-new\" : [1.0], \"params\": {\"n\":12345678901234567890, \"_meta\" : {\"a\":1e-7}},\n \"id\" : 12345678901234567890, \"m\\u0065thod\":\"tools\\/call\",\"jsonrpc\":\"2.0\" }\r\n";
    let envelope = parse(text).unwrap();
    assert_eq!(envelope.as_text(), text);
    assert_eq!(envelope.method(), Some("tools/call"));
    assert_eq!(envelope.id().unwrap().as_json(), "12345678901234567890");
    assert_eq!(
        envelope.params().unwrap().get(),
        "{\"n\":12345678901234567890, \"_meta\" : {\"a\":1e-7}}"
    );
    assert_eq!(envelope.meta().unwrap().get(), "{\"a\":1e-7}");
    assert!(envelope.result().is_none());
}

#[test]
fn what_is_no_message_gets_its_defect() {
    let shape = WireError::Shape;
    let cases = [
        (r#"[{"jsonrpc":"2.0","method":"a"}]"#, WireError::Batch),
        (
            "3",
            WireError::NotObject {
                location: "message",
            },
        ),
        (r#"{"id":1,"method":"a"}"#, WireError::Version),
        (r#"{"jsonrpc":2.0,"id":1,"method":"a"}"#, WireError::Version),
        (r#"{"jsonrpc":"2.0","id":1}"#, shape.clone()),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            shape.clone(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
            shape,
        ),
        (
            r#"{"jsonrpc":"2.0","result":{}}"#,
            WireError::Missing { member: "id" },
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":3}"#,
            WireError::NotObject { location: "result" },
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#,
            WireError::NotObject { location: "params" },
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#,
            WireError::Duplicate {
                location: "message",
            },
        ),
        (
            r#"{"jsonrpc":"2.0","method":"a","m\u0065thod":"b"}"#,
            WireError::Duplicate {
                location: "message",
            },
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            WireError::Type {
                member: "id",
                expected: "a string or a number",
            },
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
            WireError::Type {
                member: "id",
                expected: "a string or a number",
            },
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            WireError::Type {
                member: "method",
                expected: "a string",
            },
        ),
    ];
    for (text, defect) in cases {
        assert_eq!(parse(text).unwrap_err(), defect, "{text}");
    }
    for broken in [
        "",
        "{",
        "{\"jsonrpc\":\"2.0\",}",
        "nul",
        "{} {}",
        "{\"a\":1}x",
    ] {
        assert!(
            matches!(parse(broken).unwrap_err(), WireError::NotJson { .. }),
            "{broken}"
        );
    }
    assert_eq!(
        Envelope::parse(b"{\"a\":\"\xff\"}").unwrap_err(),
        WireError::NotUtf8 { offset: 6 }
    );
}

#[test]
fn a_message_over_the_limit_is_not_read() {
    let text = r#"{"jsonrpc":"2.0","method":"a"}"#;
    assert!(Envelope::parse_within(text.as_bytes(), text.len()).is_ok());
    assert_eq!(
        Envelope::parse_within(text.as_bytes(), 10).unwrap_err(),
        WireError::TooLarge {
            bytes: text.len(),
            limit: 10
        }
    );
}

#[test]
fn depth_costs_no_stack() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{{\"x\":{deep}}}}}");
    assert!(parse(&text).unwrap().meta().is_none());
}

#[test]
fn elicitation_is_seen_and_nothing_else() {
    let bears = |text: &str| parse(text).unwrap().elicitation();
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}"#),
        Some(ElicitationMessage::Create)
    );
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#),
        None
    );
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","method":"elicitation/create"}"#),
        None
    );
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}"#),
        Some(ElicitationMessage::Complete)
    );
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","id":1,"result":{"x":0,"resultType":"input_required"}}"#),
        Some(ElicitationMessage::InputRequired)
    );
    // Spelled with escapes it means the same.
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","id":1,"result":{"result\u0054ype":"\u0069nput_required"}}"#),
        Some(ElicitationMessage::InputRequired)
    );
    assert_eq!(
        bears(
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","x":"input_required"}}"#
        ),
        None
    );
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","id":1,"result":{"y":{"resultType":"input_required"}}}"#),
        None
    );
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","id":1,"result":{"taskId":"t","status":"input_required"}}"#),
        Some(ElicitationMessage::Task)
    );
    assert_eq!(
        bears(
            r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"status":"input_required"}}"#
        ),
        Some(ElicitationMessage::Task)
    );
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"status":"working"}}"#),
        None
    );
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m"}}"#),
        Some(ElicitationMessage::UrlRequired)
    );
    assert_eq!(
        bears(r#"{"jsonrpc":"2.0","id":1,"error":{"code":"-32042","message":"m"}}"#),
        None
    );
}

#[test]
fn one_part_changes_and_every_other_byte_stays() {
    let text = "{ \"id\": 7 , \"jsonrpc\":\"2.0\",\"method\":\"a\", \"params\" : {\"n\":1.0}, \"z\":1e-7 }";
    let envelope = parse(text).unwrap();
    assert_eq!(
        envelope.with_id(&Id::text("x")),
        "{ \"id\": \"x\" , \"jsonrpc\":\"2.0\",\"method\":\"a\", \"params\" : {\"n\":1.0}, \"z\":1e-7 }"
    );
    assert_eq!(
        envelope.with_body(&raw("{}")).unwrap(),
        "{ \"id\": 7 , \"jsonrpc\":\"2.0\",\"method\":\"a\", \"params\" : {}, \"z\":1e-7 }"
    );
    let bare = parse(r#"{"jsonrpc":"2.0","method":"a"}"#).unwrap();
    assert_eq!(bare.with_id(&Id::number(1)), bare.as_text());
    assert_eq!(
        bare.with_body(&raw(r#"{"b":1}"#)).unwrap(),
        r#"{"jsonrpc":"2.0","method":"a","params":{"b":1}}"#
    );
    let null = parse(r#"{"jsonrpc":"2.0","method":"a","params":null}"#).unwrap();
    assert!(null.params().is_none());
    assert_eq!(
        null.with_body(&raw("{}")).unwrap(),
        r#"{"jsonrpc":"2.0","method":"a","params":{}}"#
    );
}

#[test]
fn messages_read_what_they_write() {
    let params = raw(&json!({"a": "b"}).to_string());
    let request = message::request(&Id::number(3), "tools/call", Some(&params));
    assert_eq!(
        request,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"a":"b"}}"#
    );
    assert_eq!(parse(&request).unwrap().kind(), MessageKind::Request);
    let note = message::notification("notifications/x", None);
    assert_eq!(note, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    let result = message::result(&Id::text("q"), &params);
    assert_eq!(result, r#"{"jsonrpc":"2.0","id":"q","result":{"a":"b"}}"#);
    let error = message::error(None, &raw(r#"{"code":-32700,"message":"m"}"#));
    assert_eq!(
        error,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#
    );
    assert_eq!(parse(&error).unwrap().error_code(), Some(-32700));
}

#[test]
fn the_body_stays_out_of_debug() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"pet":"Rex"}}}"#;
    assert!(!format!("{:?}", parse(text).unwrap()).contains("Rex"));
}
