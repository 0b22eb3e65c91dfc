//! A backup of a state folder: everything that another machine needs to go on, made while gateways use the folder.
//!
//! | file | contents |
//! | --- | --- |
//! | `manifest` | the list of the files, with their sizes and digests |
//! | `new_folder` | a folder that gets its name once it is complete |
//! | `restore` | the restore into an empty folder, in which nothing takes effect a second time |
//!
//! The record is copied as it is at one moment; the keys and the other files are copied after it, so that they open what
//! is in the copy. A record in a database is copied into a file like the one of a folder, and either is restored into a
//! folder or a database. Addresses and locks belong to running processes and are left out.

mod manifest;
mod new_folder;
mod restore;

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::audit::ChainCheck;
use mcp_elicit_record::encryption::Encryption;
use mcp_elicit_record::store::{
    CopiedRecord, DatabaseRecord, RecordStoreError, Sqlite, StateTables, both_sides, record_parts,
};
use mcp_elicit_record::{IdentityKey, KeyFileError, RecordError, state_file};
use sha2::{Digest as _, Sha256};

pub use self::manifest::{BackedUpFile, Manifest};
use self::new_folder::NewFolder;
pub use self::restore::{EndedByRestore, Restore, Restored, end_restored, restore};
use crate::direct_record::keys_of_database;
use crate::login::table::EARLIER;
use crate::state_folder::{RECORD_ADDRESS, StateFolder};

/// The record.
pub(super) const RECORD: &str = "record.sqlite";
/// The files of an earlier version, whose contents are moved into the record.
const OLD_FILES: [&str; 2] = ["api.tokens", "inbox.logins"];
/// The files beside the record that a backup has, if the folder has them.
pub(super) const FILES: [&str; 6] = [
    RECORD_ADDRESS,
    "seal.key",
    "identity.key",
    "inbox.token",
    "push.key",
    "inbox.presence",
];

/// The folder of the tokens for servers at which a person signed in.
pub(super) const SIGN_IN: &str = "sign-in";
/// The longest name of a file in that folder, in bytes.
const LONGEST_NAME: usize = 80;

/// The number of bytes that are read at once.
const AT_ONCE: usize = 64 * 1024;

/// An error of a backup, its check, or a restore.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file or folder cannot be read or written.
    #[error("{} cannot be used", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The record cannot be read or written.
    #[error("the record cannot be copied, read or changed")]
    Store(#[from] RecordStoreError),
    /// The record cannot be changed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The keys do not fit the record.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The folder has no gateway's state.
    #[error("{} is not the state folder of a gateway", .0.display())]
    NoState(PathBuf),
    /// The folder to be written has something in it.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The folder in which it would be written is missing.
    #[error("the folder {} does not exist", .0.display())]
    NoParent(PathBuf),
    /// A gateway uses the folder to be written.
    #[error("a gateway runs on {}", .0.display())]
    InUse(PathBuf),
    /// A gateway, or a command like one, uses the record.
    #[error("a gateway or a command uses the record in {0}")]
    Running(String),
    /// The backup would be a part of the state folder.
    #[error("{} is in the state folder", .0.display())]
    Inside(PathBuf),
    /// There is no backup in the folder.
    #[error("{} has no {}: it is not a complete backup", .0.display(), manifest::NAME)]
    NoBackup(PathBuf),
    /// There is no record in the backup, and it was to be restored into a database.
    #[error("{} has no record", .0.display())]
    NoRecord(PathBuf),
    /// A newer version made the backup.
    #[error("the backup was made by a newer version ({version})")]
    Newer {
        /// The version that made it.
        version: String,
    },
    /// The backup is damaged.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// The record that was to be copied is damaged.
    #[error("the record is damaged, and no backup was made: {0}")]
    DamagedRecord(String),
}

