//! Callers that open a session for each call and never end one, as some clients do: none is rejected, and every answer
//! reaches its call.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use mcp_elicit_inbox::api_tokens::Scope;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::clock::now;
use serde_json::{Value, json};

use crate::asker::Asker;
use crate::gateway::{Gateway, NO_LIMITS, REVISION};
use crate::http::{self, Reply, send};
use crate::raw::{DEMO_SERVER, PATIENCE, call, initialize, text};

const CALLERS: usize = 50;
/// The number of calls of all callers, unless the environment sets another: more than the limit of sessions.
const CALLS: usize = 10_000;
/// The largest number of sessions with one server.
const SESSIONS: usize = 1_000;
/// The interval, in calls of a caller, at which a person is asked.
const ASKS: u64 = 5;
/// The factor between a caller's index and the number of its first call.
const NUMBERS: u64 = 1_000_000;

/// A caller: the id of its key, and the key.
type Key = (String, String);

fn key(state: &Path) -> Key {
    let tokens = StateFolder::at(state).api_tokens();
    let (token, text) = tokens.make("test", &[Scope::Call], None, now()).unwrap();
    (token.id, text)
}

/// Starts a gateway before this server that hands no call back. Returns its address for callers, who have keys.
fn start(state: &Path, server: &[&str]) -> (Gateway, String) {
    let listens = [
        "--listen",
        "127.0.0.1:0",
        "--auth",
        "keys",
        "--hold",
        "3600",
    ];
    let gateway = Gateway::start(state, &[&listens[..], &NO_LIMITS].concat(), server);
    let at = gateway.serving.clone().unwrap();
    (gateway, at)
}

/// Returns the number of calls that each caller makes.
fn calls_each(usual: usize) -> u64 {
    let calls = std::env::var("MCP_ELICIT_CALLS").ok();
    let calls = calls.map_or(usual, |calls| calls.parse().expect("a number of calls"));
    u64::try_from(calls.div_ceil(CALLERS)).unwrap()
}

fn post(at: &str, key: &str, session: Option<&str>, body: &Value) -> Reply {
    http::post(at, "/mcp", Some(key), session, body)
}

fn open(at: &str, key: &str) -> String {
    let opened = post(at, key, None, &initialize(REVISION, &json!({})));
    let is_open = opened.status == 200 && opened.response()["result"].is_object();
    assert!(is_open, "{opened:?}");
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(at, key, Some(&session), &ready).status, 202);
    session
}

fn asks(number: u64) -> bool {
    number.is_multiple_of(ASKS)
}

/// Makes one call in this session, and checks that the answer is for this call.
fn make_call(at: &str, key: &str, session: &str, number: u64) {
    let (tool, expected) = if asks(number) {
        ("note", format!("for {number}"))
    } else {
        ("tell", format!("told {number}"))
    };
    // The ids are the same in many sessions.
    let id = 2 + number % NUMBERS;
    let done = post(
        at,
        key,
        Some(session),
        &call(id, tool, &json!({"n": number})),
    );
    assert_eq!(done.status, 200, "{done:?}");
    let answer = done.response();
    assert_eq!(
        (&answer["id"], text(&answer)),
        (&json!(id), expected.as_str()),
        "{answer}"
    );
}

