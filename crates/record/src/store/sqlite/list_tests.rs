//! The typed columns and the text of the search, beside earlier versions and in copies.

use std::sync::Arc;

use super::super::contract::row;
use super::super::{Filter, ListQuery, Matching, Page, SearchWord};
use super::*;

fn matching(server: Option<&str>, words: &str) -> ListQuery {
    ListQuery::new(Filter::Open, Page::first(9)).matching(Matching {
        server: server.map(str::to_owned),
        words: SearchWord::all_in(words),
        ..Matching::default()
    })
}

async fn insert(store: &Sqlite, ids: &[&str]) {
    let insert = |id: &&str| Write::Insert {
        row: Box::new(row(id, 1_000)),
        audit: Vec::new(),
    };
    let writes = ids.iter().map(insert).collect();
    store.write(Arc::new(writes)).await.unwrap();
}

async fn found(store: &Sqlite, query: ListQuery) -> Vec<String> {
    let rows = store.list(query).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

#[tokio::test]
async fn questions_of_an_earlier_version_that_still_runs_are_filtered_and_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let store = Sqlite::open(&path).await.unwrap();
    insert(&store, &["new"]).await;
    let earlier = rusqlite::Connection::open(&path).unwrap();
    // As layout 16 was written.
    earlier
        .execute_batch(
            "INSERT INTO question (id, same, owner, version, open, delivered, asked_at, ended_at, exchange, body, \
             arguments, content, claimed, due_at, findable, params, team) \
             SELECT 'old', same, owner, version, open, delivered, asked_at + 1, ended_at, exchange, body, \
             arguments, content, claimed, due_at, findable, params, team FROM question",
        )
        .unwrap();
    assert_eq!(found(&store, matching(Some("s"), "")).await, ["new", "old"]);
    assert_eq!(
        found(&store, matching(None, "deploy")).await,
        ["new", "old"]
    );
    let count = store.waiting_of("local".to_owned(), Some("s".to_owned()));
    assert_eq!(count.await.unwrap().of_server, 2);
}

#[tokio::test]
async fn a_copy_and_a_record_whose_rows_were_deleted_are_searched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let store = Sqlite::open(&path).await.unwrap();
    insert(&store, &["a", "b", "c"]).await;
    assert_eq!(
        found(&store, matching(None, "deploy")).await,
        ["a", "b", "c"]
    );
    let connection = rusqlite::Connection::open(&path).unwrap();
    let delete = |id: &str| {
        let deleted = connection.execute("DELETE FROM question WHERE id = ?1", [id]);
        assert_eq!(deleted.unwrap(), 1);
    };
    delete("a");
    delete("c");
    // The number of the last row is used again.
    insert(&store, &["d"]).await;
    assert_eq!(found(&store, matching(None, "deploy")).await, ["b", "d"]);
    let copy = folder.path().join("copy.sqlite");
    let copied = connection.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]);
    copied.unwrap();
    let copy = Sqlite::open(&copy).await.unwrap();
    insert(&copy, &["e"]).await;
    assert_eq!(
        found(&copy, matching(None, "deploy")).await,
        ["b", "d", "e"]
    );
}
