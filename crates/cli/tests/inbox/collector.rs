//! A collector of traces in the test's process: it decodes what it gets, and keeps the bytes.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::http::{PATIENCE, read_request};

/// The attributes that a span may have.
const ATTRIBUTES: [&str; 7] = [
    "error.type",
    "gen_ai.tool.name",
    "mcp.method.name",
    "mcp_elicit.mode",
    "mcp_elicit.outcome",
    "mcp_elicit.replica",
    "mcp_elicit.server",
];

/// A collector.
pub(crate) struct Collector {
    pub(crate) address: String,
    got: Arc<Got>,
}

#[derive(Default)]
struct Got {
    requests: Mutex<Vec<(String, Vec<u8>)>>,
    news: Condvar,
}

/// A span that it got.
#[derive(Clone, Debug)]
pub(crate) struct GotSpan {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty if it has none.
    pub(crate) parent: String,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The traces of the spans that it links to.
    pub(crate) links: Vec<String>,
    /// Nanoseconds.
    pub(crate) times: (u64, u64),
}

impl GotSpan {
    pub(crate) fn outcome(&self) -> &str {
        &self.attributes["mcp_elicit.outcome"]
    }

    pub(crate) fn replica(&self) -> &str {
        &self.attributes["mcp_elicit.replica"]
    }
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let got = Arc::new(Got::default());
        let takes = got.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let takes = takes.clone();
                thread::spawn(move || takes.serve(stream));
            }
        });
        Self { address, got }
    }

    /// Waits for this number of spans with this name.
    pub(crate) fn wait_for(&self, name: &str, count: usize) -> Vec<GotSpan> {
        let mut requests = self.got.requests.lock().unwrap();
        loop {
            let mut spans = spans_in(&requests);
            spans.retain(|span| span.name == name);
            if spans.len() >= count {
                assert_eq!(spans.len(), count, "{spans:#?}");
                return spans;
            }
            let (next, late) = self.got.news.wait_timeout(requests, PATIENCE).unwrap();
            requests = next;
            assert!(!late.timed_out(), "{:#?}", spans_in(&requests));
        }
    }

    /// Returns all spans so far.
    pub(crate) fn spans(&self) -> Vec<GotSpan> {
        spans_in(&self.got.requests.lock().unwrap())
    }

    /// Returns `true` if the text is anywhere in the bytes that it got.
    pub(crate) fn has_text(&self, text: &str) -> bool {
        let requests = self.got.requests.lock().unwrap();
        let is_in = |body: &Vec<u8>| body.windows(text.len()).any(|part| part == text.as_bytes());
        requests.iter().any(|(_, body)| is_in(body))
    }
}

impl Got {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream;
        while let Some(request) = read_request(&mut reader)? {
            self.requests.lock().unwrap().push(request);
            self.news.notify_all();
            writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n")?;
        }
        Ok(())
    }
}

/// Lets a gateway send traces to the collector at this address, soon.
pub(crate) fn configure(command: &mut Command, address: &str) {
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        .env("OTEL_BSP_SCHEDULE_DELAY", "20");
}

fn spans_in(requests: &[(String, Vec<u8>)]) -> Vec<GotSpan> {
    let mut all = Vec::new();
    for (first, body) in requests {
        assert_eq!(first.trim_end(), "POST /v1/traces HTTP/1.1");
        let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
        for of_gateway in request.resource_spans {
            let resource = attributes(of_gateway.resource.unwrap().attributes);
            assert_eq!(resource["service.name"], "mcp-elicit");
            let of_scopes = of_gateway.scope_spans.into_iter();
            let spans = of_scopes.flat_map(|of_scope| of_scope.spans).map(read);
            for span in spans {
                assert_eq!(span.replica(), resource["service.instance.id"]);
                all.push(span);
            }
        }
    }
    all
}

fn read(span: Span) -> GotSpan {
    let hex = |bytes: &[u8]| {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    let attributes = attributes(span.attributes);
    for name in attributes.keys() {
        assert!(ATTRIBUTES.contains(&name.as_str()), "{name}");
    }
    assert!(span.events.is_empty());
    assert!(span.status.is_none_or(|status| status.message.is_empty()));
    assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
    GotSpan {
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        attributes,
        links: span.links.iter().map(|link| hex(&link.trace_id)).collect(),
        times: (span.start_time_unix_nano, span.end_time_unix_nano),
    }
}

fn attributes(all: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{other:?}"),
    };
    let pairs = all.into_iter().map(|pair| (pair.key, text(pair.value)));
    pairs.collect()
}
