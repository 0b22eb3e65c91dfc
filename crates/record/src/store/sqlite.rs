//! A store in one SQLite file, which several gateways of one person may share. WAL: writes survive a kill of the
//! process at any point.
//!
//! Everything runs on a thread that may wait for the disk, except a [write inline](RecordStore::write_inline): the calling
//! thread makes it if it takes some tens of microseconds, less than a thread switch.

/// The questions that this server asked without a rule, and on which nobody acted.
macro_rules! unanswered_of {
    () => {
        "coalesce(address, server) = ?3 AND team IS NULL \
         AND json_extract(exchange, '$.ending.phase') NOT IN ('answered', 'declined', 'cancelled')"
    };
}

mod audit;
mod calls;
mod copy;
#[cfg(test)]
mod cost_tests;
mod file;
mod grants;
#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod list_tests;
mod lists;
mod moved;
mod outbox;
mod questions;
mod recognize;
mod seal_check;
mod sealed;
mod state_tables;
mod used;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::Timestamp;
use rusqlite::{ErrorCode, Params, Row as Columns};

pub use self::copy::CopiedRecord;
use self::file::SqliteFile;
pub use self::state_tables::{EarlierFile, StateTables};
use super::outbox::{Notification, NotificationFilter, Notified, TakenMessage, Tried, Untold};
use super::{
    AuditEntry, ChainKey, Crash, DatabaseError, DatabaseFault, FinishedCall, KeyedContents,
    ListQuery, OpenCount, OpenFigures, Purge, RecordContents, RecordFuture, RecordStore,
    RecordStoreError, ResealedRow, Row, RunningCall, SERVERS_LEARNED, SealedQuery, SealedRow,
    StoreSize, StoredGrant, StoredOf, UnattendedCall, UsedValue, Write, result_of_task,
    smallest_number, tell_left_out,
};
use crate::audit::AuditFilter;
use crate::used::UsedKind;
use crate::{OwnKeys, stored_bytes};
use questions::{counted, millis, signed};

const COLUMNS: &str = "id, same, owner, claimed, exchange, body, arguments, content, params, team";
/// The number of open rows of one caller, which has its own index, and of those the number of one server.
pub(super) const WAITING_OF: &str = "SELECT count(*), count(*) FILTER (WHERE ?2 IS NOT NULL AND address = ?2 AND approval = 0) \
    FROM question WHERE open = 1 AND principal = ?1";

/// The bytes that rows keep, by caller and server. The lengths are read from the rows' heads, without the values.
const STORED_BYTES: &str = "SELECT coalesce(principal, json_extract(body, '$.principal')), iif(approval = 1, NULL, coalesce(address, server)), sum(max(octet_length(body), ?1) + coalesce(octet_length(params), 0) \
    + coalesce(octet_length(arguments), 0) + coalesce(octet_length(content), 0)) FROM question GROUP BY 1, 2";

/// The rows that need an action; first those with a time, the earliest first, however many others there are.
const DUE: &str = "WHERE id IN (SELECT id FROM question WHERE due_at IS NOT NULL AND due_at <= ?1 \
    UNION SELECT id FROM question WHERE open = 1 AND findable = 0 \
    UNION SELECT id FROM question WHERE delivered = 1 AND (content IS NOT NULL OR arguments IS NOT NULL)) \
    ORDER BY due_at IS NULL, due_at, id LIMIT ?2";

