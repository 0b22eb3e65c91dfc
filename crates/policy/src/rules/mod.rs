//! The rules of a file, and their decisions about calls and questions.
//!
//! Rules are evaluated in two phases of a call. At *admission*, before the call goes to its server, those with
//! `approve`, `allow`, or a `refuse` that needs no question apply. At *asking*, when the server asks, the others apply.
//! In each phase the first matching rule decides. An error in a condition fails closed: a rule that restricts matches,
//! and a rule that allows does not.

mod decide;
mod keys;
mod order;
mod outcome;
mod plan_reader;
mod read;
mod recall;
mod rule_reader;
pub(crate) mod targets;
mod unmatchable;

use std::num::NonZeroU8;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use self::decide::Index;
pub use self::decide::{
    Admit, ArgumentsRead, PlannedQuestion, Preview, RuleError, SkipReason, Skipped,
};
pub use self::outcome::CallOutcome;
pub use self::read::Loaded;
pub use self::recall::{CandidateRule, DecisionKind, Gaps, Recall};
use self::targets::Targets;
pub use self::targets::{Coverage, ToolCoverage};
use crate::condition::{Condition, Interner};
pub use crate::document::duration_text;
use crate::glob::Glob;
use crate::parts::Part;
use crate::people::{Addressee, People};
use crate::schedule::{Escalation, Schedule};
use crate::spelling::spelled;

/// The default time for which a question is open.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// The reason why a rule that excludes the caller refuses a call or a question, if the caller may be any of the people
/// who are asked.
pub const CALLER_UNKNOWN: &str = "it wants others than the caller to answer, and it is not known which person calls; \
     a key says so with `tokens make --for NAME` or `--no-person`";

/// The rules of a file with its people.
#[derive(Debug)]
pub struct Rules {
    people: People,
    all: Vec<Rule>,
    names: Interner,
    index: Index,
    time_zone: Option<String>,
}

impl Rules {
    /// Returns the people, groups and roles of the file.
    pub fn people(&self) -> &People {
        &self.people
    }

    /// Returns the rules in the order of the file.
    pub fn rules(&self) -> &[Rule] {
        &self.all
    }

    /// Returns the rule of this name.
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        self.all.iter().find(|rule| rule.name == name)
    }

    /// Returns the time zone of the file, as written.
    pub fn time_zone(&self) -> Option<&str> {
        self.time_zone.as_deref()
    }
}

/// A phase of a call in which rules are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RulePhase {
    /// Before the call goes to its server.
    Admission,
    /// When the server asks.
    Asking,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    name: String,
    line: usize,
    servers: Vec<Glob>,
    targets: Targets,
    condition: Option<Condition>,
    decision: Decision,
    on_error: OnError,
    phase: RulePhase,
    needs_question: bool,
}

impl Rule {
    /// Returns the name: that in the file, or `rule-N` for the Nth.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the line at which the rule begins.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the rule's decision.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Returns the whole rule in one spelling, independent of its position in the file: for a digest, which stays the
    /// same in later versions.
    pub fn canonical_text(&self) -> String {
        self.text_with(&self.decision)
    }

    /// Returns the rule with this decision in its spelling.
    fn text_with(&self, decision: &Decision) -> String {
        let Self {
            name,
            line: _,
            servers,
            targets,
            condition,
            decision: _,
            on_error,
            phase: _,
            needs_question: _,
        } = self;
        let parts = [
            spelled(name),
            spelled(servers),
            spelled(targets),
            spelled(condition),
            spelled(decision),
            spelled(on_error),
        ];
        parts.join(" ")
    }

    /// Returns the same without the parts that do not affect an open question or an approved call ([`Plan::deciding`]).
    pub fn deciding_text(&self) -> String {
        let decision = match &self.decision {
            Decision::Approve(approval) => Decision::Approve(ApprovalPlan {
                plan: Box::new(approval.plan.deciding()),
                ..approval.clone()
            }),
            Decision::Ask(plan) => Decision::Ask(Box::new(plan.deciding())),
            decision @ (Decision::Allow | Decision::Refuse(_)) => decision.clone(),
        };
        self.text_with(&decision)
    }

    /// Returns the phase in which the rule is evaluated.
    pub fn phase(&self) -> RulePhase {
        self.phase
    }

