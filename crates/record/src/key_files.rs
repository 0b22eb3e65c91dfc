//! The key files of a state folder. A missing key is created only if nothing in the record was made with an earlier
//! one; otherwise it is an error.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Encryption, OwnKeys, encryption};
use crate::encryption::KeyUse;
use crate::state_file;
use crate::store::sqlite::{BESIDE, beside};
use crate::store::{KeyedContents, RecordStoreError, Sqlite, StateTables};

/// The most records that are set aside.
const MOST_ASIDE: u32 = 10_000;

/// Says what of these contents needs a key; `None` if nothing does.
type NeededFor = fn(KeyedContents) -> Option<String>;

/// The files of a record and its keys.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    /// The record.
    pub record: PathBuf,
    /// The key that seals values.
    pub seal: PathBuf,
    /// The key of the identities of servers, callers and questions, and of the audit's chain.
    pub identity: PathBuf,
}

/// A record that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Its new path.
    pub path: PathBuf,
    /// `true` if the tables that need no key are in the new record: tokens of programs, blocked callers, logins and
    /// sessions; `false` if they could not be read.
    pub keeps_tables: bool,
}

/// The damage to a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLoss {
    /// The file is missing.
    Missing,
    /// The file has no complete key.
    Damaged,
}

impl fmt::Display for KeyLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "is missing",
            Self::Damaged => "holds no whole key",
        })
    }
}

/// The reason why the keys of a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// A key is lost, and the record needs it.
    #[error("{} {loss}, and the record holds {needed_for}", path.display())]
    Lost {
        /// The key's file.
        path: PathBuf,
        /// The damage.
        loss: KeyLoss,
        /// The contents of the record that need it, in words for a person.
        needed_for: String,
    },
    /// A file cannot be read or written.
    #[error("{} cannot be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] Arc<RecordStoreError>),
}

impl KeyFiles {
    /// Reads the keys. A missing or damaged key is created if nothing in the record was made with it.
    ///
    /// # Errors
    /// If a key is lost that the record needs, or a file cannot be used.
    pub async fn open(&self) -> Result<OwnKeys, KeyFileError> {
        for (path, needed_for) in self.uses() {
            if let Some(loss) = self.refuse_loss(path, needed_for).await? {
                tracing::warn!(
                    file = %path.display(),
                    "the key file {loss}, and a new key was made; the record holds nothing that needs the lost one, but the same question may be asked again"
                );
            }
        }
        let made = |path: &Path, source| KeyFileError::File {
            path: path.to_owned(),
            source,
        };
        Ok(OwnKeys {
            encryption: Encryption::from_file(&self.seal)
                .map_err(|source| made(&self.seal, source))?,
            identity: super::IdentityKey::from_file(&self.identity)
                .map_err(|source| made(&self.identity, source))?,
        })
    }

    /// Checks that a start would not refuse these keys: neither is lost that the record needs, and the values of the record are
    /// not sealed with other keys alone. Nothing is written.
    ///
    /// # Errors
    /// Those of a start.
    pub async fn check(&self) -> Result<(), KeyFileError> {
        for (path, needed_for) in self.uses() {
            self.refuse_loss(path, needed_for).await?;
        }
        let record = Sqlite::at(&self.record).with_any_key();
        let needed = record.sealed_with().await.map_err(Arc::new)?;
        let listed = Encryption::list(&self.seal, &needed);
        let listed = listed.map_err(|source| KeyFileError::File {
            path: self.seal.clone(),
            source,
        })?;
        let opens = listed
            .iter()
            .any(|key| needed.keys.contains(&key.id) && key.usage != KeyUse::Missing);
        if !opens && !needed.any && !needed.keys.is_empty() {
            return Err(Arc::new(RecordStoreError::OtherSealKey).into());
        }
        Ok(())
    }

    /// Returns each file, with the function that says what of a record needs its key.
    fn uses(&self) -> [(&Path, NeededFor); 2] {
        [
            (&self.seal, |held| {
                (held.sealed > 0).then(|| format!("{} value(s) sealed with it", held.sealed))
            }),
            (&self.identity, |held| {
                (held.keyed_links > 0)
                    .then(|| format!("an audit of {} event(s) made with it", held.keyed_links))
            }),
        ]
    }

