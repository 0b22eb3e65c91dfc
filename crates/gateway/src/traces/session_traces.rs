//! The open spans of one session: requests of the client, requests to the server, and deliveries of answers.
//!
//! A request of the client is known by its stream and its id, a request to the server by the relay's call. A request that
//! is not recorded has no entry, and passes unchanged. What is open at the end of the session ends with it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::text::beginning;
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, FramePart, Shape};
use mcp_elicit_core::wire::{CallKind, Id, method};
use mcp_elicit_record::clock;
use mcp_elicit_relay::{AskId, CallId, Relay, StreamId, TRACE_PARENT, with_trace_parent};

use super::Traces;
use super::context::SpanContext;
use super::response_outcome::ResponseOutcome;
use super::span::{EndedSpan, MAX_NAME, SpanKind, method_of};
use crate::frame::FrameBytes;

/// The most open spans of each kind in a session. More calls are not traced.
const MOST: usize = 4_096;

/// The outcomes of a request whose client no longer waits for it.
const CLIENT_GONE: &str = "client-gone";
const CANCELLED: &str = "cancelled";
/// The outcome of a request to the server that is given up.
const ABANDONED: &str = "abandoned";

/// A request of the client, by its stream and the JSON of its id.
type RequestKey = (StreamId, String);

/// The open spans of one session.
pub(crate) struct SessionTraces {
    traces: Arc<Traces>,
    server: String,
    open: Mutex<OpenSpans>,
}

#[derive(Default)]
struct OpenSpans {
    requests: HashMap<RequestKey, TracedRequest>,
    calls: HashMap<CallId, TracedCall>,
    /// The span of each question whose answer is not delivered yet, by its id in the record.
    questions: HashMap<String, (AskId, SpanContext)>,
    deliveries: HashMap<String, TracedDelivery>,
}

/// The kind of a call and the name of its tool or prompt.
struct CallName {
    kind: CallKind,
    target: Option<String>,
}

/// A request of the client.
struct TracedRequest {
    name: Arc<CallName>,
    context: SpanContext,
    parent: Option<[u8; 8]>,
    started: Timestamp,
    /// The span of the first request to the server, until it is sent.
    next: Option<SpanContext>,
    /// The call that it made.
    call: Option<CallId>,
    /// Spans of other traces with the work for it.
    links: Vec<SpanContext>,
}

/// A call at the server.
struct TracedCall {
    name: Arc<CallName>,
    /// The request that it was made by first.
    request: RequestKey,
    parent: SpanContext,
    /// The request that the server works on, and its start.
    sent: Option<(SpanContext, Timestamp)>,
    /// The last request to the server.
    last: Option<SpanContext>,
}

/// An answer on its way to the server.
struct TracedDelivery {
    question: SpanContext,
    started: Timestamp,
    /// The request that takes it.
    taken_by: Option<SpanContext>,
}

