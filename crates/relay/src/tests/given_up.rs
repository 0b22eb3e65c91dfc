//! Clients that give a call up without a word, and make it again.

use std::time::Duration;

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::{RelaySettings, StreamId};

const PUSHED: Revision = Revision::V2025_11_25;

/// Returns an open session whose server asks in each call.
fn session(client: Revision, server: Revision) -> World {
    let mut world = World::new(client, Capability::NONE, server, Asks::Form).opened();
    world.people = None;
    world
}

fn pairs() -> impl Iterator<Item = (Revision, Revision)> {
    let all = Revision::ALL;
    all.into_iter()
        .flat_map(move |client| all.into_iter().map(move |server| (client, server)))
}

/// Makes the call of the simulator's client again after this time. Returns its id.
fn again(world: &mut World, after: Duration) -> u64 {
    world.pass_time(after);
    let id = world.call();
    world.settle();
    id
}

/// Returns the text of the result of this request, if there is one.
fn result(world: &World, id: u64) -> Option<String> {
    let mut results = world.client.results.iter();
    let (_, frame) = results.find(|(known, _)| *known == id)?;
    let text = &frame["result"]["content"][0]["text"];
    Some(text.as_str().unwrap_or("error").to_owned())
}

fn is_handed_back(world: &World, id: u64) -> bool {
    result(world, id).is_some_and(|text| text.starts_with("Not done yet"))
}

fn answer_the_only_question(world: &mut World) {
    let open = world.open_to_people();
    assert_eq!(open.len(), 1, "asked once");
    assert!(world.answer(&open[0], Action::Accept));
    world.settle();
}

#[test]
fn the_same_call_after_a_silent_timeout_takes_the_place_of_the_first() {
    for (client, server) in pairs() {
        let mut world = session(client, server);
        let first = again(&mut world, Duration::ZERO);
        let second = again(&mut world, Duration::from_secs(7));
        assert!(is_handed_back(&world, first), "{client} {server}");
        answer_the_only_question(&mut world);
        assert_eq!(result(&world, second).as_deref(), Some("accept:Ada"));
        assert_eq!(world.server.answers.len(), 1, "done once");
        assert_eq!(world.relay.open(), (0, 0), "{client} {server}");
    }
}

#[test]
fn the_hold_becomes_shorter_than_the_client_was_seen_to_wait() {
    // The client waits for 5 s and pauses for 2, 5 or 0 s.
    for gap in [7, 10, 5] {
        let mut world = session(PUSHED, PUSHED);
        again(&mut world, Duration::ZERO);
        let second = again(&mut world, Duration::from_secs(gap));
        world.pass_time(Duration::from_millis(4_900));
        world.settle();
        assert!(is_handed_back(&world, second), "{gap}");
        answer_the_only_question(&mut world);
        let third = again(&mut world, Duration::from_secs(2));
        assert_eq!(result(&world, third).as_deref(), Some("accept:Ada"));
        assert_eq!(world.server.answers.len(), 1, "done once");
    }
}

#[test]
fn the_hold_ends_before_the_client_gives_up_however_late_the_server_asks() {
    let settings = RelaySettings::default();
    settings.client_waits.learn("raw", Duration::from_secs(10));
    let mut world = World::with_silent_server(settings);
    world.call();
    world.pass_time(Duration::from_secs(7));
    let form = json!({"message": "Which seat?", "requestedSchema": {"type": "object", "properties": {"seat": {"type": "string"}}}});
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": form});
    world.server_sends(&ask.to_string());
    world.run_record();
    assert_eq!(world.open_to_people().len(), 1);
    let is_handed_back = |world: &World| {
        let mut frames = world.to_client.iter();
        frames.any(|(_, frame)| frame.contains("Not done yet"))
    };
    assert!(!is_handed_back(&world));
    world.pass_time(Duration::from_millis(2_900));
    world.run_record();
    assert!(is_handed_back(&world));
}

#[test]
fn a_hand_back_that_a_patient_client_answers_teaches_no_shorter_hold() {
    let settings = RelaySettings::default();
    let waits = settings.client_waits.clone();
    let mut world = World::with(settings, PUSHED, Capability::NONE, PUSHED, Asks::Form).opened();
    world.people = None;
    again(&mut world, Duration::ZERO);
    again(&mut world, Duration::from_secs(20));
    let learned = serde_json::to_string(&waits.known()).unwrap();
    again(&mut world, Duration::from_secs(2));
    assert_eq!(serde_json::to_string(&waits.known()).unwrap(), learned);
}

#[test]
fn calls_that_are_made_at_once_are_each_made_and_get_their_own_result() {
    for pause in [Duration::ZERO, Duration::from_millis(300)] {
        let mut world = session(PUSHED, PUSHED);
        let first = again(&mut world, Duration::ZERO);
        let second = again(&mut world, pause);
        let open = world.open_to_people();
        assert_eq!(open.len(), 2, "each is asked about");
        for record in open {
            assert!(world.answer(&record, Action::Accept));
        }
        world.settle();
        for id in [first, second] {
            assert_eq!(result(&world, id).as_deref(), Some("accept:Ada"));
        }
        assert_eq!(world.server.answers.len(), 2, "done twice");
        assert_eq!(world.relay.open(), (0, 0));
    }
}

