//! The session of a request, and the person named by a trusted proxy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{ACCEPT, COOKIE, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::web::{self, LoginCheck, Site, SiteNotice};
use mcp_elicit_policy::Rules;
use mcp_elicit_record::Record;
use mcp_elicit_record::audit::{Details, Event};
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::refusals::Refusals;

use super::directory::DirectoryNow;
use super::pages::{LOGGED_OUT, note_devices};
use super::table::{LoginAdmission, LoginError, LoginIdentity, LoginRefused, Logins, NO_SESSION};
use super::{LoginMode, LoginSettings, ProxyLogin, PushOffer, RulesNow};
use crate::login::directory::Directory;
use crate::viewer::{InboxViewer, SignedIn};

/// The lifetime of the device cookie, in seconds: the longest that browsers allow.
const DEVICE_LIFE: u64 = 400 * 24 * 60 * 60;

/// The longest subject, mail address or list of groups in a header, in bytes.
const LONGEST_HEADER: usize = 8 * 1024;

/// The login of an inbox.
pub(crate) struct Gate {
    pub(super) settings: LoginSettings,
    pub(super) logins: Arc<Logins>,
    pub(super) rules: RulesNow,
    pub(super) directory: Arc<Directory>,
    pub(super) record: Arc<Record>,
    pub(super) site: Site,
    pub(super) clock: fn() -> Timestamp,
    cookie: String,
    /// The cookie of a registered device.
    device_cookie: String,
    pub(super) push: Option<PushOffer>,
    /// Refused logins of identities that may not log in.
    refused_logins: Refusals,
    /// Logins that the provider refused, or that failed there.
    #[cfg(feature = "teams")]
    pub(super) failed_logins: Refusals,
    /// Invalid logout tokens.
    #[cfg(feature = "teams")]
    pub(super) refused_tokens: Refusals,
    #[cfg(feature = "teams")]
    pub(super) provider: Option<super::provider::ProviderClient>,
}

/// The reason why a request of the proxy names no person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unnamed {
    /// The request comes from another address.
    NotTheProxy,
    /// A header is missing, duplicated, or unreadable.
    Headers,
}

