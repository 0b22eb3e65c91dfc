//! From a code to a grant: the token endpoint, and the ID token.

use oauth2::basic::{
    BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, Client, ClientId, ClientSecret, EndpointNotSet,
    EndpointSet, PkceCodeVerifier, RedirectUrl, RequestTokenError, StandardRevocableToken,
    TokenResponse as _, TokenUrl,
};
use openidconnect::core::{
    CoreIdTokenVerifier, CoreJsonWebKeySet, CoreJwsSigningAlgorithm, CoreTokenResponse,
};
use openidconnect::{DiscoveryError, IssuerUrl, JsonWebKeySetUrl, Nonce};

use super::super::Secret;
use super::error::FlowError;
use super::flow::FlowState;
use super::provider::{Known, Provider};
use super::{Grant, Subject};

/// Signatures that only the provider can make. Never `none`, and no shared secrets.
const SIGNATURES: [CoreJwsSigningAlgorithm; 9] = [
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

/// This server as the provider's client, with both endpoints.
pub(super) type OurClient = Client<
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

/// The client for one flow.
pub(super) fn client(
    provider: &Provider,
    known: &Known,
    redirect: String,
) -> Result<OurClient, FlowError> {
    let setup = |error: url::ParseError| FlowError::Setup(error.to_string());
    let client = Client::new(ClientId::new(provider.client_id().to_owned()))
        .set_auth_uri(AuthUrl::new(known.authorization_endpoint.clone()).map_err(setup)?)
        .set_token_uri(TokenUrl::new(known.token_endpoint.clone()).map_err(setup)?)
        .set_redirect_uri(RedirectUrl::new(redirect).map_err(setup)?);
    let client = if known.takes_secret_in_body() {
        client.set_auth_type(AuthType::RequestBody)
    } else {
        client
    };
    Ok(match provider.client_secret() {
        Some(secret) => client.set_client_secret(ClientSecret::new(secret.to_owned())),
        None => client,
    })
}

/// Exchanges the code of a flow for a grant, and checks what comes with it.
pub(super) async fn exchange(
    provider: &Provider,
    known: &Known,
    redirect: String,
    flow: &FlowState,
    code: String,
) -> Result<Grant, FlowError> {
    let tokens = client(provider, known, redirect)?
        .exchange_code(AuthorizationCode::new(code))
        .set_pkce_verifier(PkceCodeVerifier::new(flow.verifier.clone()))
        .request_async(provider.http())
        .await
        .map_err(refused)?;
    let subject = match (&known.issuer, &known.jwks_uri) {
        (Some(issuer), Some(keys)) if provider.asks_who() => {
            Some(who(provider, issuer, keys, &tokens, &flow.nonce).await?)
        }
        (Some(_), None) if provider.asks_who() => {
            return Err(FlowError::Setup(
                "it publishes no keys to check ID tokens with".to_owned(),
            ));
        }
        _ => None,
    };
    let granted = tokens.scopes().map(|scopes| {
        let text = scopes.iter().map(|scope| scope.as_str().to_owned());
        text.collect()
    });
    Ok(Grant {
        access: Secret(tokens.access_token().secret().clone()),
        refresh: tokens
            .refresh_token()
            .map(|token| Secret(token.secret().clone())),
        expires_in: tokens.expires_in(),
        scopes: granted.unwrap_or_else(|| provider.scopes_asked().to_vec()),
        subject,
    })
}

/// Returns whose account it is, from an ID token that passes every check of OpenID Connect Core 3.1.3.7. The keys are
/// fetched each time, so that a provider may change them whenever it likes.
async fn who(
    provider: &Provider,
    issuer: &str,
    keys: &str,
    tokens: &CoreTokenResponse,
    nonce: &str,
) -> Result<Subject, FlowError> {
    let odd = |why: &dyn std::fmt::Display| FlowError::Odd(why.to_string());
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
    let verifier = CoreIdTokenVerifier::new_public_client(client_id, issuer_url, keys)
        .set_allowed_algs(SIGNATURES);
    let claims = id_token
        .claims(&verifier, &Nonce::new(nonce.to_owned()))
        .map_err(|error| odd(&error))?;
    Ok(Subject::new(issuer, claims.subject().as_str()))
}

/// Returns what a failed request to the token endpoint means. What the endpoint sent stays out: it could hold anything.
fn refused<E>(error: RequestTokenError<E, BasicErrorResponse>) -> FlowError
where
    E: std::error::Error + Into<FlowError> + 'static,
{
    match error {
        RequestTokenError::ServerResponse(response) => {
            FlowError::from_code(response.error().as_ref())
        }
        RequestTokenError::Request(error) => error.into(),
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            FlowError::Odd("the token endpoint's answer is none".to_owned())
        }
    }
}
