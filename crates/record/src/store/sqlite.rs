//! A store in one SQLite file, which several gateways of one person may share. WAL: what is written survives the
//! process being killed at any point.
//!
//! A question that is being asked waits for this, so a write is one trip to the connection's thread: a transaction of
//! several statements sent as one, which does all or nothing by its own conditions.

mod grants;
mod outbox;
mod questions;
mod recognize;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::Timestamp;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, SqlSafeStr as _};
use tokio::sync::{Mutex, MutexGuard};

use super::outbox::{Notification, NotificationFilter, Notified, Taken, Tried, Untold};
use super::{
    AuditEntry, ChainKey, Durability, Filter, FinishedCall, KeyedContents, ListKeys, Page, Row,
    SERVERS_LEARNED, Store, StoreError, Stored, StoredGrant, Write,
};
use crate::state_file;
use questions::signed;

/// Statements that bring a file from one schema to the next; a file's `user_version` says how many were run.
const MIGRATIONS: [&str; 9] = [
    include_str!("schema.sql"),
    include_str!("claimed.sql"),
    include_str!("typed.sql"),
    include_str!("calls.sql"),
    include_str!("learned.sql"),
    include_str!("team.sql"),
    include_str!("outbox.sql"),
    include_str!("grants.sql"),
    include_str!("addressed.sql"),
];

const COLUMNS: &str = "id, same, owner, claimed, exchange, body, arguments, content, params, team";
/// The columns that a list reads.
const LISTED: &str =
    "id, same, owner, claimed, exchange, body, arguments, content, NULL AS params, team";

/// Rows of one person, by keys (`?1`) and principals (`?2`), both lists in JSON. `open` is spelled out, since a partial index is used for a
/// constant only. Questions of no rule are under no key: of those that ended, the newest are looked at.
const UNDER_OPEN: &str = "WHERE open = 1 AND id IN ( \
      SELECT question FROM addressed WHERE open = 1 AND key IN (SELECT value FROM json_each(?1)) \
      UNION ALL SELECT id FROM question WHERE open = 1 AND team IS NULL \
        AND json_extract(body, '$.principal') IN (SELECT value FROM json_each(?2))) \
    ORDER BY asked_at, rowid LIMIT ?3";
const UNDER_ENDED: &str = "WHERE open = 0 AND id IN ( \
      SELECT question FROM addressed WHERE open = 0 AND key IN (SELECT value FROM json_each(?1)) \
      UNION ALL SELECT id FROM ( \
        SELECT id, body FROM question WHERE open = 0 AND team IS NULL ORDER BY ended_at DESC, rowid DESC LIMIT 10000) \
        WHERE json_extract(body, '$.principal') IN (SELECT value FROM json_each(?2))) \
    ORDER BY ended_at DESC, rowid DESC LIMIT ?3";

/// Rows that something is to be done about.
const DUE: &str = "WHERE id IN (SELECT id FROM question WHERE due_at IS NOT NULL AND due_at <= ?1 \
    UNION SELECT id FROM question WHERE open = 1 AND findable = 0 \
    UNION SELECT id FROM question WHERE delivered = 1 AND (content IS NOT NULL OR arguments IS NOT NULL))";

/// Rows that ended long ago; an answer that may still be delivered has not ended.
const PURGE: &str = "DELETE FROM question WHERE open = 0 AND ended_at < ?1 AND due_at IS NULL";

/// Brings everything into the main file and cuts the log, in which erased values are still to be found.
const CHECKPOINT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Forgets the servers of which something was learned longest ago.
const FORGET_LEARNED: &str = "DELETE FROM learned WHERE server NOT IN (SELECT server FROM learned ORDER BY at DESC LIMIT ?1)";

/// The numbers of values that are sealed and waited for, and of links that were made with a key. An approval whose key is lost counts for
/// nothing, and people are asked again.
const KEYED_CONTENTS: &str = "SELECT (SELECT count(*) FROM question WHERE content IS NOT NULL OR arguments IS NOT NULL) \
    + (SELECT count(*) FROM call), (SELECT count(*) FROM audit WHERE hash LIKE 'k1:%')";