/// The rows that ended long ago, of one caller or all, and of those perhaps only the ones that one server asked and on
/// which nobody acted; an answer that may still be delivered has not ended.
macro_rules! purged {
    () => {
        concat!(
            "FROM question WHERE open = 0 AND ended_at < ?1 AND due_at IS NULL AND (?2 IS NULL OR principal = ?2) AND (?3 IS NULL OR ",
            unanswered_of!(),
            ")"
        )
    };
}
const PURGE: &str = concat!(
    "DELETE FROM question WHERE number IN (SELECT number ",
    purged!(),
    " ORDER BY ended_at LIMIT ?4)"
);
/// The most rows that are deleted in one step.
const PURGED_AT_ONCE: i64 = 64;
const PURGEABLE: &str = concat!("SELECT count(*) ", purged!());
/// The contents in numbers, in the order of [`RecordContents`].
const CONTENTS: &str = "SELECT (SELECT count(*) FROM question WHERE open = 1), \
     (SELECT count(*) FROM question WHERE open = 0 AND delivered = 0), \
     (SELECT count(*) FROM question WHERE open = 0 AND delivered = 1), \
     (SELECT min(ended_at) FROM question WHERE open = 0 AND delivered = 1), \
     (SELECT count(*) FROM running_call), (SELECT count(*) FROM call), (SELECT count(*) FROM approval_grant), \
     (SELECT count(*) FROM notification), (SELECT count(*) FROM audit)";

/// The number of the last link, read at the end of the index.
const AUDIT_END: &str = "SELECT coalesce(max(number), 0) FROM audit";

/// Deletes the least recently updated facts about servers.
const FORGET_LEARNED: &str = "DELETE FROM learned WHERE server NOT IN (SELECT server FROM learned ORDER BY at DESC LIMIT ?1)";

/// The numbers of sealed values that are still needed, and of keyed links. An approval with a lost key is ignored, and
/// people are asked again.
const KEYED_CONTENTS: &str = "SELECT (SELECT count(*) FROM question WHERE content IS NOT NULL OR arguments IS NOT NULL) \
    + (SELECT count(*) FROM call), (SELECT count(*) FROM audit WHERE hash LIKE 'k1:%'), (SELECT count(*) FROM audit)";

/// The rows that wait, or that a person acted on and that were not delivered.
const LEFT_OVER: &str = "SELECT same FROM question WHERE delivered = 0 \
    AND (open = 1 OR json_extract(exchange, '$.ending.phase') IN ('answered', 'declined', 'cancelled'))";

/// A store in one SQLite file.
pub struct Sqlite {
    // One connection: SQLite has one writer, and a queue in front of it is fairer than its busy loop.
    file: Arc<Mutex<SqliteFile>>,
}

/// The suffix of SQLite's log, and those of all files that it has beside a database.
const LOG: &str = "-wal";
pub(crate) const BESIDE: [&str; 2] = [LOG, "-shm"];

