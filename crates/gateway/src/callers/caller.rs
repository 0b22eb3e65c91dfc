//! The caller of a request, according to its proof.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::api_tokens::{ApiToken, TokenOwner};
use mcp_elicit_policy::CallingPerson;
use mcp_elicit_record::principal::Principal;

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

/// The caller of a request. Unknown parts are empty.
#[derive(Clone, PartialEq, Eq)]
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
}

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

/// The caller of a session. Its names and groups follow the newest proof; the binding never changes.
#[derive(Debug)]
pub(crate) struct CurrentCaller(RwLock<Arc<ProvenCaller>>);

impl CurrentCaller {
    /// Creates the current caller.
    pub(crate) fn new(caller: ProvenCaller) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(caller))))
    }

    /// Returns the caller according to its newest proof.
    pub(crate) fn get(&self) -> Arc<ProvenCaller> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Applies another proof of the same caller. Returns `false` if it expires earlier than the current one.
    #[cfg(feature = "teams")]
    pub(super) fn renew(&self, caller: &ProvenCaller) -> bool {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_newest =
            current.binding == caller.binding && caller.expires_at >= current.expires_at;
        if is_newest {
            *current = Arc::new(caller.clone());
        }
        is_newest
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
