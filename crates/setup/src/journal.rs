//! The journal of changed files, in the state folder: what a file was before each change.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::edit::Op;
use crate::tree::PathStep;

/// The changes that undo those of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    pub(crate) path: Vec<PathStep>,
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
}

impl Undo {
    /// Returns the server's name.
    pub fn server(&self) -> &str {
        &self.name
    }
}

/// One change of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The changed file, without symbolic links.
    pub path: PathBuf,
    /// The whole file before the change.
    pub(crate) before: String,
    pub(crate) before_hash: String,
    pub(crate) after_hash: String,
    /// The changed servers.
    pub(crate) servers: Vec<Undo>,
    /// The file of the entry.
    #[serde(skip)]
    pub(crate) file: PathBuf,
}

impl JournalEntry {
    /// Creates an entry for a change.
    pub(crate) fn new(path: &Path, before: &str, after: &[u8], servers: Vec<Undo>) -> Self {
        Self {
            path: path.to_owned(),
            before: before.to_owned(),
            before_hash: hash(before.as_bytes()),
            after_hash: hash(after),
            servers,
            file: PathBuf::new(),
        }
    }
}

/// Returns the SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16));
    let digest = Sha256::digest(bytes);
    digest.iter().flat_map(digits).flatten().collect()
}

/// The journal, held by one process at a time.
#[derive(Debug)]
pub struct SetupJournal {
    folder: PathBuf,
    _lock: File,
}

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process changes configuration files.
    #[error("another `mcp-elicit setup` runs")]
    InUse,
    /// An entry is not one of this version.
    #[error("{} is not an entry of this version", .0.display())]
    Damaged(PathBuf),
    /// A file or the folder cannot be used.
    #[error("{} cannot be used", .0.display())]
    File(PathBuf, #[source] io::Error),
}

/// The largest entry that is read, in bytes: a file may double when its characters are escaped.
const MAX_BYTES: u64 = 64 << 20;

impl SetupJournal {
    /// Opens the journal in this folder, which is created if there is none.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let failed = |error| JournalError::File(folder.to_owned(), error);
        create_private_folder(folder).map_err(failed)?;
        let lock = private()
            .create(true)
            .truncate(false)
            .open(folder.join("lock"))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                folder: folder.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(JournalError::InUse),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Returns the entries, the newest first.
    pub fn entries(&self) -> Result<Vec<JournalEntry>, JournalError> {
        read(&self.folder)
    }

    /// Writes an entry so that it is whole or absent after a crash.
    pub(crate) fn add(&self, entry: &JournalEntry) -> io::Result<PathBuf> {
        let last = numbered(&self.folder)?
            .last()
            .map_or(0, |(number, _)| *number);
        let path = self.folder.join(format!("{:08}.json", last + 1));
        let unfinished = self.folder.join("unfinished");
        let mut file = private().create(true).truncate(true).open(&unfinished)?;
        file.write_all(&serde_json::to_vec(entry)?)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        sync_folder(&self.folder)?;
        Ok(path)
    }

    /// Removes an entry that has no use any more.
    pub(crate) fn remove(&self, entry: &JournalEntry) -> io::Result<()> {
        fs::remove_file(&entry.file)?;
        sync_folder(&self.folder)
    }
}

/// Returns the entries of a journal, the newest first; none if there is no such folder.
pub fn read(folder: &Path) -> Result<Vec<JournalEntry>, JournalError> {
    let failed = |error| JournalError::File(folder.to_owned(), error);
    let mut entries = Vec::new();
    for (_, path) in numbered(folder).map_err(failed)?.into_iter().rev() {
        let length = fs::metadata(&path).map_or(0, |about| about.len());
        let bytes = fs::read(&path).map_err(|error| JournalError::File(path.clone(), error))?;
        match serde_json::from_slice::<JournalEntry>(&bytes) {
            Ok(entry) if length <= MAX_BYTES => entries.push(JournalEntry {
                file: path,
                ..entry
            }),
            _ => return Err(JournalError::Damaged(path)),
        }
    }
    Ok(entries)
}

/// Returns the files of entries with their numbers, the oldest first.
fn numbered(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let number = stem.and_then(|stem| stem.parse().ok());
        if let (Some(number), Some("json")) =
            (number, path.extension().and_then(|end| end.to_str()))
        {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes the names in a folder to the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
