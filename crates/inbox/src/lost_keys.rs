//! Tests of lost or damaged key files.

use std::io;
use std::sync::Arc;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::store::{RecordStoreError, Sqlite};
use mcp_elicit_record::{KeyFileError, KeyLoss, LockFile, Record, audit};

use super::api_tokens::Scope;
use super::sample;
use super::state_folder::StateFolder;

/// Starts on this folder like a gateway, asks one question, and ends.
async fn ask_once(state: &StateFolder) {
    let keys = state.key_files().open().await.unwrap();
    let store = Sqlite::at(&state.record()).keyed(keys.chain());
    let clock = || Timestamp::from_millis(1_000);
    let lock_file = LockFile::unshared().unwrap();
    let record = Arc::new(Record::new(Arc::new(store), keys, lock_file, clock));
    sample::raised(&record, Vec::new()).await.unwrap();
    record.flush().await.unwrap();
}

fn folder() -> (tempfile::TempDir, StateFolder) {
    let folder = tempfile::tempdir().unwrap();
    let state = StateFolder::open(&folder.path().join("state")).unwrap();
    (folder, state)
}

#[tokio::test]
async fn a_lost_key_that_the_record_needs_is_not_made_anew() {
    for (half, expected) in [
        (None, KeyLoss::Missing),
        (Some(0), KeyLoss::Damaged),
        (Some(7), KeyLoss::Damaged),
        (Some(40), KeyLoss::Damaged),
    ] {
        for is_seal in [true, false] {
            let (_folder, state) = folder();
            ask_once(&state).await;
            let path = if is_seal {
                state.seal()
            } else {
                state.identity()
            };
            let whole = std::fs::read(&path).unwrap();
            match half {
                None => std::fs::remove_file(&path).unwrap(),
                Some(bytes) => std::fs::write(&path, vec![7; bytes]).unwrap(),
            }
            let refused = state.key_files().open().await.err().unwrap();
            let checked = state.key_files().check().await.err().unwrap();
            assert_eq!(checked.to_string(), refused.to_string());
            let KeyFileError::Lost {
                path: named, loss, ..
            } = &refused
            else {
                panic!("{refused}");
            };
            assert_eq!((named, *loss), (&path, expected));
            let needed = if is_seal { "sealed" } else { "audit" };
            assert!(refused.to_string().contains(needed), "{refused}");
            let remedy = refused.remedy().unwrap();
            assert!(
                remedy.contains("backup") && remedy.contains("keys start-over"),
                "{remedy}"
            );
            assert_eq!(path.exists(), half.is_some(), "nothing was made");
            // With the key everything works as before.
            std::fs::write(&path, whole).unwrap();
            state.key_files().check().await.unwrap();
            ask_once(&state).await;
        }
    }
}

#[tokio::test]
async fn a_lost_key_that_nothing_needs_is_made_anew() {
    let (_folder, state) = folder();
    std::fs::write(state.seal(), b"half").unwrap();
    std::fs::write(state.identity(), b"").unwrap();
    ask_once(&state).await;
    assert_eq!(std::fs::read(state.seal()).unwrap().len(), 32);
    assert_eq!(std::fs::read(state.identity()).unwrap().len(), 32);
}

#[tokio::test]
async fn a_check_refuses_a_key_that_opens_no_value_of_the_record() {
    let (_folder, state) = folder();
    ask_once(&state).await;
    std::fs::write(state.seal(), [9; 32]).unwrap();
    let checked = state.key_files().check().await.err().unwrap();
    let told = RecordStoreError::OtherSealKey.to_string();
    assert_eq!(checked.to_string(), told);
}

#[tokio::test]
async fn another_key_does_not_go_on_with_the_audit() {
    let (_folder, state) = folder();
    ask_once(&state).await;
    std::fs::write(state.identity(), [9; 32]).unwrap();
    let keys = state.key_files().open().await.unwrap();
    let store = Sqlite::at(&state.record()).keyed(keys.chain());
    let refused = store.ready().await;
    assert!(
        matches!(refused, Err(RecordStoreError::OtherKey)),
        "{refused:?}"
    );
    let shown = Sqlite::at(&state.record())
        .keyed(keys.chain())
        .with_any_key();
    assert_eq!(audit::read(&shown).await.unwrap().len(), 1);
}

