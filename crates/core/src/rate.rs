//! The rate limit on questions, shared by every crate: a maximum number in any minute.

use std::collections::VecDeque;
use std::time::Duration;

/// The times of the questions that were admitted in the last minute, by any clock of the caller.
///
/// ```
/// use std::time::Duration;
/// use mcp_elicit_core::rate::RateWindow;
///
/// let mut window = RateWindow::default();
/// let mut admit = |now: u64| window.admit(1, now, |earlier| Duration::from_secs(now.saturating_sub(earlier)));
/// assert_eq!(admit(10), Ok(()));
/// assert_eq!(admit(30), Err(Duration::from_secs(40)));
/// assert_eq!(admit(70), Ok(()));
/// ```
#[derive(Clone, Debug)]
pub struct RateWindow<T> {
    admitted: VecDeque<T>,
}

impl<T> Default for RateWindow<T> {
    fn default() -> Self {
        Self {
            admitted: VecDeque::new(),
        }
    }
}

impl<T: Copy> RateWindow<T> {
    /// The length of the window.
    pub const SPAN: Duration = Duration::from_secs(60);

    /// Counts one more question at `now` if fewer than `limit` were counted in the last minute; otherwise returns the
    /// time to wait. `since` returns the time from an earlier moment to `now`, or zero if the clock went back.
    pub fn admit(
        &mut self,
        limit: usize,
        now: T,
        since: impl Fn(T) -> Duration,
    ) -> Result<(), Duration> {
        while self
            .admitted
            .front()
            .is_some_and(|first| since(*first) >= Self::SPAN)
        {
            self.admitted.pop_front();
        }
        if self.admitted.len() >= limit {
            let elapsed = self
                .admitted
                .front()
                .map_or(Duration::ZERO, |at| since(*at));
            return Err(Self::SPAN.saturating_sub(elapsed));
        }
        self.admitted.push_back(now);
        Ok(())
    }

    /// Returns `true` if nothing was counted in the last minute, so that the window can be dropped.
    pub fn is_idle(&self, since: impl Fn(T) -> Duration) -> bool {
        self.admitted
            .back()
            .is_none_or(|last| since(*last) >= Self::SPAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(window: &mut RateWindow<u64>, limit: usize, now: u64) -> Result<(), Duration> {
        window.admit(limit, now, |at| {
            Duration::from_millis(now.saturating_sub(at))
        })
    }

    #[test]
    fn the_oldest_makes_room_after_exactly_a_minute() {
        let mut window = RateWindow::default();
        assert_eq!(admit(&mut window, 2, 0), Ok(()));
        assert_eq!(admit(&mut window, 2, 1_000), Ok(()));
        assert_eq!(admit(&mut window, 2, 59_999), Err(Duration::from_millis(1)));
        assert_eq!(admit(&mut window, 2, 60_000), Ok(()));
        assert_eq!(
            admit(&mut window, 2, 60_500),
            Err(Duration::from_millis(500))
        );
    }

    #[test]
    fn a_limit_of_none_is_never_free_and_a_clock_that_goes_back_waits() {
        let mut window = RateWindow::default();
        assert_eq!(admit(&mut window, 0, 5), Err(RateWindow::<u64>::SPAN));
        assert_eq!(admit(&mut window, 1, 90_000), Ok(()));
        assert_eq!(admit(&mut window, 1, 5), Err(RateWindow::<u64>::SPAN));
    }

    #[test]
    fn a_window_is_idle_after_a_minute_without_a_question() {
        let mut window = RateWindow::default();
        let idle_at = |window: &RateWindow<u64>, now: u64| {
            window.is_idle(|at| Duration::from_millis(now.saturating_sub(at)))
        };
        assert!(idle_at(&window, 0));
        admit(&mut window, 1, 0).unwrap();
        assert!(!idle_at(&window, 59_999));
        assert!(idle_at(&window, 60_000));
    }
}
