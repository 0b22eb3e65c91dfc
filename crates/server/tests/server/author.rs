//! An author's error is reported at once, in the same way on every revision, and no call waits forever.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, Reasons, ServerSettings};
use rmcp::model::{CallToolRequestParams, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::harness::{Act, REVISIONS, ScriptedUser, once, required, retry, said};

/// Does what an author should not do, and what an author may do.
#[derive(Clone, Default)]
struct Careless {
    number: Arc<AtomicU32>,
    effects: Arc<AtomicU32>,
    spawned: Arc<Mutex<Option<tokio::task::JoinHandle<String>>>>,
}

impl Careless {
    fn next(&self) -> u32 {
        self.number.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn effect(&self) -> u32 {
        self.effects.fetch_add(1, Ordering::SeqCst) + 1
    }
}

#[derive(Deserialize, JsonSchema)]
struct Port {
    /// serde does not know this default.
    #[schemars(default = "usual_port")]
    port: u16,
    #[schemars(extend("default" = "localhost"))]
    host: Option<String>,
}

fn usual_port() -> u16 {
    3000
}

#[derive(Deserialize)]
struct Needs {
    port: u16,
}

/// A schema that lets the field be left out and proposes nothing.
impl JsonSchema for Needs {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Needs".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object", "properties": { "port": { "type": "integer" } } })
    }
}

#[derive(Deserialize, JsonSchema)]
struct Stay {
    from: u8,
    to: u8,
}

fn in_order(stay: &Stay) -> Result<(), Reasons> {
    if stay.from < stay.to {
        return Ok(());
    }
    Err(("to", "must be after the day of arrival").into())
}

#[tool_router]
impl Careless {
    #[tool(description = "Asks inside a step")]
    async fn asks_in_step(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let asking = elicit.step("start", || async {
            elicit.choose("Which?", ["a", "b"]).await.ok()
        });
        Ok(format!("{:?}", asking.await?))
    }

    #[tool(description = "Asks inside a step that can fail")]
    async fn asks_in_try_step(&self, elicit: Elicit) -> Result<String, ElicitError> {
        elicit
            .try_step("start", || async {
                tokio::task::yield_now().await;
                elicit.choose("Which?", ["a", "b"]).await
            })
            .await
    }

    #[tool(description = "Asks beside a step, which is fine")]
    async fn asks_beside_step(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let (choice, effect) = tokio::join!(
            elicit.choose("Which?", ["a", "b"]),
            elicit.step("start", || async {
                tokio::task::yield_now().await;
                self.effect()
            })
        );
        Ok(format!("{}{}", choice?, effect?))
    }

    #[tool(description = "Waits in a step for a task that asks")]
    async fn spawns_in_step(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let asker = elicit.clone();
        elicit
            .try_step("start", || async move {
                tokio::spawn(async move { asker.choose("Which?", ["a", "b"]).await })
                    .await
                    .unwrap()
            })
            .await
    }

    #[tool(description = "A question and a step between two others")]
    async fn twice(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let one = elicit.choose("One?", ["a", "b"]).await?;
        let effect = elicit.step("start", async || self.effect()).await?;
        let two = elicit.choose("Two?", ["a", "b"]).await?;
        Ok(format!("{one}{effect}{two}"))
    }

    #[tool(description = "A question with a number that changes from run to run")]
    async fn counts(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let number = self.next();
        elicit
            .choose(format!("Visitor {number}?"), ["a", "b"])
            .await
    }

    #[tool(description = "Options that change from run to run")]
    async fn options(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let number = self.next().to_string();
        elicit.choose("Which?", ["a", number.as_str()]).await
    }

    #[tool(description = "A number that changes, beside something that takes its time")]
    async fn counts_beside(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let (answer, ()) = tokio::join!(
            self.counts(elicit),
            tokio::time::sleep(Duration::from_secs(1))
        );
        answer
    }

    #[tool(description = "Skips a question that has become pointless")]
    async fn skips(&self, elicit: Elicit) -> Result<String, ElicitError> {
        if self.next() == 1 {
            elicit.confirm("Create it?").await?;
        }
        Ok("there".into())
    }

    #[tool(description = "A visit that is not needed any more once it was made, and a question")]
    async fn connects(&self, elicit: Elicit) -> Result<String, ElicitError> {
        if self.next() == 1 {
            elicit.visit("Sign in", "https://example.com/").await?;
        }
        elicit.choose("Which?", ["a", "b"]).await
    }

    #[tool(description = "A default that only the schema has")]
    async fn port(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let Port { port, host } = elicit.form("Which port?").await?;
        Ok(format!("{port} {host:?}"))
    }

