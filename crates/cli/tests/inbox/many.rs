//! Many at once: equal ids in several sessions, and more questions than fit on a page.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::asker::Asker;
use crate::gateway::{Gateway, NO_LIMITS, REVISION};
use crate::http::{self, PATIENCE, Reply, send};
use crate::raw::{DEMO_SERVER, call, command, inbox, initialize, text};

/// A server that reads one message, writes its response, and only then reads on; each response is as long as the call.
const ECHO: &str = "
import json, sys
for line in sys.stdin:
    frame = json.loads(line)
    if frame.get('method') == 'initialize':
        result = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'echo', 'version': '1'}}
    elif 'id' in frame:
        result = {'content': [{'type': 'text', 'text': frame['params']['arguments']['text']}]}
    else:
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': frame['id'], 'result': result}), flush=True)
";

/// The gateway must not block where a byte relay would not: pipes are full in both directions here, and the reader of
/// one peer must not wait for the other peer to read.
#[test]
fn full_pipes_in_both_directions_go_on() {
    const CALLS: u64 = 400;
    if std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_err()
    {
        mcp_elicit_testkit::chromium::report_skipped("no python3 here, FULL PIPES WERE NOT TESTED");
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(state.path(), &[], &["--", "python3", "-c", ECHO]);
    gateway.initialize();
    let text_of = |id: u64| format!("{id} {}", "x".repeat(20_000));
    for id in 10..10 + CALLS {
        gateway.call(id, "echo", &json!({"text": text_of(id)}));
    }
    for id in 10..10 + CALLS {
        let answer = gateway.next();
        assert_eq!(
            (answer["id"].as_u64(), text(&answer)),
            (Some(id), text_of(id).as_str())
        );
    }
}

const SESSIONS: usize = 5;
const CALLS: u64 = 10;

fn post(at: &str, session: Option<&str>, frame: &Value) -> Reply {
    http::post(at, "/mcp", None, session, frame)
}

/// If a client ends its session, each waiting call gets a response, and every stream ends.
#[test]
fn a_session_that_is_ended_ends_its_calls_and_its_streams() {
    let state = tempfile::tempdir().unwrap();
    let more = ["--listen", "127.0.0.1:0", "--hold", "3600"];
    let gateway = Gateway::start(state.path(), &more, &DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let opened = post(&at, None, &initialize(REVISION, &json!({})));
    let session = opened.header("mcp-session-id").expect("a session");
    let named = format!("Mcp-Session-Id: {session}");
    let mut stream = TcpStream::connect(&at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let listen = format!("GET /mcp HTTP/1.1\r\nHost: {at}\r\nAccept: text/event-stream\r\n{named}");
    let listen = format!("{listen}\r\nConnection: close\r\n\r\n");
    stream.write_all(listen.as_bytes()).unwrap();
    let mut begun = [0; 15];
    stream.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200 OK");
    let told = thread::scope(|threads| {
        let waiting = threads.spawn(|| post(&at, Some(session), &call(7, "deploy", &json!({}))));
        gateway.wait_for(1);
        let ended = send(&at, &["DELETE /mcp HTTP/1.1", &named], "").unwrap();
        assert_eq!(ended.status, 204);
        waiting.join().unwrap().response()
    });
    assert_eq!(told["id"], 7);
    let why = told["error"]["message"].as_str().unwrap();
    assert!(why.contains("the session was ended"), "{why}");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the stream ends");
}

/// Some clients open a session for each call: the same call finds its question, and then its result.
#[test]
fn in_a_new_session_the_same_call_is_asked_once_and_works_once() {
    let state = tempfile::tempdir().unwrap();
    let more = ["--listen", "127.0.0.1:0", "--hold", "0"];
    let gateway = Gateway::start(state.path(), &more, &DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let in_new_session = || {
        let opened = post(&at, None, &initialize(REVISION, &json!({})));
        let session = opened
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        let said = post(
            &at,
            Some(&session),
            &call(2, "deploy", &json!({"build": "7"})),
        );
        let named = format!("Mcp-Session-Id: {session}");
        send(&at, &["DELETE /mcp HTTP/1.1", &named], "").expect("it ends");
        said.response()
    };
    let back = in_new_session();
    assert!(text(&back).starts_with("Not done yet"), "{back}");
    let asked = gateway.wait_for(1);
    let again = in_new_session();
    assert!(text(&again).starts_with("Not done yet"), "{again}");
    assert_eq!(
        gateway.waiting()[0]["id"],
        asked[0]["id"],
        "not asked twice"
    );
    assert_eq!(gateway.waiting().len(), 1);
    let id = asked[0]["id"].as_str().unwrap();
    let body = json!({"action": "decline"});
    assert_eq!(gateway.answer(id, &body), 200);
    let mut done = in_new_session();
    for _ in 0..LOOKS {
        if !text(&done).starts_with("Not done yet") {
            break;
        }
        thread::sleep(LOOK);
        done = in_new_session();
    }
    assert!(!text(&done).starts_with("Not done yet"), "{done}");
    assert!(gateway.waiting().is_empty(), "nothing is asked again");
}

/// The interval at which questions are looked for, and the number of attempts before a test gives up.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 6_000;

/// Returns the next unanswered question; `None` if all calls have ended.
fn next_question<T>(
    gateway: &Gateway,
    answered: &BTreeSet<String>,
    calls: &[thread::ScopedJoinHandle<'_, T>],
) -> Option<Value> {
    for _ in 0..LOOKS {
        if calls.iter().all(thread::ScopedJoinHandle::is_finished) {
            return None;
        }
        let is_new = |question: &Value| !answered.contains(question["id"].as_str().unwrap());
        if let Some(question) = gateway.waiting().into_iter().find(is_new) {
            return Some(question);
        }
        thread::sleep(LOOK);
    }
    panic!("some calls neither ask nor end");
}

#[test]
fn equal_ids_of_several_sessions_are_never_confused() {
    let asker = Asker::start();
    let shapes: [(&str, &[&str]); 2] = [
        ("note", &["--upstream", &asker.url]),
        ("deploy", &DEMO_SERVER),
    ];
    for (tool, server) in shapes {
        let state = tempfile::tempdir().unwrap();
        let mut more = vec!["--listen", "127.0.0.1:0", "--hold", "3600"];
        more.extend(NO_LIMITS);
        let gateway = Gateway::start(state.path(), &more, server);
        let at = gateway.serving.clone().unwrap();
        let sessions: Vec<String> = (0..SESSIONS)
            .map(|which| {
                let mut opening = initialize(REVISION, &json!({}));
                opening["params"]["clientInfo"]["name"] = json!(which.to_string());
                let opened = post(&at, None, &opening);
                let name = opened
                    .header("mcp-session-id")
                    .expect("a session")
                    .to_owned();
                post(
                    &at,
                    Some(&name),
                    &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                );
                name
            })
            .collect();
        thread::scope(|threads| {
            let mut calls = Vec::new();
            for (which, session) in sessions.iter().enumerate() {
                for id in 1..=CALLS {
                    let (at, number) = (&at, which as u64 * 100 + id);
                    // The ids are the same in every session.
                    let frame = call(id, tool, &json!({"n": number}));
                    calls.push(threads.spawn(move || {
                        let reply = post(at, Some(session), &frame).response();
                        assert_eq!(reply["id"], id);
                        (number, text(&reply).to_owned())
                    }));
                }
            }
            // Calls of a tool that was seen to ask take turns in their session, so questions come up one after the
            // other.
            let mut answered = BTreeSet::new();
            while let Some(question) = next_question(&gateway, &answered, &calls) {
                let id = question["id"].as_str().unwrap();
                answered.insert(id.to_owned());
                let whole = gateway
                    .api("GET", &format!("/api/questions/{id}"), "")
                    .unwrap()
                    .json();
                let session = whole["clientInfo"]["name"].as_str().expect("a session");
                let content = if tool == "note" {
                    json!({"value": format!("for {}", whole["arguments"]["n"])})
                } else {
                    // A pushed question of a program does not name its call: the arguments may be another call's, so
                    // they are shown only while there is one call.
                    let one = whole["others"] == json!([]);
                    assert_eq!(whole["arguments"].is_null(), !one);
                    json!({"environment": "staging", "note": format!("for {session}00")})
                };
                let answer = json!({"action": "accept", "content": content});
                assert_eq!(gateway.answer(id, &answer), 200);
            }
            let results: HashMap<u64, String> =
                calls.into_iter().map(|call| call.join().unwrap()).collect();
            assert_eq!(results.len(), SESSIONS * usize::try_from(CALLS).unwrap());
            for (number, said) in results {
                let said = said
                    .trim_start_matches("Deployed to staging (")
                    .trim_end_matches(')');
                let answered: u64 = said.trim_start_matches("for ").parse().expect("an answer");
                if tool == "note" {
                    assert_eq!(answered, number, "the answer of another call");
                }
                assert_eq!(
                    answered / 100,
                    number / 100,
                    "the answer of another session"
                );
            }
        });
        assert_eq!(gateway.waiting(), Vec::<Value>::new());
    }
}

#[test]
fn a_list_longer_than_a_page_is_read_whole_while_it_changes() {
    const COUNT: u64 = 230;
    let asker = Asker::start();
    let state = tempfile::tempdir().unwrap();
    let mut more = vec!["--hold", "3600"];
    more.extend(NO_LIMITS);
    let mut gateway = Gateway::start(state.path(), &more, &["--upstream", &asker.url]);
    gateway.initialize();
    for number in 0..COUNT {
        gateway.call(number + 10, "note", &json!({"n": number}));
    }
    let all = gateway.wait_for(usize::try_from(COUNT).unwrap());
    let ids: BTreeSet<&str> = all
        .iter()
        .filter_map(|question| question["id"].as_str())
        .collect();
    assert_eq!(ids.len(), all.len(), "each is listed once");

    let first = gateway
        .api("GET", "/api/questions?most=100", "")
        .unwrap()
        .json();
    let next = first["next"].as_str().unwrap().to_owned();
    assert_eq!(
        next, all[99]["id"],
        "the next page starts behind the last of this one"
    );
    // The question at which a page starts may have been answered.
    assert_eq!(gateway.answer(&next, &json!({"action": "decline"})), 200);
    let second = gateway
        .api("GET", &format!("/api/questions?most=100&after={next}"), "")
        .unwrap()
        .json();
    assert_eq!(second["questions"][0]["id"], all[100]["id"]);
    assert_eq!(second["waiting"], COUNT - 1);

    // A person's command reads all pages, and finds a question by the beginning of its id.
    let listed = command(state.path(), &["inbox", "list"]);
    assert_eq!(
        String::from_utf8_lossy(&listed.stdout).lines().count(),
        all.len() - 1
    );
    let last = all.last().unwrap()["id"].as_str().unwrap();
    let (_, shown) = inbox(state.path(), &["show", &last[..10]]);
    assert_eq!(shown[0]["id"], last);
}
