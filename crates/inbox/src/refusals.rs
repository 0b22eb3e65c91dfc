//! Refusals that anybody can cause, without a login or a key: the audit and the log have so many a minute, and how many were left out.

use std::sync::{Mutex, PoisonError};

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::rate::RateWindow;

/// The most refusals of one kind that are written down in a minute.
pub const A_MINUTE: usize = 30;

/// The refusals of one kind.
pub struct Refusals(Mutex<Counted>);

impl std::fmt::Debug for Refusals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refusals").finish_non_exhaustive()
    }
}

struct Counted {
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
    /// Has so many written down in a minute.
    pub fn at_most(most: usize) -> Self {
        Self(Mutex::new(Counted {
            most,
            written: RateWindow::default(),
            left_out: 0,
        }))
    }

    /// Counts one more that is to be written down. Returns the number of those before it that were left out; `None` where it is one of them.
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
        assert_eq!(refusals.count(at(61_000)), Some(5));
        assert_eq!(refusals.count(at(61_000)), Some(0));
    }
}
