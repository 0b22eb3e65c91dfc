//! The time after a question has appeared in which keys do not count: they were meant for what was there before.

use std::time::{Duration, Instant};

/// The time without a key after which keys count, as on pages.
const PAUSE: Duration = Duration::from_millis(600);

/// The pause before the first key of a question counts.
#[derive(Debug)]
pub(super) struct KeyGuard {
    /// The end of the pause; `None` once it is over.
    until: Option<Instant>,
}

impl KeyGuard {
    /// Begins the pause of a question that has just appeared.
    pub(super) fn begin(now: Instant) -> Self {
        Self {
            until: Some(now + PAUSE),
        }
    }

    /// Returns `true` as long as keys do not count.
    pub(super) fn lasts(&mut self, now: Instant) -> bool {
        self.until = self.until.filter(|until| now < *until);
        self.until.is_some()
    }

    /// Returns `true` if a key counts. One that does not count begins the pause again.
    pub(super) fn lets_press(&mut self, now: Instant) -> bool {
        if self.lasts(now) {
            self.until = Some(now + PAUSE);
        }
        self.until.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "any moment will do")]
    fn moment() -> Instant {
        Instant::now()
    }

    #[test]
    fn what_is_typed_on_from_before_answers_nothing() {
        let shown = moment();
        let at = |millis| shown + Duration::from_millis(millis);
        let mut pause = KeyGuard::begin(shown);
        for typed in [10, 160, 300, 800, 1_390] {
            assert!(!pause.lets_press(at(typed)), "{typed}");
        }
        assert!(pause.lasts(at(1_989)));
        assert!(!pause.lasts(at(1_990)));
        for typed in [1_991, 1_992, 3_000] {
            assert!(pause.lets_press(at(typed)), "{typed}");
        }
    }

    #[test]
    fn a_key_after_the_pause_counts_at_once() {
        let shown = moment();
        let mut pause = KeyGuard::begin(shown);
        assert!(pause.lets_press(shown + PAUSE));
    }
}
