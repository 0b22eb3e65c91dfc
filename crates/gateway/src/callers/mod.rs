//! Callers over HTTP: their proof, and the response if it is missing.

pub(crate) mod caller;
mod challenge;
mod ended_keys;
pub(crate) mod forwarded;
#[cfg(feature = "teams")]
pub(crate) mod oidc;
pub(crate) mod resource;
#[cfg(feature = "teams")]
mod shown_tokens;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
#[cfg(feature = "teams")]
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
#[cfg(feature = "teams")]
use mcp_elicit_inbox::api_tokens::{self, TokenOwner};
use mcp_elicit_inbox::api_tokens::{ApiTokens, BearerError, Scope, TokenRejection, bearer};
#[cfg(feature = "teams")]
use mcp_elicit_oidc::AccessTokenError;
#[cfg(feature = "teams")]
use mcp_elicit_policy::people::People;
use mcp_elicit_record::audit::{Details, Event};
use mcp_elicit_record::clock::now;
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::refusals::Refusals;
use mcp_elicit_record::{IdentityKey, Record};
use mcp_elicit_relay::AccessNumber;

pub(crate) use caller::{ProofKind, ProvenCaller, SessionCaller};
#[cfg(feature = "teams")]
use shown_tokens::TokenState;

use crate::config::{Auth, ProxyAuth};
use crate::headers::only_text;
use crate::runtime::StartError;
use crate::transports::http_upstream::TokenExchange;

/// The longest subject that a proxy may name, in bytes.
const LONGEST_SUBJECT: usize = 255;

/// The longest mail address of a caller, in bytes.
const LONGEST_MAIL: usize = 320;

/// The longest list of a caller's groups, in bytes.
const LONGEST_GROUPS: usize = 8 * 1024;

/// The callers of a gateway: their proof, and refusals.
#[derive(Debug)]
pub(crate) struct Callers {
    proof: Proof,
    /// The API keys, and the blocked callers.
    tokens: ApiTokens,
    /// The issuer at which people log in.
    logs_in: Option<String>,
    /// Refused requests, by their reasons.
    refused: Mutex<BTreeMap<&'static str, Refusals>>,
}

/// The proof that distinguishes callers.
#[derive(Debug)]
enum Proof {
    /// Their credentials, which are not checked.
    Unverified(IdentityKey),
    /// API keys.
    Keys,
    /// The header of a trusted proxy.
    Proxy(ProxyAuth),
    /// The access tokens of an issuer.
    #[cfg(feature = "teams")]
    Oidc(Box<oidc::OidcCallers>),
}

/// The reason why a request has no valid caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unauthenticated {
    /// It carries no key.
    #[error("send `Authorization: Bearer` with a key that `mcp-elicit tokens make` made")]
    NoKey,
    /// An operator has blocked the caller.
    #[error("this caller is blocked")]
    Blocked,
    /// Ambiguous: two readers could see two callers.
    #[error("a request carries one `Authorization` header")]
    Ambiguous,
    /// It carries no access token.
    #[cfg(feature = "teams")]
    #[error("authorization required")]
    NoToken,
    /// The access token is invalid, or cannot be checked.
    #[cfg(feature = "teams")]
    #[error("{0}")]
    Token(#[from] AccessTokenError),
    /// The key is invalid.
    #[error("{0}")]
    Key(#[from] TokenRejection),
    /// It did not come through the proxy.
    #[error("requests come through the proxy")]
    NotTheProxy,
    /// The proxy named no subject, or two.
    #[error("the proxy names one caller")]
    NoSubject,
}

/// The answer to the question if the caller of a session may still be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionStanding {
    /// It may.
    Valid,
    /// The record cannot be read now. Nothing of the caller's ends.
    Unknown,
    /// It may with another proof, and collect its results: its access token has expired.
    MayComeBack,
    /// It may not.
    Ended,
}

/// The access tokens of a session that have ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EndedTokens {
    /// Those that were revoked.
    pub(crate) revoked: Vec<AccessNumber>,
    /// Those that have expired while open calls came with them.
    pub(crate) expired: Vec<AccessNumber>,
}

/// The answer to the question if a caller may still be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerStanding {
    /// It may.
    Valid,
    /// It may not: its key or token has ended, or it is blocked.
    Ended,
    /// The record cannot be read now. Nothing of the caller's goes on, and nothing ends.
    Unknown,
}