#[tokio::test]
async fn after_a_record_is_set_aside_a_new_one_begins_with_new_keys() {
    let (_folder, state) = folder();
    ask_once(&state).await;
    std::fs::remove_file(state.identity()).unwrap();
    let aside = state.key_files().set_record_aside().await.unwrap();
    let aside = aside.unwrap().path;
    ask_once(&state).await;
    let old = audit::read(&Sqlite::at(&aside)).await.unwrap();
    let new = audit::read(&Sqlite::at(&state.record())).await.unwrap();
    assert_eq!((old.len(), new.len()), (1, 1));
    let second = state.key_files().set_record_aside().await.unwrap();
    assert_ne!(second.unwrap().path, aside, "nothing is written over");
    assert_eq!(state.key_files().set_record_aside().await.unwrap(), None);
}

#[tokio::test]
async fn tokens_and_blocked_callers_stay_when_the_record_is_set_aside() {
    let (_folder, state) = folder();
    ask_once(&state).await;
    let now = Timestamp::from_millis(1_000);
    let scopes = [Scope::Call];
    let (_, text) = state.api_tokens().make("ci", &scopes, None, now).unwrap();
    assert!(state.api_tokens().block("https://id", "eve", now).unwrap());
    let path = state.path().to_owned();
    drop(state);
    let state = StateFolder::at(&path);
    std::fs::remove_file(state.seal()).unwrap();
    let aside = state.key_files().set_record_aside().await.unwrap().unwrap();
    assert!(aside.keeps_tables && state.record().exists());
    let tokens = state.api_tokens();
    assert!(tokens.check(&text, Scope::Call, now).is_ok());
    assert!(tokens.is_blocked("https://id", "eve"));
    ask_once(&state).await;
    assert_eq!(
        audit::read(&Sqlite::at(&state.record()))
            .await
            .unwrap()
            .len(),
        1
    );
    drop((tokens, state));
    // Of a damaged record nothing is kept, and that is said.
    let state = StateFolder::at(&path);
    std::fs::write(state.record(), "no record").unwrap();
    let aside = state.key_files().set_record_aside().await.unwrap().unwrap();
    assert!(!aside.keeps_tables && !state.record().exists());
    assert_eq!(std::fs::read(&aside.path).unwrap(), b"no record");
    let left = std::fs::read_dir(&path).unwrap();
    let mut left = left.map(|entry| entry.unwrap().path());
    assert!(!left.any(|path| path.extension().is_some_and(|end| end == "new")));
}

#[cfg(unix)]
#[tokio::test]
async fn every_file_in_the_state_folder_is_its_owners_only() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let (_folder, state) = folder();
    let keys = state.key_files().open().await.unwrap();
    let store = Sqlite::at(&state.record()).keyed(keys.chain());
    store.ready().await.unwrap();
    state.token().unwrap();
    let _lock = state.lock_inbox().unwrap();
    let _lease = LockFile::acquire(&state.leases()).unwrap();
    let open = || {
        let all = [state.path().to_owned(), state.leases()];
        let files = all
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let mode = |entry: io::Result<std::fs::DirEntry>| {
            let entry = entry.unwrap();
            let known = entry.metadata().unwrap();
            (known.is_file() && known.mode() & 0o077 != 0).then(|| entry.file_name())
        };
        files.filter_map(mode).collect::<Vec<_>>()
    };
    let names: Vec<_> = std::fs::read_dir(state.path()).unwrap().collect();
    assert!(names.len() >= 6, "with the log of the record: {names:?}");
    assert_eq!(open(), Vec::<std::ffi::OsString>::new());
    // Earlier versions left some readable.
    let other = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(state.record(), other).unwrap();
    StateFolder::open(state.path()).unwrap();
    assert_eq!(open(), Vec::<std::ffi::OsString>::new());
}
