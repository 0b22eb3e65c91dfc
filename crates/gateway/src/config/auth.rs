//! `[auth]`: the proof of HTTP callers.

use std::net::IpAddr;

use http::HeaderName;
use ipnet::IpNet;
use serde::Deserialize;
use toml::Spanned;

use super::ConfigError;
use super::oidc::{FileOidc, OidcAuth};

/// The default name of a proxy's issuer.
const PROXY_ISSUER: &str = "proxy";
/// The shortest accepted network prefix, in bits: shorter ones cover a good part of the internet.
const NARROWEST: u8 = 7;
/// The default header with the caller.
const SUBJECT_HEADER: &str = "x-forwarded-user";

/// The proof of a caller over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// None: all requests with the same credentials belong to the same caller. For loopback addresses.
    #[default]
    None,
    /// An API key with the scope `call`, made by `mcp-elicit tokens`.
    Keys,
    /// A header that a trusted proxy sets.
    Proxy(ProxyAuth),
    /// An access token of an issuer.
    Oidc(Box<OidcAuth>),
}

impl Auth {
    /// Returns `true` if callers must authenticate.
    pub fn is_required(&self) -> bool {
        *self != Self::None
    }
}

/// A proxy that authenticates callers and names them in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyAuth {
    trusted: Vec<IpNet>,
    issuer: String,
    subject_header: HeaderName,
    mail_header: Option<HeaderName>,
    groups_header: Option<HeaderName>,
}

impl ProxyAuth {
    /// Returns `true` if requests from this address come from a trusted proxy.
    pub fn trusts(&self, from: IpAddr) -> bool {
        // A socket for both families reports IPv4 peers as mapped addresses.
        let from = from.to_canonical();
        self.trusted.iter().any(|net| net.contains(&from))
    }

    /// Returns the name of the proxy's identity source.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the header with the caller.
    pub fn subject_header(&self) -> &HeaderName {
        &self.subject_header
    }

    /// Returns the header with a mail address that the proxy has verified.
    pub fn mail_header(&self) -> Option<&HeaderName> {
        self.mail_header.as_ref()
    }