impl BackupError {
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

/// A backup that was checked.
#[derive(Clone, Debug)]
pub struct CheckedBackup {
    /// Its list of files.
    pub manifest: Manifest,
    /// The contents of its record; `None` if the folder had none.
    pub record: Option<CopiedRecord>,
}

/// Writes a backup of a state folder into a new folder, and checks it. Gateways may use the state folder meanwhile.
///
/// # Errors
/// If the folder is not a gateway's, a file cannot be read or written, or the record is damaged.
pub async fn back_up(
    folder: &StateFolder,
    to: &Path,
    now: Timestamp,
) -> Result<CheckedBackup, BackupError> {
    if !folder.is_known() {
        return Err(BackupError::NoState(folder.path().to_owned()));
    }
    refuse_occupied(to)?;
    let absolute = std::path::absolute(to).map_err(BackupError::file(to))?;
    if absolute
        .parent()
        .is_some_and(|parent| is_in(parent, folder.path()))
    {
        return Err(BackupError::Inside(to.to_owned()));
    }
    let unfinished = NewFolder::create(to)?;
    let mut files = Vec::new();
    // Before the record: if their contents are moved meanwhile, the copy has them twice, and a restore once.
    let in_use = if folder.database().is_some() {
        Vec::new()
    } else {
        old_files(&folder.record()).map_err(BackupError::file(folder.path()))?
    };
    for name in in_use {
        let (from, copy) = (folder.path().join(name), unfinished.path().join(name));
        copy_file(&from, &copy).map_err(BackupError::file(&from))?;
        files.push(digest_of(&copy, name)?);
    }
    let copy = unfinished.path().join(RECORD);
    if let Some(database) = folder.database() {
        copy_database(database.as_ref(), folder, &copy).await?;
        files.push(digest_of(&copy, RECORD)?);
    } else if folder.record().exists() {
        Sqlite::copy(&folder.record(), &copy).await?;
        files.push(digest_of(&copy, RECORD)?);
    }
    let mut names = FILES.map(str::to_owned).to_vec();
    names.extend(sign_in_files(folder.path())?);
    for name in names {
        let (from, copy) = (folder.path().join(&name), unfinished.path().join(&name));
        make_parent(&copy)?;
        match copy_file(&from, &copy) {
            Ok(()) => files.push(digest_of(&copy, &name)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !copy.exists() => {}
            Err(error) => return Err(BackupError::file(&from)(error)),
        }
    }
    let record = check_record(unfinished.path(), &files).await;
    let record = record.map_err(|error| match error {
        BackupError::Damaged(why) => BackupError::DamagedRecord(why),
        other => other,
    })?;
    let manifest = Manifest::new(now, record.map(|record| record.layout), files);
    manifest.write(unfinished.path())?;
    unfinished.rename(to)?;
    Ok(CheckedBackup { manifest, record })
}

/// Writes the record in a database, as it is at one moment, into a new file.
async fn copy_database(
    database: &dyn DatabaseRecord,
    folder: &StateFolder,
    to: &Path,
) -> Result<(), BackupError> {
    let keys = keys_of_database(folder).await?;
    let copy = Sqlite::at(to).with_keys(&keys);
    copy.ready().await?;
    let (parts, rest) = record_parts();
    let (sent, received) = tokio::join!(database.send_parts(keys, parts), copy.receive_parts(rest));
    // Moves the log into the file.
    let closed = copy.close().await;
    both_sides(sent, received)?;
    closed?;
    let synced = File::open(to).and_then(|file| file.sync_all());
    synced.map_err(BackupError::file(to))
}

/// Returns the names of the files of an earlier version that were not moved into this record.
fn old_files(record: &Path) -> io::Result<Vec<&'static str>> {
    let [tokens, logins] = OLD_FILES;
    let mut names = Vec::new();
    if StateTables::has_old_tokens(record)? {
        names.push(tokens);
    }
    if StateTables::is_in_use(record, &EARLIER)? {
        names.push(logins);
    }
    Ok(names)
}

/// Returns the names of the files with tokens for servers, in order.
fn sign_in_files(folder: &Path) -> Result<Vec<String>, BackupError> {
    let path = folder.join(SIGN_IN);
    let entries = match fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(BackupError::file(&path)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(BackupError::file(&path))?;
        let name = format!("{SIGN_IN}/{}", entry.file_name().to_string_lossy());
        if has_backup(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Returns `true` if a backup may have a file of this name, which leads to no other folder.
pub(super) fn has_backup(name: &str) -> bool {
    if name == RECORD || OLD_FILES.contains(&name) || FILES.contains(&name) {
        return true;
    }
    let stem = name
        .strip_prefix(SIGN_IN)
        .and_then(|name| name.strip_prefix('/')?.strip_suffix(".json"));
    stem.is_some_and(|stem| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !stem.is_empty() && stem.len() <= LONGEST_NAME && stem.bytes().all(is_plain)
    })
}

/// Creates the folder of a file in a backup, if there is none.
pub(super) fn make_parent(path: &Path) -> Result<(), BackupError> {
    match path.parent() {
        Some(parent) if !parent.exists() => {
            state_file::create_folder(parent).map_err(BackupError::file(parent))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks a backup without changing it: its list, the size and digest of each file, the record, the chain of the audit,
/// and that the keys fit.
///
/// # Errors
/// If it is not a backup, is damaged, or was made by a newer version.
pub async fn check(backup: &Path) -> Result<CheckedBackup, BackupError> {
    let manifest = Manifest::read(backup)?;
    let sign_in = backup.join(SIGN_IN);
    if fs::symlink_metadata(&sign_in).is_ok_and(|about| !about.is_dir()) {
        let why = format!("{SIGN_IN} is a link or a file, not a folder");
        return Err(BackupError::Damaged(why));
    }
    for expected in &manifest.files {
        let path = backup.join(&expected.name);
        let length = state_file::open_to_read(&path).and_then(|file| file.metadata());
        let length = length.map_err(BackupError::file(&path))?.len();
        // A file of another length is not read.
        if length != expected.size || digest_of(&path, &expected.name)? != *expected {
            let why = format!("{} was changed after it was written", expected.name);
            return Err(BackupError::Damaged(why));
        }
    }
    let record = check_record(backup, &manifest.files).await?;
    if record.map(|record| record.layout) != manifest.layout {
        let why = "the layout of the record is not the one in the list".to_owned();
        return Err(BackupError::Damaged(why));
    }
    Ok(CheckedBackup { manifest, record })
}

/// Checks the record in a folder with the keys beside it; `None` if there is no record.
async fn check_record(
    folder: &Path,
    files: &[BackedUpFile],
) -> Result<Option<CopiedRecord>, BackupError> {
    let has = |name: &str| files.iter().any(|file| file.name == name);
    if !has(RECORD) {
        if has(RECORD_ADDRESS) {
            let why =
                format!("{RECORD} is missing: the record that {RECORD_ADDRESS} names is not in it");
            return Err(BackupError::Damaged(why));
        }
        return Ok(None);
    }
    let state = StateFolder::at(folder);
    // A file that is not in the list is not restored.
    let (seal_file, identity_file) = (state.seal(), state.identity());
    let seal = has("seal.key").then(|| Encryption::read(&seal_file));
    let seal = seal.transpose().map_err(BackupError::file(&seal_file))?;
    let seal = seal.flatten();
    let identity = has("identity.key").then(|| IdentityKey::read(&identity_file));
    let identity = identity.transpose();
    let identity = identity.map_err(BackupError::file(&identity_file))?;
    let chain = identity
        .flatten()
        .as_ref()
        .map(mcp_elicit_record::store::ChainKey::from_identity);
    let (has_seal, has_identity) = (seal.is_some(), chain.is_some());
    let found = Sqlite::check_copy(&state.record(), seal, chain).await?;
    // Whoever writes links with a key has both.
    let links = found.keyed_links;
    let sealed = found.opened + found.unreadable + links;
    for (name, is_there, needed_by) in [
        ("seal.key", has_seal, sealed),
        ("identity.key", has_identity, links),
    ] {
        if needed_by > 0 && !is_there {
            let why = format!("{name} is missing or has no key, and the record was made with it");
            return Err(BackupError::Damaged(why));
        }
    }
    if let ChainCheck::BrokenAt { number } | ChainCheck::Missing { number } = found.chain {
        let why = format!(
            "the chain of the audit is broken at event {number}, or identity.key is another one"
        );
        return Err(BackupError::Damaged(why));
    }
    if found.opened == 0 && found.unreadable > 0 {
        let why = format!(
            "seal.key is another one: it opens none of the {} sealed values",
            found.unreadable
        );
        return Err(BackupError::Damaged(why));
    }
    Ok(Some(found))
}

/// Rejects a folder to be written that has something in it.
fn refuse_occupied(to: &Path) -> Result<(), BackupError> {
    let mut entries = match fs::read_dir(to) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(BackupError::file(to)(error)),
    };
    if entries.next().is_none() {
        return Ok(());
    }
    Err(if restore::is_in_use(to) {
        BackupError::InUse(to.to_owned())
    } else {
        BackupError::NotEmpty(to.to_owned())
    })
}

/// Returns `true` if a folder is the other one, or in it.
fn is_in(folder: &Path, other: &Path) -> bool {
    match (folder.canonicalize(), other.canonicalize()) {
        (Ok(folder), Ok(other)) => folder.starts_with(other),
        _ => false,
    }
}

/// Copies a regular file of this user into a new one that only its owner may read.
pub(super) fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = state_file::open_to_read(from)?;
    let mut target = state_file::create_new(to)?;
    io::copy(&mut source, &mut target)?;
    target.flush()?;
    target.sync_all()
}

/// Returns the size and the digest of a file.
pub(super) fn digest_of(path: &Path, name: &str) -> Result<BackedUpFile, BackupError> {
    let read = |mut file: File| {
        let (mut hash, mut size) = (Sha256::new(), 0_u64);
        let mut bytes = vec![0; AT_ONCE];
        loop {
            let count = file.read(&mut bytes)?;
            if count == 0 {
                return Ok((size, HEXLOWER.encode(&hash.finalize())));
            }
            size += count as u64;
            hash.update(&bytes[..count]);
        }
    };
    let opened = state_file::open_to_read(path);
    let (size, sha256) = opened.and_then(read).map_err(BackupError::file(path))?;
    Ok(BackedUpFile {
        name: name.to_owned(),
        size,
        sha256,
    })
}
