//! Encryption of a person's values before they are stored: XChaCha20-Poly1305, bound to question and column.
//!
//! A sealed value names the key that sealed it:
//!
//! | part | bytes |
//! | --- | --- |
//! | `02 6b 65 79` | 4 |
//! | the id of the key: the first bytes of its SHA-256 | 8 |
//! | nonce and ciphertext | the rest |
//!
//! Values of earlier versions are the last part alone; every key is tried for them.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use data_encoding::HEXLOWER;
use mcp_elicit_core::seal::{Cipher, KEY};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::state_file;

/// The most keys in a file.
const MAX_KEYS: usize = 1_000;
/// The beginning of a sealed value that names its key.
const NAMED: [u8; 4] = *b"\x02key";
/// The size of a key's id in bytes.
const KEY_ID: usize = 8;

/// The id of a key, by which sealed values name it. It says nothing else about the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId([u8; KEY_ID]);

impl KeyId {
    /// Returns the id of a key.
    pub fn of(key: &[u8; KEY]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"mcp-elicit seal key\n");
        hash.update(key);
        let mut id = [0; KEY_ID];
        id.copy_from_slice(&hash.finalize()[..KEY_ID]);
        Self(id)
    }

    /// Returns the beginning of the values that the key sealed.
    pub(crate) fn beginning(self) -> Vec<u8> {
        [NAMED.as_slice(), &self.0].concat()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// The reason why a sealed value cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// The key that sealed it is not known here.
    #[error(
        "a value was sealed with the key {0}, which is not in seal.key: restore that file from a backup"
    )]
    MissingKey(KeyId),
    /// It was sealed by an earlier version with an unknown key or for another purpose, or it is damaged.
    #[error("a sealed value cannot be opened: it is damaged, or its key is not in seal.key")]
    NotOpened,
}

/// The keys that sealed values of a record name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealedWith {
    /// The named keys.
    pub keys: BTreeSet<KeyId>,
    /// `true` if there are values that name no key, or values that are not in the record yet, so that any key may be
    /// needed.
    pub any: bool,
}

impl SealedWith {
    /// Adds the key of a sealed value.
    pub(crate) fn add(&mut self, sealed: &[u8]) {
        match named_key(sealed) {
            Some((key, _)) => {
                self.keys.insert(key);
            }
            None => self.any = true,
        }
    }
}

/// A key of a file, and what the values of a record need of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedKey {
    /// Its id.
    pub id: KeyId,
    /// Its use.
    pub usage: KeyUse,
}

/// The use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// It seals new values.
    Seals,
    /// It opens values of the record.
    Opens,
    /// It may open values that name no key, or that a running gateway has.
    MayOpen,
    /// No value needs it.
    Unneeded,
    /// Values of the record need it, and the file does not have it.
    Missing,
}

/// Returns the sealed values in a team's JSON, in hex. Texts of servers, callers and rules may look like one.
pub(crate) fn sealed_texts(team: &str) -> impl Iterator<Item = String> {
    let team: Value = serde_json::from_str(team).unwrap_or_default();
    let comments = team["comments"].as_array().into_iter().flatten();
    let texts = comments.chain([&team["entered"]]).map(|one| &one["text"]);
    let retained = &team["retained"];
    let all = texts.chain([&retained["arguments"], &retained["content"]]);
    let all: Vec<String> = all.filter_map(Value::as_str).map(str::to_owned).collect();
    all.into_iter()
}

/// Returns the named key of a sealed value, and the rest.
fn named_key(sealed: &[u8]) -> Option<(KeyId, &[u8])> {
    let rest = sealed.strip_prefix(&NAMED)?;
    let (id, rest) = rest.split_first_chunk::<KEY_ID>()?;
    Some((KeyId(*id), rest))
}

/// A key with its id.
#[derive(Clone)]
struct NamedCipher {
    id: KeyId,
    cipher: Cipher,
}

impl NamedCipher {
    fn new(key: &[u8; KEY]) -> Self {
        Self {
            id: KeyId::of(key),
            cipher: Cipher::new(key),
        }
    }
}

