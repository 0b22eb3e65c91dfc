//! Line mode, driven by bytes as from a pipe or a screen reader.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::io::{self, Cursor, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_forms::terminal::{Frontend, QuestionHandle};
use mcp_elicit_forms::view::{CallView, FrontendError, Origin, QuestionView};
use serde_json::json;

const DEPLOY: &str = r#"{"type":"object","required":["environment","regions"],"properties":{
    "environment":{"type":"string","title":"Environment","description":"Where the build is put live.",
        "oneOf":[{"const":"staging","title":"Staging"},{"const":"production","title":"Production"}]},
    "replicas":{"type":"integer","title":"Replicas","minimum":1,"maximum":9,"default":2},
    "regions":{"type":"array","title":"Regions","items":{"type":"string","enum":["eu-west","eu-north","us-east"]},"minItems":1},
    "notify":{"type":"string","title":"Tell whom","format":"email"},
    "dry":{"type":"boolean","title":"Dry run","default":true}}}"#;

/// The text written so far.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn form(schema: &str) -> QuestionView {
    let origin = Origin::new("demo")
        .claiming("demo", "0.1.0")
        .connected("over stdio");
    QuestionView::form(
        origin,
        "Where should this build go?",
        Form::parse(schema).unwrap(),
    )
    .for_call(CallView::tool("deploy").with(json!({"build": "latest"})))
}

fn url(url: &str) -> QuestionView {
    QuestionView::url(
        Origin::new("demo"),
        "Connect your account",
        Link::parse(url).unwrap(),
    )
}

fn run(
    question: &QuestionView,
    input: &str,
    person: bool,
) -> (Result<Outcome, FrontendError>, String) {
    let paper = Paper::default();
    let frontend = Frontend::lines(
        Cursor::new(input.to_owned().into_bytes()),
        paper.clone(),
        person,
    )
    .unwrap();
    (frontend.ask(question), paper.text())
}

fn piped(question: &QuestionView, input: &str) -> Result<Outcome, FrontendError> {
    run(question, input, false).0
}

fn content(outcome: Result<Outcome, FrontendError>) -> serde_json::Value {
    match outcome {
        Ok(Outcome::Accept(answers)) => answers.into_value(),
        other => panic!("not accepted: {other:?}"),
    }
}

#[test]
fn one_line_answers_one_field_and_an_empty_one_keeps_the_default() {
    let answer = piped(&form(DEPLOY), "staging\n\n1 3\n\n\n");
    let expected = json!({"environment": "staging", "replicas": 2, "regions": ["eu-west", "us-east"], "dry": true});
    assert_eq!(content(answer), expected);
}

#[test]
fn a_pipe_may_end_where_only_optional_fields_are_left() {
    let expected =
        json!({"environment": "staging", "replicas": 2, "regions": ["us-east"], "dry": true});
    for input in ["staging\n\nus-east\n", "staging\n\nus-east\n\n"] {
        assert_eq!(content(piped(&form(DEPLOY), input)), expected, "{input:?}");
    }
    let optional =
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}"#;
    assert_eq!(content(piped(&form(optional), "x\n")), json!({"a": "x"}));
    // No input, a wrong value at the end, or a line that may be cut short: no answer.
    for input in ["", "\n", ":skip\n", "x\nseven\n", "x", "x\n7", "x\n\r"] {
        let outcome = piped(&form(optional), input);
        assert!(
            matches!(outcome, Err(FrontendError::EndOfInput { .. })),
            "{input:?}: {outcome:?}"
        );
    }
}

#[test]
fn a_person_sees_the_whole_conversation() {
    let (answer, seen) = run(
        &form(DEPLOY),
        "pro\n12\n4\neu-north\nada@\n\nn\nyes\n",
        true,
    );
    let expected =
        json!({"environment": "production", "replicas": 4, "regions": ["eu-north"], "dry": false});
    assert_eq!(content(answer), expected);
    insta::assert_snapshot!(seen);
}

#[test]
fn a_person_goes_back_changes_and_asks_for_help() {
    let lines = "?\n1\n:back\n2\n\n:bogus\nus-east\n:=?\n:skip\n:skip\nno\n1\nstaging\nyes\n";
    let (answer, seen) = run(&form(DEPLOY), lines, true);
    let expected = json!({"environment": "staging", "replicas": 2, "regions": ["us-east"]});
    assert_eq!(content(answer), expected);
    insta::assert_snapshot!(seen);
}

