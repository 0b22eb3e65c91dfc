//! A store in one SQLite file, which several gateways of one person may share. WAL: what is written survives the
//! process being killed at any point.
//!
//! A question that is being asked waits for this, so a write is one trip to the connection's thread: a transaction of
//! several statements sent as one, which does all or nothing by its own conditions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt as _;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow, SqliteSynchronous,
};
use sqlx::{
    ConnectOptions as _, Connection as _, Row as _, SqlSafeStr as _, Sqlite as Database,
    Transaction,
};
use tokio::sync::{Mutex, MutexGuard};

use super::{Audited, Change, Page, Row, Store, StoreFault, Stored, Which, chained};

/// What brings a file from one schema to the next; a file's `user_version` says how many were run.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];

const COLUMNS: &str = "id, same, owner, exchange, body, arguments, content";

/// One row and its link of the audit, both or neither: neither when the chain has grown since `?13` was its last number.
const INSERT: &str = "BEGIN IMMEDIATE; \
    INSERT INTO audit (number, entry, hash) SELECT ?13 + 1, ?14, ?15 \
    WHERE ?13 = (SELECT coalesce(max(number), 0) FROM audit); \
    INSERT INTO question (id, same, owner, version, open, delivered, asked_at, ended_at, exchange, body, arguments, content) \
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 WHERE changes() = 1; \
    SELECT changes(); COMMIT";

/// The same for a change of the row whose version is `?2`.
const CHANGE: &str = "BEGIN IMMEDIATE; \
    INSERT INTO audit (number, entry, hash) SELECT ?11 + 1, ?12, ?13 \
    WHERE ?11 = (SELECT coalesce(max(number), 0) FROM audit) \
    AND EXISTS (SELECT 1 FROM question WHERE id = ?1 AND version = ?2); \
    UPDATE question SET owner = ?3, version = ?4, open = ?5, delivered = ?6, ended_at = ?7, exchange = ?8, \
    arguments = ?9, content = ?10 WHERE id = ?1 AND version = ?2 AND changes() = 1; \
    SELECT changes(); COMMIT";

/// A change that is not worth a link of the audit.
const CHANGE_QUIETLY: &str = "UPDATE question SET owner = ?3, version = ?4, open = ?5, delivered = ?6, ended_at = ?7, \
    exchange = ?8, arguments = ?9, content = ?10 WHERE id = ?1 AND version = ?2";

/// The last link of the audit.
const LAST: &str = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1";

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
    /// Whether somebody left in the middle of a transaction.
    unfinished: bool,
}

