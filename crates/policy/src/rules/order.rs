//! Rules that others hide, and rules that cost too much.

use std::collections::BTreeMap;

use super::{Decision, Rule, RulePhase};
use crate::document::DocumentReader;

/// The most rules of one server that need CEL, so that a decision stays near 0.1 ms.
const MAX_EVALUATED: usize = 100;
/// The most rules whose order is compared pairwise.
const MAX_COMPARED: usize = 2_000;
/// The most patterns of one rule that are compared with those of several others.
const MAX_PATTERNS: usize = 64;

/// Reports rules that can never match, because an earlier one covers all their calls; and rules with the same name.
pub(super) fn check(reader: &mut DocumentReader<'_>, rules: &[(Rule, usize)]) {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (rule, start) in rules {
        if let Some(line) = names.insert(&rule.name, rule.line) {
            reader.rule = Some(rule.name.clone());
            let message = format!("the rule of line {line} has the same name");
            reader.defect(
                *start,
                "same-name",
                message,
                "the audit names rules, so each needs a name of its own",
            );
        }
    }
    let hiding = Hiding::of(rules);
    for (rule, start) in rules {
        if let Some((message, help)) = hiding.hides(rule) {
            reader.rule = Some(rule.name.clone());
            reader.defect(*start, "never-matches", message, help);
        }
    }
    reader.rule = None;
    check_cost(reader, rules);
}

fn check_cost(reader: &mut DocumentReader<'_>, rules: &[(Rule, usize)]) {
    let is_costly = |rule: &&(Rule, usize)| {
        rule.0
            .condition
            .as_ref()
            .is_some_and(|condition| !condition.has_comparison())
    };
    let costly: Vec<&(Rule, usize)> = rules.iter().filter(is_costly).collect();
    for (rule, start) in &costly {
        let same = costly
            .iter()
            .filter(|(other, _)| other.phase == rule.phase && other.covers(rule));
        if same.take(MAX_EVALUATED + 1).count() > MAX_EVALUATED {
            let message =
                format!("more than {MAX_EVALUATED} conditions are evaluated for one call");
            let help = "begin conditions with a comparison such as `arguments.environment == \"production\" && ..`";
            reader.warning(*start, "costly", message, help);
            return;
        }
    }
}

/// The rules that may cover all calls or questions of others.
struct Hiding<'r> {
    /// Those that apply to each call or question that matches their patterns, in order.
    unconditional: Vec<&'r Rule>,
    /// Those of them that refuse calls before they are made.
    refusing: Vec<&'r Rule>,
    /// Those that let calls proceed to their servers, with or without a condition.
    admitting: Vec<&'r Rule>,
}

impl<'r> Hiding<'r> {
    fn of(rules: &'r [(Rule, usize)]) -> Self {
        let all = || rules.iter().map(|(rule, _)| rule);
        let unconditional = all().filter(|rule| rule.takes_all()).take(MAX_COMPARED);
        let unconditional: Vec<&Rule> = unconditional.collect();
        let refusing = unconditional.iter().copied();
        let refusing = refusing.filter(|rule| {
            rule.phase == RulePhase::Admission && matches!(rule.decision, Decision::Refuse(_))
        });
        let refusing = refusing.collect();
        let admitting =
            all().filter(|rule| matches!(rule.decision, Decision::Allow | Decision::Approve(_)));
        Self {
            admitting: admitting.collect(),
            refusing,
            unconditional,
        }
    }

    /// Returns the reason why a rule never matches, and the fix; `None` if it may match.
    fn hides(&self, rule: &Rule) -> Option<(String, &'static str)> {
        let earlier = self.unconditional.iter().copied();
        let earlier = earlier.take_while(|other| other.line < rule.line);
        let earlier = earlier.filter(|other| other.phase == rule.phase);
        let earlier: Vec<&Rule> = earlier.collect();
        if let Some(other) = earlier.iter().find(|other| other.covers(rule)) {
            let message = format!(
                "the rule never matches: `{}` in line {} takes all its calls",
                other.name, other.line
            );
            return Some((message, "put it before that rule, or take it out"));
        }
        if let Some(other) = self.refusal_of(rule) {
            let message = format!(
                "the rule never matches: `{}` in line {} refuses all its calls before they are made",
                other.name, other.line
            );
            return Some((message, "take it out, or let that rule refuse fewer calls"));
        }
        let names = covered_by(rule, &earlier)?;
        let message = format!(
            "the rule never matches: {} take all its calls",
            names.join(" and ")
        );
        Some((message, "put it before these rules, or take it out"))
    }

    /// Returns the rule that refuses all calls in which this one would ask a question.
    fn refusal_of(&self, rule: &Rule) -> Option<&'r Rule> {
        if rule.phase != RulePhase::Asking {
            return None;
        }
        let is_first = |refusing: &Rule| {
            let mut before = self.admitting.iter();
            !before.any(|other| other.line < refusing.line && other.may_meet(rule))
        };
        let mut refusing = self.refusing.iter().copied();
        refusing.find(|other| other.covers(rule) && is_first(other))
    }
}

/// Returns the names of the rules that together cover all calls of another, by its patterns; `None` if they do not.
fn covered_by(rule: &Rule, earlier: &[&Rule]) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let mut pairs = 0;
    for server in &rule.servers {
        for pattern in rule.targets.patterns() {
            pairs += 1;
            if pairs > MAX_PATTERNS {
                return None;
            }
            let other = earlier.iter().find(|other| {
                other.servers.iter().any(|wide| wide.covers(server))
                    && other.targets.covers_pattern(pattern)
            })?;
            let name = format!("`{}` in line {}", other.name, other.line);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    // An empty list is reported at its position.
    (!names.is_empty()).then_some(names)
}

impl Rule {
    /// Returns `true` if the rule decides about each call or question that matches its patterns.
    fn takes_all(&self) -> bool {
        let refuses_all = match &self.decision {
            Decision::Refuse(refusal) => ["form", "url"]
                .iter()
                .all(|mode| refusal.modes.iter().any(|known| known == mode)),
            Decision::Allow | Decision::Approve(_) | Decision::Ask(_) => false,
        };
        self.condition.is_none() && (!self.needs_question || refuses_all)
    }

    /// Returns `true` if some call may match both.
    fn may_meet(&self, other: &Self) -> bool {
        let mut servers = self.servers.iter();
        servers.any(|one| other.servers.iter().any(|other| one.may_meet(other)))
            && self.targets.may_meet(&other.targets)
    }

    fn covers(&self, other: &Self) -> bool {
        let servers = other
            .servers
            .iter()
            .all(|narrow| self.servers.iter().any(|wide| wide.covers(narrow)));
        servers && self.targets.covers(&other.targets)
    }
}
