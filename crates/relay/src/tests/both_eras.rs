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

/// Returns a conversation that is not open yet, in which the test plays the client and the server. The server is known
/// to ask only in results, so it is asked for the rounds era first.
fn unopened(has_rules: bool) -> World {
    let settings = settings(has_rules);
    settings.eras.saw_round_in_session();
    let mut world = World::with(settings, ROUNDS, Capability::FORM, ROUNDS, Asks::Nothing);
    world.people = None;
    world
}

/// Returns a client of this revision before a server with an open session, in which it was seen to ask; the test plays
/// both.
fn in_session(client: Revision, has_rules: bool) -> World {
    let settings = settings(has_rules);
    settings.eras.saw_pushed();
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
fn a_client_is_not_told_of_subscriptions_that_are_not_bridged_to_a_session() {
    let mut world = unopened(false);
    let open = world.client.open();
    world.client_sends(&open);
    let discover = sent(&mut world).unwrap();
    refuses(&mut world, &discover["id"], -32601);
    let initialize = sent(&mut world).unwrap();
    let capabilities = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": false}, "logging": {},
        "resources": {"subscribe": true, "listChanged": true, "x": 1}});
    let opened = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}});
    answers(&mut world, &initialize["id"], &opened);
    assert_eq!(
        told(&mut world)["result"]["capabilities"],
        json!({"tools": {}, "prompts": {}, "logging": {}, "resources": {"x": 1}})
    );
    request(&mut world, 11, "subscriptions/listen", json!({}));
    assert_eq!(told(&mut world)["error"]["code"], -32601);
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

fn initialize(world: &mut World, version: &str) {
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let frame = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    world.client_sends(&frame.to_string());
}

