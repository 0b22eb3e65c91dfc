//! The logins of a state folder: the people who may log in, and the start, lookup and end of sessions.

use std::io;
use std::sync::Arc;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_policy::{Addressee, People};
use mcp_elicit_record::audit::Actor;
use mcp_elicit_record::encryption::random_id;
use mcp_elicit_record::store::shared_rows::SharedRowStore;

use super::devices::Device;
use super::{
    BROWSER, LoginAdmission, LoginError, LoginIdentity, LoginRefused, LoginSession, LoginTable,
    hash, seconds,
};
use crate::shared_table::SharedTable;
use crate::viewer::SignedIn;

/// The most sessions of one person; a further login ends the least recently used one.
pub(super) const MOST_OF_ONE: usize = 20;
/// The most sessions in all.
const MOST: usize = 20_000;
/// The longest name, mail address or value of the claim, in bytes.
const LONGEST: usize = 255;
/// The most values of the claim of groups.
const MOST_CLAIMS: usize = 500;
/// The interval at which the use of a session, or unchanged claims, are recorded again.
const NOTED_EVERY: u64 = 60;
/// The time for which the id of a logout token is remembered, in seconds: longer than any is accepted.
const REMEMBERED: u64 = 600;

/// A login that has started a session.
pub struct LoggedIn {
    /// The cookie of the session.
    pub cookie: String,
    /// The person.
    pub signed_in: SignedIn,
    /// Devices that it ended.
    pub devices: Vec<Device>,
    /// `true` if it is the first login of a person in the file, who is now bound to this subject.
    pub is_bound: bool,
}

impl std::fmt::Debug for LoggedIn {
    /// Formats the person: the cookie is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoggedIn")
            .field("signed_in", &self.signed_in)
            .finish_non_exhaustive()
    }
}

/// Sessions that were ended, and the devices that ended with them.
#[derive(Clone, Default)]
pub struct EndedLogins {
    /// The sessions.
    pub sessions: Vec<LoginSession>,
    /// The devices.
    pub devices: Vec<Device>,
}

impl std::fmt::Debug for EndedLogins {
    /// Formats the numbers: names belong in no log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndedLogins")
            .field("sessions", &self.sessions.len())
            .field("devices", &self.devices.len())
            .finish()
    }
}

/// The session of a person who was identified without one: no form is bound to it, and no session has this name.
pub(crate) const NO_SESSION: &str = "none";

/// The logins of one state folder, which gateways and commands share.
#[derive(Debug)]
pub struct Logins(pub(super) SharedTable<LoginTable>);

impl Logins {
    /// Creates the logins in this store.
    pub(crate) fn of(store: Arc<dyn SharedRowStore>) -> Self {
        Self(SharedTable::of(store))
    }

