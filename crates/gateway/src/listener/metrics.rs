//! The figures of a gateway for a monitor, in Prometheus' text format. `docs/operate.md` lists them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mcp_elicit_core::exposition::{Exposition, MetricType};
use mcp_elicit_record::Record;
use mcp_elicit_record::figures::{Figures, Times};
use mcp_elicit_record::store::RecordStoreError;
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use crate::listener::peers::Peers;
use crate::traces::Traces;
use crate::transports::child_limit::CHILDREN;
use crate::transports::process::running_servers;

/// The time in which the figures of the record are awaited before it is asked for a sign of life.
const FIGURES_WITHIN: Duration = Duration::from_millis(500);
/// The time in which the record gives one. Monitors wait few seconds, and a gateway that keeps them waiting seems to be down.
const SIGN_WITHIN: Duration = Duration::from_millis(400);

/// The figures since the gateway started.
#[derive(Default)]
pub(super) struct Metrics {
    /// `None` until the record was first read.
    figures: Mutex<Option<Figures>>,
    /// `true` while the record is read for a monitor. A read is not given up with the request that began it.
    is_reading: AtomicBool,
    /// The lines of the last read; `None` if it failed.
    lines: watch::Sender<Option<Arc<str>>>,
}

/// The sessions, calls and questions in this process.
#[derive(Clone, Copy, Default)]
pub(super) struct OpenCounts {
    pub(super) sessions: usize,
    pub(super) calls: usize,
    pub(super) questions: usize,
    /// The bytes of messages that arrive, and of open calls.
    pub(super) call_bytes: usize,
}

impl Metrics {
    /// Begins to count, before the first question is asked.
    pub(super) async fn begin(&self, record: &Record) {
        let mut figures = self.figures.lock().await;
        if let Err(fault) = read_on(&mut figures, record).await {
            tracing::warn!(%fault, "the audit could not be read for the metrics; it is tried again");
        }
    }

    /// Returns all figures. Those of a record that cannot be read are left out, and `mcp_elicit_record_up` is 0.
    ///
    /// While the record does not answer, this takes a second. If only its figures take longer, they are those of the last
    /// read.
    pub(super) async fn text(
        self: &Arc<Self>,
        record: &Arc<Record>,
        open: OpenCounts,
        (rules, digest): (usize, String),
        peers: Option<&Peers>,
        traces: Option<&Traces>,
    ) -> String {
        let mut text = Exposition::default();
        add_counters(&mut text, record);
        add_open(&mut text, open);
        add_writes(&mut text, record);
        let name = "mcp_elicit_rules";
        let help = "Rules in force, with the beginning of their digest as a label.";
        text.metric(name, MetricType::Gauge, Some(help));
        text.labelled(name, &[("digest", &digest)], rules as u64);
        if let Some(millis) = record.clock_offset_ms() {
            add_clock(&mut text, millis);
        }
        if let Some(peers) = peers {
            add_forwarded(&mut text, peers);
        }
        if let Some(traces) = traces {
            add_spans(&mut text, traces);
        }
        let lines = self.lines_of(record).await;
        gauge(
            &mut text,
            "mcp_elicit_record_up",
            "1 if the record can be read, else 0.",
            u64::from(lines.is_some()),
        );
        let mut text = text.into_text();
        text.push_str(lines.as_deref().unwrap_or_default());
        text
    }

    /// Returns the lines about the record; `None` if it cannot be read now.
    async fn lines_of(self: &Arc<Self>, record: &Arc<Record>) -> Option<Arc<str>> {
        let mut lines = self.lines.subscribe();
        if !self.is_reading.swap(true, Ordering::AcqRel) {
            let (this, record) = (self.clone(), record.clone());
            tokio::spawn(async move { this.read(&record).await });
        }
        if timeout(FIGURES_WITHIN, lines.changed()).await.is_ok() {
            return lines.borrow().clone();
        }
        // The cheapest read: a count of open questions takes longer the more there are.
        let sign = timeout(SIGN_WITHIN, record.store().audit_end());
        tokio::select! {
            _read = lines.changed() => lines.borrow().clone(),
            sign = sign => if let Ok(Ok(_)) = sign {
                Some(lines.borrow().clone().unwrap_or_default())
            } else {
                tracing::warn!("the record did not answer in time for the metrics");
                None
            },
        }
    }

    /// Reads the record for the monitors that wait.
    async fn read(&self, record: &Record) {
        let reading = ReadInProgress(&self.is_reading);
        let mut text = Exposition::default();
        let mut figures = self.figures.lock().await;
        let read = add_record(&mut text, &mut figures, record).await;
        if let Err(fault) = &read {
            tracing::warn!(%fault, "the record could not be read for the metrics");
        }
        let lines = read.is_ok().then(|| text.into_text().into());
        drop(reading);
        self.lines.send_replace(lines);
    }
}

/// A read of the record for a monitor. The next one may begin when it is dropped.
struct ReadInProgress<'m>(&'m AtomicBool);

