//! An operator's decisions about calls and questions, as the relay asks for them: made by the shell, whose rules the relay does not
//! know.

use std::fmt;
use std::time::Duration;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{CallSummary, TeamPlan};
use mcp_elicit_core::wire::ElicitRequest;

/// The decisions about the calls of one caller at one server. Asked under the relay's lock, so they are pure and quick.
pub trait Decisions: fmt::Debug + Send + Sync {
    /// Decides about a call before it goes to the server.
    fn admit(&self, now: Timestamp, call: &CallSummary, tool: Option<&ToolFacts>) -> Admission;
    /// Decides whether a call that was let through, or waits, is refused by now. It serves no approval.
    fn refuses(
        &self,
        now: Timestamp,
        call: &CallSummary,
        tool: Option<&ToolFacts>,
    ) -> Option<RuleRefusal> {
        match self.admit(now, call, tool) {
            Admission::Refuse(refusal) => Some(refusal),
            _ => None,
        }
    }
    /// Decides about a question that the server asks; `call` is `None` where it is not known for which call.
    fn plan(
        &self,
        now: Timestamp,
        call: Option<(&CallSummary, Option<&ToolFacts>)>,
        question: QuestionParts<'_>,
    ) -> Planned;
    /// A question in this call was not asked, since the people of the rule cannot be asked there.
    fn not_asked(&self, call: Option<&CallSummary>, refusal: &RuleRefusal);
    /// A call was approved with these answers, JSON, which change the arguments at these JSON Pointers; `question` is the record's id of
    /// the question in which people approved it.
    fn approved(
        &self,
        now: Timestamp,
        call: &CallSummary,
        approval: &Approval,
        answers: &str,
        edited: &[String],
        question: Option<&str>,
    );
}

/// A question as it is decided about.
#[derive(Clone, Copy)]
pub struct QuestionParts<'a> {
    /// The question.
    pub request: &'a ElicitRequest,
    /// The form, where it has one.
    pub form: Option<&'a Form>,
    /// `true` if it seems to ask for a credential.
    pub has_credentials: bool,
}

/// The facts that a server lists of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFacts {
    /// `readOnlyHint`, where the server says so.
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
    /// `inputSchema`, JSON, where it is not too large to be kept.
    pub input_schema: Option<Box<str>>,
}

/// The decision about a call.
#[derive(Clone, Debug)]
pub enum Admission {
    /// It goes to the server.
    Free,
    /// It does not.
    Refuse(RuleRefusal),
    /// It waits until people have approved it.
    Approve(Box<Approval>),
    /// The same call was approved a short while ago, with these answers, JSON.
    Granted(Box<Approval>, String),
}

/// The decision about a question.
#[derive(Clone, Debug)]
pub enum Planned {
    /// Its caller is asked, as without a rule.
    Caller {
        /// The time for which it is open, where a rule says so.
        open_for: Option<Duration>,
    },
    /// Others are asked, never the client.
    People(Box<PeopleAsked>),
    /// It is not asked.
    Refuse(RuleRefusal),
}

/// The people who are asked.
#[derive(Clone, Debug)]
pub struct PeopleAsked {
    /// The rule by name.
    pub rule: String,
    /// The plan, for the record.
    pub team: TeamPlan,
    /// The time for which the question is open.
    pub open_for: Duration,
    /// `true` if a call is handed back when nobody answers in time, to be made again.
    pub hands_back: bool,
}

/// The approval of a call.
#[derive(Clone, Debug)]
pub struct Approval {
    /// The people who are asked.
    pub people: PeopleAsked,
    /// JSON Pointers to the arguments that an approver may change.
    pub edit: Vec<String>,
}

/// The refusal of a call or question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRefusal {
    /// The rule by name.
    pub rule: String,
    /// The operator's reason.
    pub reason: String,
}

impl fmt::Display for RuleRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rule `{}` refuses it: {}", self.rule, self.reason)
    }
}
