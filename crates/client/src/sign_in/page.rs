//! The page of an authorization server that a person may be sent to.

use std::net::IpAddr;

use mcp_elicit_core::link::{Link, LinkError, LinkPolicy, LinkWarning};

/// The longest address of such a page, in bytes: it holds scopes, a challenge and a state.
const LONGEST: usize = 16_384;

/// The reason why an address that a server named is not used for a sign-in.
///
/// ```
/// use mcp_elicit_client::sign_in::PageError;
///
/// assert_eq!(PageError::UserInfo.to_string(), "it contains a user name or a password before its host");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// Not a link that may be shown to a person.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Plain http to another machine, where others can read along.
    #[error("it begins with http: only https, or http on this machine, is accepted")]
    PlainHttp,
    /// A user name or password, which disguises the host.
    #[error("it contains a user name or a password before its host")]
    UserInfo,
}

/// Reads the address of a page or endpoint for a sign-in: https, or http on this machine, without a user name.
pub(super) fn read(address: &str) -> Result<Link, PageError> {
    let mut policy = LinkPolicy::default();
    policy.max_bytes = LONGEST;
    let link = Link::parse_with(address, &policy)?;
    if !link.url().username().is_empty() || link.url().password().is_some() {
        return Err(PageError::UserInfo);
    }
    if link.scheme() != "https" && !is_local(&link) {
        return Err(PageError::PlainHttp);
    }
    Ok(link)
}

/// Returns `true` for this machine: its addresses, and the one name for them. Names such as `x.localhost` are looked up in
/// the network by some systems.
fn is_local(link: &Link) -> bool {
    let host = link.url().host_str().unwrap_or_default();
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    link.warnings().contains(&LinkWarning::Loopback) && (is_address || host == "localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_this_machine_are_accepted() {
        for address in [
            "https://accounts.example.com/authorize?state=x",
            "https://10.0.0.9:8443/a",
            "http://127.0.0.1:9/authorize",
            "http://localhost:9/authorize",
            "http://[::1]:9/a",
        ] {
            assert!(read(address).is_ok(), "{address}");
        }
    }

    #[test]
    fn no_other_scheme_no_foreign_http_and_no_disguise_is() {
        for address in [
            "file:///etc/passwd",
            "javascript:alert(1)//",
            "data:text/html,x",
            "vscode://x/y",
            "ssh://-oProxyCommand=x/",
            "ms-settings:privacy",
            "/authorize",
            "https:\\\\evil.example\\x",
            "https://a.example/\u{7}x",
            "",
        ] {
            assert!(
                matches!(read(address), Err(PageError::Link(_))),
                "{address}"
            );
        }
        for address in [
            "https://accounts.google.com@127.0.0.1:9/",
            "https://:pw@a.example/",
            "http://me@127.0.0.1/",
        ] {
            assert_eq!(read(address).err(), Some(PageError::UserInfo), "{address}");
        }
        for address in [
            "http://e.test/a",
            "http://192.168.1.4/a",
            "http://localhost.evil.example/",
            "http://x.localhost/",
            "http://localhost./",
        ] {
            assert_eq!(read(address).err(), Some(PageError::PlainHttp), "{address}");
        }
    }
}
