//! Answers to the legal spelling of a form that was read leniently: what became a text there is read back.

use serde_json::{Map, Value};

use super::{Form, Kind};
use crate::answer::{Answers, Violations, from_emitted};

impl Form {
    /// Returns `true` if [`emit`](Self::emit) spells a field with another type, so that its answers are to be read with
    /// [`check_emitted`](Self::check_emitted).
    pub fn emits_other_types(&self) -> bool {
        self.iter().any(|field| match field.kind() {
            Kind::Union(_) | Kind::Lines(_) => true,
            Kind::Choice(choice) => choice.options.are_typed(),
            Kind::Choices(choices) => choices.options.are_typed(),
            Kind::Text(_) | Kind::Number(_) | Kind::Integer(_) | Kind::Boolean(_) => false,
        })
    }

    /// Checks content that answers the schema as [`emit`](Self::emit) spells it. The text of a typed option becomes the
    /// option, that of a union the first type that it fits, that of a list one value per line. Content that is already
    /// typed is accepted too.
    ///
    /// ```
    /// use mcp_elicit_core::form::Form;
    ///
    /// let schema = r#"{"type":"object","properties":{"level":{"type":"integer","enum":[1,2]}}}"#;
    /// let form = Form::parse_leniently(schema)?;
    /// let answers = form.check_emitted(serde_json::json!({"level": "2"}))?;
    /// assert_eq!(answers.to_value(), serde_json::json!({"level": 2}));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Every violation, in the form's order.
    pub fn check_emitted(&self, content: Value) -> Result<Answers, Violations> {
        if !self.emits_other_types() {
            return self.check(content);
        }
        let Value::Object(entries) = content else {
            return self.check(content);
        };
        let mut read = Map::with_capacity(entries.len());
        for (name, value) in entries {
            let value = match self.field(&name) {
                // A text box that was left empty.
                Some(field) if !field.required() && is_blank(field.kind(), &value) => continue,
                Some(field) => from_emitted(field, value),
                None => value,
            };
            read.insert(name, value);
        }
        self.check(Value::Object(read))
    }
}

/// Returns `true` for the empty text of a field that is not a text.
fn is_blank(kind: &Kind, value: &Value) -> bool {
    matches!(kind, Kind::Union(_) | Kind::Lines(_))
        && value.as_str().is_some_and(|text| text.trim().is_empty())
}
