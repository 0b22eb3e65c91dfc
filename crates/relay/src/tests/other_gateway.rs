//! The retry of a round at another gateway of the same record, before another process of the server, while the first runs.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::approvals::{Fixed, settings};
use super::not_a_person::Facts;
use super::states::{ada, asked, call, retry, sent, told};
use super::world::{Asks, World};
use crate::{AskId, Audience, ClientProfile, Event, Relay, RelaySettings};

const ROUNDS: Revision = Revision::V2026_07_28;
const PUSHED: Revision = Revision::V2025_11_25;

fn record_of(world: &World) -> String {
    let mut records = world.store.keys();
    let record = records.next().unwrap().clone();
    assert_eq!(records.next(), None, "one question");
    record
}

fn text(answer: &Value) -> &Value {
    &answer["result"]["content"][0]["text"]
}

fn requests(round: &Value) -> &Value {
    &round["result"]["inputRequests"]
}

fn message(round: &Value) -> &Value {
    let mut asked = requests(round).as_object().unwrap().values();
    &asked.next().unwrap()["params"]["message"]
}

/// Returns the frames of calls that have reached the server.
fn calls(world: &World) -> Vec<&Value> {
    let seen = world.server.seen.iter();
    seen.filter(|frame| frame["method"] == "tools/call")
        .collect()
}

/// Tells the first gateway that the question was taken over, and returns its effects.
fn taken_over(world: &World, mut first: Relay) -> (Relay, Vec<String>) {
    first.handle(world.now, Event::TakenOver { question: AskId(1) });
    let mut effects = Vec::new();
    while let Some(effect) = first.effect() {
        effects.push(format!("{effect:?}"));
    }
    (first, effects)
}

#[test]
fn the_clients_answer_counts_at_another_gateway_and_nobody_is_asked_twice() {
    for server in [ROUNDS, PUSHED] {
        let (mut world, call, told) = asked(server);
        let first = world.other_gateway(RelaySettings::default());
        let answer = sent(&mut world, &retry(&call, &told, 50, &ada()));
        assert_eq!(text(&answer), "accept:Ada", "{server}: {answer}");
        let record = record_of(&world);
        assert_eq!(world.store[&record].deliveries, 1);
        assert!(!world.store[&record].ended);
        assert_eq!(world.server.answers.len(), 1);
        let made = calls(&world)[0];
        let (state, answers) = (
            &made["params"]["requestState"],
            &made["params"]["inputResponses"],
        );
        assert_eq!(
            (state, answers),
            (&Value::Null, &Value::Null),
            "it starts anew"
        );
        let (first, effects) = taken_over(&world, first);
        let ends =
            |effect: &&String| effect.starts_with("End ") || effect.starts_with("KeepResult");
        assert_eq!(effects.iter().find(ends), None, "{effects:?}");
        assert_eq!(first.open(), (0, 0), "{server}");
    }
}

#[test]
fn a_persons_answer_stands_at_another_gateway() {
    let (mut world, call, told) = asked(ROUNDS);
    let record = record_of(&world);
    assert!(world.answer(&record, Action::Accept));
    world.run_record();
    let first = world.other_gateway(RelaySettings::default());
    let bob = json!({"action": "accept", "content": {"name": "Bob"}});
    let answer = sent(&mut world, &retry(&call, &told, 50, &bob));
    assert_eq!(text(&answer), "accept:Ada", "{answer}");
    assert_eq!(record_of(&world), record);
    assert_eq!(world.store[&record].deliveries, 1);
    assert_eq!(taken_over(&world, first).0.open(), (0, 0));
}

#[test]
fn a_wrong_answer_reaches_no_server_and_is_asked_again() {
    for rules in [false, true] {
        let new = || {
            if rules {
                settings(Fixed::default()).0
            } else {
                RelaySettings::default()
            }
        };
        let mut world = World::with(new(), ROUNDS, Capability::BOTH, ROUNDS, Asks::Form).opened();
        let first = call(&mut world);
        let round = told(&mut world);
        world.other_gateway(new());
        world.pass_time(Duration::from_secs(1));
        let wrong = json!({"action": "accept", "content": {"name": 7}});
        let again = sent(&mut world, &retry(&first, &round, 50, &wrong));
        let asked = &again["result"]["inputRequests"]["a"]["params"]["message"];
        let asked = asked.as_str().unwrap_or_default();
        assert!(asked.contains("cannot be used"), "{rules}: {again}");
        assert!(world.server.answers.is_empty());
        let right = sent(&mut world, &retry(&first, &again, 51, &ada()));
        assert_eq!(text(&right), "accept:Ada", "{rules}: {right}");
        record_of(&world);
        assert_eq!(world.server.answers.len(), 1);
    }
}

