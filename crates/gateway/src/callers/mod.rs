//! Callers over HTTP: the proof of who sent a request, and the response where there is none.

#[expect(dead_code, reason = "rules will read the facts about a caller")]
pub(crate) mod caller;

use std::net::IpAddr;

use axum::response::Response;
use http::header::{AUTHORIZATION, CACHE_CONTROL, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use mcp_elicit_inbox::api_tokens::{ApiTokens, Scope, TokenRejection};
use mcp_elicit_record::IdentityKey;
use mcp_elicit_record::clock::now;

pub(crate) use caller::{Caller, CallerKind, CurrentCaller};

use crate::config::{Auth, ProxyAuth};
use crate::listener::endpoint::header_checks::refusal;

/// The prefix of a caller with an API key.
const KEY: &str = "key-";
/// The longest subject that a proxy may name, in bytes.
const LONGEST_SUBJECT: usize = 255;

/// The rule by which callers are told apart.
#[derive(Debug)]
pub(crate) enum Callers {
    /// By the credentials that they carry, which are not checked.
    Unverified(IdentityKey),
    /// By API keys.
    Keys(ApiTokens),
    /// By the header of a trusted proxy.
    Proxy(ProxyAuth),
}

/// Why a request is no caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unauthenticated {
    /// It carries no key.
    #[error("send `Authorization: Bearer` with a key that `mcp-elicit tokens make` made")]
    NoKey,
    /// Two readers could see two callers.
    #[error("a request carries one `Authorization` header")]
    Ambiguous,
    /// The key is not one that is valid.
    #[error("{0}")]
    Key(#[from] TokenRejection),
    /// It did not come through the proxy.
    #[error("requests come through the proxy")]
    NotTheProxy,
    /// The proxy did not say whose it is, or said it in two ways.
    #[error("the proxy names one caller")]
    NoSubject,
}

impl Callers {
    /// The rule of this configuration.
    pub(crate) fn new(auth: &Auth, tokens: ApiTokens, key: &IdentityKey) -> Self {
        match auth {
            Auth::None => Self::Unverified(key.clone()),
            Auth::Keys => Self::Keys(tokens),
            Auth::Proxy(proxy) => Self::Proxy(proxy.clone()),
        }
    }

    /// Returns the caller of a request with these headers, from this address.
    ///
    /// # Errors
    /// When it proves no caller.
    pub(crate) fn identify(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
    ) -> Result<Caller, Unauthenticated> {
        match self {
            Self::Unverified(key) => Ok(Caller::unverified(match headers.get(AUTHORIZATION) {
                None => "anonymous".to_owned(),
                Some(value) => key.caller(value.as_bytes()),
            })),
            Self::Keys(tokens) => {
                let key = bearer(headers)?;
                let token = tokens.check(key, Scope::Call, now())?;
                let binding = format!("{KEY}{}", token.id());
                Ok(Caller::of_key(binding, token.id(), token.name()))
            }
            Self::Proxy(proxy) => {
                if !from.is_some_and(|from| proxy.trusts(from)) {
                    return Err(Unauthenticated::NotTheProxy);
                }
                let mut subjects = headers.get_all(proxy.subject_header()).iter();
                let (Some(subject), None) = (subjects.next(), subjects.next()) else {
                    return Err(Unauthenticated::NoSubject);
                };
                // Visible ASCII, as OpenID Connect has it: nothing that a person could take for something else. A comma is two headers
                // that another proxy has joined.
                let subject = subject
                    .to_str()
                    .ok()
                    .filter(|subject| !subject.is_empty() && subject.len() <= LONGEST_SUBJECT)
                    .filter(|subject| !subject.contains(['\t', ',']))
                    .ok_or(Unauthenticated::NoSubject)?;
                Ok(Caller::of_subject(proxy.issuer(), subject))
            }
        }
    }

    /// Returns `true` if this caller may still be served: one whose key was revoked, or has expired, may not.
    pub(crate) fn is_valid(&self, caller: &str) -> bool {
        match self {
            Self::Unverified(_) | Self::Proxy(_) => true,
            Self::Keys(tokens) => caller
                .strip_prefix(KEY)
                .is_some_and(|id| tokens.is_valid(id, Scope::Call, now())),
        }
    }

    /// Returns `true` if a caller can become invalid while it is served.
    pub(crate) fn can_be_revoked(&self) -> bool {
        matches!(self, Self::Keys(_))
    }

    /// Returns `true` if credentials of a request are meant for the server: where callers are verified, they are meant for the
    /// gateway and go no further.
    pub(crate) fn forwards_credentials(&self) -> bool {
        matches!(self, Self::Unverified(_))
    }
}

impl Unauthenticated {
    /// Returns the HTTP response (RFC 6750, section 3).
    pub(crate) fn response(self) -> Response {
        let (status, challenge) = match self {
            Self::NoKey => (StatusCode::UNAUTHORIZED, Some("Bearer")),
            Self::Ambiguous => (
                StatusCode::BAD_REQUEST,
                Some("Bearer error=\"invalid_request\""),
            ),
            Self::Key(TokenRejection::Scope(_)) => (
                StatusCode::FORBIDDEN,
                Some("Bearer error=\"insufficient_scope\", scope=\"call\""),
            ),
            Self::Key(TokenRejection::Expired) => (
                StatusCode::UNAUTHORIZED,
                Some("Bearer error=\"invalid_token\", error_description=\"the key has expired\""),
            ),
            Self::Key(TokenRejection::Unknown | TokenRejection::Revoked) => (
                StatusCode::UNAUTHORIZED,
                Some("Bearer error=\"invalid_token\""),
            ),
            Self::NotTheProxy | Self::NoSubject => (StatusCode::FORBIDDEN, None),
        };
        let mut response = refusal(status, -32600, &self.to_string());
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(challenge) = challenge {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}

/// Returns the bearer token of a request (RFC 6750, section 2.1).
fn bearer(headers: &HeaderMap) -> Result<&str, Unauthenticated> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (all.next(), all.next());
    if second.is_some() {
        return Err(Unauthenticated::Ambiguous);
    }
    let value = first.and_then(|value| value.to_str().ok());
    let (scheme, token) = value
        .and_then(|value| value.split_once(' '))
        .ok_or(Unauthenticated::NoKey)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Unauthenticated::NoKey);
    }
    Ok(token.trim_matches(' '))
}