    /// Returns the names of the arguments that the rule's condition may read; `None` if it may read all of them. A name
    /// that only looks like one that is read is returned, too.
    pub fn arguments_named(&self) -> Option<Vec<String>> {
        const VARIABLE: &str = "arguments";
        let source = self.condition.as_ref().map_or("", Condition::source);
        let mut names = Vec::new();
        for (at, _) in source.match_indices(VARIABLE) {
            let rest = source[at + VARIABLE.len()..].strip_prefix('.')?;
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            // `arguments.exists(..)` reads all of them.
            if name.is_empty() || after.starts_with('(') {
                return None;
            }
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Some(names)
    }

    /// Returns `true` if the rule has no condition, so that it hides later rules with the same patterns.
    fn is_unconditional(&self) -> bool {
        self.condition.is_none() && !self.needs_question
    }
}

impl Decision {
    /// Returns the plan of the question that the rule asks; `None` for a rule that asks none.
    pub fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Approve(approval) => Some(&approval.plan),
            Self::Ask(plan) => Some(plan),
            Self::Allow | Self::Refuse(_) => None,
        }
    }

    /// Returns `true` if the decision restricts, so that an error in a condition must not skip it.
    fn restricts(&self) -> bool {
        match self {
            Self::Refuse(_) | Self::Approve(_) => true,
            Self::Ask(plan) => !plan.ask.is_caller(),
            Self::Allow => false,
        }
    }
}

/// The decision of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The call is admitted; no later approval applies.
    Allow,
    /// The call or the question is refused.
    Refuse(RefuseDecision),
    /// The call waits until people have approved it.
    Approve(ApprovalPlan),
    /// The server's questions go to these people.
    Ask(Box<Plan>),
}

/// The refusal of a call or a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefuseDecision {
    /// The reason, for people.
    pub reason: String,
    /// The modes of questions that are refused; empty for any.
    pub modes: Vec<String>,
    /// `true` if questions for credentials are refused.
    pub credentials: bool,
}

impl RefuseDecision {
    /// Returns `true` if only some questions are refused.
    fn is_about_questions(&self) -> bool {
        self.credentials || !self.modes.is_empty()
    }
}

/// A question about a call, which the gateway asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalPlan {
    /// The people, and the times.
    pub plan: Box<Plan>,
    /// JSON Pointers to the arguments that an approver may change.
    pub edit: Vec<String>,
    /// The time for which an approval applies to the same call made again; `None` for this one call.
    pub good_for: Option<Duration>,
}

/// The people who are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedPeople {
    /// The people and groups.
    pub to: Vec<Addressee>,
    /// The parts that must all be filled (`each`); none if any `need` of them must confirm.
    pub each: Vec<Part>,
    /// The number of people who must confirm: with parts, their sum.
    pub need: NonZeroU8,
    /// `true` if the caller's own person cannot answer.
    pub not_caller: bool,
    /// `true` if the file has `any`.
    pub is_any: bool,
}

impl AskedPeople {
    /// Returns the people of a question without a rule: its caller.
    pub fn caller() -> Self {
        Self {
            to: vec![Addressee::Caller],
            each: Vec::new(),
            need: NonZeroU8::MIN,
            not_caller: false,
            is_any: false,
        }
    }

    /// Returns the people of one part.
    fn of_part(part: &Part) -> Self {
        Self {
            to: part.to.clone(),
            each: Vec::new(),
            need: part.need,
            not_caller: false,
            is_any: part.to.len() > 1,
        }
    }

    /// Returns `true` if only the caller is asked.
    pub fn is_caller(&self) -> bool {
        self.to == [Addressee::Caller]
    }
}

impl Serialize for AskedPeople {
    /// Serializes as in the file: `"caller"`, or a table.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_caller() {
            return serializer.serialize_str("caller");
        }
        let mut map = serializer.serialize_map(None)?;
        if !self.each.is_empty() {
            let parts: Vec<Self> = self.each.iter().map(Self::of_part).collect();
            map.serialize_entry("each", &parts)?;
            if self.not_caller {
                map.serialize_entry("not-caller", &true)?;
            }
            return map.end();
        }
        match self.to.as_slice() {
            [Addressee::Person(name)] if !self.is_any => map.serialize_entry("person", name)?,
            [Addressee::Group(name)] if !self.is_any => map.serialize_entry("group", name)?,
            any => map.serialize_entry("any", any)?,
        }
        if self.need > NonZeroU8::MIN {
            map.serialize_entry("need", &self.need)?;
        }
        if self.not_caller {
            map.serialize_entry("not-caller", &true)?;
        }
        map.end()
    }
}

