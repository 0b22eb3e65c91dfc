//! `audit`: filters, a line per question, exports, and events as they happen.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::raw::{DEMO_SERVER, PATIENCE, PROGRAM, command};

/// Starts a gateway, on which one question is declined and another one waits.
fn two_questions(state: &Path) -> Gateway {
    let more = ["--hold", "0", "--name", "deploy-bot"];
    let mut gateway = Gateway::start(state, &more, &DEMO_SERVER);
    gateway.initialize();
    gateway.call(2, "deploy", &json!({"n": 1}));
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(gateway.answer(&id, &json!({"action": "decline"})), 200);
    gateway.result(2);
    // An entry is written a moment after its step: the first question's last one comes before the second is asked.
    while audit(state, &["--event", "delivered"]).0.is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    gateway.call(3, "deploy", &json!({"n": 2}));
    gateway.result(3);
    gateway.wait_for(1);
    gateway
}

fn audit(state: &Path, words: &[&str]) -> (Vec<String>, String) {
    let done = command(state, &[&["audit"], words].concat());
    let said = String::from_utf8(done.stderr).unwrap();
    let lines = String::from_utf8(done.stdout).unwrap();
    (lines.lines().map(str::to_owned).collect(), said)
}

#[test]
fn questions_are_found_by_outcome_person_caller_and_time() {
    let state = tempfile::tempdir().unwrap();
    let _gateway = two_questions(state.path());
    // Entries are written a moment after their step.
    for _ in 0..600 {
        let has = |event: &str| audit(state.path(), &["--event", event]).0.len();
        if has("asked") == 2 && has("declined") == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let (all, _) = audit(state.path(), &["--by-question"]);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all[0].contains("  open ") && all[0].contains("deploy on deploy-bot"),
        "{all:?}"
    );
    assert!(
        all[1].contains("  declined ") && all[1].contains("called by local"),
        "{all:?}"
    );
    for (words, count) in [
        (&["--by-question", "--outcome", "declined"][..], 1),
        (&["--by-question", "--outcome", "accepted"], 0),
        (&["--by-question", "--caller", "local"], 2),
        (&["--by-question", "--caller", "key-"], 0),
        (&["--by-question", "--person", "eve"], 0),
        (&["--by-question", "--since", "1h"], 2),
        (&["--by-question", "--until", "2020-01-01"], 0),
        (&["--outcome", "declined"], 1),
        (&["--event", "asked", "--since", "1h"], 2),
        // As it is stored, and as it is printed.
        (&["--event", "answered"], 0),
        (&["--event", "accepted"], 0),
    ] {
        let (lines, said) = audit(state.path(), words);
        assert_eq!(lines.len(), count, "{words:?}: {lines:?} {said}");
    }
    let (lines, said) = audit(state.path(), &["--since", "tomorrow"]);
    assert!(
        lines.is_empty() && said.contains("is not a time; use a day"),
        "{said}"
    );
    // Stored names stay in JSON; text has words.
    let (json, _) = audit(
        state.path(),
        &["--by-question", "--json", "--outcome", "declined"],
    );
    let question: Value = serde_json::from_str(&json[0]).unwrap();
    assert_eq!(
        (&question["outcome"], &question["principal"]),
        (&json!("declined"), &json!("local"))
    );
    let (csv, _) = audit(state.path(), &["--csv", "--event", "asked"]);
    assert!(
        csv[0].starts_with("number,time,event,question,server,"),
        "{csv:?}"
    );
    assert_eq!(csv.len(), 3, "{csv:?}");
    let columns = csv[0].split(',').count();
    assert!(
        csv[1].contains(",asked,") && csv[1].split(',').count() == columns,
        "{csv:?}"
    );
}

/// The number of questions that are asked while the audit is followed.
const ASKED: u64 = 5;

#[cfg(unix)]
#[test]
fn events_are_followed_once_each_until_ctrl_c() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = two_questions(state.path());
    let mut follow = Command::new(PROGRAM)
        .args(["audit", "--follow", "--json", "--state"])
        .arg(state.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (tell, lines) = mpsc::channel();
    let stdout = BufReader::new(follow.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            let _the_test_is_over = tell.send(serde_json::from_str::<Value>(&line).unwrap());
        }
    });
    let mut numbers = Vec::new();
    let mut asked = 0;
    let mut next = || {
        let line = lines.recv_timeout(PATIENCE).expect("an event");
        numbers.push(line["number"].as_u64().unwrap());
        asked += u64::from(line["entry"]["event"] == "asked");
        asked
    };
    while next() < 2 {}
    for number in 0..ASKED {
        gateway.call(10 + number, "deploy", &json!({"later": number}));
        gateway.result(10 + number);
    }
    while next() < 2 + ASKED {}
    let process = follow.id().to_string();
    let sent = Command::new("kill").args(["-INT", &process]).status();
    assert!(sent.unwrap().success());
    assert_eq!(follow.wait().unwrap().code(), Some(130));
    numbers.extend(lines.iter().map(|line| line["number"].as_u64().unwrap()));
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "none is missing, none is there twice");
}
