//! What is refused: illegal questions, wrong answers, too much of anything.

use std::time::Duration;

use mcp_elicit_core::wire::{Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::relay::{Event, Settings};

fn push(id: u64, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
        .to_string()
}

fn refused(world: &mut World, params: &Value) -> Value {
    world.server_sends(&push(900, params));
    while let Some(event) = world.events.pop_front() {
        world.tell(event);
    }
    let frame = world.to_server.pop_front().expect("the server is told");
    let frame: Value = serde_json::from_str(&frame).unwrap();
    assert_eq!(frame["id"], 900);
    frame["error"].clone()
}

#[test]
fn an_illegal_question_is_refused_and_never_shown() {
    let cases = [
        json!({"mode": "form", "message": "m"}),
        json!({"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "object"}}}}),
        json!({"mode": "dance", "message": "m"}),
        json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "javascript:alert(1)"}),
        json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "not a url"}),
    ];
    for params in cases {
        let mut world = World::new(
            Revision::V2025_11_25,
            Capability::BOTH,
            Revision::V2025_11_25,
            Asks::Nothing,
        )
        .opened();
        let error = refused(&mut world, &params);
        assert_eq!(error["code"], -32602, "{params}: {error}");
        assert!(world.store.is_empty());
    }
}

#[test]
fn an_answer_that_does_not_fit_reaches_no_server() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            let mut world = World::new(client, Capability::BOTH, server, Asks::Form).opened();
            world.client.content = r#"{"name":"Ada","age":3}"#.to_owned();
            world.call();
            world.settle();
            assert!(world.server.answers.is_empty(), "{client} {server}");
            assert!(!world.client.text().contains("Ada"), "{client} {server}");
            assert!(
                !format!("{:?}", world.server.seen).contains("Ada"),
                "no value may pass"
            );
        }
    }
}

#[test]
fn too_many_questions_are_refused_with_a_limit_and_no_action() {
    let settings = Settings {
        pending: Some(2),
        per_minute: None,
        ..Settings::default()
    };
    let mut world = World::with(
        settings,
        Revision::V2025_11_25,
        Capability::NONE,
        Revision::V2025_11_25,
        Asks::Nothing,
    )
    .opened();
    world.desk = None;
    let form = json!({"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    world.server_sends(&push(1, &form));
    world.server_sends(&push(2, &form));
    let error = refused(&mut world, &form);
    assert_eq!(error["code"], -32000, "{error}");

    let settings = Settings {
        pending: None,
        per_minute: Some(2),
        ..Settings::default()
    };
    let mut world = World::with(
        settings,
        Revision::V2025_11_25,
        Capability::NONE,
        Revision::V2025_11_25,
        Asks::Nothing,
    )
    .opened();
    world.desk = None;
    world.server_sends(&push(1, &form));
    world.server_sends(&push(2, &form));
    let error = refused(&mut world, &form);
    assert_eq!(error["data"]["retryAfterSeconds"], 60, "{error}");
    world.pass_time(Duration::from_mins(1));
    world.server_sends(&push(4, &form));
    assert_eq!(world.store.len(), 3, "a minute later it may ask again");
}

#[test]
fn what_cannot_be_recorded_is_not_asked() {
    let mut world = World::new(
        Revision::V2025_11_25,
        Capability::NONE,
        Revision::V2025_11_25,
        Asks::Form,
    )
    .opened();
    world.call();
    let frame = world.to_server.pop_front().unwrap();
    let _ = frame;
    let form = json!({"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    world.server_sends(&push(5, &form));
    let Some(Event::Recorded { question, .. }) = world.events.pop_front() else {
        panic!("not recorded")
    };
    world.tell(Event::NotRecorded { question });
    assert!(world.to_client.is_empty());
    assert!(world.to_server.pop_front().unwrap().contains("-32603"));
}

#[test]
fn a_state_of_another_session_is_refused() {
    let mut world = World::new(
        Revision::V2026_07_28,
        Capability::FORM,
        Revision::V2025_11_25,
        Asks::Form,
    )
    .opened();
    let forged = json!({"jsonrpc": "2.0", "id": 50, "method": "tools/call", "params": {"name": "ask", "requestState": "mcp-elicit.1.r1",
        "inputResponses": {"r1": {"action": "accept", "content": {"name": "Eve"}}},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    world.client_sends(&forged.to_string());
    let (_, frame) = world.to_client.pop_front().unwrap();
    assert!(frame.contains("-32602"), "{frame}");
    assert!(world.server.answers.is_empty());
}
