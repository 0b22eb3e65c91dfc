//! The states of rounds at the client: sealed, found again, and usable once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::parts::request_state::{CallBinding, ServerState, StateClaims, StateDefect, StateSeal};
use crate::parts::retry_answers::CarriedAnswer;
use crate::{CallId, Timestamp};

/// The number of used states that are remembered.
const USED: usize = 4_096;

/// The issued states.
pub(crate) struct RoundStates {
    seal: StateSeal,
    /// The time for which a state is valid.
    good_for: Duration,
    /// The number in the last state.
    last: u64,
    /// Calls that wait at the client, by the state that it returns.
    by_state: HashMap<String, CallId>,
    /// The last states that were used.
    used: UsedStates,
}

/// States that were used, the oldest first.
#[derive(Default)]
struct UsedStates {
    in_order: VecDeque<Arc<str>>,
    all: HashSet<Arc<str>>,
}

impl UsedStates {
    fn contains(&self, state: &str) -> bool {
        self.all.contains(state)
    }

    fn add(&mut self, state: &str) {
        let state: Arc<str> = state.into();
        if !self.all.insert(state.clone()) {
            return;
        }
        self.in_order.push_back(state);
        if self.in_order.len() > USED
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }
}

impl RoundStates {
    /// Creates an empty table; each state will be valid for this time.
    pub(crate) fn new(seal: StateSeal, good_for: Duration) -> Self {
        Self {
            seal,
            good_for,
            last: 0,
            by_state: HashMap::new(),
            used: UsedStates::default(),
        }
    }

    /// Returns a number that is unique in this session.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Seals a state for a round of this call that asks these questions, with the client's answers to questions that have not
    /// come up again, and with the state that the server gave.
    pub(crate) fn seal_asking(
        &self,
        now: Timestamp,
        call: &CallBinding,
        number: u64,
        asked: Vec<(String, String)>,
        carried: Vec<CarriedAnswer>,
        server: Option<ServerState>,
    ) -> Option<String> {
        let claims = StateClaims::new(now.after(self.good_for), number);
        let claims = claims.asking(asked).carrying(carried);
        self.seal.seal(call, claims.of_server(server))
    }

    /// Seals a state for a round of this call that is presented again, with the number of rounds that are repeated.
    pub(crate) fn seal_repeating(
        &self,
        now: Timestamp,
        call: &CallBinding,
        number: u64,
        round: usize,
    ) -> Option<String> {
        let claims = StateClaims::new(now.after(self.good_for), number);
        self.seal.seal(call, claims.repeating(round))
    }

    /// Opens a state that came with this call.
    pub(crate) fn open(
        &self,
        call: &CallBinding,
        state: &str,
        now: Timestamp,
    ) -> Result<StateClaims, StateDefect> {
        let claims = self.seal.open(call, state, now)?;
        if self.used.contains(state) {
            return Err(StateDefect::Used);
        }
        Ok(claims)
    }

    /// Returns the time since this state was sealed.
    pub(crate) fn age(&self, state: &StateClaims, now: Timestamp) -> Duration {
        now.after(self.good_for).since(state.expires())
    }

    /// Records that the client has a round of this call under this state.
    pub(crate) fn present(&mut self, state: String, call: CallId) {
        self.by_state.insert(state, call);
    }

    /// Returns the call whose round the client has under this state.
    pub(crate) fn call(&self, state: &str) -> Option<CallId> {
        self.by_state.get(state).copied()
    }

    /// Returns `true` for the state of a round with which a call waits, or has waited.
    pub(crate) fn knows(&self, state: &str) -> bool {
        self.by_state.contains_key(state) || self.used.contains(state)
    }

    /// Marks a state as used.
    pub(crate) fn use_up(&mut self, state: &str) {
        self.by_state.remove(state);
        self.used.add(state);
    }

    /// Forgets a call that has ended.
    pub(crate) fn remove_call(&mut self, call: CallId) {
        if !self.by_state.is_empty() {
            self.by_state.retain(|_, known| *known != call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_used_states_are_known_and_older_ones_forgotten() {
        let mut used = UsedStates::default();
        for number in 0..=USED {
            used.add(&number.to_string());
            used.add(&number.to_string());
        }
        assert!(!used.contains("0"));
        assert!(used.contains("1") && used.contains(&USED.to_string()));
        assert_eq!((used.in_order.len(), used.all.len()), (USED, USED));
    }
}