/// Answers questions until all calls have ended. Returns the ids of the questions, after checking that each belongs to
/// its caller.
fn answer_all<T>(
    gateway: &Gateway,
    keys: &[Key],
    calls: &[thread::ScopedJoinHandle<'_, T>],
) -> BTreeSet<String> {
    let mut answered = BTreeSet::new();
    loop {
        let is_over = calls.iter().all(thread::ScopedJoinHandle::is_finished);
        for question in gateway.waiting() {
            let id = question["id"].as_str().unwrap();
            if !answered.insert(id.to_owned()) {
                continue;
            }
            let message = question["message"].as_str().unwrap();
            let number = message
                .trim_start_matches("Value for ")
                .trim_end_matches('?');
            let number: u64 = number.parse().expect("a number");
            let (key, _) = &keys[usize::try_from(number / NUMBERS).unwrap()];
            assert_eq!(question["principal"], format!("key-{key}"), "{question}");
            let answer = json!({"action": "accept", "content": {"value": format!("for {number}")}});
            assert_eq!(gateway.answer(id, &answer), 200);
        }
        if is_over {
            return answered;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Makes the calls of all callers on this number of threads: all in one session, or each in a session of its own.
fn calls_of_all(each: u64, at_once: u64, in_one_session: bool) -> (Gateway, tempfile::TempDir) {
    let asker = Asker::start();
    let state = tempfile::tempdir().unwrap();
    let (gateway, at) = start(state.path(), &["--upstream", &asker.url]);
    let keys: Vec<Key> = (0..CALLERS).map(|_| key(state.path())).collect();
    let numbers = |caller: u64| (0..each).map(move |call| caller * NUMBERS + call);
    let questions = thread::scope(|threads| {
        let mut calls = Vec::new();
        for (caller, (_, key)) in keys.iter().enumerate() {
            let session = in_one_session.then(|| open(&at, key));
            for part in 0..at_once {
                let mine = numbers(caller as u64).filter(|number| number % at_once == part);
                let (at, mine) = (&at, mine.collect::<Vec<_>>());
                let session = session.clone();
                calls.push(threads.spawn(move || {
                    for number in mine {
                        let session = session.clone().unwrap_or_else(|| open(at, key));
                        make_call(at, key, &session, number);
                    }
                }));
            }
        }
        let questions = answer_all(&gateway, &keys, &calls);
        for call in calls {
            call.join().unwrap();
        }
        questions
    });
    let expected: Vec<(u64, String)> = (0..CALLERS as u64)
        .flat_map(numbers)
        .filter(|number| asks(*number))
        .map(|number| (number, format!("for {number}")))
        .collect();
    assert_eq!(questions.len(), expected.len(), "each is asked once");
    let mut told = asker.told();
    told.sort_unstable();
    assert_eq!(told, expected, "each answer reached its call once");
    assert!(gateway.waiting().is_empty(), "nothing is asked again");
    (gateway, state)
}

/// `MCP_ELICIT_CALLS=1250` sets the number of calls.
#[test]
fn sessions_do_not_run_out_where_each_call_opens_one_and_none_is_ended() {
    let (gateway, _state) = calls_of_all(calls_each(CALLS), 1, false);
    let metrics = send(
        gateway.serving.as_deref().unwrap(),
        &["GET /metrics HTTP/1.1"],
        "",
    )
    .unwrap();
    let open = metrics
        .body
        .lines()
        .find_map(|line| line.strip_prefix("mcp_elicit_sessions "));
    let open: usize = open.unwrap().parse().unwrap();
    assert!(open <= SESSIONS, "{open} sessions");
}

/// The calls of a caller share its session. With `MCP_ELICIT_CALLS=10000`, each caller makes 200 calls, 20 of them at
/// once.
#[test]
fn calls_of_many_callers_at_once_each_get_their_own_answer() {
    let each = calls_each(CALLERS * 4);
    calls_of_all(each, each.min(20), true);
}

fn list(at: &str, key: &str, session: &str) -> u16 {
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
    post(at, key, Some(session), &list).status
}

/// A server that is a program has a process for each session, of which fewer are allowed.
#[test]
fn a_noisy_caller_loses_its_own_sessions_and_a_question_keeps_its_session() {
    const NOISY: usize = 280;
    let state = tempfile::tempdir().unwrap();
    let (gateway, at) = start(state.path(), &DEMO_SERVER);
    let ((_, quiet), (_, noisy), (_, other)) =
        (key(state.path()), key(state.path()), key(state.path()));
    let kept = open(&at, &quiet);
    let asks = open(&at, &noisy);
    let done = thread::scope(|threads| {
        let waits =
            threads.spawn(|| post(&at, &noisy, Some(&asks), &call(7, "deploy", &json!({}))));
        let asked = gateway.wait_for(1);
        let first = open(&at, &noisy);
        for number in 0..NOISY {
            // The last ones are another caller's, for whom there is no process left in the end.
            open(&at, if number < 220 { &noisy } else { &other });
        }
        assert_eq!(list(&at, &noisy, &first), 404, "the client opens another");
        assert_eq!(list(&at, &quiet, &kept), 200);
        let content = json!({"environment": "staging", "note": "kept"});
        let answer = json!({"action": "accept", "content": content});
        assert_eq!(
            gateway.answer(asked[0]["id"].as_str().unwrap(), &answer),
            200
        );
        waits.join().unwrap()
    });
    assert!(text(&done.response()).contains("kept"), "{done:?}");
}

/// Opens the stream of a session; it ends with the connection.
fn listen(at: &str, key: &str, session: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "GET /mcp HTTP/1.1\r\nHost: {at}\r\nAccept: text/event-stream\r\nAuthorization: Bearer {key}\r\n\
         Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: {REVISION}\r\n\r\n"
    )
    .unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    stream
}

#[test]
fn a_caller_that_only_listens_takes_no_more_than_half_of_the_servers_and_makes_room() {
    const EACH: usize = 128;
    let state = tempfile::tempdir().unwrap();
    let (gateway, at) = start(state.path(), &DEMO_SERVER);
    let ((_, noisy), (_, also), (_, quiet)) =
        (key(state.path()), key(state.path()), key(state.path()));
    let open_and_listen = |key: &str| {
        let session = open(&at, key);
        let stream = listen(&at, key, &session);
        (session, stream)
    };
    let asks = open_and_listen(&noisy);
    let done = thread::scope(|threads| {
        let waits =
            threads.spawn(|| post(&at, &noisy, Some(&asks.0), &call(7, "deploy", &json!({}))));
        let asked = gateway.wait_for(1);
        let mut held: Vec<_> = (1..EACH).map(|_| open_and_listen(&noisy)).collect();
        // One more ends the oldest that has only a stream.
        held.push(open_and_listen(&noisy));
        assert_eq!(list(&at, &noisy, &held[0].0), 404);
        assert_eq!(list(&at, &noisy, &held[1].0), 200);
        // Together they have all servers, until another caller needs one.
        held.extend((0..EACH).map(|_| open_and_listen(&also)));
        let few = open_and_listen(&quiet);
        assert_eq!(list(&at, &quiet, &few.0), 200);
        let more = open_and_listen(&also);
        assert_eq!(list(&at, &also, &more.0), 200);
        assert_eq!(list(&at, &quiet, &few.0), 200, "its own made room");
        let content = json!({"environment": "staging", "note": "kept"});
        let answer = json!({"action": "accept", "content": content});
        let question = asked[0]["id"].as_str().unwrap();
        assert_eq!(gateway.answer(question, &answer), 200);
        waits.join().unwrap()
    });
    assert!(text(&done.response()).contains("kept"), "{done:?}");
}

/// A client that opens a session for each try gets the link of the question that is open, as in one session.
#[test]
fn the_same_call_in_a_new_session_gets_the_link_of_the_open_question() {
    let asker = Asker::start();
    let state = tempfile::tempdir().unwrap();
    let options = ["--listen", "127.0.0.1:0", "--auth", "keys", "--hold", "1"];
    let gateway = Gateway::start(
        state.path(),
        &[&options[..], &NO_LIMITS].concat(),
        &["--upstream", &asker.url],
    );
    let at = gateway.serving.clone().unwrap();
    let (_, key) = key(state.path());
    let make = |id: u64| {
        let session = open(&at, &key);
        let body = call(id, "note", &json!({"n": 7}));
        post(&at, &key, Some(&session), &body).response()
    };
    let first = make(2);
    let waiting = gateway.waiting();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    let question = waiting[0]["id"].as_str().unwrap();
    for (id, back) in [(2, first), (3, make(3)), (4, make(4))] {
        let said = text(&back);
        assert!(
            said.starts_with("Not done yet") && said.contains("http://"),
            "{id}: {back}"
        );
        assert!(said.contains(question), "{id}: {back}");
    }
    assert_eq!(gateway.waiting().len(), 1, "it is asked once");
    let answer = json!({"action": "accept", "content": {"value": "for 7"}});
    assert_eq!(gateway.answer(question, &answer), 200);
    let is_done = (0..200).any(|_| text(&make(5)) == "for 7");
    assert!(is_done, "the same call gets the result");
    assert_eq!(
        asker.told(),
        [(7, "for 7".to_owned())],
        "the work is done once"
    );
}

/// A client over HTTP that stops waiting without a word (K4), whether it keeps the connection open or closes it: the same
/// call joins the question, and the tool runs once.
#[test]
fn a_call_that_is_given_up_in_silence_over_http_is_joined_by_the_next() {
    for keeps_connection in [true, false] {
        let asker = Asker::start();
        let state = tempfile::tempdir().unwrap();
        let (gateway, at) = start(state.path(), &["--upstream", &asker.url]);
        let (_, key) = key(state.path());
        let session = open(&at, &key);
        let body = call(2, "note", &json!({"n": 7}));
        let mut silent = TcpStream::connect(&at).unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Authorization: Bearer {key}\r\nMcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n{body}",
            body.to_string().len()
        );
        std::io::Write::write_all(&mut silent, request.as_bytes()).unwrap();
        while gateway.waiting().is_empty() {
            thread::sleep(Duration::from_millis(20));
        }
        // The gateway takes calls that follow each other at once for two.
        thread::sleep(Duration::from_millis(1_100));
        let kept = keeps_connection.then_some(silent);
        let again = |id: u64| {
            let body = call(id, "note", &json!({"n": 7}));
            let done = post(&at, &key, Some(&session), &body).response();
            assert_eq!(done["id"], id, "{done}");
            done
        };
        // It joins, and is handed back before the client would give it up too.
        let joined = again(3);
        assert!(text(&joined).starts_with("Not done yet"), "{joined}");
        let waiting = gateway.waiting();
        assert_eq!(waiting.len(), 1, "{keeps_connection}: {waiting:?}");
        let answer = json!({"action": "accept", "content": {"value": "for 7"}});
        let id = waiting[0]["id"].as_str().unwrap();
        assert_eq!(gateway.answer(id, &answer), 200);
        let done = (4..100).map(again).find(|done| text(done) == "for 7");
        assert!(done.is_some(), "the next identical call gets the result");
        assert_eq!(
            asker.told(),
            [(7, "for 7".to_owned())],
            "one run of the tool"
        );
        drop(kept);
    }
}
