//! The log of a gateway: the stderr of its servers, and one line for each step of a question.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::raw::PROGRAM;

/// A value of a person, which no log has.
const SECRET: &str = "the-owl-flies-at-midnight";

/// Starts a gateway before a server that writes a coloured banner, and lets a person answer one question.
fn answered(state: &Path, log: &str) -> Vec<String> {
    let script =
        format!("printf '\\033[31mready\\033[0m \\a\\n' >&2; exec '{PROGRAM}' demo-server");
    let more = ["--name", "deploy-bot", "--log", log];
    let mut gateway = Gateway::start(state, &more, &["--", "sh", "-c", &script]);
    gateway.initialize();
    gateway.call(2, "deploy", &json!({"why": SECRET}));
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let answer = json!({"action": "accept", "content": {"environment": "staging", "note": SECRET}});
    assert_eq!(gateway.answer(&id, &answer), 200);
    gateway.result(2);
    let said = gateway.said.clone();
    // Entries are written a moment after their step.
    for _ in 0..600 {
        if said.lock().unwrap().contains("delivered") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    drop(gateway);
    let said = said.lock().unwrap();
    assert!(!said.contains(SECRET), "{said}");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn each_line_of_a_log_in_json_is_a_record_and_a_servers_line_has_its_name() {
    let state = tempfile::tempdir().unwrap();
    let lines = answered(state.path(), "json");
    let records: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    for record in &records {
        assert!(
            record["timestamp"].is_string() && record["level"].is_string(),
            "{record}"
        );
        assert!(record["fields"]["message"].is_string(), "{record}");
    }
    let of = |target: &str| {
        let found = records.iter().filter(|record| record["target"] == target);
        found.map(|record| &record["fields"]).collect::<Vec<_>>()
    };
    let banner = of("server_stderr");
    assert_eq!(
        banner[0],
        &json!({"message": "ready \\u{7}", "server": "deploy-bot"})
    );
    let steps: Vec<_> = of("mcp_elicit::question")
        .iter()
        .map(|fields| fields["message"].as_str().unwrap())
        .collect();
    assert_eq!(steps, ["asked", "accepted", "delivered"], "{lines:#?}");
    let accepted = of("mcp_elicit::question")[1];
    assert_eq!(accepted["server"], "deploy-bot");
    assert_eq!(accepted["tool"], "deploy");
    assert!(accepted["by"].is_string(), "{accepted}");
}

#[test]
fn a_line_of_a_server_in_a_text_log_begins_with_its_name() {
    let state = tempfile::tempdir().unwrap();
    let lines = answered(state.path(), "text");
    assert!(
        lines.contains(&"deploy-bot: ready \\u{7}".to_owned()),
        "{lines:#?}"
    );
    let step = lines
        .iter()
        .find(|line| line.contains("mcp_elicit::question: asked"));
    assert!(step.is_some_and(|line| line.contains("INFO")), "{lines:#?}");
}

/// A server that does not start says why on its stderr, which must not be lost.
#[test]
fn the_last_words_of_a_server_that_fails_are_in_the_log() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = crate::raw::gateway(
        state.path(),
        &["--name", "broken", "--log", "json"],
        &["--", "sh", "-c", "echo 'no database' >&2; exit 7"],
    );
    let mut running = gateway
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let open = crate::raw::initialize("2025-11-25", &json!({}));
    let _ended = writeln!(running.stdin.take().unwrap(), "{open}");
    let done = running.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    let records = said.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    });
    let mut servers = records.filter(|record| record["target"] == "server_stderr");
    let line = servers
        .next()
        .unwrap_or_else(|| panic!("nothing of the server: {said}"));
    assert_eq!(
        line["fields"],
        json!({"message": "no database", "server": "broken"})
    );
}
