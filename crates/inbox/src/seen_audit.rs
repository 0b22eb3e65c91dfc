//! The end of the audit that a gateway of a state folder saw last. A record whose audit does not have it was replaced by
//! an older copy, or by another record: answers that were delivered could be delivered again.
//!
//! | what happens | why it is no false alarm |
//! | --- | --- |
//! | a process or a machine ends between a write and the note | the note is written later than what it names, and after that survives a loss of power |
//! | several gateways of one folder write it | each note is true; an older one is found too |
//! | the oldest events are deleted | an audit that begins after the event went on after it |
//! | a restored record is declared so at another folder | the audit says it, later than the note |
//! | the record is new and empty | nothing in it can take effect a second time; it is refused only where the record is at another place |

use std::io;

use mcp_elicit_core::lifecycle::{AuditEvent as Event, Timestamp};
use mcp_elicit_record::audit::{AuditFilter, AuditedEvent};
use mcp_elicit_record::state_file;
use mcp_elicit_record::store::{AuditEntry, RecordStore, RecordStoreError};
use serde::{Deserialize, Serialize};

use crate::state_folder::StateFolder;

/// The name of the file in the state folder.
pub(crate) const NAME: &str = "audit.seen";
/// The largest file that is read, in bytes.
const LARGEST: u64 = 4_096;

/// The end of an audit at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenAudit {
    /// The time.
    at: Timestamp,
    /// The number of the last event.
    number: u64,
    /// Its hash.
    hash: String,
    /// The address of the database that had the record; `None` for a record in the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    database: Option<String>,
}

/// The result of comparing an audit with the end that was seen last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenCheck {
    /// It has, or it says that the record was restored since.
    Has,
    /// It is empty.
    Empty,
    /// It does not: the record was replaced.
    HasNot,
}

