//! The sessions of the inbox, which gateways and commands share.

use std::io;
use std::sync::Arc;

use mcp_elicit_forms::web::{SessionStore, SessionTable};
use mcp_elicit_record::store::EarlierFile;
use mcp_elicit_record::store::shared_rows::{BROWSERS, SharedEntity, SharedRowStore};

use crate::shared_table::{SharedTable, SharedValue};

/// The file of earlier versions. One that cannot be read is ignored: everybody signs in again.
pub(crate) const EARLIER: EarlierFile = EarlierFile {
    entity: BROWSERS,
    name: "inbox.sessions",
    notice: "The sessions are in record.sqlite.\n",
    read: |bytes| {
        let table: Option<SessionTable> = serde_json::from_slice(bytes).ok();
        let table = table.filter(SessionTable::is_sound);
        Ok(table.map(serde_json::to_value).transpose()?)
    },
};

/// The sessions in one store. Changes by another process are seen at the next read.
#[derive(Debug)]
pub struct SharedSessions(SharedTable<SessionTable>);

impl SharedValue for SessionTable {
    const ENTITY: SharedEntity = BROWSERS;
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

impl SharedSessions {
    /// Creates the sessions in this store.
    pub(super) fn of(store: Arc<dyn SharedRowStore>) -> Self {
        Self(SharedTable::of(store))
    }

    /// Ends all sessions, and replaces the path of the pages and the key of their forms, if there are any.
    pub(crate) fn begin_anew(&self) -> io::Result<()> {
        if self.0.read()?.is_none() {
            return Ok(());
        }
        self.0.change(|table| {
            *table = SessionTable::new()?;
            Ok(())
        })
    }
}

impl SessionStore for SharedSessions {
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
    use crate::state_folder::tables;
    use mcp_elicit_record::store::shared_rows::{RowChanges, SharedRow};

    fn sessions(folder: &std::path::Path) -> SharedSessions {
        SharedSessions::of(Arc::new(tables(&folder.join("record.sqlite"))))
    }

    fn key(sessions: &SharedSessions, now: SystemTime) -> String {
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
        let (serving, command) = (sessions(folder.path()), sessions(folder.path()));
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
        let before = serving.read().unwrap();
        serving.begin_anew().unwrap();
        let after = command.read().unwrap();
        assert!(after != before && after.is_sound(), "another path and key");
    }

    #[test]
    fn a_change_that_fails_changes_nothing_and_damaged_rows_sign_everybody_out() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = sessions(folder.path());
        let now = SystemTime::UNIX_EPOCH;
        let key = key(&sessions, now);
        let failed = sessions.change(&mut |table| {
            table.drop_login(&key);
            Err(io::Error::other("no"))
        });
        assert!(failed.is_err() && sessions.read().unwrap().is_unused(&key, now));
        for damaged in ["", r#"{"path":"x","key":"y"}"#, "[]"] {
            let row = SharedRow {
                key: (String::new(), String::new()),
                value: damaged.to_owned(),
            };
            let mut changes = Some(RowChanges {
                written: vec![row],
                removed: Vec::new(),
            });
            let tables = tables(&folder.path().join("record.sqlite"));
            SharedRowStore::change(&tables, BROWSERS, 0, &mut |_, _| changes.take()).unwrap();
            let table = sessions.read().unwrap();
            assert!(table.is_sound() && !table.is_unused(&key, now), "{damaged}");
        }
    }

    #[test]
    fn browsers_that_an_earlier_version_signed_in_stay_so_and_an_unreadable_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("inbox.sessions");
        let now = SystemTime::UNIX_EPOCH;
        let mut old = SessionTable::new().unwrap();
        let key = old.add_login(now, Duration::from_secs(60)).unwrap();
        let session = old.redeem(&key, now, "b").unwrap().unwrap();
        fs::write(&file, serde_json::to_vec(&old).unwrap()).unwrap();
        let found = sessions(folder.path()).read().unwrap();
        assert!(found.find(&session.cookie, now).is_some() && *found == old);
        assert_eq!(fs::read_to_string(&file).unwrap(), EARLIER.notice);
        // What an earlier version writes there later signs no browser in here.
        let mut other = SessionTable::new().unwrap();
        let key = other.add_login(now, Duration::from_secs(60)).unwrap();
        sessions(folder.path())
            .change(&mut |table| {
                table.revoke_all();
                Ok(())
            })
            .unwrap();
        fs::write(&file, serde_json::to_vec(&other).unwrap()).unwrap();
        let found = sessions(folder.path()).read().unwrap();
        assert!(!found.is_unused(&key, now) && found.live(now).is_empty());

        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("inbox.sessions"), "{").unwrap();
        assert!(sessions(folder.path()).read().unwrap().is_sound());
    }
}
