//! A copy of a record: written while gateways use it, and checked without changing it.

use std::fmt::Write as _;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::audit::read_link;
use super::file::{
    BUSY_TIMEOUT, known_layout, known_triggers_and_views, triggers_and_views, version,
};
use super::{RecordStoreError, Sqlite};
use crate::audit::{ChainCheck, ChainVerifier};
use crate::encryption::Encryption;
use crate::store::ChainKey;
use crate::{associated_data, candidates, grants, state_file};

/// The contents of a record's copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedRecord {
    /// The number of its layout.
    pub layout: i64,
    /// The number of questions that wait for an answer.
    pub open: u64,
    /// The number of questions.
    pub questions: u64,
    /// The number of sealed values that the key opens.
    pub opened: u64,
    /// The number of sealed values that no key opens.
    pub unreadable: u64,
    /// The number of the audit's links that were made with a key.
    pub keyed_links: u64,
    /// The check of the audit's chain.
    pub chain: ChainCheck,
}

/// The keys that a copy is checked with.
struct CopyKeys<'k> {
    /// The keys of sealed values; `None` if there are none.
    seal: Option<&'k Encryption>,
    /// The key of the audit's chain; `None` if there is none.
    chain: Option<&'k ChainKey>,
}

impl Sqlite {
    /// Returns the newest layout that this version reads.
    pub fn known_layout() -> i64 {
        known_layout()
    }

    /// Writes the record as it is at one moment into a new file, while gateways use it. Its layout stays as it is.
    ///
    /// # Errors
    /// If the record cannot be read, is of a newer version, or the new file exists or cannot be written.
    pub async fn copy(record: &Path, to: &Path) -> Result<(), RecordStoreError> {
        let (record, to) = (record.to_owned(), to.to_owned());
        blocking(move || {
            // SQLite writes into an empty file, whose mode stays.
            drop(state_file::create_new(&to)?);
            // The log of a record in use is read through shared memory, which has to be written.
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&record, flags)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            refuse_newer(&connection)?;
            let Some(to_text) = to.to_str() else {
                let why = "the path is not UTF-8";
                return Err(std::io::Error::other(why).into());
            };
            connection.execute("VACUUM INTO ?1", [to_text])?;
            std::fs::File::open(&to)?.sync_all()?;
            Ok(())
        })
        .await
    }

    /// Checks a copy with its keys, without changing it: SQLite's own checks, the audit's chain, and every sealed value.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or is of a newer version.
    pub async fn check_copy(
        copy: &Path,
        seal: Option<Encryption>,
        chain: Option<ChainKey>,
    ) -> Result<CopiedRecord, RecordStoreError> {
        let copy = copy.to_owned();
        blocking(move || {
            let keys = CopyKeys {
                seal: seal.as_ref(),
                chain: chain.as_ref(),
            };
            check(&copy, &keys)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RecordStoreError> + Send + 'static,
) -> Result<T, RecordStoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| RecordStoreError::Closed)?
}

fn refuse_newer(connection: &Connection) -> Result<i64, RecordStoreError> {
    let (found, known) = (version(connection)?, known_layout());
    if found > known {
        return Err(RecordStoreError::Newer { found, known });
    }
    Ok(found)
}

fn check(copy: &Path, keys: &CopyKeys<'_>) -> Result<CopiedRecord, RecordStoreError> {
    // An immutable file gets no other files beside it.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(immutable(copy), flags)?;
    let layout = refuse_newer(&connection)?;
    let damage: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if damage != "ok" {
        return Err(RecordStoreError::NotRecord("SQLite finds it damaged"));
    }
    if !has_table(&connection, "question")? || !has_table(&connection, "audit")? {
        return Err(RecordStoreError::NotRecord("it has other tables"));
    }
    // A trigger acts with each write, thus already in a restore.
    let known = known_triggers_and_views()?;
    let found = triggers_and_views(&connection)?;
    if found.iter().any(|sql| !known.contains(sql)) {
        return Err(RecordStoreError::NotRecord(
            "it has a trigger or a view that is not of a record",
        ));
    }
    let count = |text: &str| -> Result<u64, RecordStoreError> {
        let count: i64 = connection.query_row(text, [], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    };
    let mut found = CopiedRecord {
        layout,
        open: count("SELECT count(*) FROM question WHERE open = 1")?,
        questions: count("SELECT count(*) FROM question")?,
        opened: 0,
        unreadable: 0,
        keyed_links: count("SELECT count(*) FROM audit WHERE hash LIKE 'k1:%'")?,
        chain: check_chain(&connection, keys.chain)?,
    };
    count_sealed(&connection, keys.seal, &mut found)?;
    Ok(found)
}

/// Returns the address of a file that no process changes.
fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.to_string_lossy().bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_') {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri + "?immutable=1"
}

fn has_table(connection: &Connection, name: &str) -> Result<bool, RecordStoreError> {
    let text = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    let found: Option<i64> = connection
        .query_row(text, [name], |row| row.get(0))
        .optional()?;
    Ok(found.is_some())
}

fn check_chain(
    connection: &Connection,
    key: Option<&ChainKey>,
) -> Result<ChainCheck, RecordStoreError> {
    let mut statement =
        connection.prepare("SELECT number, entry, hash FROM audit ORDER BY number")?;
    let mut rows = statement.query([])?;
    let mut chain = ChainVerifier::new(key);
    while let Some(row) = rows.next()? {
        if let Err(broken) = chain.add(&read_link(row)?) {
            return Ok(broken);
        }
    }
    Ok(chain.finish())
}

/// Opens every sealed value, without keeping any.
fn count_sealed(
    connection: &Connection,
    seal: Option<&Encryption>,
    found: &mut CopiedRecord,
) -> Result<(), RecordStoreError> {
    let mut try_each = |table: &str, text: &str| -> Result<(), RecordStoreError> {
        if !has_table(connection, table)? {
            return Ok(());
        }
        let mut statement = connection.prepare(text)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (places, value) = (row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?);
            let opens = |place| seal.is_some_and(|seal| seal.open(place, &value).is_ok());
            if places.lines().any(opens) {
                found.opened += 1;
            } else {
                found.unreadable += 1;
            }
        }
        Ok(())
    };
    let question = |column: &str, members: &[&str]| {
        // One line for each place that the value may be bound to.
        let places: Vec<String> = members
            .iter()
            .map(|member| format!("id || '{}'", associated_data("", member)))
            .collect();
        let places = places.join(" || char(10) || ");
        format!("SELECT {places}, {column} FROM question WHERE {column} IS NOT NULL")
    };
    try_each("question", &question("content", &["content"]))?;
    let members = [candidates::ARGUMENTS, candidates::COLUMN];
    try_each("question", &question("arguments", &members))?;
    try_each("call", "SELECT id || '.result', result FROM call")?;
    let grant = format!(
        "SELECT key || '.' || at || '.' || until || '{}', answers FROM approval_grant",
        associated_data("", grants::MEMBER)
    );
    try_each("approval_grant", &grant)
}