    /// Returns the header with the caller's groups, separated by commas.
    pub fn groups_header(&self) -> Option<&HeaderName> {
        self.groups_header.as_ref()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileAuth {
    mode: Spanned<FileModes>,
    /// Seconds or minutes.
    #[serde(default)]
    leeway: Option<Spanned<String>>,
    #[serde(default)]
    proxy: Option<Spanned<FileProxy>>,
    #[serde(default)]
    oidc: Option<Spanned<FileOidc>>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a mode is \"none\", \"keys\", \"proxy\" or \"oidc\", or [\"oidc\", \"keys\"]"
)]
enum FileModes {
    One(FileAuthMode),
    Several(Vec<FileAuthMode>),
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileAuthMode {
    None,
    Keys,
    Proxy,
    Oidc,
}

impl FileModes {
    /// Returns the mode, and `true` if keys are also accepted; `None` for modes that do not combine.
    fn combined(&self) -> Option<(FileAuthMode, bool)> {
        match self {
            Self::One(mode) => Some((*mode, false)),
            Self::Several(modes) => match modes[..] {
                [mode] => Some((mode, false)),
                [FileAuthMode::Oidc, FileAuthMode::Keys]
                | [FileAuthMode::Keys, FileAuthMode::Oidc] => Some((FileAuthMode::Oidc, true)),
                _ => None,
            },
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileProxy {
    #[serde(default)]
    issuer: Option<Spanned<String>>,
    #[serde(default)]
    subject_header: Option<Spanned<String>>,
    #[serde(default)]
    mail_header: Option<Spanned<String>>,
    #[serde(default)]
    groups_header: Option<Spanned<String>>,
}

/// An error, and its byte in the file if the line can be shown.
type MisplacedAuthError = (ConfigError, Option<usize>);

impl FileAuth {
    /// Checks the table. `proxy_logs_in` is `true` if the trusted proxy also names the people of the inbox.
    ///
    /// # Errors
    /// The first error, with its byte in the file.
    pub(super) fn read(
        self,
        trusted: &[Spanned<String>],
        proxy_logs_in: bool,
    ) -> Result<Auth, MisplacedAuthError> {
        let mode_at = self.mode.span().start;
        let (mode, takes_keys) = self
            .mode
            .get_ref()
            .combined()
            .ok_or((ConfigError::Modes, Some(mode_at)))?;
        if mode == FileAuthMode::Oidc && !cfg!(feature = "teams") {
            let table = "`[auth]` mode = \"oidc\"";
            return Err((ConfigError::NeedsFull { table }, Some(mode_at)));
        }
        match (mode, &self.oidc, &self.leeway) {
            (FileAuthMode::Oidc, ..) | (_, None, None) => {}
            (_, Some(oidc), _) => return Err((ConfigError::OidcMode, Some(oidc.span().start))),
            (_, None, Some(leeway)) => {
                return Err((ConfigError::OidcMode, Some(leeway.span().start)));
            }
        }
        if mode != FileAuthMode::Proxy {
            if let Some(proxy) = self.proxy {
                return Err((ConfigError::ProxyMode, Some(proxy.span().start)));
            }
            if let Some(proxy) = trusted.first().filter(|_| !proxy_logs_in) {
                return Err((ConfigError::ProxyMode, Some(proxy.span().start)));
            }
            return Ok(match mode {
                FileAuthMode::Keys => Auth::Keys,
                FileAuthMode::Oidc => {
                    let oidc = self.oidc.ok_or((ConfigError::NoOidc, Some(mode_at)))?;
                    let oidc = oidc.into_inner().read(self.leeway.as_ref(), takes_keys)?;
                    Auth::Oidc(Box::new(oidc))
                }
                FileAuthMode::None | FileAuthMode::Proxy => Auth::None,
            });
        }
        let trusted = trusted.iter().map(network).collect::<Result<Vec<_>, _>>();
        let trusted = trusted.map_err(|(fault, at)| (fault, Some(at)))?;
        if trusted.is_empty() {
            return Err((ConfigError::NoTrustedProxies, Some(mode_at)));
        }
        let proxy = self.proxy.map(Spanned::into_inner).unwrap_or_default();
        let header = |name: Option<Spanned<String>>| name.map(header_name).transpose();
        let subject_header = header(proxy.subject_header)?
            .unwrap_or_else(|| HeaderName::from_static(SUBJECT_HEADER));
        let mail_header = header(proxy.mail_header)?;
        let groups_header = header(proxy.groups_header)?;
        if let Some(issuer) = &proxy.issuer
            && (issuer.get_ref().is_empty()
                || !issuer.get_ref().bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err((ConfigError::Issuer, Some(issuer.span().start)));
        }
        Ok(Auth::Proxy(ProxyAuth {
            trusted,
            issuer: proxy
                .issuer
                .map_or_else(|| PROXY_ISSUER.to_owned(), Spanned::into_inner),
            subject_header,
            mail_header,
            groups_header,
        }))
    }
}

/// Reads the name of a header that a proxy sets about a caller.
fn header_name(name: Spanned<String>) -> Result<HeaderName, MisplacedAuthError> {
    let at = name.span().start;
    HeaderName::try_from(name.get_ref().as_str())
        .ok()
        .filter(|header| !has_a_meaning(header))
        .ok_or_else(|| {
            let text = name.into_inner();
            (ConfigError::HeaderName { text }, Some(at))
        })
}

/// Returns `true` if the header has another meaning, because clients set it themselves.
pub(super) fn has_a_meaning(header: &HeaderName) -> bool {
    use http::header;
    let known = [
        header::AUTHORIZATION,
        header::PROXY_AUTHORIZATION,
        header::HOST,
        header::ORIGIN,
        header::ACCEPT,
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::COOKIE,
        header::USER_AGENT,
    ];
    known.contains(header) || header.as_str().starts_with("mcp-")
}

/// Reads an address, or a range of them.
///
/// # Errors
/// If it is neither, or a range of all addresses.
pub(super) fn network(text: &Spanned<String>) -> Result<IpNet, (ConfigError, usize)> {
    let at = text.span().start;
    let text = text.get_ref();
    let parsed = text.parse::<IpNet>();
    let parsed = parsed.or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    match parsed {
        Ok(IpNet::V6(net)) if net.addr().to_ipv4_mapped().is_some() => {
            Err((ConfigError::Network { text: text.clone() }, at))
        }
        Ok(net) if net.prefix_len() >= NARROWEST.min(net.max_prefix_len()) => Ok(net),
        Ok(_) => Err((ConfigError::TrustsEverybody { text: text.clone() }, at)),
        Err(_) => Err((ConfigError::Network { text: text.clone() }, at)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    const SERVER: &str = "\n[servers.s]\ncommand = [\"true\"]\n";

    fn auth(text: &str) -> Result<Auth, String> {
        let text = format!("listen = \"0.0.0.0:8080\"\n{text}{SERVER}");
        Config::parse(&text)
            .map(|config| config.auth)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn callers_prove_nothing_unless_it_is_configured() {
        assert_eq!(auth(""), Ok(Auth::None));
        assert_eq!(auth("[auth]\nmode = \"none\""), Ok(Auth::None));
        assert_eq!(auth("[auth]\nmode = \"keys\""), Ok(Auth::Keys));
    }

    #[test]
    fn a_proxy_is_trusted_by_its_address() {
        let text = "trusted-proxies = [\"10.0.0.0/8\", \"fd00::/8\", \"192.0.2.1\"]\n[auth]\nmode = \"proxy\"\n[auth.proxy]\nissuer = \"https://id.example.com\"\nsubject-header = \"X-User\"";
        let Ok(Auth::Proxy(proxy)) = auth(text) else {
            panic!("{:?}", auth(text));
        };
        assert_eq!(
            (proxy.issuer(), proxy.subject_header().as_str()),
            ("https://id.example.com", "x-user")
        );
        let trusts = |from: &str| proxy.trusts(from.parse().unwrap());
        assert!(
            trusts("10.1.2.3")
                && trusts("::ffff:10.1.2.3")
                && trusts("fd00::1")
                && trusts("192.0.2.1")
        );
        assert!(!trusts("192.0.2.2") && !trusts("11.0.0.1") && !trusts("::1"));
    }

    #[test]
    fn what_would_let_anybody_in_is_refused_at_its_line() {
        let proxy = "[auth]\nmode = \"proxy\"";
        for (text, line, words) in [
            (
                format!("trusted-proxies = [\"0.0.0.0/1\"]\n{proxy}"),
                2,
                "nearly every address",
            ),
            (
                format!("trusted-proxies = [\"::ffff:10.0.0.1\"]\n{proxy}"),
                2,
                "::ffff",
            ),
            (
                "trusted-proxies = [\"10.0.0.1\"]\n[auth]\nmode = \"keys\"".to_owned(),
                2,
                "go with",
            ),
            (
                format!(
                    "trusted-proxies = [\"10.0.0.1\"]\n{proxy}\n[auth.proxy]\nsubject-header = \"Authorization\""
                ),
                6,
                "Authorization",
            ),
            (
                format!("trusted-proxies = [\"10.0.0.1\"]\n{proxy}\n[auth.proxy]\nissuer = \"\""),
                6,
                "issuer",
            ),
            (proxy.to_owned(), 3, "trusted-proxies"),
            (
                format!("trusted-proxies = [\"0.0.0.0/0\"]\n{proxy}"),
                2,
                "nearly every address",
            ),
            (
                format!("trusted-proxies = [\"::/0\"]\n{proxy}"),
                2,
                "nearly every address",
            ),
            (
                format!("trusted-proxies = [\"example.com\"]\n{proxy}"),
                2,
                "example.com",
            ),
            (
                "[auth]\nmode = \"keys\"\n[auth.proxy]\nissuer = \"x\"".to_owned(),
                4,
                "proxy",
            ),
            ("[auth]\nmode = \"basic\"".to_owned(), 3, "basic"),
            (
                format!(
                    "trusted-proxies = [\"10.0.0.1\"]\n{proxy}\n[auth.proxy]\nsubject-header = \"a b\""
                ),
                6,
                "a b",
            ),
        ] {
            let error = auth(&text).unwrap_err();
            assert!(
                error.contains(&format!("line {line}")) && error.contains(words),
                "{text}\n{error}"
            );
        }
    }

    #[test]
    fn callers_over_stdio_prove_nothing() {
        let error = Config::parse(&format!("[auth]\nmode = \"keys\"{SERVER}"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("listen") && error.contains("line 1"),
            "{error}"
        );
    }
}
