//! Tests of the limits of a client's open requests: requests that are refused, and each way in which a permit is
//! released.

use std::time::Duration;

use mcp_elicit_core::question::FoundCall;
use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::approvals::{self, Fixed};
use super::world::{Asks, World};
use crate::decisions::Admission;
use crate::{
    ByteAccount, ByteAccounts, ByteLimit, ClientForward, Effect, Event, RelaySettings, StreamId,
    result_not_stored,
};

/// Returns an open session with these limits, in which the test plays both sides.
fn session(open_calls: usize, call_bytes: usize) -> World {
    let settings = RelaySettings {
        open_calls,
        call_bytes,
        ..RelaySettings::default()
    };
    let mut world = World::with_silent_server(settings);
    world.to_server.clear();
    world.to_client.clear();
    world
}

fn request(id: u64, method: &str, argument: &str) -> String {
    let params = json!({"name": "read", "arguments": {"text": argument}});
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn call(world: &mut World, id: u64) {
    world.client_sends(&request(id, "tools/call", "a"));
}

fn ends(world: &mut World, id: impl Into<Value>) {
    let id: Value = id.into();
    let result = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
    world.server_sends(&result.to_string());
}

/// Returns the last response to the client.
fn told(world: &mut World) -> Value {
    let (_, frame) = world.to_client.pop_back().expect("the client is told");
    serde_json::from_str(&frame).unwrap()
}

fn taken(world: &World) -> (usize, usize) {
    world.relay.calls.budget().taken()
}

#[test]
fn the_number_of_open_requests_is_bounded() {
    let mut world = session(2, usize::MAX);
    call(&mut world, 1);
    // A request in which no person is asked counts too.
    world.client_sends(&request(2, "tools/list", ""));
    world.to_server.clear();
    call(&mut world, 3);
    let error = told(&mut world);
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&json!(3), &json!(-32000))
    );
    let data = json!({"limit": "open-calls", "most": 2});
    assert_eq!(error["error"]["data"], data);
    let words = error["error"]["message"].as_str().unwrap();
    assert!(words.contains("make it again when"), "{words}");
    assert!(world.to_server.is_empty());
    ends(&mut world, 1);
    call(&mut world, 4);
    assert_eq!(world.to_server.len(), 1);
}

#[test]
fn the_bytes_that_open_requests_hold_are_bounded() {
    let mut world = session(100, 1_000);
    // No single request is too large: `--max-frame` limits that.
    world.client_sends(&request(1, "tools/call", &"a".repeat(5_000)));
    assert_eq!(world.to_server.len(), 1);
    assert!(taken(&world).1 > 5_000);
    call(&mut world, 2);
    let error = told(&mut world);
    let data = json!({"limit": "call-bytes", "most": 1_000});
    assert_eq!(error["error"]["data"], data);
    ends(&mut world, 1);
    assert_eq!(taken(&world), (0, 0));
    call(&mut world, 3);
    assert_eq!(world.to_server.len(), 2);
}

#[test]
fn the_name_of_a_request_counts() {
    let mut world = session(100, 1_000);
    let id = "i".repeat(2_000);
    let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    world.client_sends(&ping.to_string());
    call(&mut world, 2);
    let data = json!({"limit": "call-bytes", "most": 1_000});
    assert_eq!(told(&mut world)["error"]["data"], data);
}

