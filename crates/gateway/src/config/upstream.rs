//! `auth` of a server: the credentials sent to it with the calls of HTTP callers.

use std::collections::BTreeMap;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use mcp_elicit_client::connection::BearerToken;
use mcp_elicit_client::sign_in::SignInOptions;
use mcp_elicit_core::link::without_userinfo;
use serde::Deserialize;
use toml::Spanned;

use super::auth::has_a_meaning;
use super::oidc::is_private;
use super::secret::{FileSecret, SecretText};
use super::{Auth, ConfigError, HttpTarget, UpstreamSignIn};
use crate::headers::PARAM_PREFIX;

/// The credentials sent to a server with the calls of HTTP callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UpstreamCredentials {
    /// The client's `Authorization`, unless it authenticates the caller to the gateway; else the operator's token.
    #[default]
    Usual,
    /// The operator's token, or none.
    Operator,
    /// The value of this header of the client, sent as `Authorization`.
    Pass(HeaderName),
    /// A token for this resource, exchanged for the caller's own (RFC 8693).
    Exchange {
        /// The resource.
        resource: String,
        /// The requested scopes.
        scopes: Vec<String>,
    },
}

#[derive(Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum FileUpstreamAuth {
    None,
    Operator {
        token: FileSecret,
    },
    Pass {
        #[serde(default)]
        header: Option<String>,
    },
    Exchange {
        resource: String,
        #[serde(default)]
        scopes: Vec<String>,
    },
}

impl FileUpstreamAuth {
    /// Checks the setting. Also returns the operator's token, if there is one.
    ///
    /// # Errors
    /// If it conflicts with the callers' own proof.
    pub(super) fn read(
        self,
        server: &str,
        auth: &Auth,
    ) -> Result<(UpstreamCredentials, Option<BearerToken>), ConfigError> {
        let fault = |why: &str| ConfigError::UpstreamAuth {
            server: server.to_owned(),
            why: why.to_owned(),
        };
        Ok(match self {
            Self::None => (UpstreamCredentials::Operator, None),
            Self::Operator { token } => {
                let token = token.read(&format!("servers.{server}.auth.token"))?;
                let token = BearerToken::new(SecretText::reveal(&token))
                    .map_err(|error| fault(&error.to_string()))?;
                (UpstreamCredentials::Operator, Some(token))
            }
            Self::Pass { header: None } if *auth == Auth::None => {
                (UpstreamCredentials::Pass(AUTHORIZATION), None)
            }
            Self::Pass { header: None } => {
                return Err(fault(
                    "mode = \"pass\" needs `header`, such as header = \"X-Upstream-Authorization\": `Authorization` proves to the gateway \
                     who calls",
                ));
            }
            Self::Pass {
                header: Some(header),
            } => {
                let header = HeaderName::try_from(header)
                    .ok()
                    .filter(|header| !has_a_meaning(header))
                    .ok_or_else(|| fault("`header` is not the name of a header of its own"))?;
                (UpstreamCredentials::Pass(header), None)
            }
            Self::Exchange { resource, scopes } => {
                let may_ask = matches!(auth, Auth::Oidc(oidc) if oidc.client_secret.is_some());
                if !may_ask {
                    return Err(fault(
                        "mode = \"exchange\" needs `[auth]` mode = \"oidc\" with `client-id` and `client-secret`",
                    ));
                }
                if !is_private(&resource) {
                    return Err(fault("`resource` is not an https URL without a query"));
                }
                (UpstreamCredentials::Exchange { resource, scopes }, None)
            }
        })
    }
}

/// A setting of the file with its position.
pub(super) type FileAuthSetting = Spanned<FileUpstreamAuth>;

/// Headers that the transport or HTTP itself writes.
const RESERVED: [&str; 14] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The reason why a header cannot be sent to a server. It never shows the value, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Not the name of a header.
    #[error("{name:?} is not a valid header name")]
    Name {
        /// The text.
        name: String,
    },
    /// A header with a meaning of its own.
    #[error("the header {name} is set by the transport")]
    Reserved {
        /// Its name.
        name: HeaderName,
    },
    /// A value with characters that a header cannot have.
    #[error("the value for the header {name} cannot be sent")]
    Value {
        /// Its name.
        name: HeaderName,
    },
    /// The environment variable with its value is not set.
    #[error("the environment variable {variable} for the header {name} is not set")]
    Variable {
        /// The header's name.
        name: String,
        /// The variable.
        variable: String,
    },
}

