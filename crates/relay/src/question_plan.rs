//! An operator's decision about a question, for the call that asks or for all calls that may have asked.
//!
//! A question that may belong to several calls is decided about for each of them, including those that have ended here
//! and that the server may still be processing. The strictest decision counts: first a refusal, then the people whom a
//! rule asks. If rules ask different people, the question is refused. Calls that are decided alike for every question
//! share one decision: for example, the calls of one tool if no rule reads their arguments.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::ElicitRequest;

use crate::decisions::{
    CallFacts, PeopleAsked, Planned, QuestionDecisions, QuestionParts, RuleRefusal,
};
use crate::frame_edit::ErrorResponse;
use crate::new_asks::check;
use crate::parts::asks::Attribution;
use crate::parts::task_questions::CallsOfTask;
use crate::{CallSummary, Relay};

/// The most calls in progress that are decided about one by one for a question. A person could not check so many at
/// once: at most 64 are shown, and each costs up to some tenths of a millisecond under the relay's lock.
const DIFFERING: usize = 256;
/// The most links of one response that are decided about; more are not the caller's.
const LINKS: usize = 100;

/// The decision about a question, with the ended calls that it may belong to.
pub(crate) struct QuestionPlan {
    /// The decision.
    pub(crate) planned: Planned,
    /// The ended calls for which a rule decides differently from asking the caller.
    pub(crate) past: Vec<CallSummary>,
    /// The call for which a rule refuses it, if there is one.
    pub(crate) refused_in: Option<CallSummary>,
}

impl From<Planned> for QuestionPlan {
    fn from(planned: Planned) -> Self {
        Self {
            planned,
            past: Vec::new(),
            refused_in: None,
        }
    }
}

/// The calls that the questions of the server may belong to, one of each group that is decided alike.
struct Candidates<'a> {
    groups: Vec<Option<CallFacts<'a>>>,
    /// The ended calls, each with the number of its group.
    past: Vec<(&'a CallSummary, usize)>,
    /// `true` if no call is in progress.
    are_past: bool,
}

/// The recipients of a response's questions that are passed on unchanged.
pub(crate) enum Passed {
    /// All are for the caller.
    Callers,
    /// One is for others.
    Others(QuestionPlan),
    /// Undecidable: too many, of too many calls, or unreadable.
    Unjudged,
}

/// The strictest of several decisions.
#[derive(Default)]
struct Strictest {
    open_for: Option<Duration>,
    people: Option<Box<PeopleAsked>>,
    refusal: Option<RuleRefusal>,
    /// The number of the decision that is the refusal.
    refused: Option<usize>,
    added: usize,
    /// The rule that asks other people than the first.
    other_rule: Option<String>,
}

impl Strictest {
    fn add(&mut self, planned: Planned) {
        match planned {
            Planned::Caller { open_for } => {
                let shortest = self.open_for.into_iter().chain(open_for).min();
                self.open_for = shortest;
            }
            Planned::People(asked) => match &self.people {
                None => self.people = Some(asked),
                Some(known) => {
                    if known.rule != asked.rule || known.team.rule_digest != asked.team.rule_digest
                    {
                        self.other_rule.get_or_insert(asked.rule);
                    }
                }
            },
            Planned::Refuse(refusal) => {
                self.refusal.get_or_insert(refusal);
                self.refused.get_or_insert(self.added);
            }
        }
        self.added += 1;
    }

    fn is_callers(&self) -> bool {
        self.refusal.is_none() && self.people.is_none()
    }

    fn into_planned(self) -> Planned {
        match (self.refusal, self.people, self.other_rule) {
            (Some(refusal), _, _) => Planned::Refuse(refusal),
            (None, Some(asked), Some(other)) => Planned::Refuse(RuleRefusal {
                reason: format!(
                    "several calls may have asked, and the rule `{other}` asks other people about one of them; make \
                     one call at a time"
                ),
                rule: asked.rule,
            }),
            (None, Some(asked), None) => Planned::People(asked),
            (None, None, _) => Planned::Caller {
                open_for: self.open_for,
            },
        }
    }
}

impl Relay {
    /// Returns the operator's decision about a question of the server. `Err` if too many different calls may have asked
    /// it.
    pub(crate) fn planned(
        &mut self,
        now: Timestamp,
        attribution: &Attribution,
        question: QuestionParts<'_>,
    ) -> Result<QuestionPlan, ErrorResponse> {
        let Some(decisions) = self.settings.decisions.clone() else {
            return Ok(Planned::Caller { open_for: None }.into());
        };
        let decisions = decisions.at(now);
        let candidates = self.candidates(attribution, &*decisions)?;
        Ok(candidates.decide(&*decisions, question))
    }

