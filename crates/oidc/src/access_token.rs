//! Access tokens of callers: JSON Web Tokens (RFC 9068), checked with the issuer's keys, or any tokens, checked by
//! asking the issuer (RFC 7662).

use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use serde_json::{Map, Value};

use crate::code::SIGNATURES;
use crate::introspected::{self, Introspected, Known};
use crate::jwt::{self, Unverified};
use crate::keys::KeyCache;
use crate::{OidcError, Provider, Subject};

/// The longest token, in bytes.
const LONGEST: usize = 8 * 1024;
/// The longest subject, in bytes (OpenID Connect Core 2).
const LONGEST_SUBJECT: usize = 255;
/// The time after which a request that failed because of an outage may be repeated.
const RETRY: Duration = Duration::from_secs(10);
/// The maximum age of a logout token (OpenID Connect Back-Channel Logout 2.6).
const LOGOUT_AGE: Duration = Duration::from_secs(2 * 60);
/// The event of a logout token.
const LOGOUT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// The refusal of a token that the issuer does not know, or no longer.
const INACTIVE: AccessTokenError =
    AccessTokenError::Invalid("the issuer does not know the token, or ended it");
/// The names of kinds of tokens that grant no access, in `typ`, `token_use` and `token_type`.
const OTHER_KINDS: [&str; 6] = [
    "id",
    "id_token",
    "refresh",
    "refresh_token",
    "offline",
    "logout",
];

/// The reason why a token is not accepted. The texts contain nothing of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessTokenError {
    /// It is not a token of this issuer for this resource.
    #[error("{0}")]
    Invalid(&'static str),
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token lacks a required scope.
    #[error("the token lacks a scope")]
    Scope,
    /// The issuer cannot be asked.
    #[error("the issuer of the token cannot be asked")]
    Unavailable {
        /// The time after which the caller may retry.
        retry_after: Duration,
    },
}

/// A checked access token. Its text is not kept.
#[derive(Clone)]
pub struct AccessToken {
    subject: Subject,
    claims: Map<String, Value>,
    expires_at: Option<Timestamp>,
}

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessToken")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl AccessToken {
    /// Returns the person or program that the token was issued to.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the time at which it expires; `None` if the issuer, asked about it, does not say.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// Returns a text claim.
    pub fn text(&self, claim: &str) -> Option<&str> {
        self.claims.get(claim)?.as_str()
    }

    /// Returns `true` if a claim is `true`.
    pub fn says(&self, claim: &str) -> bool {
        self.claims.get(claim).is_some_and(|value| *value == true)
    }

    /// Returns the texts of a claim that is a text or a list of them.
    pub fn texts(&self, claim: &str) -> Vec<&str> {
        texts(self.claims.get(claim)).collect()
    }
}

/// A checked logout token: the provider ended a session of a person.
#[derive(Debug)]
pub struct LogoutToken {
    /// The person; absent if the session alone is named.
    pub subject: Option<Subject>,
    /// The provider's session.
    pub sid: Option<String>,
    /// The id of the token, which may be used once.
    pub jti: String,
}

/// A verifier of the access tokens of one issuer.
///
/// ```no_run
/// use mcp_elicit_core::lifecycle::Timestamp;
/// use mcp_elicit_oidc::{Provider, ProviderError, AccessTokenError, TokenVerifier};
///
/// # async fn f(now: Timestamp) -> Result<(), Box<dyn std::error::Error>> {
/// let issuer = Provider::issuer("https://id.example.com", "gateway")?;
/// let verifier = TokenVerifier::new(issuer).requires(["mcp"]);
/// match verifier.verify("eyJ..", &["https://mcp.example.com/mcp"], now).await {
///     Ok(token) => println!("{}", token.subject()),
///     Err(AccessTokenError::Expired) => println!("sign in again"),
///     Err(other) => println!("{other}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct TokenVerifier {
    provider: Provider,
    keys: KeyCache,
    leeway: Duration,
    scopes: Vec<String>,
    introspected: Introspected,
}

impl TokenVerifier {
    /// Creates a verifier for the tokens of this issuer.
    pub fn new(provider: Provider) -> Self {
        Self {
            provider,
            keys: KeyCache::default(),
            leeway: Duration::from_secs(60),
            scopes: Vec::new(),
            introspected: Introspected::default(),
        }
    }

