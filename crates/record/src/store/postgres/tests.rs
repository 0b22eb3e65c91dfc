//! A store on a real server: the contract is in `contract.rs`; here is what only PostgreSQL has.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};

use super::super::contract::{SingleWrites as _, acted, change, row};
use super::super::{
    Filter, FinishedCall, ListQuery, Page, RecordStore as _, RecordStoreError, Write, Writer,
};
use super::database::PostgresDatabase;
use super::{Postgres, PostgresSettings, PostgresTables, public_schema_tests, statements};
use crate::OwnKeys;

/// Returns the connections to this database.
pub(in crate::store) fn connected(database: &TestDatabase) -> PostgresDatabase {
    let settings = PostgresSettings::read(&database.address).expect("an address");
    PostgresDatabase::new(settings.with_connections(4)).expect("a thread")
}

/// Returns a store in a new database, in which another role's objects must not be used; `None` on a machine without
/// PostgreSQL.
pub(in crate::store) fn store() -> Option<Postgres> {
    let database = public_schema_tests::database()?;
    Some(Postgres::at(connected(&database)))
}

/// Returns the shared tables of a new database.
pub(in crate::store) fn tables() -> Option<PostgresTables> {
    let database = public_schema_tests::database()?;
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
async fn an_audit_that_ends_with_the_last_number_takes_no_more_and_says_why() {
    let Some(store) = store() else { return };
    store.ready().await.unwrap();
    let client = store.database().client().await.unwrap();
    let last = format!(
        "UPDATE mcp_elicit.audit_end SET number = {}; INSERT INTO mcp_elicit.audit VALUES ({}, '', '')",
        i64::MAX,
        i64::MAX
    );
    client.batch_execute(&last).await.unwrap();
    let refused = store.insert(row("a", 1_000), "asked".to_owned()).await;
    assert!(
        matches!(&refused, Err(RecordStoreError::Refused { why, .. }) if why.contains("ends with the number")),
        "{refused:?}"
    );
}

/// A session begins reads at once, and may come back to them after work that needs a connection too.
#[tokio::test]
async fn reads_that_nobody_polls_keep_no_connection_from_others() {
    let Some(store) = store() else { return };
    store.ready().await.unwrap();
    let mut begun: Vec<_> = (0..8).map(|_| Box::pin(store.find("a".into()))).collect();
    for read in &mut begun {
        assert!(futures::poll!(read).is_pending());
    }
    let other = tokio::time::timeout(Duration::from_secs(30), store.find("b".into()));
    assert_eq!(other.await.expect("a connection").unwrap(), None);
    for read in begun {
        assert_eq!(read.await.unwrap(), None);
    }
}

/// Whoever changes only what a search looks at hides an event from it.
#[tokio::test]
async fn a_link_that_is_found_under_other_columns_than_its_entry_says_is_broken() {
    let Some(store) = store() else { return };
    store.ready().await.unwrap();
    let entry = r#"{"at":5,"event":"asked","id":"a"}"#;
    store
        .insert(row("a", 1_000), entry.to_owned())
        .await
        .unwrap();
    let client = store.database().client().await.unwrap();
    let links = async || store.audit(1, 9).await.unwrap();
    let before = links().await;
    for changed in [
        "at = 6",
        "event = 'shown'",
        "question = 'b'",
        "event = NULL",
    ] {
        let change = format!("UPDATE mcp_elicit.audit SET {changed} WHERE number = 1");
        client.batch_execute(&change).await.unwrap();
        let after = links().await;
        assert_ne!(after[0].hash, before[0].hash, "{changed}");
        let back = "UPDATE mcp_elicit.audit SET at = 5, event = 'asked', question = 'a'";
        client.batch_execute(back).await.unwrap();
        assert_eq!(links().await, before);
    }
}

#[tokio::test]
async fn several_processes_open_a_new_database_at_once() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let keys = OwnKeys::random().unwrap();
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
    let keys = OwnKeys::random().unwrap();
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
fn is_of(refused: &Result<(), RecordStoreError>, key: &str) -> bool {
    matches!(refused, Err(RecordStoreError::Refused { why, .. }) if why.starts_with(key))
}

#[tokio::test]
async fn a_key_of_another_record_is_refused() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let keys = OwnKeys::random().unwrap();
    let of = |keys: &OwnKeys| Postgres::at(connected(&database)).with_keys(keys);
    of(&keys).ready().await.unwrap();
    of(&keys).ready().await.unwrap();
    let others = OwnKeys::random().unwrap();
    let seal = OwnKeys {
        encryption: others.encryption.clone(),
        identity: keys.identity.clone(),
    };
    let refused = of(&seal).ready().await;
    assert!(is_of(&refused, "seal.key"), "{refused:?}");
    let identity = OwnKeys {
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
        tokio::time::sleep(Duration::from_millis(100)).await;
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

/// A full disk of the server: each write fails as its statements do then.
#[tokio::test]
async fn on_a_full_disk_of_the_server_a_write_leaves_nothing_and_can_be_made_later() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let store = Postgres::at(connected(&database));
    store.ready().await.unwrap();
    let sql = |text: &str| server.sql(&database.name, text).unwrap();
    let asked = row("a", 1_000);
    store
        .insert(asked.clone(), "asked a".to_owned())
        .await
        .unwrap();
    let full = "CREATE FUNCTION mcp_elicit.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$";
    sql(full);
    // Wherever the room ends in a batch, its first statements may have fitted.
    for table in ["question", "writer", "audit", "audit_end"] {
        sql(&format!(
            "CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON mcp_elicit.{table} EXECUTE FUNCTION mcp_elicit.full()"
        ));
        let refused = store.change(vec![change(acted(&asked), 0)]).await;
        let refused = refused.expect_err(table);
        assert!(refused.is_disk_full(), "{table}: {refused:?}");
        assert_eq!(refused.to_string(), "the disk of the record is full");
        let remedy = refused.remedy().unwrap_or_default();
        assert!(remedy.contains("database's server"), "{remedy}");
        let kept = store.find("a".to_owned()).await.unwrap();
        assert_eq!(kept, Some(asked.clone()), "{table}");
        assert_eq!(crate::audit::read(&store).await.unwrap().len(), 1);
        sql(&format!("DROP TRIGGER full_disk ON mcp_elicit.{table}"));
    }
    let changed = store.change(vec![change(acted(&asked), 0)]).await;
    assert!(changed.unwrap());
    let links = crate::audit::read(&store).await.unwrap();
    assert_eq!(links.len(), 2);
}

/// A migration waits for transactions of others, such as a backup, and not for ever.
#[tokio::test]
async fn a_migration_is_refused_with_the_reason_while_a_transaction_uses_the_tables() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let first = format!(
        "CREATE SCHEMA mcp_elicit; {}; UPDATE mcp_elicit.meta SET layout = 1",
        include_str!("01.sql")
    );
    server.sql(&database.name, &first).unwrap();
    let others = connected(&database);
    let other = others.connect().await.unwrap();
    let reads = "BEGIN; SELECT count(*) FROM mcp_elicit.replica";
    other.batch_execute(reads).await.unwrap();
    let store = Postgres::at(connected(&database));
    let refused = store.ready().await;
    assert!(
        matches!(&refused, Err(RecordStoreError::Refused { why, next })
            if why.contains("cannot be migrated") && next.contains("pg_stat_activity")),
        "{refused:?}"
    );
    let layout = "SELECT layout FROM mcp_elicit.meta";
    assert_eq!(server.sql(&database.name, layout).unwrap(), "1");
    other.batch_execute("COMMIT").await.unwrap();
    store.ready().await.unwrap();
    assert_eq!(server.sql(&database.name, layout).unwrap(), "2");
}

