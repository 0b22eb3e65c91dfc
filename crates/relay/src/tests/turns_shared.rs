//! Calls that share a turn: an overlooked question keeps no other call from being asked.

use std::time::Duration;

use mcp_elicit_core::question::AskedVia;
use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::turns::{answer, call, ends, exact_with, session, started};
use super::world::{Asks, World};
use crate::{Audience, RelaySettings, StreamId};

/// Returns the calls that the question of this record may belong to, by their number, the likeliest first.
fn calls_of(world: &World, record: &str) -> Vec<u64> {
    let asked = &world.store[record].asked;
    let all = asked.call.iter().chain(&asked.candidates);
    let number = |arguments: &Option<String>| {
        let arguments: Value = serde_json::from_str(arguments.as_deref().unwrap()).unwrap();
        arguments["of"].as_u64().unwrap()
    };
    all.map(|call| number(&call.arguments)).collect()
}

/// Lets the server ask in each call that has reached it, under the id of the call plus 1,000. Returns the records by
/// the number of the call.
fn asks_in_all(world: &mut World) -> Vec<(u64, String)> {
    let mut asked = Vec::new();
    loop {
        let calls = started(world);
        if calls.is_empty() {
            return asked;
        }
        for id in calls {
            asked.push((id, super::turns::asks(world, id + 1_000)));
        }
    }
}

fn cancels(world: &mut World, id: u64, reason: Option<&str>) {
    let params = json!({"requestId": id, "reason": reason});
    let frame = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    world.client_sends(&frame.to_string());
    world.run_record();
}

#[test]
fn of_fifty_calls_the_first_is_overlooked_and_every_other_is_asked_and_gets_its_own_answer() {
    let mut world = session();
    for id in 1..=50 {
        call(&mut world, id + 100, "deploy");
        // The first alone shows that the tool asks.
        if id == 1 {
            assert_eq!(asks_in_all(&mut world).len(), 1);
        }
    }
    let asked = asks_in_all(&mut world);
    assert_eq!(asked.len(), 49, "no time has passed");
    for (id, record) in &asked {
        assert_eq!(calls_of(&world, record)[0], *id, "the likeliest is right");
    }
    world.to_client.clear();
    for (id, record) in asked.iter().rev() {
        answer(&mut world, record);
        let told = world.to_server.pop_back().expect("the server is told");
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(
            told["id"],
            id + 1_000,
            "the server's own id names the question"
        );
        ends(&mut world, *id);
        let (_, result) = world.to_client.pop_back().unwrap();
        assert!(result.contains(&format!("done {id}")), "{result}");
    }
    assert_eq!(world.relay.open(), (1, 1), "the overlooked one waits on");
}

#[test]
fn calls_that_were_handed_back_each_find_their_own_result() {
    let mut world = session();
    for id in 101..=103 {
        call(&mut world, id, "deploy");
        assert_eq!(asks_in_all(&mut world).len(), 1);
    }
    world.to_client.clear();
    world.pass_time(Duration::from_secs(51));
    let back = world.to_client.drain(..);
    let back =
        back.filter(|(_, frame)| frame.contains("Not done yet") && frame.contains("needs a"));
    assert_eq!(back.count(), 3, "each names its own question");
    for record in world.open_to_people() {
        answer(&mut world, &record);
    }
    for id in [102, 103, 101] {
        ends(&mut world, id);
    }
    for id in [103, 101, 102] {
        let params = json!({"name": "deploy", "arguments": {"of": id}});
        let again =
            json!({"jsonrpc": "2.0", "id": id + 100, "method": "tools/call", "params": params});
        world.client_sends(&again.to_string());
        let (_, result) = world.to_client.pop_back().unwrap();
        assert!(result.contains(&format!("done {id}")), "{result}");
    }
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn a_call_that_works_before_it_asks_delays_the_next_only_for_a_moment() {
    let mut world = session();
    super::turns::seen_to_ask(&mut world, 11, "deploy");
    call(&mut world, 12, "deploy");
    call(&mut world, 13, "deploy");
    assert_eq!(started(&mut world), [12]);
    world.pass_time(Duration::from_millis(249));
    assert_eq!(started(&mut world), Vec::<u64>::new());
    world.pass_time(Duration::from_millis(1));
    assert_eq!(started(&mut world), [13]);
    let record = super::turns::asks(&mut world, 1);
    assert_eq!(calls_of(&world, &record), [12, 13], "either may have asked");
}

#[test]
fn where_rules_may_differ_a_call_waits_for_its_turn_and_not_for_ever() {
    let settings = RelaySettings {
        turn_wait: Duration::from_secs(10),
        ..RelaySettings::default()
    };
    let mut world = exact_with(settings);
    super::turns::seen_to_ask(&mut world, 11, "deploy");
    for id in 12..=14 {
        call(&mut world, id, "deploy");
    }
    assert_eq!(asks_in_all(&mut world).len(), 1);
    world.pass_time(Duration::from_millis(9_999));
    assert_eq!(started(&mut world), Vec::<u64>::new());
    world.pass_time(Duration::from_millis(1));
    let asked = asks_in_all(&mut world);
    assert_eq!(asked.len(), 2);
    for (id, record) in asked {
        let calls = calls_of(&world, &record);
        assert_eq!(calls[0], id);
        assert!(calls.contains(&12), "it may be of the first: {calls:?}");
    }
}

#[test]
fn a_call_that_its_client_gave_up_holds_no_turn() {
    for reason in [
        Some("timed out after 5s"),
        Some("McpError: Request timed out"),
        None,
    ] {
        let mut world = exact_with(RelaySettings::default());
        super::turns::seen_to_ask(&mut world, 11, "deploy");
        call(&mut world, 12, "deploy");
        asks_in_all(&mut world);
        call(&mut world, 13, "deploy");
        assert_eq!(started(&mut world), Vec::<u64>::new());
        cancels(&mut world, 12, reason);
        let next = started(&mut world);
        assert_eq!(next, [13], "{reason:?}");
    }
}

#[test]
fn a_cancelled_call_takes_its_own_question_along_and_no_other() {
    let mut world = session();
    for id in 101..=103 {
        call(&mut world, id, "deploy");
        asks_in_all(&mut world);
    }
    world.to_server.clear();
    cancels(&mut world, 102, None);
    let left = world.open_to_people();
    let left: Vec<_> = left
        .iter()
        .map(|record| calls_of(&world, record)[0])
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&101) && left.contains(&103), "{left:?}");
    let told = |id: u64| {
        let named = format!("\"id\":{id},\"error\"");
        world
            .to_server
            .iter()
            .any(|frame| frame.replace(' ', "").contains(&named))
    };
    assert!(
        told(1_102),
        "no question is left without an end: {:?}",
        world.to_server
    );
}

