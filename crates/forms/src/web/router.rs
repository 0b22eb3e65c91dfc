use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};

use super::form_decode::Posted;
use super::question_store::{QuestionStore, QuestionStoreError};
use super::site::Site;
use super::streams::{EventStreams, LoginCheck};
use super::viewer::Viewer as _;
use super::{get_handlers, login, notices, post_handlers, sse};

/// The time limit for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The state that all handlers share: the questions, and the site.
pub(super) struct PagesState<D> {
    pub(super) store: Arc<D>,
    pub(super) site: Arc<Site>,
    pub(super) streams: EventStreams,
}

impl<D> Clone for PagesState<D> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            site: Arc::clone(&self.site),
            streams: self.streams.clone(),
        }
    }
}

/// Returns the pages of `store`, served as `site`: merge it into any axum application, or pass it to
/// [`serve`](super::serve).
///
/// All of it answers to its own host names only, and accepts nothing from pages of another origin. Without a session,
/// `/login`, `/assets/{name}`, `/` and `/q/{id}` are open; the last two say how to sign in, and send browsers with a
/// session to their pages. Below the site's secret path are `/`, `/q/{id}` and below, `/events`, `/state`.
pub fn router<D: QuestionStore>(store: Arc<D>, site: Site) -> Router {
    let (prefix, base) = (site.prefix.clone(), site.base.clone());
    let app = PagesState {
        store,
        site: Arc::new(site),
        streams: EventStreams::default(),
    };
    if app.site.logins {
        return behind_logins(app);
    }
    let open = |path: &str| format!("{prefix}{path}");
    let inside = |path: &str| format!("{base}{path}");
    let mut pages = Router::new()
        .route(&open("/"), any(outside::<D>))
        .route(
            &open("/login"),
            get(login::enter::<D>).post(login::open_on_desktop::<D>),
        )
        .route(&open("/assets/{name}"), get(asset::<D>))
        .route(&base, get(queue_is_below))
        .route(&inside("/{*rest}"), any(nowhere::<D>))
        .merge(pages_of_people(inside));
    pages = if prefix.is_empty() {
        pages.fallback(outside::<D>)
    } else {
        // Paths beside the pages belong to the rest of the application.
        pages
            .route(&prefix, get(queue_is_below))
            .route(&open("/{*rest}"), any(outside::<D>))
    };
    pages
        .method_not_allowed_fallback(not_taken::<D>)
        .layer(from_fn_with_state(app.clone(), guard::<D>))
        .with_state(app)
}

/// Returns the pages of a site where people log in: at plain paths, or below the secret one, with everything that a login
/// needs beside them.
fn behind_logins<D: QuestionStore>(app: PagesState<D>) -> Router {
    let (prefix, base) = (app.site.prefix.clone(), app.site.base.clone());
    let inside = |path: &str| format!("{base}{path}");
    let mut pages = pages_of_people(inside);
    if prefix != base {
        // Browsers send the session inside only; the guard leads them from here to the login. A program that sends it to
        // every path needs no other address.
        pages = pages.merge(pages_of_people(|path: &str| format!("{prefix}{path}")));
    }
    if !base.is_empty() {
        pages = pages
            .route(&base, get(queue_is_below))
            .route(&inside("/{*rest}"), any(nowhere::<D>));
    }
    let pages = if prefix.is_empty() {
        pages.fallback(nowhere::<D>)
    } else if prefix == base {
        pages
    } else {
        pages
            .route(&prefix, get(queue_is_below))
            .route(&format!("{prefix}/{{*rest}}"), any(nowhere::<D>))
    };
    pages
        .method_not_allowed_fallback(not_taken::<D>)
        .layer(from_fn_with_state(app.clone(), guard::<D>))
        .with_state(app)
}

/// Returns the pages of signed-in people, at the paths that `inside` derives from theirs.
fn pages_of_people<D: QuestionStore>(inside: impl Fn(&str) -> String) -> Router<PagesState<D>> {
    Router::new()
        .route(&inside("/"), get(get_handlers::queue::<D>))
        .route(&inside("/q/{id}"), get(get_handlers::question::<D>))
        .route(
            &inside("/q/{id}/{part}"),
            get(part::<D>).post(post_handlers::act::<D>),
        )
        .route(&inside("/events"), get(sse::events::<D>))
        .route(&inside("/state"), get(sse::state::<D>))
        .route(&inside("/assets/{name}"), get(asset::<D>))
}

