//! Tests of refusals: illegal questions, wrong answers, and exceeded limits.

use std::time::Duration;

use mcp_elicit_core::wire::{Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::{Audience, Event, QuestionLimit, RelaySettings};

fn push(id: u64, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
        .to_string()
}

fn refused(world: &mut World, params: &Value) -> Value {
    refused_text(world, &push(900, params))
}

fn refused_text(world: &mut World, frame: &str) -> Value {
    world.server_sends(frame);
    world.run_record();
    let frame = world.to_server.pop_front().expect("the server is told");
    let frame: Value = serde_json::from_str(&frame).unwrap();
    assert_eq!(frame["id"], 900);
    frame["error"].clone()
}

#[test]
fn an_illegal_question_is_refused_and_never_shown() {
    let cases = [
        json!({"mode": "form", "message": "m", "requestedSchema": "x"}),
        json!({"mode": "dance", "message": "m"}),
        json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "javascript:alert(1)"}),
        json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "not a url"}),
    ];
    for params in cases {
        let mut world = World::new(
            Revision::V2025_11_25,
            Capability::BOTH,
            Revision::V2025_11_25,
            Asks::Nothing,
        )
        .opened();
        let error = refused(&mut world, &params);
        assert_eq!(error["code"], -32602, "{params}: {error}");
        assert!(world.store.is_empty());
    }
}

#[test]
fn questions_that_cannot_be_shown_count_and_what_is_said_of_them_is_bounded() {
    let settings = RelaySettings {
        per_minute: Some(1),
        answer_with: Audience::People,
        ..RelaySettings::default()
    };
    let (revision, both) = (Revision::V2025_11_25, Capability::BOTH);
    let mut world = World::with(settings, revision, both, revision, Asks::Nothing).opened();
    let name = "n".repeat(100_000);
    let schema = json!({"type": "object", "properties": {name: {"type": "object"}}});
    let question = json!({"mode": "form", "message": "m", "requestedSchema": schema});
    let error = refused(&mut world, &question);
    assert_eq!(error["code"], -32602);
    let said = error["message"].as_str().unwrap();
    assert!(said.len() < 2_000, "{} bytes", said.len());
    let error = refused(&mut world, &question);
    assert_ne!(error["code"], -32602, "it is one too many: {error}");
}

/// With two titles, the page and the client could show different ones.
#[test]
fn a_question_whose_form_has_two_readings_is_refused_and_never_shown() {
    for schema in [
        r#"{"type":"object","properties":{"ok":{"type":"boolean","title":"Keep","title":"Delete"}}}"#,
        r#"{"type":"object","properties":{"ok":{"type":"boolean"},"ok":{"type":"string"}}}"#,
        r#"{"type":"object","properties":{"ok":{"type":"boolean"}},"properties":{}}"#,
    ] {
        for (client, capability) in [
            (Revision::V2025_11_25, Capability::BOTH),
            (Revision::V2025_11_25, Capability::NONE),
            (Revision::V2026_07_28, Capability::FORM),
        ] {
            let server = Revision::V2025_11_25;
            let mut world = World::new(client, capability, server, Asks::Nothing).opened();
            let frame = format!(
                r#"{{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{{"mode":"form","message":"m","requestedSchema":{schema}}}}}"#
            );
            let error = refused_text(&mut world, &frame);
            assert_eq!(error["code"], -32602, "{schema}: {client}");
            assert!(world.store.is_empty(), "{schema}: {client}");
            assert!(world.to_client.is_empty(), "{schema}: {client}");
        }
    }
}

#[test]
fn an_answer_that_does_not_fit_reaches_no_server() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            let settings = RelaySettings {
                answer_with: Audience::Client,
                ..RelaySettings::default()
            };
            let mut world =
                World::with(settings, client, Capability::BOTH, server, Asks::Form).opened();
            world.client.content = r#"{"name":"Ada","age":3}"#.to_owned();
            world.call();
            world.settle();
            assert!(world.server.answers.is_empty(), "{client} {server}");
            assert!(!world.client.text().contains("Ada"), "{client} {server}");
            assert!(
                !format!("{:?}", world.server.seen).contains("Ada"),
                "no value may pass"
            );
        }
    }
}

