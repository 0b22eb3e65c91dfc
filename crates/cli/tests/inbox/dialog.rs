//! `kill -9` while a client answers in its own dialog. Its answer is written behind, so a kill may lose it, but never
//! leaves an answer to be delivered that the server has already received.

use std::collections::HashMap;
use std::ops::DerefMut as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::asker::Asker;
use crate::gateway::{Gateway, NO_LIMITS, REVISION};
use crate::raw;

/// The number of open calls at the kill.
const CALLS: u64 = 60;
/// The number of kills, each at another point.
const KILLS: u64 = 4;

#[test]
fn killed_at_any_point_no_dialogs_answer_is_delivered_twice() {
    for round in 0..KILLS {
        let asker = Asker::start();
        let state = tempfile::tempdir().unwrap();
        answer_until_killed(state.path(), &asker, round);

        let mut second = open(state.path(), &asker);
        let mut ended = 0;
        while ended < CALLS {
            let frame = second.next();
            if frame["method"] == "elicitation/create" {
                answer(&mut second, &frame, "second");
            } else if frame["id"].as_u64().is_some_and(|id| id >= 10) {
                ended += 1;
            }
        }

        let mut reached: HashMap<(u64, String), usize> = HashMap::new();
        for told in asker.told() {
            *reached.entry(told).or_default() += 1;
        }
        let delivered = reached.keys().any(|(_, value)| value.starts_with("first"));
        assert!(delivered, "none was delivered before the kill");
        for (told, times) in &reached {
            assert_eq!(*times, 1, "{told:?} was delivered {times} times");
        }
        drop(second);
        let audit = raw::command(state.path(), &["audit", "--verify"]);
        assert!(audit.status.success(), "the chain is whole: {audit:?}");
    }
}

/// Returns a client that can be asked, with all its calls open.
fn open(state: &Path, asker: &Asker) -> Gateway {
    let mut gateway = Gateway::start(state, &NO_LIMITS, &["--upstream", &asker.url]);
    let capabilities = json!({"elicitation": {"form": {}}});
    gateway.deref_mut().initialize(REVISION, &capabilities);
    for number in 0..CALLS {
        gateway.call(number + 10, "note", &json!({"n": number}));
    }
    gateway
}

fn answer(gateway: &mut Gateway, question: &Value, word: &str) {
    let message = question["params"]["message"].as_str().unwrap();
    let number = message
        .trim_start_matches("Value for ")
        .trim_end_matches('?');
    let result = json!({"action": "accept", "content": {"value": format!("{word} {number}")}});
    gateway.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
}

fn answer_until_killed(state: &Path, asker: &Asker, round: u64) {
    let mut gateway = open(state, asker);
    let mut answered = 0;
    while answered < 10 + round * 12 {
        let frame = gateway.next();
        if frame["method"] == "elicitation/create" {
            answer(&mut gateway, &frame, "first");
            answered += 1;
        }
    }
    // Some answers were delivered, some are in transit, and the record is behind.
    while asker.told().is_empty() {
        thread::sleep(Duration::from_micros(100));
    }
    thread::sleep(Duration::from_millis(round * 4));
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
}
