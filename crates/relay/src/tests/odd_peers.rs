//! Peers that spell ids in another type, repeat a wrong one, or report progress that the gateway's own has overtaken.

use std::time::Duration;

use mcp_elicit_core::secret::SecretText;
use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::RelaySettings;

const PUSHED: Revision = Revision::V2025_11_25;

fn opened() -> World {
    let mut world = World::with_silent_server(RelaySettings::default());
    world.to_server.clear();
    world
}

fn request(world: &mut World, id: &Value, method: &str) {
    let params = json!({"name": "ask", "arguments": {}});
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    world.client_sends(&frame.to_string());
}

fn server_answers(world: &mut World, id: &Value, text: &str) {
    let result = json!({"content": [{"type": "text", "text": text}]});
    world.server_sends(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
}

/// Lets the simulator's server handle everything that it got.
fn server_works(world: &mut World) {
    while let Some(frame) = world.to_server.pop_front() {
        for sent in world.server.receive(&frame) {
            world.server_sends(&sent);
        }
    }
}

fn told(world: &mut World) -> Vec<Value> {
    let frames = world.to_client.drain(..);
    frames
        .map(|(_, frame)| serde_json::from_str(&frame).unwrap())
        .collect()
}

#[test]
fn a_response_under_its_id_in_the_other_type_reaches_the_client_under_its_own() {
    for (asked, answered) in [
        (json!(7), json!("7")),
        (json!("7"), json!(7)),
        (json!(-3), json!("-3")),
        (
            json!("12345678901234567890"),
            json!(12_345_678_901_234_567_890_u64),
        ),
    ] {
        for method in ["tools/call", "resources/list"] {
            let mut world = opened();
            request(&mut world, &asked, method);
            server_answers(&mut world, &answered, "done");
            let told = told(&mut world);
            assert_eq!(told.len(), 1, "{asked} {answered}");
            assert_eq!(told[0]["id"], asked);
            assert_eq!(told[0]["result"]["content"][0]["text"], "done");
            assert_eq!(world.relay.open(), (0, 0));
        }
    }
}

#[test]
fn two_requests_whose_ids_differ_only_in_type_are_not_confused() {
    let mut world = opened();
    request(&mut world, &json!(7), "tools/call");
    request(&mut world, &json!("7"), "tools/call");
    server_answers(&mut world, &json!("7"), "text");
    server_answers(&mut world, &json!(7), "number");
    let told = told(&mut world);
    assert_eq!(told[0]["id"], "7");
    assert_eq!(told[0]["result"]["content"][0]["text"], "text");
    assert_eq!(told[1]["id"], 7);
    assert_eq!(told[1]["result"]["content"][0]["text"], "number");
}

#[test]
fn an_opening_is_answered_under_its_id_in_the_other_type() {
    for id in [json!(0), json!(1), json!("1")] {
        let mut world = World::new(PUSHED, Capability::NONE, PUSHED, Asks::Nothing);
        let open: Value = serde_json::from_str(&world.client.open()).unwrap();
        let mut open = open;
        open["id"] = id.clone();
        world.client_sends(&open.to_string());
        let other = match &id {
            Value::String(text) => json!(text.parse::<u64>().unwrap()),
            number => json!(number.to_string()),
        };
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "peer", "version": "1"}});
        let answer = json!({"jsonrpc": "2.0", "id": other, "result": result});
        world.server_sends(&answer.to_string());
        let told = told(&mut world);
        assert_eq!(told.len(), 1, "{id}");
        assert_eq!(told[0]["id"], id);
        assert!(told[0]["result"].is_object(), "{}", told[0]);
    }
}

#[test]
fn a_server_that_answers_everything_under_0_is_told_of_instead_of_a_silence() {
    let mut world = opened();
    request(&mut world, &json!(7), "tools/call");
    server_answers(&mut world, &json!(0), "done");
    let answers = told(&mut world);
    assert_eq!(answers[0]["id"], 7);
    let why = answers[0]["error"]["message"].as_str().unwrap();
    assert!(why.contains("under the id 0"), "{why}");
    // Of two requests, either may be meant.
    request(&mut world, &json!(8), "tools/call");
    request(&mut world, &json!(9), "tools/call");
    server_answers(&mut world, &json!(0), "done");
    assert_eq!(told(&mut world), Vec::<Value>::new());
    server_answers(&mut world, &json!(8), "own");
    assert_eq!(told(&mut world)[0]["result"]["content"][0]["text"], "own");
}

