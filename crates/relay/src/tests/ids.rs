//! Ids of a peer that equal the gateway's own or another request's: no request gets the response to another.

use std::sync::Arc;

use mcp_elicit_core::wire::{Capability, Revision};
use serde_json::{Value, json};

use super::candidates::ByTool;
use super::world::{Asks, World};
use crate::{AskedVia, Audience, RelaySettings, StreamId};

const PUSHED: Revision = Revision::V2025_11_25;
/// Ids that equal the first ones that the gateway could choose.
const LIKE_OWN: [&str; 4] = [
    r#""mcp-\u0065licit.1""#,
    r#""\u006dcp-elicit.2""#,
    r#""mcp\u002delicit.3""#,
    r#""mcp-elicit.4""#,
];

/// Returns an open session in which the test plays the client and the server.
fn session(settings: RelaySettings) -> World {
    let mut world = World::with(settings, PUSHED, Capability::BOTH, PUSHED, Asks::Nothing).opened();
    world.people = None;
    world.to_server.clear();
    world.to_client.clear();
    world
}

fn frames<'a>(texts: impl IntoIterator<Item = &'a String>) -> Vec<Value> {
    let frames = texts.into_iter();
    frames
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

fn to_client(world: &World) -> Vec<Value> {
    frames(world.to_client.iter().map(|(_, frame)| frame))
}

fn call(id: &str, tool: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},"_meta":{meta}}}}}"#
    )
}

fn question(id: &str, message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"mode":"form","message":"{message}","requestedSchema":{{"type":"object","properties":{{}}}}}}}}"#
    )
}

#[test]
fn a_call_whose_id_is_like_the_gateways_own_is_not_ended_by_another_nor_its_question_anothers() {
    for id in LIKE_OWN {
        let settings = RelaySettings {
            decisions: Some(Arc::new(ByTool::default())),
            ..RelaySettings::default()
        };
        let mut world = session(settings);
        world.client_sends(&call(id, "deploy", "{}"));
        // All but the first of these get the gateway's own ids.
        for _ in 0..8 {
            world.client_sends(&call("5", "read", "{}"));
        }
        let sent = frames(&world.to_server);
        let mut ids: Vec<String> = sent.iter().map(|frame| frame["id"].to_string()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 9, "{id}: {sent:?}");
        for read in &sent[1..] {
            let done = json!({"jsonrpc": "2.0", "id": read["id"], "result": {"content": []}});
            world.server_sends(&done.to_string());
        }
        let ended: Vec<Value> = to_client(&world);
        assert_eq!(ended.len(), 8, "{id}: the call is still at work");
        world.server_sends(&question("1", "Deploy?"));
        world.run_record();
        let asked = world.store.values().map(|kept| kept.asked.via);
        assert_eq!(asked.collect::<Vec<_>>(), [AskedVia::People], "{id}");
    }
}

#[test]
fn a_token_that_is_like_the_gateways_own_is_no_other_calls() {
    for token in LIKE_OWN {
        let settings = RelaySettings {
            client_streams: true,
            ..RelaySettings::default()
        };
        let mut world = session(settings);
        let meta = format!(r#"{{"progressToken":{token}}}"#);
        world.client_sends(&call("5", "read", &meta));
        for id in 6..12 {
            world.client_sends(&call(&id.to_string(), "read", r#"{"progressToken":7}"#));
        }
        let sent = frames(&world.to_server);
        let token = |frame: &Value| frame["params"]["_meta"]["progressToken"].to_string();
        let mut tokens: Vec<String> = sent.iter().map(token).collect();
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), 7, "{sent:?}");
    }
}

#[test]
fn an_opening_whose_id_is_like_the_gateways_own_is_answered_and_no_other_request() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            for id in LIKE_OWN {
                let place = format!("{client} {server} {id}");
                let mut world = World::new(client, Capability::BOTH, server, Asks::Nothing);
                let mut open: Value = serde_json::from_str(&world.client.open()).unwrap();
                open["id"] = json!("ID");
                let open = open.to_string().replace(r#""ID""#, id);
                world.client_sends(&open);
                while let Some(sent) = world.to_server.pop_front() {
                    for answer in world.server.receive(&sent) {
                        world.server_sends(&answer);
                    }
                }
                let told = to_client(&world);
                assert_eq!(told.len(), 1, "{place}: {told:?}");
                let known: Value = serde_json::from_str(id).unwrap();
                assert_eq!(told[0]["id"], known, "{place}");
                assert!(told[0]["result"].is_object(), "{place}: {told:?}");
                let revision = world.relay.server_revision();
                assert_eq!(
                    revision == Some(Revision::V2026_07_28),
                    server == Revision::V2026_07_28,
                    "{place}: {revision:?}"
                );
                let seen = &world.server.seen;
                let mut ids: Vec<String> =
                    seen.iter().map(|frame| frame["id"].to_string()).collect();
                ids.retain(|id| id != "null");
                let all = ids.len();
                ids.sort();
                ids.dedup();
                assert_eq!(ids.len(), all, "{place}: {seen:?}");
            }
        }
    }
}

