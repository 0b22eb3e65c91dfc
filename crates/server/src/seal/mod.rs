//! Protection of `requestState`: the client carries it and can neither read, change, swap nor reuse it.
//!
//! `me1.<key id>.<base64url(nonce || ciphertext)>`, XChaCha20-Poly1305. The associated data are the principal, the
//! audience (this server), the method, and a digest of the name and arguments of the call. The error for a state that
//! does not open gives no reason, except in the server's own log.
//!
//! Each state counts once: by default in one process, and across replicas and restarts with a [`Store`] that they
//! share. Without one, another replica with the same keys accepts a state that was used here, and the handler finishes
//! twice, on answers that the person did give.

mod keys;
mod store;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_elicit_core::seal::{Cipher, NONCE};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::journal::Journal;
use crate::question::QuestionDigest;

pub use keys::{Key, KeyError, Keys};
#[cfg(feature = "sqlite")]
pub use store::SqliteStore;
pub use store::{MemoryStore, Store, StoreError, StoreFuture};

const PREFIX: &str = "me1.";

/// The facts that a sealed state is bound to: this principal, server and request, and nothing else.
#[derive(Debug, Clone)]
pub(crate) struct AssociatedData {
    pub(crate) principal: String,
    pub(crate) audience: String,
    pub(crate) method: &'static str,
    pub(crate) request: QuestionDigest,
}

impl AssociatedData {
    /// Returns the data for a value sealed outside any call, such as a link or a cookie: its kind (`what`), and the
    /// `place` at which it is valid.
    #[cfg(feature = "connect")]
    pub(crate) fn outside_calls(place: &str, what: &'static str) -> Self {
        Self {
            principal: String::new(),
            audience: place.to_owned(),
            method: what,
            request: QuestionDigest::of(&[]),
        }
    }

    fn associated_data(&self, key_id: &str) -> Vec<u8> {
        let mut data = Vec::with_capacity(96);
        for part in [PREFIX, key_id, &self.principal, &self.audience, self.method] {
            data.extend_from_slice(&(part.len() as u64).to_le_bytes());
            data.extend_from_slice(part.as_bytes());
        }
        data.extend_from_slice(self.request.bytes());
        data
    }
}

/// The content of the state.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SealedState {
    /// Unguessable, new in every round: single use is counted by it.
    #[serde(rename = "i")]
    pub(crate) id: String,
    /// The time at which it expires, in milliseconds since 1970.
    #[serde(rename = "x")]
    pub(crate) until_ms: u64,
    #[serde(rename = "r")]
    pub(crate) round: u32,
    #[serde(rename = "j")]
    pub(crate) journal: Journal,
    /// The state of a handler that builds its own rounds, inside ours.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub(crate) by_hand: Option<String>,
}

/// The reason why a state does not open. It goes to the log; the client only learns that the state is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    #[error("the state is malformed")]
    Malformed,
    #[error("the state was sealed with the unknown key {0:?}")]
    UnknownKey(String),
    #[error("the state was changed, or belongs to another principal, server or request")]
    Forged,
    #[error("the state has expired")]
    Expired,
    #[error("the state was used before")]
    Used,
    #[error("the kept state is gone")]
    Gone,
    #[error("no randomness: {0}")]
    NoRandomness(String),
    #[error("the state would be {size} bytes, more than the {limit} allowed")]
    TooLarge { size: usize, limit: usize },
    #[error("the store failed: {0}")]
    Store(String),
}

/// Returns `true` if `state` was sealed here. Others belong to a handler that builds its own rounds.
pub(crate) fn is_ours(state: &str) -> bool {
    state.starts_with(PREFIX)
}

/// Seals `plain` for `bound` under the current key.
pub(crate) fn seal(keys: &Keys, bound: &AssociatedData, plain: &[u8]) -> Result<String, SealError> {
    let key = keys.current();
    let mut nonce = [0; NONCE];
    fill(&mut nonce)?;
    let sealed = Cipher::new(key.bytes())
        .seal(&nonce, &bound.associated_data(key.id()), plain)
        .map_err(|_| SealError::Malformed)?;
    Ok(format!(
        "{PREFIX}{}.{}",
        key.id(),
        URL_SAFE_NO_PAD.encode(sealed)
    ))
}

