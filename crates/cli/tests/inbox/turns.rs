//! Calls that ask at the same time, from one client and from several, in front of a server that pushes its questions
//! over stdio and does not name the call: every answer reaches its own call, and no call hangs.

use std::thread;

use serde_json::{Value, json};

use crate::gateway::{Gateway, NO_LIMITS, REVISION};
use crate::http::send;
use crate::raw::{Raw, call, gateway, text};

/// A server of the pushed era that accepts simultaneous calls, asks in each, and returns the answer.
const ASKS: &str = "
import json, sys
calls, last = {}, 0
form = {'type': 'object', 'required': ['note'], 'properties': {'note': {'type': 'string'}}}
for line in sys.stdin:
    frame = json.loads(line)
    method, number = frame.get('method'), frame.get('id')
    if method == 'initialize':
        out = {'id': number, 'result': {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'asks', 'version': '1'}}}
    elif method == 'tools/call':
        last += 1
        calls[f'q{last}'] = number
        message = 'For %s?' % frame['params']['arguments']['n']
        out = {'id': f'q{last}', 'method': 'elicitation/create', 'params': {'message': message, 'requestedSchema': form}}
        calls[f'n{last}'] = frame['params']['arguments']['n']
    elif method is not None and number is not None:
        out = {'id': number, 'error': {'code': -32601, 'message': 'no ' + method}}
    elif number in calls:
        own = calls.pop('n' + number[1:])
        note = frame.get('result', {}).get('content', {}).get('note', 'none')
        out = {'id': calls.pop(number), 'result': {'content': [{'type': 'text', 'text': f'{own}: {note}'}]}}
    else:
        continue
    print(json.dumps({'jsonrpc': '2.0', **out}), flush=True)
";

const SERVER: [&str; 4] = ["--", "python3", "-c", ASKS];

fn no_python() -> bool {
    let there = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if there.is_err() {
        mcp_elicit_testkit::chromium::report_skipped(
            "no python3 here, CALLS AT ONCE WERE NOT TESTED",
        );
    }
    there.is_err()
}

/// Returns the number of runs of the tests of one client: `MCP_ELICIT_RUNS`.
fn runs() -> usize {
    let named = std::env::var("MCP_ELICIT_RUNS").ok();
    named.and_then(|runs| runs.parse().ok()).unwrap_or(2)
}

const AT_ONCE: u64 = 50;

fn meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}})
}

fn rounds_call(id: u64, number: u64) -> Value {
    let mut frame = call(id, "ask", &json!({"n": number}));
    frame["params"]["_meta"] = meta();
    frame
}

/// Returns the retry of the call with the answer of the person who made it.
fn answered(asked: &Value, id: u64, number: u64) -> Value {
    let mut frame = rounds_call(id, number);
    let requests = asked["inputRequests"].as_object().expect("a question");
    let replies = requests.keys().map(|key| {
        let reply = json!({"action": "accept", "content": {"note": format!("by {number}")}});
        (key.clone(), reply)
    });
    frame["params"]["inputResponses"] = replies.collect();
    frame["params"]["requestState"] = asked["requestState"].clone();
    frame
}

#[test]
fn fifty_calls_of_one_rounds_client_each_get_their_own_answer() {
    if no_python() {
        return;
    }
    for _ in 0..runs() {
        let state = tempfile::tempdir().unwrap();
        let mut raw = Raw::start(gateway(state.path(), &NO_LIMITS, &SERVER));
        for number in 1..=AT_ONCE {
            raw.send(&rounds_call(number, number));
        }
        let mut done = 0;
        while done < AT_ONCE {
            let frame = raw.next();
            let Some(id) = frame["id"].as_u64() else {
                continue;
            };
            let number = id % 1_000;
            if frame["result"]["resultType"] == "input_required" {
                raw.send(&answered(&frame["result"], id + 1_000, number));
                continue;
            }
            assert_eq!(text(&frame), format!("{number}: by {number}"), "{frame}");
            done += 1;
        }
    }
}

