//! The restore of a backup into an empty folder. The gateway went on after the backup was made, so everything in it
//! that could take effect a second time is ended: see [`mcp_elicit_record::restored`].

use std::path::Path;
use std::sync::Arc;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::audit::{AuditedEvent, Details, Event};
use mcp_elicit_record::restored::EndedAtRestore;
use mcp_elicit_record::store::{DatabaseRecord, RecordStore, Sqlite, both_sides, record_parts};
use mcp_elicit_record::{LockFile, Record};

use super::new_folder::NewFolder;
use super::{
    BackupError, CheckedBackup, check, copy_file, digest_of, make_parent, refuse_occupied,
};
use crate::api::ON_COMMAND_LINE;
use crate::direct_record::{keys_in, keys_of_database};
use crate::seen_audit::SeenAudit;
use crate::state_folder::{RECORD_ADDRESS, StateFolder};

/// The settings of a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restore {
    /// `true` to revoke all tokens of programs: those that were revoked after the backup was made work again otherwise.
    pub revokes_tokens: bool,
}

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The backup.
    pub backup: CheckedBackup,
    /// Everything that was ended.
    pub ended: EndedByRestore,
}

/// Everything of a restored record that was ended, because it could take effect a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedByRestore {
    /// The questions, results and approvals.
    pub contents: EndedAtRestore,
    /// The number of sessions of people.
    pub sessions: usize,
    /// The number of tokens of programs that were revoked.
    pub revoked: usize,
    /// The number of tokens of programs that are valid.
    pub tokens: usize,
}

/// Restores a backup into a folder that does not exist or is empty, and its record into the database of the folder, if that
/// has one, which has no record. The folder gets its name when it is complete, and the database its record in one
/// transaction before.
///
/// # Errors
/// If the backup does not verify or is of a newer version, the folder is in use or not empty, the database has a record or
/// cannot be used, or a file cannot be written.
pub async fn restore(
    backup: &Path,
    folder: &StateFolder,
    settings: Restore,
    clock: fn() -> Timestamp,
) -> Result<Restored, BackupError> {
    let (to, database) = (folder.path(), folder.database());
    refuse_occupied(to)?;
    let checked = check(backup).await?;
    if let Some(database) = database {
        if checked.record.is_none() {
            return Err(BackupError::NoRecord(backup.to_owned()));
        }
        database.refuse_occupied().await?;
    }
    let unfinished = NewFolder::create(to)?;
    // The record is in the folder, or in the database of this restore.
    let is_elsewhere = |name: &str| name == RECORD_ADDRESS && checked.record.is_some();
    let files = checked.manifest.files.iter();
    for file in files.filter(|file| !is_elsewhere(&file.name)) {
        let (from, copy) = (backup.join(&file.name), unfinished.path().join(&file.name));
        make_parent(&copy)?;
        copy_file(&from, &copy).map_err(BackupError::file(&from))?;
        if digest_of(&copy, &file.name)? != *file {
            let why = format!("{} was changed while it was copied", file.name);
            return Err(BackupError::Damaged(why));
        }
    }
    let state = StateFolder::at(unfinished.path());
    let mut restored = Restored {
        backup: checked,
        ended: EndedByRestore::default(),
    };
    // What an earlier version had in files is moved into the record before it is opened below.
    restored.ended = end_in_tables(&state, settings, clock())?;
    if restored.backup.record.is_some() {
        end_in_record(&state, &mut restored, clock).await?;
    }
    if let Some(database) = database {
        refuse_occupied(to)?;
        move_record(&state, database.as_ref()).await?;
    }
    remove_locks(state.path())?;
    unfinished.rename(to)?;
    Ok(restored)
}

/// Returns `true` if a gateway runs on this folder.
pub(super) fn is_in_use(folder: &Path) -> bool {
    LockFile::is_any_held(&StateFolder::at(folder).leases())
}

/// Ends everything in a record that could take effect a second time, because it was restored with other tools than
/// [`restore`]: those of the database, a copy of a file, a snapshot of a disk. The record is in the folder or in its
/// database. Returns `None` if there was nothing to end, and the audit says already that the record was restored.
///
/// # Errors
/// If a gateway or a command uses the record, or it cannot be read or written.
pub async fn end_restored(
    folder: &StateFolder,
    settings: Restore,
    clock: fn() -> Timestamp,
) -> Result<Option<EndedByRestore>, BackupError> {
    let record = opened_alone(folder, clock).await?;
    let mut ended = end_in_tables(folder, settings, clock())?;
    ended.contents = record.end_restored().await?;
    let has_ended_nothing = EndedByRestore {
        tokens: ended.tokens,
        ..EndedByRestore::default()
    } == ended;
    let is_said = has_ended_nothing && is_last_restored(record.store()).await?;
    if !is_said {
        note(&record, "with other tools", ended).await?;
    }
    // Gateways of this folder go on with it, whatever they saw before.
    if let Some(seen) = SeenAudit::now(record.store(), clock()).await? {
        seen.write(folder)
            .map_err(BackupError::file(folder.path()))?;
    }
    Ok((!is_said).then_some(ended))
}

