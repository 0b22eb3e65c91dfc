//! The same handlers on every revision: the result depends only on the person's actions.

use mcp_elicit_server::ElicitingExt;
use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::{Value, json};

use crate::asker::Asker;
use crate::harness::{Act, REVISIONS, ScriptedUser, said};

/// Everything that a person can do with a tool, and the result on every revision.
#[tokio::test(start_paused = true)]
async fn the_same_on_every_revision() {
    let production = || Act::Accept(json!({ "environment": "production" }));
    let table: Vec<(&'static str, Vec<Act>, &str, bool)> = vec![
        (
            "deploy",
            vec![Act::Accept(
                json!({ "environment": "staging", "note": "n" }),
            )],
            "Staging Some(\"n\")",
            false,
        ),
        (
            "deploy",
            vec![production(), Act::Accept(json!({ "confirm": true }))],
            "Production None",
            false,
        ),
        (
            "deploy",
            vec![production(), Act::Accept(json!({ "confirm": false }))],
            "The user answered no to \"Production?\".",
            true,
        ),
        (
            "deploy",
            vec![production(), Act::Decline],
            "The user declined to answer \"Production?\".",
            true,
        ),
        (
            "deploy",
            vec![Act::Decline],
            "The user declined to answer \"Where to?\".",
            true,
        ),
        (
            "deploy",
            vec![Act::DeclineWith(json!({ "environment": "staging" }))],
            "The user declined to answer \"Where to?\".",
            true,
        ),
        (
            "deploy",
            vec![Act::Cancel],
            "The user dismissed the question \"Where to?\" without choosing.",
            true,
        ),
        (
            "deploy",
            vec![Act::Accept(
                json!({ "environment": "staging", "more": [1] }),
            )],
            "Staging None",
            false,
        ),
        (
            "choose",
            vec![Act::Accept(json!({ "choice": "a" }))],
            "a",
            false,
        ),
        (
            "age",
            vec![
                Act::Accept(json!({ "age": 17 })),
                Act::Accept(json!({ "age": 18.0 })),
            ],
            "18",
            false,
        ),
        (
            "age",
            vec![
                Act::Bare,
                Act::Accept(json!({ "age": "18" })),
                Act::Accept(json!({ "age": 40 })),
            ],
            "40",
            false,
        ),
        (
            "polite",
            vec![Act::Accept(json!({ "confirm": true }))],
            "yes",
            false,
        ),
        (
            "polite",
            vec![Act::Accept(json!({ "confirm": false }))],
            "no",
            false,
        ),
        ("polite", vec![Act::Decline], "no", false),
        ("polite", vec![Act::Cancel], "whatever", false),
        (
            "again",
            ["c", "a", "b"]
                .map(|choice| Act::Accept(json!({ "choice": choice })))
                .into(),
            "cab",
            false,
        ),
        (
            "fallback",
            vec![Act::Accept(json!({ "choice": "b" }))],
            "b",
            false,
        ),
    ];
    for (tool, acts, text, is_error) in table {
        for revision in REVISIONS {
            let person = ScriptedUser::answering(revision, acts.clone());
            let result = person.call(Asker, tool).await.unwrap();
            assert_eq!(
                said(&result),
                (text.to_owned(), is_error),
                "{tool} on {revision} with {acts:?}"
            );
            assert_eq!(person.asked().len(), acts.len(), "{tool} on {revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn url_mode_where_the_revision_has_it() {
    for revision in ["2025-11-25", "2026-07-28"] {
        for (act, text) in [
            (Act::Bare, "visited"),
            (
                Act::Decline,
                "The user declined to answer \"Sign in, please\".",
            ),
        ] {
            let person = ScriptedUser::answering(revision, [act]);
            let result = person.call(Asker, "visit").await.unwrap();
            assert_eq!(said(&result).0, text, "{revision}");
            assert_eq!(person.asked()[0]["url"], "https://example.com/connect");
        }
    }
    let error = ScriptedUser::answering("2025-06-18", [])
        .call(Asker, "visit")
        .await
        .unwrap_err();
    assert_eq!(error.code.0, -32602, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_url_that_has_to_be_visited_first() {
    let error = ScriptedUser::answering("2025-11-25", [])
        .call(Asker, "require")
        .await
        .unwrap_err();
    assert_eq!(error.code.0, -32042, "{error:?}");
    let elicitation = &error.data.unwrap()["elicitations"][0];
    assert_eq!(elicitation["mode"], "url");
    assert_eq!(elicitation["url"], "https://example.com/connect");
    assert!(elicitation["elicitationId"].is_string());
    let person = ScriptedUser::answering("2026-07-28", [Act::Bare]);
    assert_eq!(
        said(&person.call(Asker, "require").await.unwrap()).0,
        "visited"
    );
    let no_urls = ScriptedUser::answering("2025-11-25", []).declaring(json!({ "elicitation": {} }));
    assert_eq!(
        no_urls.call(Asker, "require").await.unwrap_err().code.0,
        -32602
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_is_asked_again_with_its_reasons_and_then_refused() {
    for revision in REVISIONS {
        let wrong = || Act::Accept(json!({ "age": 7 }));
        let person = ScriptedUser::answering(revision, [wrong(), wrong(), wrong()]);
        let error = person.call(Asker, "age").await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{revision}: {error:?}");
        let messages = person.messages();
        assert_eq!(messages[0], "How old?");
        assert!(
            messages[1].starts_with("How old?\n\nThe last answer cannot be used:\n- age: "),
            "{}",
            messages[1]
        );
        assert!(
            !messages[1].contains('7'),
            "the value must not come back: {}",
            messages[1]
        );
        assert_eq!(messages.len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn two_questions_at_once_get_their_own_answers() {
    fn answer(message: &str) -> Value {
        json!({ "choice": if message == "One?" { "b" } else { "c" } })
    }
    for revision in REVISIONS {
        let person = ScriptedUser::answering(revision, [Act::Sees(answer), Act::Sees(answer)]);
        let result = person.call(Asker, "both").await.unwrap();
        assert_eq!(said(&result), ("bc".to_owned(), false), "{revision}");
        assert_eq!(person.asked().len(), 2, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_ask_too() {
    for revision in REVISIONS {
        let person = ScriptedUser::answering(
            revision,
            [
                Act::Accept(json!({ "choice": "Ada" })),
                Act::Accept(json!({ "choice": "2" })),
                Act::Decline,
            ],
        );
        let client = person.meet(Asker.eliciting(person.clock.settings())).await;
        let prompt = client
            .get_prompt(GetPromptRequestParams::new("greeting"))
            .await
            .unwrap();
        assert!(
            serde_json::to_string(&prompt)
                .unwrap()
                .contains("Greet Ada"),
            "{revision}"
        );
        let resource = client
            .read_resource(ReadResourceRequestParams::new("book://1"))
            .await
            .unwrap();
        assert!(
            serde_json::to_string(&resource).unwrap().contains("page 2"),
            "{revision}"
        );
        let refused = client
            .get_prompt(GetPromptRequestParams::new("greeting"))
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains("declined"), "{revision}: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_wire_says_what_each_revision_says() {
    let person = ScriptedUser::answering("2025-06-18", [Act::Accept(json!({ "choice": "a" }))]);
    person.call(Asker, "choose").await.unwrap();
    let field = &person.asked()[0]["requestedSchema"]["properties"]["choice"];
    assert_eq!(
        field["enumNames"],
        json!(["The first", "The second"]),
        "{field}"
    );
    for revision in ["2025-11-25", "2026-07-28"] {
        let person = ScriptedUser::answering(revision, [Act::Accept(json!({ "choice": "a" }))]);
        person.call(Asker, "choose").await.unwrap();
        let field = &person.asked()[0]["requestedSchema"]["properties"]["choice"];
        assert_eq!(
            field["oneOf"][1],
            json!({ "const": "b", "title": "The second" }),
            "{field}"
        );
        assert_eq!(field["default"], "b");
        assert_eq!(field["title"], "One");
    }
}

/// A rule that no revision lists is enforced on each, and the person sees it in advance: as the keyword if the exact
/// schema is sent, and in words if rmcp's type is sent, which drops the keyword.
#[tokio::test(start_paused = true)]
async fn a_rule_of_no_revision_is_seen_and_kept() {
    for revision in REVISIONS {
        let acts = [
            Act::Accept(json!({ "tag": "NO", "price": 0.3 })),
            Act::Accept(json!({ "tag": "yes", "price": 1.5 })),
        ];
        let person = ScriptedUser::answering(revision, acts);
        let result = person.call(Asker, "strict").await.unwrap();
        assert_eq!(
            said(&result).0,
            json!({ "tag": "yes", "price": 1.5 }).to_string(),
            "{revision}"
        );
        let again = &person.messages()[1];
        assert!(
            again.contains("- tag: ") && again.contains("- price: "),
            "{again}"
        );
    }
}
