//! Which gateways run: each holds a lock on a file of its own, which the system lets go when the process ends, however
//! it ends. So a question of a killed gateway is known to have nobody waiting for it, at once and for certain.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::seal;
use crate::state_file;

/// The suffix of a lease's name while it is not locked yet.
const UNFINISHED: &str = ".new";
/// The number of tries of a lease that others clear away before it is locked.
const TRIES: usize = 100;

/// This gateway's sign of life.
pub struct Lease {
    name: String,
    folder: Option<PathBuf>,
    // Held for as long as this lives.
    _lock: Option<File>,
}

/// When a gateway last came or went; of nobody where no other can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(Option<SystemTime>);

impl Lease {
    /// A lease for a gateway that shares its store with no other process.
    pub fn alone() -> io::Result<Self> {
        Ok(Self {
            name: seal::unguessable()?,
            folder: None,
            _lock: None,
        })
    }

    /// A lease in this folder, which all gateways of one store share. Files of those that ended are cleared away.
    pub fn take(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        for _ in 0..TRIES {
            let name = seal::unguessable()?;
            let aside = folder.join(format!("{name}{UNFINISHED}"));
            let lock = state_file::open_private(&aside)?;
            lock.lock()?;
            // Locked before it is seen under its name: whoever clears away what is not locked leaves it alone.
            match fs::rename(&aside, folder.join(&name)) {
                Ok(()) => {}
                // Cleared away before it was locked.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            let lease = Self {
                name,
                folder: Some(folder.to_owned()),
                _lock: Some(lock),
            };
            lease.clear_others();
            return Ok(lease);
        }
        Err(io::Error::other("the folder of leases keeps changing"))
    }

    /// The name that rows carry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether this is the name of this lease.
    pub fn is_mine(&self, name: &str) -> bool {
        self.name == name
    }

    /// Returns whether the gateway of this name still runs.
    pub fn is_held(&self, name: &str) -> bool {
        let Some(folder) = &self.folder else {
            return false;
        };
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        plain && is_locked(&folder.join(name))
    }

    /// Returns whether other gateways run on the same store.
    pub fn has_company(&self) -> bool {
        let finished = |path: &&PathBuf| !is_unfinished(path);
        let others = self.others();
        others.iter().filter(finished).any(|path| is_locked(path))
    }

    /// When a gateway last came or went, as far as the folder of leases tells: as long as this stays the same, none did.
    pub fn mark(&self) -> io::Result<Mark> {
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
            .map(|entry| entry.path())
            .filter(|path| !path.ends_with(&self.name))
            .collect()
    }

    fn clear_others(&self) {
        for path in self.others() {
            // Removed under its lock, so that nobody can take it in between.
            let file = OpenOptions::new().write(true).open(&path);
            if let Ok(file) = file
                && file.try_lock().is_ok()
            {
                let _gone_already = fs::remove_file(&path);
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _gone_already = fs::remove_file(folder.join(&self.name));
        }
    }
}

/// Returns whether the gateway of this lease runs. Looked at with a shared lock: two that look at once do not take each other for
/// the holder.
fn is_locked(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn is_unfinished(path: &Path) -> bool {
    path.to_string_lossy().ends_with(UNFINISHED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of several that start at once, again and again, sees that those run that do.
    #[test]
    fn leases_that_are_taken_at_once_are_not_lost() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let together = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        together.wait();
                        let lease = Lease::take(folder.path()).unwrap();
                        together.wait();
                        let path = folder.path().join(lease.name());
                        assert!(path.exists(), "cleared away by another");
                        assert!(is_locked(&path) && lease.has_company());
                        together.wait();
                    });
                }
            });
        }
    }

    #[test]
    fn what_a_start_that_was_cut_off_left_is_no_company_and_is_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("0123.new"), b"").unwrap();
        fs::write(folder.path().join("4567"), b"").unwrap();
        let lease = Lease::take(folder.path()).unwrap();
        assert!(!lease.has_company());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn a_lease_ends_with_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let mine = Lease::take(folder.path()).unwrap();
        assert!(!mine.has_company());
        let quiet = mine.mark().unwrap();
        assert_eq!(mine.mark().unwrap(), quiet);
        let other = Lease::take(folder.path()).unwrap();
        let name = other.name().to_owned();
        assert!(mine.is_held(&name) && mine.has_company() && !mine.is_mine(&name));
        drop(other);
        assert!(!mine.is_held(&name));
        assert!(!mine.is_held("../etc/passwd"));
    }
}
