//! The same handlers on every revision: whatever a person does, the result is the same.

use mcp_elicit_core::form::Form;
use mcp_elicit_server::{Elicit, ElicitingExt, Outcome, Unanswered};
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, ListResourcesResult, PaginatedRequestParams,
    PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents, Role, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, prompt, prompt_handler, prompt_router, tool,
    tool_handler, tool_router,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::{Act, Person, REVISIONS, said};

/// Asks in every way there is.
#[derive(Clone)]
pub(crate) struct Asker;

#[derive(Debug, schemars::JsonSchema, Deserialize)]
struct Target {
    /// Where it goes
    environment: Environment,
    note: Option<String>,
}

#[derive(Debug, schemars::JsonSchema, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Environment {
    Staging,
    Production,
}

#[derive(schemars::JsonSchema, Deserialize)]
struct Age {
    #[schemars(range(min = 18))]
    age: u8,
}

#[tool_router]
impl Asker {
    #[tool(description = "A form, and a confirmation that depends on it")]
    async fn deploy(&self, elicit: Elicit) -> Result<String, Unanswered> {
        let target = elicit.form::<Target>("Where to?").await?;
        if target.environment == Environment::Production {
            elicit.confirm("Production?").await?;
        }
        Ok(format!("{:?} {:?}", target.environment, target.note))
    }

    #[tool(description = "A choice with titles")]
    async fn choose(&self, elicit: Elicit) -> Result<String, Unanswered> {
        elicit
            .choose("Which?", [("a", "The first"), ("b", "The second")])
            .title("One")
            .default("b")
            .await
    }

    #[tool(description = "A number with a bound")]
    async fn age(&self, elicit: Elicit) -> Result<String, Unanswered> {
        Ok(elicit.form::<Age>("How old?").await?.age.to_string())
    }

    #[tool(description = "Goes on after a refusal")]
    async fn polite(&self, elicit: Elicit) -> Result<String, Unanswered> {
        Ok(match elicit.confirm("Really?").outcome().await? {
            Outcome::Accept(()) => "yes",
            Outcome::Decline => "no",
            Outcome::Cancel => "whatever",
        }
        .to_owned())
    }

    #[tool(description = "Two questions at once")]
    async fn both(&self, elicit: Elicit) -> Result<String, Unanswered> {
        let (one, two) = tokio::join!(
            elicit.choose("One?", ["a", "b"]),
            elicit.choose("Two?", ["c", "d"])
        );
        Ok(format!("{}{}", one?, two?))
    }

    #[tool(description = "The same question in a loop")]
    async fn again(&self, elicit: Elicit) -> Result<String, Unanswered> {
        let mut all = String::new();
        for _ in 0..3 {
            all += &elicit.choose("Next?", ["a", "b", "c"]).await?;
        }
        Ok(all)
    }

    #[tool(description = "A form with rules that no revision lists")]
    async fn strict(&self, elicit: Elicit) -> Result<String, Unanswered> {
        let schema = json!({
            "type": "object",
            "properties": {
                "tag": { "type": "string", "pattern": "^[a-z]+$" },
                "price": { "type": "number", "multipleOf": 0.5 }
            },
            "required": ["tag"]
        });
        let form = Form::from_value(&schema).unwrap();
        Ok(elicit.ask("What tag?", form).await?.to_value().to_string())
    }

    #[tool(description = "Asks without end")]
    async fn endless(&self, elicit: Elicit) -> Result<String, Unanswered> {
        loop {
            elicit.choose("More?", ["a", "b"]).await?;
        }
    }

    #[tool(description = "Has an answer for clients that cannot ask")]
    async fn fallback(&self, elicit: Elicit) -> Result<String, Unanswered> {
        elicit.choose("Which?", ["a", "b"]).or("a".into()).await
    }

    #[tool(description = "A page to have visited")]
    async fn require(&self, elicit: Elicit) -> Result<String, Unanswered> {
        elicit
            .require_url("Sign in first", "https://example.com/connect")
            .await?;
        Ok("visited".into())
    }