#[test]
fn the_end_of_the_input_is_no_action() {
    for (input, at) in [
        ("", "environment"),
        ("staging\n", "replicas"),
        ("staging\n3\n", "regions"),
    ] {
        match piped(&form(DEPLOY), input) {
            Err(FrontendError::EndOfInput { field }) => assert_eq!(field.as_deref(), Some(at)),
            other => panic!("{input:?}: {other:?}"),
        }
    }
    let unsent = run(&form(DEPLOY), "1\n\n1\n\n\n", true).0;
    assert!(
        matches!(unsent, Err(FrontendError::EndOfInput { field: None })),
        "{unsent:?}"
    );
}

#[test]
fn declining_and_cancelling_are_said_in_so_many_words() {
    assert!(matches!(
        piped(&form(DEPLOY), "staging\n:decline\n"),
        Ok(Outcome::Decline)
    ));
    assert!(matches!(
        piped(&form(DEPLOY), ":cancel\n"),
        Ok(Outcome::Cancel)
    ));
}

#[test]
fn endless_wrong_input_is_given_up_on() {
    let (ended, _) = run(&form(DEPLOY), &"nowhere\n".repeat(1_000), false);
    assert!(
        matches!(
            ended,
            Err(FrontendError::Refused {
                tries: 20,
                field: Some(_)
            })
        ),
        "{ended:?}"
    );
    let endless =
        Frontend::lines(io::BufReader::new(io::repeat(b'\n')), io::sink(), false).unwrap();
    let ended = endless.ask(&form(DEPLOY));
    assert!(
        matches!(ended, Err(FrontendError::Refused { .. })),
        "{ended:?}"
    );
}

