//! Callers over HTTP: the proof of who sent a request, and the response where there is none.

pub(crate) mod caller;
mod challenge;
#[cfg(feature = "teams")]
pub(crate) mod oidc;
pub(crate) mod resource;

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use mcp_elicit_inbox::api_tokens;
use mcp_elicit_inbox::api_tokens::{ApiTokens, Scope, TokenRejection};
use mcp_elicit_record::IdentityKey;
use mcp_elicit_record::clock::now;

pub(crate) use caller::{Caller, CallerKind, CallingPerson, CurrentCaller};

use crate::config::{Auth, ProxyAuth};
use crate::runtime::StartError;
use crate::transports::http_upstream::TokenExchange;

/// The longest subject that a proxy may name, in bytes.
const LONGEST_SUBJECT: usize = 255;

/// The rule by which callers are told apart.
#[derive(Debug)]
pub(crate) enum Callers {
    /// By the credentials that they carry, which are not checked.
    Unverified(IdentityKey),
    /// By API keys.
    Keys(ApiTokens),
    /// By the header of a trusted proxy. Holds the issuer at which people log in, too.
    Proxy(ProxyAuth, Option<String>),
    /// By the access tokens of an issuer.
    #[cfg(feature = "teams")]
    Oidc(Box<oidc::OidcCallers>),
}

