//! `kill -9` at any point: no answer of a person is lost, and none is delivered twice.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::asker::Asker;
use crate::gateway::{Gateway, NO_LIMITS, api};
use crate::raw::text;

/// The number of pending questions at the kill.
const PENDING: u64 = 100;
/// The number of kills, unless `MCP_ELICIT_KILLS` sets another.
const KILLS: u64 = 3;

/// Counts of the answers that were given before a kill, by result.
#[derive(Debug, Default)]
struct Tally {
    given: usize,
    before: usize,
    after: usize,
    /// Answers that were marked as delivered at the kill and that the server has not seen: delivered at most once.
    in_doubt: usize,
}

#[test]
fn killed_at_any_point_no_answer_is_lost_or_delivered_twice() {
    let kills = std::env::var("MCP_ELICIT_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let mut sum = Tally::default();
    for round in 0..kills {
        // A different point each time, the same in every run of the tests.
        let mut chance = Chance(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let tally = kill_once(&mut chance);
        sum.given += tally.given;
        sum.before += tally.before;
        sum.after += tally.after;
        sum.in_doubt += tally.in_doubt;
    }
    assert_eq!(sum.given, sum.before + sum.after + sum.in_doubt);
    report(kills, &sum);
}

#[expect(
    clippy::print_stderr,
    reason = "the numbers are what a long run is for"
)]
fn report(kills: u64, sum: &Tally) {
    eprintln!("{kills} kills with {PENDING} questions pending each: {sum:?}");
}

/// Numbers that look random, the same after the same start, which is not 0.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn open(state: &std::path::Path, asker: &Asker) -> Gateway {
    let mut more = vec!["--hold", "3600"];
    more.extend(NO_LIMITS);
    let mut gateway = Gateway::start(state, &more, &["--upstream", &asker.url]);
    gateway.initialize();
    for number in 0..PENDING {
        gateway.call(number + 10, "note", &json!({"n": number}));
    }
    gateway
}

fn kill_once(chance: &mut Chance) -> Tally {
    let asker = Asker::start();
    let state = tempfile::tempdir().unwrap();
    let mut first = open(state.path(), &asker);
    let questions: Vec<(u64, String)> = first
        .wait_for(usize::try_from(PENDING).unwrap())
        .iter()
        .map(|question| {
            let message = question["message"].as_str().unwrap();
            let number = message
                .trim_start_matches("Value for ")
                .trim_end_matches('?');
            (
                number.parse().unwrap(),
                question["id"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let given = give_until_killed(&mut first, &questions, chance);
    drop(first);

    let second = open(state.path(), &asker);
    let done = AtomicBool::new(false);
    let mut results: HashMap<u64, String> = HashMap::new();
    thread::scope(|threads| {
        threads.spawn(|| answer_all(&second.inbox, &second.token, &done));
        while results.len() < usize::try_from(PENDING).unwrap() {
            let frame = second.next();
            if !frame["method"].is_null() {
                // Progress for a call that waits.
                continue;
            }
            let number = frame["id"].as_u64().unwrap() - 10;
            let before = results.insert(number, text(&frame).to_owned());
            assert_eq!(before, None, "call {number} ended twice");
        }
        done.store(true, Ordering::Relaxed);
    });

    let mut reached: HashMap<(u64, String), usize> = HashMap::new();
    for told in asker.told() {
        *reached.entry(told).or_default() += 1;
    }
    for (told, times) in &reached {
        assert_eq!(*times, 1, "{told:?} was delivered {times} times");
    }
    let mut tally = Tally {
        given: given.len(),
        ..Tally::default()
    };
    for (number, id) in given {
        let value = format!("first {number}");
        let seen = reached.contains_key(&(number, value.clone()));
        let row = second
            .api("GET", &format!("/api/questions/{id}"), "")
            .unwrap()
            .json();
        assert_eq!(
            row["phase"], "answered",
            "an answer that was taken is in the record: {row}"
        );
        match (seen, results[&number] == value) {
            (true, true) => tally.after += 1,
            (true, false) => tally.before += 1,
            (false, _) => {
                assert!(
                    !row["deliveredAt"].is_null(),
                    "the answer to {number} is lost: {row}"
                );
                tally.in_doubt += 1;
            }
        }
    }
    tally
}

/// Lets four scripts answer as fast as they can until the gateway is killed. Returns the answers that the gateway
/// accepted.
fn give_until_killed(
    gateway: &mut Gateway,
    questions: &[(u64, String)],
    chance: &mut Chance,
) -> Vec<(u64, String)> {
    let given = Arc::new(Mutex::new(Vec::new()));
    let next = Arc::new(AtomicUsize::new(0));
    let scripts: Vec<_> = (0..4)
        .map(|_| {
            let (given, next) = (given.clone(), next.clone());
            let (inbox, token) = (gateway.inbox.clone(), gateway.token.clone());
            let questions = questions.to_vec();
            thread::spawn(move || {
                while let Some((number, id)) = questions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let body = json!({"action": "accept", "content": {"value": format!("first {number}")}});
                    let path = format!("/api/questions/{id}/answer");
                    match api(&inbox, &token, "POST", &path, &body.to_string()) {
                        Some(reply) if reply.status == 200 => {
                            given.lock().unwrap().push((*number, id.clone()));
                        }
                        Some(reply) => panic!("refused: {reply:?}"),
                        None => return,
                    }
                }
            })
        })
        .collect();
    let enough = usize::try_from(chance.below(PENDING)).unwrap();
    while given.lock().unwrap().len() < enough {
        thread::sleep(Duration::from_micros(100));
    }
    thread::sleep(Duration::from_micros(chance.below(5_000)));
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    for script in scripts {
        script.join().unwrap();
    }
    let given = given.lock().unwrap();
    given.clone()
}

/// Answers every pending question, with other values than before the kill.
fn answer_all(inbox: &str, token: &str, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let open = api(inbox, token, "GET", "/api/questions?most=1000", "")
            .unwrap()
            .json();
        for question in open["questions"].as_array().unwrap() {
            let message = question["message"].as_str().unwrap();
            let number = message
                .trim_start_matches("Value for ")
                .trim_end_matches('?');
            let body =
                json!({"action": "accept", "content": {"value": format!("second {number}")}});
            let path = format!("/api/questions/{}/answer", question["id"].as_str().unwrap());
            api(inbox, token, "POST", &path, &body.to_string());
        }
        thread::sleep(Duration::from_millis(20));
    }
}