/// The number of tries of a file that others are about to make, and their interval.
const OPEN_TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// Rows that wait, or that a person acted on and that were not delivered.
const LEFT_OVER: &str = "SELECT same FROM question WHERE delivered = 0 \
    AND (open = 1 OR json_extract(exchange, '$.ending.phase') IN ('answered', 'declined', 'cancelled'))";

/// A store in one SQLite file.
pub struct Sqlite {
    path: PathBuf,
    // One connection: SQLite has one writer, and a queue in front of it is fairer than its busy loop.
    file: Mutex<File>,
}

#[derive(Default)]
struct File {
    connection: Option<SqliteConnection>,
    /// The number and hash of the audit's last link, as far as is known here; others may have added to it.
    last: Option<(i64, String)>,
    /// `true` if somebody left in the middle of a transaction.
    unfinished: bool,
    /// The durability of transactions now; `None` while the database was not told.
    durability: Option<Durability>,
    /// The key of the audit's chain.
    key: Option<ChainKey>,
    /// `true` if the file is opened although that key does not fit the audit.
    opens_with_any_key: bool,
}

impl Sqlite {
    /// A store in this file, which is opened when it is first needed.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: Mutex::default(),
        }
    }

    /// Makes the links of the audit with this key.
    #[must_use]
    pub fn keyed(mut self, key: ChainKey) -> Self {
        self.file.get_mut().key = Some(key);
        self
    }

    /// Opens the file although its audit was made with another key, to show it.
    #[must_use]
    pub fn with_any_key(mut self) -> Self {
        self.file.get_mut().opens_with_any_key = true;
        self
    }

    /// Returns what the file holds that needs keys.
    ///
    /// # Errors
    /// When it cannot be opened or read.
    pub async fn keyed_contents(&self) -> Result<KeyedContents, StoreError> {
        let mut file = self.file().await?;
        let connection = file.connection()?;
        let (sealed, keyed_links): (i64, i64) =
            sqlx::query_as(KEYED_CONTENTS).fetch_one(connection).await?;
        Ok(KeyedContents {
            sealed: u64::try_from(sealed).unwrap_or(0),
            keyed_links: u64::try_from(keyed_links).unwrap_or(0),
        })
    }

    /// Opens the file, made when there is none, and brings it to this version's schema.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Self::at(path);
        store.ready().await?;
        Ok(store)
    }

    /// Opens the file, if that was not done yet.
    pub async fn ready(&self) -> Result<(), StoreError> {
        self.file().await.map(|_| ())
    }

    /// Opens the file and closes it, which brings what was written into it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn close(self) -> Result<(), StoreError> {
        self.ready().await?;
        if let Some(connection) = self.file.into_inner().connection {
            connection.close().await?;
        }
        Ok(())
    }

    async fn file(&self) -> Result<MutexGuard<'_, File>, StoreError> {
        let mut file = self.file.lock().await;
        if file.connection.is_none() {
            file.connection = Some(connect(&self.path).await?);
            file.durability = None;
            if let Err(fault) = file.fit_key().await {
                file.connection = None;
                return Err(fault);
            }
            file.go_on_keyed().await?;
        }
        if file.unfinished {
            let connection = file.connection()?;
            // Fails where it was finished after all.
            let _none_open = sqlx::raw_sql("ROLLBACK").execute(connection).await;
            file.unfinished = false;
            file.last = None;
        }
        Ok(file)
    }

    /// These columns of rows by a condition and an order; `?1` in it is `value`.
    async fn rows(
        &self,
        columns: &'static str,
        tail: &'static str,
        value: Option<String>,
        most: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let text = sqlx::AssertSqlSafe(format!("SELECT {columns} FROM question {tail} LIMIT ?2"))
            .into_sql_str();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = {
            let mut file = self.file().await?;
            let query = sqlx::query(text).bind(value).bind(most);
            query.fetch_all(file.connection()?).await?
        };
        rows.iter().map(read).collect()
    }
}

impl File {
    fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        let closed = || StoreError::Database(sqlx::Error::PoolClosed);
        self.connection.as_mut().ok_or_else(closed)
    }
}

