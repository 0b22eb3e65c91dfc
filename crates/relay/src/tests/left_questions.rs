//! A server that stops waiting for a person, in a call that was handed back: the question stays for the same call made again.

use std::time::Duration;

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};

/// The reason for which an SDK withdraws a question, and its response to the call.
const TYPESCRIPT: &str = "McpError: MCP error -32001: Request timed out";

/// A call that was handed back while its question waits, and its id.
fn handed_back() -> (World, u64) {
    let revision = Revision::V2025_11_25;
    let mut world = World::new(revision, Capability::NONE, revision, Asks::Form).opened();
    world.people = None;
    let id = world.call();
    world.settle();
    world.pass_time(Duration::from_secs(51));
    world.settle();
    assert_eq!(world.client.results.len(), 1, "handed back");
    (world, id)
}

fn withdrawn(reason: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": reason}})
}

fn error(id: u64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": message}})
}

fn result(id: u64, text: &str, is_error: bool) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": content, "isError": is_error}})
}

#[test]
fn the_same_call_made_again_goes_on_where_it_stopped() {
    let ways: [fn(u64) -> Vec<Value>; 4] = [
        |id| vec![error(id, "Elicitation timeout")],
        |id| vec![withdrawn("request timeout"), error(id, "it failed")],
        |id| vec![withdrawn(TYPESCRIPT), result(id, TYPESCRIPT, true)],
        // The SDK for Python withdraws nothing.
        |id| vec![result(id, "Timed out while waiting for response", true)],
    ];
    for (way, frames) in ways.into_iter().enumerate() {
        for is_answered_first in [false, true] {
            let (mut world, id) = handed_back();
            for frame in frames(id) {
                world.server_sends(&frame.to_string());
            }
            world.settle();
            world.server.restart();
            let open = world.open_to_people();
            assert_eq!(open.len(), 1, "{way}: the question stays");
            assert_eq!(world.relay.open(), (0, 0), "{way}");
            if is_answered_first {
                assert!(world.answer(&open[0], Action::Accept));
            }
            world.call();
            world.settle();
            if !is_answered_first {
                assert!(world.answer(&open[0], Action::Accept));
                world.settle();
            }
            assert_eq!(world.store.len(), 1, "{way}: asked twice");
            assert_eq!(world.client.text(), "accept:Ada", "{way}");
            assert_eq!(world.store[&open[0]].deliveries, 1, "{way}");
            assert_eq!(world.relay.open(), (0, 0), "{way}");
        }
    }
}

#[test]
fn a_server_that_goes_on_without_the_answer_withdraws_its_question() {
    let (mut world, id) = handed_back();
    world.server_sends(&withdrawn(TYPESCRIPT).to_string());
    assert_eq!(world.open_to_people().len(), 1);
    world.server_sends(&result(id, "done without it", false).to_string());
    world.settle();
    assert!(world.open_to_people().is_empty());
    world.call();
    world.settle();
    assert_eq!(world.client.text(), "done without it");
}

#[test]
fn other_ends_withdraw_the_question_and_are_told() {
    let ways: [fn(u64) -> Vec<Value>; 3] = [
        |id| vec![error(id, "the disk is full")],
        |id| vec![withdrawn("not needed any more"), error(id, "stopped")],
        |id| vec![result(id, "the request timed out: done otherwise", false)],
    ];
    for (way, frames) in ways.into_iter().enumerate() {
        let (mut world, id) = handed_back();
        for frame in frames(id) {
            world.server_sends(&frame.to_string());
        }
        world.settle();
        assert!(world.open_to_people().is_empty(), "{way}");
        world.call();
        world.settle();
        assert_eq!(world.client.results.len(), 2, "{way}: its end is told");
        assert_eq!(world.store.len(), 1, "{way}");
    }
}

#[test]
fn a_client_that_waits_is_told_of_the_servers_limit() {
    let revision = Revision::V2025_11_25;
    let mut world = World::new(revision, Capability::NONE, revision, Asks::Form).opened();
    world.people = None;
    let id = world.call();
    world.settle();
    world.server_sends(&withdrawn(TYPESCRIPT).to_string());
    world.server_sends(&error(id, "Elicitation timeout").to_string());
    world.settle();
    assert!(world.client.text().contains("-32000"));
    assert!(world.open_to_people().is_empty());
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn a_client_that_comes_back_in_between_is_told_of_the_failure_and_then_finds_the_question() {
    let (mut world, id) = handed_back();
    world.server_sends(&withdrawn(TYPESCRIPT).to_string());
    world.call();
    world.server_sends(&error(id, "Elicitation timeout").to_string());
    world.settle();
    assert!(world.client.text().contains("-32000"));
    world.server.restart();
    let open = world.open_to_people();
    assert_eq!(open.len(), 1);
    world.call();
    world.settle();
    assert!(world.answer(&open[0], Action::Accept));
    world.settle();
    assert_eq!(world.client.text(), "accept:Ada");
    assert_eq!(world.store.len(), 1);
}

#[test]
fn a_session_leaves_no_more_questions_than_may_be_pending_in_it() {
    for (before, left) in [(1, 1), (0, 0)] {
        let (mut world, id) = handed_back();
        let most = world.relay.settings.pending.unwrap();
        world.relay.left_questions = most - before;
        world.server_sends(&error(id, "Elicitation timeout").to_string());
        world.settle();
        assert_eq!(world.open_to_people().len(), left);
        assert_eq!(world.relay.left_questions, most);
    }
}
