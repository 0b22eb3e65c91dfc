//! Records of every layout so far open with all that they hold, also after a kill in the middle of their migration.
//!
//! The files in `layouts/` are records as earlier versions wrote them, as SQL. Their values are sealed with [`keys`]. A
//! layout that users may have is never changed: a new one gets a new file.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use mcp_elicit_core::lifecycle::{Phase, Timestamp};
use mcp_elicit_core::wire::{CallKind, Mode};
use mcp_elicit_policy::people::Addressee;
use rusqlite::Connection;

use super::file::{known_layout, migrate, version};
use super::*;
use crate::audit::{self, ChainCheck};
use crate::encryption::Encryption;
use crate::store::api_tokens::ApiTokenStore as _;
use crate::store::shared_rows::{LOGINS, SharedRowStore as _};
use crate::store::{Filter, ListKeys, ListQuery, Matching, Page, SearchWord};
use crate::used::UsedKind;
use crate::{IdentityKey, LockFile, Record, associated_data};

/// A record of each layout, and of the first spelling of two.
const LAYOUTS: [(i64, &str); 20] = [
    (1, include_str!("../layouts/01.sql")),
    (2, include_str!("../layouts/02.sql")),
    (3, include_str!("../layouts/03.sql")),
    (4, include_str!("../layouts/04.sql")),
    (5, include_str!("../layouts/05.sql")),
    (6, include_str!("../layouts/06.sql")),
    (7, include_str!("../layouts/07.sql")),
    (8, include_str!("../layouts/08.sql")),
    (9, include_str!("../layouts/09-first.sql")),
    (9, include_str!("../layouts/09.sql")),
    (10, include_str!("../layouts/10.sql")),
    (11, include_str!("../layouts/11-first.sql")),
    (11, include_str!("../layouts/11.sql")),
    (12, include_str!("../layouts/12.sql")),
    (13, include_str!("../layouts/13.sql")),
    (14, include_str!("../layouts/14.sql")),
    (15, include_str!("../layouts/15.sql")),
    (16, include_str!("../layouts/16.sql")),
    (17, include_str!("../layouts/17.sql")),
    (18, include_str!("../layouts/18.sql")),
];

/// The variables of the process that is killed while it migrates a file: the file, and the number of SQLite's
/// instructions before the end.
const FILE: &str = "MCP_ELICIT_MIGRATE_FILE";
const INSTRUCTIONS: &str = "MCP_ELICIT_MIGRATE_INSTRUCTIONS";

/// Returns the keys of the records in `layouts/`.
fn keys(folder: &Path) -> OwnKeys {
    let path = folder.join("identity.key");
    std::fs::write(&path, [8; 32]).unwrap();
    OwnKeys {
        encryption: Encryption::with_key(&[7; 32]),
        identity: IdentityKey::read(&path).unwrap().unwrap(),
    }
}

fn write_layout(path: &Path, layout: i64, text: &str) {
    let file = Connection::open(path).unwrap();
    file.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    file.execute_batch(text).unwrap();
    assert_eq!(version(&file).unwrap(), layout);
    file.close().unwrap();
}

fn clock() -> Timestamp {
    Timestamp::from_millis(2_500)
}

