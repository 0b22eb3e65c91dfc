//! Matching: the first rule of a phase whose patterns and condition match.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use serde::Serialize;

use super::{ApprovalPlan, Decision, OnError, Plan, RefuseDecision, Rule, RulePhase, Rules};
use crate::condition::{Condition, ConditionError, Environment};
use crate::facts::{Facts, KnownCall, QuestionFacts};
use crate::people::Addressee;

/// The decision about a call, before it goes to its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admit<'r> {
    /// The call proceeds, with the rule that allowed it, if any.
    Free(Option<&'r str>),
    /// It is refused by this rule.
    Refuse(&'r str, RefuseDecision),
    /// It waits for approval by this rule.
    Approve(&'r str, ApprovalPlan),
}

/// The decision about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedQuestion<'r> {
    /// The question is asked, with the rule, if one matched.
    Ask(Option<&'r str>, Box<Plan>),
    /// It is refused by this rule.
    Refuse(&'r str, RefuseDecision),
}

/// The parts of a call's arguments that the decision about any question in it may depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArgumentsRead {
    /// `true` if a condition reads them.
    pub by_conditions: bool,
    /// `true` if they may have to be shown to people, so that their length matters.
    pub by_people: bool,
}

/// The reason why a rule before the deciding one did not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// It is for other servers.
    Server,
    /// It is for other tools, prompts or resources.
    Tool,
    /// Its condition is false, or has an error that skips it.
    When,
    /// It is evaluated in the other phase.
    Phase,
    /// It needs a question, and there is none.
    NeedsQuestion,
    /// It refuses other questions.
    Question,
}

/// A rule that did not match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The rule.
    pub rule: String,
    /// Its line.
    pub line: usize,
    /// The reason.
    pub why: SkipReason,
}

/// A condition that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleError {
    /// The rule.
    pub rule: String,
    /// Its line.
    pub line: usize,
    /// The error, without any value of the call.
    pub message: String,
    /// `true` if the rule matched because of it.
    pub matched: bool,
}

/// The steps of one decision, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview<'r> {
    /// The phase that decided.
    pub phase: RulePhase,
    /// The decision about the call.
    pub admit: Admit<'r>,
    /// The decision about the question, if the call is admitted.
    pub planned: Option<PlannedQuestion<'r>>,
    /// `true` if a rule could not be evaluated without a question, so that the decision may differ.
    pub needs_question: bool,
    /// Rules before the deciding one.
    pub skipped: Vec<Skipped>,
    /// Conditions that could not be evaluated.
    pub errors: Vec<RuleError>,
}

enum RuleMatch {
    Match,
    Skip(SkipReason),
    Error(ConditionError),
}

impl Rule {
    fn judge(&self, phase: RulePhase, environment: &Environment<'_>) -> RuleMatch {
        if self.phase != phase {
            return RuleMatch::Skip(SkipReason::Phase);
        }
        let facts = environment.facts;
        if !self.is_for_server(facts.server) {
            return RuleMatch::Skip(SkipReason::Server);
        }
        if self.is_for_target(facts) == Some(false) {
            return RuleMatch::Skip(SkipReason::Tool);
        }
        if self.needs_question {
            let Some(question) = environment.question else {
                return RuleMatch::Skip(SkipReason::NeedsQuestion);
            };
            if let Decision::Refuse(refusal) = &self.decision
                && refusal.is_about_questions()
                && !(refusal.modes.contains(&question.mode)
                    || refusal.credentials && question.credentials)
            {
                return RuleMatch::Skip(SkipReason::Question);
            }
        }
        match self
            .condition
            .as_ref()
            .map(|condition| condition.evaluate(environment))
        {
            // The condition is false for every call.
            Some(Ok(false)) => RuleMatch::Skip(SkipReason::When),
            Some(Err(error)) => RuleMatch::Error(error),
            None | Some(Ok(true)) if self.is_for_target(facts).is_none() => {
                RuleMatch::Error(ConditionError::UnknownCall)
            }
            None | Some(Ok(true)) => RuleMatch::Match,
        }
    }

