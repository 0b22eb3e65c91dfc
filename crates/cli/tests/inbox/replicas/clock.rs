//! A clock that differs from the database's.

use std::thread::sleep;

use mcp_elicit_testkit::postgres::PostgresServer;

use super::replica::{Deployment, LOOK, LOOKS, Replica};
use crate::asker::Asker;
use crate::http::send;

/// Returns the difference that the metrics say, in seconds.
fn offset(replica: &Replica) -> f64 {
    let metrics = send(&replica.serving, &["GET /metrics HTTP/1.1"], "").unwrap();
    let mut lines = metrics.body.lines();
    let value = lines.find_map(|line| line.strip_prefix("mcp_elicit_clock_offset_seconds "));
    value.unwrap().parse().unwrap()
}

#[test]
fn a_clock_that_jumps_is_in_the_metrics_and_warned_of_once() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let asker = Asker::start();
    let deployment = Deployment::new(&database.address, &asker.url, 60);
    let replica = deployment.start(0).expect("it starts");
    let until = |fits: fn(f64) -> bool| {
        let found = (0..LOOKS).any(|_| {
            sleep(LOOK);
            fits(offset(&replica))
        });
        assert!(found, "{}", offset(&replica));
    };
    let warnings = || {
        let said = replica.said.lock().unwrap();
        said.matches("differs from the database's").count()
    };
    until(|seconds| seconds.abs() < 2.0);
    assert_eq!(warnings(), 0);
    // The database's clock goes on by an hour: for the gateway, it is the same as if its own went back.
    let clock = |shift: &str| {
        let text = format!(
            "CREATE OR REPLACE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS \
             $$ SELECT pg_catalog.statement_timestamp() {shift} $$"
        );
        server.sql(&database.name, &text).unwrap();
    };
    clock("+ interval '1 hour'");
    until(|seconds| (-3_700.0..-3_500.0).contains(&seconds));
    clock("");
    until(|seconds| seconds.abs() < 2.0);
    clock("- interval '1 hour'");
    until(|seconds| (3_500.0..3_700.0).contains(&seconds));
    assert_eq!(warnings(), 1, "once a minute");
}
