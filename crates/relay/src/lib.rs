//! The relay: the treatment of every frame between one client session and one server. A pure state machine.
//!
//! Frames, answers and time go in; [`Effect`]s come out. It opens nothing, waits for nothing and reads no clock, so a
//! simulator can be its world (`tests/`). A frame without elicitation is scanned once ([`mcp_elicit_core::wire::frame`]) and passed on as
//! it is: the shell forwards the very bytes it read.
//!
//! Invariants: every call of the client ends exactly once; an answer reaches the server at most once and
//! only through the record; nothing is asked in a mode that was not declared; a time limit is never an answer.
//!
//! | file | contents |
//! | --- | --- |
//! | [`effect`] | the values that go in and out |
//! | [`settings`] | an operator's settings |
//! | `incoming` | a frame of the client with its stream and time |
//! | `from_client`, `from_server` | the routing of frames from the client and from the server |
//! | `handshake`, `era_probe` | the era of each side, and finding it out |
//! | `negotiation` | declarations to the server; `initialize` and `server/discover` answered for either era |
//! | `pushed`, `rounds`, `rounds_client` | the differences of the eras |
//! | `calls` | the client's requests on their way |
//! | `retries`, `repeated_rounds` | calls that are made again: the retry of a round, a call that was handed back |
//! | [`request_state`] | the state that a client of the rounds era carries: sealed, for one call |
//! | `client_rounds`, `server_round` | rounds that the client answers, and rounds that the gateway answers |
//! | `new_asks`, `asks` | a question is checked and recorded; open questions |
//! | `answers`, `deliveries` | an answer is in the record and sent; it is accepted, refused or lost |
//! | `attribution`, `turns` | the call that a pushed question is for; the calls that are with the server at once |
//! | `holds`, `client_waits` | held calls: kept alive, handed back, resumed; calls that the client gave up |
//! | [`unattended_calls`] | calls that nobody waits for, beyond this session |
//! | `url_required` | `-32042`: links to visit before a call is made again |
//! | `logging`, `catalog`, `server_name`, `unknown_members` | log levels; output schemas; the server's name; members that go on to another era |

mod answers;
mod asks;
mod attribution;
mod calls;
mod catalog;
mod client_rounds;
mod client_waits;
mod deliveries;
pub mod effect;
mod era_probe;
mod frame_edit;
mod from_client;
mod from_server;
mod handshake;
mod holds;
mod incoming;
mod learned;
mod logging;
mod negotiation;
mod new_asks;
mod pushed;
mod repeated_rounds;
mod request_state;
mod retries;
mod rounds;
mod rounds_client;
mod server_name;
mod server_round;
pub mod settings;
mod turns;
pub mod unattended_calls;
mod unknown_members;
mod url_required;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use bytes::Bytes;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{AskedVia, CallSummary, Ending, FoundCall, NewQuestion};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, Shape};
use mcp_elicit_core::wire::{CallKind, Id, Revision};

use asks::Asks;
use calls::Calls;
pub use client_waits::ClientWaits;
use deliveries::Deliveries;
pub use effect::{AskId, CallId, DeliveryId, Effect, Event, StreamId};
use handshake::{Client, Server};
use incoming::ClientFrame;
pub use learned::Learned;
pub use request_state::StateSeal;
pub use settings::{Audience, RelaySettings};
pub use turns::AskingTargets;

/// The treatment of a client's frame by the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientForward {
    /// Send the very bytes to the server; they start this call, if they start one.
    AsIs(Option<CallId>),
    /// The relay has taken care of it; see the effects.
    Handled,
}

/// The treatment of a server's frame by the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerForward {
    /// Send the very bytes to the client on this stream; `last` when they answer the request that opened it.
    AsIs {
        /// The stream.
        stream: StreamId,
        /// `true` if the stream's request is answered.
        last: bool,
    },
    /// The relay has taken care of it; see the effects.
    Handled,
}

/// Timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The server did not say in time which era it speaks.
    Probe,
    /// Hand the call back.
    Hold(CallId),
    /// Send a sign of life.
    KeepAlive(CallId),
    /// Make the call again.
    Retry(CallId),
    /// Nobody came for what the call brought.
    DropUnattended(CallId),
    /// Nobody answered the question.
    AskExpired(AskId),
}

