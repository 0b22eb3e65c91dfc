//! Pages of named origins: the headers with which a browser lets them read the listener's responses (CORS).
//!
//! `tower-http` writes the headers. A page of any other origin gets none of them, not even in the response to a preflight
//! request.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::{ORIGIN, RETRY_AFTER, VARY, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tower::{Layer as _, Service as _};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::headers::{SESSION, VERSION, only_text};
use crate::replaceable::Replaceable;

/// The time for which a browser remembers the response to a preflight request. Browsers shorten it to their own maximum.
const MAX_AGE: Duration = Duration::from_secs(2 * 60 * 60);

/// The methods of MCP's Streamable HTTP.
const METHODS: [Method; 3] = [Method::GET, Method::POST, Method::DELETE];

/// Headers of responses that a page may read.
const EXPOSED: [HeaderName; 4] = [SESSION, VERSION, WWW_AUTHENTICATE, RETRY_AFTER];

/// The origins whose pages may use the listener, besides its own. All clones have the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedOrigins(Arc<Replaceable<[String]>>);

impl AllowedOrigins {
    /// Creates the origins of a configuration.
    pub(crate) fn new(origins: &[String]) -> Self {
        Self(Arc::new(Replaceable::new(origins.into())))
    }

    /// Replaces the origins, also in the clones.
    pub(crate) fn replace(&self, origins: &[String]) {
        self.0.set(origins.into());
    }

    /// Returns `true` if this origin is one of them.
    pub(crate) fn has(&self, origin: &str) -> bool {
        is_among(&self.0.get(), origin)
    }
}

/// The origins whose pages may read responses.
#[derive(Clone, Debug)]
struct PageAccess {
    origins: AllowedOrigins,
    cors: CorsLayer,
}

impl PageAccess {
    fn new(origins: AllowedOrigins) -> Self {
        let cors = CorsLayer::new()
            // Only requests of named origins come here.
            .allow_origin(AllowOrigin::mirror_request())
            .allow_methods(METHODS)
            // Headers for arguments have names of the server's choice (2026-07-28, `Mcp-Param-`).
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(EXPOSED)
            .max_age(MAX_AGE)
            .allow_private_network(true);
        Self { origins, cors }
    }

    fn names(&self, headers: &HeaderMap) -> bool {
        only_text(headers, ORIGIN).is_some_and(|origin| self.origins.has(origin))
    }
}

/// Returns `true` if this origin is one of those.
fn is_among(origins: &[String], origin: &str) -> bool {
    let origin = without_default_port(origin);
    origins
        .iter()
        .any(|named| without_default_port(named).eq_ignore_ascii_case(origin))
}

/// Returns an origin as browsers write it: without the port that its scheme implies.
fn without_default_port(origin: &str) -> &str {
    let usual = match origin.split_once("://") {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => ":80",
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => ":443",
        Some(_) | None => return origin,
    };
    origin.strip_suffix(usual).unwrap_or(origin)
}

/// Lets pages of these origins read the responses of these routes, with the status and reason of an error. Without
/// origins, the routes stay as they are.
///
/// A page has to send its credentials itself: no cookie counts.
pub fn open_to_pages(app: Router, origins: &[String]) -> Router {
    if origins.is_empty() {
        return app;
    }
    open_to_allowed(app, AllowedOrigins::new(origins))
}

/// Does the same for origins that may be replaced. While there are none, the routes are as they were.
pub(crate) fn open_to_allowed(app: Router, origins: AllowedOrigins) -> Router {
    app.layer(from_fn_with_state(PageAccess::new(origins), respond))
}

