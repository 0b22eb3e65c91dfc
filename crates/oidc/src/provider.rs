//! The provider of a grant, and its discovery.

use std::fmt;
use std::sync::Arc;

use http::header::ACCEPT;
use http::{Request, StatusCode};
use mcp_elicit_core::secret::SecretText;
use serde::Deserialize;
use tokio::sync::Mutex;
use url::{Host, Url};

use crate::OidcError;
use crate::http::{ProviderHttp, WHOLE};

/// The time for which a provider's metadata stay fresh, in milliseconds.
const FRESH_MS: u64 = 10 * 60 * 1000;

/// Parameters that this crate sets.
const OURS: [&str; 9] = [
    "client_id",
    "client_secret",
    "code_challenge",
    "code_challenge_method",
    "nonce",
    "redirect_uri",
    "response_type",
    "scope",
    "state",
];

/// An OAuth 2 or OpenID Connect provider, with this server as its client.
///
/// ```
/// use mcp_elicit_oidc::Provider;
///
/// let provider = Provider::issuer("https://accounts.example.com", "my-client-id")?
///     .secret("from the environment")
///     .scopes(["openid", "calendar.read"])
///     .parameter("prompt", "consent")?;
/// # let _ = provider;
/// # Ok::<(), mcp_elicit_oidc::ProviderError>(())
/// ```
pub struct Provider {
    source: MetadataSource,
    client_id: String,
    secret: Option<SecretText>,
    scopes: Vec<String>,
    parameters: Vec<(String, String)>,
    http: ProviderHttp,
    found: Mutex<Option<(u64, Arc<Metadata>)>>,
}

enum MetadataSource {
    /// The issuer publishes its endpoints.
    Issuer(Url, String),
    Endpoints(Arc<Metadata>),
}

/// The reason why a provider cannot be used as configured. For the author, at start.
///
/// ```
/// use mcp_elicit_oidc::{Provider, ProviderError};
///
/// let insecure = Provider::issuer("http://accounts.example.com", "my-client-id");
/// assert!(matches!(insecure, Err(ProviderError::Insecure(_))));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// Not a URL.
    #[error("{0:?} is not a URL")]
    Url(String),
    /// Plain http to another machine.
    #[error("{0} has to be https")]
    Insecure(String),
    /// An issuer with a query or a fragment (RFC 8414, 2).
    #[error("an issuer has no query and no fragment")]
    Issuer,
    /// A parameter that this crate sets.
    #[error("the parameter {0} is not the author's to set")]
    Parameter(String),
    /// Visitors sign in with ID tokens, which need an issuer.
    #[error("signing in needs a provider with an issuer")]
    NoIssuer,
    /// The HTTP client cannot be created.
    #[error("no HTTP client: {0}")]
    Http(String),
}

