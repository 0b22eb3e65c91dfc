//! The access tokens with which the requests of a session came. A call belongs to the token of the request that made it.
//!
//! In the session of one client, a later token takes the place of an earlier one, as a refresh does: a call goes on while
//! its token, or one that the same session showed later, is valid. Requests without a session have only their own tokens.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_relay::AccessNumber;

use super::EndedTokens;
use super::caller::ProvenCaller;
use crate::config::SecretText;

/// The number of a session's newest tokens that are kept while no call came with them.
const NEWEST: usize = 16;
/// The time for which a token is kept after a request, whose call may not have begun.
const BEGINNING: Duration = Duration::from_secs(60);

/// An access token of a caller.
pub(crate) struct CallerToken {
    /// Its text; `None` if the issuer is not asked about it.
    secret: Option<SecretText>,
    expires_at: Option<Timestamp>,
    /// The time at which the issuer was asked last, in milliseconds since 1970.
    asked_at: AtomicU64,
    is_revoked: AtomicBool,
}

impl CallerToken {
    /// Creates a token about which the issuer was asked now, if it is asked at all.
    pub(super) fn new(
        secret: Option<SecretText>,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        Self {
            secret,
            expires_at,
            asked_at: AtomicU64::new(now.as_millis()),
            is_revoked: AtomicBool::new(false),
        }
    }

    /// Returns its text, if the issuer is to be asked about it again after this time.
    pub(super) fn due(&self, after: Duration, now: Timestamp) -> Option<&str> {
        let asked_at = Timestamp::from_millis(self.asked_at.load(Ordering::Relaxed));
        let is_due = !self.is_revoked() && now.since(asked_at) >= after;
        self.secret
            .as_ref()
            .filter(|_| is_due)
            .map(SecretText::reveal)
    }

    /// Records the issuer's answer.
    pub(super) fn answered(&self, is_active: bool, now: Timestamp) {
        self.asked_at.store(now.as_millis(), Ordering::Relaxed);
        if !is_active {
            self.is_revoked.store(true, Ordering::Relaxed);
        }
    }

    /// Returns its state.
    pub(super) fn state(&self, now: Timestamp) -> TokenState {
        if self.is_revoked() {
            TokenState::Revoked
        } else if self.expires_at.is_some_and(|at| now >= at) {
            TokenState::Expired
        } else {
            TokenState::Valid
        }
    }

    /// Returns `true` if the issuer has revoked it.
    pub(super) fn is_revoked(&self) -> bool {
        self.is_revoked.load(Ordering::Relaxed)
    }
}

/// The state of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenState {
    Valid,
    Expired,
    Revoked,
}

/// The tokens of a session.
pub(super) struct ShownTokens {
    /// `true` if all requests are of one client.
    of_one_client: bool,
    all: Mutex<Numbered>,
}

#[derive(Default)]
struct Numbered {
    by_number: BTreeMap<AccessNumber, Shown>,
    last: u16,
    count: u64,
}

struct Shown {
    number: AccessNumber,
    token: Arc<CallerToken>,
    /// Its place among the tokens that the session showed.
    place: u64,
    used_at: Timestamp,
}

impl ShownTokens {
    pub(super) fn new(of_one_client: bool) -> Self {
        Self {
            of_one_client,
            all: Mutex::default(),
        }
    }

    /// Returns `true` if all requests are of one client.
    pub(super) fn of_one_client(&self) -> bool {
        self.of_one_client
    }

    /// Returns the number of the token with which a request came, which may be new; 0 if it came with none. `None` if there
    /// are too many.
    pub(super) fn number_of(&self, caller: &ProvenCaller, now: Timestamp) -> Option<AccessNumber> {
        let Some(token) = caller.token() else {
            return Some(AccessNumber::default());
        };
        let mut all = self.all();
        let known = all
            .by_number
            .iter_mut()
            .find(|(_, shown)| Arc::ptr_eq(&shown.token, token));
        if let Some((number, shown)) = known {
            shown.used_at = now;
            return Some(*number);
        }
        // A number is used again as late as possible.
        let free = (1..=AccessNumber::MOST)
            .map(|step| AccessNumber((all.last + step - 1) % AccessNumber::MOST + 1))
            .find(|number| !all.by_number.contains_key(number))?;
        all.last = free.0;
        all.count += 1;
        let shown = Shown {
            number: free,
            token: token.clone(),
            place: all.count,
            used_at: now,
        };
        all.by_number.insert(free, shown);
        Some(free)
    }

