//! The caller of a request, according to its proof.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::ProofNumber;
use mcp_elicit_inbox::api_tokens::{ApiToken, TokenOwner};
use mcp_elicit_policy::CallingPerson;
#[cfg(feature = "teams")]
use mcp_elicit_record::clock::now;
use mcp_elicit_record::principal::Principal;
use mcp_elicit_relay::StreamId;

#[cfg(feature = "teams")]
use super::shown_tokens::{CallerToken, ShownTokens};

/// The kind of a caller's proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProofKind {
    /// It proved nothing.
    Unverified,
    /// The operating system's user, over stdio.
    Local,
    /// The subject of an issuer: of a verified token, or of a trusted proxy's header.
    Subject,
    /// An API key.
    Key,
}

/// The caller of a request. Unknown parts are empty. Two are equal if their proofs say the same.
#[derive(Clone)]
pub(crate) struct ProvenCaller {
    binding: String,
    kind: ProofKind,
    person: CallingPerson,
    issuer: String,
    subject: String,
    pub(super) name: String,
    pub(super) mail: String,
    pub(super) claims: Vec<String>,
    pub(super) client: String,
    pub(super) expires_at: Option<Timestamp>,
    /// The access token that proves it.
    #[cfg(feature = "teams")]
    pub(super) token: Option<Arc<CallerToken>>,
}

impl PartialEq for ProvenCaller {
    fn eq(&self, other: &Self) -> bool {
        self.is_same_for_rules(other) && self.expires_at == other.expires_at
    }
}

impl Eq for ProvenCaller {}

impl ProvenCaller {
    /// Creates a caller without proof, under the name that distinguishes it in the record.
    pub(super) fn unverified(binding: String) -> Self {
        Self::of_kind(ProofKind::Unverified, binding)
    }

    /// Creates the user of the operating system whose client it is.
    pub(crate) fn local() -> Self {
        Self {
            subject: local_user(),
            person: CallingPerson::LocalUser,
            ..Self::of_kind(ProofKind::Local, Principal::Local.to_string())
        }
    }

    /// Creates the holder of an API key.
    pub(crate) fn of_key(key: &ApiToken) -> Self {
        Self {
            subject: key.id.clone(),
            name: key.name.clone(),
            person: match &key.owner {
                Some(TokenOwner::Person(person)) => CallingPerson::Owner(person.clone()),
                Some(TokenOwner::Nobody) => CallingPerson::Nobody,
                None => CallingPerson::Unknown,
            },
            ..Self::of_kind(ProofKind::Key, key.caller())
        }
    }

    /// Creates the holder of the API key of this id, of whose owner nothing is known.
    pub(super) fn of_key_id(id: &str) -> Self {
        Self {
            subject: id.to_owned(),
            ..Self::of_kind(ProofKind::Key, Principal::Key(id).to_string())
        }
    }

    /// Creates a subject of an issuer. `logs_in` is the issuer at which people log in: its subjects are people.
    pub(crate) fn of_subject(issuer: &str, subject: &str, logs_in: Option<&str>) -> Self {
        let binding = Principal::subject(issuer, subject).to_string();
        Self {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            person: CallingPerson::of_issuer(issuer, logs_in),
            ..Self::of_kind(ProofKind::Subject, binding)
        }
    }

    /// Creates a program that works by itself.
    #[cfg(all(test, feature = "teams"))]
    pub(crate) fn of_program(id: &str) -> Self {
        Self::of_owner(id, Some(""))
    }

    /// Creates the holder of an API key of this owner.
    #[cfg(all(test, feature = "teams"))]
    pub(crate) fn of_owner(id: &str, owner: Option<&str>) -> Self {
        Self {
            subject: id.to_owned(),
            person: CallingPerson::of_key(owner),
            ..Self::of_kind(ProofKind::Key, Principal::Key(id).to_string())
        }
    }