/// Redirects `/inbox` to `/inbox/`.
async fn queue_is_below(uri: Uri) -> Response {
    go(&format!("{}/", uri.path()))
}

/// Accepts only requests that are meant for this site and come from its person, and sets the security headers of every
/// response.
async fn guard<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    mut request: Request,
    next: Next,
) -> Response {
    let site = &app.site;
    let headers = request.headers();
    let reading = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_inside = request
        .uri()
        .path()
        .strip_prefix(site.base.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let mut response = if !site.is_for_us(headers) {
        page(StatusCode::MISDIRECTED_REQUEST, &notices::other_name(site))
    } else if !reading && !site.is_from_us(headers) {
        let line = "The request was started by a page of another site. Nothing was done.";
        page(
            StatusCode::FORBIDDEN,
            &notices::refused(site, "Refused", line),
        )
    } else if site.logins {
        let path = request.uri().path();
        if site.is_asset(path) || request.extensions().get::<D::Viewer>().is_some() {
            next.run(request).await
        } else if site.is_below_assets(path) {
            no_asset(site)
        } else {
            to_login(site, &request)
        }
    } else if is_inside {
        match site.by(headers) {
            Some(by) => {
                if !reading || request.uri().path().ends_with("/events") {
                    let (site, headers) = (Arc::clone(site), headers.clone());
                    let login = LoginCheck::new(move || site.has_session(&headers));
                    request.extensions_mut().insert(login);
                }
                request.extensions_mut().insert(D::Viewer::from_link(by));
                next.run(request).await
            }
            None => page(StatusCode::UNAUTHORIZED, &notices::no_session(site, None)),
        }
    } else {
        next.run(request).await
    };
    rules(&mut response);
    response
}

/// Redirects a browser that opens a page to the login, and rejects everything else.
fn to_login(site: &Site, request: &Request) -> Response {
    let path = request.uri().path();
    let inside = path.strip_prefix(site.base.as_str());
    let path = inside.or_else(|| path.strip_prefix(site.prefix.as_str()));
    let path = path.unwrap_or(request.uri().path());
    let is_page = *request.method() == Method::GET && (path == "/" || path.starts_with("/q/"));
    if is_page && login::is_plain(path) {
        return go(&format!("{}/login?next={path}", site.prefix));
    }
    page(StatusCode::UNAUTHORIZED, &notices::no_session(site, None))
}

/// Adds the security headers of the pages to every response of `app`, and accepts only requests that are meant for
/// `site`: for pages beside those of [`router`].
pub fn with_headers(app: Router, site: &Site) -> Router {
    let site = Arc::new(site.clone());
    app.layer(axum::middleware::from_fn(
        move |request: Request, next: Next| {
            let site = Arc::clone(&site);
            async move {
                let mut response = if site.is_for_us(request.headers()) {
                    next.run(request).await
                } else {
                    page(StatusCode::MISDIRECTED_REQUEST, &notices::other_name(&site))
                };
                rules(&mut response);
                response
            }
        },
    ))
}

/// Shows how to sign in; a script sends a signed-in browser to the page that was meant.
async fn outside<D: QuestionStore>(State(app): State<PagesState<D>>, uri: Uri) -> Response {
    let path = uri.path();
    let meant = path
        .strip_prefix(app.site.prefix.as_str())
        .filter(|path| login::is_plain(path))
        .unwrap_or("/");
    page(
        StatusCode::UNAUTHORIZED,
        &notices::no_session(&app.site, Some(meant)),
    )
}

/// Sets the headers that every response carries.
fn rules(response: &mut Response) {
    let headers = response.headers_mut();
    let rules = [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
             manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        // With `no-referrer`, browsers send `Origin: null` on our own forms.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            header::HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=()",
        ),
    ];
    for (name, value) in rules {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

/// Returns a page as a response.
pub(super) fn page(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => (
            status,
            [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
            text,
        )
            .into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "this page could not be shown",
            )
                .into_response()
        }
    }
}

