//! What a person said is sealed before it is stored: XChaCha20-Poly1305, bound to its question and column.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use data_encoding::HEXLOWER;

const KEY: usize = 32;
const NONCE: usize = 24;

/// The key that seals values.
#[derive(Clone)]
pub struct Seal {
    cipher: XChaCha20Poly1305,
}

/// What is sealed cannot be read: another key, or not as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sealed value cannot be opened with this key")]
pub struct Broken;

impl Seal {
    /// A key for this process alone.
    pub fn random() -> io::Result<Self> {
        Ok(Self::of(&random::<KEY>()?))
    }

    /// The key in this file, made when there is none. Only its owner may read it.
    pub fn kept(path: &Path) -> io::Result<Self> {
        match fs::read(path) {
            Ok(key) => {
                let key: [u8; KEY] = key
                    .try_into()
                    .map_err(|_| io::Error::other("the key file is not 32 bytes"))?;
                Ok(Self::of(&key))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = random::<KEY>()?;
                write_secret(path, &key)?;
                // Another gateway may have been first: what is in the file counts.
                Self::kept(path)
            }
            Err(error) => Err(error),
        }
    }

    fn of(key: &[u8; KEY]) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(key.into()),
        }
    }

    /// Seals a value for one place.
    pub fn close(&self, place: &str, value: &str) -> io::Result<Vec<u8>> {
        let nonce = random::<NONCE>()?;
        let payload = Payload {
            msg: value.as_bytes(),
            aad: place.as_bytes(),
        };
        let sealed = self.cipher.encrypt(XNonce::from_slice(&nonce), payload);
        let mut out = nonce.to_vec();
        out.extend(sealed.map_err(|_| io::Error::other("the value is too long to seal"))?);
        Ok(out)
    }

    /// Opens what was sealed for this place.
    pub fn open(&self, place: &str, sealed: &[u8]) -> Result<String, Broken> {
        let (nonce, text) = sealed.split_at_checked(NONCE).ok_or(Broken)?;
        let payload = Payload {
            msg: text,
            aad: place.as_bytes(),
        };
        let open = self
            .cipher
            .decrypt(XNonce::from_slice(nonce), payload)
            .map_err(|_| Broken)?;
        String::from_utf8(open).map_err(|_| Broken)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "keys, nonces and names that nobody can guess"
)]
fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// A name that nobody can guess: 128 random bits, hex.
pub fn unguessable() -> io::Result<String> {
    Ok(HEXLOWER.encode(&random::<16>()?))
}

/// Writes a file that only its owner may read; an existing one stays as it is.
pub(crate) fn write_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(mut file) => file.write_all(bytes),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_in_its_own_place_only() {
        let seal = Seal::random().unwrap();
        let sealed = seal.close("q1.content", "{\"name\":\"Ada\"}").unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains("Ada"));
        assert_eq!(
            seal.open("q1.content", &sealed).unwrap(),
            "{\"name\":\"Ada\"}"
        );
        assert_eq!(seal.open("q2.content", &sealed), Err(Broken));
        assert_eq!(
            Seal::random().unwrap().open("q1.content", &sealed),
            Err(Broken)
        );
        assert_eq!(seal.open("q1.content", &sealed[..10]), Err(Broken));
    }

    #[test]
    fn a_kept_key_is_the_same_again_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let sealed = Seal::kept(&path).unwrap().close("p", "v").unwrap();
        assert_eq!(Seal::kept(&path).unwrap().open("p", &sealed).unwrap(), "v");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(
                &fs::metadata(&path).unwrap().permissions(),
            );
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
