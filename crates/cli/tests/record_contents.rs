//! `record stats`, `record export`, `record purge` and `record erase`, beside a running gateway, on both kinds of record.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod raw;

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use mcp_elicit_testkit::postgres::PostgresServer;
use raw::{DEMO_SERVER, PROGRAM, Raw, gateway, inbox, text};
use serde_json::{Value, json};

/// The interval at which something is looked at, and the number of times before a test gives up.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: usize = 1_200;

/// A running gateway, and the options that name its record.
struct Rig<'a> {
    state: &'a Path,
    record: Vec<&'a str>,
    raw: Raw,
}

impl<'a> Rig<'a> {
    fn start(state: &'a Path, record: Vec<&'a str>) -> Self {
        let mut raw = Raw::start(gateway(state, &record, &DEMO_SERVER));
        raw.initialize("2025-11-25", &json!({}));
        Self { state, record, raw }
    }

    /// Runs a command about the record. Returns its stdout and stderr.
    fn run(&self, words: &[&str]) -> (String, String) {
        let done = Command::new(PROGRAM)
            .args(words)
            .arg("--state")
            .arg(self.state)
            .args(&self.record)
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(0), "{words:?} {done:?}");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(done.stdout), text(done.stderr))
    }

    fn stats(&self) -> Value {
        let (stats, _) = self.run(&["record", "stats", "--json"]);
        serde_json::from_str(&stats).unwrap()
    }

    /// Calls the tool that asks. Returns the id of the question.
    fn ask(&mut self, call: u64) -> String {
        self.raw.call(call, "deploy", &json!({}));
        for _ in 0..LOOKS {
            let (_, open) = inbox(self.state, &["list"]);
            if let [question] = open.as_slice() {
                return question["id"].as_str().unwrap().to_owned();
            }
            sleep(LOOK);
        }
        panic!("no question was asked");
    }

    /// Lets a question end with an answer.
    fn end(&mut self, call: u64) {
        let id = self.ask(call);
        assert!(inbox(self.state, &["accept", &id, "environment=staging"]).0);
        let done = self.raw.result(call);
        assert!(text(&done).contains("staging"), "{done}");
    }

    /// Waits until this number of questions has ended.
    fn until_ended(&self, expected: u64) {
        let is = |_| {
            let has = self.stats()["ended"] == json!(expected);
            if !has {
                sleep(LOOK);
            }
            has
        };
        assert!((0..LOOKS).any(is), "{}", self.stats());
    }
}

fn counts_and_deletes(mut rig: Rig<'_>) {
    rig.end(2);
    rig.until_ended(1);
    rig.ask(3);
    let stats = rig.stats();
    assert_eq!((&stats["waiting"], &stats["ended"]), (&json!(1), &json!(1)));
    assert_eq!(stats["waitingByServer"].as_object().unwrap().len(), 1);
    assert!(stats["oldestWaiting"].is_u64() && stats["oldestEnded"].is_u64());
    assert!(stats["auditEvents"].as_u64().unwrap() > 3 && stats["bytes"].as_u64().unwrap() > 0);
    let (shown, _) = rig.run(&["record", "stats"]);
    assert!(shown.contains("questions that wait") && shown.contains("the oldest since"));

    // What waits comes first. Nobody's answer is in it, and nothing counts as shown.
    let export = |more: &[&str]| {
        let (lines, said) = rig.run(&[&["record", "export"], more].concat());
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        (lines.collect::<Vec<_>>(), said)
    };
    let (lines, said) = export(&[]);
    assert!(lines.len() == 2 && said.contains("2 questions"), "{said}");
    let phases = lines.iter().map(|line| line["phase"].as_str().unwrap());
    assert_eq!(phases.collect::<Vec<_>>(), ["asked", "answered"]);
    assert!(lines.iter().all(|line| line["requestedSchema"].is_object()));
    assert!(!lines[1].to_string().contains("\"staging\":"));
    assert_eq!(export(&["--principal", "somebody"]).0.len(), 0);
    let caller = lines[0]["principal"].as_str().unwrap();
    assert_eq!(export(&["--principal", caller, "--kept"]).0.len(), 2);

    // What has not ended before the time stays, and so does what waits.
    let purge = |more: &[&str]| rig.run(&[&["record", "purge"], more].concat()).1;
    let said = purge(&["--before", "7d"]);
    assert!(said.contains("nothing was deleted"), "{said}");
    let said = purge(&["--before", "2100-01-01", "--dry-run"]);
    assert!(said.contains("1 ended question would be deleted"), "{said}");
    assert_eq!(rig.stats()["ended"], 1);
    let said = purge(&["--before", "2100-01-01"]);
    assert!(said.contains("1 ended question deleted"), "{said}");
    let stats = rig.stats();
    assert_eq!((&stats["waiting"], &stats["ended"]), (&json!(1), &json!(0)));

    // Of one caller: what waits is named.
    let (audit, _) = rig.run(&["audit", "--json"]);
    let caller = audit.lines().find_map(|line| {
        let entry: Value = serde_json::from_str(line).unwrap();
        let find = |entry: &Value| Some(entry["principal"].as_str()?.to_owned());
        find(&entry).or_else(|| find(&entry["entry"]))
    });
    let caller = caller.unwrap();
    assert!(audit.contains("purged"), "{audit}");
    let id = inbox(rig.state, &["list"]).1[0]["id"].clone();
    let erase = ["record", "erase", "--principal", &caller];
    let (_, said) = rig.run(&erase);
    assert!(
        said.contains("nothing was deleted") && said.contains("1 of this caller still wait"),
        "{said}"
    );
    assert!(inbox(rig.state, &["decline", id.as_str().unwrap()]).0);
    rig.until_ended(1);
    let (_, said) = rig.run(&["record", "erase", "--principal", "somebody"]);
    assert!(said.contains("nothing was deleted"), "{said}");
    assert!(
        said.contains("of this caller") && said.contains("key-ID"),
        "{said}"
    );
    let (_, said) = rig.run(&erase);
    assert!(said.contains("1 ended question deleted"), "{said}");
    assert_eq!(rig.stats()["ended"], 0);
    let (verified, told) = rig.run(&["audit", "--verify"]);
    assert!(!format!("{verified}{told}").contains("broken"));
}

#[test]
fn a_record_in_a_state_folder_is_counted_and_cut_beside_its_gateway() {
    let state = tempfile::tempdir().unwrap();
    counts_and_deletes(Rig::start(state.path(), Vec::new()));
}

#[test]
fn a_record_in_a_database_is_counted_and_cut_beside_its_gateway() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let state = tempfile::tempdir().unwrap();
    let record = vec!["--record", database.address.as_str()];
    counts_and_deletes(Rig::start(state.path(), record));
}

#[test]
fn a_time_that_cannot_be_read_deletes_nothing() {
    let state = tempfile::tempdir().unwrap();
    let done = Command::new(PROGRAM)
        .args(["record", "purge", "--before", "yesterday", "--state"])
        .arg(state.path())
        .output()
        .unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("is not a time"), "{said}");
}