    /// Returns the state of a call that came with this token; that of the session if it came with none.
    pub(super) fn state(&self, number: AccessNumber, now: Timestamp) -> TokenState {
        let all = self.all();
        if number != AccessNumber::default() {
            let states = all.states(self.of_one_client, now);
            return states.get(&number).copied().unwrap_or(TokenState::Revoked);
        }
        let first = all.newest_first(true, now).pop();
        match first {
            Some((_, state)) => state,
            None if self.of_one_client && all.count > 0 => TokenState::Revoked,
            None => TokenState::Valid,
        }
    }

    /// Returns the valid tokens by which calls are judged that came with these.
    pub(super) fn to_ask(
        &self,
        accesses: &BTreeSet<AccessNumber>,
        now: Timestamp,
    ) -> Vec<Arc<CallerToken>> {
        let all = self.all();
        let asked = all.by_number.values().filter(|shown| {
            (self.of_one_client || accesses.contains(&shown.number))
                && shown.token.state(now) == TokenState::Valid
        });
        asked.map(|shown| shown.token.clone()).collect()
    }

    /// Returns the tokens that have ended, and forgets those that no call needs. `at_work` are the tokens with which open
    /// calls came.
    pub(super) fn take_ended(
        &self,
        at_work: &BTreeSet<AccessNumber>,
        now: Timestamp,
    ) -> EndedTokens {
        let mut all = self.all();
        let states = all.states(self.of_one_client, now);
        let in_state = |wanted| {
            let those = states.iter().filter(move |(_, state)| **state == wanted);
            those.map(|(number, _)| *number)
        };
        let unknown = at_work.iter().filter(|number| !states.contains_key(number));
        let ended = EndedTokens {
            revoked: in_state(TokenState::Revoked)
                .chain(unknown.copied())
                .collect(),
            expired: in_state(TokenState::Expired)
                .filter(|number| at_work.contains(number))
                .collect(),
        };
        let kept = if self.of_one_client { NEWEST } else { 0 };
        all.forget(at_work, &ended.revoked, kept, now);
        ended
    }

    fn all(&self) -> MutexGuard<'_, Numbered> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Numbered {
    /// Returns the tokens, newest first, with the states of the calls that came with them.
    fn newest_first(&self, of_one_client: bool, now: Timestamp) -> Vec<(&Shown, TokenState)> {
        let mut all: Vec<&Shown> = self.by_number.values().collect();
        all.sort_unstable_by_key(|shown| Reverse(shown.place));
        let mut later = None;
        let state = |shown: &Shown| {
            let own = shown.token.state(now);
            if !of_one_client {
                return own;
            }
            if own == TokenState::Valid {
                later = Some(own);
            }
            *later.get_or_insert(own)
        };
        let states: Vec<TokenState> = all.iter().copied().map(state).collect();
        all.into_iter().zip(states).collect()
    }

    /// Returns the states of the calls that came with these tokens.
    fn states(&self, of_one_client: bool, now: Timestamp) -> BTreeMap<AccessNumber, TokenState> {
        let states = self.newest_first(of_one_client, now);
        let states = states
            .into_iter()
            .map(|(shown, state)| (shown.number, state));
        states.collect()
    }

    /// Forgets tokens that were revoked, and those that no call needs, but for this number of the newest.
    fn forget(
        &mut self,
        at_work: &BTreeSet<AccessNumber>,
        revoked: &[AccessNumber],
        kept: usize,
        now: Timestamp,
    ) {
        self.by_number.retain(|number, _| !revoked.contains(number));
        let mut places: Vec<u64> = self.by_number.values().map(|shown| shown.place).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        let oldest_kept = places
            .get(..kept.min(places.len()))
            .and_then(<[u64]>::last)
            .copied();
        self.by_number.retain(|number, shown| {
            at_work.contains(number)
                || oldest_kept.is_some_and(|oldest| shown.place >= oldest)
                || now.since(shown.used_at) < BEGINNING
        });
    }
}