/// The state machine between one client session and one server.
pub struct Relay {
    settings: RelaySettings,
    seal: StateSeal,
    client: Client,
    server: Server,
    /// The name that the server reported last.
    reported_name: server_name::ReportedName,
    calls: Calls,
    catalog: catalog::Catalog,
    /// The level that a pushed client set for its session.
    client_log_level: Option<logging::LogLevel>,
    /// The level that a pushed server was told.
    server_log_level: Option<logging::LogLevel>,
    asks: Asks,
    deliveries: Deliveries,
    /// Calls nobody waits for, by the digest of what they call, oldest first.
    unattended: HashMap<String, VecDeque<CallId>>,
    /// Calls that wait for what another session's same call brings.
    following: HashSet<CallId>,
    /// `true` if the record knows calls that nobody waits for.
    looks_up_calls: bool,
    /// Streams of calls that are being looked up.
    lookups: Vec<StreamId>,
    /// Calls that went back to a rounds client as `input_required`, by the state it echoes.
    handles: HashMap<String, CallId>,
    /// Rounds that a rounds client has as the server wrote them.
    client_rounds: BTreeMap<asks::RoundId, client_rounds::ClientRound>,
    /// States that were used, the last ones.
    used_states: VecDeque<String>,
    /// Ids of the server's requests that went to the client and are no questions; a bounded number.
    server_requests: HashSet<Id>,
    /// Requests that wait for the server's era to be known; a bounded number.
    waiting: VecDeque<(StreamId, Vec<u8>)>,
    /// Calls that wait for their turn, oldest first.
    queue: VecDeque<CallId>,
    /// `true` if a call was given up that the server may still be at work on.
    gave_up: bool,
    timers: BTreeSet<(Timestamp, Timer)>,
    /// When the last questions were asked, for the limit on questions a minute.
    asked_at: VecDeque<Timestamp>,
    effects: VecDeque<Effect>,
    last_id: u64,
    last_state: u64,
}

impl Relay {
    /// A relay that has seen nothing yet.
    pub fn new(settings: RelaySettings, seal: StateSeal) -> Self {
        let calls = Calls::after(settings.first_call);
        Self {
            settings,
            seal,
            client: Client::Unknown,
            server: Server::Unknown,
            reported_name: server_name::ReportedName::default(),
            calls,
            catalog: catalog::Catalog::default(),
            client_log_level: None,
            server_log_level: None,
            asks: Asks::default(),
            deliveries: Deliveries::default(),
            unattended: HashMap::new(),
            following: HashSet::new(),
            looks_up_calls: false,
            lookups: Vec::new(),
            handles: HashMap::new(),
            client_rounds: BTreeMap::new(),
            used_states: VecDeque::new(),
            server_requests: HashSet::new(),
            waiting: VecDeque::new(),
            queue: VecDeque::new(),
            gave_up: false,
            timers: BTreeSet::new(),
            asked_at: VecDeque::new(),
            effects: VecDeque::new(),
            last_id: 0,
            last_state: 0,
        }
    }

    /// A frame came from the client on this stream. Effects follow behind a forwarded frame.
    pub fn client_frame(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        frame: &[u8],
    ) -> ClientForward {
        match FrameIndex::read(frame) {
            Ok(index) => self.client_message(now, stream, frame, &index, None),
            Err(defect) => self.reject_defect(stream, frame, defect),
        }
    }

    /// [`Relay::client_frame`] with bytes that may be kept without being copied, and what the scan of its members found.
    pub fn client_frame_seen(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        frame: &Bytes,
        index: &FrameIndex,
    ) -> ClientForward {
        self.client_message(now, stream, frame, index, Some(frame))
    }

    fn client_message(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        frame: &[u8],
        index: &FrameIndex,
        bytes: Option<&Bytes>,
    ) -> ClientForward {
        let (Some(shape), Some(read)) = (index.shape(), Frame::new(frame, index)) else {
            return self.reject_unreadable(stream, frame);
        };
        let forward = match shape {
            Shape::Request => self.client_request(ClientFrame::new(read, stream, now, bytes)),
            Shape::Notification => self.client_notification(now, read),
            Shape::Response => self.client_response(now, read),
        };
        self.next_turns();
        forward
    }

    /// A frame came from the server; `call` names the request on whose stream it came, where streams are apart.
    pub fn server_frame(
        &mut self,
        now: Timestamp,
        call: Option<CallId>,
        frame: &[u8],
    ) -> ServerForward {
        match FrameIndex::read(frame) {
            Ok(index) => self.server_frame_seen(now, call, frame, &index),
            Err(defect) => self.server_defect(now, frame, &defect.to_string()),
        }
    }

