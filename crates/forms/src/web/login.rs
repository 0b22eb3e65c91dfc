//! The exchange of a link's key for a session.

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use super::notices;
use super::question_store::QuestionStore;
use super::router::{PagesState, go, other_method, page, posted};

/// Exchanges the key for a session, once, and redirects to a page without the key in its address.
pub(super) async fn enter<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let site = &app.site;
    let (mut key, mut next) = (None, None);
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "key" => key = Some(value.into_owned()),
            "next" => next = Some(value.into_owned()),
            _ => {}
        }
    }
    let next = next.filter(|next| is_plain(next));
    let next = next.unwrap_or_else(|| "/".to_owned());
    let Some(key) = key else {
        return page(
            StatusCode::UNAUTHORIZED,
            &notices::no_session(site, Some(&next)),
        );
    };
    let browser = headers
        .get(header::USER_AGENT)
        .and_then(|browser| browser.to_str().ok())
        .unwrap_or("unknown");
    // Programs that check a link before a person opens it send HEAD.
    let session = if method == Method::HEAD {
        Ok(None)
    } else {
        site.redeem(&key, browser)
    };
    let session = match session {
        Ok(Some(session)) => session,
        Ok(None) => {
            return page(StatusCode::UNAUTHORIZED, &notices::spent_link(site, &next));
        }
        Err(error) => {
            tracing::error!(%error, "a session could not be made");
            let line = "The session could not be written down. Try the link again in a moment.";
            return page(
                StatusCode::SERVICE_UNAVAILABLE,
                &notices::refused(site, "Not right now", line),
            );
        }
    };
    site.tell_login(&session).await;
    tracing::info!(session = %session.id, "a browser signed in");
    let next = format!("{}{next}", site.base);
    // On a request started by another site, browsers withhold a strict cookie until one of our own pages sends a
    // request.
    let foreign = headers
        .get("sec-fetch-site")
        .is_some_and(|from| from == "cross-site" || from == "same-site");
    let mut response = if foreign {
        page(StatusCode::OK, &notices::forward(site, next))
    } else {
        go(&next)
    };
    if let Ok(cookie) = HeaderValue::from_str(&site.session_cookie(&session)) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Opens a login link in the browser of this machine, as the button of the sign-in page asks for. The response contains no
/// secret: whoever sent the request is signed in only at that machine.
pub(super) async fn open_on_desktop<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let site = &*app.site;
    let Some(desktop) = &site.desktop else {
        return other_method(site);
    };
    let posted = match posted(site, headers.get(header::CONTENT_TYPE), body).await {
        Ok(posted) => posted,
        Err(response) => return response,
    };
    let next = posted.get("next").filter(|next| is_plain(next));
    let next = next.unwrap_or("/");
    if !desktop.may_open((site.clock)()) {
        let line = "A page was opened a moment ago. Look at the browser of the computer where the questions are kept, or try \
            again in ten seconds.";
        let notice = notices::desktop_page(site, "Already opened", line, next);
        return page(StatusCode::TOO_MANY_REQUESTS, &notice);
    }
    match site.open_on_desktop(desktop, next).await {
        Ok(()) => {
            tracing::info!("a page was opened on this machine, to sign its browser in");
            let line = "A page has been opened in the browser of the computer where the questions are kept. Go on there; \
                this page can be closed.";
            let notice = notices::desktop_page(site, "Go on in the new page", line, next);
            page(StatusCode::OK, &notice)
        }
        Err(error) => {
            tracing::warn!(%error, "no page could be opened on this machine, to sign its browser in");
            let line = "No browser could be started on the computer where the questions are kept.";
            let notice = notices::desktop_page(site, "No browser was started", line, next);
            page(StatusCode::SERVICE_UNAVAILABLE, &notice)
        }
    }
}

/// Returns `true` if `path` can be a page of this site, below any path: never an address elsewhere.
pub(super) fn is_plain(path: &str) -> bool {
    let plain = path
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_'));
    path.starts_with('/') && !path.contains("//") && plain
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn one_is_sent_on_to_our_own_pages_only() {
        assert!(is_plain("/") && is_plain("/q/abc_-9"));
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/q/../..",
            "/q//x",
            "/\r\nX: y",
        ] {
            assert!(!is_plain(bad), "{bad}");
        }
    }
}
