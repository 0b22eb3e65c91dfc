//! Asking inside a task: `tasks/get` shows the question, `tasks/update` answers it.

use std::time::Duration;

use mcp_elicit_server::testing::ScriptedUser;
use mcp_elicit_server::{Elicit, ElicitError, ServerSettings};
use rmcp::model::{CallToolResult, ContentBlock, InputRequests, Task, TaskPayload};
use rmcp::task_manager::{TaskManager, TaskOptions};
use serde_json::{Value, json};

/// A task that asks one question, and another if the answer is `a`.
fn spawn(manager: &TaskManager) -> Task {
    let elicit = ScriptedUser::answering([])
        .under(ServerSettings::default().timeout(Duration::from_secs(60)))
        .elicit();
    let its = manager.clone();
    manager.spawn(TaskOptions::new(), move |task| {
        Box::pin(async move {
            let elicit = elicit.in_task(&its, &task);
            work(&elicit).await.or_else(ElicitError::into_task_result)
        })
    })
}

async fn work(elicit: &Elicit) -> Result<CallToolResult, ElicitError> {
    let mut words = elicit.choose("One?", ["a", "b"]).key("one").await?;
    if words == "a" {
        words += &elicit.choose("Two?", ["c", "d"]).key("one").await?;
    }
    Ok(CallToolResult::success(vec![ContentBlock::text(words)]))
}

async fn payload(manager: &TaskManager, task: &Task) -> TaskPayload {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    manager.get_task(&task.task_id).unwrap().payload
}

async fn asked(manager: &TaskManager, task: &Task) -> InputRequests {
    match payload(manager, task).await {
        TaskPayload::InputRequired { input_requests } => input_requests,
        other => panic!("nothing asked: {other:?}"),
    }
}

fn answer(manager: &TaskManager, task: &Task, key: &str, reply: Value) {
    manager
        .update_task(&task.task_id, [(key.to_owned(), reply)])
        .unwrap();
}

fn accept(choice: &str) -> Value {
    json!({ "action": "accept", "content": { "choice": choice } })
}

#[tokio::test(start_paused = true)]
async fn questions_show_and_are_answered_one_after_the_other() {
    let manager = TaskManager::new();
    let task = spawn(&manager);
    assert!(asked(&manager, &task).await.contains_key("one"));
    answer(&manager, &task, "one", accept("x"));
    // A wrong answer: asked again, under another key, because a task never uses a key twice.
    let again = asked(&manager, &task).await;
    assert!(
        serde_json::to_string(&again["one-2"])
            .unwrap()
            .contains("cannot be used")
    );
    answer(&manager, &task, "one-2", accept("a"));
    assert!(asked(&manager, &task).await.contains_key("one-3"));
    answer(&manager, &task, "one-3", accept("d"));
    let TaskPayload::Completed { result } = payload(&manager, &task).await else {
        panic!("not completed")
    };
    assert_eq!(result["content"][0]["text"], "ad");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_completes_the_task_with_an_error_the_model_can_read() {
    let manager = TaskManager::new();
    let task = spawn(&manager);
    asked(&manager, &task).await;
    answer(&manager, &task, "one", json!({ "action": "decline" }));
    let TaskPayload::Completed { result } = payload(&manager, &task).await else {
        panic!("not completed")
    };
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["content"][0]["text"],
        "The user declined to answer \"One?\"."
    );
}

#[tokio::test(start_paused = true)]
async fn silence_fails_the_task_and_a_cancelled_task_is_cancelled() {
    let manager = TaskManager::new();
    let task = spawn(&manager);
    asked(&manager, &task).await;
    tokio::time::sleep(Duration::from_secs(2 * 60)).await;
    let TaskPayload::Failed { error } = payload(&manager, &task).await else {
        panic!("not failed")
    };
    assert_eq!(error["code"], -32000);

    let task = spawn(&manager);
    asked(&manager, &task).await;
    manager.cancel_task(&task.task_id).unwrap();
    assert!(matches!(
        payload(&manager, &task).await,
        TaskPayload::Cancelled
    ));
}

/// A question that was not answered in time is dropped: the task continues, and the client no longer gets the question.
#[tokio::test(start_paused = true)]
async fn a_question_that_timed_out_is_off_the_list() {
    let manager = TaskManager::new();
    let its = manager.clone();
    let elicit = ScriptedUser::answering([]).elicit();
    let task = manager.spawn(TaskOptions::new().with_ttl_ms(None), move |task| {
        Box::pin(async move {
            let elicit = elicit.in_task(&its, &task);
            let late = elicit
                .confirm("First?")
                .key("first")
                .timeout(Duration::from_secs(60))
                .await;
            assert!(
                matches!(late, Err(ElicitError::TimedOut { .. })),
                "{late:?}"
            );
            tokio::time::sleep(Duration::from_secs(60)).await;
            // The losing branch of a `select!` drops its question too.
            tokio::select! {
                biased;
                _ = elicit.confirm("Second?").key("second") => {}
                () = tokio::time::sleep(Duration::from_secs(60)) => {}
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(CallToolResult::success(vec![]))
        })
    });
    for key in ["first", "second"] {
        assert!(asked(&manager, &task).await.contains_key(key));
        tokio::time::sleep(Duration::from_secs(61)).await;
        let now = payload(&manager, &task).await;
        assert!(matches!(now, TaskPayload::Working), "{key}: {now:?}");
        // Too late: no question waits for it any more.
        answer(&manager, &task, key, accept("a"));
        tokio::time::sleep(Duration::from_secs(59)).await;
    }
}
