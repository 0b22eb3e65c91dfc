//! VAPID (RFC 8292): the gateway's key, and the token that it signs for a push service.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;
use url::Url;

/// The lifetime of a token, in seconds; push services accept at most 24 hours.
const VALID: u64 = 12 * 60 * 60;

/// The gateway's key for web push: P-256, stored as PKCS#8.
pub struct VapidKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl fmt::Debug for VapidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VapidKey(***)")
    }
}

/// A key that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VapidError {
    /// The system has no randomness.
    #[error("cannot make a key for web push")]
    Random,
    /// The stored key is damaged.
    #[error("the key for web push is not a P-256 key in PKCS#8")]
    Key,
}

impl VapidKey {
    /// Generates a key as PKCS#8, for storage. A new key ends every subscription.
    pub fn generate() -> Result<Vec<u8>, VapidError> {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        made.map(|made| made.as_ref().to_vec())
            .map_err(|_| VapidError::Random)
    }

    /// Reads a stored key.
    pub fn from_pkcs8(bytes: &[u8]) -> Result<Self, VapidError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &random);
        Ok(Self {
            pair: pair.map_err(|_| VapidError::Key)?,
            random,
        })
    }

    /// Returns the public key: an uncompressed point, in base64url.
    pub fn public_key(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref())
    }

    /// Returns the value of `Authorization` for an endpoint; `now` in seconds since the epoch.
    pub(super) fn authorization(&self, endpoint: &Url, contact: &str, now: u64) -> Option<String> {
        let header = json!({"typ": "JWT", "alg": "ES256"});
        let claims = json!({
            "aud": endpoint.origin().ascii_serialization(),
            "exp": now + VALID,
            "sub": contact,
        });
        let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).ok()?;
        let signature = URL_SAFE_NO_PAD.encode(signature.as_ref());
        Some(format!(
            "vapid t={signed}.{signature}, k={}",
            self.public_key()
        ))
    }
}