    /// Creates this user of the operating system.
    #[cfg(all(test, feature = "teams"))]
    pub(crate) fn of_local_user(user: &str) -> Self {
        Self {
            subject: user.to_owned(),
            ..Self::local()
        }
    }

    /// Returns the caller with the mail address and groups of its token.
    #[cfg(all(test, feature = "teams"))]
    pub(crate) fn with_token(self, mail: &str, claims: Vec<String>) -> Self {
        let mail = mail.to_owned();
        Self {
            mail,
            claims,
            ..self
        }
    }

    fn of_kind(kind: ProofKind, binding: String) -> Self {
        Self {
            binding,
            kind,
            person: CallingPerson::Unknown,
            issuer: String::new(),
            subject: String::new(),
            name: String::new(),
            mail: String::new(),
            claims: Vec::new(),
            client: String::new(),
            expires_at: None,
            #[cfg(feature = "teams")]
            token: None,
        }
    }

    /// Returns the name that distinguishes callers in the record: issuer and subject, or the id of a key; never the
    /// text of a token.
    pub(crate) fn binding(&self) -> &str {
        &self.binding
    }

    /// Returns `true` if a key, a token or a trusted proxy's header proves the caller.
    pub(crate) fn is_authenticated(&self) -> bool {
        matches!(self.kind, ProofKind::Subject | ProofKind::Key)
    }

    /// Returns the kind of proof.
    pub(crate) fn kind(&self) -> ProofKind {
        self.kind
    }

    /// Returns the facts that match the caller to the people who answer.
    pub(crate) fn person(&self) -> &CallingPerson {
        &self.person
    }

    /// Returns the issuer.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the subject at the issuer, the id of the key, or the name of the local user.
    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns `true` for a caller with a proof that may serve several users: a program whose key belongs to no person.
    pub(crate) fn may_serve_several(&self) -> bool {
        let is_person = match &self.person {
            CallingPerson::LocalUser
            | CallingPerson::Subject
            | CallingPerson::Known(_)
            | CallingPerson::Owner(_) => true,
            CallingPerson::Unknown | CallingPerson::Nobody => false,
        };
        self.is_authenticated() && !is_person
    }

    /// Returns the name for people.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the mail address, verified by the issuer or the proxy.
    pub(crate) fn mail(&self) -> &str {
        &self.mail
    }

    /// Returns the values of the groups claim.
    pub(crate) fn claims(&self) -> &[String] {
        &self.claims
    }

    /// Returns the client program, as the token names it.
    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// Returns `true` if a proof says the same of this caller, apart from the time at which it expires.
    fn is_same_for_rules(&self, other: &Self) -> bool {
        let Self {
            binding,
            kind,
            person,
            issuer,
            subject,
            name,
            mail,
            claims,
            client,
            expires_at: _,
            #[cfg(feature = "teams")]
                token: _,
        } = self;
        *binding == other.binding
            && *kind == other.kind
            && *person == other.person
            && *issuer == other.issuer
            && *subject == other.subject
            && *name == other.name
            && *mail == other.mail
            && *claims == other.claims
            && *client == other.client
    }

    /// Returns the access token that proves it, if one does.
    #[cfg(feature = "teams")]
    pub(super) fn token(&self) -> Option<&Arc<CallerToken>> {
        self.token.as_ref()
    }

    /// Returns the time at which the proof expires; `None` if it does not.
    #[cfg(feature = "teams")]
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }
}

/// Formats the kind of proof only.
impl fmt::Debug for ProvenCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvenCaller")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The caller of a session, with the proofs of its requests: rules decide about each call by the proof of the request that
/// made it. The binding never changes.
#[derive(Debug)]
pub(crate) struct SessionCaller {
    opened_by: Arc<ProvenCaller>,
    /// The proofs that differ, by their numbers; the first opened the session.
    proofs: RwLock<Vec<Arc<ProvenCaller>>>,
    #[cfg(feature = "teams")]
    tokens: ShownTokens,
}

impl SessionCaller {
    /// The most proofs that differ in more than their time: a caller has a few.
    const MOST: usize = 64;

