//! Upgrades while gateways run and calls wait: the tables get a later layout, and the gateways are restarted one after the
//! other.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};

use super::load::{HOLD, Run, check, report, set};
use super::replica::{Deployment, LOOK, LOOKS};
use super::rounds_client::make_call;
use crate::asker::Asker;
use crate::http::PATIENCE;
use crate::killed::Chance;
use crate::raw::text;

const REPLICAS: usize = 2;
const CALLS: u64 = 12;
/// Seconds in which calls at the server may end.
const DRAIN: u32 = 10;
/// The number of calls that end between two steps.
const BETWEEN: usize = 12;

/// The tables of the first layout.
const FIRST: &str = include_str!("../../../../record/src/store/postgres/01.sql");
/// The statements that a gateway of the first layout runs each second: its lease, and the running gateways.
const FIRST_BEAT: &str = "INSERT INTO mcp_elicit.replica (id, lock, lease_until) VALUES ('old', 0, clock_timestamp() + interval '10 seconds') \
     ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until; \
     SELECT id, peer_address, peer_key, peer_proof FROM mcp_elicit.replica WHERE lease_until > clock_timestamp()";

/// Does to the tables what a program of the next layout does: it adds to them, under the lock of migrations. Returns the
/// number of the layout.
fn migrate_to_next(server: &PostgresServer, database: &TestDatabase) -> u32 {
    let migrate = format!(
        "BEGIN; SET LOCAL lock_timeout = '10s'; SELECT pg_advisory_xact_lock({}); \
         ALTER TABLE mcp_elicit.question ADD COLUMN later text NOT NULL DEFAULT 'later'; \
         ALTER TABLE mcp_elicit.replica ADD COLUMN later integer; \
         CREATE TABLE mcp_elicit.later (id text PRIMARY KEY); \
         UPDATE mcp_elicit.meta SET layout = layout + 1 WHERE one; COMMIT; SELECT layout FROM mcp_elicit.meta",
        0x656c_6963_6974_i64
    );
    let said = server.sql(&database.name, &migrate).unwrap();
    said.lines().last().unwrap().parse().unwrap()
}

/// Waits until some more calls have ended.
fn wait_for_calls(run: &Run) {
    let before = run.results().len();
    let has_ended = (0..LOOKS).any(|_| {
        thread::sleep(LOOK);
        run.results().len() >= before + BETWEEN
    });
    assert!(has_ended, "calls go on");
}

#[test]
fn gateways_restarted_one_by_one_beside_a_later_layout_lose_nothing_and_ask_once() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let seed = set("MCP_ELICIT_SEED", RandomState::new().hash_one(0) | 1);
    report(&format!("MCP_ELICIT_SEED={seed}"));
    let mut chance = Chance(seed);
    let asker = Asker::start();
    let deployment = Deployment::new(&database.address, &asker.url, HOLD).draining(DRAIN);
    let (run, mut running) = Run::start(&deployment, REPLICAS);
    run.during(CALLS, &mut running, &mut chance, |running, _| {
        wait_for_calls(&run);
        let layout = migrate_to_next(server, &database);
        wait_for_calls(&run);
        for (number, replica) in running.iter_mut().enumerate() {
            // The balancer sends nothing new. Calls wait there.
            run.put(number, None);
            replica.end();
            wait_for_calls(&run);
            let started = deployment.start(number);
            *replica = started.expect("it starts beside a later layout that it may use");
            run.put(number, Some(replica));
            wait_for_calls(&run);
        }
        // A layout that this program must not use: running gateways go on, and another one is refused.
        let bound = "UPDATE mcp_elicit.meta SET readable_by = layout WHERE one";
        server.sql(&database.name, bound).unwrap();
        let (code, said) = deployment.refused(REPLICAS);
        assert_eq!(code, Some(3), "{said}");
        let why = format!(
            "written by a newer version (layout {layout}, known {})",
            layout - 1
        );
        assert!(said.contains(&why), "{said}");
        assert!(
            said.contains("install that version or a newer one"),
            "{said}"
        );
        wait_for_calls(&run);
    });
    let desk = running[0].desk();
    check(&run, &asker, &desk, "an upgrade");
    assert_eq!(desk.waiting(), []);
    let twice = "SELECT body::json->>'message', owner, exchange FROM mcp_elicit.question \
         WHERE same IN (SELECT same FROM mcp_elicit.question GROUP BY same HAVING count(*) > 1) ORDER BY same, asked_at";
    let twice = server.sql(&database.name, twice).unwrap();
    assert_eq!(twice, "", "each call asks once");
}

/// The older program is its statements: those of its lease go on, and a transaction of it is open when the other starts.
#[test]
fn a_gateway_migrates_the_first_layout_while_one_of_it_goes_on() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let sql = |text: &str| server.sql(&database.name, text).unwrap();
    sql(&format!(
        "CREATE SCHEMA mcp_elicit; {FIRST}; UPDATE mcp_elicit.meta SET layout = 1, readable_by = 1"
    ));
    let asker = Asker::start();
    let deployment = Deployment::new(&database.address, &asker.url, 3_600);
    let (has_ended, beats) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|threads| {
        threads.spawn(|| {
            // Ends also if a check below fails.
            for _ in 0..10 * LOOKS {
                if has_ended.load(Ordering::Relaxed) {
                    break;
                }
                sql(FIRST_BEAT);
                beats.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
        });
        // Its migration waits for this one.
        let open = threads.spawn(|| {
            let lock = "BEGIN; UPDATE mcp_elicit.replica SET lock = 0 WHERE id = 'other'; SELECT pg_sleep(2); COMMIT";
            sql(lock);
        });
        let is_locked = "SELECT count(*) FROM pg_locks WHERE mode = 'RowExclusiveLock' AND relation = 'mcp_elicit.replica'::regclass \
             AND pid IN (SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep')";
        assert!((0..LOOKS).any(|_| sql(is_locked) == "1"));
        let started = deployment.start(0).expect("it starts");
        assert!(open.is_finished(), "it has waited");
        assert_eq!(
            sql("SELECT layout, readable_by FROM mcp_elicit.meta"),
            "2|1"
        );
        let so_far = beats.load(Ordering::Relaxed);
        let desk = started.desk();
        let at = started.serving.clone();
        let call = threads.spawn(move || make_call(&at, 7, false, None, PATIENCE));
        let id = desk.question_of(7, true);
        assert_eq!(desk.accept(&id, "beside the first"), Some(200));
        let done = call.join().unwrap().unwrap();
        assert_eq!(text(&done), "beside the first");
        let goes_on = (0..LOOKS).any(|_| {
            thread::sleep(LOOK);
            beats.load(Ordering::Relaxed) > so_far
        });
        assert!(goes_on);
        let both = "SELECT count(*), count(newest_key) FROM mcp_elicit.replica WHERE lease_until > clock_timestamp()";
        assert_eq!(sql(both), "2|1", "the older one has no number of a key");
        has_ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(asker.told(), [(7, "beside the first".to_owned())]);
}
