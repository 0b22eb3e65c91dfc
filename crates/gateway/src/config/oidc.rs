//! `[auth.oidc]`: callers with the access tokens of an issuer.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use toml::Spanned;

use super::ConfigError;
use super::secret::{FileSecret, SecretText};

/// The default clock leeway.
const LEEWAY: Duration = Duration::from_secs(60);
/// The largest configurable leeway.
const LARGEST_LEEWAY: Duration = Duration::from_secs(5 * 60);
/// The default claim with a caller's groups.
const GROUPS: &str = "groups";

/// The way to check an access token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenCheck {
    /// With the issuer's keys: a JSON Web Token.
    #[default]
    Jwt,
    /// By asking the issuer (RFC 7662).
    Introspection,
}

/// Callers with the access tokens of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcAuth {
    /// The issuer.
    pub issuer: String,
    /// The check of a token.
    pub check: TokenCheck,
    /// The accepted audiences of a token; empty for the resource that is called.
    pub audience: Vec<String>,
    /// The scopes that every token needs.
    pub scopes: Vec<String>,
    /// The claim with a caller's groups.
    pub groups_claim: String,
    /// `true` if the issuer is asked again before a caller collects a person's answer.
    pub asks_again: bool,
    /// The name of the gateway at the issuer.
    pub client_id: String,
    /// The secret of the gateway at the issuer.
    pub client_secret: Option<SecretText>,
    /// The clock leeway.
    pub leeway: Duration,
    /// `true` if API keys are also accepted.
    pub takes_keys: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileOidc {
    issuer: Spanned<String>,
    #[serde(default)]
    tokens: TokenCheck,
    #[serde(default)]
    audience: Vec<String>,
    #[serde(default)]
    scopes: Vec<Spanned<String>>,
    #[serde(default)]
    groups_claim: Option<String>,
    #[serde(default)]
    revocation: Option<Revocation>,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    client_secret: Option<FileSecret>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Revocation {
    None,
    Introspect,
}

impl FileOidc {
    /// Checks the table.
    ///
    /// # Errors
    /// The first error, with its byte in the file; `None` if the line would show a secret.
    pub(super) fn read(
        self,
        leeway: Option<&Spanned<String>>,
        takes_keys: bool,
    ) -> Result<OidcAuth, (ConfigError, Option<usize>)> {
        let issuer_at = self.issuer.span().start;
        let issuer = self.issuer.into_inner();
        if !is_private(&issuer) {
            return Err((ConfigError::IssuerUrl { text: issuer }, Some(issuer_at)));
        }
        let in_scope = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        for scope in &self.scopes {
            let text = scope.get_ref();
            if text.is_empty() || !text.bytes().all(in_scope) {
                let text = text.clone();
                return Err((ConfigError::ScopeName { text }, Some(scope.span().start)));
            }
        }
        let leeway = match leeway {
            None => LEEWAY,
            Some(text) => seconds_or_minutes(text.get_ref())
                .filter(|leeway| *leeway <= LARGEST_LEEWAY)
                .ok_or_else(|| {
                    let fault = ConfigError::Leeway {
                        text: text.get_ref().clone(),
                    };
                    (fault, Some(text.span().start))
                })?,
        };
        let check = self.tokens;
        let asks_again = self.revocation == Some(Revocation::Introspect);
        let client_secret = self
            .client_secret
            .map(|secret| secret.read("auth.oidc.client-secret"))
            .transpose()
            .map_err(|fault| (fault, None))?;
        let asks = check == TokenCheck::Introspection || asks_again;
        if asks && (self.client_id.is_none() || client_secret.is_none()) {
            return Err((ConfigError::NoClient, Some(issuer_at)));
        }
        Ok(OidcAuth {
            issuer,
            check,
            audience: self.audience,
            scopes: self.scopes.into_iter().map(Spanned::into_inner).collect(),
            groups_claim: self.groups_claim.unwrap_or_else(|| GROUPS.to_owned()),
            asks_again,
            client_id: self.client_id.unwrap_or_default(),
            client_secret,
            leeway,
            takes_keys,
        })
    }
}

/// Returns `true` for an encrypted or local address: https, or a loopback host.
pub(super) fn is_private(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else {
        return false;
    };
    let here = url.host_str().is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost"
            || host.ends_with(".localhost")
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    });
    let private = url.scheme() == "https" || url.scheme() == "http" && here;
    private
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

/// Reads an address that is only an origin, such as `https://mcp.example.com`.
pub(super) fn origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|_| is_private(text))?;
    (url.path() == "/").then(|| url.origin().ascii_serialization())
}

/// Reads a number of seconds or minutes, such as `60s`.
fn seconds_or_minutes(text: &str) -> Option<Duration> {
    let (number, unit) = match (text.strip_suffix('s'), text.strip_suffix('m')) {
        (Some(number), _) => (number, 1),
        (None, Some(number)) => (number, 60),
        (None, None) => return None,
    };
    let number: u32 = number.parse().ok()?;
    Some(Duration::from_secs(u64::from(number) * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_times_are_read() {
        for (text, expected) in [
            ("https://mcp.example.com", Some("https://mcp.example.com")),
            ("https://mcp.example.com/", Some("https://mcp.example.com")),
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("http://[::1]:8080", Some("http://[::1]:8080")),
            ("http://mcp.example.com", None),
            ("https://mcp.example.com/path", None),
            ("https://mcp.example.com/?a", None),
            ("https://u:p@mcp.example.com", None),
            ("mcp.example.com", None),
        ] {
            assert_eq!(origin(text).as_deref(), expected, "{text}");
        }
        assert_eq!(seconds_or_minutes("60s"), Some(Duration::from_secs(60)));
        assert_eq!(seconds_or_minutes("5m"), Some(Duration::from_secs(5 * 60)));
        for wrong in ["", "s", "-1s", "1.5s", "1h", "60"] {
            assert_eq!(seconds_or_minutes(wrong), None, "{wrong}");
        }
    }
}
