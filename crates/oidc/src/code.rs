//! The authorization-code flow: the authorization URL, the response, the token endpoint, and the ID token.

use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::secret::SecretText;
use oauth2::basic::{
    BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken,
    EndpointNotSet, EndpointSet, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RefreshToken,
    RequestTokenError, Scope, StandardRevocableToken, TokenResponse as _, TokenUrl,
};
use openidconnect::core::{
    CoreIdTokenVerifier, CoreJsonWebKeySet, CoreJwsSigningAlgorithm, CoreTokenResponse,
};
use openidconnect::{DiscoveryError, IssuerUrl, JsonWebKeySetUrl, Nonce};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::access_token::{is_name, time};
use crate::grant::CheckedIdToken;
use crate::jwt;
use crate::keys::is_strong;
use crate::{Grant, Metadata, OidcError, Provider, Subject};

/// Signature algorithms that only the provider can use. Never `none`, and no shared secrets.
pub(crate) const SIGNATURES: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The tolerated difference between this clock and the provider's.
const LEEWAY: Duration = Duration::from_secs(300);

/// The client with both endpoints.
type OurClient = Client<
    BasicErrorResponse,
    CoreTokenResponse,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

/// The parameters with which a provider redirects a browser (RFC 6749, 4.1.2; RFC 9207).
///
/// ```
/// use mcp_elicit_oidc::AuthorizationResponse;
///
/// let answer: AuthorizationResponse = serde_json::from_str(r#"{"state": "s", "code": "c"}"#).unwrap();
/// assert_eq!(answer.state(), Some("s"));
/// ```
#[derive(Deserialize)]
pub struct AuthorizationResponse {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

impl AuthorizationResponse {
    /// Returns the state, which identifies the flow.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Returns the code of a response from the provider that was asked (RFC 9207, 2.4).
    ///
    /// # Errors
    /// If another issuer responded, or the provider responded with an error.
    pub fn code(self, metadata: &Metadata) -> Result<String, OidcError> {
        let promised = metadata.authorization_response_iss_parameter_supported;
        match (&metadata.issuer, &self.iss) {
            (Some(issuer), Some(iss)) if issuer != iss => return Err(OidcError::WrongIssuer),
            (_, None) if promised => return Err(OidcError::WrongIssuer),
            _ => {}
        }
        if let Some(error) = self.error {
            return Err(OidcError::from_code(&error));
        }
        self.code
            .ok_or_else(|| OidcError::Odd("neither a code nor an error".to_owned()))
    }
}

impl Provider {
    /// Returns the URL to send the browser to, and its PKCE verifier (RFC 7636). `more` are additional parameters of
    /// this request, such as `max_age`.
    ///
    /// # Errors
    /// If the provider's addresses or the redirect URI cannot be used.
    pub fn authorization_url(
        &self,
        metadata: &Metadata,
        redirect: &str,
        state: &str,
        nonce: &str,
        more: &[(&str, &str)],
    ) -> Result<(String, String), OidcError> {
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let client = client(self, metadata, Some(redirect))?;
        let state = || CsrfToken::new(state.to_owned());
        let mut request = client.authorize_url(state).set_pkce_challenge(challenge);
        for scope in self.scopes_asked() {
            request = request.add_scope(Scope::new(scope.clone()));
        }
        if self.asks_who() {
            request = request.add_extra_param("nonce", nonce.to_owned());
        }
        for (name, value) in self.parameters() {
            request = request.add_extra_param(name, value);
        }
        for (name, value) in more {
            request = request.add_extra_param(*name, *value);
        }
        let (url, _) = request.url();
        Ok((url.into(), verifier.secret().clone()))
    }

