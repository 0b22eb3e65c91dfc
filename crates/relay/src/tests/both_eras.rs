//! Servers of both eras: the gateway itself detects the era, and passes on nothing in a revision that was not agreed
//! on.

use std::sync::Arc;

use mcp_elicit_core::wire::{Capability, Revision};
use serde_json::{Value, json};

use super::candidates::ByTool;
use super::world::{Asks, World};
use crate::RelaySettings;

const PUSHED: Revision = Revision::V2025_11_25;
const ROUNDS: Revision = Revision::V2026_07_28;

fn settings(has_rules: bool) -> RelaySettings {
    RelaySettings {
        decisions: has_rules.then(|| Arc::new(ByTool::default()) as _),
        ..RelaySettings::default()
    }
}

/// Returns a conversation that is not open yet, in which the test plays the client and the server.
fn unopened(has_rules: bool) -> World {
    let settings = settings(has_rules);
    let mut world = World::with(settings, ROUNDS, Capability::FORM, ROUNDS, Asks::Nothing);
    world.people = None;
    world
}

/// Returns a client of this revision before a server with an open session; the test plays both.
fn in_session(client: Revision, has_rules: bool) -> World {
    let settings = settings(has_rules);
    let mut world = World::with(settings, client, Capability::FORM, PUSHED, Asks::Nothing).opened();
    world.people = None;
    world.to_server.clear();
    world.to_client.clear();
    world
}

fn sent(world: &mut World) -> Option<Value> {
    let frame = world.to_server.pop_front()?;
    Some(serde_json::from_str(&frame).unwrap())
}

fn told(world: &mut World) -> Value {
    let (_, frame) = world.to_client.pop_front().expect("the client is told");
    serde_json::from_str(&frame).unwrap()
}

/// Sends a request of the client, in the format of its revision.
fn request(world: &mut World, id: u64, method: &str, mut params: Value) {
    if world.client.revision == ROUNDS {
        params["_meta"] = world.client.meta();
    }
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    world.client_sends(&frame.to_string());
}

fn answers(world: &mut World, id: &Value, result: &Value) {
    world.server_sends(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
}

fn refuses(world: &mut World, id: &Value, code: i32) {
    let error = json!({"code": code, "message": "no"});
    world.server_sends(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
}

fn discovered() -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2026-07-28", "2025-11-25"], "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "private"})
}

/// Returns the client's `server/discover`, whose `_meta` has this member with this value.
fn discover(world: &mut World, member: &str, value: Value) {
    let mut meta = world.client.meta();
    meta[member] = value;
    let frame =
        json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}});
    world.client_sends(&frame.to_string());
}

#[test]
fn a_malformed_discover_of_the_client_decides_nothing_about_the_server() {
    for (member, value, code) in [
        ("clientInfo", json!(5), -32602),
        ("clientCapabilities", json!({"roots": 5}), -32602),
        ("protocolVersion", json!("2026-07-29"), -32601),
        ("protocolVersion", json!("2026-07-29"), -32022),
    ] {
        let mut world = unopened(true);
        discover(
            &mut world,
            &format!("io.modelcontextprotocol/{member}"),
            value,
        );
        let clients = sent(&mut world).unwrap();
        refuses(&mut world, &clients["id"], code);
        let own = sent(&mut world).expect("the gateway asks in its own words");
        assert_eq!(own["method"], "server/discover", "{member}");
        let meta = &own["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientInfo"]["name"],
            "mcp-elicit gateway"
        );
        let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(capabilities.get("roots"), None);
        answers(&mut world, &own["id"], &discovered());
        assert_eq!(world.relay.server_revision(), Some(ROUNDS), "{member}");
        // The client gets the server's own response to its request.
        let said = told(&mut world);
        assert_eq!(
            (&said["id"], &said["error"]["code"]),
            (&json!(1), &json!(code))
        );
        assert!(world.to_client.is_empty());
    }
}