fn opened(revision: &str, capabilities: &Value) -> Value {
    json!({"protocolVersion": revision, "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}})
}

/// Returns a conversation of a client of 2026-07-28 that is not open yet, before a server that is not known.
fn unknown(settings: RelaySettings) -> World {
    let mut world = World::with(settings, ROUNDS, Capability::FORM, ROUNDS, Asks::Nothing);
    world.people = None;
    world
}

#[test]
fn a_server_of_both_eras_is_addressed_in_its_session() {
    let mut world = unknown(RelaySettings::default());
    let open = world.client.open();
    world.client_sends(&open);
    let asked = sent(&mut world).unwrap();
    assert_eq!(
        (&asked["method"], &asked["params"]["protocolVersion"]),
        (&json!("initialize"), &json!("2025-11-25"))
    );
    let declared = &asked["params"]["capabilities"]["elicitation"];
    assert!(declared["form"].is_object() && declared["url"].is_object());
    answers(
        &mut world,
        &asked["id"],
        &opened("2025-11-25", &json!({"tools": {}})),
    );
    assert_eq!(
        sent(&mut world).unwrap()["method"],
        "notifications/initialized"
    );
    assert_eq!(world.relay.server_revision(), Some(PUSHED));
    let said = told(&mut world);
    assert_eq!(said["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(said["result"]["capabilities"], json!({"tools": {}}));
}

#[test]
fn a_server_that_asks_in_every_era_or_opens_no_session_is_asked_for_the_rounds_era_too() {
    let declared = json!({"experimental": {"mcp-elicit/asks-in-every-era": {}}});
    for (capabilities, has_session, accepts) in [
        (&declared, true, true),
        (&declared, true, false),
        (&json!({}), false, true),
        (&json!({}), false, false),
    ] {
        let mut world = unknown(RelaySettings::default());
        let open = world.client.open();
        world.client_sends(&open);
        let asked = sent(&mut world).unwrap();
        if !has_session {
            world.tell(crate::Event::NoSession);
        }
        answers(
            &mut world,
            &asked["id"],
            &opened("2025-11-25", capabilities),
        );
        let discover = sent(&mut world).unwrap();
        assert_eq!(
            (&discover["method"], &discover["id"]),
            (&json!("server/discover"), &json!(1))
        );
        if accepts {
            answers(&mut world, &discover["id"], &discovered());
            assert_eq!(world.relay.server_revision(), Some(ROUNDS));
            assert_eq!(told(&mut world)["result"], discovered());
        } else {
            refuses(&mut world, &discover["id"], -32601);
            assert_eq!(
                sent(&mut world).unwrap()["method"],
                "notifications/initialized"
            );
            assert_eq!(world.relay.server_revision(), Some(PUSHED));
            assert_eq!(
                told(&mut world)["result"]["supportedVersions"][0],
                "2026-07-28"
            );
        }
    }
}

#[test]
fn a_client_in_a_session_does_not_read_that_the_server_asks_in_every_era() {
    for (declared, passed) in [
        (
            json!({"tools": {}, "experimental": {"mcp-elicit/asks-in-every-era": {}}}),
            json!({"tools": {}}),
        ),
        (
            json!({"experimental": {"mcp-elicit/asks-in-every-era": {}, "x/other": {"a": 1}}}),
            json!({"experimental": {"x/other": {"a": 1}}}),
        ),
    ] {
        let mut world = World::with(
            RelaySettings::default(),
            PUSHED,
            Capability::FORM,
            PUSHED,
            Asks::Nothing,
        );
        world.people = None;
        let open = world.client.open();
        world.client_sends(&open);
        let asked = sent(&mut world).unwrap();
        let mut result = opened("2025-11-25", &declared);
        result["instructions"] = json!("ask");
        answers(&mut world, &asked["id"], &result);
        let mut wanted = result.clone();
        wanted["capabilities"] = passed;
        assert_eq!(told(&mut world)["result"], wanted);
        assert_eq!(world.relay.server_revision(), Some(PUSHED));
    }
}

#[test]
fn a_server_of_2026_07_28_alone_gets_the_clients_own_discover() {
    let mut world = unknown(RelaySettings::default());
    let open = world.client.open();
    world.client_sends(&open);
    let asked = sent(&mut world).unwrap();
    refuses(&mut world, &asked["id"], -32022);
    let discover = sent(&mut world).unwrap();
    assert_eq!(discover["id"], 1);
    let info = &discover["params"]["_meta"]["io.modelcontextprotocol/clientInfo"];
    assert_eq!(info["name"], "raw");
    answers(&mut world, &discover["id"], &discovered());
    assert_eq!(told(&mut world)["result"], discovered());
    // Neither is a slow one lost: its answer to `server/discover` waits for that to `initialize`.
    let mut world = unknown(RelaySettings::default());
    let open = world.client.open();
    world.client_sends(&open);
    let asked = sent(&mut world).unwrap();
    world.pass_time(std::time::Duration::from_secs(4));
    let discover = sent(&mut world).unwrap();
    answers(&mut world, &discover["id"], &discovered());
    assert_eq!(world.relay.server_revision(), None);
    refuses(&mut world, &asked["id"], -32601);
    assert_eq!(world.relay.server_revision(), Some(ROUNDS));
    assert_eq!(told(&mut world)["result"], discovered());
}

fn names_the_option(said: &Value, words: &str) -> bool {
    let why = said["error"]["message"].as_str().unwrap_or_default();
    ["--server-revision", "`revision`", "--check", words]
        .iter()
        .all(|words| why.contains(words))
}

#[test]
fn a_server_that_ignores_the_opening_of_the_operators_revision_leaves_no_request_unanswered() {
    for revision in [ROUNDS, PUSHED] {
        let settings = RelaySettings {
            revision: Some(revision),
            ..RelaySettings::default()
        };
        let mut world = World::with(settings, ROUNDS, Capability::FORM, ROUNDS, Asks::Nothing);
        world.people = None;
        // A request without any opening, as clients of 2026-07-28 may send it.
        request(
            &mut world,
            4,
            "tools/call",
            json!({"name": "t", "arguments": {}}),
        );
        let asked = sent(&mut world).unwrap();
        world.pass_time(std::time::Duration::from_secs(30));
        assert!(world.to_client.is_empty(), "it may be slow to start");
        world.pass_time(std::time::Duration::from_secs(31));
        let said = told(&mut world);
        assert_eq!(said["id"], 4);
        assert!(names_the_option(&said, revision.as_str()), "{said}");
        // Its late answer harms nothing.
        answers(&mut world, &asked["id"], &discovered());
        request(
            &mut world,
            5,
            "tools/call",
            json!({"name": "t", "arguments": {}}),
        );
        assert_eq!(told(&mut world)["id"], 5);
    }
}

#[test]
fn a_refusal_under_rules_names_the_option_without_the_servers_link() {
    let settings = RelaySettings {
        revision: Some(ROUNDS),
        ..settings(true)
    };
    let mut world = World::with(settings, PUSHED, Capability::FORM, ROUNDS, Asks::Nothing);
    world.people = None;
    initialize(&mut world, "2025-11-25");
    let asked = sent(&mut world).unwrap();
    let error = json!({"code": -32042, "message": "go to https://bank.example.com/pay", "data": {"elicitations": [
        {"mode": "url", "url": "https://bank.example.com/pay", "elicitationId": "1", "message": "m"}]}});
    world.server_sends(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}).to_string());
    let said = told(&mut world);
    assert!(names_the_option(&said, "-32042"), "{said}");
    assert!(!said.to_string().contains("bank.example.com"), "{said}");
}

#[test]
fn the_late_answer_to_an_opening_ends_no_call() {
    for id in [json!(0), json!("0"), json!(1)] {
        let mut world = unknown(RelaySettings::default());
        let mut open: Value = serde_json::from_str(&world.client.open()).unwrap();
        open["id"] = id.clone();
        world.client_sends(&open.to_string());
        let asked = sent(&mut world).unwrap();
        world.pass_time(std::time::Duration::from_secs(4));
        let discover = sent(&mut world).unwrap();
        assert_eq!(discover["id"], id);
        let session = opened("2025-11-25", &json!({"tools": {}}));
        answers(&mut world, &asked["id"], &session);
        assert_eq!(told(&mut world)["id"], id);
        assert_eq!(
            sent(&mut world).unwrap()["method"],
            "notifications/initialized"
        );
        request(
            &mut world,
            7,
            "tools/call",
            json!({"name": "ask", "arguments": {}}),
        );
        let call = sent(&mut world).unwrap();
        refuses(&mut world, &discover["id"], -32601);
        assert!(world.to_client.is_empty(), "{id}: {:?}", world.to_client);
        answers(&mut world, &call["id"], &json!({"content": []}));
        assert_eq!(told(&mut world)["id"], 7);
    }
}

#[test]
fn an_operators_revision_is_the_only_one() {
    for (revision, method) in [
        (Revision::V2025_06_18, "initialize"),
        (PUSHED, "initialize"),
        (ROUNDS, "server/discover"),
    ] {
        for is_pushed_client in [true, false] {
            let settings = RelaySettings {
                revision: Some(revision),
                ..RelaySettings::default()
            };
            let mut world = unknown(settings);
            if is_pushed_client {
                initialize(&mut world, "2025-11-25");
            } else {
                let open = world.client.open();
                world.client_sends(&open);
            }
            let asked = sent(&mut world).unwrap();
            assert_eq!(asked["method"], method);
            if method == "initialize" {
                assert_eq!(asked["params"]["protocolVersion"], revision.as_str());
                let other = if revision == PUSHED {
                    "2025-06-18"
                } else {
                    "2025-11-25"
                };
                answers(&mut world, &asked["id"], &opened(other, &json!({})));
                let said = told(&mut world);
                assert!(names_the_option(&said, other), "{said}");
            } else {
                refuses(&mut world, &asked["id"], -32601);
                // A request of a client without a session's opening waited with the gateway's own.
                let said = told(&mut world);
                assert!(names_the_option(&said, "-32601"), "{said}");
            }
            assert_eq!(sent(&mut world), None, "the other era is not tried");
            // Nothing is sent to such a server, and nothing stays unanswered.
            request(
                &mut world,
                9,
                "tools/call",
                json!({"name": "t", "arguments": {}}),
            );
            let said = told(&mut world);
            assert_eq!(said["id"], 9);
            assert!(names_the_option(&said, revision.as_str()), "{said}");
            request(&mut world, 10, "tools/list", json!({}));
            assert_eq!(told(&mut world)["id"], 10);
            assert_eq!(sent(&mut world), None);
            // A client may open again: the server may have been replaced.
            if is_pushed_client {
                initialize(&mut world, "2025-11-25");
                assert_eq!(sent(&mut world).unwrap()["method"], method);
            }
        }
    }
}

#[test]
fn a_client_of_any_date_gets_a_version_that_it_knows_and_the_server_its_newest() {
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("2020-01-01", "2024-10-07"),
        ("next", "2025-11-25"),
    ] {
        let mut world = unknown(RelaySettings::default());
        initialize(&mut world, asked);
        let frame = sent(&mut world).unwrap();
        assert_eq!(frame["params"]["protocolVersion"], "2025-11-25", "{asked}");
        assert!(
            frame["params"]["capabilities"]["elicitation"].is_object(),
            "{asked}"
        );
        answers(&mut world, &frame["id"], &opened("2025-11-25", &json!({})));
        assert_eq!(
            told(&mut world)["result"]["protocolVersion"],
            given,
            "{asked}"
        );
    }
}

/// Returns a client of this revision with a call at a server with a session.
fn with_call(client: Revision) -> World {
    let settings = RelaySettings::default();
    let mut world = World::with(settings, client, Capability::FORM, PUSHED, Asks::Nothing).opened();
    world.people = None;
    world.to_server.clear();
    world.to_client.clear();
    request(&mut world, 11, "tools/call", json!({"name": "deploy"}));
    assert_eq!(sent(&mut world).unwrap()["id"], 11);
    world
}

#[test]
fn a_server_that_asks_in_a_result_within_its_session_is_asked_again_in_the_rounds_era() {
    let round =
        json!({"resultType": "input_required", "requestState": "s", "inputRequests": question()});
    for client in [PUSHED, ROUNDS] {
        let mut world = with_call(client);
        answers(&mut world, &json!(11), &round);
        world.run_record();
        assert_eq!(world.restarts, 1, "an SDK may tie a connection to one era");
        let discover = sent(&mut world).unwrap();
        assert_eq!(discover["method"], "server/discover");
        answers(&mut world, &discover["id"], &discovered());
        let again = sent(&mut world).unwrap();
        assert_eq!(
            (&again["method"], &again["params"]["name"]),
            (&json!("tools/call"), &json!("deploy"))
        );
        let meta = &again["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"].is_object());
        assert!(world.to_client.is_empty(), "the client waits for its call");
        answers(&mut world, &again["id"], &round);
        world.run_record();
        let said = told(&mut world);
        if client == ROUNDS {
            assert_eq!(said["result"]["resultType"], "input_required");
        } else {
            assert_eq!(said["method"], "elicitation/create");
        }
        assert!(
            world.relay.settings.eras.asks_only_in_rounds(),
            "the next connection begins so"
        );
    }
}

