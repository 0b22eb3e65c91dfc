//! The reports about frames that are not passed on: a few per minute, so that no server or client fills the log.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Timestamp;

/// The most reports in each [`WINDOW`].
const REPORTS: u32 = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// The reports of all sessions with one server.
#[derive(Clone, Debug, Default)]
pub struct FrameReports(Arc<Mutex<Reports>>);

#[derive(Debug, Default)]
struct Reports {
    since: Option<Timestamp>,
    reported: u32,
    left_out: u64,
}

impl FrameReports {
    /// Returns the number of frames without a report since the last one, if this frame is to be reported.
    pub(crate) fn next(&self, now: Timestamp) -> Option<u64> {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |since: Timestamp| since.after(WINDOW) <= now;
        if reports.since.is_none_or(is_over) {
            reports.since = Some(now);
            reports.reported = 0;
        }
        if reports.reported < REPORTS {
            reports.reported += 1;
            return Some(std::mem::take(&mut reports.left_out));
        }
        reports.left_out = reports.left_out.saturating_add(1);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_frames_in_a_minute_are_reported_and_the_others_counted() {
        let at = |seconds| Timestamp::from_epoch(Duration::from_secs(seconds));
        let reports = FrameReports::default();
        // Another session with the same server.
        let other = reports.clone();
        let first: Vec<_> = (0..1_000)
            .filter_map(|i| if i % 2 == 0 { &reports } else { &other }.next(at(100)))
            .collect();
        assert_eq!(first, [0; 5]);
        assert_eq!(reports.next(at(159)), None);
        assert_eq!(reports.next(at(160)), Some(996));
        assert_eq!(other.next(at(161)), Some(0));
    }
}
