//! `mcp-elicit check` finds what is wrong with a server: each mutant of one server, on the official SDK of TypeScript, is caught
//! by exactly the cells that are about its fault.

use mcp_elicit_testkit::peers::{self, PeerProgram};
use serde_json::Value;

/// Returns the failed cells with their codes, as `cell code`.
fn failures(mutant: &str, revision: &str) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let effects = folder.path().join("effects.log").display().to_string();
    std::fs::write(&effects, "").expect("a file is written");
    let server = peers::node_script("mutants.mjs")?.with([mutant, &effects]);
    let ran = PeerProgram::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .with([
            "check",
            "--tool",
            "remove",
            "--revision",
            revision,
            "--time",
            "3s",
            "--json",
        ])
        .with(["--effect".to_owned(), format!("cat '{effects}'")])
        .with(["--"])
        .with(server.argv().iter().cloned())
        .run();
    let lines = ran.lines();
    assert!(!lines.is_empty(), "{mutant}: {}", ran.stderr);
    let failed = lines
        .iter()
        .filter(|line| line["event"] == "cell" && line["verdict"] == "fail");
    let failed = failed.map(|line| {
        let codes = line["findings"].as_array().into_iter().flatten();
        let codes = codes.filter(|finding| finding["verdict"] == "fail");
        let codes: Vec<&str> = codes
            .filter_map(|finding| finding["code"].as_str())
            .collect();
        format!(
            "{} {}",
            line["cell"].as_str().unwrap_or_default(),
            codes.join(" ")
        )
    });
    let failed: Vec<String> = failed.collect();
    let expected = i32::from(!failed.is_empty());
    assert_eq!(
        ran.status.code(),
        Some(expected),
        "{mutant}: {}",
        ran.stderr
    );
    let summary: &Value = lines.last().expect("a summary");
    assert_eq!(summary["counts"]["fail"], failed.len());
    Some(failed)
}

#[track_caller]
fn caught(mutant: &str, revision: &str, expected: &[&str]) {
    if let Some(failed) = failures(mutant, revision) {
        assert_eq!(failed, expected, "{mutant} on {revision}");
    }
}

const PUSHED: &str = "2025-11-25";
const ROUNDS: &str = "2026-07-28";

#[test]
fn the_server_itself_passes() {
    caught("none", PUSHED, &[]);
    caught("none", ROUNDS, &[]);
}

#[test]
fn content_that_is_not_checked() {
    caught(
        "takes-wrong-content",
        ROUNDS,
        &["wrong-minLength wrong-content-accepted"],
    );
}

#[test]
fn a_decline_that_is_ignored() {
    let cells = [
        "decline effect-without-accept",
        "decline-with-content effect-without-accept",
    ];
    caught("ignores-decline", ROUNDS, &cells);
}

#[test]
fn a_cancel_that_removes() {
    caught("cancel-removes", ROUNDS, &["cancel effect-without-accept"]);
}

#[test]
fn an_effect_that_comes_twice() {
    caught("effect-twice", ROUNDS, &["accept effect-twice"]);
}

#[test]
fn a_call_that_hangs() {
    caught("hangs", ROUNDS, &["cancel never-ends"]);
}

#[test]
fn a_state_that_is_not_protected() {
    caught(
        "accepts-a-changed-state",
        ROUNDS,
        &["state-changed changed-state-accepted"],
    );
}

#[test]
fn a_state_that_is_good_for_two_removals() {
    caught("takes-a-state-twice", ROUNDS, &["state-twice effect-twice"]);
}

#[test]
fn a_question_that_nobody_can_be_asked() {
    let cells = [
        "declared-none asked-undeclared",
        "declared-url asked-undeclared",
    ];
    caught("asks-undeclared", PUSHED, &cells);
}

#[test]
fn a_question_pushed_in_the_rounds_era() {
    caught(
        "pushes-on-2026-07-28",
        ROUNDS,
        &["question pushed-in-rounds"],
    );
}

#[test]
fn a_form_that_is_not_legal() {
    caught("illegal-schema", ROUNDS, &["question illegal-question"]);
}

#[test]
fn a_server_that_dies_on_an_unknown_id() {
    caught("dies-on-an-unknown-id", PUSHED, &["unknown-id died"]);
}

#[test]
fn an_effect_for_a_client_that_cannot_be_asked() {
    let cells = [
        "declared-none effect-without-accept",
        "declared-url effect-without-accept",
    ];
    caught("removes-if-it-cannot-ask", PUSHED, &cells);
}
