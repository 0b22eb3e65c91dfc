//! Kills of random replicas, stops of the database and pauses past a lease, while calls wait and people answer.
//!
//! `MCP_ELICIT_REPLICA_KILLS` sets the number of kills, `MCP_ELICIT_REPLICAS` that of replicas, `MCP_ELICIT_CALLS_OPEN`
//! that of calls at once, `MCP_ELICIT_FORWARDS` if gateways forward (0 or 1), and `MCP_ELICIT_SEED` repeats the choices of
//! an earlier run.

use std::hash::{BuildHasher as _, RandomState};
use std::thread;
use std::time::Duration;

use mcp_elicit_testkit::postgres::PostgresServer;

use super::load::{HOLD, Run, check, report, set};
use super::replica::{Deployment, Replica};
use crate::asker::Asker;
use crate::killed::Chance;

const KILLS: u64 = 20;
const REPLICAS: u64 = 3;
const CALLS: u64 = 40;
/// Longer than a lease.
const PAUSE: Duration = Duration::from_secs(11);

#[test]
fn replicas_killed_at_any_point_lose_no_answer_and_deliver_none_twice() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let kills = set("MCP_ELICIT_REPLICA_KILLS", KILLS);
    let replicas = usize::try_from(set("MCP_ELICIT_REPLICAS", REPLICAS)).unwrap();
    let calls = set("MCP_ELICIT_CALLS_OPEN", CALLS);
    let seed = set("MCP_ELICIT_SEED", RandomState::new().hash_one(0) | 1);
    let forwards = set("MCP_ELICIT_FORWARDS", seed >> 1 & 1) == 1;
    report(&format!("MCP_ELICIT_SEED={seed}, forwarding: {forwards}"));
    let mut chance = Chance(seed);

    let asker = Asker::start();
    let mut deployment = Deployment::new(&server.database().address, &asker.url, HOLD);
    if forwards {
        deployment = deployment.forwarding();
    }
    let (run, mut running) = Run::start(&deployment, replicas);
    run.during(calls, &mut running, &mut chance, |running, chance| {
        for kill in 0..kills {
            thread::sleep(Duration::from_millis(200 + chance.below(1_500)));
            if kill % 7 == 3 {
                server.stop();
                thread::sleep(Duration::from_millis(chance.below(2_000)));
                if kill % 2 == 0 {
                    server.start_again();
                } else {
                    // A replica ends while the database is away.
                    kill_one(&run, &deployment, running, chance, || {
                        server.start_again();
                    });
                    continue;
                }
            }
            if kill % 10 == 5 {
                let paused = &running[usize::try_from(chance.below(replicas as u64)).unwrap()];
                paused.pause();
                thread::sleep(PAUSE);
                paused.go_on();
            }
            kill_one(&run, &deployment, running, chance, || {});
        }
    });
    check(&run, &asker, &running[0].desk(), &format!("{kills} kills"));
}

/// Kills a replica and starts it again, until it runs.
fn kill_one(
    run: &Run,
    deployment: &Deployment,
    running: &mut [Replica],
    chance: &mut Chance,
    meanwhile: impl FnOnce(),
) {
    let number = usize::try_from(chance.below(running.len() as u64)).unwrap();
    // The balancer finds out by itself.
    running[number].kill();
    thread::sleep(Duration::from_millis(chance.below(500)));
    meanwhile();
    let started = loop {
        if let Some(started) = deployment.start(number) {
            break started;
        }
    };
    run.put(number, Some(&started));
    running[number] = started;
}
