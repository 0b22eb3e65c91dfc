//! Counts of events by kind, and of the time that questions were open: audit figures for monitoring.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{AuditEvent, AuditRecord};
use crate::exposition::{Exposition, MetricType};

/// The upper bounds of the buckets for open times, in seconds: from a script to a person back from lunch.
const SPANS: [u64; 8] = [1, 5, 15, 60, 300, 900, 3600, 14_400];

/// Counts over an audit's records. It contains numbers only, and its size does not grow with the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditCounters {
    events: BTreeMap<AuditEvent, u64>,
    open: OpenTimes,
}

/// The open times of ended questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OpenTimes {
    spans: [u64; SPANS.len()],
    count: u64,
    sum: Duration,
}

impl AuditCounters {
    /// Counts one record.
    pub fn count(&mut self, record: &AuditRecord) {
        *self.events.entry(record.event).or_default() += 1;
        if let Some(open) = record.open_ms.map(Duration::from_millis) {
            self.open.add(open);
        }
    }

    /// Returns the number of events of each kind so far, including those with none.
    pub fn events(&self) -> BTreeMap<AuditEvent, u64> {
        let number = |event: AuditEvent| self.events.get(&event).copied().unwrap_or_default();
        AuditEvent::OF_PEERS
            .into_iter()
            .map(|event| (event, number(event)))
            .collect()
    }

    /// Returns the number of ended questions that were open for a known time, and the total of those times.
    pub fn open(&self) -> (u64, Duration) {
        (self.open.count, self.open.sum)
    }

    /// Returns the numbers in the text format of Prometheus (version 0.0.4), each name beginning with `prefix`, such as
    /// `mcp_elicit_client`.
    pub fn to_prometheus(&self, prefix: &str) -> String {
        let mut text = Exposition::default();
        let name = format!("{prefix}_events_total");
        let help = "Events in the lifecycle of questions.";
        text.metric(&name, MetricType::Counter, Some(help));
        for (event, count) in self.events() {
            text.sample(&name, Some(("event", &event)), count);
        }
        let name = format!("{prefix}_open_seconds");
        let help = "Times that questions were open before they ended.";
        text.metric(&name, MetricType::Histogram, Some(help));
        let bucket = format!("{name}_bucket");
        for (span, count) in SPANS.iter().zip(self.open.spans) {
            text.sample(&bucket, Some(("le", span)), count);
        }
        let OpenTimes { count, sum, .. } = &self.open;
        text.sample(&bucket, Some(("le", &"+Inf")), count);
        text.sample(&format!("{name}_sum"), None, sum.as_secs_f64());
        text.sample(&format!("{name}_count"), None, count);
        text.into_text()
    }
}

impl OpenTimes {
    fn add(&mut self, time: Duration) {
        for (count, span) in self.spans.iter_mut().zip(SPANS) {
            *count += u64::from(time <= Duration::from_secs(span));
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::Timestamp;

    #[test]
    fn events_and_open_times_are_counted_and_exposed_for_monitors() {
        let mut counters = AuditCounters::default();
        for (event, open_ms) in [
            (AuditEvent::Asked, None),
            (AuditEvent::Answered, Some(4_500)),
            (AuditEvent::Asked, None),
            (AuditEvent::TimedOut, Some(300_000)),
            (AuditEvent::Declined, Some(u64::MAX)),
        ] {
            let mut record = AuditRecord::new(event, Timestamp::from_millis(5));
            record.open_ms = open_ms;
            counters.count(&record);
        }
        assert_eq!(counters.events()[&AuditEvent::Asked], 2);
        assert_eq!(counters.events()[&AuditEvent::Failed], 0);
        assert_eq!(counters.open().0, 3);
        let text = counters.to_prometheus("elicit");
        for line in [
            "# TYPE elicit_events_total counter",
            "elicit_events_total{event=\"timed-out\"} 1",
            "elicit_events_total{event=\"nobody\"} 0",
            "# TYPE elicit_open_seconds histogram",
            "elicit_open_seconds_bucket{le=\"1\"} 0",
            "elicit_open_seconds_bucket{le=\"5\"} 1",
            "elicit_open_seconds_bucket{le=\"300\"} 2",
            "elicit_open_seconds_bucket{le=\"14400\"} 2",
            "elicit_open_seconds_bucket{le=\"+Inf\"} 3",
            "elicit_open_seconds_count 3",
        ] {
            assert!(text.lines().any(|said| said == line), "{line} in\n{text}");
        }
    }
}