/// Opens a state that [`seal`] made for the same `bound`.
pub(crate) fn open(keys: &Keys, bound: &AssociatedData, state: &str) -> Result<Vec<u8>, SealError> {
    let rest = state.strip_prefix(PREFIX).ok_or(SealError::Malformed)?;
    let (key_id, sealed) = rest.split_once('.').ok_or(SealError::Malformed)?;
    let sealed = URL_SAFE_NO_PAD
        .decode(sealed)
        .map_err(|_| SealError::Malformed)?;
    if sealed.len() < NONCE {
        return Err(SealError::Malformed);
    }
    let key = keys
        .find(key_id)
        .ok_or_else(|| SealError::UnknownKey(key_id.to_owned()))?;
    Cipher::new(key.bytes())
        .open(&bound.associated_data(key_id), &sealed)
        .map_err(|_| SealError::Forged)
}

/// Seals `value` as JSON.
pub(crate) fn seal_json(
    keys: &Keys,
    bound: &AssociatedData,
    value: &impl Serialize,
) -> Result<String, SealError> {
    let plain = serde_json::to_vec(value).map_err(|_| SealError::Malformed)?;
    seal(keys, bound, &plain)
}

/// Opens a value that [`seal_json`] sealed for the same `bound`.
pub(crate) fn open_json<T: DeserializeOwned>(
    keys: &Keys,
    bound: &AssociatedData,
    state: &str,
) -> Result<T, SealError> {
    parsed(&open(keys, bound, state)?)
}

/// Parses the value that was sealed as JSON.
pub(crate) fn parsed<T: DeserializeOwned>(plain: &[u8]) -> Result<T, SealError> {
    serde_json::from_slice(plain).map_err(|_| SealError::Malformed)
}

