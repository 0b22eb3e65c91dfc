//! The relay: what becomes of every frame between one client session and one server. A pure state machine.
//!
//! Frames, answers and time go in; [`Effect`]s come out. It opens nothing, waits for nothing and reads no clock, so a
//! simulator can be its world (`tests/`). A frame without elicitation is looked at once ([`glance`]) and passed on as
//! it is: the shell forwards the very bytes it read.
//!
//! What holds at any time: every call of the client ends exactly once; an answer reaches the server at most once and
//! only through the record; nothing is asked in a mode that was not declared; time running out is never an answer.
//!
//! | file | what it decides |
//! | --- | --- |
//! | [`glance`] | what a frame is, without reading it |
//! | [`effect`] | the values that go in and out |
//! | [`settings`] | what an operator decides |
//! | `handshake`, `trial` | who speaks which era, and finding it out |
//! | `openings` | what is declared to the server; `initialize` and `server/discover` answered for either era |
//! | `pushed`, `rounds`, `rounds_client` | what differs by era |
//! | `requests`, `responses` | frames from the client, frames from the server |
//! | `returns` | calls that come back: a round's retry, a call that was handed back |
//! | `calls` | the client's requests on their way |
//! | `repeats` | calls that are made again from their first round |
//! | [`request_state`] | the state that a client of the rounds era carries: sealed, for one call |
//! | `echoes` | rounds that the client has as the server wrote them |
//! | `logging` | levels of log messages, between the eras |
//! | `unknown_members` | members of a question that go on to another era |
//! | `catalog` | which tools have an output schema |
//! | `question`, `round` | open questions, and the rounds that wait for them |
//! | `asking` | a question is checked, placed, written and put |
//! | [`kept_calls`] | calls that nobody waits for, beyond this session |
//! | `settling` | an answer is taken and sent |
//! | `deliveries` | an answer that was sent is accepted, refused or lost |
//! | `holding` | held calls: kept alive, handed back, resumed |
//! | `visits` | `-32042`: links to visit before a call is made again |
//! | `turns` | which calls are with the server at once |
//! | `waits` | calls that the client gave up for lack of time |
//! | `whose` | which call a pushed question is for |

mod asking;
mod calls;
mod catalog;
mod deliveries;
mod echoes;
pub mod effect;
mod frame;
pub mod glance;
mod handshake;
mod holding;
pub mod kept_calls;
mod learned;
mod logging;
mod openings;
mod pushed;
mod question;
mod repeats;
mod request_state;
mod requests;
mod responses;
mod returns;
mod round;
mod rounds;
mod rounds_client;
mod server_name;
pub mod settings;
mod settling;
mod trial;
mod turns;
mod unknown_members;
mod visits;
mod waits;
mod whose;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use bytes::Bytes;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{AskedVia, CallSummary, Ending, FoundCall, NewQuestion};
use mcp_elicit_core::wire::{CallKind, Id, Revision};

use calls::Calls;
use deliveries::Deliveries;
pub use effect::{CallKey, DeliveryKey, Door, Effect, Event, QuestionKey};
use glance::{Glance, Shape};
use handshake::{Client, Server};
pub use learned::Learned;
use question::Questions;
pub use request_state::StateSeal;
pub use settings::{AnswerWith, Settings};
pub use turns::Askers;
pub use waits::ClientWaits;

/// The treatment of a client's frame by the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    /// Send the very bytes to the server; they start this call, if they start one.
    Forward(Option<CallKey>),
    /// The relay has taken care of it; see the effects.
    Taken,
}

/// The treatment of a server's frame by the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// Send the very bytes to the client on this stream; `last` when they answer the request that opened it.
    Forward {
        /// The stream.
        door: Door,
        /// `true` if the stream's request is answered.
        last: bool,
    },
    /// The relay has taken care of it; see the effects.
    Taken,
}

/// Timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The server did not say in time which era it speaks.
    Probe,
    /// Hand the call back.
    Hold(CallKey),
    /// Send a sign of life.
    KeepAlive(CallKey),
    /// Make the call again.
    Again(CallKey),
    /// Nobody came for what the call brought.
    Forget(CallKey),
    /// Nobody answered the question.
    Patience(QuestionKey),
}