impl std::fmt::Debug for ShownTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShownTokens")
            .field("of_one_client", &self.of_one_client)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: AccessNumber = AccessNumber(0);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_secs(seconds))
    }

    /// Returns a caller with a token of its own that expires at this time.
    fn caller(expires_at: Option<u64>) -> ProvenCaller {
        let mut caller = ProvenCaller::of_subject("https://id.example", "ada", None);
        let expires_at = expires_at.map(at);
        let token = CallerToken::new(Some(SecretText::new("secret")), expires_at, at(0));
        caller.token = Some(Arc::new(token));
        caller
    }

    fn revoke(caller: &ProvenCaller) {
        caller.token().unwrap().answered(false, at(0));
    }

    /// Shows these tokens, in order. Returns their numbers.
    fn shown<const N: usize>(
        tokens: &ShownTokens,
        callers: [&ProvenCaller; N],
    ) -> [AccessNumber; N] {
        callers.map(|caller| tokens.number_of(caller, at(0)).unwrap())
    }

    #[test]
    fn a_call_ends_with_its_own_token_and_with_no_other() {
        for of_one_client in [false, true] {
            let tokens = ShownTokens::new(of_one_client);
            let (first, second) = (caller(None), caller(Some(10)));
            let [one, two] = shown(&tokens, [&first, &second]);
            assert_eq!(shown(&tokens, [&second, &first]), [two, one]);
            revoke(&second);
            let state = |number| tokens.state(number, at(1));
            assert_eq!(state(one), TokenState::Valid);
            assert_eq!(state(two), TokenState::Revoked);
            assert_eq!(state(NONE), TokenState::Valid, "the first is valid");
            let at_work = [one, two].into();
            let ended = tokens.take_ended(&at_work, at(1));
            assert_eq!((ended.revoked, ended.expired), (vec![two], vec![]));
            // It is not taken for a new one, and a call that begins with it late ends too.
            assert_eq!(state(two), TokenState::Revoked);
            let ended = tokens.take_ended(&at_work, at(1));
            assert_eq!((ended.revoked, ended.expired), (vec![two], vec![]));
            assert!(tokens.take_ended(&[one].into(), at(1)) == EndedTokens::default());
        }
    }

    #[test]
    fn a_refreshed_token_goes_on_for_the_calls_of_its_session_only() {
        for (of_one_client, goes_on) in [(true, TokenState::Valid), (false, TokenState::Revoked)] {
            let tokens = ShownTokens::new(of_one_client);
            let (first, second) = (caller(Some(10)), caller(Some(20)));
            let [one, two] = shown(&tokens, [&first, &second]);
            revoke(&first);
            assert_eq!(tokens.state(one, at(1)), goes_on);
            assert_eq!(tokens.state(two, at(1)), TokenState::Valid);
        }
        let tokens = ShownTokens::new(true);
        let (first, second) = (caller(Some(10)), caller(Some(20)));
        let [one, two] = shown(&tokens, [&first, &second]);
        assert_eq!(tokens.state(one, at(15)), TokenState::Valid);
        // The state of the newest counts once none is valid.
        assert_eq!(tokens.state(one, at(25)), TokenState::Expired);
        assert_eq!(tokens.state(NONE, at(25)), TokenState::Expired);
        revoke(&second);
        for number in [one, two, NONE] {
            assert_eq!(tokens.state(number, at(15)), TokenState::Revoked);
        }
    }

    #[test]
    fn a_token_without_an_end_is_not_older_than_one_that_has_expired() {
        let tokens = ShownTokens::new(true);
        let (first, second) = (caller(Some(10)), caller(None));
        let [one, two] = shown(&tokens, [&first, &second]);
        for number in [one, two, NONE] {
            assert_eq!(tokens.state(number, at(99)), TokenState::Valid);
        }
    }

    #[test]
    fn an_expired_token_hands_back_the_calls_that_came_with_it() {
        let tokens = ShownTokens::new(false);
        let [one, two] = shown(&tokens, [&caller(Some(10)), &caller(Some(20))]);
        let ended = tokens.take_ended(&[one, two].into(), at(15));
        assert_eq!((ended.revoked, ended.expired), (vec![], vec![one]));
        assert_eq!(tokens.to_ask(&[one, two].into(), at(15)).len(), 1);
        assert_eq!(tokens.state(NONE, at(15)), TokenState::Valid);
    }

    #[test]
    fn tokens_are_forgotten_that_no_call_needs_and_their_number_is_bounded() {
        let tokens = ShownTokens::new(false);
        let used = caller(None);
        let [used_number] = shown(&tokens, [&used]);
        let others = std::iter::repeat_with(|| tokens.number_of(&caller(None), at(0)));
        let others = others.map_while(|number| number).count();
        assert_eq!(others, usize::from(AccessNumber::MOST) - 1);
        tokens.take_ended(&[used_number].into(), at(61));
        assert_eq!(tokens.all().by_number.len(), 1);
        assert_eq!(shown(&tokens, [&used]), [used_number]);
        // One client's newest tokens stay, with those of its calls.
        let tokens = ShownTokens::new(true);
        let callers: Vec<_> = (0..100).map(|_| caller(None)).collect();
        let numbers: Vec<_> = callers.iter().map(|one| shown(&tokens, [one])[0]).collect();
        tokens.take_ended(&[numbers[0]].into(), at(61));
        let all = tokens.all();
        let kept: Vec<_> = all.by_number.keys().copied().collect();
        assert_eq!(kept.len(), NEWEST + 1);
        assert!(kept.contains(&numbers[0]) && kept.contains(&numbers[99]));
    }
}