/// Returns an unguessable name: 128 random bits.
pub(crate) fn unguessable() -> Result<String, SealError> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[expect(
    clippy::disallowed_methods,
    reason = "nonces are drawn where something is sealed"
)]
fn fill(bytes: &mut [u8]) -> Result<(), SealError> {
    getrandom::fill(bytes).map_err(|error| SealError::NoRandomness(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new(Key::new("k1", [7; 32]).unwrap())
    }

    fn bound() -> AssociatedData {
        AssociatedData {
            principal: "ada".into(),
            audience: "server".into(),
            method: "tools/call",
            request: QuestionDigest::of(&[b"deploy", b"{}"]),
        }
    }

    #[test]
    fn what_was_sealed_opens() {
        let state = seal(&keys(), &bound(), b"journal").unwrap();
        assert!(is_ours(&state) && !state.contains("journal"));
        assert_eq!(open(&keys(), &bound(), &state).unwrap(), b"journal");
    }

    /// A client may hold a state for hours, over an update of the server. The state was sealed by another implementation.
    #[test]
    fn a_state_of_an_earlier_build_opens_and_keeps_its_spelling() {
        let state = "me1.k1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYX0zXCp8A-GuRkhsAGp6Pu7R6XeVZVtnYwslz2wLjgtu8hBLldxaRu3DSTFkcFgNKW3E0w7uVSOoGDe42MiLvo9-ngl2qo2D8sKdxuO0hSe-h-e6KH5cnIQYisbYagKMx41HsrHFA89U5E4q8GUxKRUsCTQUw8soPbOv_w7jlh3IcY_43yGOwOokbPWXrQ-k9FIPAptuAX_RVHJ0KYoJNdPAmjxsSLdRHznW-ES0kIvEeWTmH0ufi2fIu81nHytP9ZTfDRKIDBnCjDGTDZFKQ1Gzsaq3U0808Hmsl2O-AvFO4_IrPpJKi2AHKKXeqbfI84W-ohXsgdOvTKJHldFAxEK6GO-pEhbaQTVgcaiCE2P23N-Fsyc0k9o0IfztYCFdaatzfcbmiCLnO920Gy4NKfbAMEmqxOcm1NKhRyq-qxkI4nG4ES6fUEJTcy_BhaaUa9Cb72qy_5Mzkpv1l3HdkIFe1HlQaaZ3Zber0mCHMf1mEcNPD_vQdGFyLJVy1KfLpk";
        let plain = open(&keys(), &bound(), state).unwrap();
        let spelling = r#"{"i":"AAAAAAAAAAAAAAAAAAAAAA","x":61000,"r":2,"j":{"a":[[{"q":"ncARdU8ify1q726QERU6PQ","n":0},{"r":{"a":"a","c":{"x":1}}}],[{"q":"ncARdU8ify1q726QERU6PQ","n":1},{"w":"too long"}],[{"q":"ncARdU8ify1q726QERU6PQ","n":2},{"p":{"a":"d"}}]],"s":[["start",0,7]],"o":[{"k":"q3","o":{"q":"ncARdU8ify1q726QERU6PQ","n":3},"m":"a?","u":true,"s":1000,"f":500}],"z":true},"h":"own"}"#;
        assert_eq!(String::from_utf8(plain.clone()).unwrap(), spelling);
        let read: SealedState = parsed(&plain).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), spelling);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let state = seal(&keys(), &bound(), b"journal").unwrap();
        let (head, sealed) = state.rsplit_once('.').unwrap();
        let sealed = URL_SAFE_NO_PAD.decode(sealed).unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let forged = format!("{head}.{}", URL_SAFE_NO_PAD.encode(flipped));
            assert_eq!(
                open(&keys(), &bound(), &forged),
                Err(SealError::Forged),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let state = seal(&keys(), &bound(), b"journal").unwrap();
        for index in 0..state.len() {
            let mut changed = state.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(
                open(&keys(), &bound(), &changed).is_err(),
                "character {index}: {changed}"
            );
        }
    }

    #[test]
    fn another_principal_server_method_or_request_is_noticed() {
        let state = seal(&keys(), &bound(), b"journal").unwrap();
        let others = [
            AssociatedData {
                principal: "eve".into(),
                ..bound()
            },
            AssociatedData {
                audience: "other".into(),
                ..bound()
            },
            AssociatedData {
                method: "prompts/get",
                ..bound()
            },
            AssociatedData {
                request: QuestionDigest::of(&[b"deploy", b"{\"x\":1}"]),
                ..bound()
            },
            AssociatedData {
                principal: "adas".into(),
                audience: "erver".into(),
                ..bound()
            },
        ];
        for other in others {
            assert_eq!(
                open(&keys(), &other, &state),
                Err(SealError::Forged),
                "{other:?}"
            );
        }
    }

    #[test]
    fn old_keys_open_and_unknown_keys_do_not() {
        let state = seal(&keys(), &bound(), b"journal").unwrap();
        let rotated =
            Keys::new(Key::new("k2", [8; 32]).unwrap()).and_still(Key::new("k1", [7; 32]).unwrap());
        assert!(open(&rotated, &bound(), &state).is_ok());
        assert!(
            seal(&rotated, &bound(), b"j")
                .unwrap()
                .starts_with("me1.k2.")
        );
        let other = Keys::new(Key::new("k2", [8; 32]).unwrap());
        assert_eq!(
            open(&other, &bound(), &state),
            Err(SealError::UnknownKey("k1".into()))
        );
        let same_id = Keys::new(Key::new("k1", [8; 32]).unwrap());
        assert_eq!(open(&same_id, &bound(), &state), Err(SealError::Forged));
    }

    #[test]
    fn rubbish_is_malformed() {
        for rubbish in [
            "",
            "me1.",
            "me1.k1",
            "me1.k1.",
            "me1.k1.!!!",
            "me1.k1.AAAA",
            "me2.k1.AAAA",
        ] {
            assert_eq!(
                open(&keys(), &bound(), rubbish),
                Err(SealError::Malformed),
                "{rubbish:?}"
            );
        }
    }
}
