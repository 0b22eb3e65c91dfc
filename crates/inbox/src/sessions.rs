//! The sessions of the inbox, in a file that gateways and commands share.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use mcp_elicit_forms::web::{SessionStore, SessionTable};

use mcp_elicit_record::state_file;

/// The sessions in one file. What another process changed is seen at the next look.
#[derive(Debug)]
pub struct FileSessions {
    path: PathBuf,
    known: Mutex<Option<(Stamp, Arc<SessionTable>)>>,
}

/// The stamp that tells one state of the file from another.
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

impl FileSessions {
    /// The sessions in this file, which is made at the first change.
    pub(super) fn at(path: PathBuf) -> Self {
        Self {
            path,
            known: Mutex::default(),
        }
    }

    /// Reads the file; `None` where there is none, or it is no table: all sessions have ended then.
    fn load(&self) -> io::Result<Option<SessionTable>> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let table = serde_json::from_slice(&bytes).ok();
        let table = table.filter(SessionTable::is_sound);
        if table.is_none() {
            tracing::warn!("the stored sessions cannot be read; everybody has to sign in again");
        }
        Ok(table)
    }

    /// Keeps other processes from changing the file until this is dropped.
    fn lock(&self) -> io::Result<File> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let lock = state_file::open_private(&self.path.with_file_name(name))?;
        lock.lock()?;
        Ok(lock)
    }
}

impl SessionStore for FileSessions {
    fn read(&self) -> io::Result<Arc<SessionTable>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match (Stamp::of(&self.path), &*known) {
            (Ok(now), Some((then, table))) if now == *then => return Ok(Arc::clone(table)),
            // Read before the stamp is taken again: a change in between is seen at the next look.
            (Ok(now), _) => {
                if let Some(table) = self.load()? {
                    let table = Arc::new(table);
                    *known = Some((now, Arc::clone(&table)));
                    return Ok(table);
                }
            }
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {}
            (Err(error), _) => return Err(error),
        }
        drop(known);
        let mut made = None;
        self.change(&mut |table| {
            made = Some(Arc::new(table.clone()));
            Ok(())
        })?;
        made.ok_or_else(|| io::Error::other("the sessions cannot be read"))
    }

    fn change(
        &self,
        change: &mut dyn FnMut(&mut SessionTable) -> io::Result<()>,
    ) -> io::Result<()> {
        let _lock = self.lock()?;
        let mut table = match self.load()? {
            Some(table) => table,
            None => SessionTable::new()?,
        };
        change(&mut table)?;
        let bytes = serde_json::to_vec(&table)?;
        state_file::replace(&self.path, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(sessions: &FileSessions, now: SystemTime) -> String {
        let mut key = String::new();
        sessions
            .change(&mut |table| {
                key = table.add_login(now, Duration::from_mins(1))?;
                Ok(())
            })
            .unwrap();
        key
    }

    #[test]
    fn what_one_process_changes_another_sees() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inbox.sessions");
        let (serving, command) = (
            FileSessions::at(path.clone()),
            FileSessions::at(path.clone()),
        );
        let now = SystemTime::UNIX_EPOCH;
        let before = serving.read().unwrap();
        let key = key(&command, now);
        assert!(serving.read().unwrap().is_unused(&key, now));
        let mut session = None;
        serving
            .change(&mut |table| {
                session = table.redeem(&key, now, "b")?;
                Ok(())
            })
            .unwrap();
        let session = session.unwrap();
        let seen = command.read().unwrap();
        assert!(seen.find(&session.cookie, now).is_some() && !seen.is_unused(&key, now));
        command
            .change(&mut |table| {
                table.revoke_all();
                Ok(())
            })
            .unwrap();
        assert!(serving.read().unwrap().find(&session.cookie, now).is_none());
        assert!(before.live(now).is_empty());
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_change_that_fails_changes_nothing_and_a_broken_file_signs_everybody_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inbox.sessions");
        let sessions = FileSessions::at(path.clone());
        let now = SystemTime::UNIX_EPOCH;
        let key = key(&sessions, now);
        let failed = sessions.change(&mut |table| {
            table.drop_login(&key);
            Err(io::Error::other("no"))
        });
        assert!(failed.is_err() && sessions.read().unwrap().is_unused(&key, now));
        for broken in ["", "{\"path\":\"x\",\"key\":\"y\"}", "[]"] {
            fs::write(&path, broken).unwrap();
            let table = sessions.read().unwrap();
            assert!(table.is_sound() && !table.is_unused(&key, now), "{broken}");
        }
    }
}
