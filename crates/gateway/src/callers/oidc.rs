//! Callers with the access tokens of an issuer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::view::sanitize;
use mcp_elicit_oidc::{AccessToken, AccessTokenError, Provider, ProviderError, TokenVerifier};
use sha2::{Digest as _, Sha256};

use super::caller::ProvenCaller;
use super::shown_tokens::CallerToken;
use crate::config::{OidcAuth, SecretText, TokenCheck};

/// The number of tokens above which those are forgotten that no request or session has.
const MANY: usize = 1_024;
/// The interval at which the issuer is asked again about the token of a waiting caller.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(10);

/// Callers with the access tokens of an issuer.
#[derive(Debug)]
pub(crate) struct OidcCallers {
    verifier: TokenVerifier,
    settings: OidcAuth,
    /// The issuer at which people log in.
    logs_in: Option<String>,
    /// The tokens of requests and sessions, by their digests.
    tokens: Mutex<HashMap<[u8; 32], Weak<CallerToken>>>,
}

/// Returns the provider, with the gateway as its client.
///
/// # Errors
/// If the issuer is not usable.
pub(super) fn provider(settings: &OidcAuth) -> Result<Provider, ProviderError> {
    let provider = Provider::issuer(&settings.issuer, &settings.client_id)?;
    Ok(match &settings.client_secret {
        Some(secret) => provider.secret(SecretText::reveal(secret)),
        None => provider,
    })
}

impl OidcCallers {
    /// Creates the callers of this issuer.
    ///
    /// # Errors
    /// If the issuer is not usable.
    pub(super) fn new(settings: &OidcAuth, logs_in: Option<String>) -> Result<Self, ProviderError> {
        let verifier = TokenVerifier::new(provider(settings)?)
            .leeway(settings.leeway)
            .requires(settings.scopes.iter().cloned());
        Ok(Self {
            verifier,
            settings: settings.clone(),
            logs_in,
            tokens: Mutex::default(),
        })
    }

    /// Returns the reason why the issuer cannot be used as configured, with the fix, in words for an operator.
    pub(super) async fn fault_of_issuer(&self, now: Timestamp) -> Option<String> {
        let metadata = match self.verifier.provider().metadata(now.as_millis()).await {
            Ok(metadata) => metadata,
            Err(error) => {
                return Some(format!(
                    "{error}; callers get 503 until it can be used: check `issuer`, and that this machine reaches it"
                ));
            }
        };
        if self.settings.check == TokenCheck::Jwt && !metadata.publishes_keys() {
            return Some(
                "it publishes no keys, so no JSON Web Token of it can be checked: ask it with `tokens = \"introspection\"`".to_owned(),
            );
        }
        (self.asks() && !metadata.answers_about_tokens()).then(|| {
            "it cannot be asked about tokens: leave out `revocation`, and `tokens` if its tokens are JSON Web Tokens".to_owned()
        })
    }

    /// Returns the settings.
    pub(crate) fn settings(&self) -> &OidcAuth {
        &self.settings
    }

    /// Returns the caller with this token, for one of these resources.
    ///
    /// # Errors
    /// If the token is invalid.
    pub(super) async fn identify(
        &self,
        token: &str,
        resources: &[String],
        now: Timestamp,
    ) -> Result<ProvenCaller, AccessTokenError> {
        let audience = if self.settings.audience.is_empty() {
            resources
        } else {
            &self.settings.audience
        };
        let audience: Vec<&str> = audience.iter().map(String::as_str).collect();
        let checked = match self.settings.check {
            TokenCheck::Jwt => self.verifier.verify(token, &audience, now).await?,
            TokenCheck::Introspection => self.verifier.introspect(token, &audience, now).await?,
        };
        if self.settings.check == TokenCheck::Jwt && self.settings.asks_again {
            self.verifier.introspect(token, &audience, now).await?;
        }
        let mut caller = self.caller(&checked);
        self.add_token(&mut caller, Some(token), now);
        Ok(caller)
    }

    /// Adds the token to a caller that was authenticated with it, here or by another gateway, which may not have sent it: then
    /// the time at which it expires tells it from others.
    pub(super) fn add_token(&self, caller: &mut ProvenCaller, token: Option<&str>, now: Timestamp) {
        let digest: [u8; 32] = if let Some(token) = token {
            Sha256::digest(token).into()
        } else {
            let at = caller.expires_at().map(Timestamp::as_millis);
            Sha256::digest(format!("{} {at:?}", caller.binding())).into()
        };
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tokens.get(&digest).and_then(Weak::upgrade);
        // One that the issuer takes again is another one: the calls that it ended do not go on.
        let known = known.filter(|known| !known.is_revoked());
        let token = known.unwrap_or_else(|| {
            if tokens.len() >= MANY && tokens.len() == tokens.capacity() {
                tokens.retain(|_, token| token.strong_count() > 0);
            }
            let secret = token.filter(|_| self.asks()).map(SecretText::new);
            let token = Arc::new(CallerToken::new(secret, caller.expires_at(), now));
            tokens.insert(digest, Arc::downgrade(&token));
            token
        });
        caller.token = Some(token);
    }

    /// Returns `true` if the issuer is asked again about tokens that it may have revoked.
    pub(super) fn asks(&self) -> bool {
        self.settings.asks_again || self.settings.check == TokenCheck::Introspection
    }

    /// Asks the issuer again about a token, if the last time is this long ago.
    pub(super) async fn ask_again(&self, token: &CallerToken, after: Duration, now: Timestamp) {
        let Some(text) = token.due(after, now) else {
            return;
        };
        // An unreachable issuer revokes nothing: it is asked again.
        if let Ok(is_active) = self.verifier.is_active(text, now).await {
            token.answered(is_active, now);
        }
    }

    fn caller(&self, token: &AccessToken) -> ProvenCaller {
        let text = |claims: &[&str]| {
            let found = claims.iter().find_map(|claim| token.text(claim));
            found.map(shown).unwrap_or_default()
        };
        let subject = token.subject();
        let logs_in = self.logs_in.as_deref();
        let mut caller = ProvenCaller::of_subject(subject.issuer(), subject.subject(), logs_in);
        caller.name = text(&["name", "preferred_username"]);
        if token.says("email_verified") {
            let mail = token.text("email").and_then(address);
            mail.unwrap_or_default().clone_into(&mut caller.mail);
        }
        caller.client = text(&["client_id", "azp"]);
        let groups = token.texts(&self.settings.groups_claim);
        caller.claims = groups.into_iter().map(str::to_owned).collect();
        caller.expires_at = token.expires_at();
        caller
    }
}

/// Returns the text of a claim for people, on one line, with hidden characters marked.
fn shown(text: &str) -> String {
    sanitize::line(text, sanitize::LABEL)
}

/// Returns a mail address, which identifies a person; `None` if it would be shown differently from its value.
fn address(mail: &str) -> Option<&str> {
    Some(mail).filter(|mail| shown(mail) == **mail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_of_a_claim_are_marked_and_make_no_address_of_another() {
        assert_eq!(shown("Ada\u{202e}\n\u{200b}L"), "Ada‹U+202E› ‹U+200B›L");
        let long = "x".repeat(10_000);
        assert!(shown(&long).chars().count() < 300);
        assert_eq!(address("ada@example.com"), Some("ada@example.com"));
        for other in [
            "ada\u{0}@example.com",
            "ada@example.com\n",
            "\u{200b}ada@example.com",
        ] {
            assert_eq!(address(other), None, "{other:?}");
        }
    }
}
