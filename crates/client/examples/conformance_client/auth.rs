//! Authorization at a server that requires OAuth. rmcp does the discovery, the registration and the tokens. The example
//! plays a browser whose person always agrees, by following the authorization link once.

use std::error::Error;

use http::header::LOCATION;
use rmcp::transport::AuthorizationManager;
use rmcp::transport::auth::{
    AuthorizationCallback, AuthorizationRequest, ClientCredentialsConfig, JwtSigningAlgorithm,
    OAuthState,
};

use super::Context;

/// The address to which the suite redirects, and at which it looks for the client's metadata document.
const BACK: &str = "http://localhost:3000/callback";
const DESCRIPTION: &str = "https://conformance-test.local/client-metadata.json";

/// Authorizes the client as the challenge requires. Scopes that were granted before are requested again, together with
/// the new ones (2026-07-28, authorization, scope challenges).
pub(super) async fn authorize(
    url: &str,
    context: &Context,
    challenge: String,
    granted: &[String],
) -> Result<AuthorizationManager, Box<dyn Error>> {
    let mut state = OAuthState::new(url, None).await?;
    if let Some(config) = machine(url, context)? {
        state.authenticate_client_credentials(config).await?;
    } else {
        person(&mut state, context, &challenge, granted).await?;
    }
    state
        .into_authorization_manager()
        .ok_or_else(|| "no authorization came of it".into())
}

/// Returns the credentials of a client that acts for itself, in the scenarios without a person.
fn machine(
    url: &str,
    context: &Context,
) -> Result<Option<ClientCredentialsConfig>, Box<dyn Error>> {
    let for_itself = std::env::var("MCP_CONFORMANCE_SCENARIO")
        .is_ok_and(|scenario| scenario.starts_with("auth/client-credentials"));
    let Some(client_id) = context.client_id.clone().filter(|_| for_itself) else {
        return Ok(None);
    };
    let scopes = Vec::new();
    let resource = Some(url.to_owned());
    let config = match (&context.private_key_pem, &context.client_secret) {
        (Some(key), _) => ClientCredentialsConfig::PrivateKeyJwt {
            client_id,
            signing_key: key.clone().into_bytes(),
            signing_algorithm: algorithm(context.signing_algorithm.as_deref())?,
            token_endpoint_audience: None,
            scopes,
            resource,
        },
        (None, Some(secret)) => ClientCredentialsConfig::ClientSecret {
            client_id,
            client_secret: secret.clone(),
            scopes,
            resource,
        },
        (None, None) => return Err("neither a key nor a secret to come in with".into()),
    };
    Ok(Some(config))
}

fn algorithm(name: Option<&str>) -> Result<JwtSigningAlgorithm, Box<dyn Error>> {
    match name {
        Some("RS256") => Ok(JwtSigningAlgorithm::RS256),
        Some("RS384") => Ok(JwtSigningAlgorithm::RS384),
        Some("RS512") => Ok(JwtSigningAlgorithm::RS512),
        Some("ES256") => Ok(JwtSigningAlgorithm::ES256),
        Some("ES384") => Ok(JwtSigningAlgorithm::ES384),
        other => Err(format!("no way to sign with {other:?}").into()),
    }
}

/// Authorizes on behalf of a person.
async fn person(
    state: &mut OAuthState,
    context: &Context,
    challenge: &str,
    granted: &[String],
) -> Result<(), Box<dyn Error>> {
    let mut request = AuthorizationRequest::new(BACK)
        .with_client_name("mcp-elicit conformance")
        .with_client_metadata_url(DESCRIPTION);
    if !granted.is_empty() {
        let wanted = granted.iter().map(String::as_str).chain(scopes(challenge));
        request = request.with_scopes(wanted);
    }
    request = request.with_challenge(challenge);
    if let (Some(id), Some(secret)) = (&context.client_id, &context.client_secret) {
        request = request
            .with_preregistered_client(id)
            .with_client_secret(secret);
    }
    state.start_authorization(request).await?;
    let back = say_yes(&state.get_authorization_url().await?).await?;
    let issuer = back.issuer.as_deref();
    state
        .handle_callback_with_issuer(&back.code, &back.csrf_token, issuer)
        .await?;
    Ok(())
}

/// Returns the scopes that a challenge names.
fn scopes(challenge: &str) -> impl Iterator<Item = &str> {
    let named = challenge
        .split_once("scope=\"")
        .map_or("", |(_, rest)| rest);
    named
        .split('"')
        .next()
        .unwrap_or_default()
        .split_whitespace()
}

/// Returns the result of the person's agreement: the browser comes back with a code.
async fn say_yes(link: &str) -> Result<AuthorizationCallback, Box<dyn Error>> {
    let browser = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let response = browser.get(link).send().await?;
    let back = response
        .headers()
        .get(LOCATION)
        .ok_or("nobody was sent back")?;
    Ok(AuthorizationCallback::from_redirect_url(back.to_str()?)?)
}
