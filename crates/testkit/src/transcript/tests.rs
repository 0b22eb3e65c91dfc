use serde_json::json;

use super::replay::{Replay, ReplayStep};
use super::*;

const GREETING: &str = r#"# A greeting.
# More words.
revision: 2025-11-25

C->S {"id": "$call", "method": "tools/call"}
S->C? {"method": "notifications/started"}
S->C {"id": "$ask", "method": "elicitation/create",
      "params": {"message": "Who?", "...": "..."}}
person: accept {"name": "Ada"}
C->S {"id": "$ask", "result": {"content": {"name": "Ada"}}}
time: 3
outcome: answered
S->C {"id": "$call", "result": {"price": "$$5", "x": "$_"}}
"#;

fn greeting() -> Transcript {
    Transcript::parse(GREETING).unwrap()
}

#[test]
fn a_transcript_is_read_with_its_line_numbers() {
    let transcript = greeting();
    assert_eq!(transcript.title, "A greeting.");
    assert_eq!(transcript.revision, "2025-11-25");
    let numbers: Vec<usize> = transcript.lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, [5, 6, 7, 9, 10, 11, 12, 13]);
}

#[test]
fn what_cannot_be_read_says_where() {
    for (text, place) in [
        ("revision: x\n", "1: the first line"),
        ("# t\n", "1: there is no `revision:`"),
        ("# t\nrevision: x\nC->S {\n", "3: "),
        ("# t\n  {}\n", "2: an indented line"),
        ("# t\nrevision: x\nperson: shrugs\n", "3: a person can"),
        ("# t\nrevision: x\ntime: soon\n", "3: `time:`"),
        ("# t\nrevision: x\nX->Y {}\n", "3: no such kind"),
    ] {
        let told = Transcript::parse(text).unwrap_err().to_string();
        assert!(told.starts_with(place), "{told}");
    }
}

#[test]
fn the_client_is_played_against_a_server() {
    let transcript = greeting();
    let mut replay = Replay::playing(&transcript, Side::Client);
    assert!(
        matches!(replay.step(), ReplayStep::Send(text) if text == r#"{"id":"call","method":"tools/call"}"#)
    );
    assert!(matches!(replay.step(), ReplayStep::Receive));
    replay
        .received(r#"{"method":"notifications/progress"}"#)
        .unwrap();
    replay
        .received(
            r#"{"id":7,"method":"elicitation/create","params":{"message":"Who?","mode":"form"}}"#,
        )
        .unwrap();
    assert!(matches!(
        replay.step(),
        ReplayStep::Person {
            action: "accept",
            content: Some(_)
        }
    ));
    assert!(
        matches!(replay.step(), ReplayStep::Send(text) if text == r#"{"id":7,"result":{"content":{"name":"Ada"}}}"#)
    );
    assert!(matches!(replay.step(), ReplayStep::Time { seconds: 3 }));
    assert!(matches!(
        replay.step(),
        ReplayStep::Outcome { phase: "answered" }
    ));
    assert!(matches!(replay.step(), ReplayStep::Receive));
    let wrong = replay
        .received(r#"{"id":"call","result":{"price":"5","x":[]}}"#)
        .unwrap_err();
    assert_eq!(wrong.number, Some(13));
    assert!(wrong.why.contains("/result/price"), "{wrong}");
    replay
        .received(r#"{"id":"call","result":{"price":"$5","x":[]}}"#)
        .unwrap();
    assert!(matches!(replay.step(), ReplayStep::Done));
    assert_eq!(replay.received("{}").unwrap_err().number, None);
}

#[test]
fn messages_in_a_row_come_in_any_order_and_each_once() {
    let text = "# t\nrevision: x\nS->C {\"id\": \"$a\", \"q\": 1}\nS->C {\"id\": \"$b\", \"q\": 2}\nC->S {\"done\": [\"$a\", \"$b\"]}\n";
    let transcript = Transcript::parse(text).unwrap();
    let mut replay = Replay::playing(&transcript, Side::Client);
    replay.received(r#"{"id":"two","q":2}"#).unwrap();
    assert!(replay.received(r#"{"id":"two","q":2}"#).is_err());
    assert!(matches!(replay.step(), ReplayStep::Receive));
    replay.received(r#"{"id":"one","q":1}"#).unwrap();
    assert!(matches!(replay.step(), ReplayStep::Send(text) if text == r#"{"done":["one","two"]}"#));
}

#[test]
fn more_members_come_only_where_they_may() {
    let mut bindings = Bindings::default();
    bindings
        .take(&json!({"a": 1, "...": "..."}), &json!({"a": 1.0, "b": 2}))
        .unwrap();
    let more = bindings
        .take(&json!({"a": {"b": 1}}), &json!({"a": {"b": 1, "c": 2}}))
        .unwrap_err();
    assert_eq!(more.pointer, "/a");
    bindings
        .take(&json!({"a": 1}), &json!({"a": 1, "_meta": {}}))
        .unwrap();
    let less = bindings.take(&json!({"a": 1}), &json!({})).unwrap_err();
    assert_eq!(less.why, "`a` is missing");
    // A message that did not match sets no placeholder.
    assert!(bindings.take(&json!(["$n", 1]), &json!([5, 2])).is_err());
    assert!(bindings.get("n").is_none());
}

#[test]
fn every_transcript_of_the_project_can_be_read() {
    let all = Transcript::all().unwrap();
    assert!(!all.is_empty());
    for (path, transcript) in all {
        assert!(!transcript.lines.is_empty(), "{}", path.display());
    }
}