impl Drop for ReadInProgress<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

async fn read_on(figures: &mut Option<Figures>, record: &Record) -> Result<(), RecordStoreError> {
    if figures.is_none() {
        *figures = Some(Figures::begin(record.store()).await?);
    }
    match figures {
        Some(figures) => figures.read_on(record.store()).await,
        None => Ok(()),
    }
}

fn gauge(text: &mut Exposition, name: &str, help: &str, value: u64) {
    text.metric(name, MetricType::Gauge, Some(help));
    text.labelled(name, &[], value);
}

/// Adds the numbers of this process, which exist since the first version.
fn add_counters(text: &mut Exposition, record: &Record) {
    let counts = record.counters();
    let number = |count: &AtomicU64| count.load(Ordering::Relaxed);
    for (name, help, count) in [
        (
            "mcp_elicit_questions_asked_total",
            "Questions asked through this gateway.",
            &counts.asked,
        ),
        (
            "mcp_elicit_questions_found_again_total",
            "Questions found again by the same call made again.",
            &counts.found,
        ),
        (
            "mcp_elicit_answers_total",
            "Acts of people: accept, decline or cancel.",
            &counts.acted,
        ),
        (
            "mcp_elicit_answers_delivered_total",
            "Answers taken out for a server.",
            &counts.delivered,
        ),
        (
            "mcp_elicit_questions_ended_without_action_total",
            "Questions that ended without an act.",
            &counts.ended,
        ),
    ] {
        text.metric(name, MetricType::Counter, Some(help));
        text.labelled(name, &[], number(count));
    }
}

fn add_open(text: &mut Exposition, open: OpenCounts) {
    for (name, help, count) in [
        (
            "mcp_elicit_sessions",
            "Open sessions of clients over HTTP.",
            open.sessions,
        ),
        (
            "mcp_elicit_calls",
            "Calls of these sessions that are running.",
            open.calls,
        ),
        (
            "mcp_elicit_questions_open",
            "Questions of these sessions that wait for an answer.",
            open.questions,
        ),
        (
            "mcp_elicit_call_bytes",
            "Bytes of messages that arrive and of calls that are running.",
            open.call_bytes,
        ),
        (
            "mcp_elicit_children",
            "Running processes of servers.",
            running_servers(),
        ),
        (
            "mcp_elicit_children_max",
            "The most processes of servers at once.",
            CHILDREN,
        ),
    ] {
        gauge(text, name, help, count as u64);
    }
    let name = "mcp_elicit_build_info";
    let help = "1, with the version as a label.";
    text.metric(name, MetricType::Gauge, Some(help));
    text.labelled(name, &[("version", env!("CARGO_PKG_VERSION"))], 1);
}

/// Adds the writes of this gateway to the record, and the limits of the whole record.
fn add_writes(text: &mut Exposition, record: &Record) {
    let writes = record.write_figures();
    let name = "mcp_elicit_record_writes_total";
    let help = "Writes of this gateway that the record has taken.";
    text.metric(name, MetricType::Counter, Some(help));
    text.labelled(name, &[], writes.made);
    let name = "mcp_elicit_record_write_seconds";
    let help = "Times of the steps in which the record took them.";
    text.metric(name, MetricType::Histogram, Some(help));
    histogram(text, name, &[], &writes.steps);
    let name = "mcp_elicit_record_write_failures_total";
    let help = "Writes that the record did not take, each time they were tried.";
    text.metric(name, MetricType::Counter, Some(help));
    text.labelled(name, &[], writes.failed);
    let name = "mcp_elicit_record_writes_waiting";
    gauge(
        text,
        name,
        "Writes of this gateway that wait for the record.",
        writes.waiting as u64,
    );
    let limits = record.storage_limits();
    for (name, help, most) in [
        (
            "mcp_elicit_record_bytes_max",
            "The used bytes of the record from which on no question is asked: max-record.",
            limits.of_record,
        ),
        (
            "mcp_elicit_open_questions_max",
            "The most questions that may wait for an answer: max-open.",
            limits.open,
        ),
    ] {
        if let Some(most) = most {
            gauge(text, name, help, most);
        }
    }
}

/// Adds the milliseconds by which this clock is ahead of the database's.
fn add_clock(text: &mut Exposition, millis: i64) {
    let name = "mcp_elicit_clock_offset_seconds";
    let help = "Seconds by which the clock of this machine is ahead of the database's.";
    text.metric(name, MetricType::Gauge, Some(help));
    let sign = if millis < 0 { "-" } else { "" };
    let seconds = Duration::from_millis(millis.unsigned_abs()).as_secs_f64();
    text.labelled(name, &[], format_args!("{sign}{seconds}"));
}

