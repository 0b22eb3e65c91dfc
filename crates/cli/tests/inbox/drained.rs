//! The probe `/ready`, and a gateway that stops: with `drain`, open calls may end, and `/ready` says no at once.
#![cfg(unix)]

use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::{Gateway, REVISION};
use crate::http::{self, Reply, send};
use crate::raw::{DEMO_SERVER, call, gateway, initialize, text};

/// A server whose tool ends when a file is there.
const WAITS: &str = "
import json, os, sys, time
for line in sys.stdin:
    frame = json.loads(line)
    method, number = frame.get('method'), frame.get('id')
    if method == 'initialize':
        out = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'waits', 'version': '1'}}
    elif method == 'tools/call':
        while not os.path.exists(frame['params']['arguments']['file']):
            time.sleep(0.01)
        out = {'content': [{'type': 'text', 'text': 'done'}]}
    else:
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': number, 'result': out}), flush=True)
";

fn no_python() -> bool {
    let there = Command::new("python3").arg("--version").output();
    if there.is_err() {
        mcp_elicit_testkit::chromium::report_skipped("no python3 here, STOPPING WAS NOT TESTED");
    }
    there.is_err()
}

fn post(at: &str, session: Option<&str>, message: &Value) -> Reply {
    http::post(at, "/mcp", None, session, message)
}

fn ready(at: &str) -> Reply {
    send(at, &["GET /ready HTTP/1.1"], "").unwrap()
}

#[test]
fn with_a_time_to_drain_an_open_call_ends_as_it_would_have() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("go-on");
    let more = ["--listen", "127.0.0.1:0", "--drain", "600"];
    let mut gateway = Gateway::start(state.path(), &more, &["--", "python3", "-c", WAITS]);
    let at = gateway.serving.clone().unwrap();
    let opened = post(&at, None, &initialize(REVISION, &json!({})));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&at, Some(&session), &notice).status, 202);
    assert_eq!(ready(&at).status, 200);
    let slow = call(2, "slow", &json!({"file": file}));
    let response = thread::scope(|scope| {
        let called = scope.spawn(|| post(&at, Some(&session), &slow));
        let metrics = || send(&at, &["GET /metrics HTTP/1.1"], "").unwrap().body;
        while !metrics().contains("mcp_elicit_calls 1") {
            thread::sleep(Duration::from_millis(10));
        }
        let process = gateway.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &process])
                .status()
                .unwrap()
                .success()
        );
        while ready(&at).status != 503 {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(!called.is_finished());
        std::fs::write(&file, "").unwrap();
        called.join().unwrap()
    });
    assert_eq!(text(&response.response()), "done", "{response:?}");
    assert!(gateway.child.wait().unwrap().success());
}

#[test]
fn the_service_manager_hears_when_the_gateway_listens_and_when_it_stops() {
    let (state, manager) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let socket = manager.path().join("notify.sock");
    let manager = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(http::PATIENCE)).unwrap();
    let hears = || {
        let mut bytes = [0; 256];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let more = ["--listen", "127.0.0.1:0"];
    let mut command = gateway(state.path(), &more, &DEMO_SERVER);
    command.env("NOTIFY_SOCKET", &socket);
    let mut gateway = Gateway::run(state.path(), command, true);
    assert_eq!(hears(), "READY=1\n");
    assert_eq!(ready(&gateway.serving.clone().unwrap()).status, 200);
    let process = gateway.child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &process]).status();
    assert!(killed.unwrap().success());
    assert_eq!(hears(), "STOPPING=1\n");
    assert!(gateway.child.wait().unwrap().success());
}

/// A probe counts neither questions nor events, however many there are. It fails without the record.
#[test]
fn a_probe_reads_the_end_of_the_audit_and_no_question() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let more = ["--listen", "127.0.0.1:0"];
    let gateway = Gateway::start(state.path(), &more, &["--", "python3", "-c", WAITS]);
    let at = gateway.serving.clone().unwrap();
    assert_eq!(ready(&at).status, 200);
    let record = rusqlite::Connection::open(state.path().join("record.sqlite")).unwrap();
    let rename = |from: &str, to: &str| {
        let text = format!("PRAGMA legacy_alter_table = ON; ALTER TABLE {from} RENAME TO {to}");
        record.execute_batch(&text).unwrap();
    };
    rename("question", "away");
    assert_eq!(ready(&at).status, 200, "no question was read");
    rename("audit", "lost");
    let reply = ready(&at);
    assert_eq!(
        (reply.status, reply.body.as_str()),
        (503, "the record cannot be reached\n")
    );
    rename("lost", "audit");
    assert_eq!(ready(&at).status, 200);
}