/// The state machine between one client session and one server.
pub struct Relay {
    settings: Settings,
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
    questions: Questions,
    deliveries: Deliveries,
    /// Calls nobody waits for, by the digest of what they call, oldest first.
    parked: HashMap<String, VecDeque<CallKey>>,
    /// Calls that wait for what another session's same call brings.
    following: HashSet<CallKey>,
    /// `true` if the record knows calls that nobody waits for.
    finds_calls: bool,
    /// Streams of calls that are being looked up.
    finding: Vec<Door>,
    /// Calls that went back to a rounds client as `input_required`, by the state it echoes.
    handles: HashMap<String, CallKey>,
    /// Rounds that a rounds client has as the server wrote them.
    echoes: BTreeMap<question::EchoKey, echoes::Echo>,
    /// States that were used, the last ones.
    spent: VecDeque<String>,
    /// Ids of the server's requests that went to the client and are no questions; a bounded number.
    server_requests: HashSet<Id>,
    /// Requests that wait for the server's era to be known; a bounded number.
    waiting: VecDeque<(Door, Vec<u8>)>,
    /// Calls that wait for their turn, oldest first.
    queue: VecDeque<CallKey>,
    /// `true` if a call was given up that the server may still be at work on.
    gave_up: bool,
    timers: BTreeSet<(Timestamp, Timer)>,
    /// When the last questions were asked, for the limit on questions a minute.
    asked_at: VecDeque<Timestamp>,
    effects: VecDeque<Effect>,
    /// The very frame that is being looked at, where it may be kept as it is.
    arriving: Option<Bytes>,
    /// When the client's frame that is being looked at came.
    arrived: Timestamp,
    /// The answers that a retry brought for the call that is being started anew.
    brought: Option<returns::Brought>,
    /// The last time that was told.
    now: Timestamp,
    last_id: u64,
    last_state: u64,
}

