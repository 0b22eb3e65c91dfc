//! The signing keys of an issuer: cached, requested again when a token names an unknown key, and used for a day while
//! the issuer does not respond.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use mcp_elicit_core::lifecycle::Timestamp;
use openidconnect::core::{CoreJsonWebKey, CoreJsonWebKeySet};
use openidconnect::{DiscoveryError, JsonWebKey as _, JsonWebKeySetUrl};
use tokio::sync::Mutex;

use crate::access_token::AccessTokenError;
use crate::jwt::Unverified;
use crate::{OidcError, Provider};

/// The time for which keys stay fresh.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// The minimum interval between two requests to an issuer.
const REFETCH: Duration = Duration::from_secs(30);
/// The time for which the last keys are used while the issuer does not respond.
const LONGEST_OUTAGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The time limit for an issuer's keys, during which callers wait.
const ANSWERS: Duration = Duration::from_secs(5);
/// The most keys of a set that are read.
const MOST_KEYS: usize = 64;

/// The smallest RSA key that may sign a token, in bits (RFC 7518, 3.3).
const LEAST_RSA_BITS: usize = 2_048;

/// The keys of an issuer at one time.
#[derive(Debug)]
pub(crate) struct KeySet {
    /// Those that may sign tokens.
    keys: Vec<CoreJsonWebKey>,
    /// RSA keys that are too short.
    weak: Vec<CoreJsonWebKey>,
    fetched_at: Timestamp,
}

impl KeySet {
    /// Returns `true` if it has a key that may have signed the token.
    fn has(&self, token: &Unverified<'_>) -> bool {
        self.candidates(token).next().is_some()
    }

    fn new(keys: impl Iterator<Item = CoreJsonWebKey>, fetched_at: Timestamp) -> Self {
        let (keys, weak) = keys.partition(is_strong);
        Self {
            keys,
            weak,
            fetched_at,
        }
    }

    fn candidates(&self, token: &Unverified<'_>) -> impl Iterator<Item = &CoreJsonWebKey> {
        self.keys.iter().filter(|key| is_named(key, token))
    }

    /// Returns the reason why none of its keys signed the token.
    fn refusal(&self, token: &Unverified<'_>) -> &'static str {
        if self.has(token) {
            "the signature is not the issuer's"
        } else if self.weak.iter().any(|key| is_named(key, token)) {
            "the issuer's key is an RSA key of fewer than 2048 bits"
        } else {
            "the issuer has no such key"
        }
    }

    /// Returns `true` if one of its keys signed the token.
    fn verifies(&self, token: &Unverified<'_>) -> bool {
        self.candidates(token).any(|key| {
            key.verify_signature(&token.header.alg, token.signed, &token.signature)
                .is_ok()
        })
    }

    fn age(&self, now: Timestamp) -> Duration {
        now.since(self.fetched_at)
    }
}

/// Returns `true` if the token names the key, or no key.
fn is_named(key: &CoreJsonWebKey, token: &Unverified<'_>) -> bool {
    let kid = token.header.kid.as_deref();
    kid.is_none_or(|kid| key.key_id().is_some_and(|id| id.as_str() == kid))
}

/// Returns `true` unless it is an RSA key that is too short.
pub(crate) fn is_strong(key: &CoreJsonWebKey) -> bool {
    let Ok(key) = serde_json::to_value(key) else {
        return false;
    };
    if key["kty"] != "RSA" {
        return true;
    }
    let modulus = key["n"].as_str().unwrap_or_default();
    let modulus = BASE64URL_NOPAD.decode(modulus.trim_end_matches('=').as_bytes());
    let modulus = modulus.unwrap_or_default();
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros).copied().unwrap_or(0);
    let unused = usize::try_from(first.leading_zeros()).unwrap_or(0);
    8 * (modulus.len() - zeros) >= LEAST_RSA_BITS + unused
}

/// The keys of one issuer.
#[derive(Debug, Default)]
pub(crate) struct KeyCache {
    current: RwLock<Option<Arc<KeySet>>>,
    /// The time of the last request to the issuer. Locked during a request.
    asked_at: Mutex<Option<Timestamp>>,
}

