//! A checkpoint of the audit, signed with a key that is derived from the record's `identity.key`. Whoever has the public key
//! can tell who made it, without the record.

use std::path::Path;

use data_encoding::HEXLOWER;
use mcp_elicit_record::{IdentityKey, state_file};
use ring::signature::{
    ED25519, ED25519_PUBLIC_KEY_LEN, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The largest file of checkpoints, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// The purpose of the keyed hash that checkpoints of earlier versions have instead of a signature.
const MAC: &str = "audit checkpoint";
/// The purpose of the key that signs.
const SIGNING: &str = "audit checkpoint signature";
/// The first line of what is signed.
const SIGNED: &str = "mcp-elicit audit checkpoint 1";

/// The end of the chain at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Checkpoint {
    /// The time, in milliseconds since 1970.
    pub(super) at: u64,
    /// The number of the last event.
    pub(super) events: u64,
    /// Its hash, which depends on all before it.
    pub(super) hash: String,
    /// The public key of the signature, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The Ed25519 signature of the members before, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    /// Instead of both: the hash of the members before with the key of the record, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
}

/// The key that signs the checkpoints of a record.
pub(super) struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    pub(super) fn of(key: &IdentityKey) -> Result<Self, Failure> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&key.derive(SIGNING));
        // Every 32 bytes are a seed.
        pair.map(Self)
            .map_err(|_| Failure::refused("the key of the record cannot sign"))
    }

    /// Returns the public key, in hex.
    pub(super) fn public(&self) -> String {
        HEXLOWER.encode(self.0.public_key().as_ref())
    }
}

impl Checkpoint {
    pub(super) fn new(key: &SigningKey, at: u64, events: u64, hash: String) -> Self {
        let signature = key.0.sign(signed_text(at, events, &hash).as_bytes());
        Self {
            at,
            events,
            hash,
            key: Some(key.public()),
            signature: Some(HEXLOWER.encode(signature.as_ref())),
            mac: None,
        }
    }

    /// Returns the public key, if the signature is its own.
    pub(super) fn signer(&self) -> Option<&str> {
        let (key, signature) = (self.key.as_deref()?, self.signature.as_deref()?);
        let public = HEXLOWER.decode(key.as_bytes()).ok()?;
        let signature = HEXLOWER.decode(signature.as_bytes()).ok()?;
        let text = signed_text(self.at, self.events, &self.hash);
        let public = UnparsedPublicKey::new(&ED25519, public);
        public.verify(text.as_bytes(), &signature).ok()?;
        Some(key)
    }

    /// Returns `true` if it was made with the key of this record.
    fn is_of(&self, key: &IdentityKey, signing: &SigningKey) -> bool {
        let Some(mac) = &self.mac else {
            return self.signer() == Some(&signing.public());
        };
        let (at, events) = (self.at.to_be_bytes(), self.events.to_be_bytes());
        *mac == key.hash(MAC, &[&at, &events, self.hash.as_bytes()])
    }
}

/// Returns `true` if this can be a public key, in hex.
pub(super) fn is_public_key(text: &str) -> bool {
    text.len() == 2 * ED25519_PUBLIC_KEY_LEN && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn signed_text(at: u64, events: u64, hash: &str) -> String {
    format!("{SIGNED}\n{at}\n{events}\n{hash}\n")
}

/// Reads the checkpoints of a file, one on each line, with the number of the line.
///
/// # Errors
/// If it cannot be read, or has none.
pub(super) fn read(path: &Path) -> Result<Vec<(usize, Checkpoint)>, Failure> {
    let shown = path.display();
    let hint = "name a file that `mcp-elicit audit checkpoint` wrote.";
    let bytes = state_file::read_at_most(path, LARGEST).map_err(|error| {
        let failure = Failure::usage(format!("{shown} cannot be read"));
        failure.because(error).hint(hint)
    })?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    let lines = (1..).zip(text.lines().map(str::trim));
    let checkpoints = lines.filter(|(_, line)| !line.is_empty());
    let checkpoints = checkpoints.map(|(number, line)| {
        let checkpoint = serde_json::from_str(line).map_err(|_| {
            Failure::usage(format!("line {number} of {shown} is not a checkpoint")).hint(hint)
        })?;
        Ok((number, checkpoint))
    });
    let checkpoints: Vec<_> = checkpoints.collect::<Result<_, Failure>>()?;
    if checkpoints.is_empty() {
        return Err(Failure::usage(format!("{shown} has no checkpoint")).hint(hint));
    }
    Ok(checkpoints)
}

/// Reads the checkpoints of a file that were made with the key of this record.
///
/// # Errors
/// Also if one was not.
pub(super) fn read_own(path: &Path, key: &IdentityKey) -> Result<Vec<Checkpoint>, Failure> {
    let signing = SigningKey::of(key)?;
    let checkpoints = read(path)?.into_iter().map(|(number, checkpoint)| {
        if checkpoint.is_of(key, &signing) {
            return Ok(checkpoint);
        }
        let shown = path.display();
        let why = format!(
            "the checkpoint in line {number} of {shown} was changed, or is of another record"
        );
        Err(Failure::refused(why)
            .hint("use the checkpoint as it was written, and the identity.key of its record."))
    });
    checkpoints.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_every_member_and_of_one_key() {
        let keys = [(); 2].map(|()| IdentityKey::random().unwrap());
        let signing = keys.each_ref().map(|key| SigningKey::of(key).unwrap());
        let made = Checkpoint::new(&signing[0], 5, 7, "k1:00ff".to_owned());
        let signer = signing[0].public();
        assert_eq!(made.signer(), Some(signer.as_str()));
        let line = serde_json::to_string(&made).unwrap();
        let again: Checkpoint = serde_json::from_str(&line).unwrap();
        assert_eq!(again, made);
        assert!(again.is_of(&keys[0], &signing[0]));
        assert!(!again.is_of(&keys[1], &signing[1]));
        for (from, to) in [
            ("\"at\":5", "\"at\":6"),
            ("\"events\":7", "\"events\":8"),
            ("k1:00ff", "k1:00fe"),
            (&signer, &signing[1].public()),
            (&signer, "00"),
            (&signer, "not hex"),
        ] {
            assert!(line.contains(from), "{line}");
            let changed: Checkpoint = serde_json::from_str(&line.replace(from, to)).unwrap();
            assert_eq!(changed.signer(), None, "{changed:?}");
        }
    }

    #[test]
    fn a_checkpoint_of_an_earlier_version_is_still_one_of_its_record() {
        let keys = [(); 2].map(|()| IdentityKey::random().unwrap());
        let hash = "k1:00ff";
        let parts: [&[u8]; 3] = [&5_u64.to_be_bytes(), &7_u64.to_be_bytes(), hash.as_bytes()];
        let mac = keys[0].hash(MAC, &parts);
        let line = format!(r#"{{"at":5,"events":7,"hash":"{hash}","mac":"{mac}"}}"#);
        let read: Checkpoint = serde_json::from_str(&line).unwrap();
        assert_eq!(read.signer(), None);
        for (key, is_own) in keys.iter().zip([true, false]) {
            assert_eq!(read.is_of(key, &SigningKey::of(key).unwrap()), is_own);
        }
    }
}
