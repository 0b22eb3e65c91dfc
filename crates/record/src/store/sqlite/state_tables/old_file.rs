//! A file in which earlier versions stored what a table holds now.
//!
//! Its contents are merged into the table in one transaction that survives a loss of power, and only then a notice takes
//! its place. A process that is killed in between leaves both, and the next one merges again, which changes nothing.
//! The file stays with a notice in it, because a gateway of an earlier version may still run: it must not go on as if
//! there were nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::super::super::RecordStoreError;
use crate::state_file;

/// A file of earlier versions.
pub(super) struct OldFile {
    path: PathBuf,
    /// The stamp of the file with the notice, once it was seen.
    retired: Option<OldFileStamp>,
}

/// The stamp of a state of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct OldFileStamp {
    changed: SystemTime,
    bytes: u64,
    #[cfg(unix)]
    node: u64,
}

impl OldFileStamp {
    /// Returns the stamp of a file; `None` if there is none.
    fn of(path: &Path) -> io::Result<Option<Self>> {
        let file = match fs::metadata(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Self {
            changed: file.modified()?,
            bytes: file.len(),
            #[cfg(unix)]
            node: std::os::unix::fs::MetadataExt::ino(&file),
        }))
    }
}

impl OldFile {
    pub(super) fn at(path: PathBuf) -> Self {
        Self {
            path,
            retired: None,
        }
    }

    /// Returns `true` if there is a file without the notice.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn is_in_use(&self, notice: &str) -> io::Result<bool> {
        match state_file::read(&self.path) {
            Ok(bytes) => Ok(bytes != notice.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Moves the contents with `merge`, if there are any, and leaves the notice.
    ///
    /// # Errors
    /// If the file cannot be read or replaced, or `merge` fails.
    pub(super) fn move_with(
        &mut self,
        notice: &str,
        merge: impl FnOnce(&[u8]) -> Result<(), RecordStoreError>,
    ) -> Result<(), RecordStoreError> {
        let stamp = OldFileStamp::of(&self.path)?;
        if stamp.is_none() || stamp == self.retired {
            return Ok(());
        }
        // Earlier versions change the file under the same lock.
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let lock = state_file::open_private(&self.path.with_file_name(name))?;
        lock.lock()?;
        let bytes = match state_file::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if bytes != notice.as_bytes() {
            merge(&bytes)?;
            killed_here("merged");
            state_file::replace(&self.path, notice.as_bytes())?;
            killed_here("retired");
            tracing::info!(file = %self.path.display(), "its contents are in the record now");
        }
        self.retired = OldFileStamp::of(&self.path)?;
        Ok(())
    }

    /// Leaves the notice if there is no file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn leave(&self, notice: &str) -> io::Result<()> {
        if OldFileStamp::of(&self.path)?.is_some() {
            return Ok(());
        }
        state_file::create_once(&self.path, notice.as_bytes()).map(drop)
    }
}

/// Ends a test's process like a kill, if it asked for that at this point.
#[cfg(test)]
fn killed_here(point: &str) {
    if std::env::var(super::tests::KILLED_AT).as_deref() == Ok(point) {
        std::process::abort();
    }
}

#[cfg(not(test))]
fn killed_here(_point: &str) {}