/// Returns the file of this suffix beside a record.
pub(crate) fn beside(record: &Path, suffix: &str) -> PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Sqlite {
    /// Creates a store in this file, which is opened on demand.
    pub fn at(path: &Path) -> Self {
        Self {
            file: Arc::new(Mutex::new(SqliteFile::at(path))),
        }
    }

    /// Removes a record that nothing uses: its file, and those that SQLite has beside it. Without effect on one that does
    /// not exist.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(path: &Path) -> std::io::Result<()> {
        let others = BESIDE.map(|suffix| beside(path, suffix));
        for file in others.into_iter().chain([path.to_owned()]) {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Sets the key for the links of the audit.
    #[must_use]
    pub fn keyed(self, key: ChainKey) -> Self {
        lock(&self.file).key = Some(key);
        self
    }

    /// Sets the keys of the values and of the audit's links.
    #[must_use]
    pub fn with_keys(self, keys: &OwnKeys) -> Self {
        lock(&self.file).encryption = Some(keys.encryption.clone());
        self.keyed(keys.chain())
    }

    /// Allows opening a file whose audit was made with another key, to show it.
    #[must_use]
    pub fn with_any_key(self) -> Self {
        lock(&self.file).opens_with_any_key = true;
        self
    }

    /// Returns the contents of the file that need keys.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub async fn keyed_contents(&self) -> Result<KeyedContents, RecordStoreError> {
        self.on_file(|file| {
            let count = |row: &Columns<'_>, index| {
                row.get(index)
                    .map(|count: i64| u64::try_from(count).unwrap_or(0))
            };
            let contents = file.connection()?.query_row(KEYED_CONTENTS, [], |row| {
                Ok(KeyedContents {
                    sealed: count(row, 0)?,
                    keyed_links: count(row, 1)?,
                    links: count(row, 2)?,
                })
            })?;
            Ok(contents)
        })
        .await
    }

    /// Opens the file, which is created if there is none, and migrates it to this version's schema.
    pub async fn open(path: &Path) -> Result<Self, RecordStoreError> {
        let store = Self::at(path);
        store.ready().await?;
        Ok(store)
    }

    /// Opens the file, unless it is open.
    pub async fn ready(&self) -> Result<(), RecordStoreError> {
        self.on_file(|file| file.connection().map(drop)).await
    }

    /// Opens and closes the file, which moves the log into it.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub async fn close(self) -> Result<(), RecordStoreError> {
        self.on_file(|file| {
            file.connection()?;
            file.close()
        })
        .await
    }

    /// Runs `work` with the file, on a thread that may block.
    fn on_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteFile) -> Result<T, RecordStoreError> + Send + 'static,
    ) -> RecordFuture<'static, T> {
        let file = self.file.clone();
        async move {
            let done = tokio::task::spawn_blocking(move || work(&mut lock(&file))).await;
            result_of_task(done).await
        }
        .boxed()
    }

    /// Returns the rows of this query.
    fn rows(
        &self,
        text: String,
        values: impl Params + Send + 'static,
    ) -> RecordFuture<'static, Vec<Row>> {
        self.on_file(move |file| all(file, &text, values, read))
    }
}

impl From<rusqlite::Error> for RecordStoreError {
    fn from(error: rusqlite::Error) -> Self {
        let fault = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy) => DatabaseFault::Busy,
            Some(ErrorCode::NotADatabase) => DatabaseFault::NotADatabase,
            Some(ErrorCode::DiskFull) => DatabaseFault::Full,
            Some(ErrorCode::ReadOnly) => DatabaseFault::ReadOnly,
            Some(_) | None => DatabaseFault::Other,
        };
        Self::Database(DatabaseError::new(fault, error))
    }
}