impl Sqlite {
    /// A store in this file, which is opened when it is first needed.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: Mutex::default(),
        }
    }

    /// Opens the file, made when there is none, and brings it to this version's schema.
    pub async fn open(path: &Path) -> Result<Self, StoreFault> {
        let store = Self::at(path);
        store.ready().await?;
        Ok(store)
    }

    /// Opens the file, if that was not done yet.
    pub async fn ready(&self) -> Result<(), StoreFault> {
        self.file().await.map(|_| ())
    }

    async fn file(&self) -> Result<MutexGuard<'_, File>, StoreFault> {
        let mut file = self.file.lock().await;
        if file.connection.is_none() {
            file.connection = Some(connect(&self.path).await?);
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

    /// Rows by a condition and an order; `?1` in it is `value`.
    async fn rows(
        &self,
        tail: &'static str,
        value: Option<String>,
        most: usize,
    ) -> Result<Vec<Row>, StoreFault> {
        let text = sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM question {tail} LIMIT ?2"))
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
    fn connection(&mut self) -> Result<&mut SqliteConnection, StoreFault> {
        let closed = || StoreFault::Database(sqlx::Error::PoolClosed);
        self.connection.as_mut().ok_or_else(closed)
    }

    /// The audit's last link, read again when it is not known.
    async fn last(&mut self) -> Result<(i64, String), StoreFault> {
        if let Some(last) = &self.last {
            return Ok(last.clone());
        }
        let last: Option<(i64, String)> = sqlx::query_as(LAST)
            .fetch_optional(self.connection()?)
            .await?;
        let last = last.unwrap_or_default();
        self.last = Some(last.clone());
        Ok(last)
    }

    /// One row and its link, written as one; `false` when the row has another version than was seen.
    async fn write(
        &mut self,
        row: &Row,
        seen: Option<u64>,
        entry: &str,
    ) -> Result<bool, StoreFault> {
        loop {
            let (number, before) = self.last().await?;
            let hash = chained(&before, entry);
            let query = match seen {
                None => bound_whole(sqlx::query(INSERT), row)?,
                Some(seen) => bound_change(sqlx::query(CHANGE), row, seen)?,
            };
            let query = query.bind(number).bind(entry).bind(&hash);
            self.unfinished = true;
            let said = query.fetch_all(self.connection()?).await?;
            self.unfinished = false;
            let changed: i64 = match said.first() {
                Some(row) => row.try_get(0)?,
                None => 0,
            };
            if changed == 1 {
                self.last = Some((number + 1, hash));
                return Ok(true);
            }
            // Either the row has changed, or another gateway has added to the audit.
            self.last = None;
            if self.last().await?.0 == number {
                return Ok(false);
            }
        }
    }

    /// Several rows and their links, or none.
    async fn write_all(&mut self, changes: &[Change]) -> Result<bool, StoreFault> {
        self.last = None;
        let mut step = self.connection()?.begin_with("BEGIN IMMEDIATE").await?;
        for change in changes {
            let query = bound_change(sqlx::query(CHANGE_QUIETLY), &change.row, change.seen)?;
            if query.execute(&mut *step).await?.rows_affected() != 1 {
                step.rollback().await?;
                return Ok(false);
            }
            if let Some(entry) = &change.audit {
                append(&mut step, entry).await?;
            }
        }
        step.commit().await?;
        Ok(true)
    }
}

async fn connect(path: &Path) -> Result<SqliteConnection, StoreFault> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // While a new file is laid out nothing in it is worth waiting for the disk.
        .synchronous(SqliteSynchronous::Off)
        .busy_timeout(Duration::from_secs(10));
    let mut connection = options.connect().await?;
    migrate(&mut connection).await?;
    sqlx::raw_sql("PRAGMA synchronous = NORMAL")
        .execute(&mut connection)
        .await?;
    Ok(connection)
}

async fn migrate(connection: &mut SqliteConnection) -> Result<(), StoreFault> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if version(connection).await? == known {
        return Ok(());
    }
    let mut step = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Another gateway may have been first.
    let found = version(&mut step).await?;
    if found > known {
        return Err(StoreFault::Newer { found, known });
    }
    let done = usize::try_from(found).unwrap_or(0);
    for migration in &MIGRATIONS[done..] {
        sqlx::raw_sql(*migration).execute(&mut *step).await?;
    }
    if done < MIGRATIONS.len() {
        sqlx::raw_sql("PRAGMA user_version = 1")
            .execute(&mut *step)
            .await?;
    }
    step.commit().await?;
    Ok(())
}

async fn version(connection: &mut SqliteConnection) -> Result<i64, StoreFault> {
    let version = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(connection)
        .await?;
    Ok(version)
}

type Query<'q> = sqlx::query::Query<'q, Database, sqlx::sqlite::SqliteArguments>;

/// What an insert says of a row, as parameters 1 to 12.
fn bound_whole<'q>(query: Query<'q>, row: &Row) -> Result<Query<'q>, StoreFault> {
    let exchange = &row.exchange;
    Ok(query
        .bind(row.id.clone())
        .bind(row.same.clone())
        .bind(row.owner.clone())
        .bind(signed(exchange.version()))
        .bind(exchange.is_open())
        .bind(exchange.delivered_at().is_some())
        .bind(millis(exchange.asked_at()))
        .bind(exchange.ended_at().map(millis))
        .bind(serde_json::to_string(exchange)?)
        .bind(serde_json::to_string(&row.body)?)
        .bind(row.arguments.clone())
        .bind(row.content.clone()))
}

/// What a change says of a row, as parameters 1 to 10.
fn bound_change<'q>(query: Query<'q>, row: &Row, seen: u64) -> Result<Query<'q>, StoreFault> {
    let exchange = &row.exchange;
    Ok(query
        .bind(row.id.clone())
        .bind(signed(seen))
        .bind(row.owner.clone())
        .bind(signed(exchange.version()))
        .bind(exchange.is_open())
        .bind(exchange.delivered_at().is_some())
        .bind(exchange.ended_at().map(millis))
        .bind(serde_json::to_string(exchange)?)
        .bind(row.arguments.clone())
        .bind(row.content.clone()))
}

