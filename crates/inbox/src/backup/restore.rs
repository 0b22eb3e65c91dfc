//! The restore of a backup into an empty folder. The gateway went on after the backup was made, so everything in it
//! that could take effect a second time is ended: see [`mcp_elicit_record::restored`].

use std::path::Path;
use std::sync::Arc;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::audit::{Details, Event};
use mcp_elicit_record::restored::EndedAtRestore;
use mcp_elicit_record::store::{DatabaseRecord, Sqlite, both_sides, record_parts};
use mcp_elicit_record::{LockFile, Record};

use super::{
    BackupError, CheckedBackup, NewFolder, check, copy_file, digest_of, make_parent,
    refuse_occupied,
};
use crate::api::ON_COMMAND_LINE;
use crate::direct_record::keys_of_database;
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
    /// The contents of the record that were ended.
    pub ended: EndedAtRestore,
    /// The number of ended sessions of people.
    pub sessions: usize,
    /// The number of tokens of programs that are valid.
    pub tokens: usize,
    /// The number of tokens of programs that were revoked.
    pub revoked: usize,
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
        ended: EndedAtRestore::default(),
        sessions: 0,
        tokens: 0,
        revoked: 0,
    };
    // What an earlier version had in files is moved into the record before it is opened below.
    restored.sessions = end_sessions(state.path())?;
    count_tokens(unfinished.path(), settings, clock(), &mut restored)?;
    if restored.backup.record.is_some() {
        restored.ended = end_in_record(&state, &restored, clock).await?;
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

/// Ends all sessions, with their devices; returns the number of people's. The pages get another path.
fn end_sessions(folder: &Path) -> Result<usize, BackupError> {
    let state = StateFolder::at(folder);
    let ended = state.logins().end(|_| true);
    let ended = ended.map_err(BackupError::file(folder))?.sessions.len();
    let renewed = state.sessions().begin_anew();
    renewed.map_err(BackupError::file(folder))?;
    Ok(ended)
}

fn count_tokens(
    folder: &Path,
    settings: Restore,
    now: Timestamp,
    restored: &mut Restored,
) -> Result<(), BackupError> {
    let tokens = StateFolder::at(folder).api_tokens();
    for token in tokens.list()? {
        if !token.is_valid(now) {
            continue;
        }
        if settings.revokes_tokens {
            tokens.revoke(&token.id, now)?;
            restored.revoked += 1;
        } else {
            restored.tokens += 1;
        }
    }
    Ok(())
}

/// Ends what could take effect a second time, with an audit event.
async fn end_in_record(
    state: &StateFolder,
    restored: &Restored,
    clock: fn() -> Timestamp,
) -> Result<EndedAtRestore, BackupError> {
    let keys = state.key_files().open().await?;
    let store = Arc::new(Sqlite::at(&state.record()).keyed(keys.chain()));
    store.ready().await?;
    // The folder has another name yet, so that no other process uses the record.
    let lock = LockFile::unshared().map_err(BackupError::file(state.path()))?;
    let record = Record::new(store, keys, lock, clock);
    let ended = record.end_restored().await?;
    let reason = format!(
        "a backup of {}; ended: {} answer(s) not delivered, {} question(s) with votes, {} result(s), {} approval(s), {} session(s), {} token(s)",
        moment(restored.backup.manifest.at),
        ended.answers,
        ended.votes,
        ended.results,
        ended.grants,
        restored.sessions,
        restored.revoked,
    );
    let details = Details {
        reason: Some(&reason),
        ..Details::by(ON_COMMAND_LINE)
    };
    record.audit_details(Event::Restored, &details).await?;
    record.flush().await?;
    drop(record);
    // Moves the log into the file.
    Sqlite::at(&state.record()).close().await?;
    Ok(ended)
}

/// Moves the record of a folder that is not in use into a database, and notes its address.
async fn move_record(
    state: &StateFolder,
    database: &dyn DatabaseRecord,
) -> Result<(), BackupError> {
    let keys = keys_of_database(state)?;
    let source = Sqlite::at(&state.record()).with_keys(&keys);
    let (parts, rest) = record_parts();
    let (sent, received) =
        tokio::join!(source.send_parts(parts), database.receive_parts(keys, rest));
    let closed = source.close().await;
    both_sides(sent, received)?;
    closed?;
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
