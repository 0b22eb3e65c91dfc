//! Inspector's `mcpdo` sends any answer without checking the form: `mcp-elicit demo-server` must reject it.

use mcp_elicit_testkit::peers::mcpdo::{InspectorEra, Mcpdo};
use mcp_elicit_testkit::peers::{self, Listening, PeerProgram};
use serde_json::Value;

fn demo() -> Listening {
    let port = peers::free_port();
    let program = PeerProgram::new(env!("CARGO_BIN_EXE_mcp-elicit"));
    let program = program.with(["demo-server", "--http", &format!("127.0.0.1:{port}")]);
    program.listen_on(port, format!("http://127.0.0.1:{port}/mcp"))
}

fn message(asked: &Value) -> &str {
    asked["elicitationPending"]["message"]
        .as_str()
        .unwrap_or_else(|| panic!("nothing is asked: {asked}"))
}

/// A right answer is still accepted after wrong ones; only wrong answers end the call.
fn not_taken(era: InspectorEra) {
    let demo = demo();
    let Some(mcpdo) = Mcpdo::connect(demo.url(), era) else {
        return;
    };

    let first = mcpdo.call("deploy", &[]);
    assert!(!message(&first).contains("cannot be used"), "{first}");
    let again = mcpdo.respond(&first, &[r#"{"environment":"the moon","note":7}"#]);
    assert!(message(&again).contains("environment"), "{again}");
    assert!(
        message(&again).contains("note"),
        "every violation is told: {again}"
    );
    assert!(!message(&again).contains("the moon"), "{again}");
    let done = mcpdo.respond(&again, &["environment:=staging", "planet:=mars"]);
    let text = done["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("staging"), "{done}");
    assert!(
        !text.contains("mars"),
        "a field nobody asked for reached the author: {done}"
    );

    let mut asked = mcpdo.call("deploy", &[]);
    for _ in 0..10 {
        if asked["elicitationPending"].is_null() {
            break;
        }
        asked = mcpdo.respond(&asked, &["note:=no environment at all"]);
    }
    assert!(
        asked["elicitationPending"].is_null(),
        "asked for ever: {asked}"
    );
    assert!(
        asked["error"].is_object() || asked["isError"] == true,
        "{asked}"
    );
    assert!(
        !asked.to_string().contains("no environment at all"),
        "{asked}"
    );
}

#[test]
fn wrong_answers_are_not_taken_on_the_pushed_era() {
    not_taken(InspectorEra::Legacy);
}

#[test]
fn wrong_answers_are_not_taken_in_rounds() {
    not_taken(InspectorEra::Modern);
}

#[test]
fn refusals_are_told_apart() {
    let demo = demo();
    let Some(mcpdo) = Mcpdo::connect(demo.url(), InspectorEra::Modern) else {
        return;
    };
    let declined = mcpdo
        .respond(&mcpdo.call("deploy", &[]), &["--decline"])
        .to_string();
    assert!(declined.contains("declined"), "{declined}");
    let cancelled = mcpdo
        .respond(&mcpdo.call("deploy", &[]), &["--cancel"])
        .to_string();
    assert!(cancelled.contains("dismissed"), "{cancelled}");
}
