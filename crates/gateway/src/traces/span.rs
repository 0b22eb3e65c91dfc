//! A span that has ended, as a message of OTLP.

use std::borrow::Cow;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::text::beginning;
use mcp_elicit_core::wire::{CallKind, Mode};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{self, Link};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};

use super::context::SpanContext;

pub(super) use span::SpanKind;

/// The most bytes of a name that a peer chose.
pub(super) const MAX_NAME: usize = 128;
/// The flag of a span whose trace is recorded.
const SAMPLED: u32 = 1;

/// A span that has ended.
pub(super) struct EndedSpan<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) kind: SpanKind,
    pub(super) context: SpanContext,
    /// The span above it.
    pub(super) parent: Option<[u8; 8]>,
    pub(super) started: Timestamp,
    pub(super) ended: Timestamp,
    /// The name of the server.
    pub(super) server: &'a str,
    /// The kind of call.
    pub(super) call: Option<CallKind>,
    /// The name of the tool or prompt.
    pub(super) target: Option<&'a str>,
    /// The mode of a question.
    pub(super) mode: Option<Mode>,
    pub(super) outcome: &'static str,
    /// The class of an error.
    pub(super) error: Option<Cow<'static, str>>,
    /// Spans of other traces that it belongs to.
    pub(super) links: Vec<SpanContext>,
}

impl EndedSpan<'_> {
    /// Returns the message. The names of attributes are those of the semantic conventions for MCP, where they have one.
    pub(super) fn into_message(self, replica: &str) -> Span {
        let target_name = match self.call {
            Some(CallKind::Prompt) => "gen_ai.prompt.name",
            Some(CallKind::Tool | CallKind::Resource) | None => "gen_ai.tool.name",
        };
        let attributes = [
            ("mcp.method.name", self.call.map(method_of)),
            (target_name, self.target),
            ("mcp_elicit.server", Some(self.server)),
            ("mcp_elicit.mode", self.mode.map(Mode::as_str)),
            ("mcp_elicit.outcome", Some(self.outcome)),
            ("mcp_elicit.replica", Some(replica)),
            ("error.type", self.error.as_deref()),
        ];
        let attributes = attributes
            .into_iter()
            .filter_map(|(name, value)| Some(attribute(name, value?)));
        Span {
            trace_id: self.context.trace_id().into(),
            span_id: self.context.span_id().into(),
            parent_span_id: self.parent.map_or_else(Vec::new, Into::into),
            flags: SAMPLED,
            name: beginning(&self.name, MAX_NAME).to_owned(),
            kind: self.kind.into(),
            start_time_unix_nano: nanos(self.started),
            // A clock may be set back.
            end_time_unix_nano: nanos(self.ended.max(self.started)),
            attributes: attributes.collect(),
            links: self.links.into_iter().map(link).collect(),
            status: self.error.is_some().then(|| Status {
                message: String::new(),
                code: StatusCode::Error.into(),
            }),
            ..Span::default()
        }
    }
}

/// Returns the method of such calls.
pub(super) const fn method_of(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Tool => "tools/call",
        CallKind::Prompt => "prompts/get",
        CallKind::Resource => "resources/read",
    }
}

/// Returns an attribute with a text.
pub(super) fn attribute(name: &str, value: &str) -> KeyValue {
    let value = Value::StringValue(beginning(value, MAX_NAME).to_owned());
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn link(context: SpanContext) -> Link {
    Link {
        trace_id: context.trace_id().into(),
        span_id: context.span_id().into(),
        flags: SAMPLED,
        ..Link::default()
    }
}

const fn nanos(at: Timestamp) -> u64 {
    at.as_millis().saturating_mul(1_000_000)
}
