//! The templates of the pages: one question or one notice each. No script, no frame, nothing from other hosts.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

use mcp_elicit_forms::theme::{self, Tone};

use super::ConnectParts;
#[cfg(feature = "oauth")]
use super::link::LinkToken;

/// The style of these pages, after the shared theme.
const OWN_STYLE: &str = include_str!("../../assets/style.css");

const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// The server that the pages belong to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerSite<'a> {
    server: &'a str,
    base: &'a str,
}

impl ServerSite<'_> {
    fn initial(&self) -> String {
        self.server
            .chars()
            .find(|c| c.is_alphanumeric())
            .unwrap_or('?')
            .to_string()
    }
}

impl ConnectParts {
    pub(super) fn site(&self) -> ServerSite<'_> {
        ServerSite {
            server: &self.server,
            base: &self.base,
        }
    }
}

/// The page of a token.
#[derive(Template)]
#[template(path = "connect/ask.html")]
pub(super) struct TokenPage<'a> {
    pub(super) site: ServerSite<'a>,
    pub(super) purpose: &'a str,
    pub(super) principal: &'a str,
    pub(super) message: &'a str,
    /// The address of this page.
    pub(super) here: &'a str,
    pub(super) what: PageBody<'a>,
}

/// The request to the person.
pub(super) enum PageBody<'a> {
    /// To enter a secret called `label`.
    Secret {
        label: &'a str,
        wrong: Option<&'a str>,
    },
    /// To sign in at another host.
    #[cfg_attr(
        not(feature = "oauth"),
        expect(dead_code, reason = "the template has one arm for each")
    )]
    SignIn {
        host: &'a ShownHost,
        scopes: &'a [String],
    },
}

/// A host with its registrable domain set apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownHost {
    pub(super) before: String,
    pub(super) site: String,
}

#[cfg(feature = "oauth")]
impl ShownHost {
    /// Returns the host of an address that the person is sent to.
    pub(super) fn of(address: &str) -> Self {
        let Ok(link) = mcp_elicit_core::link::Link::parse(address) else {
            let url = url::Url::parse(address).ok();
            let site = url.and_then(|url| url.host_str().map(str::to_owned));
            return Self {
                before: String::new(),
                site: site.unwrap_or_default(),
            };
        };
        // As it is spelled on the wire, which exposes look-alikes of known names.
        let (before, site) = link.host().ascii().split_at(link.host().prefix().len());
        Self {
            before: before.to_owned(),
            site: site.to_owned(),
        }
    }
}

impl TokenPage<'_> {
    pub(super) fn page(&self, status: StatusCode) -> Response {
        page(self, status)
    }
}

/// A notice.
#[derive(Template)]
#[template(path = "connect/notice.html")]
pub(super) struct NoticeTemplate<'a> {
    site: ServerSite<'a>,
    tone: Tone,
    head: &'a str,
    lines: &'a [&'a str],
    onward: Option<Onward>,
}

/// The next step.
#[derive(Debug, Clone)]
pub(super) struct Onward {
    href: String,
    label: &'static str,
    decline: Option<String>,
}

impl Onward {
    #[cfg(feature = "oauth")]
    pub(super) fn to(href: String, label: &'static str) -> Self {
        Self {
            href,
            label,
            decline: None,
        }
    }

    /// Returns to the page of a token, or decides not to connect at all.
    #[cfg(feature = "oauth")]
    pub(super) fn again(inner: &ConnectParts, ticket: &LinkToken) -> Option<Self> {
        let here = inner.address(ticket)?;
        Some(Self {
            decline: Some(format!("{here}/decline")),
            href: here,
            label: "Try again",
        })
    }
}

impl<'a> NoticeTemplate<'a> {
    pub(super) fn new(
        site: ServerSite<'a>,
        tone: Tone,
        head: &'a str,
        lines: &'a [&'a str],
    ) -> Self {
        Self {
            site,
            tone,
            head,
            lines,
            onward: None,
        }
    }

    #[cfg(feature = "oauth")]
    pub(super) fn onward(mut self, onward: Option<Onward>) -> Self {
        self.onward = onward;
        self
    }

    pub(super) fn page(&self, status: StatusCode) -> Response {
        page(self, status)
    }
}

fn page(template: &impl Template, status: StatusCode) -> Response {
    let Ok(html) = template.render() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        // With `no-referrer`, browsers would send our own forms without an origin.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ];
    (status, headers, Html(html)).into_response()
}

pub(super) async fn style() -> Response {
    let headers = [
        (CONTENT_TYPE, "text/css; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "max-age=3600"),
    ];
    (headers, [theme::STYLE, OWN_STYLE].concat()).into_response()
}

#[cfg(all(test, feature = "oauth"))]
mod tests {
    use super::*;

    #[test]
    fn the_registered_domain_is_set_apart() {
        let host = ShownHost::of("https://login.example.com/authorize");
        assert_eq!(
            (host.before.as_str(), host.site.as_str()),
            ("login.", "example.com")
        );
    }
}
