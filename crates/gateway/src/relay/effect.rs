//! Inputs and effects of the relay: values, so that a simulator can be the world.

use mcp_elicit_core::answer::Outcome;
pub use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::ElicitRequest;
use std::fmt;

use super::kept_calls::FoundCall;

/// The stream for a frame to the client: the stream of one HTTP request, or the session's own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Door(pub u64);

impl Door {
    /// The session's own stream: stdout, or the stream that an HTTP client opened with GET.
    pub const SESSION: Self = Self(0);
}

/// One client request on its way, by a number of the relay's own. Ids of peers are never trusted to be unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u64);

/// Answers that go to the server in one frame, by a number of the relay's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryKey(pub u64);

/// One question, by a number of the relay's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionKey(pub u64);

/// The place at which a question is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before the client's own dialog.
    Client,
    /// On the operator's desk: inbox, terminal or command.
    Desk,
}

/// The kinds of calls during which a question may come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// `tools/call`
    Tool,
    /// `prompts/get`
    Prompt,
    /// `resources/read`
    Resource,
}

impl CallKind {
    /// Reads the method; `None` when no question may come up in it (2026-07-28, MRTR, supported requests).
    pub fn of_method(method: &str) -> Option<Self> {
        match method {
            "tools/call" => Some(Self::Tool),
            "prompts/get" => Some(Self::Prompt),
            "resources/read" => Some(Self::Resource),
            _ => None,
        }
    }

    /// The word a person knows it by.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// Reads [`CallKind::word`] back.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Tool, Self::Prompt, Self::Resource]
            .into_iter()
            .find(|kind| kind.word() == word)
    }
}

/// The call a question belongs to, as far as the gateway knows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Calling {
    /// Tool, prompt or resource.
    pub kind: CallKind,
    /// The name, or the resource's URI.
    pub target: String,
    /// The arguments as the client wrote them, JSON.
    pub arguments: Option<String>,
    /// The same call again has the same digest: hex of SHA-256 over kind, target and arguments.
    pub digest: String,
}

impl fmt::Debug for Calling {
    /// Never the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calling")
            .field("kind", &self.kind)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl Asked {
    /// Returns `true` where it may have come up in another call: its answer is then only for the call that asked, and must
    /// not be found by the same call made again.
    pub fn is_ambiguous(&self) -> bool {
        is_ambiguous(&self.others)
    }
}

/// Returns `true` where the call that asked may have been another one, of whatever tool.
pub(crate) fn is_ambiguous(others: &[String]) -> bool {
    !others.is_empty()
}

/// A question as the record takes it, before anyone sees it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The call it came up in, as far as one can tell; `None` when the server asked outside any.
    pub calling: Option<Calling>,
    /// Other calls that it may belong to, each name once: a server that pushes over stdio does not say for which call it asks.
    pub others: Vec<String>,
    /// Those calls, each with its arguments.
    pub candidates: Vec<Calling>,
    /// The question.
    pub request: ElicitRequest,
    /// Names of the form's fields.
    pub fields: Vec<String>,
    /// The warnings for a person, in words.
    pub cautions: Vec<String>,
    /// The place at which it is shown first.
    pub place: Place,
    /// The server's `serverInfo`, as JSON.
    pub server_info: Option<String>,
    /// The client's `clientInfo`, as JSON.
    pub client_info: Option<String>,
    /// Until when it waits.
    pub until: Timestamp,
    /// `true` if it may outlive the connection of whoever is asked. Then it is written before anyone sees it; else it
    /// ends with the process that has the connection, and need only be written soon.
    pub outlives: bool,
}

/// Why a question ended without an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server took it back.
    WithdrawnByServer,
    /// The client gave up the call.
    WithdrawnByClient,
    /// The call ended while the question was open.
    CallEnded,
    /// The server went away.
    ServerGone,
    /// Nobody answered in time.
    TimedOut,
    /// The client answered with an error or with what is no answer.
    ClientFailed,
    /// The operator's terminal or program could not ask, and there is nobody else.
    AnswererFailed,
}

