//! The reasons why a text is not a link that may be shown to a person. Such an error is the sender's; it never repeats
//! the URL, which may contain secrets.

use super::LinkPolicy;

/// The reason why a text is not a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The text is empty.
    #[error("the url is empty")]
    Empty,
    /// The text is longer than [`LinkPolicy::max_bytes`].
    #[error("the url is {bytes} bytes long, more than the {limit} that are allowed")]
    TooLong {
        /// The length, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A control character, a space or another white space, where readers differ.
    #[error(
        "the url contains white space or a control character at byte {at}; it must be percent-encoded"
    )]
    Unprintable {
        /// The offset, in bytes from the start.
        at: usize,
    },
    /// A backslash, which browsers read as a slash and other programs do not.
    #[error(
        "the url contains a backslash at byte {at}, which programs read in different ways; write a slash or %5C"
    )]
    Backslash {
        /// The offset, in bytes from the start.
        at: usize,
    },
    /// A scheme other than `http` or `https`, for instance `javascript` or `file`.
    #[error("the url has the scheme `{scheme}`; only http and https can be visited")]
    Scheme {
        /// The scheme, in lower case.
        scheme: String,
    },
    /// No `//host` after the scheme.
    #[error("the url names no host; it must begin with https:// and a host")]
    NoHost,
    /// Not a URL (a relative reference, a host that cannot exist, a port out of range).
    #[error("the url cannot be read: {0}")]
    Unreadable(url::ParseError),
}

impl LinkError {
    /// Returns a stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "url-empty",
            Self::TooLong { .. } => "url-too-long",
            Self::Unprintable { .. } => "url-unprintable",
            Self::Backslash { .. } => "url-backslash",
            Self::Scheme { .. } => "url-scheme",
            Self::NoHost => "url-no-host",
            Self::Unreadable(_) => "url-unreadable",
        }
    }
}

/// Rejects texts that the URL parser would silently repair, because other parsers read them differently.
pub(super) fn refuse_unfit(text: &str, policy: &LinkPolicy) -> Result<(), LinkError> {
    if text.is_empty() {
        return Err(LinkError::Empty);
    }
    if text.len() > policy.max_bytes {
        return Err(LinkError::TooLong {
            bytes: text.len(),
            limit: policy.max_bytes,
        });
    }
    if let Some((at, _)) = text
        .char_indices()
        .find(|(_, c)| c.is_control() || c.is_whitespace())
    {
        return Err(LinkError::Unprintable { at });
    }
    if let Some(at) = text.find('\\') {
        return Err(LinkError::Backslash { at });
    }
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    for scheme in ["https:", "http:"] {
        if let Some(rest) = lower.strip_prefix(scheme) {
            let host = rest.strip_prefix("//").ok_or(LinkError::NoHost)?;
            // "https:///x" and "https://?x": the parser would take the next part for the host.
            let first = host
                .chars()
                .next()
                .or_else(|| text[scheme.len() + 2..].chars().next());
            return if matches!(first, None | Some('/' | '?' | '#')) {
                Err(LinkError::NoHost)
            } else {
                Ok(())
            };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Link;
    use super::*;

    fn fault(text: &str) -> &'static str {
        Link::parse(text).expect_err(text).code()
    }

    #[test]
    fn what_is_not_a_link_is_refused_with_a_stable_code() {
        for (text, code) in [
            ("", "url-empty"),
            (" https://example.com/", "url-unprintable"),
            ("https://example.com/a b", "url-unprintable"),
            ("https://exam\tple.com/", "url-unprintable"),
            ("https://example.com/\u{2028}", "url-unprintable"),
            ("https://example.com/\u{85}", "url-unprintable"),
            ("https://example.com\\@evil.example/", "url-backslash"),
            ("javascript:alert(1)", "url-scheme"),
            ("JavaScript://example.com/%0aalert(1)", "url-scheme"),
            ("file:///etc/passwd", "url-scheme"),
            ("data:text/html,x", "url-scheme"),
            ("ftp://example.com/", "url-scheme"),
            ("https:example.com", "url-no-host"),
            ("https:/example.com", "url-no-host"),
            ("https:///example.com", "url-no-host"),
            ("https://", "url-no-host"),
            ("http://", "url-no-host"),
            ("HTTP:", "url-no-host"),
            ("https://?x", "url-no-host"),
            ("https://@/x", "url-unreadable"),
            ("example.com/x", "url-unreadable"),
            ("//example.com/x", "url-unreadable"),
            ("https://exa<mple.com/", "url-unreadable"),
            ("https://example.com:99999/", "url-unreadable"),
            ("https://256.256.256.256/", "url-unreadable"),
            ("https://xn--a/", "url-unreadable"),
            ("é", "url-unreadable"),
            ("https:é", "url-no-host"),
        ] {
            assert_eq!(fault(text), code, "{text:?}");
        }
    }

    #[test]
    fn length_is_bounded_and_the_bound_is_a_policy() {
        let text = format!("https://example.com/{}", "a".repeat(8_192));
        assert_eq!(fault(&text), "url-too-long");
        let policy = LinkPolicy {
            max_bytes: 10_000,
            ..LinkPolicy::default()
        };
        assert!(Link::parse_with(&text, &policy).is_ok());
    }

    #[test]
    fn a_fault_never_repeats_the_url() {
        for text in [
            "https://example.com/ token=hunter2",
            "https:hunter2",
            "hunter2",
            "https://h:hunter2@\\",
        ] {
            let fault = Link::parse(text).expect_err(text);
            assert!(
                !format!("{fault} {fault:?}").contains("hunter2"),
                "{fault:?}"
            );
        }
    }
}