    /// Returns `true` if the rule applies to the target; `None` if the call is unknown, and the rule does not apply to
    /// all.
    pub(super) fn is_for_target(&self, facts: &Facts<'_>) -> Option<bool> {
        match (&self.targets, &facts.call) {
            (super::Targets::All, _) => Some(true),
            (targets, Some(call)) => Some(targets.matches(call.kind, call.target)),
            (_, None) => None,
        }
    }
}

/// The rule that decides.
#[derive(Clone, Copy)]
enum DecidingRule<'r> {
    Rule(&'r Rule),
    /// A condition could not be evaluated, and its rule then refuses.
    Refused(&'r Rule),
}

/// The notes of one search, if requested.
#[derive(Default)]
struct Notes {
    skipped: Vec<Skipped>,
    errors: Vec<RuleError>,
}

impl Rules {
    fn find<'r>(
        candidates: impl Iterator<Item = &'r Rule>,
        phase: RulePhase,
        environment: &Environment<'_>,
        mut notes: Option<&mut Notes>,
    ) -> Option<DecidingRule<'r>> {
        for rule in candidates {
            let (found, why) = match rule.judge(phase, environment) {
                RuleMatch::Match => (Some(DecidingRule::Rule(rule)), None),
                RuleMatch::Skip(why) => (None, Some(why)),
                RuleMatch::Error(error) => {
                    let found = match rule.on_error {
                        OnError::Match => Some(DecidingRule::Rule(rule)),
                        OnError::Skip => None,
                        OnError::Refuse => Some(DecidingRule::Refused(rule)),
                    };
                    if let Some(notes) = notes.as_deref_mut() {
                        notes.errors.push(RuleError {
                            rule: rule.name.clone(),
                            line: rule.line,
                            message: error.to_string(),
                            matched: found.is_some(),
                        });
                    }
                    let why = found.is_none().then_some(SkipReason::When);
                    (found, why)
                }
            };
            if let (Some(why), Some(notes)) = (why, notes.as_deref_mut()) {
                notes.skipped.push(Skipped {
                    rule: rule.name.clone(),
                    line: rule.line,
                    why,
                });
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Decides whether a call goes to its server, waits for approval or is refused.
    pub fn admit(&self, facts: &Facts<'_>) -> Admit<'_> {
        let environment = Environment::new(facts, None, &self.names);
        let candidates = self
            .index
            .candidates(&self.all, RulePhase::Admission, facts);
        let candidates = candidates.that_may_match(&environment);
        let found = Self::find(
            self.some(&candidates),
            RulePhase::Admission,
            &environment,
            None,
        );
        admitted(found)
    }

    /// Returns the plan of a question, or its refusal.
    pub fn plan(&self, facts: &Facts<'_>, question: &QuestionFacts) -> PlannedQuestion<'_> {
        let environment = Environment::new(facts, Some(question), &self.names);
        let candidates = self.index.candidates(&self.all, RulePhase::Asking, facts);
        let candidates = candidates.that_may_match(&environment);
        let found = Self::find(
            self.some(&candidates),
            RulePhase::Asking,
            &environment,
            None,
        );
        planned(found)
    }

    /// Returns the parts of a call's arguments that [`Rules::plan`] may depend on, by its name alone.
    pub fn arguments_read(&self, facts: &Facts<'_>) -> ArgumentsRead {
        self.index
            .candidates(&self.all, RulePhase::Asking, facts)
            .arguments
    }

    /// Returns the decision of [`Rules::admit`], and if it lets the call proceed, that of [`Rules::plan`], with the
    /// steps of both. Without a question, rules that need one are skipped.
    pub fn preview(&self, facts: &Facts<'_>, question: Option<&QuestionFacts>) -> Preview<'_> {
        let mut notes = Notes::default();
        let environment = Environment::new(facts, None, &self.names);
        let admit = admitted(Self::find(
            self.all.iter(),
            RulePhase::Admission,
            &environment,
            Some(&mut notes),
        ));
        if !matches!(admit, Admit::Free(_)) {
            return Preview {
                phase: RulePhase::Admission,
                admit,
                planned: None,
                needs_question: false,
                skipped: notes.skipped,
                errors: notes.errors,
            };
        }
        // The call was admitted; only the errors of that phase are reported.
        let mut asking = Notes {
            errors: notes.errors,
            ..Notes::default()
        };
        let environment = Environment::new(facts, question, &self.names);
        let planned = planned(Self::find(
            self.all.iter(),
            RulePhase::Asking,
            &environment,
            Some(&mut asking),
        ));
        Preview {
            phase: RulePhase::Asking,
            admit,
            planned: Some(planned),
            needs_question: asking
                .skipped
                .iter()
                .any(|skipped| skipped.why == SkipReason::NeedsQuestion),
            skipped: asking.skipped,
            errors: asking.errors,
        }
    }

    fn some<'r, 'c>(
        &'r self,
        candidates: &'c [usize],
    ) -> impl Iterator<Item = &'r Rule> + use<'r, 'c> {
        candidates.iter().filter_map(|number| self.all.get(*number))
    }

    /// Returns everyone who may be asked by a plan, now or after escalation.
    pub fn addressees<'p>(&self, plan: &'p Plan) -> Vec<&'p Addressee> {
        plan.ask
            .to
            .iter()
            .chain(plan.escalate.iter().map(|step| &step.to))
            .collect()
    }
}

fn refused_by_error() -> RefuseDecision {
    RefuseDecision {
        reason: "the condition of the rule cannot be evaluated".to_owned(),
        modes: Vec::new(),
        credentials: false,
    }
}

fn admitted(found: Option<DecidingRule<'_>>) -> Admit<'_> {
    match found {
        None => Admit::Free(None),
        Some(DecidingRule::Refused(rule)) => Admit::Refuse(&rule.name, refused_by_error()),
        Some(DecidingRule::Rule(rule)) => match &rule.decision {
            Decision::Allow | Decision::Ask(_) => Admit::Free(Some(&rule.name)),
            Decision::Refuse(refusal) => Admit::Refuse(&rule.name, refusal.clone()),
            Decision::Approve(approval) => Admit::Approve(&rule.name, approval.clone()),
        },
    }
}

fn planned(found: Option<DecidingRule<'_>>) -> PlannedQuestion<'_> {
    match found {
        None => PlannedQuestion::Ask(None, Box::new(Plan::caller())),
        Some(DecidingRule::Refused(rule)) => {
            PlannedQuestion::Refuse(&rule.name, refused_by_error())
        }
        Some(DecidingRule::Rule(rule)) => match &rule.decision {
            Decision::Ask(plan) => PlannedQuestion::Ask(Some(&rule.name), plan.clone()),
            Decision::Refuse(refusal) => PlannedQuestion::Refuse(&rule.name, refusal.clone()),
            Decision::Allow | Decision::Approve(_) => {
                PlannedQuestion::Ask(None, Box::new(Plan::caller()))
            }
        },
    }
}

/// The most servers and names in the index, and the longest of them.
const MAX_REMEMBERED: usize = 4_096;
const MAX_NAME: usize = 256;

/// The rules whose patterns match a server and a name, found once for each.
#[derive(Debug, Default)]
pub(super) struct Index {
    known: RwLock<HashMap<String, Arc<CandidateRules>>>,
}

/// The rules for a server and a name; those that compare text at one path are indexed by that text.
#[derive(Debug, Default)]
struct CandidateRules {
    /// Rules without such a comparison.
    others: Vec<usize>,
    compared: Vec<ComparedRules>,
    arguments: ArgumentsRead,
}

/// Rules whose conditions require one of several texts at a path.
#[derive(Debug)]
struct ComparedRules {
    /// The path by its number.
    path: usize,
    all: Vec<usize>,
    by_text: HashMap<String, Vec<usize>>,
}

impl CandidateRules {
    fn add(&mut self, number: usize, rule: &Rule) {
        let condition = rule.condition.as_ref();
        self.arguments.by_conditions |= condition.is_some_and(Condition::reads_arguments);
        let plan = rule.decision.plan();
        self.arguments.by_people |= plan.is_some_and(|plan| !plan.ask.is_caller());
        let compared = rule.condition.as_ref().and_then(Condition::compared_texts);
        let Some((path, texts)) = compared else {
            self.others.push(number);
            return;
        };
        let known = self.compared.iter().position(|known| known.path == path);
        let at = known.unwrap_or_else(|| {
            self.compared.push(ComparedRules {
                path,
                all: Vec::new(),
                by_text: HashMap::new(),
            });
            self.compared.len() - 1
        });
        let compared = &mut self.compared[at];
        compared.all.push(number);
        for text in texts {
            let rules = compared.by_text.entry(text.to_owned()).or_default();
            if rules.last() != Some(&number) {
                rules.push(number);
            }
        }
    }

    /// Returns the rules whose comparisons hold or cannot be determined without their conditions, in the order of the
    /// file.
    fn that_may_match(&self, environment: &Environment<'_>) -> Vec<usize> {
        let mut numbers = self.others.clone();
        for compared in &self.compared {
            match environment.text_at(compared.path) {
                Some(text) => numbers.extend(compared.by_text.get(text).into_iter().flatten()),
                None => numbers.extend(&compared.all),
            }
        }
        numbers.sort_unstable();
        numbers
    }
}

impl Index {
    fn candidates(
        &self,
        rules: &[Rule],
        phase: RulePhase,
        facts: &Facts<'_>,
    ) -> Arc<CandidateRules> {
        let search = || {
            let fits = |rule: &Rule| {
                rule.phase == phase
                    && rule.is_for_server(facts.server)
                    && facts
                        .call
                        .is_none_or(|call| rule.targets.matches(call.kind, call.target))
            };
            let mut candidates = CandidateRules::default();
            for (number, rule) in rules.iter().enumerate().filter(|(_, rule)| fits(rule)) {
                candidates.add(number, rule);
            }
            Arc::new(candidates)
        };
        let Some(call) = facts.call else {
            return search();
        };
        if call.target.len() > MAX_NAME || facts.server.len() > MAX_NAME {
            return search();
        }
        let key = format!(
            "{phase:?} {} {} {}{}",
            call.kind.word(),
            facts.server.len(),
            facts.server,
            call.target
        );
        if let Ok(known) = self.known.read()
            && let Some(candidates) = known.get(&key)
        {
            return Arc::clone(candidates);
        }
        let candidates = search();
        if let Ok(mut known) = self.known.write() {
            if known.len() >= MAX_REMEMBERED {
                known.clear();
            }
            known.insert(key, Arc::clone(&candidates));
        }
        candidates
    }
}

impl Plan {
    /// Returns the time for which the question is open; `usual` is the server's setting.
    pub fn open_for(&self, usual: Duration) -> Duration {
        self.deadline.unwrap_or(usual)
    }

    /// Returns the reason why the people of this plan cannot be asked: no page can show all of the call, or the plan
    /// excludes the caller, who is unknown (`unmatched`).
    pub fn reason_not_to_ask(
        &self,
        call: Option<&KnownCall<'_>>,
        unmatched: Option<&str>,
    ) -> Option<String> {
        let unknown = unmatched.filter(|_| self.ask.not_caller);
        call.and_then(KnownCall::unshown)
            .or_else(|| unknown.map(str::to_owned))
    }
}
