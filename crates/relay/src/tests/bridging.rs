//! Nothing is lost between revisions and eras: links for clients without them, unknown members, log messages.

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::{RelaySettings, StreamId};

const OLD: Revision = Revision::V2025_06_18;
const PUSHED: Revision = Revision::V2025_11_25;
const ROUNDS: Revision = Revision::V2026_07_28;

fn read(frame: &str) -> Value {
    serde_json::from_str(frame).unwrap()
}

#[test]
fn the_server_is_asked_for_its_newest_revision_whatever_the_client_speaks() {
    for asks in [Asks::Url, Asks::Visit, Asks::Form] {
        let mut world = World::new(OLD, Capability::FORM, PUSHED, asks).opened();
        let opening = &world.server.seen[0]["params"];
        assert_eq!(opening["protocolVersion"], "2025-11-25");
        assert_eq!(opening["clientInfo"]["name"], "raw");
        let told = world.client.opened.clone().unwrap();
        assert_eq!(told["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(world.relay.server_revision(), Some(PUSHED));
        world.call();
        world.settle();
        let in_inbox = usize::from(asks != Asks::Form);
        assert_eq!(
            world.store.len() - world.client.asked.len(),
            in_inbox,
            "{asks:?}"
        );
        let expected = if asks == Asks::Form {
            "accept:Ada"
        } else {
            "accept:-"
        };
        assert_eq!(world.client.text(), expected, "{asks:?}");
        let complete = json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e-1"}});
        world.server_sends(&complete.to_string());
        assert!(
            world.to_client.is_empty(),
            "2025-06-18 has no such notification"
        );
    }
    let mut older = World::new(OLD, Capability::FORM, OLD, Asks::Form).opened();
    assert_eq!(older.relay.server_revision(), Some(OLD));
    older.call();
    older.settle();
    assert_eq!(older.client.text(), "accept:Ada");
}

#[test]
fn a_server_that_does_not_negotiate_is_asked_for_the_clients_revision() {
    let mut world = World::new(OLD, Capability::FORM, OLD, Asks::Nothing);
    let open = world.client.open();
    world.client_sends(&open);
    let first = read(&world.to_server.pop_front().unwrap());
    assert_eq!(first["params"]["protocolVersion"], "2025-11-25");
    let refused = json!({"jsonrpc": "2.0", "id": first["id"], "error": {"code": -32602, "message": "Unsupported protocol version"}});
    world.server_sends(&refused.to_string());
    let second = read(world.to_server.front().unwrap());
    assert_eq!(second["method"], "initialize");
    assert_eq!(second["params"]["protocolVersion"], "2025-06-18");
    world.settle();
    assert!(world.client.opened.unwrap()["result"].is_object());
}

fn question() -> Value {
    json!({"message": "Who?", "x-hint": {"a": 1}, "_meta": {"vendor/x": 2}, "requestedSchema":
        {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "x-widget": "big"}}}})
}

fn reply() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}, "_meta": {"vendor/y": 3}, "x-more": 4})
}