/// The endpoints and properties that a provider publishes (RFC 8414, 2; OpenID Connect Discovery 3).
///
/// ```no_run
/// use mcp_elicit_oidc::{OidcError, Provider};
///
/// # async fn f(provider: Provider, now_ms: u64) -> Result<(), OidcError> {
/// let metadata = provider.metadata(now_ms).await?;
/// println!("people sign in at {}", metadata.authorization_endpoint());
/// # Ok(()) }
/// ```
#[derive(Debug, Deserialize)]
pub struct Metadata {
    pub(crate) issuer: Option<String>,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) jwks_uri: Option<String>,
    #[serde(default)]
    pub(crate) introspection_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) userinfo_endpoint: Option<String>,
    #[serde(default)]
    end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    introspection_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// Creates the provider with this issuer, such as `https://accounts.example.com`, where this server is registered
    /// as `client_id`. Its endpoints are read from its published metadata (`/.well-known/openid-configuration`, or
    /// `/.well-known/oauth-authorization-server`) on demand.
    pub fn issuer(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
    ) -> Result<Self, ProviderError> {
        let issuer = issuer.into();
        let url = secure(&issuer)?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(ProviderError::Issuer);
        }
        Self::from(MetadataSource::Issuer(url, issuer), client_id)
    }

    /// Creates a provider without published metadata, by its two endpoints.
    ///
    /// ```
    /// use mcp_elicit_oidc::Provider;
    ///
    /// let provider = Provider::endpoints("https://example.com/authorize", "https://example.com/token", "my-client-id")?;
    /// # let _ = provider;
    /// # Ok::<(), mcp_elicit_oidc::ProviderError>(())
    /// ```
    pub fn endpoints(
        authorization: impl Into<String>,
        token: impl Into<String>,
        client_id: impl Into<String>,
    ) -> Result<Self, ProviderError> {
        let (authorization, token) = (authorization.into(), token.into());
        secure(&authorization)?;
        secure(&token)?;
        let known = Metadata {
            issuer: None,
            authorization_endpoint: authorization,
            token_endpoint: token,
            jwks_uri: None,
            introspection_endpoint: None,
            userinfo_endpoint: None,
            end_session_endpoint: None,
            token_endpoint_auth_methods_supported: None,
            introspection_endpoint_auth_methods_supported: None,
            code_challenge_methods_supported: None,
            authorization_response_iss_parameter_supported: false,
        };
        Self::from(MetadataSource::Endpoints(Arc::new(known)), client_id)
    }

    fn from(source: MetadataSource, client_id: impl Into<String>) -> Result<Self, ProviderError> {
        Ok(Self {
            source,
            client_id: client_id.into(),
            secret: None,
            scopes: Vec::new(),
            parameters: Vec::new(),
            http: ProviderHttp::new().map_err(ProviderError::Http)?,
            found: Mutex::default(),
        })
    }

    /// Sets the client secret. Without one this server is a public client, protected by PKCE alone.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(SecretText::new(secret));
        self
    }

    /// Adds requested scopes. With `openid` the grant identifies the person.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Adds a parameter of the authorization request, such as `prompt` or `access_type`.
    ///
    /// # Errors
    /// If it is one that this crate sets.
    pub fn parameter(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, ProviderError> {
        let name = name.into();
        if OURS.contains(&name.as_str()) {
            return Err(ProviderError::Parameter(name));
        }
        self.parameters.push((name, value.into()));
        Ok(self)
    }

    /// Returns the provider with the request to identify the person.
    ///
    /// # Errors
    /// If the provider was given by its endpoints: without an issuer there are no ID tokens to check.
    pub fn identifying(mut self) -> Result<Self, ProviderError> {
        if !matches!(self.source, MetadataSource::Issuer(..)) {
            return Err(ProviderError::NoIssuer);
        }
        if !self.asks_who() {
            self.scopes.insert(0, "openid".to_owned());
        }
        Ok(self)
    }

    pub(crate) fn asks_who(&self) -> bool {
        self.scopes.iter().any(|scope| scope == "openid")
    }

    /// Returns the requested scopes.
    pub fn scopes_asked(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the issuer as configured; empty for a provider that was created from its endpoints.
    pub fn issuer_name(&self) -> &str {
        match &self.source {
            MetadataSource::Issuer(_, issuer) => issuer,
            MetadataSource::Endpoints(_) => "",
        }
    }

    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn client_secret(&self) -> Option<&str> {
        self.secret.as_ref().map(SecretText::reveal)
    }

    pub(crate) fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    pub(crate) fn http(&self) -> &ProviderHttp {
        &self.http
    }

    /// Returns the provider's endpoints at this time, in milliseconds since 1970. They are requested again after a
    /// while, and after each failure.
    ///
    /// # Errors
    /// If the provider does not respond, or its response is invalid.
    pub async fn metadata(&self, now_ms: u64) -> Result<Arc<Metadata>, OidcError> {
        self.metadata_since(now_ms, FRESH_MS).await
    }

    /// Returns the endpoints, requested again if they are as old as `age_ms`. Known ones stay if the provider does not
    /// respond.
    ///
    /// # Errors
    /// The same as [`metadata`](Self::metadata).
    pub async fn metadata_since(
        &self,
        now_ms: u64,
        age_ms: u64,
    ) -> Result<Arc<Metadata>, OidcError> {
        let (url, issuer) = match &self.source {
            MetadataSource::Endpoints(known) => return Ok(Arc::clone(known)),
            MetadataSource::Issuer(url, issuer) => (url, issuer),
        };
        let found = async {
            let mut found = self.found.lock().await;
            if let Some((since, known)) = found.as_ref()
                && now_ms.saturating_sub(*since) < age_ms.min(FRESH_MS)
            {
                return Ok(Arc::clone(known));
            }
            let known = Arc::new(self.discover(url, issuer).await?);
            *found = Some((now_ms, Arc::clone(&known)));
            Ok(known)
        };
        // Each of many requests to a silent provider waits this long, and not also for those before it.
        tokio::time::timeout(WHOLE, found)
            .await
            .unwrap_or_else(|_| {
                Err(OidcError::Unreachable(
                    "it does not answer in time".to_owned(),
                ))
            })
    }

    async fn discover(&self, url: &Url, issuer: &str) -> Result<Metadata, OidcError> {
        for address in published_at(url) {
            let request = Request::get(address.as_str())
                .header(ACCEPT, "application/json")
                .body(Vec::new())
                .map_err(|error| OidcError::Unreachable(error.to_string()))?;
            let response = self.http.send(request).await?;
            match response.status() {
                StatusCode::OK => return read(response.body(), issuer),
                StatusCode::NOT_FOUND => {}
                status => {
                    return Err(OidcError::Unreachable(format!(
                        "{address} answers {status}"
                    )));
                }
            }
        }
        Err(OidcError::Setup(format!(
            "{issuer} publishes nothing about itself"
        )))
    }
}

/// Returns the addresses of an issuer's metadata: OpenID Connect Discovery 4 appends, RFC 8414 inserts.
fn published_at(issuer: &Url) -> [Url; 2] {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    };
    [
        at(format!("{path}/.well-known/openid-configuration")),
        at(format!("/.well-known/oauth-authorization-server{path}")),
    ]
}

