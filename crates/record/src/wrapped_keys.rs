//! The keys of a record that is in a database: wrapped there by a master key, which is all that state folders share.
//!
//! A wrapped key is sealed with a key that is derived from the master key, and bound to its kind and number. The files of a
//! state folder are a copy: `seal.key` has the data keys, the one that seals first, and the master key.

use std::io;

use hmac::{Hmac, Mac as _};
use mcp_elicit_core::seal::{Cipher, KEY};
use sha2::Sha256;

use crate::encryption::{KeyId, random};

/// The purpose of the key that wraps others, among those that may be derived from a master key.
const PURPOSE: &[u8] = b"mcp-elicit keys of the record";

/// A key's bytes.
pub(crate) type KeyBytes = [u8; KEY];

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// It seals values.
    Data,
    /// It is the key of identities, and of the audit's chain.
    Identity,
}

impl KeyKind {
    /// Returns the word in the table.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Identity => "identity",
        }
    }
}

/// A row of the table of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrappedKey {
    /// Its kind in words.
    pub(crate) kind: String,
    /// Its number among those of its kind, from 1.
    pub(crate) number: i32,
    /// The id of the master key, as it is written.
    pub(crate) master: String,
    /// The sealed key.
    pub(crate) wrapped: Vec<u8>,
    /// `true` if every running gateway has it.
    pub(crate) is_ready: bool,
}

/// A data key of the record.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DataKey {
    /// Its number, from 1.
    pub(crate) number: i32,
    /// Its bytes.
    pub(crate) key: KeyBytes,
    /// `true` if every running gateway has it.
    pub(crate) is_ready: bool,
}

/// The keys of a record.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RecordKeys {
    /// The master key that unwrapped them.
    pub(crate) master: KeyBytes,
    /// The data keys: the one that seals first, then the other ready ones and those that are not, each the newest first.
    pub(crate) data: Vec<DataKey>,
    /// The key of identities.
    pub(crate) identity: KeyBytes,
}

/// The reason why keys are not unwrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnwrapError {
    /// No known key is their master key.
    OtherMaster,
    /// One of them was changed, or is missing.
    Damaged,
}

impl RecordKeys {
    /// Returns the keys of a record that has them in files so far, the one that seals first.
    pub(crate) fn from_files(seal: &[KeyBytes], identity: KeyBytes) -> Option<Self> {
        let numbers = (1..=i32::try_from(seal.len()).ok()?).rev();
        let data = seal.iter().zip(numbers).map(|(key, number)| DataKey {
            number,
            key: *key,
            is_ready: true,
        });
        Some(Self {
            master: *seal.first()?,
            data: data.collect(),
            identity,
        })
    }

    /// Unwraps the rows with the first of the known keys that is their master key.
    pub(crate) fn unwrap(rows: &[WrappedKey], known: &[KeyBytes]) -> Result<Self, UnwrapError> {
        let is_master = |key: &&KeyBytes| {
            let id = KeyId::of(key).to_string();
            rows.iter().any(|row| row.master == id)
        };
        let master = known.iter().find(is_master);
        let master = master.ok_or(UnwrapError::OtherMaster)?;
        let (id, cipher) = (KeyId::of(master).to_string(), wrapping(master));
        let (mut data, mut identity) = (Vec::new(), None);
        for row in rows.iter().filter(|row| row.master == id) {
            let bound = bound_to(&row.kind, row.number);
            let opened = cipher.open(bound.as_bytes(), &row.wrapped).ok();
            let opened = opened.and_then(|key| KeyBytes::try_from(key).ok());
            let key = opened.ok_or(UnwrapError::Damaged)?;
            if row.kind == KeyKind::Identity.as_str() {
                identity = Some(key);
            } else {
                data.push(DataKey {
                    number: row.number,
                    key,
                    is_ready: row.is_ready,
                });
            }
        }
        data.sort_by_key(|key| std::cmp::Reverse((key.is_ready, key.number)));
        if !data.first().is_some_and(|key| key.is_ready) {
            return Err(UnwrapError::Damaged);
        }
        Ok(Self {
            master: *master,
            data,
            identity: identity.ok_or(UnwrapError::Damaged)?,
        })
    }

    /// Wraps all keys by this master key.
    pub(crate) fn wrapped_by(&self, master: &KeyBytes) -> io::Result<Vec<WrappedKey>> {
        let data = self.data.iter().map(|key| (KeyKind::Data, key));
        let identity = DataKey {
            number: 1,
            key: self.identity,
            is_ready: true,
        };
        let identity = std::iter::once((KeyKind::Identity, &identity));
        data.chain(identity)
            .map(|(kind, key)| wrapped(master, kind, key))
            .collect()
    }

