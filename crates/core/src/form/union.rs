//! A value of one of several types, such as a number or a text: no revision lists it, real servers ask for it.

use serde_json::Value;

use super::kind::{Emit, Kind};
use crate::answer::{BrokenRule, ExpectedType};
use crate::json::Given;

/// The rules of a value that may have several types (`anyOf`, `oneOf` or a list of types). A person's text is sent as
/// the first of them that it fits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Union {
    /// The alternatives in their given order, at least two: texts, numbers, booleans and choices.
    pub alternatives: Vec<Kind>,
    /// The value that is filled in before the person answers.
    pub default: Option<Value>,
}

impl Union {
    /// Returns `true` if the value obeys all rules of an alternative.
    pub(crate) fn accepts(&self, given: Given<'_>) -> bool {
        self.alternatives.iter().any(|kind| kind.accepts(given))
    }

    pub(crate) fn check(&self, given: Given<'_>, broken: &mut impl FnMut(BrokenRule)) {
        if self.accepts(given) {
            return;
        }
        // The rules of an alternative that the value has the type of say more than the list of types.
        let mut closest: Option<Vec<BrokenRule>> = None;
        for kind in &self.alternatives {
            let mut rules = Vec::new();
            kind.check_one(given, &mut |rule| rules.push(rule));
            if !rules.iter().any(|rule| matches!(rule, BrokenRule::Type(_))) {
                closest = closest.or(Some(rules));
            }
        }
        match closest {
            Some(rules) => rules.into_iter().for_each(broken),
            None => broken(BrokenRule::Type(ExpectedType::Scalar)),
        }
    }

    /// Returns `true` if only numbers are accepted.
    fn is_number(&self) -> bool {
        let number = |kind: &Kind| matches!(kind, Kind::Number(_) | Kind::Integer(_));
        self.alternatives.iter().all(number)
    }

    /// Returns the type that the field has in a schema of a revision: a number, or a text that
    /// [`Form::check_emitted`](super::Form::check_emitted) reads.
    pub(super) fn emitted_type(&self) -> &'static str {
        if self.is_number() { "number" } else { "string" }
    }

    /// Returns the accepted types in words: `a whole number, or text`.
    pub fn types(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for kind in &self.alternatives {
            let name = match kind {
                Kind::Text(_) => "text",
                Kind::Number(_) => "a number",
                Kind::Integer(_) => "a whole number",
                Kind::Boolean(_) => "true or false",
                Kind::Choice(_) => "an option",
                Kind::Choices(_) | Kind::Union(_) | Kind::Lines(_) => "a list",
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", or ")
    }

    pub(crate) fn emit(&self, out: &mut Emit) {
        let default = self.default.as_ref();
        if self.is_number() {
            out.put_some("default", default.cloned());
        } else {
            out.put_some("default", default.map(super::lines::written));
        }
    }
}
