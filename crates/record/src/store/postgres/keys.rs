//! The check that the keys of a gateway are those of the record.
//!
//! The first gateway of a record leaves a value made with each of its keys. Another gateway is refused unless its keys
//! make the same, even while the record is empty: what each wrote could not be read by the other.

use tokio_postgres::Client;

use super::super::{RecordStoreError, chained, is_keyed};
use super::database::{execute, query};
use super::{Postgres, statements};
use crate::IdentityKey;
use crate::encryption::Encryption;

/// The kinds of values.
pub(super) const SEAL: &str = "seal";
pub(super) const IDENTITY: &str = "identity";
/// The purpose of the value that is made with the key of identities.
const PURPOSE: &str = "record check";
/// The associated data and the text of the sealed value.
const ASSOCIATED_DATA: &str = "record.check";
const TEXT: &str = "ok";

impl Postgres {
    /// Opens the database, and checks the keys.
    pub(super) async fn open(&self) -> Result<(), RecordStoreError> {
        self.database.ready().await?;
        self.fit_identity().await?;
        self.fit_chain().await?;
        self.fit_seal().await
    }

    /// Rejects keys that are not those of the record. Nothing is written.
    pub(super) async fn fit_left_keys(&self, client: &Client) -> Result<(), RecordStoreError> {
        if let Some(identity) = &self.identity
            && let Some(left) = left(client, IDENTITY).await?
            && left != identity.derive(PURPOSE)
        {
            return Err(self.other("identity.key"));
        }
        if let Some(encryption) = &self.encryption
            && let Some(left) = left(client, SEAL).await?
            && encryption.open(ASSOCIATED_DATA, &left).is_err()
        {
            return Err(self.other("seal.key"));
        }
        Ok(())
    }

    /// Leaves a value made with each key in a new record, in the transaction of this connection.
    pub(super) async fn leave_keys(&self, client: &Client) -> Result<(), RecordStoreError> {
        if let Some(identity) = &self.identity {
            let value = identity.derive(PURPOSE).to_vec();
            execute(client, &statements::KEEP_KEY_CHECK, &[&IDENTITY, &value]).await?;
        }
        if let Some(encryption) = &self.encryption {
            let value = encryption.seal(ASSOCIATED_DATA, TEXT)?;
            execute(client, &statements::KEEP_KEY_CHECK, &[&SEAL, &value]).await?;
        }
        Ok(())
    }

    async fn fit_identity(&self) -> Result<(), RecordStoreError> {
        let Some(identity) = &self.identity else {
            return Ok(());
        };
        let mine = identity.derive(PURPOSE).to_vec();
        if self.check_left(IDENTITY, &mine).await? == mine {
            return Ok(());
        }
        Err(self.other("identity.key"))
    }

    /// Returns the error of a key that is another record's.
    fn other(&self, key: &str) -> RecordStoreError {
        other(key, self.database.settings().address())
    }

    /// Rejects a chain whose last link was made with another key.
    async fn fit_chain(&self) -> Result<(), RecordStoreError> {
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
            return Err(RecordStoreError::OtherKey);
        }
        Ok(())
    }

    async fn fit_seal(&self) -> Result<(), RecordStoreError> {
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
    async fn check_left(&self, kind: &str, value: &[u8]) -> Result<Vec<u8>, RecordStoreError> {
        self.database
            .execute(&statements::KEEP_KEY_CHECK, &[&kind, &value])
            .await?;
        let row = self.database.row(&statements::KEY_CHECK, &[&kind]).await?;
        Ok(row.try_get(0)?)
    }
}

/// Returns the error of a key that is another record's.
pub(super) fn other(key: &str, address: &str) -> RecordStoreError {
    RecordStoreError::Refused {
        why: format!("{key} in the state folder is not the key of the record at {address}"),
        next: "copy seal.key from the state folder of a gateway of this record, and remove identity.key, which is made from it; or name another database."
            .to_owned(),
    }
}

/// Returns `true` if this key made the value that the record has.
pub(super) fn is_of(identity: &IdentityKey, left: &[u8]) -> bool {
    identity.derive(PURPOSE) == left
}

/// Returns `true` if these keys open the value that the record has.
pub(super) fn opens(encryption: &Encryption, left: &[u8]) -> bool {
    encryption.open(ASSOCIATED_DATA, left).is_ok()
}

/// Returns the value of this kind that the record has.
pub(super) async fn left(client: &Client, kind: &str) -> Result<Option<Vec<u8>>, RecordStoreError> {
    let rows = query(client, &statements::KEY_CHECK, &[&kind]).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
}
