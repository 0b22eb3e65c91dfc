//! A record in a database, for the commands that read or change it beside running gateways.

use std::fmt;
use std::sync::Arc;

use super::api_tokens::ApiTokenStore;
use super::shared_rows::SharedRowStore;
use super::{PartReceiver, PartSender, RecordFuture, RecordStore};
use crate::encryption::{KeyId, SealedWith};
use crate::{KeyFiles, LockFile, OwnKeys};

/// A record that is in a database instead of a state folder.
pub trait DatabaseRecord: fmt::Debug + Send + Sync {
    /// Returns the address of the database, without secrets.
    fn address(&self) -> &str;
    /// Checks that the database has a record. Nothing is written.
    fn recognize(&self) -> RecordFuture<'_, ()>;
    /// Returns the store for reading, whatever keys its values and the audit's links were made with.
    fn to_read(&self) -> Arc<dyn RecordStore>;
    /// Opens the record with its keys, which the files have. This process counts as one of the running gateways while it holds the lock file.
    fn open(
        &self,
        keys: OwnKeys,
        files: KeyFiles,
    ) -> RecordFuture<'_, (Arc<dyn RecordStore>, LockFile)>;
    /// Makes the key files of a state folder complete with the keys of the record, which the master key in its `seal.key`
    /// unwraps. Without effect on a record of an earlier version. Returns the ids of the master keys.
    ///
    /// # Errors
    /// If the folder has no master key of the record, or has another key of identities.
    fn share_keys(&self, files: KeyFiles) -> RecordFuture<'_, Vec<String>>;
    /// Checks that [`share_keys`](Self::share_keys) would complete these files. Nothing is written.
    ///
    /// # Errors
    /// Those of [`share_keys`](Self::share_keys).
    fn check_keys(&self, files: KeyFiles) -> RecordFuture<'_, ()>;
    /// Adds a data key, which seals new values once every running gateway has it.
    ///
    /// # Errors
    /// Those of [`share_keys`](Self::share_keys), and if a running gateway does not read it in time.
    fn rotate_keys(&self, files: KeyFiles) -> RecordFuture<'_, ()>;
    /// Removes the data keys that no value needs from the record, and from these files. Returns their ids.
    fn retire_keys(&self, files: KeyFiles, needed: SealedWith) -> RecordFuture<'_, Vec<KeyId>>;
    /// Wraps the keys by another master key too, which these files get. Returns `false` if they were wrapped by it already.
    fn rewrap_keys(&self, files: KeyFiles, master: [u8; 32]) -> RecordFuture<'_, bool>;
    /// Removes what other master keys than this one wrap. Returns `false` if there is none.
    fn finish_rewrap(&self, files: KeyFiles, master: [u8; 32]) -> RecordFuture<'_, bool>;
    /// Returns the keys that sealed values need.
    fn sealed_with(&self) -> RecordFuture<'_, SealedWith>;
    /// Returns the number of running gateways, and of commands that have the record open.
    fn running(&self) -> RecordFuture<'_, usize>;
    /// Returns the tables of tokens and blocked callers.
    fn tokens(&self) -> Arc<dyn ApiTokenStore>;
    /// Sends the contents of the record, whose keys these are, to another store, as they are at one moment. Nothing is written,
    /// and gateways may use the record meanwhile.
    fn send_parts(&self, keys: OwnKeys, to: PartSender) -> RecordFuture<'_, ()>;
    /// Checks that the database can take the contents of another record. Nothing is written.
    ///
    /// # Errors
    /// If it has a record, or other tables in its place, or cannot be used.
    fn refuse_occupied(&self) -> RecordFuture<'_, ()>;
    /// Writes the contents of another record into this database, with its tables, completely or not at all.
    ///
    /// # Errors
    /// If the database has a record, or cannot be written; or if the parts do not come to their end.
    fn receive_parts(&self, keys: OwnKeys, from: PartReceiver) -> RecordFuture<'_, ()>;
    /// Gives the tables another name, so that no gateway goes on with a record that was moved.
    fn set_aside(&self) -> RecordFuture<'_, ()>;
    /// Returns the tables of logins and sessions.
    fn shared_rows(&self) -> Arc<dyn SharedRowStore>;
}
