//! Forms that no revision lists: passed to a client that declared the mode as the server wrote them, and translated
//! into a legal spelling for a client of another era.

use mcp_elicit_core::wire::{Capability, Revision};
use serde_json::{Value, json};

use super::approvals::{Fixed, settings};
use super::world::{Asks, World};
use crate::RelaySettings;

const PUSHED: Revision = Revision::V2025_11_25;
const ROUNDS: Revision = Revision::V2026_07_28;

fn read(frame: &str) -> Value {
    serde_json::from_str(frame).unwrap()
}

fn session(
    rules: RelaySettings,
    client: Revision,
    capability: Capability,
    server: Revision,
) -> World {
    let mut world = World::with(rules, client, capability, server, Asks::Nothing).opened();
    world.people = None;
    let (_, call) = world.client.call();
    world.client_sends(&call);
    world.to_server.clear();
    world.to_client.clear();
    world
}

fn push(params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 900, "method": "elicitation/create", "params": params})
        .to_string()
}

fn with_schema(schema: &Value) -> Value {
    json!({"message": "Who?", "requestedSchema": schema})
}

/// Forms that cannot be shown here, with content that answers them.
fn unreadable() -> Vec<(Value, Value)> {
    let nested = json!({"type": "object", "properties": {"i": {"type": "object", "properties": {"s": {"type": "string"}}}}});
    let rows = json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}}});
    let mut deep = json!({"type": "string"});
    for _ in 0..40 {
        deep = json!({"type": "object", "properties": {"d": deep}});
    }
    let foreign =
        json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}});
    vec![
        (nested, json!({"i": {"s": "x"}})),
        (rows, json!({"rows": [{"a": 1}]})),
        (foreign, json!({"a": null})),
        (deep, json!({"d": {"d": {}}})),
        (json!(true), json!({"any": [1]})),
        (json!(false), json!({})),
    ]
}

#[test]
fn a_client_that_can_ask_gets_an_unreadable_form_and_the_server_its_answer_unchanged() {
    for (schema, content) in unreadable() {
        let mut world = session(RelaySettings::default(), PUSHED, Capability::BOTH, PUSHED);
        let asked = push(&with_schema(&schema)).replace("\"id\":900", "\"id\": 900 ");
        world.server_sends(&asked);
        world.run_record();
        let (_, shown) = world.to_client.pop_back().expect("the client is asked");
        assert_eq!(shown, asked);
        let answer = format!(
            r#"{{"jsonrpc":"2.0", "id":900,"result":{{"action":"accept","content": {content} ,"x":1}}}}"#
        );
        world.client_sends(&answer);
        world.run_record();
        assert_eq!(world.to_server.pop_front().as_deref(), Some(&*answer));
    }
}

#[test]
fn an_unreadable_form_in_a_round_passes_unchanged() {
    for (schema, content) in unreadable() {
        let mut world = session(RelaySettings::default(), ROUNDS, Capability::BOTH, ROUNDS);
        let (_, call) = world.client.call();
        world.client_sends(&call);
        let sent = read(&world.to_server.pop_front().expect("the call"));
        let mut asked = with_schema(&schema);
        asked["mode"] = json!("form");
        let requests = json!({"q": {"method": "elicitation/create", "params": asked}});
        let result =
            json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"});
        world.server_sends(
            &json!({"jsonrpc": "2.0", "id": sent["id"], "result": result}).to_string(),
        );
        world.run_record();
        let told = read(&world.to_client.pop_back().expect("the round").1);
        assert_eq!(told["result"]["inputRequests"], requests, "{told}");
        let mut retry = read(&call);
        retry["id"] = json!(50);
        retry["params"]["requestState"] = told["result"]["requestState"].clone();
        let responses = json!({"q": {"action": "accept", "content": content}});
        retry["params"]["inputResponses"] = responses.clone();
        world.client_sends(&retry.to_string());
        world.run_record();
        let again = read(&world.to_server.pop_front().expect("the retry"));
        assert_eq!(again["params"]["inputResponses"], responses);
        assert_eq!(again["params"]["requestState"], "s");
    }
}

