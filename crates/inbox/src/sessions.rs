//! The sessions of the inbox, in a file that gateways and commands share.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mcp_elicit_forms::web::{SessionStore, SessionTable};

use crate::shared_file::{SharedFile, SharedValue};

/// The sessions in one file. Changes by another process are seen at the next read.
#[derive(Debug)]
pub struct FileSessions(SharedFile<SessionTable>);

impl SharedValue for SessionTable {
    const UNREADABLE: &'static str =
        "the stored sessions cannot be read; everybody has to sign in again";

    const REPLACED: bool = true;

    fn fresh() -> io::Result<Self> {
        Self::new()
    }

    fn is_sound(&self) -> bool {
        Self::is_sound(self)
    }
}

impl FileSessions {
    /// Creates the sessions in this file, which is created at the first change.
    pub(super) fn at(path: PathBuf) -> Self {
        Self(SharedFile::at(path))
    }
}

impl SessionStore for FileSessions {
    fn read(&self) -> io::Result<Arc<SessionTable>> {
        if let Some(table) = self.0.read()? {
            return Ok(table);
        }
        self.0.change(|table| Ok(Arc::new(table.clone())))
    }

    fn change(
        &self,
        change: &mut dyn FnMut(&mut SessionTable) -> io::Result<()>,
    ) -> io::Result<()> {
        self.0.change(change)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn key(sessions: &FileSessions, now: SystemTime) -> String {
        let mut key = String::new();
        sessions
            .change(&mut |table| {
                key = table.add_login(now, Duration::from_secs(60))?;
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
