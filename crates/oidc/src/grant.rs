//! The result of a flow: tokens, and the person.

use std::fmt;
use std::time::Duration;

use mcp_elicit_core::secret::SecretText;
use serde_json::{Map, Value};

/// A person's grant to this client; its tokens are masked in `Debug`.
///
/// ```
/// use mcp_elicit_oidc::Grant;
///
/// fn store(grant: &Grant) {
///     let (token, refresh, lifetime) = (grant.access_token(), grant.refresh_token(), grant.expires_in());
///     let account = grant.subject().map(ToString::to_string);
///     // Store them for this account.
///     # let _ = (token, refresh, lifetime, account);
/// }
/// ```
#[derive(Debug)]
pub struct Grant {
    pub(crate) access: SecretText,
    pub(crate) refresh: Option<SecretText>,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) scopes: Vec<String>,
    pub(crate) identity: Option<CheckedIdToken>,
}

/// A checked ID token.
pub(crate) struct CheckedIdToken {
    pub(crate) subject: Subject,
    pub(crate) claims: Map<String, Value>,
    pub(crate) id_token: SecretText,
}

impl fmt::Debug for CheckedIdToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedIdToken")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

impl Grant {
    /// Returns the access token, for the code that stores it.
    pub fn access_token(&self) -> &str {
        self.access.reveal()
    }

    /// Returns the refresh token, if the provider issued one.
    pub fn refresh_token(&self) -> Option<&str> {
        self.refresh.as_ref().map(SecretText::reveal)
    }

    /// Returns the remaining lifetime of the access token, if the provider gives one.
    pub fn expires_in(&self) -> Option<Duration> {
        self.expires_in
    }

    /// Returns the granted scopes: the requested ones, unless the provider says otherwise.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the person, from a checked ID token. Only with the scope `openid` at a provider with an issuer.
    pub fn subject(&self) -> Option<&Subject> {
        self.identity.as_ref().map(|identity| &identity.subject)
    }

    /// Returns every claim of the checked ID token.
    pub fn claims(&self) -> Option<&Map<String, Value>> {
        self.identity.as_ref().map(|identity| &identity.claims)
    }

    /// Returns the text of the checked ID token, which a logout sends to the provider.
    pub fn id_token(&self) -> Option<&str> {
        self.identity
            .as_ref()
            .map(|identity| identity.id_token.reveal())
    }
}

/// A person at an issuer (OpenID Connect Core 2: `iss` and `sub` together identify one person permanently).
///
/// Its `Display` form is `issuer#subject`. An issuer has no `#`, so no two people share it.
///
/// ```
/// use mcp_elicit_oidc::Subject;
///
/// let subject = Subject::new("https://accounts.example.com", "1001");
/// assert_eq!((subject.issuer(), subject.subject()), ("https://accounts.example.com", "1001"));
/// assert_eq!(subject.to_string(), "https://accounts.example.com#1001");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    issuer: String,
    subject: String,
}

impl Subject {
    /// Creates the person with this `issuer` and `subject`, such as the two claims of an access token.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            subject: subject.into(),
        }
    }

    /// Returns the `iss` claim.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the `sub` claim.
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.issuer, self.subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_show_themselves_nowhere() {
        let grant = Grant {
            access: SecretText::new("at-123"),
            refresh: Some(SecretText::new("rt-456")),
            expires_in: Some(Duration::from_secs(60 * 60)),
            scopes: vec!["calendar".into()],
            identity: Some(CheckedIdToken {
                subject: Subject::new("https://a.example", "ada"),
                claims: Map::from_iter([("email".to_owned(), "ada@a.example".into())]),
                id_token: SecretText::new("id-789"),
            }),
        };
        let shown = format!("{grant:?}");
        for hidden in ["at-123", "rt-456", "id-789", "ada@"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
        assert_eq!(grant.access_token(), "at-123");
        assert_eq!(
            grant.subject().unwrap().to_string(),
            "https://a.example#ada"
        );
    }
}