    #[tool(description = "A field that may be left out and must not be")]
    async fn needs(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let needs = elicit.form::<Needs>("Which port?").await?;
        Ok(needs.port.to_string())
    }

    #[tool(description = "A check of the author's own, and another question")]
    async fn stay(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let checks = Arc::clone(&self.effects);
        let stay = elicit
            .form::<Stay>("When?")
            .check(move |stay| {
                checks.fetch_add(1, Ordering::SeqCst);
                in_order(stay)
            })
            .await?;
        elicit.confirm("Book it?").await?;
        Ok((stay.to - stay.from).to_string())
    }

    #[tool(description = "A step that takes two minutes")]
    async fn long(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let work = async || tokio::time::sleep(Duration::from_secs(2 * 60)).await;
        elicit.step("work", work).await?;
        Ok("done".into())
    }

    #[tool(description = "Returns before a spawned task asks")]
    async fn returns(&self, elicit: Elicit) -> String {
        let asking = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            format!("{:?}", elicit.choose("Too late?", ["a", "b"]).await)
        });
        *self.spawned.lock().unwrap() = Some(asking);
        "returned".into()
    }

    #[tool(description = "Returns while the question of a spawned task is open")]
    async fn returns_beside(&self, elicit: Elicit) -> String {
        let asking = tokio::spawn(async move {
            format!("{:?}", elicit.choose("Still there?", ["a", "b"]).await)
        });
        *self.spawned.lock().unwrap() = Some(asking);
        tokio::time::sleep(Duration::from_secs(1)).await;
        "returned".into()
    }
}