#[test]
fn fifty_calls_of_one_client_with_a_dialog_all_end() {
    if no_python() {
        return;
    }
    for _ in 0..runs() {
        let state = tempfile::tempdir().unwrap();
        let mut raw = Raw::start(gateway(state.path(), &NO_LIMITS, &SERVER));
        raw.initialize(REVISION, &json!({"elicitation": {}}));
        for number in 1..=AT_ONCE {
            raw.call(number + 100, "ask", &json!({"n": number}));
        }
        let mut done = 0;
        while done < AT_ONCE {
            let frame = raw.next();
            if frame["method"] == "elicitation/create" {
                let note = frame["params"]["message"].clone();
                let result = json!({"action": "accept", "content": {"note": note}});
                raw.send(&json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}));
            } else if let Some(id) = frame["id"].as_u64() {
                let number = id - 100;
                assert_eq!(text(&frame), format!("{number}: For {number}?"), "{frame}");
                done += 1;
            }
        }
    }
}

fn post(at: &str, frame: &Value) -> Value {
    let head = [
        "POST /mcp HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: ask",
    ];
    send(at, &head, &frame.to_string())
        .expect("an answer")
        .response()
}

#[test]
fn ten_calls_of_each_of_five_clients_without_a_session_are_never_confused() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let mut more = vec!["--listen", "127.0.0.1:0"];
    more.extend(NO_LIMITS);
    let gateway = Gateway::start(state.path(), &more, &SERVER);
    let at = gateway.serving.clone().unwrap();
    thread::scope(|threads| {
        for client in 0..5 {
            for id in 1..=10 {
                let at = &at;
                threads.spawn(move || {
                    let number = client * 100 + id;
                    // The ids are the same for every client.
                    let asked = post(at, &rounds_call(id, number));
                    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
                    let done = post(at, &answered(&asked["result"], id + 50, number));
                    assert_eq!(text(&done), format!("{number}: by {number}"), "{done}");
                });
            }
        }
    });
    assert_eq!(gateway.waiting(), Vec::<Value>::new());
}

/// Returns the question of this call of [`ASKS`].
fn question_of(waiting: &[Value], number: u64) -> &Value {
    let message = format!("For {number}?");
    let mut all = waiting.iter();
    let question = all.find(|question| question["message"] == message);
    question.unwrap_or_else(|| panic!("no question of {number}"))
}

/// Answers a question as a person.
fn answer(gateway: &Gateway, question: &Value, number: u64) {
    let content = json!({"note": format!("by {number}")});
    let body = json!({"action": "accept", "content": content});
    let status = gateway.answer(question["id"].as_str().unwrap(), &body);
    assert_eq!(status, 200, "{question}");
}

#[test]
fn of_fifty_calls_the_first_is_overlooked_and_each_of_the_others_gets_its_own_answer() {
    if no_python() {
        return;
    }
    for gives_up in [None, Some("timed out after 5s"), Some("the user left")] {
        let state = tempfile::tempdir().unwrap();
        let mut gateway = Gateway::start(state.path(), &NO_LIMITS, &SERVER);
        gateway.initialize();
        gateway.call(101, "ask", &json!({"n": 1}));
        gateway.wait_for(1);
        if let Some(reason) = gives_up {
            let params = json!({"requestId": 101, "reason": reason});
            gateway.send(
                &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
            );
        }
        for number in 2..=AT_ONCE {
            gateway.call(number + 100, "ask", &json!({"n": number}));
        }
        let withdrawn = usize::from(gives_up == Some("the user left"));
        let all = usize::try_from(AT_ONCE).unwrap();
        let waiting = gateway.wait_for(all - withdrawn);
        for number in (2..=AT_ONCE).rev() {
            answer(&gateway, question_of(&waiting, number), number);
            let result = gateway.result(number + 100);
            assert_eq!(text(&result), format!("{number}: by {number}"), "{result}");
        }
        assert_eq!(gateway.waiting().len(), 1 - withdrawn);
    }
}

