//! A mask for credentials that a server repeats in its messages.

use std::collections::HashMap;
use std::fmt;

use http::{HeaderName, HeaderValue};

type Headers = HashMap<HeaderName, HeaderValue>;

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
    pub(super) fn add(&mut self, token: Option<&str>, headers: &Headers) {
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

/// The part of a secret that is masked without the rest of it, in bytes: other texts are cut before they come here.
const BEGINNING: usize = 8;

/// Returns a text without a secret, in whatever case it is written (names of hosts and media types are in small letters),
/// and without the beginning of one that was cut.
pub(crate) fn masked(words: &str, secret: &str) -> String {
    // Neither changes the number of bytes.
    let (lower, secret) = (words.to_ascii_lowercase(), secret.to_ascii_lowercase());
    let whole = secret.contains(' ');
    let needle = match secret.get(..BEGINNING) {
        Some(beginning) if !whole => beginning,
        Some(_) | None => &secret,
    };
    let mut shown = String::with_capacity(words.len());
    let mut end = 0;
    for (at, _) in lower.match_indices(needle) {
        if at < end {
            continue;
        }
        shown.push_str(words.get(end..at).unwrap_or_default());
        shown.push_str("***");
        let found = lower.bytes().skip(at).zip(secret.bytes());
        end = at + found.take_while(|(one, other)| one == other).count();
    }
    shown.push_str(words.get(end..).unwrap_or_default());
    shown
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
        let headers = Headers::from([(http::header::AUTHORIZATION, bearer)]);
        sent.add(None, &headers);
        assert_eq!(sent.apply_to("hunter3 has ended"), "*** has ended");
        let mut empty = CredentialMask::default();
        empty.add(Some(""), &Headers::new());
        assert_eq!(empty.apply_to("x"), "x");
    }
}