impl SeenAudit {
    /// Returns the end of the audit now, which survives a loss of power; `None` if it is empty.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn now(
        store: &dyn RecordStore,
        now: Timestamp,
    ) -> Result<Option<Self>, RecordStoreError> {
        let end = store.audit_end().await?;
        let last = store.audit(end.max(1), 1).await?;
        let Some(AuditEntry { number, hash, .. }) = last.into_iter().next() else {
            return Ok(None);
        };
        store.sync().await?;
        Ok(Some(Self {
            at: now,
            number,
            hash,
            database: None,
        }))
    }

    /// Returns the end that a gateway of this folder saw last; `None` if none did, or if that cannot be read, which is
    /// logged.
    pub fn read(folder: &StateFolder) -> Option<Self> {
        let file = folder.path().join(NAME);
        let bytes = match state_file::read_at_most(&file, LARGEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            read => read.map_err(|error| error.to_string()),
        };
        let seen = bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
        match seen {
            Ok(seen) => Some(seen),
            Err(why) => {
                tracing::warn!(file = %file.display(), why, "it is not known which event of the audit was the last one, so that a record which was replaced would not be noticed");
                None
            }
        }
    }

    /// Writes it into this folder, with the place of the record.
    ///
    /// # Errors
    /// If the file cannot be written, or the place of the record is unknown.
    pub fn write(&self, folder: &StateFolder) -> io::Result<()> {
        let database = match folder.database() {
            Some(database) => Some(database.address().to_owned()),
            None => folder.record_address()?,
        };
        let placed = Self {
            database,
            ..self.clone()
        };
        let text = serde_json::to_string(&placed)?;
        state_file::replace(&folder.path().join(NAME), text.as_bytes())
    }

    /// Removes it from a folder whose record is made anew on purpose.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn forget(folder: &StateFolder) -> io::Result<()> {
        match std::fs::remove_file(folder.path().join(NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Looks whether the audit has it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn check(&self, store: &dyn RecordStore) -> Result<SeenCheck, RecordStoreError> {
        let found = store.audit(self.number, 1).await?;
        if let Some(found) = found.first() {
            // The ones before a later event were deleted.
            let has = found.number > self.number || found.hash == self.hash;
            if has {
                return Ok(SeenCheck::Has);
            }
        }
        let end = store.audit_end().await?;
        if end == 0 {
            return Ok(SeenCheck::Empty);
        }
        let restored = AuditFilter {
            events: vec![Event::Restored.as_str().to_owned()],
            since: Some(self.at),
            ..AuditFilter::default()
        };
        let restored = store.audit_matching(restored, 1..end.saturating_add(1), 1);
        let restored = restored.await?;
        let at = restored
            .first()
            .and_then(|link| AuditedEvent::read(&link.entry)?.at());
        Ok(match at {
            Some(at) if at > self.at => SeenCheck::Has,
            Some(_) | None => SeenCheck::HasNot,
        })
    }

    /// Returns the address of the database that had the record; `None` if it was in the folder, or an earlier version
    /// wrote the note.
    pub fn database(&self) -> Option<String> {
        self.database.clone()
    }

    /// Returns the event in words.
    pub fn in_words(&self, folder: &StateFolder) -> String {
        let path = folder.path().display();
        let at = i64::try_from(self.at.as_millis()).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
        let at = at.strftime("%Y-%m-%d %H:%M:%S UTC");
        format!(
            "event {}, which a gateway of {path} saw on {at}",
            self.number
        )
    }

    /// Returns the reason why a gateway whose record does not have it does not start.
    pub fn replaced(&self, folder: &StateFolder) -> String {
        let last = self.in_words(folder);
        format!(
            "the record was replaced by an older copy, or by another record: its audit does not have {last}; answers that were delivered could be \
             delivered again"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_elicit_record::store::{Memory, Write};

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    async fn write(store: &Memory, event: &str, times: std::ops::Range<u64>) {
        let note = |at| Write::Note(format!(r#"{{"at":{at},"event":"{event}"}}"#));
        let notes = times.map(note).collect();
        store.write(Arc::new(notes)).await.unwrap();
    }

    /// Returns a store with an event in each of these milliseconds.
    async fn store(until: u64) -> Memory {
        let store = Memory::default();
        write(&store, "login", 1..until).await;
        store
    }

    #[tokio::test]
    async fn an_audit_that_went_on_has_what_was_seen_and_an_older_or_another_one_has_not() {
        let seen = SeenAudit::now(&store(20).await, at(50)).await.unwrap();
        let seen = seen.unwrap();
        assert_eq!(seen.number, 19);
        for (until, expected) in [
            (1, SeenCheck::Empty),
            (2, SeenCheck::HasNot),
            (19, SeenCheck::HasNot),
            (20, SeenCheck::Has),
            (90, SeenCheck::Has),
        ] {
            let found = seen.check(&store(until).await).await.unwrap();
            assert_eq!(found, expected, "{until}");
        }
        let other = store(5).await;
        write(&other, "sign-in", 5..90).await;
        assert_eq!(seen.check(&other).await.unwrap(), SeenCheck::HasNot);
        assert_eq!(
            SeenAudit::now(&Memory::default(), at(1)).await.unwrap(),
            None
        );
    }

    #[tokio::test]
    async fn an_older_audit_that_says_it_was_restored_since_is_used_and_one_that_said_so_before_is_not()
     {
        let seen = SeenAudit::now(&store(20).await, at(50)).await.unwrap();
        let seen = seen.unwrap();
        for (restored, expected) in [
            (9, SeenCheck::HasNot),
            (50, SeenCheck::HasNot),
            (51, SeenCheck::Has),
        ] {
            let old = store(9).await;
            write(&old, "restored", restored..restored + 1).await;
            write(&old, "login", 60..99).await;
            assert_eq!(seen.check(&old).await.unwrap(), expected, "{restored}");
        }
    }

    #[tokio::test]
    async fn deleted_events_are_no_reason_for_an_alarm() {
        let store = store(20).await;
        let seen = SeenAudit::now(&store, at(50)).await.unwrap().unwrap();
        write(&store, "login", 60..70).await;
        let link = store.audit(22, 1).await.unwrap().remove(0);
        let purge = Write::PurgeAudit {
            number: link.number,
            hash: link.hash,
            entry: "purged".to_owned(),
        };
        assert_eq!(store.write(Arc::new(vec![purge])).await.unwrap(), [true]);
        assert_eq!(seen.check(&store).await.unwrap(), SeenCheck::Has);
    }

    #[test]
    fn it_is_read_as_it_was_written_and_a_damaged_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(folder.path());
        std::fs::create_dir_all(folder.path()).unwrap();
        assert_eq!(SeenAudit::read(&folder), None);
        let seen = SeenAudit {
            at: at(5),
            number: 7,
            hash: "k1:00".to_owned(),
            database: None,
        };
        seen.write(&folder).unwrap();
        assert_eq!(SeenAudit::read(&folder), Some(seen.clone()));
        let address = "postgres://elicit@db.example/elicit";
        folder.write_record_address(Some(address)).unwrap();
        seen.write(&folder).unwrap();
        let read = SeenAudit::read(&folder).unwrap();
        assert_eq!(read.database().as_deref(), Some(address));
        std::fs::write(folder.path().join(NAME), "{").unwrap();
        assert_eq!(SeenAudit::read(&folder), None);
        SeenAudit::forget(&folder).unwrap();
        SeenAudit::forget(&folder).unwrap();
    }
}
