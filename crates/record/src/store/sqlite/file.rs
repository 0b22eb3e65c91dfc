//! The file of a store: opened on demand, migrated to this version's schema, and used by one thread at a time.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use rusqlite::{Connection, OpenFlags};

use super::super::{ChainKey, Crash, DatabaseFault, OpenFigures, RecordStoreError, StoreSize};
use super::{LOG, beside, lists};
use crate::encryption::Encryption;
use crate::state_file;

/// The statements that migrate a file from one schema to the next; a file's `user_version` is the number that were run.
const MIGRATIONS: [&str; 18] = [
    include_str!("../schema.sql"),
    include_str!("../claimed.sql"),
    include_str!("../typed.sql"),
    include_str!("../calls.sql"),
    include_str!("../learned.sql"),
    include_str!("../team.sql"),
    include_str!("../outbox.sql"),
    include_str!("../grants.sql"),
    include_str!("../addressed.sql"),
    include_str!("../waiting.sql"),
    include_str!("../listed.sql"),
    include_str!("../seal_check.sql"),
    include_str!("../api_tokens.sql"),
    include_str!("../used.sql"),
    include_str!("../shared.sql"),
    include_str!("../approval_forms.sql"),
    include_str!("../typed_lists.sql"),
    include_str!("../running_calls.sql"),
];

/// The number of waiting rows of each server, and the time of the oldest. `open` is a literal, since a partial index is
/// used for a constant only.
const OPEN_BY_SERVER: &str = "SELECT coalesce(server, json_extract(body, '$.server')), count(*), min(asked_at) FROM question WHERE open = 1 GROUP BY 1";

/// The number of all tables, indexes and triggers of a file, and of the two tables that every version of the record has.
const TABLES: &str = "SELECT count(*), count(*) FILTER (WHERE type = 'table' AND name IN ('question', 'audit')) FROM sqlite_schema";

/// The time that a statement waits for another writing process.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of cached prepared statements.
const STATEMENTS: usize = 64;
/// The number of writes after which the log is moved into the main file: about a thousand pages.
const CHECKPOINT_AFTER: usize = 128;
/// The number of writes after which that is overdue, and no more writes are made inline.
const CHECKPOINT_OVERDUE: usize = 2 * CHECKPOINT_AFTER;

/// The most questions that are prepared for the search at once, while writes wait.
const TEXTS_AT_ONCE: usize = 2 * CHECKPOINT_OVERDUE;

/// The number of attempts to open a file that other processes are creating, and the interval between them.
const OPEN_TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// The file, open or not, and its state.
pub(super) struct SqliteFile {
    path: PathBuf,
    connection: Option<Connection>,
    /// The crash that transactions survive now; `None` while the database was not configured.
    survives: Option<Crash>,
    /// The number of writes since the log was last moved into the main file.
    writes_in_log: usize,
    /// The number of the last known transaction of other connections.
    pub(super) changed_elsewhere: Option<i64>,
    /// The key of the audit's chain.
    pub(super) key: Option<ChainKey>,
    /// The keys of the values.
    pub(super) encryption: Option<Encryption>,
    /// `true` if the file is opened even if that key does not match the audit.
    pub(super) opens_with_any_key: bool,
}

