//! Lists of messages in sessions of 2025-03-26, and requests that a peer cancels under the other spelling of their ids.

use mcp_elicit_core::wire::{Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::RelaySettings;

/// Opens a session of this version; the test plays the client and the server.
fn opened(version: &str) -> World {
    let revision = Revision::V2025_11_25;
    let mut world = World::with(
        RelaySettings::default(),
        revision,
        Capability::NONE,
        revision,
        Asks::Nothing,
    );
    world.people = None;
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    world.client_sends(&open.to_string());
    let asked = sent(&mut world).unwrap();
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
    world.server_sends(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string());
    told(&mut world).unwrap();
    world
}

fn sent(world: &mut World) -> Option<Value> {
    let frame = world.to_server.pop_front()?;
    Some(serde_json::from_str(&frame).unwrap())
}

fn told(world: &mut World) -> Option<Value> {
    let (_, frame) = world.to_client.pop_front()?;
    Some(serde_json::from_str(&frame).unwrap())
}

fn call(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t", "arguments": {}}})
}

fn answer(world: &mut World, id: &Value) {
    world.server_sends(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}).to_string());
}

#[test]
fn members_that_are_no_objects_are_refused_each_in_the_one_list() {
    let mut world = opened("2025-03-26");
    world.client_sends(r#"[1, "x", null, true, [], {"jsonrpc":"2.0","id":null,"method":"ping"}]"#);
    let list = told(&mut world).unwrap();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 6, "{list:?}");
    for one in list {
        assert_eq!(
            (&one["id"], &one["error"]["code"]),
            (&Value::Null, &json!(-32600)),
            "{one}"
        );
    }
    assert_eq!(told(&mut world), None);
    // Notifications alone get no answer at all, not an empty list.
    world.client_sends(r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#);
    assert_eq!(told(&mut world), None);
}

#[test]
fn the_servers_own_messages_are_not_held_up_by_a_list() {
    let mut world = opened("2025-03-26");
    world.client_sends(&json!([call(&json!(5)), call(&json!("six"))]).to_string());
    let ids: Vec<_> = std::iter::from_fn(|| sent(&mut world))
        .map(|frame| frame["id"].clone())
        .collect();
    assert_eq!(ids.len(), 2);
    answer(&mut world, &ids[0]);
    world.server_sends(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    assert_eq!(
        told(&mut world).unwrap()["method"],
        "notifications/tools/list_changed"
    );
    // A request outside of the list is answered by itself.
    world.client_sends(&call(&json!(9)).to_string());
    let single = sent(&mut world).unwrap();
    answer(&mut world, &single["id"]);
    assert_eq!(told(&mut world).unwrap()["id"], 9);
    answer(&mut world, &ids[1]);
    let list = told(&mut world).unwrap();
    let answered: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].clone())
        .collect();
    assert_eq!(answered, [json!(5), json!("six")]);
}

#[test]
fn a_member_that_the_client_cancels_is_not_waited_for() {
    let mut world = opened("2025-03-26");
    world.client_sends(&json!([call(&json!(5)), call(&json!(6))]).to_string());
    let first = sent(&mut world).unwrap();
    sent(&mut world).unwrap();
    answer(&mut world, &first["id"]);
    assert_eq!(told(&mut world), None);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}});
    world.client_sends(&cancel.to_string());
    let list = told(&mut world).unwrap();
    assert_eq!(list[0]["id"], 5);
    assert_eq!(list.as_array().unwrap().len(), 1);
}

#[test]
fn a_server_that_ends_answers_the_whole_list() {
    let mut world = opened("2025-03-26");
    world.client_sends(&json!([call(&json!(5)), call(&json!(6))]).to_string());
    world.tell(crate::Event::ServerGone("it exited".to_owned()));
    let list = told(&mut world).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 2, "{list}");
    assert_eq!(told(&mut world), None);
}

#[test]
fn a_cancellation_under_the_other_spelling_of_an_id_is_honoured_if_it_can_mean_one_request_only() {
    for (asked, named) in [
        (json!(5), json!("5")),
        (json!("6"), json!(6)),
        (json!(12_345_678_901_i64), json!("12345678901")),
    ] {
        let mut world = opened("2025-11-25");
        world.client_sends(&call(&asked).to_string());
        let request = sent(&mut world).unwrap();
        let cancel = |id: &Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "x"}});
        world.client_sends(&cancel(&named).to_string());
        let cancelled = sent(&mut world).unwrap();
        assert_eq!(
            cancelled["params"]["requestId"], request["id"],
            "the server's spelling: {cancelled}"
        );
        assert_eq!(cancelled["params"]["reason"], "x");
        answer(&mut world, &request["id"]);
        assert_eq!(told(&mut world), None, "nobody waits for it");
        // Two requests that differ in the type only: each is named by its own.
        world.client_sends(&call(&asked).to_string());
        world.client_sends(&call(&named).to_string());
        let requests: Vec<_> = std::iter::from_fn(|| sent(&mut world)).collect();
        assert_eq!(requests.len(), 2);
        world.client_sends(&cancel(&named).to_string());
        answer(&mut world, &requests[0]["id"]);
        assert_eq!(told(&mut world).unwrap()["id"], asked);
    }
}

#[test]
fn a_server_withdraws_its_question_under_the_other_spelling_too() {
    for (asked, named) in [(json!(5), json!("5")), (json!("6"), json!(6))] {
        let revision = Revision::V2025_11_25;
        let mut world = World::with_silent_server(RelaySettings::default());
        world.client_sends(&call(&json!(2)).to_string());
        let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}});
        world.server_sends(
            &json!({"jsonrpc": "2.0", "id": asked, "method": "elicitation/create", "params": form})
                .to_string(),
        );
        world.run_record();
        assert_eq!(world.relay.open().1, 1, "{revision}");
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": named}});
        world.server_sends(&cancel.to_string());
        assert_eq!(world.relay.open().1, 0);
    }
}
