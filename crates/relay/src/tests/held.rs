//! A call that waits for a person: kept alive, handed back, resumed; its question withdrawn when it is no longer
//! needed.

use std::time::Duration;

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::json;

use super::world::{Asks, World};
use crate::{Event, RelaySettings};

fn held(client: Revision, server: Revision) -> World {
    let mut world = World::new(client, Capability::NONE, server, Asks::Form).opened();
    world.people = None;
    world.call();
    world.settle();
    world
}

fn pairs() -> impl Iterator<Item = (Revision, Revision)> {
    Revision::ALL.into_iter().flat_map(|client| {
        Revision::ALL
            .into_iter()
            .map(move |server| (client, server))
    })
}

#[test]
fn the_caller_is_kept_alive_on_its_token() {
    for (client, server) in pairs() {
        let mut world = held(client, server);
        for _ in 0..4 {
            world.pass_time(Duration::from_secs(10));
        }
        world.settle();
        let told: Vec<f64> = world
            .client
            .progress
            .iter()
            .map(|p| p["progress"].as_f64().unwrap())
            .collect();
        assert!(told.len() >= 4, "{client} {server}: {told:?}");
        assert!(
            told.windows(2).all(|pair| pair[0] < pair[1]),
            "progress must grow: {told:?}"
        );
        assert!(
            world
                .client
                .progress
                .iter()
                .all(|p| p["progressToken"] == world.client.progress[0]["progressToken"])
        );
        assert!(world.client.results.is_empty());
    }
}

#[test]
fn past_the_hold_the_call_is_handed_back_and_resumes_when_made_again() {
    for (client, server) in pairs() {
        let mut world = held(client, server);
        world.pass_time(Duration::from_secs(51));
        world.settle();
        assert_eq!(world.client.results.len(), 1, "{client} {server}");
        assert!(
            world.client.text().contains("http://inbox/"),
            "{}",
            world.client.text()
        );
        // A repeated call finds the same question; its answer ends the call.
        world.call();
        world.settle();
        assert_eq!(world.store.len(), 1, "{client} {server}: asked twice");
        let record = world.open_to_people()[0].clone();
        assert!(world.answer(&record, Action::Accept));
        world.settle();
        assert_eq!(world.client.text(), "accept:Ada", "{client} {server}");
        assert_eq!(world.store[&record].deliveries, 1);
        assert_eq!(world.relay.open(), (0, 0));
    }
}

#[test]
fn a_call_that_asks_again_while_nobody_waits_is_in_the_record_with_its_next_question() {
    for server in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let client = Revision::V2025_11_25;
        let mut world = World::new(client, Capability::NONE, server, Asks::TwoInSequence).opened();
        world.people = None;
        world.call();
        world.settle();
        world.pass_time(Duration::from_secs(51));
        world.settle();
        let first = world.open_to_people()[0].clone();
        assert_eq!(world.kept_links.len(), 1, "{server}");
        assert!(world.answer(&first, Action::Accept));
        world.settle();
        assert_ne!(world.open_to_people(), [first], "{server}");
        // Kept again with the address of the second question.
        assert_eq!(world.kept_links.len(), 2, "{server}");
        assert!(world.kept_links.iter().all(Option::is_some), "{server}");
    }
}

#[test]
fn an_answer_given_while_nobody_waits_is_found_by_the_next_call() {
    for (client, server) in pairs() {
        let mut world = held(client, server);
        world.pass_time(Duration::from_secs(51));
        let record = world.open_to_people()[0].clone();
        assert!(world.answer(&record, Action::Accept));
        world.settle();
        assert_eq!(world.client.results.len(), 1);
        assert_eq!(world.server.answers.len(), 1, "the server goes on at once");
        world.call();
        world.settle();
        assert_eq!(world.client.text(), "accept:Ada", "{client} {server}");
        assert_eq!(world.relay.open(), (0, 0));
    }
}

#[test]
fn a_call_that_its_server_never_ends_is_ended_once_nobody_asks_or_comes_back() {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let revision = Revision::V2025_11_25;
    let mut world = held(revision, revision);
    world.pass_time(Duration::from_secs(51));
    world.pass_time(2 * HOUR);
    assert_eq!(world.relay.open(), (1, 1), "its question is open");
    world.to_server.clear();
    let record = world.open_to_people()[0].clone();
    // The server takes the answer, and says nothing more.
    assert!(world.answer(&record, Action::Decline));
    world.run_record();
    world.to_server.clear();
    world.pass_time(HOUR);
    assert_eq!(world.relay.open(), (1, 0), "its server may be at work");
    world.pass_time(2 * HOUR);
    assert_eq!(world.relay.open(), (0, 0));
    let cancelled = world.to_server.pop_back().unwrap();
    assert!(cancelled.contains("notifications/cancelled"), "{cancelled}");
}