/// The server says that it is of another version, in one database.
#[tokio::test]
async fn a_server_older_than_version_14_is_refused_and_nothing_is_written() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    for (version, is_old) in [("130014", true), ("140000", false)] {
        let database = server.database();
        let says = format!(
            "CREATE OR REPLACE FUNCTION pg_catalog.current_setting(text) RETURNS text LANGUAGE sql STABLE AS \
             $$ SELECT CASE $1 WHEN 'server_version_num' THEN '{version}' ELSE pg_catalog.current_setting($1, false) END $$"
        );
        server.sql(&database.name, &says).unwrap();
        let opened = connected(&database).ready().await;
        if is_old {
            assert!(
                matches!(&opened, Err(RecordStoreError::Refused { why, next })
                    if why.ends_with("is PostgreSQL 13") && next == "use PostgreSQL 14 or newer."),
                "{opened:?}"
            );
        } else {
            opened.unwrap();
        }
        let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mcp_elicit'";
        let made = server.sql(&database.name, schemas).unwrap();
        assert_eq!(made, if is_old { "0" } else { "1" });
    }
}

/// Passes everything on between the store and the server. The first request that contains these words is made, but its
/// response is lost with the connection.
fn losing_a_response(server: u16, words: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    let is_lost = Arc::new(AtomicBool::new(false));
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                return;
            };
            let loses = Arc::new(AtomicBool::new(false));
            let (to_server, from_server) = (server.try_clone().expect("the stream"), server);
            let (from_client, to_client) = (client.try_clone().expect("the stream"), client);
            let (is_lost, found) = (is_lost.clone(), loses.clone());
            thread::spawn(move || {
                pass_on(from_client, to_server, |bytes| {
                    let has = bytes
                        .windows(words.len())
                        .any(|part| part == words.as_bytes());
                    if has && !is_lost.swap(true, Ordering::SeqCst) {
                        found.store(true, Ordering::SeqCst);
                    }
                    true
                });
            });
            thread::spawn(move || {
                pass_on(from_server, to_client, |_| !loses.load(Ordering::SeqCst));
            });
        }
    });
    port
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, mut is_passed: impl FnMut(&[u8]) -> bool) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !is_passed(&bytes[..count]) || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        let _closed_already = stream.shutdown(Shutdown::Both);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_taken_once_even_if_the_response_of_the_server_is_lost() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let store = Postgres::at(connected(&database));
    let call = |id: &str| FinishedCall {
        id: id.to_owned(),
        binding: "same".to_owned(),
        result: vec![1],
        until: Timestamp::from_millis(9_000),
    };
    for id in ["a", "b"] {
        store.keep_call(call(id)).await.unwrap();
    }
    for (id, words) in [("a", "SET taker"), ("b", "DELETE FROM mcp_elicit.call")] {
        let port = losing_a_response(server.port(), words);
        let address = format!("postgres://postgres@127.0.0.1:{port}/{}", database.name);
        let settings = PostgresSettings::read(&address).unwrap();
        let cut_off = Postgres::at(PostgresDatabase::new(settings).unwrap());
        let taken = cut_off.take_call(id.to_owned()).await.unwrap();
        assert_eq!(taken, Some(call(id)), "{words}");
        assert_eq!(store.take_call(id.to_owned()).await.unwrap(), None);
    }
    let left = "SELECT count(*) FROM mcp_elicit.call";
    assert_eq!(server.sql(&database.name, left).unwrap(), "0");
}

