//! The gateways of a shared record that take each other's requests, and the proof that a row of the record names one.
//!
//! Each such gateway has an address and a key in its row, with a keyed hash of both and of its name. The key of that hash
//! is derived from the key of identities, which only gateways have: whoever can only write to the record cannot become one,
//! or lead requests to another address.

use std::fmt;
use std::io;

use mcp_elicit_core::digest::DigestKey;

use crate::IdentityKey;

/// The longest address, in bytes: a host name has at most 253.
const LONGEST_ADDRESS: usize = 264;
/// The longest key, in bytes: one of Ed25519 has 44.
const LONGEST_KEY: usize = 512;
/// The purpose of the derived key.
const PURPOSE: &str = "gateways that take forwarded requests";

/// The key of the proofs in rows.
#[derive(Clone, Debug)]
pub struct PeerProof(DigestKey);

/// The address and the key that a gateway puts into its row.
#[derive(Clone, Debug)]
pub struct PeerOffer {
    /// Host and port at which it takes requests of other gateways.
    pub address: String,
    /// Its public key (DER of a `SubjectPublicKeyInfo`).
    pub key: Vec<u8>,
    /// The key of the proof in its row.
    pub proof: PeerProof,
}

/// A running gateway that takes requests of other gateways, according to its row, whose proof is right.
#[derive(Clone, PartialEq, Eq)]
pub struct Peer {
    name: String,
    address: String,
    key: Vec<u8>,
}

/// The columns of a row, which anyone may have written who can write to the record.
#[derive(Clone, Debug, Default)]
pub struct PeerColumns {
    /// The name of the gateway.
    pub name: String,
    /// Its address; `None` if it takes no requests.
    pub address: Option<String>,
    /// Its public key.
    pub key: Option<Vec<u8>>,
    /// The proof.
    pub proof: Option<Vec<u8>>,
}

impl PeerProof {
    /// Derives the key of proofs.
    pub fn from_identity(identity: &IdentityKey) -> Self {
        Self(DigestKey::new(&identity.derive(PURPOSE)))
    }

    /// Returns the proof for a row.
    pub fn of(&self, name: &str, address: &str, key: &[u8]) -> [u8; 32] {
        self.0.of_parts([name.as_bytes(), address.as_bytes(), key])
    }

    /// Returns the gateway of a row; `None` if it takes no requests, or the proof is wrong.
    pub fn peer(&self, row: PeerColumns) -> Option<Peer> {
        let (name, address, key) = (row.name, row.address?, row.key?);
        if key.len() > LONGEST_KEY || !is_address(&address) {
            return None;
        }
        let (known, found) = (self.of(&name, &address, &key), row.proof?);
        // No time tells at which byte they differ.
        let differences = known
            .iter()
            .zip(&found)
            .fold(0, |all, (a, b)| all | (a ^ b));
        let is_right = found.len() == known.len() && differences == 0;
        is_right.then_some(Peer { name, address, key })
    }
}

impl Peer {
    /// Returns the name of the gateway.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the public key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

/// Formats the name only.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Peer");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns `true` if this is a host and a port, such as `10.0.0.5:8443`, `[fd00::5]:8443` or `gateway-1:8443`.
pub fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok_and(|port| port != 0);
    let is_host = match host.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok()),
        None => {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        }
    };
    text.len() <= LONGEST_ADDRESS && is_port && is_host
}

/// Returns an unguessable id of a session of the gateway of this name.
///
/// # Errors
/// If the system has no randomness.
pub fn session_id(gateway: &str) -> io::Result<String> {
    Ok(format!("r{gateway}-{}", crate::encryption::random_id()?))
}

/// The length of a gateway's name, and of the random part of a session's id, in letters.
const ID: usize = 32;

