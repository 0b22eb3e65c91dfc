//! Login, logout and the page of sessions.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, RawQuery, Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::web::{self, Account, DeviceLine, PushAccount, SessionLine, SiteNotice};
use mcp_elicit_policy::access::{self, AccessAction};
use mcp_elicit_record::audit::{Details, Event};
use mcp_elicit_record::outbox::LastMessages;
use serde::Deserialize;

use super::LoginMode;
use super::request_session::Gate;
use super::table::LoginSession;
use super::table::devices::{self, Device, DeviceError, DeviceKeys, DeviceRefused};
use crate::viewer::{InboxViewer, SignedIn};

/// The longest subscription of a browser, in bytes.
const LONGEST_SUBSCRIPTION: usize = 8 * 1024;

/// The path of the page after a logout.
pub(super) const LOGGED_OUT: &str = "/logged-out";

/// The path of the first page after a login, below that of the pages.
const ARRIVED: &str = "/arrived";

/// Returns the address to which a login leads on, inside.
#[cfg(feature = "teams")]
pub(super) fn after_login(gate: &Gate, next: &str) -> String {
    let (outer, base) = (gate.site.outer_path(), gate.site.path());
    if outer == base {
        format!("{base}{next}")
    } else {
        format!("{base}{ARRIVED}?next={next}")
    }
}

/// Completes a login where the browser sends the cookie of its registered device, which it does not outside.
async fn arrived(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let next = next_of(query.as_deref());
    let signed_in = viewer.and_then(|Extension(viewer)| viewer.person().cloned());
    let Some(signed_in) = signed_in else {
        return go(&format!("{}/login?next={next}", gate.site.outer_path()));
    };
    if let Some(device) = gate.device_of(&headers) {
        match gate.logins.device_signed_in(device, &signed_in) {
            Ok(devices) => {
                note_devices(&gate, Event::DeviceRemoved, &signed_in, &devices).await;
            }
            Err(error) => return gate.failed(&error),
        }
    }
    go(&format!("{}{next}", gate.site.path()))
}

/// The longest body of a request to these pages, in bytes.
const LONGEST_BODY: usize = 64 * 1024;

/// The message for a body that is too long.
const TOO_LONG: &str = "The request is larger than any form of these pages. Nothing was done: open the page again, and use its buttons.";

/// The message for an incomplete body.
const CUT: &str =
    "The request did not arrive in full. Nothing was done: open the page again, and try again.";

/// The subject of the tokens in forms of these pages.
pub(super) const FORMS: &str = "account";

/// Returns the pages of a login, to be merged with those of the questions.
pub(crate) fn router(gate: Arc<Gate>) -> Router {
    let site = gate.site.clone();
    let (outer, base) = (site.outer_path().to_owned(), site.path().to_owned());
    let at = |path: &str| format!("{base}{path}");
    let outside = |path: &str| format!("{outer}{path}");
    let mut pages = pages_at(at).route(&outside(LOGGED_OUT), get(logged_out));
    if outer != base {
        // Browsers send the session inside only: from here, the login leads on.
        pages = pages
            .merge(pages_at(outside))
            .route(&at(ARRIVED), get(arrived));
    }
    #[cfg(feature = "teams")]
    let pages = pages
        .route(&outside("/login/return"), get(super::provider::returned))
        .route(
            &outside("/login/logout-token"),
            post(super::provider::logout_token),
        );
    let pages = pages
        .method_not_allowed_fallback(not_taken)
        .layer(DefaultBodyLimit::max(LONGEST_BODY));
    web::with_headers(pages.with_state(gate), &site)
}

/// Returns the pages of a login that exist inside and outside, at the paths that `at` derives from theirs.
fn pages_at(at: impl Fn(&str) -> String) -> Router<Arc<Gate>> {
    Router::new()
        .route(&at("/login"), get(login))
        .route(&at("/logout"), post(log_out))
        .route(&at("/account"), get(account))
        .route(&at("/audit"), get(super::audit_page::audit))
        .route(&at("/audit/export"), get(super::audit_page::export))
        .route(&at("/grants"), get(super::grants_page::grants))
        .route(&at("/grants/end"), post(super::grants_page::end))
        .route(&at("/account/end"), post(end))
        .route(&at("/account/devices"), post(add_device))
        .route(&at("/account/devices/end"), post(end_device))
}

/// Responds that the address does not accept the request.
async fn not_taken(State(gate): State<Arc<Gate>>) -> Response {
    web::not_taken(&gate.site)
}