#[cfg(test)]
mod tests {
    use mcp_elicit_inbox::state_folder::StateFolder;

    use super::caller::CallerKind;
    use super::*;
    use crate::config::Config;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn proxy() -> Callers {
        let text = "listen = \"0.0.0.0:1\"\ntrusted-proxies = [\"10.0.0.0/8\"]\n[auth]\nmode = \"proxy\"\n[servers.s]\ncommand = [\"true\"]";
        let Auth::Proxy(proxy) = Config::parse(text).unwrap().auth else {
            panic!("mode = proxy");
        };
        Callers::Proxy(proxy)
    }

    #[test]
    fn a_key_is_one_caller_until_it_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(folder.path());
        std::fs::create_dir_all(folder.path()).unwrap();
        let tokens = folder.api_tokens();
        let (token, text) = tokens.make("ci", &[Scope::Call], None, now()).unwrap();
        let (_, lists) = tokens.make("bot", &[Scope::List], None, now()).unwrap();
        let callers = Callers::Keys(folder.api_tokens());
        let identify = |value: &str| {
            let caller = callers.identify(&headers(&[("authorization", value)]), None);
            caller.map(|caller| caller.binding().to_owned())
        };
        let caller = identify(&format!("Bearer {text}")).unwrap();
        assert_eq!(caller, format!("key-{}", token.id()));
        assert_eq!(identify(&format!("bearer  {text}")), Ok(caller.clone()));
        assert!(
            callers.is_valid(&caller)
                && !callers.is_valid("key-000000000000")
                && !callers.is_valid("anonymous")
        );
        assert_eq!(
            identify(&format!("Basic {text}")),
            Err(Unauthenticated::NoKey)
        );
        assert_eq!(
            identify("Bearer mek_x_y"),
            Err(Unauthenticated::Key(TokenRejection::Unknown))
        );
        assert_eq!(
            identify(&format!("Bearer {lists}")),
            Err(Unauthenticated::Key(TokenRejection::Scope(Scope::Call)))
        );
        assert_eq!(
            callers.identify(&HeaderMap::new(), None),
            Err(Unauthenticated::NoKey)
        );
        let both = format!("Bearer {text}");
        let two = headers(&[("authorization", &both), ("authorization", &both)]);
        assert_eq!(
            callers.identify(&two, None),
            Err(Unauthenticated::Ambiguous)
        );
        assert!(tokens.revoke(token.id(), now()).unwrap());
        assert_eq!(
            identify(&both),
            Err(Unauthenticated::Key(TokenRejection::Revoked))
        );
        assert!(!callers.is_valid(&caller));
    }

    #[test]
    fn a_proxy_is_believed_from_its_address_only_and_names_one_caller() {
        let callers = proxy();
        let inside = Some("10.0.0.7".parse().unwrap());
        let one = headers(&[("x-forwarded-user", "alice")]);
        let caller = callers.identify(&one, inside).unwrap();
        assert_eq!(caller.binding(), r#"["proxy","alice"]"#);
        assert_eq!(
            (caller.kind(), caller.issuer(), caller.subject()),
            (CallerKind::Subject, "proxy", "alice")
        );
        for from in [None, Some("192.0.2.1".parse().unwrap())] {
            assert_eq!(
                callers.identify(&one, from),
                Err(Unauthenticated::NotTheProxy)
            );
        }
        let long = "a".repeat(LONGEST_SUBJECT + 1);
        for wrong in [
            headers(&[]),
            headers(&[("x-forwarded-user", "")]),
            headers(&[("x-forwarded-user", &long)]),
            headers(&[("x-forwarded-user", "a\tb")]),
            headers(&[("x-forwarded-user", "alice, bob")]),
            headers(&[("x-forwarded-user", "\u{202e}ecila")]),
            headers(&[("x-forwarded-user", "alice"), ("x-forwarded-user", "bob")]),
        ] {
            assert_eq!(
                callers.identify(&wrong, inside),
                Err(Unauthenticated::NoSubject)
            );
        }
    }

    #[test]
    fn no_name_of_a_caller_can_be_put_together_from_another_one() {
        let callers = proxy();
        let inside = Some("10.0.0.7".parse().unwrap());
        let caller_of = |name: &str| {
            let headers = headers(&[("x-forwarded-user", name)]);
            let caller = callers.identify(&headers, inside).unwrap();
            caller.binding().to_owned()
        };
        let names = ["alice", "\"]alice", "key-1", "anonymous", "local"];
        let callers: std::collections::BTreeSet<_> =
            names.iter().map(|name| caller_of(name)).collect();
        assert_eq!(callers.len(), names.len());
        assert!(callers.iter().all(|caller| caller.starts_with('[')));
    }

    #[test]
    fn a_refusal_says_what_to_send() {
        let status = |fault: Unauthenticated| {
            let response = fault.response();
            let challenge = response.headers().get(WWW_AUTHENTICATE);
            (
                response.status().as_u16(),
                challenge.map(|value| value.to_str().unwrap().to_owned()),
            )
        };
        assert_eq!(
            status(Unauthenticated::NoKey),
            (401, Some("Bearer".to_owned()))
        );
        let (code, challenge) = status(Unauthenticated::Key(TokenRejection::Revoked));
        assert!(code == 401 && challenge.unwrap().contains("invalid_token"));
        let (code, challenge) = status(Unauthenticated::Key(TokenRejection::Scope(Scope::Call)));
        assert!(code == 403 && challenge.unwrap().contains("insufficient_scope"));
        assert_eq!(status(Unauthenticated::NotTheProxy), (403, None));
    }
}
