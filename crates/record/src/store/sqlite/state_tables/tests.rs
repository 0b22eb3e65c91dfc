//! Tests of the move of old files into the tables, also by processes that are killed.

use std::path::Path;
use std::process::Command;

use mcp_elicit_core::lifecycle::Timestamp;
use rusqlite::Connection;

use super::super::super::api_tokens::{
    Added, ApiToken, ApiTokenStore, BlockedCaller, Scope, TokenOwner,
};
use super::super::super::shared_rows::{BROWSERS, LOGINS};
use super::*;

/// The variables of a process that is killed while it moves a file: the record, the point, and the number of SQLite's
/// instructions.
const RECORD: &str = "MCP_ELICIT_MOVE_RECORD";
pub(super) const KILLED_AT: &str = "MCP_ELICIT_MOVE_KILLED_AT";
const INSTRUCTIONS: &str = "MCP_ELICIT_MOVE_INSTRUCTIONS";

/// A file as version 0.1.0 wrote it, with every member, and a token from before there were owners.
const OLD: &str = r#"{"tokens":[
  {"id":"0a0a0a0a0a0a","name":"ci","hash":"5e","scopes":["call"],"madeAt":100},
  {"id":"0b0b0b0b0b0b","name":"bot","hash":"5f","scopes":["list","answer"],"owner":{"person":"ada"},"madeAt":101,"expiresAt":900,"usedAt":500},
  {"id":"0c0c0c0c0c0c","name":"old","hash":"60","scopes":["audit"],"owner":"nobody","madeAt":102,"revokedAt":300}
],"blocked":[{"issuer":"https://id","subject":"eve","blockedAt":7}]}"#;

fn tokens() -> Vec<ApiToken> {
    let token = |id: &str, name: &str, hash: &str, scopes: &[Scope], made_at| ApiToken {
        id: id.repeat(6),
        name: name.to_owned(),
        hash: hash.to_owned(),
        scopes: scopes.to_vec(),
        owner: None,
        made_at,
        expires_at: None,
        revoked_at: None,
        used_at: None,
    };
    vec![
        token("0a", "ci", "5e", &[Scope::Call], 100),
        ApiToken {
            owner: Some(TokenOwner::Person("ada".to_owned())),
            expires_at: Some(900),
            used_at: Some(500),
            ..token("0b", "bot", "5f", &[Scope::List, Scope::Answer], 101)
        },
        ApiToken {
            owner: Some(TokenOwner::Nobody),
            revoked_at: Some(300),
            ..token("0c", "old", "60", &[Scope::Audit], 102)
        },
    ]
}

