//! A question between the relay, which carries it, and the record, which stores it: its content, its call and its end.
//!
//! Neither crate depends on the other. They share these values.

mod stored;
mod tool_claims;

use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::answer::{Answers, Outcome};
use crate::form::Form;
use crate::lifecycle::{Timestamp, Transition, Withdrawal};
use crate::view::sanitize;
use crate::wire::{Action, CallKind, ElicitRequest};

pub use self::stored::{ParsedBody, ParsedQuestion};
pub use self::tool_claims::{AbsentArgument, ToolClaims};

/// The number of the proof that a request came with, among those of its session. Requests with the same number have the
/// same caller with the same name, mail address, groups and client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProofNumber(pub u16);

/// The call a question belongs to, as far as it is known.
#[derive(Clone, PartialEq, Eq)]
pub struct CallSummary {
    /// Tool, prompt or resource.
    pub kind: CallKind,
    /// The name, or the resource's URI.
    pub target: String,
    /// The arguments as the client wrote them, JSON.
    pub arguments: Option<String>,
    /// The hex SHA-256 of kind, target and canonical arguments: equal for the same call made again.
    pub digest: String,
    /// The proof of the request that made it last. It is not recorded.
    pub proof: ProofNumber,
}

impl fmt::Debug for CallSummary {
    /// Formats everything but the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallSummary")
            .field("kind", &self.kind)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// The first place where a question is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedVia {
    /// The client's own dialog.
    Client,
    /// The inbox, or the operator's terminal or program.
    People,
}

/// A question before it is recorded, and so before it is shown.
#[derive(Clone, Debug)]
pub struct NewQuestion {
    /// The call that asks; `None` if the server asked outside any call.
    pub call: Option<CallSummary>,
    /// Names of other calls that may have asked, each once: a server that pushes over stdio does not name the call.
    pub others: Vec<String>,
    /// Those calls with their arguments; empty if the client's own dialog shows the question.
    pub candidates: Vec<CallSummary>,
    /// The question.
    pub request: ElicitRequest,
    /// Its form, parsed; `None` for a link.
    pub form: Option<Arc<Form>>,
    /// Names of the form's fields.
    pub fields: Vec<String>,
    /// Warnings, written for a person.
    pub warnings: Vec<String>,
    /// The first place where it is shown.
    pub via: AskedVia,
    /// The server's `serverInfo`, JSON.
    pub server_info: Option<String>,
    /// The client's `clientInfo`, JSON.
    pub client_info: Option<String>,
    /// The deadline.
    pub until: Timestamp,
    /// `true` if it may outlive the connection on which it is shown. It is then written before it is shown; otherwise
    /// it ends with the process that has the connection, and may be written a little later.
    pub outlives: bool,
    /// The people whom an operator's rule asks; `None` if no rule applies, and the caller is asked.
    pub team: Option<TeamPlan>,
    /// The `traceparent` of the span in which it is asked (W3C Trace Context); `None` if its call is not traced.
    pub trace: Option<String>,
    /// The task of the server that asks; `None` if a call asks.
    pub task: Option<TaskEntry>,
}

/// The place of a question in a task of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEntry {
    /// The id of the task.
    pub task: String,
    /// The key of the question in the `inputRequests` of the task.
    pub key: String,
}

/// The people whom a rule asks. The relay and the record pass it on without reading it.
#[derive(Clone, PartialEq, Eq)]
pub struct TeamPlan {
    /// The digest of the rule: the same question under another rule is another question.
    pub rule_digest: String,
    /// The plan, JSON.
    pub text: Box<str>,
    /// The server's claims about the tool of a call that waits for approval, if the server lists it.
    pub tool: Option<Box<ToolClaims>>,
}

impl fmt::Debug for TeamPlan {
    /// Formats everything but the plan, which names people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TeamPlan")
            .field("rule_digest", &self.rule_digest)
            .finish_non_exhaustive()
    }
}

impl NewQuestion {
    /// Returns `true` if another call may have asked. The answer then serves this call only, and the same call made
    /// again must not find it.
    pub fn is_ambiguous(&self) -> bool {
        !self.others.is_empty()
    }
}

