use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The key that a login link carries. Whoever has it is the person the questions are for.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A new secret of 256 random bits.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn random() -> io::Result<Self> {
        Ok(Self(random_text()?))
    }

    /// A secret kept from an earlier run. `None` when it is shorter than 22 characters, too short to be one, or has
    /// characters that an address cannot hold as they are.
    pub fn kept(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        (text.len() >= 22 && plain).then_some(Self(text))
    }

    /// The secret as text, for the login link and for keeping it where only its owner can read.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// 256 random bits as text for an address.
#[expect(
    clippy::disallowed_methods,
    reason = "the secrets of an address are drawn where it is served"
)]
pub(super) fn random_text() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Where the pages are served and who may reach them.
#[derive(Clone, Debug)]
pub struct Site {
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) base: String,
    pub(super) loopback: bool,
    pub(super) secure: bool,
    pub(super) by: String,
    pub(super) body_limit: usize,
    pub(super) clock: fn() -> SystemTime,
    root: String,
    secret: Secret,
    cookie: String,
    session: Secret,
}

/// What is said with the secret, each in its own voice so that one can never stand for another.
#[derive(Clone, Copy)]
pub(super) enum Voice {
    /// Signed in.
    Session,
    /// A form that this site made for this question.
    Form,
    /// The answers that were reviewed.
    Seen,
}

impl Voice {
    fn word(self) -> &'static [u8] {
        match self {
            Self::Session => b"mcp-elicit web session\0",
            Self::Form => b"mcp-elicit web form\0",
            Self::Seen => b"mcp-elicit web seen\0",
        }
    }
}

impl Site {
    /// The pages on this machine only, at `at`; reached as `127.0.0.1`, `localhost` or `[::1]`.
    pub fn loopback(at: SocketAddr, secret: Secret) -> Self {
        let port = at.port();
        let mut names = vec![at.to_string()];
        for name in ["127.0.0.1", "localhost", "[::1]"] {
            let host = format!("{name}:{port}");
            if !names.contains(&host) {
                names.push(host);
            }
        }
        let origins = names.iter().map(|name| format!("http://{name}")).collect();
        Self::new(format!("http://{at}"), names, origins, port, true, secret)
    }

    /// The pages at a public address such as `https://inbox.example.org`, which reaches this process through a proxy
    /// of the operator's. `None` when `address` is not an http or https address with nothing after the host.
    pub fn public(address: &str, secret: Secret) -> Option<Self> {
        let url = url::Url::parse(address).ok()?;
        let fits = matches!(url.scheme(), "http" | "https")
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let origin = url.origin().ascii_serialization();
        let host = origin
            .split_once("://")
            .map(|(_, host)| host.to_owned())
            .filter(|_| fits)?;
        let port = url.port_or_known_default()?;
        let mut site = Self::new(
            origin.clone(),
            vec![host],
            vec![origin],
            port,
            false,
            secret,
        );
        site.secure = url.scheme() == "https";
        Some(site)
    }

    fn new(
        root: String,
        hosts: Vec<String>,
        origins: Vec<String>,
        port: u16,
        loopback: bool,
        secret: Secret,
    ) -> Self {
        let session = Secret(tag(&secret, Voice::Session, b""));
        Self {
            hosts,
            origins,
            base: String::new(),
            loopback,
            secure: false,
            by: "in the browser".to_owned(),
            body_limit: 1024 * 1024,
            clock: super::clock::now,
            root,
            secret,
            // Cookies do not keep ports apart, so the name does.
            cookie: format!("mcp-elicit-{port}"),
            session,
        }
    }

    /// Puts the pages under a path such as `/inbox` instead of at the root.
    #[must_use]
    pub fn under(mut self, path: &str) -> Self {
        let path = path.trim_matches('/');
        self.base = if path.is_empty() {
            String::new()
        } else {
            format!("/{path}")
        };
        self
    }

    /// Who is recorded as having answered, in words for a person. `in the browser` unless set.
    #[must_use]
    pub fn answered_by(mut self, who: impl Into<String>) -> Self {
        self.by = who.into();
        self
    }

