use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::desktop_sign_in::{DesktopSignIn, OPENED_LIFE, OpenedPage};
use super::sessions::{BrowserSession, MemorySessions, NewSession, SessionStore, SessionTable};

/// The default lifetime of an unused login link.
const LOGIN_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// A callback for the name of a new session.
type OnLogin = Arc<dyn Fn(&str) -> BoxFuture<'static, ()> + Send + Sync>;

/// The address of the pages, and the access to them.
///
/// Browsers send the cookies of a host to all its ports, so the pages of a site are below a path of 256 random bits and
/// the session's cookie is for that path alone: another server on this machine, which a link may lead to, receives
/// nothing. The path is in no address that is given away: neither in a login link nor in the link to a question.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the address"
)]
pub struct Site {
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    /// The path of everything, empty at the root; the pages without a session are directly below it.
    pub(super) prefix: String,
    /// The path of the pages for signed-in people: the prefix, then the secret part.
    pub(super) base: String,
    pub(super) loopback: bool,
    pub(super) secure: bool,
    /// `true` if people log in by other means than links.
    pub(super) logins: bool,
    /// `true` if the pages of people who log in are below the secret path, too.
    hides_logins: bool,
    pub(super) body_limit: usize,
    pub(super) clock: fn() -> SystemTime,
    pub(super) sign_in: String,
    by: String,
    names_sessions: bool,
    on_login: Option<OnLogin>,
    pub(super) desktop: Option<Arc<DesktopSignIn>>,
    root: String,
    cookie: String,
    login_life: Duration,
    sessions: Arc<dyn SessionStore>,
    secret_path: String,
    key: String,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("root", &self.root)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// The purposes of the site's key, each with its own prefix, so that a tag for one purpose is invalid for another.
#[derive(Clone, Copy)]
pub(super) enum MacPurpose {
    /// A form that this site made for this question.
    Form,
    /// The reviewed answers.
    Seen,
}

impl MacPurpose {
    fn word(self) -> &'static [u8] {
        match self {
            Self::Form => b"mcp-elicit web form\0",
            Self::Seen => b"mcp-elicit web seen\0",
        }
    }
}