#[test]
fn a_permit_is_free_after_a_result_an_error_and_a_cancellation() {
    let mut world = session(1, usize::MAX);
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    let error = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": "no"}});
    call(&mut world, 1);
    assert_eq!(taken(&world).0, 1);
    ends(&mut world, 1);
    assert_eq!(taken(&world), (0, 0));
    call(&mut world, 2);
    world.server_sends(&error.to_string());
    assert_eq!(taken(&world), (0, 0));
    call(&mut world, 3);
    world.client_sends(&cancelled.to_string());
    assert_eq!(taken(&world), (0, 0));
    // A response that is not passed on.
    call(&mut world, 4);
    world.server_sends(r#"{"jsonrpc":"2.0","id":4,"result":{},"result":{}}"#);
    assert_eq!(taken(&world), (0, 0));
    call(&mut world, 5);
    world.tell(Event::ServerGone("killed".to_owned()));
    assert_eq!(taken(&world), (0, 0));
}

#[test]
fn a_result_that_nobody_came_for_holds_its_permit_until_it_is_dropped() {
    let mut world = session(2, usize::MAX);
    call(&mut world, 1);
    let one = taken(&world).1;
    world.tell(Event::SessionEnded);
    assert_eq!(taken(&world).0, 1);
    ends(&mut world, 1);
    assert!(taken(&world).1 > one, "the result counts");
    world.pass_time(RelaySettings::default().keep_results);
    assert_eq!(taken(&world), (0, 0));
}

#[test]
fn a_retry_with_answers_is_refused_at_twice_the_bytes() {
    for (call_bytes, answers) in [(40, 0), (10_000, 1)] {
        let settings = RelaySettings {
            call_bytes,
            ..RelaySettings::default()
        };
        let (client, server) = (Revision::V2026_07_28, Revision::V2025_11_25);
        let mut world =
            World::with(settings, client, Capability::FORM, server, Asks::Form).opened();
        world.people = None;
        let id = world.call();
        world.settle();
        assert_eq!(world.server.answers.len(), answers, "{call_bytes}");
        let (_, last) = world.client.results.last().unwrap();
        let text = last.to_string();
        assert_eq!(text.contains("call-bytes"), answers == 0, "{id}: {text}");
    }
}

#[test]
fn a_call_of_a_closed_stream_frees_its_permit() {
    let (client, server) = (Revision::V2026_07_28, Revision::V2026_07_28);
    let settings = RelaySettings {
        client_streams: true,
        ..RelaySettings::default()
    };
    let mut world = World::with(settings, client, Capability::BOTH, server, Asks::Nothing).opened();
    let (_, frame) = world.client.call();
    let stream = StreamId(7);
    world
        .relay
        .client_frame(world.now, stream, frame.as_bytes());
    assert_eq!(taken(&world).0, 1);
    world.tell(Event::StreamClosed(stream));
    assert_eq!(taken(&world), (0, 0));
}

#[test]
fn a_call_that_is_refused_holds_nothing() {
    let (settings, _) = approvals::settings(Fixed {
        admit: Some(Admission::Refuse(approvals::refusal())),
        ..Fixed::default()
    });
    let mut world = World::with_silent_server(settings);
    call(&mut world, 1);
    assert_eq!(taken(&world), (0, 0));
}

#[test]
fn a_call_that_waits_for_approval_holds_its_permit_until_people_have_decided() {
    for action in [Action::Accept, Action::Decline] {
        let (settings, _) = approvals::settings(Fixed {
            admit: Some(approvals::approval()),
            ..Fixed::default()
        });
        let settings = RelaySettings {
            open_calls: 1,
            ..settings
        };
        let mut world = World::with_silent_server(settings);
        world.to_server.clear();
        call(&mut world, 1);
        world.run_record();
        assert_eq!(taken(&world).0, 1);
        call(&mut world, 2);
        assert_eq!(told(&mut world)["error"]["data"]["limit"], "open-calls");
        let open = world.open_to_people();
        assert!(world.answer(&open[0], action));
        world.run_record();
        // The approved call has the permit of the one that waited.
        assert_eq!(taken(&world).0, usize::from(action == Action::Accept));
        assert_eq!(world.to_server.len(), usize::from(action == Action::Accept));
        if let Some(frame) = world.to_server.pop_back() {
            // The gateway's own id.
            let frame: Value = serde_json::from_str(&frame).unwrap();
            ends(&mut world, frame["id"].clone());
        }
        assert_eq!(taken(&world), (0, 0));
    }
}

#[test]
fn requests_that_wait_for_the_servers_era_hold_permits() {
    let settings = RelaySettings {
        call_bytes: 10_000,
        ..RelaySettings::default()
    };
    let mut relay = crate::Relay::new(settings, super::world::seal());
    let now = crate::Timestamp::from_millis(0);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let mut refused = 0;
    for id in 0..100 {
        let params = json!({"_meta": meta, "text": "a".repeat(1_000)});
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params});
        relay.client_frame(now, StreamId(id + 1), frame.to_string().as_bytes());
        while let Some(effect) = relay.effect() {
            refused += u32::from(matches!(effect, Effect::ToClient { .. }));
        }
    }
    assert!(refused > 90, "{refused}");
    relay.handle(now, Event::ServerGone("killed".to_owned()));
    while relay.effect().is_some() {}
    relay.handle(now, Event::Stop);
    assert_eq!(relay.calls.budget().taken(), (0, 0));
}