    /// The most bytes of a request's body. 1 MiB unless set.
    #[must_use]
    pub fn with_body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// Reads the time from elsewhere than the system's clock.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> SystemTime) -> Self {
        self.clock = clock;
        self
    }

    /// The address that signs a person in and shows the queue. It holds the secret: for the person only.
    pub fn login_link(&self) -> String {
        format!(
            "{}{}/login?key={}",
            self.root,
            self.base,
            self.secret.reveal()
        )
    }

    /// The address that signs a person in and shows one question. It holds the secret: for the person only.
    pub fn question_link(&self, id: &super::QuestionId) -> String {
        format!("{}&next={}/q/{id}", self.login_link(), self.base)
    }

    /// The address of a question for somebody who is signed in already. It holds no secret.
    pub fn deep_link(&self, id: &super::QuestionId) -> String {
        format!("{}{}/q/{id}", self.root, self.base)
    }

    /// Whether the request was meant for this site. A name that somebody made point here (DNS rebinding) is not it.
    pub fn is_for_us(&self, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::HOST).iter();
        let host = named.next().and_then(|host| host.to_str().ok());
        let known = host.is_some_and(|host| {
            self.hosts
                .iter()
                .any(|ours| ours.eq_ignore_ascii_case(host))
        });
        known && named.next().is_none()
    }

    /// Whether the request comes from one of this site's own pages.
    pub fn is_from_us(&self, headers: &HeaderMap) -> bool {
        let origin = headers
            .get(header::ORIGIN)
            .and_then(|origin| origin.to_str().ok());
        origin.is_some_and(|origin| self.origins.iter().any(|ours| ours == origin))
    }

    /// Whether `key` is the secret. Takes the same time for every wrong key of the same length.
    pub fn is_secret(&self, key: &str) -> bool {
        same(key, self.secret.reveal())
    }

    /// Whether the request carries the cookie that the login link is exchanged for.
    pub fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .any(|(name, value)| name == self.cookie && same(value, self.session.reveal()))
    }

    /// The `Set-Cookie` of somebody who showed the secret. The cookie is not the secret and cannot be turned into it.
    pub(super) fn session_cookie(&self) -> String {
        let path = if self.base.is_empty() {
            "/"
        } else {
            &self.base
        };
        let secure = if self.secure { "; Secure" } else { "" };
        format!(
            "{}={}; Path={path}; HttpOnly; SameSite=Strict{secure}",
            self.cookie,
            self.session.reveal()
        )
    }

    /// Words about `what` that only this site can have said.
    pub(super) fn tag(&self, voice: Voice, what: &[u8]) -> String {
        tag(&self.secret, voice, what)
    }

    /// Whether `said` is what this site says about `what`.
    pub(super) fn said(&self, voice: Voice, what: &[u8], said: &str) -> bool {
        same(said, &self.tag(voice, what))
    }
}

fn tag(secret: &Secret, voice: Voice, what: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.reveal().as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(voice.word());
    mac.update(what);
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn site() -> Site {
        Site::loopback(([127, 0, 0, 1], 7878).into(), Secret::random().unwrap())
    }

    fn headers(name: &header::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn only_our_own_names_are_ours() {
        let site = site();
        for host in [
            "127.0.0.1:7878",
            "localhost:7878",
            "[::1]:7878",
            "LOCALHOST:7878",
        ] {
            assert!(site.is_for_us(&headers(&header::HOST, &[host])), "{host}");
        }
        for host in [
            "evil.example:7878",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:7878",
            "",
        ] {
            assert!(!site.is_for_us(&headers(&header::HOST, &[host])), "{host}");
        }
        assert!(!site.is_for_us(&HeaderMap::new()));
        assert!(!site.is_for_us(&headers(&header::HOST, &["127.0.0.1:7878", "evil.example"])));
    }

    #[test]
    fn only_our_own_pages_are_ours() {
        let site = site();
        assert!(site.is_from_us(&headers(&header::ORIGIN, &["http://127.0.0.1:7878"])));
        for origin in [
            "null",
            "https://127.0.0.1:7878",
            "http://127.0.0.1:1",
            "http://evil.example",
        ] {
            assert!(
                !site.is_from_us(&headers(&header::ORIGIN, &[origin])),
                "{origin}"
            );
        }
        assert!(!site.is_from_us(&HeaderMap::new()));
    }

    #[test]
    fn a_cookie_signs_in_and_is_not_the_secret() {
        let site = site();
        let set = site.session_cookie();
        let cookie = set.split(';').next().unwrap();
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"));
        assert!(!set.contains(site.secret.reveal()));
        assert!(site.is_signed_in(&headers(&header::COOKIE, &[&format!("other=1; {cookie}")])));
        assert!(!site.is_signed_in(&headers(&header::COOKIE, &[&format!("{cookie}x")])));
        assert!(!site.is_signed_in(&headers(&header::COOKIE, &["mcp-elicit-7878="])));
        let name = cookie.split('=').next().unwrap();
        assert!(!site.is_signed_in(&headers(
            &header::COOKIE,
            &[&format!("{name}={}", site.secret.reveal())]
        )));
    }

    #[test]
    fn one_voice_never_stands_for_another() {
        let site = site();
        let form = site.tag(Voice::Form, b"a");
        assert!(site.said(Voice::Form, b"a", &form));
        assert!(!site.said(Voice::Form, b"b", &form) && !site.said(Voice::Seen, b"a", &form));
        assert!(!site.said(Voice::Form, b"a", ""));
    }

    #[test]
    fn a_public_site_is_its_own_host_only() {
        let secret = Secret::random().unwrap();
        let site = Site::public("https://inbox.example.org", secret.clone())
            .unwrap()
            .under("/ask/");
        assert!(site.is_for_us(&headers(&header::HOST, &["inbox.example.org"])));
        assert!(!site.is_for_us(&headers(&header::HOST, &["localhost:443"])));
        assert!(
            site.session_cookie().contains("Secure")
                && site.session_cookie().contains("Path=/ask;")
        );
        assert!(
            site.login_link()
                .starts_with("https://inbox.example.org/ask/login?key=")
        );
        for bad in [
            "inbox.example.org",
            "ftp://a",
            "https://a/b",
            "https://u@a",
            "https://a?b",
        ] {
            assert!(Site::public(bad, secret.clone()).is_none(), "{bad}");
        }
        assert!(Secret::kept("short").is_none() && Secret::kept("a".repeat(40) + " ").is_none());
        assert!(!format!("{site:?}").contains(secret.reveal()));
    }
}
