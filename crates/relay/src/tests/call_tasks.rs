//! Calls that the gateway runs as tasks of its client: those that a client of 2025-11-25 makes as tasks, before a server that
//! has none, and held calls of a client that declares the extension for 2026-07-28.

use std::time::Duration;

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::{Audience, CallId, ClientForward, Event, RelaySettings, StreamId};

const CLIENT: Revision = Revision::V2025_11_25;
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn settings() -> RelaySettings {
    RelaySettings {
        tasks: true,
        ..RelaySettings::default()
    }
}

/// Returns an open session of a client that declared tasks.
fn opened(settings: RelaySettings, capability: Capability, server: Revision, asks: Asks) -> World {
    let mut world = World::with(settings, CLIENT, capability, server, asks);
    world.client.has_tasks = true;
    world.people = None;
    world.opened()
}

/// Sends a request of the client on this stream, and runs until nothing is pending.
fn sends_on(world: &mut World, stream: StreamId, id: u64, method: &str, params: &Value) {
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
    let forward = world
        .relay
        .client_frame(world.now, stream, frame.as_bytes());
    if let ClientForward::AsIs(_) = forward {
        world.to_server.push_back(frame);
    }
    world.effects();
}

/// Sends a request of the client, and runs until nothing is pending. Returns the response, if there is one.
fn sends(world: &mut World, id: u64, method: &str, params: &Value) -> Option<Value> {
    sends_on(world, StreamId::SESSION, id, method, params);
    settle(world, id)
}

/// Runs until nothing is pending, while the client answers nothing. Returns the response under this id.
fn settle(world: &mut World, id: u64) -> Option<Value> {
    let mut found = None;
    loop {
        world.run_record();
        if let Some((_, frame)) = world.to_client.pop_front() {
            let frame: Value = serde_json::from_str(&frame).unwrap();
            if frame["id"] == json!(id) && frame.get("method").is_none() {
                assert!(found.is_none(), "two responses: {frame}");
                found = Some(frame);
            }
        } else if let Some(frame) = world.to_server.pop_front() {
            for sent in world.server.receive(&frame) {
                world.server_sends(&sent);
            }
        } else {
            return found;
        }
    }
}

/// Begins a task. Returns its id.
fn begin(world: &mut World, id: u64, task: &Value) -> String {
    let params = json!({"name": "ask", "arguments": {"n": id}, "task": task});
    let created = sends(world, id, "tools/call", &params).expect("the task is created");
    let task = &created["result"]["task"];
    assert_eq!(task["status"], "working", "{created}");
    let id = task["taskId"].as_str().unwrap().to_owned();
    assert!(id.starts_with("mcp-elicit.t1."), "{id}");
    id
}

fn about(task: &str) -> Value {
    json!({"taskId": task})
}

fn get(world: &mut World, id: u64, task: &str) -> Value {
    sends(world, id, "tasks/get", &about(task)).unwrap()
}

#[test]
fn a_held_call_is_a_task_until_people_have_answered() {
    for server in Revision::ALL {
        if server == Revision::V2025_06_18 {
            continue;
        }
        let mut world = opened(settings(), Capability::NONE, server, Asks::Form);
        let declared = &world.client.opened.as_ref().unwrap()["result"]["capabilities"]["tasks"];
        let expected = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
        assert_eq!(declared, &expected, "{server}");
        let task = begin(&mut world, 50, &json!({}));
        let sent = &world.server.seen;
        assert!(
            sent.iter()
                .all(|frame| frame["params"].get("task").is_none())
        );
        let state = get(&mut world, 51, &task);
        assert_eq!(
            state["result"]["status"], "input_required",
            "{server}: {state}"
        );
        let message = state["result"]["statusMessage"].as_str().unwrap();
        assert!(message.contains("http://inbox/"), "{message}");
        assert_eq!(state["result"]["createdAt"], "1970-01-01T00:16:40.000Z");
        assert_eq!(state["result"]["pollInterval"], 5_000);

        // No time hands it back.
        assert_eq!(sends(&mut world, 52, "tasks/result", &about(&task)), None);
        world.pass_time(Duration::from_secs(600));
        assert_eq!(settle(&mut world, 52), None);
        let record = world.open_to_people()[0].clone();
        assert!(world.answer(&record, Action::Accept));
        let result = settle(&mut world, 52).expect("the result");
        assert_eq!(
            result["result"]["content"][0]["text"], "accept:Ada",
            "{server}"
        );
        assert_eq!(result["result"]["_meta"][RELATED]["taskId"], json!(task));

        let state = get(&mut world, 53, &task);
        assert_eq!(state["result"]["status"], "completed", "{state}");
        assert_eq!(state["result"]["lastUpdatedAt"], "1970-01-01T00:26:40.000Z");
        let again = sends(&mut world, 54, "tasks/result", &about(&task)).unwrap();
        assert_eq!(again["result"], result["result"]);
        let late = sends(&mut world, 55, "tasks/cancel", &about(&task)).unwrap();
        assert_eq!(late["error"]["code"], -32602, "{late}");
        assert_eq!(world.relay.open(), (0, 0));

        // Without a wish of the client, a result is kept as long as that of a call that was handed back.
        world.pass_time(settings().keep_results + Duration::from_secs(1));
        let gone = get(&mut world, 56, &task);
        assert_eq!(gone["error"]["code"], -32602, "{gone}");
        assert!(world.tasks.is_empty());
    }
}