    /// Returns the calls that a question with this attribution may belong to.
    fn candidates(
        &mut self,
        attribution: &Attribution,
        decisions: &dyn QuestionDecisions,
    ) -> Result<Candidates<'_>, ErrorResponse> {
        if attribution.is_certain() {
            let call = attribution.call();
            let call = call.and_then(|call| self.calls.get_mut(call)?.summary());
            let catalog = &self.catalog;
            let facts = |call: &CallSummary| catalog.facts_of(call.kind, &call.target);
            return Ok(Candidates {
                groups: vec![call.map(|call| (call, facts(call)))],
                past: Vec::new(),
                are_past: false,
            });
        }
        self.calls.read_asking();
        self.all_candidates(decisions)
    }

    /// Returns all calls that may ask and whose summaries were read. If one of them is unknown, rules about calls
    /// cannot be applied.
    fn all_candidates(
        &self,
        decisions: &dyn QuestionDecisions,
    ) -> Result<Candidates<'_>, ErrorResponse> {
        let mut is_known = !self.past_calls.is_incomplete();
        let mut seen = HashSet::new();
        let mut numbers = HashMap::new();
        let mut found = Candidates {
            groups: Vec::new(),
            past: Vec::new(),
            are_past: true,
        };
        let mut group_of = |call, groups: &mut Vec<_>| {
            *numbers.entry(decisions.group_of(call)).or_insert_with(|| {
                let tool = self.catalog.facts_of(call.kind, &call.target);
                groups.push(Some((call, tool)));
                groups.len() - 1
            })
        };
        for (_, call) in self.calls.asking() {
            found.are_past = false;
            let Some(call) = call.known_summary() else {
                is_known = false;
                continue;
            };
            if seen.insert((&*call.digest, call.proof)) {
                group_of(call, &mut found.groups);
                if found.groups.len() > DIFFERING {
                    return Err(too_many_differ());
                }
            }
        }
        for call in self.past_calls.all() {
            if seen.insert((&*call.digest, call.proof)) {
                let group = group_of(call, &mut found.groups);
                found.past.push((call, group));
            }
        }
        if !is_known {
            found.groups.push(None);
        }
        Ok(found)
    }

    /// Returns the operator's decision about a question in this call; `None` if its call is unknown.
    pub(crate) fn planned_for(
        &self,
        now: Timestamp,
        call: Option<&CallSummary>,
        question: QuestionParts<'_>,
    ) -> Planned {
        let Some(decisions) = &self.settings.decisions else {
            return Planned::Caller { open_for: None };
        };
        let call = call.map(|call| (call, self.catalog.facts_of(call.kind, &call.target)));
        decisions.plan(now, call, question)
    }

    /// Returns the operator's decision about a question of a task that these calls became: the strictest of those for each.
    pub(crate) fn planned_in_task(
        &self,
        now: Timestamp,
        calls: &CallsOfTask,
        question: QuestionParts<'_>,
    ) -> Planned {
        let known = calls.known.iter().map(Some);
        let unknown = calls.are_incomplete || calls.known.is_empty();
        let mut strictest = Strictest::default();
        for call in known.chain(unknown.then_some(None)) {
            strictest.add(self.planned_for(now, call, question));
        }
        strictest.into_planned()
    }

    /// Decides about questions that the client would get unchanged, up to the first that a rule gives to others, or
    /// refuses.
    pub(crate) fn judge_passed(
        &mut self,
        now: Timestamp,
        asking: &Attribution,
        questions: &[ElicitRequest],
    ) -> Passed {
        let Some(decisions) = self.settings.decisions.clone() else {
            return Passed::Callers;
        };
        if questions.len() > LINKS {
            return Passed::Unjudged;
        }
        let decisions = decisions.at(now);
        let Ok(candidates) = self.candidates(asking, &*decisions) else {
            return Passed::Unjudged;
        };
        for request in questions {
            // An illegal one is refused when it is asked.
            let checked = check(request).unwrap_or_default();
            let plan = candidates.decide(&*decisions, checked.parts(request));
            if !matches!(plan.planned, Planned::Caller { .. }) {
                return Passed::Others(plan);
            }
        }
        Passed::Callers
    }
}

impl Candidates<'_> {
    /// Returns the strictest decision about a question for all of them.
    fn decide(
        &self,
        decisions: &dyn QuestionDecisions,
        question: QuestionParts<'_>,
    ) -> QuestionPlan {
        let mut strictest = Strictest::default();
        let mut past = Vec::new();
        let mut is_callers = Vec::new();
        for planned in decisions.plan(&self.groups, question) {
            is_callers.push(matches!(planned, Planned::Caller { .. }));
            strictest.add(planned);
        }
        if self.are_past && strictest.is_callers() {
            // If no call is known to be in progress, the question may belong to any call.
            for planned in decisions.plan(&[None], question) {
                strictest.add(planned);
            }
        }
        for (call, group) in &self.past {
            if is_callers.get(*group) == Some(&false) {
                past.push((*call).clone());
            }
        }
        let refused = strictest.refused;
        let refused = refused.and_then(|group| *self.groups.get(group)?);
        QuestionPlan {
            refused_in: refused.map(|(call, _)| call.clone()),
            planned: strictest.into_planned(),
            past,
        }
    }
}

fn too_many_differ() -> ErrorResponse {
    let why = format!(
        "nobody is asked: more than {DIFFERING} calls that differ are at work, each may have asked, and the rules would have to be judged about \
         each; make fewer calls at once"
    );
    ErrorResponse::new(-32000, why)
}
