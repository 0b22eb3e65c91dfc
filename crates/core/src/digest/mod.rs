//! Digests: SHA-256 over parts, with or without a key, and the canonical spelling of JSON in them.
//!
//! Each part is preceded by its length (8 bytes, little-endian), so that two different lists of parts never have the
//! same bytes. Digests are stored, sealed and sent. A change of their input would make recorded questions, grants and
//! request states unknown, so tests check the values.

mod canonical;

use std::fmt;

use data_encoding::HEXLOWER;
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

pub use self::canonical::{MAX_ARGUMENT_DEPTH, canonical, canonical_value};
use crate::view::sanitize;
use crate::wire::{CallDefect, CallFrame, CallKind};

/// A whole SHA-256.
pub type Digest = [u8; 32];

/// Returns the SHA-256 of parts.
///
/// ```
/// use mcp_elicit_core::digest::of_parts;
///
/// assert_ne!(of_parts(["ab", "c"]), of_parts(["a", "bc"]));
/// ```
pub fn of_parts<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Digest {
    let mut hash = Sha256::new();
    each_piece(parts, |piece| hash.update(piece));
    hash.finalize().into()
}

/// Returns the first `bytes` bytes of a digest, in hex.
pub fn hex(digest: &Digest, bytes: usize) -> String {
    HEXLOWER.encode(&digest[..bytes.min(digest.len())])
}

/// The largest arguments that are brought into one spelling, in bytes: more than the longest that a person is shown, whose
/// characters have at most four bytes. Beyond it, only time and memory would grow.
const MAX_CANONICAL_BYTES: usize = 5 * sanitize::ARGUMENTS;

/// Returns the digest of a call, in hex: equal for two calls of the same target with the same arguments, in any order
/// and spelling. Arguments that are too long to be shown to a person must be spelled alike, beyond 5 MiB.
///
/// # Errors
/// If the arguments have no single spelling.
pub fn of_call(kind: CallKind, call: &CallFrame<'_>) -> Result<String, CallDefect> {
    let digest = match call.arguments {
        Some(large) if large.len() > MAX_CANONICAL_BYTES => {
            of_parts([kind.word(), &call.target, "as written", large])
        }
        Some(_) | None => of_parts([kind.word(), &call.target, &call.canonical_arguments()?]),
    };
    Ok(HEXLOWER.encode(&digest))
}

/// The key of digests (HMAC with SHA-256) that only its owner can compute.
#[derive(Clone)]
pub struct DigestKey(Hmac<Sha256>);

impl DigestKey {
    /// Creates a key from any number of bytes.
    #[expect(clippy::missing_panics_doc, reason = "HMAC takes a key of any length")]
    pub fn new(key: &[u8]) -> Self {
        Self(Hmac::new_from_slice(key).expect("a key of any length will do"))
    }

    /// Returns the keyed digest of parts.
    pub fn of_parts<P: AsRef<[u8]>>(&self, parts: impl IntoIterator<Item = P>) -> Digest {
        let mut mac = self.0.clone();
        each_piece(parts, |piece| mac.update(piece));
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestKey(..)")
    }
}

/// Calls `add` with the length of each part and the part itself.
fn each_piece<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>, mut add: impl FnMut(&[u8])) {
    for part in parts {
        let part = part.as_ref();
        add(&(part.len() as u64).to_le_bytes());
        add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FrameIndex;

    #[test]
    fn stored_digests_stay_as_they_are() {
        let digest = of_parts(["ab", "c"]);
        assert_eq!(
            hex(&digest, 32),
            "43ee655579de01ca739b3f95c1c2d3f46d353b2c0df818064ea594506cdb2617"
        );
        assert_eq!(hex(&digest, 8), hex(&digest, 32)[..16]);
        assert_eq!(hex(&digest, 99), hex(&digest, 32));
        let keyed = DigestKey::new(&[7; 32]).of_parts(["ab", "c"]);
        assert_eq!(
            hex(&keyed, 32),
            "cb26cbd8f92f96666adb85ea48780f04962ec8ae8998cd24c8bfb1721f19bb3c"
        );
        let frame = r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"b":[1.0, "\u0041"],"a":{}}}}"#;
        let index = FrameIndex::read(frame.as_bytes()).unwrap();
        let call = CallFrame::read(frame, &index).unwrap();
        assert_eq!(
            of_call(CallKind::Tool, &call).unwrap(),
            "3d51a7d8346dc832cc8063d0d4a76f632740c3171f687232c9a263bf3c8ce183"
        );
    }

    #[test]
    fn arguments_that_nobody_is_shown_are_digested_as_they_are_written() {
        let digest = |arguments: &str| {
            let frame = format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
            );
            let index = FrameIndex::read(frame.as_bytes()).unwrap();
            of_call(CallKind::Tool, &CallFrame::read(&frame, &index).unwrap()).unwrap()
        };
        let long = "x".repeat(MAX_CANONICAL_BYTES);
        let with = |rest: &str| format!(r#"{{"a":"{long}",{rest}}}"#);
        assert_eq!(digest(&with(r#""b":1"#)), digest(&with(r#""b":1"#)));
        assert_ne!(digest(&with(r#""b":1"#)), digest(&with(r#""b":2"#)));
        assert_ne!(digest(&with(r#""b":1"#)), digest(&with(r#" "b":1"#)));
        // Of a call in which a member is there twice, no one is shown anything either.
        assert_ne!(digest(&with(r#""b":1"#)), digest(&with(r#""b":1,"b":1"#)));
        assert_eq!(digest(r#"{"a":1,"b":2}"#), digest(r#"{ "b":2,"a":1}"#));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let key = DigestKey::new(b"k");
        assert_ne!(of_parts(["ab", "c"]), of_parts(["a", "bc"]));
        assert_ne!(of_parts(["a"]), of_parts(["a", ""]));
        assert_ne!(key.of_parts(["ab", "c"]), key.of_parts(["a", "bc"]));
        assert_ne!(key.of_parts(["a"]), DigestKey::new(b"l").of_parts(["a"]));
        assert_eq!(format!("{key:?}"), "DigestKey(..)");
    }
}