    /// Creates the caller of one client's session, which was opened with this proof.
    pub(crate) fn new(caller: ProvenCaller) -> Arc<Self> {
        Self::create(caller, true)
    }

    /// Creates the caller of requests without a session, of which several clients may make some. The first came with this
    /// proof.
    pub(crate) fn of_any_client(caller: ProvenCaller) -> Arc<Self> {
        Self::create(caller, false)
    }

    fn create(caller: ProvenCaller, of_one_client: bool) -> Arc<Self> {
        #[cfg(not(feature = "teams"))]
        let _ = of_one_client;
        let opened_by = Arc::new(caller);
        let proofs = RwLock::new(vec![opened_by.clone()]);
        Arc::new(Self {
            opened_by,
            proofs,
            #[cfg(feature = "teams")]
            tokens: ShownTokens::new(of_one_client),
        })
    }

    /// Returns `true` if all requests are of one client.
    #[cfg(feature = "teams")]
    pub(super) fn is_of_one_client(&self) -> bool {
        self.tokens.of_one_client()
    }

    /// Returns the tokens that its requests showed.
    #[cfg(feature = "teams")]
    pub(super) fn tokens(&self) -> &ShownTokens {
        &self.tokens
    }

    /// Returns the caller according to the proof that opened the session.
    pub(crate) fn opened_by(&self) -> &ProvenCaller {
        &self.opened_by
    }

    /// Returns the caller according to each of its proofs, by their numbers.
    pub(crate) fn all(&self) -> Vec<Arc<ProvenCaller>> {
        let proofs = self.proofs.read();
        proofs.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the caller according to the proof with this number. There is no other number than those given here.
    pub(crate) fn of(&self, proof: ProofNumber) -> Arc<ProvenCaller> {
        let proofs = self.proofs.read().unwrap_or_else(PoisonError::into_inner);
        let known = proofs.get(usize::from(proof.0));
        known.unwrap_or(&self.opened_by).clone()
    }

    /// Returns the stream of the request with this number, which came with this proof; `None` if it is another caller's, or
    /// if there are too many proofs.
    pub(crate) fn stream_of(&self, number: u64, caller: &ProvenCaller) -> Option<StreamId> {
        let stream = StreamId::of_request(number, self.number_of(caller)?);
        #[cfg(feature = "teams")]
        let stream = stream.with_access(self.tokens.number_of(caller, now())?);
        Some(stream)
    }

    /// Returns `true` if a request may come with this proof.
    pub(crate) fn has_room_for(&self, caller: &ProvenCaller) -> bool {
        self.stream_of(0, caller).is_some()
    }

    /// Returns the number of a proof, which may be new; `None` if it is another caller's, or if there are too many.
    pub(crate) fn number_of(&self, caller: &ProvenCaller) -> Option<ProofNumber> {
        let number = |all: &[Arc<ProvenCaller>]| {
            let at = all.iter().position(|known| known.is_same_for_rules(caller));
            at.and_then(|at| u16::try_from(at).ok()).map(ProofNumber)
        };
        let known = number(&self.proofs.read().unwrap_or_else(PoisonError::into_inner));
        if known.is_some() {
            return known;
        }
        let mut all = self.proofs.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &Arc<ProvenCaller>| known.binding == caller.binding;
        if all.len() < Self::MOST && all.iter().all(is_same) && number(&all).is_none() {
            all.push(Arc::new(caller.clone()));
        }
        number(&all)
    }
}

/// Returns the name of the user that this process runs as; its number if the system has no name.
#[cfg(unix)]
fn local_user() -> String {
    let id = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut parts = line.split(':');
        let (name, _, uid) = (parts.next()?, parts.next()?, parts.next()?);
        (uid == id).then(|| name.to_owned())
    });
    named.unwrap_or(id)
}

/// Returns the name of the user that this process runs as.
#[cfg(not(unix))]
fn local_user() -> String {
    std::env::var("USERNAME").unwrap_or_default()
}