    /// Sets the tolerated difference between this clock and the issuer's. Defaults to one minute.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// Sets the scopes that every token needs.
    #[must_use]
    pub fn requires<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Returns the issuer.
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Returns the age of the issuer's keys; `None` if none were fetched yet.
    pub fn keys_age(&self, now: Timestamp) -> Option<Duration> {
        self.keys.age(now)
    }

    /// Checks a JSON Web Token for one of these audiences (RFC 9068, 4). For a token without an audience, which says in
    /// `token_use` that it is an access token, one of them is the `client_id`.
    ///
    /// # Errors
    /// If it is not valid, or the issuer's keys are not available.
    pub async fn verify(
        &self,
        text: &str,
        audience: &[&str],
        now: Timestamp,
    ) -> Result<AccessToken, AccessTokenError> {
        let token = self.signed(text, &["at+jwt", "jwt"], now).await?;
        if is_of_other_kind(token.header.typ.as_deref(), &token.claims, audience) {
            return Err(AccessTokenError::Invalid(
                "an ID token or a refresh token is not an access token",
            ));
        }
        if !token.claims.contains_key("exp") {
            return Err(AccessTokenError::Invalid("the token never expires"));
        }
        self.checked(token.claims, audience, now)
    }

    /// Asks the issuer about a token for one of these audiences (RFC 7662). The result is cached for at most half a
    /// minute.
    ///
    /// # Errors
    /// If it is not valid, or the issuer cannot be asked.
    pub async fn introspect(
        &self,
        text: &str,
        audience: &[&str],
        now: Timestamp,
    ) -> Result<AccessToken, AccessTokenError> {
        let digest = introspected::digest(text);
        let (claims, is_known) = match self.introspected.known(&digest, now) {
            Known::Active(claims) => (claims, true),
            Known::Unknown => return Err(INACTIVE),
            Known::Nothing => {
                let asking = self.introspected.begin(&digest, now);
                let _asking =
                    asking.map_err(|retry_after| AccessTokenError::Unavailable { retry_after })?;
                (self.ask(text, now).await?, false)
            }
        };
        // A cached answer is checked again: the audience may be another one.
        if is_of_other_kind(None, &claims, audience) {
            return Err(AccessTokenError::Invalid(
                "an ID token or a refresh token is not an access token",
            ));
        }
        let token = self.checked(claims, audience, now)?;
        if !is_known {
            let expires_at = token.expires_at;
            self.introspected
                .active(digest, &token.claims, expires_at, now);
        }
        Ok(token)
    }

    /// Asks the issuer again, and returns `true` if the token is valid. If it is not, its cached result is dropped.
    ///
    /// # Errors
    /// If the issuer cannot be asked.
    pub async fn is_active(&self, text: &str, now: Timestamp) -> Result<bool, AccessTokenError> {
        match self.ask(text, now).await {
            Ok(_) => Ok(true),
            Err(error @ AccessTokenError::Unavailable { .. }) => Err(error),
            Err(
                AccessTokenError::Invalid(_) | AccessTokenError::Expired | AccessTokenError::Scope,
            ) => {
                self.introspected.inactive(introspected::digest(text), now);
                Ok(false)
            }
        }
    }