fn blocked(subject: &str) -> BlockedCaller {
    BlockedCaller {
        issuer: "https://id".to_owned(),
        subject: subject.to_owned(),
        blocked_at: 7,
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn old_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.sqlite");
    std::fs::write(folder.path().join("api.tokens"), OLD).unwrap();
    (folder, record)
}

fn holds_everything(record: &Path) {
    let tables = StateTables::at(record);
    assert_eq!(tables.tokens().unwrap(), tokens());
    assert_eq!(tables.blocked().unwrap(), [blocked("eve")]);
    let old = record.with_file_name("api.tokens");
    assert_eq!(std::fs::read_to_string(old).unwrap(), api_tokens::NOTICE);
}

#[test]
fn the_file_of_earlier_versions_is_moved_into_the_tables_once() {
    let (folder, record) = old_folder();
    holds_everything(&record);
    let tables = StateTables::at(&record);
    tables.remove(&"0a".repeat(6)).unwrap();
    assert_eq!(tables.tokens().unwrap().len(), 2);
    let again = StateTables::at(&record);
    assert_eq!(again.tokens().unwrap().len(), 2, "it is not moved twice");
    #[cfg(unix)]
    for name in ["record.sqlite", "api.tokens", "api.tokens.lock"] {
        let file = std::fs::metadata(folder.path().join(name)).unwrap();
        let mode = std::os::unix::fs::MetadataExt::mode(&file);
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_record_of_an_earlier_version_gets_the_tables_and_keeps_its_rows() {
    let (_folder, record) = old_folder();
    let old = Connection::open(&record).unwrap();
    old.execute_batch(include_str!("../../layouts/12.sql"))
        .unwrap();
    old.close().unwrap();
    holds_everything(&record);
    let file = Connection::open(&record).unwrap();
    let text = "SELECT count(*) FROM question";
    let count: i64 = file.query_row(text, [], |row| row.get(0)).unwrap();
    assert!(count > 0);
}

#[test]
fn what_was_ended_meanwhile_stays_ended_if_the_file_comes_back() {
    let (folder, record) = old_folder();
    let tables = StateTables::at(&record);
    assert!(tables.revoke(&"0a".repeat(6), at(400)).unwrap());
    assert_eq!(tables.block(&blocked("mallory")).unwrap(), Added::Yes);
    tables.note_use(&"0b".repeat(6), at(600)).unwrap();
    // The operator puts the old file back; a gateway sees it at its next request.
    std::fs::write(folder.path().join("api.tokens"), OLD).unwrap();
    let all = tables.tokens().unwrap();
    assert_eq!(all.len(), 3);
    assert_eq!(all[0].revoked_at, Some(400));
    assert_eq!(all[1].used_at, Some(600));
    assert_eq!(
        tables.blocked().unwrap(),
        [blocked("eve"), blocked("mallory")]
    );
}

#[test]
fn a_file_that_cannot_be_read_makes_everything_fail_and_stays() {
    let (folder, record) = old_folder();
    let path = folder.path().join("api.tokens");
    for damaged in ["", "{", "{}", "[]", r#"{"tokens":[{"id":"a"}]}"#] {
        std::fs::write(&path, damaged).unwrap();
        let tables = StateTables::at(&record);
        let refused = tables.tokens().unwrap_err();
        assert!(matches!(refused, RecordStoreError::OldFile("api.tokens")));
        assert!(refused.to_string().contains("api.tokens cannot be read"));
        assert!(tables.is_blocked("https://id", "bob").is_err());
        assert!(tables.add(&tokens()[0]).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), damaged);
        assert!(!record.exists());
    }
}

#[test]
fn reading_creates_nothing_and_a_block_leaves_a_notice_for_earlier_versions() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.sqlite");
    let tables = StateTables::at(&record);
    assert!(tables.tokens().unwrap().is_empty() && tables.blocked().unwrap().is_empty());
    assert!(!tables.is_blocked("https://id", "eve").unwrap());
    assert!(tables.find("0a").unwrap().is_none());
    assert!(!tables.revoke("0a", at(1)).unwrap());
    assert_eq!(tables.prune(at(1)).unwrap(), 0);
    assert!(!tables.unblock("https://id", "eve").unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(tables.add(&tokens()[0]).unwrap(), Added::Yes);
    assert!(!folder.path().join("api.tokens").exists());
    assert_eq!(tables.block(&blocked("eve")).unwrap(), Added::Yes);
    let left = std::fs::read(folder.path().join("api.tokens")).unwrap();
    assert_eq!(left, api_tokens::NOTICE.as_bytes());
    assert!(
        StateTables::at(&record)
            .is_blocked("https://id", "eve")
            .unwrap()
    );
}

#[test]
fn the_database_of_another_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.sqlite");
    for version in [0, 5] {
        let other = Connection::open(&record).unwrap();
        other
            .execute_batch(&format!(
                "DROP TABLE IF EXISTS audit; CREATE TABLE audit (a); PRAGMA user_version = {version}"
            ))
            .unwrap();
        other.close().unwrap();
        let before = std::fs::read(&record).unwrap();
        let refused = StateTables::at(&record).tokens();
        assert!(refused.is_err(), "{version}");
        assert_eq!(std::fs::read(&record).unwrap(), before, "{version}");
    }
}

/// Moves the file beside the record of the variable, and ends like a killed process.
#[test]
fn a_process_that_is_killed_while_it_moves_a_file() {
    let Some(record) = std::env::var_os(RECORD) else {
        return;
    };
    let tables = with_logins(Path::new(&record));
    if let Ok(count) = std::env::var(INSTRUCTIONS) {
        let mut inner = tables.lock();
        let connection = inner.file.connection().unwrap();
        // Pages are written before the transaction ends, as those of a large file are.
        connection
            .execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1")
            .unwrap();
        let end = || std::process::abort();
        connection
            .progress_handler(count.parse().unwrap(), Some(end))
            .unwrap();
    }
    let _killed_before = (tables.tokens(), tables.rows(LOGINS));
}

/// Runs the test above in a process of its own; returns `true` if it was killed.
fn was_killed(record: &Path, variable: &str, value: &str) -> bool {
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "store::sqlite::state_tables::tests::a_process_that_is_killed_while_it_moves_a_file",
        ])
        .env(RECORD, record)
        .env(variable, value)
        .output()
        .unwrap();
    !ended.status.success()
}

#[test]
fn a_move_that_was_killed_at_any_step_is_made_again_and_loses_and_doubles_nothing() {
    for (variable, value, is_left) in [
        (INSTRUCTIONS, "1", true),
        (INSTRUCTIONS, "40", true),
        (INSTRUCTIONS, "90", true),
        (KILLED_AT, "merged", true),
        (KILLED_AT, "retired", false),
    ] {
        let (folder, record) = old_folder();
        assert!(was_killed(&record, variable, value), "{variable} {value}");
        let left = std::fs::read_to_string(folder.path().join("api.tokens")).unwrap();
        assert_eq!(left == OLD, is_left, "{variable} {value}");
        // Killed a second time where the first one was.
        if is_left {
            assert!(was_killed(&record, variable, value), "{variable} {value}");
        }
        holds_everything(&record);
    }
}

