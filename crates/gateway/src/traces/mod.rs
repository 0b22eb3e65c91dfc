//! Traces of calls and their questions, for an OpenTelemetry collector: spans built from what the gateway does anyway, and
//! sent by a task of their own, which no call waits for.
//!
//! A trace has the request of the client (`tools/call`), below it the requests to the server, below these the questions,
//! and below each the delivery of its answer. A question outlives calls and processes: its row has the `traceparent` of
//! the span in which it was asked, the id of its own span follows from its id, and the process that writes its end sends
//! its span. No span has a message, a value, a resource's URI or the name of a caller or of a person.
//!
//! | file | contents |
//! | --- | --- |
//! | [`settings`] | the collector and the sampling, from the configuration and the environment |
//! | [`context`] | the identity of a span, and `traceparent` |
//! | [`session_traces`] | the open spans of a session |
//! | [`response_outcome`] | the outcome of a response |
//! | [`span`] | a span that has ended, as a message of OTLP |
//! | [`export`] | the queue and the task that sends them |

mod context;
mod export;
mod response_outcome;
mod session_traces;
mod settings;
mod span;

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::wire::CallKind;
use mcp_elicit_record::{EndedQuestion, Record};

use context::SpanContext;
use export::Exporter;
pub(crate) use session_traces::SessionTraces;
use settings::{Sampler, TraceSettings};
use span::{EndedSpan, SpanKind};

/// The longest time that the last spans take at a stop.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// The traces of a gateway.
pub(crate) struct Traces {
    exporter: Exporter,
    sampler: Sampler,
    /// The name of this gateway among those that share the record.
    replica: String,
}

impl Traces {
    /// Begins to send traces of this record's questions, if a collector is configured: in the file, else in the
    /// environment. Must be called in a tokio runtime.
    pub(crate) fn begin(configured: Option<&str>, record: &Record) -> Option<Arc<Self>> {
        let settings = TraceSettings::read(configured, |name| std::env::var(name).ok())?;
        let replica = record.gateway_name().to_owned();
        let exporter = Exporter::start(&settings, &replica)?;
        let traces = Arc::new(Self {
            exporter,
            sampler: settings.sampler,
            replica,
        });
        let ends = traces.clone();
        record.observe_ends(Box::new(move |ended| ends.question_ended(&ended)));
        Some(traces)
    }

    /// Sends the last spans, for at most two seconds.
    pub(crate) async fn close(&self) {
        self.exporter.close(LAST_SPANS).await;
    }

    /// Returns the numbers of spans that were sent and dropped.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.exporter.counts()
    }

    /// Returns the traces of a new session with the server of this name.
    pub(crate) fn of_session(self: &Arc<Self>, server: &str) -> SessionTraces {
        SessionTraces::new(self.clone(), server)
    }

    fn send(&self, span: EndedSpan<'_>) {
        self.exporter.send(span.into_message(&self.replica));
    }

    fn question_ended(&self, ended: &EndedQuestion<'_>) {
        let row = ended.row;
        let parent = row.body.trace.as_deref().and_then(SpanContext::read);
        let Some((parent, true)) = parent else {
            return;
        };
        // The URI of a resource may contain values.
        let is_named = row.body.kind.is_some_and(|kind| kind != CallKind::Resource);
        self.send(EndedSpan {
            name: "question".into(),
            kind: SpanKind::Internal,
            context: parent.question(&row.id),
            parent: Some(parent.span_id()),
            started: row.lifecycle.asked_at(),
            ended: ended.at,
            server: &row.body.server,
            call: row.body.kind,
            target: row.body.target.as_deref().filter(|_| is_named),
            mode: Some(row.body.mode),
            outcome: ended.event.as_str(),
            error: None,
            links: Vec::new(),
        });
    }
}
