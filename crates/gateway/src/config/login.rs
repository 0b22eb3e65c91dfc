//! `[login]`: the login of people to the inbox.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use mcp_elicit_inbox::login::table::Lifetimes;
use mcp_elicit_inbox::login::{LoginMode, LoginSettings, ProxyLogin};
use mcp_elicit_policy::{Addressee, Rules};
use serde::Deserialize;
use toml::Spanned;

use super::ConfigError;
use super::auth::network;
use super::secret::FileSecret;

/// The default name of a proxy's issuer.
const PROXY_ISSUER: &str = "proxy";
/// The default header with the person.
const SUBJECT_HEADER: &str = "x-forwarded-user";
/// The default claim with a person's groups.
#[cfg(feature = "teams")]
const GROUPS_CLAIM: &str = "groups";

/// Returns the issuer at which people log in, from the `[login]` of a file whose other tables may be invalid; `None` if
/// it has none.
pub fn login_issuer(text: &str) -> Option<String> {
    let file: toml::Table = toml::from_str(text).ok()?;
    let login = file.get("login")?;
    let named = login.get("issuer").and_then(toml::Value::as_str);
    let is_proxy = login.get("mode").and_then(toml::Value::as_str) == Some("proxy");
    named
        .or(is_proxy.then_some(PROXY_ISSUER))
        .map(str::to_owned)
}

/// Checks that a file whose tables may be invalid is TOML.
///
/// # Errors
/// If it is not.
pub fn check_toml(text: &str) -> Result<(), ConfigError> {
    toml::from_str::<toml::Table>(text)?;
    Ok(())
}

/// Returns the names of the people of a file whose other tables may be invalid; empty if it has none.
pub fn people_names(text: &str) -> Vec<String> {
    let file: toml::Table = toml::from_str(text).unwrap_or_default();
    let people = file.get("people").and_then(toml::Value::as_table);
    people
        .into_iter()
        .flat_map(toml::Table::keys)
        .cloned()
        .collect()
}

/// Returns the state folder that a file names, whose other tables may be invalid.
pub fn state_folder(text: &str) -> Option<PathBuf> {
    let file: toml::Table = toml::from_str(text).ok()?;
    Some(file.get("state")?.as_str()?.into())
}

/// Returns the names of the servers of a file whose other tables may be invalid; empty if it has none.
pub fn server_names(text: &str) -> Vec<String> {
    let file: toml::Table = toml::from_str(text).unwrap_or_default();
    let servers = file.get("servers").and_then(toml::Value::as_table);
    servers
        .into_iter()
        .flat_map(toml::Table::keys)
        .cloned()
        .collect()
}

/// The error of a build without the feature.
const NEEDS_FULL: ConfigError = ConfigError::NeedsFull { table: "`[login]`" };

/// An error in `[login]`.
#[derive(Debug, thiserror::Error)]
pub enum LoginConfigError {
    /// A login to the inbox, without an inbox.
    #[error(
        "`[login]` is for the people of the inbox; add `inbox`, such as inbox = \"127.0.0.1:7878\""
    )]
    NoInbox,
    /// The address of the inbox is unknown.
    #[error(
        "`inbox` is off loopback: add `inbox-url` with the address that people open, such as https://ask.example.com"
    )]
    NoUrl,
    /// The address of the inbox cannot be used.
    #[error(
        "`inbox-url` is scheme and host only, such as https://ask.example.com; http is for loopback addresses"
    )]
    Url,
    /// A setting that the mode requires is missing.
    #[error("mode = \"{mode}\" needs `{name}`")]
    Missing {
        /// The mode.
        mode: &'static str,
        /// The setting.
        name: &'static str,
    },
    /// A setting of another mode.
    #[error("`{name}` does not go with mode = \"{mode}\"")]
    Mode {
        /// The mode.
        mode: &'static str,
        /// The setting.
        name: &'static str,
    },
    /// An administrator is missing, so sessions could not be ended and questions not reassigned.
    #[error("`[login]` needs an administrator: add [roles] with admin = [\"person:NAME\"]")]
    NoAdmin,
    /// A duration that cannot be read or used.
    #[error("`{name}` is a span such as 30m, 12h or 7d, from {least} to {most}")]
    Span {
        /// The setting.
        name: &'static str,
        /// The shortest.
        least: &'static str,
        /// The longest.
        most: &'static str,
    },
    /// A name that the file does not define.
    #[error("`allow` names `{text}`; write person:NAME or group:NAME of this file")]
    Allow {
        /// The text.
        text: String,
    },
    /// An unusable issuer.
    #[error(
        "`issuer` is https and a host, such as https://id.example.com; http is for loopback addresses"
    )]
    Issuer,
    /// A header that cannot name a person.
    #[error("`{text}` is not the name of a header that can name a person")]
    Header {
        /// The text.
        text: String,
    },
}

