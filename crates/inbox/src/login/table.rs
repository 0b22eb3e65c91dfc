//! The people who logged in, their sessions, and the subjects that they are bound to.
//!
//! A session's cookie is 256 random bits, of which the SHA-256 is stored. A person is bound to the subject of the first login:
//! a mailbox that changes hands is another person from then on.

pub mod devices;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_policy::{Addressee, People};
use mcp_elicit_record::encryption::random_id;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use self::devices::Device;
use crate::shared_file::{SharedFile, SharedValue};
use crate::viewer::SignedIn;

/// The most sessions of one person; a further login ends the one that was used longest ago.
const MOST_OF_ONE: usize = 20;
/// The most sessions in all.
const MOST: usize = 20_000;
/// The most people who are remembered.
const MOST_PEOPLE: usize = 20_000;
/// The most bytes of a name, a mail address or a value of the claim.
const LONGEST: usize = 255;
/// The most values of the claim of groups.
const MOST_CLAIMS: usize = 500;
/// The most characters of a browser's name.
const BROWSER: usize = 160;
/// The time that a session is used, or claims stay the same, before that is written down again.
const NOTED_EVERY: u64 = 60;
/// The time for which the id of a logout token is remembered, in seconds: longer than any is accepted.
const REMEMBERED: u64 = 600;

/// The identity of a person, as an issuer or a trusted proxy states it.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The issuer.
    pub issuer: String,
    /// The issuer's name of the person.
    pub subject: String,
    /// The name for people; empty if it is not known.
    pub name: String,
    /// A mail address that was verified.
    pub mail: Option<String>,
    /// The values of the claim of groups.
    pub claims: Vec<String>,
    /// The issuer's session.
    pub sid: Option<String>,
    /// When the person logged in at the issuer.
    pub auth_at: Option<Timestamp>,
}

impl std::fmt::Debug for Identity {
    /// Formats the issuer only: the rest is about a person.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
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
    /// Nobody whom the configuration lets in.
    #[error("this person is not among those who may log in here")]
    NotAllowed,
    /// There are too many sessions.
    #[error("there are too many sessions")]
    TooMany,
}

impl LoginRefused {
    /// Returns the word for the audit.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unusable => "unusable",
            Self::NotAllowed => "not-allowed",
            Self::TooMany => "too-many",
        }
    }
}

/// The bounds of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The time that a session lives without a request.
    pub idle: Duration,
    /// The time that a session lives at most.
    pub max: Duration,
}

/// Those who may log in, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Admission<'a> {
    /// People and groups of the file.
    pub people: &'a People,
    /// Those who may log in; empty for the people of the file and the members of its groups.
    pub allow: &'a [Addressee],
    /// The bounds of sessions.
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
    /// Seconds since 1970, as all times here.
    auth_at: u64,
    created: u64,
    used: u64,
    browser: String,
}

impl LoginSession {
    /// Returns its public name, twelve hexadecimal digits. It opens nothing.
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

    /// Returns what the browser calls itself, made inert.
    pub fn browser(&self) -> &str {
        &self.browser
    }

    /// Returns when it was made, in seconds since 1970.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// Returns when it was last used, in seconds since 1970, to the minute.
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
        let is_name =
            !self.name.is_empty() && self.name != self.subject && !self.name.contains('@');
        is_name.then_some(self.name.as_str())
    }
}

/// All sessions and people.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct LoginTable {
    sessions: Vec<LoginSession>,
    /// By the name in `[people]`, or `ISSUER SUBJECT`.
    people: BTreeMap<String, KnownPerson>,
    /// Ids of logout tokens that were used, with the time until which each is remembered.
    #[serde(default)]
    used_tokens: Vec<(String, u64)>,
    /// The oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    devices: Vec<Device>,
}

/// People's names and addresses belong in no log.
impl std::fmt::Debug for LoginTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginTable")
            .field("sessions", &self.sessions.len())
            .field("people", &self.people.len())
            .finish_non_exhaustive()
    }
}

impl SharedValue for LoginTable {
    const UNREADABLE: &'static str = "the stored logins cannot be read; mend or remove the file";
    // The subjects that people are bound to are in it: nobody else becomes them because of a damaged file.
    const REPLACED: bool = false;

    fn fresh() -> io::Result<Self> {
        Ok(Self::default())
    }

