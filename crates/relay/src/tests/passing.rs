//! Tests of frames without elicitation, which pass unchanged.

use serde_json::json;

use super::world::{Asks, World};
use crate::{ClientForward, ServerForward, StreamId, Timestamp};
use mcp_elicit_core::wire::{Capability, Revision};

fn world(revision: Revision) -> World {
    World::new(revision, Capability::BOTH, revision, Asks::Nothing).opened()
}

#[test]
fn frames_are_forwarded_untouched_and_in_both_directions() {
    let mut world = world(Revision::V2025_11_25);
    let up = [
        r#"{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0,"m":1e-7}}}"#,
        r#"{"id":"\u00e9","method":"vendor/thing","jsonrpc":"2.0","extra":[1,2]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
    ];
    for frame in up {
        let went = world
            .relay
            .client_frame(world.now, StreamId::SESSION, frame.as_bytes());
        assert!(matches!(went, ClientForward::AsIs(_)), "{frame}");
        assert!(world.relay.effect().is_none());
    }
    let down = [
        (
            r#"{"jsonrpc":"2.0","id":12345678901234567890,"result":{"x":12345678901234567890,"y":1.0}}"#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"é","error":{"code":1,"message":"no"}}"#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"s-1","method":"sampling/createMessage","params":{}}"#,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"\u2028"}}"#,
            false,
        ),
    ];
    for (frame, last) in down {
        let went = world.relay.server_frame(world.now, None, frame.as_bytes());
        assert_eq!(
            went,
            ServerForward::AsIs {
                stream: StreamId::SESSION,
                last
            },
            "{frame}"
        );
        assert!(world.relay.effect().is_none());
    }
    let answer = br#"{"jsonrpc":"2.0","id":"s-1","result":{"role":"assistant"}}"#;
    assert_eq!(
        world
            .relay
            .client_frame(world.now, StreamId::SESSION, answer),
        ClientForward::AsIs(None)
    );
    assert_eq!(
        world
            .relay
            .client_frame(world.now, StreamId::SESSION, answer),
        ClientForward::Handled,
        "nobody asked twice"
    );
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn two_calls_with_one_id_are_kept_apart() {
    let mut world = world(Revision::V2026_07_28);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}}});
    let frame = json!({"jsonrpc": "2.0", "id": 1.0, "method": "tools/call", "params": {"name": "ask", "_meta": meta}}).to_string();
    let first = world
        .relay
        .client_frame(world.now, StreamId(1), frame.as_bytes());
    assert!(matches!(first, ClientForward::AsIs(_)));
    assert_eq!(
        world
            .relay
            .client_frame(world.now, StreamId(2), frame.as_bytes()),
        ClientForward::Handled
    );
    let Some(crate::Effect::ToServer { frame: sent, .. }) = world.relay.effect() else {
        panic!("not sent")
    };
    let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
    assert_ne!(sent["id"], json!(1.0));
    let answer = json!({"jsonrpc": "2.0", "id": sent["id"], "result": {"resultType": "complete", "content": []}}).to_string();
    assert_eq!(
        world.relay.server_frame(world.now, None, answer.as_bytes()),
        ServerForward::Handled
    );
    let Some(crate::Effect::ToClient {
        stream,
        frame,
        last,
    }) = world.relay.effect()
    else {
        panic!("not answered")
    };
    assert_eq!((stream, last), (StreamId(2), true));
    assert!(frame.contains(r#""id":1.0"#), "{frame}");
}

#[test]
fn what_is_no_message_is_answered_with_an_error_or_dropped() {
    let mut world = world(Revision::V2025_11_25);
    for bad in [
        "not json",
        "[]",
        "{\"id\":1,\"m\\u0065thod\":\"x\"}",
        "\u{0}",
    ] {
        assert_eq!(
            world
                .relay
                .client_frame(world.now, StreamId(4), bad.as_bytes()),
            ClientForward::Handled
        );
        let Some(crate::Effect::ToClient {
            stream: StreamId(4),
            frame,
            ..
        }) = world.relay.effect()
        else {
            panic!("{bad}")
        };
        assert!(frame.contains("\"error\""), "{frame}");
    }
    assert_eq!(
        world
            .relay
            .server_frame(world.now, None, b"DEBUG starting up"),
        ServerForward::Handled
    );
}

#[test]
fn a_client_that_comes_before_any_opening_is_let_through() {
    let mut relay = crate::Relay::new(crate::RelaySettings::default(), super::world::seal());
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert!(matches!(
        relay.client_frame(Timestamp::from_millis(0), StreamId::SESSION, ping),
        ClientForward::AsIs(Some(_))
    ));
}

/// Returns the frames on their way to one side, as JSON.
fn on_the_way<'f>(frames: impl Iterator<Item = &'f String>) -> Vec<serde_json::Value> {
    frames
        .map(|frame| serde_json::from_str(frame).unwrap())
        .collect()
}