impl Site {
    /// Creates a site on this machine only, at `at`; reached as `127.0.0.1`, `localhost` or `[::1]`. Sessions end with
    /// the process unless [`with_sessions`](Self::with_sessions) stores them.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn loopback(at: SocketAddr) -> io::Result<Self> {
        let port = at.port();
        let mut names = vec![at.to_string()];
        for name in ["127.0.0.1", "localhost", "[::1]"] {
            let host = format!("{name}:{port}");
            if !names.contains(&host) {
                names.push(host);
            }
        }
        let origins = names.iter().map(|name| format!("http://{name}")).collect();
        Self::new(format!("http://{at}"), names, origins, port, true)
    }

    /// Creates a site at a public address such as `https://inbox.example.org`, which reaches this process through the
    /// operator's proxy.
    ///
    /// # Errors
    /// If `address` is not an http or https address with nothing after the host, or the system has no randomness.
    pub fn public(address: &str) -> io::Result<Self> {
        let wrong = || {
            let why = "write the address as scheme and host, such as https://inbox.example.org";
            io::Error::new(io::ErrorKind::InvalidInput, why)
        };
        let url = url::Url::parse(address).map_err(|_| wrong())?;
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
            .filter(|_| fits)
            .ok_or_else(wrong)?;
        let port = url.port_or_known_default().ok_or_else(wrong)?;
        let mut site = Self::new(origin.clone(), vec![host], vec![origin], port, false)?;
        site.secure = url.scheme() == "https";
        Ok(site)
    }

    fn new(
        root: String,
        hosts: Vec<String>,
        origins: Vec<String>,
        port: u16,
        loopback: bool,
    ) -> io::Result<Self> {
        let sessions = Arc::new(MemorySessions::new()?);
        let site = Self {
            hosts,
            origins,
            prefix: String::new(),
            base: String::new(),
            loopback,
            secure: false,
            logins: false,
            hides_logins: false,
            by: "in the browser".to_owned(),
            names_sessions: false,
            on_login: None,
            desktop: None,
            body_limit: 1024 * 1024,
            clock: super::clock::now,
            sign_in: "Open the link that the program printed where it was started. It signs this browser in, once."
                .to_owned(),
            root,
            // Distinguishes two sites on ports of one host, which share cookies in browsers.
            cookie: format!("mcp-elicit-{port}"),
            login_life: LOGIN_LIFE,
            sessions: Arc::clone(&sessions) as Arc<dyn SessionStore>,
            secret_path: String::new(),
            key: String::new(),
        };
        site.with_sessions(sessions)
    }

    /// Stores sessions, the path and the key of the pages in this store.
    ///
    /// # Errors
    /// If the store cannot be read, or its path or key is not a secret of the right form.
    pub fn with_sessions(mut self, sessions: Arc<dyn SessionStore>) -> io::Result<Self> {
        let table = sessions.read()?;
        if !table.is_sound() {
            return Err(io::Error::other("the stored sessions cannot be used"));
        }
        table.path().clone_into(&mut self.secret_path);
        table.key().clone_into(&mut self.key);
        self.sessions = sessions;
        self.set_base();
        Ok(self)
    }

    /// Puts the pages under a path such as `/inbox` instead of at the root.
    #[must_use]
    pub fn under(mut self, path: &str) -> Self {
        let path = path.trim_matches('/');
        self.prefix = if path.is_empty() {
            String::new()
        } else {
            format!("/{path}")
        };
        self.set_base();
        self
    }

    /// Leaves the identification of viewers to the application: a layer outside of the [`router`](super::router) puts
    /// the store's viewer into the extensions of each request, and pages for `/login` are merged beside it. Links sign
    /// no one in, and the pages are at guessable paths: for a login that needs no cookie, such as a proxy's.
    #[must_use]
    pub fn with_logins(mut self) -> Self {
        self.logins = true;
        self.set_base();
        self
    }

    /// The same for a login that a cookie keeps: the pages are below the secret path, for which alone the cookie is set
    /// ([`path`](Self::path)). A page outside of it leads to `/login`, which is outside, too
    /// ([`outer_path`](Self::outer_path)).
    #[must_use]
    pub fn with_hidden_logins(mut self) -> Self {
        self.hides_logins = true;
        self.with_logins()
    }

    fn set_base(&mut self) {
        self.base = if self.logins && !self.hides_logins {
            self.prefix.clone()
        } else {
            format!("{}/{}", self.prefix, self.secret_path)
        };
    }

    /// Returns `true` if browsers reach the site over https only.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// Returns the path below which the pages are; empty at the root.
    pub fn path(&self) -> &str {
        &self.base
    }

    /// Returns the path of the pages that need no session; empty at the root. It may be given away.
    pub fn outer_path(&self) -> &str {
        &self.prefix
    }

    /// Returns the token for forms of this session about `what`.
    pub fn form_token(&self, session: &str, what: &str) -> String {
        self.tag(MacPurpose::Form, &form_bytes(Some(session), what))
    }

    /// Returns `true` if the token was made for forms of this session about `what`.
    pub fn is_form_token(&self, session: &str, what: &str, token: &str) -> bool {
        self.verifies(MacPurpose::Form, &form_bytes(Some(session), what), token)
    }

    /// Sets the text that tells people without a session how to get one: a whole sentence.
    #[must_use]
    pub fn signed_in_by(mut self, how: impl Into<String>) -> Self {
        self.sign_in = how.into();
        self
    }

    /// Sets how long a login link can be used. Defaults to one day.
    #[must_use]
    pub fn with_login_life(mut self, life: Duration) -> Self {
        self.login_life = life;
        self
    }

    /// Calls `tell` with the name of each new session, and waits for it before the browser gets the session.
    #[must_use]
    pub fn on_login<F>(mut self, tell: impl Fn(&str) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_login = Some(Arc::new(move |session| tell(session).boxed()));
        self
    }

    /// Offers on the sign-in page to sign in at the machine that serves the site, which has a desktop: `open` opens a
    /// login link in that machine's browser, and keeps its key from other users of the machine. It may block for a
    /// second. The page that asked for it gets no link; links are opened 10 seconds apart.
    #[must_use]
    pub fn signing_in_on_desktop(mut self, open: fn(&str) -> io::Result<OpenedPage>) -> Self {
        self.desktop = Some(Arc::new(DesktopSignIn::new(open)));
        self
    }

    /// Records the session beside the responder.
    #[must_use]
    pub fn naming_sessions(mut self) -> Self {
        self.names_sessions = true;
        self
    }

    /// Sets the responder that is recorded, in words for a person. Defaults to `in the browser`.
    #[must_use]
    pub fn answered_by(mut self, who: impl Into<String>) -> Self {
        self.by = who.into();
        self
    }

    /// Sets the largest body of a request, in bytes. Defaults to 1 MiB.
    #[must_use]
    pub fn with_body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// Reads the time from `clock` and not from the system.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> SystemTime) -> Self {
        self.clock = clock;
        self
    }

    /// Creates an address that signs a person in, once, and shows the queue: for the person only.
    ///
    /// # Errors
    /// If the sessions cannot be written.
    pub fn login_link(&self) -> io::Result<String> {
        Ok(self.login_link_with(&self.login_key(self.login_life)?))
    }

    /// Creates a key that signs a person in, once, within `life`.
    fn login_key(&self, life: Duration) -> io::Result<String> {
        let mut key = String::new();
        self.sessions.change(&mut |table| {
            key = table.add_login((self.clock)(), life)?;
            Ok(())
        })?;
        Ok(key)
    }

    /// Opens a page of this site in the browser of this machine, and signs it in.
    pub(super) async fn open_on_desktop(
        &self,
        desktop: &DesktopSignIn,
        next: &str,
    ) -> io::Result<()> {
        let key = self.login_key(OPENED_LIFE)?;
        let link = format!("{}&next={next}", self.login_link_with(&key));
        let opened = desktop.open(link).await;
        if opened.is_err() {
            self.sessions.change(&mut |table| {
                table.drop_login(&key);
                Ok(())
            })?;
        }
        opened
    }

    /// Returns the address that redeems a login key.
    pub fn login_link_with(&self, key: &str) -> String {
        format!("{}{}/login?key={key}", self.root, self.prefix)
    }

    /// Creates an address that signs a person in, once, and shows one question: for the person only.
    ///
    /// # Errors
    /// If the sessions cannot be written.
    pub fn question_link(&self, id: &super::QuestionId) -> io::Result<String> {
        Ok(format!("{}&next=/q/{id}", self.login_link()?))
    }

    /// Returns the address of a question. It contains no login and no secret.
    pub fn deep_link(&self, id: &super::QuestionId) -> String {
        format!("{}{}/q/{id}", self.root, self.prefix)
    }

    /// Returns the address of the site. It contains no login and no secret.
    pub fn address(&self) -> String {
        format!("{}{}/", self.root, self.prefix)
    }

    /// Returns `true` if the request was meant for this site. Another name that resolves to this host (DNS rebinding)
    /// is rejected.
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

    /// Returns `true` if the request comes from one of this site's own pages. One that names two origins does not.
    pub fn is_from_us(&self, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::ORIGIN).iter();
        let origin = named.next().and_then(|origin| origin.to_str().ok());
        let known = origin.is_some_and(|origin| self.origins.iter().any(|ours| ours == origin));
        known && named.next().is_none()
    }

    /// Returns `true` if the path may be that of a style, a script or an icon, which everyone may read: one name below
    /// `/assets/`.
    pub(super) fn is_asset(&self, path: &str) -> bool {
        self.below_assets(path)
            .is_some_and(|name| !name.is_empty() && !name.contains('/'))
    }

    /// Returns `true` if the path is below `/assets/`, where nothing is personal, and most paths do not exist.
    pub fn is_below_assets(&self, path: &str) -> bool {
        self.below_assets(path).is_some()
    }

    fn below_assets<'p>(&self, path: &'p str) -> Option<&'p str> {
        let below = |base: &str| path.strip_prefix(base)?.strip_prefix("/assets/");
        below(&self.base).or_else(|| below(&self.prefix))
    }

    /// Returns `true` if the request carries the cookie of a session that has not ended. Browsers send it to the pages
    /// only.
    pub fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        self.session(headers).is_some()
    }

    fn session_table(&self) -> Option<Arc<SessionTable>> {
        let table = self.sessions.read();
        table
            .inspect_err(|error| tracing::error!(%error, "the sessions cannot be read"))
            .ok()
    }

    /// Returns the session that the request belongs to.
    fn session_in<'t>(
        &self,
        table: &'t SessionTable,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Option<&'t BrowserSession> {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .filter(|(name, _)| *name == self.cookie)
            .find_map(|(_, value)| table.find(value, now))
    }

    /// Returns `true` if the session of the request is live. This does not count as a use.
    pub(super) fn has_session(&self, headers: &HeaderMap) -> bool {
        let table = self.session_table();
        table.is_some_and(|table| self.session_in(&table, headers, (self.clock)()).is_some())
    }

    /// Returns the name of the request's session, and records its use.
    pub(super) fn session(&self, headers: &HeaderMap) -> Option<String> {
        let now = (self.clock)();
        let table = self.session_table()?;
        let session = self.session_in(&table, headers, now)?;
        let id = session.id().to_owned();
        if SessionTable::is_due(session, now) {
            let noted = self.sessions.change(&mut |table| {
                table.note_use(&id, now);
                Ok(())
            });
            if let Err(error) = noted {
                tracing::warn!(%error, "the use of a session could not be noted");
            }
        }
        Some(id)
    }

    /// Redeems a login key; `None` if it is unknown, used or too old.
    pub(super) fn redeem(&self, key: &str, browser: &str) -> io::Result<Option<NewSession>> {
        let now = (self.clock)();
        // A guessed key costs a read, never a write.
        if !self.sessions.read()?.is_unused(key, now) {
            return Ok(None);
        }
        let mut session = None;
        self.sessions.change(&mut |table| {
            session = table.redeem(key, now, browser)?;
            Ok(())
        })?;
        Ok(session)
    }

    /// Calls the callback for a new session.
    pub(super) async fn tell_login(&self, session: &NewSession) {
        if let Some(tell) = &self.on_login {
            tell(&session.id).await;
        }
    }

    /// Returns the name under which actions of this request are recorded; `None` if it belongs to no session.
    pub(super) fn by(&self, headers: &HeaderMap) -> Option<String> {
        let session = self.session(headers)?;
        Some(if self.names_sessions {
            format!("{}, session {session}", self.by)
        } else {
            self.by.clone()
        })
    }

    /// Returns the `Set-Cookie` of a new session, which is sent back to the pages only.
    pub(super) fn session_cookie(&self, session: &NewSession) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!(
            "{}={}; Path={}; HttpOnly; SameSite=Strict{secure}",
            self.cookie, session.cookie, self.base,
        )
    }

    /// Returns the authentication code of `what` for this purpose, which only this site can make.
    pub(super) fn tag(&self, purpose: MacPurpose, what: &[u8]) -> String {
        tag(&self.key, purpose, what)
    }

    /// Returns `true` if `said` is the authentication code of `what` for this purpose.
    pub(super) fn verifies(&self, purpose: MacPurpose, what: &[u8], said: &str) -> bool {
        same(said, &self.tag(purpose, what))
    }
}

