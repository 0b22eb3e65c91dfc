//! Rounds that reach a client of the rounds era as the server wrote them, and the results of their retries.

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};

const ROUNDS: Revision = Revision::V2026_07_28;

fn world() -> World {
    World::new(ROUNDS, Capability::FORM, ROUNDS, Asks::Nothing).opened()
}

/// Returns a question, under the state that the server gives to every call.
fn required(id: &Value) -> String {
    let form = json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object",
        "required": ["name"], "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}});
    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "input_required", "requestState": "asked",
        "inputRequests": {"who": {"method": "elicitation/create", "params": form}}}})
    .to_string()
}

/// Makes a call with this argument, to which the server responds with a question. Returns the state that the client
/// got.
fn asked(world: &mut World, argument: u64) -> Value {
    let mut call: Value = serde_json::from_str(&world.client.call().1).unwrap();
    call["params"]["arguments"] = json!({"n": argument});
    world.client_sends(&call.to_string());
    world.to_server.clear();
    world.server_sends(&required(&call["id"]));
    world.run_record();
    let (_, told) = world.to_client.pop_back().unwrap();
    assert!(told.contains("input_required"), "{told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    call["params"]["requestState"] = told["result"]["requestState"].clone();
    call
}

fn retry(world: &mut World, call: &Value, id: u64, name: &str) {
    let mut retry = call.clone();
    retry["id"] = json!(id);
    retry["params"]["inputResponses"] =
        json!({"who": {"action": "accept", "content": {"name": name}}});
    world.client_sends(&retry.to_string());
}

fn answers(world: &mut World) -> Vec<(u64, Value)> {
    let sent = world.to_server.drain(..);
    let read = |frame: String| serde_json::from_str::<Value>(&frame).unwrap();
    sent.map(read)
        .map(|frame| {
            let answer = &frame["params"]["inputResponses"]["who"]["content"]["name"];
            (frame["id"].as_u64().unwrap(), answer.clone())
        })
        .collect()
}

#[test]
fn two_calls_under_one_state_are_told_apart() {
    for arguments in [[1, 2], [1, 1]] {
        let mut world = world();
        let calls = arguments.map(|argument| asked(&mut world, argument));
        retry(&mut world, &calls[1], 21, "Bob");
        retry(&mut world, &calls[0], 20, "Ada");
        world.run_record();
        let mut retry_answers = answers(&mut world);
        retry_answers.sort_by_key(|(id, _)| *id);
        assert_eq!(retry_answers, [(20, json!("Ada")), (21, json!("Bob"))]);
        let deliveries: Vec<u32> = world.store.values().map(|kept| kept.deliveries).collect();
        assert_eq!(deliveries, [1, 1]);
    }
}

#[test]
fn a_retry_goes_on_as_it_came() {
    let mut world = world();
    let mut call = asked(&mut world, 1);
    let reply =
        r#"{"action":"accept","content":{"age":36.0,"name":"Ada","zz":1},"_meta":{"x":1e-7}}"#;
    call["id"] = json!(20);
    call["params"]["inputResponses"] = json!({"who": null});
    let retry = call.to_string().replace("null", reply);
    world.client_sends(&retry);
    world.run_record();
    let sent = world.to_server.pop_front().unwrap();
    assert!(sent.contains(reply), "{sent}");
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(
        sent["params"]["requestState"], "asked",
        "the server's own state"
    );
}

#[test]
fn an_answer_given_in_the_inbox_first_is_the_one_that_counts() {
    let mut world = world();
    let call = asked(&mut world, 1);
    let record = world.store.keys().next().unwrap().clone();
    assert!(world.answer(&record, Action::Accept));
    world.run_record();
    assert_eq!(world.store[&record].deliveries, 0, "nobody came for it yet");
    retry(&mut world, &call, 20, "Bob");
    world.run_record();
    assert_eq!(answers(&mut world), [(20, json!("Ada"))]);
    assert_eq!(world.store[&record].deliveries, 1);
    assert_eq!(world.relay.open().1, 0);
}

#[test]
fn an_answer_that_nobody_comes_for_does_not_wait_for_ever() {
    let mut world = world();
    asked(&mut world, 1);
    let record = world.store.keys().next().unwrap().clone();
    assert!(world.answer(&record, Action::Accept));
    world.run_record();
    world.pass_time(crate::RelaySettings::default().open_for);
    assert_eq!(world.relay.open(), (0, 0));
    assert_eq!(world.undelivered(), [record.as_str()]);
}

/// Requests of the rounds era share a relay, and their clients' ids may be equal.
#[test]
fn a_call_under_the_id_of_one_whose_question_is_being_written_is_answered() {
    let mut world = world();
    let call: Value = serde_json::from_str(&world.client.call().1).unwrap();
    world.client_sends(&call.to_string());
    world.server_sends(&required(&call["id"]));
    // The question is not written yet when another client calls.
    let mut other = call.clone();
    other["params"]["arguments"] = json!({"n": 2});
    world.to_server.clear();
    world.client_sends(&other.to_string());
    world.run_record();
    let (_, told) = world.to_client.pop_back().unwrap();
    assert!(told.contains("input_required"), "{told}");
    let sent = world.to_server.pop_front().unwrap();
    let sent: Value = serde_json::from_str(&sent).unwrap();
    let result = json!({"jsonrpc": "2.0", "id": sent["id"], "result": {"resultType": "complete", "content": []}});
    world.server_sends(&result.to_string());
    let (_, told) = world.to_client.pop_back().expect("the other call's answer");
    assert!(told.contains("complete"), "{told}");
}
