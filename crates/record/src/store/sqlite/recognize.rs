//! A look at a file before it is opened to be read: only a gateway's record is brought to this version's schema.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::{Sqlite, StoreError};

/// The tables that every version of the record has.
const TABLES: &str =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('question', 'audit')";

/// The code of SQLite for a file that is no database.
const NOT_A_DATABASE: &str = "26";

impl Sqlite {
    /// Checks that a file is a gateway's record. Nothing is written into it.
    ///
    /// # Errors
    /// When it is something else, or cannot be read.
    pub async fn recognize(path: &Path) -> Result<(), StoreError> {
        let file = std::fs::metadata(path).map_err(sqlx::Error::from)?;
        if file.len() == 0 {
            return Err(StoreError::NotRecord("it is empty"));
        }
        match tables(path).await {
            Ok(2) => Ok(()),
            Ok(_) => Err(StoreError::NotRecord(
                "it is the database of another program",
            )),
            Err(error) if is_no_database(&error) => {
                Err(StoreError::NotRecord("it is not an SQLite database"))
            }
            Err(error) => Err(error.into()),
        }
    }
}

async fn tables(path: &Path) -> Result<i64, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .disable_statement_logging()
        .busy_timeout(Duration::from_secs(10));
    let mut connection = options.connect().await?;
    let count = sqlx::query_scalar(TABLES)
        .fetch_one(&mut connection)
        .await?;
    connection.close().await?;
    Ok(count)
}

fn is_no_database(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| code == NOT_A_DATABASE)
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
        let options = SqliteConnectOptions::new()
            .filename(path("other"))
            .create_if_missing(true);
        let mut other = options.connect().await.unwrap();
        sqlx::raw_sql("CREATE TABLE audit (a)")
            .execute(&mut other)
            .await
            .unwrap();
        other.close().await.unwrap();
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
            let Err(StoreError::NotRecord(why)) = Sqlite::recognize(&path(name)).await else {
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
