//! A store in one SQLite file, which survives the process and is shared by the replicas on one machine.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _};

use super::{Store, StoreError, StoreFuture};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS used (id TEXT PRIMARY KEY, until_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS used_until ON used (until_ms);
CREATE TABLE IF NOT EXISTS kept (id TEXT PRIMARY KEY, until_ms INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS kept_until ON kept (until_ms);
";

/// A store in one SQLite file. Expired entries are swept during use.
///
/// Its content is sealed; without the keys the file reveals only how many calls there were, and when.
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
    // One connection: SQLite has one writer, and a queue in front of it is fairer than its busy loop.
    connection: Arc<Mutex<Connection>>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
}

impl SqliteStore {
    /// Opens the file, and creates it if it does not exist.
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
        let file = file.as_ref().to_owned();
        let connection = on_a_thread(move || connect(&file)).await?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
        })
    }

    /// Runs `work` with the file, on a thread that may block on the disk.
    fn on_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let connection = self.connection.clone();
        Box::pin(on_a_thread(move || {
            work(&connection.lock().unwrap_or_else(PoisonError::into_inner))
        }))
    }
}

async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(StoreError(error.to_string())),
    }
}

fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    // A used state must stay used, also when the machine loses power.
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

/// Converts a time for SQLite, whose integers are signed; later times are capped.
fn ms(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

impl Store for SqliteStore {
    fn consume<'a>(&'a self, id: &'a str, now_ms: u64, until_ms: u64) -> StoreFuture<'a, bool> {
        let id = id.to_owned();
        self.on_file(move |file| {
            file.prepare_cached("DELETE FROM used WHERE until_ms <= ?1 AND id <> ?2")?
                .execute((ms(now_ms), &id))?;
            let noted = file
                .prepare_cached(
                    "INSERT INTO used (id, until_ms) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                )?
                .execute((&id, ms(until_ms)))?;
            Ok(noted == 1)
        })
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        bytes: Vec<u8>,
        now_ms: u64,
        until_ms: u64,
    ) -> StoreFuture<'a, ()> {
        let id = id.to_owned();
        self.on_file(move |file| {
            file.prepare_cached("DELETE FROM kept WHERE until_ms <= ?1")?
                .execute([ms(now_ms)])?;
            file.prepare_cached(
                "INSERT OR REPLACE INTO kept (id, until_ms, bytes) VALUES (?1, ?2, ?3)",
            )?
            .execute((id, ms(until_ms), bytes))?;
            Ok(())
        })
    }

    fn load<'a>(&'a self, id: &'a str, now_ms: u64) -> StoreFuture<'a, Option<Vec<u8>>> {
        let id = id.to_owned();
        self.on_file(move |file| {
            file.prepare_cached("SELECT bytes FROM kept WHERE id = ?1 AND until_ms > ?2")?
                .query_row((id, ms(now_ms)), |row| row.get(0))
                .optional()
        })
    }
}