#[test]
fn a_call_with_a_longer_name_than_the_limit_is_refused_and_reaches_no_server() {
    for client in Revision::ALL {
        for (method, member, most) in [
            ("tools/call", "name", 4_096),
            ("prompts/get", "name", 4_096),
            ("resources/read", "uri", 65_536),
        ] {
            let (both, server) = (Capability::BOTH, Revision::V2025_11_25);
            let mut world = World::new(client, both, server, Asks::Nothing).opened();
            world.to_server.clear();
            let name = "n".repeat(most + 1);
            let call =
                json!({"jsonrpc": "2.0", "id": 77, "method": method, "params": {member: name}});
            world.client_sends(&call.to_string());
            assert!(world.to_server.is_empty(), "{client} {method}");
            let refusal: Value =
                serde_json::from_str(&world.to_client.pop_back().unwrap().1).unwrap();
            assert_eq!(refusal["id"], 77);
            assert_eq!(refusal["error"]["code"], -32602, "{client} {method}");
            let why = refusal["error"]["message"].as_str().unwrap();
            assert!(why.contains("4096") && why.len() < 200, "{why}");
        }
    }
}

#[test]
fn a_request_of_the_server_with_a_longer_id_than_the_limit_is_refused() {
    let mut world = World::with_silent_server(RelaySettings::default());
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    for (method, params) in [("ping", json!({})), ("elicitation/create", form)] {
        let ask = |id: String| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        world.to_client.clear();
        world.server_sends(&ask("i".repeat(1_023)));
        world.run_record();
        let refusal: Value = serde_json::from_str(&world.to_server.pop_front().unwrap()).unwrap();
        assert_eq!(refusal["error"]["code"], -32600, "{method}");
        assert!(world.to_client.is_empty() && world.store.is_empty());
        // With its quotes, this one has 1,024 bytes.
        world.server_sends(&ask("i".repeat(1_022)));
        world.run_record();
        assert!(world.to_server.is_empty(), "{method}");
    }
}

#[test]
fn the_id_of_a_visit_counts_and_is_bounded() {
    let visit = |id: String| json!({"mode": "url", "message": "m", "url": "https://a.example/", "elicitationId": id});
    let mut world = World::with_silent_server(RelaySettings::default());
    let error = refused(&mut world, &visit("e".repeat(1_025)));
    assert_eq!(error["code"], -32602);
    assert!(error.to_string().contains("at most 1,024 bytes"), "{error}");

    let settings = RelaySettings {
        pending_bytes: 1_000,
        ..RelaySettings::default()
    };
    let mut world = World::with_silent_server(settings);
    let error = refused(&mut world, &visit("e".repeat(1_000)));
    assert_eq!(error["code"], -32000, "{error}");
}