    /// Exchanges the code of a flow for a grant, and checks the ID token.
    ///
    /// # Errors
    /// If the provider rejects the code, or returns an invalid response.
    pub async fn exchange_code(
        &self,
        metadata: &Metadata,
        redirect: &str,
        code: String,
        verifier: String,
        nonce: &str,
    ) -> Result<Grant, OidcError> {
        let tokens = client(self, metadata, Some(redirect))?
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(verifier))
            .request_async(self.http())
            .await
            .map_err(refused)?;
        let identity = match (&metadata.issuer, &metadata.jwks_uri) {
            (Some(issuer), Some(keys)) if self.asks_who() => {
                Some(identity(self, issuer, keys, &tokens, Some(nonce)).await?)
            }
            (Some(_), None) if self.asks_who() => {
                return Err(OidcError::Setup(
                    "it publishes no keys to check ID tokens with".to_owned(),
                ));
            }
            _ => None,
        };
        Ok(self.grant(&tokens, identity))
    }

    /// Exchanges a refresh token for a new grant. An ID token in the response must have the same subject (OpenID
    /// Connect Core 12.2).
    ///
    /// # Errors
    /// If the provider rejects it, or returns an invalid response.
    pub async fn refresh(
        &self,
        metadata: &Metadata,
        token: &str,
        subject: &Subject,
    ) -> Result<Grant, OidcError> {
        let tokens = client(self, metadata, None)?
            .exchange_refresh_token(&RefreshToken::new(token.to_owned()))
            .request_async(self.http())
            .await
            .map_err(refused)?;
        let identity = match (
            &metadata.issuer,
            &metadata.jwks_uri,
            tokens.extra_fields().id_token(),
        ) {
            (Some(issuer), Some(keys), Some(_)) if self.asks_who() => {
                let identity = identity(self, issuer, keys, &tokens, None).await?;
                if identity.subject != *subject {
                    return Err(OidcError::OtherPerson);
                }
                Some(identity)
            }
            _ => None,
        };
        Ok(self.grant(&tokens, identity))
    }

    fn grant(&self, tokens: &CoreTokenResponse, identity: Option<CheckedIdToken>) -> Grant {
        let granted = tokens.scopes().map(|scopes| {
            let text = scopes.iter().map(|scope| scope.as_str().to_owned());
            text.collect()
        });
        Grant {
            access: SecretText::new(tokens.access_token().secret().clone()),
            refresh: tokens
                .refresh_token()
                .map(|token| SecretText::new(token.secret().clone())),
            expires_in: tokens.expires_in(),
            scopes: granted.unwrap_or_else(|| self.scopes_asked().to_vec()),
            identity,
        }
    }
}

/// Creates the client for one request.
fn client(
    provider: &Provider,
    metadata: &Metadata,
    redirect: Option<&str>,
) -> Result<OurClient, OidcError> {
    let setup = |error: url::ParseError| OidcError::Setup(error.to_string());
    let client = Client::new(ClientId::new(provider.client_id().to_owned()))
        .set_auth_uri(AuthUrl::new(metadata.authorization_endpoint.clone()).map_err(setup)?)
        .set_token_uri(TokenUrl::new(metadata.token_endpoint.clone()).map_err(setup)?);
    let client = match redirect {
        Some(redirect) => {
            client.set_redirect_uri(RedirectUrl::new(redirect.to_owned()).map_err(setup)?)
        }
        None => client,
    };
    let client = if metadata.takes_secret_in_body() {
        client.set_auth_type(AuthType::RequestBody)
    } else {
        client
    };
    Ok(match provider.client_secret() {
        Some(secret) => client.set_client_secret(ClientSecret::new(secret.to_owned())),
        None => client,
    })
}