impl KeyCache {
    /// Returns the age of the keys; `None` if there are none yet.
    pub(crate) fn age(&self, now: Timestamp) -> Option<Duration> {
        self.current().map(|keys| keys.age(now))
    }

    fn current(&self) -> Option<Arc<KeySet>> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Checks the signature of a token.
    ///
    /// # Errors
    /// If no key of the issuer signed it, or the keys are not available.
    pub(crate) async fn check(
        &self,
        provider: &Provider,
        token: &Unverified<'_>,
        now: Timestamp,
    ) -> Result<(), AccessTokenError> {
        let keys = self.keys(provider, token, now).await?;
        if keys.verifies(token) {
            return Ok(());
        }
        Err(AccessTokenError::Invalid(keys.refusal(token)))
    }

    async fn keys(
        &self,
        provider: &Provider,
        token: &Unverified<'_>,
        now: Timestamp,
    ) -> Result<Arc<KeySet>, AccessTokenError> {
        let good = |keys: &Arc<KeySet>| keys.age(now) < FRESH && keys.has(token);
        let current = self.current();
        if let Some(keys) = current.clone().filter(good) {
            return Ok(keys);
        }
        let serves = |keys: &Arc<KeySet>| keys.age(now) < LONGEST_OUTAGE;
        let mut asked_at = match self.asked_at.try_lock() {
            Ok(asked_at) => asked_at,
            // A request is running: a token with a known key need not wait for it.
            Err(_) => match current.filter(|keys| serves(keys) && keys.has(token)) {
                Some(keys) => return Ok(keys),
                None => self.asked_at.lock().await,
            },
        };
        let current = self.current();
        if let Some(keys) = current.clone().filter(good) {
            return Ok(keys);
        }
        let asked_lately = asked_at.is_some_and(|at| now.since(at) < REFETCH);
        if !asked_lately {
            *asked_at = Some(now);
            let fetched = tokio::time::timeout(ANSWERS, fetch(provider, now)).await;
            let why = match fetched {
                Ok(Ok(keys)) => {
                    let keys = Arc::new(keys);
                    let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                    *current = Some(keys.clone());
                    return Ok(keys);
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the provider does not answer in time".to_owned(),
            };
            tracing::warn!(target: "mcp_elicit", %why, "the keys of the issuer could not be fetched");
        }
        // The issuer's current keys are unknown: a token with a key that is not in the last set may be valid.
        let fresh = |keys: &Arc<KeySet>| keys.age(now) < FRESH;
        current
            .filter(|keys| fresh(keys) || serves(keys) && keys.has(token))
            .ok_or(AccessTokenError::Unavailable {
                retry_after: REFETCH,
            })
    }
}

async fn fetch(provider: &Provider, now: Timestamp) -> Result<KeySet, OidcError> {
    let metadata = provider.metadata(now.as_millis()).await?;
    let address = metadata.jwks_uri.clone();
    let address = address.ok_or_else(|| OidcError::Setup("it publishes no keys".to_owned()))?;
    let address =
        JsonWebKeySetUrl::new(address).map_err(|error| OidcError::Odd(error.to_string()))?;
    let set = CoreJsonWebKeySet::fetch_async(&address, provider.http()).await;
    let set = set.map_err(|error| match error {
        DiscoveryError::Request(error) => error.into(),
        other => OidcError::Odd(other.to_string()),
    })?;
    let keys = KeySet::new(set.keys().iter().take(MOST_KEYS).cloned(), now);
    if !keys.weak.is_empty() {
        tracing::warn!(target: "mcp_elicit", keys = keys.weak.len(), "the issuer publishes RSA keys of fewer than 2048 bits, whose tokens are refused");
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt;

    /// The bits, the modulus, and a token of `RS256` with the claims `{}`.
    const RSA: [(usize, &str, &str); 2] = [
        (
            1024,
            "uCNkKtjVIPSe3Kg1GyAPpFlddMM9gAp6X63_Exef-VIMlX2BafVd_G_hCa30puY2NvCd5ssd6dFDlhxQ9mZ4ntp45-QHTHqRzEK9r_RLobYAmSTC-qbWJ4k2SiFqNYsNamzWORPNlITdlMBOmUZdutaTynQwDRwqTazFMZHNmr8",
            "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYS0xMDI0In0.e30.jxzWyuilw682JCwk5dRvyX7Q-G2XdBFezqbXTI2XvesQRrbKpAQQiPOehcSL4kM5rul7Hjki73JwLF73L9aUQW-_6egscdezSt_5rPmWO8ltFwd--ULhOQTYN8XF78HBahb4r_LrzZFr3fN2ln0YHbE3XBFX6OSdM1_9QsJp5BQ",
        ),
        (
            2048,
            "3XaE6yNY8gLxg5qu9UVymHsNSeAbrng3uBSAuzccITY-SzDk_0Id7X__rbp6EGFY-aLDId_BwrhTp2k-_4qFcH30qAUJoMHg-Sbt9vAwKKJzVJQrPV_cbQ9xXS5rVdRvuUqpz0puZm1uTTlkZtkF1kUULCsroCOnR40yl05VCFcjZAjYuY66hQbOxCLS_WKLJDKDkscvv20QyuwlWjiVT9z7mxj_Rta5aiuzbnv9DheUL7glIUPyakqkV-pt9qCnUOEhdQvYJ7PGoeDwAcw-rrsck24WoeahswF4-Wl6Q4U-Lw_Q4BewONWttZNCBEGaKdhqrDktIbMOAPKMuJbqXw",
            "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYS0yMDQ4In0.e30.GUqMxP5_aFL4qOuZryBBw5GwtOgMjHE8Gw6aZli_N4KFBvLKmouA2oB5N2esEJUEY_zn4y4Y2c_59oLAR0bYC_tHE2j7vmnDGhVpGJ14dBtF8eY7q2UeuofvEcVhgxmQxd1f6E4rYO8LNcmi3NNNw6p_GiTA0v-SOOdySgQEBLeT5rzVA1VgyDRfyo6pbZGnoFUtSbAl1Sj6WSpxOADKpZv0z2VNZzjJOZaJsXrsIOTVrEZaodGm1f36eerLuY5aKtrmQnM9YQnhFgPrep3vcTaBbcVeZtHLJF-R8wYGaSywrMBXOhoRPSO5seueEI7lijw7Byh7ZwpsqV6bH9iuDg",
        ),
    ];

    #[test]
    fn a_short_rsa_key_signs_nothing() {
        for (bits, modulus, token) in RSA {
            let key = serde_json::json!({"kty": "RSA", "kid": format!("rsa-{bits}"), "n": modulus, "e": "AQAB"});
            let key: CoreJsonWebKey = serde_json::from_value(key).unwrap();
            let token = jwt::read(token).unwrap();
            let signed = key.verify_signature(&token.header.alg, token.signed, &token.signature);
            assert!(signed.is_ok(), "the key signed it");
            let keys = KeySet::new([key].into_iter(), Timestamp::from_millis(0));
            let is_long = bits >= LEAST_RSA_BITS;
            assert_eq!(keys.verifies(&token), is_long, "{bits}");
            let told = keys.refusal(&token);
            assert_eq!(told.contains("2048 bits"), !is_long, "{told}");
        }
    }

    #[test]
    fn leading_zeros_make_no_key_longer() {
        let key = |modulus: &[u8]| -> CoreJsonWebKey {
            let modulus = BASE64URL_NOPAD.encode(modulus);
            serde_json::from_value(serde_json::json!({"kty": "RSA", "n": modulus, "e": "AQAB"}))
                .unwrap()
        };
        assert!(is_strong(&key(&[0xff; 256])));
        assert!(is_strong(&key(&[&[0][..], &[0x80; 256]].concat())));
        assert!(!is_strong(&key(&[0x7f; 256])));
        assert!(!is_strong(&key(&[&[0; 128][..], &[0xff; 128]].concat())));
        assert!(!is_strong(&key(&[])));
    }
}