    /// Returns a snapshot.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn table(&self) -> io::Result<Arc<LoginTable>> {
        Ok(self.0.read()?.unwrap_or_default())
    }

    /// Creates a session for this identity, replacing `before`. At the limit of a person's
    /// sessions, one whose cookie never came back is ended, else the least recently used one.
    ///
    /// # Errors
    /// If the person may not log in, the store cannot be read or written, or there is no randomness.
    pub fn log_in(
        &self,
        identity: &LoginIdentity,
        admission: LoginAdmission<'_>,
        before: Option<&str>,
        browser: &str,
        now: Timestamp,
    ) -> Result<LoggedIn, LoginError> {
        let LoginAdmission {
            people,
            allow,
            lifetimes,
        } = admission;
        // An unknown person causes a read, never a write.
        admitted(&*self.table()?, identity, people, allow)?;
        let cookie = format!("{}{}", random_id()?, random_id()?);
        self.0.try_change(|table| {
            let person = admitted(table, identity, people, allow)?;
            let seconds_now = seconds(now);
            let replaced = before.map(hash);
            let mut before = None;
            // Devices of expired sessions stay.
            table.sessions.retain(|session| {
                let is_replaced = Some(&session.digest) == replaced.as_ref();
                if is_replaced {
                    before = Some(session.id().to_owned());
                }
                session.is_live(lifetimes, seconds_now) && !is_replaced
            });
            let mut devices = Vec::new();
            let own = |session: &LoginSession| session.person == person;
            if table.sessions.iter().filter(|session| own(session)).count() >= MOST_OF_ONE {
                let sessions = table.sessions.iter().enumerate();
                let own = sessions.filter(|(_, one)| own(one));
                let least = own.min_by_key(|(_, one)| (one.came_back, one.used));
                if let Some((place, _)) = least {
                    let ended = table.sessions.remove(place);
                    devices.extend(table.end_devices_of(&[ended]));
                }
            }
            if table.sessions.len() >= MOST {
                return Err(LoginRefused::TooMany.into());
            }
            let entry = people.people.get(&person);
            let is_bound = entry.is_some_and(|entry| entry.subject.is_none())
                && !table.people.contains_key(&person);
            table.note(&person, identity, seconds_now);
            let session = LoginSession {
                digest: hash(&cookie),
                person,
                issuer: identity.issuer.clone(),
                subject: identity.subject.clone(),
                sid: identity.sid.clone(),
                auth_at: identity
                    .auth_at
                    .map_or(0, |at| seconds(at).min(seconds_now)),
                created: seconds_now,
                used: seconds_now,
                came_back: false,
                browser: sanitize::line(browser, BROWSER),
            };
            let signed_in = table.signed_in(&session);
            if let Some(before) = before {
                devices.extend(table.hand_devices_on(&before, &session));
            }
            table.sessions.push(session);
            let signed_in =
                signed_in.ok_or_else(|| io::Error::other("the login was not stored"))?;
            let cookie = cookie.clone();
            Ok(LoggedIn {
                cookie,
                signed_in,
                devices,
                is_bound,
            })
        })
    }

    /// Returns the person of an identity without a session, which a proxy names with each request.
    ///
    /// # Errors
    /// If the person may not log in, or the store cannot be read.
    pub fn recognize(
        &self,
        identity: &LoginIdentity,
        admission: LoginAdmission<'_>,
        now: Timestamp,
    ) -> Result<SignedIn, LoginError> {
        let LoginAdmission { people, allow, .. } = admission;
        let person = admitted(&*self.table()?, identity, people, allow)?;
        Ok(SignedIn {
            name: if identity.name.is_empty() {
                sanitize::line(&person, sanitize::LABEL)
            } else {
                sanitize::line(&identity.name, sanitize::LABEL)
            },
            person,
            mail: identity.mail.clone(),
            claims: identity.claims.clone(),
            claims_at: now,
            logged_in_at: identity.auth_at,
            session: NO_SESSION.to_owned(),
            issuer: identity.issuer.clone(),
            subject: identity.subject.clone(),
        })
    }

    /// Returns `true` while the session of this public name is live, and its person may log in. This does not count as
    /// a use.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn is_live(
        &self,
        session: &str,
        admission: LoginAdmission<'_>,
        now: Timestamp,
    ) -> io::Result<bool> {
        let table = self.table()?;
        let session = table.live_session(session, admission.lifetimes, now);
        Ok(session.is_some_and(|session| person_in(&table, session, admission).is_some()))
    }

    /// Returns the person of this cookie, and records the use. `None` if the session has ended, or the person may no
    /// longer log in.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn find(
        &self,
        cookie: &str,
        admission: LoginAdmission<'_>,
        now: Timestamp,
    ) -> io::Result<Option<SignedIn>> {
        let table = self.table()?;
        let Some(session) = table.find(cookie, admission.lifetimes, now) else {
            return Ok(None);
        };
        let Some(signed_in) = person_in(&table, session, admission) else {
            return Ok(None);
        };
        if !session.came_back || seconds(now) >= session.used.saturating_add(NOTED_EVERY) {
            let digest = session.digest.clone();
            let noted = self.0.change(|table| {
                let known = table.sessions.iter_mut();
                for session in known.filter(|session| session.digest == digest) {
                    session.used = session.used.max(seconds(now));
                    session.came_back = true;
                }
                Ok(())
            });
            if let Err(error) = noted {
                tracing::warn!(%error, "the use of a session could not be noted");
            }
        }
        Ok(Some(signed_in))
    }

    /// Records the claims of a person who is logged in as this identity, if they have changed or are old.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn refresh(
        &self,
        person: &str,
        identity: &LoginIdentity,
        now: Timestamp,
    ) -> io::Result<()> {
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

    /// Ends the sessions that `ends` selects, with their devices; returns them.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn end(&self, ends: impl Fn(&LoginSession) -> bool) -> io::Result<EndedLogins> {
        if !self.table()?.sessions.iter().any(&ends) {
            return Ok(EndedLogins::default());
        }
        self.0.change(|table| {
            let (sessions, left): (Vec<_>, _) = std::mem::take(&mut table.sessions)
                .into_iter()
                .partition(&ends);
            table.sessions = left;
            let devices = table.end_devices_of(&sessions);
            Ok(EndedLogins { sessions, devices })
        })
    }

    /// Ends the sessions of a logout token, with their devices: those of the issuer's session, or all of the subject.
    /// `None` if the token was used before.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn end_by_token(
        &self,
        issuer: &str,
        subject: Option<&str>,
        sid: Option<&str>,
        token_id: &str,
        now: Timestamp,
    ) -> io::Result<Option<EndedLogins>> {
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
            let (sessions, left): (Vec<_>, _) = std::mem::take(&mut table.sessions)
                .into_iter()
                .partition(ends);
            table.sessions = left;
            let mut devices = table.end_devices_of(&sessions);
            devices.extend(table.end_devices_at(issuer, subject, sid));
            Ok(Some(EndedLogins { sessions, devices }))
        })
    }

    /// Unbinds a person from the subject of the first login, and ends the sessions. Returns `false` if nothing was
    /// bound.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn unbind(&self, person: &str) -> io::Result<bool> {
        self.0.change(|table| {
            table.sessions.retain(|session| session.person != person);
            table.devices.retain(|device| device.person() != person);
            Ok(table.people.remove(person).is_some())
        })
    }
}

/// Returns the person of a session; `None` if the person may no longer log in.
fn person_in(
    table: &LoginTable,
    session: &LoginSession,
    admission: LoginAdmission<'_>,
) -> Option<SignedIn> {
    let signed_in = table.signed_in(session)?;
    let identity = LoginIdentity {
        issuer: signed_in.issuer.clone(),
        subject: signed_in.subject.clone(),
        name: String::new(),
        mail: signed_in.mail.clone(),
        claims: signed_in.claims.clone(),
        sid: None,
        auth_at: None,
    };
    // The file may have changed: the session belongs to the person for whom it was created.
    let person = admitted(table, &identity, admission.people, admission.allow);
    (person.as_ref() == Ok(&signed_in.person)).then_some(signed_in)
}

/// Returns the person of an identity, and whether it may log in.
fn admitted(
    table: &LoginTable,
    identity: &LoginIdentity,
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
        || !Actor::can_name(&identity.subject)
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
    let mail = identity.mail.as_deref();
    let of_mail = mail.and_then(|mail| people.find("", mail));
    if may {
        Ok(person)
    } else if of_mail.is_some_and(|name| table.people.contains_key(name)) {
        Err(LoginRefused::BoundToAnother)
    } else {
        Err(LoginRefused::NotAllowed)
    }
}
