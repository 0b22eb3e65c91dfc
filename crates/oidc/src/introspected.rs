//! The remembered answers of an issuer about tokens (RFC 7662), and the limits on questions to it. Anyone can send
//! tokens that no issuer knows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::rate::RateWindow;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The time for which an answer about an active token is cached.
const CACHED: Duration = Duration::from_secs(30);
/// The time for which a token counts as unknown to its issuer.
const UNKNOWN: Duration = Duration::from_secs(10);
/// The time after which a token that was active before counts as a new one.
const SEEN: Duration = Duration::from_secs(24 * 60 * 60);
/// The most tokens of each kind.
const MOST: usize = 10_000;
/// The most bytes of cached answers.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The longest answer about a token, in bytes.
pub(crate) const LONGEST_ANSWER: usize = 64 * 1024;
/// The most questions at once about tokens that were never active.
const AT_ONCE: usize = 16;
/// The most of these questions in a second.
const A_SECOND: u32 = 30;
/// The time after which a request may be repeated that was over these limits.
const RETRY: Duration = Duration::from_secs(1);
/// The most failed questions a minute that are logged.
const LOGGED: usize = 30;

/// The SHA-256 of a token.
pub(crate) type TokenDigest = [u8; 32];

/// Returns the digest of a token.
pub(crate) fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token.as_bytes()).into()
}

/// The answers of an issuer about tokens.
#[derive(Debug, Default)]
pub(crate) struct Introspected {
    state: Mutex<State>,
    at_once: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    /// The claims of active tokens, as JSON, with the times until which they are cached.
    active: HashMap<TokenDigest, (Box<str>, Timestamp)>,
    /// The bytes of these claims.
    bytes: usize,
    /// Tokens that are not active, with the times until which they count as such.
    unknown: HashMap<TokenDigest, Timestamp>,
    /// Tokens that were active, with the times at which they were last.
    seen: HashMap<TokenDigest, Timestamp>,
    /// The second in which questions were counted, and their number.
    counted: (u64, u32),
    /// The time at which old answers were dropped.
    dropped_at: Timestamp,
    logged: RateWindow<Timestamp>,
    left_out: u64,
}

/// The answer about a token that is remembered.
pub(crate) enum Known {
    /// The token is active and has these claims.
    Active(Map<String, Value>),
    /// It is not active.
    Unknown,
    /// The issuer has to be asked.
    Nothing,
}