#[test]
fn a_call_that_may_have_had_an_effect_is_not_repeated() {
    let mut world = with_call(PUSHED);
    let error = json!({"code": -32603, "message": "Handler returned an invalid result"});
    world.server_sends(&json!({"jsonrpc": "2.0", "id": 11, "error": error}).to_string());
    world.run_record();
    let said = told(&mut world);
    assert!(
        said["error"]["message"]
            .as_str()
            .unwrap()
            .contains("make the call again"),
        "{said}"
    );
    let discover = sent(&mut world).unwrap();
    answers(&mut world, &discover["id"], &discovered());
    assert_eq!(sent(&mut world), None);
    // The server that does not speak the rounds era gets its session again, and is not left a second time.
    let mut world = with_call(PUSHED);
    world.server_sends(&json!({"jsonrpc": "2.0", "id": 11, "error": error}).to_string());
    world.run_record();
    told(&mut world);
    let discover = sent(&mut world).unwrap();
    refuses(&mut world, &discover["id"], -32601);
    let again = sent(&mut world).unwrap();
    assert_eq!(again["method"], "initialize");
    answers(&mut world, &again["id"], &opened("2025-11-25", &json!({})));
    assert_eq!(
        sent(&mut world).unwrap()["method"],
        "notifications/initialized"
    );
    request(&mut world, 12, "tools/call", json!({"name": "deploy"}));
    assert_eq!(sent(&mut world).unwrap()["id"], 12);
    world.server_sends(&json!({"jsonrpc": "2.0", "id": 12, "error": error}).to_string());
    assert_eq!(told(&mut world)["error"], error);
}

