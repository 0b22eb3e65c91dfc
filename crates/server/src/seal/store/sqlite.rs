//! A store in one SQLite file, which survives the process, and which the replicas of one machine share.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::{Store, StoreError, StoreFuture};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS used (id TEXT PRIMARY KEY, until_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS used_until ON used (until_ms);
CREATE TABLE IF NOT EXISTS kept (id TEXT PRIMARY KEY, until_ms INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS kept_until ON kept (until_ms);
";

/// A store in one SQLite file. What has expired is swept as it goes.
///
/// What is kept in it is sealed; without the keys the file says only how many calls there were, and when.
///
/// ```
/// use std::sync::Arc;
/// use mcp_elicit_server::ServerSettings;
/// use mcp_elicit_server::seal::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("states.sqlite");
/// let settings = ServerSettings::default().store(Arc::new(SqliteStore::open(file).await?));
/// # Ok(()) }
/// ```
pub struct SqliteStore {
    pool: SqlitePool,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self(error.to_string())
    }
}

impl SqliteStore {
    /// Opens the file, made when there is none.
    ///
    /// ```
    /// use mcp_elicit_server::seal::{SqliteStore, Store};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("states.sqlite");
    /// SqliteStore::open(&file).await?.consume("a state", 0, 1_000).await?;
    /// // Another process, or the same one after a restart.
    /// assert!(!SqliteStore::open(&file).await?.consume("a state", 0, 1_000).await?);
    /// # Ok(()) }
    /// ```
    pub async fn open(file: impl AsRef<Path>) -> Result<Self, StoreError> {
        // A state that was used must stay used, also when the machine loses power.
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(10));
        // One connection: SQLite has one writer, and a queue in front of it is fairer than its busy loop.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options)
            .await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        Ok(Self { pool })
    }
}

/// Times of SQLite have a sign; the far future is the farthest it has.
fn ms(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

impl Store for SqliteStore {
    fn consume<'a>(&'a self, id: &'a str, now_ms: u64, until_ms: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            sqlx::query("DELETE FROM used WHERE until_ms <= ?1 AND id <> ?2")
                .bind(ms(now_ms))
                .bind(id)
                .execute(&self.pool)
                .await?;
            let noted = sqlx::query(
                "INSERT INTO used (id, until_ms) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )
            .bind(id)
            .bind(ms(until_ms))
            .execute(&self.pool)
            .await?;
            Ok(noted.rows_affected() == 1)
        })
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        bytes: Vec<u8>,
        now_ms: u64,
        until_ms: u64,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            sqlx::query("DELETE FROM kept WHERE until_ms <= ?1")
                .bind(ms(now_ms))
                .execute(&self.pool)
                .await?;
            sqlx::query("INSERT OR REPLACE INTO kept (id, until_ms, bytes) VALUES (?1, ?2, ?3)")
                .bind(id)
                .bind(ms(until_ms))
                .bind(bytes)
                .execute(&self.pool)
                .await?;
            Ok(())
        })
    }

    fn load<'a>(&'a self, id: &'a str, now_ms: u64) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let found =
                sqlx::query_scalar("SELECT bytes FROM kept WHERE id = ?1 AND until_ms > ?2")
                    .bind(id)
                    .bind(ms(now_ms))
                    .fetch_optional(&self.pool)
                    .await?;
            Ok(found)
        })
    }
}
