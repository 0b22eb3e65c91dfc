//! Rounds of a server of 2026-07-28 that the gateway holds for a client of 2026-07-28: under rules, and if the client
//! may not answer. A retry answers only the questions of its state, is valid for one run, and is checked by the current
//! rules.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::approvals::{Fixed, approval, editable, refusal, settings};
use super::candidates::ByTool;
use super::world::{Asks, World};
use crate::decisions::Admission;
use crate::era::Client;
use crate::{Audience, RelaySettings};

const ROUNDS: Revision = Revision::V2026_07_28;

/// Returns an open session in which the test plays the client, the server and people.
fn session(settings: RelaySettings) -> World {
    let mut world = session_with_tool_listings(settings);
    world.drop_tool_listings();
    world
}

/// Returns such a session in which the test answers requests for the server's tools, too.
fn session_with_tool_listings(settings: RelaySettings) -> World {
    let mut world = World::with(settings, ROUNDS, Capability::FORM, ROUNDS, Asks::Nothing).opened();
    world.people = None;
    world.to_server.clear();
    world.to_client.clear();
    world
}

/// Returns the settings under which no round is passed on.
fn holding() -> [RelaySettings; 2] {
    [
        RelaySettings {
            decisions: Some(Arc::new(ByTool::default())),
            ..RelaySettings::default()
        },
        RelaySettings {
            answer_with: Audience::People,
            ..RelaySettings::default()
        },
    ]
}

fn approving(admission: Admission) -> (RelaySettings, Arc<Fixed>) {
    settings(Fixed {
        admit: Some(admission),
        ..Fixed::default()
    })
}

/// Returns a call of this tool by a client that has declared roots.
fn call(world: &World, id: u64, tool: &str) -> Value {
    let mut meta = world.client.meta();
    meta["io.modelcontextprotocol/clientCapabilities"]["roots"] = json!({});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": {"n": 1}, "_meta": meta}})
}

/// Sends a request of the client. Returns the server's view of it.
fn sends(world: &mut World, frame: &Value) -> Option<Value> {
    world.to_server.clear();
    world.to_client.clear();
    world.client_sends(&frame.to_string());
    world.run_record();
    sent(world)
}

fn sent(world: &mut World) -> Option<Value> {
    let frame = world.to_server.pop_back()?;
    Some(serde_json::from_str(&frame).unwrap())
}

fn told(world: &mut World) -> Value {
    let (_, frame) = world.to_client.pop_back().expect("the client is told");
    serde_json::from_str(&frame).unwrap()
}

