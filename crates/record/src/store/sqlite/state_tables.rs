//! The tables of a state folder that gateways and commands share beside the questions, in the same file.
//!
//! They have a connection of their own, so that a read waits neither for the questions' writes nor for the disk, and is
//! made by the calling thread: it finds a few rows by an index. Reading creates no file.

mod api_tokens;
mod old_file;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use self::old_file::OldFile;
use super::super::{Crash, StoreError};
use super::file::File;

/// The shared tables of one state folder, which are opened on demand.
pub struct StateTables {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    /// The file of tokens of earlier versions.
    old_tokens: OldFile,
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
            inner: Mutex::new(Inner {
                file: File::at(record),
                old_tokens: OldFile::at(record.with_file_name(api_tokens::OLD_FILE)),
            }),
        }
    }

    /// Returns `true` if the tokens of this record are in the file of an earlier version.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn has_old_tokens(record: &Path) -> io::Result<bool> {
        OldFile::at(record.with_file_name(api_tokens::OLD_FILE)).is_in_use(api_tokens::NOTICE)
    }

    /// Reads from the tables. If there is no record, they are empty.
    fn read<T: Default>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let inner = &mut *self.lock();
        inner.move_old_files()?;
        if !inner.file.is_open() && !self.path.exists() {
            return Ok(T::default());
        }
        work(inner.file.connection()?)
    }

    /// Changes the tables in one transaction. A failed change has no effect.
    fn change<T>(
        &self,
        survives: Crash,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let inner = &mut *self.lock();
        inner.move_old_files()?;
        inner.file.change(survives, work)
    }

    /// Changes the tables like [`change`](Self::change); without a record there is nothing to change, and none is created.
    fn change_known<T: Default>(
        &self,
        survives: Crash,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let inner = &mut *self.lock();
        inner.move_old_files()?;
        if !inner.file.is_open() && !self.path.exists() {
            return Ok(T::default());
        }
        inner.file.change(survives, work)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere leaves no transaction open: it is rolled back when dropped.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Moves what earlier versions stored in files into the tables.
    fn move_old_files(&mut self) -> Result<(), StoreError> {
        let file = &mut self.file;
        self.old_tokens.move_with(api_tokens::NOTICE, |bytes| {
            let old = api_tokens::TokenFile::read(bytes)?;
            file.change(Crash::Machine, |step| old.merge_into(step))
        })
    }
}

impl File {
    /// Makes a change in one transaction.
    fn change<T>(
        &mut self,
        survives: Crash,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
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
