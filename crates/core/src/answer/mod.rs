//! Answers: content that passed its form's check, and the ways to obtain them.
//!
//! `check` checks content from a peer, `draft` reads a person's input, `defaults` fills in, `option_fields` reads a list that is
//! asked as one field for each option; all end in
//! [`Form::check`](crate::form::Form::check), the only constructor of [`Answers`]. A [`Violation`] never contains a
//! value; `advice`, for the person who typed it, may.

mod advice;
mod check;
mod defaults;
mod draft;
mod judge;
mod option_fields;
mod violation;

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use self::check::CheckError;
pub(crate) use self::draft::from_emitted;
pub use self::draft::{Draft, DraftValue};
pub use self::judge::{Content, OutcomeMisfit, judge};
pub use self::option_fields::{
    NotAsked, OptionFields, asked_content, check_asked, option_fields, typed_options,
};
pub use self::violation::{BrokenRule, ExpectedType, Violation, Violations};
pub use crate::wire::Action;

/// The end of a question by a person's action. An accepted form holds [`Answers`], so unchecked content cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The form was submitted.
    Accept(Answers),
    /// The person agreed to open the URL, which does not mean that the visit is done.
    Visit,
    /// The person said no.
    Decline,
    /// The person made no choice.
    Cancel,
}

impl Outcome {
    /// Returns the action to send.
    pub const fn action(&self) -> Action {
        match self {
            Outcome::Accept(_) | Outcome::Visit => Action::Accept,
            Outcome::Decline => Action::Decline,
            Outcome::Cancel => Action::Cancel,
        }
    }

    /// Returns the answers of an accepted form.
    pub fn answers(&self) -> Option<&Answers> {
        match self {
            Outcome::Accept(answers) => Some(answers),
            Outcome::Visit | Outcome::Decline | Outcome::Cancel => None,
        }
    }
}

/// Content that passed [`Form::check`](crate::form::Form::check), in the form's order, without fields that the form
/// does not have.
///
/// A whole number in an integer field is stored as an integer: 1.0 is 1. `Debug` names the fields and masks the values;
/// serialization contains them, since that is how they are sent.
#[derive(Clone, PartialEq)]
pub struct Answers {
    entries: Vec<(Arc<str>, Value)>,
    /// The JSON texts of values with numbers that the server spells otherwise than they are written, by field.
    spellings: Vec<(Arc<str>, Box<str>)>,
    ignored: Vec<String>,
}

impl Answers {
    /// Returns the JSON text of a value that must be sent in the server's own spelling; `None` for every other.
    fn spelling(&self, name: &str) -> Option<&RawValue> {
        let mut all = self.spellings.iter();
        let (_, text) = all.find(|(field, _)| &**field == name)?;
        serde_json::from_str(text).ok()
    }

    /// Returns `true` if a number must be sent in the server's own spelling, which [`to_value`](Self::to_value) loses and
    /// serialization keeps: an option with more digits than a number of 64 bits has.
    pub fn has_spellings(&self) -> bool {
        !self.spellings.is_empty()
    }

    /// Returns the value of a field; `None` if it was omitted.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries
            .iter()
            .find(|(field, _)| &**field == name)
            .map(|(_, value)| value)
    }

    /// Returns each field that has a value, in the form's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(field, value)| (&**field, value))
    }

    /// Returns the number of fields with a value.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if no field has a value, as when a form without fields is confirmed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the names of the unknown fields that were dropped, at most 32.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Returns the content to send: an object.
    pub fn into_value(self) -> Value {
        self.entries
            .into_iter()
            .map(|(field, value)| (field.to_string(), value))
            .collect::<Map<_, _>>()
            .into()
    }

    /// Returns a copy of the content to send: an object.
    pub fn to_value(&self) -> Value {
        self.clone().into_value()
    }

    /// Reads the answers into the author's type.
    ///
    /// ```
    /// use mcp_elicit_core::form::{FieldBuilder, Form};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Person {
    ///     age: u8,
    /// }
    ///
    /// let form = Form::builder().field("age", FieldBuilder::integer().required()).build()?;
    /// let person: Person = form.check_text(r#"{"age": 36}"#)?.deserialize()?;
    /// assert_eq!(person.age, 36);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the type does not match the form. The message contains no value.
    pub fn deserialize<T: DeserializeOwned>(self) -> Result<T, ConversionError> {
        serde_json::from_value(self.into_value()).map_err(|error| ConversionError::from(&error))
    }
}

