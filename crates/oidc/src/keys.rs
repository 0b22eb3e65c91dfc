//! The signing keys of an issuer: cached, requested again when a token names an unknown key, and used for a day while
//! the issuer does not respond.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use openidconnect::core::{CoreJsonWebKey, CoreJsonWebKeySet};
use openidconnect::{DiscoveryError, JsonWebKey as _, JsonWebKeySetUrl};
use tokio::sync::Mutex;

use crate::access_token::TokenError;
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

/// The keys of an issuer at one time.
#[derive(Debug)]
pub(crate) struct KeySet {
    keys: Vec<CoreJsonWebKey>,
    fetched_at: Timestamp,
}

impl KeySet {
    /// Returns `true` if it has a key that may have signed the token.
    fn has(&self, token: &Unverified<'_>) -> bool {
        self.candidates(token).next().is_some()
    }

    fn candidates(&self, token: &Unverified<'_>) -> impl Iterator<Item = &CoreJsonWebKey> {
        let kid = token.header.kid.as_deref();
        self.keys.iter().filter(move |key| {
            kid.is_none_or(|kid| key.key_id().is_some_and(|id| id.as_str() == kid))
        })
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
    ) -> Result<(), TokenError> {
        let keys = self.keys(provider, token, now).await?;
        if keys.verifies(token) {
            return Ok(());
        }
        Err(TokenError::Invalid(if keys.has(token) {
            "the signature is not the issuer's"
        } else {
            "the issuer has no such key"
        }))
    }

    async fn keys(
        &self,
        provider: &Provider,
        token: &Unverified<'_>,
        now: Timestamp,
    ) -> Result<Arc<KeySet>, TokenError> {
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
            .ok_or(TokenError::Unavailable {
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
    let keys = set.keys().iter().take(MOST_KEYS).cloned().collect();
    Ok(KeySet {
        keys,
        fetched_at: now,
    })
}
