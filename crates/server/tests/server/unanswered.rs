//! Unanswered questions: silence, clients that cannot ask or fail to, and questions that may not be asked.

use mcp_elicit_server::ElicitingExt;
use serde_json::json;

use crate::asker::Asker;
use crate::harness::{Act, REVISIONS, ScriptedUser, said};

#[tokio::test(start_paused = true)]
async fn nobody_answers() {
    for revision in REVISIONS {
        let person = ScriptedUser::answering(revision, [Act::Late(json!({ "age": 40 }))]);
        let error = person.call(Asker, "age").await.unwrap_err();
        assert_eq!(error.code.0, -32000, "{revision}: {error:?}");
        assert_eq!(error.data.unwrap()["timeoutSeconds"], 300);
    }
}

#[tokio::test(start_paused = true)]
async fn the_caller_hears_progress_while_a_person_thinks() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let person = ScriptedUser::answering(revision, [Act::Late(json!({ "age": 40 }))]);
        person.call(Asker, "age").await.unwrap_err();
        // Every 15 seconds for 5 minutes, less the one that falls together with the timeout.
        assert!(
            (19..=20).contains(&person.progress()),
            "{}",
            person.progress()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_ask() {
    let nothing = [json!({}), json!({ "elicitation": { "url": {} } })];
    for (revision, codes) in [
        ("2025-06-18", [-32601, 0]),
        ("2025-11-25", [-32601, -32602]),
        ("2026-07-28", [-32021; 2]),
    ] {
        for (capability, code) in nothing.iter().zip(codes) {
            if code == 0 {
                continue;
            }
            let person = ScriptedUser::answering(revision, []).declaring(capability.clone());
            let error = person.call(Asker, "age").await.unwrap_err();
            assert_eq!(error.code.0, code, "{revision} {capability}: {error:?}");
            let result = person.call(Asker, "fallback").await.unwrap();
            assert_eq!(said(&result), ("a".to_owned(), false));
            assert!(person.asked().is_empty(), "nothing may be sent");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_capability_of_nothing_means_forms() {
    for revision in REVISIONS {
        let person = ScriptedUser::answering(revision, [Act::Accept(json!({ "age": 40 }))])
            .declaring(json!({ "elicitation": {} }));
        assert_eq!(said(&person.call(Asker, "age").await.unwrap()).0, "40");
        assert!(person.call(Asker, "visit").await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_fails_to_ask_is_no_refusal() {
    for (code, expected) in [(-32601, -32601), (-32603, -32602)] {
        let person = ScriptedUser::answering("2025-11-25", [Act::Fail(code)]);
        let error = person.call(Asker, "age").await.unwrap_err();
        assert_eq!(error.code.0, expected, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_is_not_asked_without_end() {
    for revision in REVISIONS {
        let person = ScriptedUser::answering(
            revision,
            [
                Act::Accept(json!({ "choice": "a" })),
                Act::Accept(json!({ "choice": "b" })),
            ],
        );
        let settings = person
            .clock
            .settings()
            .questions_per_minute(Some(2))
            .principal(|_| Some("ada".into()));
        let error = person
            .call_under(Asker.eliciting(settings), "again")
            .await
            .unwrap_err();
        assert_eq!(error.code.0, -32000, "{revision}: {error:?}");
        assert_eq!(error.data.unwrap()["retryAfterSeconds"], 60, "{revision}");
        assert_eq!(person.asked().len(), 2, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_wrong_is_told_field_by_field() {
    for revision in REVISIONS {
        let wrong = || Act::Accept(json!({ "age": "old" }));
        let person = ScriptedUser::answering(revision, [wrong(), wrong(), wrong()]);
        let error = person.call(Asker, "age").await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{revision}: {error:?}");
        let violation = &error.data.unwrap()["violations"][0];
        assert_eq!(
            (&violation["field"], &violation["rule"]),
            (&json!("age"), &json!("type")),
            "{revision}"
        );
    }
}
