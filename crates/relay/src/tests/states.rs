//! `requestState`: sealed, for one call of one caller at one server, across restarts; the same question has the same key.

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::{Relay, RelaySettings, StateSeal};

const ROUNDS: Revision = Revision::V2026_07_28;
const PUSHED: Revision = Revision::V2025_11_25;

/// Makes a call of a rounds client in which the server asks. Returns the session, the call and the client's response.
pub(super) fn asked(server: Revision) -> (World, Value, Value) {
    let mut world = World::new(ROUNDS, Capability::BOTH, server, Asks::Form).opened();
    let call = call(&mut world);
    let told = told(&mut world);
    (world, call, told)
}

pub(super) fn call(world: &mut World) -> Value {
    let (_, frame) = world.client.call();
    world.client_sends(&frame);
    serde_json::from_str(&frame).unwrap()
}

/// Returns the next response to the client, which the client model does not process.
pub(super) fn told(world: &mut World) -> Value {
    loop {
        if let Some(event) = world.events.pop_front() {
            world.tell(event);
        } else if let Some(frame) = world.to_server.pop_front() {
            for sent in world.server.receive(&frame) {
                world.server_sends(&sent);
            }
        } else if let Some((_, frame)) = world.to_client.pop_front() {
            let frame: Value = serde_json::from_str(&frame).unwrap();
            if frame.get("method").is_none() {
                return frame;
            }
        } else {
            panic!("the client is told nothing")
        }
    }
}

pub(super) fn retry(call: &Value, told: &Value, id: u64, answer: &Value) -> Value {
    let mut retry = call.clone();
    retry["id"] = json!(id);
    retry["params"]["requestState"] = told["result"]["requestState"].clone();
    let keys = told["result"]["inputRequests"].as_object().unwrap().keys();
    let responses: serde_json::Map<String, Value> =
        keys.map(|key| (key.clone(), answer.clone())).collect();
    retry["params"]["inputResponses"] = responses.into();
    retry
}

pub(super) fn ada() -> Value {
    json!({"action": "accept", "content": {"name": "Ada", "age": 36}})
}

pub(super) fn sent(world: &mut World, frame: &Value) -> Value {
    world.client_sends(&frame.to_string());
    told(world)
}

#[test]
fn a_retry_without_a_state_or_with_one_that_is_no_text_is_told_which_of_both() {
    for server in [PUSHED, ROUNDS] {
        let (mut world, call, told) = asked(server);
        let state = told["result"]["requestState"].clone();
        let seen = world.server.seen.len();
        for wrong in [json!([state]), json!({"s": state}), json!(7), Value::Null] {
            let mut retry = retry(&call, &told, 50, &ada());
            retry["params"]["requestState"] = wrong;
            let error = sent(&mut world, &retry)["error"].take();
            assert_eq!(error["code"], -32602);
            let why = error["message"].as_str().unwrap();
            assert!(
                why.starts_with("`requestState` must be a string: "),
                "{why}"
            );
        }
        let mut none = retry(&call, &told, 51, &ada());
        none["params"]
            .as_object_mut()
            .unwrap()
            .remove("requestState");
        let error = sent(&mut world, &none)["error"].take();
        assert_eq!(error["code"], -32602);
        let why = error["message"].as_str().unwrap();
        let expected = "`inputResponses` came without the `requestState` of the result";
        assert!(why.starts_with(expected), "{why}");
        assert_eq!(world.server.seen.len(), seen);
        let right = sent(&mut world, &retry(&call, &told, 52, &ada()));
        assert!(right["result"].is_object(), "the state is still good");
    }
}

