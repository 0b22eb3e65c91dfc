//! Metrics in the text format of Prometheus (version 0.0.4).

use std::fmt::{Display, Write as _};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricType {
    /// A number that only increases.
    Counter,
    /// A number that increases and decreases.
    Gauge,
    /// Numbers of measurements up to given bounds, with their sum and count.
    Histogram,
}

/// The text of several metrics.
///
/// ```
/// use mcp_elicit_core::exposition::{Exposition, MetricType};
///
/// let mut text = Exposition::default();
/// text.metric("calls", MetricType::Gauge, None);
/// text.sample("calls", None, 3);
/// assert_eq!(text.into_text(), "# TYPE calls gauge\ncalls 3\n");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a metric. Its name, and its help text if there is one, are chosen by the program, so nothing in them is
    /// escaped.
    pub fn metric(&mut self, name: &str, metric_type: MetricType, help: Option<&str>) {
        let word = match metric_type {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        };
        // Writing to a string cannot fail.
        if let Some(help) = help {
            let _ = writeln!(self.0, "# HELP {name} {help}");
        }
        let _ = writeln!(self.0, "# TYPE {name} {word}");
    }

    /// Adds a number, with the name and value of a label if there is one. The program chooses the label's value too.
    pub fn sample(&mut self, name: &str, label: Option<(&str, &dyn Display)>, value: impl Display) {
        let _ = match label {
            Some((label, word)) => writeln!(self.0, "{name}{{{label}=\"{word}\"}} {value}"),
            None => writeln!(self.0, "{name} {value}"),
        };
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.0
    }
}