fn read(body: &[u8], issuer: &str) -> Result<Metadata, OidcError> {
    let known: Metadata =
        serde_json::from_slice(body).map_err(|error| OidcError::Odd(error.to_string()))?;
    if known.issuer.as_deref() != Some(issuer) {
        let other = known.issuer.unwrap_or_default();
        let other: String = other.chars().take(200).collect();
        if other.trim_end_matches('/') == issuer.trim_end_matches('/') {
            return Err(OidcError::Odd(format!(
                "the issuer calls itself {other:?}: write issuer = {other:?}"
            )));
        }
        if other.is_empty() {
            return Err(OidcError::Odd(format!(
                "the metadata published at {issuer} names no issuer: `issuer` has to be the address of an OpenID provider"
            )));
        }
        return Err(OidcError::Odd(format!(
            "the metadata published at {issuer} names the issuer {other:?}: if that is yours, write issuer = {other:?}"
        )));
    }
    let others = [
        &known.jwks_uri,
        &known.introspection_endpoint,
        &known.userinfo_endpoint,
        &known.end_session_endpoint,
    ];
    let others = others.into_iter().flatten();
    for endpoint in others.chain([&known.authorization_endpoint, &known.token_endpoint]) {
        secure(endpoint).map_err(|error| OidcError::Odd(error.to_string()))?;
    }
    let methods = known.code_challenge_methods_supported.as_ref();
    if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
        return Err(OidcError::Setup(format!(
            "{issuer} does not support PKCE with S256"
        )));
    }
    Ok(known)
}

impl Metadata {
    /// Returns the issuer; `None` for a provider that was created from its endpoints.
    pub fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// Returns the URL that people are sent to.
    pub fn authorization_endpoint(&self) -> &str {
        &self.authorization_endpoint
    }

    /// Returns the URL at which a person signs out (OpenID Connect RP-Initiated Logout, 2.1).
    pub fn end_session_endpoint(&self) -> Option<&str> {
        self.end_session_endpoint.as_deref()
    }

    /// Returns `true` if it publishes keys for checking its tokens.
    pub fn publishes_keys(&self) -> bool {
        self.jwks_uri.is_some()
    }

    /// Returns `true` if it offers introspection (RFC 7662).
    pub fn answers_about_tokens(&self) -> bool {
        self.introspection_endpoint.is_some()
    }

    /// Returns `true` if the client's secret goes into the body, because the provider supports nothing else.
    pub(crate) fn takes_secret_in_body(&self) -> bool {
        in_body_only(self.token_endpoint_auth_methods_supported.as_deref())
    }

    /// Returns the same for the introspection endpoint, which uses the token endpoint's methods unless it names its
    /// own.
    pub(crate) fn introspection_takes_secret_in_body(&self) -> bool {
        let own = self
            .introspection_endpoint_auth_methods_supported
            .as_deref();
        in_body_only(own.or(self.token_endpoint_auth_methods_supported.as_deref()))
    }
}