/// The mode of a login.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileLoginMode {
    Owner,
    Proxy,
    Oidc,
}

impl FileLoginMode {
    const fn word(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Proxy => "proxy",
            Self::Oidc => "oidc",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileLogin {
    mode: Spanned<FileLoginMode>,
    #[serde(default)]
    issuer: Option<Spanned<String>>,
    #[serde(default)]
    client_id: Option<Spanned<String>>,
    #[serde(default)]
    client_secret: Option<Spanned<FileSecret>>,
    #[serde(default)]
    scopes: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    groups_claim: Option<Spanned<String>>,
    #[serde(default)]
    trust_mail: Option<Spanned<bool>>,
    #[serde(default)]
    subject_header: Option<Spanned<String>>,
    #[serde(default)]
    mail_header: Option<Spanned<String>>,
    #[serde(default)]
    groups_header: Option<Spanned<String>>,
    #[serde(default)]
    allow: Vec<Spanned<String>>,
    #[serde(default)]
    idle: Option<Spanned<String>>,
    #[serde(default)]
    max: Option<Spanned<String>>,
    #[serde(default)]
    recheck: Option<Spanned<String>>,
    #[serde(default)]
    stale: Option<Spanned<String>>,
}

/// An error, with its byte in the file.
type MisplacedLoginError = (ConfigError, usize);

/// The other settings that `[login]` depends on.
pub(super) struct LoginContext<'a> {
    /// The people, groups and roles of the file.
    pub(super) rules: Option<&'a Rules>,
    /// The byte at which `[login]` stands.
    pub(super) at: usize,
    /// `true` if the inbox is on loopback; `None` if there is none.
    pub(super) is_loopback: Option<bool>,
    /// `inbox-url`.
    pub(super) url: Option<&'a Spanned<String>>,
    /// `trusted-proxies`.
    pub(super) proxies: &'a [Spanned<String>],
}

impl FileLogin {
    /// Checks the table. `None` for the mode `owner`, which equals an inbox without the table.
    ///
    /// # Errors
    /// The first error, with its byte in the file.
    pub(super) fn read(
        self,
        context: &LoginContext<'_>,
    ) -> Result<Option<LoginSettings>, MisplacedLoginError> {
        let here = |error: LoginConfigError| (ConfigError::Login(error), context.at);
        let mode = *self.mode.get_ref();
        if mode == FileLoginMode::Owner {
            return if context.is_loopback == Some(false) {
                let name = "an inbox off loopback";
                Err(here(LoginConfigError::Mode {
                    mode: "owner",
                    name,
                }))
            } else {
                Ok(None)
            };
        }
        if !cfg!(feature = "teams") {
            return Err((NEEDS_FULL, context.at));
        }
        let is_loopback = context
            .is_loopback
            .ok_or_else(|| here(LoginConfigError::NoInbox))?;
        let address = match context.url {
            Some(url) => Some(own_address(url)?),
            None if is_loopback => None,
            None => return Err(here(LoginConfigError::NoUrl)),
        };
        let rules = context
            .rules
            .filter(|rules| !rules.people().admins.is_empty());
        let rules = rules.ok_or_else(|| here(LoginConfigError::NoAdmin))?;
        self.check_mode(mode)?;
        let allow = self.allow.iter().map(|text| allowed(text, rules));
        let settings = LoginSettings {
            address,
            allow: allow.collect::<Result<_, _>>()?,
            lifetimes: Lifetimes {
                idle: span(
                    "idle",
                    self.idle.as_ref(),
                    12 * HOUR,
                    ("1m", MINUTE),
                    ("30d", 30 * DAY),
                )?,
                max: span(
                    "max",
                    self.max.as_ref(),
                    7 * DAY,
                    ("1m", MINUTE),
                    ("90d", 90 * DAY),
                )?,
            },
            recheck: span(
                "recheck",
                self.recheck.as_ref(),
                15 * MINUTE,
                ("1m", MINUTE),
                ("30d", 30 * DAY),
            )?,
            stale: span(
                "stale",
                self.stale.as_ref(),
                DAY,
                ("1m", MINUTE),
                ("30d", 30 * DAY),
            )?,
            mode: match mode {
                FileLoginMode::Proxy => LoginMode::Proxy(self.proxy(context)?),
                #[cfg(feature = "teams")]
                FileLoginMode::Oidc => self.provider(context.at)?,
                #[cfg(not(feature = "teams"))]
                FileLoginMode::Oidc => return Err((NEEDS_FULL, context.at)),
                FileLoginMode::Owner => return Ok(None),
            },
        };
        Ok(Some(settings))
    }