/// A balancer that sends each request to the other gateway does not send a client round in circles: the answer to a question
/// that has not come up again is in the next state.
#[test]
fn a_call_with_two_questions_ends_when_each_retry_is_at_the_other_gateway() {
    let new = RelaySettings::default;
    let mut world =
        World::with(new(), ROUNDS, Capability::BOTH, ROUNDS, Asks::TwoInSequence).opened();
    let first = call(&mut world);
    let one = told(&mut world);
    let mut other = world.other_gateway(new());
    let two = sent(&mut world, &retry(&first, &one, 50, &ada()));
    assert_ne!(requests(&two), requests(&one), "the second question");
    world.swap_gateways(&mut other);
    let bob = json!({"action": "accept", "content": {"name": "Bob"}});
    let again = sent(&mut world, &retry(&first, &two, 51, &bob));
    assert_eq!(
        message(&again),
        message(&one),
        "the first, for another process"
    );
    let state = again["result"]["requestState"].as_str().unwrap();
    assert!(!state.contains("Bob"));
    world.swap_gateways(&mut other);
    let done = sent(&mut world, &retry(&first, &again, 52, &ada()));
    assert_eq!(text(&done), "accept:Bob", "{done}");
    assert_eq!(world.relay.open(), (0, 0));
    assert!(world.store.values().all(|kept| kept.deliveries == 1));
    assert_eq!(world.store.len(), 3);
}

/// Another connection takes a call that waits behind one of the same caller, with the answers of the retry.
#[test]
fn a_retry_that_waits_for_its_turn_moves_with_its_answer() {
    let (mut world, first, round) = asked(PUSHED);
    world.other_gateway(RelaySettings::default());
    world.relay.settings.eras.saw_pushed();
    call(&mut world);
    let retried = retry(&first, &round, 50, &ada());
    world.client_sends(&retried.to_string());
    assert!(world.relay.queued_since().is_some());
    let (_, moved) = world.relay.take_queued().expect("it moves");
    let moved: Value = serde_json::from_slice(&moved).unwrap();
    assert_eq!(moved, retried);
    world.to_server.clear();
    world.other_gateway(RelaySettings::default());
    let answer = sent(&mut world, &moved);
    assert_eq!(text(&answer), "accept:Ada", "{answer}");
}

#[test]
fn a_used_state_brings_no_answer_at_another_gateway() {
    let (mut world, call, told) = asked(ROUNDS);
    let first = sent(&mut world, &retry(&call, &told, 50, &ada()));
    assert_eq!(text(&first), "accept:Ada");
    world.other_gateway(RelaySettings::default());
    let again = sent(&mut world, &retry(&call, &told, 51, &ada()));
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    assert_eq!(world.server.answers.len(), 1);
}

/// A client that answers sooner than a person can does so at every gateway.
#[test]
fn an_act_sooner_than_a_person_can_read_is_none_at_another_gateway_either() {
    let profile = ClientProfile {
        doubt: Some(Duration::from_millis(150)),
        ..ClientProfile::default()
    };
    let new = |audience| RelaySettings {
        answer_with: audience,
        client_facts: Some(Arc::new(Facts(profile.clone()))),
        ..RelaySettings::default()
    };
    for (after, audience, is_moved) in [
        (100, Audience::Auto, true),
        (150, Audience::Auto, false),
        (100, Audience::Client, false),
    ] {
        let settings = new(audience);
        let mut world =
            World::with(settings, ROUNDS, Capability::BOTH, ROUNDS, Asks::Form).opened();
        world.people = None;
        let first = call(&mut world);
        let round = told(&mut world);
        world.other_gateway(new(audience));
        world.pass_time(Duration::from_millis(after));
        let retry = retry(&first, &round, 50, &ada());
        if is_moved {
            world.client_sends(&retry.to_string());
            let asked = world.to_server.pop_front().unwrap();
            for frame in world.server.receive(&asked) {
                world.server_sends(&frame);
            }
            world.run_record();
        } else {
            assert_eq!(text(&sent(&mut world, &retry)), "accept:Ada");
        }
        let record = record_of(&world);
        let expected = is_moved.then_some(NotAPerson::TooFast {
            act: Action::Accept,
            after_ms: after,
        });
        assert_eq!(world.store[&record].moved, expected);
        assert_eq!(world.server.answers.len(), usize::from(!is_moved));
        let is_doubted = audience == Audience::Client;
        assert_eq!(world.doubts.len(), usize::from(is_doubted));
    }
}
