//! Calls that the gateway runs as tasks for a client of 2025-11-25: a real gateway, the demo server, a raw client. And the
//! tasks of a server, whose questions people are asked.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod example;
mod raw;
#[path = "raw/waiting.rs"]
mod waiting;

use std::path::Path;

use example::{conformance_server, listening};
use mcp_elicit_testkit::peers;
use raw::{DEMO_SERVER, PROGRAM, Raw, call, gateway, inbox, text};
use serde_json::{Value, json};
use waiting::{LOOK, LOOKS, waiting};

/// Starts a gateway over this state folder for a client that knows tasks.
fn start(state: &Path) -> Raw {
    let mut raw = Raw::start(gateway(state, &["--tasks"], &DEMO_SERVER));
    let tasks = json!({"tasks": {"requests": {"elicitation": {"create": {}}}}});
    let opened = raw.initialize("2025-11-25", &tasks);
    let call = opened.pointer("/result/capabilities/tasks/requests/tools/call");
    assert!(call.is_some(), "{opened}");
    raw
}

fn ask(raw: &mut Raw, id: u64, method: &str, params: &Value) -> Value {
    raw.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    raw.result(id)
}

/// Calls the demo server's tool as a task. Returns the task's id.
fn begin(raw: &mut Raw, id: u64) -> String {
    let mut frame = call(id, "deploy", &json!({}));
    frame["params"]["task"] = json!({"ttl": 600_000});
    raw.send(&frame);
    let created = raw.result(id);
    let task = &created["result"]["task"];
    assert_eq!(task["status"], "working", "{created}");
    task["taskId"].as_str().unwrap().to_owned()
}

fn about(task: &str) -> Value {
    json!({"taskId": task})
}

