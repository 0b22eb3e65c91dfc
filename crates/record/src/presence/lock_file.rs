//! The running gateways: each holds a lock on its own file, which the system releases when the process ends in any way.
//! So a question of a killed gateway is known at once, with certainty, to have no waiting call.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::BoxFuture;

use crate::encryption;
use crate::peers::Peer;
use crate::state_file;

/// The suffix of a lock file's name while it is not locked yet.
const UNFINISHED: &str = ".new";
/// The length of a lock file's name, in letters.
const ID: usize = 32;
/// The number of attempts for a lock file that others remove before it is locked.
const TRIES: usize = 100;

/// The running gateways of a store that several machines share.
pub trait RunningGateways: Send + Sync {
    /// Returns the name of this gateway.
    fn name(&self) -> &str;
    /// Returns `true` if the gateway of this name was running at the last refresh.
    fn is_running(&self, name: &str) -> bool;
    /// Returns the other gateways that took forwarded requests at the last refresh, if this one does.
    fn peers(&self) -> Arc<[Peer]>;
    /// Returns the milliseconds by which this clock is ahead of the store's, as last compared; `None` if it has none.
    fn clock_offset_ms(&self) -> Option<i64>;
    /// Looks which gateways run now.
    fn refresh(&self) -> BoxFuture<'_, ()>;
    /// Looks whether the gateways of these names run now. It waits while one may have just ended.
    fn decide<'a>(&'a self, names: Vec<&'a str>) -> BoxFuture<'a, ()>;
}

/// The lock file of this gateway, or its place among the gateways of a shared store.
pub struct LockFile {
    name: String,
    shared: Option<Arc<dyn RunningGateways>>,
    folder: Option<PathBuf>,
    // Held while this exists.
    _lock: Option<File>,
}

/// The time at which a gateway last started or ended; empty if no other can exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(Option<SystemTime>);

impl LockFile {
    /// Creates a lock file for a gateway whose store no other process uses.
    pub fn unshared() -> io::Result<Self> {
        Ok(Self {
            name: encryption::random_id()?,
            shared: None,
            folder: None,
            _lock: None,
        })
    }

    /// Takes the place of a lock file for a gateway whose store other machines share: it is never alone.
    pub fn among(gateways: Arc<dyn RunningGateways>) -> Self {
        Self {
            name: gateways.name().to_owned(),
            shared: Some(gateways),
            folder: None,
            _lock: None,
        }
    }

    /// Looks which gateways of a shared store run now; lock files are looked at in place.
    pub(crate) async fn refresh(&self) {
        if let Some(gateways) = &self.shared {
            gateways.refresh().await;
        }
    }

    /// Looks whether the gateways of these names run now, and waits while one may have just ended: on a shared store that is
    /// known soon after its end, and not at once.
    pub(crate) async fn decide(&self, names: impl IntoIterator<Item = &str> + Send) {
        if let Some(gateways) = &self.shared {
            let others = names.into_iter().filter(|name| *name != self.name);
            gateways.decide(others.collect()).await;
        }
    }

    /// Creates a lock file in this folder, which all gateways of one store share, and removes files of ended gateways.
    ///
    /// # Errors
    /// If the folder is a symbolic link: files of another folder would be taken for lock files.
    pub fn acquire(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        if folder.is_symlink() {
            let why = format!(
                "{} is a symbolic link in the place of a folder: move it away",
                folder.display()
            );
            return Err(io::Error::other(why));
        }
        for _ in 0..TRIES {
            let name = encryption::random_id()?;
            let aside = folder.join(format!("{name}{UNFINISHED}"));
            let lock = state_file::open_private(&aside)?;
            lock.lock()?;
            // Locked before it has its final name, so that the removal of unlocked files does not touch it.
            match fs::rename(&aside, folder.join(&name)) {
                Ok(()) => {}
                // Removed before it was locked.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            let lock_file = Self {
                name,
                shared: None,
                folder: Some(folder.to_owned()),
                _lock: Some(lock),
            };
            lock_file.clear_others();
            return Ok(lock_file);
        }
        Err(io::Error::other("the folder of lock files keeps changing"))
    }

    /// Returns its name, which rows contain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if this is the name of this lock file.
    pub fn is_mine(&self, name: &str) -> bool {
        self.name == name
    }

    /// Returns the milliseconds by which this clock is ahead of a shared store's.
    pub(crate) fn clock_offset_ms(&self) -> Option<i64> {
        self.shared.as_ref()?.clock_offset_ms()
    }

