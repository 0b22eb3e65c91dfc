//! The check of a file before it is opened: only a gateway's record is migrated to this version's schema.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{RecordStoreError, Sqlite};

/// The tables that every version of the record has.
const TABLES: &str =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('question', 'audit')";

impl Sqlite {
    /// Checks that a file is a gateway's record, without writing to it.
    ///
    /// # Errors
    /// If it is something else, or cannot be read.
    pub async fn recognize(path: &Path) -> Result<(), RecordStoreError> {
        let path = path.to_owned();
        let looked = tokio::task::spawn_blocking(move || {
            let known = std::fs::metadata(&path)?;
            if !known.is_file() {
                return Err(RecordStoreError::NotRecord("it is not a file"));
            }
            if known.len() == 0 {
                return Err(RecordStoreError::NotRecord("it is empty"));
            }
            Ok(tables(&path))
        });
        match looked.await.map_err(|_| RecordStoreError::Closed)?? {
            Ok(2) => Ok(()),
            Ok(_) => Err(RecordStoreError::NotRecord(
                "it is the database of another program",
            )),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                Err(RecordStoreError::NotRecord("it is not an SQLite database"))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn tables(path: &Path) -> Result<i64, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.query_row(TABLES, [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_record_is_taken_for_one_and_nothing_is_written_into_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("empty"), "").unwrap();
        std::fs::write(
            path("text"),
            "no database at all, but long enough for a header\n".repeat(8),
        )
        .unwrap();
        let other = Connection::open(path("other")).unwrap();
        other.execute_batch("CREATE TABLE audit (a)").unwrap();
        other.close().unwrap();
        Sqlite::open(&path("record"))
            .await
            .unwrap()
            .close()
            .await
            .unwrap();
        for (name, said) in [
            ("empty", "it is empty"),
            ("text", "it is not an SQLite database"),
            ("other", "it is the database of another program"),
        ] {
            let before = std::fs::read(path(name)).unwrap();
            let Err(RecordStoreError::NotRecord(why)) = Sqlite::recognize(&path(name)).await else {
                panic!("{name} was taken for a record");
            };
            assert_eq!(why, said);
            assert_eq!(std::fs::read(path(name)).unwrap(), before);
        }
        Sqlite::recognize(&path("record")).await.unwrap();
        assert!(Sqlite::recognize(&path("none")).await.is_err());
        assert!(!path("none").exists());
    }
}