/// The reason why a question ended without an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server withdrew it.
    WithdrawnByServer,
    /// The client cancelled the call.
    WithdrawnByClient,
    /// The call ended while the question was open.
    CallEnded,
    /// The connection to the server ended.
    ServerGone,
    /// The caller cannot come back: its key was revoked or has expired.
    CallerGone,
    /// It was not answered in time.
    TimedOut,
    /// The client answered with an error or with an invalid result.
    ClientFailed,
    /// The operator's terminal or program could not ask, and there is no inbox.
    ResponderFailed,
}

impl Ending {
    /// Returns the corresponding transition in the life of the question.
    pub fn transition(self) -> Transition {
        let withdraw = |why| Transition::Withdraw { why };
        let fail = |why: &str| Transition::Fail {
            why: why.to_owned(),
        };
        match self {
            Self::WithdrawnByServer => withdraw(Withdrawal::ByAsker),
            Self::WithdrawnByClient => withdraw(Withdrawal::CallCancelled),
            Self::CallEnded => withdraw(Withdrawal::CallEnded),
            Self::ServerGone => withdraw(Withdrawal::AskerGone),
            Self::CallerGone => withdraw(Withdrawal::CallerGone),
            Self::TimedOut => Transition::Expire,
            Self::ClientFailed => fail("the client could not be asked"),
            Self::ResponderFailed => fail("nobody could be asked"),
        }
    }
}

/// The record's entry for a repeated call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundCall {
    /// No entry: the call is new.
    Nothing,
    /// The server is still processing it, for another session of the caller.
    Running {
        /// The address at which a person can answer its question, if it waits for one.
        link: Option<String>,
    },
    /// Its result, as the server wrote it, which is now deleted from the record.
    Result(String),
}

/// The record's entry for a task that the gateway runs for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundTask {
    /// No entry: no call of this caller became it, or its time is over.
    Nothing,
    /// A session runs it; its state, as that session wrote it.
    Running(String),
    /// The gateway that ran it has ended; its last state.
    Lost(String),
    /// It has ended; its last state and its response, as its session wrote them.
    Finished(String),
}

/// Returns the answers of an accepted form, as JSON.
pub fn content_json(outcome: &Outcome) -> Option<String> {
    outcome.answers().map(answers_json)
}

fn answers_json(answers: &Answers) -> String {
    serde_json::to_string(answers).expect("checked values, written to memory")
}

/// Returns an `ElicitResult`, as JSON.
pub fn result_json(action: Action, content: Option<&str>) -> String {
    match content {
        Some(content) => format!(r#"{{"action":"{action}","content":{content}}}"#),
        None => format!(r#"{{"action":"{action}"}}"#),
    }
}

/// The member of a result's `_meta` with the reasons that people gave for a decline, or their comments on an approval.
pub const REASONS: &str = "mcp-elicit/reasons";

/// The longest reason for a decline, and the longest comment on an approval, in characters.
pub const MAX_REASON: usize = 500;

/// Returns an `ElicitResult` with these reasons in its `_meta`; unchanged if there are none.
pub fn with_reasons(mut result: String, reasons: &[String]) -> String {
    if !reasons.is_empty() && result.pop() == Some('}') {
        let reasons = serde_json::Value::from(reasons);
        let _never = write!(result, r#","_meta":{{"{REASONS}":{reasons}}}}}"#);
    }
    result
}

/// Returns a person's reason or comment on one line, without characters that are not shown; `None` if nothing is left,
/// or if it is longer than [`MAX_REASON`].
pub fn reason_line(text: &str) -> Option<String> {
    let line = sanitize::line(text.trim(), usize::MAX);
    let length = line.chars().count();
    (1..=MAX_REASON).contains(&length).then_some(line)
}

/// Returns a person's words in quotation marks, which those within cannot end.
pub fn quoted(words: &str) -> String {
    let within = words.replace(['"', '\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}'], "'");
    format!("\u{201c}{within}\u{201d}")
}

/// Returns the `ElicitResult` of an outcome, as JSON.
pub fn outcome_json(outcome: &Outcome) -> String {
    result_json(outcome.action(), content_json(outcome).as_deref())
}
