//! Sign-in at a server over HTTP that requires OAuth: a person agrees once in the browser, and the tokens are kept in a
//! file, refreshed, and shared by every process of that person. rmcp discovers, registers, exchanges and refreshes.
//!
//! - `callback`: the page on this machine to which the browser returns
//! - `issuer_metadata`: the metadata that an authorization server publishes itself
//! - `page`: the addresses that may be opened for a sign-in
//! - `registrations`: the issuers to which registered clients belong
//! - [`step_up`]: the additional scopes that a server requires for one call
//! - `store`: tokens in a file that only its owner can read

mod callback;
mod issuer_metadata;
mod page;
mod registrations;
pub mod step_up;
mod store;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_elicit_core::link::{Link, without_userinfo};
use mcp_elicit_core::secret::SecretText;
use rmcp::transport::AuthorizationManager;
use rmcp::transport::auth::{
    AuthError, AuthorizationMetadata, AuthorizationRequest, AuthorizationSession,
    CredentialStore as _, OAuthClientConfig, StoredCredentials,
};

use crate::connection::{BearerToken, masked};
use callback::{CallbackPage, CameBack};
pub use page::PageError;
use registrations::{NotBound, Registrations};
use store::FileStore;

/// The name under which this client is registered.
const NAME: &str = "mcp-elicit";

/// Options of a sign-in.
///
/// ```
/// use mcp_elicit_client::sign_in::SignInOptions;
///
/// let mut options = SignInOptions::default();
/// options.scopes = vec!["calendar.read".to_owned()];
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignInOptions {
    /// The id of a client that the person registered; by default, this client registers itself.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<SecretText>,
    /// The authorization server that must be used; by default, the one that the server names.
    pub issuer: Option<String>,
    /// The scopes to request; by default, those that the server names.
    pub scopes: Vec<String>,
    /// The port of the page to which the browser returns; 0 picks a free one.
    pub callback_port: u16,
}

/// The reason why there is no authorization for a server.
///
/// ```
/// use mcp_elicit_client::sign_in::SignInError;
///
/// fn can_be_tried_again(error: &SignInError) -> bool {
///     matches!(error, SignInError::Declined | SignInError::Unreachable(_))
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignInError {
    /// A step of the flow failed. Of what the authorization server says when it refuses tokens, the error contains
    /// neither the client's secret, the code nor the tokens that were sent, nor any word of 32 or more characters.
    #[error(transparent)]
    Flow(AuthError),
    /// The folder of the tokens cannot be used.
    #[error("the folder of the sign-in cannot be used: {0}")]
    Folder(io::Error),
    /// The server cannot be reached.
    #[error("the server cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// The port for the browser's return cannot be used.
    #[error("cannot listen for the browser's return: {0}")]
    Listen(io::Error),
    /// The server names an address that is not used for a sign-in.
    #[error("the server names an unacceptable {what}: {why}")]
    Page {
        /// The kind of address.
        what: &'static str,
        /// The reason.
        why: PageError,
    },
    /// The server names another authorization server than the one to which the client belongs.
    #[error(
        "the server names the authorization server {named}, but the client `{client}` belongs to {known}; its secret was not sent"
    )]
    OtherIssuer {
        /// The client's id.
        client: String,
        /// The issuer at which it was used before.
        known: String,
        /// The issuer that the server names.
        named: String,
    },
    /// The server names another authorization server than the required one.
    #[error("the server names the authorization server {named}, not {wanted}")]
    NotTheIssuer {
        /// The required issuer.
        wanted: String,
        /// The issuer that the server names.
        named: String,
    },
    /// The metadata of the authorization server name no issuer, so the tokens would belong to none.
    #[error("the metadata of the authorization server name no issuer")]
    NoIssuer,
    /// The issuer in the metadata does not publish these endpoints at its own well-known addresses: another server claims to
    /// be it.
    #[error(
        "the server names endpoints of the authorization server {issuer} that {issuer} itself does not publish; nothing was sent to them"
    )]
    NotItsMetadata {
        /// The issuer.
        issuer: String,
    },
    /// The issuer's own metadata cannot be read.
    #[error("the metadata of the authorization server {issuer} cannot be read")]
    IssuerUnreadable {
        /// The issuer.
        issuer: String,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server names another authorization server than the one that issued the stored tokens.
    #[error(
        "the stored tokens are those of {known}, but the server now names {named}; they were not sent there, and a person must sign in again"
    )]
    TokensOfOtherIssuer {
        /// The issuer of the tokens, or the token endpoint from which they came.
        known: String,
        /// The issuer, or the token endpoint, that the server names.
        named: String,
    },
    /// The metadata of the authorization server do not say that it supports PKCE with S256, without which a stolen code
    /// is enough to get a token.
    #[error(
        "the metadata of {issuer} do not say that it supports PKCE with S256, so a stolen code could be used"
    )]
    NoPkce {
        /// The authorization server.
        issuer: String,
    },
    /// No authorization server that the server names published usable metadata in time: 20 seconds for all of them.
    #[error("no authorization server that the server names published usable metadata within {} s", DISCOVERY.as_secs())]
    DiscoveryTimeout,
    /// The person declined in the browser.
    #[error("the sign-in was declined")]
    Declined,
    /// The authorization server reported an error, by its code.
    #[error("the sign-in failed: {code}")]
    Failed {
        /// The code.
        code: String,
    },
    /// The page for the browser's return ended.
    #[error("the page for the browser's return ended")]
    CallbackEnded,
}