#[tool_handler]
impl ServerHandler for Careless {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn choice(letter: &str) -> Act {
    Act::Accept(json!({ "choice": letter }))
}

#[tokio::test(start_paused = true)]
async fn a_question_inside_a_step_is_the_authors_error() {
    for revision in REVISIONS {
        for tool in ["asks_in_step", "asks_in_try_step"] {
            let person = ScriptedUser::answering(revision, []);
            let error = person.call(Careless::default(), tool).await.unwrap_err();
            assert_eq!(error.code.0, -32603, "{tool} on {revision}: {error:?}");
            for words in ["inside the step \"start\"", "ask before the step"] {
                assert!(error.message.contains(words), "{revision}: {error:?}");
            }
            assert!(person.asked().is_empty(), "{tool} on {revision}");
        }
        let person = ScriptedUser::answering(revision, [choice("b")]);
        let result = person.call(Careless::default(), "asks_beside_step").await;
        assert_eq!(said(&result.unwrap()).0, "b1", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_for_a_spawned_question_does_not_hang() {
    let person = ScriptedUser::answering("2026-07-28", []);
    let error = person.call(Careless::default(), "spawns_in_step").await;
    let error = error.unwrap_err();
    assert!(error.message.contains("ask before the step"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_second_wrapper_asks_and_works_no_second_time() {
    for revision in REVISIONS {
        let server = Careless::default();
        let person = ScriptedUser::answering(revision, [choice("a"), choice("b")]);
        let settings = || person.clock.settings();
        let twice = server.clone().eliciting(settings()).eliciting(settings());
        let result = person.call_under(twice, "twice").await.unwrap();
        assert_eq!(said(&result).0, "a1b", "{revision}");
        assert_eq!(person.messages(), ["One?", "Two?"], "{revision}");
        assert_eq!(server.effects.load(Ordering::SeqCst), 1, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_changes_from_run_to_run_is_the_authors_error() {
    for (tool, asked, words) in [
        ("counts", 1, ["\"Visitor 1?\"", "\"Visitor 2?\""]),
        ("options", 1, ["\"Which?\"", "form"]),
        // Another cause might have moved the run on, so it has to happen twice.
        ("counts_beside", 2, ["\"Visitor 2?\"", "\"Visitor 3?\""]),
    ] {
        let person = ScriptedUser::answering("2026-07-28", [choice("a"), choice("a")]);
        let error = person.call(Careless::default(), tool).await.unwrap_err();
        assert_eq!(error.code.0, -32603, "{tool}: {error:?}");
        for words in words.into_iter().chain(["step"]) {
            assert!(error.message.contains(words), "{tool}: {error:?}");
        }
        assert_eq!(person.asked().len(), asked, "{tool}");
        // A revision on which the handler runs once detects no change.
        let person = ScriptedUser::answering("2025-11-25", [choice("a")]);
        let result = person.call(Careless::default(), tool).await.unwrap();
        assert_eq!(said(&result).0, "a", "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_finish_without_the_question_that_was_answered() {
    let person = ScriptedUser::answering("2026-07-28", [Act::Accept(json!({ "confirm": true }))]);
    let result = person.call(Careless::default(), "skips").await.unwrap();
    assert_eq!(said(&result).0, "there");
}

#[tokio::test(start_paused = true)]
async fn a_visit_that_was_made_need_not_be_asked_for_again() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let person = ScriptedUser::answering(revision, [Act::Bare, choice("b")]);
        let result = person.call(Careless::default(), "connects").await;
        assert_eq!(said(&result.unwrap()).0, "b", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_default_that_only_the_schema_has_is_filled_in() {
    for revision in REVISIONS {
        let person = ScriptedUser::answering(revision, [Act::Accept(json!({}))]);
        let result = person.call(Careless::default(), "port").await.unwrap();
        // A field that the type does not need stays absent.
        assert_eq!(said(&result).0, "3000 None", "{revision}");
        assert_eq!(person.asked().len(), 1, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_that_only_the_type_needs_is_the_authors_error() {
    for revision in REVISIONS {
        let person = ScriptedUser::answering(revision, [Act::Accept(json!({}))]);
        let error = person.call(Careless::default(), "needs").await.unwrap_err();
        assert_eq!(error.code.0, -32603, "{revision}: {error:?}");
        for words in ["port", "Needs", "serde default"] {
            assert!(error.message.contains(words), "{revision}: {error:?}");
        }
        assert_eq!(person.asked().len(), 1, "{revision}: nobody is asked again");
    }
}

#[tokio::test(start_paused = true)]
async fn an_authors_own_check_reaches_the_person() {
    let when = |from: u8, to: u8| Act::Accept(json!({ "from": from, "to": to }));
    for revision in REVISIONS {
        let server = Careless::default();
        let yes = Act::Accept(json!({ "confirm": true }));
        let person = ScriptedUser::answering(revision, [when(9, 7), when(7, 9), yes]);
        let result = person.call(server.clone(), "stay").await.unwrap();
        assert_eq!(said(&result).0, "2", "{revision}");
        assert_eq!(
            person.messages()[1],
            "When?\n\nThe last answer cannot be used:\n- to: must be after the day of arrival",
            "{revision}"
        );
        let checks = server.effects.load(Ordering::SeqCst);
        assert_eq!(checks, 2, "{revision}: each answer is checked once");

        let person = ScriptedUser::answering(revision, [when(9, 7), when(9, 7), when(9, 7)]);
        let error = person.call(Careless::default(), "stay").await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{revision}: {error:?}");
        let violation = &error.data.unwrap()["violations"][0];
        assert_eq!(violation["field"], "to", "{revision}: {violation}");
        assert_eq!(person.asked().len(), 3, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_keeps_the_caller_alive() {
    for revision in REVISIONS {
        let person = ScriptedUser::answering(revision, []);
        let result = person.call(Careless::default(), "long").await.unwrap();
        assert_eq!(said(&result).0, "done", "{revision}");
        // Every 15 seconds for 2 minutes; the last may fall together with the end.
        let progress = person.progress();
        assert!((7..=8).contains(&progress), "{revision}: {progress}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_after_the_handler_returned_is_a_clear_error() {
    for revision in REVISIONS {
        // Where a question waits for its answer inside the run, a run with an open question does not end in rounds.
        let tools: &[&str] = match revision {
            "2026-07-28" => &["returns"],
            _ => &["returns", "returns_beside"],
        };
        for tool in tools {
            let server = Careless::default();
            let late = Act::Late(json!({ "choice": "a" }));
            let person = ScriptedUser::answering(revision, [late]);
            let client = person
                .meet(server.clone().eliciting(person.clock.settings()))
                .await;
            let request = CallToolRequestParams::new((*tool).to_owned());
            let result = client.call_tool(request).await.unwrap();
            assert_eq!(said(&result).0, "returned", "{tool} on {revision}");
            let asking = server.spawned.lock().unwrap().take().unwrap();
            let answer = asking.await.unwrap();
            assert_eq!(answer, "Err(HandlerReturned)", "{tool} on {revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_done_once_is_done_once_without_a_store() {
    let server = Careless::default();
    let person = ScriptedUser::answering("2026-07-28", []);
    let client = person
        .meet(server.clone().eliciting(ServerSettings::default()))
        .await;
    let call = CallToolRequestParams::new("twice");
    let (requests, state) = required(once(&client, &call).await.unwrap());
    let answers: Vec<_> = requests
        .keys()
        .map(|key| (key.clone(), json!({ "choice": "a" })))
        .collect();
    let go_on = retry(&call, &state, answers);
    required(once(&client, &go_on).await.unwrap());
    let error = once(&client, &go_on).await.unwrap_err();
    assert_eq!(error.code.0, -32602, "{error:?}");
    assert!(error.message.contains("used before"), "{error:?}");
    assert_eq!(server.effects.load(Ordering::SeqCst), 1);
}
