//! A store on a real server: the contract is in `contract.rs`; here is what only PostgreSQL has.

use std::sync::Arc;

use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};

use super::super::contract::{SingleWrites as _, acted, change, row};
use super::super::{Filter, ListQuery, Page, Store as _, StoreError, Write, Writer};
use super::database::PostgresDatabase;
use super::{Postgres, PostgresSettings, PostgresTables, statements};
use crate::Keys;

/// Returns the connections to this database.
pub(in crate::store) fn connected(database: &TestDatabase) -> PostgresDatabase {
    let settings = PostgresSettings::read(&database.address).expect("an address");
    PostgresDatabase::new(settings.with_connections(4)).expect("a thread")
}

/// Returns a store in a new database; `None` on a machine without PostgreSQL.
pub(in crate::store) fn store() -> Option<Postgres> {
    let database = PostgresServer::shared()?.database();
    Some(Postgres::at(connected(&database)))
}

/// Returns the shared tables of a new database.
pub(in crate::store) fn tables() -> Option<PostgresTables> {
    let database = PostgresServer::shared()?.database();
    Some(PostgresTables::at(connected(&database)))
}

#[tokio::test]
async fn every_statement_is_one_that_the_server_prepares_with_these_types() {
    let Some(store) = store() else { return };
    store.ready().await.unwrap();
    let client = store.database().client().await.unwrap();
    for (name, statement) in statements::ALL {
        let prepared = client.prepare_typed(statement.text, statement.types).await;
        let prepared = prepared.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(prepared.params(), statement.types, "{name}");
    }
}

#[tokio::test]
async fn rows_stay_when_the_store_is_opened_again() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let store = Postgres::at(connected(&database));
    store
        .insert(row("a", 1_000), "asked".to_owned())
        .await
        .unwrap();
    drop(store);
    let again = Postgres::at(connected(&database));
    let found = again
        .list(ListQuery::new(Filter::Open, Page::first(10)))
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(again.planned_migration().await.unwrap(), "");
}

#[tokio::test]
async fn several_processes_open_a_new_database_at_once() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let keys = Keys::random().unwrap();
    let all: Vec<_> = (0..8)
        .map(|_| Postgres::at(connected(&database)).with_keys(&keys))
        .collect();
    let opened = futures::future::join_all(all.iter().map(Postgres::ready)).await;
    for one in opened {
        one.unwrap();
    }
}

/// Many writers of many processes: each change is made once, and the audit is one chain.
#[tokio::test(flavor = "multi_thread")]
async fn writers_of_several_processes_make_each_change_once_and_one_chain() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let keys = Keys::random().unwrap();
    let of = || Postgres::at(connected(&database)).with_keys(&keys);
    let (first, stores) = (of(), [of(), of(), of()]);
    let ids: Vec<String> = (0..20).map(|number| format!("q{number}")).collect();
    for id in &ids {
        first
            .insert(row(id, 1_000), "asked".to_owned())
            .await
            .unwrap();
    }
    let mut tasks = Vec::new();
    for store in stores {
        let ids = ids.clone();
        tasks.push(tokio::spawn(async move {
            let writer = Writer::new(Arc::new(store));
            let mut made = 0;
            for id in &ids {
                let change = change(acted(&row(id, 1_000)), 0);
                made += u32::from(writer.change(vec![change]).await.unwrap());
                let note = Write::Note("noted".to_owned());
                writer.write(Arc::new(vec![note])).await.unwrap();
            }
            made
        }));
    }
    let mut made = 0;
    for task in tasks {
        made += task.await.unwrap();
    }
    assert_eq!(made, 20);
    let links = crate::audit::read(&first).await.unwrap();
    assert_eq!(links.len(), 20 + 20 + 60);
    let chain = keys.chain();
    let check = crate::audit::verify(&links, Some(&chain));
    assert!(
        matches!(check, crate::audit::ChainCheck::Whole { .. }),
        "{check:?}"
    );
}

/// Returns `true` if the record was refused because of this key.
fn is_of(refused: &Result<(), StoreError>, key: &str) -> bool {
    matches!(refused, Err(StoreError::Refused { why, .. }) if why.starts_with(key))
}

#[tokio::test]
async fn a_key_of_another_record_is_refused() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let keys = Keys::random().unwrap();
    let of = |keys: &Keys| Postgres::at(connected(&database)).with_keys(keys);
    of(&keys).ready().await.unwrap();
    of(&keys).ready().await.unwrap();
    let others = Keys::random().unwrap();
    let seal = Keys {
        encryption: others.encryption.clone(),
        identity: keys.identity.clone(),
    };
    let refused = of(&seal).ready().await;
    assert!(is_of(&refused, "seal.key"), "{refused:?}");
    let identity = Keys {
        encryption: keys.encryption.clone(),
        identity: others.identity.clone(),
    };
    let refused = of(&identity).ready().await;
    assert!(is_of(&refused, "identity.key"), "{refused:?}");
    of(&keys).ready().await.unwrap();
}

/// A server that stops in the middle of writes, again and again: each write that was reported as made is there, once.
#[tokio::test(flavor = "multi_thread")]
async fn no_write_is_lost_or_made_twice_while_the_server_stops_and_starts() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = server.database();
    let store = Postgres::at(connected(&database));
    store.ready().await.unwrap();
    let writing = tokio::spawn({
        let store = store.clone();
        async move {
            let writer = Writer::new(Arc::new(store));
            for number in 0..300 {
                let id = format!("q{number}");
                let inserted = writer.insert(row(&id, 1_000), format!("asked {id}")).await;
                inserted.unwrap();
                let next = change(acted(&row(&id, 1_000)), 0);
                assert!(writer.change(vec![next]).await.unwrap(), "{id}");
            }
        }
    });
    let server = Arc::new(server);
    for _ in 0..3 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let server = server.clone();
        let again = move || {
            server.stop();
            server.start_again();
        };
        tokio::task::spawn_blocking(again).await.unwrap();
    }
    writing.await.unwrap();
    assert_eq!(store.waiting().await.unwrap(), 0);
    let links = crate::audit::read(&store).await.unwrap();
    let asked = links.iter().filter(|link| link.entry.starts_with("asked"));
    assert_eq!((asked.count(), links.len()), (300, 600));
}
