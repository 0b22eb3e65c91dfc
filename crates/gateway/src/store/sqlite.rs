//! A store in one SQLite file, which several gateways of one person may share. WAL: what is written survives the
//! process being killed at any point.

use std::path::Path;
use std::time::Duration;

use futures::FutureExt as _;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Row as _, SqlSafeStr as _, Sqlite as Database, Transaction};

use super::{Audited, Change, Row, Store, StoreFault, Stored, Which, chained};

/// What brings a file from one schema to the next; a file's `user_version` says how many were run.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];

const COLUMNS: &str = "id, same, owner, exchange, body, arguments, content";

/// A store in one SQLite file.
pub struct Sqlite {
    pool: SqlitePool,
}

impl Sqlite {
    /// Opens the file, made when there is none, and brings it to this version's schema.
    pub async fn open(path: &Path) -> Result<Self, StoreFault> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(10));
        // One connection: SQLite has one writer, and a queue in front of it is fairer than its busy loop.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options)
            .await?;
        let store = Self { pool };
        store.migrate().await?;
        Ok(store)
    }

    async fn migrate(&self) -> Result<(), StoreFault> {
        let mut step = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let found: i64 = sqlx::query_scalar("PRAGMA user_version")
            .fetch_one(&mut *step)
            .await?;
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
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

    async fn rows(
        &self,
        tail: &'static str,
        bind: impl Into<Bind>,
        most: usize,
    ) -> Result<Vec<Row>, StoreFault> {
        let text = sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM question {tail} LIMIT ?2"))
            .into_sql_str();
        let query = sqlx::query(text);
        let query = match bind.into() {
            Bind::Text(value) => query.bind(value),
            Bind::Number(value) => query.bind(value),
        };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = query.bind(most).fetch_all(&self.pool).await?;
        rows.iter().map(read).collect()
    }
}

/// A value for the first parameter.
enum Bind {
    Text(String),
    Number(i64),
}

impl From<String> for Bind {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<i64> for Bind {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
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
    let last: Option<(i64, String)> =
        sqlx::query_as("SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1")
            .fetch_optional(&mut **step)
            .await?;
    let (number, before) = last.unwrap_or_default();
    sqlx::query("INSERT INTO audit (number, entry, hash) VALUES (?1, ?2, ?3)")
        .bind(number + 1)
        .bind(entry)
        .bind(chained(&before, entry))
        .execute(&mut **step)
        .await?;
    Ok(())
}

async fn insert(step: &mut Transaction<'_, Database>, row: &Row) -> Result<(), StoreFault> {
    let exchange = &row.exchange;
    sqlx::query(
        "INSERT INTO question (id, same, owner, version, open, delivered, asked_at, ended_at, exchange, body, arguments, content) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )
    .bind(&row.id)
    .bind(&row.same)
    .bind(&row.owner)
    .bind(signed(exchange.version()))
    .bind(exchange.is_open())
    .bind(exchange.delivered_at().is_some())
    .bind(millis(exchange.asked_at()))
    .bind(exchange.ended_at().map(millis))
    .bind(serde_json::to_string(exchange)?)
    .bind(serde_json::to_string(&row.body)?)
    .bind(&row.arguments)
    .bind(&row.content)
    .execute(&mut **step)
    .await?;
    Ok(())
}

async fn update(
    step: &mut Transaction<'_, Database>,
    row: &Row,
    seen: u64,
) -> Result<bool, StoreFault> {
    let exchange = &row.exchange;
    let done = sqlx::query(
        "UPDATE question SET owner = ?3, version = ?4, open = ?5, delivered = ?6, ended_at = ?7, exchange = ?8, \
         arguments = ?9, content = ?10 WHERE id = ?1 AND version = ?2",
    )
    .bind(&row.id)
    .bind(signed(seen))
    .bind(&row.owner)
    .bind(signed(exchange.version()))
    .bind(exchange.is_open())
    .bind(exchange.delivered_at().is_some())
    .bind(exchange.ended_at().map(millis))
    .bind(serde_json::to_string(exchange)?)
    .bind(&row.arguments)
    .bind(&row.content)
    .execute(&mut **step)
    .await?;
    Ok(done.rows_affected() == 1)
}

impl Store for Sqlite {
    fn insert(&self, row: Row, audit: String) -> Stored<'_, ()> {
        async move {
            let mut step = self.pool.begin_with("BEGIN IMMEDIATE").await?;
            insert(&mut step, &row).await?;
            append(&mut step, &audit).await?;
            Ok(step.commit().await?)
        }
        .boxed()
    }

    fn find(&self, id: String) -> Stored<'_, Option<Row>> {
        async move { Ok(self.rows("WHERE id = ?1", id, 1).await?.pop()) }.boxed()
    }

    fn same(&self, same: String) -> Stored<'_, Vec<Row>> {
        self.rows(
            "WHERE same = ?1 AND delivered = 0 ORDER BY asked_at",
            same,
            100,
        )
        .boxed()
    }

    fn list(&self, which: Which, most: usize) -> Stored<'_, Vec<Row>> {
        match which {
            Which::Open => self
                .rows("WHERE open = ?1 ORDER BY asked_at", 1, most)
                .boxed(),
            Which::Ended => self
                .rows("WHERE open = ?1 ORDER BY ended_at DESC", 0, most)
                .boxed(),
        }
    }

    fn waiting(&self) -> Stored<'_, usize> {
        async move {
            let count: i64 = sqlx::query_scalar("SELECT count(*) FROM question WHERE open = 1")
                .fetch_one(&self.pool)
                .await?;
            Ok(usize::try_from(count).unwrap_or(0))
        }
        .boxed()
    }

    fn change(&self, changes: Vec<Change>) -> Stored<'_, bool> {
        async move {
            let mut step = self.pool.begin_with("BEGIN IMMEDIATE").await?;
            for change in &changes {
                if !update(&mut step, &change.row, change.seen).await? {
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
        .boxed()
    }

    fn audit(&self, from: u64, most: usize) -> Stored<'_, Vec<Audited>> {
        async move {
            let links: Vec<(i64, String, String)> = sqlx::query_as(
                "SELECT number, entry, hash FROM audit WHERE number >= ?1 ORDER BY number LIMIT ?2",
            )
            .bind(signed(from))
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .fetch_all(&self.pool)
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
