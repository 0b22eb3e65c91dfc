//! The difference between the clock of this process and the database's, of which gateways of one record know each other's
//! only through it: times of questions are by their clocks, leases by the database's.

use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use tokio::time::Instant;

/// The difference from which a warning is due, in milliseconds.
const MOST: u64 = 2_000;
/// The shortest time between two warnings.
const PAUSE: Duration = Duration::from_secs(60);

/// The last comparison of the clocks, and the last warning.
#[derive(Debug, Default)]
pub(super) struct ClockOffset {
    /// Milliseconds by which this clock is ahead of the database's.
    millis: i64,
    warned_at: Option<Instant>,
}

impl ClockOffset {
    /// Returns the milliseconds by which this clock was ahead of the database's at the last comparison.
    pub(super) fn millis(&self) -> i64 {
        self.millis
    }

    /// Takes a comparison in: what the database's clock said between two readings of this one. Returns `true` if a warning
    /// is due.
    pub(super) fn compare(
        &mut self,
        [before, after]: [Timestamp; 2],
        database: i64,
        at: Instant,
    ) -> bool {
        let [before, after] = [before, after].map(|time| {
            let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
            time.saturating_sub(database)
        });
        // The database was asked at some time in between: only what is certain counts.
        self.millis = if before.min(after) > 0 {
            before.min(after)
        } else {
            before.max(after).min(0)
        };
        let was_warned = self
            .warned_at
            .is_some_and(|warned| at.duration_since(warned) < PAUSE);
        let is_due = self.millis.unsigned_abs() >= MOST && !was_warned;
        if is_due {
            self.warned_at = Some(at);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares readings of this clock with one of the database, in milliseconds. Returns the difference and if a warning
    /// was due.
    fn compared(
        offset: &mut ClockOffset,
        own: [u64; 2],
        database: i64,
        at: Instant,
    ) -> (i64, bool) {
        let is_due = offset.compare(own.map(Timestamp::from_millis), database, at);
        (offset.millis(), is_due)
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_difference_longer_than_the_question_took_counts() {
        let at = Instant::now();
        let mut offset = ClockOffset::default();
        for (own, database, expected) in [
            ([10_000, 10_004], 10_002, 0),
            ([10_000, 14_000], 10_000, 0),
            ([10_000, 14_000], 14_000, 0),
            ([10_000, 10_004], 9_000, 1_000),
            ([10_000, 10_004], 11_004, -1_000),
            // This clock was set back while the database was asked.
            ([10_000, 4_000], 6_000, 0),
            ([10_000, 4_000], 3_000, 1_000),
        ] {
            let found = compared(&mut offset, own, database, at);
            assert_eq!(found, (expected, false), "{own:?} {database}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_jumps_is_warned_of_once_a_minute() {
        let start = Instant::now();
        let mut offset = ClockOffset::default();
        let mut due = Vec::new();
        for second in 0..200_u64 {
            let at = start + Duration::from_secs(second);
            // It jumps by an hour, and back.
            let own = second * 1_000
                + if (10..150).contains(&second) {
                    3_600_000
                } else {
                    0
                };
            let database = i64::try_from(second * 1_000).unwrap();
            let (millis, is_due) = compared(&mut offset, [own, own], database, at);
            assert_eq!(millis == 0, !(10..150).contains(&second), "{second}");
            if is_due {
                due.push(second);
            }
        }
        assert_eq!(due, [10, 70, 130]);
        let behind = compared(&mut offset, [0, 1], 2_001, start + PAUSE * 10);
        assert_eq!(behind, (-2_000, true));
        let less = compared(&mut offset, [0, 1], 2_000, start + PAUSE * 20);
        assert_eq!(less, (-1_999, false));
    }
}
