//! The list of a backup's files.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::state_file;
use serde::{Deserialize, Serialize};

use super::{BackupError, has_backup};

/// The name of the list. It is written last: a folder without it is not a complete backup.
pub(super) const NAME: &str = "backup.json";
/// The format of the list and of the folder.
const FORMAT: u32 = 1;
/// The longest list, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUpFile {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its contents, in hex.
    pub sha256: String,
}

/// The list of a backup's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the backup.
    format: u32,
    /// The version of mcp-elicit that made it.
    pub version: String,
    /// The time of the backup.
    pub at: Timestamp,
    /// The layout of the record; `None` without a record.
    pub layout: Option<i64>,
    /// The files.
    pub files: Vec<BackedUpFile>,
}

/// The part of a list that tells its format; the rest may be different in a newer one.
#[derive(Deserialize)]
struct ManifestHead {
    format: u32,
    #[serde(default)]
    version: String,
}

impl Manifest {
    pub(super) fn new(at: Timestamp, layout: Option<i64>, files: Vec<BackedUpFile>) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at,
            layout,
            files,
        }
    }

    /// Returns the size of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let path = folder.join(NAME);
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::other);
        let written = text.and_then(|text| state_file::replace(&path, &text));
        written.map_err(BackupError::file(&path))
    }

    pub(super) fn read(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(NAME);
        let damaged = |why: &str| BackupError::Damaged(format!("{NAME} {why}"));
        let text =
            state_file::read_at_most(&path, LONGEST).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => BackupError::NoBackup(folder.to_owned()),
                io::ErrorKind::FileTooLarge => damaged("is too long"),
                _ => BackupError::file(&path)(error),
            })?;
        let head: ManifestHead =
            serde_json::from_slice(&text).map_err(|_| damaged("is not the list of a backup"))?;
        if head.format > FORMAT {
            let version: String = head.version.chars().take(40).collect();
            return Err(BackupError::Newer { version });
        }
        let list: Self =
            serde_json::from_slice(&text).map_err(|_| damaged("is not the list of a backup"))?;
        // Names lead to no other folder, and none is there twice.
        let mut names = BTreeSet::new();
        for file in &list.files {
            let name = file.name.as_str();
            if !has_backup(name) || !names.insert(name) {
                return Err(damaged("names a file that a backup does not have"));
            }
        }
        Ok(list)
    }
}