/// The time in which the authorization servers of a server are asked for their metadata.
const DISCOVERY: Duration = Duration::from_secs(20);

impl From<AuthError> for SignInError {
    fn from(error: AuthError) -> Self {
        Self::of_flow(error, &[])
    }
}

impl SignInError {
    /// Returns the error of a step of the flow, without what an authorization server repeats of the request.
    fn of_flow(error: AuthError, secrets: &[String]) -> Self {
        let shown = |text: String| without_credentials(&text, secrets);
        Self::Flow(match error {
            AuthError::AuthorizationFailed(text) => AuthError::AuthorizationFailed(shown(text)),
            AuthError::TokenExchangeFailed(text) => AuthError::TokenExchangeFailed(shown(text)),
            AuthError::TokenRefreshFailed(text) => AuthError::TokenRefreshFailed(shown(text)),
            AuthError::TokenRefreshRejected(text) => AuthError::TokenRefreshRejected(shown(text)),
            AuthError::OAuthError(text) => AuthError::OAuthError(shown(text)),
            AuthError::ClientCredentialsError(text) => {
                AuthError::ClientCredentialsError(shown(text))
            }
            other => other,
        })
    }
}

/// The length from which a word in the description of an error is taken for a credential: a verifier of PKCE has 43
/// characters or more (RFC 7636, 4.1), and no part of this program but rmcp knows it.
const LONG_WORD: usize = 32;

/// Returns a text of an authorization server without these secrets and without long words.
fn without_credentials(text: &str, secrets: &[String]) -> String {
    let mask = |text: String, secret: &String| masked(&text, secret);
    // A shorter one would hide common words.
    let secrets = secrets.iter().filter(|secret| secret.len() > 3);
    let text = secrets.fold(text.to_owned(), mask);
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-._~+/=%".contains(c);
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(|c| !is_of_word(c)) {
        let word = part.trim_end_matches(|c| !is_of_word(c));
        // `code_verifier=` before the word stays.
        let (name, value) = word.split_once('=').unwrap_or(("", word));
        if value.len() < LONG_WORD {
            shown.push_str(part);
            continue;
        }
        if !name.is_empty() {
            shown.push_str(name);
            shown.push('=');
        }
        shown.push_str("***");
        shown.push_str(part.get(word.len()..).unwrap_or_default());
    }
    shown
}

/// Returns a secret as it is, and as it stands in the body of a request.
fn as_sent(secret: &str) -> [String; 2] {
    let encoded = percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC);
    [secret.to_owned(), encoded.to_string()]
}

/// The sign-in at one server. Clones share it.
///
/// ```
/// use std::path::Path;
///
/// use mcp_elicit_client::connection::BearerToken;
/// use mcp_elicit_client::sign_in::{SignIn, SignInError, SignInOptions};
///
/// async fn token(folder: &Path) -> Result<Option<BearerToken>, SignInError> {
///     let sign_in = SignIn::new("https://calendar.example/mcp", SignInOptions::default(), folder);
///     if !sign_in.is_required().await? || sign_in.known().await?.is_some() {
///         return sign_in.token().await;
///     }
///     let pending = sign_in.begin(&[]).await?;
///     println!("{} asks for a sign-in: {}", sign_in.url(), pending.link());
///     pending.completed().await?;
///     println!("granted: {:?}", sign_in.granted().await?);
///     sign_in.token().await
/// }
///
/// async fn after_a_refusal(sign_in: &SignIn, rejected: &BearerToken) -> Result<(), SignInError> {
///     if sign_in.renewed(rejected).await?.is_none() {
///         sign_in.forget().await?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct SignIn {
    inner: Arc<SignInParts>,
}

