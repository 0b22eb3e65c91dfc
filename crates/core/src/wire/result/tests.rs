use serde_json::json;

use super::*;

fn parse(result: &Value, mode: Mode) -> Result<ElicitResult, WireError> {
    ElicitResult::from_value(result, mode)
}

#[test]
fn a_form_accept_carries_its_content() {
    let reply = parse(
        &json!({"action": "accept", "content": {"a": 1}, "_meta": {}}),
        Mode::Form,
    )
    .unwrap();
    assert_eq!(reply.action(), Action::Accept);
    assert_eq!(reply.content_or_empty(), r#"{"a":1}"#);
    assert_eq!(
        reply.to_value(),
        json!({"action": "accept", "content": {"a": 1}})
    );
}

#[test]
fn an_accept_without_content_is_checked_as_empty_and_null_is_dropped() {
    for result in [
        json!({"action": "accept"}),
        json!({"action": "accept", "content": null}),
    ] {
        let reply = parse(&result, Mode::Form).unwrap();
        assert!(reply.content().is_none());
        assert_eq!(reply.content_or_empty(), "{}");
        assert_eq!(reply.dropped_content(), result.get("content").is_some());
    }
}

#[test]
fn content_that_means_nothing_is_dropped_and_noted() {
    let cases = [
        ("decline", Mode::Form),
        ("cancel", Mode::Form),
        ("accept", Mode::Url),
        ("decline", Mode::Url),
    ];
    for (action, mode) in cases {
        let reply = parse(&json!({"action": action, "content": {"a": 1}}), mode).unwrap();
        assert!(reply.content().is_none());
        assert!(reply.dropped_content());
        assert_eq!(reply.to_value(), json!({"action": action}));
    }
}

#[test]
fn an_unknown_action_is_never_taken_for_another() {
    for action in ["reject", "Accept", "", "timeout"] {
        let result = json!({"action": action});
        assert_eq!(
            parse(&result, Mode::Form).unwrap_err(),
            WireError::UnknownAction
        );
    }
    assert_eq!(
        parse(&json!({}), Mode::Form).unwrap_err(),
        WireError::Missing { member: "action" }
    );
    assert!(parse(&json!({"action": 1}), Mode::Form).is_err());
    assert!(parse(&json!({"action": "accept", "content": [1]}), Mode::Form).is_err());
}

#[test]
fn an_outcome_goes_out_and_comes_back() {
    let form =
        Form::parse(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#)
            .unwrap();
    let reply = parse(
        &json!({"action": "accept", "content": {"n": 3, "extra": 1}}),
        Mode::Form,
    )
    .unwrap();
    let outcome = reply.against(&form).unwrap();
    assert_eq!(
        ElicitResult::from(&outcome).to_value(),
        json!({"action": "accept", "content": {"n": 3}})
    );
    assert!(ElicitResult::bare(Action::Accept).against(&form).is_err());
    for (action, outcome) in [
        (Action::Decline, Outcome::Decline),
        (Action::Cancel, Outcome::Cancel),
    ] {
        assert_eq!(
            ElicitResult::bare(action).against(&form),
            Ok(outcome.clone())
        );
        assert_eq!(ElicitResult::bare(action).visited(), outcome);
    }
    assert_eq!(ElicitResult::bare(Action::Accept).visited(), Outcome::Visit);
}

#[test]
fn bottomless_content_is_refused() {
    let mut deep = json!(1);
    for _ in 0..70 {
        deep = json!({ "a": deep });
    }
    assert!(matches!(
        ElicitResult::from_value(&json!({"action": "accept", "content": deep}), Mode::Form),
        Err(WireError::TooDeep {
            member: "content",
            ..
        })
    ));
}

#[test]
fn content_stays_out_of_debug() {
    let reply = ElicitResult::accept(&json!({"pet": "Rex"}));
    assert!(!format!("{reply:?}").contains("Rex"));
}

#[test]
fn an_answer_that_two_readers_could_read_differently_is_refused() {
    let location = "result";
    for result in [
        r#"{"action":"accept","content":{"a":"x"},"Content":{"a":"evil"}}"#,
        r#"{"action":"decline","Action":"accept"}"#,
    ] {
        let raw = RawValue::from_string(result.to_owned()).unwrap();
        let read = ElicitResult::parse(&raw, Mode::Form);
        assert_eq!(
            read.err(),
            Some(WireError::Spelling { location }),
            "{result}"
        );
    }
}
