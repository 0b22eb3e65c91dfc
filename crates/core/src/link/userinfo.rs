//! URLs without user name and password, for display and logs.

use std::borrow::Cow;

use url::Url;

/// Returns the address of a server without a user name and a password before its host. Text that is not a URL loses
/// everything before its last `@`, since a password may be anywhere there.
///
/// ```
/// use mcp_elicit_core::link::without_userinfo;
///
/// assert_eq!(without_userinfo("https://ana:hunter2@example.com/mcp"), "https://example.com/mcp");
/// assert_eq!(without_userinfo("https://example.com/@team/mcp"), "https://example.com/@team/mcp");
/// ```
pub fn without_userinfo(address: &str) -> Cow<'_, str> {
    let Some((before, after)) = address.rsplit_once('@') else {
        return Cow::Borrowed(address);
    };
    if let Ok(mut url) = Url::parse(address)
        && url.has_host()
    {
        if url.username().is_empty() && url.password().is_none() {
            return Cow::Borrowed(address);
        }
        if url.set_username("").is_ok() && url.set_password(None).is_ok() {
            return Cow::Owned(url.into());
        }
    }
    match before.split_once("://") {
        Some((scheme, _)) => Cow::Owned(format!("{scheme}://{after}")),
        None => Cow::Borrowed(after),
    }
}

#[cfg(test)]
mod tests {
    use super::without_userinfo;

    #[test]
    fn no_password_is_left_in_any_spelling() {
        for address in [
            "http://ana:hunter2@host:8080/mcp?x=1",
            "https://hunter2@host",
            "HTTPS://ana:hunter2@HOST/mcp",
            "http://ana:hun%40ter2hunter2@host/mcp",
            "http://ana:hunter2@host:none/mcp",
            "http://ana:hun/hunter2@host/mcp",
            "ana:hunter2@host/mcp",
            "ana:x@y:hunter2@host/mcp",
            "ftp://ana:hunter2@host/",
            "http:ana:hunter2@host/mcp",
            "\thttp://ana:hunter2@host/mcp",
        ] {
            let shown = without_userinfo(address);
            assert!(!shown.contains("hunter2"), "{address}: {shown}");
            assert!(shown.to_lowercase().contains("host"), "{address}: {shown}");
        }
    }

    #[test]
    fn an_address_without_userinfo_stays_as_it_is() {
        for address in [
            "https://例え.jp/パス",
            "http://127.0.0.1:8000/mcp",
            "https://example.com/@team?mail=a@b.c",
            "no address",
        ] {
            assert_eq!(without_userinfo(address), address);
        }
    }
}
