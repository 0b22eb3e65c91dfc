//! Requests as a client to the provider's endpoints: introspection (RFC 7662), token exchange (RFC 8693), and the
//! claims of a person.

use std::time::Duration;

use data_encoding::BASE64;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Request, StatusCode};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::secret::SecretText;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::{Metadata, OidcError, Provider, Subject};

/// The grant type of a token exchange.
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// The type of the exchanged token, and of the returned one.
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// The lifetime of a token if the issuer does not give one.
const USUAL_LIFETIME: Duration = Duration::from_secs(60);

/// A token for another resource, which a provider issued in exchange for a caller's own.
#[derive(Clone, Debug)]
pub struct ExchangedToken {
    token: SecretText,
    lifetime: Duration,
}

impl ExchangedToken {
    /// Returns the token, for use in a request.
    pub fn reveal(&self) -> &str {
        self.token.reveal()
    }

    /// Returns the remaining lifetime.
    pub fn lifetime(&self) -> Duration {
        self.lifetime
    }
}

#[derive(Deserialize)]
struct Exchanged {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Option<u64>,
}

/// The error of an endpoint (RFC 6749, 5.2).
#[derive(Deserialize)]
struct EndpointError {
    error: String,
}

impl Provider {
    /// Exchanges a caller's access token for one for this resource (RFC 8693).
    ///
    /// # Errors
    /// If the provider refuses, or cannot be asked.
    pub async fn exchange_token(
        &self,
        subject_token: &str,
        resource: &str,
        scopes: &[String],
        now: Timestamp,
    ) -> Result<ExchangedToken, OidcError> {
        let metadata = self.metadata(now.as_millis()).await?;
        let scope = scopes.join(" ");
        let mut form = vec![
            ("grant_type", EXCHANGE),
            ("subject_token", subject_token),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", ACCESS_TOKEN),
            ("resource", resource),
        ];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let in_body = metadata.takes_secret_in_body();
        let body = self.post(&metadata.token_endpoint, &form, in_body).await?;
        let odd = |why: &str| OidcError::Odd(why.to_owned());
        let exchanged: Exchanged = serde_json::from_slice(&body)
            .map_err(|_| odd("the response to the token exchange cannot be read"))?;
        if !exchanged.token_type.eq_ignore_ascii_case("bearer") {
            return Err(odd("the exchanged token is not a bearer token"));
        }
        let in_header = |byte: u8| (0x21..=0x7e).contains(&byte);
        if exchanged.access_token.is_empty() || !exchanged.access_token.bytes().all(in_header) {
            return Err(odd("the exchanged token fits no header"));
        }
        Ok(ExchangedToken {
            token: SecretText::new(exchanged.access_token),
            lifetime: exchanged
                .expires_in
                .map_or(USUAL_LIFETIME, Duration::from_secs),
        })
    }

    /// Returns the provider's current claims about the person with this access token (OpenID Connect Core 5.3); `None`
    /// if it has no such endpoint.
    ///
    /// # Errors
    /// If the provider rejects the token ([`OidcError::Denied`]), returns another person's claims
    /// ([`OidcError::OtherPerson`]) or an invalid response, or cannot be asked.
    pub async fn userinfo(
        &self,
        metadata: &Metadata,
        access_token: &str,
        subject: &Subject,
    ) -> Result<Option<Map<String, Value>>, OidcError> {
        let Some(endpoint) = metadata.userinfo_endpoint.as_deref() else {
            return Ok(None);
        };
        let request = Request::get(endpoint)
            .header(ACCEPT, "application/json")
            .header(AUTHORIZATION, format!("Bearer {access_token}"))
            .body(Vec::new())
            .map_err(|_| OidcError::Odd("the access token fits no header".to_owned()))?;
        let response = self.http().send(request).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(OidcError::Denied),
            status => return Err(OidcError::Unreachable(format!("it answers {status}"))),
        }
        let claims: Map<String, Value> = serde_json::from_slice(response.body())
            .map_err(|_| OidcError::Odd("the response about a person cannot be read".to_owned()))?;
        // Another person's claims must not be accepted (5.3.2).
        if claims.get("sub").and_then(Value::as_str) != Some(subject.subject()) {
            return Err(OidcError::OtherPerson);
        }
        Ok(Some(claims))
    }

    /// Returns the introspection response for a token.
    pub(crate) async fn introspection(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Map<String, Value>, OidcError> {
        let metadata = self.metadata(now.as_millis()).await?;
        let endpoint = metadata
            .introspection_endpoint
            .as_deref()
            .ok_or_else(|| OidcError::Setup("it publishes no introspection endpoint".to_owned()))?;
        let form = [("token", token), ("token_type_hint", "access_token")];
        let in_body = metadata.introspection_takes_secret_in_body();
        let body = self.post(endpoint, &form, in_body).await?;
        serde_json::from_slice(&body)
            .map_err(|_| OidcError::Odd("the response about a token cannot be read".to_owned()))
    }

    /// Posts a form as this client. Returns the body of a successful response.
    async fn post(
        &self,
        endpoint: &str,
        form: &[(&str, &str)],
        secret_in_body: bool,
    ) -> Result<Vec<u8>, OidcError> {
        let mut form = form.to_vec();
        let mut request = Request::post(endpoint)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        match self.client_secret() {
            Some(secret) if !secret_in_body => {
                // Both are form-encoded first (RFC 6749, 2.3.1).
                let part = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", part(self.client_id()), part(secret));
                let basic = format!("Basic {}", BASE64.encode(pair.as_bytes()));
                request = request.header(AUTHORIZATION, basic);
            }
            secret => {
                form.push(("client_id", self.client_id()));
                form.extend(secret.map(|secret| ("client_secret", secret)));
            }
        }
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let request = request.body(body.into_bytes());
        let request = request.map_err(|error| OidcError::Setup(error.to_string()))?;
        let response = self.http().send(request).await?;
        let status = response.status();
        let body = response.into_body();
        if status == StatusCode::OK {
            return Ok(body);
        }
        if status.is_client_error()
            && let Ok(refusal) = serde_json::from_slice::<EndpointError>(&body)
        {
            return Err(OidcError::from_code(&refusal.error));
        }
        Err(OidcError::Unreachable(format!("it answers {status}")))
    }
}
