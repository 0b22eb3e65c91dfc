//! The check of content against its form: every violation at once, JSON Schema 2020-12 semantics, formats asserted.

use std::sync::Arc;

use serde_json::Value;

use super::{Answers, BrokenRule, ExpectedType, Violation, Violations};
use crate::form::{ChoiceOptions, Form, Kind};
use crate::json::{Given, Json};

/// The reason why a content text contains no answers.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CheckError {
    /// The text is longer than [`FormLimits::content_bytes`](crate::form::FormLimits::content_bytes).
    #[error("the content has {bytes} bytes; {limit} at most")]
    TooLarge {
        /// The length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The text is not JSON.
    #[error("the content is not JSON: {0}")]
    Broken(String),
    /// The text is JSON, but not an answer to this form.
    #[error(transparent)]
    Violations(#[from] Violations),
}

/// The maximum number of dropped fields whose names are kept.
const MAX_IGNORED: usize = 32;

impl Form {
    /// Checks content and returns answers, or every violation.
    ///
    /// Fields that the form does not have are dropped and listed in [`Answers::ignored`], unless the form has
    /// `additionalProperties: false`. Null is not a value: a required field that is null is missing, and any other null
    /// field has the wrong type.
    ///
    /// # Errors
    /// Every [`Violation`], in the form's order.
    pub fn check(&self, content: Value) -> Result<Answers, Violations> {
        let violations = self.violations(&content);
        match content {
            Value::Object(entries) if violations.is_empty() => {
                Ok(self.collect(entries.into_iter()))
            }
            _ => Err(violations),
        }
    }

    /// Checks content like [`check`](Self::check), from its text and without building a value first. If a key occurs
    /// twice, both values are checked and the last is used.
    ///
    /// # Errors
    /// If the text is too long, is not JSON, or breaks the form's rules.
    pub fn check_text(&self, content: &str) -> Result<Answers, CheckError> {
        let limit = self.content_bytes();
        if content.len() > limit {
            return Err(CheckError::TooLarge {
                bytes: content.len(),
                limit,
            });
        }
        let content = Json::read(content).map_err(|error| CheckError::Broken(error.to_string()))?;
        let Json::Object(entries) = content else {
            return Err(not_an_object().into());
        };
        let violations = self.judge(entries.iter().map(|(key, value)| (&**key, value.given())));
        if !violations.is_empty() {
            return Err(violations.into());
        }
        Ok(self.collect(
            entries
                .into_iter()
                .map(|(key, value)| (key, value.into_value())),
        ))
    }

    /// Returns the violations that [`check`](Self::check) would return, without consuming the content. Empty if it is
    /// valid.
    pub fn violations(&self, content: &Value) -> Violations {
        match content {
            Value::Object(entries) => self.judge(
                entries
                    .iter()
                    .map(|(key, value)| (key.as_str(), Given::from_value(value))),
            ),
            _ => not_an_object(),
        }
    }

    fn judge<'c>(&self, entries: impl Iterator<Item = (&'c str, Given<'c>)>) -> Violations {
        let fields = self.fields();
        let mut found = Vec::new();
        let mut seen = SeenFields::with_fields(fields.len());
        let mut next = 0;
        for (key, given) in entries {
            let Some(index) = self.locate(key, &mut next) else {
                if self.closed() {
                    let field = Arc::from(crate::form::text::clip(key));
                    found.push(Violation {
                        index: fields.len(),
                        field,
                        rule: BrokenRule::AdditionalProperties,
                    });
                }
                continue;
            };
            let field = &fields[index];
            if matches!(given, Given::Null) && (field.required() || field.nullable()) {
                // The last of a key counts, so a null there replaces an earlier value.
                seen.unmark(index);
                continue;
            }
            seen.mark(index);
            field.kind().check(given, &mut |rule| {
                found.push(Violation {
                    index,
                    field: field.shared_name(),
                    rule,
                });
            });
        }
        for (index, field) in fields.iter().enumerate() {
            if field.required() && !seen.marked(index) {
                found.push(Violation {
                    index,
                    field: field.shared_name(),
                    rule: BrokenRule::Required,
                });
            }
        }
        found.sort_by_key(|violation| violation.index);
        Violations(found)
    }

    /// Returns the position of a key in the form. Content is nearly always in the form's order, so the field after the
    /// last one is tried first.
    fn locate(&self, key: &str, next: &mut usize) -> Option<usize> {
        let index = match self.fields().get(*next) {
            Some(field) if field.name() == key => *next,
            _ => self.position(key)?,
        };
        *next = index + 1;
        Some(index)
    }

    /// Puts checked content into the form's order.
    fn collect<K: AsRef<str>>(&self, entries: impl Iterator<Item = (K, Value)>) -> Answers {
        let fields = self.fields();
        let mut slots: Vec<(Arc<str>, Value)> =
            Vec::with_capacity(fields.len().min(entries.size_hint().0));
        let mut ignored = Vec::new();
        let mut places: Vec<usize> = Vec::with_capacity(slots.capacity());
        let mut next = 0;
        for (key, value) in entries {
            let Some(index) = self.locate(key.as_ref(), &mut next) else {
                if ignored.len() < MAX_IGNORED {
                    ignored.push(crate::form::text::clip(key.as_ref()));
                }
                continue;
            };
            let field = &fields[index];
            if value.is_null() {
                // Left empty, or replaced by null.
                if let Ok(place) = places.binary_search(&index) {
                    places.remove(place);
                    slots.remove(place);
                }
                continue;
            }
            let value = spelled(field.kind(), value);
            match places.binary_search(&index) {
                Ok(place) => slots[place].1 = value,
                Err(place) => {
                    places.insert(place, index);
                    slots.insert(place, (field.shared_name(), value));
                }
            }
        }
        for (index, field) in fields.iter().enumerate() {
            if field.null_when_empty()
                && let Err(place) = places.binary_search(&index)
            {
                places.insert(place, index);
                slots.insert(place, (field.shared_name(), Value::Null));
            }
        }
        let spellings = slots.iter().filter_map(|(name, value)| {
            let field = fields.iter().find(|field| field.name() == &**name)?;
            Some((name.clone(), spelling(field.kind(), value)?))
        });
        Answers {
            spellings: spellings.collect(),
            entries: slots,
            ignored,
        }
    }
}

