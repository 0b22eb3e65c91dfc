//! A simulation of several gateways over one store. They stop, stand still and start again between any two accesses to
//! the store; notices of changes are lost, repeated and late; clocks jump; and each gateway may be wrong about which
//! others run. No answer that a person was told is saved may be lost, delivered twice, or delivered to another call.
//!
//! `MCP_ELICIT_SIMULATION=STEPS` makes so many steps, and `MCP_ELICIT_SIMULATION_SEED=NUMBER` makes other choices. Ids and
//! the seals of values are random all the same, so that a seed does not repeat a run exactly.

mod connection;
mod world;

use self::world::{Summary, simulate};

/// The steps in the suite.
const STEPS: u64 = 10_000;
/// The seeds in the suite.
const SEEDS: std::ops::Range<u64> = 1..4;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(start_paused = true)]
async fn gateways_that_share_a_record_lose_no_saved_answer_and_deliver_none_twice_or_to_another_call()
 {
    let seed = number("MCP_ELICIT_SIMULATION_SEED");
    if let Some(steps) = number("MCP_ELICIT_SIMULATION") {
        let summary = simulate(seed.unwrap_or(1), steps, true).await.unwrap();
        println!("{steps} steps: {summary:?}");
        return;
    }
    let mut all = Summary::default();
    for seed in seed.map_or(SEEDS, |seed| seed..seed + 1) {
        let summary = simulate(seed, STEPS, true).await;
        all.add(&summary.unwrap_or_else(|violation| panic!("seed {seed}: {violation}")));
    }
    // Otherwise it would show nothing.
    let Summary {
        asked,
        saved,
        delivered,
        in_doubt,
        lapsed,
        ended,
        kills,
        pauses,
        lost_notices,
        taken_over,
    } = all;
    for (name, count, least) in [
        ("asked", asked, 500),
        ("saved", saved, 300),
        ("delivered", delivered, 200),
        ("in doubt", in_doubt, 10),
        ("lapsed", lapsed, 10),
        ("ended", ended, 10),
        ("kills", kills, 50),
        ("pauses", pauses, 50),
        ("lost notices", lost_notices, 50),
        ("taken over", taken_over, 50),
    ] {
        assert!(count >= least, "{name}: {count} of {least}, {all:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_comparison_of_versions_the_simulation_finds_a_violation() {
    for seed in SEEDS {
        match simulate(seed, STEPS, false).await {
            Err(violation) => println!("seed {seed}: {violation}"),
            Ok(summary) => panic!("seed {seed}: {summary:?}"),
        }
    }
}
