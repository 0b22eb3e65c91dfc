//! Calls that many clients make through a balancer, people who answer them, and the check that nothing was lost.

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::balancer::{self, Addresses};
use super::replica::{Deployment, Desk, LOOK, LOOKS, Replica};
use super::rounds_client::make_call;
use crate::asker::Asker;
use crate::killed::Chance;
use crate::raw::text;

/// Seconds for which a call is held before it is handed back.
pub(crate) const HOLD: u32 = 4;
/// The time after which a client gives up a call whose connection says nothing.
const GIVES_UP: Duration = Duration::from_secs(15);
/// The number of looks in which every call ends once nothing is killed any more.
const ENDS: usize = 3 * LOOKS;
/// The number of looks in which a delivery that was cut off is known to be in doubt, at most.
const DECIDED: usize = 600;

/// Returns the number that this variable sets.
pub(crate) fn set(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}

/// The clients, the people, and what they have seen.
#[derive(Default)]
pub(crate) struct Run {
    desks: Mutex<Vec<Option<Desk>>>,
    addresses: Addresses,
    /// No new call begins.
    closing: AtomicBool,
    /// Every call has ended.
    ended: AtomicBool,
    calls: AtomicU64,
    tries: AtomicU64,
    /// Answers that were shown as saved: the value with the question's id.
    saved: Mutex<HashMap<String, String>>,
    counts: Mutex<BTreeMap<String, u64>>,
    /// Results of calls.
    results: Mutex<HashMap<u64, String>>,
}

impl Run {
    /// Starts so many replicas, behind a balancer. Returns them too.
    pub(crate) fn start(deployment: &Deployment, replicas: usize) -> (Self, Vec<Replica>) {
        let run = Self::default();
        run.desks.lock().unwrap().resize(replicas, None);
        run.addresses.lock().unwrap().resize(replicas, None);
        let start = |number| deployment.start(number).expect("it starts");
        let running: Vec<Replica> = (0..replicas).map(start).collect();
        for (number, replica) in running.iter().enumerate() {
            run.put(number, Some(replica));
        }
        (run, running)
    }

    /// Makes so many calls at once, one after the other, and answers them, while this happens to the replicas. Returns
    /// once every call has ended.
    pub(crate) fn during(
        &self,
        calls: u64,
        running: &mut [Replica],
        chance: &mut Chance,
        happens: impl FnOnce(&mut [Replica], &mut Chance),
    ) {
        let at = balancer::start(Arc::clone(&self.addresses));
        thread::scope(|threads| {
            let clients: Vec<_> = (0..calls)
                .map(|_| threads.spawn(|| self.make_calls(&at)))
                .collect();
            for _ in 0..3 {
                let chance = Chance(chance.below(u64::MAX) | 1);
                threads.spawn(move || self.answer(chance));
            }
            let happened = AssertUnwindSafe(|| happens(running, chance));
            if std::panic::catch_unwind(happened).is_err() {
                // The clients would wait for ever.
                stop_with(self, running, "a check has failed");
            }
            self.closing.store(true, Ordering::Relaxed);
            let mut looks = 0..ENDS;
            while !clients.iter().all(thread::ScopedJoinHandle::is_finished) {
                let left = self.calls.load(Ordering::Relaxed)
                    - u64::try_from(self.results().len()).unwrap();
                if looks.next().is_none() {
                    self.ended.store(true, Ordering::Relaxed);
                    stop_with(self, running, &format!("{left} calls do not end"));
                }
                thread::sleep(LOOK);
            }
            self.ended.store(true, Ordering::Relaxed);
        });
    }

    /// Returns the results of the calls so far.
    pub(crate) fn results(&self) -> HashMap<u64, String> {
        self.results.lock().unwrap().clone()
    }

    fn count(&self, what: &str) {
        *self
            .counts
            .lock()
            .unwrap()
            .entry(what.to_owned())
            .or_default() += 1;
    }

    /// Sends clients and people to this replica; `None` while it does not run.
    pub(crate) fn put(&self, number: usize, replica: Option<&Replica>) {
        self.desks.lock().unwrap()[number] = replica.map(Replica::desk);
        self.addresses.lock().unwrap()[number] = replica.map(|replica| replica.serving.clone());
    }

    fn any_desk(&self, chance: &mut Chance) -> Option<Desk> {
        let desks = self.desks.lock().unwrap();
        let running: Vec<&Desk> = desks.iter().flatten().collect();
        let count = u64::try_from(running.len()).unwrap();
        let chosen = usize::try_from(chance.below(count.max(1))).unwrap();
        running.get(chosen).copied().cloned()
    }

