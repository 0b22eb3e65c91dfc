//! The price of single statements: what is flushed to the disk, and what is not read.

use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;

use super::super::contract::{SingleWrites as _, row};
use super::*;

/// The levels of `PRAGMA synchronous` at which a commit is flushed, or not, to the disk in a file with a log.
const NORMAL: i64 = 1;
const FULL: i64 = 2;

fn synchronous(store: &Sqlite) -> i64 {
    let mut file = lock(&store.file);
    let connection = file.connection().unwrap();
    connection
        .query_row("PRAGMA synchronous", [], |row| row.get(0))
        .unwrap()
}

/// A result that is back after a loss of power would be returned twice, so that its deletion is flushed.
#[tokio::test]
async fn a_result_that_was_taken_stays_taken_after_a_loss_of_power() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let store = Sqlite::open(&path).await.unwrap();
    let now = Timestamp::from_millis(1_000);
    let call = FinishedCall {
        id: "a".to_owned(),
        binding: "same".to_owned(),
        result: vec![1],
        until: now.after(Duration::from_secs(60)),
    };
    store.keep_call(call.clone()).await.unwrap();
    assert_eq!(synchronous(&store), FULL, "a result is flushed");
    // A write that need not survive a loss of power comes between.
    store
        .insert(row("q", 1_000), "asked".to_owned())
        .await
        .unwrap();
    assert_eq!(synchronous(&store), NORMAL);
    let taken = store.take_call("a".to_owned()).await.unwrap();
    assert_eq!(taken, Some(call));
    assert_eq!(synchronous(&store), FULL, "and so is its deletion");
}

/// Probes ask for the end of the audit, which takes as long for a short audit as for a long one.
#[tokio::test]
async fn the_end_of_the_audit_is_found_without_reading_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("record.sqlite"))
        .await
        .unwrap();
    let mut file = lock(&store.file);
    let text = format!("EXPLAIN QUERY PLAN {AUDIT_END}");
    let plan: String = file
        .connection()
        .unwrap()
        .query_row(&text, [], |row| row.get("detail"))
        .unwrap();
    assert_eq!(plan, "SEARCH audit");
}
