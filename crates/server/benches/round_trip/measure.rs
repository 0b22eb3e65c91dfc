//! The measurements.

use std::time::{Duration, Instant};

use mcp_elicit_testkit::peers::PeerProgram;

use crate::client::{Connection, Era, ScriptedUser, Transport, connect, connect_as};

/// The amount of work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// The number of turns of each server.
    blocks: usize,
    /// The calls in a block, one at a time.
    calls: usize,
    /// The calls of each of the 64 clients in a block.
    calls_each: usize,
    /// The questions that are open at once.
    pub(crate) pending: u32,
}

impl Effort {
    pub(crate) const FULL: Self = Self {
        blocks: 20,
        calls: 100,
        calls_each: 16,
        pending: 10_000,
    };
    pub(crate) const QUICK: Self = Self {
        blocks: 5,
        calls: 40,
        calls_each: 4,
        pending: 10_000,
    };
}

const AT_ONCE: usize = 64;

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the median in microseconds.
fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

async fn calls(connection: &Connection, questions: u32, number: usize, times: &mut Vec<Duration>) {
    for _ in 0..number {
        let start = now();
        connection.call(questions).await;
        times.push(start.elapsed());
    }
}

/// Returns the calls per second with 64 at once.
async fn rate(connection: &Connection, calls_each: usize) -> f64 {
    let start = now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let connection = connection.clone();
        callers.spawn(async move {
            for _ in 0..calls_each {
                connection.call(1).await;
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.expect("no call fails");
    }
    let calls = u32::try_from(AT_ONCE * calls_each).unwrap_or(u32::MAX);
    f64::from(calls) / start.elapsed().as_secs_f64()
}

/// Returns the median microseconds of a call, one at a time, for each of these servers, which take turns.
pub(crate) async fn one_at_a_time(ways: &[Connection], questions: u32, effort: Effort) -> Vec<f64> {
    let mut times = vec![Vec::new(); ways.len()];
    // A call of several questions takes proportionally longer.
    let number = (effort.calls / questions as usize).max(10);
    for block in 0..=effort.blocks {
        for (connection, times) in ways.iter().zip(&mut times) {
            let mut warm_up = Vec::new();
            let times = if block == 0 { &mut warm_up } else { times };
            calls(connection, questions, number, times).await;
        }
    }
    times.iter_mut().map(|times| median(times)).collect()
}

/// Returns the calls per second with 64 at once, for each of these servers, which take turns: the median of the blocks.
pub(crate) async fn many_at_once(ways: &[Connection], effort: Effort) -> Vec<f64> {
    let mut rates = vec![Vec::new(); ways.len()];
    for block in 0..=effort.blocks {
        for (connection, rates) in ways.iter().zip(&mut rates) {
            let rate = rate(connection, effort.calls_each).await;
            if block > 0 {
                rates.push(rate);
            }
        }
    }
    let middle = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    rates.iter_mut().map(middle).collect()
}

/// Returns the median microseconds one at a time, and the calls per second with 64 at once, of a single server.
pub(crate) async fn alone(connection: &Connection, effort: Effort) -> (f64, f64) {
    let (mut warm_up, mut times) = (Vec::new(), Vec::new());
    calls(connection, 1, effort.calls, &mut warm_up).await;
    calls(connection, 1, 2 * effort.calls, &mut times).await;
    let median = median(&mut times);
    let _warm_up = rate(connection, 1).await;
    (median, rate(connection, effort.calls_each).await)
}

/// Returns the bytes of the server's memory that each open question costs on the pushed era.
pub(crate) async fn pending(server: &PeerProgram, effort: Effort) -> f64 {
    let person = ScriptedUser::silent();
    let connection = connect_as(person.clone(), server, Transport::Stdio).await;
    let before = connection.resident();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..effort.pending {
        let connection = connection.clone();
        callers.spawn(async move { connection.call(1).await });
    }
    let all = effort.pending as usize;
    while person.asked() < all {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (connection.resident() - before) / f64::from(effort.pending)
}

/// Returns the bytes that each question leaves in the server if the client of rounds never answers.
pub(crate) async fn left_open(server: &PeerProgram, effort: Effort) -> f64 {
    let connection = connect(server, Era::Rounds, Transport::Stdio).await;
    // The first calls cause a one-time set-up, which is not counted.
    for _ in 0..1_000 {
        connection.call_once().await;
    }
    let before = connection.resident();
    for _ in 0..effort.pending {
        connection.call_once().await;
    }
    (connection.resident() - before) / f64::from(effort.pending)
}