fn question() -> Value {
    let schema = json!({"type": "object", "required": ["name"], "properties":
        {"name": {"type": "string"}, "age": {"type": "integer"}}});
    let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

/// Makes the server respond to its last request with a round.
fn asks(world: &mut World, request: &Value, state: &str, requests: &Value) {
    let result =
        json!({"resultType": "input_required", "requestState": state, "inputRequests": requests});
    let frame = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    world.server_sends(&frame.to_string());
    world.run_record();
}

fn completes(world: &mut World, request: &Value) {
    let result = json!({"resultType": "complete", "content": []});
    let frame = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    world.server_sends(&frame.to_string());
}

/// Returns the repeated call with the state that the client got, and these answers.
fn retry(call: &Value, told: &Value, id: u64, responses: &Value) -> Value {
    let mut retry = call.clone();
    retry["id"] = json!(id);
    retry["params"]["requestState"] = told["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = responses.clone();
    assert!(retry["params"]["requestState"].is_string(), "{told}");
    retry
}

fn accept(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// Makes a call that waits for approval and is approved, and whose server asks its caller. Returns the call, the
/// request that the server got and the round that the client got.
fn approved_and_asked(world: &mut World) -> (Value, Value, Value) {
    let call = call(world, 11, "delete");
    assert_eq!(sends(world, &call), None, "people are asked first");
    let open = world.open_to_people();
    assert!(world.answer(&open[0], Action::Accept));
    world.run_record();
    let request = sent(world).expect("the approved call");
    asks(world, &request, "s1", &json!({"who": question()}));
    let round = told(world);
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    (call, request, round)
}

#[test]
fn a_retry_answers_what_was_asked_and_nothing_that_is_asked_later() {
    let first = [
        (
            json!({"roots": {"method": "roots/list"}}),
            json!({"roots": {"roots": []}}),
        ),
        (
            json!({"where": question()}),
            json!({"where": accept("here")}),
        ),
    ];
    for (at, settings) in holding().into_iter().enumerate() {
        for (requests, answers) in &first {
            let mut world = session(settings.clone());
            // Under rules the first round is the caller's; with the inbox, only roots are.
            let (tool, is_callers) = ("read", at == 0 || requests["roots"].is_object());
            let call = call(&world, 11, tool);
            let request = sends(&mut world, &call).expect("the call");
            asks(&mut world, &request, "s1", requests);
            if !is_callers {
                assert_eq!(world.open_to_people().len(), 1);
                continue;
            }
            let round = told(&mut world);
            let mut answers = answers.clone();
            answers["sure"] = accept("yes");
            let again = sends(&mut world, &retry(&call, &round, 12, &answers));
            let again = again.expect("the call is made again");
            let brought = again["params"]["inputResponses"].as_object().unwrap();
            let keys = requests.as_object().unwrap().keys();
            assert!(brought.keys().eq(keys), "{again}");
            assert_eq!(again["params"]["requestState"], "s1");
        }
    }
}

#[test]
fn a_round_of_roots_alone_is_no_way_past_the_people_of_a_rule() {
    let mut world = session(holding()[0].clone());
    let call = call(&world, 11, "deploy");
    let request = sends(&mut world, &call).unwrap();
    asks(
        &mut world,
        &request,
        "s1",
        &json!({"roots": {"method": "roots/list"}}),
    );
    let round = told(&mut world);
    let answers = json!({"roots": {"roots": []}, "sure": accept("yes")});
    let again = sends(&mut world, &retry(&call, &round, 12, &answers)).unwrap();
    assert!(
        again["params"]["inputResponses"]["sure"].is_null(),
        "{again}"
    );
    asks(&mut world, &again, "s2", &json!({"sure": question()}));
    assert_eq!(world.open_to_people().len(), 1, "its people are asked");
    // The state was used, and can no longer carry an answer.
    let used = retry(&call, &round, 13, &answers);
    assert_eq!(sends(&mut world, &used), None);
    assert_eq!(told(&mut world)["error"]["code"], -32602);
}

#[test]
fn what_a_client_has_not_declared_is_a_clear_error() {
    for settings in holding() {
        let mut world = session(settings);
        for (id, method) in [(11, "roots/list"), (12, "sampling/createMessage")] {
            let mut call = call(&world, id, "read");
            call["params"]["_meta"] = world.client.meta();
            let request = sends(&mut world, &call).unwrap();
            asks(
                &mut world,
                &request,
                "s1",
                &json!({"x": {"method": method, "params": {}}}),
            );
            let said = told(&mut world);
            let why = said["error"]["message"].as_str().expect("an error");
            assert!(why.contains(method) && why.contains("declared"), "{why}");
        }
        assert_eq!(world.relay.open(), (0, 0));
    }
}

#[test]
fn a_round_that_only_waits_is_asked_again_by_the_gateway() {
    for settings in holding() {
        let mut world = session(settings);
        let call = call(&world, 11, "read");
        let request = sends(&mut world, &call).unwrap();
        let result = json!({"resultType": "input_required", "requestState": "s1"});
        let frame = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        world.server_sends(&frame.to_string());
        assert!(world.to_client.is_empty());
        world.pass_time(std::time::Duration::from_secs(1));
        let again = sent(&mut world).expect("the call is made again");
        assert_eq!(again["params"]["requestState"], "s1");
        assert!(again["params"]["inputResponses"].is_null());
        completes(&mut world, &again);
        assert_eq!(told(&mut world)["id"], 11);
    }
}

#[test]
fn rounds_whose_client_does_not_come_back_end_and_are_bounded() {
    let settings = RelaySettings {
        pending: Some(2),
        ..holding()[0].clone()
    };
    let open_for = settings.open_for;
    let mut world = session(settings);
    let mut refused = 0;
    for id in 11..14 {
        let mut call = call(&world, id, "read");
        call["params"]["arguments"] = json!({"n": id});
        let request = sends(&mut world, &call).unwrap();
        asks(
            &mut world,
            &request,
            "s1",
            &json!({"roots": {"method": "roots/list"}}),
        );
        refused += u64::from(told(&mut world)["error"].is_object());
    }
    assert_eq!(refused, 1);
    assert_eq!(world.relay.open(), (2, 0));
    world.pass_time(open_for);
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn one_approval_makes_the_call_once_however_often_it_is_retried() {
    let (settings, fixed) = approving(approval());
    let mut world = session(RelaySettings {
        // Retries without an answer do not move the question to people.
        answer_with: Audience::Client,
        ..settings
    });
    let (call, _, round) = approved_and_asked(&mut world);
    let mut states = vec![round];
    for id in 20..23 {
        let last = states.last().unwrap();
        assert_eq!(sends(&mut world, &retry(&call, last, id, &json!({}))), None);
        states.push(told(&mut world));
    }
    let last = states.pop().unwrap();
    for (round, id) in states.iter().zip(30..) {
        let answers = json!({"who": accept("Eve")});
        assert_eq!(sends(&mut world, &retry(&call, round, id, &answers)), None);
        assert_eq!(told(&mut world)["error"]["code"], -32602);
    }
    let answers = json!({"who": accept("Ada")});
    let retry = retry(&call, &last, 40, &answers);
    let again = sends(&mut world, &retry).expect("the call is made again");
    assert_eq!(
        again["params"]["inputResponses"]["who"]["content"]["name"],
        "Ada"
    );
    completes(&mut world, &again);
    let said = told(&mut world);
    assert_eq!(said["id"], 40);
    assert_eq!(
        said["result"]["_meta"]["mcp-elicit/approval"]["rule"], "careful",
        "{said}"
    );
    assert_eq!(sends(&mut world, &retry), None);
    assert_eq!(told(&mut world)["error"]["code"], -32602);
    assert_eq!(fixed.approved.lock().unwrap().len(), 1);
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn the_retry_of_an_approved_call_needs_another_approval_after_a_restart() {
    let (settings, fixed) = approving(approval());
    for used in [false, true] {
        let mut world = session(settings.clone());
        let (call, _, round) = approved_and_asked(&mut world);
        let retry = retry(&call, &round, 20, &json!({"who": accept("Ada")}));
        if used {
            let again = sends(&mut world, &retry).expect("the call is made again");
            completes(&mut world, &again);
        }
        let before = fixed.approved.lock().unwrap().len();
        world.restart(settings.clone());
        assert_eq!(sends(&mut world, &retry), None, "used: {used}");
        assert_eq!(world.open_to_people().len(), 1, "people are asked");
        assert_eq!(fixed.approved.lock().unwrap().len(), before);
    }
    let mut world = session(settings.clone());
    let (call, _, round) = approved_and_asked(&mut world);
    fixed.refuses_now.store(true, Ordering::SeqCst);
    world.restart(settings);
    let retry = retry(&call, &round, 20, &json!({"who": accept("Ada")}));
    assert_eq!(sends(&mut world, &retry), None);
    assert!(told(&mut world).to_string().contains("`never` refuses it"));
}

#[test]
fn the_retry_of_an_approved_call_carries_nothing_that_no_approver_saw() {
    let (settings, _) = approving(approval());
    let mut world = session(settings);
    let (call, request, round) = approved_and_asked(&mut world);
    let mut retry = retry(
        &call,
        &round,
        20,
        &json!({"who": accept("Ada"), "more": {"force": true}}),
    );
    retry["params"]["_meta"]["force"] = json!("force");
    retry["params"]["_meta"]["baggage"] = json!("force=yes");
    retry["params"]["evil"] = json!({"force": true});
    retry["params"]["task"] = json!({"ttl": 1, "force": 1});
    let mut again = sends(&mut world, &retry).expect("the call is made again");
    assert!(!again.to_string().contains("force"), "{again}");
    let params = again["params"].as_object_mut().unwrap();
    assert_eq!(params.remove("requestState"), Some(json!("s1")));
    assert_eq!(
        params.remove("inputResponses"),
        Some(json!({"who": accept("Ada")}))
    );
    assert_eq!(again["params"], request["params"], "the approved call");
}

#[test]
fn a_retry_is_judged_by_the_rules_in_force() {
    for admission in [approval(), Admission::Free] {
        let (settings, fixed) = approving(admission.clone());
        let mut world = session(settings);
        let (call, round) = if matches!(admission, Admission::Free) {
            let call = call(&world, 11, "delete");
            let request = sends(&mut world, &call).unwrap();
            asks(&mut world, &request, "s1", &json!({"who": question()}));
            (call, told(&mut world))
        } else {
            let (call, _, round) = approved_and_asked(&mut world);
            (call, round)
        };
        fixed.refuses_now.store(true, Ordering::SeqCst);
        let mut same = call.clone();
        same["id"] = json!(19);
        assert_eq!(sends(&mut world, &same), None);
        let said = told(&mut world).to_string();
        assert!(
            said.contains("`never` refuses it"),
            "a call like it: {said}"
        );
        let retry = retry(&call, &round, 20, &json!({"who": accept("Ada")}));
        assert_eq!(sends(&mut world, &retry), None);
        let said = told(&mut world);
        let words = said["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(said["id"], 20);
        assert!(
            said["result"]["isError"] == true
                && words.contains(&refusal().to_string())
                && words.contains("not called again"),
            "{said}"
        );
        assert_eq!(world.relay.open(), (0, 0));
    }
}

#[test]
fn a_call_whose_arguments_an_approver_changed_is_retried_with_those_of_its_client() {
    let (settings, _) = approving(editable());
    let mut world = session_with_tool_listings(settings);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let call = call(&world, 11, "delete");
    let list = sends(&mut world, &call).expect("the tools are listed");
    let tools = json!([{"name": "delete", "inputSchema": schema}]);
    let listed = json!({"jsonrpc": "2.0", "id": list["id"], "result": {"resultType": "complete", "tools": tools}});
    world.server_sends(&listed.to_string());
    world.run_record();
    let open = world.open_to_people();
    assert!(world.answer_with(&open[0], Action::Accept, r#"{"/n":7}"#));
    world.run_record();
    let request = sent(&mut world).expect("the approved call");
    assert_eq!(request["params"]["arguments"], json!({"n": 7}));
    asks(&mut world, &request, "s1", &json!({"who": question()}));
    let round = told(&mut world);
    let retry = retry(&call, &round, 20, &json!({"who": accept("Ada")}));
    let again = sends(&mut world, &retry).expect("the call is made again");
    assert_eq!(again["params"]["arguments"], json!({"n": 7}));
}

#[test]
fn several_questions_of_a_round_are_answered_in_parts() {
    let mut world = session(holding()[0].clone());
    let call = call(&world, 11, "read");
    let request = sends(&mut world, &call).unwrap();
    let mut other = question();
    other["params"]["message"] = json!("Where?");
    let requests = json!({"who": question(), "where": other, "roots": {"method": "roots/list"}});
    asks(&mut world, &request, "s1", &requests);
    let one = told(&mut world);
    let asked = |told: &Value| -> Vec<String> {
        let mut keys: Vec<String> = told["result"]["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        keys.sort();
        keys
    };
    assert_eq!(asked(&one), ["roots", "where", "who"]);
    let wrong = json!({"action": "accept", "content": {"name": 7}});
    let answers = json!({"who": accept("Ada"), "where": wrong, "other": accept("no")});
    assert_eq!(sends(&mut world, &retry(&call, &one, 12, &answers)), None);
    let two = told(&mut world);
    assert_eq!(asked(&two), ["roots", "where"]);
    let answers = json!({"who": accept("Eve"), "roots": {"roots": []}});
    assert_eq!(sends(&mut world, &retry(&call, &two, 13, &answers)), None);
    let three = told(&mut world);
    assert_eq!(asked(&three), ["where"]);
    let answers = json!({"roots": {"roots": [1]}, "where": accept("here")});
    let again = sends(&mut world, &retry(&call, &three, 14, &answers)).expect("all is answered");
    let all = json!({"who": accept("Ada"), "where": accept("here"), "roots": {"roots": []}});
    assert_eq!(again["params"]["inputResponses"], all);
}

/// Without rules, a round is passed on, and a gateway that does not know it passes its retry on to a server over HTTP, which is
/// one for all gateways: another gateway on the same record, or the same one after a restart.
#[test]
fn a_retry_of_a_round_that_was_passed_on_goes_on_wherever_it_comes() {
    let settings = RelaySettings {
        server_streams: true,
        ..RelaySettings::default()
    };
    let mut world = session(settings.clone());
    let call = call(&world, 11, "read");
    let request = sends(&mut world, &call).unwrap();
    asks(&mut world, &request, "s1", &json!({"who": question()}));
    let round = told(&mut world);
    let record = world.store.keys().next().unwrap().clone();
    world.restart(settings);
    let answers = json!({"who": accept("Eve")});
    let on = sends(&mut world, &retry(&call, &round, 20, &answers)).expect("it goes on");
    assert_eq!(on["params"]["requestState"], "s1");
    assert_eq!(on["params"]["inputResponses"], answers);
    assert!(world.store[&record].ended, "nobody is asked any more");
}

#[test]
fn the_answer_of_a_retry_after_a_restart_counts_where_it_fits_the_form() {
    let [settings, _] = holding();
    let wrong = json!({"action": "accept", "content": {"name": {"not": "text"}}});
    for said in [accept("Eve"), wrong.clone()] {
        let mut world = session(settings.clone());
        let call = call(&world, 11, "read");
        let request = sends(&mut world, &call).unwrap();
        asks(&mut world, &request, "s1", &json!({"who": question()}));
        let round = told(&mut world);
        let record = world.store.keys().next().unwrap().clone();
        world.restart(settings.clone());
        let anew = sends(&mut world, &retry(&call, &round, 20, &json!({"who": said})));
        let anew = anew.expect("the call starts anew");
        assert!(
            anew["params"]["requestState"].is_null() && anew["params"]["inputResponses"].is_null()
        );
        asks(&mut world, &anew, "s1", &json!({"who": question()}));
        if said == wrong {
            assert!(sent(&mut world).is_none(), "it does not fit");
            let again = told(&mut world);
            let message = &again["result"]["inputRequests"]["who"]["params"]["message"];
            assert!(
                message.as_str().unwrap().contains("cannot be used"),
                "{again}"
            );
            continue;
        }
        let again = sent(&mut world).expect("the call is made again");
        assert_eq!(again["params"]["inputResponses"]["who"], accept("Eve"));
        assert_eq!(world.store.len(), 1, "nothing is asked twice");
        assert_eq!(world.store[&record].deliveries, 1);
    }
}

#[test]
fn a_call_of_a_client_that_did_not_say_what_it_is_carries_no_answers_to_the_server() {
    for settings in holding() {
        let mut world =
            World::with(settings, ROUNDS, Capability::FORM, ROUNDS, Asks::Nothing).opened();
        // Another client of the same server, before any opening of its own.
        world.relay.client = Client::new(None);
        for (id, method) in (30..).zip(["tools/call", "Tools/call"]) {
            world.to_server.clear();
            world.to_client.clear();
            let answers = json!({"who": {"action": "accept", "content": {}}});
            let params = json!({"name": "read", "inputResponses": answers, "requestState": "s"});
            let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            world.client_sends(&frame.to_string());
            assert!(world.to_server.is_empty(), "{:?}", world.to_server);
            let (_, refused) = world.to_client.pop_back().unwrap();
            assert!(refused.contains("error"), "{refused}");
        }
    }
}
