//! Several calls at the same time over stdio, and a server that does not name the call of a question.

use std::time::Duration;

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::{Effect, Event, StreamId, TakenAnswer};

/// Returns an open session in which the test plays the client and the server.
fn session() -> World {
    let revision = Revision::V2025_11_25;
    let mut world = World::new(revision, Capability::NONE, revision, Asks::Nothing).opened();
    world.people = None;
    world
}

fn call(world: &mut World, id: u64, tool: &str) {
    let params = json!({"name": tool, "arguments": {"of": tool}, "_meta": {"progressToken": id}});
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    world.client_sends(&frame.to_string());
    world.to_server.clear();
}

fn question(id: u64) -> String {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params =
        json!({"mode": "form", "message": format!("Who? {id}"), "requestedSchema": schema});
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
        .to_string()
}

/// Makes the server ask. Returns the question's record.
fn asks(world: &mut World, id: u64) -> String {
    let before = world.open_to_people();
    world.server_sends(&question(id));
    world.run_record();
    let mut after = world.open_to_people();
    after.retain(|record| !before.contains(record));
    after.pop().expect("people are asked the question")
}

/// Returns the tool that the question is assumed to belong to, and the others that it may belong to.
fn said(world: &World, record: &str) -> (String, Vec<String>) {
    let asked = &world.store[record].asked;
    let calling = asked.call.as_ref().expect("a call is named");
    (calling.target.clone(), asked.others.clone())
}