    /// Answers questions at any replica until every call has ended.
    fn answer(&self, mut chance: Chance) {
        while !self.ended.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(chance.below(40)));
            let Some(desk) = self.any_desk(&mut chance) else {
                continue;
            };
            // Those of the clients with a dialog are theirs.
            let mut waiting = desk.waiting();
            waiting.retain(|(call, _)| !has_dialog(*call));
            for _ in 0..4 {
                if waiting.is_empty() {
                    break;
                }
                let chosen = chance.below(u64::try_from(waiting.len()).unwrap());
                let (call, id) = waiting.swap_remove(usize::try_from(chosen).unwrap());
                // Half are given at another replica than the one that listed them.
                let desk = self.any_desk(&mut chance).unwrap_or_else(|| desk.clone());
                self.give(&desk, call, &id);
            }
        }
    }

    fn give(&self, desk: &Desk, call: u64, id: &str) {
        let value = format!("a{call}.{}", self.tries.fetch_add(1, Ordering::Relaxed));
        match desk.accept(id, &value) {
            Some(200..300) => {
                self.saved.lock().unwrap().insert(value, id.to_owned());
            }
            Some(status) => self.count(&format!("answers not saved, status {status}")),
            None => self.count("answers without a response"),
        }
    }

    /// Makes calls until the run closes.
    fn make_calls(&self, at: &str) {
        while !self.closing.load(Ordering::Relaxed) {
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            let done = self.make_call(at, number);
            assert!(
                is_of(&done, number),
                "call {number} got another's answer: {done}"
            );
            let before = self.results.lock().unwrap().insert(number, done);
            assert_eq!(before, None);
        }
    }

    /// Makes a call until it has a result.
    fn make_call(&self, at: &str, number: u64) -> String {
        let mut retry: Option<Value> = None;
        loop {
            let given = retry.take();
            let Some(done) = make_call(at, number, has_dialog(number), given.as_ref(), GIVES_UP)
            else {
                self.count("calls cut");
                thread::sleep(Duration::from_millis(20));
                continue;
            };
            let result = &done["result"];
            if result["resultType"] == "input_required" {
                retry = Some(self.answered(number, result));
            } else if let Some(error) = done.get("error") {
                self.count(&format!("calls with an error: {}", error["message"]));
                thread::sleep(Duration::from_millis(20));
            } else if text(&done).starts_with("Not done yet") {
                self.count("calls handed back");
            } else {
                return text(&done).to_owned();
            }
        }
    }

    /// Returns the answer of a client's dialog.
    fn answered(&self, number: u64, asked: &Value) -> Value {
        let value = format!("d{number}.{}", self.tries.fetch_add(1, Ordering::Relaxed));
        let keys = asked["inputRequests"].as_object().unwrap().keys();
        let reply = json!({"action": "accept", "content": {"value": value}});
        let replies: Value = keys.map(|key| (key.clone(), reply.clone())).collect();
        json!({"inputResponses": replies, "requestState": asked["requestState"]})
    }
}

/// Returns `true` for a call whose client answers in a dialog of its own.
fn has_dialog(call: u64) -> bool {
    call.is_multiple_of(4)
}

/// Returns `true` for a value that was given for this call.
fn is_of(value: &str, call: u64) -> bool {
    let given = value.strip_prefix(['a', 'd']);
    let own = given.and_then(|given| given.split_once('.'));
    own.is_some_and(|(number, _)| number == call.to_string())
}

fn stop_with(run: &Run, running: &[Replica], why: &str) -> ! {
    for replica in running {
        let said = replica.said.lock().unwrap();
        let from = said.len().saturating_sub(2_000);
        report(said.get(from..).unwrap_or_default());
    }
    report(&format!("{:?}", run.counts.lock().unwrap()));
    report(why);
    std::process::exit(1)
}

/// Checks every answer that was shown as saved, and every value that reached the server.
pub(crate) fn check(run: &Run, asker: &Asker, desk: &Desk, what: &str) {
    let mut reached: HashMap<String, u64> = HashMap::new();
    for (call, value) in asker.told() {
        assert!(is_of(&value, call), "{value} was delivered to call {call}");
        *reached.entry(value).or_default() += 1;
    }
    for (value, times) in &reached {
        assert_eq!(*times, 1, "{value} was delivered {times} times");
    }
    let results = run.results.lock().unwrap();
    for (call, value) in results.iter() {
        assert!(
            reached.contains_key(value),
            "the result of {call} is not from the server"
        );
    }
    let saved = run.saved.lock().unwrap();
    let mut lost = Vec::new();
    for (value, id) in saved.iter() {
        let mut row = desk.row(id);
        // A delivery whose gateway was just killed is decided when another one has found that out.
        let mut looks = 0..DECIDED;
        while row["delivery"] == "delivered"
            && !reached.contains_key(value)
            && looks.next().is_some()
        {
            if looks.start == 1 {
                run.count("deliveries that were decided after the end");
            }
            thread::sleep(LOOK);
            row = desk.row(id);
        }
        let delivery = row["delivery"].as_str().unwrap_or_default();
        let what = match (reached.contains_key(value), delivery) {
            (true, state) => format!("answers that reached the server: {state}"),
            (false, "in-doubt") => "answers in doubt that did not reach it".to_owned(),
            // A client that gave a call up and made it again has two of them, and the answer to one.
            (false, "waiting") => "answers that are kept for the same call".to_owned(),
            // In a run that is longer than answers are kept. The call has gone on with the other answer.
            (false, "lapsed") if results.keys().any(|call| is_of(value, *call)) => {
                "answers that were kept for the same call until they lapsed".to_owned()
            }
            (false, _) => {
                lost.push(format!("{value}: {row}"));
                continue;
            }
        };
        run.count(&what);
    }
    let counts = run.counts.lock().unwrap();
    report(&format!(
        "{what}: {} calls, {} answers shown as saved, {} lost: {counts:#?}",
        results.len(),
        saved.len(),
        lost.len(),
    ));
    assert_eq!(lost, Vec::<String>::new());
}

#[expect(
    clippy::print_stderr,
    reason = "the numbers are what a long run is for"
)]
pub(crate) fn report(text: &str) {
    eprintln!("{text}");
}