/// Returns a checked value in the spelling that is sent: a whole number without a fraction, an option as the form
/// spells it.
fn spelled(kind: &Kind, value: Value) -> Value {
    match (kind, value) {
        (Kind::Integer(_), Value::Number(n)) => Value::Number(crate::number::canonical_integer(n)),
        (Kind::Choice(choice), value @ Value::Number(_)) => {
            let option = choice.options.find(Given::from_value(&value));
            option.map_or(value, crate::form::ChoiceOption::sent)
        }
        (Kind::Choices(choices), Value::Array(items)) if choices.options.are_typed() => items
            .into_iter()
            .map(|item| {
                let option = choices.options.find(Given::from_value(&item));
                option.map_or(item, crate::form::ChoiceOption::sent)
            })
            .collect(),
        (Kind::Lines(lines), Value::Array(items)) => items
            .into_iter()
            .map(|item| spelled(&lines.item, item))
            .collect(),
        (_, value) => value,
    }
}

/// Returns the JSON text of a checked value with options that the server spells otherwise; `None` if there is none.
fn spelling(kind: &Kind, value: &Value) -> Option<Box<str>> {
    let of_option = |options: &ChoiceOptions, value: &Value| {
        let option = options.find(Given::from_value(value))?;
        option.spelling.clone()
    };
    match (kind, value) {
        (Kind::Choice(choice), value @ Value::Number(_)) => of_option(&choice.options, value),
        (Kind::Choices(choices), Value::Array(items)) if choices.options.are_typed() => {
            let spelled = |item: &Value| of_option(&choices.options, item);
            items.iter().any(|item| spelled(item).is_some()).then(|| {
                let texts: Vec<_> = items
                    .iter()
                    .map(|item| spelled(item).map_or_else(|| item.to_string(), String::from))
                    .collect();
                format!("[{}]", texts.join(",")).into()
            })
        }
        _ => None,
    }
}

pub(super) fn not_an_object() -> Violations {
    Violations(vec![Violation {
        index: 0,
        field: Arc::from(""),
        rule: BrokenRule::Type(ExpectedType::Object),
    }])
}

/// The fields that have had a value. Forms of up to 128 fields need no allocation.
enum SeenFields {
    Few(u128),
    Many(Vec<bool>),
}

