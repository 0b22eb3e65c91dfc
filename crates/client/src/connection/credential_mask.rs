//! A mask for credentials that a server repeats in its messages.

use std::collections::HashMap;

use http::{HeaderName, HeaderValue};

type Headers = HashMap<HeaderName, HeaderValue>;

/// The credentials of a request.
pub(super) struct CredentialMask(Vec<String>);

impl CredentialMask {
    /// Collects the credentials of a request.
    pub(super) fn of(token: Option<&str>, headers: &Headers) -> Self {
        let values = headers.values().filter(|value| value.is_sensitive());
        let values = values.filter_map(|value| value.to_str().ok());
        let all = token.into_iter().chain(values);
        let all = all.flat_map(with_and_without_scheme).flatten();
        Self(
            all.filter(|text| !text.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Returns a server's text with the credentials masked.
    pub(super) fn apply_to(&self, words: &str) -> String {
        let mask = |words: String, secret: &String| words.replace(secret, "***");
        self.0.iter().fold(words.to_owned(), mask)
    }
}

/// Returns a credential, and the part after its scheme: of `Bearer TOKEN` a server may repeat either.
fn with_and_without_scheme(value: &str) -> [Option<&str>; 2] {
    let after = value.split_once(' ').map(|(_scheme, after)| after.trim());
    [Some(value), after]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_repeats_a_credential_does_not_get_it_shown() {
        let mut key = HeaderValue::from_static("hunter2");
        key.set_sensitive(true);
        let headers = Headers::from([
            (HeaderName::from_static("x-key"), key),
            (
                HeaderName::from_static("mcp-method"),
                HeaderValue::from_static("tools/call"),
            ),
        ]);
        let sent = CredentialMask::of(Some("mek_1_2"), &headers);
        assert_eq!(
            sent.apply_to("mek_1_2 with hunter2 may not use tools/call"),
            "*** with *** may not use tools/call"
        );
        let mut bearer = HeaderValue::from_static("Bearer hunter3");
        bearer.set_sensitive(true);
        let headers = Headers::from([(http::header::AUTHORIZATION, bearer)]);
        assert_eq!(
            CredentialMask::of(None, &headers).apply_to("hunter3 has ended"),
            "*** has ended"
        );
        assert_eq!(
            CredentialMask::of(Some(""), &Headers::new()).apply_to("x"),
            "x"
        );
    }
}
