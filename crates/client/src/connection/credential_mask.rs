//! A mask for credentials that a server repeats in its messages.

use std::collections::HashMap;
use std::fmt;

use http::{HeaderName, HeaderValue};
use mcp_elicit_core::secret::SecretText;

type MaskedHeaders = HashMap<HeaderName, HeaderValue>;

/// The largest number of credentials that are kept; the oldest is forgotten first.
const MOST: usize = 64;

/// The credentials that were sent to a server.
#[derive(Default)]
pub(super) struct CredentialMask(Vec<String>);

/// Shows no credential.
impl fmt::Debug for CredentialMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialMask").finish_non_exhaustive()
    }
}

impl CredentialMask {
    /// Adds the credentials of a request.
    pub(super) fn add(&mut self, token: Option<&str>, headers: &MaskedHeaders) {
        let values = headers.values().filter(|value| value.is_sensitive());
        let values = values.filter_map(|value| value.to_str().ok());
        let all = token.into_iter().chain(values);
        for secret in all.flat_map(with_and_without_scheme).flatten() {
            if secret.is_empty() || self.0.iter().any(|known| known == secret) {
                continue;
            }
            if self.0.len() == MOST {
                self.0.remove(0);
            }
            self.0.push(secret.to_owned());
        }
    }

    /// Returns a server's text with the credentials masked.
    pub(super) fn apply_to(&self, words: &str) -> String {
        let mask = |words: String, secret: &String| masked(&words, secret);
        self.0.iter().fold(words.to_owned(), mask)
    }
}

/// Returns a text without a secret, however it is usually spelled.
pub(crate) fn masked(words: &str, secret: &str) -> String {
    SecretText::new(secret).masked_in(words)
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
        let headers = MaskedHeaders::from([
            (HeaderName::from_static("x-key"), key),
            (
                HeaderName::from_static("mcp-method"),
                HeaderValue::from_static("tools/call"),
            ),
        ]);
        let mut sent = CredentialMask::default();
        sent.add(Some("mek_1_2"), &headers);
        assert_eq!(
            sent.apply_to("mek_1_2 with hunter2 may not use tools/call, nor MEK_1_2 ü"),
            "*** with *** may not use tools/call, nor *** ü"
        );
        let cut = masked("a mek_1_2345 ...", "mek_1_23456789");
        assert_eq!(cut, "a *** ...");
        assert!(!format!("{sent:?}").contains("hunter2"));
        let mut bearer = HeaderValue::from_static("Bearer hunter3");
        bearer.set_sensitive(true);
        let headers = MaskedHeaders::from([(http::header::AUTHORIZATION, bearer)]);
        sent.add(None, &headers);
        assert_eq!(sent.apply_to("hunter3 has ended"), "*** has ended");
        assert_eq!(
            sent.apply_to("mek%5F1%5f2 and \\u0068unter2"),
            "*** and ***"
        );
        let mut empty = CredentialMask::default();
        empty.add(Some(""), &MaskedHeaders::new());
        assert_eq!(empty.apply_to("x"), "x");
    }
}