/// Ends the lookup of a call with this entry of the record.
fn found(world: &mut World, found: FoundCall) {
    let mut effects = std::iter::from_fn(|| world.relay.effect());
    let lookup = effects.find_map(|effect| match effect {
        Effect::FindCall { lookup, .. } => Some(lookup),
        _ => None,
    });
    let lookup = lookup.expect("it is looked up");
    world.tell(Event::CallFound { lookup, found });
}

#[test]
fn a_call_whose_result_in_the_record_cannot_be_read_gets_an_error_and_frees_its_permit() {
    let mut world = session(1, usize::MAX);
    world.relay.set_finds_calls(true);
    let frame = request(1, "tools/call", "a");
    let (now, stream) = (world.now, StreamId::SESSION);
    world.relay.client_frame(now, stream, frame.as_bytes());
    found(&mut world, FoundCall::Result("{".to_owned()));
    let told = told(&mut world);
    assert_eq!(
        (&told["id"], &told["error"]["code"]),
        (&json!(1), &json!(-32603))
    );
    assert_eq!(taken(&world), (0, 0));
}

#[test]
fn a_call_that_is_looked_up_or_follows_another_holds_its_permit() {
    let mut world = session(1, usize::MAX);
    world.relay.set_finds_calls(true);
    let frame = request(1, "tools/call", "a");
    let stream = StreamId::SESSION;
    let went = world
        .relay
        .client_frame(world.now, stream, frame.as_bytes());
    assert_eq!(went, ClientForward::Handled);
    assert_eq!(taken(&world), (1, frame.len()));
    found(&mut world, FoundCall::Running { link: None });
    assert_eq!(taken(&world).0, 1);
    call(&mut world, 2);
    assert_eq!(told(&mut world)["error"]["data"]["limit"], "open-calls");
    let key = world.relay.calls.keys(|_| true)[0];
    world
        .relay
        .handle(world.now, Event::FollowedCallEnded { call: key });
    assert_eq!(taken(&world), (1, frame.len()));
    let result = r#"{"jsonrpc":"2.0","id":9,"result":{"content":[]}}"#;
    found(&mut world, FoundCall::Result(result.to_owned()));
    assert_eq!(told(&mut world)["id"], 1);
    assert_eq!(taken(&world), (0, 0));
}

#[test]
fn a_call_that_waits_for_its_turn_holds_its_permit_until_it_ends_or_moves() {
    let (client, server) = (Revision::V2026_07_28, Revision::V2025_11_25);
    let mut world = World::new(client, Capability::FORM, server, Asks::Nothing).opened();
    world.relay.settings.eras.saw_pushed();
    let first = world.call();
    world.call();
    assert_eq!(taken(&world).0, 2);
    world.relay.take_queued().expect("it moves");
    assert_eq!(taken(&world).0, 1);
    ends(&mut world, first);
    assert_eq!(taken(&world), (0, 0));
}

#[test]
fn a_call_that_was_handed_back_frees_its_permit_when_it_is_collected() {
    let mut world = session(10, usize::MAX);
    call(&mut world, 1);
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
    let ask =
        json!({"jsonrpc": "2.0", "id": 900, "method": "elicitation/create", "params": params});
    world.server_sends(&ask.to_string());
    world.run_record();
    world.pass_time(Duration::from_secs(51));
    let open = world.open_to_people();
    assert!(world.answer(&open[0], Action::Accept));
    world.run_record();
    ends(&mut world, 1);
    assert_eq!(taken(&world).0, 1);
    call(&mut world, 2);
    assert_eq!(told(&mut world)["id"], 2);
    assert_eq!(taken(&world), (0, 0));
}