    /// Checks a logout token for this client (OpenID Connect Back-Channel Logout 2.6). The caller must check that its
    /// `jti` is new.
    ///
    /// # Errors
    /// If it is not valid, or the issuer's keys are not available.
    pub async fn verify_logout(
        &self,
        text: &str,
        now: Timestamp,
    ) -> Result<LogoutToken, AccessTokenError> {
        let token = self.signed(text, &["logout+jwt", "jwt"], now).await?;
        let claims = token.claims;
        let invalid = |why| Err(AccessTokenError::Invalid(why));
        self.issued_here(&claims)?;
        self.in_time(&claims, now)?;
        if !texts(claims.get("aud")).any(|audience| audience == self.provider.client_id()) {
            return invalid("the token is for another client");
        }
        let issued =
            time(&claims, "iat")?.ok_or(AccessTokenError::Invalid("the token has no `iat`"))?;
        if now.since(issued) > LOGOUT_AGE + self.leeway {
            return Err(AccessTokenError::Expired);
        }
        if claims.contains_key("nonce") {
            return invalid("an ID token is not a logout token");
        }
        let is_logout = claims.get("events").and_then(|events| events.get(LOGOUT));
        if !is_logout.is_some_and(Value::is_object) {
            return invalid("the token ends no session");
        }
        let word = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if is_name(text) => Ok(Some(text.clone())),
            Some(_) => Err(AccessTokenError::Invalid(
                "a claim of the token has another type",
            )),
        };
        let (subject, sid, jti) = (word("sub")?, word("sid")?, word("jti")?);
        if subject.is_none() && sid.is_none() {
            return invalid("the token names no session");
        }
        Ok(LogoutToken {
            subject: subject.map(|subject| Subject::new(self.provider.issuer_name(), subject)),
            sid,
            jti: jti.ok_or(AccessTokenError::Invalid("the token has no `jti`"))?,
        })
    }

    /// Parses a token of one of these types, and checks its signature.
    async fn signed<'t>(
        &self,
        text: &'t str,
        types: &[&str],
        now: Timestamp,
    ) -> Result<Unverified<'t>, AccessTokenError> {
        if text.len() > LONGEST {
            return Err(AccessTokenError::Invalid("the token is too long"));
        }
        let token = jwt::read(text).ok_or(AccessTokenError::Invalid("not a JSON Web Token"))?;
        // Before the signature: only this issuer's keys count, and a foreign token must not trigger a request for keys.
        self.issued_here(&token.claims)?;
        if !SIGNATURES.contains(&token.header.alg) {
            return Err(AccessTokenError::Invalid(
                "the signature is of a kind that is not taken",
            ));
        }
        if token.header.crit.is_some() {
            return Err(AccessTokenError::Invalid(
                "the token has extensions that are not known",
            ));
        }
        let is_of = |typ: &str| {
            let typ = typ.to_ascii_lowercase();
            types.contains(&typ.strip_prefix("application/").unwrap_or(&typ))
        };
        if !token.header.typ.as_deref().is_none_or(is_of) {
            return Err(AccessTokenError::Invalid("the token is of another type"));
        }
        self.keys.check(&self.provider, &token, now).await?;
        Ok(token)
    }

    /// Performs the checks that a signed token and an introspection result share.
    fn checked(
        &self,
        claims: Map<String, Value>,
        audience: &[&str],
        now: Timestamp,
    ) -> Result<AccessToken, AccessTokenError> {
        let is_for_us = texts(claims.get("aud")).any(|for_whom| audience.contains(&for_whom));
        if !is_for_us && !self.was_issued_to(&claims, audience) {
            return Err(AccessTokenError::Invalid(
                "the token is for another resource",
            ));
        }
        if claims.contains_key("cnf") {
            // Whoever has copied it could use it here as well.
            return Err(AccessTokenError::Invalid(
                "the token is bound to a key (`cnf`), and proofs of possession are not checked here",
            ));
        }
        let expires_at = self.in_time(&claims, now)?;
        let subject = claims.get("sub").and_then(Value::as_str);
        let subject = subject.filter(|subject| is_name(subject));
        let subject = subject.ok_or(AccessTokenError::Invalid("the token names no subject"))?;
        let subject = Subject::new(self.provider.issuer_name(), subject);
        let granted: Vec<&str> = texts(claims.get("scope"))
            .chain(texts(claims.get("scp")))
            .flat_map(|scopes| scopes.split(' '))
            .collect();
        if !self
            .scopes
            .iter()
            .all(|scope| granted.contains(&scope.as_str()))
        {
            return Err(AccessTokenError::Scope);
        }
        Ok(AccessToken {
            subject,
            claims,
            expires_at,
        })
    }

    /// Returns `true` for an access token without an audience, as Amazon Cognito's, that was issued to one of these
    /// clients, or to this one. It says of itself that it is one.
    fn was_issued_to(&self, claims: &Map<String, Value>, clients: &[&str]) -> bool {
        let client = claims.get("client_id").and_then(Value::as_str);
        let is_known = client.is_some_and(|client| {
            !client.is_empty() && (clients.contains(&client) || client == self.provider.client_id())
        });
        is_known && !claims.contains_key("aud") && says(claims, "token_use", "access")
    }

    fn issued_here(&self, claims: &Map<String, Value>) -> Result<(), AccessTokenError> {
        let issuer = claims.get("iss").and_then(Value::as_str);
        if issuer == Some(self.provider.issuer_name()) {
            return Ok(());
        }
        Err(AccessTokenError::Invalid("the token is of another issuer"))
    }

    /// Checks the times of a token. Returns the time at which it expires, including the leeway.
    fn in_time(
        &self,
        claims: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, AccessTokenError> {
        let expires_at = time(claims, "exp")?.map(|at| at.after(self.leeway));
        if expires_at.is_some_and(|at| now >= at) {
            return Err(AccessTokenError::Expired);
        }
        for claim in ["nbf", "iat"] {
            if time(claims, claim)?.is_some_and(|at| at > now.after(self.leeway)) {
                return Err(AccessTokenError::Invalid("the token is not valid yet"));
            }
        }
        Ok(expires_at)
    }

    /// Asks the issuer; returns the claims of an active token.
    async fn ask(
        &self,
        text: &str,
        now: Timestamp,
    ) -> Result<Map<String, Value>, AccessTokenError> {
        if text.len() > LONGEST {
            return Err(AccessTokenError::Invalid("the token is too long"));
        }
        let answer = self.provider.introspection(text, now).await;
        let mut claims = answer.map_err(|error: OidcError| {
            if let Some(left_out) = self.introspected.failed(now) {
                tracing::warn!(target: "mcp_elicit", %error, left_out, "the issuer could not be asked about a token");
            }
            AccessTokenError::Unavailable { retry_after: RETRY }
        })?;
        if claims.get("active") != Some(&Value::Bool(true)) {
            self.introspected.inactive(introspected::digest(text), now);
            return Err(INACTIVE);
        }
        let length = serde_json::to_string(&claims).map_or(usize::MAX, |text| text.len());
        if length > introspected::LONGEST_ANSWER {
            return Err(AccessTokenError::Invalid(
                "the issuer's answer about the token is too long",
            ));
        }
        // Optional in a response (RFC 7662, 2.2): the responding issuer is the one that was asked.
        claims
            .entry("iss")
            .or_insert_with(|| self.provider.issuer_name().into());
        self.issued_here(&claims)?;
        Ok(claims)
    }
}