#[test]
fn a_task_waits_for_a_person_and_its_result_outlives_the_gateway() {
    let state = tempfile::tempdir().unwrap();
    let mut raw = start(state.path());
    let task = begin(&mut raw, 2);
    let question = waiting(state.path());
    let asks = ask(&mut raw, 3, "tasks/get", &about(&task));
    assert_eq!(asks["result"]["status"], "input_required", "{asks}");
    let message = asks["result"]["statusMessage"].as_str().unwrap();
    assert!(message.contains("http://127.0.0.1:"), "{message}");
    raw.send(&json!({"jsonrpc": "2.0", "id": 4, "method": "tasks/result", "params": about(&task)}));
    assert!(inbox(state.path(), &["accept", &question, "environment=staging"]).0);
    let done = raw.result(4);
    assert!(text(&done).contains("staging"), "{done}");
    let related = &done["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], json!(task));
    drop(raw);

    let mut next = start(state.path());
    let known = ask(&mut next, 3, "tasks/get", &about(&task));
    assert_eq!(known["result"]["status"], "completed", "{known}");
    assert_eq!(known["result"]["ttl"], 600_000);
    let again = ask(&mut next, 4, "tasks/result", &about(&task));
    assert_eq!(again["result"], done["result"]);
}

#[test]
fn a_cancelled_task_has_no_question_any_more() {
    let state = tempfile::tempdir().unwrap();
    let mut raw = start(state.path());
    let task = begin(&mut raw, 2);
    waiting(state.path());
    let cancelled = ask(&mut raw, 3, "tasks/cancel", &about(&task));
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    let (_, open) = inbox(state.path(), &["list"]);
    assert!(open.is_empty(), "{open:?}");
    // A call without `task` is a call.
    raw.call(4, "deploy", &json!({}));
    let question = waiting(state.path());
    assert!(inbox(state.path(), &["accept", &question, "environment=staging"]).0);
    let done = raw.result(4);
    assert!(text(&done).contains("staging"), "{done}");
}

#[test]
fn a_task_whose_gateway_was_killed_has_failed_and_the_call_made_again_finds_its_question() {
    let state = tempfile::tempdir().unwrap();
    let mut raw = start(state.path());
    let task = begin(&mut raw, 2);
    let question = waiting(state.path());
    raw.child.kill().unwrap();
    raw.child.wait().unwrap();

    let mut next = start(state.path());
    let failed = ask(&mut next, 3, "tasks/get", &about(&task));
    assert_eq!(failed["result"]["status"], "failed", "{failed}");
    assert!(inbox(state.path(), &["accept", &question, "environment=staging"]).0);
    let again = begin(&mut next, 4);
    let done = ask(&mut next, 5, "tasks/result", &about(&again));
    assert!(text(&done).contains("staging"), "{done}");
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    assert_eq!(ended.len(), 1, "it was not asked twice: {ended:?}");
}

#[test]
fn another_gateway_of_the_record_answers_for_a_task() {
    let state = tempfile::tempdir().unwrap();
    let mut first = start(state.path());
    let task = begin(&mut first, 2);
    let question = waiting(state.path());
    let mut second = start(state.path());
    let asks = ask(&mut second, 3, "tasks/get", &about(&task));
    assert_eq!(asks["result"]["status"], "input_required", "{asks}");
    second.send(
        &json!({"jsonrpc": "2.0", "id": 4, "method": "tasks/result", "params": about(&task)}),
    );
    assert!(inbox(state.path(), &["accept", &question, "environment=staging"]).0);
    let done = second.result(4);
    assert!(text(&done).contains("staging"), "{done}");
}

#[test]
fn another_gateway_of_the_record_cancels_a_task() {
    let state = tempfile::tempdir().unwrap();
    let mut first = start(state.path());
    let task = begin(&mut first, 2);
    waiting(state.path());
    let mut second = start(state.path());
    let cancelled = ask(&mut second, 3, "tasks/cancel", &about(&task));
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    let there = ask(&mut first, 4, "tasks/get", &about(&task));
    assert_eq!(there["result"]["status"], "cancelled", "{there}");
    let (_, open) = inbox(state.path(), &["list"]);
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_typescript_sdk_runs_a_call_as_a_task() {
    let Some(client) = peers::node_script("ts1-tasks.mjs") else {
        return;
    };
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().to_str().unwrap();
    let gateway = [
        PROGRAM,
        "gateway",
        "--state",
        folder,
        "--inbox",
        "127.0.0.1:0",
        "--tasks",
    ];
    let client = client
        .with(["deploy", "--"])
        .with(gateway)
        .with(DEMO_SERVER);
    let told = std::thread::scope(|scope| {
        let run = scope.spawn(|| client.run());
        let question = waiting(state.path());
        assert!(inbox(state.path(), &["accept", &question, "environment=staging"]).0);
        run.join().unwrap()
    });
    let steps: Vec<Value> = (told.stdout.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&Value> = steps.iter().map(|step| &step["type"]).collect();
    assert_eq!(
        kinds.first(),
        Some(&&json!("taskCreated")),
        "{steps:?} {}",
        told.stderr
    );
    let last = steps.last().unwrap();
    assert_eq!(last["type"], "result", "{steps:?}");
    assert!(text(last).contains("staging"), "{last}");
}

/// Returns the params of a client of 2026-07-28 that knows tasks and shows no questions.
fn with_tasks(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    params
}

#[test]
fn a_question_inside_a_servers_own_task_reaches_the_inbox() {
    let (_server, url) = listening(&conformance_server());
    let state = tempfile::tempdir().unwrap();
    let mut raw = Raw::start(gateway(state.path(), &[], &["--upstream", &url]));
    let params = with_tasks(json!({"name": "confirm_delete", "arguments": {}}));
    let begun = ask(&mut raw, 2, "tools/call", &params);
    let task = begun["result"]["taskId"].as_str();
    let about = with_tasks(about(task.unwrap_or_else(|| panic!("no task: {begun}"))));
    let mut id = 2;
    let mut read_until = |raw: &mut Raw, is_there: &dyn Fn(&Value) -> bool| {
        for _ in 0..LOOKS {
            id += 1;
            let told = ask(raw, id, "tasks/get", &about);
            if is_there(&told["result"]) {
                return told;
            }
            assert_eq!(told["result"]["status"], "working", "{told}");
            std::thread::sleep(LOOK);
        }
        panic!("the task stays as it is");
    };
    let has_address = |status: &Value| {
        let message = status["statusMessage"].as_str().unwrap_or_default();
        message.contains("http://127.0.0.1:")
    };
    let told = read_until(&mut raw, &has_address);
    assert!(told["result"]["inputRequests"].is_null(), "{told}");
    let question = waiting(state.path());
    assert!(inbox(state.path(), &["accept", &question, "confirm=true"]).0);
    let done = read_until(&mut raw, &|status| status["status"] == "completed");
    let text = &done["result"]["result"]["content"][0]["text"];
    assert_eq!(text, "deleted file.txt", "{done}");
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    assert_eq!(ended.len(), 1, "it was asked once: {ended:?}");
}