#[test]
fn the_id_of_an_opening_that_may_still_be_answered_is_no_calls() {
    let mut world = World::new(
        Revision::V2026_07_28,
        Capability::BOTH,
        PUSHED,
        Asks::Nothing,
    );
    let open = world.client.open();
    world.client_sends(&open);
    let initialize = world.to_server.pop_front().unwrap();
    // It is slow, so the gateway asks it in the other era too.
    world.pass_time(std::time::Duration::from_secs(4));
    let discover: Value = serde_json::from_str(&world.to_server.pop_front().unwrap()).unwrap();
    assert_eq!(discover["method"], "server/discover");
    for answer in world.server.receive(&initialize) {
        world.server_sends(&answer);
    }
    world.to_client.clear();
    world.to_server.clear();
    let mut call: Value = serde_json::from_str(&world.client.call().1).unwrap();
    call["id"] = discover["id"].clone();
    world.client_sends(&call.to_string());
    let sent = frames(&world.to_server);
    assert_ne!(sent[0]["id"], discover["id"], "{sent:?}");
    let late =
        json!({"jsonrpc": "2.0", "id": discover["id"], "error": {"code": -32601, "message": "no"}});
    world.server_sends(&late.to_string());
    assert!(world.to_client.is_empty(), "the call is still at work");
}

/// A client's answer would otherwise be taken for that of another question.
#[test]
fn a_servers_id_that_is_like_the_gateways_own_is_another_at_the_client() {
    for id in LIKE_OWN {
        let mut world = session(RelaySettings::default());
        world.client_sends(&call("5", "read", "{}"));
        world.to_server.clear();
        let roots = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#);
        world.server_sends(&question(id, "First?"));
        world.server_sends(&roots.replace(id, "77"));
        world.server_sends(&question("77", "Second?"));
        world.server_sends(&roots.replace(id, r#""mcp-elicit.9""#));
        world.run_record();
        let asked = to_client(&world);
        let mut ids: Vec<String> = asked.iter().map(|frame| frame["id"].to_string()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4, "{id}: {asked:?}");
        for frame in &asked {
            let result = match frame["params"]["message"].as_str() {
                Some("First?") => json!({"action": "accept", "content": {}}),
                Some(_) => json!({"action": "decline"}),
                None => json!({"roots": []}),
            };
            let answer = json!({"jsonrpc": "2.0", "id": frame["id"], "result": result});
            world.client_sends(&answer.to_string());
            world.run_record();
        }
        let answers = frames(&world.to_server);
        let answer = |id: &str, is: fn(&Value) -> bool| {
            let id: Value = serde_json::from_str(id).unwrap();
            let found = answers.iter().filter(|frame| frame["id"] == id);
            assert_eq!(found.filter(|frame| is(frame)).count(), 1, "{answers:?}");
        };
        answer(id, |frame| frame["result"]["action"] == "accept");
        answer("77", |frame| frame["result"]["action"] == "decline");
        answer("77", |frame| frame["result"]["roots"].is_array());
        answer(r#""mcp-elicit.9""#, |frame| {
            frame["result"]["roots"].is_array()
        });
        assert_eq!(answers.len(), 4, "{id}: {answers:?}");
    }
}

#[test]
fn a_server_takes_back_its_own_request_and_no_other() {
    let mut world = session(RelaySettings::default());
    world.client_sends(&call("5", "read", "{}"));
    world.server_sends(r#"{"jsonrpc":"2.0","id":"mcp-elicit.2","method":"roots/list"}"#);
    let shown = to_client(&world)[0]["id"].clone();
    assert_ne!(shown, "mcp-elicit.2");
    world.to_client.clear();
    let cancels = |id: &Value| {
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "late"}})
            .to_string()
    };
    // The client knows it by that id, the server does not.
    world.server_sends(&cancels(&shown));
    assert!(world.to_client.is_empty());
    world.server_sends(&cancels(&json!("mcp-elicit.2")));
    let told = to_client(&world);
    assert_eq!(
        told[0]["params"],
        json!({"requestId": shown, "reason": "late"})
    );
    assert_eq!(world.to_client[0].0, StreamId::SESSION);
}

/// The dialog was shown again under the gateway's own id, which the server does not know.
#[test]
fn a_client_that_fails_at_the_second_dialog_fails_under_the_servers_id() {
    let mut world = session(RelaySettings {
        answer_with: Audience::Client,
        ..RelaySettings::default()
    });
    world.client_sends(&call("5", "read", "{}"));
    world.to_server.clear();
    world.server_sends(&question("77", "Sure?").replace(
        r#""properties":{}"#,
        r#""properties":{"n":{"type":"integer"}},"required":["n"]"#,
    ));
    world.run_record();
    let wrong =
        json!({"jsonrpc": "2.0", "id": 77, "result": {"action": "accept", "content": {"n": "x"}}});
    world.client_sends(&wrong.to_string());
    let again = to_client(&world).pop().unwrap();
    assert_ne!(again["id"], 77);
    let fails = json!({"jsonrpc": "2.0", "id": again["id"], "error": {"code": -32603, "message": "closed"}});
    world.client_sends(&fails.to_string());
    let told = frames(&world.to_server);
    assert_eq!(told.last().unwrap()["id"], 77, "{told:?}");
    assert_eq!(told.last().unwrap()["error"]["message"], "closed");
    assert_eq!(world.relay.open().1, 0);
}
