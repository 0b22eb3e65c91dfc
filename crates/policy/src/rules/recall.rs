//! Decisions about past calls, of which not every fact was stored. A decision is certain, or the result lists the rules
//! that may have decided, and the missing facts.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Decision, OnError, RefuseDecision, Rule, RulePhase, Rules};
use crate::condition::{Environment, Recalled};
use crate::facts::{Facts, QuestionFacts};

/// Names of unknown facts: variables of conditions, such as `arguments`, or members, such as `caller.mail`.
pub type Gaps<'a> = &'a [&'static str];

/// The decision of a rule, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionKind {
    /// The call continues.
    Allowed,
    /// The caller is asked.
    Caller,
    /// Others are asked.
    People,
    /// The call waits until people have approved it.
    Approval,
    /// The call or the question is refused.
    Refused,
}

/// A rule that may have decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateRule<'r> {
    /// The rule; `None` if none matches.
    pub rule: Option<&'r str>,
    /// Its decision.
    pub verdict: DecisionKind,
}

/// A decision about a past call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall<'r> {
    /// The decision, or each that is possible.
    pub candidates: Vec<CandidateRule<'r>>,
    /// The missing facts.
    pub missing: Vec<&'static str>,
}

impl Recall<'_> {
    /// Returns `true` if there is only one possible decision.
    pub fn is_certain(&self) -> bool {
        self.candidates.len() == 1
    }
}

/// The result for one rule, as far as it can be determined.
enum PossibleMatch {
    Never,
    Perhaps,
    Always(DecisionKind),
}

/// The result of evaluating the rules of one phase.
struct PhaseCandidates<'r> {
    candidates: Vec<CandidateRule<'r>>,
    /// `true` if it is possible that none of them decides.
    may_be_none: bool,
}

impl Rules {
    /// Returns the decision about a call and its question, as [`Rules::preview`] does; without a question, about the
    /// call alone. `gaps` are the unknown facts, whose values are ignored.
    pub fn recall(
        &self,
        facts: &Facts<'_>,
        question: Option<&QuestionFacts>,
        gaps: Gaps<'_>,
    ) -> Recall<'_> {
        let mut missing = BTreeSet::new();
        let admission = self.reach(RulePhase::Admission, facts, None, gaps, &mut missing);
        let mut candidates = admission.candidates;
        let goes_on = |candidate: &CandidateRule<'_>| candidate.verdict == DecisionKind::Allowed;
        let may_go_on = admission.may_be_none || candidates.iter().any(goes_on);
        match question {
            Some(question) if may_go_on => {
                candidates.retain(|candidate| !goes_on(candidate));
                let asking =
                    self.reach(RulePhase::Asking, facts, Some(question), gaps, &mut missing);
                candidates.extend(asking.candidates);
                if asking.may_be_none {
                    let verdict = DecisionKind::Caller;
                    candidates.push(CandidateRule {
                        rule: None,
                        verdict,
                    });
                }
            }
            None if admission.may_be_none => {
                let verdict = DecisionKind::Allowed;
                candidates.push(CandidateRule {
                    rule: None,
                    verdict,
                });
            }
            Some(_) | None => {}
        }
        let missing = match candidates.len() {
            1 => Vec::new(),
            _ => missing.into_iter().collect(),
        };
        Recall {
            candidates,
            missing,
        }
    }

    fn reach(
        &self,
        phase: RulePhase,
        facts: &Facts<'_>,
        question: Option<&QuestionFacts>,
        gaps: Gaps<'_>,
        missing: &mut BTreeSet<&'static str>,
    ) -> PhaseCandidates<'_> {
        let environment = Environment::new(facts, question, &self.names);
        let mut candidates = Vec::new();
        for rule in self.all.iter().filter(|rule| rule.phase == phase) {
            let name = Some(rule.name.as_str());
            match rule.recall(&environment, gaps, missing) {
                PossibleMatch::Never => {}
                PossibleMatch::Perhaps => {
                    // With some values of the fact, the condition may be an error.
                    let by_error =
                        (rule.on_error == OnError::Refuse).then_some(DecisionKind::Refused);
                    let verdict = rule.verdict();
                    let verdicts = [Some(verdict), by_error.filter(|other| *other != verdict)];
                    candidates.extend(verdicts.into_iter().flatten().map(|verdict| {
                        CandidateRule {
                            rule: name,
                            verdict,
                        }
                    }));
                }
                PossibleMatch::Always(verdict) => {
                    candidates.push(CandidateRule {
                        rule: name,
                        verdict,
                    });
                    return PhaseCandidates {
                        candidates,
                        may_be_none: false,
                    };
                }
            }
        }
        PhaseCandidates {
            candidates,
            may_be_none: true,
        }
    }
}