    fn is_sound(&self) -> bool {
        true
    }
}

/// The person of an identity, and whether it may log in.
fn admitted(
    table: &LoginTable,
    identity: &Identity,
    people: &People,
    allow: &[Addressee],
) -> Result<String, LoginRefused> {
    let fits = |text: &str| text.len() <= LONGEST && !text.chars().any(char::is_control);
    let texts = [&identity.issuer, &identity.subject, &identity.name];
    let mut all = texts
        .into_iter()
        .chain(&identity.mail)
        .chain(&identity.claims);
    if !all.all(|text| fits(text))
        || identity.subject.is_empty()
        || identity.issuer.contains(' ')
        || identity.claims.len() > MOST_CLAIMS
        || identity.sid.as_ref().is_some_and(|sid| sid.len() > LONGEST)
    {
        return Err(LoginRefused::Unusable);
    }
    let person = table.person_of(
        &identity.issuer,
        &identity.subject,
        identity.mail.as_deref(),
        people,
    );
    let is_known = people.people.contains_key(&person);
    let is_in = |to: &Addressee| match to {
        Addressee::Caller => false,
        Addressee::Person(name) => *name == person,
        Addressee::Group(group) => people.is_member(group, &person, &identity.claims),
    };
    let may = if allow.is_empty() {
        is_known || !people.groups_of(&person, &identity.claims).is_empty()
    } else {
        allow.iter().any(is_in)
    };
    if may {
        Ok(person)
    } else {
        Err(LoginRefused::NotAllowed)
    }
}

/// Returns the name of a person who is known by claims only.
pub fn unnamed(issuer: &str, subject: &str) -> String {
    format!("{issuer} {subject}")
}

impl LoginTable {
    /// Returns `true` if the subject of this person is known: of the file, or bound by a login.
    pub fn is_bound(&self, person: &str, people: &People) -> bool {
        let in_file = people.people.get(person);
        in_file.is_some_and(|entry| entry.subject.is_some()) || self.people.contains_key(person)
    }