    /// Rejects settings of the other mode.
    fn check_mode(&self, mode: FileLoginMode) -> Result<(), MisplacedLoginError> {
        fn byte_of<T>(value: Option<&Spanned<T>>) -> Option<usize> {
            value.map(|value| value.span().start)
        }
        let (oidc, proxy) = (FileLoginMode::Oidc, FileLoginMode::Proxy);
        let settings = [
            (oidc, "client-id", byte_of(self.client_id.as_ref())),
            (oidc, "client-secret", byte_of(self.client_secret.as_ref())),
            (oidc, "scopes", byte_of(self.scopes.as_ref())),
            (oidc, "groups-claim", byte_of(self.groups_claim.as_ref())),
            (oidc, "trust-mail", byte_of(self.trust_mail.as_ref())),
            (
                proxy,
                "subject-header",
                byte_of(self.subject_header.as_ref()),
            ),
            (proxy, "mail-header", byte_of(self.mail_header.as_ref())),
            (proxy, "groups-header", byte_of(self.groups_header.as_ref())),
        ];
        let stray = settings.into_iter().find_map(|(of, name, at)| {
            let at = at.filter(|_| of != mode)?;
            Some((
                LoginConfigError::Mode {
                    mode: mode.word(),
                    name,
                },
                at,
            ))
        });
        match stray {
            Some((error, at)) => Err((ConfigError::Login(error), at)),
            None => Ok(()),
        }
    }

    fn proxy(&self, context: &LoginContext<'_>) -> Result<ProxyLogin, MisplacedLoginError> {
        let trusted = context.proxies.iter().map(network);
        let trusted = trusted.collect::<Result<Vec<_>, _>>()?;
        if trusted.is_empty() {
            return Err((ConfigError::NoTrustedProxies, self.mode.span().start));
        }
        let header = |name: &Option<Spanned<String>>| name.as_ref().map(header).transpose();
        Ok(ProxyLogin {
            trusts: Arc::new(move |from| trusted.iter().any(|net| net.contains(&from))),
            issuer: self.issuer.as_ref().map_or_else(
                || PROXY_ISSUER.to_owned(),
                |issuer| issuer.get_ref().clone(),
            ),
            subject: header(&self.subject_header)?
                .unwrap_or_else(|| HeaderName::from_static(SUBJECT_HEADER)),
            mail: header(&self.mail_header)?,
            groups: header(&self.groups_header)?,
        })
    }

