//! The relay: the treatment of every frame between one client session and one server. A pure state machine.
//!
//! Frames, answers and time go in; [`Effect`]s come out. It opens nothing, waits for nothing and reads no clock, so a
//! simulator can replace the shell (`tests/`). A frame without elicitation is scanned once
//! ([`mcp_elicit_core::wire::frame`]) and passed on as it is: the shell forwards the bytes that it read.
//!
//! A part of the relay is a type in `parts/`, whose data only its own file accesses; no part calls the relay. `impl
//! Relay` combines them, in the files below.
//!
//! Invariants: every call of the client ends exactly once; an answer reaches the server at most once and only through
//! the record; nothing is asked in a mode that was not declared; a time limit is never an answer.
//!
//! | file | contents |
//! | --- | --- |
//! | [`effect`] | inputs and effects |
//! | [`settings`] | an operator's settings |
//! | [`decisions`] | an operator's decisions, made by the shell |
//! | `client_facts` | facts about clients that the shell knows |
//! | `parts/` | the data, one file per part |
//! | `incoming` | a frame of the client with its stream and time |
//! | `from_client`, `from_server` | the routing of frames from the client and from the server |
//! | `asking_frames` | the frames of a server that ask, as any reader may understand them |
//! | `era/` | the state and era of each side, from its opening on; translation between the eras, one file per era and side |
//! | `batches` | several messages of a client in one list |
//! | `call_start` | a request as it starts at the server, with the contents of a retry |
//! | `calls_in_turn` | calls that go to the server in turn |
//! | `turn_sharing` | the time that a call waits for its turn before it shares one |
//! | `call_endings` | the end of a call: with a response, with an error, or unattended |
//! | `retries` | calls that are made again: the retry of a round, or a call that was handed back |
//! | `new_asks` | the check and the recording of a question |
//! | `not_a_person` | responses of clients that are no act of a person |
//! | `reassignment` | questions that are reassigned to another call when their own ends |
//! | `question_plan` | the decision about a question, for all calls that may have asked |
//! | `access` | the access tokens with which calls came: the end of a token's calls |
//! | `answers`, `delivery_reports` | the delivery of a recorded answer; its result: accepted, refused or unknown |
//! | `approvals/` | calls that wait for approval: the question, changed arguments, members shown to approvers, the list of tools |
//! | `task_judgement` | the questions of a server's tasks: who is asked, and the answers of people |
//! | `given_up` | calls that their client gave up without a word, and makes again |
//! | `held_calls`, `hand_back` | calls held for a person: kept alive, handed back, resumed; the messages |
//! | `left_questions` | questions for which a server stops waiting, in calls that were handed back |
//! | `call_tasks`, `task_support` | calls that the gateway runs as tasks of the client; whether it runs any, and what clients are told of them |
//! | `calls_in_record` | calls without a waiting client, beyond this session |
//! | `connection_load` | the load of this connection, for a shell that has several |
//! | `learned` | learned facts, in a form that outlives the process |
//! | `trace_parent` | `traceparent` of requests, and the calls that a shell traces |
//! | `request_ids` | the ids of forwarded requests: the gateway's own, and those of peers that are free |
//! | `respelled_ids` | responses with another id than their request |
//! | `frame_edit` | small changes to frames, and the gateway's own errors |
//! | `logging`, `server_name`, `unknown_members` | log messages between the eras; the server's name; unknown members, passed on to another era |

mod access;
mod answers;
mod approvals;
mod asking_frames;
mod batches;
mod call_endings;
mod call_start;
mod call_tasks;
mod calls_in_record;
mod calls_in_turn;
mod client_facts;
mod connection_load;
pub mod decisions;
mod delivery_reports;
pub mod effect;
mod era;
mod frame_edit;
mod from_client;
mod from_server;
mod given_up;
mod hand_back;
mod held_calls;
mod incoming;
mod learned;
mod left_questions;
mod logging;
mod new_asks;
mod not_a_person;
mod parts;
mod question_plan;
mod reassignment;
mod request_ids;
mod respelled_ids;
mod retries;
mod server_name;
pub mod settings;
mod task_judgement;
mod task_support;
mod trace_parent;
mod turn_sharing;
mod unknown_members;

/// Returns `true` if a text is JSON. The scan of a frame skips values without reading them.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests;