    /// Returns the person with this subject: of the file by its subject, or bound by an earlier login, or by a mail address that
    /// nobody is bound to; else the subject itself.
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
            // The mailbox of somebody who has logged in as another subject.
            .filter(|name| !self.people.contains_key(*name))
            .map_or_else(|| unnamed(issuer, subject), str::to_owned)
    }

    /// Returns the name that the issuer gives a person. A mail address or a subject is not a name.
    pub(crate) fn given_name(&self, person: &str) -> Option<&str> {
        self.people.get(person)?.given_name()
    }

    /// Returns everybody who has logged in, with the name that the issuer gives them.
    pub(crate) fn given_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = |(person, known)| Some((person, KnownPerson::given_name(known)?));
        let people = self.people.iter();
        people.filter_map(move |(person, known)| named((person.as_str(), known)))
    }

    /// Returns the claims of a person, unless they are older than `stale`.
    pub fn claims(&self, person: &str, stale: Duration, now: Timestamp) -> &[String] {
        self.people
            .get(person)
            .filter(|known| seconds(now) < known.seen_at.saturating_add(stale.as_secs()))
            .map_or(&[], |known| &known.claims)
    }

    /// Returns when the claims of a person were noted.
    #[cfg(feature = "teams")]
    pub(crate) fn claims_at(&self, person: &str) -> Option<Timestamp> {
        self.people.get(person).map(|known| at(known.seen_at))
    }

    /// Returns `true` if there is a session of this public name, which may have ended.
    #[cfg(feature = "teams")]
    pub(crate) fn has_session(&self, id: &str) -> bool {
        self.sessions.iter().any(|session| session.id() == id)
    }

    /// Returns the sessions that have not ended, the latest used first.
    pub fn live(&self, bounds: Lifetimes, now: Timestamp) -> Vec<&LoginSession> {
        let now = seconds(now);
        let live = self.sessions.iter();
        let mut live: Vec<_> = live
            .filter(|session| session.is_live(bounds, now))
            .collect();
        live.sort_by_key(|session| std::cmp::Reverse(session.used));
        live
    }

    /// Returns every session that is stored, the latest used first. Some may have ended.
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

    fn signed_in(&self, session: &LoginSession) -> Option<SignedIn> {
        let known = self.people.get(&session.person)?;
        // The person of this name may have become another subject's.
        let is_theirs = known.issuer == session.issuer && known.subject == session.subject;
        is_theirs.then(|| SignedIn {
            person: session.person.clone(),
            name: if known.name.is_empty() {
                session.person.clone()
            } else {
                known.name.clone()
            },
            mail: known.mail.clone(),
            claims: known.claims.clone(),
            claims_at: at(known.seen_at),
            logged_in_at: at(session.auth_at),
            session: session.id().to_owned(),
            issuer: session.issuer.clone(),
            subject: session.subject.clone(),
        })
    }

    fn note(&mut self, person: &str, identity: &Identity, now: u64) {
        if self.people.len() >= MOST_PEOPLE && !self.people.contains_key(person) {
            // Those who are bound by name are kept; of the others, the one who was seen longest ago goes.
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

/// The logins of one state folder, in a file that gateways and commands share.
#[derive(Debug)]
pub struct Logins(SharedFile<LoginTable>);

impl Logins {
    /// The logins in this file, which is made at the first change.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(SharedFile::at(path))
    }

    /// Returns everything as it is now.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn table(&self) -> io::Result<Arc<LoginTable>> {
        Ok(self.0.read()?.unwrap_or_default())
    }

    /// Makes a session for this identity, in the place of `before`. Returns the cookie and the person, or the refusal.
    ///
    /// # Errors
    /// When the file cannot be read or written, or there is no randomness.
    pub fn log_in(
        &self,
        identity: &Identity,
        admission: Admission<'_>,
        before: Option<&str>,
        browser: &str,
        now: Timestamp,
    ) -> io::Result<Result<(String, SignedIn), LoginRefused>> {
        let Admission {
            people,
            allow,
            lifetimes,
        } = admission;
        // A stranger costs a read, never a write.
        if let Err(refused) = admitted(&*self.table()?, identity, people, allow) {
            return Ok(Err(refused));
        }
        let cookie = format!("{}{}", random_id()?, random_id()?);
        self.0.change(|table| {
            let person = match admitted(table, identity, people, allow) {
                Ok(person) => person,
                Err(refused) => return Ok(Err(refused)),
            };
            let seconds_now = seconds(now);
            let replaced = before.map(hash);
            table.sessions.retain(|session| {
                session.is_live(lifetimes, seconds_now)
                    && Some(&session.digest) != replaced.as_ref()
            });
            let own = |session: &LoginSession| session.person == person;
            if table.sessions.iter().filter(|session| own(session)).count() >= MOST_OF_ONE {
                let oldest = table
                    .sessions
                    .iter()
                    .enumerate()
                    .filter(|(_, one)| own(one));
                if let Some((place, _)) = oldest.min_by_key(|(_, one)| one.used) {
                    table.sessions.remove(place);
                }
            }
            if table.sessions.len() >= MOST {
                return Ok(Err(LoginRefused::TooMany));
            }
            table.note(&person, identity, seconds_now);
            let session = LoginSession {
                digest: hash(&cookie),
                person,
                issuer: identity.issuer.clone(),
                subject: identity.subject.clone(),
                sid: identity.sid.clone(),
                auth_at: identity.auth_at.map_or(seconds_now, seconds),
                created: seconds_now,
                used: seconds_now,
                browser: sanitize::line(browser, BROWSER),
            };
            let signed_in = table.signed_in(&session);
            table.sessions.push(session);
            let signed_in =
                signed_in.ok_or_else(|| io::Error::other("the login was not stored"))?;
            Ok(Ok((cookie.clone(), signed_in)))
        })
    }

    /// Returns the person of this cookie, and notes the use. `None` where the session has ended, or the person may not log in any more.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn find(
        &self,
        cookie: &str,
        admission: Admission<'_>,
        now: Timestamp,
    ) -> io::Result<Option<SignedIn>> {
        let Admission {
            people,
            allow,
            lifetimes,
        } = admission;
        let table = self.table()?;
        let Some(session) = table.find(cookie, lifetimes, now) else {
            return Ok(None);
        };
        let Some(signed_in) = table.signed_in(session) else {
            return Ok(None);
        };
        let identity = Identity {
            issuer: signed_in.issuer.clone(),
            subject: signed_in.subject.clone(),
            name: String::new(),
            mail: signed_in.mail.clone(),
            claims: signed_in.claims.clone(),
            sid: None,
            auth_at: None,
        };
        // The file may name others by now: the session is the person's whom it was made for.
        if admitted(&table, &identity, people, allow).as_ref() != Ok(&signed_in.person) {
            return Ok(None);
        }
        if seconds(now) >= session.used.saturating_add(NOTED_EVERY) {
            let digest = session.digest.clone();
            let noted = self.0.change(|table| {
                let known = table.sessions.iter_mut();
                for session in known.filter(|session| session.digest == digest) {
                    session.used = session.used.max(seconds(now));
                }
                Ok(())
            });
            if let Err(error) = noted {
                tracing::warn!(%error, "the use of a session could not be noted");
            }
        }
        Ok(Some(signed_in))
    }

    /// Notes the claims of a person who is logged in as this identity, where they have changed or are old.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn refresh(&self, person: &str, identity: &Identity, now: Timestamp) -> io::Result<()> {
        let now = seconds(now);
        let table = self.table()?;
        let is_current = table.people.get(person).is_some_and(|known| {
            known.claims == identity.claims && now < known.seen_at.saturating_add(NOTED_EVERY)
        });
        if is_current {
            return Ok(());
        }
        self.0.change(|table| {
            let is_theirs = table.people.get(person).is_some_and(|known| {
                known.issuer == identity.issuer && known.subject == identity.subject
            });
            if is_theirs {
                table.note(person, identity, now);
            }
            Ok(())
        })
    }

    /// Ends the sessions that `ends` chooses; returns them.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn end(&self, ends: impl Fn(&LoginSession) -> bool) -> io::Result<Vec<LoginSession>> {
        if !self.table()?.sessions.iter().any(&ends) {
            return Ok(Vec::new());
        }
        self.0.change(|table| {
            let (ended, left) = std::mem::take(&mut table.sessions)
                .into_iter()
                .partition(&ends);
            table.sessions = left;
            table.end_devices_of(&ended);
            Ok(ended)
        })
    }

    /// Ends the sessions of a logout token: those of the issuer's session, or all of the subject. `None` if the token was used before.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn end_by_token(
        &self,
        issuer: &str,
        subject: Option<&str>,
        sid: Option<&str>,
        token_id: &str,
        now: Timestamp,
    ) -> io::Result<Option<Vec<LoginSession>>> {
        let (token, now) = (hash(&format!("{issuer} {token_id}")), seconds(now));
        self.0.change(|table| {
            table.used_tokens.retain(|(_, until)| now < *until);
            if table.used_tokens.iter().any(|(used, _)| *used == token) {
                return Ok(None);
            }
            table
                .used_tokens
                .push((token, now.saturating_add(REMEMBERED)));
            let ends = |session: &LoginSession| {
                session.issuer == issuer
                    && (sid.is_some() || subject.is_some())
                    && sid.is_none_or(|sid| session.sid.as_deref() == Some(sid))
                    && subject.is_none_or(|subject| session.subject == subject)
            };
            let (ended, left) = std::mem::take(&mut table.sessions)
                .into_iter()
                .partition(ends);
            table.sessions = left;
            table.end_devices_of(&ended);
            if let (Some(subject), None) = (subject, sid) {
                table.end_devices_of_subject(issuer, subject);
            }
            Ok(Some(ended))
        })
    }

    /// Releases a person from the subject that the first login has bound; the sessions end. Returns `false` if nothing was bound.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn unbind(&self, person: &str) -> io::Result<bool> {
        self.0.change(|table| {
            table.sessions.retain(|session| session.person != person);
            table.devices.retain(|device| device.person() != person);
            Ok(table.people.remove(person).is_some())
        })
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