impl Gate {
    /// Creates the login of the inbox at `site`.
    ///
    /// # Errors
    /// If the provider cannot be used as configured.
    #[cfg_attr(
        not(feature = "teams"),
        expect(clippy::unnecessary_wraps, reason = "only a provider can be wrong")
    )]
    pub(crate) fn new(
        settings: LoginSettings,
        rules: RulesNow,
        directory: Arc<Directory>,
        logins: Arc<Logins>,
        record: Arc<Record>,
        site: Site,
        clock: fn() -> Timestamp,
    ) -> io::Result<Self> {
        // Limits the cookie to this host, if browsers support it there, and if it is for the whole host.
        let cookie = if site.is_secure() && site.path().is_empty() {
            "__Host-mcp-elicit-login".to_owned()
        } else if site.is_secure() {
            "__Secure-mcp-elicit-login".to_owned()
        } else {
            let port = site
                .address()
                .trim_end_matches('/')
                .rsplit(':')
                .next()
                .map(str::to_owned);
            format!("mcp-elicit-login-{}", port.unwrap_or_default())
        };
        #[cfg(feature = "teams")]
        let provider = match &settings.mode {
            LoginMode::Oidc(oidc) => Some(super::provider::ProviderClient::new(
                oidc,
                record.identity_key(),
            )?),
            LoginMode::Proxy(_) => None,
        };
        Ok(Self {
            settings,
            logins,
            rules,
            directory,
            record,
            site,
            clock,
            device_cookie: cookie.replace("-login", "-device"),
            cookie,
            push: None,
            refused_logins: Refusals::default(),
            #[cfg(feature = "teams")]
            failed_logins: Refusals::default(),
            #[cfg(feature = "teams")]
            refused_tokens: Refusals::default(),
            #[cfg(feature = "teams")]
            provider,
        })
    }

    /// Returns the login with web push for people's devices.
    pub(crate) fn with_push(self, push: Option<PushOffer>) -> Self {
        Self { push, ..self }
    }

    fn admission<'a>(&'a self, rules: &'a Rules) -> LoginAdmission<'a> {
        LoginAdmission {
            people: rules.people(),
            allow: &self.settings.allow,
            lifetimes: self.settings.lifetimes,
        }
    }

    /// Returns a snapshot of people and roles.
    pub(super) fn people(&self) -> DirectoryNow {
        self.directory.now()
    }

    /// Audits a login, a refusal or the end of a session. Never a value.
    pub(super) async fn note(&self, event: Event, details: Details<'_>) {
        if let Err(fault) = self.record.audit_details(event, &details).await {
            tracing::error!(%fault, "a login or its end could not be written into the audit");
        }
    }

    /// Returns the cookie of the request's session.
    pub(super) fn cookie_of<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        cookie(headers, &self.cookie)
    }

    /// Returns the `Set-Cookie` of a session.
    pub(super) fn set_cookie(&self, value: &str) -> Option<HeaderValue> {
        let age = self.settings.lifetimes.max.as_secs();
        self.cookie_header(&self.cookie, value, age, self.pages())
    }

    /// Returns the request's device cookie.
    pub(super) fn device_of<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        cookie(headers, &self.device_cookie)
    }

    /// Returns the `Set-Cookie` of a device; an empty value removes it.
    pub(super) fn set_device_cookie(&self, value: &str) -> Option<HeaderValue> {
        let age = if value.is_empty() { 0 } else { DEVICE_LIFE };
        self.cookie_header(&self.device_cookie, value, age, self.pages())
    }

    /// Returns the `Set-Cookie` that removes the session from the browser.
    pub(super) fn clear_cookie(&self) -> Option<HeaderValue> {
        self.cookie_header(&self.cookie, "", 0, self.pages())
    }

    /// Returns the path of the pages for people who are logged in. Browsers send a cookie to every port of a host, so a
    /// session's is for this path alone, which no address gives away.
    fn pages(&self) -> &str {
        match self.site.path() {
            "" => "/",
            path => path,
        }
    }

    /// Returns a `Set-Cookie` for a path of the site. It is sent with links from mails and chats, and not with forms of
    /// other sites.
    pub(super) fn cookie_header(
        &self,
        name: &str,
        value: &str,
        age: u64,
        path: &str,
    ) -> Option<HeaderValue> {
        let secure = if self.site.is_secure() {
            "; Secure"
        } else {
            ""
        };
        let text =
            format!("{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::from_str(&text).ok()
    }

    /// Creates a session for this identity, replacing the browser's.
    pub(super) async fn log_in(
        &self,
        identity: &LoginIdentity,
        headers: &HeaderMap,
    ) -> Result<(String, SignedIn), LoginError> {
        let browser = headers
            .get(USER_AGENT)
            .and_then(|browser| browser.to_str().ok());
        let rules = (self.rules)();
        let made = self.logins.log_in(
            identity,
            self.admission(&rules),
            self.cookie_of(headers),
            browser.unwrap_or("unknown"),
            (self.clock)(),
        );
        match made {
            Ok(made) => {
                let signed_in = made.signed_in;
                let mut devices = made.devices;
                if let Some(device) = self.device_of(headers) {
                    devices.extend(self.logins.device_signed_in(device, &signed_in)?);
                }
                tracing::info!(session = %signed_in.session, "a person logged in");
                let actor = signed_in.actor().to_string();
                let details = Details {
                    session: Some(&signed_in.session),
                    ..Details::by(&actor)
                };
                if made.is_bound {
                    let principal = Principal::subject(&identity.issuer, &identity.subject);
                    let principal = principal.to_string();
                    let bound = Details {
                        principal: Some(&principal),
                        ..details
                    };
                    self.note(Event::PersonBound, bound).await;
                }
                self.note(Event::SignIn, details).await;
                note_devices(self, Event::DeviceRemoved, &signed_in, &devices).await;
                Ok((made.cookie, signed_in))
            }
            Err(LoginError::File(error)) => Err(error.into()),
            Err(LoginError::Refused(refused)) => {
                let Some(left_out) = self.refused_logins.count((self.clock)()) else {
                    return Err(refused.into());
                };
                // The audit has the issuer and the subject; a log has neither.
                let next = match refused {
                    LoginRefused::BoundToAnother => {
                        "this mail address was bound at an earlier login: `mcp-elicit inbox people` shows to which, and `mcp-elicit inbox people unbind NAME` releases it"
                    }
                    LoginRefused::Unusable | LoginRefused::NotAllowed | LoginRefused::TooMany => {
                        "the audit has its subject (`mcp-elicit audit --event sign-in-refused`)"
                    }
                };
                tracing::warn!(
                    reason = refused.word(),
                    next,
                    left_out,
                    has_verified_mail = identity.mail.is_some(),
                    groups = identity.claims.len(),
                    "a login was refused"
                );
                let subject = shown(&identity.subject);
                let principal = Principal::subject(&identity.issuer, &subject);
                let principal = principal.to_string();
                let details = Details {
                    principal: Some(&principal),
                    reason: Some(refused.word()),
                    left_out,
                    ..Details::default()
                };
                self.note(Event::SignInRefused, details).await;
                Err(refused.into())
            }
        }
    }

    /// Returns `true` while a checked login is live: its session is, or without one, the person may log in.
    pub(super) fn is_live(&self, viewer: &SignedIn) -> bool {
        if viewer.issuer != self.settings.issuer() {
            return false;
        }
        let rules = (self.rules)();
        let (admission, now) = (self.admission(&rules), (self.clock)());
        let is_live = if viewer.session == NO_SESSION {
            let identity = LoginIdentity {
                issuer: viewer.issuer.clone(),
                subject: viewer.subject.clone(),
                name: String::new(),
                mail: viewer.mail.clone(),
                claims: viewer.claims.clone(),
                sid: None,
                auth_at: None,
            };
            match self.logins.recognize(&identity, admission, now) {
                Ok(known) => Ok(known.person == viewer.person),
                Err(LoginError::Refused(_)) => Ok(false),
                Err(LoginError::File(error)) => Err(error),
            }
        } else {
            self.logins.is_live(&viewer.session, admission, now)
        };
        is_live.unwrap_or_else(|error| {
            tracing::error!(%error, "the logins cannot be read");
            false
        })
    }

    /// Returns the page for a person who may not log in.
    pub(super) fn refused(&self, refused: LoginRefused, identity: &LoginIdentity) -> Response {
        let line = match refused {
            LoginRefused::NotAllowed | LoginRefused::BoundToAnother => {
                let why = match refused {
                    LoginRefused::BoundToAnother => {
                        "but the person of this mail address has logged in here with another account. Use that account, or ask whoever runs this gateway to release the person: `mcp-elicit inbox people` lists them, and `mcp-elicit inbox people unbind NAME` releases one."
                    }
                    _ => {
                        "but this gateway asks nobody of that name. Ask whoever runs it to add you."
                    }
                };
                let by_name = Some(&identity.name).filter(|name| !name.is_empty());
                let name = identity.mail.as_ref().or(by_name);
                let name = shown(name.unwrap_or(&identity.subject));
                let place = match &self.settings.mode {
                    LoginMode::Proxy(_) => "The proxy in front of this inbox knows you as",
                    #[cfg(feature = "teams")]
                    LoginMode::Oidc(_) => "You are logged in at the provider as",
                };
                format!("{place} {name}, {why}")
            }
            LoginRefused::Unusable => {
                "What is known of you cannot be used here: a part of it is missing or too long."
                    .to_owned()
            }
            LoginRefused::TooMany => "There are too many sessions. Try again later.".to_owned(),
        };
        let is_other_needed = matches!(
            refused,
            LoginRefused::NotAllowed | LoginRefused::BoundToAnother
        );
        let mut links = self.login_links();
        if is_other_needed {
            links.reverse();
        }
        let notice = SiteNotice {
            head: "You cannot log in".to_owned(),
            lines: vec![line],
            links,
            ..SiteNotice::default()
        };
        web::notice(&self.site, StatusCode::FORBIDDEN, notice)
    }

    /// Returns a page with the reason why there is no login, and links to another.
    #[cfg(feature = "teams")]
    pub(super) fn try_again(&self, status: StatusCode, head: &str, line: String) -> Response {
        let notice = SiteNotice {
            head: head.to_owned(),
            lines: vec![line],
            links: self.login_links(),
            ..SiteNotice::default()
        };
        web::notice(&self.site, status, notice)
    }

    /// Returns links to another login, the same account first.
    fn login_links(&self) -> Vec<(String, String)> {
        let base = self.site.outer_path();
        match &self.settings.mode {
            LoginMode::Proxy(_) => vec![(format!("{base}/"), "Try again".to_owned())],
            #[cfg(feature = "teams")]
            LoginMode::Oidc(_) => vec![
                (format!("{base}/"), "Log in".to_owned()),
                (
                    format!("{base}/login?another=1"),
                    "Use another account".to_owned(),
                ),
            ],
        }
    }

    /// Returns a page with a notice.
    pub(super) fn notice(&self, status: StatusCode, head: &str, line: &str) -> Response {
        let notice = SiteNotice {
            head: head.to_owned(),
            lines: vec![line.to_owned()],
            ..SiteNotice::default()
        };
        web::notice(&self.site, status, notice)
    }

    /// Returns the page for a failed store.
    pub(super) fn failed(&self, error: &io::Error) -> Response {
        tracing::error!(%error, "the logins cannot be read or written");
        let line = "Logins cannot be read or written down right now. Nothing was lost; try again in a moment.";
        self.notice(StatusCode::SERVICE_UNAVAILABLE, "Not right now", line)
    }

    /// Returns the person of the session cookie. A session of another issuer than that of the login is ignored, because
    /// its rights are unknown now.
    fn by_cookie(&self, headers: &HeaderMap) -> io::Result<Option<SignedIn>> {
        let Some(cookie) = self.cookie_of(headers) else {
            return Ok(None);
        };
        let rules = (self.rules)();
        let found = self
            .logins
            .find(cookie, self.admission(&rules), (self.clock)())?;
        Ok(found.filter(|known| known.issuer == self.settings.issuer()))
    }

    /// Returns the person named by the proxy in a request for this path, with a new session's cookie if there was none.
    async fn by_proxy(
        &self,
        proxy: &ProxyLogin,
        from: Option<IpAddr>,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Option<(SignedIn, Option<String>)>, Response> {
        let identity = proxy
            .identity(headers, from)
            .map_err(|unnamed| {
                let line = match unnamed {
                    Unnamed::NotTheProxy => "This inbox is reached through a proxy, which says who you are.",
                    Unnamed::Headers => "The proxy in front of this inbox does not say who you are, or says it in two ways.",
                };
                self.notice(StatusCode::FORBIDDEN, "Not logged in", line)
            })?;
        // The page after a logout does not log the person in again.
        if path == format!("{}{LOGGED_OUT}", self.site.path()) {
            return Ok(None);
        }
        let failed = |error: io::Error| self.failed(&error);
        let not_logged_in = |error| match error {
            LoginError::Refused(refused) => self.refused(refused, &identity),
            LoginError::File(error) => self.failed(&error),
        };
        let known = self.by_cookie(headers).map_err(failed)?;
        let is_same =
            |known: &SignedIn| known.issuer == identity.issuer && known.subject == identity.subject;
        if let Some(mut known) = known.filter(is_same) {
            let now = (self.clock)();
            self.logins
                .refresh(&known.person, &identity, now)
                .map_err(failed)?;
            known.claims.clone_from(&identity.claims);
            known.claims_at = now;
            return Ok(Some((known, None)));
        }
        if *method != Method::GET {
            return Ok(None);
        }
        if !is_navigation(headers) {
            // A program, or a part of a page: identified by the headers alone, each time.
            let rules = (self.rules)();
            let now = (self.clock)();
            let known = self
                .logins
                .recognize(&identity, self.admission(&rules), now)
                .map_err(not_logged_in)?;
            self.logins
                .refresh(&known.person, &identity, now)
                .map_err(failed)?;
            return Ok(Some((known, None)));
        }
        // The browser's session was another person's, or there is none.
        let logged_in = self.log_in(&identity, headers).await;
        let (cookie, signed_in) = logged_in.map_err(not_logged_in)?;
        Ok(Some((signed_in, Some(cookie))))
    }
}

#[cfg(feature = "teams")]
impl Gate {
    /// Returns the acting person, after asking the provider again if the data are too old; `None` if their session has
    /// ended. The response says so if they have left a group, because the page may no longer be for them.
    async fn checked_again(
        self: &Arc<Self>,
        viewer: SignedIn,
    ) -> Result<Option<SignedIn>, Box<Response>> {
        use super::provider::{Rechecked, recheck};
        let viewer = Arc::new(viewer);
        match recheck(self, &viewer).await {
            Ok(Rechecked::Same) => Ok(Some(Arc::unwrap_or_clone(viewer))),
            Ok(Rechecked::Ended) => Ok(None),
            Ok(Rechecked::LeftGroup) => {
                let line = "The provider says that you have left a group since you logged in. Nothing was done: open the question again to see \
                            whether it is still addressed to you.";
                let head = "Your groups have changed";
                Err(Box::new(self.notice(StatusCode::FORBIDDEN, head, line)))
            }
            Err(error) => Err(Box::new(self.failed(&error))),
        }
    }
}

/// Returns `true` if a request acts on a question.
#[cfg(feature = "teams")]
fn is_act(request: &Request) -> bool {
    *request.method() == Method::POST && request.uri().path().contains("/q/")
}

/// Returns `true` if a browser opens a page, and so stores its cookie.
fn is_navigation(headers: &HeaderMap) -> bool {
    let text = |value: &HeaderValue| value.to_str().map(str::to_ascii_lowercase).ok();
    let takes_pages =
        |value: &HeaderValue| text(value).is_some_and(|all| all.contains("text/html"));
    let meant_for = headers.get("sec-fetch-dest");
    headers.get_all(ACCEPT).iter().any(takes_pages)
        && meant_for.is_none_or(|meant_for| meant_for == "document")
}

/// Adds the viewer of a request to its extensions.
pub(crate) async fn identify(
    State(gate): State<Arc<Gate>>,
    mut request: Request,
    next: Next,
) -> Response {
    if !gate.site.is_for_us(request.headers()) || gate.site.is_below_assets(request.uri().path()) {
        return next.run(request).await;
    }
    let (viewer, cookie) = match &gate.settings.mode {
        LoginMode::Proxy(proxy) => {
            let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
            let from = from.map(|ConnectInfo(from)| from.ip());
            let (method, headers) = (request.method().clone(), request.headers().clone());
            let path = request.uri().path().to_owned();
            match gate.by_proxy(proxy, from, &method, &path, &headers).await {
                Ok(Some((viewer, cookie))) => (Some(viewer), cookie),
                Ok(None) => (None, None),
                Err(response) => return response,
            }
        }
        #[cfg(feature = "teams")]
        LoginMode::Oidc(_) => match gate.by_cookie(request.headers()) {
            Ok(Some(viewer)) if is_act(&request) => match gate.checked_again(viewer).await {
                Ok(viewer) => (viewer, None),
                Err(response) => return *response,
            },
            Ok(viewer) => (viewer, None),
            Err(error) => return gate.failed(&error),
        },
    };
    if let Some(mut viewer) = viewer {
        let is_asked_again =
            *request.method() != Method::GET || request.uri().path().ends_with("/events");
        let rules = (gate.rules)();
        let entry = rules.people().people.get(&viewer.person);
        if let Some(name) = entry.and_then(|entry| entry.name.clone()) {
            viewer.name = name;
        }
        let viewer = Arc::new(viewer);
        if is_asked_again {
            let (gate, viewer) = (gate.clone(), viewer.clone());
            let login = LoginCheck::new(move || gate.is_live(&viewer));
            request.extensions_mut().insert(login);
        }
        request.extensions_mut().insert(InboxViewer::Person(viewer));
    }
    let mut response = next.run(request).await;
    if let Some(cookie) = cookie.and_then(|cookie| gate.set_cookie(&cookie)) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

impl ProxyLogin {
    /// Returns the person of a request from this address.
    fn identity(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
    ) -> Result<LoginIdentity, Unnamed> {
        if !from.is_some_and(|from| (self.trusts)(from.to_canonical())) {
            return Err(Unnamed::NotTheProxy);
        }
        let subject = one(headers, &self.subject)?.ok_or(Unnamed::Headers)?;
        // A comma means two headers joined by another proxy.
        if subject.is_empty() || subject.contains(',') {
            return Err(Unnamed::Headers);
        }
        let optional = |name: &Option<HeaderName>| match name {
            Some(name) => one(headers, name),
            None => Ok(None),
        };
        let mail = optional(&self.mail)?.filter(|mail| !mail.is_empty());
        if mail.is_some_and(|mail| mail.contains(',')) {
            return Err(Unnamed::Headers);
        }
        let groups = optional(&self.groups)?.unwrap_or_default();
        let groups = groups
            .split(',')
            .map(str::trim)
            .filter(|group| !group.is_empty());
        Ok(LoginIdentity {
            issuer: self.issuer.clone(),
            subject: subject.to_owned(),
            name: mail.unwrap_or(subject).to_owned(),
            mail: mail.map(str::to_owned),
            claims: groups.map(str::to_owned).collect(),
            sid: None,
            auth_at: None,
        })
    }
}

/// Returns the value of a header that may occur once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Unnamed> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(Unnamed::Headers);
    }
    let Some(value) = first else {
        return Ok(None);
    };
    let value = value
        .to_str()
        .ok()
        .filter(|value| value.len() <= LONGEST_HEADER);
    value
        .map(|value| Some(value.trim()))
        .ok_or(Unnamed::Headers)
}