#[test]
fn too_many_questions_are_refused_with_a_limit_and_no_action() {
    let settings = RelaySettings {
        pending: Some(2),
        per_minute: None,
        ..RelaySettings::default()
    };
    let mut world = World::with_silent_server(settings);
    let form = json!({"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    world.server_sends(&push(1, &form));
    world.server_sends(&push(2, &form));
    let error = refused(&mut world, &form);
    assert_eq!(error["code"], -32000, "{error}");

    let settings = RelaySettings {
        pending: None,
        per_minute: Some(2),
        ..RelaySettings::default()
    };
    let mut world = World::with_silent_server(settings);
    world.server_sends(&push(1, &form));
    world.server_sends(&push(2, &form));
    let error = refused(&mut world, &form);
    assert_eq!(error["data"]["retryAfterSeconds"], 60, "{error}");
    world.pass_time(Duration::from_secs(60));
    world.server_sends(&push(4, &form));
    assert_eq!(world.store.len(), 3, "a minute later it may ask again");
}

#[test]
fn what_cannot_be_recorded_is_not_asked() {
    let mut world = World::new(
        Revision::V2025_11_25,
        Capability::NONE,
        Revision::V2025_11_25,
        Asks::Form,
    )
    .opened();
    world.call();
    let frame = world.to_server.pop_front().unwrap();
    let _ = frame;
    let form = json!({"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    world.server_sends(&push(5, &form));
    let Some(Event::Recorded { question, .. }) = world.events.pop_front() else {
        panic!("not recorded")
    };
    world.tell(Event::NotRecorded { question });
    assert!(world.to_client.is_empty());
    assert!(world.to_server.pop_front().unwrap().contains("-32603"));
}

#[test]
fn a_question_of_a_caller_with_too_many_is_an_error_and_no_decline() {
    let mut world = World::new(
        Revision::V2025_11_25,
        Capability::NONE,
        Revision::V2025_11_25,
        Asks::Form,
    )
    .opened();
    world.call();
    let _call = world.to_server.pop_front().unwrap();
    let form = json!({"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    world.server_sends(&push(5, &form));
    let Some(Event::Recorded { question, .. }) = world.events.pop_front() else {
        panic!("not recorded")
    };
    world.tell(Event::NotAdmitted {
        question,
        limit: QuestionLimit::Open {
            most: 2_000,
            of_server: true,
        },
    });
    assert!(world.to_client.is_empty());
    let told = world.to_server.pop_front().unwrap();
    assert!(
        told.contains("-32000") && told.contains("2000 questions of this caller that the server "),
        "{told}"
    );
    assert!(
        told.contains(r#""limit":"open-questions""#)
            && told.contains(r#""most":2000"#)
            && !told.contains("decline"),
        "{told}"
    );
}

#[test]
fn a_state_of_another_session_is_refused() {
    let mut world = World::new(
        Revision::V2026_07_28,
        Capability::FORM,
        Revision::V2025_11_25,
        Asks::Form,
    )
    .opened();
    let forged = json!({"jsonrpc": "2.0", "id": 50, "method": "tools/call", "params": {"name": "ask", "requestState": "mcp-elicit.1.r1",
        "inputResponses": {"r1": {"action": "accept", "content": {"name": "Eve"}}},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    world.client_sends(&forged.to_string());
    let (_, frame) = world.to_client.pop_front().unwrap();
    assert!(frame.contains("-32602"), "{frame}");
    assert!(world.server.answers.is_empty());
}

/// A message that a client would read as a question is processed in any spelling: here the second reader is the client.
#[test]
fn a_question_spelled_to_be_overlooked_is_not_passed_on() {
    let asks = r#""inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"javascript:alert(1)"}}}"#;
    let results = [
        format!(r#"{{"resultType":"input\u005frequired",{asks}}}"#),
        format!(r#"{{"result\u0054ype":"input_required",{asks}}}"#),
        format!(r#"{{"resultType":"complete",{asks},"resultType":"input_required"}}"#),
        format!(r#"{{"resultType":"complete",{asks},"result\u0054ype":"input_required"}}"#),
        format!(r#"{{"resultType":"input_required",{asks}}},"error":{{"code":1,"message":"m"}}"#),
    ];
    for result in results {
        let revision = Revision::V2026_07_28;
        let mut world = World::new(revision, Capability::BOTH, revision, Asks::Nothing).opened();
        let id = world.call();
        world.to_server.clear();
        world.server_sends(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ));
        let (_, told) = world.to_client.pop_front().expect("the call ends");
        assert!(
            told.contains("\"error\"") && !told.contains("alert(1)"),
            "{result}: {told}"
        );
    }
}

#[test]
fn a_pushed_question_without_a_usable_id_is_dropped() {
    let revision = Revision::V2025_11_25;
    let mut world = World::new(revision, Capability::BOTH, revision, Asks::Nothing).opened();
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    for id in [json!(null), json!({}), json!([1]), json!(true)] {
        let frame =
            json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form});
        world.server_sends(&frame.to_string());
        assert!(world.to_client.is_empty() && world.store.is_empty(), "{id}");
    }
    // The answer to one could not be distinguished from the answer to the other.
    world.server_sends(&push(1, &form));
    world.server_sends(&push(1, &form));
    assert_eq!(world.store.len(), 1);
}

#[test]
fn what_waits_for_a_silent_server_is_bounded() {
    let settings = RelaySettings::default();
    let mut relay = crate::Relay::new(settings, super::world::seal());
    let now = crate::Timestamp::from_millis(0);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let mut refused = 0;
    for id in 0..1_000 {
        let frame =
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"_meta": meta}});
        relay.client_frame(now, crate::StreamId(id + 1), frame.to_string().as_bytes());
        while let Some(effect) = relay.effect() {
            refused += u32::from(matches!(effect, crate::Effect::ToClient { .. }));
        }
    }
    assert_eq!(refused, 1_000 - 256);
}

#[test]
fn what_a_server_asks_of_the_client_is_bounded_and_forgotten_when_taken_back() {
    let revision = Revision::V2025_11_25;
    let mut world = World::new(revision, Capability::BOTH, revision, Asks::Nothing).opened();
    let ask = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"}).to_string();
    for id in 0..1_024 {
        world.server_sends(&ask(id));
    }
    world.server_sends(&ask(5_000));
    let refused = world
        .to_server
        .pop_front()
        .expect("one too many is refused");
    assert!(
        refused.contains("5000") && refused.contains("-32000"),
        "{refused}"
    );
    let back =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    world.server_sends(&back.to_string());
    world.server_sends(&ask(5_001));
    assert!(world.to_server.is_empty());
}

/// Returns what a client of 2026-07-28 receives for a call that a server of 2025-11-25 answers with this body.
fn answered_with(body: &str) -> Value {
    let (client, server) = (Revision::V2026_07_28, Revision::V2025_11_25);
    let mut world = World::new(client, Capability::BOTH, server, Asks::Nothing).opened();
    let id = world.call();
    world.to_server.clear();
    world.server_sends(&format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#));
    let (_, told) = world.to_client.pop_front().expect("the call ends");
    assert_eq!(world.relay.open(), (0, 0));
    serde_json::from_str(&told).unwrap()
}

/// Some readers take the items of a list for members, in order, and would ask what no rule has judged.
#[test]
fn a_list_in_place_of_an_object_is_not_passed_on() {
    for body in [
        r#""result":[]"#,
        r#""result":["input_required",{"a":{"method":"elicitation/create","params":{}}},"s",null]"#,
        r#""error":[-32042,"visit",{"elicitations":[]}]"#,
    ] {
        let told = answered_with(body);
        let why = told["error"]["message"].as_str().expect("an error");
        assert!(why.contains("a list, not an object"), "{told}");
    }
}

/// A result that is not an object is passed on unchanged: the client's revision would change nothing in it.
#[test]
fn a_result_that_is_not_an_object_stays_json() {
    for result in ["5", "\"é\"", "null"] {
        let told = answered_with(&format!(r#""result":{result}"#));
        assert_eq!(told["result"].to_string(), result);
    }
}

/// `params` that are a list cannot carry a retry: the call ends with an error instead of never ending.
#[test]
fn a_call_that_cannot_be_made_again_ends() {
    let mut world = World::new(
        Revision::V2025_11_25,
        Capability::BOTH,
        Revision::V2025_11_25,
        Asks::Nothing,
    )
    .opened();
    world.client_sends(r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":["ask"]}"#);
    world.to_server.clear();
    world.to_client.clear();
    world.server_sends(
        r#"{"jsonrpc":"2.0","id":77,"error":{"code":-32042,"message":"m","data":{"elicitations":[]}}}"#,
    );
    let (_, told) = world.to_client.pop_front().expect("the call ends");
    assert!(told.contains("\"id\":77"), "{told}");
}

/// A frame that two readers could read differently is neither forwarded nor shown, from either side.
#[test]
fn a_frame_with_two_readings_is_refused_and_never_forwarded() {
    let revision = Revision::V2025_11_25;
    let calls = [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"harmless","arguments":{},"name":"delete_all"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{},"name":"ask","arguments":{"force":true}}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask","n\u0061me":"delete_all"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask","Arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{},"name":"ask","_meta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call","params":{"name":"ask"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"a:b","uri":"a:c"}}"#,
    ];
    for call in calls {
        let mut world = World::new(revision, Capability::BOTH, revision, Asks::Form).opened();
        world.client_sends(call);
        assert!(world.to_server.is_empty(), "{call}");
        let (_, told) = world.to_client.pop_front().expect("the client is told");
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(
            (&told["id"], &told["error"]["code"]),
            (&json!(7), &json!(-32600)),
            "{call}"
        );
    }
    let mut world = World::new(revision, Capability::BOTH, revision, Asks::Form).opened();
    let question = r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"harmless","message":"not"}}"#;
    world.server_sends(question);
    assert!(world.to_client.is_empty() && world.store.is_empty());
    assert!(world.to_server.pop_front().unwrap().contains("-32600"));
    let call = world.call();
    world.server_sends(&format!(
        r#"{{"jsonrpc":"2.0","id":{call},"result":{{"content":[]}},"result":{{}}}}"#
    ));
    let (_, told) = world.to_client.pop_front().expect("the call ends");
    assert!(
        told.contains("-32603") && !told.contains("content"),
        "{told}"
    );
    assert_eq!(world.relay.open(), (0, 0));
}

/// No person is asked about a call whose arguments cannot be shown in full.
#[test]
fn a_call_that_cannot_be_shown_is_not_asked_about() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let arguments = [
        format!(r#"{{"force":true,"deep":{deep}}}"#),
        r#"{"force":true,"n":1e999}"#.to_owned(),
        r#"{"force":true,"x":{"a":1,"a":2}}"#.to_owned(),
        r#"{"force":"\ud800"}"#.to_owned(),
    ];
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    for server in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for arguments in &arguments {
            let mut world =
                World::new(Revision::V2025_11_25, Capability::BOTH, server, Asks::Form).opened();
            let (id, call) = world.client.call();
            let call = call.replace(r#"{"n":1}"#, arguments);
            assert!(call.contains("force"));
            world.client_sends(&call);
            world.to_server.clear();
            let said = if server == Revision::V2026_07_28 {
                let result = json!({"resultType": "input_required", "requestState": "s",
                    "inputRequests": {"a": {"method": "elicitation/create", "params": form}}});
                world.server_sends(
                    &json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
                );
                world.to_client.pop_front().map(|(_, told)| told)
            } else {
                world.server_sends(&push(900, &form));
                world.to_server.pop_front()
            };
            let said = said.expect("an error is told");
            assert!(said.contains("cannot be shown"), "{arguments}: {said}");
            assert!(world.store.is_empty(), "{arguments}");
        }
    }
}

#[test]
fn what_is_too_long_to_be_read_is_not_asked() {
    let ask = |message: &str| {
        let schema = json!({"type": "object", "properties": {}});
        json!({"message": message, "requestedSchema": schema})
    };
    let mut long = World::with_silent_server(RelaySettings::default());
    let error = refused(&mut long, &ask(&"m".repeat(64 * 1024 + 1)));
    assert_eq!(error["code"], -32602, "{error}");
    long.server_sends(&push(1, &ask(&"m".repeat(64 * 1024))));
    assert_eq!(long.store.len(), 1);

    let mut many = World::with_silent_server(RelaySettings {
        pending_bytes: 10_000,
        ..RelaySettings::default()
    });
    many.server_sends(&push(1, &ask(&"m".repeat(6_000))));
    let error = refused(&mut many, &ask(&"m".repeat(6_000)));
    assert_eq!(error["code"], -32000, "{error}");
    let back =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    many.server_sends(&back.to_string());
    many.server_sends(&push(2, &ask(&"m".repeat(6_000))));
    assert_eq!(many.store.len(), 2, "what is over makes room");
}

/// Clients of the rounds era share a relay over HTTP, and their ids may be equal: one cannot cancel another's call.
#[test]
fn a_cancellation_reaches_only_ones_own_call() {
    let settings = RelaySettings {
        client_streams: true,
        ..RelaySettings::default()
    };
    let revision = Revision::V2026_07_28;
    for server in [Revision::V2025_11_25, revision] {
        let mut world = World::with(
            settings.clone(),
            revision,
            Capability::BOTH,
            server,
            Asks::Nothing,
        )
        .opened();
        let id = world.call();
        world.to_server.clear();
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        world.client_sends(&cancel.to_string());
        assert!(world.to_server.is_empty(), "{server}");
        assert_eq!(world.relay.open().0, 1, "{server}: the call goes on");
        world.tell(Event::StreamClosed(crate::StreamId::SESSION));
        assert_eq!(world.relay.open().0, 0, "{server}: its own stream ends it");
    }
}

/// Returns a form with this number of members that the protocol does not name, of this total size.
fn with_unknown(count: usize, size: usize) -> Value {
    let mut params = json!({"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    for at in 0..count {
        let name = format!("x{at:05}");
        params[name] = json!("x".repeat(size.saturating_sub(8)));
    }
    params
}

/// For a client of another era they are rewritten.
#[test]
fn members_that_the_protocol_does_not_name_are_bounded_and_go_on_together() {
    let server = Revision::V2025_11_25;
    for client in Revision::ALL {
        let session = || World::new(client, Capability::FORM, server, Asks::Nothing).opened();
        let mut world = session();
        world.call();
        world.to_server.clear();
        let error = refused(&mut world, &with_unknown(65, 10));
        assert_eq!(error["code"], -32602, "{client}: {error}");
        assert!(world.store.is_empty(), "{client}");

        let mut world = session();
        world.call();
        world.to_server.clear();
        world.server_sends(&push(1, &with_unknown(64, 10)));
        world.run_record();
        let (_, asked) = world.to_client.pop_back().expect("the client is asked");
        assert_eq!(asked.matches("\"x000").count(), 64, "{client}: {asked}");
    }
}

#[test]
fn all_that_is_kept_of_a_question_counts() {
    let settings = || RelaySettings {
        pending_bytes: 20_000,
        ..RelaySettings::default()
    };
    // Members that the protocol does not name.
    let mut world = World::with_silent_server(settings());
    world.server_sends(&push(1, &with_unknown(1, 15_000)));
    let error = refused(&mut world, &with_unknown(1, 15_000));
    assert_eq!(error["code"], -32000, "{error}");
    assert_eq!(world.store.len(), 1);
    // The calls that may have asked, for any responder.
    let mut world = World::with_silent_server(settings());
    for id in 10..14 {
        let params = json!({"name": "t", "arguments": {"text": "x".repeat(9_000)}});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        world.client_sends(&call.to_string());
    }
    world.to_server.clear();
    let error = refused(&mut world, &with_unknown(0, 0));
    assert_eq!(error["code"], -32000, "{error}");
    assert!(world.store.is_empty());
}

#[test]
fn what_is_asked_and_answered_in_one_round_is_bounded() {
    let revision = Revision::V2026_07_28;
    let many: serde_json::Map<String, Value> = (0..257)
        .map(|at| (at.to_string(), json!({"method": "roots/list"})))
        .collect();
    let long = "k".repeat(1024 * 1024 + 1);
    let rounds = [
        json!({"resultType": "input_required", "inputRequests": many}),
        json!({"resultType": "input_required", "inputRequests": {long.as_str(): {"method": "roots/list"}}}),
        json!({"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list"}}, "requestState": long}),
    ];
    for (client, result) in [revision, Revision::V2025_11_25]
        .into_iter()
        .flat_map(|client| rounds.iter().map(move |round| (client, round)))
    {
        let mut world = World::new(client, Capability::FORM, revision, Asks::Nothing).opened();
        world.call();
        let sent = world.to_server.pop_front().unwrap();
        let sent: Value = serde_json::from_str(&sent).unwrap();
        let round = json!({"jsonrpc": "2.0", "id": sent["id"], "result": result});
        world.server_sends(&round.to_string());
        let (_, told) = world.to_client.pop_back().expect("the call ends");
        assert_eq!(world.to_client.len(), 0, "{client}: nothing is asked");
        assert!(told.contains("-32603"), "{client}: {told}");
        assert_eq!(world.relay.open(), (0, 0), "{client}");
    }

    let mut world = World::new(revision, Capability::FORM, revision, Asks::Form).opened();
    let (_, call) = world.client.call();
    world.client_sends(&call);
    while world.step(1) && world.to_client.is_empty() {}
    world.run_record();
    let (_, told) = world.to_client.pop_back().expect("a round");
    let told: Value = serde_json::from_str(&told).unwrap();
    let mut retry: Value = serde_json::from_str(&call).unwrap();
    retry["params"]["requestState"] = told["result"]["requestState"].clone();
    let many: serde_json::Map<String, Value> =
        (0..1_025).map(|at| (at.to_string(), json!({}))).collect();
    retry["params"]["inputResponses"] = many.into();
    world.client_sends(&retry.to_string());
    let (_, told) = world.to_client.pop_back().expect("the retry is refused");
    assert!(told.contains("-32602") && told.contains("1024"), "{told}");
}