#[test]
fn an_opening_that_is_answered_under_0_is_refused_with_the_reason() {
    let mut world = World::new(PUSHED, Capability::NONE, PUSHED, Asks::Nothing);
    let open = world.client.open();
    world.client_sends(&open);
    server_answers(&mut world, &json!(0), "done");
    let told = told(&mut world);
    let why = told[0]["error"]["message"].as_str().unwrap();
    assert!(why.contains("under the id 0"), "{why}");
}

#[test]
fn a_client_may_answer_a_question_under_its_id_in_the_other_type() {
    for (asked, answered) in [(json!("5"), json!(5)), (json!(5), json!("5"))] {
        let mut world = World::new(PUSHED, Capability::BOTH, PUSHED, Asks::Nothing).opened();
        request(&mut world, &json!(70), "tools/call");
        world.to_server.clear();
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let params = json!({"message": "Who?", "requestedSchema": schema});
        let question = json!({"jsonrpc": "2.0", "id": asked, "method": "elicitation/create", "params": params});
        world.server_sends(&question.to_string());
        world.run_record();
        let result = json!({"action": "accept", "content": {"name": "Ada"}});
        let reply = json!({"jsonrpc": "2.0", "id": answered, "result": result});
        world.client_sends(&reply.to_string());
        world.run_record();
        let told: Value = serde_json::from_str(&world.to_server.pop_back().unwrap()).unwrap();
        assert_eq!(told["id"], asked);
        assert_eq!(told["result"]["content"]["name"], "Ada");
    }
}

#[test]
fn a_question_whose_id_cannot_be_repeated_is_refused_and_a_large_one_is_answered() {
    let question = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"Who?","requestedSchema":{{"type":"object","properties":{{"name":{{"type":"string"}}}}}}}}}}"#
        )
    };
    for id in ["null", "true", "{}", "[1]"] {
        let mut world = opened();
        request(&mut world, &json!(7), "tools/call");
        world.to_server.clear();
        world.server_sends(&question(id));
        let told: Value = serde_json::from_str(&world.to_server.pop_back().unwrap()).unwrap();
        assert_eq!(told["id"], Value::Null);
        assert_eq!(told["error"]["code"], -32600, "{id}");
    }
    for id in [
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890123456789012345678901234567890",
        "1e400",
    ] {
        let mut world = opened();
        request(&mut world, &json!(7), "tools/call");
        world.to_server.clear();
        world.server_sends(&question(id));
        world.run_record();
        let open = world.open_to_people();
        assert_eq!(open.len(), 1, "{id}");
        assert!(world.answer(&open[0], Action::Accept));
        world.run_record();
        let told = world.to_server.pop_back().unwrap();
        assert!(told.contains(&format!("\"id\":{id},")), "{told}");
    }
}

fn progress(world: &mut World, token: &Value, progress: &Value) {
    let params = json!({"progressToken": token, "progress": progress, "total": 100});
    let frame = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    world.server_sends(&frame.to_string());
}