/// Returns the value of a cookie, the first if a browser sends several.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut all = cookies(headers);
    all.find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// Returns the names of all cookies of a request.
#[cfg(feature = "teams")]
pub(super) fn cookie_names(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    cookies(headers).map(|(name, _)| name)
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let all = headers.get_all(COOKIE).iter();
    all.filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
}

/// Returns the beginning of a subject for the audit, because a rejected client may have chosen it.
fn shown(subject: &str) -> String {
    mcp_elicit_forms::view::sanitize::line(subject, 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy() -> ProxyLogin {
        ProxyLogin {
            trusts: Arc::new(|from| from == IpAddr::from([10, 0, 0, 5])),
            issuer: "proxy".to_owned(),
            subject: HeaderName::from_static("x-user"),
            mail: Some(HeaderName::from_static("x-mail")),
            groups: Some(HeaderName::from_static("x-groups")),
        }
    }

    fn named(all: &[(&'static str, &str)], from: [u8; 4]) -> Result<LoginIdentity, Unnamed> {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        proxy().identity(&headers, Some(IpAddr::from(from)))
    }

    const TRUSTED: [u8; 4] = [10, 0, 0, 5];

    #[test]
    fn browsers_open_pages_and_programs_do_not() {
        let is = |all: &[(&'static str, &'static str)]| {
            let headers = all.iter().map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            });
            is_navigation(&headers.collect())
        };
        let page = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        assert!(is(&[page]) && is(&[page, ("sec-fetch-dest", "document")]));
        for no in [
            &[][..],
            &[("accept", "*/*")],
            &[("accept", "text/event-stream")],
            &[page, ("sec-fetch-dest", "empty")],
            &[page, ("sec-fetch-dest", "image")],
        ] {
            assert!(!is(no), "{no:?}");
        }
    }

    #[test]
    fn headers_count_from_the_proxy_only_and_say_one_thing() {
        let ada = named(&[("x-user", "ada"), ("x-groups", "a, b,,c")], TRUSTED).unwrap();
        assert_eq!((ada.subject.as_str(), ada.claims.len()), ("ada", 3));
        assert_eq!(
            named(&[("x-user", "ada")], [10, 0, 0, 6]),
            Err(Unnamed::NotTheProxy)
        );
        for wrong in [
            &[][..],
            &[("x-user", "")],
            &[("x-user", "ada, bob")],
            &[("x-user", "ada"), ("x-user", "bob")],
            &[("x-user", "ada"), ("x-mail", "a@b.c"), ("x-mail", "d@e.f")],
            &[("x-user", "ada"), ("x-mail", "a@b.c,d@e.f")],
            &[("x-user", "ada"), ("x-groups", "a"), ("x-groups", "admin")],
        ] {
            assert_eq!(named(wrong, TRUSTED), Err(Unnamed::Headers), "{wrong:?}");
        }
        let mapped = IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0x0a00, 0x0005]);
        let mut headers = HeaderMap::new();
        headers.insert("x-user", HeaderValue::from_static("ada"));
        assert!(proxy().identity(&headers, Some(mapped)).is_ok());
        assert_eq!(proxy().identity(&headers, None), Err(Unnamed::NotTheProxy));
    }
}
