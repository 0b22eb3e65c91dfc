//! Bearer tokens for HTTP servers, which are sent nowhere else.

use std::fmt;

use thiserror::Error;

/// A bearer token (RFC 6750), sent as `Authorization: Bearer ...` with every request. Its text is in no `Debug` output
/// and in no error.
///
/// ```
/// use mcp_elicit_client::connection::BearerToken;
///
/// let token = BearerToken::new("eyJ.a-b_c")?;
/// assert_eq!(token.secret(), "eyJ.a-b_c");
/// assert_eq!(format!("{token:?}"), "BearerToken(..)");
/// # Ok::<(), mcp_elicit_client::connection::TokenError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

/// The reason why there is no token.
///
/// ```
/// use mcp_elicit_client::connection::{BearerToken, TokenError};
///
/// assert_eq!(BearerToken::new("two words"), Err(TokenError::Malformed));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The variable is not set, or not Unicode.
    #[error("the environment variable {variable} holds no token")]
    Missing {
        /// Its name.
        variable: String,
    },
    /// The value cannot be sent in a header.
    #[error("a bearer token has letters, digits and -._~+/ only, and = at its end")]
    Malformed,
}

impl BearerToken {
    /// Creates a token from the text that the authorization server issued (`b64token`, RFC 6750, section 2.1).
    pub fn new(text: impl Into<String>) -> Result<Self, TokenError> {
        let text = text.into();
        let body = text.trim_end_matches('=');
        let fits = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
        };
        if body.is_empty() || !body.bytes().all(fits) {
            return Err(TokenError::Malformed);
        }
        Ok(Self(text))
    }

    /// Reads the token from an environment variable, which other users of the machine cannot see, unlike a command
    /// line.
    ///
    /// ```
    /// use mcp_elicit_client::connection::{BearerToken, TokenError};
    ///
    /// let missing = BearerToken::from_env("NO_SUCH_VARIABLE");
    /// assert!(matches!(missing, Err(TokenError::Missing { .. })));
    /// ```
    pub fn from_env(variable: &str) -> Result<Self, TokenError> {
        match std::env::var(variable) {
            Ok(text) => Self::new(text.trim()),
            Err(_) => Err(TokenError::Missing {
                variable: variable.to_owned(),
            }),
        }
    }

    /// Returns the token's text, to be sent and not to be shown.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_can_stand_in_a_header_and_is_never_shown() {
        let token = BearerToken::new("eyJ.a-b_c~d+e/f==").unwrap();
        assert_eq!(token.secret(), "eyJ.a-b_c~d+e/f==");
        assert_eq!(format!("{token:?}"), "BearerToken(..)");
        for bad in ["", "==", "two words", "a=b", "line\r\nHost: x", "ü"] {
            assert_eq!(BearerToken::new(bad), Err(TokenError::Malformed), "{bad:?}");
        }
    }
}