impl Relay {
    /// A relay that has seen nothing yet.
    pub fn new(settings: Settings, seal: StateSeal) -> Self {
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
            questions: Questions::default(),
            deliveries: Deliveries::default(),
            parked: HashMap::new(),
            following: HashSet::new(),
            finds_calls: false,
            finding: Vec::new(),
            handles: HashMap::new(),
            echoes: BTreeMap::new(),
            spent: VecDeque::new(),
            server_requests: HashSet::new(),
            waiting: VecDeque::new(),
            queue: VecDeque::new(),
            gave_up: false,
            timers: BTreeSet::new(),
            asked_at: VecDeque::new(),
            effects: VecDeque::new(),
            arriving: None,
            arrived: Timestamp::from_millis(0),
            brought: None,
            now: Timestamp::from_millis(0),
            last_id: 0,
            last_state: 0,
        }
    }

    /// A frame came from the client on this stream. Effects follow behind a forwarded frame.
    pub fn client_frame(&mut self, now: Timestamp, door: Door, frame: &[u8]) -> Up {
        match Glance::read(frame) {
            Ok(glance) => self.client_message(now, door, frame, &glance),
            Err(defect) => self.refuse_defect(door, frame, defect),
        }
    }

    /// [`Relay::client_frame`] with bytes that may be kept without being copied, and what a glance at them found.
    pub fn client_frame_seen(
        &mut self,
        now: Timestamp,
        door: Door,
        frame: &Bytes,
        glance: &Glance,
    ) -> Up {
        self.arriving = Some(frame.clone());
        let up = self.client_message(now, door, frame, glance);
        self.arriving = None;
        up
    }

    fn client_message(&mut self, now: Timestamp, door: Door, frame: &[u8], glance: &Glance) -> Up {
        let (Some(shape), Ok(text)) = (glance.shape(), std::str::from_utf8(frame)) else {
            return self.refuse_unreadable(door, frame);
        };
        self.arrived = now;
        self.now = now;
        let up = match shape {
            Shape::Request => self.client_request(now, door, text, glance),
            Shape::Notification => self.client_notification(now, text, glance),
            Shape::Response => self.client_response(now, text, glance),
        };
        self.next_turns();
        up
    }

    /// A frame came from the server; `call` names the request on whose stream it came, where streams are apart.
    pub fn server_frame(&mut self, now: Timestamp, call: Option<CallKey>, frame: &[u8]) -> Down {
        match Glance::read(frame) {
            Ok(glance) => self.server_frame_seen(now, call, frame, &glance),
            Err(defect) => self.server_defect(now, frame, &defect.to_string()),
        }
    }

    /// [`Relay::server_frame`] with what a glance at it found.
    pub fn server_frame_seen(
        &mut self,
        now: Timestamp,
        call: Option<CallKey>,
        frame: &[u8],
        glance: &Glance,
    ) -> Down {
        self.now = now;
        let (Some(shape), Ok(text)) = (glance.shape(), std::str::from_utf8(frame)) else {
            let defect = match Glance::read(frame) {
                Err(defect) => defect.to_string(),
                Ok(_) => "its members do not make a message".to_owned(),
            };
            return self.server_defect(now, frame, &defect);
        };
        let down = match shape {
            Shape::Request => self.server_request(now, call, text, glance),
            Shape::Notification => self.server_notification(now, call, text, glance),
            Shape::Response => self.server_response(now, text, glance),
        };
        self.next_turns();
        down
    }

    /// Something happened that is no frame.
    pub fn handle(&mut self, now: Timestamp, event: Event) {
        self.now = now;
        match event {
            Event::Recorded {
                question,
                record,
                link,
                answered,
                refused,
            } => {
                self.questions.refused_before(question, refused);
                self.recorded(now, question, record, link, answered);
            }
            Event::NotRecorded { question } => self.not_recorded(now, question),
            Event::Settled { question } => self.settled(now, question),
            Event::Taken { replies } => self.taken(now, replies),
            Event::NotTaken { questions } => self.not_taken(now, &questions),
            Event::Accepted(delivery) => self.accepted(delivery),
            Event::Refused { delivery, why } => self.refused(now, delivery, why),
            Event::Lost { delivery, why } => self.lost(now, delivery, why),
            Event::Ended { question, ending } => self.ended(now, question, ending, false),
            Event::CallFound { door, frame, found } => self.call_found(now, door, &frame, found),
            Event::FollowedCallEnded { call } => self.followed_call_ended(call),
            Event::CallTaken { call } => self.forget(call),
            Event::DoorClosed(door) => {
                self.finding.retain(|known| *known != door);
                self.door_closed(now, door);
            }
            Event::ServerGone(why) => self.server_gone(now, &why),
            Event::Restarted => self.restarted(now),
            Event::Drain => self.drain(),
            Event::Stop => self.leave("the gateway was stopped"),
            Event::SessionEnded => self.leave("the session was ended"),
        }
        self.next_turns();
    }

    /// Time has passed: everything that is due happens.
    pub fn tick(&mut self, now: Timestamp) {
        self.now = now;
        while let Some(&(at, timer)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            match timer {
                Timer::Probe => self.probe_timed_out(now),
                Timer::Hold(call) => self.hand_back(now, call),
                Timer::KeepAlive(call) => self.keep_alive(now, call),
                Timer::Again(call) => self.again(now, call),
                Timer::Forget(call) => self.forget(call),
                Timer::Patience(question) => self.ended(now, question, Ending::TimedOut, true),
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
    pub fn waits_at(&self, call: CallKey) -> Option<Door> {
        self.calls.get(call)?.door
    }

    /// Returns how many calls and questions are open: for a report and for limits.
    pub fn open(&self) -> (usize, usize) {
        (self.calls.len(), self.questions.len())
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
        Id::text(&format!("{}{}", frame::OWN, self.last_id))
    }

    fn tell_client(&mut self, door: Door, frame: String, last: bool) {
        self.effects
            .push_back(Effect::ToClient { door, frame, last });
    }

    fn tell_server(&mut self, frame: String, call: Option<CallKey>) {
        let delivery = self.deliveries.take_next();
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