#[test]
fn a_server_that_knows_no_discover_is_asked_once_and_one_that_refuses_it_otherwise_twice() {
    for (code, own) in [(-32601, 0), (-32600, 1), (-32602, 1)] {
        let mut world = unopened(false);
        let open = world.client.open();
        world.client_sends(&open);
        for _ in 0..=own {
            let asked = sent(&mut world).unwrap();
            assert_eq!(asked["method"], "server/discover", "{code}");
            refuses(&mut world, &asked["id"], code);
        }
        let asked = sent(&mut world).unwrap();
        assert_eq!(asked["method"], "initialize", "{code}");
        let opened = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
        answers(&mut world, &asked["id"], &opened);
        assert_eq!(world.relay.server_revision(), Some(PUSHED));
        assert_eq!(told(&mut world)["result"]["resultType"], "complete");
    }
}

#[test]
fn a_first_request_that_describes_its_client_oddly_decides_nothing_about_the_server() {
    let mut world = unopened(true);
    let mut meta = world.client.meta();
    meta["io.modelcontextprotocol/clientInfo"] = json!(5);
    let frame =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    world.client_sends(&frame.to_string());
    let probe = sent(&mut world).unwrap();
    assert_eq!(probe["method"], "server/discover");
    let info = &probe["params"]["_meta"]["io.modelcontextprotocol/clientInfo"];
    assert!(
        info["name"].is_string() && info["version"].is_string(),
        "{probe}"
    );
}

#[test]
fn a_server_with_a_session_gets_nothing_that_only_requests_of_2026_07_28_have() {
    let mut world = in_session(ROUNDS, false);
    request(&mut world, 11, "tools/call", json!({"name": "ask"}));
    let call = sent(&mut world).unwrap();
    assert_eq!(call["params"], json!({"name": "ask", "_meta": {}}));
    for (id, method) in [
        (12, "tools/list"),
        (13, "tasks/get"),
        (14, "prompts/get"),
        (15, "completion/complete"),
    ] {
        request(&mut world, id, method, json!({"taskId": "t", "name": "p"}));
        let frame = sent(&mut world);
        if method == "prompts/get" {
            assert_eq!(frame, None, "it waits for its turn");
            continue;
        }
        assert_eq!(frame.unwrap()["params"]["_meta"], json!({}), "{method}");
    }
    let answer = json!({"who": {"action": "accept"}});
    let params = json!({"taskId": "t", "inputResponses": answer});
    request(&mut world, 16, "tasks/update", params);
    assert_eq!(sent(&mut world), None);
    assert_eq!(told(&mut world)["error"]["code"], -32601);
}

fn question() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Where?", "requestedSchema": schema});
    json!({"who": {"method": "elicitation/create", "params": params}})
}

#[test]
fn what_a_server_asks_in_a_revision_that_was_not_agreed_on_is_shown_to_nobody() {
    let asked = [
        json!({"resultType": "input_required", "requestState": "s", "inputRequests": question()}),
        json!({"resultType": "task", "taskId": "t", "status": "working"}),
        json!({"resultType": "complete", "taskId": "t", "inputRequests": question()}),
    ];
    for client in [PUSHED, ROUNDS] {
        for has_rules in [true, false] {
            for (method, result) in ["tools/call", "tools/call", "tasks/get"]
                .into_iter()
                .zip(&asked)
            {
                let mut world = in_session(client, has_rules);
                request(
                    &mut world,
                    11,
                    method,
                    json!({"name": "deploy", "taskId": "t"}),
                );
                assert!(sent(&mut world).is_some());
                answers(&mut world, &json!(11), result);
                let said = told(&mut world);
                let why = said["error"]["message"].as_str().expect("an error");
                assert!(why.contains("not agreed on"), "{said}");
                assert!(!said.to_string().contains("Where?"), "{said}");
                assert_eq!(world.relay.open(), (0, 0));
            }
        }
    }
    // No spelling has an effect.
    let mut world = in_session(PUSHED, false);
    request(&mut world, 11, "tools/call", json!({"name": "deploy"}));
    world.server_sends(
        r#"{"jsonrpc":"2.0","id":11,"result":{"result\u0054ype":"input_required","inputRequests":{}}}"#,
    );
    assert!(told(&mut world)["error"].is_object());
}

