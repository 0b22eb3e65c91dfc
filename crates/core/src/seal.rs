//! Authenticated encryption of data that leaves a process and comes back: XChaCha20-Poly1305, with the nonce as an
//! argument.
//!
//! A sealed text is the nonce followed by the ciphertext. The associated data bind it to one purpose; with other data
//! it does not open.

use std::fmt;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// The size of a key in bytes.
pub const KEY: usize = 32;
/// The size of a nonce in bytes: large enough that random ones never repeat.
pub const NONCE: usize = 24;

/// A key that can seal and open.
#[derive(Clone)]
pub struct Cipher(XChaCha20Poly1305);

impl fmt::Debug for Cipher {
    /// Hides the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(..)")
    }
}

/// The text is too long to be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is too long to seal")]
pub struct TooLong;

/// The text was sealed with another key or for another purpose, or was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sealed value cannot be opened with this key")]
pub struct OpenError;

impl Cipher {
    /// Creates a cipher from this key.
    pub fn new(key: &[u8; KEY]) -> Self {
        Self(XChaCha20Poly1305::new(key.into()))
    }

    /// Seals a text for one purpose. No nonce may be used for two texts under one key.
    pub fn seal(
        &self,
        nonce: &[u8; NONCE],
        associated_data: &[u8],
        text: &[u8],
    ) -> Result<Vec<u8>, TooLong> {
        let payload = Payload {
            msg: text,
            aad: associated_data,
        };
        let sealed = self.0.encrypt(XNonce::from_slice(nonce), payload);
        Ok([nonce, sealed.map_err(|_| TooLong)?.as_slice()].concat())
    }

    /// Opens a text that was sealed for this purpose.
    pub fn open(&self, associated_data: &[u8], sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE).ok_or(OpenError)?;
        let payload = Payload {
            msg: sealed,
            aad: associated_data,
        };
        let opened = self.0.decrypt(XNonce::from_slice(nonce), payload);
        opened.map_err(|_| OpenError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_text_opens_in_its_place_under_its_key_and_unchanged_only() {
        let cipher = Cipher::new(&[7; KEY]);
        let sealed = cipher.seal(&[1; NONCE], b"place", b"text").unwrap();
        assert_eq!(sealed[..NONCE], [1; NONCE]);
        assert!(!sealed.windows(4).any(|part| part == b"text"));
        assert_eq!(cipher.open(b"place", &sealed).unwrap(), b"text");
        assert_eq!(cipher.open(b"other", &sealed), Err(OpenError));
        let other = Cipher::new(&[8; KEY]);
        assert_eq!(other.open(b"place", &sealed), Err(OpenError));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(cipher.open(b"place", &changed), Err(OpenError), "{at}");
            assert_eq!(cipher.open(b"place", &sealed[..at]), Err(OpenError));
        }
        assert_eq!(format!("{cipher:?}"), "Cipher(..)");
    }

    /// Text sealed by older versions still opens: draft-irtf-cfrg-xchacha-03, appendix A.3.1.
    #[test]
    fn the_drafts_example_opens() {
        let hex = |text: &str| -> Vec<u8> {
            let pairs = text.as_bytes().as_chunks::<2>().0;
            let byte = |pair: &[u8; 2]| std::str::from_utf8(pair).unwrap().to_owned();
            let bytes = pairs.iter().map(|pair| u8::from_str_radix(&byte(pair), 16));
            bytes.map(Result::unwrap).collect()
        };
        let key = hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
        let nonce = hex("404142434445464748494a4b4c4d4e4f5051525354555657");
        let place = hex("50515253c0c1c2c3c4c5c6c7");
        let text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
            sunscreen would be it.";
        let cipher = Cipher::new(key.as_slice().try_into().unwrap());
        let sealed = cipher
            .seal(nonce.as_slice().try_into().unwrap(), &place, text)
            .unwrap();
        let tag = hex("c0875924c1c7987947deafd8780acf49");
        assert!(sealed.ends_with(&tag));
        assert_eq!(sealed[NONCE..NONCE + 4], hex("bd6d179d"));
    }
}