    /// [`Relay::server_frame`] with what the scan of its members found.
    pub fn server_frame_seen(
        &mut self,
        now: Timestamp,
        call: Option<CallId>,
        frame: &[u8],
        index: &FrameIndex,
    ) -> ServerForward {
        let (Some(shape), Some(read)) = (index.shape(), Frame::new(frame, index)) else {
            let defect = match FrameIndex::read(frame) {
                Err(defect) => defect.to_string(),
                Ok(_) => "its members do not make a message".to_owned(),
            };
            return self.server_defect(now, frame, &defect);
        };
        let forward = match shape {
            Shape::Request => self.server_request(now, call, read),
            Shape::Notification => self.server_notification(now, call, read),
            Shape::Response => self.server_response(now, read),
        };
        self.next_turns();
        forward
    }

    /// Something happened that is no frame.
    pub fn handle(&mut self, now: Timestamp, event: Event) {
        match event {
            Event::Recorded {
                question,
                record,
                link,
                answered,
                refused,
            } => {
                self.asks.refused_before(question, refused);
                self.recorded(now, question, record, link, answered);
            }
            Event::NotRecorded { question } => self.not_recorded(now, question),
            Event::Answered { question } => self.answered(now, question),
            Event::DeliveryBegun { replies } => self.delivery_begun(now, replies),
            Event::NoDelivery { questions } => self.no_delivery(now, &questions),
            Event::Accepted(delivery) => self.accepted(delivery),
            Event::Refused { delivery, why } => self.refused(now, delivery, why),
            Event::Lost { delivery, why } => self.lost(now, delivery, why),
            Event::Ended { question, ending } => self.ended(now, question, ending, false),
            Event::CallFound {
                stream,
                frame,
                found,
            } => self.call_found(now, stream, &frame, found),
            Event::FollowedCallEnded { call } => self.followed_call_ended(call),
            Event::CallTaken { call } => self.drop_unattended(call),
            Event::StreamClosed(stream) => {
                self.lookups.retain(|known| *known != stream);
                self.stream_closed(now, stream);
            }
            Event::ServerGone(why) => self.server_gone(now, &why),
            Event::Restarted => self.restarted(now),
            Event::Drain => self.drain(),
            Event::Stop => self.end_waiting("the gateway was stopped"),
            Event::SessionEnded => self.end_waiting("the session was ended"),
        }
        self.next_turns();
    }

    /// Time has passed: everything that is due happens.
    pub fn tick(&mut self, now: Timestamp) {
        while let Some(&(at, timer)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            match timer {
                Timer::Probe => self.probe_timed_out(now),
                Timer::Hold(call) => self.hand_back(now, call),
                Timer::KeepAlive(call) => self.keep_alive(now, call),
                Timer::Retry(call) => self.retry_upstream(now, call),
                Timer::DropUnattended(call) => self.drop_unattended(call),
                Timer::AskExpired(question) => self.ended(now, question, Ending::TimedOut, true),
            }
            self.next_turns();
        }
    }

    /// When [`Relay::tick`] is due next.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The next thing to do, in order.
    pub fn effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The client's stream on which the answer to this call is waited for.
    pub fn waits_at(&self, call: CallId) -> Option<StreamId> {
        self.calls.get(call)?.stream
    }

    /// Returns how many calls and questions are open: for a report and for limits.
    pub fn open(&self) -> (usize, usize) {
        (self.calls.len(), self.asks.len())
    }

    /// Returns whether the server has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.server, Server::Gone)
    }

    /// The revision spoken with the server, once known.
    pub fn server_revision(&self) -> Option<Revision> {
        self.server.revision()
    }

    fn own_id(&mut self) -> Id {
        self.last_id += 1;
        Id::text(&format!("{}{}", frame_edit::OWN, self.last_id))
    }

    fn tell_client(&mut self, stream: StreamId, frame: String, last: bool) {
        self.effects.push_back(Effect::ToClient {
            stream,
            frame,
            last,
        });
    }

    fn tell_server(&mut self, frame: String, call: Option<CallId>) {
        self.deliver_to_server(frame, call, None);
    }

    fn deliver_to_server(
        &mut self,
        frame: String,
        call: Option<CallId>,
        delivery: Option<DeliveryId>,
    ) {
        self.effects.push_back(Effect::ToServer {
            frame,
            call,
            delivery,
        });
    }

    fn at(&mut self, at: Timestamp, timer: Timer) {
        self.timers.insert((at, timer));
    }

    fn cancel_timers(&mut self, fits: impl Fn(&Timer) -> bool) {
        self.timers.retain(|(_, timer)| !fits(timer));
    }
}