struct SignInParts {
    url: String,
    options: SignInOptions,
    store: FileStore,
    registrations: Registrations,
}

/// Shows neither tokens nor the secret.
impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn")
            .field("url", &without_userinfo(&self.inner.url))
            .finish_non_exhaustive()
    }
}

impl SignIn {
    /// Creates the sign-in at the server at `url`. Tokens are kept in `folder`, which exists and which only its owner can
    /// read.
    pub fn new(url: &str, options: SignInOptions, folder: &Path) -> Self {
        Self {
            inner: Arc::new(SignInParts {
                url: url.to_owned(),
                options,
                store: FileStore::new(folder, url),
                registrations: Registrations::new(folder.to_owned()),
            }),
        }
    }

    /// Returns the server's URL.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// Returns the authorization of an earlier sign-in, if its tokens can still be used; they are refreshed if they have
    /// expired.
    ///
    /// # Errors
    /// If the folder or the authorization server cannot be used.
    pub async fn known(&self) -> Result<Option<AuthorizationManager>, SignInError> {
        let Some(stored) = self.usable().await? else {
            return Ok(None);
        };
        let manager = match self.of_stored(&stored).await {
            Ok(Some(manager)) => manager,
            Ok(None) | Err(SignInError::TokensOfOtherIssuer { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match self.fresh(&manager, None).await {
            Ok(_token) => Ok(Some(manager)),
            Err(error) if is_over(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns an access token that has not expired, refreshed if necessary; `None` if a person has to sign in. Of several
    /// processes that share the tokens, one refreshes.
    ///
    /// # Errors
    /// If the folder or the authorization server cannot be used.
    pub async fn token(&self) -> Result<Option<BearerToken>, SignInError> {
        self.token_instead_of(None).await
    }

    /// Returns an access token in place of one that the server no longer accepts; `None` if a person has to sign in.
    ///
    /// # Errors
    /// The same as [`SignIn::token`].
    pub async fn renewed(
        &self,
        rejected: &BearerToken,
    ) -> Result<Option<BearerToken>, SignInError> {
        self.token_instead_of(Some(rejected)).await
    }

    async fn token_instead_of(
        &self,
        rejected: Option<&BearerToken>,
    ) -> Result<Option<BearerToken>, SignInError> {
        let Some(stored) = self.usable().await? else {
            return Ok(None);
        };
        if let Some(token) = current(&stored, rejected) {
            return Ok(Some(token));
        }
        let Some(manager) = self.of_stored(&stored).await? else {
            return Ok(None);
        };
        match self.fresh(&manager, rejected).await {
            Ok(token) => Ok(Some(token)),
            Err(error) if is_over(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the stored tokens, if they are those of the configured client and scopes.
    async fn usable(&self) -> Result<Option<StoredCredentials>, SignInError> {
        let options = &self.inner.options;
        let stored = self.inner.store.load().await?;
        Ok(stored.filter(|stored| {
            let is_client = |id: &String| *id == stored.client_id;
            let is_issuer = |issuer: &String| {
                let known = stored.issuer.as_ref();
                known.is_none_or(|known| is_same_issuer(known, issuer))
            };
            let granted = &stored.granted_scopes;
            stored.token_response.is_some()
                && options.client_id.as_ref().is_none_or(is_client)
                && options.issuer.as_ref().is_none_or(is_issuer)
                && (granted.is_empty()
                    || options.scopes.iter().all(|scope| granted.contains(scope)))
        }))
    }

    /// Returns the manager of stored tokens; `None` if they were deleted meanwhile.
    ///
    /// # Errors
    /// If the server names another issuer by now, among others.
    async fn of_stored(
        &self,
        stored: &StoredCredentials,
    ) -> Result<Option<AuthorizationManager>, SignInError> {
        let mut manager = self.manager().await?;
        let metadata = self.metadata(&manager).await?;
        self.check_issuer(&metadata, Some(&stored.client_id))?;
        let store = self.inner.store.bound_to(&metadata);
        store.check()?;
        manager.set_credential_store(store);
        manager.set_metadata(metadata);
        if !manager.initialize_from_store().await? {
            return Ok(None);
        }
        let options = &self.inner.options;
        if let (Some(id), Some(secret)) = (&options.client_id, &options.client_secret) {
            let client =
                OAuthClientConfig::new(id, &self.inner.url).with_client_secret(secret.reveal());
            manager.configure_client(client)?;
        }
        Ok(Some(manager))
    }

    /// Returns an access token that is not the rejected one, after a refresh if necessary. The lock is held from the last
    /// look at the stored tokens until the new ones are written, so that no other process spends the same refresh token.
    async fn fresh(
        &self,
        manager: &AuthorizationManager,
        rejected: Option<&BearerToken>,
    ) -> Result<BearerToken, SignInError> {
        let locked = self.inner.store.lock_renewal().await;
        let _lock = locked.map_err(SignInError::Folder)?;
        let stored = self.inner.store.load().await?;
        if let Some(token) = stored.and_then(|stored| current(&stored, rejected)) {
            return Ok(token);
        }
        let mut secrets = secrets_of(&self.inner.options);
        if let Some(stored) = self.inner.store.load().await? {
            secrets.extend(tokens_in(&stored));
        }
        let refreshed = manager.refresh_token().await;
        refreshed.map_err(|error| SignInError::of_flow(error, &secrets))?;
        let stored = self.inner.store.load().await?;
        let token = stored.and_then(|stored| token_of(&stored));
        token.ok_or(SignInError::Flow(AuthError::AuthorizationRequired))
    }

    /// Begins a sign-in, which a person completes in the browser. `more` are scopes to request in addition to those of the
    /// options.
    ///
    /// # Errors
    /// If the server or its authorization server cannot be used, or must not be trusted with this sign-in.
    pub async fn begin(&self, more: &[String]) -> Result<PendingSignIn, SignInError> {
        let options = &self.inner.options;
        let callback = CallbackPage::listen(options.callback_port)
            .await
            .map_err(SignInError::Listen)?;
        let mut manager = self.manager().await?;
        let metadata = self.metadata(&manager).await?;
        self.check_issuer(&metadata, options.client_id.as_deref())?;
        let issuer = issuer_of(&metadata);
        manager.set_credential_store(self.inner.store.bound_to(&metadata));
        manager.set_metadata(metadata);
        let mut request = AuthorizationRequest::new(callback.address())
            .with_client_name(NAME)
            .with_initial_scope_selection()
            .with_scopes(options.scopes.iter().chain(more));
        if let Some(id) = &options.client_id {
            request = request.with_preregistered_client(id);
        }
        if let Some(secret) = &options.client_secret {
            request = request.with_client_secret(secret.reveal());
        }
        let session = AuthorizationSession::new(manager, request)
            .await
            .map_err(|(_, error)| error)?;
        let link =
            page::read(session.get_authorization_url()).map_err(|why| SignInError::Page {
                what: "page for the sign-in",
                why,
            })?;
        Ok(PendingSignIn {
            session,
            callback,
            link,
            issuer,
            secrets: secrets_of(options),
        })
    }

    /// Returns `true` if the server requires a sign-in: it answers a request without a token with 401.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn is_required(&self) -> Result<bool, SignInError> {
        let client = crate::tls::client()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(SignInError::Unreachable)?;
        let asked = client
            .post(&self.inner.url)
            .header(
                ::http::header::ACCEPT,
                "application/json, text/event-stream",
            )
            .json(&serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
            .send();
        let response = asked
            .await
            .map_err(|error| SignInError::Unreachable(error.without_url()))?;
        Ok(response.status() == ::http::StatusCode::UNAUTHORIZED)
    }

    /// Returns the scopes that were granted with the stored tokens.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub async fn granted(&self) -> Result<Vec<String>, SignInError> {
        let stored = self.inner.store.load().await?;
        Ok(stored.map_or_else(Vec::new, |stored| stored.granted_scopes))
    }

    /// Deletes the tokens, which the server no longer accepts.
    ///
    /// # Errors
    /// If the file cannot be deleted.
    pub async fn forget(&self) -> Result<(), SignInError> {
        Ok(self.inner.store.clear().await?)
    }

    async fn manager(&self) -> Result<AuthorizationManager, SignInError> {
        crate::tls::ready();
        Ok(AuthorizationManager::new(self.inner.url.as_str()).await?)
    }

    /// Returns the metadata of the authorization server that the server names, as their issuer publishes them. Every address
    /// in them is checked, and PKCE.
    async fn metadata(
        &self,
        manager: &AuthorizationManager,
    ) -> Result<AuthorizationMetadata, SignInError> {
        let discovered = async {
            let resolved = manager.resolve_metadata().await?;
            check_addresses(&resolved.metadata)?;
            // A server of 2025-03-26 without metadata has the endpoints of that revision, which requires PKCE of it.
            if !resolved.source.is_discovered() {
                return Ok(resolved.metadata);
            }
            // Not every address from which rmcp reads metadata belongs to the issuer in them.
            let own = issuer_metadata::published(&self.inner.url, &resolved.metadata).await?;
            check_addresses(&own)?;
            self.check_pkce(&own)?;
            Ok(own)
        };
        // A server may name thousands, each of which is asked in turn.
        let discovered = tokio::time::timeout(DISCOVERY, discovered).await;
        discovered.map_err(|_| SignInError::DiscoveryTimeout)?
    }

    /// Checks that the metadata name S256. They need not if the person named this authorization server: some support it
    /// and do not publish that. A challenge is sent in any case.
    fn check_pkce(&self, metadata: &AuthorizationMetadata) -> Result<(), SignInError> {
        let issuer = issuer_of(metadata);
        let wanted = self.inner.options.issuer.as_ref();
        let is_confirmed = wanted.is_some_and(|wanted| is_same_issuer(wanted, &issuer));
        match &metadata.code_challenge_methods_supported {
            Some(methods) if methods.iter().any(|method| method == "S256") => Ok(()),
            None if is_confirmed => Ok(()),
            Some(_) | None => Err(SignInError::NoPkce { issuer }),
        }
    }

    /// Checks that the server names the required issuer, and the one to which a client with a secret belongs.
    fn check_issuer(
        &self,
        metadata: &AuthorizationMetadata,
        client: Option<&str>,
    ) -> Result<(), SignInError> {
        let options = &self.inner.options;
        let named = issuer_of(metadata);
        if let Some(wanted) = &options.issuer
            && !is_same_issuer(wanted, &named)
        {
            let wanted = wanted.clone();
            return Err(SignInError::NotTheIssuer { wanted, named });
        }
        let (Some(client), Some(_)) = (client, &options.client_secret) else {
            return Ok(());
        };
        let confirmed = options.issuer.is_some();
        let bound = self
            .inner
            .registrations
            .bind(client, &self.inner.url, &named, confirmed);
        bound.map_err(|error| match error {
            NotBound::Folder(error) => SignInError::Folder(error),
            NotBound::OtherIssuer(known) => SignInError::OtherIssuer {
                client: client.to_owned(),
                known,
                named,
            },
        })
    }
}

/// Checks every address in metadata to which a person or a request may be sent.
fn check_addresses(metadata: &AuthorizationMetadata) -> Result<(), SignInError> {
    let registration = metadata.registration_endpoint.as_ref();
    let named = [
        (
            "authorization endpoint",
            Some(&metadata.authorization_endpoint),
        ),
        ("token endpoint", Some(&metadata.token_endpoint)),
        ("registration endpoint", registration),
        ("issuer", metadata.issuer.as_ref()),
    ];
    for (what, address) in named {
        if let Some(address) = address {
            page::read(address).map_err(|why| SignInError::Page { what, why })?;
        }
    }
    Ok(())
}

/// A sign-in that a person has begun.
///
/// ```
/// use mcp_elicit_client::sign_in::{PendingSignIn, SignInError};
///
/// async fn finish(pending: PendingSignIn) -> Result<(), SignInError> {
///     println!("{} asks you to sign in: {}", pending.issuer(), pending.link());
///     pending.completed().await?;
///     Ok(())
/// }
/// ```
pub struct PendingSignIn {
    session: AuthorizationSession,
    callback: CallbackPage,
    link: Link,
    issuer: String,
    secrets: Vec<String>,
}

impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSignIn")
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}

impl PendingSignIn {
    /// Returns the page on which the person signs in. It is shown whole, with its warnings, and opened only after the
    /// person agreed.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the authorization server.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Waits until the browser returns, and keeps the tokens.
    ///
    /// # Errors
    /// If the person declined, or the authorization server returns no tokens.
    pub async fn completed(self) -> Result<AuthorizationManager, SignInError> {
        let link = self.session.get_authorization_url().to_owned();
        match self.callback.wait(&link).await {
            CameBack::Code(address) => {
                let mut secrets = self.secrets;
                if let Ok(address) = reqwest::Url::parse(&address) {
                    let codes = address.query_pairs().filter(|(name, _)| name == "code");
                    secrets.extend(codes.flat_map(|(_, code)| as_sent(&code)));
                }
                let exchanged = self.session.handle_callback_url(&address).await;
                exchanged.map_err(|error| SignInError::of_flow(error, &secrets))?;
                Ok(self.session.auth_manager)
            }
            CameBack::Denied => Err(SignInError::Declined),
            CameBack::Failed(code) => Err(SignInError::Failed { code }),
            CameBack::Never => Err(SignInError::CallbackEnded),
        }
    }
}

/// Returns `true` if a person has to sign in again. A client that registered itself with a secret cannot refresh without
/// it.
fn is_over(error: &SignInError) -> bool {
    matches!(
        error,
        SignInError::Flow(
            AuthError::AuthorizationRequired
                | AuthError::TokenRefreshRejected(_)
                | AuthError::TokenRefreshFailed(_)
        )
    )
}

/// The longest time before its expiry at which a token is refreshed, in seconds.
const MARGIN: u64 = 30;

/// Returns the access token, if it has not expired and is not the rejected one.
fn current(stored: &StoredCredentials, rejected: Option<&BearerToken>) -> Option<BearerToken> {
    use oauth2::TokenResponse as _;
    let token = token_of(stored).filter(|token| Some(token) != rejected)?;
    let lifetime = stored.token_response.as_ref()?.expires_in();
    let is_over = match (lifetime, stored.token_received_at) {
        (Some(lifetime), Some(received)) => {
            let lifetime = lifetime.as_secs();
            let end = received.saturating_add(lifetime);
            now().saturating_add(MARGIN.min(lifetime / 4)) >= end
        }
        (None, _) | (_, None) => false,
    };
    (!is_over).then_some(token)
}

fn token_of(stored: &StoredCredentials) -> Option<BearerToken> {
    use oauth2::TokenResponse as _;
    let text = stored.token_response.as_ref()?.access_token().secret();
    BearerToken::new(text).ok()
}

/// Returns the secret of the client, as it is sent: in a body, or with its id in a header (RFC 6749, section 2.3.1).
fn secrets_of(options: &SignInOptions) -> Vec<String> {
    let Some(secret) = options.client_secret.as_ref() else {
        return Vec::new();
    };
    let sent = as_sent(secret.reveal());
    let id = as_sent(options.client_id.as_deref().unwrap_or_default());
    let basic = id.iter().zip(&sent).map(|(id, secret)| {
        let text = BASE64.encode(format!("{id}:{secret}"));
        text.trim_end_matches('=').to_owned()
    });
    let basic: Vec<_> = basic.collect();
    sent.into_iter().chain(basic).collect()
}

/// Returns the tokens, as they are sent.
fn tokens_in(stored: &StoredCredentials) -> Vec<String> {
    use oauth2::TokenResponse as _;
    let Some(tokens) = stored.token_response.as_ref() else {
        return Vec::new();
    };
    let refresh = tokens.refresh_token().map(|token| token.secret().as_str());
    let all = refresh
        .into_iter()
        .chain([tokens.access_token().secret().as_str()]);
    all.flat_map(as_sent).collect()
}

/// Returns the time in seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the expiry of a token is a time of day, kept between processes"
)]
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Returns the issuer in the metadata. A server without metadata is its own: then the origin of its token endpoint.
fn issuer_of(metadata: &AuthorizationMetadata) -> String {
    if let Some(issuer) = &metadata.issuer {
        return issuer.clone();
    }
    let endpoint = reqwest::Url::parse(&metadata.token_endpoint);
    endpoint.map_or_else(
        |_| metadata.token_endpoint.clone(),
        |url| url.origin().ascii_serialization(),
    )
}

/// Compares two issuers; a slash at the end of one does not count.
fn is_same_issuer(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_whose_metadata_do_not_come_is_not_waited_for_without_end() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let sign_in = SignIn::new(&url, SignInOptions::default(), folder.path());
        let begun = sign_in.begin(&[]).await.err();
        assert!(
            matches!(begun, Some(SignInError::DiscoveryTimeout)),
            "{begun:?}"
        );
    }
}