/// Why a request is not a caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unauthenticated {
    /// It carries no key.
    #[error("send `Authorization: Bearer` with a key that `mcp-elicit tokens make` made")]
    NoKey,
    /// Two readers could see two callers.
    #[error("a request carries one `Authorization` header")]
    Ambiguous,
    /// It carries no access token.
    #[cfg(feature = "teams")]
    #[error("authorization required")]
    NoToken,
    /// The access token is not one that is valid, or cannot be checked.
    #[cfg(feature = "teams")]
    #[error("{0}")]
    Token(#[from] mcp_elicit_oidc::TokenError),
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
    /// The rule of this configuration. `logs_in` is the issuer at which people log in.
    ///
    /// # Errors
    /// When callers cannot be checked by it.
    pub(crate) fn new(
        auth: &Auth,
        logs_in: Option<&str>,
        tokens: ApiTokens,
        key: &IdentityKey,
    ) -> Result<Self, StartError> {
        let logs_in = logs_in.map(str::to_owned);
        Ok(match auth {
            Auth::None => Self::Unverified(key.clone()),
            Auth::Keys => Self::Keys(tokens),
            Auth::Proxy(proxy) => Self::Proxy(proxy.clone(), logs_in),
            #[cfg(feature = "teams")]
            Auth::Oidc(settings) => {
                let callers = oidc::OidcCallers::new(settings, logs_in, tokens);
                Self::Oidc(Box::new(callers.map_err(|error| StartError::Auth {
                    why: error.to_string(),
                })?))
            }
            #[cfg(not(feature = "teams"))]
            Auth::Oidc(_) => {
                let why = "this build cannot check access tokens".to_owned();
                return Err(StartError::Auth { why });
            }
        })
    }

    /// Returns the caller of a request with these headers, from this address, to one of these resources.
    ///
    /// # Errors
    /// When it proves no caller.
    #[cfg_attr(
        not(feature = "teams"),
        expect(clippy::unused_async, reason = "an issuer may have to be asked")
    )]
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
        resources: &[String],
    ) -> Result<Caller, Unauthenticated> {
        #[cfg(not(feature = "teams"))]
        let _ = resources;
        match self {
            Self::Unverified(key) => Ok(Caller::unverified(match headers.get(AUTHORIZATION) {
                None => "anonymous".to_owned(),
                Some(value) => key.caller(value.as_bytes()),
            })),
            Self::Keys(tokens) => of_key(tokens, bearer(headers)?),
            #[cfg(feature = "teams")]
            Self::Oidc(callers) => {
                let token = bearer(headers).map_err(|refused| match refused {
                    Unauthenticated::NoKey => Unauthenticated::NoToken,
                    other => other,
                })?;
                match &callers.keys {
                    Some(keys) if api_tokens::has_prefix(token) => of_key(keys, token),
                    Some(_) | None => Ok(callers.identify(token, resources, now()).await?),
                }
            }
            Self::Proxy(proxy, logs_in) => {
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
                Ok(Caller::of_subject(
                    proxy.issuer(),
                    subject,
                    logs_in.as_deref(),
                ))
            }
        }
    }

    /// Returns `true` if this caller may still be served: one whose key was revoked, or has expired, may not.
    pub(crate) fn is_valid(&self, caller: &str) -> bool {
        match self {
            Self::Unverified(_) | Self::Proxy(..) => true,
            Self::Keys(tokens) => is_valid_key(tokens, caller),
            #[cfg(feature = "teams")]
            Self::Oidc(callers) => {
                let by_key = callers.keys.as_ref();
                by_key.is_some_and(|keys| is_valid_key(keys, caller))
                    || callers.is_valid(caller, now())
            }
        }
    }

    /// Returns `true` if a caller that may not be served now may come back with another proof, and collect what it asked for: one whose
    /// access token has expired.
    pub(crate) fn may_come_back(&self, caller: &str) -> bool {
        #[cfg(not(feature = "teams"))]
        let _ = caller;
        match self {
            Self::Unverified(_) | Self::Proxy(..) | Self::Keys(_) => false,
            #[cfg(feature = "teams")]
            Self::Oidc(callers) => callers.current(caller).is_some(),
        }
    }

    /// Returns the caller of a session, as its newest proof names it from now on.
    pub(crate) fn current(&self, caller: Caller) -> Arc<CurrentCaller> {
        match self {
            Self::Unverified(_) | Self::Proxy(..) | Self::Keys(_) => CurrentCaller::new(caller),
            #[cfg(feature = "teams")]
            Self::Oidc(callers) => callers
                .current(caller.binding())
                .unwrap_or_else(|| CurrentCaller::new(caller)),
        }
    }

    /// Asks the issuer again about the token of a caller, where it may have ended it since.
    #[cfg(feature = "teams")]
    pub(crate) async fn ask_again(&self, caller: &str) {
        if let Self::Oidc(callers) = self {
            callers.ask_again(caller, now()).await;
        }
    }

    /// Returns the exchange of callers' tokens for those of this resource; `None` where callers have none.
    pub(crate) fn token_exchange(
        &self,
        resource: &str,
        scopes: &[String],
    ) -> Option<Arc<TokenExchange>> {
        #[cfg(not(feature = "teams"))]
        let _ = (resource, scopes);
        match self {
            Self::Unverified(_) | Self::Proxy(..) | Self::Keys(_) => None,
            #[cfg(feature = "teams")]
            Self::Oidc(callers) => {
                // Checked when the callers' own checks were made of it.
                let provider = oidc::provider(callers.settings()).ok()?;
                let (resource, scopes) = (resource.to_owned(), scopes.to_vec());
                Some(TokenExchange::new(provider, resource, scopes))
            }
        }
    }

    /// Returns the scopes that a caller is told to ask for, and the issuer; `None` where callers have no access tokens.
    pub(crate) fn issuer(&self) -> Option<(&[String], &str)> {
        match self {
            Self::Unverified(_) | Self::Proxy(..) | Self::Keys(_) => None,
            #[cfg(feature = "teams")]
            Self::Oidc(callers) => {
                let settings = callers.settings();
                Some((&settings.scopes, &settings.issuer))
            }
        }
    }

    /// Returns `true` if a caller can become invalid while it is served.
    pub(crate) fn can_be_revoked(&self) -> bool {
        match self {
            Self::Unverified(_) | Self::Proxy(..) => false,
            Self::Keys(_) => true,
            #[cfg(feature = "teams")]
            Self::Oidc(_) => true,
        }
    }

    /// Returns `true` if credentials of a request are meant for the server: where callers are verified, they are meant for the
    /// gateway and go no further.
    pub(crate) fn forwards_credentials(&self) -> bool {
        matches!(self, Self::Unverified(_))
    }
}

