//! Tests of rounds only: runs that are abandoned and started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt};
use rmcp::model::{CallToolRequestParams, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use serde_json::json;

use crate::harness::{Act, ScriptedUser, complete, once, required, retry, said};

/// Counts the calls of its handlers.
#[derive(Clone, Default)]
struct Counter {
    runs: Arc<AtomicU32>,
    effects: Arc<AtomicU32>,
    spawned: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Counter {
    fn run(&self) -> u32 {
        self.runs.fetch_add(1, Ordering::SeqCst) + 1
    }

    async fn effect(&self) -> u32 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        self.effects.fetch_add(1, Ordering::SeqCst) + 1
    }
}

#[tool_router]
impl Counter {
    #[tool(description = "A step between two questions")]
    async fn step(&self, elicit: Elicit) -> Result<String, ElicitError> {
        self.run();
        let one = elicit.choose("One?", ["a", "b"]).await?;
        let effect = elicit.step("effect", || self.effect()).await?;
        let two = elicit.choose("Two?", ["a", "b"]).await?;
        let again = elicit.step("effect", || self.effect()).await?;
        Ok(format!("{one}{effect}{two}{again}"))
    }

    #[tool(description = "A step beside a question")]
    async fn beside(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let (choice, effect) = tokio::join!(
            elicit.choose("One?", ["a", "b"]),
            elicit.step("effect", || self.effect())
        );
        Ok(format!("{}{}", choice?, effect?))
    }

    #[tool(description = "Waits for something else before it asks")]
    async fn waits(&self, elicit: Elicit) -> Result<String, ElicitError> {
        tokio::time::sleep(Duration::from_secs(60)).await;
        elicit.choose("One?", ["a", "b"]).await
    }

    #[tool(description = "Two branches whose order changes from run to run")]
    async fn order(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let (mut first, mut second) = (Duration::from_millis(1), Duration::from_millis(2));
        if self.run().is_multiple_of(2) {
            std::mem::swap(&mut first, &mut second);
        }
        // In a step, so that both branches reach their question before the run is abandoned.
        let wait = |name: &'static str, elicit: Elicit, time| async move {
            elicit.step(name, || tokio::time::sleep(time)).await?;
            elicit.choose(format!("{name}?"), ["a", "b"]).await
        };
        let (left, right) = tokio::join!(
            wait("left", elicit.clone(), first),
            wait("right", elicit.clone(), second)
        );
        Ok(format!("{}{}", left?, right?))
    }

    #[tool(description = "Spawns the question")]
    async fn spawns(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let spawned = Arc::clone(&self.spawned);
        let asking = tokio::spawn(async move {
            let answer = elicit.choose("One?", ["a", "b"]).await;
            spawned.lock().unwrap().push(format!("{answer:?}"));
            answer
        });
        asking.await.unwrap()
    }

    #[tool(description = "Counts how often its question is looked at")]
    async fn looks(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let mut asking = std::pin::pin!(elicit.choose("One?", ["a", "b"]).into_future());
        std::future::poll_fn(|context| {
            self.effects.fetch_add(1, Ordering::SeqCst);
            asking.as_mut().poll(context)
        })
        .await
    }

    #[tool(description = "Asks until it is told to stop")]
    async fn endless(&self, elicit: Elicit) -> Result<String, ElicitError> {
        loop {
            elicit.choose("More?", ["a", "b"]).await?;
        }
    }

    #[tool(description = "A question that gives way to a timer")]
    async fn gives_way(&self, elicit: Elicit) -> Result<String, ElicitError> {
        tokio::select! {
            biased;
            () = std::future::ready(()) => {}
            answer = async { elicit.choose("Never?", ["a"]).await } => return answer,
        }
        elicit.choose("One?", ["a", "b"]).await
    }
}

