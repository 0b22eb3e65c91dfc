//! The sessions of a site: one-time login keys, signed-in browsers, and the path that only they know.
//!
//! A [`SessionTable`] is data: it holds digests, never a usable key or cookie. A [`SessionStore`] stores one, in memory
//! ([`MemorySessions`]) or elsewhere.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::view::sanitize;

/// The time that a session lives without a request.
const IDLE: Duration = Duration::from_secs(12 * 60 * 60);

/// The interval at which the use of a session is recorded.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// The most sessions at once; a further login ends the least recently used one.
const MOST_SESSIONS: usize = 64;

/// The most login keys at once; a further one replaces the oldest.
const MOST_LOGINS: usize = 1_024;

/// The longest kept name of a browser, in characters.
const BROWSER: usize = 160;

/// Returns 256 random bits as text for an address.
#[expect(
    clippy::disallowed_methods,
    reason = "the secrets of an address are drawn where it is served"
)]
pub(super) fn random_text() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}"); // writing to a String cannot fail
        hex
    })
}

fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// Returns the seconds since 1970; 0 for earlier times.
fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// A login key that has not been used yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LoginKey {
    digest: String,
    until: u64,
}

/// A browser that is signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserSession {
    digest: String,
    created: u64,
    used: u64,
    browser: String,
}

impl BrowserSession {
    /// Returns its name, eight hexadecimal digits, which grants nothing.
    pub fn id(&self) -> &str {
        self.digest.get(..8).unwrap_or_default()
    }

    /// Returns the time of its sign-in, in seconds since 1970.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// Returns the time of its last use, in seconds since 1970, to the minute.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Returns the browser's own name, made safe to show.
    pub fn browser(&self) -> &str {
        &self.browser
    }

    fn is_live(&self, now: u64) -> bool {
        now < self.used.saturating_add(IDLE.as_secs())
    }
}

/// A session that was just made.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its name.
    pub id: String,
    /// The value of its cookie, of which only the digest is stored.
    pub cookie: String,
}

impl fmt::Debug for NewSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSession")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// All sessions of a site, and the keys to new ones.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTable {
    /// The part of the pages' path that only signed-in browsers know.
    path: String,
    /// The key of the authentication tags in forms and reviews.
    key: String,
    #[serde(default)]
    logins: Vec<LoginKey>,
    #[serde(default)]
    sessions: Vec<BrowserSession>,
}

impl fmt::Debug for SessionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTable")
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

impl SessionTable {
    /// Creates a table without sessions, with a random path and key.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            path: random_text()?,
            key: random_text()?,
            logins: Vec::new(),
            sessions: Vec::new(),
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Returns `true` if path and key are long enough to be secrets and have only characters for an address; `false`
    /// for a table that was changed by hand.
    pub fn is_sound(&self) -> bool {
        [&self.path, &self.key].iter().all(|text| {
            text.len() >= 32
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        })
    }

    /// Adds a key that signs one browser in, once, within `life`; returns the key.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn add_login(&mut self, now: SystemTime, life: Duration) -> io::Result<String> {
        let key = random_text()?;
        let now = seconds(now);
        self.logins.retain(|login| now < login.until);
        if self.logins.len() >= MOST_LOGINS {
            self.logins.remove(0);
        }
        self.logins.push(LoginKey {
            digest: digest(&key),
            until: now.saturating_add(life.as_secs()),
        });
        Ok(key)
    }

    /// Returns `true` if the key is valid and unused.
    pub fn is_unused(&self, key: &str, now: SystemTime) -> bool {
        let (digest, now) = (digest(key), seconds(now));
        self.logins
            .iter()
            .any(|login| now < login.until && same(&login.digest, &digest))
    }

    /// Drops an unused key.
    pub fn drop_login(&mut self, key: &str) {
        let digest = digest(key);
        self.logins.retain(|login| login.digest != digest);
    }

    /// Redeems the key for a session; `None` for a key that is unknown, used or too old.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn redeem(
        &mut self,
        key: &str,
        now: SystemTime,
        browser: &str,
    ) -> io::Result<Option<NewSession>> {
        if !self.is_unused(key, now) {
            return Ok(None);
        }
        let cookie = random_text()?;
        self.drop_login(key);
        let now = seconds(now);
        self.sessions.retain(|session| session.is_live(now));
        if self.sessions.len() >= MOST_SESSIONS {
            let oldest = self
                .sessions
                .iter()
                .enumerate()
                .min_by_key(|(_, session)| session.used);
            if let Some((at, _)) = oldest {
                self.sessions.remove(at);
            }
        }
        let session = BrowserSession {
            digest: digest(&cookie),
            created: now,
            used: now,
            browser: sanitize::line(browser, BROWSER),
        };
        let id = session.id().to_owned();
        self.sessions.push(session);
        Ok(Some(NewSession { id, cookie }))
    }

    /// Returns the session of this cookie, unless it has ended.
    pub fn find(&self, cookie: &str, now: SystemTime) -> Option<&BrowserSession> {
        let (digest, now) = (digest(cookie), seconds(now));
        self.sessions
            .iter()
            .find(|session| same(&session.digest, &digest) && session.is_live(now))
    }

    /// Returns `true` if the session's recorded use is so old that this one should be recorded.
    pub(super) fn is_due(session: &BrowserSession, now: SystemTime) -> bool {
        seconds(now) >= session.used.saturating_add(NOTED_EVERY.as_secs())
    }

    /// Records that the session is used now.
    pub(super) fn note_use(&mut self, id: &str, now: SystemTime) {
        let now = seconds(now);
        for session in &mut self.sessions {
            if session.id() == id && session.is_live(now) {
                session.used = now;
            }
        }
    }

    /// Returns the live sessions, the most recently used first.
    pub fn live(&self, now: SystemTime) -> Vec<&BrowserSession> {
        let now = seconds(now);
        let mut live: Vec<&BrowserSession> = self
            .sessions
            .iter()
            .filter(|session| session.is_live(now))
            .collect();
        live.sort_by_key(|session| std::cmp::Reverse(session.used));
        live
    }

    /// Ends the session of this name; returns `false` if there is none.
    pub fn revoke(&mut self, id: &str) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|session| session.id() != id);
        self.sessions.len() < before
    }

    /// Ends every session and drops every unused key; returns the number of ended sessions.
    pub fn revoke_all(&mut self) -> usize {
        self.logins.clear();
        std::mem::take(&mut self.sessions).len()
    }
}