/// Adds the numbers of requests between gateways.
fn add_forwarded(text: &mut Exposition, peers: &Peers) {
    let name = "mcp_elicit_forwarded_requests_total";
    let help = "Requests of sessions at other gateways, by result.";
    text.metric(name, MetricType::Counter, Some(help));
    for (result, count) in peers.counts().by_result() {
        text.labelled(name, &[("result", result)], count);
    }
    let name = "mcp_elicit_received_requests_total";
    let help = "Requests that other gateways have forwarded to this one, by result.";
    text.metric(name, MetricType::Counter, Some(help));
    for (result, count) in peers.counts().received() {
        text.labelled(name, &[("result", result)], count);
    }
    let name = "mcp_elicit_forwarding";
    let help = "Requests that are being forwarded.";
    gauge(text, name, help, peers.forwarding() as u64);
}

/// Adds the numbers of spans for the collector.
fn add_spans(text: &mut Exposition, traces: &Traces) {
    let (sent, dropped) = traces.counts();
    let name = "mcp_elicit_spans_total";
    let help = "Spans of traces, by result.";
    text.metric(name, MetricType::Counter, Some(help));
    for (result, count) in [("sent", sent), ("dropped", dropped)] {
        text.labelled(name, &[("result", result)], count);
    }
}

/// Adds the figures of the record, which all its gateways share.
async fn add_record(
    text: &mut Exposition,
    figures: &mut Option<Figures>,
    record: &Record,
) -> Result<(), RecordStoreError> {
    read_on(figures, record).await?;
    let open = record.store().open_figures().await?;
    let name = "mcp_elicit_open_questions";
    let help = "Questions in the record that wait for an answer.";
    text.metric(name, MetricType::Gauge, Some(help));
    let (named, rest) = open
        .by_server
        .split_at(open.by_server.len().min(MOST_SERVERS));
    for (server, count) in named {
        text.labelled(name, &[("server", server)], count);
    }
    if !rest.is_empty() {
        let count: u64 = rest.iter().map(|(_, count)| count).sum();
        let other = mcp_elicit_record::figures::OTHER;
        text.labelled(name, &[("server", other)], count);
    }
    let name = "mcp_elicit_oldest_open_seconds";
    let help = "The age of the oldest question that waits for an answer; 0 if none waits.";
    let age = open.oldest.map(|asked_at| record.now().since(asked_at));
    gauge(text, name, help, age.unwrap_or_default().as_secs());
    if let Some(size) = record.store().size().await? {
        let name = "mcp_elicit_record_bytes";
        let help = "The size of the record on the disk.";
        gauge(text, name, help, size.on_disk);
        let name = "mcp_elicit_record_used_bytes";
        let help = "Of these, what is in use, without the log: max-record limits it.";
        gauge(text, name, help, size.used);
    }
    if let Some(figures) = figures {
        add_figures(text, figures);
    }
    Ok(())
}

/// The most servers with a figure of their own.
const MOST_SERVERS: usize = 100;

fn add_figures(text: &mut Exposition, figures: &Figures) {
    let counter = |text: &mut Exposition, name: &str, help: &str| {
        text.metric(name, MetricType::Counter, Some(help));
    };
    let name = "mcp_elicit_asked_total";
    counter(text, name, "Questions asked, by server.");
    for (server, count) in figures.asked() {
        text.labelled(name, &[("server", server)], count);
    }
    let name = "mcp_elicit_outcomes_total";
    counter(
        text,
        name,
        "Outcomes of questions and calls, by server and rule.",
    );
    for ((server, rule, outcome), count) in figures.outcomes() {
        let labels = [
            ("server", server.as_str()),
            ("rule", rule.as_str()),
            ("outcome", outcome),
        ];
        text.labelled(name, &labels, count);
    }
    let name = "mcp_elicit_answer_seconds";
    let help = "Times from a question to the act of a person.";
    text.metric(name, MetricType::Histogram, Some(help));
    for (server, times) in figures.to_answer() {
        histogram(text, name, &[("server", server)], times);
    }
    let name = "mcp_elicit_delivery_seconds";
    let help = "Times from the act of a person to the confirmed delivery.";
    text.metric(name, MetricType::Histogram, Some(help));
    histogram(text, name, &[], figures.to_delivery());
    let name = "mcp_elicit_deliveries_total";
    counter(text, name, "Deliveries of answers to servers, by result.");
    for (result, count) in figures.deliveries() {
        text.labelled(name, &[("result", result)], count);
    }
    let name = "mcp_elicit_channel_messages_total";
    counter(text, name, "Messages to people, by channel and result.");
    for (channel, result, count) in figures.messages() {
        text.labelled(name, &[("channel", channel), ("result", result)], count);
    }
    let name = "mcp_elicit_refusals_total";
    counter(
        text,
        name,
        "Refused callers, calls, acts and logins, by reason.",
    );
    for (kind, reason, count) in figures.refusals() {
        text.labelled(name, &[("kind", kind), ("reason", reason)], count);
    }
}

fn histogram(text: &mut Exposition, name: &str, labels: &[(&str, &str)], times: &Times) {
    text.histogram(name, labels, &times.buckets(), times.sum(), times.count());
}