#[test]
fn a_tampered_moved_or_foreign_state_is_refused_and_reaches_nobody() {
    for server in [PUSHED, ROUNDS] {
        let changes: [fn(&mut Value); 7] = [
            |retry| retry["params"]["requestState"] = json!("1"),
            |retry| retry["params"]["requestState"] = json!(7),
            |retry| {
                let state = retry["params"]["requestState"].as_str().unwrap();
                retry["params"]["requestState"] = json!(format!("{state}A"));
            },
            |retry| retry["params"]["arguments"] = json!({"n": 2}),
            |retry| retry["params"]["name"] = json!("other"),
            |retry| retry["method"] = json!("prompts/get"),
            |retry| {
                retry["params"]
                    .as_object_mut()
                    .unwrap()
                    .remove("requestState");
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let (mut world, call, told) = asked(server);
            let seen = world.server.seen.len();
            let mut moved = retry(&call, &told, 50, &ada());
            change(&mut moved);
            let answer = sent(&mut world, &moved);
            assert_eq!(
                answer["error"]["code"], -32602,
                "{server} {number}: {answer}"
            );
            assert_eq!(world.server.seen.len(), seen, "{server} {number}");
            assert!(world.to_server.is_empty(), "{server} {number}");
            // The state itself is still valid.
            let answer = sent(&mut world, &retry(&call, &told, 51, &ada()));
            let text = &answer["result"]["content"][0]["text"];
            assert_eq!(text, "accept:Ada", "{server} {number}: {answer}");
        }
    }
}

#[test]
fn a_state_of_another_caller_or_server_is_refused() {
    for server in [PUSHED, ROUNDS] {
        for seal in [
            StateSeal::new(&[7; 32], "server", "other"),
            StateSeal::new(&[7; 32], "other", "caller"),
            StateSeal::new(&[8; 32], "server", "caller"),
        ] {
            let (mut world, call, told) = asked(server);
            world.relay = Relay::new(RelaySettings::default(), seal);
            let open = world.client.open();
            world.client_sends(&open);
            super::states::told(&mut world);
            let answer = sent(&mut world, &retry(&call, &told, 50, &ada()));
            assert_eq!(answer["error"]["code"], -32602, "{server}: {answer}");
        }
    }
}

#[test]
fn a_state_expires_and_counts_once() {
    for server in [PUSHED, ROUNDS] {
        let (mut world, call, told) = asked(server);
        world.pass_time(RelaySettings::default().open_for);
        world.to_client.clear();
        let late = sent(&mut world, &retry(&call, &told, 50, &ada()));
        assert_eq!(late["error"]["code"], -32602, "{server}: {late}");

        let (mut world, call, told) = asked(server);
        let first = sent(&mut world, &retry(&call, &told, 50, &ada()));
        assert_eq!(
            first["result"]["content"][0]["text"], "accept:Ada",
            "{first}"
        );
        let second = sent(&mut world, &retry(&call, &told, 51, &ada()));
        assert_eq!(second["error"]["code"], -32602, "{server}: {second}");
        assert_eq!(world.server.answers.len(), 1, "{server}");
    }
}

/// The gateway and the server are restarted; the client's person answers afterwards.
#[test]
fn a_state_outlives_the_gateway() {
    for server in [PUSHED, ROUNDS] {
        let (mut world, call, told) = asked(server);
        world.restart(RelaySettings::default());
        let answer = sent(&mut world, &retry(&call, &told, 50, &ada()));
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, "accept:Ada", "{server}: {answer}");
        assert_eq!(world.store.len(), 1, "{server}: nothing is asked twice");
        assert!(world.open_to_people().is_empty());
        let again = sent(&mut world, &retry(&call, &told, 51, &ada()));
        assert_eq!(again["error"]["code"], -32602, "{server}: {again}");
    }
}

/// An answer is for its own question, and for no other with the same text.
#[test]
fn an_answer_of_before_a_restart_is_not_taken_for_a_later_question() {
    let (mut world, call, told) = asked(PUSHED);
    let first = sent(&mut world, &retry(&call, &told, 50, &ada()));
    assert_eq!(first["result"]["content"][0]["text"], "accept:Ada");
    world.restart(RelaySettings::default());
    let again = sent(&mut world, &retry(&call, &told, 51, &ada()));
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    assert_eq!(world.server.answers.len(), 1);
}

