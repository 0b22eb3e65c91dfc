//! JSON Web Tokens in their compact form (RFC 7515, 3.1).

use data_encoding::BASE64URL_NOPAD;
use openidconnect::core::CoreJwsSigningAlgorithm;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The parts of a token before any check.
pub(crate) struct Unverified<'t> {
    pub(crate) header: Header,
    /// The signed bytes: header and payload as written.
    pub(crate) signed: &'t [u8],
    pub(crate) claims: Map<String, Value>,
    pub(crate) signature: Vec<u8>,
}

/// The relevant members of a token's header (RFC 7515, 4.1).
#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    pub(crate) alg: CoreJwsSigningAlgorithm,
    #[serde(default)]
    pub(crate) kid: Option<String>,
    #[serde(default)]
    pub(crate) typ: Option<String>,
    /// Extensions that a reader must understand. None is supported.
    #[serde(default)]
    pub(crate) crit: Option<Value>,
}

/// Parses a token; `None` for any other text.
pub(crate) fn read(text: &str) -> Option<Unverified<'_>> {
    let (signed, signature) = text.rsplit_once('.')?;
    let (header, payload) = signed.split_once('.')?;
    let decoded = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes()).ok();
    let Value::Object(claims) = serde_json::from_slice(&decoded(payload)?).ok()? else {
        return None;
    };
    Some(Unverified {
        header: serde_json::from_slice(&decoded(header)?).ok()?,
        signed: signed.as_bytes(),
        claims,
        signature: decoded(signature)?,
    })
}

/// Returns the claims of a verified token.
pub(crate) fn payload(text: &str) -> Option<Map<String, Value>> {
    read(text).map(|token| token.claims)
}
