//! The official examples can be read, and the official schemas accept everything that is written.

use mcp_elicit_core::fault::{Fault, PeerFault};
use mcp_elicit_core::wire::{
    Action, Capability, Complete, ElicitRequest, ElicitResult, Envelope, InputRequired,
    InputResponses, Mode, Revision, UrlRequired, rounds,
};
use mcp_elicit_testkit::spec::{Spec, examples};
use serde_json::value::RawValue;
use serde_json::{Value, json};

const ROUNDS: Revision = Revision::V2026_07_28;

fn spec(revision: Revision) -> Spec {
    Spec::from_revision(revision.as_str()).expect("the official schema")
}

/// Runs `read` for every official example of a type: its text, and the text as a value.
fn each_example(name: &str, read: impl Fn(&RawValue, Value)) {
    let examples = examples(ROUNDS.as_str(), name).expect("the official examples");
    assert!(!examples.is_empty(), "no examples of {name}");
    for (path, text) in examples {
        let raw: Box<RawValue> = serde_json::from_str(&text).expect("JSON");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            spec(ROUNDS).problems(name, &value),
            Vec::<String>::new(),
            "{path}"
        );
        read(&raw, value);
    }
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).expect("JSON")
}

fn assert_legal(revision: Revision, name: &str, value: &Value) {
    assert_eq!(
        spec(revision).problems(name, value),
        Vec::<String>::new(),
        "{value} on {revision}"
    );
}

#[test]
fn official_questions_are_read_and_written_alike() {
    for name in ["ElicitRequestFormParams", "ElicitRequestURLParams"] {
        each_example(name, |raw, expected| {
            let request = ElicitRequest::parse(raw, ROUNDS).unwrap();
            assert_eq!(request.to_params(ROUNDS).unwrap(), expected);
        });
    }
    each_example("ElicitRequest", |_, expected| {
        let request = ElicitRequest::from_value(&expected["params"], ROUNDS).unwrap();
        assert_eq!(value(&request.to_input_request(ROUNDS).unwrap()), expected);
    });
}

#[test]
fn official_replies_are_read_and_written_alike() {
    each_example("ElicitResult", |raw, expected| {
        let mode = if expected.get("content").is_some() {
            Mode::Form
        } else {
            Mode::Url
        };
        let reply = ElicitResult::parse(raw, mode).unwrap();
        assert_eq!(reply.action(), Action::Accept);
        assert_eq!(reply.to_value(), expected);
    });
}

#[test]
fn official_capabilities_are_read() {
    each_example("ClientCapabilities", |_, capabilities| {
        let read = Capability::from_client(&capabilities, ROUNDS);
        let declared = capabilities.get("elicitation");
        let expected = match declared {
            None => Capability::NONE,
            Some(declared) if declared.get("url").is_some() => Capability::BOTH,
            Some(_) => Capability::FORM,
        };
        assert_eq!(read, expected, "{capabilities}");
    });
}

#[test]
fn official_rounds_are_read_and_written_alike() {
    each_example("InputRequiredResult", |raw, expected| {
        let required = InputRequired::parse(raw).unwrap();
        let written = value(&required.to_result().unwrap());
        assert_eq!(written["requestState"], expected["requestState"]);
        assert_eq!(
            InputRequired::parse(&required.to_result().unwrap()).unwrap(),
            required
        );
        assert_legal(ROUNDS, "InputRequiredResult", &written);
    });
    each_example("InputRequests", |raw, expected| {
        let requests = rounds::read_requests(raw).unwrap();
        assert_eq!(value(&rounds::write_requests(&requests).unwrap()), expected);
    });
    each_example("InputResponses", |raw, expected| {
        let responses = InputResponses::parse(raw).unwrap();
        assert_eq!(value(&responses.to_raw()), expected);
        let reply = responses
            .reply_to("github_login", Mode::Form)
            .unwrap()
            .unwrap();
        assert_eq!(
            reply.content_or_empty().parse::<Value>().unwrap(),
            json!({"name": "octocat"})
        );
    });
}

#[test]
fn the_official_missing_capability_is_ours() {
    each_example("MissingRequiredClientCapabilityError", |raw, _| {
        let envelope = Envelope::parse(raw.get().as_bytes()).unwrap();
        let ours: Fault = PeerFault::CapabilityMissing {
            mode: Mode::Form,
            declared: Capability::NONE,
        }
        .into();
        assert_eq!(envelope.error_code(), Some(i64::from(ours.code(ROUNDS))));
    });
    for mode in [Mode::Form, Mode::Url] {
        let fault: Fault = PeerFault::CapabilityMissing {
            mode,
            declared: Capability::NONE,
        }
        .into();
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "error": value(&fault.to_error(ROUNDS).to_raw())});
        assert_legal(ROUNDS, "MissingRequiredClientCapabilityError", &message);
    }
}

#[test]
fn every_question_is_legal_where_it_can_be_asked() {
    let form = ElicitRequest::form(
        "m",
        &json!({"type": "object", "properties": {"n": {"type": "string"}}}),
    );
    let url = ElicitRequest::Url {
        message: "m".into(),
        url: "https://a.example/".into(),
        elicitation_id: Some("e".into()),
    };
    for revision in Revision::ALL {
        for request in [&form, &url] {
            let Ok(params) = request.to_params(revision) else {
                assert_eq!(
                    (revision, request.mode()),
                    (Revision::V2025_06_18, Mode::Url)
                );
                continue;
            };
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params});
            assert_legal(revision, "ElicitRequest", &message);
        }
    }
}

#[test]
fn capabilities_and_replies_are_legal_on_every_revision() {
    for revision in Revision::ALL {
        for capability in [Capability::FORM, Capability::URL, Capability::BOTH] {
            if let Some(elicitation) = capability.to_value(revision) {
                assert_legal(
                    revision,
                    "ClientCapabilities",
                    &json!({ "elicitation": elicitation }),
                );
            }
        }
        for reply in [
            ElicitResult::bare(Action::Decline),
            ElicitResult::bare(Action::Cancel),
            ElicitResult::accept(&json!({"a": "b"})),
        ] {
            assert_legal(revision, "ElicitResult", &reply.to_value());
        }
    }
}

#[test]
fn what_only_2025_11_25_has_is_legal_there() {
    let revision = Revision::V2025_11_25;
    let visit = ElicitRequest::Url {
        message: "m".into(),
        url: "https://a.example/".into(),
        elicitation_id: Some("e".into()),
    };
    let required = UrlRequired {
        message: "Connect".into(),
        elicitations: vec![visit],
    };
    let message = json!({"jsonrpc": "2.0", "id": 1, "error": value(&required.to_error().unwrap())});
    assert_legal(revision, "URLElicitationRequiredError", &message);
    let complete: Value = Complete {
        elicitation_id: "e".into(),
    }
    .to_message()
    .parse()
    .unwrap();
    assert_legal(revision, "ElicitationCompleteNotification", &complete);
}