/// Returns the name of the gateway that made the id of a session; `None` for any other text.
pub fn gateway_of_session(id: &str) -> Option<&str> {
    let (gateway, rest) = id.strip_prefix('r')?.split_once('-')?;
    let is_id = |text: &str| {
        text.len() == ID
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
    };
    (is_id(gateway) && is_id(rest)).then_some(gateway)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "0123456789abcdef0123456789abcdef";

    fn proof(key: u8) -> PeerProof {
        PeerProof(DigestKey::new(&[key; 32]))
    }

    fn row() -> PeerColumns {
        let (address, key) = ("10.0.0.5:8443", vec![1, 2, 3]);
        PeerColumns {
            name: NAME.to_owned(),
            address: Some(address.to_owned()),
            proof: Some(proof(7).of(NAME, address, &key).to_vec()),
            key: Some(key),
        }
    }

    #[test]
    fn a_row_is_believed_only_as_its_gateway_wrote_it() {
        let peer = proof(7).peer(row()).unwrap();
        assert_eq!(peer.name(), NAME);
        assert_eq!(peer.address(), "10.0.0.5:8443");
        assert_eq!(peer.key(), [1, 2, 3]);
        assert!(!format!("{peer:?}").contains("8443"));
        assert_eq!(proof(8).peer(row()), None, "another identity.key");
        let changes: [fn(&mut PeerColumns); 12] = [
            |row| row.name.replace_range(..1, "1"),
            |row| row.address = Some("10.0.0.6:8443".to_owned()),
            |row| row.address = None,
            |row| row.key = Some(vec![1, 2, 4]),
            |row| row.key = None,
            |row| row.key = Some(Vec::new()),
            |row| row.proof = None,
            |row| row.proof = Some(Vec::new()),
            |row| row.proof = Some(vec![0; 32]),
            |row| row.proof.as_mut().unwrap()[31] ^= 1,
            |row| row.proof.as_mut().unwrap().truncate(31),
            |row| row.proof.as_mut().unwrap().push(0),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut row = row();
            change(&mut row);
            assert_eq!(proof(7).peer(row), None, "{number}");
        }
        // A byte that moves from one column to the next.
        let moved = PeerColumns {
            address: Some("10.0.0.5:844".to_owned()),
            key: Some(vec![b'3', 1, 2, 3]),
            ..row()
        };
        assert_eq!(proof(7).peer(moved), None);
        // Not even with a right proof.
        for address in ["", "10.0.0.5", "a b:1", "a:1/x"] {
            let signed = PeerColumns {
                address: Some(address.to_owned()),
                proof: Some(proof(7).of(NAME, address, &[1]).to_vec()),
                key: Some(vec![1]),
                name: NAME.to_owned(),
            };
            assert_eq!(proof(7).peer(signed), None, "{address}");
        }
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for right in [
            "10.0.0.5:8443",
            "[::1]:1",
            "[fd00::5]:65535",
            "gateway-1.internal:8443",
            "a_b:80",
        ] {
            assert!(is_address(right), "{right}");
        }
        let long = format!("{}:1", "a".repeat(300));
        for wrong in [
            "",
            ":",
            ":1",
            "a",
            "a:",
            "a:0",
            "a:65536",
            "a:+1",
            "a: 1",
            "a b:1",
            "a:1:2",
            "::1:80",
            "[::1]",
            "[a]:1",
            "[::1:1",
            "a/b:1",
            "a@b:1",
            "http://a:1",
            "ä:1",
            "a:1\n",
            "a\r\nb:1",
            &long,
        ] {
            assert!(!is_address(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn the_id_of_a_session_names_its_gateway_and_is_visible_ascii() {
        let (id, other) = (session_id(NAME).unwrap(), session_id(NAME).unwrap());
        assert_ne!(id, other);
        assert_eq!(gateway_of_session(&id), Some(NAME));
        // 2025-11-25, transports: visible ASCII characters.
        assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        let random = "f".repeat(32);
        let long = format!("r{NAME}-{random}0");
        let too_long = format!("r{}-{random}", "0".repeat(10_000));
        let upper = format!("r{}-{random}", NAME.to_uppercase());
        let injected = format!("r{}\"'-{random}", &NAME[..30]);
        let twice = format!("r{NAME}-{NAME}-{random}");
        let unicode = format!("r{}é-{random}", &NAME[..30]);
        let no_random = format!("r{NAME}-");
        let no_dash = format!("r{NAME}{random}");
        let other_letter = format!("s{NAME}-{random}");
        for wrong in [
            "",
            "r",
            "r-",
            "-",
            NAME,
            &random,
            &long,
            &too_long,
            &upper,
            &injected,
            &twice,
            &unicode,
            &no_random,
            &no_dash,
            &other_letter,
        ] {
            assert_eq!(gateway_of_session(wrong), None, "{wrong}");
        }
    }
}