/// A store of the sessions of a site.
pub trait SessionStore: Send + Sync + 'static {
    /// Returns the current table.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self) -> io::Result<Arc<SessionTable>>;

    /// Changes the table and stores it: all of the change or, on an error, none.
    ///
    /// # Errors
    /// If it cannot be read or written, or the change itself failed.
    fn change(&self, change: &mut dyn FnMut(&mut SessionTable) -> io::Result<()>)
    -> io::Result<()>;
}

/// A store of sessions that end with the process.
#[derive(Debug)]
pub struct MemorySessions(Mutex<Arc<SessionTable>>);

impl MemorySessions {
    /// Creates a store without sessions.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Mutex::new(Arc::new(SessionTable::new()?))))
    }
}

impl SessionStore for MemorySessions {
    fn read(&self) -> io::Result<Arc<SessionTable>> {
        Ok(Arc::clone(
            &self.0.lock().unwrap_or_else(PoisonError::into_inner),
        ))
    }

    fn change(
        &self,
        change: &mut dyn FnMut(&mut SessionTable) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = (**kept).clone();
        change(&mut table)?;
        *kept = Arc::new(table);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_login_key_works_once_and_not_for_ever() {
        let mut table = SessionTable::new().unwrap();
        let key = table.add_login(at(0), HOUR).unwrap();
        let late = table.add_login(at(0), HOUR).unwrap();
        assert_eq!(table.redeem("guess", at(1), "b").unwrap(), None);
        let session = table.redeem(&key, at(1), "b").unwrap().unwrap();
        assert_eq!(table.redeem(&key, at(1), "b").unwrap(), None);
        assert_eq!(table.redeem(&late, at(3_600), "b").unwrap(), None);
        assert_eq!(table.find(&session.cookie, at(2)).unwrap().id(), session.id);
        assert!(table.find(&key, at(2)).is_none() && table.find("", at(2)).is_none());
    }

    #[test]
    fn a_session_ends_after_twelve_hours_without_use() {
        let mut table = SessionTable::new().unwrap();
        let key = table.add_login(at(0), HOUR).unwrap();
        let session = table.redeem(&key, at(0), "b").unwrap().unwrap();
        assert!(table.find(&session.cookie, at(43_199)).is_some());
        assert!(table.find(&session.cookie, at(43_200)).is_none());
        table.note_use(&session.id, at(40_000));
        assert!(table.find(&session.cookie, at(83_199)).is_some());
        assert!(table.find(&session.cookie, at(83_200)).is_none());
        assert!(table.live(at(83_200)).is_empty());
        // A late use does not revive a session that has ended.
        table.note_use(&session.id, at(90_000));
        assert!(table.find(&session.cookie, at(90_001)).is_none());
    }

    #[test]
    fn sessions_are_ended_one_by_one_or_all() {
        let mut table = SessionTable::new().unwrap();
        let mut open = || {
            let key = table.add_login(at(0), HOUR).unwrap();
            table
                .redeem(&key, at(0), "Fire\u{1b}[2Jfox")
                .unwrap()
                .unwrap()
        };
        let (one, two) = (open(), open());
        let unused = table.add_login(at(0), HOUR).unwrap();
        assert!(table.revoke(&one.id) && !table.revoke(&one.id) && !table.revoke(""));
        assert!(
            table.find(&one.cookie, at(1)).is_none() && table.find(&two.cookie, at(1)).is_some()
        );
        assert!(!table.live(at(1))[0].browser().contains('\u{1b}'));
        assert_eq!(table.revoke_all(), 1);
        assert!(table.find(&two.cookie, at(1)).is_none() && !table.is_unused(&unused, at(1)));
    }

    #[test]
    fn nothing_that_is_kept_can_be_used() {
        let mut table = SessionTable::new().unwrap();
        let unused = table.add_login(at(0), HOUR).unwrap();
        let key = table.add_login(at(0), HOUR).unwrap();
        let session = table.redeem(&key, at(0), "b").unwrap().unwrap();
        let kept = serde_json::to_string(&table).unwrap();
        for secret in [&unused, &key, &session.cookie] {
            assert!(!kept.contains(secret.as_str()));
        }
        let shown = format!("{table:?} {session:?}");
        assert!(!shown.contains(&session.cookie) && !shown.contains(table.path()));
        let again: SessionTable = serde_json::from_str(&kept).unwrap();
        assert!(again == table && again.is_sound());
    }

    #[test]
    fn sessions_are_bounded() {
        let mut table = SessionTable::new().unwrap();
        let mut last = None;
        for second in 0..100 {
            let key = table.add_login(at(second), HOUR).unwrap();
            last = table.redeem(&key, at(second), "b").unwrap();
        }
        assert_eq!(table.live(at(100)).len(), MOST_SESSIONS);
        assert!(table.find(&last.unwrap().cookie, at(100)).is_some());
        for _ in 0..2_000 {
            table.add_login(at(100), HOUR).unwrap();
        }
        assert_eq!(table.logins.len(), MOST_LOGINS);
    }
}