/// Opens the file. Where several processes make it at once, SQLite tells some of them that it is locked without letting them
/// wait: these try again.
async fn connect(path: &Path) -> Result<SqliteConnection, StoreError> {
    for _ in 0..OPEN_TRIES {
        match open(path).await {
            Err(fault) if is_busy(&fault) => tokio::time::sleep(PAUSE).await,
            opened => return opened,
        }
    }
    open(path).await
}

/// Returns whether another process has the file locked.
fn is_busy(fault: &StoreError) -> bool {
    const BUSY: i64 = 5;
    let StoreError::Database(error) = fault else {
        return false;
    };
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    let code = code.and_then(|code| code.parse::<i64>().ok());
    // The lowest byte is the code, the others say more of it.
    code.is_some_and(|code| code & 0xff == BUSY)
}

async fn open(path: &Path) -> Result<SqliteConnection, StoreError> {
    // SQLite gives the files beside it the same mode.
    let file = state_file::open_private(path).map_err(sqlx::Error::from)?;
    let is_new = file.metadata().map_err(sqlx::Error::from)?.len() == 0;
    drop(file);
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // While a new file is laid out nothing in it is worth waiting for the disk; what is in an old one is.
        .synchronous(if is_new {
            SqliteSynchronous::Off
        } else {
            SqliteSynchronous::Full
        })
        .pragma("secure_delete", "ON")
        // A slow disk is told of by the time of what waits for it.
        .disable_statement_logging()
        .busy_timeout(Duration::from_secs(10));
    let mut connection = options.connect().await?;
    migrate(&mut connection).await?;
    Ok(connection)
}

async fn migrate(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if version(connection).await? == known {
        return Ok(());
    }
    let mut step = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Another gateway may have been first.
    let found = version(&mut step).await?;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    let done = usize::try_from(found).unwrap_or(0);
    for migration in &MIGRATIONS[done..] {
        sqlx::raw_sql(*migration).execute(&mut *step).await?;
    }
    step.commit().await?;
    Ok(())
}

async fn version(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let version = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(connection)
        .await?;
    Ok(version)
}

fn read(row: &SqliteRow) -> Result<Row, StoreError> {
    Ok(Row {
        id: row.try_get("id")?,
        binding: row.try_get("same")?,
        owner: row.try_get("owner")?,
        exclusive: row.try_get("claimed")?,
        lifecycle: serde_json::from_str(row.try_get("exchange")?)?,
        body: Arc::new(serde_json::from_str(row.try_get("body")?)?),
        arguments: row.try_get("arguments")?,
        content: row.try_get("content")?,
        params: row.try_get("params")?,
        team: row
            .try_get::<Option<&str>, _>("team")?
            .map(serde_json::from_str)
            .transpose()?,
    })
}

fn read_call(row: &SqliteRow) -> Result<FinishedCall, StoreError> {
    let until: i64 = row.try_get("until")?;
    Ok(FinishedCall {
        id: row.try_get("id")?,
        binding: row.try_get("same")?,
        result: row.try_get("result")?,
        until: Timestamp::from_millis(u64::try_from(until).unwrap_or(0)),
    })
}

impl Store for Sqlite {
    fn write<'a>(&'a self, wanted: &'a [Write]) -> Stored<'a, Vec<bool>> {
        async move { self.file().await?.write_group(wanted).await }.boxed()
    }

