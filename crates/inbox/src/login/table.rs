//! The people who logged in, their sessions, and the subjects to which they are bound.
//!
//! A session's cookie is 256 random bits, of which the SHA-256 is stored. A person is bound to the subject of the first
//! login: a mailbox that changes hands belongs to another person from then on.

pub mod devices;
mod logins;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_policy::{Addressee, People};
use mcp_elicit_record::store::shared_rows::{LOGINS, SharedEntity};
use mcp_elicit_record::store::{EarlierFile, RecordStoreError};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use self::devices::Device;
pub(crate) use self::logins::NO_SESSION;
pub use self::logins::{EndedLogins, LoggedIn, Logins};
use crate::shared_table::SharedValue;
use crate::viewer::SignedIn;

/// The most people who are stored.
const MOST_PEOPLE: usize = 20_000;
/// The longest name of a browser, in characters.
const BROWSER: usize = 160;

/// The identity of a person, according to an issuer or a trusted proxy.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LoginIdentity {
    /// The issuer.
    pub issuer: String,
    /// The issuer's name of the person.
    pub subject: String,
    /// The name for people; empty if unknown.
    pub name: String,
    /// A verified mail address.
    pub mail: Option<String>,
    /// The values of the claim of groups.
    pub claims: Vec<String>,
    /// The issuer's session.
    pub sid: Option<String>,
    /// The time of the login at the issuer, if known.
    pub auth_at: Option<Timestamp>,
}

impl std::fmt::Debug for LoginIdentity {
    /// Formats the issuer only: the rest is about a person.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginIdentity")
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

/// A refused login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginRefused {
    /// The identity cannot be used.
    #[error("the identity is too long, or has characters that cannot be shown")]
    Unusable,
    /// The configuration does not admit the person.
    #[error("this person is not among those who may log in here")]
    NotAllowed,
    /// The configuration does not admit the person: the one with this mail address has logged in as another subject.
    #[error("the person of this mail address is bound to another subject")]
    BoundToAnother,
    /// There are too many sessions.
    #[error("there are too many sessions")]
    TooMany,
}

/// The reason why a person was not logged in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The person may not log in.
    #[error(transparent)]
    Refused(#[from] LoginRefused),
    /// The logins cannot be read or written, or there is no randomness.
    #[error("the logins cannot be read or written: {0}")]
    File(#[from] io::Error),
}

impl LoginRefused {
    /// Returns the word for the audit.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unusable => "unusable",
            Self::NotAllowed => "not-allowed",
            Self::BoundToAnother => "bound-to-another",
            Self::TooMany => "too-many",
        }
    }
}

/// The limits of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The time after which an idle session ends.
    pub idle: Duration,
    /// The maximum lifetime of a session.
    pub max: Duration,
}

/// The people who may log in, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct LoginAdmission<'a> {
    /// People and groups of the file.
    pub people: &'a People,
    /// The people who may log in; empty for the people in the file and the members of its groups.
    pub allow: &'a [Addressee],
    /// The limits of sessions.
    pub lifetimes: Lifetimes,
}

/// One session.
#[derive(Clone, Serialize, Deserialize)]
pub struct LoginSession {
    /// SHA-256 of the cookie, in hexadecimal digits.
    digest: String,
    person: String,
    issuer: String,
    subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sid: Option<String>,
    /// Seconds since 1970, as all times here; 0 if the issuer did not report it.
    auth_at: u64,
    created: u64,
    used: u64,
    /// `true` once a request had its cookie.
    #[serde(default)]
    came_back: bool,
    browser: String,
}

impl LoginSession {
    /// Returns its public name, twelve hexadecimal digits, which grants nothing.
    pub fn id(&self) -> &str {
        self.digest.get(..12).unwrap_or_default()
    }

    /// Returns the person.
    pub fn person(&self) -> &str {
        &self.person
    }

    /// Returns the issuer.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the issuer's name of the person.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the browser's own name, made safe to show.
    pub fn browser(&self) -> &str {
        &self.browser
    }

    /// Returns the time of its creation, in seconds since 1970.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// Returns the time of its last use, in seconds since 1970, to the minute.
    pub fn used(&self) -> u64 {
        self.used
    }

    fn is_live(&self, bounds: Lifetimes, now: u64) -> bool {
        now < self.used.saturating_add(bounds.idle.as_secs())
            && now < self.created.saturating_add(bounds.max.as_secs())
    }
}