impl SessionTraces {
    pub(super) fn new(traces: Arc<Traces>, server: &str) -> Self {
        Self {
            traces,
            server: server.to_owned(),
            open: Mutex::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenSpans> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a frame of the client: begins the span of a call, and ends that of a cancelled one. `header` is the
    /// `traceparent` of its HTTP request. Returns the `traceparent` for the request to the server.
    pub(crate) fn client_frame(
        &self,
        stream: StreamId,
        frame: FrameBytes<'_>,
        header: Option<&str>,
    ) -> Option<String> {
        let index = frame.index();
        let frame = Frame::new(frame.bytes(), &index)?;
        let named = frame.method()?;
        if named == method::CANCELLED {
            self.cancelled(frame);
            return None;
        }
        let kind = CallKind::of_method(named)?;
        let key = (stream, frame.id()?.as_json().to_owned());
        let mut open = self.open();
        let count = open.requests.len();
        let request = match open.requests.entry(key) {
            // It moved here from a session that was at work on another call.
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) if count < MOST => free.insert(self.begin(kind, frame, header)?),
            Entry::Vacant(_) => return None,
        };
        request.next.map(SpanContext::to_trace_parent)
    }

    /// Begins the span of a request; `None` if it is not recorded.
    fn begin(
        &self,
        kind: CallKind,
        frame: Frame<'_>,
        header: Option<&str>,
    ) -> Option<TracedRequest> {
        let in_meta = frame.text_member(FramePart::Meta, TRACE_PARENT);
        let parent = in_meta
            .as_deref()
            .and_then(SpanContext::read)
            .or_else(|| header.and_then(SpanContext::read));
        let context = match parent {
            Some((parent, _)) => parent.child()?,
            None => SpanContext::root()?,
        };
        let sampled = parent.map(|(_, sampled)| sampled);
        if !self.traces.sampler.samples(sampled, context) {
            return None;
        }
        // The URI of a resource may contain values.
        let target = match kind {
            CallKind::Tool | CallKind::Prompt => frame.text_member(FramePart::Params, "name"),
            CallKind::Resource => None,
        };
        Some(TracedRequest {
            name: Arc::new(CallName {
                kind,
                target: target.map(|name| beginning(&name, MAX_NAME).to_owned()),
            }),
            context,
            parent: parent.map(|(parent, _)| parent.span_id()),
            started: clock::now(),
            next: context.child(),
            call: None,
            links: Vec::new(),
        })
    }

    /// Ends the span of a cancelled request, which came on another stream if the client uses HTTP.
    fn cancelled(&self, frame: Frame<'_>) {
        let Some(cancelled) = frame.member(FramePart::Params, "requestId") else {
            return;
        };
        let found = {
            let open = self.open();
            let mut keys = open.requests.keys().filter(|(_, id)| id == cancelled);
            // Clients of one caller may use the same id, and then close the streams of requests.
            keys.next().cloned().filter(|_| keys.next().is_none())
        };
        if let Some(key) = found {
            self.end_request(&key, &ResponseOutcome::of(CANCELLED));
        }
    }

    /// Begins the span of a request to the server. Returns the request with its `traceparent`; `None` if the call is not
    /// recorded.
    pub(crate) fn sent(
        &self,
        relay: &Relay,
        call: CallId,
        frame: FrameBytes<'_>,
    ) -> Option<String> {
        let mut open = self.open();
        if open.is_empty() {
            return None;
        }
        if open.calls.len() >= MOST {
            self.drop_ended_calls(relay, &mut open);
        }
        let context = open.next_span(relay, call)?;
        let known = open.calls.get_mut(&call)?;
        known.last = Some(context);
        let before = known.sent.replace((context, clock::now()));
        let index = frame.index();
        let changed = Frame::new(frame.bytes(), &index)
            .and_then(|frame| with_trace_parent(frame, &context.to_trace_parent()));
        if let Some(before) = before {
            let call = open.calls.get(&call)?;
            self.send_upstream(call, before, &ResponseOutcome::of("sent-again"));
        }
        changed
    }

    /// Handles a frame of the server before the relay does: a response ends the span of its request.
    pub(crate) fn server_frame(&self, relay: &Relay, frame: FrameBytes<'_>) {
        let mut open = self.open();
        if open.calls.is_empty() {
            return;
        }
        let index = frame.index();
        let Some(response) = response_in(frame.bytes(), &index) else {
            return;
        };
        let answered = response.id().and_then(|id| relay.call_answered_by(&id));
        let Some((key, call)) = answered.and_then(|key| Some((key, open.calls.get_mut(&key)?)))
        else {
            return;
        };
        let Some(sent) = call.sent.take() else {
            return;
        };
        let outcome = ResponseOutcome::read(response);
        self.send_upstream(call, sent, &outcome);
        let made_by = call.request.clone();
        if !outcome.continues() {
            open.calls.remove(&key);
        }
        // The same call made again may have another trace.
        let waits = key_of(relay, key).filter(|waits| *waits != made_by);
        if let Some(request) = waits.and_then(|waits| open.requests.get_mut(&waits))
            && request.context.trace_id() != sent.0.trace_id()
        {
            request.links.push(sent.0);
        }
    }

    /// Handles a frame for the client: a response ends the span of its request.
    pub(crate) fn response(&self, stream: StreamId, frame: FrameBytes<'_>) {
        if self.open().requests.is_empty() {
            return;
        }
        let index = frame.index();
        let Some(response) = response_in(frame.bytes(), &index) else {
            return;
        };
        if let Some(id) = response.id() {
            let key = (stream, id.as_json().to_owned());
            self.end_request(&key, &ResponseOutcome::read(response));
        }
    }

    /// Handles the end of a client's HTTP request. What it still waits for, it will not get on this stream.
    pub(crate) fn stream_ended(&self, stream: StreamId) {
        let keys: Vec<_> = {
            let open = self.open();
            let keys = open.requests.keys();
            keys.filter(|(of, _)| *of == stream).cloned().collect()
        };
        for key in keys {
            self.end_request(&key, &ResponseOutcome::of(CLIENT_GONE));
        }
    }

    /// Returns the `traceparent` of a question of this call, for its row.
    pub(crate) fn of_question(&self, relay: &Relay, question: AskId) -> Option<String> {
        let call = relay.call_of_question(question)?;
        let mut open = self.open();
        if open.questions.len() >= MOST {
            let questions = &mut open.questions;
            questions.retain(|_, (known, _)| relay.call_of_question(*known).is_some());
        }
        let last = open.calls.get(&call).and_then(|call| call.last);
        let asks = match last {
            Some(context) => context,
            // An approval is asked before anything is sent.
            None => open.requests.get(&key_of(relay, call)?)?.context,
        };
        Some(asks.to_trace_parent())
    }

    /// Handles a question that was recorded or found, with the `traceparent` in its row.
    pub(crate) fn recorded(&self, question: AskId, record: &str, trace: Option<&str>) {
        let Some((asked_in, true)) = trace.and_then(SpanContext::read) else {
            return;
        };
        let mut open = self.open();
        if open.questions.len() < MOST {
            let known = (question, asked_in.question(record));
            open.questions.insert(record.to_owned(), known);
        }
    }

    /// Begins the spans of deliveries of these questions.
    pub(crate) fn delivery_begun(&self, relay: &Relay, questions: &[AskId], records: &[String]) {
        let mut open = self.open();
        if open.deliveries.len() >= MOST {
            // Those that were not taken out have no result.
            open.deliveries.clear();
        }
        for (question, record) in questions.iter().zip(records) {
            let Some((_, context)) = open.questions.get(record).copied() else {
                continue;
            };
            let call = relay.call_of_question(*question);
            let sent = call.and_then(|call| open.calls.get(&call)?.sent);
            let delivery = TracedDelivery {
                question: context,
                started: clock::now(),
                taken_by: sent.map(|(context, _)| context),
            };
            open.deliveries.insert(record.clone(), delivery);
        }
    }

    /// Ends the spans of deliveries with this result.
    pub(crate) fn delivery_ended(&self, records: &[String], outcome: &'static str) {
        for record in records {
            let ended = {
                let mut open = self.open();
                open.questions.remove(record);
                open.deliveries.remove(record)
            };
            let Some(delivery) = ended else { continue };
            let Some(context) = delivery.question.child() else {
                continue;
            };
            self.traces.send(EndedSpan {
                name: "deliver".into(),
                kind: SpanKind::Internal,
                context,
                parent: Some(delivery.question.span_id()),
                started: delivery.started,
                ended: clock::now(),
                server: &self.server,
                call: None,
                target: None,
                mode: None,
                outcome,
                error: (outcome != "delivered").then(|| outcome.into()),
                links: delivery.taken_by.into_iter().collect(),
            });
        }
    }

    /// Forgets a question that ended without a delivery.
    pub(crate) fn question_gone(&self, record: &str) {
        let mut open = self.open();
        open.questions.remove(record);
        open.deliveries.remove(record);
    }

    /// Ends the span of a request to the server that is given up.
    pub(crate) fn abandoned(&self, call: CallId) {
        self.end_call(call, ABANDONED);
    }

    /// Takes over a request of the client from another session.
    pub(crate) fn take_over(&self, from: &Self, stream: StreamId, frame: &[u8]) {
        let id = FrameIndex::at(frame).and_then(|index| index.id_in(frame));
        let Some(key) = id.map(|id| (stream, id.as_json().to_owned())) else {
            return;
        };
        let taken = from.open().requests.remove(&key);
        if let Some(request) = taken {
            self.open().requests.insert(key, request);
        }
    }

    /// Drops calls that the relay does not know any more.
    fn drop_ended_calls(&self, relay: &Relay, open: &mut OpenSpans) {
        let is_over = |key: &CallId, _: &mut TracedCall| relay.client_id_of(*key).is_none();
        for (_, call) in open.calls.extract_if(is_over) {
            if let Some(sent) = call.sent {
                self.send_upstream(&call, sent, &ResponseOutcome::of(ABANDONED));
            }
        }
    }

    fn end_call(&self, key: CallId, outcome: &'static str) {
        let ended = self.open().calls.remove(&key);
        if let Some(call) = ended
            && let Some(sent) = call.sent
        {
            self.send_upstream(&call, sent, &ResponseOutcome::of(outcome));
        }
    }

    fn end_request(&self, key: &RequestKey, outcome: &ResponseOutcome) {
        let ended = self.open().requests.remove(key);
        let Some(request) = ended else { return };
        let call = request.call;
        self.send_request(request, outcome);
        // The relay decides about a call whose client has left.
        if !outcome.continues()
            && ![CLIENT_GONE, CANCELLED].contains(&outcome.word)
            && let Some(call) = call
        {
            self.end_call(call, ABANDONED);
        }
    }

    fn send_request(&self, request: TracedRequest, outcome: &ResponseOutcome) {
        let TracedRequest {
            name,
            context,
            parent,
            started,
            next: _,
            call: _,
            links,
        } = request;
        self.send_call(
            &name,
            SpanKind::Server,
            (context, parent),
            started,
            outcome,
            links,
        );
    }

    fn send_upstream(
        &self,
        call: &TracedCall,
        (context, started): (SpanContext, Timestamp),
        outcome: &ResponseOutcome,
    ) {
        let parent = Some(call.parent.span_id());
        let kind = SpanKind::Client;
        self.send_call(
            &call.name,
            kind,
            (context, parent),
            started,
            outcome,
            Vec::new(),
        );
    }

    fn send_call(
        &self,
        name: &CallName,
        kind: SpanKind,
        (context, parent): (SpanContext, Option<[u8; 8]>),
        started: Timestamp,
        outcome: &ResponseOutcome,
        links: Vec<SpanContext>,
    ) {
        let method = method_of(name.kind);
        let target = name.target.as_deref();
        self.traces.send(EndedSpan {
            name: target.map_or(method.into(), |target| format!("{method} {target}").into()),
            kind,
            context,
            parent,
            started,
            ended: clock::now(),
            server: &self.server,
            call: Some(name.kind),
            target,
            mode: None,
            outcome: outcome.word,
            error: outcome.error.clone(),
            links,
        });
    }
}

impl SessionTraces {
    /// Ends every span at the end of the session.
    pub(crate) fn session_ended(&self) {
        let open = std::mem::take(&mut *self.open());
        let ended = ResponseOutcome::of("session-ended");
        for call in open.calls.values() {
            if let Some(sent) = call.sent {
                self.send_upstream(call, sent, &ended);
            }
        }
        for request in open.requests.into_values() {
            self.send_request(request, &ended);
        }
    }
}

impl OpenSpans {
    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.calls.is_empty()
    }

    /// Returns the span of the next request to the server in this call.
    fn next_span(&mut self, relay: &Relay, key: CallId) -> Option<SpanContext> {
        if let Some(call) = self.calls.get(&key) {
            return call.parent.child();
        }
        if self.calls.len() >= MOST {
            return None;
        }
        let waits = key_of(relay, key)?;
        let request = self.requests.get_mut(&waits)?;
        let context = request.next.take().or_else(|| request.context.child())?;
        request.call = Some(key);
        let call = TracedCall {
            name: request.name.clone(),
            request: waits,
            parent: request.context,
            sent: None,
            last: None,
        };
        self.calls.insert(key, call);
        Some(context)
    }
}

/// Returns the key of the request that waits for the call.
fn key_of(relay: &Relay, call: CallId) -> Option<RequestKey> {
    let id: &Id = relay.client_id_of(call)?;
    Some((relay.waits_at(call)?, id.as_json().to_owned()))
}

fn response_in<'a>(bytes: &'a [u8], index: &'a FrameIndex) -> Option<Frame<'a>> {
    let frame = Frame::new(bytes, index)?;
    (frame.shape() == Some(Shape::Response)).then_some(frame)
}