impl IntoIterator for Answers {
    type Item = (Arc<str>, Value);
    type IntoIter = std::vec::IntoIter<(Arc<str>, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a> IntoIterator for &'a Answers {
    type Item = (&'a str, &'a Value);
    type IntoIter = Box<dyn Iterator<Item = Self::Item> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.entries.iter().map(|(field, _)| (field, Masked)))
            .finish()
    }
}

/// The replacement for a person's value in debug output.
struct Masked;

impl fmt::Debug for Masked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for Answers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for (field, value) in &self.entries {
            match self.spelling(field) {
                Some(text) => map.serialize_entry(&**field, text)?,
                None => map.serialize_entry(&**field, value)?,
            }
        }
        map.end()
    }
}

/// Answers that passed the form's check but do not fit the Rust type they are read into: the author's error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answers do not fit the type they are read into: {0}")]
pub struct ConversionError(&'static str);

/// The error for an empty field that the type requires.
const EMPTY_FIELD: &str =
    "a field of the type was left empty; make it an Option or give it a serde default";

impl ConversionError {
    /// Returns `true` if the type requires a field that was left empty.
    pub fn is_empty_field(&self) -> bool {
        self.0 == EMPTY_FIELD
    }
}

impl From<&serde_json::Error> for ConversionError {
    /// Keeps only the kind of mismatch, because serde's own message may quote the person's value.
    fn from(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let kinds = [
            ("missing field", EMPTY_FIELD),
            (
                "unknown field",
                "the form has a field that the type refuses",
            ),
            (
                "unknown variant",
                "the form offers an option that the type does not have",
            ),
            (
                "invalid value",
                "a value is outside what the type holds; bound the field",
            ),
            (
                "invalid type",
                "a field has another type than the form says",
            ),
            (
                "invalid length",
                "a list has another length than the type wants",
            ),
        ];
        ConversionError(
            kinds
                .into_iter()
                .find(|(start, _)| text.starts_with(start))
                .map_or("the type's own check refused them", |(_, why)| why),
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::form::tests::form;

    #[test]
    fn typed_out_and_masked() {
        #[derive(serde::Deserialize, Debug, PartialEq)]
        struct Typed {
            age: u8,
            note: Option<String>,
        }
        let form = form(r#"{"age":{"type":"integer"},"note":{"type":"string"}}"#);
        let answers = form.check_text(r#"{"age":36.0,"other":"x"}"#).unwrap();
        assert_eq!(format!("{answers:?}"), r#"{"age": ***}"#);
        assert_eq!(answers.ignored(), ["other"]);
        assert_eq!(
            answers.deserialize::<Typed>(),
            Ok(Typed {
                age: 36,
                note: None
            })
        );

        let error = form
            .check_text(r#"{"age":777}"#)
            .unwrap()
            .deserialize::<Typed>()
            .unwrap_err();
        assert!(!error.to_string().contains("777"), "{error}");
        assert!(error.to_string().contains("bound the field"), "{error}");
    }

    #[test]
    fn the_forms_order_not_the_contents() {
        let form = form(r#"{"b":{"type":"integer"},"a":{"type":"integer"}}"#);
        let answers = form.check_text(r#"{"a":1,"b":2}"#).unwrap();
        assert_eq!(serde_json::to_string(&answers).unwrap(), r#"{"b":2,"a":1}"#);
    }
}