/// Sampling is not a question: a rounds server's request for it is pushed to a pushed client, and its answer is the
/// only one in the retry.
#[test]
fn sampling_in_a_round_is_pushed_to_a_pushed_client() {
    let client = Revision::V2025_11_25;
    let mut world = World::new(
        client,
        Capability::BOTH,
        Revision::V2026_07_28,
        Asks::Nothing,
    )
    .opened();
    world.call();
    let call = on_the_way(world.to_server.iter()).pop().unwrap();
    world.to_server.clear();
    let required = serde_json::json!({"jsonrpc": "2.0", "id": call["id"], "result": {
        "resultType": "input_required", "requestState": "s1",
        "inputRequests": {"thought": {"method": "sampling/createMessage", "params": {"maxTokens": 5, "x": 1e-7}}}}});
    world.server_sends(&required.to_string());
    let pushed = on_the_way(world.to_client.iter().map(|(_, frame)| frame))
        .pop()
        .unwrap();
    assert_eq!(pushed["method"], "sampling/createMessage", "{pushed}");
    assert_eq!(pushed["params"]["maxTokens"], 5, "{pushed}");
    world.to_client.clear();
    let answer =
        serde_json::json!({"jsonrpc": "2.0", "id": pushed["id"], "result": {"model": "m"}});
    world.client_sends(&answer.to_string());
    let retry = on_the_way(world.to_server.iter()).pop().unwrap();
    assert_eq!(retry["params"]["requestState"], "s1", "{retry}");
    assert_eq!(
        retry["params"]["inputResponses"]["thought"]["model"], "m",
        "{retry}"
    );
    assert!(world.store.is_empty(), "sampling is nobody's question");
}

/// A pushed server's sampling cannot reach a client of the rounds era, and the server gets an error immediately.
#[test]
fn sampling_that_cannot_be_bridged_is_refused() {
    let server = Revision::V2025_11_25;
    let mut world = World::new(
        Revision::V2026_07_28,
        Capability::BOTH,
        server,
        Asks::Nothing,
    )
    .opened();
    world.server_sends(r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#);
    assert!(world.to_client.is_empty());
    let told = on_the_way(world.to_server.iter()).pop().unwrap();
    assert_eq!(
        (&told["id"], &told["error"]["code"]),
        (&7.into(), &(-32601).into()),
        "{told}"
    );
}

/// Capabilities that cannot be bridged are not declared: a session that the gateway opens for a client of the rounds
/// era has no sampling and no roots, whatever the client supports in rounds.
#[test]
fn a_session_declares_no_more_than_reaches_the_client() {
    let mut relay = crate::Relay::new(crate::RelaySettings::default(), super::world::seal());
    let now = Timestamp::from_millis(0);
    let discover = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "roots": {"listChanged": true}, "elicitation": {}, "x": {}}}}});
    relay.client_frame(now, StreamId::SESSION, discover.to_string().as_bytes());
    let Some(crate::Effect::ToServer { frame, .. }) = relay.effect() else {
        panic!("the server is asked for a session")
    };
    let frame: serde_json::Value = serde_json::from_str(&frame).unwrap();
    assert_eq!(frame["method"], "initialize");
    let declared = frame["params"]["capabilities"].as_object().unwrap();
    assert!(
        declared.contains_key("elicitation") && declared.contains_key("x"),
        "{frame}"
    );
    assert!(
        !declared.contains_key("sampling") && !declared.contains_key("roots"),
        "{frame}"
    );
}

/// A round asks a person and requests sampling, of a client that supports only sampling: people are asked, and the
/// client gets its part after a person has answered.
#[test]
fn a_round_is_answered_in_parts_by_a_person_and_by_the_client() {
    let revision = Revision::V2026_07_28;
    let mut world = World::new(revision, Capability::NONE, revision, Asks::Nothing).opened();
    let id = world.call();
    world.to_server.clear();
    let form = serde_json::json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object",
        "required": ["name"], "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}});
    let required = serde_json::json!({"jsonrpc": "2.0", "id": id, "result": {
        "resultType": "input_required", "requestState": "s1", "inputRequests": {
            "who": {"method": "elicitation/create", "params": form},
            "thought": {"method": "sampling/createMessage", "params": {"maxTokens": 5}}}}});
    world.server_sends(&required.to_string());
    world.run_record();
    let record = world.open_to_people()[0].clone();
    assert!(world.answer(&record, mcp_elicit_core::wire::Action::Accept));
    world.run_record();
    let told = on_the_way(world.to_client.iter().map(|(_, frame)| frame));
    let asked = told.last().expect("the client is sent its part");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["thought"], "{asked}");
    let mut retry: serde_json::Value = serde_json::from_str(&world.client.call().1).unwrap();
    retry["params"]["requestState"] = asked["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = serde_json::json!({"thought": {"model": "m"}});
    world.to_client.clear();
    world.client_sends(&retry.to_string());
    world.run_record();
    let sent = on_the_way(world.to_server.iter())
        .pop()
        .expect("the call is made again");
    let responses = &sent["params"]["inputResponses"];
    assert_eq!(responses["thought"]["model"], "m", "{sent}");
    assert_eq!(responses["who"]["action"], "accept", "{sent}");
    assert!(
        !world
            .to_client
            .iter()
            .any(|(_, frame)| frame.contains("input_required")),
        "nothing is asked twice"
    );
}

#[test]
fn a_request_whose_id_is_none_is_refused_and_not_left_to_wait() {
    for id in ["null", "{}", "[1]", "true"] {
        let mut world = world(Revision::V2025_11_25);
        world.client_sends(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#
        ));
        assert!(world.to_server.is_empty(), "{id}");
        let told = on_the_way(world.to_client.iter().map(|(_, frame)| frame));
        assert_eq!(told[0]["error"]["code"], -32600, "{id}");
        assert!(told[0]["id"].is_null());
    }
}
