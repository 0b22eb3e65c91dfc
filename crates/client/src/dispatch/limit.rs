//! Limits on the rate and the number of one server's questions.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcp_elicit_core::rate::RateWindow;
use tokio::time::Instant;

/// Limits on a server's questions.
///
/// ```
/// use mcp_elicit_client::dispatch::QuestionLimits;
///
/// let usual = QuestionLimits::default();
/// assert_eq!((usual.per_minute, usual.pending), (30, 16));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionLimits {
    /// The most questions in any minute.
    pub per_minute: usize,
    /// The most questions that wait at once.
    pub pending: usize,
}

impl Default for QuestionLimits {
    fn default() -> Self {
        Self {
            per_minute: 30,
            pending: 16,
        }
    }
}

/// A limit that was reached.
///
/// ```
/// use mcp_elicit_client::dispatch::{LimitReached, QuestionError};
///
/// fn retry_after(error: &QuestionError) -> Option<std::time::Duration> {
///     match error {
///         QuestionError::TooMuch(LimitReached::PerMinute { retry_after, .. }) => Some(*retry_after),
///         _ => None,
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitReached {
    /// Too many questions in a minute.
    #[error("more than {limit} questions in a minute")]
    PerMinute {
        /// The limit.
        limit: usize,
        /// The time until the next one is admitted.
        retry_after: Duration,
    },
    /// Too many questions are waiting.
    #[error("{limit} questions already wait for the person")]
    Pending {
        /// The limit.
        limit: usize,
    },
}

/// The rate limiter of one server's questions.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    state: Mutex<LimitState>,
}

#[derive(Debug, Default)]
struct LimitState {
    asked: RateWindow<Instant>,
    pending: usize,
}

impl RateLimiter {
    /// Admits a question at `now`, or returns the limit that it exceeds. It counts as pending until the permit is
    /// dropped.
    pub(crate) fn admit(
        &self,
        limits: QuestionLimits,
        now: Instant,
    ) -> Result<QuestionPermit<'_>, LimitReached> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.pending >= limits.pending {
            return Err(LimitReached::Pending {
                limit: limits.pending,
            });
        }
        state
            .asked
            .admit(limits.per_minute, now, |at| now.duration_since(at))
            .map_err(|retry_after| LimitReached::PerMinute {
                limit: limits.per_minute,
                retry_after,
            })?;
        state.pending += 1;
        Ok(QuestionPermit { limiter: self })
    }
}

/// An admitted question.
#[derive(Debug)]
pub(crate) struct QuestionPermit<'m> {
    limiter: &'m RateLimiter,
}

impl Drop for QuestionPermit<'_> {
    fn drop(&mut self) {
        let mut state = self
            .limiter
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.pending = state.pending.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: QuestionLimits = QuestionLimits {
        per_minute: 2,
        pending: 1,
    };

    #[test]
    fn pending_questions_are_counted_until_they_end() {
        let limiter = RateLimiter::default();
        let now = Instant::now();
        let first = limiter.admit(LIMITS, now).unwrap();
        assert_eq!(
            limiter.admit(LIMITS, now).unwrap_err(),
            LimitReached::Pending { limit: 1 }
        );
        drop(first);
        assert!(limiter.admit(LIMITS, now).is_ok());
    }

    #[test]
    fn a_minute_later_there_is_room_again() {
        let limiter = RateLimiter::default();
        let start = Instant::now();
        drop(limiter.admit(LIMITS, start).unwrap());
        drop(
            limiter
                .admit(LIMITS, start + Duration::from_secs(20))
                .unwrap(),
        );
        let full = limiter
            .admit(LIMITS, start + Duration::from_secs(50))
            .unwrap_err();
        assert_eq!(
            full,
            LimitReached::PerMinute {
                limit: 2,
                retry_after: Duration::from_secs(10)
            }
        );
        assert!(
            limiter
                .admit(LIMITS, start + Duration::from_secs(60))
                .is_ok()
        );
    }
}
