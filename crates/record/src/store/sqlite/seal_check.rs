//! The check that the keys of the values fit the file, and the keys that its values name.

use data_encoding::HEXLOWER;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::super::RecordStoreError;
use super::file::SqliteFile;
use super::{KEYED_CONTENTS, Sqlite};
use crate::associated_data;
use crate::encryption::{Encryption, SealedWith, sealed_texts};

const CHECK: &str = "SELECT value FROM seal_check";
const KEEP_CHECK: &str = "INSERT OR REPLACE INTO seal_check (one, value) VALUES (1, ?1)";
/// The associated data and the text of the check.
const ASSOCIATED_DATA: &str = "record.check";
const TEXT: &str = "ok";

/// Values of a record without a check, with the column of each: the newest, since the keys of older ones may be gone.
const SAMPLES: &str = "SELECT * FROM (SELECT id, 'arguments', arguments FROM question WHERE arguments IS NOT NULL ORDER BY asked_at DESC LIMIT 20) \
    UNION ALL SELECT * FROM (SELECT id, 'candidates', arguments FROM question WHERE arguments IS NOT NULL ORDER BY asked_at DESC LIMIT 20) \
    UNION ALL SELECT * FROM (SELECT id, 'content', content FROM question WHERE content IS NOT NULL ORDER BY asked_at DESC LIMIT 20) \
    UNION ALL SELECT * FROM (SELECT id, 'result', result FROM call LIMIT 20)";

/// The beginnings of all sealed values, which name their keys.
const BEGINNINGS: &str = "SELECT substr(arguments, 1, 12) FROM question WHERE arguments IS NOT NULL \
    UNION SELECT substr(content, 1, 12) FROM question WHERE content IS NOT NULL \
    UNION SELECT substr(result, 1, 12) FROM call UNION SELECT substr(answers, 1, 12) FROM approval_grant \
    UNION SELECT substr(value, 1, 12) FROM seal_check";
/// The teams whose people wrote texts, which are sealed.
const TEAMS: &str = "SELECT team FROM question WHERE team IS NOT NULL";

impl SqliteFile {
    /// Rejects keys that do not open the record's values: what they seal could not be read with the right ones, and the
    /// other way round. If the record holds no value, any keys will do.
    pub(super) fn fit_seal(&self, connection: &mut Connection) -> Result<(), RecordStoreError> {
        let encryption = self.encryption.as_ref();
        let Some(encryption) = encryption.filter(|_| !self.opens_with_any_key) else {
            return Ok(());
        };
        let known = check(connection)?;
        if known.is_some_and(|value| is_current(encryption, &value)) {
            return Ok(());
        }
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been first.
        let fits = match check(&step)? {
            Some(value) if is_current(encryption, &value) => return Ok(()),
            Some(value) => encryption.open(ASSOCIATED_DATA, &value).is_ok(),
            None => opens_a_sample(&step, encryption)?,
        };
        let holds_values = || step.query_row(KEYED_CONTENTS, [], |row| row.get::<_, i64>(0));
        if !fits && holds_values()? > 0 {
            return Err(RecordStoreError::OtherSealKey);
        }
        let value = encryption.seal(ASSOCIATED_DATA, TEXT)?;
        step.execute(KEEP_CHECK, [value])?;
        step.commit()?;
        Ok(())
    }
}

impl Sqlite {
    /// Returns the keys that the values of the file name.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub async fn sealed_with(&self) -> Result<SealedWith, RecordStoreError> {
        self.on_file(|file| {
            let connection = file.connection()?;
            let mut found = SealedWith::default();
            let mut statement = connection.prepare(BEGINNINGS)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                found.add(&row.get::<_, Vec<u8>>(0)?);
            }
            let mut statement = connection.prepare(TEAMS)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let team: String = row.get(0)?;
                for hex in sealed_texts(&team) {
                    found.add(&HEXLOWER.decode(hex.as_bytes()).unwrap_or_default());
                }
            }
            Ok(found)
        })
        .await
    }
}

fn check(connection: &Connection) -> Result<Option<Vec<u8>>, RecordStoreError> {
    Ok(connection
        .query_row(CHECK, [], |row| row.get(0))
        .optional()?)
}

/// Returns `true` if the check opens and was sealed with the newest key.
fn is_current(encryption: &Encryption, value: &[u8]) -> bool {
    encryption.is_newest(value) && encryption.open(ASSOCIATED_DATA, value).is_ok()
}

/// Returns `true` if one of the newest values opens, or if there is none.
fn opens_a_sample(
    connection: &Connection,
    encryption: &Encryption,
) -> Result<bool, RecordStoreError> {
    let mut statement = connection.prepare(SAMPLES)?;
    let mut rows = statement.query([])?;
    let mut is_empty = true;
    while let Some(row) = rows.next()? {
        let (id, column): (String, String) = (row.get(0)?, row.get(1)?);
        let sealed: Vec<u8> = row.get(2)?;
        if encryption
            .open(&associated_data(&id, &column), &sealed)
            .is_ok()
        {
            return Ok(true);
        }
        is_empty = false;
    }
    Ok(is_empty)
}
