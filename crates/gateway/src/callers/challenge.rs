//! The response to a request without a valid caller.

use axum::response::Response;
use http::header::{CACHE_CONTROL, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use mcp_elicit_inbox::api_tokens::TokenRejection;

use super::Unauthenticated;
use super::resource::Resource;
use crate::listener::endpoint::header_checks::refusal;
use crate::listener::requests_at_work::TooMany;

impl Unauthenticated {
    /// Returns the HTTP response of this resource (RFC 6750, section 3); `issuer` has the requested scopes and the
    /// issuer, if callers have access tokens.
    pub(crate) fn response(
        self,
        resource: &Resource,
        issuer: Option<(&[String], &str)>,
    ) -> Response {
        let (status, challenge) = match self {
            Self::NoKey => (StatusCode::UNAUTHORIZED, Some("Bearer")),
            Self::Ambiguous => (
                StatusCode::BAD_REQUEST,
                Some("Bearer error=\"invalid_request\""),
            ),
            Self::Key(TokenRejection::Unreadable) => {
                // A 401 would make the caller look for another key.
                let response = refusal(StatusCode::SERVICE_UNAVAILABLE, -32000, &self.to_string());
                return TooMany::retry_later(response);
            }
            Self::Key(TokenRejection::Scope(_)) => (
                StatusCode::FORBIDDEN,
                Some("Bearer error=\"insufficient_scope\", scope=\"call\""),
            ),
            Self::Key(TokenRejection::Expired) => (
                StatusCode::UNAUTHORIZED,
                Some("Bearer error=\"invalid_token\", error_description=\"the key has expired\""),
            ),
            Self::Key(TokenRejection::Unknown | TokenRejection::Revoked) => (
                StatusCode::UNAUTHORIZED,
                Some("Bearer error=\"invalid_token\""),
            ),
            #[cfg(feature = "teams")]
            Self::NoToken => (StatusCode::UNAUTHORIZED, Some("Bearer")),
            #[cfg(feature = "teams")]
            Self::Token(error) => return of_token(error, resource, issuer),
            // A 401 would make the caller sign in again.
            Self::NotTheProxy | Self::NoSubject | Self::Blocked => (StatusCode::FORBIDDEN, None),
        };
        let challenge = challenge.map(|challenge| with_resource(challenge, resource, issuer));
        let mut response = refusal(status, -32600, &self.to_string());
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(challenge) = challenge.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Returns a challenge that also names the issuer of tokens for the resource (RFC 9728, 5.1).
fn with_resource(
    challenge: &str,
    resource: &Resource,
    issuer: Option<(&[String], &str)>,
) -> String {
    let Some((scopes, _)) = issuer else {
        return challenge.to_owned();
    };
    let mut parameters = Vec::new();
    let scopes = scopes.join(" ");
    if !scopes.is_empty() && !challenge.contains("scope=") {
        parameters.push(format!("scope=\"{scopes}\""));
    }
    parameters.push(format!("resource_metadata=\"{}\"", resource.metadata));
    let separator = if challenge.contains('=') { ", " } else { " " };
    format!("{challenge}{separator}{}", parameters.join(", "))
}

/// Returns the response to an invalid token.
#[cfg(feature = "teams")]
fn of_token(
    error: mcp_elicit_oidc::AccessTokenError,
    resource: &Resource,
    issuer: Option<(&[String], &str)>,
) -> Response {
    use http::header::RETRY_AFTER;
    use mcp_elicit_oidc::AccessTokenError;

    let (status, challenge) = match error {
        // A 401 would make the caller sign in again.
        AccessTokenError::Unavailable { retry_after } => {
            let words = "the issuer of the token cannot be asked";
            let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, -32000, words);
            let seconds = retry_after.as_secs().max(1);
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
            return response;
        }
        AccessTokenError::Scope => (
            StatusCode::FORBIDDEN,
            "Bearer error=\"insufficient_scope\"".to_owned(),
        ),
        AccessTokenError::Invalid(_) | AccessTokenError::Expired => (
            StatusCode::UNAUTHORIZED,
            format!("Bearer error=\"invalid_token\", error_description=\"{error}\""),
        ),
    };
    let challenge = with_resource(&challenge, resource, issuer);
    let mut response = refusal(status, -32600, "authorization required");
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(challenge) = HeaderValue::try_from(challenge) {
        headers.insert(WWW_AUTHENTICATE, challenge);
    }
    response
}
