//! Login of people to the inbox: by a trusted proxy that names them, or at an OpenID provider.
//!
//! | file | contents |
//! | --- | --- |
//! | [`table`] | sessions, and the subjects to which people are bound |
//! | [`table::devices`] | browsers that are notified of questions, by web push |
//! | [`directory`] | the current people, groups and roles; a viewer's rights on a question |
//! | `request_session` | the session of a request; a proxy's headers |
//! | `pages` | login, logout and the page of sessions |
//! | `audit_page` | the page of the audit |
//! | `grants_page` | the page of approvals that apply for a while |
//! | `provider` | the login at an OpenID provider (feature `teams`) |

mod audit_page;
pub mod directory;
#[cfg(feature = "teams")]
mod flow;
mod grants_page;
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

/// Returns the current rules, people and groups.
pub type RulesNow = Arc<dyn Fn() -> Arc<Rules> + Send + Sync>;

/// Returns `true` if a call made now would be asked about by the rule of this name, with this digest.
pub type RuleCheck = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// The inbox of several people.
#[derive(Clone)]
pub struct Teams {
    /// The login.
    pub login: LoginSettings,
    /// The current rules, people and groups.
    pub rules: RulesNow,
    /// The check that the rule of a question is unchanged.
    pub is_asked_by: RuleCheck,
    /// Web push, if people may have their devices notified.
    pub push: Option<PushOffer>,
}

/// Checks a subscription; the error is a sentence for the person.
pub type CheckDevice = dyn Fn(&DeviceKeys) -> Result<(), String> + Send + Sync;

/// Web push to the devices of people, which the gateway sends.
#[derive(Clone)]
pub struct PushOffer {
    /// The public key for push services: an uncompressed point, in base64url.
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
    /// The party that identifies people.
    pub mode: LoginMode,
    /// The address of the pages, scheme and host only, such as `https://ask.example.com`. `None` for the listener's
    /// own, on loopback.
    pub address: Option<String>,
    /// The people who may log in; empty for the people in the file and the members of its groups.
    pub allow: Vec<Addressee>,
    /// The bounds of sessions.
    pub lifetimes: Lifetimes,
    /// The age of claims at which an action asks the issuer again.
    pub recheck: Duration,
    /// The age of claims at which they no longer count.
    pub stale: Duration,
}

impl LoginSettings {
    /// Returns the issuer of the subjects in `[people]`.
    pub fn issuer(&self) -> &str {
        match &self.mode {
            LoginMode::Proxy(proxy) => &proxy.issuer,
            #[cfg(feature = "teams")]
            LoginMode::Oidc(oidc) => &oidc.issuer,
        }
    }
}

/// The party that identifies people.
#[derive(Clone, Debug)]
pub enum LoginMode {
    /// A trusted proxy, in headers.
    Proxy(ProxyLogin),
    /// An OpenID provider.
    #[cfg(feature = "teams")]
    Oidc(OidcLogin),
}

impl LoginMode {
    /// Returns a sentence for people about their login.
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

/// An OpenID provider, with this inbox as its client.
#[cfg(feature = "teams")]
#[derive(Clone)]
pub struct OidcLogin {
    /// The issuer.
    pub issuer: String,
    /// The client's id there.
    pub client_id: String,
    /// The client's secret; `None` for a public client.
    pub client_secret: Option<String>,
    /// Scopes besides `openid`.
    pub scopes: Vec<String>,
    /// The claim with the groups of a person.
    pub groups_claim: String,
    /// `true` if mail addresses count even if the issuer does not say that it has verified them.
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
