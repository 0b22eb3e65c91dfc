//! One relay with its two sides and its record: carries out what the relay wants done.
//!
//! | file | what it does |
//! | --- | --- |
//! | `record_effects` | the executor of effects on the record: at once, or on the driver's time |
//! | [`driver`] | the record, timers, and what others tell |
//! | [`child_pool`] | the sessions that serve one caller together |
//! | [`turn_waker`] | the waker of a pool, for calls that wait for their turn |

pub(crate) mod child_pool;
pub(crate) mod driver;
mod record_effects;
pub(crate) mod turn_waker;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire;
use mcp_elicit_core::wire::{CallKind, Id};
use mcp_elicit_record::{Record, RecordEvent, SessionIdentity, clock};
use mcp_elicit_relay::{
    CallId, ClientForward, DeliveryId, Effect, Event, Relay, RelaySettings, ServerForward,
    StateSeal, StreamId,
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use crate::bind::ServerOfCalls;
use crate::callers::{Callers, CurrentCaller};
use crate::frame::{FrameBytes, one_line};
use crate::local_responder::LocalResponses;
use crate::server_challenge::ServerChallenge;
use crate::session::turn_waker::TurnWaker;
use crate::teams::Teams;
pub(crate) use driver::Driver;
use record_effects::{Executed, PendingChange, ToWrite};

/// The sink of frames for the client. Never waits: what cannot go at once is queued.
pub(crate) trait ClientTransport: Send + Sync {
    /// Queues a frame on a stream; `last` when it answers the request that opened the stream.
    fn send(&self, stream: StreamId, frame: FrameBytes<'_>, last: bool);
    /// Queues the last frame of a stream whose request the server wants credentials for.
    fn challenge(&self, stream: StreamId, frame: FrameBytes<'_>, _challenge: &ServerChallenge) {
        self.send(stream, frame, true);
    }
    /// Gets on with what is queued.
    fn flush(&self);
    /// Returns whether that may wait for the client to read.
    fn may_wait(&self) -> bool {
        false
    }
}

/// The sink of frames for the server. Never waits: what cannot go at once is queued.
pub(crate) trait ServerTransport: Send + Sync {
    /// Queues a frame; `call` when it starts that call, made on this stream of the client. What becomes of the answers of
    /// `delivery` is told to the session: [`Event::Accepted`], [`Event::Refused`] or [`Event::Lost`].
    fn send(
        &self,
        frame: FrameBytes<'_>,
        call: Option<CallId>,
        stream: Option<StreamId>,
        delivery: Option<DeliveryId>,
        beside: Beside,
    );
    /// Gets on with what is queued. Does not wait for the server to read.
    fn flush(&self);
    /// Returns how many bytes wait for the server to read.
    fn unwritten(&self) -> usize {
        0
    }
    /// Returns whether what is queued can still reach the server, as far as is known.
    fn is_up(&self) -> bool {
        true
    }
    /// Returns whether more may be queued: a server that does not read must not fill the memory.
    fn has_room(&self) -> bool {
        true
    }
    /// Returns what the client's request on this stream said in its HTTP headers; `None` when the request is over.
    fn carry(&self, _door: StreamId, _headers: Option<HeaderMap>) {}
    /// Nobody wants the answer to this call any more.
    fn abandon(&self, call: CallId);
    /// Starts the server anew; tells [`Event::Restarted`] or [`Event::ServerGone`] when done.
    fn restart(&self);
    /// Ends the connection with the server.
    fn close(&self);
}

/// The headers of a client that go on beside a frame, where a server is spoken to over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// All that go on at all.
    All,
    /// Those in which nothing can be said that the people who approved the call have not seen.
    Shown,
}

impl Beside {
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
    jobs: mpsc::UnboundedSender<Job>,
    tell: mpsc::UnboundedSender<RecordEvent>,
    timer: Notify,
    /// The waker for calls that another session could take, or for a session that could take one.
    free: OnceLock<Arc<TurnWaker>>,
    /// When the driver wakes by itself, in milliseconds since 1970.
    sleeps_until: AtomicU64,
    /// The number of changes of the record that are left to the driver and not made yet.
    changes_left: AtomicUsize,
    /// The runtime of whatever a change of the record has to wait for.
    runtime: Handle,
}

/// The number of calls under way up to which changes of the record are made inline.
const INLINE_LOAD: usize = 8;

/// Recipients of the relay's own frames, and the writes that follow them.
#[derive(Default)]
struct PeersToFlush {
    client: bool,
    server: bool,
    to_write: Vec<ToWrite>,
}

/// The address of a question's page, by its id; `None` where there is no inbox.
pub(crate) type LinkOf = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The caller and the server of a session, and the address at which its questions can be answered.
#[derive(Clone)]
pub(crate) struct SessionContext {
    /// The server by the operator's name.
    pub server: String,
    /// The caller and the server of these calls, as the record tells them apart.
    pub identity: SessionIdentity,
    /// The caller, as its newest proof names it.
    pub caller: Arc<CurrentCaller>,
    /// The callers, of whom one may be blocked or revoked while people think.
    pub callers: Arc<Callers>,
    /// The rules, where there are any.
    pub teams: Option<Arc<Teams>>,
    /// The address of a question's page, by its id.
    pub link: LinkOf,
    /// The responder that is asked at once what people are asked.
    pub answerer: Option<Arc<LocalResponses>>,
}

enum Job {
    Change(PendingChange),
    Flush,
    End,
}

impl Session {
    /// A session; it lives as long as its driver runs.
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
        let settings = RelaySettings {
            is_named: who.identity.server.is_named,
            decisions: match &who.teams {
                Some(teams) => {
                    let server = ServerOfCalls {
                        name: who.server.clone(),
                        key: who.identity.server.key.clone(),
                    };
                    let caller = who.caller.clone();
                    Some(teams.decisions(server, caller, settings.open_for))
                }
                None => settings.decisions,
            },
            ..settings
        };
        let relay = Mutex::new(Relay::new(settings, seal));
        let session = Arc::new(Self {
            relay,
            client,
            server,
            record,
            who,
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

    /// A frame came from the client.
    pub(crate) fn handle_client(&self, stream: StreamId, frame: FrameBytes<'_>) {
        let mut relay = self.relay();
        relay.set_finds_calls(self.record.has_calls());
        let up = match frame {
            FrameBytes::Lent(bytes) => relay.client_frame(clock::now(), stream, bytes),
            FrameBytes::Seen(bytes, index) => {
                relay.client_frame_seen(clock::now(), stream, bytes, index)
            }
        };
        if let ClientForward::AsIs(call) = up {
            let beside = Beside::of(&relay, call);
            self.server.send(frame, call, Some(stream), None, beside);
        }
        let told = self.carry_out(relay, Some(stream), None);
        self.server.flush();
        // Whoever reads a peer must not wait for the other to read: both might wait for each other then.
        if told.client && self.client.may_wait() {
            self.flush_later();
        } else if told.client {
            self.client.flush();
        }
        self.write_behind(told.to_write);
    }

    /// A frame came from the server, on the stream of this call where streams are apart.
    pub(crate) fn handle_server(&self, call: Option<CallId>, frame: FrameBytes<'_>) {
        self.handle_server_challenged(call, frame, None);
    }

    /// A frame came from the server, with what the server wants first when it wants credentials.
    pub(crate) fn handle_server_challenged(
        &self,
        call: Option<CallId>,
        frame: FrameBytes<'_>,
        challenge: Option<&ServerChallenge>,
    ) {
        let mut relay = self.relay();
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
        match challenge.filter(|_| last) {
            Some(challenge) => self.client.challenge(stream, frame, challenge),
            None => self.client.send(stream, frame, last),
        }
    }

    /// A frame came from the client, whose HTTP request said this in its headers: they go on with what goes on of it,
    /// until the request is over.
    pub(crate) fn handle_client_with_headers(
        &self,
        stream: StreamId,
        frame: FrameBytes<'_>,
        headers: HeaderMap,
    ) {
        if headers.is_empty() {
            return self.handle_client(stream, frame);
        }
        self.server.carry(stream, Some(headers));
        self.handle_client(stream, frame);
    }

    /// The client's HTTP request on this stream is over.
    pub(crate) fn is_over_at(&self, stream: StreamId) {
        self.server.carry(stream, None);
    }

    /// Something happened.
    pub(crate) fn tell(&self, event: Event) {
        let mut relay = self.relay();
        relay.handle(clock::now(), event);
        self.carry_on(relay, None);
    }

    /// Something happened, since the server wants credentials first.
    pub(crate) fn tell_challenged(&self, event: Event, challenge: Option<&ServerChallenge>) {
        let mut relay = self.relay();
        relay.handle(clock::now(), event);
        self.carry_on(relay, challenge);
    }

    /// Carries out what came of something that was not a frame.
    fn carry_on(&self, relay: MutexGuard<'_, Relay>, challenge: Option<&ServerChallenge>) {
        let told = self.carry_out(relay, None, challenge);
        self.flush();
        self.write_behind(told.to_write);
    }

    /// Returns whether the server has ended, and nothing more can come of the session.
    pub(crate) fn is_over(&self) -> bool {
        self.relay().is_over()
    }

    /// Returns how many calls and questions are open.
    pub(crate) fn open(&self) -> (usize, usize) {
        self.relay().open()
    }

    /// From now on this is notified when a call waits that another session could take, and when this one could take a call.
    pub(crate) fn wake_when_free(&self, wake: Arc<TurnWaker>) {
        let _set_once = self.free.set(wake);
    }

    /// Returns whether the server takes what it is sent.
    pub(crate) fn has_room(&self) -> bool {
        self.server.has_room()
    }

    /// Returns how many bytes wait for the server to read.
    pub(crate) fn unwritten(&self) -> usize {
        self.server.unwritten()
    }

    /// Ends the connection with the server, where the driver does not come to it.
    pub(crate) fn close_server(&self) {
        self.server.close();
    }

    /// Returns whether more sessions with the server could take calls of this one.
    pub(crate) fn can_share_calls(&self) -> bool {
        self.relay().can_share_calls()
    }

    /// Returns whether a call in which the server may ask can be made right away.
    pub(crate) fn is_free(&self) -> bool {
        self.relay().is_free()
    }

    /// Returns whether a call was given up that the server may still be at work on.
    pub(crate) fn has_given_up_call(&self) -> bool {
        self.relay().has_given_up_call()
    }

    /// Returns how many calls are on their way or wait.
    pub(crate) fn load(&self) -> usize {
        self.relay().load()
    }

    /// Returns whether the request goes on with something that is held here.
    pub(crate) fn continues_here(&self, kind: CallKind, frame: wire::Frame<'_>) -> bool {
        self.relay().continues_here(kind, frame)
    }

    /// Returns whether the client knows a call here by this id.
    pub(crate) fn knows_call(&self, id: &Id) -> bool {
        self.relay().knows_call(id)
    }

    /// Since when the oldest call waits that another session could take.
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

    /// Lets a client that may be waited for get on with its queue on the driver's time.
    fn flush_later(&self) {
        let _the_driver_has_ended = self.jobs.send(Job::Flush);
    }

    /// Ends the session: the server's connection is closed, questions stay for the same call made again.
    pub(crate) fn end(&self) {
        let _the_driver_has_ended = self.jobs.send(Job::End);
    }

    fn flush(&self) {
        self.server.flush();
        self.client.flush();
    }

    /// Makes a change of the record where there is nothing to wait for; leaves it to the driver, in its turn, where there is.
    ///
    /// With many calls under way (`load`) changes are left to the driver, so that several share a transaction.
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

    /// Leaves a change of the record to the driver, in its turn.
    fn later(&self, change: PendingChange) {
        self.changes_left.fetch_add(1, Ordering::AcqRel);
        let _the_driver_has_ended = self.jobs.send(Job::Change(change));
    }

    /// Carries out effects in the relay's order. Frames are queued under its lock, to be written outside it.
    fn carry_out(
        &self,
        mut relay: MutexGuard<'_, Relay>,
        stream: Option<StreamId>,
        challenge: Option<&ServerChallenge>,
    ) -> PeersToFlush {
        let mut told = PeersToFlush::default();
        while let Some(effect) = relay.effect() {
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

    /// Carries out an effect that is none on the record.
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
                let frame = one_line(frame.as_bytes());
                let frame = FrameBytes::Lent(&frame);
                let beside = Beside::of(relay, call);
                self.server.send(frame, call, stream, delivery, beside);
            }
            Effect::Abandon { call } => self.server.abandon(call),
            Effect::Restart => self.server.restart(),
            Effect::Record { .. }
            | Effect::Leave { .. }
            | Effect::Submit { .. }
            | Effect::BeginDelivery { .. }
            | Effect::End { .. }
            | Effect::Delivered { .. }
            | Effect::DeliveryRefused { .. }
            | Effect::InDoubt { .. }
            | Effect::FindCall { .. }
            | Effect::KeepCall { .. }
            | Effect::KeepResult { .. }
            | Effect::DropCall { .. }
            | Effect::FollowCall { .. } => {}
        }
    }
}
