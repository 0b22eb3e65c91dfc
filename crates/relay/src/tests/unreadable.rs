//! Frames of a server to which no rule can be applied, because no reader or only some readers can read them: they are
//! not passed on.

use mcp_elicit_core::wire::{Capability, Revision};
use serde_json::{Value, json};

use super::approvals::{Fixed, settings};
use super::world::{Asks, World};
use crate::RelaySettings;

const PUSHED: Revision = Revision::V2025_11_25;
const ROUNDS: Revision = Revision::V2026_07_28;
/// The host of the links and the name of the field in the server's questions, which the client must not see.
const SECRET: &str = "evil.example";

/// Returns rules that give the question `Where?` to people; the caller gets all others.
fn rules() -> RelaySettings {
    let fixed = Fixed {
        people_for: Some("Where?"),
        ..Fixed::default()
    };
    settings(fixed).0
}

fn session(rules: RelaySettings, client: Revision, server: Revision) -> World {
    let mut world = World::with(rules, client, Capability::BOTH, server, Asks::Nothing).opened();
    world.people = None;
    world.to_server.clear();
    world.to_client.clear();
    world
}

/// Sends a request of the client, to which the server responds with this text, in which `ID` is the request's id.
/// Returns the frames that reach the client.
fn answered(world: &mut World, method: &str, response: &str) -> Vec<String> {
    let mut params = json!({"name": "read", "arguments": {}, "taskId": "t-1"});
    if world.client.revision == ROUNDS {
        params["_meta"] = world.client.meta();
    }
    let request = json!({"jsonrpc": "2.0", "id": 11, "method": method, "params": params});
    world.client_sends(&request.to_string());
    world.run_record();
    let sent = world.to_server.pop_front().expect("the request");
    let sent: Value = serde_json::from_str(&sent).unwrap();
    world.server_sends(&response.replace("ID", &sent["id"].to_string()));
    world.run_record();
    world.to_client.drain(..).map(|(_, frame)| frame).collect()
}

const ITEM: &str =
    r#"{"mode":"url","message":"Where?","url":"https://evil.example/","elicitationId":"e"}"#;
const ASKED: &str = r#"{"a":{"method":"elicitation/create","params":{"mode":"form","message":"Where?","requestedSchema":{"type":"object","properties":{"evil.example":{"type":"string"}}}}}}"#;

fn error(code: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":ID,"error":{{{code},"data":{{"elicitations":[{ITEM}]}}}}}}"#)
}

fn result(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{{members},"inputRequests":{ASKED}}}}}"#)
}