impl Rule {
    fn verdict(&self) -> DecisionKind {
        match &self.decision {
            Decision::Allow => DecisionKind::Allowed,
            Decision::Refuse(_) => DecisionKind::Refused,
            Decision::Approve(_) => DecisionKind::Approval,
            Decision::Ask(plan) if plan.ask.is_caller() => DecisionKind::Caller,
            Decision::Ask(_) => DecisionKind::People,
        }
    }

    fn on_error(&self) -> PossibleMatch {
        match self.on_error {
            OnError::Match => PossibleMatch::Always(self.verdict()),
            OnError::Skip => PossibleMatch::Never,
            OnError::Refuse => PossibleMatch::Always(DecisionKind::Refused),
        }
    }

    /// Evaluates the rule like [`Rule::judge`], with unknown facts.
    fn recall(
        &self,
        environment: &Environment<'_>,
        gaps: Gaps<'_>,
        missing: &mut BTreeSet<&'static str>,
    ) -> PossibleMatch {
        let facts = environment.facts;
        if !self.is_for_server(facts.server) {
            return PossibleMatch::Never;
        }
        let is_for_target = self.is_for_target(facts);
        if is_for_target == Some(false) {
            return PossibleMatch::Never;
        }
        let mut needed = Vec::new();
        if let (Decision::Refuse(refusal), Some(question)) = (&self.decision, environment.question)
            && refusal.is_about_questions()
        {
            match refusal.is_for(question, gaps) {
                Ok(true) => {}
                Ok(false) => return PossibleMatch::Never,
                Err(fact) => needed.push(fact),
            }
        }
        let condition = self.condition.as_ref();
        match condition.map(|condition| condition.recall(environment, gaps)) {
            Some(Recalled::Known(Ok(false))) => return PossibleMatch::Never,
            Some(Recalled::Known(Err(_))) if needed.is_empty() => return self.on_error(),
            None | Some(Recalled::Known(_)) => {}
            Some(Recalled::Needs(facts)) => needed.extend(facts),
        }
        if is_for_target.is_none() && (needed.is_empty() || self.on_error == OnError::Skip) {
            return self.on_error();
        }
        if needed.is_empty() {
            return PossibleMatch::Always(self.verdict());
        }
        missing.extend(needed);
        PossibleMatch::Perhaps
    }
}

impl RefuseDecision {
    /// Returns whether the refusal applies to this question, or else the missing fact.
    fn is_for(&self, question: &QuestionFacts, gaps: Gaps<'_>) -> Result<bool, &'static str> {
        const MODE: &str = "question.mode";
        const CREDENTIALS: &str = "question.credentials";
        let is_mode_known = !gaps.contains(&MODE);
        if is_mode_known && self.modes.contains(&question.mode) {
            return Ok(true);
        }
        if !is_mode_known && !self.modes.is_empty() {
            return Err(MODE);
        }
        if self.credentials && gaps.contains(&CREDENTIALS) {
            return Err(CREDENTIALS);
        }
        Ok(self.credentials && question.credentials)
    }
}

#[cfg(all(test, feature = "cel"))]
mod tests {
    use mcp_elicit_core::wire::CallKind;
    use proptest::prelude::*;

    use super::*;
    use crate::facts::{Annotations, Caller, CallerKind, KnownCall, Now};
    use crate::rules::{Admit, PlannedQuestion};