    fn left_over(&self) -> Stored<'_, Vec<String>> {
        async move {
            let mut file = self.file().await?;
            Ok(sqlx::query_scalar(LEFT_OVER)
                .fetch_all(file.connection()?)
                .await?)
        }
        .boxed()
    }

    fn find(&self, id: String) -> Stored<'_, Option<Row>> {
        async move {
            Ok(self
                .rows(COLUMNS, "WHERE id = ?1", Some(id), 1)
                .await?
                .pop())
        }
        .boxed()
    }

    fn by_binding(&self, binding: String) -> Stored<'_, Vec<Row>> {
        self.rows(
            COLUMNS,
            "WHERE same = ?1 AND delivered = 0 ORDER BY asked_at",
            Some(binding),
            100,
        )
        .boxed()
    }

    fn list(&self, filter: Filter, page: Page) -> Stored<'_, Vec<Row>> {
        // `open` is spelled out, since a partial index is used for a constant only.
        let tail = match (filter, page.after.is_some()) {
            (Filter::Open, false) => "WHERE open = 1 ORDER BY asked_at, rowid",
            (Filter::Open, true) => {
                "WHERE open = 1 AND (asked_at, rowid) > (SELECT asked_at, rowid FROM question WHERE id = ?1) \
                 ORDER BY asked_at, rowid"
            }
            (Filter::Ended, false) => "WHERE open = 0 ORDER BY ended_at DESC, rowid DESC",
            (Filter::Ended, true) => {
                "WHERE open = 0 AND (ended_at, rowid) < (SELECT ended_at, rowid FROM question WHERE id = ?1) \
                 ORDER BY ended_at DESC, rowid DESC"
            }
        };
        self.rows(LISTED, tail, page.after, page.most).boxed()
    }

    fn list_under(&self, filter: Filter, keys: ListKeys, most: usize) -> Stored<'_, Vec<Row>> {
        async move {
            let tail = match filter {
                Filter::Open => UNDER_OPEN,
                Filter::Ended => UNDER_ENDED,
            };
            let text = sqlx::AssertSqlSafe(format!("SELECT {LISTED} FROM question {tail}"));
            let addressed = serde_json::to_string(&keys.keys)?;
            let principals = serde_json::to_string(&keys.principals)?;
            let rows = {
                let mut file = self.file().await?;
                let query = sqlx::query(text)
                    .bind(addressed)
                    .bind(principals)
                    .bind(i64::try_from(most).unwrap_or(i64::MAX));
                query.fetch_all(file.connection()?).await?
            };
            rows.iter().map(read).collect()
        }
        .boxed()
    }

    fn waiting(&self) -> Stored<'_, usize> {
        async move {
            let mut file = self.file().await?;
            let count: i64 = sqlx::query_scalar("SELECT count(*) FROM question WHERE open = 1")
                .fetch_one(file.connection()?)
                .await?;
            Ok(usize::try_from(count).unwrap_or(0))
        }
        .boxed()
    }

    fn due(&self, now: Timestamp, most: usize) -> Stored<'_, Vec<Row>> {
        async move {
            let text =
                sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM question {DUE} LIMIT ?2"));
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let rows = {
                let mut file = self.file().await?;
                let query = sqlx::query(text).bind(questions::millis(now)).bind(most);
                query.fetch_all(file.connection()?).await?
            };
            rows.iter().map(read).collect()
        }
        .boxed()
    }

    fn purge(&self, before: Timestamp) -> Stored<'_, usize> {
        async move {
            self.purge_notifications(before).await?;
            let mut file = self.file().await?;
            let connection = file.connection()?;
            let query = sqlx::query(PURGE).bind(questions::millis(before));
            let count = query.execute(&mut *connection).await?.rows_affected();
            // Readers are not waited for: it is tried again with the next sweep.
            sqlx::raw_sql("PRAGMA busy_timeout = 0")
                .execute(&mut *connection)
                .await?;
            let _readers_may_be_at_it = sqlx::raw_sql(CHECKPOINT).execute(&mut *connection).await;
            sqlx::raw_sql("PRAGMA busy_timeout = 10000")
                .execute(connection)
                .await?;
            Ok(usize::try_from(count).unwrap_or(usize::MAX))
        }
        .boxed()
    }

    fn keep_call(&self, call: FinishedCall) -> Stored<'_, ()> {
        async move {
            let mut file = self.file().await?;
            file.set_durability(Durability::Flushed).await?;
            sqlx::query("INSERT INTO call (id, same, result, until) VALUES (?1, ?2, ?3, ?4)")
                .bind(call.id)
                .bind(call.binding)
                .bind(call.result)
                .bind(questions::millis(call.until))
                .execute(file.connection()?)
                .await?;
            Ok(())
        }
        .boxed()
    }

    fn take_call(&self, id: String) -> Stored<'_, Option<FinishedCall>> {
        async move {
            let mut file = self.file().await?;
            let row =
                sqlx::query("DELETE FROM call WHERE id = ?1 RETURNING id, same, result, until")
                    .bind(id)
                    .fetch_optional(file.connection()?)
                    .await?;
            row.as_ref().map(read_call).transpose()
        }
        .boxed()
    }

    fn calls(&self, now: Timestamp) -> Stored<'_, Vec<FinishedCall>> {
        async move {
            let mut file = self.file().await?;
            let connection = file.connection()?;
            sqlx::query("DELETE FROM call WHERE until <= ?1")
                .bind(questions::millis(now))
                .execute(&mut *connection)
                .await?;
            let rows = sqlx::query("SELECT id, same, result, until FROM call")
                .fetch_all(connection)
                .await?;
            rows.iter().map(read_call).collect()
        }
        .boxed()
    }

    fn keep_learned(&self, server: String, learned: String, now: Timestamp) -> Stored<'_, ()> {
        async move {
            let mut file = self.file().await?;
            let connection = file.connection()?;
            sqlx::query("INSERT OR REPLACE INTO learned (server, learned, at) VALUES (?1, ?2, ?3)")
                .bind(server)
                .bind(learned)
                .bind(questions::millis(now))
                .execute(&mut *connection)
                .await?;
            sqlx::query(FORGET_LEARNED)
                .bind(i64::try_from(SERVERS_LEARNED).unwrap_or(i64::MAX))
                .execute(connection)
                .await?;
            Ok(())
        }
        .boxed()
    }

    fn learned(&self, server: String) -> Stored<'_, Option<String>> {
        async move {
            let mut file = self.file().await?;
            let learned = sqlx::query_scalar("SELECT learned FROM learned WHERE server = ?1")
                .bind(server)
                .fetch_optional(file.connection()?)
                .await?;
            Ok(learned)
        }
        .boxed()
    }

    fn keep_grant(&self, grant: StoredGrant) -> Stored<'_, ()> {
        self.keep_one_grant(grant).boxed()
    }

    fn grants(&self, now: Timestamp) -> Stored<'_, Vec<StoredGrant>> {
        self.good_grants(now).boxed()
    }

    fn drop_grants(&self, keys: Vec<String>) -> Stored<'_, ()> {
        self.delete_grants(keys).boxed()
    }

    fn audit_end(&self) -> Stored<'_, u64> {
        async move {
            let mut file = self.file().await?;
            let last: i64 = sqlx::query_scalar("SELECT coalesce(max(number), 0) FROM audit")
                .fetch_one(file.connection()?)
                .await?;
            Ok(u64::try_from(last).unwrap_or(0))
        }
        .boxed()
    }

    fn audit(&self, from: u64, most: usize) -> Stored<'_, Vec<AuditEntry>> {
        async move {
            let mut file = self.file().await?;
            let links: Vec<(i64, String, String)> = sqlx::query_as(
                "SELECT number, entry, hash FROM audit WHERE number >= ?1 ORDER BY number LIMIT ?2",
            )
            .bind(signed(from))
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .fetch_all(file.connection()?)
            .await?;
            let link = |(number, entry, hash)| AuditEntry {
                number: u64::try_from(number).unwrap_or(0),
                entry,
                hash,
            };
            Ok(links.into_iter().map(link).collect())
        }
        .boxed()
    }

    fn untold(&self, most: usize) -> Stored<'_, Vec<Untold>> {
        self.untold_rows(most).boxed()
    }

    fn notified(&self, notified: Notified) -> Stored<'_, ()> {
        async move { self.write_notified(&notified).await }.boxed()
    }

    fn take_notifications(
        &self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
    ) -> Stored<'_, Vec<Notification>> {
        self.take_all(now, lease_end, most).boxed()
    }

    fn finish_notification<'a>(
        &'a self,
        taken: Taken<'a>,
        tried: Tried,
        now: Timestamp,
    ) -> Stored<'a, bool> {
        async move { self.finish_one(taken, &tried, now).await }.boxed()
    }

    fn notify_again(&self, id: String, now: Timestamp, until: Timestamp) -> Stored<'_, bool> {
        async move { self.queue_again(&id, now, until).await }.boxed()
    }

    fn notifications(
        &self,
        filter: NotificationFilter,
        most: usize,
    ) -> Stored<'_, Vec<Notification>> {
        async move { self.list_notifications(&filter, most).await }.boxed()
    }
}