/// The keys that are known to a process.
struct KnownCiphers {
    /// The newest first, which seals.
    ciphers: Arc<[NamedCipher]>,
    /// The file as it was when it was last read.
    stamp: Option<FileStamp>,
}

/// The attributes of a file that change when it is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    length: u64,
    modified: Option<SystemTime>,
    /// The file's number, where the system has one.
    number: u64,
}

impl FileStamp {
    fn of(path: &Path) -> Option<Self> {
        let known = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&known);
        #[cfg(not(unix))]
        let number = 0;
        Some(Self {
            length: known.len(),
            modified: known.modified().ok(),
            number,
        })
    }
}

/// The keys that seal values: the newest seals, each can open.
#[derive(Clone)]
pub struct Encryption {
    known: Arc<RwLock<KnownCiphers>>,
    /// The file with the keys, which is read again when it has changed.
    path: Option<PathBuf>,
}

impl Encryption {
    /// Creates a key for this process only.
    pub fn random() -> io::Result<Self> {
        Ok(Self::new(&[random::<KEY>()?], None, None))
    }

    /// Creates the encryption with this key.
    pub fn with_key(key: &[u8; KEY]) -> Self {
        Self::new(&[*key], None, None)
    }

    /// Reads the key from this file, and creates it if there is none. Only its owner may read it.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        key_in_file(path, &random::<KEY>()?)?;
        // Before the file is read: a change meanwhile is then noticed.
        let stamp = FileStamp::of(path);
        Ok(Self::new(&keys_in(path)?, Some(path), stamp))
    }

    /// Reads the keys from this file, which is never written; `None` if there is no complete one.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let stamp = FileStamp::of(path);
        match state_file::read(path) {
            Ok(bytes) if are_keys(&bytes) => Ok(Some(Self::new(
                bytes.as_chunks::<KEY>().0,
                Some(path),
                stamp,
            ))),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn new(keys: &[[u8; KEY]], path: Option<&Path>, stamp: Option<FileStamp>) -> Self {
        let ciphers = keys.iter().map(NamedCipher::new).collect();
        Self {
            known: Arc::new(RwLock::new(KnownCiphers { ciphers, stamp })),
            path: path.map(Path::to_owned),
        }
    }

    /// Adds a new key to this file. Earlier keys stay as long as sealed values need them; the one before always stays,
    /// because a running gateway may be using it. Running gateways use the new key from their next value on. Returns the
    /// number of earlier keys that are kept.
    pub fn rotate(path: &Path, needed: &SealedWith) -> io::Result<usize> {
        let before = keys_in(path)?;
        let is_kept = |(at, key): &(usize, &[u8; KEY])| {
            *at == 0 || needed.any || needed.keys.contains(&KeyId::of(key))
        };
        let kept = before.iter().enumerate().filter(is_kept);
        let mut keys = vec![random::<KEY>()?];
        keys.extend(kept.map(|(_, key)| *key));
        if keys.len() > MAX_KEYS {
            return Err(io::Error::other(format!(
                "{MAX_KEYS} keys are still needed, which is the most; values with old keys are deleted with their questions"
            )));
        }
        state_file::replace(path, &keys.concat())?;
        Ok(keys.len() - 1)
    }

    /// Returns the keys of this file, the newest first, and then those that it lacks.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn list(path: &Path, needed: &SealedWith) -> io::Result<Vec<ListedKey>> {
        let ids: Vec<_> = keys_in(path)?.iter().map(KeyId::of).collect();
        let usage = |at, id| match at {
            0 => KeyUse::Seals,
            _ if needed.keys.contains(id) => KeyUse::Opens,
            _ if needed.any => KeyUse::MayOpen,
            _ => KeyUse::Unneeded,
        };
        let missing = needed.keys.iter().filter(|id| !ids.contains(id));
        let known = ids.iter().enumerate().map(|(at, id)| ListedKey {
            id: *id,
            usage: usage(at, id),
        });
        let missing = missing.map(|id| ListedKey {
            id: *id,
            usage: KeyUse::Missing,
        });
        Ok(known.chain(missing).collect())
    }

    /// Removes the keys from this file that no value needs. The newest stays. Returns those that were removed.
    ///
    /// # Errors
    /// If the file cannot be read or replaced.
    pub fn retire(path: &Path, needed: &SealedWith) -> io::Result<Vec<KeyId>> {
        let before = keys_in(path)?;
        let listed = Self::list(path, needed)?;
        let gone: Vec<_> = listed
            .iter()
            .filter(|key| key.usage == KeyUse::Unneeded)
            .map(|key| key.id)
            .collect();
        if !gone.is_empty() {
            let stays = |key: &&[u8; KEY]| !gone.contains(&KeyId::of(key));
            let kept: Vec<_> = before.iter().filter(stays).copied().collect();
            state_file::replace(path, &kept.concat())?;
        }
        Ok(gone)
    }

    /// Returns the keys, the newest first, after a look at the file.
    fn ciphers(&self) -> Arc<[NamedCipher]> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &self.path else {
            return known.ciphers.clone();
        };
        let stamp = FileStamp::of(path);
        if stamp.is_none() || known.stamp == stamp {
            return known.ciphers.clone();
        }
        drop(known);
        self.read_again(path, stamp)
    }

    /// Reads the file again. Keys that it no longer has can still open values in this process. A file without any of the
    /// known keys belongs to another record, and is ignored.
    fn read_again(&self, path: &Path, stamp: Option<FileStamp>) -> Arc<[NamedCipher]> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.stamp = stamp;
        let found = match keys_in(path) {
            Ok(keys) => keys.iter().map(NamedCipher::new).collect::<Vec<_>>(),
            Err(error) => {
                tracing::error!(file = %path.display(), %error, "the changed key file cannot be read; the keys known here are used");
                return known.ciphers.clone();
            }
        };
        let is_in = |list: &[NamedCipher], id| list.iter().any(|one| one.id == id);
        if !found.iter().any(|one| is_in(&known.ciphers, one.id)) {
            tracing::error!(file = %path.display(), "the key file was replaced by another record's; the keys known here are used until the end of this process: restore the file");
            return known.ciphers.clone();
        }
        let gone = known.ciphers.iter().filter(|one| !is_in(&found, one.id));
        let gone: Vec<_> = gone.cloned().collect();
        known.ciphers = found.into_iter().chain(gone).collect();
        known.ciphers.clone()
    }

    /// Seals a value, bound to these associated data.
    pub fn seal(&self, associated_data: &str, value: &str) -> io::Result<Vec<u8>> {
        let ciphers = self.ciphers();
        let newest = ciphers.first().ok_or_else(|| io::Error::other("no key"))?;
        let place = associated_data.as_bytes();
        let sealed = newest.cipher.seal(&random()?, place, value.as_bytes());
        let sealed = sealed.map_err(io::Error::other)?;
        Ok([&NAMED[..], &newest.id.0, &sealed].concat())
    }

    /// Opens a sealed value with the same associated data.
    pub fn open(&self, associated_data: &str, sealed: &[u8]) -> Result<String, UnsealError> {
        let ciphers = self.ciphers();
        let place = associated_data.as_bytes();
        let named = named_key(sealed);
        let of_name = named.and_then(|(id, rest)| {
            let cipher = ciphers.iter().find(|one| one.id == id)?;
            cipher.cipher.open(place, rest).ok()
        });
        // The random beginning of an earlier version's value may look like a name.
        let any = || {
            let mut opened = ciphers.iter().map(|one| one.cipher.open(place, sealed));
            opened.find_map(Result::ok)
        };
        match of_name.or_else(any) {
            Some(value) => String::from_utf8(value).map_err(|_| UnsealError::NotOpened),
            None => Err(match named {
                Some((id, _)) if !ciphers.iter().any(|one| one.id == id) => {
                    UnsealError::MissingKey(id)
                }
                Some(_) | None => UnsealError::NotOpened,
            }),
        }
    }

    /// Returns the id of the key that seals new values.
    pub(crate) fn newest(&self) -> Option<KeyId> {
        self.ciphers().first().map(|one| one.id)
    }

    /// Returns `true` if the value was sealed with the newest key.
    pub(crate) fn is_newest(&self, sealed: &[u8]) -> bool {
        named_key(sealed).map(|(id, _)| id) == self.newest()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "keys, nonces and names that nobody can guess"
)]
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// Returns an unguessable name: 128 random bits in hex.
pub fn random_id() -> io::Result<String> {
    Ok(HEXLOWER.encode(&random::<16>()?))
}

