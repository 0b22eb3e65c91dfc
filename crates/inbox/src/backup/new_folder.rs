//! Folders that are written under another name beside their final one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use mcp_elicit_record::encryption::random_id;
use mcp_elicit_record::state_file;

use super::{BackupError, copy_file, manifest, refuse_occupied};
use crate::state_folder::StateFolder;

/// The suffix of a folder's name while it is written.
const ASIDE: &str = ".new";

/// A folder that is written under another name beside its final one, and removed if it is not finished.
pub(super) struct NewFolder {
    /// The folder; `None` once it has its final name.
    path: Option<PathBuf>,
    /// The folder, locked; `None` on systems that lock no folders.
    _lock: Option<File>,
}

impl NewFolder {
    /// Creates a folder, and removes those of processes that were killed while writing the same one.
    pub(super) fn create(final_path: &Path) -> Result<Self, BackupError> {
        StateFolder::check_path(final_path).map_err(BackupError::file(final_path))?;
        let unusable = || {
            let why = "the path names no folder that can be created";
            BackupError::file(final_path)(io::Error::other(why))
        };
        // `.` and a path with a slash at its end have a name only once they are resolved.
        let absolute = std::path::absolute(final_path).map_err(BackupError::file(final_path))?;
        let name = absolute.file_name().ok_or_else(unusable)?;
        clear_unfinished(&absolute, name);
        let random = random_id().map_err(BackupError::file(final_path))?;
        let path = absolute.with_file_name(format!(".{}.{random}{ASIDE}", name.to_string_lossy()));
        state_file::create_folder(&path).map_err(|error| match final_path.parent() {
            Some(parent) if error.kind() == io::ErrorKind::NotFound => {
                BackupError::NoParent(parent.to_owned())
            }
            _ => BackupError::file(final_path)(error),
        })?;
        Ok(Self {
            _lock: locked(&path),
            path: Some(path),
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or_else(|| Path::new(""))
    }

    /// Gives the folder its name. An empty folder of that name is replaced; the files are moved into one that cannot
    /// be, such as a mounted disk, with the key that a gateway needs at last.
    pub(super) fn rename(mut self, to: &Path) -> Result<(), BackupError> {
        let to = std::path::absolute(to).map_err(BackupError::file(to))?;
        state_file::sync_entries(self.path());
        if fs::rename(self.path(), &to).is_err() {
            refuse_occupied(&to)?;
            StateFolder::check_path(&to).map_err(BackupError::file(&to))?;
            move_files(self.path(), &to).map_err(BackupError::file(&to))?;
            fs::remove_dir(self.path()).map_err(BackupError::file(self.path()))?;
            state_file::sync_entries(&to);
        }
        self.path = None;
        if let Some(parent) = to.parent() {
            state_file::sync_entries(parent);
        }
        Ok(())
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _gone_already = fs::remove_dir_all(path);
        }
    }
}

/// Opens a folder and locks it; `None` if another process has it, or it cannot be locked.
fn locked(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    folder.try_lock().is_ok().then_some(folder)
}

/// Removes unfinished folders of processes that ended while writing them. Those of running processes stay.
fn clear_unfinished(to: &Path, name: &OsStr) {
    let entries = to.parent().and_then(|parent| fs::read_dir(parent).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = entry
            .metadata()
            .is_ok_and(|known| known.is_dir() && state_file::refuse_foreign(&path, &known).is_ok());
        // Removed under its lock, which its writer holds.
        if is_ours
            && is_unfinished(&entry.file_name(), name)
            && let Some(_lock) = locked(&path)
        {
            let _gone_already = fs::remove_dir_all(&path);
        }
    }
}

/// Returns `true` for the name of a folder that is written, and whose final name is `of`.
fn is_unfinished(name: &OsStr, of: &OsStr) -> bool {
    let (name, of) = (name.to_string_lossy(), of.to_string_lossy());
    let random = name
        .strip_prefix('.')
        .and_then(|rest| rest.strip_prefix(&*of))
        .and_then(|rest| rest.strip_prefix('.'))
        .and_then(|rest| rest.strip_suffix(ASIDE));
    random.is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Moves all files, the key of identities and the list of a backup last: without them, the folder is not used.
fn move_files(from: &Path, to: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from)? {
        names.push(entry?.file_name());
    }
    names.sort_by_key(|name| name == "identity.key" || name == manifest::NAME);
    for name in names {
        let (source, target) = (from.join(&name), to.join(&name));
        if fs::symlink_metadata(&source)?.is_dir() {
            fs::create_dir(&target)?;
            move_files(&source, &target)?;
            fs::remove_dir(&source)?;
        } else if fs::rename(&source, &target).is_err() {
            copy_file(&source, &target)?;
            fs::remove_file(&source)?;
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_killed_process_is_removed_by_the_next_one_and_that_of_a_running_one_stays() {
        let parent = tempfile::tempdir().unwrap();
        let to = parent.path().join("copy");
        // A process that is killed removes nothing, and its lock ends.
        let killed = |to: &Path| {
            let mut folder = NewFolder::create(to).unwrap();
            fs::write(folder.path().join("seal.key"), b"key").unwrap();
            folder.path.take().unwrap()
        };
        let elsewhere = killed(&parent.path().join("copy.2"));
        let notes = parent.path().join(".copy.notes.new");
        fs::create_dir(&notes).unwrap();
        let left = killed(&to);
        assert!(left.join("seal.key").exists());

        let running = NewFolder::create(&to).unwrap();
        assert!(!left.exists());
        let next = NewFolder::create(&to).unwrap();
        for kept in [running.path(), next.path(), &elsewhere, &notes] {
            assert!(kept.exists(), "{kept:?}");
        }
        next.rename(&to).unwrap();
        assert!(to.exists() && running.path().exists());
    }
}
