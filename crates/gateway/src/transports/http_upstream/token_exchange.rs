//! Tokens for one server, exchanged for those of callers (RFC 8693). A caller's own token is never sent there.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::api_tokens;
use mcp_elicit_oidc::Provider;
use mcp_elicit_record::clock::now;
use sha2::{Digest as _, Sha256};

/// The time before its expiry at which a token is no longer used.
const MARGIN: Duration = Duration::from_secs(30);
/// The most cached tokens.
const MOST: usize = 10_000;

type TokenDigest = [u8; 32];

/// The exchange of callers' tokens for those of one server.
pub(crate) struct TokenExchange {
    provider: Provider,
    resource: String,
    scopes: Vec<String>,
    /// Exchanged tokens by the SHA-256 of the caller's, with the time until which they are used.
    exchanged: Mutex<HashMap<TokenDigest, (HeaderValue, Timestamp)>>,
}

impl fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenExchange")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

impl TokenExchange {
    /// Creates the exchange at this provider for this resource.
    pub(crate) fn new(provider: Provider, resource: String, scopes: Vec<String>) -> Arc<Self> {
        Arc::new(Self {
            provider,
            resource,
            scopes,
            exchanged: Mutex::default(),
        })
    }

    /// Returns the `Authorization` for the server in place of a caller's.
    ///
    /// # Errors
    /// If the caller has no token but an API key, which is for the gateway only, or if the issuer returns none. In
    /// words.
    pub(super) async fn authorization(
        &self,
        callers: &HeaderValue,
    ) -> Result<Option<HeaderValue>, String> {
        let Some(token) = bearer(callers) else {
            return Ok(None);
        };
        if api_tokens::has_prefix(token) {
            return Err(
                "no token for the server: a caller with an API key has no token to exchange"
                    .to_owned(),
            );
        }
        let digest: TokenDigest = Sha256::digest(token.as_bytes()).into();
        let now = now();
        let known = self.exchanged().get(&digest).cloned();
        if let Some((value, _)) = known.filter(|(_, until)| now < *until) {
            return Ok(Some(value));
        }
        let exchanged = self
            .provider
            .exchange_token(token, &self.resource, &self.scopes, now)
            .await
            .map_err(|error| format!("no token for the server was to be had: {error}"))?;
        let mut value = HeaderValue::try_from(format!("Bearer {}", exchanged.reveal()))
            .map_err(|_| "the token for the server fits no header".to_owned())?;
        value.set_sensitive(true);
        let until = now.after(exchanged.lifetime().saturating_sub(MARGIN));
        let mut kept = self.exchanged();
        if kept.len() >= MOST {
            kept.retain(|_, (_, until)| now < *until);
        }
        if kept.len() < MOST {
            kept.insert(digest, (value.clone(), until));
        }
        Ok(Some(value))
    }

    /// Drops the token that was exchanged for a caller's, because the server no longer accepts it.
    pub(super) fn drop_for(&self, callers: &HeaderValue) {
        if let Some(token) = bearer(callers) {
            let digest: TokenDigest = Sha256::digest(token.as_bytes()).into();
            self.exchanged().remove(&digest);
        }
    }

    fn exchanged(&self) -> MutexGuard<'_, HashMap<TokenDigest, (HeaderValue, Timestamp)>> {
        self.exchanged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_matches(' '))
}