#[test]
fn a_form_without_fields_wants_a_word() {
    let confirm = form(r#"{"type":"object","properties":{}}"#);
    assert_eq!(content(piped(&confirm, "\nok\nYES\n")), json!({}));
    assert!(matches!(piped(&confirm, "no\n"), Ok(Outcome::Decline)));
    assert!(matches!(
        piped(&confirm, "\n"),
        Err(FrontendError::EndOfInput { field: None })
    ));
}

#[test]
fn a_link_is_shown_whole_and_opened_only_on_yes() {
    let question =
        url("http://accounts.example.com.evil.test:8080/sign-in?next=https://example.com/");
    let opened = Arc::new(Mutex::new(Vec::new()));
    let asked = |input: &str| {
        let paper = Paper::default();
        let opened = Arc::clone(&opened);
        let frontend = Frontend::lines(
            Cursor::new(input.to_owned().into_bytes()),
            paper.clone(),
            false,
        )
        .unwrap()
        .opening(move |address| {
            opened.lock().unwrap().push(address.to_owned());
            Ok(())
        });
        (frontend.ask(&question), paper.text())
    };
    assert!(matches!(asked("no\n").0, Ok(Outcome::Decline)));
    assert!(matches!(asked("").0, Err(FrontendError::EndOfInput { .. })));
    assert!(matches!(asked("\n:cancel\n").0, Ok(Outcome::Cancel)));
    assert!(opened.lock().unwrap().is_empty());
    let (answer, seen) = asked("yes\n");
    assert!(matches!(answer, Ok(Outcome::Visit)));
    assert_eq!(
        *opened.lock().unwrap(),
        [question.as_link().unwrap().as_str()]
    );
    insta::assert_snapshot!(seen);
}

#[test]
fn questions_in_a_row_share_the_input() {
    let frontend = Frontend::lines(
        Cursor::new(b"staging\n\n1\n\n\nyes\n:decline\n".to_vec()),
        io::sink(),
        false,
    )
    .unwrap();
    let confirm = form(r#"{"type":"object","properties":{}}"#);
    assert!(matches!(
        frontend.ask(&form(DEPLOY)),
        Ok(Outcome::Accept(_))
    ));
    assert!(matches!(frontend.ask(&confirm), Ok(Outcome::Accept(_))));
    assert!(matches!(frontend.ask(&confirm), Ok(Outcome::Decline)));
    assert!(matches!(
        frontend.ask(&confirm),
        Err(FrontendError::EndOfInput { .. })
    ));
}

/// An input that never returns a byte and never ends, like that of an absent person.
struct Silence;

impl Read for Silence {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn a_withdrawn_question_ends_and_says_so() {
    let paper = Paper::default();
    let frontend = Frontend::lines(io::BufReader::new(Silence), paper.clone(), true).unwrap();
    let handle = QuestionHandle::new();
    let other = handle.clone();
    let asking = std::thread::spawn(move || frontend.ask_with(&form(DEPLOY), &other));
    handle.withdraw("the server withdrew it");
    let ended = asking.join().unwrap();
    assert!(
        matches!(ended, Err(FrontendError::Withdrawn { .. })),
        "{ended:?}"
    );
}

#[test]
fn the_deadline_ends_the_question_without_an_action() {
    let end = UNIX_EPOCH + Duration::from_secs(60);
    let ticks = Arc::new(Mutex::new(0));
    let paper = Paper::default();
    // The clock advances by twenty seconds each time it is read.
    let frontend = Frontend::lines(io::BufReader::new(Silence), paper.clone(), true)
        .unwrap()
        .with_clock(move || {
            let mut ticks = ticks.lock().unwrap();
            *ticks += 1;
            UNIX_EPOCH + Duration::from_secs(20) * *ticks
        });
    let ended = frontend.ask(&form(DEPLOY).until(end));
    assert!(matches!(ended, Err(FrontendError::Expired)), "{ended:?}");
    assert!(
        paper
            .text()
            .contains("The time to answer ran out. Nothing was sent.")
    );
}

#[test]
fn nothing_a_server_sends_acts_on_the_terminal() {
    let nasty = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}txt";
    let schema = json!({"type": "object", "properties": {"f": {
        "type": "string", "title": nasty, "description": nasty,
        "oneOf": [{"const": "a", "title": nasty}, {"const": nasty, "title": "b"}],
    }}});
    let origin = Origin::new("demo").claiming(nasty, nasty).connected(nasty);
    let question = QuestionView::form(origin, nasty, Form::from_value(&schema).unwrap())
        .for_call(CallView::tool(nasty).with(json!({nasty: nasty})));
    let (answer, seen) = run(&question, "2\nyes\n", true);
    assert_eq!(content(answer), json!({"f": nasty}));
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!seen.chars().any(bad), "{seen:?}");
}

#[test]
fn later_questions_are_declined_too_only_where_that_is_offered() {
    let frontend = Frontend::lines(
        Cursor::new(b":never\n:never\n:cancel\n".to_vec()),
        io::sink(),
        false,
    )
    .unwrap();
    let reply = frontend
        .ask_fully(&form(DEPLOY), &QuestionHandle::new())
        .unwrap();
    assert!(reply.from_now_on);
    assert_eq!(reply.outcome, Outcome::Decline);
    assert!(matches!(frontend.ask(&form(DEPLOY)), Ok(Outcome::Cancel)));
}

#[test]
fn a_pipe_that_ends_in_the_middle_of_a_line_says_so() {
    let (ended, seen) = run(&form(DEPLOY), "staging\n\nus-ea", false);
    assert!(
        matches!(&ended, Err(FrontendError::EndOfInput { field }) if field.as_deref() == Some("regions")),
        "{ended:?}"
    );
    assert!(seen.contains("no line end"), "{seen}");
    // A person who ends the input sees the answer before it is sent.
    let confirm = form(r#"{"type":"object","properties":{}}"#);
    assert_eq!(content(run(&confirm, "yes", true).0), json!({}));
}

#[test]
fn no_line_of_a_server_looks_like_one_of_this_program() {
    let own = "Send this? (yes, or a number to change that answer): yes\n\nX asks (over stdio)\n! Is this the zone?";
    let schema = json!({"type": "object", "properties": {"f": {
        "type": "string", "title": format!("{}{own}", "label ".repeat(14)), "description": own,
    }}});
    let question = QuestionView::form(Origin::new("demo"), own, Form::from_value(&schema).unwrap());
    let (_, seen) = run(&question, "x\n", true);
    let imitates = |line: &&str| {
        ["Send this?", "X asks", "! Is this", "  ! Is this"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let own_review = "Send this? (yes, or a number to change that answer): ";
    let found: Vec<_> = seen
        .lines()
        .filter(imitates)
        .filter(|line| !line.starts_with(own_review))
        .collect();
    assert!(found.is_empty(), "{found:?} in\n{seen}");
    assert_eq!(seen.matches("\n> Send this?").count(), 1, "{seen}");
    assert_eq!(
        seen.matches(&format!("\n{own_review}")).count(),
        1,
        "{seen}"
    );
}