/// Returns the input of a form's token: the form's subject, and its reader's session if there are several.
pub(super) fn form_bytes(session: Option<&str>, what: &str) -> Vec<u8> {
    match session {
        None => what.as_bytes().to_vec(),
        Some(session) => format!("{session}\0{what}").into_bytes(),
    }
}

fn tag(key: &str, purpose: MacPurpose, what: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(purpose.word());
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
        Site::loopback(([127, 0, 0, 1], 7878).into()).unwrap()
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
        let ours = "http://127.0.0.1:7878";
        for two in [[ours, "http://evil.example"], [ours, ours]] {
            assert!(!site.is_from_us(&headers(&header::ORIGIN, &two)));
        }
    }

    fn login_key(site: &Site) -> String {
        let link = site.login_link().unwrap();
        link.split_once("key=").unwrap().1.to_owned()
    }

    #[test]
    fn a_login_key_is_exchanged_for_a_cookie_once() {
        let site = site();
        let key = login_key(&site);
        let session = site.redeem(&key, "Firefox").unwrap().unwrap();
        assert_eq!(site.redeem(&key, "Firefox").unwrap(), None);
        let set = site.session_cookie(&session);
        let cookie = set.split(';').next().unwrap();
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"));
        assert!(!set.contains(&key));
        assert!(site.is_signed_in(&headers(&header::COOKIE, &[&format!("other=1; {cookie}")])));
        assert!(!site.is_signed_in(&headers(&header::COOKIE, &[&format!("{cookie}x")])));
        assert!(!site.is_signed_in(&headers(&header::COOKIE, &["mcp-elicit-7878="])));
        let name = cookie.split('=').next().unwrap();
        assert!(!site.is_signed_in(&headers(&header::COOKIE, &[&format!("{name}={key}")])));
    }

    #[test]
    fn the_cookie_is_for_a_path_that_no_address_gives_away() {
        let site = site().under("/ask/");
        let session = site.redeem(&login_key(&site), "").unwrap().unwrap();
        let set = site.session_cookie(&session);
        let path = set
            .split("Path=")
            .nth(1)
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        let secret = path.strip_prefix("/ask/").unwrap();
        assert!(secret.len() >= 43, "{path}");
        let id = super::super::QuestionId::new("abc").unwrap();
        for given in [
            site.login_link().unwrap(),
            site.question_link(&id).unwrap(),
            site.deep_link(&id),
            site.address(),
            format!("{site:?}"),
        ] {
            assert!(!given.contains(secret), "{given}");
        }
        assert_ne!(
            Site::loopback(([127, 0, 0, 1], 1).into()).unwrap().base,
            site.base
        );
    }

    #[test]
    fn one_voice_never_stands_for_another() {
        let site = site();
        let form = site.tag(MacPurpose::Form, b"a");
        assert!(site.verifies(MacPurpose::Form, b"a", &form));
        assert!(
            !site.verifies(MacPurpose::Form, b"b", &form)
                && !site.verifies(MacPurpose::Seen, b"a", &form)
        );
        assert!(!site.verifies(MacPurpose::Form, b"a", ""));
    }

    #[test]
    fn a_public_site_is_its_own_host_only() {
        let site = Site::public("https://inbox.example.org")
            .unwrap()
            .under("/ask/");
        assert!(site.is_for_us(&headers(&header::HOST, &["inbox.example.org"])));
        assert!(!site.is_for_us(&headers(&header::HOST, &["localhost:443"])));
        let session = site.redeem(&login_key(&site), "").unwrap().unwrap();
        assert!(site.session_cookie(&session).ends_with("; Secure"));
        assert!(
            site.login_link()
                .unwrap()
                .starts_with("https://inbox.example.org/ask/login?key=")
        );
        for bad in [
            "inbox.example.org",
            "ftp://a",
            "https://a/b",
            "https://u@a",
            "https://a?b",
        ] {
            assert!(Site::public(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn its_debug_print_has_no_secret() {
        let site = Site::public("https://inbox.example.org").unwrap();
        let link = site.login_link().unwrap();
        let key = link.split_once("key=").unwrap().1;
        let session = site.redeem(&login_key(&site), "").unwrap().unwrap();
        let cookie = site.session_cookie(&session);
        let token = cookie.split(['=', ';']).nth(1).unwrap();
        let printed = format!("{site:?}");
        for secret in [key, token] {
            assert!(!secret.is_empty() && !printed.contains(secret), "{printed}");
        }
    }
}
