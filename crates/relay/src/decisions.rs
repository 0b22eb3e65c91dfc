//! An operator's decisions about calls and questions, as the relay asks for them: made by the shell, whose rules the relay does not
//! know.

use std::borrow::Cow;
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
    /// Decides about a question that the server asks; `call` is `None` if it is not known for which call. It may be
    /// asked often about one question, so it tells nobody.
    fn plan(
        &self,
        now: Timestamp,
        call: Option<CallFacts<'_>>,
        question: QuestionParts<'_>,
    ) -> Planned;
    /// Returns the decisions about questions as they are now, for questions that may be of several calls.
    fn at(&self, now: Timestamp) -> Box<dyn QuestionDecisions + '_> {
        let decisions = self;
        Box::new(Each { decisions, now })
    }
    /// A question was not asked: a rule refuses it, or its people cannot be asked. Told once of each question, with the call for which
    /// that was decided, where it is known.
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

/// The decisions about questions at one moment: they do not change while this is held.
pub trait QuestionDecisions {
    /// Returns a text that two calls share only where the decision about a question is the same for both, whatever the question.
    fn group_of<'c>(&self, call: &'c CallSummary) -> Cow<'c, str> {
        Cow::Borrowed(&call.digest)
    }
    /// Decides about a question for each of these calls in turn, up to the first for which it is refused.
    fn plan(&self, calls: &[Option<CallFacts<'_>>], question: QuestionParts<'_>) -> Vec<Planned>;
}

/// A call, and the facts that its server lists of its tool.
pub type CallFacts<'a> = (&'a CallSummary, Option<&'a ToolFacts>);

/// Decisions that are asked for anew for each call.
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