/// The body of a form of these pages.
pub(super) struct FormBody(pub(super) Bytes);

impl FromRequest<Arc<Gate>> for FormBody {
    type Rejection = Response;

    async fn from_request(request: Request, gate: &Arc<Gate>) -> Result<Self, Response> {
        match Bytes::from_request(request, gate).await {
            Ok(body) => Ok(Self(body)),
            Err(rejected) => {
                let line = match rejected.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => TOO_LONG,
                    _ => CUT,
                };
                Err(gate.notice(rejected.status(), "Not done", line))
            }
        }
    }
}

/// Redirects to another page, with GET.
pub(super) fn go(to: &str) -> Response {
    match HeaderValue::from_str(to) {
        Ok(to) => (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Returns the page to which a login leads: one of our own, never an address elsewhere.
pub(super) fn next_of(query: Option<&str>) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_');
    let next = value_of(query.unwrap_or_default(), "next");
    let next = next.filter(|next| {
        next == "/"
            || ["/account", "/audit", "/grants"].contains(&&**next)
            || next.starts_with("/q/")
    });
    next.filter(|next| next.len() <= 256 && !next.contains("//") && next.bytes().all(plain))
        .unwrap_or_else(|| "/".to_owned())
}

/// Returns the value of `name` in a query or a form.
pub(super) fn value_of(text: &str, name: &str) -> Option<String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.into_iter().find(|(key, _)| *key == name)?;
    let bytes = value.replace('+', " ");
    // All values are plain text without escapes except `/`.
    Some(bytes.replace("%2F", "/").replace("%2f", "/"))
}

async fn login(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let next = next_of(query.as_deref());
    // A login that must be fresh is repeated.
    let has = |name| value_of(query.as_deref().unwrap_or_default(), name).is_some();
    let is_fresh = has("fresh");
    if viewer.is_some() && !is_fresh {
        return go(&format!("{}{next}", gate.site.path()));
    }
    #[cfg(feature = "teams")]
    if gate.provider.is_some() {
        use super::provider::LoginAgain;
        let again = match (is_fresh, has("another")) {
            (true, _) => LoginAgain::Fresh,
            (false, true) => LoginAgain::Another,
            (false, false) => LoginAgain::No,
        };
        return super::provider::start(&gate, &headers, next, again).await;
    }
    #[cfg(not(feature = "teams"))]
    let _: HeaderMap = headers;
    gate.notice(StatusCode::UNAUTHORIZED, "Log in", gate.settings.mode.how())
}

/// The reason why a request was not sent by the session's person from one of these pages.
#[derive(Clone, Copy)]
enum PostError {
    OtherSite,
    NotSignedIn,
    OtherSession,
}

impl PostError {
    fn status(self) -> StatusCode {
        match self {
            Self::OtherSite | Self::OtherSession => StatusCode::FORBIDDEN,
            Self::NotSignedIn => StatusCode::UNAUTHORIZED,
        }
    }

    fn line(self) -> &'static str {
        match self {
            Self::OtherSite => {
                "The request was started by a page of another site. Nothing was done."
            }
            Self::NotSignedIn => "You are not logged in any more.",
            Self::OtherSession => {
                "The form was made for another session. Nothing was done; open the page again."
            }
        }
    }
}

/// Returns the person who sent a request from one of our pages, after its body has arrived, because the session may
/// have ended meanwhile. [`check_token`] comes next.
fn poster(
    gate: &Gate,
    viewer: Option<Extension<InboxViewer>>,
    headers: &HeaderMap,
) -> Result<Arc<SignedIn>, PostError> {
    if !gate.site.is_from_us(headers) {
        return Err(PostError::OtherSite);
    }
    let signed_in = viewer.and_then(|Extension(viewer)| viewer.person().cloned());
    let signed_in = signed_in.filter(|signed_in| gate.is_live(signed_in));
    signed_in.ok_or(PostError::NotSignedIn)
}

/// Checks that a request has the token of its session.
fn check_token(gate: &Gate, signed_in: &SignedIn, token: &str) -> Result<(), PostError> {
    let is_own = gate.site.is_form_token(&signed_in.session, FORMS, token);
    is_own.then_some(()).ok_or(PostError::OtherSession)
}