#[test]
fn another_call_does_not_get_the_answer() {
    let mut world = held(Revision::V2025_11_25, Revision::V2025_11_25);
    world.pass_time(Duration::from_secs(51));
    world.settle();
    let other = json!({"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": {"name": "ask", "arguments": {"n": 2}}});
    let record = world.open_to_people()[0].clone();
    world.client_sends(&other.to_string());
    world.settle();
    assert_eq!(world.open_to_people().len(), 2, "it does not wait");
    assert!(world.answer(&record, Action::Accept));
    world.settle();
    let own = world.open_to_people();
    assert_eq!(own.len(), 1, "a question of its own");
    assert_ne!(own[0], record);
    let calling = world.store[&own[0]].asked.call.as_ref().unwrap();
    assert_eq!(calling.arguments.as_deref(), Some(r#"{"n":2}"#));
}

#[test]
fn time_running_out_is_an_error_and_never_an_action() {
    for (client, server) in pairs() {
        let settings = RelaySettings {
            open_for: Duration::from_secs(60),
            hold: Duration::from_secs(10 * 60),
            ..RelaySettings::default()
        };
        let mut world =
            World::with(settings, client, Capability::NONE, server, Asks::Form).opened();
        world.people = None;
        world.call();
        world.settle();
        world.pass_time(Duration::from_secs(61));
        world.settle();
        assert!(
            world.server.answers.is_empty(),
            "{client} {server}: no action may be invented"
        );
        assert!(
            world
                .store
                .values()
                .all(|kept| kept.ended && kept.deliveries == 0)
        );
        let text = world.client.text();
        assert!(
            text == "error" || text.starts_with("error -"),
            "{client} {server}: {text}"
        );
    }
}

#[test]
fn a_call_that_the_client_cancels_takes_its_question_along() {
    for (client, server) in pairs() {
        let mut world = World::new(client, Capability::NONE, server, Asks::Form).opened();
        world.people = None;
        let id = world.call();
        world.settle();
        world.client_sends(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string());
        world.settle();
        assert!(world.open_to_people().is_empty());
        assert_eq!(world.relay.open(), (0, 0), "{client} {server}");
        let told = world
            .server
            .seen
            .iter()
            .any(|frame| frame["method"] == "notifications/cancelled");
        assert_eq!(
            told,
            server < Revision::V2026_07_28,
            "a server that waits must be told"
        );
    }
}

#[test]
fn a_question_that_the_server_takes_back_is_withdrawn() {
    let mut world = held(Revision::V2025_11_25, Revision::V2025_11_25);
    let id = 1;
    world.server_sends(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string());
    world.settle();
    assert!(world.open_to_people().is_empty());
    assert_eq!(world.relay.open().1, 0);
}

#[test]
fn a_dead_server_ends_every_call_and_withdraws_every_question() {
    for (client, server) in pairs() {
        let mut world = held(client, server);
        world.tell(Event::ServerGone("exit status 1".to_owned()));
        world.settle();
        assert!(
            world.client.text().starts_with("error -32603"),
            "{}",
            world.client.text()
        );
        assert!(world.open_to_people().is_empty());
        assert_eq!(world.relay.open(), (0, 0));
    }
}

#[test]
fn a_drain_hands_back_what_is_held() {
    let mut world = held(Revision::V2025_11_25, Revision::V2025_11_25);
    world.tell(Event::Drain);
    world.settle();
    assert!(
        world.client.text().starts_with("Not done yet"),
        "{}",
        world.client.text()
    );
    let open = world.open_to_people();
    let [question] = &open[..] else {
        panic!("the question stays: {open:?}");
    };
    assert!(world.is_left(question), "another gateway may take it over");
}

#[test]
fn a_drain_lets_a_call_end_whose_answer_is_on_its_way_and_a_stop_hands_it_back() {
    for (client, server) in pairs() {
        for stops in [false, true] {
            let mut world = held(client, server);
            let record = world.open_to_people()[0].clone();
            assert!(world.answer(&record, Action::Accept));
            // The session hears of the answer, which is not taken out of the record yet.
            assert!(world.step(0));
            world.tell(Event::Drain);
            if stops {
                world.tell(Event::Stop);
            }
            world.settle();
            let text = world.client.text();
            assert_eq!(world.client.results.len(), 1, "{client} {server}: {text}");
            if stops {
                assert!(
                    text.starts_with("Not done yet"),
                    "{client} {server}: {text}"
                );
            } else {
                assert_eq!(text, "accept:Ada", "{client} {server}");
            }
        }
    }
}

#[test]
fn what_is_handed_back_goes_on_when_it_is_made_again() {
    let mut world = held(Revision::V2025_11_25, Revision::V2025_11_25);
    world.tell(Event::HandBack);
    world.settle();
    let text = world.client.text();
    assert!(text.starts_with("Not done yet"), "{text}");
    assert_eq!(world.open_to_people().len(), 1, "the question stays");
    assert_eq!(world.relay.open().0, 1, "and so does the call");
    world.tell(Event::HandBack);
    world.settle();
    assert_eq!(world.relay.open().0, 1);
}

#[test]
fn a_stop_ends_what_is_not_held_and_keeps_the_questions() {
    let revision = Revision::V2025_11_25;
    let mut world = World::new(revision, Capability::FORM, revision, Asks::Form).opened();
    let id = world.call();
    // The question is in the client's dialog, and another call is running.
    while world.to_client.is_empty() {
        world.step(0);
    }
    let other = world.call();
    world.to_client.clear();
    world.tell(Event::Drain);
    world.tell(Event::Stop);
    let told: Vec<serde_json::Value> = world
        .to_client
        .drain(..)
        .map(|(_, frame)| serde_json::from_str(&frame).unwrap())
        .collect();
    let mut ended: Vec<u64> = told
        .iter()
        .filter(|frame| frame["error"]["code"] == -32603)
        .filter_map(|frame| frame["id"].as_u64())
        .collect();
    ended.sort_unstable();
    assert_eq!(ended, [id, other], "{told:?}");
    assert_eq!(world.relay.open().1, 1, "the question stays");
}

/// Makes the client end the request with this reason.
fn cancels(world: &mut World, id: u64, reason: &str) {
    let params = json!({"requestId": id, "reason": reason});
    let frame = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    world.client_sends(&frame.to_string());
    world.run_record();
}

#[test]
fn a_call_whose_client_ran_out_of_time_waits_for_being_made_again() {
    let revision = Revision::V2025_11_25;
    let mut world = held(revision, revision);
    world.pass_time(Duration::from_secs(5));
    cancels(&mut world, 2, "timed out after 5.0s");
    let open = world.open_to_people();
    assert_eq!(open.len(), 1, "the question waits on");
    let told = world
        .to_server
        .iter()
        .any(|frame| frame.contains("cancelled"));
    assert!(!told, "the server works on");
    world.call();
    assert!(world.to_server.is_empty(), "no work is done twice");
    world.to_client.clear();
    world.pass_time(Duration::from_secs(4));
    let handed_back = |(_, frame): &(crate::StreamId, String)| frame.contains("Not done yet");
    assert!(
        world.to_client.iter().any(handed_back),
        "before the client's time is up again"
    );
    world.people = Some(Action::Accept);
    world.settle();
    world.call();
    world.settle();
    assert_eq!(world.client.text(), "accept:Ada");
    assert_eq!((world.store.len(), world.server.answers.len()), (1, 1));
}

#[test]
fn a_call_that_a_person_cancels_takes_its_question_along_whatever_the_words() {
    let revision = Revision::V2025_11_25;
    let mut world = held(revision, revision);
    cancels(&mut world, 2, "AbortError: This operation was aborted");
    assert!(world.open_to_people().is_empty());
    assert_eq!(world.relay.open(), (0, 0));
}

/// Returns an opened session with a server that has these tools, and that asks in every call. The server is reached
/// over HTTP if `has_streams`, else over a pipe.
fn with_tools(client: Revision, server: Revision, has_streams: bool, tools: &str) -> World {
    let settings = RelaySettings {
        server_streams: has_streams,
        ..RelaySettings::default()
    };
    let mut world = World::with(settings, client, Capability::NONE, server, Asks::Form);
    world.people = None;
    world.server.tools = serde_json::from_str(tools).unwrap();
    world.opened()
}

/// Returns the revisions of client and server, and both transports of the server.
fn transports() -> impl Iterator<Item = (Revision, Revision, bool)> {
    pairs().flat_map(|(client, server)| [false, true].map(|streams| (client, server, streams)))
}

fn lists(world: &World) -> usize {
    let is_list = |frame: &&serde_json::Value| frame["method"] == "tools/list";
    world.server.seen.iter().filter(is_list).count()
}

/// Returns `true` if the call is handed back as an error.
fn is_handed_back_as_error(world: &mut World) -> bool {
    world.call();
    world.settle();
    world.pass_time(RelaySettings::default().hold);
    world.settle();
    assert!(world.client.text().starts_with("Not done yet"));
    let (_, told) = world.client.results.last().unwrap();
    told["result"]["isError"].as_bool().unwrap_or(false)
}

const WITHOUT_SCHEMA: &str = r#"[[],[{"name":"ask","inputSchema":{}}]]"#;

/// A result without `structuredContent` breaks clients that know the tool's output schema; an error result does not.
#[test]
fn a_call_that_is_handed_back_is_an_error_unless_its_tool_has_no_output_schema() {
    for (tools, is_error) in [
        (
            r#"[[],[{"name":"ask","outputSchema":{"type":"object"}}]]"#,
            true,
        ),
        (r#"[[],[{"name":"other"}]]"#, true),
        (WITHOUT_SCHEMA, false),
    ] {
        for (client, server, has_streams) in transports() {
            let mut world = with_tools(client, server, has_streams, tools);
            for cursor in [0, 1] {
                let (_, call) = world.client.call();
                let call = call.replace("tools/call", "tools/list");
                let cursor = format!(r#""params":{{"cursor":"{cursor}","#);
                world.client_sends(&call.replace(r#""params":{"#, &cursor));
                world.settle();
            }
            let said = is_handed_back_as_error(&mut world);
            assert_eq!(said, is_error, "{client} {server} {tools}");
        }
    }
}

/// A model reads an error result as a failure of the tool.
#[test]
fn for_a_held_call_the_gateway_requests_tools_that_no_client_has_listed_but_not_of_a_server_that_waits_for_an_answer_on_a_pipe()
 {
    for (client, server, has_streams) in transports() {
        let mut world = with_tools(client, server, has_streams, WITHOUT_SCHEMA);
        let is_safe = has_streams || server == Revision::V2026_07_28;
        let is_error = is_handed_back_as_error(&mut world);
        assert_eq!(is_error, !is_safe, "{client} {server} {has_streams}");
        let pages = if is_safe { 2 } else { 0 };
        assert_eq!(lists(&world), pages, "{client} {server} {has_streams}");
    }
}

#[test]
fn the_tools_are_requested_once_for_held_calls_until_the_server_says_that_they_changed() {
    for (client, server) in pairs() {
        let tools = r#"[[{"name":"ask","outputSchema":{"type":"object"}}],[]]"#;
        let mut world = with_tools(client, server, true, tools);
        assert!(is_handed_back_as_error(&mut world));
        assert_eq!(lists(&world), 2, "{client} {server}: two pages");
        is_handed_back_as_error(&mut world);
        assert_eq!(lists(&world), 2, "{client} {server}: they are known");
        world.server.tools = vec![json!([{"name": "ask"}])];
        world.server_sends(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        assert!(!is_handed_back_as_error(&mut world));
        assert_eq!(lists(&world), 3, "{client} {server}");
    }
}

#[test]
fn a_server_that_does_not_list_its_tools_is_asked_once_and_its_calls_are_held_as_any() {
    for (client, server) in pairs() {
        for gets_lost in [false, true] {
            let mut world = with_tools(client, server, true, "[]");
            if gets_lost {
                world.drop_tool_listings();
            }
            for _ in 0..3 {
                assert!(is_handed_back_as_error(&mut world));
            }
            assert_eq!(lists(&world), usize::from(!gets_lost));
            let record = world.open_to_people()[0].clone();
            assert!(world.answer(&record, Action::Accept));
            world.settle();
            world.call();
            world.settle();
            assert_eq!(world.client.text(), "accept:Ada", "{client} {server}");
            assert_eq!(world.relay.open(), (0, 0));
        }
    }
}
