use std::time::{Duration, UNIX_EPOCH};

use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use serde_json::json;

use super::*;
use crate::view::Origin;

const DEPLOY: &str = r#"{"type":"object","required":["environment"],"properties":{
    "environment":{"type":"string","enum":["staging","production"]},
    "replicas":{"type":"integer","minimum":1,"maximum":9,"default":2},
    "note":{"type":"string","maxLength":5}}}"#;

fn state(schema: &str) -> AnswerState {
    AnswerState::new(QuestionView::form(
        Origin::new("demo"),
        "Where to?",
        Form::parse(schema).unwrap(),
    ))
}

fn link() -> AnswerState {
    AnswerState::new(QuestionView::url(
        Origin::new("demo"),
        "Sign in",
        Link::parse("https://example.org/x").unwrap(),
    ))
}

fn picked(value: &str) -> DraftValue {
    DraftValue::Picked(vec![value.to_owned()])
}

fn text(text: &str) -> DraftValue {
    DraftValue::Text(text.to_owned())
}

fn content(effect: &EventEffect) -> serde_json::Value {
    match effect {
        EventEffect::Done(Outcome::Accept(answers)) => answers.to_value(),
        other => panic!("not accepted: {other:?}"),
    }
}

#[test]
fn from_the_first_field_to_the_answer() {
    let mut state = state(DEPLOY);
    assert_eq!(state.stage(), AnswerStage::Field(0));
    state.handle(AnswerEvent::Edit(0, picked("production")));
    for _ in 0..3 {
        state.handle(AnswerEvent::Next);
    }
    assert_eq!(state.stage(), AnswerStage::Review);
    let effect = state.handle(AnswerEvent::Accept);
    assert_eq!(
        content(&effect),
        json!({"environment": "production", "replicas": 2})
    );
}

#[test]
fn a_wrong_field_is_not_left_forwards_but_is_left_backwards() {
    let mut state = state(DEPLOY);
    state.handle(AnswerEvent::Next);
    assert_eq!(state.stage(), AnswerStage::Field(0));
    assert_eq!(state.errors(0).len(), 1);
    state.handle(AnswerEvent::Edit(0, picked("staging")));
    assert!(state.errors(0).is_empty());
    state.handle(AnswerEvent::Next);
    state.handle(AnswerEvent::Edit(1, text("99")));
    state.handle(AnswerEvent::Next);
    assert_eq!(state.stage(), AnswerStage::Field(1));
    state.handle(AnswerEvent::Back);
    assert_eq!(state.stage(), AnswerStage::Field(0));
    assert_eq!(
        state.shown(1).as_deref(),
        Some("99"),
        "what was typed is kept"
    );
}

#[test]
fn nothing_is_called_wrong_before_it_was_touched_or_tried() {
    let mut state = state(DEPLOY);
    assert!(state.errors(0).is_empty());
    assert_eq!(state.problems(0).len(), 1);
    state.handle(AnswerEvent::Edit(2, text("too long")));
    assert!(
        !state.errors(2).is_empty(),
        "typing is checked as it happens"
    );
    assert!(!state.was_tried(2));
}

#[test]
fn the_review_is_not_reached_past_a_wrong_field() {
    let mut state = state(DEPLOY);
    state.handle(AnswerEvent::Edit(0, picked("staging")));
    state.handle(AnswerEvent::Edit(2, text("too long")));
    state.handle(AnswerEvent::Review);
    assert_eq!(state.stage(), AnswerStage::Field(2));
    assert!(
        matches!(state.handle(AnswerEvent::Accept), EventEffect::Show),
        "and nothing wrong is sent"
    );
    assert_eq!(state.stage(), AnswerStage::Field(2));
}

#[test]
fn a_change_from_the_review_leads_back_to_it() {
    let mut state = state(DEPLOY);
    state.handle(AnswerEvent::Edit(0, picked("staging")));
    state.handle(AnswerEvent::Review);
    state.handle(AnswerEvent::Goto(1));
    state.handle(AnswerEvent::Edit(1, text("3")));
    state.handle(AnswerEvent::Next);
    assert_eq!(state.stage(), AnswerStage::Review);
    let effect = state.handle(AnswerEvent::Accept);
    assert_eq!(
        content(&effect),
        json!({"environment": "staging", "replicas": 3})
    );
}

#[test]
fn only_the_person_declines_or_cancels() {
    let ends = |event: AnswerEvent| state(DEPLOY).handle(event);
    assert!(matches!(
        ends(AnswerEvent::Decline),
        EventEffect::Done(Outcome::Decline)
    ));
    assert!(matches!(
        ends(AnswerEvent::Cancel),
        EventEffect::Done(Outcome::Cancel)
    ));
    assert!(matches!(
        ends(AnswerEvent::Interrupt),
        EventEffect::Over(FrontendError::Interrupted)
    ));
    assert!(matches!(
        ends(AnswerEvent::Withdrawn("x".into())),
        EventEffect::Over(FrontendError::Withdrawn { .. })
    ));
    let EventEffect::Over(FrontendError::EndOfInput { field }) = ends(AnswerEvent::End) else {
        panic!()
    };
    assert_eq!(field.as_deref(), Some("environment"));
}

#[test]
fn time_runs_out_at_the_deadline_and_not_before() {
    let end = UNIX_EPOCH + Duration::from_secs(60);
    let form = Form::parse(DEPLOY).unwrap();
    let mut state = AnswerState::new(QuestionView::form(Origin::new("demo"), "?", form).until(end));
    let before = end - Duration::from_millis(1);
    assert!(matches!(
        state.handle(AnswerEvent::Time(before)),
        EventEffect::Show
    ));
    assert!(matches!(
        state.handle(AnswerEvent::Time(end)),
        EventEffect::Over(FrontendError::Expired)
    ));
}

