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

    /// Adds a number with any labels, whose values are escaped; control characters are replaced.
    ///
    /// ```
    /// use mcp_elicit_core::exposition::{Exposition, MetricType};
    ///
    /// let mut text = Exposition::default();
    /// text.metric("calls_total", MetricType::Counter, Some("Calls."));
    /// text.labelled("calls_total", &[("server", "a\"b"), ("outcome", "accepted")], 3);
    /// let line = r#"calls_total{server="a\"b",outcome="accepted"} 3"#;
    /// assert!(text.into_text().ends_with(&format!("{line}\n")));
    /// ```
    pub fn labelled(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            self.0.push(if place == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"");
            for character in text.chars() {
                match character {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    // A terminal that shows the text would obey it.
                    control if control.is_control() => self.0.push('\u{fffd}'),
                    other => self.0.push(other),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// Adds the numbers of a histogram: for each bound, the measurements up to it, and their sum and count.
    ///
    /// ```
    /// use mcp_elicit_core::exposition::{Exposition, MetricType};
    ///
    /// let mut text = Exposition::default();
    /// text.metric("answer_seconds", MetricType::Histogram, None);
    /// text.histogram("answer_seconds", &[], &[(1.0, 2), (5.0, 3)], 7.5, 4);
    /// assert!(text.into_text().contains("answer_seconds_bucket{le=\"+Inf\"} 4\n"));
    /// ```
    pub fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        buckets: &[(f64, u64)],
        sum: f64,
        count: u64,
    ) {
        let bucket = format!("{name}_bucket");
        let bounds = buckets
            .iter()
            .map(|(bound, count)| (bound.to_string(), *count))
            .chain([("+Inf".to_owned(), count)]);
        for (bound, count) in bounds {
            let mut labels = labels.to_vec();
            labels.push(("le", &bound));
            self.labelled(&bucket, &labels, count);
        }
        self.labelled(&format!("{name}_sum"), labels, sum);
        self.labelled(&format!("{name}_count"), labels, count);
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_line_that_no_terminal_obeys() {
        let mut text = Exposition::default();
        text.labelled("calls", &[("server", "a\u{1b}[2J\r\n\u{9b}31m")], 1);
        assert_eq!(
            text.into_text(),
            "calls{server=\"a\u{fffd}[2J\u{fffd}\\n\u{fffd}31m\"} 1\n"
        );
    }
}