#[cfg(test)]
mod tests {
    use mcp_elicit_policy::Rules;

    use super::*;

    const FILE: &str = r#"
[people.ada]
mail = "ada@example.com"
[people.bob]
mail = "bob@example.com"
subject = "b-1"
[groups]
staff = { claim = "employees" }
[roles]
admin = ["person:ada"]
"#;
    const BOUNDS: Lifetimes = Lifetimes {
        idle: Duration::from_secs(100),
        max: Duration::from_secs(1_000),
    };

    fn admission(rules: &Rules) -> Admission<'_> {
        Admission {
            people: rules.people(),
            allow: &[],
            lifetimes: BOUNDS,
        }
    }

    fn logins(folder: &tempfile::TempDir) -> Logins {
        Logins::at(folder.path().join("inbox.logins"))
    }

    fn identity(subject: &str, mail: Option<&str>, claims: &[&str]) -> Identity {
        Identity {
            issuer: "https://id.example".to_owned(),
            subject: subject.to_owned(),
            name: "Somebody".to_owned(),
            mail: mail.map(str::to_owned),
            claims: claims.iter().map(|claim| (*claim).to_owned()).collect(),
            sid: Some(format!("sid-{subject}")),
            auth_at: None,
        }
    }

    fn log_in(
        logins: &Logins,
        identity: &Identity,
        now: u64,
    ) -> Result<(String, SignedIn), LoginRefused> {
        let rules = Rules::parse(FILE).unwrap();
        logins
            .log_in(identity, admission(&rules), None, "Fire\u{1b}fox", at(now))
            .unwrap()
    }

    fn find(logins: &Logins, cookie: &str, now: u64) -> Option<SignedIn> {
        let rules = Rules::parse(FILE).unwrap();
        logins.find(cookie, admission(&rules), at(now)).unwrap()
    }

    #[test]
    fn a_mailbox_that_changes_hands_is_another_person() {
        let folder = tempfile::tempdir().unwrap();
        let logins = logins(&folder);
        let first = log_in(&logins, &identity("s-1", Some("ADA@example.com"), &[]), 0);
        assert_eq!(first.unwrap().1.person, "ada");
        // The same subject is ada without a mail, too.
        assert_eq!(
            log_in(&logins, &identity("s-1", None, &[]), 0)
                .unwrap()
                .1
                .person,
            "ada"
        );
        let newcomer = identity("s-2", Some("ada@example.com"), &["employees"]);
        let (cookie, signed_in) = log_in(&logins, &newcomer, 0).unwrap();
        assert_eq!(signed_in.person, "https://id.example s-2");
        assert!(find(&logins, &cookie, 1).is_some());
        let stranger = identity("s-2", Some("ada@example.com"), &[]);
        assert_eq!(
            log_in(&logins, &stranger, 0).unwrap_err(),
            LoginRefused::NotAllowed
        );
        // An administrator releases the name.
        assert!(logins.unbind("ada").unwrap() && !logins.unbind("ada").unwrap());
        assert_eq!(log_in(&logins, &newcomer, 0).unwrap().1.person, "ada");
        // The session from before was another person's.
        assert!(find(&logins, &cookie, 1).is_none());
    }

    #[test]
    fn people_of_the_file_are_known_by_subject_before_mail() {
        let folder = tempfile::tempdir().unwrap();
        let logins = logins(&folder);
        let bob = identity("b-1", Some("ada@example.com"), &[]);
        assert_eq!(log_in(&logins, &bob, 0).unwrap().1.person, "bob");
        let not_bob = identity("b-2", Some("bob@example.com"), &[]);
        assert_eq!(
            log_in(&logins, &not_bob, 0).unwrap_err(),
            LoginRefused::NotAllowed
        );
        for unusable in [
            identity("", None, &[]),
            identity("a\nb", None, &[]),
            identity(&"x".repeat(256), None, &[]),
        ] {
            assert_eq!(
                log_in(&logins, &unusable, 0).unwrap_err(),
                LoginRefused::Unusable
            );
        }
    }

    #[test]
    fn sessions_end_by_idling_by_age_and_by_hand() {
        let folder = tempfile::tempdir().unwrap();
        let logins = logins(&folder);
        let (cookie, signed_in) =
            log_in(&logins, &identity("s-1", Some("ada@example.com"), &[]), 0).unwrap();
        assert!(find(&logins, &cookie, 99).is_some() && find(&logins, "guess", 99).is_none());
        assert!(find(&logins, &signed_in.session, 99).is_none() && find(&logins, "", 99).is_none());
        for used in (100..1_000).step_by(90) {
            assert!(find(&logins, &cookie, used).is_some(), "{used}");
        }
        assert!(find(&logins, &cookie, 1_000).is_none(), "the longest life");
        let (cookie, _) = log_in(
            &logins,
            &identity("s-1", Some("ada@example.com"), &[]),
            2_000,
        )
        .unwrap();
        assert!(find(&logins, &cookie, 2_100).is_none(), "idle");
        let (cookie, signed_in) = log_in(&logins, &identity("s-1", None, &[]), 3_000).unwrap();
        let ended = logins
            .end(|session| session.id() == signed_in.session)
            .unwrap();
        assert_eq!(ended.len(), 1);
        assert!(find(&logins, &cookie, 3_001).is_none());
        let stored = std::fs::read_to_string(folder.path().join("inbox.logins")).unwrap();
        assert!(!stored.contains(&cookie));
    }

    #[test]
    fn a_new_login_replaces_the_session_of_the_browser() {
        let folder = tempfile::tempdir().unwrap();
        let logins = logins(&folder);
        let rules = Rules::parse(FILE).unwrap();
        let ada = identity("s-1", Some("ada@example.com"), &[]);
        let (before, _) = log_in(&logins, &ada, 0).unwrap();
        let after = logins.log_in(&ada, admission(&rules), Some(&before), "b", at(1));
        let (after, _) = after.unwrap().unwrap();
        assert_ne!(before, after);
        assert!(find(&logins, &before, 2).is_none() && find(&logins, &after, 2).is_some());
        // A cookie that somebody planted makes no session of that name.
        let planted = "0".repeat(64);
        let made = logins.log_in(&ada, admission(&rules), Some(&planted), "b", at(2));
        assert_ne!(made.unwrap().unwrap().0, planted);
        assert!(find(&logins, &planted, 3).is_none());
    }

    #[test]
    fn a_logout_token_ends_its_sessions_once() {
        let folder = tempfile::tempdir().unwrap();
        let logins = logins(&folder);
        let (one, _) = log_in(&logins, &identity("s-1", Some("ada@example.com"), &[]), 0).unwrap();
        let (two, _) = log_in(&logins, &identity("b-1", None, &[]), 0).unwrap();
        let end = |issuer: &str, sub: Option<&str>, sid: Option<&str>, id: &str, now: u64| {
            let ended = logins.end_by_token(issuer, sub, sid, id, at(now)).unwrap();
            ended.map(|ended| ended.len())
        };
        assert_eq!(
            end("https://evil.example", Some("s-1"), None, "t0", 1),
            Some(0)
        );
        assert_eq!(
            end("https://id.example", None, Some("sid-b-2"), "t1", 1),
            Some(0)
        );
        assert!(find(&logins, &one, 2).is_some());
        assert_eq!(
            end("https://id.example", Some("s-1"), None, "t2", 2),
            Some(1)
        );
        assert!(find(&logins, &one, 3).is_none() && find(&logins, &two, 3).is_some());
        let (again, _) = log_in(&logins, &identity("s-1", None, &[]), 3).unwrap();
        assert_eq!(
            end("https://id.example", Some("s-1"), None, "t2", 4),
            None,
            "replayed"
        );
        assert!(find(&logins, &again, 5).is_some());
        let both = |sub| end("https://id.example", Some(sub), Some("sid-b-1"), sub, 5);
        assert_eq!((both("s-1"), both("b-1")), (Some(0), Some(1)));
        assert!(find(&logins, &two, 6).is_none() && find(&logins, &again, 6).is_some());
    }

    #[test]
    fn claims_grow_stale_and_a_person_who_may_not_log_in_any_more_is_out() {
        let folder = tempfile::tempdir().unwrap();
        let logins = logins(&folder);
        let (cookie, signed_in) =
            log_in(&logins, &identity("c-1", None, &["employees"]), 0).unwrap();
        let table = logins.table().unwrap();
        let stale = Duration::from_secs(50);
        assert_eq!(
            table.claims(&signed_in.person, stale, at(49)),
            ["employees"]
        );
        assert!(table.claims(&signed_in.person, stale, at(50)).is_empty());
        logins
            .refresh(&signed_in.person, &identity("c-1", None, &[]), at(10))
            .unwrap();
        assert!(find(&logins, &cookie, 11).is_none(), "left the group");
    }

    #[test]
    fn sessions_of_one_person_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let logins = logins(&folder);
        let (first, _) =
            log_in(&logins, &identity("s-1", Some("ada@example.com"), &[]), 0).unwrap();
        for second in 1..30 {
            log_in(&logins, &identity("s-1", None, &[]), second).unwrap();
        }
        assert_eq!(
            logins.table().unwrap().live(BOUNDS, at(30)).len(),
            MOST_OF_ONE
        );
        assert!(find(&logins, &first, 30).is_none());
    }
}
