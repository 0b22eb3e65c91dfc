//! One relay with its two sides and its record, carrying out the relay's effects.
//!
//! | file | contents |
//! | --- | --- |
//! | `record_effects` | effects on the record: at once, or in the driver |
//! | [`driver`] | the record, timers, and events from others |
//! | [`child_pool`] | the sessions that serve one caller together |
//! | `stored_results` | the bytes of stored results that no client waits for |
//! | [`turn_waker`] | the waker of a pool, for calls that wait for their turn |

pub(crate) mod child_pool;
pub(crate) mod driver;
mod record_effects;
mod stored_results;
pub(crate) mod turn_waker;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::secret::SecretText;
use mcp_elicit_core::wire;
use mcp_elicit_core::wire::{CallKind, Id};
use mcp_elicit_record::{Record, RecordEvent, SessionIdentity, clock};
use mcp_elicit_relay::{
    AccessNumber, CallId, ClientForward, DeliveryId, Effect, Event, Relay, RelaySettings,
    ServerForward, StateSeal, StreamId, TRACE_PARENT,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use crate::bind::{EarlierRules, ServerOfCalls};
use crate::callers::{Callers, SessionCaller};
use crate::current_rules::CurrentRules;
use crate::frame::{FrameBytes, one_line};
use crate::local_responder::LocalResponses;
use crate::server_challenge::ServerChallenge;
use crate::session::turn_waker::TurnWaker;
use crate::traces::{SessionTraces, Traces};
pub(crate) use driver::Driver;
use record_effects::{Executed, PendingChange, ToWrite};
use stored_results::ResultsOfCalls;

/// The sink of frames for the client. Never waits: frames that cannot be sent at once are queued.
pub(crate) trait ClientTransport: Send + Sync {
    /// Queues a frame on a stream; `last` if it answers the request that opened the stream.
    fn send(&self, stream: StreamId, frame: FrameBytes<'_>, last: bool);
    /// Queues the last frame of a stream, if the server requires credentials for the stream's request.
    fn challenge(&self, stream: StreamId, frame: FrameBytes<'_>, _challenge: &ServerChallenge) {
        self.send(stream, frame, true);
    }
    /// Writes the queue.
    fn flush(&self);
    /// Returns `true` if that may block until the client reads.
    fn may_wait(&self) -> bool {
        false
    }
}

/// The sink of frames for the server. Never waits: frames that cannot be sent at once are queued.
pub(crate) trait ServerTransport: Send + Sync {
    /// Queues a frame; `call` if it starts that call, made on this stream of the client. The result of `delivery` is
    /// reported to the session: [`Event::Accepted`], [`Event::Refused`] or [`Event::Lost`].
    fn send(
        &self,
        frame: FrameBytes<'_>,
        call: Option<CallId>,
        stream: Option<StreamId>,
        delivery: Option<DeliveryId>,
        beside: ForwardedHeaders,
    );
    /// Writes the queue, without waiting for the server to read.
    fn flush(&self);
    /// Returns the number of bytes that wait for the server.
    fn unwritten(&self) -> usize {
        0
    }
    /// Returns `true` if queued frames can still reach the server, as far as is known.
    fn is_up(&self) -> bool {
        true
    }
    /// Returns `true` if more may be queued: a server that does not read must not fill the memory.
    fn has_room(&self) -> bool {
        true
    }
    /// Sets the HTTP headers of the client's request on this stream; `None` when the request is over.
    fn set_request_headers(&self, _stream: StreamId, _headers: Option<HeaderMap>) {}
    /// Drops the request of a call whose answer is no longer wanted.
    fn abandon(&self, call: CallId);
    /// Restarts the server; reports [`Event::Restarted`] or [`Event::ServerGone`] when done.
    fn restart(&self);
    /// Leaves the session that was opened with the server: further requests describe themselves.
    fn leave_session(&self) {}
    /// Ends the connection with the server.
    fn close(&self);
}

/// The headers of a client that are forwarded with a frame, to a server over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardedHeaders {
    /// All forwardable headers.
    All,
    /// Only headers that cannot contain anything that the approvers of the call have not seen.
    Shown,
}

impl ForwardedHeaders {
    fn of(relay: &Relay, call: Option<CallId>) -> Self {
        match call {
            Some(call) if relay.is_approved(call) => Self::Shown,
            Some(_) | None => Self::All,
        }
    }
}

/// One client session with one server.
pub(crate) struct Session {
    relay: Mutex<Relay>,
    client: Arc<dyn ClientTransport>,
    server: Arc<dyn ServerTransport>,
    record: Arc<Record>,
    who: SessionContext,
    /// Its open spans, if calls are traced.
    traces: Option<SessionTraces>,
    /// The counted results of its calls.
    results: ResultsOfCalls,
    jobs: mpsc::UnboundedSender<SessionJob>,
    tell: mpsc::UnboundedSender<RecordEvent>,
    timer: Notify,
    /// The waker for calls that another session could take, or for a session that could take one.
    free: OnceLock<Arc<TurnWaker>>,
    /// The time at which the driver wakes by itself, in milliseconds since 1970.
    sleeps_until: AtomicU64,
    /// The number of changes of the record that are left to the driver and not made yet.
    changes_left: AtomicUsize,
    /// The runtime for changes of the record that have to wait.
    runtime: Handle,
}

/// The number of calls in progress up to which changes of the record are made inline.
const INLINE_LOAD: usize = 8;

/// The recipients of relay-generated frames, and the writes that follow them.
#[derive(Default)]
struct PeersToFlush {
    client: bool,
    server: bool,
    to_write: Vec<ToWrite>,
}

/// The address of a question's page, by its id; `None` if there is no inbox.
pub(crate) type LinkOf = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The caller and the server of a session, and the address at which its questions can be answered.
#[derive(Clone)]
pub(crate) struct SessionContext {
    /// The operator's name of the server.
    pub server: String,
    /// The identities of caller and server in the record.
    pub identity: SessionIdentity,
    /// The name of this gateway, if others send it the retries of calls that wait here.
    pub holder: Option<String>,
    /// The operator's credentials at the server.
    pub secrets: Arc<[SecretText]>,
    /// The caller, with the proofs of its requests.
    pub caller: Arc<SessionCaller>,
    /// The callers, which may be blocked or revoked while a question is open.
    pub callers: Arc<Callers>,
    /// The rules, if there are any.
    pub teams: Option<Arc<CurrentRules>>,
    /// The rules of the last file that defined the server as this session has it.
    pub earlier_rules: EarlierRules,
    /// The address of a question's page, by its id.
    pub link: LinkOf,
    /// The responder besides the inbox.
    pub responder: Option<Arc<LocalResponses>>,
    /// The traces of the gateway, if calls are traced.
    pub traces: Option<Arc<Traces>>,
}

enum SessionJob {
    Change(PendingChange),
    Flush,
    End,
}

impl Session {
    /// Creates a session, which exists while its driver runs.
    pub(crate) fn new(
        settings: RelaySettings,
        who: SessionContext,
        client: Arc<dyn ClientTransport>,
        server: Arc<dyn ServerTransport>,
        record: Arc<Record>,
    ) -> (Arc<Self>, Driver) {
        let (jobs, job_list) = mpsc::unbounded_channel();
        let (tell, told) = mpsc::unbounded_channel();
        let key = record.identity_key().derive("request state");
        let seal = StateSeal::new(&key, &who.identity.server.key, &who.identity.caller);
        let seal = match &who.holder {
            Some(gateway) => seal.held_by(gateway),
            None => seal,
        };
        let settings = RelaySettings {
            is_named: who.identity.server.is_named,
            secrets: who.secrets.clone(),
            decisions: match &who.teams {
                Some(teams) => {
                    let server = ServerOfCalls {
                        name: who.server.clone(),
                        key: who.identity.server.key.clone(),
                        earlier: who.earlier_rules.clone(),
                    };
                    let caller = who.caller.clone();
                    Some(teams.decisions(server, caller, settings.open_for))
                }
                None => settings.decisions,
            },
            ..settings
        };
        let relay = Mutex::new(Relay::new(settings, seal));
        let traces = who.traces.as_ref();
        let traces = traces.map(|traces| traces.of_session(&who.server));
        let session = Arc::new(Self {
            relay,
            client,
            server,
            record,
            who,
            traces,
            results: ResultsOfCalls::default(),
            jobs,
            tell,
            timer: Notify::new(),
            free: OnceLock::new(),
            sleeps_until: AtomicU64::new(u64::MAX),
            changes_left: AtomicUsize::new(0),
            runtime: Handle::current(),
        });
        (
            session.clone(),
            Driver {
                session,
                jobs: job_list,
                told,
            },
        )
    }

    fn relay(&self) -> MutexGuard<'_, Relay> {
        self.relay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a frame from the client.
    pub(crate) fn handle_client(&self, stream: StreamId, frame: FrameBytes<'_>) {
        if let Some(traces) = &self.traces {
            let _not_for_headers = traces.client_frame(stream, frame, None);
        }
        let mut relay = self.relay();
        relay.set_finds_calls(self.record.has_calls());
        let up = match frame {
            FrameBytes::Lent(bytes) => relay.client_frame(clock::now(), stream, bytes),
            FrameBytes::Seen(bytes, index) => {
                relay.client_frame_seen(clock::now(), stream, bytes, index)
            }
        };
        if let ClientForward::AsIs(call) = up {
            let beside = ForwardedHeaders::of(&relay, call);
            let traced = self.traced(&relay, call, frame);
            let frame = match &traced {
                Some(text) => FrameBytes::Lent(text.as_bytes()),
                None => frame,
            };
            self.server.send(frame, call, Some(stream), None, beside);
        }
        let told = self.carry_out(relay, Some(stream), None);
        self.server.flush();
        // The reader of one peer must not wait for the other to read, because both might then wait for each other.
        if told.client && self.client.may_wait() {
            self.flush_later();
        } else if told.client {
            self.client.flush();
        }
        self.write_behind(told.to_write);
    }

    /// Handles a frame from the server, on the stream of this call if streams are separate.
    pub(crate) fn handle_server(&self, call: Option<CallId>, frame: FrameBytes<'_>) {
        self.handle_server_challenged(call, frame, None);
    }

    /// Handles a frame from the server, with its challenge if there is one.
    pub(crate) fn handle_server_challenged(
        &self,
        call: Option<CallId>,
        frame: FrameBytes<'_>,
        challenge: Option<&ServerChallenge>,
    ) {
        let mut relay = self.relay();
        if let Some(traces) = &self.traces {
            traces.server_frame(&relay, frame);
        }
        let down = match frame {
            FrameBytes::Lent(bytes) => relay.server_frame(clock::now(), call, bytes),
            FrameBytes::Seen(bytes, index) => {
                relay.server_frame_seen(clock::now(), call, bytes, index)
            }
        };
        if let ServerForward::AsIs { stream, last } = down {
            self.to_client(stream, frame, last, challenge);
        }
        let told = self.carry_out(relay, None, challenge);
        self.client.flush();
        if told.server {
            self.server.flush();
        }
        self.write_behind(told.to_write);
    }

    fn to_client(
        &self,
        stream: StreamId,
        frame: FrameBytes<'_>,
        last: bool,
        challenge: Option<&ServerChallenge>,
    ) {
        if let Some(traces) = self.traces.as_ref().filter(|_| last) {
            traces.response(stream, frame);
        }
        match challenge.filter(|_| last) {
            Some(challenge) => self.client.challenge(stream, frame, challenge),
            None => self.client.send(stream, frame, last),
        }
    }

    /// Handles a frame from the client, with its HTTP request's headers, which are forwarded with its frames until the
    /// request is over.
    pub(crate) fn handle_client_with_headers(
        &self,
        stream: StreamId,
        frame: FrameBytes<'_>,
        mut headers: HeaderMap,
    ) {
        if let Some(traces) = &self.traces {
            let sent_by = headers
                .get(TRACE_PARENT)
                .and_then(|text| text.to_str().ok());
            let next = traces.client_frame(stream, frame, sent_by);
            if let Some(Ok(next)) = next.map(HeaderValue::try_from) {
                headers.insert(TRACE_PARENT, next);
            }
        }
        if headers.is_empty() {
            return self.handle_client(stream, frame);
        }
        self.server.set_request_headers(stream, Some(headers));
        self.handle_client(stream, frame);
    }

    /// Handles the end of the client's HTTP request on this stream.
    pub(crate) fn request_ended(&self, stream: StreamId) {
        if let Some(traces) = &self.traces {
            traces.stream_ended(stream);
        }
        self.server.set_request_headers(stream, None);
    }

    /// Reports an event.
    pub(crate) fn tell(&self, event: Event) {
        let mut relay = self.relay();
        relay.handle(clock::now(), event);
        self.carry_on(relay, None);
    }

    /// Reports an event with the server's challenge.
    pub(crate) fn tell_challenged(&self, event: Event, challenge: Option<&ServerChallenge>) {
        let mut relay = self.relay();
        relay.handle(clock::now(), event);
        self.carry_on(relay, challenge);
    }

    /// Carries out the effects of an event.
    fn carry_on(&self, relay: MutexGuard<'_, Relay>, challenge: Option<&ServerChallenge>) {
        let told = self.carry_out(relay, None, challenge);
        self.flush();
        self.write_behind(told.to_write);
    }

    /// Returns `true` if the server has ended, and the session has nothing left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.relay().is_over()
    }

    /// Returns the numbers of open calls and questions.
    pub(crate) fn open(&self) -> (usize, usize) {
        self.relay().open()
    }

    /// Returns the access tokens with which open calls came.
    pub(crate) fn accesses(&self) -> BTreeSet<AccessNumber> {
        self.relay().accesses()
    }

    /// Sets the waker that is notified when a call waits that another session could take, and when this one could take
    /// a call.
    pub(crate) fn wake_when_free(&self, wake: Arc<TurnWaker>) {
        let _set_once = self.free.set(wake);
    }

    /// Returns `true` if the client may send several messages in one list.
    pub(crate) fn has_batches(&self) -> bool {
        self.relay().has_batches()
    }

    /// Returns `true` if the server reads its input.
    pub(crate) fn has_room(&self) -> bool {
        self.server.has_room()
    }

    /// Returns the number of bytes that wait for the server.
    pub(crate) fn unwritten(&self) -> usize {
        self.server.unwritten()
    }

    /// Closes the connection with the server, if the driver cannot.
    pub(crate) fn close_server(&self) {
        self.server.close();
    }

    /// Returns `true` if more sessions with the server could take calls from this one.
    pub(crate) fn can_share_calls(&self) -> bool {
        self.relay().can_share_calls()
    }

    /// Returns `true` if a call in which the server may ask can start at once.
    pub(crate) fn is_free(&self) -> bool {
        self.relay().is_free()
    }

    /// Returns `true` if a call was given up that the server may still be processing.
    pub(crate) fn has_given_up_call(&self) -> bool {
        self.relay().has_given_up_call()
    }

    /// Returns the number of calls in progress or waiting.
    pub(crate) fn load(&self) -> usize {
        self.relay().load()
    }

    /// Returns `true` if the request continues something that is held here.
    pub(crate) fn continues_here(&self, kind: CallKind, frame: wire::Frame<'_>) -> bool {
        self.relay().continues_here(clock::now(), kind, frame)
    }

    /// Returns `true` if the request is the retry of a round that was sealed for this caller and server.
    pub(crate) fn has_sealed_state(&self, kind: CallKind, frame: wire::Frame<'_>) -> bool {
        self.relay().has_sealed_state(clock::now(), kind, frame)
    }

    /// Returns `true` if a request is about a task that a call here became.
    pub(crate) fn has_task_of(&self, frame: wire::Frame<'_>) -> bool {
        self.relay().has_task_of(frame)
    }

    /// Returns `true` if the client knows a call here by this id.
    pub(crate) fn knows_call(&self, id: &Id) -> bool {
        self.relay().knows_call(id)
    }

    /// Returns the time since which the oldest call waits that another session could take.
    pub(crate) fn queued_since(&self) -> Option<Timestamp> {
        self.relay().queued_since()
    }

    /// Takes that call out.
    pub(crate) fn take_queued(&self) -> Option<(StreamId, Bytes)> {
        let mut relay = self.relay();
        let taken = relay.take_queued();
        self.carry_on(relay, None);
        taken
    }

    /// Takes over the trace of a call that waited at another session.
    pub(crate) fn take_trace(&self, from: &Self, stream: StreamId, frame: &[u8]) {
        if let (Some(to), Some(from)) = (&self.traces, &from.traces) {
            to.take_over(from, stream, frame);
        }
    }

    /// Returns the request of a traced call with the `traceparent` of its new span.
    fn traced(&self, relay: &Relay, call: Option<CallId>, frame: FrameBytes<'_>) -> Option<String> {
        self.traces.as_ref()?.sent(relay, call?, frame)
    }

    /// Begins and ends the spans of an effect on the record.
    fn trace_effect(&self, relay: &Relay, effect: &mut Effect) {
        let Some(traces) = &self.traces else {
            return;
        };
        match effect {
            Effect::Record { question, asked } => {
                asked.trace = traces.of_question(relay, *question);
            }
            Effect::BeginDelivery {
                questions, records, ..
            } => {
                traces.delivery_begun(relay, questions, records);
            }
            Effect::Delivered { records } => traces.delivery_ended(records, "delivered"),
            Effect::DeliveryRefused { records, .. } => traces.delivery_ended(records, "refused"),
            Effect::InDoubt { records, .. } => traces.delivery_ended(records, "in-doubt"),
            Effect::End { record, .. } | Effect::Leave { record } => traces.question_gone(record),
            Effect::Abandon { call } => traces.abandoned(*call),
            _ => {}
        }
    }

    /// Lets the driver write the queue of a client for which the writer may have to wait.
    fn flush_later(&self) {
        let _the_driver_has_ended = self.jobs.send(SessionJob::Flush);
    }

    /// Ends the session: the server's connection is closed, and questions stay for the same call made again.
    pub(crate) fn end(&self) {
        let _the_driver_has_ended = self.jobs.send(SessionJob::End);
    }

    fn flush(&self) {
        self.server.flush();
        self.client.flush();
    }

    /// Makes a change of the record if it need not wait; otherwise leaves it to the driver, in order.
    ///
    /// With many calls in progress (`load`) changes are left to the driver, so that several share a transaction.
    fn make_or_leave(&self, change: PendingChange, load: usize) -> Option<Event> {
        let left = self.changes_left.load(Ordering::Acquire);
        if load > INLINE_LOAD || !change.follows_none_of(left) {
            self.later(change);
            return None;
        }
        let _runtime = self.runtime.enter();
        change.make_now(self).unwrap_or_else(|change| {
            self.later(change);
            None
        })
    }

    /// Leaves a change of the record to the driver, in order.
    fn later(&self, change: PendingChange) {
        self.changes_left.fetch_add(1, Ordering::AcqRel);
        let _the_driver_has_ended = self.jobs.send(SessionJob::Change(change));
    }

    /// Carries out effects in the relay's order. Frames are queued under its lock, to be written outside it.
    fn carry_out(
        &self,
        mut relay: MutexGuard<'_, Relay>,
        stream: Option<StreamId>,
        challenge: Option<&ServerChallenge>,
    ) -> PeersToFlush {
        let mut told = PeersToFlush::default();
        while let Some(mut effect) = relay.effect() {
            self.trace_effect(&relay, &mut effect);
            let event = match self.execute(effect, &mut told.to_write) {
                Executed::Now(event) => event,
                Executed::Pending(change) => self.make_or_leave(change, relay.open().0),
                Executed::Other(effect) => {
                    self.carry_out_frame(&mut relay, effect, stream, challenge, &mut told);
                    continue;
                }
            };
            if let Some(event) = event {
                relay.handle(clock::now(), event);
            }
        }
        let deadline = relay.deadline();
        let pool = self.free.get();
        let call_waits = pool.is_some() && relay.queued_since().is_some();
        let is_free = pool.is_some_and(|pool| pool.wants_free_sessions() && relay.is_free());
        drop(relay);
        if let Some(pool) = pool.filter(|_| call_waits) {
            pool.call_waits();
        } else if let Some(pool) = pool.filter(|_| is_free) {
            pool.session_is_free();
        }
        let sleeps_until = self.sleeps_until.load(Ordering::Acquire);
        if deadline.is_some_and(|deadline| deadline.as_millis() < sleeps_until) {
            self.timer.notify_one();
        }
        told
    }

    /// Carries out an effect that does not concern the record.
    fn carry_out_frame(
        &self,
        relay: &mut Relay,
        effect: Effect,
        stream: Option<StreamId>,
        challenge: Option<&ServerChallenge>,
        told: &mut PeersToFlush,
    ) {
        match effect {
            Effect::ToClient {
                stream,
                frame,
                last,
            } => {
                told.client = true;
                let frame = one_line(frame.as_bytes());
                self.to_client(stream, FrameBytes::Lent(&frame), last, challenge);
            }
            Effect::ToServer {
                frame,
                call,
                delivery,
            } => {
                told.server = true;
                let stream = call.and_then(|call| relay.waits_at(call)).or(stream);
                let traced = self.traced(relay, call, FrameBytes::Lent(frame.as_bytes()));
                let frame = traced.as_ref().unwrap_or(&frame);
                let frame = one_line(frame.as_bytes());
                let frame = FrameBytes::Lent(&frame);
                let beside = ForwardedHeaders::of(relay, call);
                self.server.send(frame, call, stream, delivery, beside);
            }
            Effect::Abandon { call } => self.server.abandon(call),
            Effect::Restart => self.server.restart(),
            Effect::LeaveSession => self.server.leave_session(),
            Effect::Record { .. }
            | Effect::Leave { .. }
            | Effect::ClientReturned { .. }
            | Effect::Submit { .. }
            | Effect::MoveToPeople { .. }
            | Effect::DoubtAct { .. }
            | Effect::NotShown { .. }
            | Effect::BeginDelivery { .. }
            | Effect::End { .. }
            | Effect::Delivered { .. }
            | Effect::DeliveryRefused { .. }
            | Effect::InDoubt { .. }
            | Effect::FindCall { .. }
            | Effect::KeepCall { .. }
            | Effect::KeepResult { .. }
            | Effect::DropCall { .. }
            | Effect::FollowCall { .. }
            | Effect::BeginTask { .. }
            | Effect::UpdateTask { .. }
            | Effect::EndTask { .. }
            | Effect::FindTask { .. }
            | Effect::FollowTask { .. }
            | Effect::CancelTask { .. } => {}
        }
    }
}