impl Unauthenticated {
    /// Returns the word for the audit; `None` for reasons that say nothing about a caller: a client without a proof, or
    /// with an expired access token, gets a new one, and an issuer may be down.
    pub(crate) fn word(self) -> Option<&'static str> {
        Some(match self {
            Self::NoKey | Self::Key(TokenRejection::Unreadable) => return None,
            Self::Blocked => "blocked",
            Self::Ambiguous => "ambiguous",
            Self::Key(TokenRejection::Unknown) => "unknown-key",
            Self::Key(TokenRejection::Revoked) => "revoked-key",
            Self::Key(TokenRejection::Expired) => "expired-key",
            Self::Key(TokenRejection::Scope(_)) => "wrong-scope",
            Self::NotTheProxy => "not-the-proxy",
            Self::NoSubject => "no-subject",
            #[cfg(feature = "teams")]
            Self::NoToken => return None,
            #[cfg(feature = "teams")]
            Self::Token(error) => match error {
                AccessTokenError::Unavailable { .. } | AccessTokenError::Expired => return None,
                AccessTokenError::Scope => "wrong-scope",
                AccessTokenError::Invalid(_) => "invalid-token",
            },
        })
    }
}

impl From<BearerError> for Unauthenticated {
    fn from(error: BearerError) -> Self {
        match error {
            BearerError::Missing => Self::NoKey,
            BearerError::Ambiguous => Self::Ambiguous,
        }
    }
}

impl Callers {
    /// Creates the callers of this configuration. `logs_in` is the issuer at which people log in.
    ///
    /// # Errors
    /// If the configuration does not allow checking callers.
    pub(crate) fn new(
        auth: &Auth,
        logs_in: Option<&str>,
        tokens: ApiTokens,
        key: &IdentityKey,
    ) -> Result<Self, StartError> {
        let logs_in = logs_in.map(str::to_owned);
        let proof = match auth {
            Auth::None => Proof::Unverified(key.clone()),
            Auth::Keys => Proof::Keys,
            Auth::Proxy(proxy) => Proof::Proxy(proxy.clone()),
            #[cfg(feature = "teams")]
            Auth::Oidc(settings) => {
                let callers = oidc::OidcCallers::new(settings, logs_in.clone());
                Proof::Oidc(Box::new(callers.map_err(|error| StartError::Auth {
                    why: error.to_string(),
                })?))
            }
            #[cfg(not(feature = "teams"))]
            Auth::Oidc(_) => {
                let why = "this build cannot check access tokens".to_owned();
                return Err(StartError::Auth { why });
            }
        };
        Ok(Self {
            proof,
            tokens,
            logs_in,
            refused: Mutex::default(),
        })
    }

