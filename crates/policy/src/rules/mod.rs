//! The rules of a file, and what they decide about a call and a question.
//!
//! Rules are read twice in the life of a call. At *admission*, before the call goes to its server, those count that have `approve`,
//! `allow`, or a `refuse` that needs no question. At *asking*, when the server asks, the others count. Each time the first rule that
//! matches decides. An error in a condition fails closed: a rule that restricts matches, a rule that loosens does not.

mod decide;
mod never;
mod order;
mod outcome;
mod plan_reader;
mod read;
mod recall;
mod rule_reader;
mod targets;

use std::num::NonZeroU8;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use self::decide::Index;
pub use self::decide::{Admit, ArgumentsRead, Planned, Preview, RuleError, SkipReason, Skipped};
pub use self::outcome::CallOutcome;
pub use self::read::Loaded;
pub use self::recall::{Candidate, Gaps, Recall, Verdict};
use self::targets::Targets;
pub use self::targets::{Coverage, ToolCoverage};
use crate::condition::{Condition, Interner};
pub use crate::document::duration_text;
use crate::glob::Glob;
use crate::people::{Addressee, People};
use crate::schedule::{Escalation, Schedule};

/// The time for which a question is open where no rule says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// The reason for which a rule that excludes the caller refuses a call or a question, where the caller may be any of those who are asked.
pub const CALLER_UNKNOWN: &str = "it wants others than the caller to answer, and it is not known which person calls; \
     a key says so with `tokens make --for NAME` or `--no-person`";

/// The rules of a file with the people that they name.
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

/// A step in the life of a call at which rules are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
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
    phase: Phase,
    needs_question: bool,
}

impl Rule {
    /// Returns the name: the file's, or `rule-N` for the Nth.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the line at which the rule begins.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns what the rule decides.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Returns all that the rule says, in one spelling, wherever it stands in the file: for a digest.
    pub fn canonical_text(&self) -> String {
        self.text_with(&self.decision)
    }

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
        format!("{name:?} {servers:?} {targets:?} {condition:?} {decision:?} {on_error:?}")
    }

    /// Returns the same without what decides nothing about an open question or a call that people approved ([`Plan::deciding`]).
    pub fn deciding_text(&self) -> String {
        let decision = match &self.decision {
            Decision::Approve(approval) => Decision::Approve(Approval {
                plan: Box::new(approval.plan.deciding()),
                ..approval.clone()
            }),
            Decision::Ask(plan) => Decision::Ask(Box::new(plan.deciding())),
            decision @ (Decision::Allow | Decision::Refuse(_)) => decision.clone(),
        };
        self.text_with(&decision)
    }

    /// Returns the step at which the rule is read.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns `true` if an earlier rule without a condition takes every call and question of this one.
    fn is_unconditional(&self) -> bool {
        self.condition.is_none() && !self.needs_question
    }
}

impl Decision {
    /// Returns the plan of the question that the rule has people asked; `None` for a rule that has nobody asked.
    pub fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Approve(approval) => Some(&approval.plan),
            Self::Ask(plan) => Some(plan),
            Self::Allow | Self::Refuse(_) => None,
        }
    }

    /// Returns `true` if the decision takes something away, so that an error in a condition must not skip it.
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
    /// The call is admitted; no approval further down applies.
    Allow,
    /// The call or the question is refused.
    Refuse(Refusal),
    /// The call waits until people have approved it.
    Approve(Approval),
    /// The server's questions go to these people.
    Ask(Box<Plan>),
}

/// The refusal of a call or a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, for people.
    pub reason: String,
    /// The modes of questions that are refused; empty for any.
    pub modes: Vec<String>,
    /// `true` if questions for credentials are refused.
    pub credentials: bool,
}

impl Refusal {
    /// Returns `true` if only some questions are refused.
    fn is_about_questions(&self) -> bool {
        self.credentials || !self.modes.is_empty()
    }
}

/// A question before a call, which the gateway asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The people, and the times.
    pub plan: Box<Plan>,
    /// JSON Pointers to the arguments that an approver may change.
    pub edit: Vec<String>,
    /// The time for which an approval serves the same call made again; `None` for this one call.
    pub good_for: Option<Duration>,
}

/// The people who are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The people and groups.
    pub to: Vec<Addressee>,
    /// The number of people who must agree.
    pub need: NonZeroU8,
    /// `true` if the caller's own person cannot answer.
    pub not_caller: bool,
    /// `true` if the file wrote `any`.
    pub is_any: bool,
}

impl Ask {
    /// Returns the people of a question for which no rule speaks: its caller.
    pub fn caller() -> Self {
        Self {
            to: vec![Addressee::Caller],
            need: NonZeroU8::MIN,
            not_caller: false,
            is_any: false,
        }
    }

    /// Returns `true` if the caller alone is asked.
    pub fn is_caller(&self) -> bool {
        self.to == [Addressee::Caller]
    }
}

impl Serialize for Ask {
    /// Writes it as the file does: `"caller"`, or a table.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_caller() {
            return serializer.serialize_str("caller");
        }
        let mut map = serializer.serialize_map(None)?;
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

/// The ending of a question that nobody answered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnTimeout {
    /// The call ends with an error.
    #[default]
    Error,
    /// The call is handed back, and can be made again.
    HandBack,
}

/// The treatment of a condition that cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnError {
    Match,
    Skip,
    Refuse,
}

/// The amount that messages outside the gateway may tell.
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

/// The plan for one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The people.
    pub ask: Ask,
    /// The time for which it is open; `None` for the server's.
    pub deadline: Option<Duration>,
    /// Times at which those who have not acted are told again.
    pub remind: Vec<Duration>,
    /// Times at which more people are asked.
    pub escalate: Vec<Escalation>,
    /// The ending when nobody answers in time.
    pub on_timeout: OnTimeout,
    /// The time for which a claim holds; `None` where questions cannot be claimed.
    pub claim: Option<Duration>,
    /// People and groups to whom it may be delegated, beyond those asked.
    pub delegate_to: Vec<Addressee>,
    /// The greatest age of a login that may answer.
    pub reauth: Option<Duration>,
    /// The amount that messages may tell.
    pub reveal: Reveal,
}

impl Plan {
    /// Returns the plan for a question of which no rule speaks.
    pub fn caller() -> Self {
        Self {
            ask: Ask::caller(),
            deadline: None,
            remind: Vec::new(),
            escalate: Vec::new(),
            on_timeout: OnTimeout::default(),
            claim: Some(DEFAULT_CLAIM),
            delegate_to: Vec::new(),
            reauth: None,
            reveal: Reveal::default(),
        }
    }

    /// Returns the plan without what decides nothing about a question that is open: the amount that messages tell, reminders, claims,
    /// and to whom it may be handed on. Two plans that are alike in the rest ask the same question.
    #[must_use]
    pub fn deciding(&self) -> Self {
        let usual = Self::caller();
        Self {
            reveal: usual.reveal,
            remind: usual.remind,
            claim: usual.claim,
            delegate_to: usual.delegate_to,
            ..self.clone()
        }
    }

    /// Returns the times; `usual` is the server's deadline.
    pub fn schedule(&self, usual: Duration) -> Schedule {
        Schedule::new(self.deadline.unwrap_or(usual), &self.remind, &self.escalate)
    }
}

/// The time for which a claim holds where no rule says otherwise.
const DEFAULT_CLAIM: Duration = Duration::from_secs(15 * 60);