/// Reads the keys from this file, the newest first.
fn keys_in(path: &Path) -> io::Result<Vec<[u8; KEY]>> {
    let bytes = state_file::read(path)?;
    if !are_keys(&bytes) {
        return Err(io::Error::other(
            "the key file is not a list of keys of 32 bytes",
        ));
    }
    Ok(bytes.as_chunks::<KEY>().0.to_vec())
}

/// Reads the keys from this file; `None` if it is missing, or has no whole keys.
pub(crate) fn read_keys(path: &Path) -> io::Result<Option<Vec<[u8; KEY]>>> {
    match state_file::read(path) {
        Ok(bytes) if are_keys(&bytes) => Ok(Some(bytes.as_chunks::<KEY>().0.to_vec())),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns `true` if these bytes are a list of keys.
pub(crate) fn are_keys(bytes: &[u8]) -> bool {
    let (keys, rest) = bytes.as_chunks::<KEY>();
    !keys.is_empty() && keys.len() <= MAX_KEYS && rest.is_empty()
}

/// Returns the key in this file, which is `fresh` if there is none. Of several simultaneous processes, the first
/// creates it. A file without a complete key is rewritten; whether the lost key is needed is checked before
/// ([`KeyFiles`](super::KeyFiles)).
pub(crate) fn key_in_file(path: &Path, fresh: &[u8; KEY]) -> io::Result<[u8; KEY]> {
    let read = || -> io::Result<Option<[u8; KEY]>> {
        let bytes = state_file::read(path)?;
        Ok(bytes
            .first_chunk::<KEY>()
            .copied()
            .filter(|_| are_keys(&bytes)))
    };
    match read() {
        Ok(Some(key)) => return Ok(key),
        Ok(None) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            state_file::create_once(path, fresh)?;
        }
        Err(error) => return Err(error),
    }
    // The file's content counts; one process at a time rewrites it.
    let mut guard = path.as_os_str().to_owned();
    guard.push(".lock");
    if let Some(key) = read()? {
        return Ok(key);
    }
    let lock = state_file::open_private(Path::new(&guard))?;
    lock.lock()?;
    if read()?.is_none() {
        state_file::replace(path, fresh)?;
    }
    read()?.ok_or_else(|| io::Error::other("the key file is not 32 bytes"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_sealed_opens_in_its_own_place_only() {
        let seal = Encryption::random().unwrap();
        let sealed = seal.seal("q1.content", "{\"name\":\"Ada\"}").unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains("Ada"));
        assert_eq!(
            seal.open("q1.content", &sealed).unwrap(),
            "{\"name\":\"Ada\"}"
        );
        assert_eq!(
            seal.open("q2.content", &sealed),
            Err(UnsealError::NotOpened)
        );
        let other = Encryption::random().unwrap().open("q1.content", &sealed);
        assert!(
            matches!(other, Err(UnsealError::MissingKey(_))),
            "{other:?}"
        );
        assert_eq!(
            seal.open("q1.content", &sealed[..10]),
            Err(UnsealError::NotOpened)
        );
    }

    #[test]
    fn a_key_that_was_half_written_is_written_anew_once() {
        for half in [&b""[..], &[7; 5]] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("seal.key");
            fs::write(&path, half).unwrap();
            let keys: Vec<[u8; KEY]> = std::thread::scope(|scope| {
                let one = |number: u8| {
                    let path = &path;
                    scope.spawn(move || key_in_file(path, &[number; KEY]).unwrap())
                };
                let all: Vec<_> = (0..8).map(one).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
            assert_eq!(fs::read(&path).unwrap(), keys[0]);
        }
    }

    /// A value as versions before the key ids sealed it.
    fn without_name(path: &Path, associated_data: &str, value: &str) -> Vec<u8> {
        let newest = Cipher::new(keys_in(path).unwrap().first().unwrap());
        let nonce = random().unwrap();
        newest
            .seal(&nonce, associated_data.as_bytes(), value.as_bytes())
            .unwrap()
    }

    #[test]
    fn values_stay_readable_however_often_the_key_is_changed_and_running_gateways_follow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let running = Encryption::from_file(&path).unwrap();
        let unnamed = without_name(&path, "p", "zero");
        let mut sealed = vec![running.seal("p", "0").unwrap()];
        for number in 1..5 {
            let mut needed = SealedWith::default();
            for one in &sealed {
                needed.add(one);
            }
            needed.add(&unnamed);
            let kept = Encryption::rotate(&path, &needed).unwrap();
            assert_eq!(kept, number);
            sealed.push(running.seal("p", &number.to_string()).unwrap());
            let restarted = Encryption::from_file(&path).unwrap();
            assert!(restarted.is_newest(&sealed[number]), "it follows the file");
            for either in [&running, &restarted] {
                for (number, sealed) in sealed.iter().enumerate() {
                    assert_eq!(either.open("p", sealed).unwrap(), number.to_string());
                }
                assert_eq!(either.open("p", &unnamed).unwrap(), "zero");
            }
        }
        assert_eq!(fs::read(&path).unwrap().len(), 5 * KEY);
    }

    #[test]
    fn a_key_that_nothing_names_is_dropped_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let running = Encryption::from_file(&path).unwrap();
        let first = running.seal("p", "one").unwrap();
        let nothing = SealedWith::default();
        // The key before always stays.
        assert_eq!(Encryption::rotate(&path, &nothing).unwrap(), 1);
        assert_eq!(Encryption::rotate(&path, &nothing).unwrap(), 1);
        let restarted = Encryption::from_file(&path).unwrap();
        let Err(UnsealError::MissingKey(key)) = restarted.open("p", &first) else {
            panic!("its key is gone");
        };
        let mut needed = SealedWith::default();
        needed.add(&first);
        assert!(needed.keys.contains(&key) && !needed.any);
        let told = UnsealError::MissingKey(key).to_string();
        assert!(
            told.contains(&key.to_string()) && told.contains("seal.key"),
            "{told}"
        );
        // The process that sealed it still has the key.
        assert_eq!(running.open("p", &first).unwrap(), "one");
    }

    #[test]
    fn a_foreign_file_is_not_used_in_place_of_the_known_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let running = Encryption::from_file(&path).unwrap();
        let own = fs::read(&path).unwrap();
        state_file::replace(&path, &[9; KEY]).unwrap();
        let sealed = running.seal("p", "one").unwrap();
        state_file::replace(&path, b"half").unwrap();
        assert_eq!(running.open("p", &sealed).unwrap(), "one");
        state_file::replace(&path, &own).unwrap();
        let restarted = Encryption::from_file(&path).unwrap();
        assert_eq!(restarted.open("p", &sealed).unwrap(), "one");
    }

    #[test]
    fn a_value_of_an_earlier_version_that_begins_like_a_name_opens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let seal = Encryption::from_file(&path).unwrap();
        let cipher = Cipher::new(keys_in(&path).unwrap().first().unwrap());
        let mut nonce = [7; 24];
        nonce[..4].copy_from_slice(&NAMED);
        let sealed = cipher.seal(&nonce, b"p", b"one").unwrap();
        assert_eq!(seal.open("p", &sealed).unwrap(), "one");
    }

    #[test]
    fn a_kept_key_is_the_same_again_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let sealed = Encryption::from_file(&path)
            .unwrap()
            .seal("p", "v")
            .unwrap();
        assert_eq!(
            Encryption::from_file(&path)
                .unwrap()
                .open("p", &sealed)
                .unwrap(),
            "v"
        );
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(
                &fs::metadata(&path).unwrap().permissions(),
            );
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