/// Returns the caller that shows this key.
fn of_key(tokens: &ApiTokens, key: &str) -> Result<Caller, Unauthenticated> {
    let token = tokens.check(key, Scope::Call, now())?;
    Ok(Caller::of_key(&token))
}

fn is_valid_key(tokens: &ApiTokens, caller: &str) -> bool {
    let id = api_tokens::id_of_caller(caller);
    id.is_some_and(|id| tokens.is_valid(id, Scope::Call, now()))
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

    use http::HeaderValue;
    use http::header::WWW_AUTHENTICATE;

    use super::caller::CallerKind;
    use super::resource::Resource;
    use super::*;
    use crate::config::Config;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    /// Nothing here waits: no issuer is asked.
    fn identify(
        callers: &Callers,
        headers: &HeaderMap,
        from: Option<IpAddr>,
    ) -> Result<Caller, Unauthenticated> {
        futures::FutureExt::now_or_never(callers.identify(headers, from, &[])).unwrap()
    }

    fn proxy() -> Callers {
        let text = "listen = \"0.0.0.0:1\"\ntrusted-proxies = [\"10.0.0.0/8\"]\n[auth]\nmode = \"proxy\"\n[servers.s]\ncommand = [\"true\"]";
        let Auth::Proxy(proxy) = Config::parse(text).unwrap().auth else {
            panic!("mode = proxy");
        };
        Callers::Proxy(proxy, None)
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
        let with = |value: &str| {
            let caller = identify(&callers, &headers(&[("authorization", value)]), None);
            caller.map(|caller| caller.binding().to_owned())
        };
        let caller = with(&format!("Bearer {text}")).unwrap();
        assert_eq!(caller, format!("key-{}", token.id()));
        assert_eq!(with(&format!("bearer  {text}")), Ok(caller.clone()));
        assert!(
            callers.is_valid(&caller)
                && !callers.is_valid("key-000000000000")
                && !callers.is_valid("anonymous")
        );
        assert_eq!(with(&format!("Basic {text}")), Err(Unauthenticated::NoKey));
        assert_eq!(
            with("Bearer mek_x_y"),
            Err(Unauthenticated::Key(TokenRejection::Unknown))
        );
        assert_eq!(
            with(&format!("Bearer {lists}")),
            Err(Unauthenticated::Key(TokenRejection::Scope(Scope::Call)))
        );
        assert_eq!(
            identify(&callers, &HeaderMap::new(), None),
            Err(Unauthenticated::NoKey)
        );
        let both = format!("Bearer {text}");
        let two = headers(&[("authorization", &both), ("authorization", &both)]);
        assert_eq!(
            identify(&callers, &two, None),
            Err(Unauthenticated::Ambiguous)
        );
        assert!(tokens.revoke(token.id(), now()).unwrap());
        assert_eq!(
            with(&both),
            Err(Unauthenticated::Key(TokenRejection::Revoked))
        );
        assert!(!callers.is_valid(&caller));
    }

    #[test]
    fn a_proxy_is_believed_from_its_address_only_and_names_one_caller() {
        let callers = proxy();
        let inside = Some("10.0.0.7".parse().unwrap());
        let one = headers(&[("x-forwarded-user", "alice")]);
        let caller = identify(&callers, &one, inside).unwrap();
        assert_eq!(caller.binding(), r#"["proxy","alice"]"#);
        assert_eq!(
            (caller.kind(), caller.issuer(), caller.subject()),
            (CallerKind::Subject, "proxy", "alice")
        );
        for from in [None, Some("192.0.2.1".parse().unwrap())] {
            assert_eq!(
                identify(&callers, &one, from),
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
                identify(&callers, &wrong, inside),
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
            let caller = identify(&callers, &headers, inside).unwrap();
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
            let response = fault.response(&Resource::default(), None);
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
