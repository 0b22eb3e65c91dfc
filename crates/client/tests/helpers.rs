//! The short names for answers, with the questions that each accepts and rejects; and the errors that a server gets.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not there"
)]

mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_elicit_client::answer::{
    accept, accept_with_defaults, apply_defaults, cancel, decline, declined, get_defaults, reject,
    validate,
};
use mcp_elicit_client::responder::{Callback, Defaults};
use mcp_elicit_client::{CallOptions, ClientSettings, Question, QuestionQueue};
use mcp_elicit_core::answer::{Outcome, Violation, Violations};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::wire::{ElicitRequest, Revision};
use mcp_elicit_forms::view;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use wire::{connected, form};

const PUSHED: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

/// Returns the question with these params, as a responder gets it.
fn question(params: &Value) -> Question {
    let revision = Revision::V2025_11_25;
    let params = to_raw_value(params).unwrap();
    let request = ElicitRequest::parse(&params, revision).unwrap();
    let ask = match &request {
        ElicitRequest::Form { schema, .. } => {
            view::QuestionBody::Form(Form::parse(schema.get()).unwrap())
        }
        ElicitRequest::Url { url, .. } => view::QuestionBody::Url(Link::parse(url).unwrap()),
    };
    let shown = view::QuestionView::new(view::Origin::new("server"), request.message(), ask);
    Question::from_record(shown, request, revision, QuestionQueue::new()).0
}

fn url() -> Question {
    question(
        &json!({"mode": "url", "message": "m", "url": "https://a.example/", "elicitationId": "e"}),
    )
}

/// Returns a form whose first field has no default.
fn without_default() -> Question {
    let mut asks = form();
    asks["requestedSchema"]["properties"]["place"] = json!({"type": "string"});
    question(&asks)
}

fn fields(violations: &Violations) -> Vec<&str> {
    violations.iter().map(Violation::field).collect()
}

fn content(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Accept(answers) => answers.to_value(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn accept_takes_what_the_form_takes() {
    let question = question(&form());
    let answer = accept(&question, json!({"place": "there", "count": 6})).unwrap();
    assert_eq!(
        content(answer.outcome()),
        json!({"place": "there", "count": 6})
    );
    let refused = accept(&question, json!({"place": "THERE", "count": 4})).unwrap_err();
    assert_eq!(fields(&refused), ["place", "count"]);
    assert_eq!(
        fields(&accept(&question, json!({})).unwrap_err()),
        ["place"]
    );
    let agreed = accept(&url(), Value::Null).unwrap();
    assert_eq!(agreed.outcome(), &Outcome::Visit);
}

#[test]
fn decline_reject_and_cancel_are_what_they_say() {
    let why = || "none of their business".to_owned();
    for declined in [decline(why()), reject(why())] {
        assert_eq!(declined.outcome(), &Outcome::Decline);
        assert_eq!(declined.reason(), Some(why().as_str()));
    }
    assert_eq!(decline("no").reason(), Some("no"));
    assert_eq!(declined().outcome(), &Outcome::Decline);
    assert_eq!(declined().reason(), None);
    assert_eq!(cancel().outcome(), &Outcome::Cancel);
    assert_eq!(cancel().reason(), None);
}

#[test]
fn defaults_are_given_applied_and_accepted() {
    let partial = || json!({"count": 9}).as_object().cloned().unwrap();
    let wrong = || json!({"count": 4}).as_object().cloned().unwrap();

    let asks = question(&form());
    assert_eq!(Value::Object(get_defaults(&asks)), json!({"place": "here"}));
    let applied = apply_defaults(&asks, partial()).unwrap().unwrap();
    assert_eq!(applied.to_value(), json!({"place": "here", "count": 9}));
    let refused = apply_defaults(&asks, wrong()).unwrap_err();
    assert_eq!(fields(&refused), ["count"]);
    let answer = accept_with_defaults(&asks).unwrap().unwrap();
    assert_eq!(content(answer.outcome()), json!({"place": "here"}));

    let asks = without_default();
    assert!(get_defaults(&asks).is_empty());
    assert_eq!(fields(&accept_with_defaults(&asks).unwrap_err()), ["place"]);
    let missing = apply_defaults(&asks, partial()).unwrap_err();
    assert_eq!(fields(&missing), ["place"]);

    // Defaults do not agree to a visit.
    assert!(get_defaults(&url()).is_empty());
    assert!(apply_defaults(&url(), Map::new()).unwrap().is_none());
    assert!(accept_with_defaults(&url()).unwrap().is_none());
}

#[test]
fn validate_names_everything_that_is_wrong() {
    let asks = question(&form());
    assert!(validate(&asks, &json!({"place": "there"})).is_empty());
    let wrong = validate(&asks, &json!({"place": "THERE", "count": "six"}));
    assert_eq!(fields(&wrong), ["place", "count"]);
    assert_eq!(fields(&validate(&asks, &json!({}))), ["place"]);
    assert!(!validate(&asks, &json!([1])).is_empty());
    // `accept` accepts the content that the form accepts, and no other.
    for content in [
        json!({}),
        json!({"place": "a"}),
        json!({"place": 1}),
        json!({"place": "a", "count": 3, "more": [1]}),
    ] {
        let accepted = accept(&asks, content.clone()).is_ok();
        assert_eq!(validate(&asks, &content).is_empty(), accepted, "{content}");
    }
    assert!(validate(&url(), &json!({"anything": 1})).is_empty());
}

#[tokio::test]
async fn a_responder_may_reject_what_it_finds_wrong() {
    let responder = Callback::forms(async |question: Question| {
        let content = json!({"place": "NOWHERE"});
        Ok(match validate(&question, &content) {
            violations if violations.is_empty() => accept(&question, content).unwrap(),
            violations => reject(violations.to_string()),
        })
    });
    let settings = ClientSettings::default().responder(responder);
    assert_eq!(
        answered(PUSHED[0], settings, form()).await["result"],
        json!({"action": "decline"})
    );
}

#[tokio::test]
async fn a_closure_is_asked_again_about_what_does_not_fit_a_limited_number_of_times() {
    for (mistakes, asked) in [(0, 1), (2, 3), (9, 10), (10, 10)] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let responder = Callback::forms(move |question: Question| {
            let call = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let told = question.violations().for_field("place").count();
                assert_eq!(told, usize::from(call > 0), "of the answer before");
                let place = if call < mistakes { "NOWHERE" } else { "here" };
                Ok(question.accept(json!({ "place": place }))?)
            }
        });
        let settings = ClientSettings::default().responder(responder);
        let response = answered(PUSHED[0], settings, form()).await;
        assert_eq!(calls.load(Ordering::SeqCst), asked, "{mistakes} mistakes");
        if mistakes < 10 {
            let accepted = json!({"action": "accept", "content": {"place": "here"}});
            assert_eq!(response["result"], accepted);
        } else {
            // No person chose an action.
            assert!(response["error"].is_object(), "{response}");
        }
    }
}

