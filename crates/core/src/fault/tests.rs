use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::wire::{Capability, Mode, UnsupportedQuestion, WireError};

const PUSHED: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

fn error(fault: impl Into<Fault>, revision: Revision) -> Value {
    serde_json::from_str(fault.into().to_error(revision).to_raw().get()).unwrap()
}

fn defect() -> Finding {
    Finding {
        location: "/properties/age/type".into(),
        code: "unknown-type".into(),
        message: "Unsupported type 'array'".into(),
    }
}

#[test]
fn an_illegal_form_names_field_error_and_supported_types() {
    let fault = || PeerFault::IllegalForm {
        defects: vec![defect(), defect()],
    };
    let told = error(fault(), Revision::V2025_06_18);
    assert_eq!(told["code"], -32602);
    assert_eq!(told["message"], "Invalid schema");
    assert_eq!(told["data"]["field"], "properties.age.type");
    assert_eq!(told["data"]["error"], "Unsupported type 'array'");
    assert_eq!(
        told["data"]["supportedTypes"],
        json!(["string", "number", "integer", "boolean"])
    );
    assert_eq!(told["data"]["defects"].as_array().unwrap().len(), 2);
    let newer = error(fault(), Revision::V2025_11_25);
    assert_eq!(
        newer["data"]["supportedTypes"],
        json!(["string", "number", "integer", "boolean", "array"])
    );
}

#[test]
fn a_client_without_elicitation_gets_each_revisions_error() {
    let fault = PeerFault::CapabilityMissing {
        mode: Mode::Form,
        declared: Capability::NONE,
    };
    for revision in PUSHED {
        assert_eq!(
            error(fault.clone(), revision),
            json!({
                "code": -32601,
                "message": "Elicitation not supported",
                "data": { "reason": "Client does not have elicitation capability" },
            })
        );
    }
    let rounds = error(fault, Revision::V2026_07_28);
    assert_eq!(rounds["code"], -32021);
    assert_eq!(
        rounds["data"]["requiredCapabilities"],
        json!({"elicitation": {"form": {}}})
    );
}

#[test]
fn a_client_without_the_mode_gets_invalid_params_before_rounds() {
    let fault = PeerFault::CapabilityMissing {
        mode: Mode::Url,
        declared: Capability::FORM,
    };
    for revision in PUSHED {
        assert_eq!(error(fault.clone(), revision)["code"], -32602);
    }
    let rounds = error(fault, Revision::V2026_07_28);
    assert_eq!(rounds["code"], -32021);
    assert_eq!(
        rounds["data"]["requiredCapabilities"],
        json!({"elicitation": {"url": {}}})
    );
}

#[test]
fn nobody_to_ask_is_told_like_a_missing_capability() {
    let fault = AuthorFault::NoResponder { mode: Mode::Form };
    assert_eq!(error(fault.clone(), Revision::V2025_11_25)["code"], -32601);
    assert_eq!(error(fault, Revision::V2026_07_28)["code"], -32021);
}

#[test]
fn a_timeout_is_no_action() {
    let fault = LimitFault::TimedOut {
        after: Duration::from_secs(5 * 60),
        seen: true,
    };
    for revision in Revision::ALL {
        let told = error(fault.clone(), revision);
        assert_eq!(told["code"], -32000);
        assert_eq!(told["message"], "Elicitation timeout");
        assert_eq!(
            told["data"]["reason"],
            "User did not respond within timeout period"
        );
        assert_eq!(told["data"]["timeoutSeconds"], 300);
        assert!(told["data"].get("action").is_none());
    }
    let unseen = error(
        LimitFault::TimedOut {
            after: Duration::from_secs(1),
            seen: false,
        },
        Revision::LATEST,
    );
    assert_eq!(unseen["data"]["seen"], false);
}

#[test]
fn a_question_that_was_shown_and_not_answered_is_no_missing_capability() {
    let fault = LimitFault::NoAnswer {
        why: "the input ended first",
    };
    for revision in Revision::ALL {
        let told = error(fault.clone(), revision);
        assert_eq!(told["code"], -32000);
        assert_eq!(told["message"], "Elicitation not answered");
        assert_eq!(
            told["data"]["reason"],
            "the question was not answered: the input ended first"
        );
        assert!(told["data"].get("action").is_none());
    }
}