#[test]
fn an_unreadable_form_is_refused_for_people_under_rules_and_across_eras() {
    let rules = || settings(Fixed::default()).0;
    for (schema, _) in unreadable() {
        for (rules, client, capability) in [
            (RelaySettings::default(), PUSHED, Capability::NONE),
            (rules(), PUSHED, Capability::BOTH),
            (RelaySettings::default(), ROUNDS, Capability::BOTH),
        ] {
            let mut world = session(rules, client, capability, PUSHED);
            world.server_sends(&push(&with_schema(&schema)));
            world.run_record();
            let refused = read(&world.to_server.pop_front().expect("a refusal"));
            assert_eq!(refused["id"], 900);
            assert!(refused["error"]["code"].is_i64(), "{refused}");
            assert!(world.to_client.is_empty());
            assert!(world.open_to_people().is_empty());
            let [(message, why)] = &world.not_shown[..] else {
                panic!("it is in the audit once: {:?}", world.not_shown);
            };
            assert!(!message.is_empty() && !why.is_empty());
        }
    }
}

/// Before a client with a session, the forms of all revisions are the same.
#[test]
fn an_unreadable_form_of_a_round_is_pushed_to_a_client_that_declared_forms_and_never_to_people() {
    for client in [Revision::V2025_06_18, PUSHED] {
        for (schema, content) in unreadable() {
            for capability in [Capability::FORM, Capability::NONE] {
                let mut world = session(RelaySettings::default(), client, capability, ROUNDS);
                let (_, call) = world.client.call();
                world.client_sends(&call);
                let sent = read(&world.to_server.pop_front().expect("the call"));
                let mut asked = with_schema(&schema);
                asked["mode"] = json!("form");
                let result = json!({"resultType": "input_required", "requestState": "s",
                    "inputRequests": {"q": {"method": "elicitation/create", "params": asked}}});
                let round = json!({"jsonrpc": "2.0", "id": sent["id"], "result": result});
                world.server_sends(&round.to_string());
                world.run_record();
                assert!(world.open_to_people().is_empty());
                if capability == Capability::NONE {
                    assert_eq!(world.to_client.len(), 1, "the call ends with the reason");
                    assert!(world.to_client[0].1.contains("cannot be shown"));
                    continue;
                }
                let pushed = read(&world.to_client.pop_back().expect("the question").1);
                assert_eq!(pushed["method"], "elicitation/create", "{client} {schema}");
                assert_eq!(pushed["params"]["requestedSchema"], schema, "{client}");
                let reply = json!({"jsonrpc": "2.0", "id": pushed["id"],
                    "result": {"action": "accept", "content": content}});
                world.client_sends(&reply.to_string());
                world.run_record();
                let again = read(&world.to_server.pop_front().expect("the retry"));
                let given = &again["params"]["inputResponses"]["q"];
                assert_eq!(given, &json!({"action": "accept", "content": content}));
            }
        }
    }
}

#[test]
fn an_unreadable_form_never_moves_from_the_client_to_people() {
    for reply in [
        json!({"error": {"code": -32601, "message": "Method not found"}}),
        json!({"result": {"action": "maybe"}}),
    ] {
        let (schema, _) = unreadable().swap_remove(0);
        let mut world = session(RelaySettings::default(), PUSHED, Capability::BOTH, PUSHED);
        world.server_sends(&push(&with_schema(&schema)));
        world.run_record();
        let mut frame = json!({"jsonrpc": "2.0", "id": 900});
        frame
            .as_object_mut()
            .unwrap()
            .extend(reply.as_object().cloned().unwrap());
        world.client_sends(&frame.to_string());
        world.run_record();
        assert!(world.open_to_people().is_empty());
        let told = read(&world.to_server.pop_front().expect("the server is told"));
        assert!(told["error"].is_object(), "{told}");
    }
}

#[test]
fn an_ambiguous_schema_is_never_passed_on() {
    let mut world = session(RelaySettings::default(), PUSHED, Capability::BOTH, PUSHED);
    let twice =
        r#"{"type":"object","properties":{"a":{"type":"string","title":"Keep","title":"Delete"}}}"#;
    let frame = format!(
        r#"{{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{{"message":"m","requestedSchema":{twice}}}}}"#
    );
    world.server_sends(&frame);
    world.run_record();
    assert!(world.to_client.is_empty());
    let refused = read(&world.to_server.pop_front().expect("a refusal"));
    assert!(refused["error"].is_object());
}

#[test]
fn the_answer_of_a_client_that_knows_the_whole_schema_is_not_refused_by_the_part_that_was_read() {
    let schema = json!({"type": "object", "required": ["v", "n"], "properties": {
        "v": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"a": {"type": "string"}}}]},
        "n": {"type": "integer", "enum": [1, 2]}
    }});
    for (content, passes) in [
        (json!({"v": {"a": "x"}, "n": 1}), true),
        (json!({"v": "x", "n": 1}), true),
        (json!({"v": "x", "n": 3}), false),
    ] {
        let mut world = session(RelaySettings::default(), PUSHED, Capability::BOTH, PUSHED);
        world.server_sends(&push(&with_schema(&schema)));
        world.run_record();
        world.to_client.clear();
        let answer = json!({"jsonrpc": "2.0", "id": 900, "result": {"action": "accept", "content": content}});
        world.client_sends(&answer.to_string());
        world.run_record();
        let sent = world.to_server.pop_front().map(|sent| read(&sent));
        let expected = passes.then_some(answer);
        assert_eq!(
            sent, expected,
            "an answer that does not pass is asked for again"
        );
    }
}

