//! The bytes that callers can make the gateway hold, in memory and in the record: over the limits, requests and questions
//! are refused with the limit's name, and memory is given back.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::{Gateway, NO_LIMITS, REVISION};
use crate::http::{self, PATIENCE, Reply};
use crate::raw::{DEMO_SERVER, call, command, initialize, text};

const MEGABYTE: usize = 1024 * 1024;

/// A server of the pushed era with the tool `hang`, which never ends.
const HANGS: &str = "
import json, sys
for line in sys.stdin:
    frame = json.loads(line)
    method, number = frame.get('method'), frame.get('id')
    if method == 'initialize':
        out = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'hangs', 'version': '1'}}
    elif method == 'tools/list':
        out = {'tools': []}
    else:
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': number, 'result': out}), flush=True)
";

const SERVER: [&str; 4] = ["--", "python3", "-c", HANGS];

fn no_python() -> bool {
    let there = Command::new("python3").arg("--version").output();
    if there.is_err() {
        mcp_elicit_testkit::chromium::report_skipped("no python3 here, MEMORY WAS NOT TESTED");
    }
    there.is_err()
}

fn key(state: &Path) -> String {
    let made = command(
        state,
        &["tokens", "make", "test", "--scope", "call", "--json"],
    );
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    made["token"].as_str().unwrap().to_owned()
}

/// A client with a key and a session.
#[derive(Clone)]
struct Client {
    at: String,
    key: String,
    session: String,
}