    #[cfg(feature = "teams")]
    fn provider(self, at: usize) -> Result<LoginMode, MisplacedLoginError> {
        let missing = |name| {
            (
                ConfigError::Login(LoginConfigError::Missing { mode: "oidc", name }),
                at,
            )
        };
        let text = |value: Option<Spanned<String>>| value.map(Spanned::into_inner);
        let secret = self.client_secret.map(|secret| {
            let read = secret.get_ref().read("client-secret");
            read.map_err(|error| (error, secret.span().start))
        });
        let secret = secret.transpose()?;
        let issuer = self.issuer.ok_or_else(|| missing("issuer"))?;
        if mcp_elicit_oidc::Provider::issuer(issuer.get_ref(), "client").is_err() {
            return Err((
                ConfigError::Login(LoginConfigError::Issuer),
                issuer.span().start,
            ));
        }
        Ok(LoginMode::Oidc(mcp_elicit_inbox::login::OidcLogin {
            issuer: issuer.into_inner(),
            client_id: text(self.client_id).ok_or_else(|| missing("client-id"))?,
            client_secret: secret.map(|secret| secret.reveal().to_owned()),
            scopes: match self.scopes {
                Some(scopes) => scopes.into_inner(),
                None => ["profile", "email"].map(str::to_owned).to_vec(),
            },
            groups_claim: text(self.groups_claim).unwrap_or_else(|| GROUPS_CLAIM.to_owned()),
            trust_mail: self.trust_mail.is_some_and(Spanned::into_inner),
        }))
    }
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Reads a duration such as `12h`.
fn span(
    name: &'static str,
    text: Option<&Spanned<String>>,
    usual: u64,
    least: (&'static str, u64),
    most: (&'static str, u64),
) -> Result<Duration, MisplacedLoginError> {
    let Some(text) = text else {
        return Ok(Duration::from_secs(usual));
    };
    let written = text.get_ref();
    let units = [("s", 1), ("m", MINUTE), ("h", HOUR), ("d", DAY)];
    let read = units.into_iter().find_map(|(unit, seconds)| {
        let number = written.strip_suffix(unit)?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        number
            .parse::<u64>()
            .ok()
            .filter(|_| is_number)?
            .checked_mul(seconds)
    });
    if let Some(seconds) = read.filter(|seconds| (least.1..=most.1).contains(seconds)) {
        return Ok(Duration::from_secs(seconds));
    }
    let (least, most) = (least.0, most.0);
    let error = LoginConfigError::Span { name, least, most };
    Err((ConfigError::Login(error), text.span().start))
}

/// Reads the address of the pages: https, or http on a loopback address.
fn own_address(text: &Spanned<String>) -> Result<String, MisplacedLoginError> {
    let wrong = || (ConfigError::Login(LoginConfigError::Url), text.span().start);
    let address = text.get_ref().trim_end_matches('/');
    let rest = address.strip_prefix("https://").map(|rest| (true, rest));
    let (is_secure, host) = rest
        .or_else(|| address.strip_prefix("http://").map(|rest| (false, rest)))
        .ok_or_else(wrong)?;
    let is_plain = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_here = matches!(name, "127.0.0.1" | "localhost" | "[::1]");
    if is_plain && (is_secure || is_here) {
        Ok(address.to_owned())
    } else {
        Err(wrong())
    }
}

fn allowed(text: &Spanned<String>, rules: &Rules) -> Result<Addressee, MisplacedLoginError> {
    let people = rules.people();
    let written = text.get_ref();
    let found = match written.split_once(':') {
        Some(("person", name)) if people.people.contains_key(name) => {
            Some(Addressee::Person(name.to_owned()))
        }
        Some(("group", name)) if people.groups.contains_key(name) => {
            Some(Addressee::Group(name.to_owned()))
        }
        _ => None,
    };
    found.ok_or_else(|| {
        let error = LoginConfigError::Allow {
            text: written.clone(),
        };
        (ConfigError::Login(error), text.span().start)
    })
}

fn header(name: &Spanned<String>) -> Result<HeaderName, MisplacedLoginError> {
    use http::header;
    let taken = [
        header::AUTHORIZATION,
        header::HOST,
        header::ORIGIN,
        header::COOKIE,
        header::USER_AGENT,
        header::ACCEPT,
    ];
    HeaderName::try_from(name.get_ref().as_str())
        .ok()
        .filter(|header| !taken.contains(header))
        .ok_or_else(|| {
            let text = name.get_ref().clone();
            (
                ConfigError::Login(LoginConfigError::Header { text }),
                name.span().start,
            )
        })
}

#[cfg(all(test, feature = "teams"))]
mod tests {
    use super::super::Config;
    use super::*;

    const PEOPLE: &str = "\n[people.ada]\nmail = \"ada@example.com\"\n[groups]\nstaff = { claim = \"employees\" }\n[roles]\nadmin = [\"person:ada\"]\n[servers.s]\ncommand = [\"true\"]\n";
    const OIDC: &str =
        "[login]\nmode = \"oidc\"\nissuer = \"https://id.example.com\"\nclient-id = \"inbox\"";

    fn login(top: &str, table: &str) -> Result<Option<LoginSettings>, String> {
        Config::parse(&format!("{top}\n{table}{PEOPLE}"))
            .map(|config| config.login)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn people_log_in_at_a_provider_or_are_named_by_a_proxy() {
        let inbox = "inbox = \"0.0.0.0:7878\"\ninbox-url = \"https://ask.example.com/\"";
        let found = login(inbox, OIDC).unwrap().unwrap();
        assert_eq!(found.address.as_deref(), Some("https://ask.example.com"));
        assert_eq!(found.issuer(), "https://id.example.com");
        assert_eq!(found.lifetimes.idle, Duration::from_secs(12 * 60 * 60));
        let inbox = "inbox = \"127.0.0.1:7878\"\ntrusted-proxies = [\"127.0.0.1\"]";
        let proxy = "[login]\nmode = \"proxy\"\nallow = [\"group:staff\"]\nidle = \"5m\"\nmail-header = \"X-Mail\"";
        let found = login(inbox, proxy).unwrap().unwrap();
        let LoginMode::Proxy(proxy) = &found.mode else {
            panic!()
        };
        assert!((proxy.trusts)([127, 0, 0, 1].into()) && !(proxy.trusts)([127, 0, 0, 2].into()));
        assert!(
            login("inbox = \"127.0.0.1:7878\"", "[login]\nmode = \"owner\"")
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_proxy_may_log_people_in_beside_callers_with_keys_or_tokens() {
        let top = "listen = \"127.0.0.1:1\"\ninbox = \"127.0.0.1:7878\"\ntrusted-proxies = [\"127.0.0.1\"]";
        let oidc = "mode = \"oidc\"\n[auth.oidc]\nissuer = \"https://id.example.com\"";
        for auth in ["mode = \"keys\"", oidc] {
            let tables = format!("[auth]\n{auth}\n[login]\nmode = \"proxy\"");
            assert!(login(top, &tables).unwrap().is_some(), "{auth}");
            // The addresses have no purpose without it.
            let tables = format!("[auth]\n{auth}");
            assert!(login(top, &tables).unwrap_err().contains("trusted-proxies"));
        }
    }

    #[test]
    fn mistakes_have_their_line() {
        let open = "inbox = \"0.0.0.0:7878\"";
        let here = "inbox = \"127.0.0.1:7878\"";
        for (top, table, line, words) in [
            ("", OIDC.to_owned(), 2, "inbox"),
            (open, OIDC.to_owned(), 2, "inbox-url"),
            (open, "[login]\nmode = \"owner\"".to_owned(), 2, "owner"),
            (
                "inbox = \"0.0.0.0:7878\"\ninbox-url = \"http://ask.example.com\"",
                OIDC.to_owned(),
                2,
                "https",
            ),
            (
                "inbox = \"0.0.0.0:7878\"\ninbox-url = \"https://ask.example.com/a\"",
                OIDC.to_owned(),
                2,
                "host only",
            ),
            (here, "[login]\nmode = \"oidc\"".to_owned(), 2, "issuer"),
            (
                here,
                "[login]\nmode = \"proxy\"".to_owned(),
                3,
                "trusted-proxies",
            ),
            (
                here,
                format!("{OIDC}\nsubject-header = \"X-User\""),
                6,
                "subject-header",
            ),
            (here, format!("{OIDC}\nidle = \"forever\""), 6, "idle"),
            (here, format!("{OIDC}\nmax = \"0s\""), 6, "max"),
            (
                here,
                format!("{OIDC}\nallow = [\"group:nobody\"]"),
                6,
                "group:nobody",
            ),
            (
                here,
                format!("{OIDC}\nclient-secret = \"in-the-file\""),
                6,
                "client-secret",
            ),
            (
                here,
                format!("{OIDC}\nclient-secret = {{ env = \"MCP_ELICIT_NO_SUCH\" }}"),
                6,
                "NO_SUCH",
            ),
        ] {
            let error = login(top, &table).unwrap_err();
            assert!(
                (error.contains(&format!("line {line}")) || error.contains(&format!("  {line}:")))
                    && error.contains(words),
                "{top}\n{table}\n{error}"
            );
        }
        let text = format!(
            "{here}\n{OIDC}\n[people.ada]\nmail = \"a@b.c\"\n[servers.s]\ncommand = [\"true\"]"
        );
        let error = Config::parse(&text).unwrap_err().to_string();
        assert!(error.contains("administrator"), "{error}");
        let text = format!(
            "{here}\n{OIDC}\n[groups]\nops = [\"nobody\"]\n[roles]\nadmin = [\"group:ops\"]\n[servers.s]\ncommand = [\"true\"]"
        );
        let error = Config::parse(&text).unwrap_err().to_string();
        assert!(error.contains("7:") && error.contains("nobody"), "{error}");
    }
}