impl SqliteFile {
    pub(super) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            connection: None,
            survives: None,
            writes_in_log: 0,
            changed_elsewhere: None,
            key: None,
            encryption: None,
            opens_with_any_key: false,
        }
    }

    /// Returns the connection, which is opened if necessary. The audit continues with the key of this store.
    pub(super) fn connection(&mut self) -> Result<&mut Connection, RecordStoreError> {
        if self.connection.is_none() {
            let mut connection = connect(&self.path)?;
            self.survives = None;
            self.changed_elsewhere = None;
            self.fit_key(&connection)?;
            self.fit_seal(&mut connection)?;
            self.go_on_keyed(&mut connection)?;
            self.connection = Some(connection);
        }
        self.connection.as_mut().ok_or(RecordStoreError::Closed)
    }

    /// Returns `true` if the file is open.
    pub(super) fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Closes the file, which moves the log into it.
    pub(super) fn close(&mut self) -> Result<(), RecordStoreError> {
        match self.connection.take().map(Connection::close) {
            Some(Err((_still_open, error))) => Err(error.into()),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Makes the next transactions survive this crash.
    pub(super) fn set_survives(&mut self, crash: Crash) -> Result<(), RecordStoreError> {
        if self.survives == Some(crash) {
            return Ok(());
        }
        let pragma = match crash {
            Crash::Process => "PRAGMA synchronous = NORMAL",
            Crash::Machine => "PRAGMA synchronous = FULL",
        };
        self.connection()?.execute_batch(pragma)?;
        self.survives = Some(crash);
        Ok(())
    }

    /// Runs `work` without waiting for another process; returns `None` if it would have to.
    pub(super) fn unless_busy<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, RecordStoreError>,
    ) -> Option<Result<T, RecordStoreError>> {
        let overdue = self.writes_in_log > CHECKPOINT_OVERDUE;
        let connection = self.connection.as_mut().filter(|_| !overdue)?;
        connection.busy_timeout(Duration::ZERO).ok()?;
        let done = work(self);
        if let Some(connection) = &self.connection {
            connection.busy_timeout(BUSY_TIMEOUT).ok()?;
        }
        match done {
            Err(fault) if is_busy(&fault) => None,
            done => Some(done),
        }
    }

    /// Counts writes, for [`Self::checkpoint_when_due`].
    pub(super) fn wrote(&mut self, count: usize) {
        self.writes_in_log += count;
    }

    /// After some writes, adds the texts of new questions for the search, and moves the log into the main file.
    pub(super) fn tidy_when_due(&mut self) {
        if self.writes_in_log >= CHECKPOINT_AFTER
            && let Err(fault) = self.add_new_texts(Some(TEXTS_AT_ONCE))
        {
            // A search adds them too, and reports it.
            tracing::warn!(%fault, "new questions were not prepared for the search");
        }
        self.checkpoint_when_due();
    }

    /// Moves the log into the main file after some writes, without waiting for readers.
    pub(super) fn checkpoint_when_due(&mut self) {
        if self.writes_in_log < CHECKPOINT_AFTER {
            return;
        }
        self.writes_in_log = 0;
        if let Some(connection) = &self.connection {
            let _readers_may_be_at_it = connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
        }
    }

    /// Returns the waiting rows in figures.
    pub(super) fn open_figures(&mut self) -> Result<OpenFigures, RecordStoreError> {
        let connection = self.connection()?;
        let mut statement = connection.prepare_cached(OPEN_BY_SERVER)?;
        let mut rows = statement.query([])?;
        let mut found = OpenFigures::default();
        while let Some(row) = rows.next()? {
            let (count, oldest): (i64, i64) = (row.get(1)?, row.get(2)?);
            let oldest = Timestamp::from_millis(u64::try_from(oldest).unwrap_or(0));
            found.oldest = Some(found.oldest.map_or(oldest, |known| known.min(oldest)));
            let count = u64::try_from(count).unwrap_or(0);
            found.by_server.push((row.get(0)?, count));
        }
        Ok(found)
    }

    /// Returns the size of the file and its log.
    pub(super) fn size(&mut self) -> Result<StoreSize, RecordStoreError> {
        let used = "SELECT (page_count - freelist_count) * page_size \
             FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
        let mut statement = self.connection()?.prepare_cached(used)?;
        let used: i64 = statement.query_row([], |row| row.get(0))?;
        drop(statement);
        let of = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        Ok(StoreSize {
            on_disk: of(&self.path) + of(&beside(&self.path, LOG)),
            used: u64::try_from(used).unwrap_or(0),
        })
    }

    /// Flushes the log to the disk. What is not in it any more was flushed before it left.
    pub(super) fn sync_log(&mut self) -> Result<(), RecordStoreError> {
        self.connection()?;
        let mut options = std::fs::OpenOptions::new();
        // Windows flushes only files that can be written. SQLite has no locks on this one, which closing it would end.
        match options.read(true).write(true).open(beside(&self.path, LOG)) {
            Ok(log) => Ok(log.sync_all()?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves everything into the main file and truncates the log, which still contains erased values. Readers are not
    /// waited for: the next sweep tries again.
    pub(super) fn cut_log(&mut self) -> Result<(), RecordStoreError> {
        let connection = self.connection()?;
        connection.busy_timeout(Duration::ZERO)?;
        let _readers_may_be_at_it = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        connection.busy_timeout(BUSY_TIMEOUT)?;
        self.writes_in_log = 0;
        Ok(())
    }
}

/// Opens the file. If several processes create it at once, SQLite reports a lock to some of them without waiting: these
/// try again.
fn connect(path: &Path) -> Result<Connection, RecordStoreError> {
    for _ in 0..OPEN_TRIES {
        match open(path) {
            Err(fault) if is_busy(&fault) => sleep(PAUSE),
            opened => return opened,
        }
    }
    open(path)
}

/// Returns `true` if another process has the file locked.
fn is_busy(fault: &RecordStoreError) -> bool {
    matches!(fault, RecordStoreError::Database(error) if error.fault() == DatabaseFault::Busy)
}

/// Held while a file is created and opened. Nothing else in this process may open and close the file of a record: that would
/// end SQLite's locks, and another program that reads the record would delete the log as its last user.
static OPENING: Mutex<()> = Mutex::new(());

/// Opens a connection. Returns `true` with it if the file had no contents.
fn open_file(path: &Path) -> Result<(Connection, bool), RecordStoreError> {
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    // SQLite gives the files beside it the same mode.
    let length = state_file::create_unless_there(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok((Connection::open_with_flags(path, flags)?, length == 0))
}

fn open(path: &Path) -> Result<Connection, RecordStoreError> {
    let (mut connection, is_new) = open_file(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    refuse_foreign(&connection)?;
    // A new file is not synced while it is created, because it has no contents yet; an old file is. The log is moved
    // into the main file by threads that may wait for the disk.
    connection.execute_batch(if is_new {
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF"
    } else {
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"
    })?;
    connection.execute_batch("PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = 0")?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Rejects the database of another program, before anything is written into it.
fn refuse_foreign(connection: &Connection) -> Result<(), RecordStoreError> {
    // One view of the file, which another process may be creating.
    let view = connection.unchecked_transaction()?;
    let found = version(&view)?;
    // Of a newer version, the migration says so.
    if found >= known_layout() {
        return Ok(());
    }
    let count = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (all, ours): (i64, i64) = view.query_row(TABLES, [], count)?;
    let is_record = if found == 0 { all == 0 } else { ours == 2 };
    if is_record {
        return Ok(());
    }
    Err(RecordStoreError::NotRecord(
        "it is the database of another program",
    ))
}

pub(super) fn migrate(connection: &mut Connection) -> Result<(), RecordStoreError> {
    let known = known_layout();
    if version(connection)? == known {
        return Ok(());
    }
    let step = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another gateway may have been first.
    let found = version(&step)?;
    if found > known {
        return Err(RecordStoreError::Newer { found, known });
    }
    let done = usize::try_from(found).unwrap_or(0);
    for migration in &MIGRATIONS[done..] {
        step.execute_batch(migration)?;
    }
    lists::add_texts(&step, None)?;
    step.commit()?;
    Ok(())
}

/// Returns the triggers and views that a record has in any layout, as SQL.
pub(super) fn known_triggers_and_views() -> Result<HashSet<String>, RecordStoreError> {
    let mut connection = Connection::open_in_memory()?;
    let mut known = HashSet::new();
    let step = connection.transaction()?;
    for migration in MIGRATIONS {
        step.execute_batch(migration)?;
        known.extend(triggers_and_views(&step)?);
    }
    Ok(known)
}

/// Returns the triggers and views of a file, as SQL.
pub(super) fn triggers_and_views(connection: &Connection) -> Result<Vec<String>, RecordStoreError> {
    let text = "SELECT coalesce(sql, '') FROM sqlite_schema WHERE type IN ('trigger', 'view')";
    let mut statement = connection.prepare(text)?;
    let found = statement.query_map([], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Returns the number of this version's layout.
pub(super) fn known_layout() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

pub(super) fn version(connection: &Connection) -> Result<i64, RecordStoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// Returns `true` if this process has a lock on the file, by which other programs know that it is in use.
    fn is_locked(path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let inode = format!(":{}", std::fs::metadata(path).unwrap().ino());
        let own = std::process::id().to_string();
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|lock| {
            let words: Vec<&str> = lock.split_whitespace().collect();
            matches!(words[..], [_, "POSIX", _, _, by, file, ..] if by == own && file.ends_with(&inode))
        })
    }

    #[test]
    fn a_further_connection_leaves_the_locks_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.sqlite");
        let first = open(&path).unwrap();
        if !is_locked(&path) {
            // A file system whose files have other numbers in the list of locks.
            return;
        }
        let second = open(&path).unwrap();
        assert!(is_locked(&path));
        drop(second);
        assert!(is_locked(&path));
        // A program that only reads is not the last one, so it leaves the log.
        drop(Connection::open(&path).unwrap());
        assert!(beside(&path, LOG).exists());
        drop(first);
        assert!(!is_locked(&path));
    }
}
