//! The kinds of field, and the code that they share for reading, checking and emitting.

use serde_json::{Map, Value};

use super::defect::{At, DefectCode, NoteCode, ParseFindings};
use super::{Boolean, Choice, Choices, FormLimits, Lines, Number, Text, Union};
use crate::answer::BrokenRule;
use crate::json::{Given, Json};

/// The type of a field (elicitation, "Supported Schema Types").
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A string that the person writes.
    Text(Text),
    /// Any number.
    Number(Number),
    /// A number without a fractional part; 1.0 is one.
    Integer(Number),
    /// Yes or no.
    Boolean(Boolean),
    /// One string from a list.
    Choice(Choice),
    /// Several strings from a list (2025-11-25 and later).
    Choices(Choices),
    /// A value of one of several types. Only a form that was [read leniently](super::Form::parse_leniently) has it.
    Union(Union),
    /// Several values, one per line. Only a form that was [read leniently](super::Form::parse_leniently) has it.
    Lines(Lines),
}

impl Kind {
    /// Returns the schema's `default`, which obeys the field's own rules.
    pub fn default(&self) -> Option<Value> {
        match self {
            Kind::Text(text) => text.default.clone().map(Value::String),
            Kind::Number(number) | Kind::Integer(number) => {
                number.default.clone().map(Value::Number)
            }
            Kind::Boolean(boolean) => boolean.default.map(Value::Bool),
            Kind::Choice(choice) => choice.default_value(),
            Kind::Choices(choices) => choices.default_value(),
            Kind::Union(union) => union.default.clone(),
            Kind::Lines(lines) => lines.default.clone().map(Value::Array),
        }
    }

    /// Returns `true` if the value breaks no rule.
    pub(crate) fn accepts(&self, given: Given<'_>) -> bool {
        let mut accepted = true;
        self.check_one(given, &mut |_| accepted = false);
        accepted
    }

    /// Calls [`check`](Self::check) for a value within a value: the alternative of a union, an item of a list.
    pub(crate) fn check_one(&self, given: Given<'_>, broken: &mut dyn FnMut(BrokenRule)) {
        self.check(given, &mut |rule| broken(rule));
    }

    /// Calls `broken` with every rule that the value breaks.
    pub(crate) fn check(&self, given: Given<'_>, broken: &mut impl FnMut(BrokenRule)) {
        match self {
            Kind::Text(text) => text.check(given, broken),
            Kind::Number(number) => number.check(given, false, broken),
            Kind::Integer(number) => number.check(given, true, broken),
            Kind::Boolean(boolean) => boolean.check(given, broken),
            Kind::Choice(choice) => choice.check(given, broken),
            Kind::Choices(choices) => choices.check(given, broken),
            Kind::Union(union) => union.check(given, broken),
            Kind::Lines(lines) => lines.check(given, broken),
        }
    }
}

/// The keywords of one field as they occur in the text, found in one pass.
#[derive(Default)]
pub(crate) struct Keywords<'j, 'a> {
    pub(crate) kind: Option<&'j Json<'a>>,
    pub(crate) title: Option<&'j Json<'a>>,
    pub(crate) description: Option<&'j Json<'a>>,
    pub(crate) default: Option<&'j Json<'a>>,
    pub(crate) constant: Option<&'j Json<'a>>,
    pub(crate) options: Option<&'j Json<'a>>,
    pub(crate) names: Option<&'j Json<'a>>,
    pub(crate) one_of: Option<&'j Json<'a>>,
    pub(crate) items: Option<&'j Json<'a>>,
    pub(crate) format: Option<&'j Json<'a>>,
    pub(crate) pattern: Option<&'j Json<'a>>,
    pub(crate) min_length: Option<&'j Json<'a>>,
    pub(crate) max_length: Option<&'j Json<'a>>,
    pub(crate) minimum: Option<&'j Json<'a>>,
    pub(crate) maximum: Option<&'j Json<'a>>,
    pub(crate) exclusive_minimum: Option<&'j Json<'a>>,
    pub(crate) exclusive_maximum: Option<&'j Json<'a>>,
    pub(crate) multiple_of: Option<&'j Json<'a>>,
    pub(crate) min_items: Option<&'j Json<'a>>,
    pub(crate) max_items: Option<&'j Json<'a>>,
    pub(crate) unique_items: Option<&'j Json<'a>>,
}