#[test]
fn beside_other_calls_a_session_is_not_left() {
    let mut world = with_call(PUSHED);
    request(&mut world, 12, "tools/call", json!({"name": "other"}));
    assert_eq!(sent(&mut world).unwrap()["id"], 12);
    let round = json!({"resultType": "input_required", "inputRequests": question()});
    answers(&mut world, &json!(11), &round);
    let said = told(&mut world);
    assert!(
        said["error"]["message"]
            .as_str()
            .unwrap()
            .contains("make the call again"),
        "{said}"
    );
    assert_eq!(world.restarts, 0);
}

#[test]
fn a_list_of_messages_is_for_sessions_of_2025_03_26() {
    let list = r#"[{"jsonrpc":"2.0","id":5,"method":"ping"},{"jsonrpc":"2.0","id":6,"method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/x"},[],{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}]"#;
    for (version, has_batches) in [
        ("2025-03-26", true),
        ("2024-11-05", false),
        ("2025-06-18", false),
    ] {
        let mut world = unknown(RelaySettings::default());
        initialize(&mut world, version);
        let frame = sent(&mut world).unwrap();
        answers(&mut world, &frame["id"], &opened("2025-11-25", &json!({})));
        told(&mut world);
        world.client_sends(list);
        let sent: Vec<_> = std::iter::from_fn(|| sent(&mut world)).collect();
        let refused = |world: &mut World| told(world)["error"]["code"].clone();
        if has_batches {
            let methods: Vec<_> = sent
                .iter()
                .map(|frame| frame["method"].as_str().unwrap())
                .collect();
            assert_eq!(methods, ["ping", "tools/list", "notifications/x"]);
            // One list, once all responses are there.
            assert!(world.to_client.is_empty());
            answers(&mut world, &json!(6), &json!({"tools": []}));
            assert!(world.to_client.is_empty());
            answers(&mut world, &json!(5), &json!({}));
            let list = told(&mut world);
            let shown: Vec<_> = list
                .as_array()
                .unwrap()
                .iter()
                .map(|one| (&one["id"], &one["error"]["code"]))
                .collect();
            let (null, refused) = (Value::Null, json!(-32600));
            assert_eq!(
                shown,
                [
                    (&null, &refused),
                    (&json!(7), &refused),
                    (&json!(6), &null),
                    (&json!(5), &null)
                ]
            );
        } else {
            assert!(sent.is_empty());
            assert_eq!(refused(&mut world), -32600, "{version}");
        }
        assert!(world.to_client.is_empty());
        for (bytes, code) in [
            ("[]", -32600),
            ("[1", if has_batches { -32700 } else { -32600 }),
        ] {
            world.client_sends(bytes);
            assert_eq!(refused(&mut world), code, "{version} {bytes}");
        }
    }
}
