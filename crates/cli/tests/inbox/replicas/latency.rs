//! The time from an answer given at one gateway to the result of the call at another.
//!
//! `MCP_ELICIT_LATENCIES` sets the number of answers, which are given one after the other.

use std::thread;
use std::time::{Duration, Instant};

use mcp_elicit_testkit::postgres::PostgresServer;

use super::load::{report, set};
use super::replica::{Deployment, LOOK, LOOKS};
use super::rounds_client::make_call;
use crate::asker::Asker;
use crate::http::PATIENCE;
use crate::raw::text;

const ANSWERS: u64 = 20;

#[expect(clippy::disallowed_methods, reason = "a duration is measured")]
fn now() -> Instant {
    Instant::now()
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
    let mut took: Vec<Duration> = Vec::new();
    for number in 1..=answers {
        let at = a.serving.clone();
        let waits = thread::spawn(move || {
            let done = make_call(&at, number, false, None, PATIENCE).expect("a result");
            (text(&done).to_owned(), now())
        });
        let id = desk.question_of(number, true);
        let value = format!("v{number}");
        let given = now();
        assert_eq!(desk.accept(&id, &value), Some(200));
        let (result, came) = waits.join().unwrap();
        assert_eq!(result, value);
        took.push(came.saturating_duration_since(given));
        // The delivery is noted after the result.
        let is_noted = (0..LOOKS).any(|_| {
            let is_noted = desk.row(&id)["delivery"] == "delivered";
            if !is_noted {
                thread::sleep(LOOK);
            }
            is_noted
        });
        assert!(is_noted);
    }
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)];
    let (median, high) = (at(50), at(99));
    report(&format!(
        "{answers} answers, at B to the result at A: median {median:?}, 99 % {high:?}"
    ));
}