#[test]
fn a_client_that_gives_up_without_a_word_gets_the_result_of_the_work_that_is_done_once() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(state.path(), &NO_LIMITS, &SERVER);
    gateway.initialize();
    gateway.call(101, "ask", &json!({"n": 1}));
    gateway.wait_for(1);
    // The client's own timeout, of which it says nothing.
    thread::sleep(std::time::Duration::from_millis(1_200));
    gateway.call(102, "ask", &json!({"n": 1}));
    let back = gateway.result(101);
    assert!(text(&back).starts_with("Not done yet"), "{back}");
    // The second may be handed back as well, before this client's time is over again.
    let waiting = gateway.wait_for(1);
    answer(&gateway, question_of(&waiting, 1), 1);
    let mut id = 102;
    loop {
        let result = gateway.result(id);
        if !text(&result).starts_with("Not done yet") {
            assert_eq!(text(&result), "1: by 1", "{result}");
            break;
        }
        id += 1;
        gateway.call(id, "ask", &json!({"n": 1}));
    }
    assert_eq!(gateway.waiting(), Vec::<Value>::new(), "asked once");
}

#[test]
fn the_same_call_made_twice_at_once_is_done_twice() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(state.path(), &NO_LIMITS, &SERVER);
    gateway.initialize();
    for id in [101, 102] {
        gateway.call(id, "ask", &json!({"n": 1}));
    }
    for question in gateway.wait_for(2) {
        answer(&gateway, &question, 1);
    }
    let mut ids = Vec::new();
    while ids.len() < 2 {
        let frame = gateway.next();
        if let Some(id) = frame["id"].as_u64() {
            assert_eq!(text(&frame), "1: by 1", "{frame}");
            ids.push(id);
        }
    }
    ids.sort_unstable();
    assert_eq!(ids, [101, 102]);
}

#[test]
fn a_tool_that_was_seen_to_ask_is_known_to_after_a_restart() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let ask = |calls: &[u64]| {
        let mut gateway = Gateway::start(state.path(), &NO_LIMITS, &SERVER);
        gateway.initialize();
        for number in calls {
            gateway.call(number + 100, "ask", &json!({"n": number}));
        }
        let waiting = gateway.wait_for(calls.len());
        let first = question_of(&waiting, calls[0]);
        assert_eq!(first["others"], json!([]), "it alone was at the server");
        for number in calls.iter().rev() {
            answer(&gateway, question_of(&waiting, *number), *number);
            let result = gateway.result(number + 100);
            assert_eq!(text(&result), format!("{number}: by {number}"), "{result}");
        }
        // The client ends.
        drop(gateway.stdin.take());
        gateway.child.wait().unwrap();
    };
    ask(&[1]);
    // No call was seen to ask in this process.
    ask(&[2, 3, 4]);
}

#[test]
fn a_call_that_is_handed_back_names_the_server_as_people_see_it() {
    if no_python() {
        return;
    }
    for (name, more) in [("asks", &[][..]), ("notes", &["--name", "notes"])] {
        let state = tempfile::tempdir().unwrap();
        let more = [&["--hold", "0"], more].concat();
        let mut raw = Raw::start(gateway(state.path(), &more, &SERVER));
        raw.initialize(REVISION, &json!({}));
        raw.call(2, "ask", &json!({"n": 1}));
        let back = raw.result(2);
        let said = format!("The server {name} needs a person's answer");
        assert!(text(&back).contains(&said), "{back}");
        assert!(!text(&back).contains("python3"), "{back}");
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_named_with_what_failed_and_what_to_do() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let state = tempfile::tempdir().unwrap();
    let url = at.replace("http://", "http://me:hidden@") + "/mcp";
    let mut raw = Raw::start(gateway(state.path(), &[], &["--upstream", &url]));
    raw.send(&crate::raw::initialize(REVISION, &json!({})));
    let told = raw.next();
    let why = told["error"]["message"].as_str().unwrap_or_default();
    let expected = format!(
        "{at} cannot be reached: the connection is refused. Start the server, or correct its address"
    );
    assert!(why.contains(&expected), "{told}");
    assert!(!why.contains("hidden"), "{told}");
}
