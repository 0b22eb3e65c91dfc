//! The true target of a url-mode request's URL, and the facts that consent must show.
//!
//! For programs that show links to people, and for those that send them. It follows "Safe URL Handling" of the
//! specification's elicitation page (2025-11-25 and 2026-07-28): the whole URL is shown with its domain highlighted,
//! with warnings about ambiguous or suspicious parts; servers must not put a person's data into it. A URL is never
//! fetched or opened here.
//!
//! - `host`: the name or address, its registrable part, and the ways in which it may deceive
//! - `query`, `sensitive`: data in the rest of the URL
//! - `warning`, `evaluate`: the warnings, written for a person, and their sources
//! - `error`: the reasons why a text is not a link
//! - `mention`: links inside ordinary text, where a form must not have them
//! - `userinfo`: URLs without user name and password

mod error;
mod evaluate;
mod host;
mod mention;
mod query;
mod sensitive;
mod userinfo;
mod warning;

pub use error::LinkError;
pub use host::Host;
pub use mention::{Mention, mentions, mentions_in};
pub use userinfo::without_userinfo;
pub use warning::{LinkWarning, SendRule, WarningLevel};

use url::{Position, Url};

/// Rules for a link. The defaults suit any host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkPolicy {
    /// The longest accepted URL, in bytes. Defaults to 8,192.
    pub max_bytes: usize,
    /// The length in bytes above which a person is warned of an unusually long URL. Defaults to 1,000.
    pub long_bytes: usize,
}

impl Default for LinkPolicy {
    fn default() -> Self {
        Self {
            max_bytes: 8_192,
            long_bytes: 1_000,
        }
    }
}

/// A parsed URL of a url-mode request: the only form in which a person should be asked about it. `Debug` shows only the
/// host, since the rest may contain data that belongs in no log; `Display` shows the whole.
#[derive(Clone)]
pub struct Link {
    sent: String,
    url: Url,
    host: Host,
    warnings: Vec<LinkWarning>,
}

/// A whole link in three pieces, so that the domain can be highlighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownLink<'a> {
    /// The scheme, userinfo and freely chosen part of the host.
    pub before: &'a str,
    /// The part that identifies the site: the registrable domain, or the whole host if there is none.
    pub domain: &'a str,
    /// The port, path, query and fragment.
    pub after: &'a str,
}

impl std::str::FromStr for Link {
    type Err = LinkError;

    /// Parses the URL with [`Link::parse`].
    fn from_str(text: &str) -> Result<Self, LinkError> {
        Self::parse(text)
    }
}

