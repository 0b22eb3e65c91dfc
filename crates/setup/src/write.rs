//! Replaces a file so that a crash at any point leaves the old one or the new one.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::document::FilePlan;
use crate::journal::{JournalEntry, SetupJournal, sync_folder};

/// The points between two effects of a change, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Nothing was done.
    Begun,
    /// The journal has the file as it is.
    Noted,
    /// The temporary file exists, and is empty.
    Created,
    /// The temporary file is on the disk.
    Written,
    /// The file was read again, and is the same.
    Compared,
    /// The file is replaced.
    Renamed,
}

impl Point {
    /// All points.
    pub const ALL: [Self; 6] = [
        Self::Begun,
        Self::Noted,
        Self::Created,
        Self::Written,
        Self::Compared,
        Self::Renamed,
    ];
}

/// A file that was not changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It was changed by another program meanwhile.
    #[error("another program changed it meanwhile")]
    Changed,
    /// It may not be changed.
    #[error("it is read-only")]
    ReadOnly,
    /// Its folder may not be changed.
    #[error("its folder is read-only")]
    FolderReadOnly,
    /// It belongs to another user.
    #[error("it belongs to another user")]
    OtherOwner,
    /// It has several names, and only one of them would be changed.
    #[error("it has {0} names (hard links), and only one of them would be changed")]
    HardLinks(u64),
    /// It is not a file.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is a symbolic link to nothing.
    #[error("it is a symbolic link to a file that does not exist")]
    DanglingLink,
    /// The file system refuses a step.
    #[error("{0} failed")]
    Io(&'static str, #[source] io::Error),
}

/// Returns the file that a path stands for: the target of a symbolic link.
pub fn real_path(path: &Path) -> Result<PathBuf, WriteError> {
    fs::canonicalize(path).map_err(|error| {
        let is_link = fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
        if is_link && error.kind() == io::ErrorKind::NotFound {
            WriteError::DanglingLink
        } else {
            WriteError::Io("finding it", error)
        }
    })
}

/// Writes a plan to this file, which is no symbolic link, with an entry in the journal. `at` is called at each point; an
/// error of it ends the change there.
pub fn write(
    journal: &SetupJournal,
    path: &Path,
    plan: &FilePlan,
    at: &mut dyn FnMut(Point) -> io::Result<()>,
) -> Result<(), WriteError> {
    let stopped = |error| WriteError::Io("the change", error);
    at(Point::Begun).map_err(stopped)?;
    check(path)?;
    let before = String::from_utf8_lossy(&plan.before);
    let undo = plan
        .changed
        .iter()
        .map(|changed| changed.undo.clone())
        .collect();
    let mut entry = JournalEntry::new(path, &before, &plan.after, undo);
    entry.file = journal
        .add(&entry)
        .map_err(|error| WriteError::Io("writing the journal", error))?;
    let done = at(Point::Noted)
        .map_err(stopped)
        .and_then(|()| replace(path, &plan.before, &plan.after, at));
    if done.is_err() && fs::read(path).is_ok_and(|now| now != plan.after) {
        // An entry that stays is recognized as one without effect, by the hash of the file.
        let _ignored = journal.remove(&entry);
    }
    done
}

/// Refuses a file that cannot be replaced without a change of its owner, its rights or its other names.
fn check(path: &Path) -> Result<Metadata, WriteError> {
    let about = fs::symlink_metadata(path).map_err(|error| WriteError::Io("reading it", error))?;
    if !about.is_file() {
        return Err(WriteError::NotAFile);
    }
    if about.permissions().readonly() {
        return Err(WriteError::ReadOnly);
    }
    let folder = folder(path);
    let above =
        fs::metadata(folder).map_err(|error| WriteError::Io("reading its folder", error))?;
    if above.permissions().readonly() {
        return Err(WriteError::FolderReadOnly);
    }
    #[cfg(unix)]
    {
        let links = std::os::unix::fs::MetadataExt::nlink(&about);
        if links > 1 {
            return Err(WriteError::HardLinks(links));
        }
    }
    Ok(about)
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Replaces a file that has these bytes with others.
pub(crate) fn replace(
    path: &Path,
    before: &[u8],
    after: &[u8],
    at: &mut dyn FnMut(Point) -> io::Result<()>,
) -> Result<(), WriteError> {
    let about = check(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder(path).join(format!(".{name}.mcp-elicit"));
    // One process at a time holds the journal: this is of one that was killed.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(WriteError::Io("removing an unfinished file", error));
        }
        _ => {}
    }
    let done = (|| {
        let mut file = create(&temporary)?;
        at(Point::Created).map_err(|error| WriteError::Io("the change", error))?;
        own(&file, &about)?;
        let written = file.write_all(after).and_then(|()| file.sync_all());
        written.map_err(|error| WriteError::Io("writing beside it", error))?;
        drop(file);
        at(Point::Written).map_err(|error| WriteError::Io("the change", error))?;
        let now = fs::read(path).map_err(|error| WriteError::Io("reading it again", error))?;
        if now != before {
            return Err(WriteError::Changed);
        }
        at(Point::Compared).map_err(|error| WriteError::Io("the change", error))?;
        fs::rename(&temporary, path).map_err(|error| WriteError::Io("replacing it", error))
    })();
    if done.is_err() {
        let _ignored = fs::remove_file(&temporary);
    }
    done?;
    // It is replaced: a crash of the machine before the folder is on the disk leaves the old file, which is whole.
    let _ignored = sync_folder(folder(path));
    at(Point::Renamed).map_err(|error| WriteError::Io("the change", error))
}

fn create(path: &Path) -> Result<File, WriteError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .map_err(|error| WriteError::Io("writing beside it", error))
}

/// Gives a new file the owner, the group and the rights of another one.
#[cfg(unix)]
fn own(file: &File, about: &Metadata) -> Result<(), WriteError> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let failed = |error| WriteError::Io("keeping its rights", error);
    let ours = file.metadata().map_err(failed)?;
    if ours.uid() != about.uid() {
        return Err(WriteError::OtherOwner);
    }
    if ours.gid() != about.gid() {
        fchown(file, None, Some(about.gid())).map_err(failed)?;
    }
    file.set_permissions(about.permissions()).map_err(failed)
}

#[cfg(not(unix))]
fn own(_file: &File, _about: &Metadata) -> Result<(), WriteError> {
    Ok(())
}
