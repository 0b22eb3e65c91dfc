//! Rounds of which one part is for the caller and another for other people, and requests that no round may contain.

use std::time::Duration;

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::approvals::{Fixed, settings};
use super::world::{Asks, World};
use crate::RelaySettings;

const ROUNDS: Revision = Revision::V2026_07_28;

/// Returns rules that give the question `Where?` to people; the caller gets all others.
fn rules() -> RelaySettings {
    let fixed = Fixed {
        people_for: Some("Where?"),
        ..Fixed::default()
    };
    settings(fixed).0
}

/// Returns a session under rules in which the test plays the client, the server and people.
fn session() -> World {
    let mut world = World::with(rules(), ROUNDS, Capability::FORM, ROUNDS, Asks::Nothing).opened();
    world.people = None;
    world.drop_tool_listings();
    world.to_server.clear();
    world.to_client.clear();
    world
}

fn call(world: &World) -> Value {
    let mut meta = world.client.meta();
    meta["io.modelcontextprotocol/clientCapabilities"]["roots"] = json!({});
    json!({"jsonrpc": "2.0", "id": 11, "method": "tools/call",
        "params": {"name": "read", "arguments": {}, "_meta": meta}})
}

fn sends(world: &mut World, frame: &Value) {
    world.client_sends(&frame.to_string());
    world.run_record();
}

fn sent(world: &mut World) -> Option<Value> {
    let frame = world.to_server.pop_front()?;
    Some(serde_json::from_str(&frame).unwrap())
}

fn told(world: &mut World) -> Option<Value> {
    let (_, frame) = world.to_client.pop_front()?;
    Some(serde_json::from_str(&frame).unwrap())
}

