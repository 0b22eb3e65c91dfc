//! Inputs and effects of the relay. They are values, so that a simulator can replace the shell.

use std::cmp::Ordering;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{
    CallSummary, Ending, FoundCall, FoundTask, NewQuestion, ProofNumber,
};

use crate::ByteLimit;

/// The stream of a frame to the client: that of one HTTP request, or the session's own. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The session's own stream: stdout, or the stream that an HTTP client opened with GET.
    pub const SESSION: Self = Self(0);

    /// The bits that hold the number of a request; those above hold the numbers of its access token and its proof.
    const NUMBERS: u32 = 36;

    /// The bits below the number of its proof.
    const BELOW_PROOF: u32 = Self::NUMBERS + AccessNumber::BITS;

    /// The bit of a number that marks the stream of a task.
    const TASKS: u64 = 1 << (Self::NUMBERS - 1);

    /// Creates the stream of the session's request with this number, which came with this proof.
    pub const fn of_request(number: u64, proof: ProofNumber) -> Self {
        Self(((proof.0 as u64) << Self::BELOW_PROOF) | (number & ((1 << Self::NUMBERS) - 1)))
    }

    /// Returns the stream of the same request, which came with this access token.
    #[must_use]
    pub const fn with_access(self, access: AccessNumber) -> Self {
        let others = self.0 & !((AccessNumber::MOST as u64) << Self::NUMBERS);
        let access = access.0 & AccessNumber::MOST;
        Self(others | ((access as u64) << Self::NUMBERS))
    }

    /// Creates the stream on which the gateway waits for the call of the session's task with this number, in place of the
    /// client that made it on this stream. No frame on it reaches a peer.
    pub(crate) fn of_task(number: u64, creator: Self) -> Self {
        let number = Self::TASKS | (number & (Self::TASKS - 1));
        Self::of_request(number, creator.proof()).with_access(creator.access())
    }

    /// Returns `true` for the stream of a task.
    pub(crate) const fn is_of_task(self) -> bool {
        self.number() & Self::TASKS != 0
    }

    /// Returns the proof that its request came with.
    pub fn proof(self) -> ProofNumber {
        ProofNumber(u16::try_from(self.0 >> Self::BELOW_PROOF).unwrap_or(u16::MAX))
    }

    /// Returns the access token that its request came with.
    pub fn access(self) -> AccessNumber {
        let access = (self.0 >> Self::NUMBERS) & u64::from(AccessNumber::MOST);
        AccessNumber(u16::try_from(access).unwrap_or_default())
    }

    const fn number(self) -> u64 {
        self.0 & ((1 << Self::NUMBERS) - 1)
    }
}

impl Ord for StreamId {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.number(), self.0).cmp(&(other.number(), other.0))
    }
}

impl PartialOrd for StreamId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The access token that a request came with, by its number in the session; 0 if it came with none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessNumber(pub u16);

impl AccessNumber {
    const BITS: u32 = 12;

    /// The greatest number.
    pub const MOST: u16 = (1 << Self::BITS) - 1;

    /// Returns `true` if a token has this number.
    pub(crate) fn is_some(self) -> bool {
        self != Self::default()
    }
}

/// One client request in progress, by a number of the relay's own. Ids of peers are never trusted to be unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Answers that go to the server in one frame, by a number of the relay's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(pub u64);