/// Redirects to another page of this site, with GET.
pub(super) fn go(to: &str) -> Response {
    match HeaderValue::from_str(to) {
        Ok(to) => (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Returns a JSON response for the page's script.
pub(super) fn json(status: StatusCode, value: &serde_json::Value) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        value.to_string(),
    )
        .into_response()
}

/// Reports a store error: to the person without its details, and to the log with them.
pub(super) fn store_failed(site: &Site, error: &QuestionStoreError) -> Response {
    match error {
        QuestionStoreError::Unreachable(source) => {
            tracing::error!(error = %source, "the questions cannot be reached");
            let line = "The questions cannot be reached right now. Nothing was sent; try again in a moment.";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            page(status, &notices::refused(site, "Not right now", line))
        }
        QuestionStoreError::Sealed(source) => {
            tracing::error!(error = %source, "a question cannot be decrypted");
            let line = "This question cannot be read, because the key that encrypted it is missing. Nothing was sent. \
                Tell the operator of the gateway, whose log names the key.";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            page(status, &notices::refused(site, "Cannot be read", line))
        }
    }
}

/// Reads the controls of one of our forms, within the limits of size and time.
pub(super) async fn posted(
    site: &Site,
    content_type: Option<&HeaderValue>,
    body: Body,
) -> Result<Posted, Response> {
    let kind = content_type
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let line = "Unsupported form submission.";
        return Err(page(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &notices::refused(site, "Refused", line),
        ));
    }
    match tokio::time::timeout(BODY_TIME, to_bytes(body, site.body_limit)).await {
        Ok(Ok(bytes)) => Ok(Posted::read(&bytes)),
        Ok(Err(_)) => {
            let line =
                "That is more than can be taken in at once. Go back, shorten it and try again.";
            Err(page(
                StatusCode::PAYLOAD_TOO_LARGE,
                &notices::refused(site, "Too long", line),
            ))
        }
        Err(_) => {
            let line = "The form took too long to arrive. Go back and try again.";
            Err(page(
                StatusCode::REQUEST_TIMEOUT,
                &notices::refused(site, "Too slow", line),
            ))
        }
    }
}

/// Returns the page for a missing file.
fn no_asset(site: &Site) -> Response {
    page(StatusCode::NOT_FOUND, &notices::no_asset(site))
}

/// Returns the page for a method that the address does not accept.
pub(super) fn other_method(site: &Site) -> Response {
    page(StatusCode::METHOD_NOT_ALLOWED, &notices::other_method(site))
}

/// Responds that the address does not accept the request.
async fn not_taken<D: QuestionStore>(State(app): State<PagesState<D>>) -> Response {
    other_method(&app.site)
}

/// Serves styles, scripts, icons and the manifest, none of which is secret.
async fn asset<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    Path(name): Path<String>,
) -> Response {
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    let (kind, bytes): (_, &'static [u8]) = match name.as_str() {
        "style.css" => ("text/css; charset=utf-8", crate::theme::STYLE.as_bytes()),
        "page.js" => (SCRIPT, include_bytes!("../../assets/page.js")),
        "sw.js" => (SCRIPT, include_bytes!("../../assets/sw.js")),
        "manifest.webmanifest" => (
            "application/manifest+json",
            include_bytes!("../../assets/manifest.webmanifest"),
        ),
        "icon.svg" => ("image/svg+xml", include_bytes!("../../assets/icon.svg")),
        "icon-192.png" => ("image/png", include_bytes!("../../assets/icon-192.png")),
        "icon-512.png" => ("image/png", include_bytes!("../../assets/icon-512.png")),
        _ => return no_asset(&app.site),
    };
    let mut response = (
        [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, "no-cache"),
        ],
        bytes,
    )
        .into_response();
    if name == "sw.js" {
        // The service worker controls the pages, which are above its own path.
        response.headers_mut().insert(
            header::HeaderName::from_static("service-worker-allowed"),
            HeaderValue::from_static("../"),
        );
    }
    response
}

/// Serves the parts of a question that have their own addresses.
async fn part<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    Extension(viewer): Extension<D::Viewer>,
    Path((id, part)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    match part.as_str() {
        "review" => get_handlers::review(&app, &viewer, id, query.as_deref()).await,
        "state" => sse::question_state(&app, &viewer, id).await,
        _ => nowhere(State(app), Some(Extension(viewer))).await,
    }
}