/// A person who has logged in at least once.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct KnownPerson {
    issuer: String,
    subject: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mail: Option<String>,
    claims: Vec<String>,
    seen_at: u64,
}

impl KnownPerson {
    fn given_name(&self) -> Option<&str> {
        // A name without visible characters counts as missing.
        let is_seen = self.name.chars().any(char::is_alphanumeric);
        let is_name = is_seen && self.name != self.subject && !self.name.contains('@');
        is_name.then_some(self.name.as_str())
    }
}

/// All sessions and people.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct LoginTable {
    sessions: Vec<LoginSession>,
    /// By the name in `[people]`, or `ISSUER SUBJECT`.
    people: BTreeMap<String, KnownPerson>,
    /// Ids of used logout tokens, with the time until which each is remembered.
    #[serde(default)]
    used_tokens: Vec<(String, u64)>,
    /// The oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    devices: Vec<Device>,
}

/// Hides people's names and addresses from logs.
impl std::fmt::Debug for LoginTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginTable")
            .field("sessions", &self.sessions.len())
            .field("people", &self.people.len())
            .finish_non_exhaustive()
    }
}

/// The file of earlier versions. It has the subjects to which people are bound: one that cannot be read stays.
pub(crate) const EARLIER: EarlierFile = EarlierFile {
    entity: LOGINS,
    name: "inbox.logins",
    notice: "The logins are in record.sqlite. Because of this file, gateways of earlier versions, which do not know them, log nobody in.\n",
    read: |bytes| {
        let table: Result<LoginTable, _> = serde_json::from_slice(bytes);
        let table = table.map_err(|_| RecordStoreError::OldFile("inbox.logins"))?;
        Ok(Some(serde_json::to_value(&table)?))
    },
};

impl SharedValue for LoginTable {
    const ENTITY: SharedEntity = LOGINS;
    const UNREADABLE: &'static str =
        "the stored logins cannot be read; restore the record from a backup";
    // It has the subjects to which people are bound: a damaged file must not let anyone else become them.
    const REPLACED: bool = false;

    fn fresh() -> io::Result<Self> {
        Ok(Self::default())
    }

    fn is_sound(&self) -> bool {
        true
    }
}

/// Returns the name of a person who is known by claims only.
pub fn unnamed(issuer: &str, subject: &str) -> String {
    format!("{issuer} {subject}")
}

impl LoginTable {
    /// Returns `true` if the subject of this person is known: from the file, or bound by a login.
    pub fn is_bound(&self, person: &str, people: &People) -> bool {
        let in_file = people.people.get(person);
        in_file.is_some_and(|entry| entry.subject.is_some()) || self.people.contains_key(person)
    }

    /// Returns the person with this subject: by the file's subject, by an earlier login, or by a mail address to which
    /// no one is bound; else the subject itself.
    pub fn person_of(
        &self,
        issuer: &str,
        subject: &str,
        mail: Option<&str>,
        people: &People,
    ) -> String {
        if let Some(name) = people.find(subject, "") {
            return name.to_owned();
        }
        let is_bound = |known: &KnownPerson| known.issuer == issuer && known.subject == subject;
        let bound = self.people.iter().find(|(name, known)| {
            let in_file = people.people.get(*name);
            is_bound(known) && in_file.is_some_and(|person| person.subject.is_none())
        });
        if let Some((name, _)) = bound {
            return name.clone();
        }
        mail.and_then(|mail| people.find("", mail))
            // Not the mailbox of a person who has logged in as another subject.
            .filter(|name| !self.people.contains_key(*name))
            .map_or_else(|| unnamed(issuer, subject), str::to_owned)
    }

    /// Returns everyone who has logged in, by name, with issuer, subject and the time of the last check in seconds
    /// since 1970.
    pub fn bound(&self) -> impl Iterator<Item = (&str, &str, &str, u64)> {
        let people = self.people.iter();
        people.map(|(person, known)| {
            (
                person.as_str(),
                known.issuer.as_str(),
                known.subject.as_str(),
                known.seen_at,
            )
        })
    }

    /// Returns the issuer's name for a person. A mail address or a subject is not a name.
    pub(crate) fn given_name(&self, person: &str) -> Option<&str> {
        self.people.get(person)?.given_name()
    }

    /// Returns everyone who has logged in.
    pub(crate) fn people(&self) -> impl Iterator<Item = &str> {
        self.people.keys().map(String::as_str)
    }