/// Returns the ids of the calls that have ended for the client, with their results.
fn results(world: &mut World) -> Vec<(u64, String)> {
    let frames = world.to_client.drain(..);
    let frames = frames.map(|(_, frame)| serde_json::from_str::<Value>(&frame).unwrap());
    let results = frames.filter(|frame| frame["method"].is_null());
    let mut results: Vec<_> = results
        .map(|frame| {
            let text = frame["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or("error");
            (frame["id"].as_u64().unwrap(), text.to_owned())
        })
        .collect();
    results.sort();
    results
}

fn server_ends(world: &mut World, id: u64, text: &str) {
    let result = json!({"content": [{"type": "text", "text": text}]});
    world.server_sends(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
}

#[test]
fn one_call_is_certain() {
    let mut world = session();
    call(&mut world, 11, "deploy");
    let record = asks(&mut world, 1);
    assert_eq!(said(&world, &record), ("deploy".to_owned(), vec![]));
}

#[test]
fn calls_made_in_one_go_are_asked_for_in_turn_and_all_are_named() {
    let mut world = session();
    for (id, tool) in [(11, "profile"), (12, "deploy"), (13, "plan")] {
        call(&mut world, id, tool);
    }
    let records = [
        asks(&mut world, 1),
        asks(&mut world, 2),
        asks(&mut world, 3),
    ];
    let said = records.each_ref().map(|record| said(&world, record));
    let names = said.each_ref().map(|(name, _)| name.as_str());
    assert_eq!(names, ["profile", "deploy", "plan"]);
    for (name, others) in &said {
        assert_eq!(others.len(), 2, "{others:?}");
        assert!(!others.contains(name));
    }
}

#[test]
fn a_call_that_came_later_is_likelier_than_one_long_at_work() {
    let mut world = session();
    call(&mut world, 11, "build");
    world.pass_time(Duration::from_secs(5));
    call(&mut world, 12, "deploy");
    let record = asks(&mut world, 1);
    let expected = ("deploy".to_owned(), vec!["build".to_owned()]);
    assert_eq!(said(&world, &record), expected);
}

#[test]
fn calls_of_one_tool_are_told_to_be_several() {
    let mut world = session();
    call(&mut world, 11, "deploy");
    call(&mut world, 12, "deploy");
    let record = asks(&mut world, 1);
    let expected = ("deploy".to_owned(), vec!["deploy".to_owned()]);
    assert_eq!(said(&world, &record), expected);
}

#[test]
fn every_call_that_may_be_meant_is_handed_back_and_none_is_lost() {
    let mut world = session();
    call(&mut world, 11, "build");
    world.pass_time(Duration::from_secs(5));
    call(&mut world, 12, "deploy");
    // `build` asks, although `deploy` is likelier.
    let record = asks(&mut world, 1);
    world.pass_time(Duration::from_secs(51));
    let back = results(&mut world);
    assert_eq!(back.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [11, 12]);
    assert!(
        back.iter().all(|(_, text)| text.contains("http://inbox/")),
        "{back:?}"
    );
    assert!(world.answer(&record, Action::Accept));
    world.run_record();
    server_ends(&mut world, 11, "built");
    server_ends(&mut world, 12, "deployed");
    assert_eq!(results(&mut world), [], "nobody waits");
    call(&mut world, 21, "build");
    call(&mut world, 22, "deploy");
    let expected = [(21, "built".to_owned()), (22, "deployed".to_owned())];
    assert_eq!(results(&mut world), expected);
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn with_its_answer_no_call_is_held_any_longer() {
    let mut world = session();
    call(&mut world, 11, "build");
    call(&mut world, 12, "deploy");
    let record = asks(&mut world, 1);
    assert!(world.answer(&record, Action::Accept));
    world.run_record();
    world.pass_time(Duration::from_secs(51));
    assert_eq!(
        results(&mut world),
        [],
        "both are at work, and no person is waited for"
    );
}

#[test]
fn a_question_outlives_the_call_it_was_wrongly_taken_to_be_for() {
    let mut world = session();
    call(&mut world, 11, "build");
    world.pass_time(Duration::from_secs(5));
    call(&mut world, 12, "deploy");
    let record = asks(&mut world, 1);
    server_ends(&mut world, 12, "deployed");
    world.run_record();
    assert_eq!(
        world.open_to_people(),
        std::slice::from_ref(&record),
        "`build` may have asked"
    );
    server_ends(&mut world, 11, "built");
    world.run_record();
    assert!(
        world.open_to_people().is_empty(),
        "nobody is left who may have asked"
    );
}

#[test]
fn a_question_outlives_every_call_but_its_own_however_many_there_are() {
    let mut world = session();
    for id in 1..=40 {
        call(&mut world, id, "build");
    }
    // The 30th call asks.
    let record = asks(&mut world, 1);
    call(&mut world, 41, "build");
    for id in (1..=41).filter(|id| *id != 30) {
        server_ends(&mut world, id, "built");
        world.run_record();
    }
    assert_eq!(world.open_to_people(), std::slice::from_ref(&record));
    assert!(world.answer(&record, Action::Accept));
    world.run_record();
    let answered = world.to_server.back().expect("the server has the answer");
    assert!(answered.contains(r#""id":1,"#), "{answered}");
    server_ends(&mut world, 30, "built");
    world.run_record();
    assert_eq!(world.relay.open(), (0, 0));
}

/// Many servers answer their calls with an error, or take their questions back, when their input ends.
#[test]
fn what_a_server_says_while_it_is_disconnected_ends_no_question() {
    let error = |id: u64| {
        let error = json!({"code": -32603, "message": "closed"});
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    };
    let params = json!({"requestId": 1, "reason": "closed"});
    let taken_back =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    let mut spelled_otherwise = taken_back.clone();
    spelled_otherwise["params"]["requestId"] = json!("1");
    for (says, gone) in [
        (error(11), false),
        (taken_back, false),
        (spelled_otherwise, false),
        (json!({}), true),
    ] {
        let mut world = session();
        call(&mut world, 11, "build");
        let record = asks(&mut world, 1);
        world.tell(Event::SessionEnded);
        world.tell(Event::ServerClosing);
        world.server_sends(&says.to_string());
        if gone {
            world.tell(Event::ServerGone("exit status: 0".to_owned()));
        }
        world.run_record();
        // Nor does it ask another.
        world.server_sends(&question(2));
        world.run_record();
        assert_eq!(world.open_to_people(), [record], "{says}");
    }
}

#[test]
fn a_call_that_came_after_the_question_is_not_meant() {
    let mut world = session();
    call(&mut world, 11, "build");
    let record = asks(&mut world, 1);
    call(&mut world, 12, "deploy");
    server_ends(&mut world, 11, "built");
    world.run_record();
    assert!(world.open_to_people().is_empty());
    assert!(world.store[&record].ended);
}

#[test]
fn a_server_that_is_gone_asks_nobody_any_more() {
    let (client, server) = (Revision::V2026_07_28, Revision::V2025_11_25);
    let mut world = World::new(client, Capability::BOTH, server, Asks::Nothing).opened();
    world.relay.settings.eras.saw_pushed();
    for _ in 0..20 {
        world.call();
    }
    world.server_sends(&question(900));
    world.run_record();
    assert_eq!(world.to_client.len(), 1, "asked in one call");
    world.to_client.clear();
    world.tell(Event::ServerGone("killed".to_owned()));
    world.run_record();
    let asks = |(_, frame): &&(StreamId, String)| frame.contains("input_required");
    assert_eq!(world.to_client.iter().filter(asks).count(), 0);
}

#[test]
fn an_answer_that_is_taken_out_while_its_question_ends_goes_back_to_the_record() {
    let cancelled = |id: u64| {
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            .to_string()
    };
    for by in ["server", "client", "end"] {
        let mut world = session();
        call(&mut world, 11, "deploy");
        let record = asks(&mut world, 900);
        let question = world.store[&record].key.unwrap();
        world.relay.handle(world.now, Event::Answered { question });
        assert!(matches!(
            world.relay.effect(),
            Some(Effect::BeginDelivery { .. })
        ));
        match by {
            "server" => world.server_sends(&cancelled(900)),
            "client" => world.client_sends(&cancelled(11)),
            _ => world.tell(Event::ServerGone("killed".to_owned())),
        }
        let answers = vec![TakenAnswer {
            question,
            record: record.clone(),
            reply: r#"{"action":"decline"}"#.to_owned(),
        }];
        world
            .relay
            .handle(world.now, Event::DeliveryBegun { answers });
        let effects: Vec<_> = std::iter::from_fn(|| world.relay.effect()).collect();
        let [Effect::DeliveryRefused { records, .. }] = effects.as_slice() else {
            panic!("{by}: {effects:?}")
        };
        assert_eq!(records, &[record], "{by}");
    }
}

#[test]
fn the_server_hears_the_answer_that_the_record_has() {
    let revision = Revision::V2025_11_25;
    let mut world = World::new(revision, Capability::BOTH, revision, Asks::Nothing).opened();
    call(&mut world, 11, "deploy");
    world.server_sends(&question(900));
    world.run_record();
    let own = r#"{"jsonrpc":"2.0","id":900,"result":{"action":"accept","content":{"name":"Ada"}}}"#;
    world
        .relay
        .client_frame(world.now, StreamId::SESSION, own.as_bytes());
    let Some(Effect::Submit { question, .. }) = world.relay.effect() else {
        panic!("the answer is to be recorded")
    };
    world.relay.handle(world.now, Event::Answered { question });
    assert!(matches!(
        world.relay.effect(),
        Some(Effect::BeginDelivery { .. })
    ));
    // An answer on a page was first.
    let answers = vec![TakenAnswer {
        question,
        record: "r1".to_owned(),
        reply: r#"{"action":"decline"}"#.to_owned(),
    }];
    world
        .relay
        .handle(world.now, Event::DeliveryBegun { answers });
    let Some(Effect::ToServer { frame, .. }) = world.relay.effect() else {
        panic!("the server hears of it")
    };
    assert!(frame.contains("decline"), "{frame}");
}