async fn respond(State(access): State<PageAccess>, request: Request, next: Next) -> Response {
    if access.origins.0.get().is_empty() {
        return next.run(request).await;
    }
    let is_named = access.names(request.headers());
    let mut response = if is_named {
        let mut next = access.cors.layer(next);
        match next.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    } else {
        next.run(request).await
    };
    if !is_named {
        // A cache must not give this response to a page of a named origin.
        let origin = HeaderValue::from_static("origin");
        response.headers_mut().append(VARY, origin);
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::post;
    use http::StatusCode;
    use http::header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS,
        ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
        ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD,
    };

    use super::*;

    fn app() -> Router {
        let refused = || async {
            (
                StatusCode::UNAUTHORIZED,
                [(WWW_AUTHENTICATE, "Bearer")],
                "no",
            )
        };
        let app = Router::new().route("/mcp", post(refused));
        open_to_pages(
            app,
            &[
                "http://localhost:5173".to_owned(),
                "https://app.example:443".to_owned(),
            ],
        )
    }

    async fn sent(method: Method, path: &str, headers: &[(HeaderName, &str)]) -> Response {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).unwrap();
            request.headers_mut().append(name.clone(), value);
        }
        app().call(request).await.unwrap()
    }

    fn text(response: &Response, name: HeaderName) -> Option<&str> {
        response.headers().get(name)?.to_str().ok()
    }

    #[tokio::test]
    async fn a_named_page_may_send_and_read_and_its_cookies_do_not_count() {
        for (origin, method) in [
            ("http://localhost:5173", "POST"),
            ("http://localhost:5173", "DELETE"),
            ("https://app.example", "GET"),
        ] {
            let asked = [
                (ORIGIN, origin),
                (ACCESS_CONTROL_REQUEST_METHOD, method),
                (
                    ACCESS_CONTROL_REQUEST_HEADERS,
                    "authorization,content-type,mcp-param-region",
                ),
                (
                    HeaderName::from_static("access-control-request-private-network"),
                    "true",
                ),
            ];
            let preflight = sent(Method::OPTIONS, "/mcp", &asked).await;
            assert!(preflight.status().is_success());
            assert_eq!(text(&preflight, ACCESS_CONTROL_ALLOW_ORIGIN), Some(origin));
            let methods = text(&preflight, ACCESS_CONTROL_ALLOW_METHODS).unwrap();
            assert!(methods.contains(method), "{methods}");
            let allowed = text(&preflight, ACCESS_CONTROL_ALLOW_HEADERS).unwrap();
            assert!(allowed.contains("mcp-param-region"), "{allowed}");
            let private = HeaderName::from_static("access-control-allow-private-network");
            assert_eq!(text(&preflight, private), Some("true"));
            assert_eq!(text(&preflight, ACCESS_CONTROL_ALLOW_CREDENTIALS), None);
        }
        for path in ["/mcp", "/nowhere"] {
            let refused = sent(Method::POST, path, &[(ORIGIN, "https://app.example")]).await;
            assert!(refused.status().is_client_error());
            let origin = text(&refused, ACCESS_CONTROL_ALLOW_ORIGIN);
            assert_eq!(origin, Some("https://app.example"), "{path}");
            let exposed = text(&refused, ACCESS_CONTROL_EXPOSE_HEADERS).unwrap();
            assert!(exposed.contains("mcp-session-id") && exposed.contains("www-authenticate"));
        }
    }

    #[tokio::test]
    async fn replaced_origins_count_from_the_next_request() {
        let origins = AllowedOrigins::default();
        let app = open_to_allowed(Router::new(), origins.clone());
        let sent = async |origin: &'static str| {
            let mut request = Request::new(Body::empty());
            let origin = HeaderValue::from_static(origin);
            request.headers_mut().insert(ORIGIN, origin);
            let response = app.clone().call(request).await.unwrap();
            let allowed = text(&response, ACCESS_CONTROL_ALLOW_ORIGIN).map(str::to_owned);
            (allowed, response.headers().contains_key(VARY))
        };
        let (a, b) = ("http://a.example", "http://b.example");
        assert_eq!(sent(a).await, (None, false));
        origins.replace(&[a.to_owned()]);
        assert_eq!(sent(a).await.0.as_deref(), Some(a));
        assert_eq!(sent(b).await, (None, true));
        origins.replace(&[b.to_owned()]);
        assert_eq!(sent(a).await, (None, true));
        assert_eq!(sent(b).await.0.as_deref(), Some(b));
        origins.replace(&[]);
        assert_eq!(sent(b).await, (None, false));
    }

    #[tokio::test]
    async fn no_other_page_gets_such_a_header() {
        for origin in [
            "http://localhost:5174",
            "https://localhost:5173",
            "http://localhost:5173.evil.example",
            "http://app.example",
            "null",
            "*",
        ] {
            let preflight = [(ORIGIN, origin), (ACCESS_CONTROL_REQUEST_METHOD, "POST")];
            for method in [Method::OPTIONS, Method::POST] {
                let response = sent(method, "/mcp", &preflight).await;
                let names = response.headers().keys();
                let given: Vec<_> = names
                    .filter(|name| name.as_str().starts_with("access-control-"))
                    .collect();
                assert!(given.is_empty(), "{origin}: {given:?}");
                assert_eq!(text(&response, VARY), Some("origin"));
            }
        }
        let twice = [(ORIGIN, "http://localhost:5173"), (ORIGIN, "http://evil")];
        let response = sent(Method::POST, "/mcp", &twice).await;
        assert_eq!(text(&response, ACCESS_CONTROL_ALLOW_ORIGIN), None);
    }
}