    #[tool(description = "A page to visit")]
    async fn visit(&self, elicit: Elicit) -> Result<String, Unanswered> {
        elicit
            .visit("Sign in, please", "https://example.com/connect")
            .await?;
        Ok("visited".into())
    }
}

#[prompt_router]
impl Asker {
    #[prompt(name = "greeting")]
    async fn greeting(&self, elicit: Elicit) -> Result<GetPromptResult, ErrorData> {
        let name = elicit.choose("Who?", ["Ada", "Grace"]).await?;
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(
            Role::User,
            format!("Greet {name}"),
        )]))
    }
}

#[tool_handler]
#[prompt_handler]
impl ServerHandler for Asker {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_prompts()
                .enable_resources()
                .build(),
        )
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let elicit = Elicit::of(&context)?;
        let page = elicit.choose("Which page?", ["1", "2"]).await?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text(
            format!("page {page}"),
            request.uri,
        )])
        .into())
    }
}

/// Everything a person can do with a tool, and what comes of it on every revision.
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
            let person = Person::who(revision, acts.clone());
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
            let person = Person::who(revision, [act]);
            let result = person.call(Asker, "visit").await.unwrap();
            assert_eq!(said(&result).0, text, "{revision}");
            assert_eq!(person.asked()[0]["url"], "https://example.com/connect");
        }
    }
    let error = Person::who("2025-06-18", [])
        .call(Asker, "visit")
        .await
        .unwrap_err();
    assert_eq!(error.code.0, -32602, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_is_asked_again_with_its_reasons_and_then_refused() {
    for revision in REVISIONS {
        let wrong = || Act::Accept(json!({ "age": 7 }));
        let person = Person::who(revision, [wrong(), wrong(), wrong()]);
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
async fn nobody_answers() {
    for revision in REVISIONS {
        let person = Person::who(revision, [Act::Late(json!({ "age": 40 }))]);
        let error = person.call(Asker, "age").await.unwrap_err();
        assert_eq!(error.code.0, -32000, "{revision}: {error:?}");
        assert_eq!(error.data.unwrap()["timeoutSeconds"], 300);
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
            let person = Person::who(revision, []).declaring(capability.clone());
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
        let person = Person::who(revision, [Act::Accept(json!({ "age": 40 }))])
            .declaring(json!({ "elicitation": {} }));
        assert_eq!(said(&person.call(Asker, "age").await.unwrap()).0, "40");
        assert!(person.call(Asker, "visit").await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_fails_to_ask_is_no_refusal() {
    for (code, expected) in [(-32601, -32601), (-32603, -32602)] {
        let person = Person::who("2025-11-25", [Act::Fail(code)]);
        let error = person.call(Asker, "age").await.unwrap_err();
        assert_eq!(error.code.0, expected, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_questions_at_once_get_their_own_answers() {
    fn answer(message: &str) -> Value {
        json!({ "choice": if message == "One?" { "b" } else { "c" } })
    }
    for revision in REVISIONS {
        let person = Person::who(revision, [Act::Sees(answer), Act::Sees(answer)]);
        let result = person.call(Asker, "both").await.unwrap();
        assert_eq!(said(&result), ("bc".to_owned(), false), "{revision}");
        assert_eq!(person.asked().len(), 2, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_ask_too() {
    for revision in REVISIONS {
        let person = Person::who(
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
async fn the_caller_hears_progress_while_a_person_thinks() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let person = Person::who(revision, [Act::Late(json!({ "age": 40 }))]);
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
async fn the_wire_says_what_each_revision_says() {
    let person = Person::who("2025-06-18", [Act::Accept(json!({ "choice": "a" }))]);
    person.call(Asker, "choose").await.unwrap();
    let field = &person.asked()[0]["requestedSchema"]["properties"]["choice"];
    assert_eq!(
        field["enumNames"],
        json!(["The first", "The second"]),
        "{field}"
    );
    for revision in ["2025-11-25", "2026-07-28"] {
        let person = Person::who(revision, [Act::Accept(json!({ "choice": "a" }))]);
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

#[tokio::test(start_paused = true)]
async fn a_url_that_has_to_be_visited_first() {
    let error = Person::who("2025-11-25", [])
        .call(Asker, "require")
        .await
        .unwrap_err();
    assert_eq!(error.code.0, -32042, "{error:?}");
    let elicitation = &error.data.unwrap()["elicitations"][0];
    assert_eq!(elicitation["mode"], "url");
    assert_eq!(elicitation["url"], "https://example.com/connect");
    assert!(elicitation["elicitationId"].is_string());
    let person = Person::who("2026-07-28", [Act::Bare]);
    assert_eq!(
        said(&person.call(Asker, "require").await.unwrap()).0,
        "visited"
    );
    let no_urls = Person::who("2025-11-25", []).declaring(json!({ "elicitation": {} }));
    assert_eq!(
        no_urls.call(Asker, "require").await.unwrap_err().code.0,
        -32602
    );
}

/// Every turn of a question is recorded once, whatever runs again, and no value is.
#[tokio::test(start_paused = true)]
async fn the_audit_tells_each_turn_once() {
    for revision in REVISIONS {
        let acts = [
            Act::Accept(json!({ "environment": "nowhere" })),
            Act::Accept(json!({ "environment": "production", "note": "s3cret" })),
            Act::Decline,
        ];
        let records = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = std::sync::Arc::clone(&records);
        let audit = move |record: &mcp_elicit_server::audit::Record| {
            sink.lock()
                .unwrap()
                .push(serde_json::to_value(record).unwrap());
        };
        let person = Person::who(revision, acts);
        let settings = person
            .clock
            .settings()
            .audit(audit)
            .principal(|_| Some("ada".into()));
        person
            .call_under(Asker.eliciting(settings), "deploy")
            .await
            .unwrap();
        let records = records.lock().unwrap();
        let turns: Vec<_> = records
            .iter()
            .map(|record| record["turn"].as_str().unwrap())
            .collect();
        assert_eq!(
            turns,
            ["asked", "wrong", "asked", "answered", "asked", "declined"],
            "{revision}"
        );
        assert_eq!(records[0]["name"], "deploy");
        assert_eq!(records[0]["principal"], "ada");
        assert_eq!(records[0]["fields"], json!(["environment", "note"]));
        let text = serde_json::to_string(&*records).unwrap();
        assert!(
            !text.contains("s3cret") && !text.contains("nowhere"),
            "{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_is_not_asked_without_end() {
    for revision in REVISIONS {
        let person = Person::who(
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

/// The caller ends its call while the question is open: the handler ends, and the question is withdrawn.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_withdraws_its_question() {
    let person = Person::who("2025-11-25", [Act::Late(json!({ "age": 40 }))]);
    let turns = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = std::sync::Arc::clone(&turns);
    let audit =
        move |record: &mcp_elicit_server::audit::Record| sink.lock().unwrap().push(record.turn);
    let client = person
        .meet(Asker.eliciting(person.clock.settings().audit(audit)))
        .await;
    let request = rmcp::model::ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(
        rmcp::model::CallToolRequestParams::new("age"),
    ));
    let options = rmcp::service::PeerRequestOptions::no_options();
    let handle = client
        .send_cancellable_request(request, options)
        .await
        .unwrap();
    while person.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    handle.cancel(None).await.unwrap();
    while turns.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    let turns = turns.lock().unwrap().clone();
    assert_eq!(
        turns,
        [
            mcp_elicit_server::audit::Turn::Asked,
            mcp_elicit_server::audit::Turn::Withdrawn
        ]
    );
}

/// A rule that no revision lists is enforced on each, and the person sees it before it is broken: as the keyword where
/// the exact schema is sent, and in words where rmcp's type is, which drops it.
#[tokio::test(start_paused = true)]
async fn a_rule_of_no_revision_is_seen_and_kept() {
    for revision in REVISIONS {
        let acts = [
            Act::Accept(json!({ "tag": "NO", "price": 0.3 })),
            Act::Accept(json!({ "tag": "yes", "price": 1.5 })),
        ];
        let person = Person::who(revision, acts);
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
