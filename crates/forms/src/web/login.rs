//! From the secret in a link to the cookie.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use super::desk::Desk;
use super::notices;
use super::router::{Rooms, go, page};
use super::site::Site;

/// Exchanges the secret for the cookie, and goes on to a page without the secret in its address.
pub(super) async fn enter<D: Desk>(
    State(rooms): State<Rooms<D>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let site = &rooms.site;
    let (mut key, mut next) = (None, None);
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "key" => key = Some(value.into_owned()),
            "next" => next = Some(value.into_owned()),
            _ => {}
        }
    }
    let Some(key) = key else {
        return page(StatusCode::UNAUTHORIZED, &notices::login(site, false));
    };
    if !site.is_secret(&key) {
        return page(StatusCode::UNAUTHORIZED, &notices::login(site, true));
    }
    let next = next
        .filter(|next| is_ours(site, next))
        .unwrap_or_else(|| format!("{}/", site.base));
    // On a request that another site started, browsers keep a strict cookie back until one of our own pages asks.
    let foreign = headers
        .get("sec-fetch-site")
        .is_some_and(|from| from == "cross-site" || from == "same-site");
    let mut response = if foreign {
        page(StatusCode::OK, &notices::forward(site, next))
    } else {
        go(&next)
    };
    if let Ok(cookie) = HeaderValue::from_str(&site.session_cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Whether `path` is a page of ours: never an address elsewhere.
fn is_ours(site: &Site, path: &str) -> bool {
    let Some(rest) = path.strip_prefix(site.base.as_str()) else {
        return false;
    };
    let plain = rest
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_'));
    rest.starts_with('/') && !rest.contains("//") && plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::Secret;

    #[test]
    fn one_is_sent_on_to_our_own_pages_only() {
        let site = Site::loopback(([127, 0, 0, 1], 1).into(), Secret::random().unwrap());
        assert!(is_ours(&site, "/") && is_ours(&site, "/q/abc_-9"));
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/q/../..",
            "/q//x",
            "/\r\nX: y",
        ] {
            assert!(!is_ours(&site, bad), "{bad}");
        }
        assert!(!is_ours(&site.under("/inbox"), "/q/abc"));
    }
}