/// Hands back a call with this id, whose question a person then answers.
fn hand_back(world: &mut World, id: u64) {
    world.client_sends(&request(id, "tools/call", &id.to_string()));
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
    let ask =
        json!({"jsonrpc": "2.0", "id": 900 + id, "method": "elicitation/create", "params": params});
    world.server_sends(&ask.to_string());
    world.run_record();
    world.pass_time(Duration::from_secs(51));
    let open = world.open_to_people();
    assert!(world.answer(&open[0], Action::Accept));
    world.run_record();
}

#[test]
fn a_result_that_no_client_waits_for_takes_no_room_of_requests() {
    let all = ByteAccount::new(ByteLimit {
        name: "all",
        most: 10_000,
    });
    let mut world = session(10, usize::MAX);
    world.relay = crate::Relay::new(
        RelaySettings {
            byte_accounts: ByteAccounts::new([all.clone()]),
            ..RelaySettings::default()
        },
        super::world::seal(),
    );
    let open = world.client.open();
    world.client_sends(&open);
    world.settle();
    world.people = None;
    hand_back(&mut world, 1);
    let large = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": ["x".repeat(100_000)]}});
    world.server_sends(&large.to_string());
    assert!(taken(&world).1 > 100_000, "it counts in its session");
    assert!(all.held() < 10_000, "{} bytes", all.held());
}

#[test]
fn who_makes_a_call_again_whose_result_was_not_stored_is_told_so() {
    let mut world = session(10, usize::MAX);
    hand_back(&mut world, 1);
    ends(&mut world, 1);
    let limit = ByteLimit {
        name: "stored-results",
        most: 5_000,
    };
    let call = world.relay.calls.keys(|_| true)[0];
    let not_stored = |call| Event::ResultNotStored {
        call,
        limit,
        bytes: 9_000,
    };
    world.tell(not_stored(call));
    let sent = world.to_server.len();
    world.client_sends(&request(2, "tools/call", "1"));
    let told = told(&mut world);
    assert_eq!(
        (&told["id"], &told["error"]["code"]),
        (&json!(2), &json!(-32000))
    );
    let data = json!({"limit": "stored-results", "most": 5_000, "bytes": 9_000});
    assert_eq!(told["error"]["data"], data);
    let words = told["error"]["message"].as_str().unwrap();
    assert!(words.contains("has answered"), "{words}");
    assert_eq!(world.to_server.len(), sent, "the tool does not run again");
    assert_eq!(taken(&world), (0, 0));
    // It is too late for a call that was fetched.
    world.tell(not_stored(call));
    assert_eq!(world.relay.open(), (0, 0));
    // The record has the same for other sessions.
    let stored: Value = serde_json::from_str(&result_not_stored(limit, 9_000)).unwrap();
    assert_eq!(stored["error"], told["error"]);
}

/// Calls with a question or a request of this size in a round, until one is refused; each waits. Returns the number that
/// wait, the refusal, and the bytes held then.
fn rounds_that_wait(client: Revision, request: &Value, padding: &str) -> (usize, Value, usize) {
    let most = 8_000_000;
    let all = ByteAccount::new(ByteLimit { name: "all", most });
    let settings = RelaySettings {
        byte_accounts: ByteAccounts::new([all.clone()]),
        ..RelaySettings::default()
    };
    let server = Revision::V2026_07_28;
    let mut world = World::with(settings, client, Capability::FORM, server, Asks::Nothing).opened();
    world.people = None;
    for waiting in 0..50 {
        world.to_client.clear();
        world.call();
        let sent: Value = serde_json::from_str(&world.to_server.pop_back().unwrap()).unwrap();
        let asked = json!({"resultType": "input_required", "requestState": "s", "padding": padding, "inputRequests": {"k": request}});
        let round = json!({"jsonrpc": "2.0", "id": sent["id"], "result": asked});
        world.server_sends(&round.to_string());
        world.run_record();
        let (_, frame) = world.to_client.pop_back().expect("a question or an error");
        let frame: Value = serde_json::from_str(&frame).unwrap();
        if frame["error"].is_object() {
            return (waiting, frame["error"].clone(), all.held());
        }
    }
    panic!("{} bytes are held", all.held());
}