/// Returns the person of an ID token that passes every check of OpenID Connect Core 3.1.3.7. The keys are fetched each
/// time, so that a provider may change them at any time.
async fn identity(
    provider: &Provider,
    issuer: &str,
    keys: &str,
    tokens: &CoreTokenResponse,
    nonce: Option<&str>,
) -> Result<CheckedIdToken, OidcError> {
    let odd = |why: &dyn std::fmt::Display| OidcError::Odd(why.to_string());
    let id_token = tokens.extra_fields().id_token();
    let id_token = id_token.ok_or_else(|| odd(&"no ID token came"))?;
    let keys = JsonWebKeySetUrl::new(keys.to_owned()).map_err(|error| odd(&error))?;
    let keys = CoreJsonWebKeySet::fetch_async(&keys, provider.http()).await;
    let keys = keys.map_err(|error| match error {
        DiscoveryError::Request(error) => error.into(),
        other => odd(&other),
    })?;
    let issuer_url = IssuerUrl::new(issuer.to_owned()).map_err(|error| odd(&error))?;
    let client_id = ClientId::new(provider.client_id().to_owned());
    let keys = keys.keys().iter().filter(|key| is_strong(key));
    let keys = CoreJsonWebKeySet::new(keys.cloned().collect());
    let verifier = CoreIdTokenVerifier::new_public_client(client_id, issuer_url, keys)
        .set_allowed_algs(SIGNATURES);
    let checked = match nonce {
        Some(nonce) => id_token.claims(&verifier, &Nonce::new(nonce.to_owned())),
        // A refreshed one need not repeat the nonce of the sign-in.
        None => id_token.claims(&verifier, |_: Option<&Nonce>| Ok(())),
    };
    let subject = checked.map_err(|error| odd(&error))?.subject().as_str();
    if !is_name(subject) {
        return Err(odd(&"the ID token names no subject"));
    }
    let text = id_token.to_string();
    let claims = jwt::payload(&text).ok_or_else(|| odd(&"an ID token without claims"))?;
    check_rest(&claims, provider.client_id(), now()).map_err(|why| odd(&why))?;
    Ok(CheckedIdToken {
        subject: Subject::new(issuer, subject),
        claims,
        id_token: SecretText::new(text),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the library reads the clock for the end of an ID token, too"
)]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::from_epoch(since.unwrap_or_default())
}

/// Checks the claims of an ID token that the library leaves to its user: the authorized party, and the start of
/// validity.
fn check_rest(
    claims: &Map<String, Value>,
    client_id: &str,
    now: Timestamp,
) -> Result<(), &'static str> {
    match claims.get("azp") {
        None | Some(Value::Null) => {}
        Some(Value::String(party)) if party == client_id => {}
        Some(_) => return Err("the ID token was issued to another client"),
    }
    for name in ["iat", "nbf"] {
        if claims.get(name).is_some_and(Value::is_null) {
            continue;
        }
        let at = time(claims, name).map_err(|_| "a time in the ID token is invalid")?;
        if at.is_some_and(|at| at > now.after(LEEWAY)) {
            return Err("the ID token is not valid yet");
        }
    }
    Ok(())
}

/// Converts an error of the token endpoint. The response is omitted, because it could contain anything.
fn refused<E>(error: RequestTokenError<E, BasicErrorResponse>) -> OidcError
where
    E: std::error::Error + Into<OidcError> + 'static,
{
    match error {
        RequestTokenError::ServerResponse(response) => {
            OidcError::from_code(response.error().as_ref())
        }
        RequestTokenError::Request(error) => error.into(),
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            OidcError::Odd("the token endpoint's response cannot be read".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_token_is_for_this_client_and_valid_by_now() {
        let now = Timestamp::from_millis(1_000_000);
        let check = |claims: Value| {
            let Value::Object(claims) = claims else {
                unreachable!("claims are an object")
            };
            check_rest(&claims, "us", now).is_ok()
        };
        for (claims, is_good) in [
            (serde_json::json!({}), true),
            (
                serde_json::json!({"azp": "us", "iat": 1_000, "nbf": 1_300}),
                true,
            ),
            (
                serde_json::json!({"azp": null, "iat": 999.5, "nbf": null}),
                true,
            ),
            (serde_json::json!({"azp": "them"}), false),
            (serde_json::json!({"azp": ["us"]}), false),
            (serde_json::json!({"iat": 1_301}), false),
            (serde_json::json!({"nbf": 1_301}), false),
            (serde_json::json!({"nbf": "soon"}), false),
        ] {
            assert_eq!(check(claims.clone()), is_good, "{claims}");
        }
    }
}