/// A question to the issuer that counts until it is answered.
#[derive(Debug)]
pub(crate) struct Asking(Option<Arc<AtomicUsize>>);

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(at_once) = &self.0 {
            at_once.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Introspected {
    /// Returns what is remembered of this token.
    pub(crate) fn known(&self, token: &TokenDigest, now: Timestamp) -> Known {
        let state = self.state();
        if let Some((claims, until)) = state.active.get(token)
            && now < *until
            && let Ok(claims) = serde_json::from_str(claims)
        {
            return Known::Active(claims);
        }
        if state.unknown.get(token).is_some_and(|until| now < *until) {
            return Known::Unknown;
        }
        Known::Nothing
    }

    /// Begins a question about a token. Those about tokens that were active have no limit.
    ///
    /// # Errors
    /// If too many others were asked about; the time after which this one may be.
    pub(crate) fn begin(&self, token: &TokenDigest, now: Timestamp) -> Result<Asking, Duration> {
        let mut state = self.state();
        let is_seen = |at: &Timestamp| now.since(*at) < SEEN;
        if state.seen.get(token).is_some_and(is_seen) {
            return Ok(Asking(None));
        }
        let second = now.as_millis() / 1_000;
        if state.counted.0 != second {
            state.counted = (second, 0);
        }
        if state.counted.1 >= A_SECOND || self.at_once.load(Ordering::Acquire) >= AT_ONCE {
            return Err(RETRY);
        }
        state.counted.1 += 1;
        self.at_once.fetch_add(1, Ordering::AcqRel);
        Ok(Asking(Some(self.at_once.clone())))
    }

    /// Remembers the claims of an active token, which expires at this time.
    pub(crate) fn active(
        &self,
        token: TokenDigest,
        claims: &Map<String, Value>,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) {
        let mut state = self.state();
        state.unknown.remove(&token);
        if state.seen.len() >= MOST {
            state.seen.retain(|_, at| now.since(*at) < SEEN);
        }
        if state.seen.len() < MOST || state.seen.contains_key(&token) {
            state.seen.insert(token, now);
        }
        let Ok(claims) = serde_json::to_string(claims) else {
            return;
        };
        state.forget(&token);
        if state.is_full(claims.len()) || now.since(state.dropped_at) >= CACHED {
            state.drop_old(now);
        }
        if !state.is_full(claims.len()) {
            let until = now.after(CACHED);
            let until = expires_at.map_or(until, |at| at.min(until));
            state.bytes += claims.len();
            state.active.insert(token, (claims.into(), until));
        }
    }

    /// Remembers that a token is not active.
    pub(crate) fn inactive(&self, token: TokenDigest, now: Timestamp) {
        let mut state = self.state();
        state.forget(&token);
        state.seen.remove(&token);
        if state.unknown.len() >= MOST {
            state.unknown.retain(|_, until| now < *until);
        }
        if state.unknown.len() < MOST {
            state.unknown.insert(token, now.after(UNKNOWN));
        }
    }

    /// Counts a question that failed. Returns the number of those before it that were not logged, if this one is logged.
    pub(crate) fn failed(&self, now: Timestamp) -> Option<u64> {
        let mut state = self.state();
        let admitted = state.logged.admit(LOGGED, now, |at| now.since(at));
        if admitted.is_err() {
            state.left_out = state.left_out.saturating_add(1);
            return None;
        }
        Some(std::mem::take(&mut state.left_out))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_full(&self, bytes: usize) -> bool {
        self.active.len() >= MOST || self.bytes + bytes > MOST_BYTES
    }

    fn forget(&mut self, token: &TokenDigest) {
        if let Some((claims, _)) = self.active.remove(token) {
            self.bytes -= claims.len();
        }
    }

    fn drop_old(&mut self, now: Timestamp) {
        self.dropped_at = now;
        self.active.retain(|_, (_, until)| now < *until);
        self.active.shrink_to_fit();
        self.bytes = self.active.values().map(|(claims, _)| claims.len()).sum();
        self.unknown.retain(|_, until| now < *until);
        self.unknown.shrink_to_fit();
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("active", &self.active.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    fn number(number: usize) -> TokenDigest {
        digest(&number.to_string())
    }

    fn claims(bytes: usize) -> Map<String, Value> {
        let claims = json!({"sub": "ada", "groups": "g".repeat(bytes)});
        claims.as_object().cloned().unwrap()
    }

    #[test]
    fn questions_about_tokens_that_were_never_active_have_a_limit() {
        let all = Introspected::default();
        let open: Vec<_> = (0..AT_ONCE)
            .map(|token| all.begin(&number(token), at(0)).unwrap())
            .collect();
        assert_eq!(all.begin(&number(99), at(0)).unwrap_err(), RETRY);
        drop(open);
        let answered = (0..100).filter(|token| all.begin(&number(*token), at(1)).is_ok());
        assert_eq!(answered.count() + AT_ONCE, A_SECOND as usize);
        assert!(all.begin(&number(99), at(1_000)).is_ok(), "the next second");
        // Those that were active go on.
        all.active(number(5), &claims(1), None, at(1_001));
        assert!((0..100).all(|_| all.begin(&number(5), at(60_000)).is_ok()));
        all.inactive(number(5), at(60_000));
        let open: Vec<_> = (0..A_SECOND as usize)
            .filter_map(|token| all.begin(&number(token), at(61_000)).ok())
            .collect();
        assert!(all.begin(&number(5), at(61_000)).is_err());
        drop(open);
    }

    #[test]
    fn a_token_that_is_not_active_is_remembered_for_some_seconds() {
        let all = Introspected::default();
        let is_unknown = |millis| matches!(all.known(&number(1), at(millis)), Known::Unknown);
        assert!(!is_unknown(0));
        all.active(number(1), &claims(1), None, at(0));
        all.inactive(number(1), at(0));
        assert!(is_unknown(9_999) && !is_unknown(10_000));
        for token in 0..2 * MOST {
            all.inactive(number(token), at(20_000));
        }
        assert_eq!(all.state().unknown.len(), MOST);
        all.active(number(1), &claims(1), None, at(30_000));
        assert_eq!(all.state().unknown.len(), 0);
    }

    #[test]
    fn cached_answers_are_bounded_in_bytes_and_end_with_time() {
        let all = Introspected::default();
        for token in 0..2_000 {
            all.active(number(token), &claims(LONGEST_ANSWER / 2), None, at(0));
        }
        let held = all.state().bytes;
        assert!(held <= MOST_BYTES && held > MOST_BYTES / 2, "{held}");
        assert!(matches!(
            all.known(&number(0), at(29_999)),
            Known::Active(_)
        ));
        assert!(matches!(all.known(&number(0), at(30_000)), Known::Nothing));
        // The same token again takes no more, and the others make room.
        for _ in 0..3 {
            all.active(number(0), &claims(1_000), None, at(30_000));
        }
        all.active(number(1), &claims(LONGEST_ANSWER / 2), None, at(30_000));
        let held = all.state().bytes;
        assert!(held < LONGEST_ANSWER, "{held}");
        all.active(number(2), &claims(1), None, at(60_000));
        assert_eq!(all.state().active.len(), 1);
    }

    #[test]
    fn so_many_failed_questions_a_minute_are_logged() {
        let all = Introspected::default();
        let logged = (0..1_000).filter_map(|_| all.failed(at(0)));
        assert_eq!(logged.count(), LOGGED);
        assert_eq!(all.failed(at(60_000)), Some(970));
        assert_eq!(all.failed(at(60_001)), Some(0));
    }
}