#[test]
fn what_is_kept_of_the_rounds_of_a_server_is_bounded() {
    let long = "x".repeat(1_000_000);
    let roots = json!({"method": "roots/list", "params": {"_meta": {"padding": long}}});
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
    let question = json!({"method": "elicitation/create", "params": params});
    for (client, request, padding) in [
        (Revision::V2025_11_25, &roots, ""),
        (Revision::V2026_07_28, &question, long.as_str()),
    ] {
        let (waiting, error, held) = rounds_that_wait(client, request, padding);
        assert!((2..=6).contains(&waiting), "{client}: {waiting}");
        assert_eq!(error["data"]["limit"], "all", "{client}: {error}");
        assert!((2_000_000..7_000_000).contains(&held), "{client}: {held}");
    }
}

#[test]
fn a_round_at_the_client_is_no_open_request_and_takes_the_room_of_other_rounds() {
    let budget = crate::parts::call_budget::CallBudget::new(1, 100_000);
    assert!(budget.check_round(100_001).is_err() && budget.check_round(100_000).is_ok());
    let round = budget.round(90_000);
    assert_eq!((budget.taken(), budget.round_bytes()), ((0, 0), 90_000));
    assert!(budget.check_round(20_000).is_err() && budget.check_round(16_384).is_ok());
    let mut permit = budget.permit().ok().unwrap();
    drop(round);
    permit.set_bytes(90_000);
    assert!(budget.check_round(20_000).is_err());
    drop(permit);
    assert_eq!((budget.taken(), budget.round_bytes()), ((0, 0), 0));
}

#[test]
fn the_visits_that_a_server_requires_count_until_the_call_has_ended() {
    let revision = Revision::V2025_11_25;
    let mut world = World::new(revision, Capability::NONE, revision, Asks::Nothing).opened();
    world.people = None;
    world.drop_tool_listings();
    call(&mut world, 1);
    let before = taken(&world).1;
    let url = format!("https://example.com/{}", "x".repeat(1_000));
    let visit = json!({"mode": "url", "message": "Sign in", "url": url, "elicitationId": "v"});
    let error = json!({"code": -32042, "message": "visit", "data": {"elicitations": [visit]}});
    let sent: Value = serde_json::from_str(&world.to_server.pop_back().unwrap()).unwrap();
    world.server_sends(&json!({"jsonrpc": "2.0", "id": sent["id"], "error": error}).to_string());
    world.run_record();
    assert_eq!(world.open_to_people().len(), 1);
    assert!(taken(&world).1 > before + 1_000, "{:?}", taken(&world));
    // Its client is gone, and its server too: only the reason is kept.
    world.pass_time(Duration::from_secs(51));
    world.tell(Event::ServerGone("killed".to_owned()));
    assert!(taken(&world).1 < before + 1_000, "{:?}", taken(&world));
}

#[test]
fn the_names_of_tasks_that_calls_became_are_bounded() {
    let (settings, _) = approvals::settings(Fixed::default());
    let mut world = World::with_silent_server(settings);
    for (id, length) in [(1, 10), (2, 5_000_000)] {
        world.to_server.clear();
        call(&mut world, id);
        let sent: Value = serde_json::from_str(&world.to_server.pop_back().unwrap()).unwrap();
        let task = json!({"taskId": "t".repeat(length), "status": "working"});
        let answer = json!({"jsonrpc": "2.0", "id": sent["id"], "result": {"task": task}});
        world.server_sends(&answer.to_string());
        let known = world.relay.past_calls.all().count();
        assert_eq!(known, usize::from(length == 10));
        assert_eq!(world.relay.past_calls.is_incomplete(), length != 10);
    }
}