    /// Returns a task that withdraws the questions of callers with ended keys; `None` if callers have no keys.
    pub(crate) fn withdrawing(
        &self,
        tokens: ApiTokens,
        record: Arc<Record>,
    ) -> Option<impl Future<Output = ()> + Send + 'static + use<>> {
        self.take_keys()
            .then(|| ended_keys::withdraw_questions(tokens, record))
    }

    /// Returns the keys for people who are not among these, each by its id with the name.
    #[cfg(feature = "teams")]
    pub(crate) fn keys_of_strangers(&self, people: &People) -> Vec<(String, String)> {
        if !self.take_keys() {
            return Vec::new();
        }
        // An unreadable file is reported when a key is checked.
        let tokens = self.tokens.list().unwrap_or_default().into_iter();
        let valid = tokens.filter(|token| token.is_valid(now()) && token.permits(Scope::Call));
        let of_strangers = valid.filter_map(|token| match &token.owner {
            Some(TokenOwner::Person(person)) if !people.is_person(person) => {
                Some((token.id.clone(), person.clone()))
            }
            Some(TokenOwner::Person(_) | TokenOwner::Nobody) | None => None,
        });
        of_strangers.collect()
    }

    /// Records a refused request to a server in the audit and the log. Anyone can send those, so each reason has a
    /// limit per minute, and nothing of the request is recorded.
    pub(crate) async fn note_refused(
        &self,
        record: &Record,
        server: &str,
        refused: Unauthenticated,
    ) {
        let Some(reason) = refused.word() else {
            tracing::debug!(%server, %refused, "a request without a caller");
            return;
        };
        let left_out = {
            let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(reason).or_default().count(now())
        };
        let Some(left_out) = left_out else {
            return;
        };
        let mode = self.mode();
        tracing::warn!(%server, mode, reason, left_out, "a caller was refused");
        let details = Details {
            server: Some(server),
            mode: Some(mode),
            reason: Some(reason),
            left_out,
            ..Details::default()
        };
        let noted = record.audit_details(Event::CallerRefused, &details);
        if let Err(fault) = noted.await {
            tracing::error!(%fault, "a refused caller could not be written into the audit");
        }
    }

    /// Returns the name of the kind of proof.
    fn mode(&self) -> &'static str {
        match &self.proof {
            Proof::Unverified(_) => "none",
            Proof::Keys => "keys",
            Proof::Proxy(_) => "proxy",
            #[cfg(feature = "teams")]
            Proof::Oidc(_) => "oidc",
        }
    }

    /// Returns `true` if callers may use API keys.
    fn take_keys(&self) -> bool {
        match &self.proof {
            Proof::Unverified(_) | Proof::Proxy(_) => false,
            Proof::Keys => true,
            #[cfg(feature = "teams")]
            Proof::Oidc(callers) => callers.settings().takes_keys,
        }
    }

    /// Creates callers without proof, none of them blocked.
    #[cfg(test)]
    pub(crate) fn unverified(key: &IdentityKey) -> Self {
        let nowhere = mcp_elicit_inbox::state_folder::StateFolder::at(std::path::Path::new(""));
        Self {
            proof: Proof::Unverified(key.clone()),
            tokens: nowhere.api_tokens(),
            logs_in: None,
            refused: Mutex::default(),
        }
    }

    /// Returns the caller of a request with these headers, from this address, to one of these resources.
    ///
    /// # Errors
    /// If it has no valid caller, or a blocked one.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
        resources: &[String],
    ) -> Result<ProvenCaller, Unauthenticated> {
        let caller = self.proven(headers, from, resources).await?;
        let is_subject = caller.kind() == ProofKind::Subject;
        if is_subject && self.tokens.is_blocked(caller.issuer(), caller.subject()) {
            return Err(Unauthenticated::Blocked);
        }
        Ok(caller)
    }

    #[cfg_attr(
        not(feature = "teams"),
        expect(clippy::unused_async, reason = "an issuer may have to be asked")
    )]
    async fn proven(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
        resources: &[String],
    ) -> Result<ProvenCaller, Unauthenticated> {
        #[cfg(not(feature = "teams"))]
        let _ = resources;
        match &self.proof {
            Proof::Unverified(key) => {
                Ok(ProvenCaller::unverified(match headers.get(AUTHORIZATION) {
                    None => Principal::Anonymous.to_string(),
                    Some(value) => key.caller(value.as_bytes()),
                }))
            }
            Proof::Keys => self.of_key(bearer(headers)?),
            #[cfg(feature = "teams")]
            Proof::Oidc(callers) => {
                let token = bearer(headers).map_err(|refused| match refused {
                    BearerError::Missing => Unauthenticated::NoToken,
                    BearerError::Ambiguous => Unauthenticated::Ambiguous,
                })?;
                if callers.settings().takes_keys && api_tokens::has_prefix(token) {
                    return self.of_key(token);
                }
                Ok(callers.identify(token, resources, now()).await?)
            }
            Proof::Proxy(proxy) => {
                if !from.is_some_and(|from| proxy.trusts(from)) {
                    return Err(Unauthenticated::NotTheProxy);
                }
                // Visible ASCII, as in OpenID Connect: no characters that a person could misread.
                let only = |name: &HeaderName, longest| {
                    only_text(headers, name)
                        .filter(|value| value.len() <= longest && !value.contains('\t'))
                        .ok_or(Unauthenticated::NoSubject)
                };
                let optional = |name: Option<&HeaderName>, longest| {
                    name.filter(|name| headers.contains_key(*name))
                        .map_or(Ok(""), |name| only(name, longest))
                };
                let subject = only(proxy.subject_header(), LONGEST_SUBJECT)?;
                let mail = optional(proxy.mail_header(), LONGEST_MAIL)?;
                let groups = optional(proxy.groups_header(), LONGEST_GROUPS)?;
                // A comma means two headers joined by another proxy.
                if subject.is_empty() || subject.contains(',') || mail.contains(',') {
                    return Err(Unauthenticated::NoSubject);
                }
                let logs_in = self.logs_in.as_deref();
                let mut caller = ProvenCaller::of_subject(proxy.issuer(), subject, logs_in);
                mail.clone_into(&mut caller.mail);
                let groups = groups.split(',').map(str::trim);
                let groups = groups.filter(|group| !group.is_empty());
                caller.claims = groups.map(str::to_owned).collect();
                Ok(caller)
            }
        }
    }

    /// Returns the caller with this key.
    fn of_key(&self, key: &str) -> Result<ProvenCaller, Unauthenticated> {
        let token = self.tokens.check(key, Scope::Call, now())?;
        Ok(ProvenCaller::of_key(&token))
    }

    fn standing_of_key(&self, caller: &str) -> CallerStanding {
        let Some(Principal::Key(id)) = Principal::parse(caller) else {
            return CallerStanding::Ended;
        };
        match self.tokens.read_valid(id, Scope::Call, now()) {
            Ok(Some(_)) => CallerStanding::Valid,
            Ok(None) => CallerStanding::Ended,
            Err(_) => CallerStanding::Unknown,
        }
    }

    /// Returns the standing of a caller whose own proof is valid, as the list of blocked callers has it.
    fn standing_unless_blocked(&self, caller: &str) -> CallerStanding {
        let Some(Principal::Subject { issuer, subject }) = Principal::parse(caller) else {
            return CallerStanding::Valid;
        };
        match self.tokens.read_blocked(&issuer, &subject) {
            Ok(false) => CallerStanding::Valid,
            Ok(true) => CallerStanding::Ended,
            Err(_) => CallerStanding::Unknown,
        }
    }

    /// Returns `true` if this caller, a subject of an issuer, is blocked.
    fn is_blocked(&self, caller: &str) -> bool {
        matches!(
            Principal::parse(caller),
            Some(Principal::Subject { issuer, subject }) if self.tokens.is_blocked(&issuer, &subject)
        )
    }

    /// Returns whether this caller may still be served: it is not blocked, and its key or token was not revoked and has not
    /// expired.
    pub(crate) fn standing(&self, caller: &ProvenCaller) -> CallerStanding {
        #[cfg(feature = "teams")]
        if caller
            .token()
            .is_some_and(|token| token.state(now()) != TokenState::Valid)
        {
            return CallerStanding::Ended;
        }
        self.standing_in_record(caller)
    }

    /// Returns the same according to the record, which has no access tokens.
    fn standing_in_record(&self, caller: &ProvenCaller) -> CallerStanding {
        match &self.proof {
            Proof::Unverified(_) => CallerStanding::Valid,
            Proof::Proxy(_) => self.standing_unless_blocked(caller.binding()),
            Proof::Keys => self.standing_of_key(caller.binding()),
            #[cfg(feature = "teams")]
            Proof::Oidc(callers) => {
                if callers.settings().takes_keys && caller.kind() == ProofKind::Key {
                    self.standing_of_key(caller.binding())
                } else if caller.token().is_some() {
                    self.standing_unless_blocked(caller.binding())
                } else {
                    CallerStanding::Ended
                }
            }
        }
    }

    /// Returns whether the caller of a session may still be served, and whether it may return. `known` has the standings of
    /// callers in the record, each of which is looked up once.
    pub(crate) fn standing_of_session(
        &self,
        caller: &SessionCaller,
        known: &mut HashMap<String, CallerStanding>,
    ) -> SessionStanding {
        let opened_by = caller.opened_by();
        let mut in_record = || {
            let known = known.entry(opened_by.binding().to_owned());
            *known.or_insert_with(|| self.standing_in_record(opened_by))
        };
        #[cfg(feature = "teams")]
        if self.has_tokens(caller) {
            return match (state_of_session(caller), in_record()) {
                (TokenState::Revoked, _) | (_, CallerStanding::Ended) => SessionStanding::Ended,
                (TokenState::Expired, _) => SessionStanding::MayComeBack,
                (TokenState::Valid, CallerStanding::Unknown) => SessionStanding::Unknown,
                (TokenState::Valid, CallerStanding::Valid) => SessionStanding::Valid,
            };
        }
        match in_record() {
            CallerStanding::Valid => SessionStanding::Valid,
            CallerStanding::Unknown => SessionStanding::Unknown,
            // It was let in again meanwhile.
            CallerStanding::Ended
                if matches!(self.proof, Proof::Proxy(_))
                    && !self.is_blocked(opened_by.binding()) =>
            {
                SessionStanding::MayComeBack
            }
            CallerStanding::Ended => SessionStanding::Ended,
        }
    }

    /// Returns the tokens of a session that have ended. Open calls came with those `at_work`.
    #[cfg_attr(
        not(feature = "teams"),
        expect(clippy::unused_self, reason = "callers may have tokens")
    )]
    pub(crate) fn take_ended_tokens(
        &self,
        caller: &SessionCaller,
        at_work: &BTreeSet<AccessNumber>,
    ) -> EndedTokens {
        #[cfg(feature = "teams")]
        if self.has_tokens(caller) {
            return caller.tokens().take_ended(at_work, now());
        }
        let _ = (caller, at_work);
        EndedTokens::default()
    }

    /// Returns `true` if access tokens prove the caller of a session.
    #[cfg(feature = "teams")]
    fn has_tokens(&self, caller: &SessionCaller) -> bool {
        matches!(self.proof, Proof::Oidc(_)) && caller.opened_by().token().is_some()
    }

    /// Checks that this authenticated caller may still be served.
    ///
    /// # Errors
    /// If it may not.
    pub(crate) fn check_again(&self, caller: &ProvenCaller) -> Result<(), Unauthenticated> {
        Err(match self.standing(caller) {
            CallerStanding::Valid => return Ok(()),
            CallerStanding::Unknown => Unauthenticated::Key(TokenRejection::Unreadable),
            CallerStanding::Ended if self.is_blocked(caller.binding()) => Unauthenticated::Blocked,
            CallerStanding::Ended => Unauthenticated::Key(TokenRejection::Revoked),
        })
    }

    /// Returns a caller that another gateway has authenticated, with what the record says here of its key: the owner, by
    /// whom rules judge, does not come from the other gateway.
    ///
    /// # Errors
    /// If it may not be served.
    pub(crate) fn forwarded(
        &self,
        caller: ProvenCaller,
        headers: &HeaderMap,
    ) -> Result<ProvenCaller, Unauthenticated> {
        #[cfg(feature = "teams")]
        let caller = self.with_token(caller, headers);
        #[cfg(not(feature = "teams"))]
        let _ = headers;
        self.check_again(&caller)?;
        if caller.kind() != ProofKind::Key {
            return Ok(caller);
        }
        let token = self.tokens.read_valid(caller.subject(), Scope::Call, now());
        let token = token.map_err(|_| Unauthenticated::Key(TokenRejection::Unreadable))?;
        let token = token.ok_or(Unauthenticated::Key(TokenRejection::Revoked))?;
        Ok(ProvenCaller::of_key(&token))
    }

    /// Returns the issuer at which people log in.
    pub(crate) fn logs_in(&self) -> Option<&str> {
        self.logs_in.as_deref()
    }

    /// Returns `true` if a gateway that serves a session asks an issuer about the tokens of its caller.
    pub(crate) fn asks_about_tokens(&self) -> bool {
        self.asks_before_delivery()
    }

    /// Returns a caller that another gateway has authenticated, with its token if that was sent.
    #[cfg(feature = "teams")]
    fn with_token(&self, mut caller: ProvenCaller, headers: &HeaderMap) -> ProvenCaller {
        if let Proof::Oidc(callers) = &self.proof
            && caller.kind() == ProofKind::Subject
        {
            callers.add_token(&mut caller, bearer(headers).ok(), now());
        }
        caller
    }

    /// Asks the issuer again about the tokens of these sessions, with the tokens of their open calls, if it may have revoked
    /// them.
    #[cfg(feature = "teams")]
    pub(crate) async fn ask_again(
        &self,
        sessions: Vec<(Arc<SessionCaller>, BTreeSet<AccessNumber>)>,
    ) {
        if let Proof::Oidc(callers) = &self.proof {
            let tokens = sessions.iter();
            let tokens =
                tokens.flat_map(|(caller, at_work)| caller.tokens().to_ask(at_work, now()));
            // A token may be in several sessions.
            let tokens: HashMap<usize, _> = tokens
                .map(|token| (Arc::as_ptr(&token).addr(), token))
                .collect();
            let tokens = tokens.values();
            let asked = tokens.map(|token| callers.ask_again(token, oidc::ASK_AGAIN, now()));
            futures::future::join_all(asked).await;
        }
    }

    /// Returns `true` if an issuer is asked before a caller collects people's answers.
    pub(crate) fn asks_before_delivery(&self) -> bool {
        match &self.proof {
            Proof::Unverified(_) | Proof::Proxy(_) | Proof::Keys => false,
            #[cfg(feature = "teams")]
            Proof::Oidc(callers) => callers.asks(),
        }
    }

    /// Returns `true` if people's answers may be delivered to the calls of this session that came with these tokens, and that
    /// may have to be made again for the results.
    pub(crate) fn may_collect(&self, caller: &SessionCaller, accesses: &[AccessNumber]) -> bool {
        #[cfg(feature = "teams")]
        if self.has_tokens(caller) {
            let none = [AccessNumber::default()];
            let mut accesses = if accesses.is_empty() { &none } else { accesses }.iter();
            let state = |number: &AccessNumber| caller.tokens().state(*number, now());
            return accesses.all(|number| state(number) != TokenState::Revoked)
                && !self.is_blocked(caller.opened_by().binding());
        }
        let _ = accesses;
        self.standing(caller.opened_by()) == CallerStanding::Valid
    }

    /// Returns the same after asking the caller's issuer. An unreachable issuer revokes nothing.
    #[cfg_attr(
        not(feature = "teams"),
        expect(clippy::unused_async, reason = "an issuer may have to be asked")
    )]
    pub(crate) async fn may_collect_now(
        &self,
        caller: &SessionCaller,
        accesses: &[AccessNumber],
    ) -> bool {
        #[cfg(feature = "teams")]
        if let Proof::Oidc(callers) = &self.proof {
            let accesses = accesses.iter().copied().collect();
            let tokens = caller.tokens().to_ask(&accesses, now());
            let tokens = tokens.iter();
            let asked = tokens.map(|token| callers.ask_again(token, Duration::ZERO, now()));
            futures::future::join_all(asked).await;
        }
        self.may_collect(caller, accesses)
    }

    /// Returns the exchange of callers' tokens for those of this resource; `None` if callers have none.
    pub(crate) fn token_exchange(
        &self,
        resource: &str,
        scopes: &[String],
    ) -> Option<Arc<TokenExchange>> {
        #[cfg(not(feature = "teams"))]
        let _ = (resource, scopes);
        match &self.proof {
            Proof::Unverified(_) | Proof::Proxy(_) | Proof::Keys => None,
            #[cfg(feature = "teams")]
            Proof::Oidc(callers) => {
                // Checked when the callers' own checks were created from it.
                let provider = oidc::provider(callers.settings()).ok()?;
                let (resource, scopes) = (resource.to_owned(), scopes.to_vec());
                Some(TokenExchange::new(provider, resource, scopes))
            }
        }
    }

    /// Returns the scopes that a caller has to request, and the issuer; `None` if callers have no access tokens.
    pub(crate) fn issuer(&self) -> Option<(&[String], &str)> {
        match &self.proof {
            Proof::Unverified(_) | Proof::Proxy(_) | Proof::Keys => None,
            #[cfg(feature = "teams")]
            Proof::Oidc(callers) => {
                let settings = callers.settings();
                Some((&settings.scopes, &settings.issuer))
            }
        }
    }

    /// Returns the issuer of callers, and the reason why it cannot be used now; `None` if it can, or if there is none.
    #[cfg(feature = "teams")]
    pub(crate) async fn fault_of_issuer(&self) -> Option<(&str, String)> {
        match &self.proof {
            Proof::Unverified(_) | Proof::Proxy(_) | Proof::Keys => None,
            Proof::Oidc(callers) => {
                let fault = callers.fault_of_issuer(now()).await?;
                Some((&callers.settings().issuer, fault))
            }
        }
    }

    /// Returns `true` if a caller can become invalid while it is being served.
    pub(crate) fn can_be_revoked(&self) -> bool {
        !matches!(self.proof, Proof::Unverified(_))
    }

    /// Returns `true` if credentials of a request are meant for the server: those of authenticated callers are for the
    /// gateway only.
    pub(crate) fn forwards_credentials(&self) -> bool {
        matches!(self.proof, Proof::Unverified(_))
    }
}

