//! A point in time, passed in by code that may read a clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Creates a timestamp from milliseconds since the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Creates a timestamp from the time since the epoch, as `SystemTime::duration_since(UNIX_EPOCH)` returns it.
    pub fn from_epoch(since: Duration) -> Self {
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns the timestamp `span` later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_add_and_subtract_without_overflow() {
        let now = Timestamp::from_epoch(Duration::from_secs(5));
        assert_eq!(now.as_millis(), 5000);
        assert_eq!(
            now.after(Duration::from_millis(7)).since(now),
            Duration::from_millis(7)
        );
        assert_eq!(now.since(now.after(Duration::from_secs(1))), Duration::ZERO);
        assert_eq!(now.after(Duration::MAX), Timestamp::from_millis(u64::MAX));
    }
}