/// The end of a question that was not answered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnTimeout {
    /// The call ends with an error.
    #[default]
    Error,
    /// The call is handed back, and can be made again.
    HandBack,
}

/// The handling of a condition that cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnError {
    Match,
    Skip,
    Refuse,
}

/// The details that messages outside the gateway may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reveal {
    /// The server's name and a link.
    Minimal,
    /// The question too.
    #[default]
    Question,
    /// The arguments too.
    Arguments,
}

/// The places, besides the history of the question, that a person's reason for a decline and comment on an approval
/// reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReasonsReach {
    /// The caller, whose program can do better next time.
    pub caller: bool,
    /// The audit, as text.
    pub audit: bool,
}

impl Default for ReasonsReach {
    /// Returns the caller alone: the page says so before the person writes. The audit stays free of texts of people,
    /// since it is kept longer, exported, and cannot be corrected.
    fn default() -> Self {
        Self {
            caller: true,
            audit: false,
        }
    }
}

/// The plan for one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The people.
    pub ask: AskedPeople,
    /// The time for which it is open; `None` for the server's setting.
    pub deadline: Option<Duration>,
    /// The times at which people who have not acted are reminded.
    pub remind: Vec<Duration>,
    /// The times at which more people are asked.
    pub escalate: Vec<Escalation>,
    /// The end if it is not answered in time.
    pub on_timeout: OnTimeout,
    /// The lifetime of a claim; `None` if questions cannot be claimed.
    pub claim: Option<Duration>,
    /// People and groups to whom it may be delegated, beyond those asked.
    pub delegate_to: Vec<Addressee>,
    /// The maximum age of a login for answering.
    pub reauth: Option<Duration>,
    /// The details that messages may contain.
    pub reveal: Reveal,
    /// The places that reasons and comments on decisions reach.
    pub reasons: ReasonsReach,
    /// The operator's explanation for those who are asked.
    pub explain: Option<String>,
    /// The address of a page with more of it.
    pub link: Option<String>,
    /// The time after the end for which the arguments of the call are kept for auditors; `None` if they are erased.
    pub keep_arguments: Option<Duration>,
}

impl Plan {
    /// Returns the plan for a question without a rule.
    pub fn caller() -> Self {
        Self {
            ask: AskedPeople::caller(),
            deadline: None,
            remind: Vec::new(),
            escalate: Vec::new(),
            on_timeout: OnTimeout::default(),
            claim: Some(DEFAULT_CLAIM),
            delegate_to: Vec::new(),
            reauth: None,
            reveal: Reveal::default(),
            reasons: ReasonsReach::default(),
            explain: None,
            link: None,
            keep_arguments: None,
        }
    }

    /// Returns the plan without the parts that do not affect an open question: message details, explanations, reasons,
    /// kept arguments, reminders, claims, and delegation. Two plans that agree in the rest ask the same question.
    #[must_use]
    pub fn deciding(&self) -> Self {
        let usual = Self::caller();
        Self {
            reveal: usual.reveal,
            remind: usual.remind,
            claim: usual.claim,
            delegate_to: usual.delegate_to,
            reasons: usual.reasons,
            explain: usual.explain,
            link: usual.link,
            keep_arguments: usual.keep_arguments,
            ..self.clone()
        }
    }

    /// Returns the parts of [`deciding`](Self::deciding) in one spelling: for a digest, which stays the same in later
    /// versions.
    pub fn deciding_text(&self) -> String {
        spelled(&self.deciding())
    }

    /// Returns the schedule; `usual` is the server's deadline.
    pub fn schedule(&self, usual: Duration) -> Schedule {
        Schedule::new(self.deadline.unwrap_or(usual), &self.remind, &self.escalate)
    }
}

/// The default lifetime of a claim.
const DEFAULT_CLAIM: Duration = Duration::from_secs(15 * 60);
