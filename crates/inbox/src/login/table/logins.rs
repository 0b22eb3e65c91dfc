//! The logins of a state folder: those who may log in, and how sessions begin, are found and end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_policy::{Addressee, People};
use mcp_elicit_record::encryption::random_id;

use super::{Admission, BROWSER, Identity, LoginRefused, LoginSession, LoginTable, hash, seconds};
use crate::shared_file::SharedFile;
use crate::viewer::SignedIn;

/// The most sessions of one person; a further login ends the one that was used longest ago.
pub(super) const MOST_OF_ONE: usize = 20;
/// The most sessions in all.
const MOST: usize = 20_000;
/// The most bytes of a name, a mail address or a value of the claim.
const LONGEST: usize = 255;
/// The most values of the claim of groups.
const MOST_CLAIMS: usize = 500;
/// The time that a session is used, or claims stay the same, before that is written down again.
const NOTED_EVERY: u64 = 60;
/// The time for which the id of a logout token is remembered, in seconds: longer than any is accepted.
const REMEMBERED: u64 = 600;

/// The logins of one state folder, in a file that gateways and commands share.
#[derive(Debug)]
pub struct Logins(pub(super) SharedFile<LoginTable>);

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
                auth_at: identity
                    .auth_at
                    .map_or(0, |at| seconds(at).min(seconds_now)),
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
