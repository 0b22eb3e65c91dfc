//! Encryption of a person's values before they are stored: XChaCha20-Poly1305, bound to question and column.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use data_encoding::HEXLOWER;
pub use mcp_elicit_core::seal::OpenError;
use mcp_elicit_core::seal::{Cipher, KEY};

use crate::state_file;

/// The most keys in a file: the newest, and its predecessor.
const MAX_KEYS: usize = 2;

/// The keys that seal values: the newest seals, each can open.
#[derive(Clone)]
pub struct Encryption {
    ciphers: Arc<RwLock<Vec<Cipher>>>,
    /// The file with the keys, read again if none of the known keys opens a value: the file may have changed.
    path: Option<PathBuf>,
}

impl Encryption {
    /// Creates a key for this process only.
    pub fn random() -> io::Result<Self> {
        Ok(Self::new(&[random::<KEY>()?], None))
    }

    /// Reads the key from this file, and creates it if there is none. Only its owner may read it.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        key_in_file(path, &random::<KEY>()?)?;
        Ok(Self::new(&keys_in(path)?, Some(path)))
    }

    fn new(keys: &[[u8; KEY]], path: Option<&Path>) -> Self {
        Self {
            ciphers: Arc::new(RwLock::new(ciphers(keys))),
            path: path.map(Path::to_owned),
        }
    }

    /// Adds a new key to this file. The previous one is kept to open earlier values until the next rotation. Running
    /// gateways use the new key once they see it, at the latest after a restart.
    pub fn rotate(path: &Path) -> io::Result<()> {
        let mut keys = vec![random::<KEY>()?];
        keys.extend(keys_in(path)?.first());
        state_file::replace(path, &keys.concat())
    }

    fn ciphers(&self) -> Vec<Cipher> {
        self.ciphers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads the keys again; `None` if they are not from a file.
    fn read_again(&self) -> Option<Vec<Cipher>> {
        let keys = ciphers(&keys_in(self.path.as_deref()?).ok()?);
        let mut known = self.ciphers.write().unwrap_or_else(PoisonError::into_inner);
        known.clone_from(&keys);
        Some(keys)
    }

    /// Seals a value, bound to these associated data.
    pub fn seal(&self, associated_data: &str, value: &str) -> io::Result<Vec<u8>> {
        let ciphers = self.ciphers();
        let newest = ciphers.first().ok_or_else(|| io::Error::other("no key"))?;
        let sealed = newest.seal(&random()?, associated_data.as_bytes(), value.as_bytes());
        sealed.map_err(io::Error::other)
    }

    /// Opens a sealed value with the same associated data.
    pub fn open(&self, associated_data: &str, sealed: &[u8]) -> Result<String, OpenError> {
        let place = associated_data.as_bytes();
        let with = |ciphers: &[Cipher]| {
            let mut opened = ciphers.iter().map(|cipher| cipher.open(place, sealed));
            opened.find_map(Result::ok)
        };
        let open = with(&self.ciphers()).or_else(|| with(&self.read_again()?));
        String::from_utf8(open.ok_or(OpenError)?).map_err(|_| OpenError)
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

fn ciphers(keys: &[[u8; KEY]]) -> Vec<Cipher> {
    keys.iter().map(Cipher::new).collect()
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

/// Returns `true` if these bytes are one or two keys.
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
        assert_eq!(seal.open("q2.content", &sealed), Err(OpenError));
        assert_eq!(
            Encryption::random().unwrap().open("q1.content", &sealed),
            Err(OpenError)
        );
        assert_eq!(seal.open("q1.content", &sealed[..10]), Err(OpenError));
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

    #[test]
    fn after_a_change_of_keys_what_was_sealed_opens_until_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let running = Encryption::from_file(&path).unwrap();
        let first = running.seal("p", "one").unwrap();
        Encryption::rotate(&path).unwrap();
        let next = Encryption::from_file(&path).unwrap();
        assert_eq!(next.open("p", &first).unwrap(), "one");
        let second = next.seal("p", "two").unwrap();
        assert_eq!(
            running.open("p", &second).unwrap(),
            "two",
            "it reads the keys again"
        );
        Encryption::rotate(&path).unwrap();
        let last = Encryption::from_file(&path).unwrap();
        assert_eq!(last.open("p", &second).unwrap(), "two");
        assert_eq!(last.open("p", &first), Err(OpenError));
        assert_eq!(fs::read(&path).unwrap().len(), 2 * KEY);
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
