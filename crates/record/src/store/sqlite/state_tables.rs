//! The tables of a state folder that gateways and commands share beside the questions, in the same file.
//!
//! They have a connection of their own, so that a read waits neither for the questions' writes nor for the disk, and is
//! made by the calling thread: it finds a few rows by an index. Reading creates no file.

mod api_tokens;
mod old_file;
mod shared_rows;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde_json::Value;

use self::old_file::OldFile;
use super::super::api_tokens::ApiTokenStore as _;
use super::super::shared_rows::{ENTITIES, RowChanges, SharedEntity, SharedRowStore};
use super::super::{Crash, RecordStoreError};
use super::file::SqliteFile;

/// The shared tables of one state folder, which are opened on demand.
pub struct StateTables {
    path: PathBuf,
    inner: Mutex<StateFiles>,
}

struct StateFiles {
    file: SqliteFile,
    /// The file of tokens of earlier versions.
    old_tokens: OldFile,
    /// The files of shared values of earlier versions.
    old_values: Vec<(EarlierFile, OldFile)>,
}

/// A file beside the record in which earlier versions stored a shared value.
#[derive(Clone, Copy, Debug)]
pub struct EarlierFile {
    /// The kind of value.
    pub entity: SharedEntity,
    /// The name of the file.
    pub name: &'static str,
    /// The text that takes its place, which an earlier version cannot read.
    pub notice: &'static str,
    /// Reads the value as JSON; `None` if the file is ignored.
    pub read: fn(&[u8]) -> Result<Option<Value>, RecordStoreError>,
}

/// The tables that an operation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsedTables {
    Tokens,
    Shared(SharedEntity),
}

impl fmt::Debug for StateTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateTables")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl StateTables {
    /// Creates the tables in the file of this record. They need none of its keys.
    pub fn at(record: &Path) -> Self {
        Self {
            path: record.to_owned(),
            inner: Mutex::new(StateFiles {
                file: SqliteFile::at(record),
                old_tokens: OldFile::at(record.with_file_name(api_tokens::OLD_FILE)),
                old_values: Vec::new(),
            }),
        }
    }

    /// Moves a value from this file of earlier versions when it is first used.
    #[must_use]
    pub fn with_earlier_file(self, earlier: EarlierFile) -> Self {
        let file = OldFile::at(self.path.with_file_name(earlier.name));
        self.lock().old_values.push((earlier, file));
        self
    }

    /// Returns `true` if there is a file of earlier versions that was not moved.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn is_in_use(record: &Path, earlier: &EarlierFile) -> io::Result<bool> {
        OldFile::at(record.with_file_name(earlier.name)).is_in_use(earlier.notice)
    }

    /// Returns `true` if the tokens of this record are in the file of an earlier version.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn has_old_tokens(record: &Path) -> io::Result<bool> {
        OldFile::at(record.with_file_name(api_tokens::OLD_FILE)).is_in_use(api_tokens::NOTICE)
    }

    /// Returns `true` if there is nothing in the tables.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn are_empty(&self) -> Result<bool, RecordStoreError> {
        let mut known = self.tokens()?.is_empty() && self.blocked()?.is_empty();
        for entity in ENTITIES {
            known &= self.version(entity)? == 0;
        }
        Ok(known)
    }

    /// Adds the contents of other tables to these, which are new.
    ///
    /// # Errors
    /// If the others cannot be read, or these cannot be written.
    pub(crate) fn take_over(&self, others: &Self) -> Result<(), RecordStoreError> {
        for token in others.tokens()? {
            self.add(&token)?;
        }
        for caller in others.blocked()? {
            self.block(&caller)?;
        }
        for entity in ENTITIES {
            let (_, written) = others.rows(entity)?;
            let removed = Vec::new();
            let mut changes = Some(RowChanges { written, removed });
            SharedRowStore::change(self, entity, 0, &mut |_, _| changes.take())?;
        }
        Ok(())
    }

    /// Reads from the tables. If there is no record, they are empty.
    fn read<T: Default>(
        &self,
        tables: UsedTables,
        work: impl FnOnce(&Connection) -> Result<T, RecordStoreError>,
    ) -> Result<T, RecordStoreError> {
        let inner = &mut *self.lock();
        inner.move_old_file(tables)?;
        if !inner.file.is_open() && !self.path.exists() {
            return Ok(T::default());
        }
        work(inner.file.connection()?)
    }

    /// Changes the tables in one transaction. A failed change has no effect.
    fn change<T>(
        &self,
        tables: UsedTables,
        survives: Crash,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, RecordStoreError>,
    ) -> Result<T, RecordStoreError> {
        let inner = &mut *self.lock();
        inner.move_old_file(tables)?;
        inner.file.change(survives, work)
    }

    /// Changes the tables like [`change`](Self::change); without a record there is nothing to change, and none is created.
    fn change_known<T: Default>(
        &self,
        tables: UsedTables,
        survives: Crash,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, RecordStoreError>,
    ) -> Result<T, RecordStoreError> {
        let inner = &mut *self.lock();
        inner.move_old_file(tables)?;
        if !inner.file.is_open() && !self.path.exists() {
            return Ok(T::default());
        }
        inner.file.change(survives, work)
    }

    fn lock(&self) -> MutexGuard<'_, StateFiles> {
        // A panic elsewhere leaves no transaction open: it is rolled back when dropped.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateFiles {
    /// Moves what earlier versions stored in a file into the tables.
    fn move_old_file(&mut self, tables: UsedTables) -> Result<(), RecordStoreError> {
        let file = &mut self.file;
        let entity = match tables {
            UsedTables::Tokens => {
                return self.old_tokens.move_with(api_tokens::NOTICE, |bytes| {
                    let old = api_tokens::TokenFile::read(bytes)?;
                    file.change(Crash::Machine, |step| old.merge_into(step))
                });
            }
            UsedTables::Shared(entity) => entity,
        };
        for (earlier, old) in &mut self.old_values {
            if earlier.entity != entity {
                continue;
            }
            old.move_with(earlier.notice, |bytes| {
                let Some(value) = (earlier.read)(bytes)? else {
                    return Ok(());
                };
                let rows = entity.divide(value);
                let rows = rows.ok_or(RecordStoreError::OldFile(earlier.name))?;
                file.change(Crash::Machine, |step| {
                    shared_rows::move_in(step, entity, rows)
                })
            })?;
        }
        Ok(())
    }
}

impl SqliteFile {
    /// Makes a change in one transaction.
    fn change<T>(
        &mut self,
        survives: Crash,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, RecordStoreError>,
    ) -> Result<T, RecordStoreError> {
        self.set_survives(survives)?;
        let connection = self.connection()?;
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&step)?;
        step.commit()?;
        self.wrote(1);
        self.checkpoint_when_due();
        Ok(done)
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
