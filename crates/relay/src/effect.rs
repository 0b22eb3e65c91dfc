//! Inputs and effects of the relay: values, so that a simulator can be the world.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::question::{Ending, FoundCall, NewQuestion};

/// The stream for a frame to the client: the stream of one HTTP request, or the session's own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The session's own stream: stdout, or the stream that an HTTP client opened with GET.
    pub const SESSION: Self = Self(0);
}

/// One client request on its way, by a number of the relay's own. Ids of peers are never trusted to be unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Answers that go to the server in one frame, by a number of the relay's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(pub u64);

/// One question, by a number of the relay's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// The effects of the relay, in this order.
#[derive(Debug)]
pub enum Effect {
    /// Send this frame to the client.
    ToClient {
        /// On which stream.
        stream: StreamId,
        /// The frame, without a line end.
        frame: String,
        /// `true` if this answers the request the stream was opened by.
        last: bool,
    },
    /// Send this frame to the server.
    ToServer {
        /// The frame, without a line end.
        frame: String,
        /// The call that it starts anew, if it does.
        call: Option<CallId>,
        /// The answers in it, whose fate is to be told: [`Event::Accepted`], [`Event::Refused`] or [`Event::Lost`].
        delivery: Option<DeliveryId>,
    },
    /// Write the question down, then tell [`Event::Recorded`]. Of one that does not outlive its connection
    /// ([`NewQuestion::outlives`]), the record may know before it is written.
    Record {
        /// Which.
        question: AskId,
        /// The question to write.
        asked: Box<NewQuestion>,
    },
    /// The client answered: settle the record, first valid answer wins; then tell [`Event::Answered`].
    Submit {
        /// Which.
        question: AskId,
        /// Its record.
        record: String,
        /// The person's action; an accepted form's answers are checked.
        outcome: Outcome,
    },
    /// Take these answers out of the record, all or none and only once; then tell [`Event::DeliveryBegun`].
    BeginDelivery {
        /// The questions.
        questions: Vec<AskId>,
        /// Their records.
        records: Vec<String>,
    },
    /// The question ended without an action.
    End {
        /// Its record.
        record: String,
        /// Why.
        ending: Ending,
    },
    /// Let go of a question: the same call made again finds it, in whatever session.
    Leave {
        /// Its record.
        record: String,
    },
    /// The server has accepted the answers: their values may be dropped.
    Delivered {
        /// The records.
        records: Vec<String>,
    },
    /// The server has refused the answers: their values are kept for the next call.
    DeliveryRefused {
        /// The records.
        records: Vec<String>,
        /// The server's error, in words.
        why: String,
    },
    /// Nobody can say whether the server has the answers: they are not sent again.
    InDoubt {
        /// The records.
        records: Vec<String>,
        /// Why not, in words.
        why: String,
    },
    /// Look up whether the record knows this call, then tell [`Event::CallFound`].
    FindCall {
        /// The stream that it came on.
        stream: StreamId,
        /// The call as it came.
        frame: String,
        /// The digest that the same call made again has, too.
        digest: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// Nobody waits for this call any more, on which the server works.
    KeepCall {
        /// Which.
        call: CallId,
        /// The digest that the same call made again has, too.
        digest: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// The server has answered a call that nobody waits for.
    KeepResult {
        /// Which.
        call: CallId,
        /// The answer as the server wrote it.
        result: String,
    },
    /// A call is waited for again, or nothing is kept of it any more.
    DropCall {
        /// Which.
        call: CallId,
    },
    /// Tell [`Event::FollowedCallEnded`] when the same call of another session has ended.
    FollowCall {
        /// The call that waits for it.
        call: CallId,
        /// The digest that the same call made again has, too.
        digest: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// The client gave the call up: nobody wants what the server still says on its stream.
    Abandon {
        /// The call whose upstream request is to be given up.
        call: CallId,
    },
    /// Start the server anew: it did not survive a question about its era.
    Restart,
}

/// The events that the relay is told.
#[derive(Debug)]
pub enum Event {
    /// The question is written.
    Recorded {
        /// Which.
        question: AskId,
        /// The record's unguessable id.
        record: String,
        /// The address at which a person can answer, when there is one.
        link: Option<String>,
        /// `true` if an answer was already there, given to the same question of the same call before.
        answered: bool,
        /// `true` if the server has refused that answer before: a second refusal ends it.
        refused: bool,
    },
    /// The question could not be written, so nobody is asked.
    NotRecorded {
        /// Which.
        question: AskId,
    },
    /// The caller has too many open questions already, in all sessions together, so nobody is asked.
    NotAdmitted {
        /// Which.
        question: AskId,
        /// The number that may be open.
        limit: usize,
        /// `true` if it is the number of questions that this server asks.
        of_server: bool,
    },
    /// The record is settled, by whomever.
    Answered {
        /// Which.
        question: AskId,
    },
    /// The answers are taken out of the record.
    DeliveryBegun {
        /// The questions, with the `ElicitResult` of each as JSON.
        replies: Vec<(AskId, String)>,
    },
    /// The answers cannot be taken out: another took them, or they ended meanwhile.
    NoDelivery {
        /// The questions.
        questions: Vec<AskId>,
    },
    /// The server has accepted these answers.
    Accepted(DeliveryId),
    /// The server has not taken these answers, and will not.
    Refused {
        /// Which.
        delivery: DeliveryId,
        /// Why, in words.
        why: String,
    },
    /// Nobody can say whether the server has these answers.
    Lost {
        /// Which.
        delivery: DeliveryId,
        /// Why, in words.
        why: String,
    },
    /// Somebody else ended the question (its time ran out in the record).
    Ended {
        /// Which.
        question: AskId,
        /// Why.
        ending: Ending,
    },
    /// The record has looked a call up.
    CallFound {
        /// The stream that it came on.
        stream: StreamId,
        /// The call as it came.
        frame: String,
        /// The record's entry for it.
        found: FoundCall,
    },
    /// The call that this one follows has ended, or its result is in the record.
    FollowedCallEnded {
        /// The call that follows.
        call: CallId,
    },
    /// Another session of the caller has the result of this call.
    CallTaken {
        /// Which.
        call: CallId,
    },
    /// The client closed the stream of this request.
    StreamClosed(StreamId),
    /// The server ended or its connection is lost. In words for a person.
    ServerGone(String),
    /// The server was started anew, as [`Effect::Restart`] wanted.
    Restarted,
    /// Hand every held call back: the gateway is about to stop.
    Drain,
    /// Hand every held call back: its client has nothing more to show for it now. Made again, the call goes on.
    HandBack,
    /// The gateway stops: who still waits is told.
    Stop,
    /// The client ended its session, or nobody used it any more: who still waits is told.
    SessionEnded,
}
