//! Signing in elsewhere: the OAuth 2 authorization-code flow behind a connect page.
//!
//! The checks of every flow to a provider and back:
//!
//! - PKCE with S256 (RFC 7636), always; a redirect URI of its own for each purpose
//! - `state` against a sealed cookie of the browser that left, which also holds the PKCE verifier, the nonce and the
//!   ticket; the returning principal is still the principal of the question
//! - `iss` of the answer (RFC 9207), where it is there or the provider promises it
//! - with the scope `openid`: the ID token's signature, issuer, audience, times and nonce (OpenID Connect Core 3.1.3.7)
//! - https everywhere, but for the loopback addresses; no redirect followed, nothing waited for long, nothing large
//!   read
//!
//! Tokens of a provider go to the author's own store and nowhere else. No page, log or error has their text, nor what
//! a provider says in `error_description`.
//!
//! - [`Provider`]: who is asked, and how it is found
//! - [`Grant`], [`Subject`]: what comes of it
//! - `flow`: what the browser carries there and back
//! - `pages`: leaving and coming back; `error`: what can go wrong, in words for a person
//!
//! The requests to providers are `mcp-elicit-oidc`'s.

mod error;
mod flow;
pub(super) mod pages;

use std::future::Future;

use super::{Behind, CannotSave, ConnectBuilder, Inner, Saved, Session};

pub use mcp_elicit_oidc::{Grant, Provider, ProviderError, Subject};

pub(super) type SaveGrant = dyn Fn(String, Grant) -> Saved + Send + Sync;
type Name = dyn Fn(&Subject) -> Option<String> + Send + Sync;

/// The way in which visitors sign in.
pub(super) struct SignIn {
    provider: Provider,
    name: Box<Name>,
}

impl SignIn {
    /// Returns where signed-in visitors are kept: in a cookie sealed with the keys of the links.
    pub(super) fn session(inner: &Inner) -> Session {
        Session::new(inner.keys.clone(), inner.base.as_str()).lifetime(inner.lifetime)
    }
}

impl ConnectBuilder {
    /// A page that sends the person to sign in at `provider`, and hands what comes of it to `save` with the principal
    /// it belongs to.
    ///
    /// Register the redirect URI at the provider, character for character: it is
    /// [`Connect::redirect_uri`](super::Connect::redirect_uri) of this purpose.
    ///
    /// ```
    /// use mcp_elicit_server::connect::Connect;
    /// use mcp_elicit_server::connect::oauth::Provider;
    ///
    /// let provider = Provider::issuer("https://accounts.example.com", "my-client-id")?.scopes(["calendar.read"]);
    /// let connect = Connect::builder("Calendar", "https://mcp.example.com/connect", |_| None)?
    ///     .grant("calendar", provider, |principal, grant| async move { Ok(()) })
    ///     .build();
    /// assert_eq!(connect.redirect_uri("calendar"), "https://mcp.example.com/connect/back/calendar");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn grant<Fut>(
        mut self,
        purpose: impl Into<String>,
        provider: Provider,
        save: impl Fn(String, Grant) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<(), CannotSave>> + Send + 'static,
    {
        let save = Box::new(move |principal, grant| -> Saved { Box::pin(save(principal, grant)) });
        let provider = Box::new(provider);
        self.0
            .pages
            .insert(purpose.into(), Behind::Grant { provider, save });
        self
    }

    /// Visitors whom the hook of [`Connect::builder`](super::Connect::builder) does not know sign in at `provider`,
    /// with OpenID Connect. `name` says which principal a subject is, as
    /// [`ServerSettings::principal`](crate::ServerSettings::principal) names people: often `|subject|
    /// Some(subject.to_string())`.
    ///
    /// A sign-in lasts as long as a link does. The redirect URI to register is
    /// [`Connect::sign_in_redirect_uri`](super::Connect::sign_in_redirect_uri).
    ///
    /// # Errors
    /// When the provider was given by its endpoints: without an issuer there are no ID tokens to check.
    ///
    /// ```
    /// use mcp_elicit_server::connect::Connect;
    /// use mcp_elicit_server::connect::oauth::Provider;
    ///
    /// let provider = Provider::issuer("https://accounts.example.com", "my-client-id")?;
    /// let connect = Connect::builder("Calendar", "https://mcp.example.com/connect", |_| None)?
    ///     .sign_in(provider, |subject| Some(subject.to_string()))?
    ///     .build();
    /// println!("Register {} at the provider", connect.sign_in_redirect_uri());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sign_in(
        mut self,
        provider: Provider,
        name: impl Fn(&Subject) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, ProviderError> {
        let provider = provider.identifying()?;
        let name = Box::new(name);
        self.0.sign_in = Some(SignIn { provider, name });
        Ok(self)
    }
}

impl super::Connect {
    /// The redirect URI of a purpose, to be registered at its provider character for character.
    ///
    /// ```
    /// # use mcp_elicit_server::connect::Connect;
    /// let connect = Connect::builder("Calendar", "https://mcp.example.com/connect", |_| None)?.build();
    /// assert_eq!(connect.redirect_uri("calendar"), "https://mcp.example.com/connect/back/calendar");
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    pub fn redirect_uri(&self, purpose: &str) -> String {
        self.inner.redirect_uri(purpose)
    }

    /// The redirect URI of [`ConnectBuilder::sign_in`].
    ///
    /// ```
    /// # use mcp_elicit_server::connect::Connect;
    /// let connect = Connect::builder("Calendar", "https://mcp.example.com/connect", |_| None)?.build();
    /// assert!(connect.sign_in_redirect_uri().starts_with("https://mcp.example.com/connect/"));
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    pub fn sign_in_redirect_uri(&self) -> String {
        self.inner.sign_in_redirect_uri()
    }
}

impl Inner {
    fn redirect_uri(&self, purpose: &str) -> String {
        // What every URL parser leaves as it is, so that no provider sees two spellings of one redirect URI.
        let purpose: String = url::form_urlencoded::byte_serialize(purpose.as_bytes())
            .collect::<String>()
            .replace('+', "%20");
        format!("{}/back/{purpose}", self.base)
    }

    fn sign_in_redirect_uri(&self) -> String {
        format!("{}/signed-in", self.base)
    }
}