/// Opens a record that no other process uses.
async fn opened_alone(
    folder: &StateFolder,
    clock: fn() -> Timestamp,
) -> Result<Record, BackupError> {
    let (store, keys, lock): (Arc<dyn RecordStore>, _, _) = match folder.database() {
        None => {
            let leases = folder.leases();
            let lock = LockFile::acquire(&leases).map_err(BackupError::file(&leases))?;
            if lock.has_others() {
                return Err(BackupError::Running(folder.path().display().to_string()));
            }
            let keys = folder.key_files().open().await?;
            let store = Sqlite::at(&folder.record()).with_keys(&keys);
            store.ready().await?;
            (Arc::new(store), keys, lock)
        }
        Some(database) => {
            let running = || BackupError::Running(database.address().to_owned());
            let keys = keys_of_database(folder).await?;
            if database.running().await? > 0 {
                return Err(running());
            }
            let (store, lock) = database.open(keys.clone(), folder.key_files()).await?;
            // One of them is this process.
            if database.running().await? > 1 {
                return Err(running());
            }
            (store, keys, lock)
        }
    };
    Ok(Record::new(store, keys, lock, clock))
}

/// Returns `true` if the last event of the audit says that the record was restored.
async fn is_last_restored(store: &dyn RecordStore) -> Result<bool, BackupError> {
    let end = store.audit_end().await?;
    let last = store.audit(end, 1).await?;
    let event = last
        .first()
        .and_then(|link| AuditedEvent::read(&link.entry)?.event());
    Ok(event == Some(Event::Restored))
}

/// Ends all sessions, with their devices, and revokes the tokens of programs if that is wanted. The pages get another
/// path.
fn end_in_tables(
    state: &StateFolder,
    settings: Restore,
    now: Timestamp,
) -> Result<EndedByRestore, BackupError> {
    let sessions = state.logins().end(|_| true);
    let sessions = sessions.map_err(BackupError::file(state.path()))?.sessions;
    let renewed = state.sessions().begin_anew();
    renewed.map_err(BackupError::file(state.path()))?;
    let mut ended = EndedByRestore {
        sessions: sessions.len(),
        ..EndedByRestore::default()
    };
    let tokens = state.api_tokens();
    for token in tokens.list()? {
        if !token.is_valid(now) {
            continue;
        }
        if settings.revokes_tokens {
            tokens.revoke(&token.id, now)?;
            ended.revoked += 1;
        } else {
            ended.tokens += 1;
        }
    }
    Ok(ended)
}

/// Ends what could take effect a second time in the record of a backup, with an audit event.
async fn end_in_record(
    state: &StateFolder,
    restored: &mut Restored,
    clock: fn() -> Timestamp,
) -> Result<(), BackupError> {
    let keys = state.key_files().open().await?;
    let store = Arc::new(Sqlite::at(&state.record()).keyed(keys.chain()));
    store.ready().await?;
    // The folder has another name yet, so that no other process uses the record.
    let lock = LockFile::unshared().map_err(BackupError::file(state.path()))?;
    let record = Record::new(store, keys, lock, clock);
    restored.ended.contents = record.end_restored().await?;
    let of = format!("a backup of {}", moment(restored.backup.manifest.at));
    note(&record, &of, restored.ended).await?;
    drop(record);
    // Moves the log into the file.
    Sqlite::at(&state.record()).close().await?;
    Ok(())
}

/// Adds the event of a restore to the audit.
async fn note(record: &Record, from: &str, ended: EndedByRestore) -> Result<(), BackupError> {
    let EndedByRestore {
        contents,
        sessions,
        revoked,
        tokens: _,
    } = ended;
    let reason = format!(
        "{from}; ended: {} answer(s) not delivered, {} question(s) with votes, {} result(s), {} approval(s), {sessions} session(s), {revoked} token(s)",
        contents.answers, contents.votes, contents.results, contents.grants,
    );
    let details = Details {
        reason: Some(&reason),
        ..Details::by(ON_COMMAND_LINE)
    };
    record.audit_details(Event::Restored, &details).await?;
    Ok(record.flush().await?)
}

/// Moves the record of a folder that is not in use into a database, and notes its address.
async fn move_record(
    state: &StateFolder,
    database: &dyn DatabaseRecord,
) -> Result<(), BackupError> {
    let keys = keys_in(state)?;
    let source = Sqlite::at(&state.record()).with_keys(&keys);
    let (parts, rest) = record_parts();
    let (sent, received) = tokio::join!(
        source.send_parts(parts),
        database.receive_parts(keys.clone(), rest)
    );
    let closed = source.close().await;
    both_sides(sent, received)?;
    closed?;
    // The table gets the keys, so that other state folders need only `seal.key`; if not now, then at the first start.
    if let Err(fault) = database.open(keys, state.key_files()).await {
        tracing::warn!(%fault, "the keys were not written into the database yet; the first gateway in this folder does that");
    }
    let record = state.record();
    Sqlite::remove(&record).map_err(BackupError::file(&record))?;
    let noted = state.write_record_address(Some(database.address()));
    noted.map_err(BackupError::file(state.path()))
}

fn moment(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or_else(
        |_| "an unknown time".to_owned(),
        |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}

/// Removes the lock files that changes have left.
fn remove_locks(folder: &Path) -> Result<(), BackupError> {
    let entries = std::fs::read_dir(folder).map_err(BackupError::file(folder))?;
    for entry in entries {
        let path = entry.map_err(BackupError::file(folder))?.path();
        if path.extension().is_some_and(|ending| ending == "lock") {
            std::fs::remove_file(&path).map_err(BackupError::file(&path))?;
        }
    }
    Ok(())
}
