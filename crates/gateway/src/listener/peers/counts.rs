//! The numbers of forwarded requests, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// The end of a request that was for another gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardResult {
    /// The other gateway has responded.
    Answered,
    /// The other gateway has ended, or takes no requests: 404.
    Ended,
    /// It runs, and could not be reached: 503.
    Unreachable,
    /// Too many are forwarded at once: 503.
    TooMany,
    /// The connection broke before the response: 502.
    Failed,
    /// There was no response in time: 504.
    Late,
}

/// Every end, with its label.
const RESULTS: [(ForwardResult, &str); 6] = [
    (ForwardResult::Answered, "answered"),
    (ForwardResult::Ended, "ended"),
    (ForwardResult::Unreachable, "unreachable"),
    (ForwardResult::TooMany, "too-many"),
    (ForwardResult::Failed, "failed"),
    (ForwardResult::Late, "late"),
];

/// The numbers since the gateway started.
#[derive(Debug, Default)]
pub(crate) struct ForwardCounts {
    sent: [AtomicU64; RESULTS.len()],
    taken: AtomicU64,
    refused: AtomicU64,
}

impl ForwardCounts {
    /// Counts a request that was for another gateway.
    pub(crate) fn sent(&self, result: ForwardResult) {
        self.sent[result as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request of another gateway that was taken.
    pub(crate) fn taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection of a stranger, or a request that was not taken.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers of requests that were for other gateways, by their ends.
    pub(crate) fn by_result(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let number = |(result, label): (ForwardResult, &'static str)| {
            (label, self.sent[result as usize].load(Ordering::Relaxed))
        };
        RESULTS.into_iter().map(number)
    }

    /// Returns the numbers of requests of other gateways that were taken, and that were refused.
    pub(crate) fn received(&self) -> [(&'static str, u64); 2] {
        [
            ("taken", self.taken.load(Ordering::Relaxed)),
            ("refused", self.refused.load(Ordering::Relaxed)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_is_counted_under_its_label() {
        let counts = ForwardCounts::default();
        for (number, (result, _)) in (1..).zip(RESULTS) {
            for _ in 0..number {
                counts.sent(result);
            }
        }
        let expected = (1..)
            .zip(RESULTS)
            .map(|(number, (_, label))| (label, number));
        assert!(counts.by_result().eq(expected));
        counts.taken();
        assert_eq!(counts.received(), [("taken", 1), ("refused", 0)]);
    }
}
