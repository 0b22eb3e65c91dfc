//! Refusals that anyone can cause at will: a limited number per minute goes to the audit and the log, with the number
//! of omitted ones.

use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::rate::RateWindow;

/// The most refusals of one kind that are recorded per minute.
pub const A_MINUTE: usize = 30;

/// The most people whose refusals are counted at once.
const MOST_PEOPLE: usize = 1_000;

/// The refusals of one kind.
pub struct Refusals(Mutex<CountedRefusals>);

impl std::fmt::Debug for Refusals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refusals").finish_non_exhaustive()
    }
}

struct CountedRefusals {
    most: usize,
    written: RateWindow<Timestamp>,
    left_out: u64,
}

impl Default for Refusals {
    fn default() -> Self {
        Self::at_most(A_MINUTE)
    }
}

impl Refusals {
    /// Limits the records to `most` per minute.
    pub fn at_most(most: usize) -> Self {
        Self(Mutex::new(CountedRefusals {
            most,
            written: RateWindow::default(),
            left_out: 0,
        }))
    }

    /// Counts one refusal. Returns the number of omitted ones before it if it is to be recorded; `None` if it is
    /// omitted.
    pub fn count(&self, now: Timestamp) -> Option<u64> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = counted.most;
        let admitted = counted.written.admit(most, now, |at| now.since(at));
        if admitted.is_err() {
            counted.left_out = counted.left_out.saturating_add(1);
            return None;
        }
        Some(std::mem::take(&mut counted.left_out))
    }

    /// Returns `true` if nothing was recorded in the last minute, and nothing was omitted since: it need not be kept.
    pub fn is_forgettable(&self, now: Timestamp) -> bool {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.left_out == 0 && counted.written.is_idle(|at| now.since(at))
    }
}

/// The refusals of each person, with a separate limit per minute.
#[derive(Debug, Default)]
pub(crate) struct RefusalsOfEach(Mutex<IndexMap<String, Refusals>>);

impl RefusalsOfEach {
    /// Counts one refusal of this person, as [`Refusals::count`] does. With too many people, the earliest are counted
    /// anew.
    pub(crate) fn count(&self, person: &str, now: Timestamp) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = all.get(person) {
            return own.count(now);
        }
        if all.len() >= MOST_PEOPLE {
            all.shift_remove_index(0);
        }
        all.entry(person.to_owned()).or_default().count(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_minute_are_written_down_and_the_next_says_how_many_were_not() {
        let refusals = Refusals::default();
        let at = Timestamp::from_millis;
        for _ in 0..A_MINUTE {
            assert_eq!(refusals.count(at(1_000)), Some(0));
        }
        for _ in 0..5 {
            assert_eq!(refusals.count(at(60_999)), None);
        }
        assert!(!refusals.is_forgettable(at(61_000)));
        assert_eq!(refusals.count(at(61_000)), Some(5));
        assert_eq!(refusals.count(at(61_000)), Some(0));
        assert!(!refusals.is_forgettable(at(120_999)));
        assert!(refusals.is_forgettable(at(121_000)));
    }

    #[test]
    fn each_person_has_a_number_of_their_own() {
        let refusals = RefusalsOfEach::default();
        let at = Timestamp::from_millis(1_000);
        for _ in 0..A_MINUTE {
            assert_eq!(refusals.count("ada", at), Some(0));
        }
        assert_eq!(refusals.count("ada", at), None);
        assert_eq!(refusals.count("bob", at), Some(0));
        for number in 0..2 * MOST_PEOPLE {
            assert_eq!(refusals.count(&number.to_string(), at), Some(0));
        }
        assert_eq!(refusals.0.lock().unwrap().len(), MOST_PEOPLE);
    }
}
