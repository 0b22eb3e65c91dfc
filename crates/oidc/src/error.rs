//! Errors between here and a provider.

use crate::http::HttpError;

/// Why a provider gave nothing that can be used. The text in brackets is for the log only; it holds no code and no token.
///
/// ```
/// use mcp_elicit_oidc::OidcError;
///
/// assert!(matches!(OidcError::from_code("access_denied"), OidcError::Denied));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The person, or the provider for its own reasons, said no.
    #[error("access was denied")]
    Denied,
    /// RFC 9207: the answer is from another issuer than the one that was asked.
    #[error("the answer is from another issuer than was asked")]
    WrongIssuer,
    /// No answer, or one that says to come back later.
    #[error("the provider cannot be reached: {0}")]
    Unreachable(String),
    /// An answer that no provider should give.
    #[error("the provider's answer cannot be trusted: {0}")]
    Odd(String),
    /// An answer about another person than the one whose token it was asked with.
    #[error("the provider's answer is about another person")]
    OtherPerson,
    /// The provider does not take this program for what it says it is.
    #[error("the provider refuses this server: {0}")]
    Setup(String),
}

impl From<HttpError> for OidcError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Failed(_) | HttpError::TooLarge => Self::Unreachable(error.to_string()),
            HttpError::Malformed(_) => Self::Odd(error.to_string()),
        }
    }
}

impl OidcError {
    /// Returns `true` if a grant that was good has ended: the provider takes its token no more, the person is not let in any more, or the
    /// token is another person's.
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

    /// The error codes of RFC 6749 (4.1.2.1, 5.2) and OpenID Connect Core 3.1.2.6. Only codes that are known are
    /// repeated: the others may be texts of an unknown author for a reader.
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
