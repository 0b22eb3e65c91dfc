//! Callers with the access tokens of an issuer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::view::sanitize;
use mcp_elicit_oidc::{AccessToken, AccessTokenError, Provider, ProviderError, TokenVerifier};

use super::caller::ProvenCaller;
use crate::config::{OidcAuth, SecretText, TokenCheck};

/// The number of callers above which those with expired tokens are forgotten.
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
    /// The callers by their bindings, each according to the token that expires last: it says how long a caller is served,
    /// and nothing to rules.
    current: Mutex<HashMap<String, Arc<ProvenCaller>>>,
    /// The newest tokens of callers by their bindings, and the times at which the issuer was asked; empty if it is not
    /// asked again.
    tokens: Mutex<HashMap<String, (SecretText, Timestamp)>>,
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
            current: Mutex::default(),
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
        let caller = self.caller(&checked);
        self.note(&caller, Some(token), now);
        Ok(caller)
    }

    /// Notes a caller that was authenticated, here or by another gateway, with this token.
    pub(super) fn note(&self, caller: &ProvenCaller, token: Option<&str>, now: Timestamp) {
        let is_newest = self.remember(caller, now);
        if let Some(token) = token.filter(|_| is_newest && self.asks()) {
            let entry = (SecretText::new(token), now);
            self.tokens().insert(caller.binding().to_owned(), entry);
        }
    }

    /// Returns `true` if the issuer is asked again about tokens that it may have revoked.
    pub(super) fn asks(&self) -> bool {
        self.settings.asks_again || self.settings.check == TokenCheck::Introspection
    }

    /// Asks the issuer again about the newest token of a caller, if the last time is this long ago, and forgets the
    /// caller if the issuer has revoked it.
    pub(super) async fn ask_again(&self, binding: &str, after: Duration, now: Timestamp) {
        let due = |(_, asked_at): &(SecretText, Timestamp)| now.since(*asked_at) >= after;
        let due = self
            .tokens()
            .get(binding)
            .filter(|entry| due(entry))
            .cloned();
        let Some((token, _)) = due else {
            return;
        };
        // An unreachable issuer revokes nothing: it is asked again.
        let active = self.verifier.is_active(token.reveal(), now).await;
        let mut tokens = self.tokens();
        let is_same = tokens
            .get(binding)
            .is_some_and(|(newest, _)| *newest == token);
        match active {
            Ok(false) if is_same => {
                tokens.remove(binding);
                drop(tokens);
                self.callers().remove(binding);
            }
            Ok(true) if is_same => {
                tokens.insert(binding.to_owned(), (token, now));
            }
            Ok(_) | Err(_) => {}
        }
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<String, (SecretText, Timestamp)>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Stores the newest token's data about a caller. Returns `false` if another token is newer.
    fn remember(&self, caller: &ProvenCaller, now: Timestamp) -> bool {
        let mut current = self.callers();
        if let Some(known) = current.get_mut(caller.binding()) {
            let is_newest = caller.expires_at() >= known.expires_at();
            if is_newest {
                *known = Arc::new(caller.clone());
            }
            return is_newest;
        }
        if current.len() >= MANY {
            current.retain(|_, known| !has_expired(known, now));
            self.tokens()
                .retain(|binding, _| current.contains_key(binding));
        }
        let binding = caller.binding().to_owned();
        current.insert(binding, Arc::new(caller.clone()));
        true
    }

    /// Returns `true` if a token of this caller is known, which may have expired.
    pub(super) fn knows(&self, binding: &str) -> bool {
        self.callers().contains_key(binding)
    }

    /// Returns `true` if the newest token of this caller is still valid.
    pub(super) fn is_valid(&self, binding: &str, now: Timestamp) -> bool {
        let callers = self.callers();
        callers
            .get(binding)
            .is_some_and(|known| !has_expired(known, now))
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<String, Arc<ProvenCaller>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_expired(caller: &ProvenCaller, now: Timestamp) -> bool {
    caller.expires_at().is_some_and(|at| now >= at)
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
