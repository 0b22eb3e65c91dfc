//! The check that the keys of a gateway are those of the record.
//!
//! The first gateway of a record leaves a value made with each of its keys. Another gateway is refused unless its keys
//! make the same, even while the record is empty: what each wrote could not be read by the other.

use super::super::{StoreError, chained, is_keyed};
use super::{Postgres, statements};

/// The kinds of values.
const SEAL: &str = "seal";
const IDENTITY: &str = "identity";
/// The associated data and the text of the sealed value.
const ASSOCIATED_DATA: &str = "record.check";
const TEXT: &str = "ok";

impl Postgres {
    /// Opens the database, and checks the keys.
    pub(super) async fn open(&self) -> Result<(), StoreError> {
        self.database.ready().await?;
        self.fit_identity().await?;
        self.fit_chain().await?;
        self.fit_seal().await
    }

    async fn fit_identity(&self) -> Result<(), StoreError> {
        let Some(identity) = &self.identity else {
            return Ok(());
        };
        let mine = identity.derive("record check").to_vec();
        if self.check_left(IDENTITY, &mine).await? == mine {
            return Ok(());
        }
        Err(self.other("identity.key"))
    }

    /// Returns the error of a key that is another record's.
    fn other(&self, key: &str) -> StoreError {
        let address = self.database.settings().address();
        StoreError::Refused {
            why: format!("{key} in the state folder is not the key of the record at {address}"),
            next: "copy seal.key and identity.key from the state folder of a gateway of this record, or name another database."
                .to_owned(),
        }
    }

    /// Rejects a chain whose last link was made with another key.
    async fn fit_chain(&self) -> Result<(), StoreError> {
        let Some(key) = &self.chain else {
            return Ok(());
        };
        let rows = self.database.rows(&statements::AUDIT_LAST_TWO, &[]).await?;
        let Some(row) = rows.first() else {
            return Ok(());
        };
        let (entry, hash, before): (&str, &str, &str) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if is_keyed(hash) && hash != chained(Some(key), before, entry) {
            return Err(StoreError::OtherKey);
        }
        Ok(())
    }

    async fn fit_seal(&self) -> Result<(), StoreError> {
        let Some(encryption) = &self.encryption else {
            return Ok(());
        };
        let mine = encryption.seal(ASSOCIATED_DATA, TEXT)?;
        let left = self.check_left(SEAL, &mine).await?;
        if encryption.open(ASSOCIATED_DATA, &left).is_err() {
            return Err(self.other("seal.key"));
        }
        if !encryption.is_newest(&left) {
            // The key was rotated since.
            self.database
                .execute(&statements::RENEW_KEY_CHECK, &[&SEAL, &mine])
                .await?;
        }
        Ok(())
    }

    /// Leaves a value, unless one of this kind is there, and returns the one that is.
    async fn check_left(&self, kind: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.database
            .execute(&statements::KEEP_KEY_CHECK, &[&kind, &value])
            .await?;
        let row = self.database.row(&statements::KEY_CHECK, &[&kind]).await?;
        Ok(row.try_get(0)?)
    }
}