use bytes::Bytes;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{AskedVia, CallSummary, Ending, FoundCall, FoundTask, NewQuestion};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, Shape};
use mcp_elicit_core::wire::{CallKind, Revision};

pub use approvals::is_trace_parent;
pub use batches::{BATCH, NO_BATCHES, batch_items, is_batch};
pub use call_endings::result_not_stored;
pub use call_tasks::ended_without_result;
pub use client_facts::{ClientFacts, ClientProfile, SeenClient};
pub use effect::{
    AccessNumber, AskId, CallId, DeliveryId, Effect, Event, QuestionLimit, StreamId, TakenAnswer,
};
use era::{Client, Contact, Server};
pub use from_client::NEEDS_ID;
pub use hand_back::{HANDED_BACK, NOT_CALLED, WAITING};
use incoming::ClientFrame;
pub use learned::Learned;
use parts::approvals::Approvals;
pub use parts::asking_targets::AskingTargets;
use parts::asks::Asks;
use parts::batch_responses::BatchResponses;
use parts::call_budget::CallBudget;
use parts::calls::Calls;
use parts::catalog::Catalog;
pub use parts::client_waits::ClientWaits;
use parts::deliveries::Deliveries;
use parts::early_requests::EarlyRequests;
use parts::effect_queue::EffectQueue;
pub use parts::frame_reports::FrameReports;
pub use parts::held_bytes::{ByteAccount, ByteAccounts, ByteLimit};
use parts::hold_timers::HoldTimers;
use parts::limits::Limits;
use parts::log_levels::LogLevels;
use parts::odd_ids::OddIds;
use parts::opening_ids::OpeningIds;
use parts::own_tasks::OwnTasks;
use parts::passed_rounds::PassedRounds;
use parts::past_calls::PastCalls;
use parts::progress_seen::ProgressSeen;
use parts::reported_name::ReportedName;
pub use parts::request_state::{StateSeal, holder_of_state};
use parts::round_states::RoundStates;
pub use parts::server_eras::{AskedEras, ServerEras};
use parts::server_requests::ServerRequests;
pub use parts::task_owners::TaskOwners;
use parts::task_questions::TaskQuestions;
use parts::timers::{Timer, Timers};
use parts::tool_listing::ToolListing;
use parts::turns::Turns;
use parts::unattended::Unattended;
use parts::waiting_calls::WaitingCalls;
pub use settings::{Audience, RelaySettings};
pub use trace_parent::{TRACE_PARENT, with_trace_parent};

/// The treatment of a client's frame by the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientForward {
    /// Send the received bytes to the server; they start this call, if any.
    AsIs(Option<CallId>),
    /// The relay has handled it; see the effects.
    Handled,
}

/// The treatment of a server's frame by the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerForward {
    /// Send the received bytes to the client on this stream; `last` if they answer the request that opened it.
    AsIs {
        /// The stream.
        stream: StreamId,
        /// `true` if the stream's request is answered.
        last: bool,
    },
    /// The relay has handled it; see the effects.
    Handled,
}

/// The state machine between one client session and one server.
pub struct Relay {
    settings: RelaySettings,
    client: Client,
    server: Server,
    /// The name that the server reported last.
    reported_name: ReportedName,
    early_requests: EarlyRequests,
    catalog: Catalog,
    log_levels: LogLevels,
    calls: Calls,
    past_calls: PastCalls,
    turns: Turns,
    holds: HoldTimers,
    unattended: Unattended,
    waiting_calls: WaitingCalls,
    asks: Asks,
    approvals: Approvals,
    limits: Limits,
    deliveries: Deliveries,
    round_states: RoundStates,
    passed_rounds: PassedRounds,
    task_questions: TaskQuestions,
    own_tasks: OwnTasks,
    server_requests: ServerRequests,
    timers: Timers,
    tool_listing: ToolListing,
    opening_ids: OpeningIds,
    odd_ids: OddIds,
    batch_responses: BatchResponses,
    progress_seen: ProgressSeen,
    /// `true` if the session with the server was left for the rounds era.
    has_left_session: bool,
    /// `true` once the connection to the server is about to be closed.
    is_server_closing: bool,
    /// The number of questions that were left for the same call made again after their server had stopped waiting.
    left_questions: usize,
    effects: EffectQueue,
}