    const FILE: &str = r#"
        [people.ada]
        mail = "ada@example.com"
        subject = "1"
        [people.bob]
        mail = "bob@example.com"
        [groups]
        ops = ["ada", "bob"]
        [[rules]]
        name = "reads"
        when = "annotations.readOnly"
        allow = true
        [[rules]]
        name = "large"
        tool = "p*"
        when = 'caller.kind == "subject" && arguments.amount > 10'
        approve = true
        ask = { group = "ops" }
        [[rules]]
        name = "friday"
        tool = "pay"
        when = 'arguments.why == "friday"'
        on-error = "skip"
        refuse = "not today"
        [[rules]]
        name = "evenings"
        tool = ["pay", "get"]
        when = 'arguments.hour > 18'
        on-error = "refuse"
        ask = { group = "ops" }
        [[rules]]
        name = "links"
        refuse-modes = ["url"]
        [[rules]]
        name = "secrets"
        refuse-credentials = true
        [[rules]]
        name = "mail"
        when = '"staff" in groups || caller.mail == "ada@example.com"'
        ask = { person = "ada" }
        [[rules]]
        name = "hello"
        when = 'question.message.contains("hello")'
        ask = "caller"
    "#;

    /// Every fact that may be unknown.
    const FACTS: [&str; 9] = [
        "annotations",
        "arguments",
        "caller.mail",
        "caller.person",
        "groups",
        "fields",
        "question.message",
        "question.mode",
        "question.credentials",
    ];

    fn decided<'r>(admit: &Admit<'r>, planned: Option<&PlannedQuestion<'r>>) -> CandidateRule<'r> {
        let (rule, verdict) = match (admit, planned) {
            (Admit::Refuse(rule, _), _)
            | (Admit::Free(_), Some(PlannedQuestion::Refuse(rule, _))) => {
                (Some(*rule), DecisionKind::Refused)
            }
            (Admit::Approve(rule, _), _) => (Some(*rule), DecisionKind::Approval),
            (Admit::Free(rule), None) => (*rule, DecisionKind::Allowed),
            (Admit::Free(_), Some(PlannedQuestion::Ask(rule, plan))) if plan.ask.is_caller() => {
                (*rule, DecisionKind::Caller)
            }
            (Admit::Free(_), Some(PlannedQuestion::Ask(rule, _))) => (*rule, DecisionKind::People),
        };
        CandidateRule { rule, verdict }
    }

    proptest! {
        /// With every fact the result is the decision; with fewer, the decision is among the results.
        #[test]
        fn what_happens_is_among_what_is_recalled(
            tool in "(pay|put|get)",
            arguments in prop::sample::select(vec!["{}", r#"{"amount":5}"#, r#"{"amount":50,"why":"friday"}"#, r#"{"why":7,"hour":20}"#]),
            kind in prop::sample::select(vec![CallerKind::Subject, CallerKind::Local, CallerKind::Key]),
            mail in prop::sample::select(vec!["", "ada@example.com"]),
            staff in any::<bool>(),
            read_only in any::<bool>(),
            mode in prop::sample::select(vec!["form", "url"]),
            credentials in any::<bool>(),
            message in prop::sample::select(vec!["hello", "who?"]),
            is_known in any::<bool>(),
            asks in any::<bool>(),
            gaps in prop::sample::subsequence(FACTS.to_vec(), 0..=FACTS.len()),
        ) {
            let rules = Rules::parse(FILE).unwrap();
            let caller = Caller { kind, mail: mail.to_owned(), ..Caller::default() };
            let groups: Vec<String> = staff.then(|| "staff".to_owned()).into_iter().collect();
            let now = Now::default();
            let annotations = Annotations { read_only, ..Annotations::default() };
            let call = KnownCall { kind: CallKind::Tool, target: &tool, arguments: Some(arguments), annotations };
            let facts = Facts { caller: &caller, groups: &groups, server: "s", call: is_known.then_some(call), now: &now };
            let question = QuestionFacts { mode: mode.to_owned(), message: message.to_owned(), credentials, ..QuestionFacts::default() };
            let admit = rules.admit(&facts);
            let planned = (asks && matches!(admit, Admit::Free(_))).then(|| rules.plan(&facts, &question));
            let happens = decided(&admit, planned.as_ref());
            let question = asks.then_some(&question);
            let whole = rules.recall(&facts, question, &[]);
            prop_assert_eq!(&whole.candidates, &[happens]);
            let part = rules.recall(&facts, question, &gaps);
            prop_assert!(part.candidates.contains(&happens), "{:?} without {:?}: {:?}", happens, gaps, part);
            prop_assert!(part.is_certain() == part.missing.is_empty());
            prop_assert!(part.missing.iter().all(|fact| gaps.contains(fact)));
        }
    }
}