/// Returns a rounds client that shows forms itself, before a server that pushes over stdio.
fn rounds(settings: RelaySettings) -> World {
    let (client, server) = (Revision::V2026_07_28, Revision::V2025_11_25);
    let mut world = World::with(settings, client, Capability::FORM, server, Asks::Nothing).opened();
    world.people = None;
    world.to_server.clear();
    world
}

fn rounds_call(world: &mut World, id: u64) {
    let meta = world.client.meta();
    let params = json!({"name": "deploy", "arguments": {"of": id}, "_meta": meta});
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    world.client_sends(&frame.to_string());
}

fn question(world: &mut World, id: u64) {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
    let frame =
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    world.server_sends(&frame.to_string());
    world.run_record();
}

#[test]
fn a_client_that_is_asked_in_results_waits_for_its_turn_and_then_people_are_asked() {
    let mut world = rounds(RelaySettings::default());
    rounds_call(&mut world, 11);
    rounds_call(&mut world, 12);
    assert_eq!(started(&mut world), [11]);
    question(&mut world, 1);
    let asked = |(_, frame): &(StreamId, String)| frame.contains("input_required");
    assert!(
        world.to_client.iter().any(asked),
        "its own client shows the first"
    );
    world.to_client.clear();
    world.pass_time(Duration::from_secs(9));
    assert_eq!(started(&mut world), Vec::<u64>::new());
    world.pass_time(Duration::from_secs(1));
    assert_eq!(started(&mut world), [12]);
    question(&mut world, 2);
    assert!(
        !world.to_client.iter().any(asked),
        "it could be the other call's"
    );
    assert_eq!(world.open_to_people().len(), 1);
}

#[test]
fn a_question_that_only_a_result_can_ask_is_never_asked_in_one_of_several() {
    let settings = RelaySettings {
        answer_with: Audience::Client,
        hold: Duration::from_secs(24 * 60 * 60),
        ..RelaySettings::default()
    };
    let mut world = rounds(settings);
    rounds_call(&mut world, 11);
    rounds_call(&mut world, 12);
    assert_eq!(started(&mut world), [11]);
    question(&mut world, 1);
    world.pass_time(Duration::from_secs(60 * 60));
    assert_eq!(started(&mut world), Vec::<u64>::new());
    let via = world.store.values().map(|kept| kept.asked.via);
    assert_eq!(via.collect::<Vec<_>>(), [AskedVia::Client]);
}

#[test]
fn a_tool_is_not_suspected_of_the_question_of_a_known_one() {
    let mut world = session();
    super::turns::seen_to_ask(&mut world, 11, "deploy");
    call(&mut world, 12, "read");
    call(&mut world, 13, "deploy");
    let record = super::turns::asks(&mut world, 1);
    answer(&mut world, &record);
    ends(&mut world, 12);
    ends(&mut world, 13);
    started(&mut world);
    call(&mut world, 21, "read");
    call(&mut world, 22, "read");
    assert_eq!(started(&mut world), [21, 22], "neither waits for the other");
    assert!(!world.answer(&record, Action::Accept));
}

#[test]
fn a_question_is_asked_also_if_another_of_its_call_finds_its_answer_in_the_record() {
    let (client, server) = (Revision::V2026_07_28, Revision::V2025_06_18);
    let mut world = World::new(client, Capability::FORM, server, Asks::TwoAtOnce).opened();
    world.people = None;
    world.call();
    // The client has answered both, and the server has one of the answers.
    for _ in 0..5 {
        world.step(0);
    }
    assert_eq!(world.undelivered().len(), 1);
    world.restart(RelaySettings::default());
    world.call();
    world.settle();
    assert_eq!(world.client.text(), "accept:Ada");
    assert_eq!(world.relay.open(), (0, 0));
}
