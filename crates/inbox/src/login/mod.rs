//! People who log in to the inbox: by a trusted proxy that names them, or at an OpenID provider.
//!
//! | file | contents |
//! | --- | --- |
//! | [`table`] | sessions, and the subjects that people are bound to |
//! | [`table::devices`] | browsers that are told of questions, by web push |
//! | [`directory`] | people, groups and roles of the moment; the rights of a viewer towards a question |
//! | `request_session` | the session of a request; a proxy's headers |
//! | `pages` | login, logout and the page of sessions |
//! | `audit_page` | the page of the audit |
//! | `provider` | the login at an OpenID provider (feature `teams`) |

mod audit_page;
pub mod directory;
#[cfg(feature = "teams")]
mod flow;
mod pages;
#[cfg(feature = "teams")]
mod provider;
mod request_session;
pub mod table;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use mcp_elicit_policy::{Addressee, Rules};

use self::table::Lifetimes;
use self::table::devices::DeviceKeys;

/// The rules, people and groups as they are now.
pub type RulesNow = Arc<dyn Fn() -> Arc<Rules> + Send + Sync>;

/// Returns `true` if a call made now would be asked about by the rule of this name as by the one with this digest.
pub type RuleCheck = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// The inbox of several people.
#[derive(Clone)]
pub struct Teams {
    /// The login.
    pub login: LoginSettings,
    /// The rules, people and groups as they are now.
    pub rules: RulesNow,
    /// The check whether the rule of a question is still the same.
    pub is_asked_by: RuleCheck,
    /// Web push, where people may have their devices notified.
    pub push: Option<PushOffer>,
}

/// Refuses a subscription that cannot be used, with a sentence for the person.
pub type CheckDevice = dyn Fn(&DeviceKeys) -> Result<(), String> + Send + Sync;

/// Web push to the devices of people, which the gateway sends.
#[derive(Clone)]
pub struct PushOffer {
    /// The key by which push services know the gateway: an uncompressed point, in base64url.
    pub public_key: String,
    /// The check of a new subscription.
    pub check: Arc<CheckDevice>,
}

impl fmt::Debug for PushOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushOffer")
            .field("public_key", &self.public_key)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Teams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teams")
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

/// The settings of a login.
#[derive(Clone, Debug)]
pub struct LoginSettings {
    /// The party that vouches for people.
    pub mode: LoginMode,
    /// The address of the pages, scheme and host only, such as `https://ask.example.com`. `None` for the listener's own, on loopback.
    pub address: Option<String>,
    /// Those who may log in; empty for the people of the file and the members of its groups.
    pub allow: Vec<Addressee>,
    /// The bounds of sessions.
    pub lifetimes: Lifetimes,
    /// The age of claims at which an act asks the issuer again.
    pub recheck: Duration,
    /// The age of claims at which they do not count any more.
    pub stale: Duration,
}

impl LoginSettings {
    /// Returns the issuer whose subjects `[people]` names.
    pub fn issuer(&self) -> &str {
        match &self.mode {
            LoginMode::Proxy(proxy) => &proxy.issuer,
            #[cfg(feature = "teams")]
            LoginMode::Oidc(oidc) => &oidc.issuer,
        }
    }
}

/// The party that vouches for people.
#[derive(Clone, Debug)]
pub enum LoginMode {
    /// A trusted proxy, in headers.
    Proxy(ProxyLogin),
    /// An OpenID provider.
    #[cfg(feature = "teams")]
    Oidc(OidcLogin),
}

impl LoginMode {
    /// Returns how people log in: a sentence for them.
    pub(crate) const fn how(&self) -> &'static str {
        match self {
            Self::Proxy(_) => {
                "The proxy in front of this inbox logs people in: open the inbox through it again."
            }
            #[cfg(feature = "teams")]
            Self::Oidc(_) => "Open the inbox again: it leads to the login.",
        }
    }
}

/// A trusted proxy that names people.
#[derive(Clone)]
pub struct ProxyLogin {
    /// Returns `true` for the addresses of the proxy.
    pub trusts: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// The issuer of its subjects.
    pub issuer: String,
    /// The header with the subject.
    pub subject: HeaderName,
    /// The header with a mail address that the proxy has verified.
    pub mail: Option<HeaderName>,
    /// The header with groups, separated by commas.
    pub groups: Option<HeaderName>,
}

impl fmt::Debug for ProxyLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyLogin")
            .field("issuer", &self.issuer)
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// An OpenID provider, and this inbox as its client.
#[cfg(feature = "teams")]
#[derive(Clone)]
pub struct OidcLogin {
    /// The issuer.
    pub issuer: String,
    /// The client's name there.
    pub client_id: String,
    /// The client's secret; `None` for a public client.
    pub client_secret: Option<String>,
    /// Scopes beside `openid`.
    pub scopes: Vec<String>,
    /// The claim with the groups of a person.
    pub groups_claim: String,
    /// `true` if mail addresses count although the issuer does not say that it has verified them.
    pub trust_mail: bool,
}

#[cfg(feature = "teams")]
impl fmt::Debug for OidcLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OidcLogin")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

pub(crate) use self::pages::router;
pub(crate) use self::request_session::{Gate, identify};