/// Returns the state of the tokens of a session: requests without one are judged one by one.
#[cfg(feature = "teams")]
fn state_of_session(caller: &SessionCaller) -> TokenState {
    if caller.is_of_one_client() {
        caller.tokens().state(AccessNumber::default(), now())
    } else {
        TokenState::Valid
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_inbox::state_folder::StateFolder;

    use http::HeaderValue;
    use http::header::WWW_AUTHENTICATE;

    #[cfg(feature = "teams")]
    use mcp_elicit_policy::CallingPerson;

    use super::caller::ProofKind;
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

    /// Identifies without waiting: no issuer is asked.
    fn identify(
        callers: &Callers,
        headers: &HeaderMap,
        from: Option<IpAddr>,
    ) -> Result<ProvenCaller, Unauthenticated> {
        futures::FutureExt::now_or_never(callers.identify(headers, from, &[])).unwrap()
    }

    fn callers(folder: &tempfile::TempDir, proof: Proof) -> Callers {
        Callers {
            proof,
            tokens: StateFolder::at(folder.path()).api_tokens(),
            logs_in: None,
            refused: Mutex::default(),
        }
    }

    fn proxy(folder: &tempfile::TempDir) -> Callers {
        let text = "listen = \"0.0.0.0:1\"\ntrusted-proxies = [\"10.0.0.0/8\"]\n[auth]\nmode = \"proxy\"\n[servers.s]\ncommand = [\"true\"]";
        let Auth::Proxy(proxy) = Config::parse(text).unwrap().auth else {
            panic!("mode = proxy");
        };
        callers(folder, Proof::Proxy(proxy))
    }

    #[test]
    fn a_key_is_one_caller_until_it_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = StateFolder::at(folder.path()).api_tokens();
        let (token, text) = tokens.make("ci", &[Scope::Call], None, now()).unwrap();
        let (_, lists) = tokens.make("bot", &[Scope::List], None, now()).unwrap();
        let callers = callers(&folder, Proof::Keys);
        let with = |value: &str| {
            let caller = identify(&callers, &headers(&[("authorization", value)]), None);
            caller.map(|caller| caller.binding().to_owned())
        };
        let caller = with(&format!("Bearer {text}")).unwrap();
        assert_eq!(caller, format!("key-{}", token.id));
        assert_eq!(with(&format!("bearer  {text}")), Ok(caller.clone()));
        let is_valid = |id: &str| {
            let caller = ProvenCaller::of_key_id(id);
            callers.standing(&caller) == CallerStanding::Valid
        };
        assert!(is_valid(&token.id) && !is_valid("000000000000"));
        let anonymous = ProvenCaller::unverified("anonymous".to_owned());
        assert_eq!(callers.standing(&anonymous), CallerStanding::Ended);
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
        assert!(tokens.revoke(&token.id, now()).unwrap());
        assert_eq!(
            with(&both),
            Err(Unauthenticated::Key(TokenRejection::Revoked))
        );
        assert!(!is_valid(&token.id));
    }

    /// The other gateway says which key it was; whose it is, the record says here.
    #[cfg(feature = "teams")]
    #[test]
    fn a_key_that_another_gateway_has_seen_has_its_owner_here() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = StateFolder::at(folder.path()).api_tokens();
        let ada = Some(TokenOwner::Person("ada".to_owned()));
        let (token, text) = tokens
            .make_for("hers", &[Scope::Call], None, ada, now())
            .unwrap();
        let callers = callers(&folder, Proof::Keys);
        let bearer = format!("Bearer {text}");
        let here = identify(&callers, &headers(&[("authorization", &bearer)]), None).unwrap();
        let sent = forwarded::to_header(&here).unwrap();
        let came = || forwarded::from_header(&sent, None).unwrap();
        let known = callers.forwarded(came(), &HeaderMap::new()).unwrap();
        assert!(
            known == here && matches!(known.person(), CallingPerson::Owner(name) if name == "ada")
        );
        assert!(tokens.revoke(&token.id, now()).unwrap());
        let revoked = callers.forwarded(came(), &HeaderMap::new()).err();
        assert_eq!(revoked, Some(Unauthenticated::Key(TokenRejection::Revoked)));
    }

    #[tokio::test]
    async fn refused_callers_are_written_down_so_often_a_minute_for_each_reason() {
        let folder = tempfile::tempdir().unwrap();
        let callers = callers(&folder, Proof::Keys);
        let store = Arc::new(mcp_elicit_record::store::Memory::default());
        let keys = mcp_elicit_record::OwnKeys::random().unwrap();
        let lease = mcp_elicit_record::LockFile::unshared().unwrap();
        let record = Record::new(store, keys, lease, || {
            mcp_elicit_core::lifecycle::Timestamp::from_millis(1_000)
        });
        for _ in 0..50 {
            let refused = Unauthenticated::Key(TokenRejection::Unknown);
            callers.note_refused(&record, "s", refused).await;
        }
        // Reasons that say nothing about a caller are not among them, and a flood hides no other reason.
        callers
            .note_refused(&record, "s", Unauthenticated::NoKey)
            .await;
        callers
            .note_refused(&record, "s", Unauthenticated::Blocked)
            .await;
        let all = mcp_elicit_record::audit::read(record.store())
            .await
            .unwrap();
        let of = |reason: &str| {
            let all = all.iter();
            all.filter(|link| link.entry.contains(reason)).count()
        };
        assert_eq!((of("unknown-key"), of("blocked")), (30, 1));
        assert_eq!(all.len(), 31);
    }

    #[test]
    fn a_proxy_is_believed_from_its_address_only_and_names_one_caller() {
        let folder = tempfile::tempdir().unwrap();
        let callers = proxy(&folder);
        let inside = Some("10.0.0.7".parse().unwrap());
        let one = headers(&[("x-forwarded-user", "alice")]);
        let caller = identify(&callers, &one, inside).unwrap();
        assert_eq!(caller.binding(), r#"["proxy","alice"]"#);
        assert_eq!(
            (caller.kind(), caller.issuer(), caller.subject()),
            (ProofKind::Subject, "proxy", "alice")
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
    fn a_proxy_names_mail_and_groups_where_it_is_said_in_which_headers() {
        let folder = tempfile::tempdir().unwrap();
        let text = "listen = \"127.0.0.1:0\"\ntrusted-proxies = [\"10.0.0.0/8\"]\n[auth]\nmode = \"proxy\"\n[auth.proxy]\n\
                    mail-header = \"X-Mail\"\ngroups-header = \"X-Groups\"\n[servers.s]\ncommand = [\"s\"]";
        let Auth::Proxy(settings) = Config::parse(text).unwrap().auth else {
            panic!("not a proxy");
        };
        let with = callers(&folder, Proof::Proxy(settings));
        let inside = Some("10.0.0.7".parse().unwrap());
        let alice = ("x-forwarded-user", "alice");
        let all = headers(&[
            alice,
            ("x-mail", "a@example.com"),
            ("x-groups", "ops, leads,,"),
        ]);
        let caller = identify(&with, &all, inside).unwrap();
        assert_eq!(caller.mail(), "a@example.com");
        assert_eq!(caller.claims(), ["ops", "leads"]);
        let none = identify(&with, &headers(&[alice]), inside).unwrap();
        assert!(none.mail().is_empty() && none.claims().is_empty());
        // Without the settings, anyone can send headers of these names.
        let without = identify(&proxy(&folder), &all, inside).unwrap();
        assert!(without.mail().is_empty() && without.claims().is_empty());
        for wrong in [
            headers(&[
                alice,
                ("x-mail", "a@example.com"),
                ("x-mail", "b@example.com"),
            ]),
            headers(&[alice, ("x-mail", "a@example.com,b@example.com")]),
            headers(&[alice, ("x-groups", "ops"), ("x-groups", "admin")]),
        ] {
            let refused = identify(&with, &wrong, inside);
            assert_eq!(refused, Err(Unauthenticated::NoSubject));
        }
    }

    #[test]
    fn a_caller_that_is_blocked_is_refused_until_it_is_let_in_again() {
        let folder = tempfile::tempdir().unwrap();
        let callers = proxy(&folder);
        let tokens = StateFolder::at(folder.path()).api_tokens();
        let inside = Some("10.0.0.7".parse().unwrap());
        let of = |name: &str| {
            let caller = identify(&callers, &headers(&[("x-forwarded-user", name)]), inside);
            caller.map(SessionCaller::new)
        };
        let alice = of("alice").unwrap();
        let standing = || callers.standing_of_session(&alice, &mut HashMap::new());
        let is_valid = || standing() == SessionStanding::Valid;
        // The same subject of another issuer is another caller.
        assert!(tokens.block("other", "alice", now()).unwrap());
        assert!(of("alice").is_ok() && is_valid());
        let mut known = HashMap::new();
        callers.standing_of_session(&alice, &mut known);
        assert!(tokens.block("proxy", "alice", now()).unwrap());
        // The record is asked about each caller once, not about each session.
        let again = callers.standing_of_session(&alice, &mut known);
        assert_eq!((again, known.len()), (SessionStanding::Valid, 1));
        assert!(!tokens.block("proxy", "alice", now()).unwrap());
        assert_eq!(of("alice").err(), Some(Unauthenticated::Blocked));
        assert!(of("bob").is_ok());
        assert_eq!(standing(), SessionStanding::Ended);
        assert_eq!(
            callers.check_again(alice.opened_by()),
            Err(Unauthenticated::Blocked)
        );
        assert!(tokens.unblock("proxy", "alice").unwrap());
        assert!(!tokens.unblock("proxy", "alice").unwrap());
        assert!(of("alice").is_ok() && is_valid());
    }

    #[test]
    fn no_name_of_a_caller_can_be_put_together_from_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let callers = proxy(&folder);
        let inside = Some("10.0.0.7".parse().unwrap());
        let caller_of = |name: &str| {
            let headers = headers(&[("x-forwarded-user", name)]);
            let caller = identify(&callers, &headers, inside).unwrap();
            caller.binding().to_owned()
        };
        let names = ["alice", "\"]alice", "key-1", "anonymous", "local"];
        let callers: BTreeSet<_> = names.iter().map(|name| caller_of(name)).collect();
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
