//! Errors of a provider.

use crate::http::ProviderHttpError;

/// The reason why a provider returned nothing usable. Its detail is for the log only; it contains no code and no token.
///
/// ```
/// use mcp_elicit_oidc::OidcError;
///
/// assert!(matches!(OidcError::from_code("access_denied"), OidcError::Denied));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The person refused, or the provider did, for its own reasons.
    #[error("access was denied")]
    Denied,
    /// RFC 9207: the response is from another issuer than the one that was asked.
    #[error("the answer is from another issuer than was asked")]
    WrongIssuer,
    /// No response, or one that asks to retry later.
    #[error("the provider cannot be reached: {0}")]
    Unreachable(String),
    /// A response that violates the protocol.
    #[error("the provider's answer cannot be trusted: {0}")]
    Odd(String),
    /// A response about another person than the token's.
    #[error("the provider's answer is about another person")]
    OtherPerson,
    /// The provider rejects this client's credentials or configuration.
    #[error("the provider refuses this server: {0}")]
    Setup(String),
}

impl From<ProviderHttpError> for OidcError {
    fn from(error: ProviderHttpError) -> Self {
        match error {
            ProviderHttpError::Failed(_) | ProviderHttpError::TooLarge => {
                Self::Unreachable(error.to_string())
            }
            ProviderHttpError::Malformed(_) => Self::Odd(error.to_string()),
        }
    }
}

impl OidcError {
    /// Returns `true` if a grant has ended: the provider no longer accepts its token, no longer admits the person, or
    /// the token is another person's.
    ///
    /// ```
    /// use mcp_elicit_oidc::OidcError;
    ///
    /// assert!(OidcError::from_code("invalid_grant").ends_grant());
    /// assert!(!OidcError::from_code("temporarily_unavailable").ends_grant());
    /// ```
    pub fn ends_grant(&self) -> bool {
        match self {
            Self::Denied | Self::OtherPerson => true,
            Self::Setup(code) => code == "invalid_grant",
            Self::WrongIssuer | Self::Unreachable(_) | Self::Odd(_) => false,
        }
    }

    /// Converts the error codes of RFC 6749 (4.1.2.1, 5.2) and OpenID Connect Core 3.1.2.6. Only known codes are
    /// repeated: others may be texts of an unknown author.
    pub fn from_code(code: &str) -> Self {
        const SETUP: [&str; 11] = [
            "invalid_client",
            "invalid_grant",
            "invalid_request",
            "invalid_request_object",
            "invalid_request_uri",
            "invalid_scope",
            "invalid_target",
            "unauthorized_client",
            "unsupported_grant_type",
            "unsupported_response_type",
            "request_not_supported",
        ];
        match code {
            "access_denied"
            | "consent_required"
            | "interaction_required"
            | "login_required"
            | "account_selection_required" => Self::Denied,
            "server_error" | "temporarily_unavailable" => Self::Unreachable(code.to_owned()),
            code if SETUP.contains(&code) => Self::Setup(code.to_owned()),
            _ => Self::Odd("an error code that is not known".to_owned()),
        }
    }
}