fn in_body_only(methods: Option<&[String]>) -> bool {
    methods.is_some_and(|methods| {
        let has = |name: &str| methods.iter().any(|method| method == name);
        !has("client_secret_basic") && has("client_secret_post")
    })
}

/// Parses an https URL, or an http URL of this machine.
fn secure(text: &str) -> Result<Url, ProviderError> {
    let url = Url::parse(text).map_err(|_| ProviderError::Url(text.to_owned()))?;
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return Err(ProviderError::Url(text.to_owned())),
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if here => Ok(url),
        _ => Err(ProviderError::Insecure(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_spoken_to_in_private() {
        for (issuer, fits) in [
            ("https://accounts.example.com", true),
            ("http://127.0.0.1:4000", true),
            ("http://[::1]:4000/tenant", true),
            ("http://localhost:4000", true),
            ("http://accounts.example.com", false),
            ("http://localhost.example.com", false),
            ("https://accounts.example.com/?tenant=1", false),
            ("accounts.example.com", false),
            ("ftp://127.0.0.1", false),
        ] {
            assert_eq!(Provider::issuer(issuer, "us").is_ok(), fits, "{issuer}");
        }
        let plain = "http://login.example.com/token";
        assert!(Provider::endpoints("https://login.example.com/authorize", plain, "us").is_err());
    }

    #[test]
    fn both_places_of_metadata_are_known() {
        let urls = |issuer: &str| {
            published_at(&Url::parse(issuer).unwrap()).map(|url| url.as_str().to_owned())
        };
        assert_eq!(
            urls("https://a.example/"),
            [
                "https://a.example/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server"
            ]
        );
        assert_eq!(
            urls("https://a.example/one"),
            [
                "https://a.example/one/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server/one"
            ]
        );
    }

    #[test]
    fn metadata_that_cannot_be_trusted_is_refused() {
        let issuer = "https://a.example";
        let good = serde_json::json!({
            "issuer": issuer,
            "authorization_endpoint": "https://login.example.com/authorize",
            "token_endpoint": "https://a.example/token",
        });
        let with = |name: &str, value: serde_json::Value| {
            let mut document = good.clone();
            document[name] = value;
            read(document.to_string().as_bytes(), issuer)
        };
        let known = with("jwks_uri", "https://a.example/keys".into()).unwrap();
        assert!(!known.takes_secret_in_body());
        let posts = serde_json::json!(["client_secret_post"]);
        let known = with("token_endpoint_auth_methods_supported", posts).unwrap();
        assert!(known.takes_secret_in_body());
        for (name, value) in [
            ("issuer", serde_json::json!("https://b.example")),
            ("issuer", serde_json::Value::Null),
            ("token_endpoint", "http://a.example/token".into()),
            ("authorization_endpoint", "javascript:alert(1)".into()),
            ("jwks_uri", "http://a.example/keys".into()),
            ("introspection_endpoint", "http://a.example/look".into()),
            ("userinfo_endpoint", "http://a.example/who".into()),
            ("end_session_endpoint", "javascript:alert(1)".into()),
            (
                "code_challenge_methods_supported",
                serde_json::json!(["plain"]),
            ),
        ] {
            assert!(with(name, value.clone()).is_err(), "{name}: {value}");
        }
        let other = |name: &str| with("issuer", name.into()).unwrap_err().to_string();
        for name in ["https://a.example/", "https://b.example"] {
            let told = other(name);
            let next = format!("write issuer = \"{name}\"");
            assert!(told.contains(&next), "{told}");
        }
    }

    #[test]
    fn what_is_ours_cannot_be_set() {
        let provider = || Provider::issuer("https://a.example", "us").unwrap();
        assert!(provider().parameter("state", "1").is_err());
        assert!(provider().parameter("access_type", "offline").is_ok());
        let masked = format!("{:?}", provider().secret("s3cret"));
        assert!(!masked.contains("s3cret"), "{masked}");
    }

    #[test]
    fn signing_in_asks_who_it_is_and_needs_an_issuer() {
        let provider = Provider::issuer("https://a.example", "us").unwrap();
        assert_eq!(provider.identifying().unwrap().scopes_asked(), ["openid"]);
        let bare = Provider::endpoints("https://a.example/a", "https://a.example/t", "us");
        assert!(bare.unwrap().identifying().is_err());
    }
}