impl Relay {
    /// Creates a relay in its initial state.
    pub fn new(settings: RelaySettings, seal: StateSeal) -> Self {
        Self {
            client: Client::new(settings.client_facts.clone()),
            server: Server::default(),
            reported_name: ReportedName::default(),
            early_requests: EarlyRequests::default(),
            catalog: Catalog::default(),
            log_levels: LogLevels::default(),
            calls: Calls::after(
                settings.first_call,
                CallBudget::new(settings.open_calls, settings.call_bytes)
                    .with_accounts(settings.byte_accounts.clone()),
            ),
            past_calls: PastCalls::default(),
            turns: Turns::new(settings.askers.clone(), settings.waiting_calls),
            holds: HoldTimers::new(settings.keep_alive),
            unattended: Unattended::default(),
            waiting_calls: WaitingCalls::default(),
            asks: Asks::default(),
            approvals: Approvals::default(),
            limits: Limits::new(&settings),
            deliveries: Deliveries::default(),
            round_states: RoundStates::new(seal, settings.open_for),
            passed_rounds: PassedRounds::default(),
            task_questions: TaskQuestions::default(),
            own_tasks: OwnTasks::default(),
            server_requests: ServerRequests::default(),
            timers: Timers::default(),
            tool_listing: ToolListing::default(),
            opening_ids: OpeningIds::default(),
            odd_ids: OddIds::default(),
            batch_responses: BatchResponses::default(),
            progress_seen: ProgressSeen::default(),
            has_left_session: false,
            is_server_closing: false,
            left_questions: 0,
            effects: EffectQueue::default(),
            settings,
        }
    }

    /// Handles a frame from the client on this stream. Effects follow a forwarded frame.
    pub fn client_frame(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        frame: &[u8],
    ) -> ClientForward {
        match FrameIndex::read(frame) {
            Ok(index) => self.client_frame_of(now, stream, frame, &index, None),
            Err(_) if is_batch(frame) => self.client_batch(now, stream, frame),
            Err(defect) => self.effects.reject_defect(stream, frame, defect),
        }
    }

    /// Like [`Relay::client_frame`], with bytes that may be kept without a copy, and the result of the scan.
    pub fn client_frame_seen(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        frame: &Bytes,
        index: &FrameIndex,
    ) -> ClientForward {
        self.client_frame_of(now, stream, frame, index, Some(frame))
    }

    fn client_frame_of(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        frame: &[u8],
        index: &FrameIndex,
        bytes: Option<&Bytes>,
    ) -> ClientForward {
        match Frame::new(frame, index) {
            Some(read) => self.client_message(ClientFrame::new(read, stream, now, bytes)),
            None => self.effects.reject_unreadable(stream, frame),
        }
    }

    /// Handles a frame from the server; `call` names the request on whose stream it came, if streams are separate.
    pub fn server_frame(
        &mut self,
        now: Timestamp,
        call: Option<CallId>,
        frame: &[u8],
    ) -> ServerForward {
        match FrameIndex::read(frame) {
            Ok(index) => self.server_frame_seen(now, call, frame, &index),
            Err(defect) => self.defect_from_server(now, frame, &defect.to_string()),
        }
    }

