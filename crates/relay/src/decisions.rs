//! An operator's decisions about calls and questions, as the relay requests them. The shell makes them; the relay does
//! not know its rules.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{CallSummary, TeamPlan};
use mcp_elicit_core::wire::ElicitRequest;

/// The decisions about the calls of one caller at one server, each by the proof of the request that made it last
/// ([`CallSummary::proof`]). Requested under the relay's lock, so they must be pure and quick.
pub trait Decisions: fmt::Debug + Send + Sync {
    /// Decides about a call before it goes to the server.
    fn admit(&self, now: Timestamp, call: &CallSummary, tool: Option<&ToolFacts>) -> Admission;
    /// Decides whether to refuse a call that was admitted, or waits. It does not grant approvals.
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
    /// Decides about a question of the server; `call` is `None` if its call is unknown. It may be called often for one
    /// question, so it reports nothing.
    fn plan(
        &self,
        now: Timestamp,
        call: Option<CallFacts<'_>>,
        question: QuestionParts<'_>,
    ) -> Planned;
    /// Returns a snapshot of the decisions about questions, for questions that may belong to several calls.
    fn at(&self, now: Timestamp) -> Box<dyn QuestionDecisions + '_> {
        let decisions = self;
        Box::new(Each { decisions, now })
    }
    /// Reports that a question was not asked, because a rule refuses it or its people cannot be asked. It is called
    /// once per question, with the call that was decided about, if known.
    fn not_asked(&self, call: Option<&CallSummary>, refusal: &RuleRefusal);
    /// Reports that a call was approved.
    fn approved(
        &self,
        now: Timestamp,
        call: &CallSummary,
        approval: &Approval,
        decision: &ApprovedCall<'_>,
    );
    /// Reports that a call has started because it was approved recently.
    fn grant_used(&self, _now: Timestamp, _call: &CallSummary, _approval: &Approval) {}
    /// Returns the state of the vote on a question, by the record's id; `None` if it is not known.
    fn progress(&self, _question: &str) -> Option<VoteProgress> {
        None
    }
}

/// The result of an approval.
#[derive(Clone, Copy)]
pub struct ApprovedCall<'a> {
    /// The approvers' answers, JSON.
    pub answers: &'a str,
    /// JSON Pointers to the arguments that they changed.
    pub edited: &'a [String],
    /// The record's id of the question in which they approved it.
    pub question: Option<&'a str>,
    /// The digest of the call as it is made, with the changed arguments.
    pub digest: &'a str,
}

/// The state of the vote on a question, for the caller who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoteProgress {
    /// The people who are missing, in words: `2 of platform, security`.
    pub missing: String,
    /// The number of people who have confirmed.
    pub votes: usize,
    /// The number of people who must confirm.
    pub need: usize,
    /// The time of the question.
    pub asked_at: Timestamp,
    /// The time at which it ends unanswered.
    pub until: Option<Timestamp>,
}

/// A snapshot of the decisions about questions, which does not change while it is held.
pub trait QuestionDecisions {
    /// Returns a key that two calls share only if every question is decided in the same way for both.
    fn group_of<'c>(&self, call: &'c CallSummary) -> Cow<'c, str> {
        Cow::Borrowed(&call.digest)
    }
    /// Decides about a question for each of these calls in turn, up to the first refusal.
    fn plan(&self, calls: &[Option<CallFacts<'_>>], question: QuestionParts<'_>) -> Vec<Planned>;
}

/// A call, and the facts that its server lists of its tool.
pub type CallFacts<'a> = (&'a CallSummary, Option<&'a ToolFacts>);

/// Decisions that are requested for each call.
struct Each<'a, D: ?Sized> {
    decisions: &'a D,
    now: Timestamp,
}

impl<D: Decisions + ?Sized> QuestionDecisions for Each<'_, D> {
    fn plan(&self, calls: &[Option<CallFacts<'_>>], question: QuestionParts<'_>) -> Vec<Planned> {
        let plan = |call: &Option<CallFacts<'_>>| self.decisions.plan(self.now, *call, question);
        up_to_refusal(calls.iter().map(plan))
    }
}

/// Returns these decisions up to the first refusal.
pub fn up_to_refusal(decisions: impl Iterator<Item = Planned>) -> Vec<Planned> {
    let mut all = Vec::new();
    for planned in decisions {
        let is_last = matches!(planned, Planned::Refuse(_));
        all.push(planned);
        if is_last {
            break;
        }
    }
    all
}

/// The parts of a question that a decision depends on.
#[derive(Clone, Copy)]
pub struct QuestionParts<'a> {
    /// The question.
    pub request: &'a ElicitRequest,
    /// The form, if it has one.
    pub form: Option<&'a Form>,
    /// `true` if it seems to ask for a credential.
    pub has_credentials: bool,
}

/// The facts that a server lists of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFacts {
    /// `readOnlyHint`, if the server lists it.
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
    /// `inputSchema` as JSON, unless it is too large to keep.
    pub input_schema: Option<Box<str>>,
    /// `description`, at most [`MAX_DESCRIPTION`](mcp_elicit_core::question::ToolClaims::MAX_DESCRIPTION) characters of
    /// it. Rules do not read it.
    pub description: Option<Box<str>>,
}

/// The decision about a call.
#[derive(Clone, Debug)]
pub enum Admission {
    /// The call goes to the server.
    Free,
    /// The call is refused.
    Refuse(RuleRefusal),
    /// The call waits until people have approved it.
    Approve(Box<Approval>),
    /// The same call was approved recently, with these answers (JSON).
    Granted(Box<Approval>, String),
}

/// The decision about a question.
#[derive(Clone, Debug)]
pub enum Planned {
    /// The caller is asked, as without a rule.
    Caller {
        /// The time for which it is open, if a rule sets it.
        open_for: Option<Duration>,
    },
    /// Other people are asked, never the client.
    People(Box<PeopleAsked>),
    /// The question is not asked.
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
    /// `true` if a call without an answer in time is handed back, to be made again.
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