#[test]
fn under_rules_a_response_that_some_reader_takes_for_a_question_ends_its_call() {
    let responses = [
        error(r#""code":"-32042","message":"m""#),
        error(r#""code":[-32042],"message":"m""#),
        error(r#""code":-32_042,"message":"m""#),
        error(r#""c\u006fde":-32042,"message":"m","\ud800":1"#),
        error(r#""c\u006fde":-32042,"message":"m","x":NaN"#),
        error(r#""code":-32042,"message":"m","x":NaN"#),
        error(r#""code":-032042,"message":"m""#),
        error(r#""code":4294935254,"message":"m""#),
        error(r#""code":-4294999338,"message":"m""#),
        error(r#""code":8589902550,"message":"m""#),
        error(r#""code":4294935254.0,"message":"m""#),
        error(r#""code":4.294935254e9,"message":"m""#),
        result(r#""result\u0054ype":"input_required","\ud800":1"#),
        result(r#""result\u0054ype":"input_required","x":NaN"#),
        result(r#""resultType":"input_required","x":NaN"#),
        result(r#""resultType":"complete","taskId":"t-1","status":"input_required","x":NaN"#),
        result(r#""resultType":"complete","taskId":"t-1","status":"input_required","\ud800":1"#),
    ];
    for (client, server) in [
        (PUSHED, PUSHED),
        (PUSHED, ROUNDS),
        (ROUNDS, PUSHED),
        (ROUNDS, ROUNDS),
    ] {
        for response in &responses {
            for method in ["tools/call", "tasks/get"] {
                let mut world = session(rules(), client, server);
                let told = answered(&mut world, method, response);
                let [said] = told.as_slice() else {
                    // The links can be read: the people of the rule get them.
                    assert_eq!(
                        world.open_to_people().len(),
                        1,
                        "{method} {response}: {told:?}"
                    );
                    continue;
                };
                assert!(!said.contains(SECRET), "{client} {server} {method}: {said}");
                let said: Value = serde_json::from_str(said).unwrap();
                assert!(said["error"]["code"].is_i64(), "{said}");
            }
        }
    }
}

#[test]
fn a_response_that_asks_and_is_not_json_ends_its_call_where_no_rule_decides_too() {
    let link = error(r#""code":-32042,"message":"m","x":NaN"#);
    let round = result(r#""resultType":"input_required","x":NaN"#);
    for (capability, server, response) in [
        (Capability::NONE, PUSHED, &link),
        (Capability::BOTH, ROUNDS, &round),
    ] {
        let settings = RelaySettings::default();
        let mut world = World::with(settings, PUSHED, capability, server, Asks::Nothing).opened();
        world.people = None;
        world.to_server.clear();
        world.to_client.clear();
        let told = answered(&mut world, "tools/call", response);
        assert_eq!(told.len(), 1, "{response}: {told:?}");
        assert!(!told[0].contains(SECRET), "{told:?}");
    }
}

#[test]
fn under_rules_nothing_that_may_ask_comes_beside_a_call() {
    let question = r#""params":{"taskId":"T","status":"input_required","inputRequests":"#;
    let frames = [
        format!(
            r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32042,"data":{{"elicitations":[{ITEM}]}}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":true,"result":{{"resultType":"input_required","inputRequests":{ASKED}}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/tasks/status",{question}{ASKED}}}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tasks","x":NaN,{question}{ASKED}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/vendor",{question}{ASKED},"x":NaN}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"/elicitation/create","params":{ITEM}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create{}","params":{ITEM}}}"#,
            " ".repeat(80)
        ),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"notifications/tasks",{question}{ASKED}}}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":1,"inputRequests":{ASKED}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"input_Requests":{ASKED}}}}}"#
        ),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\u{200b}\",\"params\":{ITEM}}}"
        ),
    ];
    for frame in frames {
        let mut world = session(rules(), PUSHED, PUSHED);
        world.server_sends(&frame);
        assert!(world.to_client.is_empty(), "{frame}: {:?}", world.to_client);
    }
}

/// Opens a session of the client, whose server responds to each opening with this text. Returns the frames that reach
/// the client.
fn opened(rules: RelaySettings, response: &str) -> Vec<String> {
    let mut world = World::with(rules, PUSHED, Capability::BOTH, PUSHED, Asks::Nothing);
    world.people = None;
    let info = json!({"name": "c", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let opening = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    world.client_sends(&opening.to_string());
    while let Some(request) = world.to_server.pop_front() {
        let request: Value = serde_json::from_str(&request).unwrap();
        world.server_sends(&response.replace("ID", &request["id"].to_string()));
    }
    world.to_client.drain(..).map(|(_, frame)| frame).collect()
}

#[test]
fn under_rules_the_answer_to_an_opening_asks_nothing() {
    let members =
        r#""protocolVersion":"2025-11-25","capabilities":{},"resultType":"input_required""#;
    let told = opened(rules(), &result(members));
    let [said] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert!(said.contains("-32603") && !said.contains(SECRET), "{said}");
}

#[test]
fn an_answer_to_an_opening_that_cannot_be_read_ends_the_opening() {
    let not_json = r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","x":NaN,"capabilities":{}}}"#;
    let two = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"m"},"result":{}}"#;
    let twice = r#"{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}"#;
    for (settings, response) in [
        (rules(), not_json),
        (rules(), two),
        (RelaySettings::default(), two),
        (RelaySettings::default(), twice),
    ] {
        let told = opened(settings, response);
        assert!(told.len() == 1 && told[0].contains("-32603"), "{told:?}");
    }
}

#[test]
fn a_request_of_the_server_that_is_refused_ends_no_call_of_the_same_id() {
    for settings in [RelaySettings::default(), rules()] {
        let mut world = session(settings, PUSHED, PUSHED);
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read", "arguments": {}}});
        world.client_sends(&call.to_string());
        world.server_sends(r#"{"jsonrpc":"2.0","id":1,"method":"roots\/list"}"#);
        world.server_sends(r#"{"jsonrpc":"2.0","id":1,"m\u0065thod":"roots/list"}"#);
        assert!(world.to_client.is_empty(), "{:?}", world.to_client);
        world.server_sends(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
        let told: Vec<_> = world.to_client.drain(..).collect();
        assert!(told.len() == 1 && told[0].1.contains("content"), "{told:?}");
    }
}

#[test]
fn under_rules_errors_of_careless_servers_reach_the_client() {
    let null =
        r#"{"jsonrpc":"2.0","id":ID,"result":null,"error":{"code":-32000,"message":"full"}}"#;
    let named = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":"E_FULL","message":"full"}}"#;
    for server in [PUSHED, ROUNDS] {
        for response in [null, named] {
            let mut world = session(rules(), PUSHED, server);
            let told = answered(&mut world, "tools/call", response);
            assert!(told.len() == 1 && told[0].contains("full"), "{told:?}");
        }
    }
}

/// Some readers end a line or a frame where others do not, or accept text that is not JSON.
#[test]
fn under_rules_a_frame_of_the_client_that_is_not_json_goes_nowhere() {
    let call = r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"t"}}"#;
    let separators = [
        "\u{2028}", "\u{2029}", "\u{85}", "\u{b}", "\u{c}", "\u{1c}", "\u{1e}", "\u{a0}",
        "\u{feff}",
    ];
    let mut frames: Vec<String> = separators
        .iter()
        .map(|end| format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"a":[{end}{call}{end}]}}}}"#))
        .collect();
    frames.extend(
        [
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":NaN}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"a":Infinity}}"#,
            r#"{"jsonrpc":"2.0","id":5,"result":{"a":[1,]}}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/list\0\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/list\",\"params\":{\"a\":\"\u{1}\"}}",
        ]
        .map(str::to_owned),
    );
    for has_rules in [true, false] {
        for frame in &frames {
            let rules = if has_rules {
                rules()
            } else {
                RelaySettings::default()
            };
            let mut world = session(rules, PUSHED, PUSHED);
            // The server's request, which waits for a response.
            world.server_sends(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
            world.to_client.clear();
            world.client_sends(frame);
            assert_eq!(world.to_server.is_empty(), has_rules, "{frame:?}");
            if has_rules {
                let (_, told) = world.to_client.pop_front().expect("the client is told");
                let told: Value = serde_json::from_str(&told).unwrap();
                assert_eq!(told["error"]["code"], -32700, "{frame:?}: {told}");
            }
        }
    }
}

/// A simple server may look up `["q1"]` as the text `q1`, or take any response for the answer to its question.
#[test]
fn a_response_of_the_client_without_the_id_of_a_request_goes_nowhere() {
    let mut world = World::with_silent_server(RelaySettings::default());
    world.call();
    let form = json!({"message": "Delete all?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}});
    let ask = json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": form});
    world.server_sends(&ask.to_string());
    world.run_record();
    assert_eq!(world.open_to_people().len(), 1);
    world.to_server.clear();
    for id in [
        r#""id":["q1"],"#,
        r#""id":[1],"#,
        r#""id":{"id":"q1"},"#,
        r#""id":null,"#,
        r#""id":true,"#,
        r#""id":[],"#,
        r#""id":"q2","#,
        "",
    ] {
        for part in [
            r#""result":{"action":"accept","content":{"sure":true}}"#,
            r#""error":{"code":-1,"message":"no"}"#,
        ] {
            world.client_sends(&format!("{{\"jsonrpc\":\"2.0\",{id}{part}}}"));
        }
    }
    assert_eq!(world.to_server, Vec::<String>::new());
    assert_eq!(
        world.open_to_people().len(),
        1,
        "the question is still open"
    );
}
