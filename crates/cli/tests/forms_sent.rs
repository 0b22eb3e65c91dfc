//! The forms that each SDK makes of its own types, from the SDK itself: recorded, read and answered.
//!
//! A server on the SDK asks for every kind of answer. Its questions are taken from the wire and compared with
//! `tests/peers/forms/sent.jsonl`; then `mcp-elicit call` answers each, and the record has what the server's handler
//! was given. `UPDATE_FORMS=1` writes the record.

#[path = "forms_sent/record.rs"]
mod record;
#[path = "forms_sent/rmcp_kinds.rs"]
mod rmcp_kinds;
#[path = "forms_sent/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use mcp_elicit_testkit::peers;
use record::Row;
use serde_json::{Value, json};
use wire::Wire;

/// Captures and answers every kind of this SDK, and compares the rows with the record.
fn check(sdk: &str, mut wire: Wire, url: &str) {
    let typed = record::answers();
    let kinds = wire.kinds();
    assert!(kinds.len() > 15, "{sdk}: {kinds:?}");
    let mut rows = Vec::new();
    for kind in kinds {
        let sent = wire.form_of(&kind);
        let end = sent
            .is_some()
            .then(|| answer(url, &kind, typed.get(kind.as_str())));
        rows.push(Row {
            sdk: sdk.to_owned(),
            kind,
            sent,
            end,
        });
    }
    record::compare(sdk, &rows);
}

/// Answers one kind with `mcp-elicit call`, as a person types it. Returns what the server's handler was given, or why
/// the form was not shown.
fn answer(url: &str, kind: &str, typed: Option<&BTreeMap<String, String>>) -> Value {
    let mut call = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"));
    call.args(["call", "ask", "--json", "--allow-credentials"])
        .args(["--protocol", "2025-11-25", "--url", url])
        .arg(format!("kind={kind}"))
        .stdin(Stdio::null());
    for (name, text) in typed.into_iter().flatten() {
        call.arg("--answer").arg(format!("{name}={text}"));
    }
    if typed.is_none_or(BTreeMap::is_empty) {
        call.arg("--accept-defaults");
    }
    let output = call.output().expect("mcp-elicit starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    let event = |name: &str| lines.iter().find(|line| line["event"] == name);
    let Some(answered) = event("answered") else {
        assert!(event("asked").is_none(), "{kind}: {stderr}");
        return json!({ "not shown": true });
    };
    let text = event("result")
        .and_then(|result| result["result"]["content"][0]["text"].as_str())
        .unwrap_or_default();
    let given = serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!({ "refused": text }));
    json!({ "answered": answered["content"], "given": given })
}

fn check_program(sdk: &str) {
    let Some(program) = peers::forms_server(sdk) else {
        return;
    };
    let listening = program.listen();
    check(sdk, Wire::start(&program), listening.url());
}

#[test]
fn python_sdk_1() {
    check_program("mcp1");
}

#[test]
fn python_sdk_2() {
    check_program("mcp2");
}

#[test]
fn fastmcp_2() {
    check_program("fastmcp2");
}

#[test]
fn fastmcp_3() {
    check_program("fastmcp3");
}

#[test]
fn fastmcp_4() {
    check_program("fastmcp4");
}

#[test]
fn typescript_sdk_1_with_zod_4() {
    check_program("ts1");
}

#[test]
fn typescript_sdk_2_with_zod_4() {
    check_program("ts2");
}

#[test]
fn rmcp_with_schemars() {
    let serving = rmcp_kinds::serve();
    check("rmcp", Wire::connect(serving.lines), &serving.url);
}