/// One question, by a number of the relay's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// The effects of the relay, to be carried out in order.
#[derive(Debug)]
pub enum Effect {
    /// Send this frame to the client.
    ToClient {
        /// The stream.
        stream: StreamId,
        /// The frame, without a line end.
        frame: String,
        /// `true` if this is the response to the request that opened the stream.
        last: bool,
    },
    /// Send this frame to the server.
    ToServer {
        /// The frame, without a line end.
        frame: String,
        /// The call that it starts, if any.
        call: Option<CallId>,
        /// The delivery of the answers in it, whose result is to be reported: [`Event::Accepted`], [`Event::Refused`]
        /// or [`Event::Lost`].
        delivery: Option<DeliveryId>,
    },
    /// Write the question to the record, then report [`Event::Recorded`]. If the question does not outlive its
    /// connection ([`NewQuestion::outlives`]), the record may report before it is written.
    Record {
        /// The question's number.
        question: AskId,
        /// The question to write.
        asked: Box<NewQuestion>,
    },
    /// The client answered: submit to the record, where the first valid answer wins; then report [`Event::Answered`].
    Submit {
        /// The question's number.
        question: AskId,
        /// Its record.
        record: String,
        /// The person's action; an accepted form's answers are checked.
        outcome: Outcome,
    },
    /// The client's response is not a person's act: list the question as one for people. Report
    /// [`Event::NotRecorded`] if that fails.
    MoveToPeople {
        /// The question's number.
        question: AskId,
        /// Its record.
        record: String,
        /// The evidence.
        why: NotAPerson,
        /// The calls that it may belong to, the likeliest first; empty if its call is known.
        calls: Vec<CallSummary>,
    },
    /// The client's answer, which counts, may not be a person's act: add this to the audit.
    DoubtAct {
        /// The question's record.
        record: String,
        /// The evidence.
        why: NotAPerson,
    },
    /// A question was refused, because its form cannot be shown to a person: add this to the audit.
    NotShown {
        /// The call that asked, if known.
        call: Option<CallSummary>,
        /// The beginning of the server's message.
        message: String,
        /// The reason.
        why: String,
    },
    /// Take these answers out of the record, all or none and only once; then report [`Event::DeliveryBegun`].
    BeginDelivery {
        /// The questions.
        questions: Vec<AskId>,
        /// Their records.
        records: Vec<String>,
        /// The access tokens of the calls that wait for these answers, if they have any.
        accesses: Vec<AccessNumber>,
    },
    /// The question ended without an action.
    End {
        /// Its record.
        record: String,
        /// The reason.
        ending: Ending,
    },
    /// Release a question: the same call made again finds it, in any session.
    Leave {
        /// Its record.
        record: String,
    },
    /// The client has come back for these questions with a state of another session, or of a gateway before a restart. Their
    /// call starts again here: it takes them over, even from a gateway that runs.
    ClientReturned {
        /// Their records.
        records: Vec<String>,
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
    /// It is unknown whether the server has the answers: they are not sent again.
    InDoubt {
        /// The records.
        records: Vec<String>,
        /// The reason, in words.
        why: String,
    },
    /// Look up this call in the record, then report [`Event::CallFound`].
    FindCall {
        /// The number of the lookup.
        lookup: CallId,
        /// The digest, which the same call made again shares.
        digest: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// No client waits any more for this call, which the server is processing; or it asks another question since.
    KeepCall {
        /// The call.
        call: CallId,
        /// The digest, which the same call made again shares.
        digest: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
        /// The address at which a person can answer its question.
        link: Option<String>,
    },
    /// The server has answered a call that no client waits for. If the caller has no room for the answer, store
    /// [`result_not_stored`](crate::result_not_stored) in its place, and report [`Event::ResultNotStored`].
    KeepResult {
        /// The call.
        call: CallId,
        /// The answer as the server wrote it.
        result: String,
        /// The time until which it is kept.
        until: Timestamp,
    },
    /// A client waits for the call again, or nothing is stored of it any more.
    DropCall {
        /// The call.
        call: CallId,
    },
    /// Report [`Event::FollowedCallEnded`] when the same call of another session has ended.
    FollowCall {
        /// The call that waits for it.
        call: CallId,
        /// The digest, which the same call made again shares.
        digest: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// Write a task that the gateway runs to the record, then report [`Event::TaskBegun`].
    BeginTask {
        /// The task's number, by which the record knows its session's task.
        task: CallId,
        /// Its state.
        state: String,
        /// The time until which it is kept at most.
        until: Timestamp,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// The state of a task has changed.
    UpdateTask {
        /// The task's number.
        task: CallId,
        /// Its state.
        state: String,
    },
    /// A task has ended.
    EndTask {
        /// The task's number.
        task: CallId,
        /// Its last state and its response.
        ended: String,
        /// The time until which they are kept.
        until: Timestamp,
    },
    /// Look up a task of this caller, then report [`Event::TaskFound`].
    FindTask {
        /// The number of the lookup.
        lookup: CallId,
        /// The task's id in the record.
        id: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// Report [`Event::TaskCancelled`] to the session that runs this task of the caller.
    CancelTask {
        /// The task's id in the record.
        id: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// Report [`Event::FollowedCallEnded`] when this task has ended.
    FollowTask {
        /// The call that waits for it.
        call: CallId,
        /// The task's id in the record.
        id: String,
    },
    /// The client gave the call up: further messages of the server on its stream are not needed.
    Abandon {
        /// The call whose upstream request is to be given up.
        call: CallId,
    },
    /// Restart the server, which exited over a request about its era, or is to be addressed in the other era.
    Restart,
    /// Leave the session that was opened with the server: further requests describe themselves (2026-07-28).
    LeaveSession,
}

/// An answer that is taken out of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenAnswer {
    /// The question's number.
    pub question: AskId,
    /// Its record.
    pub record: String,
    /// Its `ElicitResult`, as JSON.
    pub reply: String,
}

/// The events that are reported to the relay.
#[derive(Debug)]
pub enum Event {
    /// The question is written.
    Recorded {
        /// The question's number.
        question: AskId,
        /// The record's unguessable id.
        record: String,
        /// The address at which a person can answer, if there is one.
        link: Option<String>,
        /// `true` if an answer to the same question of the same call was already there.
        answered: bool,
        /// `true` if the server has refused that answer before: a second refusal ends it.
        refused: bool,
    },
    /// The question could not be written, so it is not asked.
    NotRecorded {
        /// The question's number.
        question: AskId,
    },
    /// A question of a task waits for people in another session of its caller, or its answer for the server, so this one is not
    /// asked.
    AskedElsewhere {
        /// The question's number.
        question: AskId,
    },
    /// A limit on questions over all sessions is reached, so this one is not asked.
    NotAdmitted {
        /// The question's number.
        question: AskId,
        /// The limit.
        limit: QuestionLimit,
    },
    /// An answer is in the record, from any source.
    Answered {
        /// The question's number.
        question: AskId,
    },
    /// The answers are taken out of the record.
    DeliveryBegun {
        /// The answers.
        answers: Vec<TakenAnswer>,
    },
    /// The answers cannot be taken out: another process took them, or they ended meanwhile.
    NoDelivery {
        /// The questions.
        questions: Vec<AskId>,
    },
    /// The record could not be written, so these answers were not taken out: nothing has reached the server.
    DeliveryNotWritten {
        /// The questions; each with `true` if it is open again, since its person was told that the answer does not count.
        questions: Vec<(AskId, bool)>,
    },
    /// The server has accepted these answers.
    Accepted(DeliveryId),
    /// The server has not taken these answers, and will not.
    Refused {
        /// The delivery.
        delivery: DeliveryId,
        /// The reason, in words.
        why: String,
    },
    /// It is unknown whether the server has these answers.
    Lost {
        /// The delivery.
        delivery: DeliveryId,
        /// The reason, in words.
        why: String,
    },
    /// The same call has come to another gateway, where it has taken over the question.
    TakenOver {
        /// The question's number.
        question: AskId,
    },
    /// Another process ended the question, or it expired in the record.
    Ended {
        /// The question's number.
        question: AskId,
        /// The reason.
        ending: Ending,
    },
    /// The record has looked a call up.
    CallFound {
        /// The number of the lookup.
        lookup: CallId,
        /// The record's entry for it.
        found: FoundCall,
    },
    /// The call that this one follows has ended, or its result is in the record.
    FollowedCallEnded {
        /// The call that follows.
        call: CallId,
    },
    /// The task is written; without an id, it could not be written.
    TaskBegun {
        /// The task's number.
        task: CallId,
        /// Its unguessable id in the record.
        id: Option<String>,
    },
    /// Another session of the caller cancels this task.
    TaskCancelled {
        /// The task's number.
        task: CallId,
    },
    /// The record has looked a task up.
    TaskFound {
        /// The number of the lookup.
        lookup: CallId,
        /// The record's entry for it.
        found: FoundTask,
    },
    /// The server's answer to this call, which no client waits for, is not stored.
    ResultNotStored {
        /// The call.
        call: CallId,
        /// The limit that does not permit it.
        limit: ByteLimit,
        /// The size of the answer.
        bytes: usize,
    },
    /// Another session of the caller has the result of this call.
    CallTaken {
        /// The call.
        call: CallId,
    },
    /// The client closed the stream of this request.
    StreamClosed(StreamId),
    /// The server ended or its connection is lost. The reason, written for a person.
    ServerGone(String),
    /// The server was restarted, as requested by [`Effect::Restart`].
    Restarted,
    /// The response to `initialize` that follows names no session, so the server cannot push (2025-11-25, transports,
    /// session management).
    NoSession,
    /// Hand every held call back: the gateway is about to stop.
    Drain,
    /// Hand every held call back, because its client no longer waits for it. Made again, the call continues.
    HandBack,
    /// Do the same with the held calls that came with these access tokens, which have expired.
    HandBackOf(Vec<AccessNumber>),
    /// These access tokens may no longer be used: the calls that came with them end, and their clients are told.
    AccessEnded(Vec<AccessNumber>),
    /// The gateway stops: waiting clients are told.
    Stop,
    /// The client ended its session, or the session was idle: waiting clients are told.
    SessionEnded,
    /// The connection to the server is about to be closed. What the server says from now on ends no open question: many
    /// answer their calls with an error when their input ends.
    ServerClosing,
}

/// A limit on questions, over all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionLimit {
    /// The number of open questions of one caller.
    Open {
        /// The most questions.
        most: usize,
        /// `true` if it is the limit on this server's questions.
        of_server: bool,
    },
    /// The bytes of stored questions, of one caller or of all.
    Bytes(ByteLimit),
    /// The bytes of the whole record.
    RecordBytes(ByteLimit),
    /// The number of open questions of all callers.
    AllOpen {
        /// The name of the setting.
        name: &'static str,
        /// The most questions.
        most: u64,
    },
}