fn read(row: &SqliteRow) -> Result<Row, StoreFault> {
    Ok(Row {
        id: row.try_get("id")?,
        same: row.try_get("same")?,
        owner: row.try_get("owner")?,
        exchange: serde_json::from_str(row.try_get("exchange")?)?,
        body: serde_json::from_str(row.try_get("body")?)?,
        arguments: row.try_get("arguments")?,
        content: row.try_get("content")?,
    })
}

fn millis(moment: mcp_elicit_core::exchange::Moment) -> i64 {
    i64::try_from(moment.as_millis()).unwrap_or(i64::MAX)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

async fn append(step: &mut Transaction<'_, Database>, entry: &str) -> Result<(), StoreFault> {
    let last: Option<(i64, String)> = sqlx::query_as(LAST).fetch_optional(&mut **step).await?;
    let (number, before) = last.unwrap_or_default();
    sqlx::query("INSERT INTO audit (number, entry, hash) VALUES (?1, ?2, ?3)")
        .bind(number + 1)
        .bind(entry)
        .bind(chained(&before, entry))
        .execute(&mut **step)
        .await?;
    Ok(())
}

impl Store for Sqlite {
    fn insert(&self, row: Row, audit: String) -> Stored<'_, ()> {
        async move {
            let mut file = self.file().await?;
            file.write(&row, None, &audit).await.map(|_| ())
        }
        .boxed()
    }

    fn find(&self, id: String) -> Stored<'_, Option<Row>> {
        async move { Ok(self.rows("WHERE id = ?1", Some(id), 1).await?.pop()) }.boxed()
    }

    fn same(&self, same: String) -> Stored<'_, Vec<Row>> {
        self.rows(
            "WHERE same = ?1 AND delivered = 0 ORDER BY asked_at",
            Some(same),
            100,
        )
        .boxed()
    }

    fn list(&self, which: Which, page: Page) -> Stored<'_, Vec<Row>> {
        // `open` is spelled out, since a partial index is used for a constant only.
        let tail = match (which, page.after.is_some()) {
            (Which::Open, false) => "WHERE open = 1 ORDER BY asked_at, rowid",
            (Which::Open, true) => {
                "WHERE open = 1 AND (asked_at, rowid) > (SELECT asked_at, rowid FROM question WHERE id = ?1) \
                 ORDER BY asked_at, rowid"
            }
            (Which::Ended, false) => "WHERE open = 0 ORDER BY ended_at DESC, rowid DESC",
            (Which::Ended, true) => {
                "WHERE open = 0 AND (ended_at, rowid) < (SELECT ended_at, rowid FROM question WHERE id = ?1) \
                 ORDER BY ended_at DESC, rowid DESC"
            }
        };
        self.rows(tail, page.after, page.most).boxed()
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

    fn change(&self, changes: Vec<Change>) -> Stored<'_, bool> {
        async move {
            let mut file = self.file().await?;
            match changes.as_slice() {
                [] => Ok(true),
                [
                    Change {
                        row,
                        seen,
                        audit: Some(entry),
                    },
                ] => file.write(row, Some(*seen), entry).await,
                [
                    Change {
                        row,
                        seen,
                        audit: None,
                    },
                ] => {
                    let query = bound_change(sqlx::query(CHANGE_QUIETLY), row, *seen)?;
                    let done = query.execute(file.connection()?).await?;
                    Ok(done.rows_affected() == 1)
                }
                several => file.write_all(several).await,
            }
        }
        .boxed()
    }

    fn audit(&self, from: u64, most: usize) -> Stored<'_, Vec<Audited>> {
        async move {
            let mut file = self.file().await?;
            let links: Vec<(i64, String, String)> = sqlx::query_as(
                "SELECT number, entry, hash FROM audit WHERE number >= ?1 ORDER BY number LIMIT ?2",
            )
            .bind(signed(from))
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .fetch_all(file.connection()?)
            .await?;
            let link = |(number, entry, hash)| Audited {
                number: u64::try_from(number).unwrap_or(0),
                entry,
                hash,
            };
            Ok(links.into_iter().map(link).collect())
        }
        .boxed()
    }
}