#[test]
fn a_token_that_an_earlier_version_revokes_between_the_steps_stays_revoked() {
    let (folder, record) = old_folder();
    assert!(was_killed(&record, KILLED_AT, "merged"));
    let revoked = OLD.replace(r#""madeAt":100}"#, r#""madeAt":100,"revokedAt":200}"#);
    std::fs::write(folder.path().join("api.tokens"), revoked).unwrap();
    let all = StateTables::at(&record).tokens().unwrap();
    assert_eq!((all.len(), all[0].revoked_at), (3, Some(200)));
}

#[test]
fn processes_that_move_a_file_at_once_move_it_once() {
    let (_folder, record) = old_folder();
    let together = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let tables = StateTables::at(&record);
                together.wait();
                assert_eq!(tables.tokens().unwrap(), tokens());
            });
        }
    });
    holds_everything(&record);
}

/// A file of logins as version 0.1.0 wrote it.
const OLD_LOGINS: &str = r#"{"sessions":[{"digest":"d2"},{"digest":"d1"}],"people":{"ada":{"subject":"a"}},"used_tokens":[["t",7]]}"#;

fn with_logins(record: &Path) -> StateTables {
    StateTables::at(record).with_earlier_file(EarlierFile {
        entity: LOGINS,
        name: "inbox.logins",
        notice: "moved\n",
        read: |bytes| {
            let value = serde_json::from_slice(bytes);
            value.map_err(|_| RecordStoreError::OldFile("inbox.logins"))
        },
    })
}

fn old_logins() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.sqlite");
    std::fs::write(folder.path().join("inbox.logins"), OLD_LOGINS).unwrap();
    (folder, record)
}

fn holds_the_logins(record: &Path, version: u64) {
    let (found, rows) = with_logins(record).rows(LOGINS).unwrap();
    assert_eq!((found, rows.len()), (version, 5));
    let mut old: Value = serde_json::from_str(OLD_LOGINS).unwrap();
    old["devices"] = Value::Array(Vec::new());
    assert_eq!(LOGINS.compose(&rows), Some(old));
    let left = std::fs::read_to_string(record.with_file_name("inbox.logins"));
    assert_eq!(left.unwrap(), "moved\n");
}

#[test]
fn a_move_of_logins_that_was_killed_at_any_step_is_made_again_and_loses_and_doubles_nothing() {
    for (variable, value) in [
        (INSTRUCTIONS, "1"),
        (INSTRUCTIONS, "40"),
        (INSTRUCTIONS, "90"),
        (KILLED_AT, "merged"),
        (KILLED_AT, "retired"),
    ] {
        let (_folder, record) = old_logins();
        assert!(was_killed(&record, variable, value), "{variable} {value}");
        holds_the_logins(&record, 1);
        holds_the_logins(&record, 1);
    }
}

#[test]
fn what_an_earlier_version_ends_between_the_steps_has_ended_and_what_ended_later_does_not_come_back()
 {
    let (folder, record) = old_logins();
    let file = folder.path().join("inbox.logins");
    assert!(was_killed(&record, KILLED_AT, "merged"));
    std::fs::write(&file, OLD_LOGINS.replace(r#",{"digest":"d1"}"#, "")).unwrap();
    let tables = with_logins(&record);
    assert_eq!(tables.rows(LOGINS).unwrap().1.len(), 4);
    let mut changes = Some(RowChanges {
        written: Vec::new(),
        removed: vec![("sessions".to_owned(), "d2".to_owned())],
    });
    let version = SharedRowStore::change(&tables, LOGINS, 1, &mut |version, rows| {
        assert_eq!((version, &rows), (1, &None), "the rows are known");
        changes.take()
    });
    assert_eq!(version.unwrap(), 2);
    // The operator puts the old file back.
    std::fs::write(&file, OLD_LOGINS).unwrap();
    let (version, rows) = with_logins(&record).rows(LOGINS).unwrap();
    assert_eq!((version, rows.len()), (2, 3));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "moved\n");
}

#[test]
fn a_file_of_logins_that_cannot_be_read_stays_and_nothing_else_is_stopped_by_it() {
    let (folder, record) = old_logins();
    std::fs::write(folder.path().join("inbox.logins"), "{").unwrap();
    let tables = with_logins(&record);
    assert!(matches!(
        tables.rows(LOGINS),
        Err(RecordStoreError::OldFile("inbox.logins"))
    ));
    assert!(tables.version(LOGINS).is_err() && tables.tokens().unwrap().is_empty());
    assert_eq!(tables.version(BROWSERS).unwrap(), 0);
}
