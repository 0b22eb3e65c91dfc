//! A value in a file of the state folder that several processes read and change.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

use mcp_elicit_record::state_file;

/// A value that a [`SharedFile`] holds.
pub(crate) trait SharedValue: Serialize + DeserializeOwned {
    /// The error for a file with other content.
    const UNREADABLE: &'static str;
    /// `true` if a fresh value replaces other content at the next change; otherwise nothing is changed until the file
    /// is fixed or removed.
    const REPLACED: bool;

    /// Creates the value for a new file.
    ///
    /// # Errors
    /// If there is no randomness.
    fn fresh() -> io::Result<Self>;

    /// Returns `true` if the parsed value is valid.
    fn is_sound(&self) -> bool;
}

/// A value in one file. A change by another process is seen at the next read.
#[derive(Debug)]
pub(crate) struct SharedFile<T> {
    path: PathBuf,
    known: Mutex<Option<(Stamp, Arc<T>)>>,
}

/// The stamp of a state of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    changed: SystemTime,
    bytes: u64,
    node: u64,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        Ok(Self {
            changed: file.modified()?,
            bytes: file.len(),
            #[cfg(unix)]
            node: std::os::unix::fs::MetadataExt::ino(&file),
            #[cfg(not(unix))]
            node: 0,
        })
    }
}

impl<T: SharedValue> SharedFile<T> {
    /// Creates the value in this file, which is created at the first change.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            path,
            known: Mutex::default(),
        }
    }

    /// Returns the current value; `None` if there is no file, or it has no such value.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn read(&self) -> io::Result<Option<Arc<T>>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match (Stamp::of(&self.path), &*known) {
            (Ok(now), Some((then, value))) if now == *then => Ok(Some(Arc::clone(value))),
            // Read after the stamp was taken: a change in between is seen at the next read.
            (Ok(now), _) => {
                let value = self.load()?.map(Arc::new);
                *known = value.clone().map(|value| (now, value));
                Ok(value)
            }
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            (Err(error), _) => Err(error),
        }
    }

    /// Changes the value, in one process at a time. A failed change has no effect.
    ///
    /// # Errors
    /// If the file cannot be read or written, or `change` fails.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> io::Result<R>) -> io::Result<R> {
        self.try_change(change)
    }

    /// Changes the value like [`change`](Self::change), with other errors.
    ///
    /// # Errors
    /// If the file cannot be read or written, or `change` fails.
    pub(crate) fn try_change<R, E: From<io::Error>>(
        &self,
        change: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let _lock = self.lock()?;
        let mut value = match self.load()? {
            Some(value) => value,
            None => T::fresh()?,
        };
        let changed = change(&mut value)?;
        let bytes = serde_json::to_vec(&value).map_err(io::Error::from)?;
        state_file::replace(&self.path, &bytes)?;
        Ok(changed)
    }

    fn load(&self) -> io::Result<Option<T>> {
        let bytes = match state_file::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let value = serde_json::from_slice(&bytes).ok().filter(T::is_sound);
        if value.is_none() && !T::REPLACED {
            return Err(io::Error::new(io::ErrorKind::InvalidData, T::UNREADABLE));
        }
        if value.is_none() {
            tracing::warn!(file = %self.path.display(), "{}", T::UNREADABLE);
        }
        Ok(value)
    }

    /// Prevents other processes from changing the file until this is dropped.
    fn lock(&self) -> io::Result<File> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let lock = state_file::open_private(&self.path.with_file_name(name))?;
        lock.lock()?;
        Ok(lock)
    }
}