async fn nowhere<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    viewer: Option<Extension<D::Viewer>>,
) -> Response {
    let Some(Extension(viewer)) = viewer else {
        return page(
            StatusCode::UNAUTHORIZED,
            &notices::no_session(&app.site, None),
        );
    };
    let shell = get_handlers::shell(&app.site, &viewer, 0);
    page(StatusCode::NOT_FOUND, &notices::no_page(shell))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::web::memory::Questions;
    use crate::web::sessions::{MemorySessions, SessionStore as _, SessionTable};
    use crate::web::{ConnectionBounds, serve};

    async fn get(at: std::net::SocketAddr, path: &str, cookie: &str) -> String {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {at}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    /// Reads until the head of a response is complete.
    async fn head(stream: &mut TcpStream) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(stream.read_u8().await.unwrap());
        }
        String::from_utf8(bytes).unwrap()
    }

    #[tokio::test]
    async fn a_form_whose_session_ends_on_its_way_does_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let sessions = Arc::new(MemorySessions::new().unwrap());
        let site = Site::loopback(at).unwrap();
        let site = site.with_sessions(sessions.clone()).unwrap();
        let (login, base) = (site.login_link().unwrap(), site.base.clone());
        let app = router(Arc::new(Questions::default()), site);
        let bounds = ConnectionBounds::default();
        tokio::spawn(serve(listener, app, bounds, std::future::pending()));
        let path = login.split_once(&at.to_string()).unwrap().1;
        let entered = get(at, path, "").await;
        let cookie = entered.split_once("set-cookie: ").unwrap().1;
        let cookie = cookie.split(';').next().unwrap();

        let id = "0".repeat(32);
        for (ends, status) in [(false, 403), (true, 401)] {
            let mut stream = TcpStream::connect(at).await.unwrap();
            let request = format!(
                "POST {base}/q/{id}/decline HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}\r\nCookie: {cookie}\r\nConnection: close\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            assert!(head(&mut stream).await.starts_with("HTTP/1.1 100"));
            if ends {
                let mut end = |table: &mut SessionTable| {
                    *table = SessionTable::new()?;
                    Ok(())
                };
                sessions.change(&mut end).unwrap();
            }
            stream.write_all(b"csrf=x").await.unwrap();
            let status = format!("HTTP/1.1 {status}");
            let reply = head(&mut stream).await;
            assert!(reply.starts_with(&status), "{reply}");
        }
    }

    #[tokio::test]
    async fn under_a_path_the_pages_keep_to_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let site = Site::loopback(at).unwrap().under("inbox/");
        let login = site.login_link().unwrap();
        let base = site.base.clone();
        let beside = Router::new()
            .route("/beside", axum::routing::get(|| async { "beside" }))
            .fallback(|| async { "elsewhere" });
        let app = beside.merge(router(Arc::new(Questions::default()), site));
        tokio::spawn(serve(
            listener,
            app,
            ConnectionBounds::default(),
            std::future::pending(),
        ));

        let path = login.split_once(&at.to_string()).unwrap().1;
        assert!(path.starts_with("/inbox/login?key="));
        let entered = get(at, path, "").await;
        assert!(entered.starts_with("HTTP/1.1 303"));
        assert!(entered.contains(&format!("location: {base}/\r\n")));
        assert!(base.starts_with("/inbox/") && entered.contains(&format!("Path={base};")));
        let cookie = entered.split_once("set-cookie: ").unwrap().1;
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let queue = get(at, &format!("{base}/"), &cookie).await;
        assert!(queue.starts_with("HTTP/1.1 200") && queue.contains("Nothing is waiting"));
        assert!(
            !queue.contains("href=\"/assets")
                && queue.contains(&format!("href=\"{base}/assets/style.css\""))
        );
        assert!(
            get(at, &base, &cookie)
                .await
                .contains(&format!("location: {base}/\r\n"))
        );
        assert!(
            get(at, "/inbox/assets/style.css", "")
                .await
                .starts_with("HTTP/1.1 200")
        );
        for (path, status) in [("/none", 404), ("/q/none", 404), ("/", 200)] {
            let path = format!("{base}{path}");
            let status = format!("HTTP/1.1 {status}");
            assert!(get(at, &path, &cookie).await.starts_with(&status), "{path}");
            assert!(get(at, &path, "").await.starts_with("HTTP/1.1 401"));
        }
        assert!(
            get(at, "/inbox", "")
                .await
                .contains("location: /inbox/\r\n")
        );
        // Outside its path, the cookie grants nothing, and no page reveals the path.
        for path in [
            "/inbox/",
            "/inbox/q/none",
            "/inbox/none/at/all",
            "/inbox/login",
        ] {
            let said = get(at, path, &cookie).await;
            assert!(said.starts_with("HTTP/1.1 401"), "{path}: {said}");
            assert!(!said.contains(&base), "{path}: {said}");
        }
        assert!(get(at, "/beside", "").await.ends_with("beside"));
        assert!(get(at, "/none", "").await.ends_with("elsewhere"));
    }
}