#[tool_handler]
impl ServerHandler for Counter {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn choice(letter: &str) -> Act {
    Act::Accept(json!({ "choice": letter }))
}

#[tokio::test(start_paused = true)]
async fn a_step_runs_once_however_often_the_handler_runs() {
    let server = Counter::default();
    let person = ScriptedUser::answering("2026-07-28", [choice("a"), choice("b")]);
    let result = person.call(server.clone(), "step").await.unwrap();
    assert_eq!(said(&result).0, "a1b2");
    assert_eq!(server.runs.load(Ordering::SeqCst), 3);
    assert_eq!(
        server.effects.load(Ordering::SeqCst),
        2,
        "two steps of one name are two steps"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_is_not_given_up_in_the_middle_of_a_step() {
    let server = Counter::default();
    let person = ScriptedUser::answering("2026-07-28", [choice("b")]);
    assert_eq!(
        said(&person.call(server.clone(), "beside").await.unwrap()).0,
        "b1"
    );
    assert_eq!(server.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_on_nothing_else_is_given_up_at_once() {
    let server = Counter::default();
    let person = ScriptedUser::answering("2026-07-28", [choice("b")]);
    assert_eq!(
        said(&person.call(server.clone(), "looks").await.unwrap()).0,
        "b"
    );
    assert_eq!(server.effects.load(Ordering::SeqCst), 2, "one in each run");
}

#[tokio::test(start_paused = true)]
async fn waiting_on_something_else_is_left_alone() {
    let person = ScriptedUser::answering("2026-07-28", [choice("b")]);
    assert_eq!(
        said(&person.call(Counter::default(), "waits").await.unwrap()).0,
        "b"
    );
}

#[tokio::test(start_paused = true)]
async fn branches_in_another_order_find_their_own_answers() {
    let server = Counter::default();
    let person = ScriptedUser::answering("2026-07-28", []);
    let client = person
        .meet(server.clone().eliciting(person.clock.settings()))
        .await;
    let request = CallToolRequestParams::new("order");
    let (requests, state) = required(once(&client, &request).await.unwrap());
    assert_eq!(requests.len(), 2, "both branches ask in one round");
    let answers = requests.iter().map(|(key, request)| {
        let left = serde_json::to_string(request).unwrap().contains("left?");
        (
            key.clone(),
            json!({ "choice": if left { "a" } else { "b" } }),
        )
    });
    let answers: Vec<_> = answers.collect();
    assert_eq!(
        complete(
            once(&client, &retry(&request, &state, answers))
                .await
                .unwrap()
        ),
        "ab"
    );
}

#[tokio::test(start_paused = true)]
async fn a_spawned_question_ends_with_the_run() {
    let server = Counter::default();
    let person = ScriptedUser::answering("2026-07-28", [choice("b")]);
    assert_eq!(
        said(&person.call(server.clone(), "spawns").await.unwrap()).0,
        "b"
    );
    assert_eq!(
        *server.spawned.lock().unwrap(),
        ["Err(Suspended)", "Ok(\"b\")"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_dropped_is_not_put() {
    let person = ScriptedUser::answering("2026-07-28", [choice("a")]);
    assert_eq!(
        said(&person.call(Counter::default(), "gives_way").await.unwrap()).0,
        "a"
    );
    assert_eq!(person.messages(), ["One?"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_answered_is_asked_again_and_what_was_never_asked_is_ignored() {
    let person = ScriptedUser::answering("2026-07-28", []);
    let client = person
        .meet(crate::asker::Asker.eliciting(person.clock.settings()))
        .await;
    let request = CallToolRequestParams::new("both");
    let (requests, state) = required(once(&client, &request).await.unwrap());
    let one = requests
        .iter()
        .find(|(_, request)| serde_json::to_string(request).unwrap().contains("One?"))
        .unwrap();
    let replies = [
        (one.0.clone(), json!({ "choice": "b" })),
        ("never-asked".to_owned(), json!({ "choice": "d" })),
        ("q-AAAA".to_owned(), json!({ "choice": "d" })),
    ];
    let (left, state) = required(
        once(&client, &retry(&request, &state, replies))
            .await
            .unwrap(),
    );
    assert_eq!(left.len(), 1);
    let (key, question) = left.iter().next().unwrap();
    assert!(serde_json::to_string(question).unwrap().contains("Two?"));
    assert!(
        requests.contains_key(key),
        "the same question keeps its key"
    );
    let replies = [(key.clone(), json!({ "choice": "c" }))];
    assert_eq!(
        complete(
            once(&client, &retry(&request, &state, replies))
                .await
                .unwrap()
        ),
        "bc"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_has_a_limit_of_questions() {
    for revision in crate::harness::REVISIONS {
        let person =
            ScriptedUser::answering(revision, std::iter::repeat_with(|| choice("a")).take(60));
        let settings = person.clock.settings().questions_per_call(8);
        let error = person
            .call_under(Counter::default().eliciting(settings), "endless")
            .await
            .unwrap_err();
        assert_eq!(error.code.0, -32000, "{revision}: {error:?}");
        assert_eq!(person.asked().len(), 8, "{revision}");
    }
}
