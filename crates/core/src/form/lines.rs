//! Several values that the person writes, one per line: `type: array` without options. No revision lists it, real
//! servers ask for it.

use serde_json::Value;

use super::kind::{Emit, Kind};
use crate::answer::{BrokenRule, ExpectedType};
use crate::json::Given;

/// The rules of a list that the person writes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Lines {
    /// The rules of each value: a text, number, boolean or union.
    pub item: Box<Kind>,
    /// The minimum number of values.
    pub min_items: Option<u64>,
    /// The maximum number of values.
    pub max_items: Option<u64>,
    /// `true` if each value may occur once.
    pub unique: bool,
    /// The values that are filled in before the person answers.
    pub default: Option<Vec<Value>>,
}

impl Lines {
    pub(crate) fn check(&self, given: Given<'_>, broken: &mut impl FnMut(BrokenRule)) {
        let Given::List(items) = given else {
            return broken(BrokenRule::Type(ExpectedType::List));
        };
        let count = items.len() as u64;
        if let Some(min) = self.min_items.filter(|min| count < *min) {
            broken(BrokenRule::MinLines(min));
        }
        if let Some(max) = self.max_items.filter(|max| count > *max) {
            broken(BrokenRule::MaxLines(max));
        }
        // Each rule is reported once, however many values break it.
        let mut rules: Vec<BrokenRule> = Vec::new();
        for item in items.iter() {
            self.item.check_one(item, &mut |rule| {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            });
        }
        rules.into_iter().for_each(&mut *broken);
        if self.unique && has_doubles(items.iter()) {
            broken(BrokenRule::UniqueLines);
        }
    }

    /// Returns the values as a person writes them, one per line.
    pub(crate) fn written(values: &[Value]) -> String {
        let lines: Vec<String> = values.iter().map(written).collect();
        lines.join("\n")
    }

    pub(crate) fn emit(&self, out: &mut Emit) {
        out.put_some("default", self.default.as_deref().map(Self::written));
    }
}

/// Returns a value as a person writes it: a text as it is, anything else as JSON.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn has_doubles<'a>(items: impl Iterator<Item = Given<'a>>) -> bool {
    let mut seen = std::collections::HashSet::new();
    items
        .filter_map(|item| match item {
            Given::Text(text) => Some(format!("\"{text}")),
            Given::Number(number) => Some(crate::number::text(number)),
            Given::Boolean(flag) => Some(flag.to_string()),
            Given::Null | Given::List(_) | Given::Object => None,
        })
        .any(|item| !seen.insert(item))
}