/// Lets a client in at a socket as `ask` says. Returns what it sent after its first message.
#[cfg(unix)]
fn asking_at(socket: &std::path::Path, ask: &'static [u8]) -> thread::JoinHandle<Vec<u8>> {
    let listener = std::os::unix::net::UnixListener::bind(socket).expect("a socket");
    thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut length = [0; 4];
        client.read_exact(&mut length).expect("a length");
        let rest = usize::try_from(u32::from_be_bytes(length)).expect("a length") - 4;
        client.read_exact(&mut vec![0; rest]).expect("a message");
        client.write_all(ask).expect("it listens");
        let mut said = Vec::new();
        // A client that refuses may reset the connection.
        let _ended = client.read_to_end(&mut said);
        said
    })
}

#[cfg(unix)]
#[tokio::test]
async fn whoever_listens_at_the_socket_of_a_stopped_database_gets_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let (cleartext, md5) = (
        b"R\0\0\0\x08\0\0\0\x03".as_slice(),
        b"R\0\0\0\x0c\0\0\0\x05salt".as_slice(),
    );
    let let_in = b"R\0\0\0\x08\0\0\0\0".as_slice();
    for (port, ask) in [(1, cleartext), (2, md5), (3, let_in)] {
        let fake = asking_at(&folder.path().join(format!(".s.PGSQL.{port}")), ask);
        let folder = folder.path().display();
        let address = format!("postgres://elicit@/elicit?host={folder}&port={port}");
        let settings = PostgresSettings::read(&address).unwrap();
        let database = PostgresDatabase::new(settings.with_password("s3cret")).unwrap();
        let refused = database.ready().await;
        assert!(
            matches!(&refused, Err(RecordStoreError::Refused { next, .. }) if next.contains("scram-sha-256")),
            "{refused:?}"
        );
        let said = fake.join().unwrap();
        assert!(said.is_empty(), "{said:?}");
    }
    // Nobody listens there.
    let address = format!("postgres://elicit@/e?host={}", folder.path().display());
    let settings = PostgresSettings::read(&address).unwrap();
    let away = PostgresDatabase::new(settings).unwrap().ready().await;
    assert!(
        matches!(&away, Err(error) if super::database::is_away(error)),
        "{away:?}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_at_a_socket_is_used_with_scram_and_without_a_password() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let role =
        "CREATE ROLE locked LOGIN PASSWORD 's3cret'; GRANT CREATE ON DATABASE postgres TO locked";
    server.sql("postgres", role).unwrap();
    let rules = server.data().join("pg_hba.conf");
    let before = std::fs::read_to_string(&rules).unwrap();
    let data = server.data();
    let folder = data.parent().unwrap().display();
    let port = server.port();
    let ready = async |user: &str, password: Option<&str>, more: &str| {
        let address =
            format!("postgres://{user}@/postgres?host=/nowhere&host={folder}&port={port}{more}");
        let mut settings = PostgresSettings::read(&address).unwrap();
        if let Some(password) = password {
            settings = settings.with_password(password);
        }
        PostgresDatabase::new(settings).unwrap().ready().await
    };
    let admit_by = |method: &str| {
        std::fs::write(&rules, format!("local all locked {method}\n{before}")).unwrap();
        server.stop();
        server.start_again();
    };
    admit_by("scram-sha-256");
    ready("locked", Some("s3cret"), "").await.unwrap();
    let writable = "&target_session_attrs=read-write";
    ready("locked", Some("s3cret"), writable).await.unwrap();
    let standby = "&target_session_attrs=read-only";
    assert!(ready("locked", Some("s3cret"), standby).await.is_err());
    assert!(ready("locked", Some("wr0ng"), "").await.is_err());
    let unlocked = ready("postgres", None, "").await;
    // Run by root, the server has another user, and its folder is in one like `/tmp`.
    let owner =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(data.parent().unwrap()).unwrap());
    if owner == rustix::process::geteuid().as_raw() {
        assert!(unlocked.is_ok(), "{unlocked:?}");
    } else {
        assert!(
            matches!(&unlocked, Err(RecordStoreError::Refused { why, .. }) if why.contains("another user")),
            "{unlocked:?}"
        );
    }
    admit_by("password");
    let refused = ready("locked", Some("s3cret"), "").await;
    assert!(
        matches!(refused, Err(RecordStoreError::Refused { .. })),
        "{refused:?}"
    );
}

/// A server that hangs: its machine goes on.
#[cfg(unix)]
#[tokio::test]
async fn a_server_that_hangs_is_left_and_used_again_when_it_goes_on() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let address = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
    let mut settings = PostgresSettings::read(&address).unwrap();
    settings.let_in_timeout = Duration::from_secs(2);
    settings.answer_timeout = Duration::from_secs(2);
    let store = Postgres::at(PostgresDatabase::new(settings).unwrap());
    store.audit_end().await.unwrap();
    server.hang();
    assert!(store.audit_end().await.is_err());
    server.go_on();
    store.audit_end().await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_that_is_silent_is_left_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join(".s.PGSQL.1");
    let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    for address in [
        format!(
            "postgres://elicit@/elicit?host={}&port=1",
            folder.path().display()
        ),
        format!("postgres://elicit@127.0.0.1:{port}/elicit"),
    ] {
        let mut settings = PostgresSettings::read(&address).unwrap();
        settings.let_in_timeout = Duration::from_secs(1);
        let refused = PostgresDatabase::new(settings).unwrap().ready().await;
        assert!(
            matches!(&refused, Err(RecordStoreError::Refused { why, .. }) if why.contains("within 1 seconds")),
            "{refused:?}"
        );
    }
    drop(listener);
}