    /// Like [`Relay::server_frame`], with the result of the scan.
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
            return self.defect_from_server(now, frame, &defect);
        };
        if self.settings.decisions.is_some() && !is_json(read.text()) {
            // A rule cannot be applied to an unreadable frame, and a lenient client may read it.
            return self.defect_from_server(now, frame, "it is not JSON");
        }
        let forward = match shape {
            Shape::Request => self.server_request(now, call, read),
            Shape::Notification => self.server_notification(now, call, read),
            Shape::Response => self.server_response(now, read),
        };
        let forward = self.take_for_task(forward, read.text());
        self.start_waiting(now);
        self.forward_in_batch(forward, read)
    }

    fn defect_from_server(&mut self, now: Timestamp, frame: &[u8], why: &str) -> ServerForward {
        let forward = self.server_defect(now, frame, why);
        self.start_waiting(now);
        forward
    }

    /// Starts what may start after a change: requests that waited for the server's era, and calls whose turn has come.
    fn start_waiting(&mut self, now: Timestamp) {
        self.flush_waiting(now);
        self.next_turns(now);
    }

    /// Handles an event that is not a frame.
    pub fn handle(&mut self, now: Timestamp, event: Event) {
        match event {
            Event::Recorded {
                question,
                record,
                link,
                answered,
                refused,
            } => {
                if refused {
                    self.asks.refused_before(question);
                }
                self.recorded(now, question, record, link, answered);
            }
            Event::NotRecorded { question } => self.not_recorded(now, question),
            Event::AskedElsewhere { question } => self.asked_elsewhere(question),
            Event::NotAdmitted { question, limit } => self.not_admitted(now, question, limit),
            Event::Answered { question } => self.answered(now, question),
            Event::DeliveryBegun { answers } => self.delivery_begun(now, answers),
            Event::NoDelivery { questions } => self.no_delivery(now, &questions),
            Event::DeliveryNotWritten { questions } => self.delivery_not_written(now, &questions),
            Event::Accepted(delivery) => self.deliveries.accepted(delivery, &mut self.effects),
            Event::Refused { delivery, why } => self.refused(now, delivery, why),
            Event::Lost { delivery, why } => self.lost(now, delivery, why),
            Event::Ended { question, ending } => self.ended(now, question, ending, false),
            Event::TakenOver { question } => self.taken_over(now, question),
            Event::CallFound { lookup, found } => self.call_found(now, lookup, found),
            Event::FollowedCallEnded { call } => self.followed_call_ended(call),
            Event::TaskBegun { task, id } => self.task_begun(now, task, id),
            Event::TaskCancelled { task } => self.task_cancelled(now, task),
            Event::TaskFound { lookup, found } => self.task_found(now, lookup, found),
            Event::ResultNotStored { call, limit, bytes } => {
                self.result_not_stored(call, limit, bytes);
            }
            Event::CallTaken { call } => self.drop_unattended(now, call),
            Event::StreamClosed(stream) => {
                self.unattended.lookups_mut().stream_closed(stream);
                self.own_tasks.lookups_mut().stream_closed(stream);
                self.stream_closed(now, stream);
            }
            Event::ServerGone(why) => self.server_gone(now, &why),
            Event::Restarted => self.restarted(now),
            Event::NoSession => self.server.note_no_session(),
            Event::Drain => self.drain(now),
            Event::HandBack => self.hand_back_all(now),
            Event::HandBackOf(accesses) => self.hand_back_of(now, &accesses),
            Event::AccessEnded(accesses) => self.end_accesses(now, &accesses),
            Event::Stop => self.stop(now),
            Event::SessionEnded => self.end_waiting("the session was ended"),
            Event::ServerClosing => self.is_server_closing = true,
        }
        self.start_waiting(now);
    }

    /// Handles everything that is due.
    pub fn tick(&mut self, now: Timestamp) {
        while let Some(timer) = self.timers.take_due(now) {
            match timer {
                Timer::Probe => self.probe_timed_out(now),
                Timer::Hold(call) => self.hand_back(now, call),
                Timer::KeepAlive(call) => self.keep_alive(now, call),
                Timer::Retry(call) => self.retry_upstream(now, call),
                Timer::DropUnattended(call) => self.drop_unattended(now, call),
                Timer::Quiet(call) => self.end_if_quiet(now, call),
                Timer::AskExpired(question) => self.ended(now, question, Ending::TimedOut, true),
                Timer::DeliverAgain(question) => self.deliver_again(now, question),
                Timer::ToolsListing => self.end_listing(now),
                Timer::TaskOver(stream) => self.task_over(now, stream),
                Timer::Turns => self.turns.queue_mut().check_is_due(),
            }
            self.start_waiting(now);
        }
    }

    /// Returns the time at which [`Relay::tick`] is due next.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Returns the next effect, in order.
    pub fn effect(&mut self) -> Option<Effect> {
        self.next_effect()
    }

    /// Returns the client's stream on which the answer to this call is awaited.
    pub fn waits_at(&self, call: CallId) -> Option<StreamId> {
        let stream = self.calls.get(call)?.stream();
        stream.filter(|stream| !stream.is_of_task())
    }

    /// Returns `true` if people approved this call, so that nothing that they have not seen may be added to it.
    pub fn is_approved(&self, call: CallId) -> bool {
        self.approvals.is_approved(call)
    }

    /// Returns the numbers of open calls and questions, for reports and limits.
    pub fn open(&self) -> (usize, usize) {
        (self.calls.len(), self.asks.len())
    }

    /// Returns `true` if the server has ended.
    pub fn is_over(&self) -> bool {
        self.server.contact() == Contact::Gone
    }

    /// Returns the server's revision, once known.
    pub fn server_revision(&self) -> Option<Revision> {
        self.server.revision()
    }
}