    /// Renames the record in its folder, so that the next start creates a new one, with new keys in place of the lost
    /// ones. The tables that need no key are taken over into a new record. Returns `None` if there is no record. No
    /// gateway may run on it.
    ///
    /// # Errors
    /// If a file cannot be moved.
    pub async fn set_record_aside(&self) -> io::Result<Option<SetAside>> {
        if !self.record.exists() {
            return Ok(None);
        }
        let next = self.record_of_tables();
        // Everything is moved into the one file first. A record that cannot be opened is renamed as it is.
        let _as_it_is = Sqlite::at(&self.record).close().await;
        let aside = (1..=MOST_ASIDE)
            .map(|number| self.record.with_extension(format!("{number}.sqlite")))
            .find(|path| !path.exists());
        let path = aside.ok_or_else(|| io::Error::other("no name is free"))?;
        for suffix in BESIDE {
            match fs::rename(beside(&self.record, suffix), beside(&path, suffix)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved?,
            }
        }
        let keeps_tables = next.is_ok();
        match next.unwrap_or_default() {
            // There is a record with the tables at each moment: without one, no caller would be blocked.
            Some(next) if fs::hard_link(&self.record, &path).is_ok() => {
                fs::rename(next, &self.record)?;
            }
            next => {
                fs::rename(&self.record, &path)?;
                if let Some(next) = next {
                    fs::rename(next, &self.record)?;
                }
            }
        }
        Ok(Some(SetAside { path, keeps_tables }))
    }

    /// Writes the tables that need no key into a new file; `None` if they are empty.
    fn record_of_tables(&self) -> Result<Option<PathBuf>, RecordStoreError> {
        let tables = StateTables::at(&self.record);
        if tables.are_empty()? {
            return Ok(None);
        }
        let mut name = self.record.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", encryption::random_id()?));
        let path = self.record.with_file_name(name);
        StateTables::at(&path).take_over(&tables)?;
        Ok(Some(path))
    }

    /// Rejects a loss that makes the record unusable. Returns any other, unless the record is new.
    async fn refuse_loss(
        &self,
        path: &Path,
        needed_for: NeededFor,
    ) -> Result<Option<KeyLoss>, KeyFileError> {
        let look = || {
            loss_of(path).map_err(|source| KeyFileError::File {
                path: path.to_owned(),
                source,
            })
        };
        let Some(loss) = look()? else {
            return Ok(None);
        };
        let is_new = fs::metadata(&self.record).map_or(true, |file| file.len() == 0);
        if is_new && loss == KeyLoss::Missing {
            return Ok(None);
        }
        let held = if is_new {
            KeyedContents::default()
        } else {
            Sqlite::at(&self.record)
                .keyed_contents()
                .await
                .map_err(Arc::new)?
        };
        // Another gateway may have created the key, and the record with it, meanwhile.
        let Some(loss) = look()? else {
            return Ok(None);
        };
        if let Some(needed_for) = needed_for(held) {
            return Err(KeyFileError::Lost {
                path: path.to_owned(),
                loss,
                needed_for,
            });
        }
        if loss == KeyLoss::Missing && held == KeyedContents::default() {
            // A command has made a token, and no gateway has run yet.
            return Ok(None);
        }
        Ok(Some(loss))
    }
}

impl KeyFileError {
    /// Returns the fix, in a sentence; `None` if the error contains it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Lost { path, .. } => Some(remedy(&path.display().to_string())),
            Self::Record(fault) => fault.remedy(),
            Self::File { .. } => None,
        }
    }
}

impl RecordStoreError {
    /// Returns the fix if a key does not fit the record, the file is no record, or its disk is full; `None` for any other
    /// error.
    pub fn remedy(&self) -> Option<String> {
        match self {
            fault if fault.is_no_record() => Some(NO_RECORD.to_owned()),
            fault if fault.is_disk_full() && fault.is_in_database() => {
                Some(DATABASE_FULL.to_owned())
            }
            fault if fault.is_disk_full() => Some(FULL.to_owned()),
            Self::OtherKey => Some(remedy("identity.key")),
            Self::OtherSealKey => Some(remedy("seal.key")),
            Self::Refused { next, .. } => Some(next.clone()),
            Self::Database(_)
            | Self::File(_)
            | Self::Closed
            | Self::Unreadable(_)
            | Self::Newer { .. }
            | Self::NotRecord(_)
            | Self::OldFile(_) => None,
        }
    }
}

/// The fix for a full disk.
pub const FULL: &str = "make room on the disk, then try again; nothing was half written.";

/// The fix for a full disk of a database's server.
const DATABASE_FULL: &str =
    "make room on the disk of the database's server, then try again; nothing was half written.";

/// The fix for a file that is no record.
pub const NO_RECORD: &str = "record.sqlite is not a gateway's record: restore it from a backup, or move it out of the state folder, as `mcp-elicit keys start-over` \
    does; a new record is begun then.";

/// Returns the fix for a lost key.
pub fn remedy(file: &str) -> String {
    format!(
        "restore {file} from a backup; without one, `mcp-elicit keys start-over` sets the record aside and begins a new one: \
         waiting questions, kept answers and results are lost."
    )
}

/// Returns the damage to a key file; `None` if it has a key.
fn loss_of(path: &Path) -> io::Result<Option<KeyLoss>> {
    match state_file::read(path) {
        Ok(bytes) if encryption::are_keys(&bytes) => Ok(None),
        Ok(_) => Ok(Some(KeyLoss::Damaged)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(KeyLoss::Missing)),
        Err(error) => Err(error),
    }
}
