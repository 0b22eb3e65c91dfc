//! The time from an answer given at one gateway to the result of the call at another.
//!
//! `MCP_ELICIT_LATENCIES` sets the number of answers that are timed, one after the other, and `MCP_ELICIT_LATENCY_BESIDE` the
//! number of clients that call at the same time and are answered too. `MCP_ELICIT_PROGRAM` names the gateways' program, and
//! `MCP_ELICIT_TEST_FSYNC=on` lets the database wait for its disk.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mcp_elicit_testkit::postgres::PostgresServer;

use super::load::{report, set};
use super::replica::{Deployment, Desk};
use super::rounds_client::make_call;
use crate::asker::Asker;
use crate::http::PATIENCE;
use crate::raw::text;

const ANSWERS: u64 = 20;

#[expect(clippy::disallowed_methods, reason = "a duration is measured")]
fn now() -> Instant {
    Instant::now()
}

/// Makes a call at `a` and accepts its question at `b`. Returns the time from the answer to the result.
fn answered(a: &str, b: &Desk, number: u64) -> Duration {
    let at = a.to_owned();
    let waits = thread::spawn(move || {
        let done = make_call(&at, number, false, None, PATIENCE).expect("a result");
        (text(&done).to_owned(), now())
    });
    let id = b.question_of(number, true);
    let value = format!("v{number}");
    let given = now();
    assert_eq!(b.accept(&id, &value), Some(200));
    let (result, came) = waits.join().unwrap();
    assert_eq!(result, value);
    // The delivery is noted after the result.
    assert!(b.is_delivered(&id));
    came.saturating_duration_since(given)
}

#[test]
fn an_answer_at_one_gateway_reaches_its_call_at_another_each_time() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let asker = Asker::start();
    let deployment = Deployment::new(&server.database().address, &asker.url, 3_600);
    let [a, b] = [0, 1].map(|number| deployment.start(number).expect("it starts"));
    let desk = b.desk();
    let answers = set("MCP_ELICIT_LATENCIES", ANSWERS);
    let clients = set("MCP_ELICIT_LATENCY_BESIDE", 0);
    let (done, beside) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = now();
    let mut took: Vec<Duration> = thread::scope(|scope| {
        for client in 1..=clients {
            let (at, desk, done, beside) = (&a.serving, &desk, &done, &beside);
            scope.spawn(move || {
                for call in (client * 1_000_000)..(client + 1) * 1_000_000 {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    answered(at, desk, call);
                    beside.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let each = (1..=answers).map(|number| answered(&a.serving, &desk, number));
        let took = each.collect();
        done.store(true, Ordering::Relaxed);
        took
    });
    let seconds = began.elapsed().as_secs().max(1);
    let others = beside.load(Ordering::Relaxed) / seconds;
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)];
    let (median, high) = (at(50), at(99));
    report(&format!(
        "{answers} answers, at B to the result at A, {others} others a second: median {median:?}, 99 % {high:?}"
    ));
}