#[test]
fn what_a_server_of_2025_11_25_says_of_calls_and_tasks_passes() {
    let task = json!({"taskId": "t", "status": "working", "createdAt": "2025-11-25T10:00:00Z", "ttl": null});
    let done = json!({"content": [{"type": "text", "text": "resultType"}], "structuredContent": {"resultType": "task"},
        "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t"}}});
    for has_rules in [true, false] {
        let mut world = in_session(PUSHED, has_rules);
        for (id, method, result) in [
            (11, "tools/call", json!({"task": task})),
            (12, "tasks/get", task.clone()),
            (13, "tasks/result", done.clone()),
            (
                14,
                "tools/call",
                json!({"resultType": "complete", "content": []}),
            ),
        ] {
            let params = json!({"name": "deploy", "taskId": "t", "task": {"ttl": 60_000}});
            request(&mut world, id, method, params.clone());
            assert_eq!(
                sent(&mut world).unwrap()["params"],
                params,
                "{method} as it is"
            );
            answers(&mut world, &json!(id), &result);
            assert_eq!(told(&mut world)["result"], result, "{method}");
        }
    }
}

#[test]
fn under_rules_no_answer_reaches_a_task_of_a_server_with_a_session() {
    let answer = json!({"who": {"action": "accept", "content": {"name": "production"}}});
    for client in [PUSHED, ROUNDS] {
        for method in ["tasks/update", "tasks/get", "tasks/result"] {
            let mut world = in_session(client, true);
            let notice = json!({"jsonrpc": "2.0", "method": "notifications/tasks",
                "params": {"taskId": "t", "status": "input_required", "inputRequests": question()}});
            world.server_sends(&notice.to_string());
            assert!(world.to_client.is_empty(), "it is not shown");
            let params = json!({"taskId": "t", "inputResponses": answer});
            request(&mut world, 11, method, params);
            assert_eq!(sent(&mut world), None, "{client} {method}");
            assert_eq!(told(&mut world)["error"]["code"], -32602);
        }
    }
}

#[test]
fn a_client_that_has_opened_a_session_stays_in_it_when_it_discovers() {
    let mut world = in_session(PUSHED, true);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let frame =
        json!({"jsonrpc": "2.0", "id": 11, "method": "server/discover", "params": {"_meta": meta}});
    world.client_sends(&frame.to_string());
    assert!(told(&mut world)["result"]["supportedVersions"].is_array());
    let params = json!({"name": "deploy", "_meta": meta});
    let frame = json!({"jsonrpc": "2.0", "id": 12, "method": "tools/call", "params": params});
    world.client_sends(&frame.to_string());
    assert_eq!(sent(&mut world), None);
    assert_eq!(told(&mut world)["error"]["code"], -32602);
}

#[test]
fn under_rules_a_method_in_another_spelling_is_refused() {
    let nearly = [
        "Tools/Call",
        "tools/call ",
        "\u{a0}prompts/get",
        "Resources/Read",
        "Tasks/update",
        "tasks/Update",
        "tools_call",
        "tools.call",
        "tools//call",
        "/tools/call",
        "toolsCall",
        "tools/call\u{200b}",
        "\u{feff}tools/call",
        "to\u{ff4f}ls/call",
        "tasks_get",
        "tasks.other",
        "tasks//list",
        "Initialize",
        "server.discover",
    ];
    for (has_rules, client) in [(true, PUSHED), (true, ROUNDS), (false, PUSHED)] {
        let mut world = in_session(client, has_rules);
        for method in nearly {
            request(&mut world, 11, method, json!({"name": "never"}));
            let passed = sent(&mut world);
            assert_eq!(passed.is_some(), !has_rules, "{method}");
            if has_rules {
                assert_eq!(told(&mut world)["error"]["code"], -32601, "{method}");
            }
        }
        request(&mut world, 98, "tools/callback", json!({}));
        assert!(sent(&mut world).is_some());
        request(&mut world, 99, "Vendor/Thing ", json!({}));
        assert!(
            sent(&mut world).is_some(),
            "what is like no call is as it was"
        );
    }
}