impl SeenFields {
    fn with_fields(fields: usize) -> Self {
        if fields <= 128 {
            SeenFields::Few(0)
        } else {
            SeenFields::Many(vec![false; fields])
        }
    }

    fn mark(&mut self, index: usize) {
        match self {
            SeenFields::Few(bits) => *bits |= 1 << index,
            SeenFields::Many(seen) => seen[index] = true,
        }
    }

    fn unmark(&mut self, index: usize) {
        match self {
            SeenFields::Few(bits) => *bits &= !(1 << index),
            SeenFields::Many(seen) => seen[index] = false,
        }
    }

    fn marked(&self, index: usize) -> bool {
        match self {
            SeenFields::Few(bits) => bits & (1 << index) != 0,
            SeenFields::Many(seen) => seen[index],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CheckError;
    use crate::form::tests::{broken, form};
    use crate::form::{Form, FormLimits};

    #[test]
    fn missing_and_null() {
        let form = Form::parse(r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}"#).unwrap();
        for (content, rules) in [
            (r#"{"a":""}"#, vec![]),
            (r#"{"b":"x"}"#, vec!["required"]),
            (r#"{"a":null}"#, vec!["required"]),
            (r#"{"a":"x","b":null}"#, vec!["type"]),
            (r#"{"c":1}"#, vec!["required"]),
        ] {
            assert_eq!(broken(&form, content), rules, "{content}");
        }
    }

    #[test]
    fn other_fields_are_dropped_unless_the_form_is_closed() {
        let open = form(r#"{"a":{"type":"string"}}"#);
        let answers = open.check_text(r#"{"x":{"y":[1]},"a":"v"}"#).unwrap();
        assert_eq!(answers.ignored(), ["x"]);
        assert_eq!(answers.get("x"), None);
        let closed = Form::parse(r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#).unwrap();
        assert_eq!(
            broken(&closed, r#"{"a":"v","x":1}"#),
            ["additionalProperties"]
        );
    }

    #[test]
    fn violations_come_in_the_forms_order_and_carry_no_value() {
        let form = Form::parse(
            r#"{"type":"object","properties":{"a":{"type":"integer","minimum":3},"b":{"type":"string","enum":["x","y"]},"c":{"type":"string"}},"required":["c"]}"#,
        )
        .unwrap();
        let violations = form
            .check_text(r#"{"b":"s3cret","a":-271828}"#)
            .unwrap_err();
        assert_eq!(
            violations.to_string(),
            "a: must be 3 or more; b: must be one of x, y; c: a value is required"
        );
        let CheckError::Violations(violations) = violations else {
            panic!()
        };
        assert_eq!(violations.for_field("b").count(), 1);
        assert_eq!(
            serde_json::to_value(&violations).unwrap()[0],
            serde_json::json!({"field":"a","rule":"minimum","message":"must be 3 or more"})
        );
    }

    #[test]
    fn the_last_of_a_duplicate_key_is_taken() {
        let form = form(r#"{"a":{"type":"integer"},"b":{"type":"integer"}}"#);
        let answers = form.check_text(r#"{"b":1,"a":2,"b":3}"#).unwrap();
        assert_eq!(answers.to_value(), serde_json::json!({"a":2,"b":3}));
    }

    #[test]
    fn a_null_takes_back_the_value_before_it() {
        let required = Form::parse(
            r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#,
        )
        .unwrap();
        let error = required.check_text(r#"{"a":1,"a":null}"#).unwrap_err();
        assert_eq!(error.to_string(), "a: a value is required");
        assert!(required.check_text(r#"{"a":null,"a":1}"#).is_ok());
    }

    #[test]
    fn broken_and_long_texts() {
        let limits = FormLimits {
            content_bytes: 10,
            ..FormLimits::default()
        };
        let form = Form::parse_with(r#"{"type":"object","properties":{}}"#, &limits).unwrap();
        assert!(matches!(form.check_text("{"), Err(CheckError::Broken(_))));
        assert!(matches!(
            form.check_text(&" ".repeat(11)),
            Err(CheckError::TooLarge {
                bytes: 11,
                limit: 10
            })
        ));
        assert!(matches!(
            form.check_text("7"),
            Err(CheckError::Violations(_))
        ));
    }
}
