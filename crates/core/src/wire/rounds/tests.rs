use serde_json::json;

use super::*;
use crate::wire::Action;
use crate::wire::members::raw_value;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn question() -> ElicitRequest {
    ElicitRequest::form(
        "Who?",
        &json!({"type": "object", "properties": {"name": {"type": "string"}}}),
    )
}

const MIXED: &str = r#"{"resultType":"input_required","inputRequests":{
    "z_first":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a.example/","elicitationId":""}},
    "capital":{"method":"sampling/createMessage","params":{"maxTokens":1.0}},
    "a_last":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}
    },"requestState":"s\u0000\"1"}"#;

#[test]
fn requests_keep_their_order_and_others_their_bytes() {
    let required = InputRequired::parse(&raw(MIXED)).unwrap();
    let keys: Vec<&str> = required.questions().map(|(key, _)| key).collect();
    assert_eq!(keys, ["z_first", "a_last"]);
    let others: Vec<_> = required
        .others()
        .map(|(key, method, raw)| (key, method, raw.get()))
        .collect();
    assert_eq!(
        others,
        [(
            "capital",
            "sampling/createMessage",
            r#"{"method":"sampling/createMessage","params":{"maxTokens":1.0}}"#
        )]
    );
    assert_eq!(required.state.as_deref(), Some("s\0\"1"));
    let written = required.to_result().unwrap();
    assert_eq!(InputRequired::parse(&written).unwrap(), required);
    assert!(!written.get().contains("elicitationId"));
}

#[test]
fn requests_or_state_must_be_there() {
    let parse = |value: serde_json::Value| InputRequired::parse(&raw_value(&value));
    let kind = INPUT_REQUIRED;
    assert!(
        parse(json!({"resultType": kind, "requestState": ""}))
            .unwrap()
            .requests
            .is_none()
    );
    assert!(
        parse(json!({"resultType": kind, "inputRequests": {}}))
            .unwrap()
            .state
            .is_none()
    );
    assert_eq!(
        parse(json!({"resultType": kind})).unwrap_err(),
        WireError::NothingRequired
    );
    assert_eq!(
        parse(json!({"resultType": kind, "requestState": 1})).unwrap_err(),
        WireError::Type {
            member: "requestState",
            expected: "a string"
        }
    );
    assert!(parse(json!({"resultType": kind, "inputRequests": []})).is_err());
    assert!(parse(json!({"resultType": kind, "inputRequests": {"a": {"params": {}}}})).is_err());
    assert!(
        parse(
            json!({"resultType": kind, "inputRequests": {"a": {"method": "elicitation/create"}}})
        )
        .is_err()
    );
}

#[test]
fn a_duplicate_key_is_a_defect() {
    let duplicate = raw(
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"x"},"a":{"method":"y"}}}"#,
    );
    assert_eq!(
        InputRequired::parse(&duplicate).unwrap_err(),
        WireError::Duplicate {
            location: "inputRequests"
        }
    );
}

#[test]
fn responses_are_read_by_key_and_mode() {
    let params = raw(
        r#"{"name":"t","inputResponses":{"who":{"action":"accept","content":{"n":1.0}},"go":{"action":"decline"},
        "llm":{"role":"assistant"}},"requestState":"abc"}"#,
    );
    let responses = InputResponses::from_params(&params).unwrap().unwrap();
    assert_eq!(responses.keys().collect::<Vec<_>>(), ["who", "go", "llm"]);
    let who = responses.reply_to("who", Mode::Form).unwrap().unwrap();
    assert_eq!(who.content_or_empty(), r#"{"n":1.0}"#);
    assert_eq!(
        responses
            .reply_to("go", Mode::Url)
            .unwrap()
            .unwrap()
            .action(),
        Action::Decline
    );
    assert!(responses.reply_to("nobody", Mode::Form).is_none());
    assert!(responses.reply_to("llm", Mode::Form).unwrap().is_err());
    assert_eq!(state_of_params(&params).unwrap().as_deref(), Some("abc"));
    assert!(InputResponses::from_params(&raw("{}")).unwrap().is_none());
    assert!(InputResponses::from_params(&raw(r#"{"inputResponses":[]}"#)).is_err());
    assert!(state_of_params(&raw(r#"{"requestState":{}}"#)).is_err());
    assert!(!format!("{responses:?}").contains("1.0"));
}

#[test]
fn a_retry_echoes_the_state_and_keeps_every_other_byte() {
    let params = raw(
        r#"{ "name":"t", "arguments":{"n":12345678901234567890},"requestState":"old", "_meta":{"x":1.0} }"#,
    );
    let required = InputRequired::asking([("who".to_owned(), question())], Some("new".into()));
    let mut responses = InputResponses::default();
    responses.reply("who", &ElicitResult::bare(Action::Cancel));
    responses.reply("who", &ElicitResult::accept(&json!({"name": "x"})));
    assert_eq!(
        retry_params(Some(&params), &required, &responses)
            .unwrap()
            .get(),
        r#"{ "name":"t", "arguments":{"n":12345678901234567890},"requestState":"new", "_meta":{"x":1.0},"inputResponses":{"who":{"action":"accept","content":{"name":"x"}}} }"#
    );
}

#[test]
fn a_retry_carries_nothing_that_was_not_asked_for() {
    let params = raw(r#"{"name":"t","inputResponses":{"a":{}},"requestState":"old"}"#);
    let state_only = InputRequired {
        requests: None,
        state: Some("s".into()),
    };
    let none = InputResponses::default();
    assert_eq!(
        retry_params(Some(&params), &state_only, &none)
            .unwrap()
            .get(),
        r#"{"name":"t","requestState":"s"}"#
    );
    let stateless = InputRequired {
        requests: Some(Vec::new()),
        state: None,
    };
    assert_eq!(
        retry_params(None, &stateless, &none).unwrap().get(),
        r#"{"inputResponses":{}}"#
    );
}

#[test]
fn the_state_stays_out_of_debug() {
    let required = InputRequired {
        requests: None,
        state: Some("secret-state".into()),
    };
    assert!(!format!("{required:?}").contains("secret-state"));
}

#[test]
fn a_request_that_nearly_asks_is_refused() {
    let params = r#""params":{"message":"m","requestedSchema":{}}"#;
    let spelling = WireError::Spelling {
        location: "an input request",
    };
    let method = WireError::Type {
        member: "method",
        expected: "spelled as the protocol spells it",
    };
    for (request, defect) in [
        (
            format!(r#"{{"method":"roots/list","Method":"elicitation/create",{params}}}"#),
            &spelling,
        ),
        (
            format!(r#"{{"method":"elicitation/create",{params},"PARAMS":{{}}}}"#),
            &spelling,
        ),
        (
            format!(r#"{{"method":"Elicitation/create",{params}}}"#),
            &method,
        ),
        (
            format!(r#"{{"method":" elicitation/create",{params}}}"#),
            &method,
        ),
    ] {
        let requests = RawValue::from_string(format!(r#"{{"k":{request}}}"#)).unwrap();
        assert_eq!(read_requests(&requests).as_ref(), Err(defect), "{request}");
    }
}