impl Client {
    fn open(at: &str, key: &str) -> Self {
        let opened = http::post(
            at,
            "/mcp",
            Some(key),
            None,
            &initialize(REVISION, &json!({})),
        );
        assert_eq!(opened.status, 200, "{opened:?}");
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let client = Self {
            at: at.to_owned(),
            key: key.to_owned(),
            session,
        };
        client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn post(&self, message: &Value) -> Reply {
        let (key, session) = (Some(self.key.as_str()), Some(self.session.as_str()));
        http::post(&self.at, "/mcp", key, session, message)
    }

    /// Ends the session.
    fn end(&self) {
        let head = [
            "DELETE /mcp HTTP/1.1",
            &format!("Authorization: Bearer {}", self.key),
            &format!("Mcp-Session-Id: {}", self.session),
        ];
        assert_eq!(http::send(&self.at, &head, "").unwrap().status, 204);
    }

    /// Sends a call with this number of bytes, and leaves its response. Returns the connection.
    fn begin(&self, bytes: usize) -> TcpStream {
        use std::io::Write as _;
        let body = call(2, "hang", &json!({"blob": "x".repeat(bytes)})).to_string();
        let mut stream = TcpStream::connect(&self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Authorization: Bearer {}\r\nMcp-Session-Id: {}\r\nContent-Length: {}\r\n\r\n",
            self.at,
            self.key,
            self.session,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        stream
    }
}

/// Returns the status and the body so far of a response: at least its first bytes.
fn beginning(mut stream: &TcpStream) -> String {
    use std::io::Read as _;
    let mut bytes = [0; 4096];
    let count = stream.read(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

/// Returns the bytes that open calls hold, as the gateway's metrics say.
fn held(at: &str) -> u64 {
    let metrics = http::send(at, &["GET /metrics HTTP/1.1"], "").unwrap();
    let line = metrics
        .body
        .lines()
        .find_map(|line| line.strip_prefix("mcp_elicit_call_bytes "));
    line.unwrap_or_else(|| panic!("{metrics:?}"))
        .parse()
        .unwrap()
}

/// The attack in small: one caller, 20 sessions, each with a large call that never ends.
#[test]
fn large_calls_that_never_end_are_bounded_for_a_caller_and_for_all_and_their_memory_is_given_back()
{
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let limits = [
        "--caller-call-bytes",
        "15728640",
        "--all-call-bytes",
        "23068672",
    ];
    let more = [&["--listen", "127.0.0.1:0", "--auth", "keys"], &limits[..]].concat();
    let gateway = Gateway::start(state.path(), &more, &SERVER);
    let at = gateway.serving.clone().unwrap();
    let (attacker, second) = (key(state.path()), key(state.path()));
    let clients: Vec<Client> = (0..20).map(|_| Client::open(&at, &attacker)).collect();
    let mut open = Vec::new();
    let mut refused = Vec::new();
    for client in &clients {
        let stream = client.begin(4 * MEGABYTE);
        let response = beginning(&stream);
        if response.starts_with("HTTP/1.1 200") {
            open.push((client, stream));
        } else {
            refused.push(response);
        }
        #[cfg(target_os = "linux")]
        assert!(gateway.resident() < 300 * MEGABYTE);
    }
    // 3 of 4 MiB and their names fit into 15 MiB.
    assert_eq!((open.len(), refused.len()), (3, 17), "{refused:?}");
    for response in &refused {
        assert!(
            response.starts_with("HTTP/1.1 429")
                && response.contains("caller-call-bytes")
                && response.contains("15728640"),
            "{response}"
        );
    }
    assert!((12 * MEGABYTE as u64..15 * MEGABYTE as u64).contains(&held(&at)));
    // Small messages still arrive, such as answers and cancellations.
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"});
    assert_eq!(clients[19].post(&list).status, 200);
    // Another caller has room of its own, up to the limit of all.
    let others: Vec<Client> = (0..4).map(|_| Client::open(&at, &second)).collect();
    let calls: Vec<TcpStream> = others.iter().map(|one| one.begin(4 * MEGABYTE)).collect();
    let responses: Vec<String> = calls.iter().map(beginning).collect();
    let full: Vec<&String> = responses
        .iter()
        .filter(|one| one.starts_with("HTTP/1.1 429"))
        .collect();
    assert_eq!(full.len(), 2, "{responses:?}");
    assert!(
        full.iter().all(|one| one.contains("all-call-bytes")),
        "{full:?}"
    );
    // A client that cancels gives its memory back, and so does one that ends its session.
    let (canceller, stream) = open.remove(0);
    let notice =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    assert_eq!(canceller.post(&notice).status, 202);
    drop(stream);
    for (client, _) in &open {
        client.end();
    }
    for client in &others {
        client.end();
    }
    let given_back = (0..600).any(|_| {
        thread::sleep(Duration::from_millis(10));
        held(&at) < MEGABYTE as u64
    });
    assert!(given_back, "{}", held(&at));
    let again = clients[19].begin(4 * MEGABYTE);
    assert!(beginning(&again).starts_with("HTTP/1.1 200"));
}

/// Returns the size of the record with its log.
fn on_disk(state: &Path) -> u64 {
    let files = ["record.sqlite", "record.sqlite-wal"].map(|name| state.join(name));
    files
        .iter()
        .filter_map(|file| file.metadata().ok())
        .map(|file| file.len())
        .sum()
}

/// The same with a tool that asks: the arguments are not stored with each question, and the bytes of questions are bounded.
#[test]
fn questions_of_large_calls_keep_little_and_the_bytes_of_a_callers_questions_are_bounded() {
    let state = tempfile::tempdir().unwrap();
    let more: [&[&str]; 3] = [
        &["--listen", "127.0.0.1:0", "--auth", "keys", "--hold", "0"],
        &[
            "--caller-question-bytes",
            "1048576",
            "--argument-bytes",
            "262144",
        ],
        &NO_LIMITS[..],
    ];
    let gateway = Gateway::start(state.path(), &more.concat(), &DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let caller = key(state.path());
    let before = on_disk(state.path());
    let deploy = |bytes: usize, number: u64| {
        let client = Client::open(&at, &caller);
        let arguments = json!({"n": number, "blob": "x".repeat(bytes)});
        client.post(&call(2, "deploy", &arguments)).response()
    };
    // Too long to be stored: the question is asked, and says so.
    for number in 0..10 {
        let response = deploy(4 * MEGABYTE, number);
        assert!(text(&response).starts_with("Not done yet"), "{response}");
    }
    let waiting = gateway.wait_for(10);
    let id = waiting[0]["id"].as_str().unwrap();
    let whole = gateway
        .api("GET", &format!("/api/questions/{id}"), "")
        .unwrap()
        .json();
    let left_out = whole["argumentsLeftOut"].as_u64().unwrap();
    assert!(
        left_out > 4 * MEGABYTE as u64 && whole["argumentsText"].is_null(),
        "{whole}"
    );
    let shown = command(state.path(), &["inbox", "show", id]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains(&format!("{left_out} bytes")) && shown.contains("argument-bytes"),
        "{shown}"
    );
    assert!(on_disk(state.path()) - before < 4 * MEGABYTE as u64);
    // Short enough to be stored: bounded by the sum.
    let mut asked = 0;
    let refused = (0..20).find_map(|number| {
        let response = deploy(200_000, 100 + number);
        let said = response.to_string();
        if said.contains("Not done yet") {
            asked += 1;
            return None;
        }
        Some(said)
    });
    let refused = refused.expect("one is over the limit");
    assert!((3..=5).contains(&asked), "{asked}");
    // One server has three quarters.
    assert!(
        refused.contains("caller-question-bytes") && refused.contains("786432"),
        "{refused}"
    );
    assert_eq!(gateway.wait_for(10 + asked).len(), 10 + asked);
    // Another caller is not affected.
    let other = Client::open(&at, &key(state.path()));
    let response = other
        .post(&call(2, "deploy", &json!({"blob": "x".repeat(200_000)})))
        .response();
    assert!(text(&response).starts_with("Not done yet"), "{response}");
}
