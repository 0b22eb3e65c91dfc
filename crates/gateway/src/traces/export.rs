//! The queue of spans, and the task that sends them to the collector (OTLP over HTTP, protobuf).
//!
//! The queue is bounded: a span that finds it full is dropped and counted. A collector that is away is reported once, and
//! again only after it was there.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use reqwest::{Client, Url};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::settings::TraceSettings;
use super::span::attribute;

/// The most spans that wait.
const QUEUE: usize = 2_048;
/// The most spans in one request.
const BATCH: usize = 512;
/// The pauses after failures, in seconds; after the last one, the spans are dropped.
const PAUSES: [u64; 3] = [1, 2, 4];

/// The queue of spans.
pub(super) struct Exporter {
    queue: mpsc::Sender<Span>,
    counts: Arc<ExportCounts>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct ExportCounts {
    sent: AtomicU64,
    dropped: AtomicU64,
    /// `true` once a full queue was reported.
    is_full_told: AtomicBool,
}

impl Exporter {
    /// Starts the task; `None` if no connection can be made at all, which is reported.
    pub(super) fn start(settings: &TraceSettings, replica: &str) -> Option<Self> {
        mcp_elicit_client::tls::ready();
        let mut client = Client::builder()
            .timeout(settings.timeout)
            .default_headers(settings.headers.clone())
            .redirect(reqwest::redirect::Policy::none())
            .referer(false);
        if settings.endpoint.scheme() == "http" {
            // Reading the system's certificates takes longer than everything else.
            client = client.tls_certs_only([]);
        }
        let client = match client.build() {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(%error, "no traces are sent");
                return None;
            }
        };
        let mut attributes: Vec<_> = settings
            .resource
            .iter()
            .map(|(name, value)| attribute(name, value))
            .collect();
        attributes.push(attribute("service.version", env!("CARGO_PKG_VERSION")));
        attributes.push(attribute("service.instance.id", replica));
        let (queue, spans) = mpsc::channel(QUEUE);
        let (stop, stopping) = watch::channel(false);
        let counts = Arc::new(ExportCounts::default());
        let task = SpanSender {
            client,
            endpoint: settings.endpoint.clone(),
            delay: settings.delay,
            resource: Resource {
                attributes,
                ..Resource::default()
            },
            counts: counts.clone(),
            stopping,
            is_away: false,
        };
        Some(Self {
            queue,
            counts,
            stop,
            task: Mutex::new(Some(tokio::spawn(task.run(spans)))),
        })
    }

    /// Queues a span, without waiting.
    pub(super) fn send(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            if !self.counts.is_full_told.swap(true, Ordering::Relaxed) {
                tracing::warn!("spans of traces are dropped: the collector takes them too slowly");
            }
        }
    }

    /// Returns the numbers of spans that were sent and dropped.
    pub(super) fn counts(&self) -> (u64, u64) {
        let number = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (number(&self.counts.sent), number(&self.counts.dropped))
    }

    /// Sends what waits, for at most this time.
    pub(super) async fn close(&self, at_most: Duration) {
        self.stop.send_replace(true);
        let task = {
            let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            task.take()
        };
        if let Some(mut task) = task
            && tokio::time::timeout(at_most, &mut task).await.is_err()
        {
            task.abort();
            tracing::warn!("the last spans of traces are dropped: the collector takes too long");
        }
    }
}

/// The task that sends spans.
struct SpanSender {
    client: Client,
    endpoint: Url,
    delay: Duration,
    resource: Resource,
    counts: Arc<ExportCounts>,
    /// `true` once the gateway stops.
    stopping: watch::Receiver<bool>,
    /// `true` after a failure that was reported.
    is_away: bool,
}

/// The result of a request.
enum ExportResult {
    Taken,
    /// The collector may take it later.
    Later(String),
    /// The collector does not take it.
    Refused(String),
}

impl SpanSender {
    async fn run(mut self, mut spans: mpsc::Receiver<Span>) {
        let mut batch = Vec::new();
        loop {
            self.collect(&mut spans, &mut batch).await;
            if !batch.is_empty() {
                self.deliver(std::mem::take(&mut batch)).await;
            } else if *self.stopping.borrow() || spans.is_closed() {
                return;
            }
        }
    }

    /// Waits until a batch is full, or its first span has waited, or the gateway stops.
    async fn collect(&mut self, spans: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>) {
        if !*self.stopping.borrow() {
            tokio::select! {
                _ = spans.recv_many(batch, BATCH) => {}
                _ = self.stopping.changed() => {}
            }
            let delay = tokio::time::sleep(self.delay);
            tokio::pin!(delay);
            while !batch.is_empty() && batch.len() < BATCH && !*self.stopping.borrow() {
                let room = BATCH - batch.len();
                tokio::select! {
                    count = spans.recv_many(batch, room) => if count == 0 { break },
                    () = &mut delay => break,
                    _ = self.stopping.changed() => {}
                }
            }
        }
        while *self.stopping.borrow()
            && batch.len() < BATCH
            && let Ok(span) = spans.try_recv()
        {
            batch.push(span);
        }
    }

    /// Sends a batch, with pauses after failures.
    async fn deliver(&mut self, spans: Vec<Span>) {
        let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
        let body = Bytes::from(self.request_of(spans).encode_to_vec());
        let pauses = PAUSES.into_iter().map(Some).chain([None]);
        for pause in pauses {
            match self.post(body.clone()).await {
                ExportResult::Taken => {
                    if std::mem::take(&mut self.is_away) {
                        tracing::info!("the collector takes traces again");
                    }
                    self.counts.sent.fetch_add(count, Ordering::Relaxed);
                    return;
                }
                ExportResult::Later(why) => self.tell_away(&why),
                ExportResult::Refused(why) => {
                    self.tell_away(&why);
                    break;
                }
            }
            let Some(pause) = pause.filter(|_| !*self.stopping.borrow()) else {
                break;
            };
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(pause)) => {}
                _ = self.stopping.changed() => {}
            }
        }
        self.counts.dropped.fetch_add(count, Ordering::Relaxed);
    }

    fn request_of(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        let scope = InstrumentationScope {
            name: "mcp-elicit".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let scope_spans = ScopeSpans {
            scope: Some(scope),
            spans,
            ..ScopeSpans::default()
        };
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![scope_spans],
                ..ResourceSpans::default()
            }],
        }
    }

    async fn post(&self, body: Bytes) -> ExportResult {
        let request = self
            .client
            .post(self.endpoint.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(body);
        match request.send().await {
            Ok(response) if response.status().is_success() => ExportResult::Taken,
            Ok(response) => {
                let status = response.status();
                let why = format!("HTTP status {}", status.as_u16());
                if is_temporary(status) {
                    ExportResult::Later(why)
                } else {
                    ExportResult::Refused(why)
                }
            }
            // The address may contain credentials.
            Err(error) => ExportResult::Later(error.without_url().to_string()),
        }
    }

    fn tell_away(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_away, true) {
            tracing::warn!(%why, "the collector does not take traces; calls go on without");
        }
    }
}

/// Returns `true` for a status after which a request is made again (OTLP, failures).
fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}
