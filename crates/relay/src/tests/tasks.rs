//! Calls that become tasks (tasks extension of 2026-07-28): the client answers their questions with `tasks/update`, and only those that
//! no rule gives to others, or refuses.

use std::sync::Arc;

use mcp_elicit_core::wire::{Capability, Revision};
use serde_json::{Value, json};

use super::candidates::ByTool;
use super::world::{Asks, World};
use crate::RelaySettings;

const REVISION: Revision = Revision::V2026_07_28;

/// An open session with rules by the tool's name, in which the test itself speaks for the client and the server.
fn session() -> (World, Arc<ByTool>) {
    let rules = Arc::new(ByTool::default());
    let settings = RelaySettings {
        decisions: Some(rules.clone()),
        ..RelaySettings::default()
    };
    let mut world = World::with(
        settings,
        REVISION,
        Capability::FORM,
        REVISION,
        Asks::Nothing,
    )
    .opened();
    world.people = None;
    (world, rules)
}

/// The client sends a request; returns what reaches the server of it.
fn request(world: &mut World, id: u64, method: &str, mut params: Value) -> Option<Value> {
    params["_meta"] = world.client.meta();
    world.to_server.clear();
    world.to_client.clear();
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    world.client_sends(&frame.to_string());
    let sent = world.to_server.pop_back()?;
    Some(serde_json::from_str(&sent).unwrap())
}

/// The server answers a request; returns what the client is told.
fn answers(world: &mut World, id: u64, result: &Value) -> Value {
    world.server_sends(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    told(world)
}

fn told(world: &mut World) -> Value {
    let (_, frame) = world.to_client.pop_back().expect("the client is told");
    serde_json::from_str(&frame).unwrap()
}

/// The status of a task that asks.
fn status(task: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Where?", "requestedSchema": schema});
    json!({"resultType": "complete", "taskId": task, "status": "input_required",
        "inputRequests": {"who": {"method": "elicitation/create", "params": params}}})
}

/// A call of this tool became this task.
fn becomes_task(world: &mut World, id: u64, tool: &str, task: &str) {
    request(
        world,
        id,
        "tools/call",
        json!({"name": tool, "arguments": {"of": id}}),
    );
    let begun = json!({"resultType": "task", "taskId": task, "status": "working"});
    assert_eq!(answers(world, id, &begun)["result"]["taskId"], task);
}

fn update(world: &mut World, id: u64, task: &str) -> Option<Value> {
    let answer = json!({"who": {"action": "accept", "content": {"name": "production"}}});
    let params = json!({"taskId": task, "inputResponses": answer});
    request(world, id, "tasks/update", params)
}

#[test]
fn a_question_of_a_task_that_a_rule_gives_to_others_is_not_shown_and_takes_no_answer() {
    for tool in ["deploy", "never"] {
        let (mut world, rules) = session();
        becomes_task(&mut world, 11, tool, "t-1");
        assert!(request(&mut world, 12, "tasks/get", json!({"taskId": "t-1"})).is_some());
        let said = answers(&mut world, 12, &status("t-1"));
        let why = said["error"]["message"].as_str().expect("an error");
        assert!(why.contains("nobody is asked"), "{said}");
        assert!(!said.to_string().contains("Where?"), "{said}");
        let noted = rules.not_asked.lock().unwrap().clone();
        let expected = [Some("deploy".to_owned())];
        assert_eq!(noted, &expected[..usize::from(tool == "deploy")]);
        assert_eq!(update(&mut world, 13, "t-1"), None, "{tool}");
        let refused = told(&mut world);
        let why = refused["error"]["message"].as_str().expect("an error");
        assert!(why.contains("tasks/get"), "{refused}");
        assert_eq!(world.relay.open(), (0, 0));
    }
}

#[test]
fn a_task_tells_its_questions_in_no_other_way() {
    let (mut world, _) = session();
    becomes_task(&mut world, 11, "deploy", "t-1");
    world.to_client.clear();
    let notice =
        json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": status("t-1")});
    world.server_sends(&notice.to_string());
    assert!(world.to_client.is_empty(), "{:?}", world.to_client);
    // The response that begins a task may hold them already.
    request(&mut world, 12, "tools/call", json!({"name": "deploy"}));
    let mut begun = status("t-2");
    begun["resultType"] = json!("task");
    assert!(answers(&mut world, 12, &begun)["error"].is_object());
    assert_eq!(update(&mut world, 13, "t-2"), None);
}

#[test]
fn a_task_of_an_unknown_call_is_judged_as_one_of_which_nothing_is_known() {
    let (mut world, _) = session();
    request(&mut world, 12, "tasks/get", json!({"taskId": "t-9"}));
    assert!(answers(&mut world, 12, &status("t-9"))["error"].is_object());
    assert_eq!(update(&mut world, 13, "t-9"), None);
}

#[test]
fn the_caller_answers_the_questions_of_a_task_that_are_its_own_and_those_alone() {
    let (mut world, _) = session();
    becomes_task(&mut world, 11, "read", "t-1");
    assert_eq!(update(&mut world, 12, "t-1"), None, "it was not shown yet");
    request(&mut world, 13, "tasks/get", json!({"taskId": "t-1"}));
    let said = answers(&mut world, 13, &status("t-1"));
    assert_eq!(said["result"], status("t-1"));
    let other = json!({"other": {"action": "accept"}});
    let params = json!({"taskId": "t-1", "inputResponses": other});
    assert_eq!(request(&mut world, 14, "tasks/update", params), None);
    let spelled = json!({"taskId": "t-1", "InputResponses": {"who": {"action": "accept"}}});
    assert_eq!(request(&mut world, 15, "tasks/update", spelled), None);
    let sent = update(&mut world, 16, "t-1").expect("it reaches the server");
    assert_eq!(sent["params"]["inputResponses"]["who"]["action"], "accept");
}