    /// Returns `true` if the running gateways are rows of a database.
    pub(crate) fn is_in_database(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns `true` if the gateway of this name is still running.
    pub fn is_held(&self, name: &str) -> bool {
        if let Some(gateways) = &self.shared {
            return gateways.is_running(name);
        }
        let Some(folder) = &self.folder else {
            return false;
        };
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        plain && is_locked(&folder.join(name))
    }

    /// Returns `true` if a gateway, or a command that writes to the record, runs with a lock file in this folder. Nothing
    /// is written.
    pub fn is_any_held(folder: &Path) -> bool {
        let Ok(entries) = fs::read_dir(folder) else {
            return false;
        };
        entries.flatten().any(|entry| is_locked(&entry.path()))
    }

    /// Returns `true` if other gateways run on the same store.
    pub fn has_others(&self) -> bool {
        if self.shared.is_some() {
            return true;
        }
        let finished = |path: &&PathBuf| !is_unfinished(path);
        let others = self.others();
        others.iter().filter(finished).any(|path| is_locked(path))
    }

    /// Returns the time at which a gateway last started or ended, according to the folder: while it is unchanged, none
    /// did.
    ///
    /// # Errors
    /// If that is unknown: the folder cannot be read, or other machines share the store.
    pub fn mark(&self) -> io::Result<Mark> {
        if self.shared.is_some() {
            return Err(io::Error::other("gateways of other machines may run"));
        }
        let folder = self.folder.as_deref();
        let time = folder.map(|folder| fs::metadata(folder)?.modified());
        time.transpose().map(Mark)
    }

    fn others(&self) -> Vec<PathBuf> {
        let Some(folder) = &self.folder else {
            return Vec::new();
        };
        let Ok(entries) = fs::read_dir(folder) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(is_named_as_ours))
            .map(|entry| entry.path())
            .filter(|path| !path.ends_with(&self.name))
            .collect()
    }

    fn clear_others(&self) {
        for path in self.others() {
            // Removed under its lock, so that no process can take it in between.
            if let Ok(file) = state_file::open_existing(&path)
                && file.try_lock().is_ok()
            {
                let _gone_already = fs::remove_file(&path);
            }
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _gone_already = fs::remove_file(folder.join(&self.name));
        }
    }
}

/// Returns `true` if the gateway of this lock file is running. Checked with a shared lock, so that two checks at once
/// do not see each other.
fn is_locked(path: &Path) -> bool {
    let Ok(file) = state_file::open_existing(path) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Returns `true` for the name of a lock file, finished or not: no other file is ever removed.
fn is_named_as_ours(name: &str) -> bool {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    name.len() == ID && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_unfinished(path: &Path) -> bool {
    path.to_string_lossy().ends_with(UNFINISHED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn no_file_but_those_of_ended_gateways_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let ended = encryption::random_id().unwrap();
        let others = ["passwd", "notes.new", &ended[1..], &format!("{ended}.old")];
        let finished = [ended.clone(), format!("{ended}{UNFINISHED}")];
        let names = others
            .into_iter()
            .chain(finished.iter().map(String::as_str));
        for name in names {
            drop(state_file::create_new(&path(name)).unwrap());
        }
        let mine = LockFile::acquire(folder.path()).unwrap();
        for name in others {
            assert!(path(name).exists(), "{name}");
        }
        for name in &finished {
            assert!(!path(name).exists(), "{name}");
        }
        drop(mine);
        // Nor through a link in the place of the folder.
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("running");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        drop(state_file::create_new(&path(&ended)).unwrap());
        let refused = LockFile::acquire(&link).err().unwrap().to_string();
        assert!(refused.contains("a symbolic link"), "{refused}");
        assert!(path(&ended).exists());
    }

    /// Each of several that start at once, again and again, sees those that run.
    #[test]
    fn lock_files_that_are_taken_at_once_are_not_lost() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let together = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        together.wait();
                        let lock_file = LockFile::acquire(folder.path()).unwrap();
                        together.wait();
                        let path = folder.path().join(lock_file.name());
                        assert!(path.exists(), "cleared away by another");
                        assert!(is_locked(&path) && lock_file.has_others());
                        together.wait();
                    });
                }
            });
        }
    }

    #[test]
    fn what_a_start_that_was_cut_off_left_is_no_company_and_is_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        let id = || encryption::random_id().unwrap();
        for name in [format!("{}{UNFINISHED}", id()), id()] {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        let lock_file = LockFile::acquire(folder.path()).unwrap();
        assert!(!lock_file.has_others());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn a_lease_ends_with_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let mine = LockFile::acquire(folder.path()).unwrap();
        assert!(!mine.has_others());
        let quiet = mine.mark().unwrap();
        assert_eq!(mine.mark().unwrap(), quiet);
        let other = LockFile::acquire(folder.path()).unwrap();
        let name = other.name().to_owned();
        assert!(mine.is_held(&name) && mine.has_others() && !mine.is_mine(&name));
        drop(other);
        assert!(!mine.is_held(&name));
        assert!(!mine.is_held("../etc/passwd"));
    }
}