/// Returns an operator's header for a server over HTTP. Its value is marked as sensitive.
///
/// # Errors
/// If it cannot be sent, or is one that the transport writes.
pub fn upstream_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HeaderError> {
    let named: HeaderName = name.parse().map_err(|_| HeaderError::Name {
        name: name.to_owned(),
    })?;
    if RESERVED.contains(&named.as_str()) || named.as_str().starts_with(PARAM_PREFIX) {
        return Err(HeaderError::Reserved { name: named });
    }
    let Ok(mut value) = HeaderValue::from_str(value) else {
        return Err(HeaderError::Value { name: named });
    };
    value.set_sensitive(true);
    Ok((named, value))
}

/// The operator's headers and sign-in for a server over HTTP, in the file.
#[derive(Default)]
pub(super) struct OwnAccess {
    pub(super) headers: BTreeMap<String, String>,
    /// Environment variables, by the header's name.
    pub(super) header_env: BTreeMap<String, String>,
    pub(super) sign_in: bool,
    pub(super) client_id: Option<String>,
    pub(super) client_secret_env: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) callback_port: Option<u16>,
}

impl OwnAccess {
    /// Returns `true` if the file sets none of it.
    pub(super) fn is_none(&self) -> bool {
        self.headers.is_empty()
            && self.header_env.is_empty()
            && !self.sign_in
            && !self.has_options()
    }

    fn has_options(&self) -> bool {
        self.client_id.is_some()
            || self.client_secret_env.is_some()
            || self.issuer.is_some()
            || !self.scopes.is_empty()
            || self.callback_port.is_some()
    }

    /// Adds it to a server's address; `others` is `true` if the file sets other credentials for it.
    ///
    /// # Errors
    /// If it cannot be used, or conflicts with other credentials. The error shows no secret.
    pub(super) fn add_to(
        self,
        server: &str,
        mut at: HttpTarget,
        others: bool,
    ) -> Result<HttpTarget, ConfigError> {
        let fault = |why: &str| ConfigError::UpstreamAuth {
            server: server.to_owned(),
            why: why.to_owned(),
        };
        let of_header = |error: HeaderError| ConfigError::Header {
            server: server.to_owned(),
            error,
        };
        for (name, value) in &self.headers {
            at.headers
                .push(upstream_header(name, value).map_err(of_header)?);
        }
        for (name, variable) in &self.header_env {
            let value = std::env::var(variable).map_err(|_| {
                of_header(HeaderError::Variable {
                    name: name.clone(),
                    variable: variable.clone(),
                })
            })?;
            let header = upstream_header(name, value.trim()).map_err(of_header)?;
            at.headers.push(header);
        }
        let has_authorization = at.headers.iter().any(|(name, _)| *name == AUTHORIZATION);
        if !self.sign_in {
            if self.has_options() {
                return Err(fault(
                    "`client-id`, `client-secret-env`, `issuer`, `scopes` and `callback-port` need sign-in = true",
                ));
            }
            if has_authorization && others {
                return Err(fault(
                    "a header `Authorization` conflicts with `token-env` and `auth`",
                ));
            }
            return Ok(at);
        }
        if others || has_authorization {
            return Err(fault(
                "sign-in conflicts with `token-env`, `auth` and a header `Authorization`",
            ));
        }
        if without_userinfo(&at.url) != at.url {
            return Err(fault(
                "sign-in replaces a user name in the URL: leave that out",
            ));
        }
        if self.client_secret_env.is_some() && self.client_id.is_none() {
            return Err(fault("`client-secret-env` needs `client-id`"));
        }
        let mut options = SignInOptions::default();
        if let Some(variable) = &self.client_secret_env {
            let secret = std::env::var(variable).ok();
            let secret = secret.as_deref().and_then(SecretText::from_line);
            options.client_secret = Some(secret.ok_or_else(|| {
                fault(&format!("the environment variable {variable} is not set"))
            })?);
        }
        options.client_id = self.client_id;
        options.issuer = self.issuer;
        options.scopes = self.scopes;
        options.callback_port = self.callback_port.unwrap_or(0);
        let command = "mcp-elicit gateway --config FILE --sign-in --check".to_owned();
        at.sign_in = Some(UpstreamSignIn::new(&at.url, options, command));
        Ok(at)
    }
}