impl Link {
    /// Parses a URL as sent by a server.
    ///
    /// # Errors
    /// A [`LinkError`] for every text that must not be shown to a person as a link; see its variants.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        Self::parse_with(text, &LinkPolicy::default())
    }

    /// Parses a URL with a custom policy.
    ///
    /// # Errors
    /// The same as [`Link::parse`].
    pub fn parse_with(text: &str, policy: &LinkPolicy) -> Result<Self, LinkError> {
        error::refuse_unfit(text, policy)?;
        let url = Url::parse(text).map_err(LinkError::Unreadable)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(LinkError::Scheme {
                scheme: url.scheme().to_owned(),
            });
        }
        let host = Host::from_url(&url).ok_or(LinkError::NoHost)?;
        let warnings = evaluate::warnings(text, &url, &host, policy);
        Ok(Self {
            sent: text.to_owned(),
            url,
            host,
            warnings,
        })
    }

    /// Returns the whole URL, which a person must be shown before consenting and which is opened afterwards. It is
    /// ASCII only (an international host in its `xn--` form), so nothing in it can hide or reorder the text.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Returns the URL byte by byte as the server sent it; it has the same target as [`Link::as_str`].
    pub fn sent(&self) -> &str {
        &self.sent
    }

    /// Returns the parsed URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the whole URL in three pieces, for highlighting the domain ("SHOULD highlight the domain of the URL").
    pub fn shown(&self) -> ShownLink<'_> {
        let before_host = &self.url[..Position::BeforeHost];
        let host = &self.url[Position::BeforeHost..Position::AfterHost];
        let start = before_host.len() + self.host.prefix().len();
        let end = before_host.len() + host.len();
        let whole = self.url.as_str();
        ShownLink {
            before: &whole[..start],
            domain: &whole[start..end],
            after: &whole[end..],
        }
    }

    /// Returns the scheme: `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// Returns the host, with its properties.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the registrable part of the host, by the public suffix list, in ASCII; `None` for an address, a name
    /// without dots or a bare public suffix.
    pub fn registrable_domain(&self) -> Option<&str> {
        self.host.registrable()
    }

    /// Returns the port, if it is not the scheme's default.
    pub fn port(&self) -> Option<u16> {
        self.url.port()
    }

    /// Returns the path, at least `/`.
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// Returns every warning, the gravest first.
    pub fn warnings(&self) -> &[LinkWarning] {
        &self.warnings
    }

    /// Returns the warnings for a person, without those whose advice a graver one gives: a host that looks like another
    /// one also mixes scripts, and has letters that can be mistaken.
    ///
    /// ```
    /// use mcp_elicit_core::link::Link;
    ///
    /// # fn main() -> Result<(), mcp_elicit_core::link::LinkError> {
    /// let link = Link::parse("https://аpple.com/")?; // with a Cyrillic letter
    /// assert!(link.distinct_warnings().count() < link.warnings().len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn distinct_warnings(&self) -> impl Iterator<Item = &LinkWarning> {
        let any = |is: fn(&LinkWarning) -> bool| self.warnings.iter().any(is);
        let looks_like = any(|warning| matches!(warning, LinkWarning::LooksLike { .. }));
        let mixes = any(|warning| matches!(warning, LinkWarning::MixedScripts { .. }));
        self.warnings.iter().filter(move |warning| match warning {
            LinkWarning::MixedScripts { .. } => !looks_like,
            LinkWarning::International { .. } => !looks_like && !mixes,
            _ => true,
        })
    }

    /// Returns the warnings about URLs that a server must not send: a person's data, credentials and pre-authenticated
    /// URLs ("Safe URL Handling", 1 and 2 for servers).
    pub fn refused_for_asking(&self) -> impl Iterator<Item = &LinkWarning> {
        self.warnings
            .iter()
            .filter(|caution| caution.asking() == SendRule::MustNot)
    }

    /// Returns the warnings about URLs that a server should not send outside development: plain http ("Safe URL
    /// Handling", 4 for servers), and signs that make a careful person refuse.
    pub fn unwise_for_asking(&self) -> impl Iterator<Item = &LinkWarning> {
        self.warnings
            .iter()
            .filter(|caution| caution.asking() == SendRule::ShouldNot)
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("host", &self.host.ascii())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_set_apart_and_the_pieces_make_the_whole() {
        for (text, before, domain, after) in [
            (
                "https://mcp.example.com/ui/set_api_key",
                "https://mcp.",
                "example.com",
                "/ui/set_api_key",
            ),
            (
                "https://example.co.uk:8443/?a=b#c",
                "https://",
                "example.co.uk",
                ":8443/?a=b#c",
            ),
            (
                "https://paypal.com.evil.example.org/x",
                "https://paypal.com.evil.",
                "example.org",
                "/x",
            ),
            (
                "https://user:pw@a.b.example.com/",
                "https://user:pw@a.b.",
                "example.com",
                "/",
            ),
            (
                "http://127.0.0.1:3000/cb",
                "http://",
                "127.0.0.1",
                ":3000/cb",
            ),
            ("http://[::1]:80/", "http://", "[::1]", "/"),
            (
                "https://me.github.io/page",
                "https://",
                "me.github.io",
                "/page",
            ),
            ("http://localhost/", "http://", "localhost", "/"),
            (
                "https://BÜCHER.example.com/",
                "https://xn--bcher-kva.",
                "example.com",
                "/",
            ),
        ] {
            let link = Link::parse(text).expect(text);
            let shown = link.shown();
            assert_eq!(
                (shown.before, shown.domain, shown.after),
                (before, domain, after),
                "{text}"
            );
            assert_eq!(
                format!("{}{}{}", shown.before, shown.domain, shown.after),
                link.as_str()
            );
            assert_eq!(link.sent(), text);
        }
    }

    #[test]
    fn of_warnings_that_say_the_same_a_person_reads_the_gravest() {
        let codes = |link: &Link| -> Vec<_> {
            let warnings = link.distinct_warnings();
            warnings.map(LinkWarning::code).collect()
        };
        for (address, said, unsaid) in [
            (
                "https://раураl.com/",
                "looks-like",
                ["mixed-scripts", "international-name"],
            ),
            (
                "https://müllер.example/",
                "mixed-scripts",
                ["looks-like", "international-name"],
            ),
            (
                "https://müller.example/",
                "international-name",
                ["looks-like", "mixed-scripts"],
            ),
        ] {
            let link = Link::parse(address).expect(address);
            let codes = codes(&link);
            assert!(codes.contains(&said), "{address}: {codes:?}");
            assert!(!unsaid.iter().any(|code| codes.contains(code)), "{codes:?}");
        }
        // No other warning is left out.
        let link = Link::parse("http://user@example.com:81/?u=https://x.example/&token=1")
            .expect("a link");
        assert!(link.distinct_warnings().eq(link.warnings()));
    }

    #[test]
    fn what_is_shown_is_ascii_and_free_of_control_characters() {
        let link = Link::parse("https://example.com/a\u{202e}gpj.exe?q=\u{200b}é#\u{feff}")
            .expect("a link");
        assert!(
            link.as_str().bytes().all(|byte| byte.is_ascii_graphic()),
            "{link}"
        );
        assert!(link.warnings().contains(&LinkWarning::Invisible));
    }

    #[test]
    fn the_asking_side_must_not_send_a_persons_data() {
        let link = Link::parse(
            "http://connect.example.com/?api_key=abc&email=a@b.example&redirect=https://x.example/",
        )
        .expect("a link");
        let refused: Vec<_> = link.refused_for_asking().map(LinkWarning::code).collect();
        assert_eq!(refused, ["credential-in-url", "personal-data-in-url"]);
        let unwise: Vec<_> = link.unwise_for_asking().map(LinkWarning::code).collect();
        assert_eq!(unwise, ["plain-http"]);
        let clean = Link::parse("https://connect.example.com/start?ticket=8f2e").expect("a link");
        assert_eq!(
            clean
                .refused_for_asking()
                .chain(clean.unwise_for_asking())
                .count(),
            0
        );
        assert_eq!(clean.warnings(), []);
    }

    /// A rule about the host must not see another host than the browser that opens the link (URL Standard).
    #[test]
    fn the_host_that_rules_see_is_the_one_that_browsers_open() {
        let host = |text: &str| {
            Link::parse(text)
                .ok()
                .map(|link| link.host().ascii().to_owned())
        };
        for (text, opened) in [
            ("https://a.example.com\\@evil.test/", "a.example.com"),
            ("https://a.example.com@evil.test/", "evil.test"),
            ("https://a.example.com:443@evil.test/", "evil.test"),
            ("https://a.example.com%40evil.test/", ""),
            ("https://evil.test\\.example.com/", "evil.test"),
            ("https://evil.test#.example.com", "evil.test"),
            ("https://evil.test?.example.com", "evil.test"),
            ("https:/\\evil.test/.example.com", "evil.test"),
            ("https:evil.test/.example.com", "evil.test"),
            ("https:///evil.test/.example.com", "evil.test"),
            ("https://EVIL.test/", "evil.test"),
            ("https://evil%2etest/", "evil.test"),
            ("https://evil\u{3002}test/", "evil.test"),
            ("https://\u{ff45}vil.test/", "evil.test"),
            ("https://evil.test./", "evil.test."),
            ("https://evil\u{ad}.test/", "evil.test"),
            ("https://2130706433/", "127.0.0.1"),
            ("https://0x7f.1/", "127.0.0.1"),
            ("https://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]"),
        ] {
            let seen = host(text);
            // A link that is refused is opened by nobody.
            assert!(
                seen.is_none() || seen.as_deref() == Some(opened),
                "{text}: {seen:?}"
            );
        }
        assert_eq!(
            host("https://a.example.com/").as_deref(),
            Some("a.example.com")
        );
    }
}
