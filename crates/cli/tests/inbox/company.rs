//! Several gateways of one person, and an inbox address that another process has.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::raw::{DEMO_SERVER, PROGRAM, Raw, gateway, inbox, text};

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Returns the only pending question, as soon as there is one.
fn waits_in(state: &Path) -> String {
    loop {
        let (reached, questions) = inbox(state, &["list"]);
        if let (true, [question]) = (reached, questions.as_slice()) {
            return question["id"].as_str().unwrap().to_owned();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn when_the_gateway_that_serves_the_inbox_ends_another_takes_it_over() {
    let state = tempfile::tempdir().unwrap();
    let at = free_address();
    let options = ["--inbox", &at];
    let start = || Raw::start(gateway(state.path(), &options, &DEMO_SERVER));
    let mut first = start();
    first.initialize("2025-11-25", &json!({}));
    let mut second = start();
    second.initialize("2025-11-25", &json!({}));
    second.call(2, "deploy", &json!({}));
    waits_in(state.path());
    drop(first);
    let id = waits_in(state.path());
    let (accepted, _) = inbox(state.path(), &["accept", &id, "environment=staging"]);
    assert!(accepted);
    let done = second.result(2);
    assert!(text(&done).contains("staging"), "{done}");
}

#[test]
fn a_gateway_whose_inbox_nobody_would_find_does_not_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let state = tempfile::tempdir().unwrap();
    let mut command = gateway(state.path(), &["--inbox", &at], &DEMO_SERVER);
    let done = command.stderr(Stdio::piped()).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains(&at) && said.contains("--inbox"), "{said}");
}

#[test]
fn where_the_usual_address_is_taken_the_inbox_is_at_another() {
    // Another process may have taken it.
    let _taken = TcpListener::bind("127.0.0.1:7878");
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["gateway", "--state"]).arg(state.path());
    command.args(DEMO_SERVER).stderr(Stdio::null());
    let mut client = Raw::start(command);
    client.initialize("2025-11-25", &json!({}));
    client.call(2, "deploy", &json!({}));
    let id = waits_in(state.path());
    let (accepted, _) = inbox(state.path(), &["accept", &id, "environment=staging"]);
    assert!(accepted);
    let done = client.result(2);
    assert!(text(&done).contains("staging"), "{done}");
}
