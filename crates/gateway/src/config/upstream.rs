//! `auth` of a server: the credentials sent to it with the calls of HTTP callers.

use http::HeaderName;
use mcp_elicit_client::connection::BearerToken;
use serde::Deserialize;
use toml::Spanned;

use super::auth::has_a_meaning;
use super::oidc::is_private;
use super::secret::{FileSecret, SecretText};
use super::{Auth, ConfigError};

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
                (UpstreamCredentials::Pass(http::header::AUTHORIZATION), None)
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