/// Opens the record and checks all that it holds.
async fn holds_everything(path: &Path, keys: OwnKeys, layout: i64) {
    let store = Arc::new(Sqlite::at(path).with_keys(&keys));
    store.ready().await.unwrap();
    let opened = |id: &str, column: &str, sealed: Option<&[u8]>| {
        let place = associated_data(id, column);
        keys.encryption.open(&place, sealed.unwrap()).unwrap()
    };
    let open = store.find("open".to_owned()).await.unwrap().unwrap();
    assert_eq!(open.body.mode, Mode::Url);
    assert_eq!(open.body.message, "Sign in");
    assert_eq!(open.lifecycle.phase(), Phase::Asked);
    assert_eq!(
        opened("open", "arguments", open.arguments.as_deref()),
        r#"{"environment":"production"}"#
    );
    let answered = store.find("answered".to_owned()).await.unwrap().unwrap();
    assert_eq!(answered.body.mode, Mode::Form);
    assert_eq!(answered.lifecycle.phase(), Phase::Answered);
    assert_eq!(answered.lifecycle.ended_by(), Some("inbox"));
    assert!(answered.lifecycle.valid_until().is_some());
    assert_eq!(
        opened("answered", "content", answered.content.as_deref()),
        r#"{"n":"Ada"}"#
    );
    let same = store.by_binding("0b".repeat(32)).await.unwrap();
    assert_eq!(same.len(), 1, "the same call made again finds its answer");

    // Lists are filtered and searched.
    for (filter, words, id) in [
        (Filter::Open, "sign deploy", "open"),
        (Filter::Ended, "deploy", "answered"),
    ] {
        let matching = Matching {
            server: Some("s".to_owned()),
            kind: Some(CallKind::Tool),
            words: SearchWord::all_in(words),
            ..Matching::default()
        };
        let query = ListQuery::new(filter, Page::first(9)).matching(matching);
        let listed = store.list(query).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].id, id);
    }

    let record = Record::new(
        store.clone(),
        keys.clone(),
        LockFile::unshared().unwrap(),
        clock,
    );
    if layout >= 4 {
        let calls = store.calls(Some("0d".repeat(32)), clock()).await.unwrap();
        assert_eq!((calls.len(), calls[0].running.as_ref()), (1, None));
        let call = store.take_call(calls[0].id.clone()).await.unwrap().unwrap();
        let result = opened("done", "result", Some(&call.result));
        assert_eq!(result, r#"{"content":[]}"#);
    }
    if layout >= 18 {
        let calls = store.calls(Some("0e".repeat(32)), clock()).await.unwrap();
        let running = calls[0].running.as_ref().unwrap();
        assert_eq!(running.owner, "gateway1");
        assert_eq!(
            running.link.as_deref(),
            Some("http://127.0.0.1:7878/q/open")
        );
    }
    if layout >= 5 {
        let learned = store.learned("0e".repeat(32)).await.unwrap();
        assert_eq!(learned.as_deref(), Some(r#"{"asking":["deploy"]}"#));
    }
    if layout >= 6 {
        waits_for_its_people(&record, &store, layout).await;
    }
    if layout >= 8 {
        let grants = record.grants().await.unwrap();
        assert_eq!(grants.len(), 1);
        assert_eq!(
            (grants[0].rule.as_str(), grants[0].answers.as_str()),
            ("careful", "{}")
        );
    }
    let tables = StateTables::at(path);
    let tokens = tables.tokens().unwrap();
    if layout >= 13 {
        let ids: Vec<_> = tokens.iter().map(|token| token.id.as_str()).collect();
        assert_eq!(ids, ["0a0a0a0a0a0a", "0b0b0b0b0b0b"]);
        assert_eq!(tokens[1].person(), Some("ada"));
        assert!(tables.is_blocked("https://id", "eve").unwrap());
    } else {
        assert!(tokens.is_empty());
    }
    if layout >= 14 {
        let kind = UsedKind::SlackSignature;
        assert!(record.is_used(kind, &[1]).await.unwrap());
        assert!(!record.is_used(UsedKind::Login, &[1]).await.unwrap());
    }
    let (version, rows) = tables.rows(LOGINS).unwrap();
    if layout >= 15 {
        assert_eq!((version, rows.len()), (7, 2));
        assert_eq!(rows[0].key, ("sessions".to_owned(), "aa".to_owned()));
    } else {
        assert_eq!((version, rows.len()), (0, 0));
    }
    let links = audit::read(&*store).await.unwrap();
    let entries = if layout >= 6 { 4 } else { 3 };
    // A chain without a key goes on with one, which an entry says.
    let links_of_layout = entries + usize::from(layout < 4);
    assert_eq!(links.len(), links_of_layout);
    let whole = ChainCheck::Whole {
        links: links_of_layout as u64,
        since: 1,
    };
    assert_eq!(audit::verify(&links, Some(&keys.chain())), whole);
}

/// Checks the approval of two people, of whom one has approved: it waits for the other one.
async fn waits_for_its_people(record: &Record, store: &Sqlite, layout: i64) {
    let row = store.find("approval".to_owned()).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.phase(), Phase::Shown);
    let team = row.team.as_deref().unwrap();
    assert!(team.is_approval);
    assert_eq!(team.rule_digest, "0123456789abcdef0123456789abcdef");
    assert_eq!(team.quorum().votes(), ["ada"]);
    assert_eq!(team.quorum().need().get(), 2);
    let entered = record.entered(&row).unwrap().unwrap();
    assert_eq!(
        (entered.by.as_str(), entered.content.as_deref()),
        ("ada", Some("{}"))
    );
    let comments = record.comments(&row).unwrap();
    assert_eq!(comments.len(), 1);
    assert_eq!(
        (comments[0].by.as_str(), comments[0].text.as_str()),
        ("bob", "please look")
    );
    assert!(!row.timeline().is_empty());
    for to in [
        Addressee::Group("ops".to_owned()),
        Addressee::Person("dan".to_owned()),
    ] {
        let mut under = ListKeys::default();
        under.add_addressee(&to);
        let listed = store
            .list(ListQuery::new(Filter::Open, Page::first(9)).under(Some(under)))
            .await
            .unwrap();
        assert_eq!(listed.len(), 1, "{to} finds it");
    }
    if layout >= 7 {
        let taken = store
            .take_notifications(clock(), clock(), 9, Vec::new())
            .await
            .unwrap();
        assert_eq!(taken.len(), 1, "its message is sent");
    }
}

#[test]
fn there_is_a_record_of_every_layout() {
    for layout in 1..=known_layout() {
        assert!(
            LAYOUTS.iter().any(|(number, _)| *number == layout),
            "{layout}"
        );
    }
}

#[tokio::test]
async fn a_record_of_every_layout_opens_with_all_that_it_holds() {
    for (layout, text) in LAYOUTS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.sqlite");
        write_layout(&path, layout, text);
        holds_everything(&path, keys(folder.path()), layout).await;
        let file = Connection::open(&path).unwrap();
        assert_eq!(version(&file).unwrap(), known_layout());
    }
}

