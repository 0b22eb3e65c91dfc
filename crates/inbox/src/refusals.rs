//! Refusals that anybody can cause, without a login: the audit and the log have so many a minute, and how many were left out.

use std::sync::{Mutex, PoisonError};

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::rate::RateWindow;

/// The most refusals of one kind that are written down in a minute.
pub(crate) const A_MINUTE: usize = 30;

/// The refusals of one kind.
#[derive(Default)]
pub(super) struct Refusals(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    written: RateWindow<Timestamp>,
    left_out: u64,
}

impl Refusals {
    /// Counts one more. Returns what is written down of it, with the number of those before that were left out; `None` where it is one
    /// of them.
    pub(super) fn written(&self, now: Timestamp, what: &str) -> Option<String> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = counted.written.admit(A_MINUTE, now, |at| now.since(at));
        if admitted.is_err() {
            counted.left_out = counted.left_out.saturating_add(1);
            return None;
        }
        Some(match std::mem::take(&mut counted.left_out) {
            0 => what.to_owned(),
            left_out => format!("{what} ({left_out} more before it were left out)"),
        })
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
            assert_eq!(refusals.written(at(1_000), "no"), Some("no".to_owned()));
        }
        for _ in 0..5 {
            assert_eq!(refusals.written(at(60_999), "no"), None);
        }
        assert_eq!(
            refusals.written(at(61_000), "no"),
            Some("no (5 more before it were left out)".to_owned())
        );
        assert_eq!(refusals.written(at(61_000), "no"), Some("no".to_owned()));
    }
}