/// Returns the server's response for a question that it pushes during a call.
async fn answered(revision: Revision, settings: ClientSettings, params: Value) -> Value {
    let (connection, mut server, _) = connected(revision, settings).await;
    let options = CallOptions::default();
    let serving = async {
        let request = server.request("tools/call").await;
        server.push("q", params).await;
        let response = server.response("q").await;
        server.result(&request["id"], json!({"content": []})).await;
        response
    };
    let (_, response) = tokio::join!(connection.call_tool("go", Map::new(), &options), serving);
    response
}

#[tokio::test]
async fn a_form_that_cannot_be_shown_names_field_error_and_supported_types() {
    for (revision, types) in [
        (PUSHED[0], json!(["string", "number", "integer", "boolean"])),
        (
            PUSHED[1],
            json!(["string", "number", "integer", "boolean", "array"]),
        ),
    ] {
        let mut asks = form();
        asks["requestedSchema"]["properties"]["age"] = json!({"type": "object"});
        let settings = ClientSettings::default().responder(Defaults);
        let error = &answered(revision, settings, asks).await["error"];
        assert_eq!(error["code"], -32602, "{revision}");
        assert_eq!(error["message"], "Invalid schema", "{revision}");
        assert_eq!(error["data"]["field"], "properties.age.type", "{revision}");
        let why = error["data"]["error"].as_str().unwrap();
        assert!(why.starts_with("`age` is an object"), "{why}");
        assert_eq!(error["data"]["supportedTypes"], types, "{revision}");
    }
}

#[tokio::test]
async fn a_client_that_declared_nothing_says_so() {
    for revision in PUSHED {
        let error = &answered(revision, ClientSettings::default(), form()).await["error"];
        assert_eq!(
            error,
            &json!({
                "code": -32601, "message": "Elicitation not supported",
                "data": {"reason": "Client does not have elicitation capability"},
            }),
            "{revision}"
        );
    }
}