#[test]
fn unknown_members_of_questions_and_answers_survive_the_bridge_to_a_rounds_client() {
    let mut world = World::new(ROUNDS, Capability::BOTH, PUSHED, Asks::Nothing).opened();
    let (_, call) = world.client.call();
    world.client_sends(&call);
    world.to_server.clear();
    let push =
        json!({"jsonrpc": "2.0", "id": 900, "method": "elicitation/create", "params": question()});
    world.server_sends(&push.to_string());
    world.run_record();
    let told = read(&world.to_client.pop_back().unwrap().1);
    let (key, asked) = told["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(asked["params"]["x-hint"], json!({"a": 1}));
    assert_eq!(asked["params"]["_meta"], json!({"vendor/x": 2}));
    let name = &asked["params"]["requestedSchema"]["properties"]["name"];
    assert_eq!(name["x-widget"], "big");
    let mut retry = read(&call);
    retry["id"] = json!(50);
    retry["params"]["requestState"] = told["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = json!({ key: reply() });
    world.client_sends(&retry.to_string());
    world.run_record();
    let answer = read(&world.to_server.pop_front().unwrap());
    assert_eq!((&answer["id"], &answer["result"]), (&json!(900), &reply()));
}

#[test]
fn a_client_in_a_session_brings_a_server_no_answers_of_its_own() {
    for (name, value) in [
        ("inputResponses", json!({"who": reply()})),
        ("inputResponses", json!({})),
        ("requestState", json!("made up")),
        ("input_responses", json!({"who": reply()})),
        ("request_state", json!("made up")),
    ] {
        // A server of the pushed era may support both.
        for server in [ROUNDS, PUSHED] {
            let mut world = World::new(PUSHED, Capability::NONE, server, Asks::Form).opened();
            world.to_server.clear();
            let (_, call) = world.client.call();
            let mut forged = read(&call);
            forged["params"][name] = value.clone();
            world.client_sends(&forged.to_string());
            assert!(world.to_server.is_empty(), "{name} reached the server");
            let told = read(&world.to_client.pop_back().unwrap().1);
            let code = if name.contains('_') { -32600 } else { -32602 };
            assert_eq!(told["error"]["code"], code, "{told}");
        }
    }
}

#[test]
fn a_client_in_a_session_makes_no_call_that_speaks_for_itself() {
    let plain = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let slash = r#""_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}"#;
    let letter = r#""_meta":{"io.modelcontextprotocol/protocolVersi\u006fn":"2026-07-28"}"#;
    let name = r#""_m\u0065ta":{"io.modelcontextprotocol/protocolVersion":1}"#;
    let doubled = format!(r#""_meta":{{}},{plain}"#);
    for server in [PUSHED, ROUNDS] {
        for spelling in [plain, slash, letter, name, &doubled] {
            for method in ["tools/call", "prompts/get", "tasks/get"] {
                let mut world = World::new(PUSHED, Capability::FORM, server, Asks::Form).opened();
                world.to_server.clear();
                world.client_sends(&format!(
                    r#"{{"jsonrpc":"2.0","id":77,"method":"{method}","params":{{"name":"ask",{spelling}}}}}"#
                ));
                assert!(world.to_server.is_empty(), "{method} {spelling}");
                let told = read(&world.to_client.pop_back().unwrap().1);
                assert_eq!(told["id"], 77);
                // Duplicate names and names with unusual spelling are rejected in any frame.
                let is_usual = spelling != name && spelling != doubled;
                let code = if is_usual { -32602 } else { -32600 };
                assert_eq!(told["error"]["code"], code, "{spelling}: {told}");
            }
        }
    }
}

#[test]
fn unknown_members_of_questions_and_answers_survive_the_bridge_to_a_pushed_client() {
    for client in [OLD, PUSHED] {
        let mut world = World::new(client, Capability::BOTH, ROUNDS, Asks::Nothing).opened();
        let id = world.call();
        world.to_server.clear();
        let asked = json!({"method": "elicitation/create", "params": question()});
        let round = json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "input_required", "requestState": "s", "inputRequests": {"who": asked}}});
        world.server_sends(&round.to_string());
        world.run_record();
        let push = read(&world.to_client.pop_back().unwrap().1);
        assert_eq!(push["params"]["x-hint"], json!({"a": 1}), "{client}");
        assert_eq!(push["params"]["_meta"], json!({"vendor/x": 2}), "{client}");
        let name = &push["params"]["requestedSchema"]["properties"]["name"];
        assert_eq!(name["x-widget"], "big", "{client}");
        let answer = json!({"jsonrpc": "2.0", "id": push["id"], "result": reply()});
        world.client_sends(&answer.to_string());
        world.run_record();
        let retry = read(&world.to_server.pop_front().unwrap());
        assert_eq!(
            retry["params"]["inputResponses"]["who"],
            reply(),
            "{client}"
        );
    }
}

