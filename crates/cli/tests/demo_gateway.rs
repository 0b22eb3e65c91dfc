//! `demo --gateway`: three real processes, an inbox, and an answer that arrives.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use mcp_elicit_testkit::peers::{Finished, PeerProgram};
use serde_json::Value;

fn demo(args: &[&str]) -> Finished {
    let program = PeerProgram::new(env!("CARGO_BIN_EXE_mcp-elicit")).with(["demo", "--gateway"]);
    program.with(args.iter().copied()).run()
}

fn events(args: &[&str]) -> (Option<i32>, Vec<Value>, String) {
    let run = demo(&[&["--json"], args].concat());
    (run.status.code(), run.lines(), run.stderr)
}

fn named<'e>(events: &'e [Value], name: &str) -> &'e Value {
    let found = events.iter().find(|event| event["event"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {events:?}"))
}

#[test]
fn a_prepared_answer_goes_through_the_inbox() {
    let (code, events, said) = events(&["--answer", "environment=staging"]);
    assert_eq!(code, Some(0), "{events:?}\n{said}");
    let order: Vec<&str> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert_eq!(
        order,
        ["connected", "asked", "answered", "result"],
        "{events:?}"
    );
    let asked = named(&events, "asked");
    assert_eq!(
        (asked["where"].as_str(), asked["tool"].as_str()),
        (Some("inbox"), Some("deploy"))
    );
    let answered = named(&events, "answered");
    assert_eq!(
        (answered["phase"].as_str(), answered["by"].as_str()),
        (Some("answered"), Some("on the command line"))
    );
    let result = named(&events, "result").to_string();
    assert!(result.contains("staging"), "{result}");
}

#[test]
fn a_no_and_no_choice_arrive_as_what_they_are() {
    for (option, phase) in [("--decline", "declined"), ("--cancel", "cancelled")] {
        let (code, events, said) = events(&[option]);
        assert_eq!(code, Some(5), "{said}");
        assert_eq!(named(&events, "answered")["phase"], phase, "{said}");
        named(&events, "result");
    }
}

#[test]
fn people_are_told_what_happens() {
    let run = demo(&["--answer", "environment=staging"]);
    assert!(run.status.success(), "{}", run.stderr);
    for words in [
        "cannot ask",
        "The server asks",
        "inbox",
        "answered on the command line",
    ] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    assert!(run.stdout.contains("staging"), "{}", run.stdout);
    assert!(
        !run.stderr.contains("key="),
        "no login where nobody needs it"
    );
}

#[test]
fn an_answer_that_does_not_fit_is_not_handed_in() {
    let (code, events, said) = events(&["--answer", "environment=the moon"]);
    assert_ne!(code, Some(0), "{said}");
    assert!(
        events.iter().all(|event| event["event"] != "answered"),
        "{events:?}"
    );
    named(&events, "error");
}

#[test]
fn the_link_leads_to_the_form_and_another_terminal_lists_and_answers_the_question() {
    let program = env!("CARGO_BIN_EXE_mcp-elicit");
    let mut demo = Command::new(program)
        .args(["demo", "--gateway"])
        // No browser is opened here.
        .env("PATH", "")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the demo starts");
    let mut said = BufReader::new(demo.stderr.take().expect("it is piped")).lines();
    let mut line_with = |words: &str| {
        let mut lines = said.by_ref().map(|line| line.expect("it is text"));
        lines.find(|line| line.contains(words)).expect(words)
    };
    let link = line_with("Answer here:");
    let (_, question) = link.split_once("&next=/q/").expect("a link to the form");
    let other = line_with("Or in another terminal:");
    let (_, list) = other
        .split_once("mcp-elicit inbox list ")
        .expect("a command");
    let state: Vec<&str> = list.split(' ').collect();
    let inbox = |action: &[&str]| {
        let mut command = Command::new(program);
        let run = command.arg("inbox").args(action).args(&state).output();
        let run = run.expect("the command runs");
        assert!(run.status.success(), "{run:?}");
        String::from_utf8(run.stdout).expect("it is text")
    };
    let listed = inbox(&["list", "--json"]);
    assert!(listed.contains(question.trim()), "{listed}");
    inbox(&["accept", question.trim(), "environment=staging"]);
    let ended = demo.wait_with_output().expect("it ends");
    assert!(ended.status.success());
    let result = String::from_utf8(ended.stdout).expect("it is text");
    assert!(result.contains("staging"), "{result}");
}
