//! A gateway's server processes: their environment, their number, and that none is left.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::gateway::{Gateway, NO_LIMITS, REVISION};
use crate::http::send;
use crate::raw::{PROGRAM, Raw, call, gateway, initialize, text};

/// A server of the pushed era whose tool returns its process id, the number of its calls so far, and the names in its
/// environment. Like many servers, it ends at an unknown method.
const TELLS: &str = "
import json, os, sys
count = 0
for line in sys.stdin:
    frame = json.loads(line)
    method, number = frame.get('method'), frame.get('id')
    if method == 'initialize':
        out = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'tells', 'version': '1'}}
    elif method == 'tools/call':
        count += 1
        told = {'pid': os.getpid(), 'count': count, 'environment': dict(os.environ)}
        out = {'content': [{'type': 'text', 'text': json.dumps(told)}]}
    elif method == 'server/discover':
        sys.exit(1)
    else:
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': number, 'result': out}), flush=True)
";

const SERVER: [&str; 4] = ["--", "python3", "-c", TELLS];

pub(crate) fn no_python() -> bool {
    let there = Command::new("python3").arg("--version").output();
    if there.is_err() {
        mcp_elicit_testkit::chromium::report_skipped("no python3 here, CHILDREN WERE NOT TESTED");
    }
    there.is_err()
}

/// Returns a call of a client of the rounds era.
fn rounds_call(id: u64) -> Value {
    let mut frame = call(id, "tell", &json!({"n": id}));
    frame["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
    frame
}

fn told(frame: &Value) -> Value {
    serde_json::from_str(text(frame)).unwrap_or_else(|_| panic!("{frame}"))
}

#[test]
fn with_share_child_all_calls_of_a_client_go_to_one_process_and_the_cost_is_told() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let more = ["--share-child", "--name", "keeper"];
    let mut gateway = Gateway::start(state.path(), &[&more[..], &NO_LIMITS].concat(), &SERVER);
    for id in 1..=6 {
        gateway.send(&rounds_call(id));
    }
    let all: Vec<Value> = (1..=6).map(|_| told(&gateway.next())).collect();
    assert!(all.iter().all(|one| one["pid"] == all[0]["pid"]), "{all:?}");
    let mut counts: Vec<u64> = all.iter().filter_map(|one| one["count"].as_u64()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 2, 3, 4, 5, 6], "one memory for all");
    let said = gateway.said.lock().unwrap().clone();
    assert!(said.contains("keeper: one child for all calls"), "{said}");
}

/// Returns the children of this process that have ended and have not been reaped.
#[cfg(target_os = "linux")]
fn unreaped(parent: u32) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let rest = stat.rsplit(')').next().unwrap_or_default();
        let mut words = rest.split_whitespace();
        let (state, of) = (words.next(), words.next());
        if state == Some("Z") && of == Some(&parent.to_string()) {
            all.push(stat.trim().to_owned());
        }
    }
    all
}

/// A server that ends when it is asked for its era is started again, and the ended process is reaped.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_is_started_anew_leaves_nothing_behind() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let mut raw = Raw::start(gateway(state.path(), &NO_LIMITS, &SERVER));
    raw.send(&rounds_call(1));
    let first = told(&raw.result(1));
    assert_eq!(first["count"], 1, "the call is made once");
    // It answers, so everything before its answer is done.
    raw.send(&rounds_call(2));
    raw.result(2);
    assert_eq!(unreaped(raw.child.id()), Vec::<String>::new());
}

/// Returns the environment of the server behind a gateway with these arguments and some secrets in its own environment.
fn environment_of_server(state: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(PROGRAM);
    command
        .args(["gateway", "--state"])
        .arg(state)
        .args(args)
        .env("OTHERS_SECRET", "1")
        .env("PASSED_ON", "2")
        .env("MCP_ELICIT_LOG", "error")
        .stderr(Stdio::null());
    let mut raw = Raw::start(command);
    raw.initialize(REVISION, &json!({}));
    raw.call(2, "tell", &json!({}));
    told(&raw.result(2))["environment"].take()
}

#[test]
fn a_server_of_a_file_gets_its_own_environment_and_no_secrets_of_others() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("state");
    let file = state.path().join("gateway.toml");
    let program = serde_json::to_string(TELLS).unwrap();
    let text = format!(
        "notify = false\n[servers.tells]\ncommand = [\"python3\", \"-c\", {program}]\nenv = {{ SET = \"3\" }}\npass-env = [\"PASSED_ON\"]\n"
    );
    std::fs::write(&file, text).unwrap();
    let told = environment_of_server(&folder, &["--config", file.to_str().unwrap()]);
    assert_eq!(
        (&told["SET"], &told["PASSED_ON"]),
        (&json!("3"), &json!("2"))
    );
    assert!(told["PATH"].is_string(), "what programs need");
    assert!(told["OTHERS_SECRET"].is_null(), "{told}");
    assert!(told["MCP_ELICIT_LOG"].is_null(), "{told}");
}

#[test]
fn a_server_behind_two_dashes_gets_the_environment_that_its_client_set() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("state");
    let args = [&["--inbox", "127.0.0.1:0"][..], &SERVER].concat();
    let told = environment_of_server(&folder, &args);
    assert_eq!(
        (&told["OTHERS_SECRET"], &told["PASSED_ON"]),
        (&json!("1"), &json!("2"))
    );
    assert!(told["MCP_ELICIT_LOG"].is_null(), "ours: {told}");
}

#[test]
fn with_insecure_clients_are_served_at_an_address_of_the_network() {
    if no_python() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let more = ["--listen", "0.0.0.0:0", "--insecure"];
    let gateway = Gateway::start(state.path(), &more, &SERVER);
    let port = gateway
        .serving
        .as_deref()
        .and_then(|at| at.rsplit(':').next());
    let at = format!("127.0.0.1:{}", port.unwrap());
    let head = [
        "POST /mcp HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    ];
    let opened = send(&at, &head, &initialize(REVISION, &json!({})).to_string()).unwrap();
    assert_eq!(opened.status, 200, "{opened:?}");
    assert_eq!(opened.response()["result"]["serverInfo"]["name"], "tells");
}