#[test]
fn an_answer_of_the_inbox_is_told_without_the_clients_words() {
    let mut world = World::new(PUSHED, Capability::NONE, ROUNDS, Asks::Form).opened();
    world.people = Some(Action::Decline);
    world.call();
    world.settle();
    assert_eq!(world.client.text(), "decline");
}

fn log(level: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": "d"}})
        .to_string()
}

fn logged(world: &mut World) -> usize {
    let told = world.to_client.drain(..);
    told.filter(|(_, frame)| frame.contains("notifications/message"))
        .count()
}

#[test]
fn log_messages_reach_a_request_of_the_rounds_era_that_asked_for_their_level() {
    let mut world = World::new(ROUNDS, Capability::BOTH, PUSHED, Asks::Nothing).opened();
    world.call();
    world.to_server.clear();
    world.server_sends(&log("emergency"));
    assert_eq!(logged(&mut world), 0, "no request asked for any");
    let (_, call) = world.client.call();
    let mut call = read(&call);
    call["params"]["name"] = json!("other");
    call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("warning");
    world.client_sends(&call.to_string());
    let sent: Vec<Value> = world
        .to_server
        .drain(..)
        .map(|frame| read(&frame))
        .collect();
    let levels: Vec<&Value> = sent
        .iter()
        .filter(|frame| frame["method"] == "logging/setLevel")
        .map(|frame| &frame["params"]["level"])
        .collect();
    assert_eq!(levels, [&json!("warning")]);
    world.server_sends(&log("info"));
    assert_eq!(logged(&mut world), 0, "less than was asked for");
    world.server_sends(&log("error"));
    assert_eq!(logged(&mut world), 1);
}

#[test]
fn the_level_of_a_session_goes_to_a_rounds_server_with_each_request() {
    let mut world = World::new(PUSHED, Capability::BOTH, ROUNDS, Asks::Nothing).opened();
    let level = |world: &mut World| {
        world.call();
        let sent = read(&world.to_server.pop_front().unwrap());
        sent["params"]["_meta"]["io.modelcontextprotocol/logLevel"].clone()
    };
    assert_eq!(level(&mut world), Value::Null);
    let set = |level: &str| {
        json!({"jsonrpc": "2.0", "id": "l", "method": "logging/setLevel", "params": {"level": level}})
            .to_string()
    };
    world.client_sends(&set("loud"));
    let told = read(&world.to_client.pop_back().unwrap().1);
    assert_eq!(told["error"]["code"], -32602);
    world.client_sends(&set("notice"));
    let told = read(&world.to_client.pop_back().unwrap().1);
    assert_eq!(told["result"], json!({}));
    assert_eq!(level(&mut world), "notice");
    world.server_sends(&log("notice"));
    assert_eq!(logged(&mut world), 1);
}

/// Requests of several clients share one pipe to a rounds server, whose log messages do not name a request.
#[test]
fn log_messages_of_a_shared_rounds_server_reach_the_requests_that_asked_for_their_level() {
    let settings = RelaySettings {
        client_streams: true,
        ..RelaySettings::default()
    };
    let mut world = World::with(settings, ROUNDS, Capability::BOTH, ROUNDS, Asks::Nothing).opened();
    for (stream, level) in [(StreamId(1), None), (StreamId(2), Some("warning"))] {
        let (_, call) = world.client.call();
        let mut call = read(&call);
        if let Some(level) = level {
            call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        let frame = call.to_string();
        world
            .relay
            .client_frame(world.now, stream, frame.as_bytes());
        world.effects();
    }
    for (level, expected) in [("info", &[][..]), ("error", &[StreamId(2)])] {
        world.server_sends(&log(level));
        let told: Vec<StreamId> = world
            .to_client
            .drain(..)
            .map(|(stream, _)| stream)
            .collect();
        assert_eq!(told, expected, "{level}");
    }
}