/// Returns the person who sent a form of these pages, and the form; else the error page.
pub(super) fn posted_form(
    gate: &Gate,
    viewer: Option<Extension<InboxViewer>>,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<(Arc<SignedIn>, String), Box<Response>> {
    let text = String::from_utf8_lossy(body).into_owned();
    let token = value_of(&text, "csrf").unwrap_or_default();
    let signed_in = poster(gate, viewer, headers)
        .and_then(|signed_in| check_token(gate, &signed_in, &token).map(|()| signed_in));
    match signed_in {
        Ok(signed_in) => Ok((signed_in, text)),
        Err(PostError::NotSignedIn) => {
            Err(Box::new(go(&format!("{}/login", gate.site.outer_path()))))
        }
        Err(error) => Err(Box::new(gate.notice(
            error.status(),
            "Refused",
            error.line(),
        ))),
    }
}

async fn log_out(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    headers: HeaderMap,
    FormBody(body): FormBody,
) -> Response {
    let signed_in = match posted_form(&gate, viewer, &headers, &body) {
        Ok((signed_in, _)) => signed_in,
        Err(response) => return *response,
    };
    let ended = gate.logins.end(|session| session.id() == signed_in.session);
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => return gate.failed(&error),
    };
    note_devices(&gate, Event::DeviceRemoved, &signed_in, &ended.devices).await;
    // Even if another person was signed in here when the browser was registered.
    let ended = match gate.device_of(&headers) {
        Some(device) => gate.logins.end_device_of_browser(device),
        None => Ok(Vec::new()),
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => return gate.failed(&error),
    };
    note_devices(&gate, Event::DeviceRemoved, &signed_in, &ended).await;
    let actor = signed_in.actor().to_string();
    let details = Details {
        session: Some(&signed_in.session),
        ..Details::by(&actor)
    };
    gate.note(Event::SessionEnded, details).await;
    let own = format!("{}{LOGGED_OUT}", gate.site.outer_path());
    #[cfg(feature = "teams")]
    let elsewhere = super::provider::end_session(&gate, &signed_in.session).await;
    #[cfg(not(feature = "teams"))]
    let elsewhere: Option<String> = None;
    let mut response = match elsewhere {
        // Via a page, because browsers restrict the target of a form to this site.
        Some(address) => web::notice(
            &gate.site,
            StatusCode::OK,
            SiteNotice {
                head: "Logged out here".to_owned(),
                lines: vec!["One moment: the provider is told, too.".to_owned()],
                links: vec![(address.clone(), "Log out at the provider".to_owned())],
                forward: Some(address),
                is_good: true,
            },
        ),
        None => go(&own),
    };
    let cookies = [gate.clear_cookie(), gate.set_device_cookie("")];
    for cookie in cookies.into_iter().flatten() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

async fn logged_out(State(gate): State<Arc<Gate>>) -> Response {
    let line = "This browser is not logged in any more. Questions wait as before.";
    let by_proxy = "The proxy in front of this inbox still knows who you are: the next page that you open logs you in again.";
    let more = matches!(gate.settings.mode, LoginMode::Proxy(_)).then_some(by_proxy);
    let lines = std::iter::once(line).chain(more);
    let notice = SiteNotice {
        head: "Logged out".to_owned(),
        lines: lines.map(str::to_owned).collect(),
        links: vec![(
            format!("{}/login", gate.site.outer_path()),
            "Log in".to_owned(),
        )],
        forward: None,
        is_good: true,
    };
    web::notice(&gate.site, StatusCode::OK, notice)
}

async fn account(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
) -> Response {
    let Some(Extension(viewer)) = viewer else {
        return go(&format!("{}/login?next=/account", gate.site.outer_path()));
    };
    let Some(signed_in) = viewer.person() else {
        return StatusCode::FORBIDDEN.into_response();
    };
    let table = match gate.logins.table() {
        Ok(table) => table,
        Err(error) => return gate.failed(&error),
    };
    let live = table.live(gate.settings.lifetimes, (gate.clock)());
    let (own, others): (Vec<_>, Vec<_>) = live
        .into_iter()
        .partition(|session| session.person() == signed_in.person);
    let row_of = |session: &LoginSession, of: Option<String>| SessionLine {
        id: session.id().to_owned(),
        of,
        browser: session.browser().to_owned(),
        signed_in: session.created(),
        last_used: session.used(),
        is_this: session.id() == signed_in.session,
    };
    let people = gate.people();
    let role = people.role(&viewer);
    let own_devices: Vec<&Device> = table.devices_of(&signed_in.person).collect();
    let mut devices = Vec::new();
    for device in own_devices {
        let reached = reached(&gate, device).await;
        devices.push(DeviceLine {
            id: device.id().to_owned(),
            browser: device.browser().to_owned(),
            added: device.made(),
            reached: reached.at.map(seconds),
            failed: reached.failed.map(|(at, why)| (seconds(at), why)),
            is_this: device.session() == signed_in.session,
        });
    }
    let may = |action| access::may(role, action).is_ok();
    let account = Account {
        name: signed_in.name.clone(),
        known_as: Some(format!("Known here as {}", signed_in.person)),
        token: gate.site.form_token(&signed_in.session, FORMS),
        own: own
            .into_iter()
            .map(|session| row_of(session, None))
            .collect(),
        others: may(AccessAction::ListSessions).then(|| {
            let others = others.into_iter();
            let of = |session: &LoginSession| Some(people.display_name(session.person()));
            others.map(|session| row_of(session, of(session))).collect()
        }),
        may_end_others: may(AccessAction::EndSessions),
        may_audit: may(AccessAction::Audit),
        push: gate.push.as_ref().map(|push| PushAccount {
            key: push.public_key.clone(),
            devices,
        }),
    };
    web::account(&gate.site, account)
}

/// Returns the times at which a device was reached; empty if the record cannot be read, so that the page still works.
async fn reached(gate: &Gate, device: &Device) -> LastMessages {
    let recipient = devices::recipient(device.id());
    let reached = gate.record.reached(device.person(), &recipient).await;
    reached.unwrap_or_else(|fault| {
        tracing::error!(%fault, "when a device was reached cannot be read");
        LastMessages::default()
    })
}

fn seconds(at: Timestamp) -> u64 {
    at.as_millis() / 1_000
}

/// A browser's subscription, as the page sends it.
#[derive(Deserialize)]
struct Subscribed {
    csrf: String,
    endpoint: String,
    keys: SubscribedKeys,
}

#[derive(Deserialize)]
struct SubscribedKeys {
    p256dh: String,
    auth: String,
}

/// Registers the browser as a device of its person. Its script reads the response.
async fn add_device(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let told = |status: StatusCode, why: &str| {
        let body = serde_json::json!({"error": why}).to_string();
        (status, [(CONTENT_TYPE, "application/json")], body).into_response()
    };
    let Some(push) = &gate.push else {
        return told(StatusCode::NOT_FOUND, "This inbox notifies no devices.");
    };
    let signed_in = match poster(&gate, viewer, &headers) {
        Ok(signed_in) => signed_in,
        Err(error) => return told(error.status(), error.line()),
    };
    let too_long = || {
        let why = "The browser's subscription is too long.";
        told(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    let body = match body {
        Ok(body) if body.len() > LONGEST_SUBSCRIPTION => return too_long(),
        Ok(body) => body,
        Err(rejected) if rejected.status() == StatusCode::PAYLOAD_TOO_LARGE => return too_long(),
        Err(rejected) => return told(rejected.status(), CUT),
    };
    let Ok(subscribed) = serde_json::from_slice::<Subscribed>(&body) else {
        return told(
            StatusCode::BAD_REQUEST,
            "The browser's subscription cannot be read.",
        );
    };
    if let Err(error) = check_token(&gate, &signed_in, &subscribed.csrf) {
        return told(error.status(), error.line());
    }
    let keys = DeviceKeys {
        endpoint: subscribed.endpoint,
        p256dh: subscribed.keys.p256dh,
        auth: subscribed.keys.auth,
    };
    if let Err(why) = (push.check)(&keys) {
        return told(StatusCode::UNPROCESSABLE_ENTITY, &why);
    }
    let browser = headers.get(USER_AGENT);
    let browser = browser
        .and_then(|browser| browser.to_str().ok())
        .unwrap_or("unknown");
    let before = gate.device_of(&headers);
    let added = gate
        .logins
        .add_device(&signed_in, browser, before, &keys, (gate.clock)());
    match added {
        Ok(added) => {
            tracing::info!(session = %signed_in.session, "a device of a person is notified from now on");
            note_devices(&gate, Event::DeviceRemoved, &signed_in, &added.replaced).await;
            let actor = signed_in.actor().to_string();
            let details = Details {
                session: Some(&signed_in.session),
                device: Some(&added.id),
                ..Details::by(&actor)
            };
            gate.note(Event::DeviceAdded, details).await;
            let mut response = StatusCode::NO_CONTENT.into_response();
            if let Some(cookie) = gate.set_device_cookie(&added.cookie) {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(DeviceError::Refused(DeviceRefused::SessionEnded)) => {
            let error = PostError::NotSignedIn;
            told(error.status(), error.line())
        }
        Err(DeviceError::Refused(DeviceRefused::TooMany)) => told(
            StatusCode::SERVICE_UNAVAILABLE,
            "There are too many devices. Try again later.",
        ),
        Err(DeviceError::File(error)) => {
            tracing::error!(%error, "the devices cannot be read or written");
            told(
                StatusCode::SERVICE_UNAVAILABLE,
                "Devices cannot be read or written right now.",
            )
        }
    }
}

/// Audits the effect of this person's action on these devices.
pub(super) async fn note_devices(
    gate: &Gate,
    event: Event,
    signed_in: &SignedIn,
    devices: &[Device],
) {
    let actor = signed_in.actor().to_string();
    for device in devices {
        let details = Details {
            session: Some(&signed_in.session),
            device: Some(device.id()),
            person: Some(device.person()).filter(|of| *of != signed_in.person),
            ..Details::by(&actor)
        };
        gate.note(event, details).await;
    }
}

/// Removes one of the reader's own devices.
async fn end_device(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    headers: HeaderMap,
    FormBody(body): FormBody,
) -> Response {
    let (signed_in, text) = match posted_form(&gate, viewer, &headers, &body) {
        Ok(posted) => posted,
        Err(response) => return *response,
    };
    let id = value_of(&text, "device").unwrap_or_default();
    let ended = gate
        .logins
        .end_devices(|device| device.id() == id && device.person() == signed_in.person);
    match ended {
        Ok(ended) if ended.is_empty() => {
            let line = "There is no such device of yours. It may have ended already.";
            gate.notice(StatusCode::NOT_FOUND, "Nothing was ended", line)
        }
        Ok(ended) => {
            note_devices(&gate, Event::DeviceRemoved, &signed_in, &ended).await;
            go(&format!("{}/account", gate.site.path()))
        }
        Err(error) => gate.failed(&error),
    }
}

async fn end(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    headers: HeaderMap,
    FormBody(body): FormBody,
) -> Response {
    let role = viewer
        .as_ref()
        .map(|Extension(viewer)| gate.people().role(viewer));
    let (signed_in, text) = match posted_form(&gate, viewer, &headers, &body) {
        Ok(posted) => posted,
        Err(response) => return *response,
    };
    let may_end_others =
        role.is_some_and(|role| access::may(role, AccessAction::EndSessions).is_ok());
    let id = value_of(&text, "session").unwrap_or_default();
    let may_end = |session: &LoginSession| {
        session.id() == id && (may_end_others || session.person() == signed_in.person)
    };
    let ended = match gate.logins.end(may_end) {
        Ok(ended) => ended,
        Err(error) => return gate.failed(&error),
    };
    if ended.sessions.is_empty() {
        let line = "There is no such session that you may end. It may have ended already.";
        return gate.notice(StatusCode::NOT_FOUND, "Nothing was ended", line);
    }
    note_devices(&gate, Event::DeviceRemoved, &signed_in, &ended.devices).await;
    let actor = signed_in.actor().to_string();
    for session in &ended.sessions {
        let details = Details {
            session: Some(session.id()),
            person: Some(session.person()).filter(|of| *of != signed_in.person),
            ..Details::by(&actor)
        };
        gate.note(Event::SessionEnded, details).await;
    }
    if id == signed_in.session {
        let mut response = go(&format!("{}{LOGGED_OUT}", gate.site.outer_path()));
        if let Some(cookie) = gate.clear_cookie() {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        return response;
    }
    go(&format!("{}/account", gate.site.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_pages_of_ours() {
        assert_eq!(next_of(Some("next=/q/abc_-9")), "/q/abc_-9");
        assert_eq!(
            next_of(Some("x=1&next=%2Fq%2Fabc%2Freview")),
            "/q/abc/review"
        );
        for elsewhere in [
            "",
            "next=",
            "next=//evil.example",
            "next=https://evil.example",
            "next=/q//evil",
            "next=/q/..",
            "next=/logout",
            "next=%2F%2Fevil.example",
            "next=/q/%0d%0aSet-Cookie",
        ] {
            assert_eq!(next_of(Some(elsewhere)), "/", "{elsewhere}");
        }
    }
}
