//! The guard that admits requests by origin: the accepted host names, and the pages that may use the listener.
//!
//! A page of any site can reach a listener on this machine. It is recognised by its `Origin`, and by the host name that
//! it used.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HOST, ORIGIN};

use super::page_access::AllowedOrigins;
use crate::headers::only_text;

/// The accepted requests.
#[derive(Clone, Debug)]
pub(crate) struct OriginGuard {
    /// `true` if only names of this machine are accepted.
    local: bool,
    /// Origins that are accepted besides the listener's own.
    origins: AllowedOrigins,
    /// The host and port of the address at which a proxy serves the listener.
    public_host: Option<String>,
}

impl OriginGuard {
    /// Creates a guard; `local` if the listener's address is a loopback one; `origins` are accepted besides its own.
    pub(crate) fn new(local: bool, origins: AllowedOrigins) -> Self {
        Self {
            local,
            origins,
            public_host: None,
        }
    }

    /// Also accepts the name in `public-url`, which a proxy on this machine passes on as `Host`.
    pub(crate) fn behind(mut self, public_url: Option<&str>) -> Self {
        self.public_host = public_url
            .and_then(|url| url.split_once("://"))
            .map(|(_, rest)| rest.split('/').next().unwrap_or(rest).to_owned());
        self
    }

    /// Returns `true` if the listener is reached under its own name.
    pub(crate) fn admits_host(&self, headers: &HeaderMap) -> bool {
        only_text(headers, HOST).is_some_and(|host| {
            let is_public = |own: &String| own.eq_ignore_ascii_case(host);
            !self.local || is_local(host) || self.public_host.as_ref().is_some_and(is_public)
        })
    }

    /// Returns `true` if a request comes from a program, or from a page that may use the listener.
    pub(crate) fn admits(&self, headers: &HeaderMap) -> bool {
        if !self.admits_host(headers) {
            return false;
        }
        if !headers.contains_key(ORIGIN) {
            return true;
        }
        let Some((origin, host)) = only_text(headers, ORIGIN).zip(only_text(headers, HOST)) else {
            return false;
        };
        self.origins.has(origin) || is_own(origin, host)
    }
}

/// Returns `true` if this is the origin of pages that the listener itself would serve. A name that anyone can point at
/// it does not count.
fn is_own(origin: &str, host: &str) -> bool {
    let same = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"))
        .is_some_and(|at| at.eq_ignore_ascii_case(host));
    let name = name_of(host);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    same && (is_local(host) || address.parse::<IpAddr>().is_ok())
}

/// Returns a `Host` without its port.
fn name_of(host: &str) -> &str {
    host.rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(host, |(name, _)| name)
}

/// Returns `true` if a `Host` is a name of this machine.
fn is_local(host: &str) -> bool {
    matches!(name_of(host), "localhost" | "127.0.0.1" | "[::1]")
}

/// Returns `true` if a body is declared to be JSON. A page elsewhere cannot send this without a preflight request.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    only_text(headers, CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    })
}

/// Returns `true` if this can be the origin of a page: a scheme and a host, and nothing after.
pub fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return false;
    };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    !scheme.is_empty()
        && !host.is_empty()
        && plain(text)
        && !host.contains(['/', '?', '#', '@', '*'])
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(all: &[(HeaderName, &str)]) -> HeaderMap {
        let pairs = all
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn the_name_of_the_public_address_is_answered_to_and_no_other() {
        let here = OriginGuard::new(true, AllowedOrigins::default())
            .behind(Some("https://mcp.example.com/base"));
        assert!(here.admits(&headers(&[(HOST, "MCP.example.com")])));
        assert!(here.admits(&headers(&[(HOST, "127.0.0.1:8080")])));
        for other in ["mcp.example.com:81", "example.com", "evil.example", ""] {
            assert!(!here.admits(&headers(&[(HOST, other)])), "{other}");
        }
        let page = [(HOST, "mcp.example.com"), (ORIGIN, "https://evil.example")];
        assert!(!here.admits(&headers(&page)));
    }

    #[test]
    fn programs_own_pages_and_named_pages_are_let_in_and_no_other() {
        let here = OriginGuard::new(
            true,
            AllowedOrigins::new(&["http://localhost:6274".to_owned()]),
        );
        let open = OriginGuard::new(false, AllowedOrigins::default());
        let at = |host: &str, origin: &str| headers(&[(HOST, host), (ORIGIN, origin)]);
        assert!(here.admits(&headers(&[(HOST, "127.0.0.1:8080")])));
        assert!(!here.admits(&headers(&[])));
        assert!(!here.admits(&headers(&[(HOST, "127.0.0.1"), (HOST, "127.0.0.1")])));
        for (admission, host, origin, expected) in [
            (&here, "127.0.0.1:8080", "http://127.0.0.1:8080", true),
            (&here, "localhost:8080", "http://LOCALHOST:8080", true),
            (&here, "[::1]:8080", "http://[::1]:8080", true),
            (&here, "127.0.0.1:8080", "http://localhost:6274", true),
            (&here, "127.0.0.1:8080", "http://127.0.0.1:9", false),
            (&here, "127.0.0.1:8080", "http://localhost:8080", false),
            (&here, "127.0.0.1:8080", "https://evil.example", false),
            (&here, "127.0.0.1:8080", "null", false),
            (&here, "127.0.0.1:8080", "file://", false),
            (
                &here,
                "evil.example:8080",
                "http://evil.example:8080",
                false,
            ),
            (&open, "192.0.2.1:8080", "http://192.0.2.1:8080", true),
            (&open, "[2001:db8::1]:80", "http://[2001:db8::1]:80", true),
            (
                &open,
                "evil.example:8080",
                "http://evil.example:8080",
                false,
            ),
            (&open, "192.0.2.1:8080", "http://localhost:8080", false),
        ] {
            assert_eq!(
                admission.admits(&at(host, origin)),
                expected,
                "{host} {origin}"
            );
        }
        let two = [
            (HOST, "localhost:1"),
            (ORIGIN, "http://localhost:1"),
            (ORIGIN, "http://evil.example"),
        ];
        assert!(!here.admits(&headers(&two)));
    }

    #[test]
    fn a_body_is_json_only_where_it_says_so_once() {
        let json = |kinds: &[&str]| {
            let all: Vec<_> = kinds.iter().map(|kind| (CONTENT_TYPE, *kind)).collect();
            is_json(&headers(&all))
        };
        assert!(json(&["application/json"]) && json(&["Application/JSON; charset=utf-8"]));
        for wrong in [
            &[][..],
            &["text/plain"],
            &["text/plain; application/json"],
            &["application/json", "text/plain"],
        ] {
            assert!(!json(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        assert!(is_origin("http://localhost:6274") && is_origin("vscode-webview://1abc"));
        for wrong in [
            "localhost:6274",
            "http://",
            "http://a/b",
            "http://a b",
            "https://*.example",
            "*",
            "",
        ] {
            assert!(!is_origin(wrong), "{wrong}");
        }
    }
}