/// Returns `true` for a token that says that it is of another kind: an ID token, which identifies a person to a client and
/// grants no access, or a refresh token. Some issuers put `nonce`
/// into access tokens too (Keycloak before 24). A token is taken for an access token in spite of it if it says that it
/// is one, or if it is for one of these audiences and not just for the client that requested it.
fn is_of_other_kind(typ: Option<&str>, claims: &Map<String, Value>, audience: &[&str]) -> bool {
    let kinds = ["typ", "token_use", "token_type"].into_iter();
    let mut kinds = kinds.filter_map(|claim| claims.get(claim)?.as_str());
    let is_other = |kind: &str| {
        OTHER_KINDS
            .iter()
            .any(|other| kind.eq_ignore_ascii_case(other))
    };
    if kinds.any(is_other) {
        return true;
    }
    if ["at_hash", "c_hash"]
        .iter()
        .any(|claim| claims.contains_key(*claim))
    {
        return true;
    }
    let typ = typ.unwrap_or_default().to_ascii_lowercase();
    if typ.strip_prefix("application/").unwrap_or(&typ) == "at+jwt" {
        return false;
    }
    let client = claims
        .get("azp")
        .or_else(|| claims.get("client_id"))
        .and_then(Value::as_str);
    let is_for_us = texts(claims.get("aud"))
        .any(|for_whom| audience.contains(&for_whom) && client != Some(for_whom));
    claims.contains_key("nonce")
        && !is_for_us
        && !says(claims, "typ", "Bearer")
        && !says(claims, "token_use", "access")
        && !says(claims, "token_type", "Bearer")
}

/// Returns `true` if a claim is this text.
fn says(claims: &Map<String, Value>, claim: &str, text: &str) -> bool {
    claims.get(claim).and_then(Value::as_str) == Some(text)
}

/// Returns `true` if a text can name a subject or a session: it is not blank, not too long, and has no invisible
/// characters.
pub(crate) fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= LONGEST_SUBJECT && !text.chars().any(char::is_control)
}

/// Returns the texts of a claim that is a text or a list of them.
fn texts(claim: Option<&Value>) -> impl Iterator<Item = &str> {
    let (one, many) = match claim {
        Some(Value::String(one)) => (Some(one.as_str()), &[][..]),
        Some(Value::Array(many)) => (None, many.as_slice()),
        _ => (None, &[][..]),
    };
    one.into_iter().chain(many.iter().filter_map(Value::as_str))
}

/// Returns a claim that is a time (RFC 7519, 2: seconds since 1970).
pub(crate) fn time(
    claims: &Map<String, Value>,
    name: &str,
) -> Result<Option<Timestamp>, AccessTokenError> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.map(|time| Some(Timestamp::from_epoch(time)))
        .ok_or(AccessTokenError::Invalid("a time in the token is invalid"))
}