    /// Returns everyone who has logged in, with the issuer's name for them.
    pub(crate) fn given_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = |(person, known)| Some((person, KnownPerson::given_name(known)?));
        let people = self.people.iter();
        people.filter_map(move |(person, known)| named((person.as_str(), known)))
    }

    /// Returns the issuer, the subject and the verified mail address of the latest login of a person.
    pub(crate) fn latest_login(&self, person: &str) -> Option<(&str, &str, Option<&str>)> {
        let known = self.people.get(person)?;
        Some((&known.issuer, &known.subject, known.mail.as_deref()))
    }

    /// Returns the claims of a person, unless they are older than `stale`.
    pub fn claims(&self, person: &str, stale: Duration, now: Timestamp) -> &[String] {
        self.people
            .get(person)
            .filter(|known| seconds(now) < known.seen_at.saturating_add(stale.as_secs()))
            .map_or(&[], |known| &known.claims)
    }

    /// Returns the time at which the claims of a person were recorded.
    #[cfg(feature = "teams")]
    pub(crate) fn claims_at(&self, person: &str) -> Option<Timestamp> {
        self.people.get(person).map(|known| at(known.seen_at))
    }

    /// Returns `true` if there is a session of this public name, live or not.
    pub(crate) fn has_session(&self, id: &str) -> bool {
        self.sessions.iter().any(|session| session.id() == id)
    }

    /// Returns the live sessions, the most recently used first.
    pub fn live(&self, bounds: Lifetimes, now: Timestamp) -> Vec<&LoginSession> {
        let now = seconds(now);
        let live = self.sessions.iter();
        let mut live: Vec<_> = live
            .filter(|session| session.is_live(bounds, now))
            .collect();
        live.sort_by_key(|session| std::cmp::Reverse(session.used));
        live
    }

    /// Returns every stored session, the most recently used first. Some may have ended.
    pub fn sessions(&self) -> Vec<&LoginSession> {
        let mut all: Vec<_> = self.sessions.iter().collect();
        all.sort_by_key(|session| std::cmp::Reverse(session.used));
        all
    }

    fn find(&self, cookie: &str, bounds: Lifetimes, now: Timestamp) -> Option<&LoginSession> {
        let (digest, now) = (hash(cookie), seconds(now));
        self.sessions.iter().find(|session| {
            let is_it: bool = session.digest.as_bytes().ct_eq(digest.as_bytes()).into();
            is_it && session.is_live(bounds, now)
        })
    }

    /// Returns the live session of this public name.
    fn live_session(&self, id: &str, bounds: Lifetimes, now: Timestamp) -> Option<&LoginSession> {
        let now = seconds(now);
        let mut live = self.sessions.iter();
        live.find(|session| session.id() == id && session.is_live(bounds, now))
    }

    fn signed_in(&self, session: &LoginSession) -> Option<SignedIn> {
        let known = self.people.get(&session.person)?;
        // The person of this name may have another subject now.
        let is_theirs = known.issuer == session.issuer && known.subject == session.subject;
        is_theirs.then(|| SignedIn {
            person: session.person.clone(),
            name: if known.name.is_empty() {
                sanitize::line(&session.person, sanitize::LABEL)
            } else {
                known.name.clone()
            },
            mail: known.mail.clone(),
            claims: known.claims.clone(),
            claims_at: at(known.seen_at),
            logged_in_at: (session.auth_at > 0).then(|| at(session.auth_at)),
            session: session.id().to_owned(),
            issuer: session.issuer.clone(),
            subject: session.subject.clone(),
        })
    }

    fn note(&mut self, person: &str, identity: &LoginIdentity, now: u64) {
        if self.people.len() >= MOST_PEOPLE && !self.people.contains_key(person) {
            // People who are bound by name are kept; of the others, the one seen longest ago is removed.
            let oldest = self.people.iter().filter(|(name, _)| name.contains(' '));
            let oldest = oldest.min_by_key(|(_, known)| known.seen_at);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.people.remove(&name);
            }
        }
        let known = KnownPerson {
            issuer: identity.issuer.clone(),
            subject: identity.subject.clone(),
            name: sanitize::line(&identity.name, sanitize::LABEL),
            mail: identity.mail.clone(),
            claims: identity.claims.clone(),
            seen_at: now,
        };
        self.people.insert(person.to_owned(), known);
    }
}

fn hash(text: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

fn seconds(time: Timestamp) -> u64 {
    time.as_millis() / 1_000
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds.saturating_mul(1_000))
}
