//! Cookies as the pages set and read them: for this host only, hidden from scripts, sent on links from other sites.

use std::time::Duration;

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Returns the values of every cookie called `name`. There can be several: a cookie of another path or of a parent
/// domain may have the same name.
pub(super) fn values<'a>(
    headers: &'a HeaderMap,
    name: &'a str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    all(headers)
        .filter(move |(found, _)| *found == name)
        .map(|(_, value)| value)
}

/// Returns the names of the cookies that begin with `prefix`.
#[cfg(feature = "oauth")]
pub(super) fn names<'a>(
    headers: &'a HeaderMap,
    prefix: &'a str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    all(headers)
        .map(|(name, _)| name)
        .filter(move |name| name.starts_with(prefix))
}

fn all(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(COOKIE)
        .into_iter()
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
}

/// Returns the name of a cookie of pages at `base`. On https, browsers let only this host set it (`__Host-`), so that a
/// neighbouring subdomain cannot sign a visitor in.
pub(super) fn name_at(base: &str, name: &str) -> String {
    if is_secure(base) {
        format!("__Host-mcp-elicit-{name}")
    } else {
        format!("mcp-elicit-{name}")
    }
}

/// Returns the `Set-Cookie` that stores `value` for `age`. `value` is generated here and has no characters that end a
/// cookie.
pub(super) fn set(base: &str, name: &str, value: &str, age: Duration) -> Option<HeaderValue> {
    let secure = if is_secure(base) { "; Secure" } else { "" };
    let age = age.as_secs();
    HeaderValue::from_str(&format!(
        "{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}"
    ))
    .ok()
}

fn is_secure(base: &str) -> bool {
    base.starts_with("https:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(
            COOKIE,
            HeaderValue::from_static("a=1; session=x=y;xsession=2"),
        );
        headers.append(COOKIE, HeaderValue::from_static("session=z; broken"));
        assert_eq!(
            values(&headers, "session").collect::<Vec<_>>(),
            ["x=y", "z"]
        );
        assert_eq!(values(&headers, "broken").count(), 0);
    }

    #[test]
    fn on_https_a_cookie_belongs_to_this_host_alone() {
        let name = name_at("https://mcp.example.org/connect", "visitor");
        assert_eq!(name, "__Host-mcp-elicit-visitor");
        let set = set(
            "https://mcp.example.org",
            &name,
            "v",
            Duration::from_secs(5),
        )
        .unwrap();
        assert_eq!(
            set,
            "__Host-mcp-elicit-visitor=v; Path=/; Max-Age=5; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(name_at("http://127.0.0.1:8080", "v"), "mcp-elicit-v");
    }
}