/// Migrates the file of the variables, and ends like a killed process after some instructions.
#[test]
fn a_process_that_is_killed_while_it_migrates() {
    let (Some(path), Ok(count)) = (std::env::var_os(FILE), std::env::var(INSTRUCTIONS)) else {
        return;
    };
    let mut connection = Connection::open(path).unwrap();
    // Pages are written before the transaction ends, as those of a large record are.
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA cache_size = 1; PRAGMA cache_spill = 1")
        .unwrap();
    let end = || std::process::abort();
    connection
        .progress_handler(count.parse().unwrap(), Some(end))
        .unwrap();
    migrate(&mut connection).unwrap();
}

#[tokio::test]
async fn a_record_whose_migration_was_killed_opens_with_all_that_it_holds() {
    let mut killed = 0;
    for (layout, text) in LAYOUTS {
        if layout == known_layout() {
            continue;
        }
        for instructions in [1, 300, 3_000] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("record.sqlite");
            write_layout(&path, layout, text);
            let ended = Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "store::sqlite::layout_tests::a_process_that_is_killed_while_it_migrates",
                ])
                .env(FILE, &path)
                .env(INSTRUCTIONS, instructions.to_string())
                .output()
                .unwrap();
            if !ended.status.success() {
                killed += 1;
                let file = Connection::open(&path).unwrap();
                assert_eq!(
                    version(&file).unwrap(),
                    layout,
                    "all of a migration is done, or nothing"
                );
            }
            holds_everything(&path, keys(folder.path()), layout).await;
        }
    }
    assert!(killed >= LAYOUTS.len(), "{killed} processes were killed");
}

#[test]
fn the_values_of_arguments_leave_the_forms_of_earlier_approvals() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let (layout, text) = *LAYOUTS.iter().find(|(layout, _)| *layout == 15).unwrap();
    write_layout(&path, layout, text);
    let field = r#"{"type":"string","title":"path","default":"s3cr3t value"}"#;
    let form = format!(
        r#"{{"message":"Approve?","requestedSchema":{{"type":"object","properties":{{"/path":{field}}},"required":["/path"]}}}}"#
    );
    let mut file = Connection::open(&path).unwrap();
    file.execute("UPDATE question SET params = ?1", [&form])
        .unwrap();
    file.execute("DELETE FROM telling", []).unwrap();
    migrate(&mut file).unwrap();
    let forms = |approvals: bool| -> Vec<String> {
        let query = "SELECT params FROM question WHERE coalesce(json_extract(team, '$.is_approval'), 0) = ?1";
        let mut rows = file.prepare(query).unwrap();
        let rows = rows.query_map([approvals], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    assert_eq!(
        forms(true),
        [form.replace(r#","default":"s3cr3t value""#, "")]
    );
    let others = forms(false);
    assert!(!others.is_empty() && others.iter().all(|one| *one == form));
    // Nobody is told of a change that people do not see.
    let count = |table: &str| -> i64 {
        let query = format!("SELECT count(*) FROM {table}");
        file.query_row(&query, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count("telling"), 0);
    assert_eq!(count("sqlite_schema WHERE name = 'question_changed'"), 1);
}

/// All but calls in progress, which end with their gateway, as in the layouts before them.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_record_with_rows_in_every_table_is_moved_into_a_database_and_back() {
    use crate::store::{DatabaseRecord as _, PostgresRecord, PostgresSettings, record_parts};
    let Some(server) = mcp_elicit_testkit::postgres::PostgresServer::shared() else {
        return;
    };
    let settings = PostgresSettings::read(&server.database().address).unwrap();
    let database = PostgresRecord::new(settings).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let keys = keys(folder.path());
    let [from, to] = ["from.sqlite", "to.sqlite"].map(|name| folder.path().join(name));
    let (layout, text) = LAYOUTS.last().unwrap();
    write_layout(&from, *layout, text);
    let [source, target] = [&from, &to].map(|path| Sqlite::at(path).with_keys(&keys));
    source.ready().await.unwrap();
    let (hand, parts) = record_parts();
    let (sent, written) = tokio::join!(
        source.send_parts(hand),
        database.receive_parts(keys.clone(), parts)
    );
    assert!(sent.is_ok() && written.is_ok(), "{sent:?} {written:?}");
    target.ready().await.unwrap();
    let (hand, parts) = record_parts();
    let (sent, written) = tokio::join!(
        database.send_parts(keys.clone(), hand),
        target.receive_parts(parts)
    );
    assert!(sent.is_ok() && written.is_ok(), "{sent:?} {written:?}");
    target.close().await.unwrap();
    holds_everything(&to, keys, 17).await;
}
