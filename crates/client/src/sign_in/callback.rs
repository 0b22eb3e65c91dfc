//! The page on this machine to which the browser returns after a sign-in (RFC 8252, section 7.3).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const PATH: &str = "/callback";

/// The result with which the browser returned.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CameBack {
    /// A code, with the whole address.
    Code(String),
    /// The person denied the authorization.
    Denied,
    /// Another error, by its code.
    Failed(String),
    /// The page ended before the browser returned.
    Never,
}

/// The page, before the browser returns.
pub(super) struct CallbackPage {
    listener: TcpListener,
    at: SocketAddr,
}

struct ExpectedCallback {
    base: String,
    state: String,
    tell: Mutex<Option<oneshot::Sender<CameBack>>>,
}

impl CallbackPage {
    /// Listens on this port of the loopback address; 0 picks a free one.
    pub(super) async fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let at = listener.local_addr()?;
        Ok(Self { listener, at })
    }

    /// Returns the redirect URI.
    pub(super) fn address(&self) -> String {
        format!("http://{}{PATH}", self.at)
    }

    /// Waits until the browser returns from this link. Requests with another `state` are ignored.
    pub(super) async fn wait(self, link: &str) -> CameBack {
        let (tell, told) = oneshot::channel();
        let query = link.split_once('?').map_or("", |(_, query)| query);
        let expected = Arc::new(ExpectedCallback {
            base: self.address(),
            state: parameter(query, "state").unwrap_or_default(),
            tell: Mutex::new(Some(tell)),
        });
        let app = axum::Router::new()
            .route(PATH, get(come_back))
            .with_state(expected);
        let (end, ended) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            axum::serve(self.listener, app)
                .with_graceful_shutdown(async {
                    let _ended_or_dropped = ended.await;
                })
                .await
        });
        let came_back = told.await.unwrap_or(CameBack::Never);
        // The response is sent before the program continues.
        let _gone = end.send(());
        let _sent = tokio::time::timeout(std::time::Duration::from_secs(1), serving).await;
        came_back
    }
}

async fn come_back(
    State(expected): State<Arc<ExpectedCallback>>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let state = parameter(&query, "state");
    if expected.state.is_empty() || state.as_deref() != Some(&*expected.state) {
        return page(
            StatusCode::BAD_REQUEST,
            "This link belongs to another sign-in.",
        );
    }
    let (came_back, words) = match parameter(&query, "error").as_deref() {
        None => (
            CameBack::Code(format!("{}?{query}", expected.base)),
            "Thank you. You may close this page and go back to the terminal.",
        ),
        Some("access_denied") => (
            CameBack::Denied,
            "You did not agree. You may close this page and go back to the terminal.",
        ),
        Some(code) => (
            CameBack::Failed(code.chars().take(100).collect()),
            "The sign-in failed. The terminal says more.",
        ),
    };
    let tell = expected
        .tell
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    match tell.map(|tell| tell.send(came_back)) {
        Some(Ok(())) => page(StatusCode::OK, words),
        Some(Err(_)) | None => page(StatusCode::GONE, "This sign-in is over."),
    }
}

/// Returns one parameter of a query, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut found = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(known, _)| *known == name);
    let (_, value) = found.next()?;
    // A parameter that occurs twice is ambiguous.
    if found.next().is_some() {
        return None;
    }
    let spaced = value.replace('+', " ");
    let decoded = percent_encoding::percent_decode_str(&spaced);
    decoded.decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

fn page(status: StatusCode, words: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>mcp-elicit</title><p>{words}</p></html>"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, html).into_response()
}

#[cfg(test)]
mod tests {
    use super::parameter;

    #[test]
    fn a_parameter_is_decoded_and_read_in_one_way_only() {
        let query = "code=a%20b+c&state=x%2Fy&iss=";
        assert_eq!(parameter(query, "code").as_deref(), Some("a b c"));
        assert_eq!(parameter(query, "state").as_deref(), Some("x/y"));
        assert_eq!(parameter(query, "error"), None);
        assert_eq!(parameter("state=1&state=2", "state"), None);
        assert_eq!(parameter("state=%ff", "state"), None);
    }
}