/// The effects of the relay, in this order.
#[derive(Debug)]
pub enum Effect {
    /// Send this frame to the client.
    ToClient {
        /// On which stream.
        door: Door,
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
        call: Option<CallKey>,
        /// The answers in it, whose fate is to be told: [`Event::Accepted`], [`Event::Refused`] or [`Event::Lost`].
        delivery: Option<DeliveryKey>,
    },
    /// Write the question down, then tell [`Event::Recorded`]. Of one that does not outlive its connection
    /// ([`Asked::outlives`]), the record may know before it is written.
    Record {
        /// Which.
        question: QuestionKey,
        /// The question to write.
        asked: Box<Asked>,
    },
    /// The client answered: settle the record, first valid answer wins; then tell [`Event::Settled`].
    Settle {
        /// Which.
        question: QuestionKey,
        /// Its record.
        record: String,
        /// The person's action; an accepted form's answers are checked.
        outcome: Outcome,
    },
    /// Take these answers out of the record, all or none and only once; then tell [`Event::Taken`].
    Take {
        /// The questions.
        questions: Vec<QuestionKey>,
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
    /// The server has accepted the answers: their values may be dropped.
    Confirm {
        /// The records.
        records: Vec<String>,
    },
    /// The server has refused the answers: their values are kept for the next call.
    Refused {
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
        door: Door,
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
        call: CallKey,
        /// The digest that the same call made again has, too.
        digest: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// The server has answered a call that nobody waits for.
    KeepResult {
        /// Which.
        call: CallKey,
        /// The answer as the server wrote it.
        result: String,
    },
    /// A call is waited for again, or nothing is kept of it any more.
    DropCall {
        /// Which.
        call: CallKey,
    },
    /// Tell [`Event::FollowedCallEnded`] when the same call of another session has ended.
    FollowCall {
        /// The call that waits for it.
        call: CallKey,
        /// The digest that the same call made again has, too.
        digest: String,
        /// The server's `serverInfo`.
        server_info: Option<String>,
    },
    /// The client gave the call up: nobody wants what the server still says on its stream.
    Abandon {
        /// The call whose upstream request is to be given up.
        call: CallKey,
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
        question: QuestionKey,
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
        question: QuestionKey,
    },
    /// The record is settled, by whomever.
    Settled {
        /// Which.
        question: QuestionKey,
    },
    /// The answers are taken out of the record.
    Taken {
        /// The questions, with the `ElicitResult` of each as JSON.
        replies: Vec<(QuestionKey, String)>,
    },
    /// The answers cannot be taken out: another took them, or they ended meanwhile.
    NotTaken {
        /// The questions.
        questions: Vec<QuestionKey>,
    },
    /// The server has accepted these answers.
    Accepted(DeliveryKey),
    /// The server has not taken these answers, and will not.
    Refused {
        /// Which.
        delivery: DeliveryKey,
        /// Why, in words.
        why: String,
    },
    /// Nobody can say whether the server has these answers.
    Lost {
        /// Which.
        delivery: DeliveryKey,
        /// Why, in words.
        why: String,
    },
    /// Somebody else ended the question (its time ran out in the record).
    Ended {
        /// Which.
        question: QuestionKey,
        /// Why.
        ending: Ending,
    },
    /// The record has looked a call up.
    CallFound {
        /// The stream that it came on.
        door: Door,
        /// The call as it came.
        frame: String,
        /// The record's entry for it.
        found: FoundCall,
    },
    /// The call that this one follows has ended, or its result is in the record.
    FollowedCallEnded {
        /// The call that follows.
        call: CallKey,
    },
    /// Another session of the caller has the result of this call.
    CallTaken {
        /// Which.
        call: CallKey,
    },
    /// The client closed the stream of this request.
    DoorClosed(Door),
    /// The server ended or its connection is lost. In words for a person.
    ServerGone(String),
    /// The server was started anew, as [`Effect::Restart`] wanted.
    Restarted,
    /// Hand every held call back: the gateway is about to stop.
    Drain,
    /// The gateway stops: who still waits is told.
    Stop,
    /// The client ended its session, or nobody used it any more: who still waits is told.
    SessionEnded,
}