/// The state of reading one field: its location, its budget, its findings.
pub(crate) struct FieldReader<'r> {
    pub(crate) at: At<'r>,
    pub(crate) limits: &'r FormLimits,
    pub(crate) found: &'r mut ParseFindings,
    /// The remaining budget for the form's patterns.
    pub(crate) patterns: &'r mut super::pattern::Budget,
}

impl FieldReader<'_> {
    pub(crate) fn defect(&mut self, key: &str, code: DefectCode, message: impl Into<String>) {
        self.found.defect(&self.at.child(key), code, message);
    }

    pub(crate) fn note(&mut self, key: &str, code: NoteCode, message: impl Into<String>) {
        self.found.note(&self.at.child(key), code, message);
    }

    /// Reads a keyword whose value is a string.
    pub(crate) fn text(&mut self, key: &str, value: Option<&Json<'_>>) -> Option<Box<str>> {
        let value = value?;
        if let Some(text) = value.as_text() {
            return Some(text.into());
        }
        self.wrong_type(key, "a string", value);
        None
    }

    /// Reads a keyword whose value is a count: a whole number, zero or more.
    pub(crate) fn count(&mut self, key: &str, value: Option<&Json<'_>>) -> Option<u64> {
        let value = value?;
        let count = value
            .as_number()
            .and_then(|n| crate::number::canonical_integer(n.clone()).as_u64());
        if count.is_none() {
            self.wrong_type(key, "a whole number, 0 or more", value);
        }
        count
    }

    /// Reads a keyword whose value is a number.
    pub(crate) fn number(
        &mut self,
        key: &str,
        value: Option<&Json<'_>>,
    ) -> Option<serde_json::Number> {
        let value = value?;
        let number = value.as_number().cloned();
        if number.is_none() {
            self.wrong_type(key, "a number", value);
        }
        number
    }

    pub(crate) fn wrong_type(&mut self, key: &str, wanted: &str, value: &Json<'_>) {
        self.defect(
            key,
            DefectCode::KeywordType,
            format!("`{key}` must be {wanted}, not {}", value.kind()),
        );
    }

    /// Adds notes on keywords that have no effect on a field of this kind (JSON Schema: an assertion about another type
    /// always holds).
    pub(crate) fn without_effect(&mut self, kind: &str, keywords: &[(&str, bool)]) {
        for (key, present) in keywords {
            if *present {
                self.note(
                    key,
                    NoteCode::NoEffect,
                    format!("`{key}` says nothing about a {kind}; ignored"),
                );
            }
        }
    }

    pub(crate) fn not_portable(&mut self, key: &str, present: bool, instead: &str) {
        if present {
            self.note(
                key,
                NoteCode::NotPortable,
                format!("`{key}` is enforced here, but no revision of MCP lists it: {instead}"),
            );
        }
    }

    /// Keeps a default only if the field accepts it.
    pub(crate) fn default_holds(&mut self, kind: &Kind, default: Option<&Json<'_>>) -> bool {
        let Some(default) = default else {
            return false;
        };
        let mut broken = None;
        kind.check(default.given(), &mut |rule| {
            broken = broken.take().or(Some(rule));
        });
        if let Some(rule) = &broken {
            self.defect(
                "default",
                DefectCode::DefaultInvalid,
                format!("the default breaks the field's own rule: {rule}"),
            );
        }
        broken.is_none()
    }
}

/// A writer of keywords in the order that people expect, without those that are not set.
pub(crate) struct Emit(pub(crate) Map<String, Value>);

impl Emit {
    pub(crate) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    pub(crate) fn put_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }
}
