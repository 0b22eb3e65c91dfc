//! Calls that become tasks (2026-07-28, tasks extension), from the command line: a task's question is shown to the
//! person like any other, once, however often the task is polled.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod example;

use mcp_elicit_testkit::peers::PeerProgram;
use serde_json::{Value, json};

use example::{conformance_server, listening};

/// Returns the events of one call without the first, which names the connection.
fn call(url: &str, tool: &str, answer: &[&str]) -> Vec<Value> {
    let done = PeerProgram::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .with([
            "call",
            tool,
            "--url",
            url,
            "--protocol",
            "2026-07-28",
            "--json",
        ])
        .with(answer.iter().copied())
        .run();
    let mut events: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        events.remove(0)["protocol"],
        "2026-07-28",
        "{}",
        done.stderr
    );
    events
}

fn text(events: &[Value]) -> &Value {
    &events.last().unwrap()["result"]["content"][0]["text"]
}

#[test]
fn what_a_task_asks_is_answered_once() {
    let (_server, url) = listening(&conformance_server());

    let events = call(&url, "confirm_delete", &["--answer", "confirm=true"]);
    assert_eq!(events.len(), 3, "{events:?}");
    assert_eq!(events[0]["message"], "Delete file.txt?");
    assert_eq!(events[1]["content"], json!({"confirm": true}));
    assert_eq!(text(&events), "deleted file.txt");

    let events = call(&url, "multi_input", &["--answer", "name=Ada"]);
    let asked: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"] == "asked")
        .map(|event| &event["message"])
        .collect();
    assert_eq!(asked, ["The first name?", "The second name?"]);
    assert_eq!(text(&events), "Ada and Ada");

    // A question before the task and none in it.
    let events = call(&url, "test_tool_with_task", &["--answer", "name=Ada"]);
    assert_eq!(text(&events), "Hello, Ada!");
}

#[test]
fn a_task_hears_who_refused() {
    let (_server, url) = listening(&conformance_server());
    for act in ["--decline", "--cancel"] {
        let events = call(&url, "confirm_delete", &[act]);
        assert_eq!(
            events[1]["action"],
            act.trim_start_matches('-'),
            "{events:?}"
        );
        assert_ne!(text(&events), "deleted file.txt", "{events:?}");
    }
}