#[test]
fn a_client_of_another_era_gets_a_legal_form_and_the_server_typed_values() {
    let schema = json!({"properties": {
        "level": {"type": "integer", "enum": [1, 2]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "v": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "nick": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
        "kind": {"$ref": "#/$defs/Kind"}
    }, "required": ["level"], "$defs": {"Kind": {"enum": ["a", "b"]}}});
    let legal = json!({"type": "object", "required": ["level"], "properties": {
        "level": {"type": "string", "enum": ["1", "2"]},
        "tags": {"type": "string", "description": "One value per line."},
        "v": {"type": "string", "description": "Accepted: a whole number, or text."},
        "nick": {"type": "string"},
        "kind": {"type": "string", "enum": ["a", "b"]}
    }});
    let said = json!({"level": "2", "tags": "x\ny", "v": "7", "kind": "b"});
    let typed = json!({"level": 2, "tags": ["x", "y"], "v": 7, "kind": "b"});

    let mut world = session(RelaySettings::default(), ROUNDS, Capability::BOTH, PUSHED);
    let (_, call) = world.client.call();
    world.client_sends(&call);
    world.to_server.clear();
    world.server_sends(&push(&with_schema(&schema)));
    world.run_record();
    let told = read(&world.to_client.pop_back().expect("the round").1);
    let requests = told["result"]["inputRequests"].as_object().unwrap();
    let (key, asked) = requests.iter().next().unwrap();
    assert_eq!(asked["params"]["requestedSchema"], legal);
    let mut retry = read(&call);
    retry["id"] = json!(50);
    retry["params"]["requestState"] = told["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = json!({ key: {"action": "accept", "content": said} });
    world.client_sends(&retry.to_string());
    world.run_record();
    let answer = read(&world.to_server.pop_front().expect("the answer"));
    assert_eq!(
        answer["result"],
        json!({"action": "accept", "content": typed})
    );

    // The other way round: a server that asks in rounds, a client to which questions are pushed.
    let mut world = session(RelaySettings::default(), PUSHED, Capability::BOTH, ROUNDS);
    let (_, call) = world.client.call();
    world.client_sends(&call);
    let sent = read(&world.to_server.pop_front().expect("the call"));
    let mut asked = with_schema(&schema);
    asked["mode"] = json!("form");
    let result = json!({"resultType": "input_required", "requestState": "s",
        "inputRequests": {"q": {"method": "elicitation/create", "params": asked}}});
    world.server_sends(&json!({"jsonrpc": "2.0", "id": sent["id"], "result": result}).to_string());
    world.run_record();
    let pushed = read(&world.to_client.pop_back().expect("the question").1);
    assert_eq!(pushed["params"]["requestedSchema"], legal);
    let reply = json!({"jsonrpc": "2.0", "id": pushed["id"], "result": {"action": "accept", "content": said}});
    world.client_sends(&reply.to_string());
    world.run_record();
    let again = read(&world.to_server.pop_front().expect("the retry"));
    assert_eq!(
        again["params"]["inputResponses"]["q"],
        json!({"action": "accept", "content": typed})
    );
}

#[test]
fn a_question_without_a_schema_is_a_confirmation() {
    for params in [
        json!({"message": "Go?"}),
        json!({"message": "Go?", "requestedSchema": null}),
        json!({"message": "Go?", "requestedSchema": []}),
        json!({"message": "Go?", "requestedSchema": {}}),
        json!({"message": "Go?", "requestedSchema": {"type": "object", "properties": []}}),
        json!({"message": "Go?", "schema": {"type": "object"}}),
    ] {
        let mut world = session(RelaySettings::default(), PUSHED, Capability::NONE, PUSHED);
        world.server_sends(&push(&params));
        world.run_record();
        assert_eq!(world.open_to_people().len(), 1, "{params}");
        // A client of its own era has the server's text.
        let mut world = session(RelaySettings::default(), PUSHED, Capability::BOTH, PUSHED);
        let asked = push(&params);
        world.server_sends(&asked);
        world.run_record();
        assert_eq!(world.to_client.pop_back().unwrap().1, asked);
    }
}
