//! The code of `docs/server.md`, of the project's README and of this crate's, word for word: it compiles and runs. The
//! guide's code about `connect` is in `examples/connect_account.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::unused_async,
    reason = "a test ends where something is not there, and the guide awaits what takes time in earnest"
)]

use std::sync::Arc;
use std::sync::Mutex;

use mcp_elicit_server::AskOutcome;
use mcp_elicit_server::seal::{KeyError, Keys, MemoryStore};
use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, PromptMessage, Role};
use rmcp::{
    ErrorData, ServerHandler, prompt, prompt_handler, prompt_router, tool, tool_handler,
    tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Branch {
    name: String,
}

#[derive(Clone, Default)]
struct Branches {
    deleted: Arc<Mutex<Vec<String>>>,
    mailed: Arc<Mutex<u32>>,
}

impl Branches {
    fn new() -> Self {
        Self::default()
    }

    async fn delete(&self, name: &str) {
        self.deleted.lock().unwrap().push(name.to_owned());
    }

    async fn mail(&self) {
        *self.mailed.lock().unwrap() += 1;
    }
}

#[tool_router]
#[rustfmt::skip]
impl Branches {
    #[tool(description = "Delete a branch")]
    async fn delete_branch(
        &self,
        elicit: Elicit,
        Parameters(Branch { name }): Parameters<Branch>,
    ) -> Result<String, ElicitError> {
        elicit.confirm(format!("Delete {name}? This cannot be undone.")).await?;
        elicit.step("delete", || self.delete(&name)).await?;
        Ok(format!("Deleted {name}"))
    }

    #[tool(description = "Goes on whatever the person says")]
    async fn send(&self, elicit: Elicit) -> Result<String, ElicitError> {
        match elicit.confirm("Send a copy by mail?").outcome().await? {
            AskOutcome::Accept(()) => self.mail().await,
            AskOutcome::Decline | AskOutcome::Cancel => {}
        }
        Ok("sent".into())
    }
}

#[tool_handler]
impl ServerHandler for Branches {}

/// The tool of the project's README.
mod readme {
    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct Target {
        environment: Environment,
    }

    #[derive(Deserialize, JsonSchema, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Environment {
        Staging,
        Production,
    }

    impl std::fmt::Display for Environment {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(match self {
                Self::Staging => "staging",
                Self::Production => "production",
            })
        }
    }

    struct Deployer;

    #[tool_router]
    #[rustfmt::skip]
    impl Deployer {
        #[tool(description = "Deploy the current build")]
        async fn deploy(&self, elicit: Elicit) -> Result<String, ElicitError> {
            let target: Target = elicit.form("Which environment should I deploy to?").await?;
            if target.environment == Environment::Production {
                elicit.confirm("Deploy to production?").await?;
            }
            Ok(format!("going to {}", target.environment))
        }
    }

    #[tool_handler]
    impl ServerHandler for Deployer {}

    #[tokio::test]
    async fn production_is_confirmed_and_staging_is_not() {
        let chosen = |environment| ScriptedAnswer::accept(json!({ "environment": environment }));
        for (answers, questions) in [
            (vec![chosen("production"), ScriptedAnswer::yes()], 2),
            (vec![chosen("staging")], 1),
        ] {
            let person = ScriptedUser::answering(answers);
            let said = person.run(|elicit| Deployer.deploy(elicit));
            said.await.unwrap().unwrap();
            assert_eq!(person.asked().len(), questions);
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Stay {
    from: u8,
    to: u8,
}

#[rustfmt::skip]
async fn stay(elicit: Elicit) -> Result<u8, ElicitError> {
    let stay = elicit
        .form::<Stay>("When do you come?")
        .check(|stay| if stay.from < stay.to { Ok(()) } else { Err(("to", "must be after the day of arrival")) })
        .await?;
    Ok(stay.to - stay.from)
}

#[tokio::test]
async fn a_rule_of_the_authors_own_is_told_to_the_person() {
    let answers = [(9, 7), (7, 9)]
        .map(|(from, to)| ScriptedAnswer::accept(json!({ "from": from, "to": to })));
    let person = ScriptedUser::answering(answers);
    assert_eq!(person.run(stay).await.unwrap().unwrap(), 2);
    assert!(
        person.asked()[1]
            .message
            .contains("after the day of arrival")
    );
}

#[derive(Deserialize, JsonSchema)]
struct Release {
    /// The place of the build.
    #[schemars(title = "Environment")]
    place: Place,
    /// The number of machines.
    #[schemars(title = "Replicas", range(min = 1, max = 9))]
    #[serde(default = "three")]
    replicas: u8,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// Staging, for testers
    Staging,
    /// Production, for everyone
    Production,
}

fn three() -> u8 {
    3
}

#[tokio::test]
async fn a_type_has_titles_and_defaults() {
    let person = ScriptedUser::answering([ScriptedAnswer::accept(json!({ "place": "staging" }))]);
    let release = person
        .elicit()
        .form::<Release>("Release it?")
        .await
        .unwrap();
    assert!(matches!(release.place, Place::Staging));
    assert_eq!(release.replicas, 3);
    assert!(!matches!(release.place, Place::Production));
    let schema = person.asked()[0].schema.clone().unwrap();
    let (place, replicas) = (
        &schema["properties"]["place"],
        &schema["properties"]["replicas"],
    );
    assert_eq!(place["title"], "Environment");
    assert_eq!(
        place["oneOf"][0],
        json!({ "const": "staging", "title": "Staging, for testers" })
    );
    assert_eq!(
        (&replicas["title"], &replicas["default"]),
        (&json!("Replicas"), &json!(3))
    );
    assert_eq!(schema["required"], json!(["place"]));
}

enum BookingError {
    Ask(ElicitError),
    SoldOut,
}

impl From<ElicitError> for BookingError {
    fn from(error: ElicitError) -> Self {
        Self::Ask(error)
    }
}

#[rustfmt::skip]
impl IntoCallToolResult for BookingError {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        match self {
            Self::Ask(error) => error.into_call_tool_result(),
            Self::SoldOut => Ok(CallToolResult::error(vec![ContentBlock::text("Nothing is left on that day")]).into()),
        }
    }
}

#[rustfmt::skip]
async fn book(elicit: Elicit) -> Result<u32, BookingError> {
    let stay = elicit.form::<Stay>("When do you come?").await?;
    elicit.try_step("book", || async { if stay.to > 9 { Err(BookingError::SoldOut) } else { Ok(17) } }).await
}

#[tokio::test]
async fn an_error_of_ones_own_keeps_what_the_person_said() {
    let stay = |to| ScriptedAnswer::accept(json!({ "from": 1, "to": to }));
    let said = |error: BookingError| format!("{:?}", error.into_call_tool_result().unwrap());
    let booked = book(ScriptedUser::answering([stay(7)]).elicit()).await;
    assert!(matches!(booked, Ok(17)));
    let sold_out = book(ScriptedUser::answering([stay(10)]).elicit()).await;
    assert!(said(sold_out.unwrap_err()).contains("Nothing is left"));
    let declined = book(ScriptedUser::answering([ScriptedAnswer::Decline]).elicit()).await;
    assert!(said(declined.unwrap_err()).contains("declined"));
}

struct Greeter;

#[prompt_router]
#[rustfmt::skip]
impl Greeter {
    #[prompt(name = "greeting", description = "Greets the person")]
    async fn greeting(&self, elicit: Elicit) -> Result<Vec<PromptMessage>, ErrorData> {
        let name = elicit.choose("Who are you?", ["Ada", "Grace"]).await?;
        Ok(vec![PromptMessage::new_text(Role::User, format!("Greet {name}"))])
    }
}

#[prompt_handler]
impl ServerHandler for Greeter {}

#[tokio::test]
async fn a_prompt_asks_and_says_no_by_an_error() {
    let yes = ScriptedUser::answering([ScriptedAnswer::pick("Ada")]);
    assert_eq!(Greeter.greeting(yes.elicit()).await.unwrap().len(), 1);
    let no = ScriptedUser::answering([ScriptedAnswer::Decline]);
    assert_eq!(
        Greeter.greeting(no.elicit()).await.unwrap_err().code.0,
        -32000
    );
}

#[test]
fn every_field_can_be_asked_for() {
    mcp_elicit_server::core::form::Form::from_type::<Stay>().unwrap();
}

#[test]
fn the_versions_of_the_guide_are_those_of_the_workspace() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let guide = std::fs::read_to_string(format!("{root}docs/server.md")).unwrap();
    let table = std::fs::read_to_string(format!("{root}Cargo.toml")).unwrap();
    let (_, block) = guide.split_once("```toml\n[dependencies]\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let mut compared = 0;
    for line in block.lines().filter(|line| line.contains(" = ")) {
        let (name, rest) = line.split_once(" = ").unwrap();
        let version = rest.split('"').nth(1).unwrap();
        let known = table
            .lines()
            .find(|entry| entry.starts_with(&format!("{name} = ")));
        assert!(known.unwrap().contains(&format!("\"{version}")), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 7);
}

struct User {
    id: String,
}

#[rustfmt::skip]
fn settings() -> Result<ServerSettings, KeyError> {
    let settings = ServerSettings::default()
        .audience("billing")
        .keys(Keys::from_env("MCP_ELICIT_KEYS")?)
        .principal(|context| {
            context.extensions.get::<http::request::Parts>()?.extensions.get::<User>().map(|user| user.id.clone())
        })
        .store(Arc::new(MemoryStore::new()));
    Ok(settings.attempts(2))
}

#[derive(Deserialize, JsonSchema)]
struct Target {
    environment: String,
}

struct Deployer;

impl Deployer {
    async fn deploy(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let target = elicit.form::<Target>("Where to?").await?;
        if target.environment == "production" {
            elicit.confirm("Deploy to production?").await?;
        }
        Ok(target.environment)
    }
}

#[tokio::test]
#[rustfmt::skip]
async fn a_handler_is_tested_with_answers_given_as_values() {
    let server = Deployer;
    let person = ScriptedUser::answering([ScriptedAnswer::accept(json!({ "environment": "production" })), ScriptedAnswer::Decline]);
    let result = server.deploy(person.elicit()).await;
    assert!(matches!(result, Err(ElicitError::Refused(_))));
    assert_eq!(person.asked()[1].message, "Deploy to production?");
    let person = ScriptedUser::answering([ScriptedAnswer::accept(json!({ "environment": "production" })), ScriptedAnswer::Decline]);
    let result = person.run(|elicit| server.deploy(elicit)).await.unwrap();
    assert!(matches!(result, Err(ElicitError::Refused(_))));
}

#[tokio::test]
#[rustfmt::skip]
async fn three_lines_make_a_tool_ask() {
    let branches = Branches::new();
    let old = || Parameters(Branch { name: "old".into() });
    let yes = ScriptedUser::answering([ScriptedAnswer::accept(json!({ "confirm": true }))]);
    let said = branches.delete_branch(yes.elicit(), old()).await.unwrap();
    assert_eq!(said, "Deleted old");
    let no = ScriptedUser::answering([ScriptedAnswer::Cancel]);
    assert!(branches.delete_branch(no.elicit(), old()).await.is_err());
    assert_eq!(*branches.deleted.lock().unwrap(), ["old"]);

    let server = Branches::new().eliciting(ServerSettings::default());
    assert!(server.inner().deleted.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_refusal_does_not_end_the_call_when_its_outcome_is_asked_for() {
    let branches = Branches::new();
    for (answer, mailed) in [
        (ScriptedAnswer::Decline, 0),
        (ScriptedAnswer::Cancel, 0),
        (ScriptedAnswer::accept(json!({ "confirm": true })), 1),
    ] {
        let said = branches
            .send(ScriptedUser::answering([answer]).elicit())
            .await;
        assert_eq!(said.unwrap(), "sent");
        assert_eq!(*branches.mailed.lock().unwrap(), mailed);
    }
}

#[test]
fn keys_that_are_not_there_are_said_to_be_missing() {
    assert!(settings().is_err());
}

/// Returns code without comments and white space.
fn bare(code: &str) -> String {
    let lines = code.lines().map(|line| {
        let code = line.split_once(" // ").map_or(line, |(code, _)| code);
        if code.trim_start().starts_with("//") {
            ""
        } else {
            code
        }
    });
    let bare: String = lines
        .flat_map(str::chars)
        .filter(|letter| !letter.is_whitespace())
        .collect();
    // rustfmt adds this when it breaks a line.
    bare.replace(",)", ")")
}

#[test]
fn all_the_code_of_the_guide_and_of_the_readmes_is_in_here() {
    let guide = [
        include_str!("../../../docs/server.md"),
        include_str!("../../../README.md"),
        include_str!("../README.md"),
    ]
    .join("\n");
    let here = bare(include_str!("guide.rs")) + &bare(include_str!("../examples/served.rs"));
    let mut seen = 0;
    for block in guide.split("```rust\n").skip(1) {
        let (code, _) = block.split_once("\n```").unwrap();
        if code.contains("Connect") {
            continue;
        }
        for paragraph in code.split("\n\n") {
            assert!(
                here.contains(&bare(paragraph)),
                "not in this file:\n{paragraph}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 8, "the guide lost its code: {seen}");
}
