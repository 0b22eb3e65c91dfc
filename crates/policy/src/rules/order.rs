//! Rules that others hide, and rules that cost too much.

use std::collections::BTreeMap;

use super::Rule;
use crate::document::Reader;

/// The most rules of one server that are left for CEL, so that a decision stays near 0.1 ms.
const MAX_EVALUATED: usize = 100;
/// The most rules whose order is compared pair by pair.
const MAX_COMPARED: usize = 2_000;

/// Names rules that can never match, because an earlier one takes all that they take; and rules with one name.
pub(super) fn check(reader: &mut Reader<'_>, rules: &[(Rule, usize)]) {
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
    let unconditional: Vec<&Rule> = rules
        .iter()
        .map(|(rule, _)| rule)
        .filter(|rule| rule.is_unconditional())
        .take(MAX_COMPARED)
        .collect();
    for (rule, start) in rules {
        let hidden_by = unconditional
            .iter()
            .take_while(|other| other.line < rule.line)
            .find(|other| other.hides(rule));
        if let Some(other) = hidden_by {
            reader.rule = Some(rule.name.clone());
            let message = format!(
                "the rule never matches: `{}` in line {} takes all its calls",
                other.name, other.line
            );
            reader.defect(
                *start,
                "never-matches",
                message,
                "put it before that rule, or take it out",
            );
        }
    }
    reader.rule = None;
    check_cost(reader, rules);
}

fn check_cost(reader: &mut Reader<'_>, rules: &[(Rule, usize)]) {
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

impl Rule {
    /// Returns `true` if this rule takes all that a later one would.
    fn hides(&self, later: &Self) -> bool {
        self.phase == later.phase && self.covers(later)
    }

    fn covers(&self, other: &Self) -> bool {
        let servers = other
            .servers
            .iter()
            .all(|narrow| self.servers.iter().any(|wide| wide.covers(narrow)));
        servers && self.targets.covers(&other.targets)
    }
}