#[test]
fn a_form_without_fields_is_a_plain_confirmation() {
    let mut state = state(r#"{"type":"object","properties":{}}"#);
    assert_eq!(state.stage(), AnswerStage::Confirm);
    assert!(
        matches!(state.handle(AnswerEvent::Next), EventEffect::Show),
        "going on is not agreeing"
    );
    assert_eq!(content(&state.handle(AnswerEvent::Accept)), json!({}));
}

#[test]
fn agreeing_to_a_link_is_a_visit() {
    let mut state = link();
    assert_eq!(state.stage(), AnswerStage::Confirm);
    assert!(matches!(
        state.handle(AnswerEvent::Accept),
        EventEffect::Done(Outcome::Visit)
    ));
}

#[test]
fn what_will_be_sent_is_told_apart_from_what_was_typed() {
    let mut state = state(
        r#"{"type":"object","properties":{"n":{"type":"number"},"d":{"type":"string","format":"date"},
        "t":{"type":"string","format":"date-time"},"c":{"type":"string","oneOf":[{"const":"a","title":"Apple"}]},"b":{"type":"boolean"}}}"#,
    );
    let mut told = |index: usize, typed: DraftValue| {
        state.handle(AnswerEvent::Edit(index, typed));
        (
            state.sent(index).map(|sent| sent.concat()),
            state.understood(index),
        )
    };
    let said = |sent: &str, understood: Option<&str>| {
        (Some(sent.to_owned()), understood.map(str::to_owned))
    };
    assert_eq!(told(0, text("1e2")), said("100", Some("sent as 100")));
    assert_eq!(told(0, text("1,5")), said("1.5", Some("sent as 1.5")));
    assert_eq!(told(0, text("15")), said("15", None));
    let (sent, understood) = told(0, text("1.000"));
    assert_eq!(sent.as_deref(), Some("1"));
    assert!(understood.is_some_and(|said| said.contains("write 1000 if you mean that")));
    assert_eq!(
        told(1, text("2026/2/8")),
        said("2026-02-08", Some("sent as 2026-02-08"))
    );
    assert_eq!(
        told(2, text("2026-05-31 14:30 Europe/Brussels")),
        said(
            "2026-05-31T14:30:00+02:00",
            Some("sent as 2026-05-31T14:30:00+02:00")
        )
    );
    assert_eq!(told(3, picked("a")), said("Apple", None));
    assert_eq!(told(4, DraftValue::Flag(true)), said("Yes", None));
    assert_eq!(told(1, text("2026-02-30")), (None, None));
    assert_eq!(state.errors(1), ["February 2026 has 28 days"]);
}

#[test]
fn events_for_fields_that_are_none_do_nothing() {
    let mut state = state(DEPLOY);
    state.handle(AnswerEvent::Edit(99, text("x")));
    state.handle(AnswerEvent::Goto(99));
    assert_eq!(state.stage(), AnswerStage::Field(0));
    assert!(!state.is_touched());
    let mut link = link();
    link.handle(AnswerEvent::Goto(0));
    link.handle(AnswerEvent::Review);
    link.handle(AnswerEvent::Back);
    assert_eq!(link.stage(), AnswerStage::Confirm);
}

#[test]
fn declining_from_now_on_is_only_said_where_it_was_offered() {
    let said = |mut state: AnswerState| {
        let EventEffect::Done(outcome) = state.handle(AnswerEvent::DeclineFromNowOn) else {
            panic!()
        };
        let reply = state.submission(outcome);
        assert_eq!(reply.outcome, Outcome::Decline);
        reply.from_now_on
    };
    assert!(!said(state(DEPLOY)));
    assert!(said(state(DEPLOY).offering_from_now_on()));
}

#[test]
fn a_form_that_wants_a_secret_is_not_sent_until_the_person_insists() {
    let mut state = state(r#"{"type":"object","properties":{"password":{"type":"string"}}}"#);
    assert_eq!(state.stage(), AnswerStage::Warnings);
    state.handle(AnswerEvent::Goto(0));
    state.handle(AnswerEvent::Edit(0, text("hunter2")));
    assert!(matches!(
        state.handle(AnswerEvent::Accept),
        EventEffect::Show
    ));
    assert_eq!(state.stage(), AnswerStage::Warnings);
    state.handle(AnswerEvent::AllowCredentials);
    state.handle(AnswerEvent::Edit(0, text("hunter2")));
    assert!(state.fields()[0].is_secret);
    assert_eq!(state.shown(0).as_deref(), Some("(hidden)"));
    assert_eq!(state.sent(0), Some(vec!["(hidden)".to_owned()]));
    state.handle(AnswerEvent::Review);
    let EventEffect::Done(outcome) = state.handle(AnswerEvent::Accept) else {
        panic!()
    };
    assert!(state.submission(outcome).allows_credentials);
}

#[test]
fn the_only_field_of_a_question_about_one_thing_is_not_shown_by_its_bare_name() {
    for (name, label) in [
        ("choice", "Your choice"),
        ("choices", "Your choices"),
        ("confirm", "Your answer"),
        ("environment", "environment"),
    ] {
        let schema =
            json!({"type": "object", "properties": {name: {"type": "string", "enum": ["a", "b"]}}});
        assert_eq!(state(&schema.to_string()).fields()[0].label, label);
        let titled = json!({"type": "object", "properties": {name: {"type": "string", "title": "Where to"}}});
        assert_eq!(state(&titled.to_string()).fields()[0].label, "Where to");
    }
}