#[test]
fn progress_rises_for_the_client_whether_the_server_or_the_gateway_reports_it() {
    // Reported before the question, while it waits, and after it.
    for (before, during, after) in [
        (json!(10), json!(10), json!(20)),
        (json!(0.5), json!(0.001), json!(0.7)),
        (json!(0), json!(0), json!(1)),
        (json!(1e15), json!(3), json!(2e15)),
    ] {
        let mut world = World::new(PUSHED, Capability::NONE, PUSHED, Asks::Form).opened();
        world.people = None;
        world.call();
        let token = json!(101);
        progress(&mut world, &token, &before);
        world.settle();
        for _ in 0..3 {
            world.pass_time(Duration::from_secs(10));
            progress(&mut world, &token, &during);
        }
        world.people = Some(Action::Accept);
        world.settle();
        progress(&mut world, &token, &after);
        world.settle();
        let seen = world.client.progress.iter();
        let seen: Vec<f64> = seen.map(|one| one["progress"].as_f64().unwrap()).collect();
        assert!(seen.len() >= 7, "{seen:?}");
        // The last came after the response, when the token has ended.
        let in_call = &seen[..seen.len() - 1];
        assert!(in_call.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
        let totals = world
            .client
            .progress
            .iter()
            .filter(|one| one["total"] == 100);
        assert!(totals.count() >= 4, "the server's members stay");
    }
}

#[test]
fn progress_on_a_token_that_no_read_request_gave_is_passed_on() {
    let mut world = opened();
    progress(&mut world, &json!("tool-call-1"), &json!(3));
    progress(&mut world, &json!("tool-call-1"), &json!(2));
    let told = told(&mut world);
    assert_eq!(
        told.len(),
        2,
        "it may be of a task, or of a request that is forwarded unread"
    );
    assert_eq!(told[1]["params"]["progress"], 2);
}

#[test]
fn a_content_of_null_does_not_reach_the_server() {
    for (action, expected) in [
        ("decline", json!({"action": "decline"})),
        ("cancel", json!({"action": "cancel"})),
        ("accept", json!({"action": "accept", "content": {}})),
    ] {
        let mut world = World::new(PUSHED, Capability::BOTH, PUSHED, Asks::Nothing).opened();
        request(&mut world, &json!(70), "tools/call");
        world.to_server.clear();
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let params = json!({"message": "Who?", "requestedSchema": schema});
        let question =
            json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params});
        world.server_sends(&question.to_string());
        world.run_record();
        let result = json!({"action": action, "content": null});
        let reply = json!({"jsonrpc": "2.0", "id": "q", "result": result});
        world.client_sends(&reply.to_string());
        world.run_record();
        let told: Value = serde_json::from_str(&world.to_server.pop_back().unwrap()).unwrap();
        assert_eq!(told["result"], expected);
    }
}

#[test]
fn an_empty_list_for_an_empty_object_declares_elicitation() {
    for (revision, elicitation) in [
        ("2025-06-18", json!([])),
        ("2025-11-25", json!([])),
        ("2025-11-25", json!({"form": []})),
        ("2025-11-25", json!({"form": [], "url": []})),
    ] {
        let mut world = World::new(PUSHED, Capability::NONE, PUSHED, Asks::Form);
        let params = json!({"protocolVersion": revision, "capabilities": {"elicitation": elicitation},
            "clientInfo": {"name": "php", "version": "1"}});
        let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        world.client_sends(&open.to_string());
        let sent: Value = serde_json::from_str(&world.to_server[0]).unwrap();
        let declared = &sent["params"]["capabilities"]["elicitation"];
        assert!(
            declared.is_object() && !declared.to_string().contains('['),
            "{declared}"
        );
        server_works(&mut world);
        world.to_client.clear();
        request(&mut world, &json!(7), "tools/call");
        server_works(&mut world);
        world.run_record();
        let asked = world.to_client.iter();
        let asked = asked.filter(|(_, frame)| frame.contains("elicitation/create"));
        assert_eq!(asked.count(), 1, "{revision} {elicitation}");
    }
}

#[test]
fn a_server_that_has_a_credential_for_its_name_is_not_shown_with_it() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let settings = |secret: &str| RelaySettings {
            is_named: false,
            secrets: [SecretText::new(secret)].into(),
            ..RelaySettings::default()
        };
        for (secret, shown) in [("peer", "***"), ("another", "peer")] {
            let settings = settings(secret);
            let world = World::with(
                settings,
                revision,
                Capability::BOTH,
                revision,
                Asks::Nothing,
            );
            let world = world.opened();
            assert_eq!(world.relay.shown_server(), shown);
            let info = world.relay.server_info().unwrap();
            assert!(info.contains(shown), "{info}");
        }
    }
}