/// A framework that repeats the call from its first round finds the waiting question, under the same key.
#[test]
fn a_call_made_again_from_its_first_round_adopts_its_question() {
    let (mut world, first, asked) = asked(PUSHED);
    let calls = |world: &World| {
        let seen = world.server.seen.iter();
        seen.filter(|frame| frame["method"] == "tools/call").count()
    };
    let mut last = asked.clone();
    for restart in [false, false, true] {
        if restart {
            world.restart(RelaySettings::default());
        }
        let before = calls(&world);
        let again = call(&mut world);
        last = told(&mut world);
        assert_eq!(
            last["result"]["inputRequests"], asked["result"]["inputRequests"],
            "the same question under the same key"
        );
        assert_eq!(last["id"], again["id"]);
        assert_eq!(calls(&world) - before, usize::from(restart));
        assert_eq!(world.store.len(), 1, "one question");
    }
    let answer = sent(&mut world, &retry(&first, &last, 50, &ada()));
    assert_eq!(
        answer["result"]["content"][0]["text"], "accept:Ada",
        "{answer}"
    );
    assert_eq!(world.server.answers.len(), 1);
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn a_client_that_cannot_be_asked_does_not_adopt_the_question_of_one_that_can() {
    let (mut world, _, _) = asked(PUSHED);
    world.client.capability = Capability::NONE;
    world.people = Some(Action::Accept);
    call(&mut world);
    // It waits for its turn with the server, or for another connection.
    world.settle();
    assert!(world.client.asked.is_empty(), "{:?}", world.client.asked);
    assert_eq!(world.store.len(), 1);
}

/// The same text asked twice in one call gives two questions, each with a stable key of its own.
#[test]
fn the_same_question_asked_twice_has_two_keys() {
    let keys = |world: &mut World| {
        call(world);
        let told = told(world);
        let requests = told["result"]["inputRequests"].as_object().unwrap().clone();
        requests.keys().cloned().collect::<Vec<_>>()
    };
    let world = || World::new(ROUNDS, Capability::BOTH, PUSHED, Asks::TwoAtOnce).opened();
    let (one, two) = (keys(&mut world()), keys(&mut world()));
    assert_eq!(one, two);
}

/// A framework that continues by repeating the call from its first round repeats its answers, and gets the remaining
/// questions.
#[test]
fn a_call_made_again_repeats_the_rounds_that_were_answered() {
    let mut world = World::new(ROUNDS, Capability::BOTH, PUSHED, Asks::TwoInSequence).opened();
    let first = call(&mut world);
    let one = told(&mut world);
    let two = sent(&mut world, &retry(&first, &one, 50, &ada()));
    assert_eq!(two["result"]["resultType"], "input_required", "{two}");
    for run in 0..2 {
        let again = call(&mut world);
        let repeated = told(&mut world);
        assert_eq!(repeated["id"], again["id"]);
        assert_eq!(
            repeated["result"]["inputRequests"], one["result"]["inputRequests"],
            "{run}: the first round once more"
        );
        let next = sent(&mut world, &retry(&again, &repeated, 60 + run, &ada()));
        assert_eq!(
            next["result"]["inputRequests"], two["result"]["inputRequests"],
            "{run}: the round that waits"
        );
        assert_eq!(world.server.answers.len(), 1, "{run}: delivered once");
        if run == 1 {
            let done = sent(&mut world, &retry(&again, &next, 70, &ada()));
            assert_eq!(done["result"]["content"][0]["text"], "accept:Ada", "{done}");
        }
    }
    assert_eq!(world.server.answers.len(), 2);
    assert_eq!(world.store.len(), 2);
    assert_eq!(world.relay.open(), (0, 0));
}

/// A different answer to a repeated round is not taken for the one that the server has.
#[test]
fn another_answer_to_a_repeated_round_is_not_the_one_that_was_given() {
    let mut world = World::new(ROUNDS, Capability::BOTH, PUSHED, Asks::TwoInSequence).opened();
    let first = call(&mut world);
    let one = told(&mut world);
    sent(&mut world, &retry(&first, &one, 50, &ada()));
    let again = call(&mut world);
    let repeated = told(&mut world);
    let other = json!({"action": "accept", "content": {"name": "Bob"}});
    world.client_sends(&retry(&again, &repeated, 60, &other).to_string());
    world.settle();
    assert_eq!(world.server.answers.len(), 1, "{:?}", world.server.answers);
}