#[test]
fn a_rate_limit_says_when_to_come_back() {
    let told = error(
        LimitFault::RateLimited {
            retry_after: Duration::from_millis(1200),
        },
        Revision::LATEST,
    );
    assert_eq!(told["code"], -32000);
    assert_eq!(told["data"]["retryAfterSeconds"], 2);
}

#[test]
fn defects_of_a_message_have_json_rpcs_codes() {
    let code = |text: &str| {
        let defect = crate::wire::Envelope::parse(text.as_bytes()).unwrap_err();
        error(PeerFault::from(defect), Revision::LATEST)["code"].clone()
    };
    assert_eq!(code("{"), -32700);
    assert_eq!(code("[]"), -32600);
    assert_eq!(code("{}"), -32600);
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#), -32600);
    assert_eq!(
        code(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#),
        -32602
    );
    let large = WireError::TooLarge { bytes: 2, limit: 1 };
    assert_eq!(
        error(PeerFault::from(large), Revision::LATEST)["code"],
        -32600
    );
}

#[test]
fn a_wrong_answer_names_fields_and_rules() {
    let violation = Finding {
        location: "age".into(),
        code: "minimum".into(),
        message: "must be at least 18".into(),
    };
    let told = error(
        PeerFault::WrongAnswer {
            violations: vec![violation],
            attempts: 3,
        },
        Revision::LATEST,
    );
    assert_eq!(told["code"], -32602);
    assert_eq!(
        told["data"]["violations"],
        json!([{ "field": "age", "rule": "minimum", "message": "must be at least 18" }])
    );
}

#[test]
fn every_fault_has_a_reason_a_code_and_a_blame() {
    let peers = [
        PeerFault::AsksForCredential {
            fields: vec!["password".into()],
        },
        PeerFault::NotAsked,
        PeerFault::StateRefused,
        PeerFault::AnsweredWithError { code: -1 },
        PeerFault::Withdrawn,
        PeerFault::Gone,
        PeerFault::UnsupportedRevision {
            requested: "1900-01-01".into(),
        },
        PeerFault::HeaderMismatch { header: "Mcp-Name" },
    ]
    .map(Fault::from);
    let authors = [
        AuthorFault::IllegalForm {
            defects: vec![defect()],
        },
        AuthorFault::UnsupportedForm {
            revision: Revision::V2025_06_18,
            findings: vec![defect()],
        },
        AuthorFault::UnsupportedQuestion(UnsupportedQuestion::FormInUrlRequired),
        AuthorFault::AsksForCredential {
            fields: vec!["token".into()],
        },
        AuthorFault::NotHere,
        AuthorFault::Broken {
            what: "the store is full",
        },
    ]
    .map(Fault::from);
    let people = [PersonFault::Declined, PersonFault::Cancelled].map(Fault::from);
    let limits = [
        LimitFault::NoAnswer { why: "x" },
        LimitFault::TooManyPending { limit: 1 },
        LimitFault::TooManyQuestions { limit: 1 },
        LimitFault::TooManyRounds { limit: 1 },
        LimitFault::TooLarge {
            what: "the state",
            bytes: 2,
            limit: 1,
        },
    ]
    .map(Fault::from);
    for (faults, blame) in [
        (&peers[..], Blame::Peer),
        (&authors[..], Blame::Author),
        (&people[..], Blame::Person),
        (&limits[..], Blame::Limit),
    ] {
        for fault in faults {
            assert_eq!(fault.blame(), blame);
            for revision in Revision::ALL {
                let told = error(fault.clone(), revision);
                assert!(told["code"].as_i64().unwrap() < 0);
                assert!(!told["message"].as_str().unwrap().is_empty());
                assert!(
                    !told["data"]["reason"].as_str().unwrap().is_empty(),
                    "{fault:?}"
                );
            }
        }
    }
}

#[test]
fn reserved_codes_stay_with_their_revision() {
    // 2026-07-28 defines -32020 to -32022; no earlier revision has them.
    let newer = [
        Fault::from(PeerFault::CapabilityMissing {
            mode: Mode::Form,
            declared: Capability::NONE,
        }),
        PeerFault::UnsupportedRevision {
            requested: "x".into(),
        }
        .into(),
        PeerFault::HeaderMismatch {
            header: "Mcp-Method",
        }
        .into(),
    ];
    for fault in newer {
        assert!((-32099..=-32020).contains(&fault.code(Revision::V2026_07_28)));
        for revision in PUSHED {
            assert!(!(-32099..=-32020).contains(&fault.code(revision)));
        }
    }
}