    /// Returns the number of the newest data key, whether it seals or not.
    pub(crate) fn newest(&self) -> i32 {
        let numbers = self.data.iter().map(|key| key.number);
        numbers.max().unwrap_or(0)
    }

    /// Returns the contents of the file of a state folder that has these keys: the data keys, the master key, and what
    /// the file has besides.
    pub(crate) fn in_file(&self, before: &[KeyBytes]) -> Vec<KeyBytes> {
        let mut all: Vec<KeyBytes> = self.data.iter().map(|key| key.key).collect();
        for key in std::iter::once(&self.master).chain(before) {
            if !all.contains(key) {
                all.push(*key);
            }
        }
        all
    }
}

/// Wraps a key by this master key.
pub(crate) fn wrapped(master: &KeyBytes, kind: KeyKind, key: &DataKey) -> io::Result<WrappedKey> {
    let bound = bound_to(kind.as_str(), key.number);
    let sealed = wrapping(master).seal(&random()?, bound.as_bytes(), &key.key);
    Ok(WrappedKey {
        kind: kind.as_str().to_owned(),
        number: key.number,
        master: KeyId::of(master).to_string(),
        wrapped: sealed.map_err(io::Error::other)?,
        is_ready: key.is_ready,
    })
}

/// Returns the associated data of a wrapped key.
fn bound_to(kind: &str, number: i32) -> String {
    format!("{kind}.{number}")
}

/// Returns the cipher that wraps keys.
fn wrapping(master: &KeyBytes) -> Cipher {
    let mut mac = Hmac::<Sha256>::new_from_slice(master).expect("a key of any length will do");
    mac.update(PURPOSE);
    Cipher::new(&mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> RecordKeys {
        RecordKeys::from_files(&[[2; KEY], [1; KEY]], [9; KEY]).unwrap()
    }

    #[test]
    fn keys_unwrap_with_their_master_key_alone() {
        let rows = keys().wrapped_by(&[2; KEY]).unwrap();
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.wrapped.len() == 24 + KEY + 16));
        for known in [vec![[2; KEY]], vec![[7; KEY], [2; KEY]]] {
            assert!(RecordKeys::unwrap(&rows, &known) == Ok(keys()));
        }
        for known in [vec![], vec![[7; KEY], [1; KEY]]] {
            let other = RecordKeys::unwrap(&rows, &known).err();
            assert_eq!(other, Some(UnwrapError::OtherMaster));
        }
    }

    #[test]
    fn a_wrapped_key_counts_in_its_own_row_only() {
        let rows = keys().wrapped_by(&[2; KEY]).unwrap();
        let unwrapped = |rows: &[WrappedKey]| RecordKeys::unwrap(rows, &[[2; KEY]]).err();
        let mut swapped = rows.clone();
        swapped[0].wrapped.clone_from(&rows[1].wrapped);
        swapped[1].wrapped.clone_from(&rows[0].wrapped);
        let mut cut = rows.clone();
        cut[0].wrapped.truncate(30);
        let mut renamed = rows.clone();
        renamed[0].kind = "identity".to_owned();
        for damaged in [&swapped[..], &cut, &renamed, &rows[..2], &rows[2..]] {
            assert_eq!(unwrapped(damaged), Some(UnwrapError::Damaged));
        }
    }

    #[test]
    fn a_key_that_is_not_ready_opens_and_does_not_seal() {
        let mut keys = keys();
        keys.data.push(DataKey {
            number: 3,
            key: [3; KEY],
            is_ready: false,
        });
        let rows = keys.wrapped_by(&[2; KEY]).unwrap();
        let found = RecordKeys::unwrap(&rows, &[[2; KEY]]).ok().unwrap();
        assert_eq!(found.newest(), 3);
        assert_eq!(found.in_file(&[[2; KEY]]), [[2; KEY], [1; KEY], [3; KEY]]);
        keys.data[2].is_ready = true;
        let rows = keys.wrapped_by(&[8; KEY]).unwrap();
        let found = RecordKeys::unwrap(&rows, &[[8; KEY]]).ok().unwrap();
        let file = found.in_file(&[[8; KEY], [7; KEY]]);
        assert_eq!(file, [[3; KEY], [2; KEY], [1; KEY], [8; KEY], [7; KEY]]);
    }
}