fn lock(file: &Mutex<SqliteFile>) -> MutexGuard<'_, SqliteFile> {
    // A panic elsewhere leaves no transaction open: it is rolled back when dropped.
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns all results of a query.
fn all<T>(
    file: &mut SqliteFile,
    text: &str,
    values: impl Params,
    read: impl Fn(&Columns<'_>) -> Result<T, RecordStoreError>,
) -> Result<Vec<T>, RecordStoreError> {
    let mut statement = file.connection()?.prepare_cached(text)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Returns a row of a list; `None`, and a log entry, if this version cannot read it.
fn readable(row: &Columns<'_>) -> Option<Row> {
    let found = read(row).ok();
    if found.is_none() {
        tell_left_out(&row.get::<_, String>("id").unwrap_or_default());
    }
    found
}

fn read(row: &Columns<'_>) -> Result<Row, RecordStoreError> {
    let text = |column| -> Result<&str, RecordStoreError> {
        let value = row.get_ref(column)?;
        Ok(value.as_str().map_err(rusqlite::Error::from)?)
    };
    let team = row.get_ref("team")?;
    let team = team.as_str_or_null().map_err(rusqlite::Error::from)?;
    Ok(Row {
        id: row.get("id")?,
        binding: row.get("same")?,
        owner: row.get("owner")?,
        exclusive: row.get("claimed")?,
        lifecycle: serde_json::from_str(text("exchange")?)?,
        body: Arc::new(serde_json::from_str(text("body")?)?),
        arguments: row.get("arguments")?,
        content: row.get("content")?,
        params: row.get("params")?,
        team: team.map(serde_json::from_str).transpose()?,
    })
}

fn time(row: &Columns<'_>, column: &str) -> Result<Timestamp, RecordStoreError> {
    let millis: i64 = row.get(column)?;
    Ok(Timestamp::from_millis(u64::try_from(millis).unwrap_or(0)))
}

impl RecordStore for Sqlite {
    fn write(&self, wanted: Arc<Vec<Write>>) -> RecordFuture<'_, Vec<bool>> {
        self.on_file(move |file| {
            let done = file.write_group(&wanted)?;
            file.tidy_when_due();
            Ok(done)
        })
    }

    fn write_inline(&self, wanted: &[Write]) -> Option<Result<Vec<bool>, RecordStoreError>> {
        let waits = |write: &Write| write.survives() == Crash::Machine;
        if wanted.iter().any(waits) {
            return None;
        }
        let mut file = match self.file.try_lock() {
            Ok(file) => file,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        file.unless_busy(|file| file.write_group(wanted))
    }

    fn sync(&self) -> RecordFuture<'_, ()> {
        self.on_file(SqliteFile::sync_log)
    }

    fn stored_bytes(&self) -> RecordFuture<'_, Vec<StoredOf>> {
        self.on_file(|file| {
            all(file, STORED_BYTES, [signed(stored_bytes::ROW)], |row| {
                let bytes: i64 = row.get(2)?;
                Ok(StoredOf {
                    caller: row.get(0)?,
                    server: row.get(1)?,
                    bytes: u64::try_from(bytes).unwrap_or(0),
                })
            })
        })
    }

    fn left_over(&self) -> RecordFuture<'_, Vec<String>> {
        self.on_file(|file| all(file, LEFT_OVER, [], |row| Ok(row.get(0)?)))
    }

    fn find(&self, id: String) -> RecordFuture<'_, Option<Row>> {
        let rows = self.rows(
            format!("SELECT {COLUMNS} FROM question WHERE id = ?1"),
            [id],
        );
        async move { Ok(rows.await?.pop()) }.boxed()
    }

    fn by_binding(&self, binding: String) -> RecordFuture<'_, Vec<Row>> {
        self.rows(
            format!("SELECT {COLUMNS} FROM question WHERE same = ?1 AND delivered = 0 ORDER BY asked_at, id LIMIT 100"),
            [binding],
        )
    }

    fn list(&self, query: ListQuery) -> RecordFuture<'_, Vec<Row>> {
        self.on_file(move |file| file.list(&query))
    }

    fn waiting(&self) -> RecordFuture<'_, usize> {
        self.on_file(|file| {
            let text = "SELECT count(*) FROM question WHERE open = 1";
            let count: i64 = file.connection()?.query_row(text, [], |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }

    fn waiting_of(&self, principal: String, server: Option<String>) -> RecordFuture<'_, OpenCount> {
        self.on_file(move |file| {
            let mut statement = file.connection()?.prepare_cached(WAITING_OF)?;
            let counts = statement.query_row((principal, server), |row| {
                Ok([row.get::<_, i64>(0)?, row.get(1)?])
            })?;
            let [of_caller, of_server] = counts.map(|count| usize::try_from(count).unwrap_or(0));
            Ok(OpenCount {
                of_caller,
                of_server,
            })
        })
    }

    fn due(&self, now: Timestamp, most: usize) -> RecordFuture<'_, Vec<Row>> {
        let text = format!("SELECT {COLUMNS} FROM question {DUE}");
        let values = (millis(now), counted(most));
        self.on_file(move |file| {
            let rows = all(file, &text, values, |row| Ok(readable(row)))?;
            Ok(rows.into_iter().flatten().collect())
        })
    }

    fn purge(&self, purge: Purge) -> RecordFuture<'_, usize> {
        async move {
            let messages = purge.clone();
            let deleted = self.on_file(move |file| file.purge_notifications(&messages));
            deleted.await?;
            // In parts: people and other questions wait while the file is in use.
            let mut all = 0;
            loop {
                let of = purge.clone();
                let part = self.on_file(move |file| {
                    let before = millis(of.before);
                    let values = (before, of.principal, of.unanswered_of, PURGED_AT_ONCE);
                    let count = file.connection()?.execute(PURGE, values)?;
                    file.cut_log()?;
                    Ok(count)
                });
                let count = part.await?;
                all += count;
                if counted(count) < PURGED_AT_ONCE {
                    return Ok(all);
                }
            }
        }
        .boxed()
    }

    fn purgeable(&self, purge: Purge) -> RecordFuture<'_, usize> {
        self.on_file(move |file| {
            let values = (millis(purge.before), purge.principal, purge.unanswered_of);
            let count = |row: &Columns<'_>| row.get::<_, i64>(0);
            let count = file.connection()?.query_row(PURGEABLE, values, count)?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }

    fn contents(&self) -> RecordFuture<'_, RecordContents> {
        self.on_file(|file| {
            let contents = file.connection()?.query_row(CONTENTS, [], |row| {
                let number = |column| {
                    let number: i64 = row.get(column)?;
                    Ok::<_, rusqlite::Error>(u64::try_from(number).unwrap_or(0))
                };
                let oldest: Option<i64> = row.get(3)?;
                let oldest = oldest.and_then(|at| u64::try_from(at).ok());
                Ok(RecordContents {
                    waiting: number(0)?,
                    undelivered: number(1)?,
                    ended: number(2)?,
                    oldest_ended: oldest.map(Timestamp::from_millis),
                    running_calls: number(4)?,
                    results: number(5)?,
                    grants: number(6)?,
                    messages: number(7)?,
                    links: number(8)?,
                })
            })?;
            Ok(contents)
        })
    }

    fn begin_call(
        &self,
        id: String,
        binding: String,
        running: RunningCall,
        until: Timestamp,
    ) -> RecordFuture<'_, ()> {
        self.on_file(move |file| file.begin_call(&id, &binding, &running, until))
    }

    fn end_call(&self, id: String) -> RecordFuture<'_, ()> {
        self.on_file(move |file| file.end_call(&id))
    }

    fn keep_call(&self, call: FinishedCall) -> RecordFuture<'_, ()> {
        self.on_file(move |file| file.keep_call(&call))
    }

    fn take_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        self.on_file(move |file| file.take_call(&id))
    }

    fn stored_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        self.on_file(move |file| file.stored_call(&id))
    }

    fn calls(
        &self,
        binding: Option<String>,
        now: Timestamp,
    ) -> RecordFuture<'_, Vec<UnattendedCall>> {
        self.on_file(move |file| file.calls(binding.as_deref(), now))
    }

    fn expire_calls(&self, now: Timestamp) -> RecordFuture<'_, ()> {
        self.on_file(move |file| file.expire_calls(now))
    }

    fn versions(&self, ids: Vec<String>) -> RecordFuture<'_, Vec<(String, u64)>> {
        self.on_file(move |file| {
            let text =
                "SELECT id, version FROM question WHERE id IN (SELECT value FROM json_each(?1))";
            all(file, text, [serde_json::to_string(&ids)?], |row| {
                let version: i64 = row.get(1)?;
                Ok((row.get(0)?, u64::try_from(version).unwrap_or(0)))
            })
        })
    }

    fn has_changed_elsewhere(&self) -> RecordFuture<'_, bool> {
        self.on_file(SqliteFile::has_changed_elsewhere)
    }

    fn keep_learned(
        &self,
        server: String,
        learned: String,
        now: Timestamp,
    ) -> RecordFuture<'_, ()> {
        self.on_file(move |file| {
            let connection = file.connection()?;
            let keep = "INSERT OR REPLACE INTO learned (server, learned, at) VALUES (?1, ?2, ?3)";
            connection.execute(keep, (server, learned, millis(now)))?;
            connection.execute(FORGET_LEARNED, [counted(SERVERS_LEARNED)])?;
            Ok(())
        })
    }

    fn learned(&self, server: String) -> RecordFuture<'_, Option<String>> {
        self.on_file(move |file| {
            let text = "SELECT learned FROM learned WHERE server = ?1";
            Ok(all(file, text, [server], |row| Ok(row.get(0)?))?.pop())
        })
    }

    fn keep_grant(&self, grant: StoredGrant, given: Timestamp) -> RecordFuture<'_, bool> {
        self.on_file(move |file| file.keep_grant(&grant, given))
    }

    fn grants(&self, now: Timestamp) -> RecordFuture<'_, Vec<StoredGrant>> {
        self.on_file(move |file| file.grants(now))
    }

    fn use_once(&self, used: UsedValue, now: Timestamp) -> RecordFuture<'_, bool> {
        self.on_file(move |file| file.use_once(&used, now))
    }

    fn is_used(&self, kind: UsedKind, digest: [u8; 32]) -> RecordFuture<'_, bool> {
        self.on_file(move |file| file.is_used(kind, digest))
    }

    fn drop_grants(&self, keys: Vec<String>) -> RecordFuture<'_, ()> {
        self.on_file(move |file| file.drop_grants(&keys))
    }

    fn sealed_rows(&self, query: SealedQuery) -> RecordFuture<'_, Vec<SealedRow>> {
        self.on_file(move |file| file.sealed_rows(&query))
    }

    fn reseal(&self, rows: Vec<ResealedRow>) -> RecordFuture<'_, usize> {
        self.on_file(move |file| file.reseal(&rows))
    }

    fn audit_end(&self) -> RecordFuture<'_, u64> {
        self.on_file(|file| {
            let connection = file.connection()?;
            let last: i64 = connection.query_row(AUDIT_END, [], |row| row.get(0))?;
            Ok(u64::try_from(last).unwrap_or(0))
        })
    }

    fn audit(&self, from: u64, most: usize) -> RecordFuture<'_, Vec<AuditEntry>> {
        let text =
            "SELECT number, entry, hash FROM audit WHERE number >= ?1 ORDER BY number LIMIT ?2";
        let values = (smallest_number(from), counted(most));
        self.on_file(move |file| all(file, text, values, audit::read_link))
    }

    fn open_figures(&self) -> RecordFuture<'_, OpenFigures> {
        self.on_file(SqliteFile::open_figures)
    }

    fn size(&self) -> RecordFuture<'_, Option<StoreSize>> {
        self.on_file(|file| file.size().map(Some))
    }

    fn audit_matching(
        &self,
        filter: AuditFilter,
        within: Range<u64>,
        most: usize,
    ) -> RecordFuture<'_, Vec<AuditEntry>> {
        self.on_file(move |file| file.audit_matching(&filter, within, most))
    }

    fn untold(&self, most: usize) -> RecordFuture<'_, Vec<Untold>> {
        self.on_file(move |file| file.untold(most))
    }

    fn notified(&self, notified: Notified) -> RecordFuture<'_, ()> {
        self.on_file(move |file| file.write_notified(&notified))
    }

    fn take_notifications(
        &self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
        busy: Vec<String>,
    ) -> RecordFuture<'_, Vec<Notification>> {
        self.on_file(move |file| file.take_notifications(now, lease_end, most, &busy))
    }

    fn finish_notification<'a>(
        &'a self,
        taken: TakenMessage<'a>,
        tried: Tried,
        now: Timestamp,
    ) -> RecordFuture<'a, bool> {
        let (id, attempts) = (taken.id.to_owned(), taken.attempts);
        self.on_file(move |file| file.finish_notification(&id, attempts, &tried, now))
    }

    fn notify_again(&self, id: String, now: Timestamp, until: Timestamp) -> RecordFuture<'_, bool> {
        self.on_file(move |file| file.notify_again(&id, now, until))
    }

    fn notifications(
        &self,
        filter: NotificationFilter,
        most: usize,
    ) -> RecordFuture<'_, Vec<Notification>> {
        self.on_file(move |file| file.notifications(&filter, most))
    }
}
