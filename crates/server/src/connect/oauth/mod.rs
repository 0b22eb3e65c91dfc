//! The OAuth 2 authorization-code flow behind a connect page.
//!
//! The checks of every flow to a provider and back:
//!
//! - PKCE with S256 (RFC 7636), always; a separate redirect URI for each purpose
//! - `state` against a sealed cookie of the browser that left, which also holds the PKCE verifier, the nonce and the
//!   link token; the returning principal must still be the one that was asked
//! - `iss` of the response (RFC 9207), if present or promised by the provider
//! - with the scope `openid`: the ID token's signature, issuer, audience, times and nonce (OpenID Connect Core 3.1.3.7)
//! - https everywhere except for loopback addresses; no redirects followed, short timeouts, small responses
//!
//! Tokens of a provider go to the author's own store and nowhere else. No page, log or error contains them, or a
//! provider's `error_description`.
//!
//! - [`Provider`]: the provider, and its discovery
//! - [`Grant`], [`Subject`]: the results
//! - `flow`: the state that the browser carries
//! - `pages`: the redirect and the callback; `error`: the errors, written for a person
//!
//! The requests to providers are in `mcp-elicit-oidc`.

mod error;
mod flow;
pub(super) mod pages;

use std::future::Future;

use super::{Behind, CannotSave, ConnectBuilder, ConnectParts, SaveFuture, VisitorSession};

pub use mcp_elicit_oidc::{Grant, Provider, ProviderError, Subject};

pub(super) type SaveGrant = dyn Fn(String, Grant) -> SaveFuture + Send + Sync;
type VisitorName = dyn Fn(&Subject) -> Option<String> + Send + Sync;

/// The provider that visitors sign in with.
pub(super) struct SignInProvider {
    provider: Provider,
    name: Box<VisitorName>,
}

impl SignInProvider {
    /// Returns the session of signed-in visitors: a cookie sealed with the keys of the links.
    pub(super) fn session(inner: &ConnectParts) -> VisitorSession {
        VisitorSession::new(inner.keys.clone(), inner.base.as_str()).lifetime(inner.lifetime)
    }
}

impl ConnectBuilder {
    /// Adds a page that sends the person to sign in at `provider`, and passes the grant to `save` with its principal.
    ///
    /// Register the redirect URI at the provider, character for character:
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
        let save =
            Box::new(move |principal, grant| -> SaveFuture { Box::pin(save(principal, grant)) });
        let provider = Box::new(provider);
        self.0
            .pages
            .insert(purpose.into(), Behind::Grant { provider, save });
        self
    }

    /// Lets visitors whom the hook of [`Connect::builder`](super::Connect::builder) does not know sign in at
    /// `provider`, with OpenID Connect. `name` maps a subject to a principal, as
    /// [`ServerSettings::principal`](crate::ServerSettings::principal) names people: often `|subject|
    /// Some(subject.to_string())`.
    ///
    /// A sign-in lasts as long as a link. Register
    /// [`Connect::sign_in_redirect_uri`](super::Connect::sign_in_redirect_uri) as its redirect URI.
    ///
    /// # Errors
    /// If the provider was given by its endpoints: without an issuer there are no ID tokens to check.
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
        self.0.sign_in = Some(SignInProvider { provider, name });
        Ok(self)
    }
}

impl super::Connect {
    /// Returns the redirect URI of a purpose, to be registered at its provider character for character.
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

    /// Returns the redirect URI of [`ConnectBuilder::sign_in`].
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

impl ConnectParts {
    fn redirect_uri(&self, purpose: &str) -> String {
        // Only characters that every URL parser leaves as they are, so that no provider sees two spellings of one
        // redirect URI.
        let purpose: String = url::form_urlencoded::byte_serialize(purpose.as_bytes())
            .collect::<String>()
            .replace('+', "%20");
        format!("{}/back/{purpose}", self.base)
    }

    fn sign_in_redirect_uri(&self) -> String {
        format!("{}/signed-in", self.base)
    }
}