fn question(message: &str) -> Value {
    let schema = json!({"type": "object", "required": ["name"], "properties":
        {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

/// Makes the client call, and the server respond with a round of these requests.
fn asked(world: &mut World, requests: &Value) -> Value {
    let call = call(world);
    sends(world, &call);
    let request = sent(world).expect("the call");
    let result =
        json!({"resultType": "input_required", "requestState": "s1", "inputRequests": requests});
    let frame = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    world.server_sends(&frame.to_string());
    world.run_record();
    call
}

fn retry(call: &Value, round: &Value, id: u64, responses: &Value) -> Value {
    let mut retry = call.clone();
    retry["id"] = json!(id);
    retry["params"]["requestState"] = round["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = responses.clone();
    retry
}

fn accept(name: &Value) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// Returns the keys of the questions of a round.
fn keys(round: &Value) -> Vec<String> {
    let asked = round["result"]["inputRequests"].as_object();
    asked.map_or_else(Vec::new, |asked| asked.keys().cloned().collect())
}

#[test]
fn a_wrong_or_missing_answer_of_the_caller_is_asked_again_while_people_think() {
    for wrong in [json!({}), json!({"who": accept(&json!(7))})] {
        let mut world = session();
        let requests = json!({"who": question("Who?"), "where": question("Where?")});
        let call = asked(&mut world, &requests);
        let first = told(&mut world).expect("the caller is asked");
        assert_eq!(keys(&first), ["who"]);
        sends(&mut world, &retry(&call, &first, 12, &wrong));
        let again = told(&mut world).expect("the caller is asked again at once");
        assert_eq!(keys(&again), ["who"], "{again}");
        let right = json!({"who": accept(&json!("Ada"))});
        sends(&mut world, &retry(&call, &again, 13, &right));
        assert!(told(&mut world).is_none(), "the call is held for people");
        let open = world.open_to_people();
        assert!(world.answer(&open[0], Action::Accept));
        world.run_record();
        let made_again = sent(&mut world).expect("the call is made again");
        let brought = &made_again["params"]["inputResponses"];
        assert_eq!(brought["who"], right["who"], "{made_again}");
        assert_eq!(brought["where"]["action"], "accept");
    }
}

#[test]
fn a_retry_is_asked_again_only_in_what_it_declares() {
    let right = json!({"who": accept(&json!("Ada"))});
    let mut world = session();
    let call = asked(&mut world, &json!({"who": question("Who?")}));
    let round = told(&mut world).expect("the caller is asked");
    let silent = |id: u64, answers: &Value| {
        let mut retry = retry(&call, &round, id, answers);
        retry["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        retry
    };
    for (id, wrong) in [(12, json!({})), (13, json!({"who": accept(&json!(7))}))] {
        sends(&mut world, &silent(id, &wrong));
        let refused = told(&mut world).expect("an error");
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!(id), &json!(-32021))
        );
    }
    // The round is unchanged, and a call that answers it is not asked again.
    sends(&mut world, &silent(14, &right));
    let made_again = sent(&mut world).expect("the call is made again");
    assert_eq!(made_again["params"]["inputResponses"], right);
}

#[test]
fn the_roots_of_a_round_are_asked_for_while_people_think() {
    let requests = json!({"where": question("Where?"), "roots": {"method": "roots/list"}});
    let answers = json!({"roots": {"roots": []}});
    for people_first in [false, true] {
        let mut world = session();
        let call = asked(&mut world, &requests);
        let round = told(&mut world).expect("the client is asked at once");
        assert_eq!(keys(&round), ["roots"]);
        let open = world.open_to_people();
        if people_first {
            assert!(world.answer(&open[0], Action::Accept));
            world.run_record();
        }
        sends(&mut world, &retry(&call, &round, 12, &answers));
        if !people_first {
            assert_eq!((told(&mut world), sent(&mut world)), (None, None), "held");
            assert!(world.answer(&open[0], Action::Accept));
            world.run_record();
        }
        let made_again = sent(&mut world).expect("the call is made again");
        let brought = &made_again["params"]["inputResponses"];
        assert_eq!(brought["roots"], answers["roots"]);
        assert_eq!(brought["where"]["action"], "accept");
    }
}

#[test]
fn a_client_that_does_not_come_back_with_its_roots_holds_no_place_for_a_day() {
    let requests = json!({"where": question("Where?"), "roots": {"method": "roots/list"}});
    let mut world = session();
    asked(&mut world, &requests);
    let open = world.open_to_people();
    assert!(world.answer(&open[0], Action::Accept));
    world.run_record();
    world.pass_time(Duration::from_secs(9 * 60));
    assert_eq!(world.relay.open(), (1, 1));
    world.pass_time(Duration::from_secs(2 * 60));
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn a_round_asks_for_what_the_protocol_has_and_nothing_that_resembles_it() {
    let params = question("Where?")["params"].clone();
    for method in [
        "elicitation/create2",
        "Elicitation/Create",
        "elicitation/create ",
        "tools/call",
    ] {
        let mut world = session();
        asked(
            &mut world,
            &json!({"where": {"method": method, "params": params}}),
        );
        let said = told(&mut world).expect("the call ends");
        assert!(said["error"]["code"].is_i64(), "{method}: {said}");
        assert_eq!(world.relay.open(), (0, 0));
    }
}

#[test]
fn a_pushed_request_that_is_nearly_a_question_reaches_nobody() {
    for client in Revision::ALL {
        for method in [
            "Elicitation/Create",
            " elicitation/create",
            "elicitation/Create",
        ] {
            let server = Revision::V2025_11_25;
            let settings = RelaySettings::default();
            let mut world =
                World::with(settings, client, Capability::FORM, server, Asks::Nothing).opened();
            world.to_client.clear();
            world.to_server.clear();
            let params = &question("Who?")["params"];
            let frame = json!({"jsonrpc": "2.0", "id": 900, "method": method, "params": params});
            world.server_sends(&frame.to_string());
            assert_eq!(told(&mut world), None, "{method}");
            let said = sent(&mut world).expect("the server is told");
            assert_eq!(
                (&said["id"], &said["error"]["code"]),
                (&json!(900), &json!(-32601))
            );
        }
    }
}

#[test]
fn under_rules_links_that_cannot_be_read_reach_nobody() {
    let item = json!({"mode": "url", "message": "Where?", "url": "https://a.example/", "elicitationId": "e"});
    let mut twin = item.clone();
    twin["URL"] = json!("https://b.example/");
    let error = |code: &str, item: &Value| {
        let data = json!({"elicitations": [item]});
        format!(r#""error":{{"code":{code},"message":"m","data":{data}}}"#)
    };
    let right = error("-32042", &item);
    let twice = right.replace(r#""url":"#, r#""url":"https://b.example/","url":"#);
    let other_code = error("-32042.0", &item);
    for (answer, people_are_asked) in [
        (right, true),
        (other_code, true),
        (error("-3.2042e4", &item), true),
        (error("-32042", &twin), false),
        (twice, false),
        (error("-32042", &json!({"mode": "form"})), false),
        (r#""error":{"code":-32042,"message":"m"}"#.to_owned(), false),
    ] {
        let (client, server) = (Revision::V2025_11_25, Revision::V2025_11_25);
        let mut world =
            World::with(rules(), client, Capability::BOTH, server, Asks::Nothing).opened();
        world.people = None;
        world.to_server.clear();
        world.to_client.clear();
        let call = json!({"jsonrpc": "2.0", "id": 11, "method": "tools/call",
            "params": {"name": "read", "arguments": {}}});
        sends(&mut world, &call);
        let request = sent(&mut world).expect("the call");
        world.server_sends(&format!(
            r#"{{"jsonrpc":"2.0","id":{},{answer}}}"#,
            request["id"]
        ));
        world.run_record();
        assert_eq!(
            world.open_to_people().len(),
            usize::from(people_are_asked),
            "{answer}"
        );
        while let Some(said) = told(&mut world) {
            assert!(!said.to_string().contains("example"), "{answer}: {said}");
        }
    }
}

#[test]
fn under_rules_links_in_other_responses_reach_only_whom_they_are_for() {
    let error = |id: &Value, message: &str| {
        let item = json!({"mode": "url", "message": message, "url": "https://a.example/", "elicitationId": "e"});
        let data = json!({"elicitations": [item]});
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32042, "message": "m", "data": data}})
    };
    for method in ["tasks/result", "tools/list", "completion/complete"] {
        for (message, is_callers) in [("Where?", false), ("Who?", true)] {
            let revision = Revision::V2025_11_25;
            let mut world =
                World::with(rules(), revision, Capability::BOTH, revision, Asks::Nothing).opened();
            world.people = None;
            world.to_server.clear();
            world.to_client.clear();
            let params = json!({"taskId": "t-1"});
            let request = json!({"jsonrpc": "2.0", "id": 11, "method": method, "params": params});
            sends(&mut world, &request);
            let request = sent(&mut world).expect("the request");
            world.server_sends(&error(&request["id"], message).to_string());
            let said = told(&mut world).expect("the request ends");
            let has_links = said["error"]["code"] == -32042;
            assert_eq!(has_links, is_callers, "{method}: {said}");
            assert_eq!(
                said.to_string().contains("example"),
                is_callers,
                "{method}: {said}"
            );
        }
    }
}

#[test]
fn under_rules_the_links_of_a_refused_opening_reach_nobody() {
    let revision = Revision::V2025_11_25;
    let mut world = World::with(rules(), revision, Capability::BOTH, revision, Asks::Nothing);
    world.people = None;
    let info = json!({"name": "c", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let opening = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    sends(&mut world, &opening);
    let item = json!({"mode": "url", "message": "Who?", "url": "https://a.example/", "elicitationId": "e"});
    let error = json!({"code": -32042, "message": "m", "data": {"elicitations": [item]}});
    while let Some(request) = sent(&mut world) {
        let refusal = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
        world.server_sends(&refusal.to_string());
    }
    let said = told(&mut world).expect("the opening ends");
    assert_eq!(said["error"]["code"], -32603, "{said}");
    assert!(!said.to_string().contains("example"), "{said}");
}

#[test]
fn under_rules_a_result_that_asks_in_other_words_reaches_nobody() {
    let requests = json!({"where": question("Where?")});
    for kind in [
        json!(null),
        json!("complete"),
        json!("Input_required"),
        json!(7),
    ] {
        let mut world = session();
        let call = call(&world);
        sends(&mut world, &call);
        let request = sent(&mut world).expect("the call");
        let result = json!({"resultType": kind, "requestState": "s", "inputRequests": requests});
        let frame = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        world.server_sends(&frame.to_string());
        world.run_record();
        let said = told(&mut world).expect("the call ends");
        assert!(said["error"]["code"].is_i64(), "{kind}: {said}");
    }
}

#[test]
fn a_notification_that_is_nearly_a_question_reaches_nobody() {
    for method in [
        "elicitation/create",
        "Elicitation/Create",
        "Notifications/Tasks",
        "notifications/task\u{17f}",
        "Notifications/elicitation/complete",
    ] {
        let mut world = session();
        let params = &question("Where?")["params"];
        let frame = json!({"jsonrpc": "2.0", "method": method, "params": params});
        world.server_sends(&frame.to_string());
        assert_eq!(told(&mut world), None, "{method}");
    }
}