#[test]
fn two_calls_that_were_made_at_once_and_given_up_are_both_continued() {
    let mut world = session(PUSHED, PUSHED);
    again(&mut world, Duration::ZERO);
    again(&mut world, Duration::ZERO);
    let third = again(&mut world, Duration::from_secs(6));
    let fourth = again(&mut world, Duration::ZERO);
    let open = world.open_to_people();
    assert_eq!(open.len(), 2, "nothing new is asked");
    for record in open {
        assert!(world.answer(&record, Action::Accept));
    }
    world.settle();
    for id in [third, fourth] {
        assert_eq!(result(&world, id).as_deref(), Some("accept:Ada"));
    }
    assert_eq!(world.server.answers.len(), 2);
}

#[test]
fn a_client_that_did_wait_for_both_gets_a_result_of_its_own_for_the_first_too() {
    let mut world = session(PUSHED, PUSHED);
    let first = again(&mut world, Duration::ZERO);
    let second = again(&mut world, Duration::from_secs(3));
    assert!(is_handed_back(&world, first));
    answer_the_only_question(&mut world);
    assert_eq!(result(&world, second).as_deref(), Some("accept:Ada"));
    let third = again(&mut world, Duration::from_secs(1));
    assert_eq!(result(&world, third), None, "asked about anew");
    answer_the_only_question(&mut world);
    assert_eq!(result(&world, third).as_deref(), Some("accept:Ada"));
    assert_eq!(world.server.answers.len(), 2);
}

#[test]
fn a_timeout_that_no_client_has_shortens_no_hold() {
    let mut world = session(PUSHED, PUSHED);
    let first = again(&mut world, Duration::ZERO);
    world.pass_time(Duration::from_millis(20));
    let params = json!({"requestId": first, "reason": "timed out after 0.02s"});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    world.client_sends(&notice.to_string());
    let second = again(&mut world, Duration::from_secs(1));
    world.pass_time(Duration::from_secs(40));
    world.settle();
    assert_eq!(result(&world, second), None);
}

#[test]
fn another_call_takes_nobodys_place() {
    let mut world = session(PUSHED, PUSHED);
    let first = again(&mut world, Duration::ZERO);
    world.pass_time(Duration::from_secs(7));
    for arguments in [json!({"n": 2}), json!({}), json!({"n": 1, "m": 1})] {
        let id = 500 + arguments.to_string().len();
        let params = json!({"name": "ask", "arguments": arguments});
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        world.client_sends(&frame.to_string());
        while world.step(1) {}
    }
    assert_eq!(result(&world, first), None, "it is waited for");
    assert_eq!(world.open_to_people().len(), 4);
}

#[test]
fn the_same_call_in_another_spelling_is_the_same() {
    let mut world = session(PUSHED, PUSHED);
    let call = |id: u64, arguments: &str| {
        format!(
            r#"{{"params":{{"arguments":{arguments},"name":"ask"}},"id":{id},"method":"tools/call","jsonrpc":"2.0"}}"#
        )
    };
    world.client_sends(&call(501, r#"{"a":1,"b":"x"}"#));
    while world.step(1) {}
    world.pass_time(Duration::from_secs(6));
    world.to_client.clear();
    world.client_sends(&call(502, r#"{ "b" : "\u0078", "a" : 1 }"#));
    let (_, told) = world.to_client.pop_front().expect("the first is answered");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["id"], 501);
    assert_eq!(world.open_to_people().len(), 1);
}

#[test]
fn a_call_that_works_and_waits_for_nobody_is_made_again() {
    let mut world = World::with_silent_server(RelaySettings::default());
    world.to_server.clear();
    world.call();
    world.pass_time(Duration::from_secs(30));
    world.call();
    assert_eq!(world.to_server.len(), 2);
}

#[test]
fn an_open_stream_that_would_cancel_its_call_shows_that_both_are_waited_for() {
    let settings = RelaySettings {
        client_streams: true,
        ..RelaySettings::default()
    };
    let client = Revision::V2026_07_28;
    let mut world = World::with(settings, client, Capability::NONE, client, Asks::Form).opened();
    world.people = None;
    for stream in [1, 2] {
        let (_, frame) = world.client.call();
        world.to_server.clear();
        let forward = world
            .relay
            .client_frame(world.now, StreamId(stream), frame.as_bytes());
        if let crate::ClientForward::AsIs(_) = forward {
            world.to_server.push_back(frame);
        }
        world.effects();
        assert_eq!(world.to_server.len(), 1, "it is made");
        world.settle();
        world.pass_time(Duration::from_secs(5));
    }
    assert_eq!(world.open_to_people().len(), 2);
}