#[test]
fn a_cancelled_task_withdraws_its_question_and_stays_cancelled() {
    let mut world = opened(settings(), Capability::NONE, CLIENT, Asks::Form);
    let task = begin(&mut world, 50, &json!({"ttl": 3_600_000}));
    assert_eq!(world.open_to_people().len(), 1);
    assert_eq!(sends(&mut world, 51, "tasks/result", &about(&task)), None);
    sends_on(
        &mut world,
        StreamId::SESSION,
        52,
        "tasks/cancel",
        &about(&task),
    );
    let told = world
        .to_server
        .iter()
        .any(|frame| frame.contains("notifications/cancelled"));
    assert!(told, "{:?}", world.to_server);
    let cancelled = settle(&mut world, 52).unwrap();
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert!(world.open_to_people().is_empty());
    let state = get(&mut world, 53, &task);
    assert_eq!(state["result"]["status"], "cancelled");
    // What has ended is kept for no longer than other results.
    let kept = state["result"]["ttl"].as_u64().map(Duration::from_millis);
    assert_eq!(kept, Some(settings().keep_results), "{state}");
    let result = sends(&mut world, 54, "tasks/result", &about(&task)).unwrap();
    assert_eq!(result["error"]["message"], "the task was cancelled");
    let again = sends(&mut world, 55, "tasks/cancel", &about(&task)).unwrap();
    assert_eq!(again["error"]["code"], -32602);
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn a_request_for_the_result_ends_with_the_task() {
    let mut world = opened(settings(), Capability::NONE, CLIENT, Asks::Form);
    let task = begin(&mut world, 50, &json!({}));
    assert_eq!(sends(&mut world, 51, "tasks/result", &about(&task)), None);
    sends_on(
        &mut world,
        StreamId::SESSION,
        52,
        "tasks/cancel",
        &about(&task),
    );
    world.run_record();
    let answered: Vec<Value> = (world.to_client.iter())
        .map(|(_, frame)| serde_json::from_str(frame).unwrap())
        .collect();
    let waited = answered.iter().find(|frame| frame["id"] == 51).unwrap();
    assert_eq!(waited["error"]["message"], "the task was cancelled");
}

#[test]
fn a_task_ends_with_its_ttl_and_its_question_is_withdrawn() {
    let mut world = opened(settings(), Capability::NONE, CLIENT, Asks::Form);
    let task = begin(&mut world, 50, &json!({"ttl": 30_000}));
    world.pass_time(Duration::from_secs(31));
    assert!(world.open_to_people().is_empty());
    let gone = get(&mut world, 51, &task);
    assert_eq!(gone["error"]["code"], -32602);
    assert_eq!(world.relay.open(), (0, 0));
    // A ttl is bounded by the time that a question may be open.
    let task = begin(&mut world, 52, &json!({"ttl": 1e15}));
    let longest = settings().open_for + settings().keep_results;
    let ttl = get(&mut world, 53, &task)["result"]["ttl"].as_u64();
    assert_eq!(ttl.map(u128::from), Some(longest.as_millis()));
    for ttl in [json!(-1), json!("long")] {
        let params = json!({"name": "ask", "arguments": {}, "task": {"ttl": ttl}});
        let refused = sends(&mut world, 54, "tools/call", &params).unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let params = json!({"name": "ask", "arguments": {}, "task": true});
    let refused = sends(&mut world, 55, "tools/call", &params).unwrap();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn tasks_are_independent_of_each_other_and_of_the_same_call() {
    let mut world = opened(settings(), Capability::NONE, CLIENT, Asks::Form);
    let call = json!({"name": "ask", "arguments": {"n": 1}});
    let mut as_task = call.clone();
    as_task["task"] = json!({});
    let first = sends(&mut world, 50, "tools/call", &as_task).unwrap();
    world.pass_time(Duration::from_secs(5));
    let second = sends(&mut world, 51, "tools/call", &as_task).unwrap();
    let id = |created: &Value| {
        created["result"]["task"]["taskId"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (first, second) = (id(&first), id(&second));
    assert_ne!(first, second);
    assert_eq!(world.open_to_people().len(), 2);
    sends(&mut world, 52, "tasks/cancel", &about(&first)).unwrap();
    assert_eq!(world.open_to_people().len(), 1);
    let state = get(&mut world, 53, &second);
    assert_eq!(state["result"]["status"], "input_required");
}

#[test]
fn the_clients_own_dialog_comes_with_the_request_for_the_result() {
    let settings = RelaySettings {
        client_streams: true,
        ..settings()
    };
    let mut world = opened(settings, Capability::BOTH, CLIENT, Asks::Form);
    let task = begin(&mut world, 50, &json!({}));
    let state = get(&mut world, 51, &task);
    assert_eq!(state["result"]["status"], "input_required", "{state}");
    let stream = StreamId::of_request(7, world.proof);
    sends_on(&mut world, stream, 52, "tasks/result", &about(&task));
    world.run_record();
    let (to, dialog) = world.to_client.pop_back().expect("the dialog");
    assert_eq!(to, stream);
    let dialog: Value = serde_json::from_str(&dialog).unwrap();
    assert_eq!(dialog["method"], "elicitation/create");
    assert_eq!(dialog["params"]["_meta"][RELATED]["taskId"], json!(task));
    world.pass_time(Duration::from_secs(5));
    let answer = json!({"jsonrpc": "2.0", "id": dialog["id"],
        "result": {"action": "accept", "content": {"name": "Ada"}}});
    world.client_sends(&answer.to_string());
    let result = settle(&mut world, 52).unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "accept:Ada");
}

#[test]
fn a_dialog_waits_until_the_record_has_named_its_task() {
    for client_streams in [false, true] {
        let settings = RelaySettings {
            client_streams,
            ..settings()
        };
        let mut world = opened(settings, Capability::BOTH, CLIENT, Asks::Form);
        let params = json!({"name": "ask", "arguments": {}, "task": {}});
        sends_on(&mut world, StreamId::SESSION, 50, "tools/call", &params);
        let begun = world.events.pop_front().expect("the task is written");
        assert!(matches!(begun, Event::TaskBegun { .. }));
        assert_eq!(settle(&mut world, 50), None);
        world.tell(begun);
        let read = |frame: &str| serde_json::from_str::<Value>(frame).unwrap();
        let (_, created) = world.to_client.pop_front().expect("the task is created");
        let task = read(&created)["result"]["task"]["taskId"].clone();
        let stream = if client_streams {
            assert!(world.to_client.is_empty(), "no request can carry it");
            let stream = StreamId::of_request(7, world.proof);
            let about = json!({"taskId": task});
            sends_on(&mut world, stream, 52, "tasks/result", &about);
            world.run_record();
            stream
        } else {
            StreamId::SESSION
        };
        let (to, dialog) = world.to_client.pop_front().expect("the dialog");
        assert_eq!(to, stream);
        let dialog = read(&dialog);
        assert_eq!(dialog["method"], "elicitation/create", "{dialog}");
        assert_eq!(dialog["params"]["_meta"][RELATED]["taskId"], task);
    }
}

#[test]
fn an_error_of_the_call_is_the_tasks() {
    let mut world = opened(settings(), Capability::NONE, CLIENT, Asks::Form);
    let task = begin(&mut world, 50, &json!({}));
    world.tell(Event::SessionEnded);
    let kept = world.tasks[0].ended.clone().unwrap();
    assert!(
        kept.contains("\"failed\"") && kept.contains("the session was ended"),
        "{kept}"
    );
    let mut world = opened(settings(), Capability::NONE, CLIENT, Asks::Form);
    assert!(begin(&mut world, 50, &json!({})) == task);
    world.tell(Event::Drain);
    let kept = world.tasks[0].ended.clone().unwrap();
    assert!(kept.contains("Make the call again"), "{kept}");
}

#[test]
fn after_a_restart_a_task_at_work_has_failed_and_a_result_is_still_there() {
    let mut world = opened(settings(), Capability::NONE, CLIENT, Asks::Form);
    let lost = begin(&mut world, 50, &json!({}));
    let done = begin(&mut world, 51, &json!({}));
    let record = world.open_to_people()[1].clone();
    assert!(world.answer(&record, Action::Accept));
    assert_eq!(settle(&mut world, 0), None);
    world.restart(settings());
    world.client.has_tasks = true;
    let state = get(&mut world, 60, &lost);
    assert_eq!(state["result"]["status"], "failed", "{state}");
    for (id, method) in [(61, "tasks/result"), (62, "tasks/cancel")] {
        let error = sends(&mut world, id, method, &about(&lost)).unwrap();
        assert!(
            error["error"]["message"]
                .as_str()
                .unwrap()
                .contains("Make the call again")
        );
    }
    let result = sends(&mut world, 63, "tasks/result", &about(&done)).unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "accept:Ada");
    let unknown = get(&mut world, 64, "mcp-elicit.t1.unknown");
    assert_eq!(unknown["error"]["code"], -32602);
}

/// Opens a session, and returns what the client gets for its `tools/list`.
fn listed(settings: RelaySettings, has_tasks: bool) -> (World, Value) {
    let mut world = World::with(settings, CLIENT, Capability::NONE, CLIENT, Asks::Nothing);
    world.client.has_tasks = has_tasks;
    world.people = None;
    world.server.tools = vec![json!([
        {"name": "plain", "inputSchema": {"type": "object"}},
        {"name": "never", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "forbidden", "x": 1}},
    ])];
    let mut world = world.opened();
    let frame = json!({"jsonrpc": "2.0", "id": 50, "method": "tools/list", "params": {}});
    world.client_sends(&frame.to_string());
    let listed = settle(&mut world, 50).unwrap();
    (world, listed)
}

#[test]
fn only_clients_that_know_tasks_are_told_of_them_and_only_if_a_call_may_wait() {
    let (_, told) = listed(settings(), true);
    let support = |at: usize| told["result"]["tools"][at]["execution"].clone();
    assert_eq!(support(0), json!({"taskSupport": "optional"}), "{told}");
    assert_eq!(support(1), json!({"taskSupport": "optional", "x": 1}));
    let alone = RelaySettings {
        answer_with: Audience::Client,
        ..settings()
    };
    for (settings, has_tasks) in [(settings(), false), (alone, true)] {
        let (mut world, told) = listed(settings, has_tasks);
        assert_eq!(told["result"]["tools"][0].get("execution"), None);
        let capabilities = &world.client.opened.as_ref().unwrap()["result"]["capabilities"];
        assert_eq!(capabilities.get("tasks"), None);
        // Such a request goes to the server as it is.
        let params = json!({"name": "plain", "arguments": {}, "task": {}});
        let call = json!({"jsonrpc": "2.0", "id": 51, "method": "tools/call", "params": params});
        world.client_sends(&call.to_string());
        assert_eq!(world.to_server.pop_back(), Some(call.to_string()));
    }
}

#[test]
fn a_task_of_another_session_is_cancelled_there() {
    let mut world = opened(settings(), Capability::NONE, CLIENT, Asks::Form);
    let task = begin(&mut world, 50, &json!({}));
    let kept = world.tasks[0].id.clone();
    // The same as another session sees it.
    let mut other = opened(settings(), Capability::NONE, CLIENT, Asks::Form);
    std::mem::swap(&mut world.tasks, &mut other.tasks);
    other.tasks[0].has_owner = true;
    assert_eq!(sends(&mut other, 51, "tasks/cancel", &about(&task)), None);
    assert_eq!(other.cancels, [kept]);
    std::mem::swap(&mut world.tasks, &mut other.tasks);
    let key = world.tasks[0].key;
    world.tell(Event::TaskCancelled { task: key });
    assert!(world.open_to_people().is_empty());
    // The session that has cancelled it follows it.
    std::mem::swap(&mut world.tasks, &mut other.tasks);
    let Some(Event::FollowedCallEnded { call: CallId(call) }) = world.events.pop_back() else {
        panic!("nothing followed the task");
    };
    other.tell(Event::FollowedCallEnded { call: CallId(call) });
    let cancelled = settle(&mut other, 51).unwrap();
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
}

/// Sends a request that describes itself.
fn sends_described(world: &mut World, id: u64, method: &str, mut params: Value) -> Option<Value> {
    params["_meta"] = world.client.meta();
    sends(world, id, method, &params)
}

#[test]
fn a_held_call_becomes_a_task_of_the_extension_where_it_would_be_handed_back() {
    const TASKS: &str = "io.modelcontextprotocol/tasks";
    for server in Revision::ALL {
        let mut world = World::with(
            settings(),
            Revision::V2026_07_28,
            Capability::NONE,
            server,
            Asks::Form,
        );
        world.client.has_tasks = true;
        world.people = None;
        let mut world = world.opened();
        let declared = &world.client.opened.as_ref().unwrap()["result"]["capabilities"];
        assert_eq!(declared["extensions"][TASKS], json!({}), "{server}");
        let call = json!({"name": "ask", "arguments": {}});
        assert_eq!(
            sends_described(&mut world, 50, "tools/call", call.clone()),
            None
        );
        world.pass_time(Duration::from_secs(51));
        let created = settle(&mut world, 50).expect("the task is created");
        let created = &created["result"];
        assert_eq!(created["resultType"], "task", "{server}: {created}");
        assert_eq!(created["status"], "working");
        assert!(created["ttlMs"].is_u64() && created["pollIntervalMs"].is_u64());
        let task = created["taskId"].as_str().unwrap().to_owned();
        let state = sends_described(&mut world, 51, "tasks/get", about(&task)).unwrap();
        assert_eq!(state["result"]["status"], "working", "{state}");
        assert_eq!(state["result"]["resultType"], "complete");
        let message = state["result"]["statusMessage"].as_str().unwrap();
        assert!(message.contains("http://inbox/"), "{message}");
        let update = json!({"taskId": task, "inputResponses": {"x": {"action": "accept"}}});
        let done = sends_described(&mut world, 52, "tasks/update", update).unwrap();
        assert_eq!(done["result"], json!({"resultType": "complete"}));
        let record = world.open_to_people()[0].clone();
        assert!(world.answer(&record, Action::Accept));
        assert_eq!(settle(&mut world, 0), None);
        let ended = sends_described(&mut world, 53, "tasks/get", about(&task)).unwrap();
        assert_eq!(ended["result"]["status"], "completed", "{server}: {ended}");
        let text = &ended["result"]["result"]["content"][0]["text"];
        assert_eq!(text, "accept:Ada", "{server}");

        assert_eq!(sends_described(&mut world, 54, "tools/call", call), None);
        world.pass_time(Duration::from_secs(51));
        let created = settle(&mut world, 54).unwrap();
        let task = created["result"]["taskId"].as_str().unwrap().to_owned();
        let cancelled = sends_described(&mut world, 55, "tasks/cancel", about(&task)).unwrap();
        assert_eq!(cancelled["result"], json!({"resultType": "complete"}));
        assert!(world.open_to_people().is_empty());
        let state = sends_described(&mut world, 56, "tasks/get", about(&task)).unwrap();
        assert_eq!(state["result"]["status"], "cancelled", "{state}");
        let unknown = sends_described(&mut world, 57, "tasks/get", about("mcp-elicit.t1.0"));
        assert_eq!(unknown.unwrap()["error"]["code"], -32602);
    }
}

#[test]
fn a_task_whose_result_cannot_be_stored_fails_with_the_reason() {
    let stored = r#"{"state":{"status":"completed","created":5,"updated":7,"ttl":9},"response":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"}"#;
    let failed: Value = serde_json::from_str(&crate::ended_without_result(stored)).unwrap();
    assert_eq!(failed["state"]["status"], "failed");
    let why = failed["state"]["message"].as_str().unwrap();
    assert!(why.contains("cannot be stored"), "{why}");
    let response: Value = serde_json::from_str(failed["response"].as_str().unwrap()).unwrap();
    assert_eq!(response["error"]["code"], -32000);
    assert!(response.get("result").is_none());
}
