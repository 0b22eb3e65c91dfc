//! Errors in an answer. A violation states the field's rule, never the person's value.

use std::fmt;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::Number;

use crate::form::{ChoiceOptions, Format};
use crate::number::text;

/// One rule that a value breaks.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    pub(crate) index: usize,
    pub(crate) field: Arc<str>,
    pub(crate) rule: BrokenRule,
}

/// The rule of a field that was broken, with its limit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BrokenRule {
    /// The field is required and has no value. Null is not a value.
    Required,
    /// The value has the wrong type.
    Type(ExpectedType),
    /// Fewer characters (Unicode code points) than this.
    MinLength(u64),
    /// More characters (Unicode code points) than this.
    MaxLength(u64),
    /// The text does not match this regular expression.
    Pattern(Arc<str>),
    /// The text does not have this format.
    Format(Format),
    /// The number is below this.
    Minimum(Number),
    /// The number is above this.
    Maximum(Number),
    /// The number is not greater than this.
    ExclusiveMinimum(Number),
    /// The number is not less than this.
    ExclusiveMaximum(Number),
    /// The number is not a whole multiple of this.
    MultipleOf(Number),
    /// Only this value is allowed (as JSON text).
    Const(Box<str>),
    /// The value, or one of several, is not among these options.
    Enum(ChoiceOptions),
    /// Fewer options picked than this.
    MinItems(u64),
    /// More options picked than this.
    MaxItems(u64),
    /// The same option picked twice.
    UniqueItems,
    /// Fewer lines written than this.
    MinLines(u64),
    /// More lines written than this.
    MaxLines(u64),
    /// The same line written twice.
    UniqueLines,
    /// The form does not allow other fields (`additionalProperties: false`), and this is one.
    AdditionalProperties,
}

/// The JSON type that a field requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpectedType {
    /// The content itself: an object.
    Object,
    /// A string.
    Text,
    /// Any number.
    Number,
    /// A number without fractional part.
    Integer,
    /// True or false.
    Boolean,
    /// An array of strings.
    Choices,
    /// A value of one of several types.
    Scalar,
    /// An array of values.
    List,
}

impl BrokenRule {
    /// Returns the stable code: the JSON Schema keyword of the rule. A choice is `enum` however its options are
    /// spelled.
    pub const fn code(&self) -> &'static str {
        match self {
            BrokenRule::Required => "required",
            BrokenRule::Type(_) => "type",
            BrokenRule::MinLength(_) => "minLength",
            BrokenRule::MaxLength(_) => "maxLength",
            BrokenRule::Pattern(_) => "pattern",
            BrokenRule::Format(_) => "format",
            BrokenRule::Minimum(_) => "minimum",
            BrokenRule::Maximum(_) => "maximum",
            BrokenRule::ExclusiveMinimum(_) => "exclusiveMinimum",
            BrokenRule::ExclusiveMaximum(_) => "exclusiveMaximum",
            BrokenRule::MultipleOf(_) => "multipleOf",
            BrokenRule::Const(_) => "const",
            BrokenRule::Enum(_) => "enum",
            BrokenRule::MinItems(_) | BrokenRule::MinLines(_) => "minItems",
            BrokenRule::MaxItems(_) | BrokenRule::MaxLines(_) => "maxItems",
            BrokenRule::UniqueItems | BrokenRule::UniqueLines => "uniqueItems",
            BrokenRule::AdditionalProperties => "additionalProperties",
        }
    }
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokenRule::Required => f.write_str("a value is required"),
            BrokenRule::Type(ExpectedType::Object) => f.write_str("must be an object of fields"),
            BrokenRule::Type(ExpectedType::Text) => f.write_str("must be text"),
            BrokenRule::Type(ExpectedType::Number) => f.write_str("must be a number"),
            BrokenRule::Type(ExpectedType::Integer) => f.write_str("must be a whole number"),
            BrokenRule::Type(ExpectedType::Boolean) => f.write_str("must be yes or no"),
            BrokenRule::Type(ExpectedType::Choices) => f.write_str("must be a list of options"),
            BrokenRule::Type(ExpectedType::Scalar) => {
                f.write_str("has none of the types of this field")
            }
            BrokenRule::Type(ExpectedType::List) => {
                f.write_str("must be a list, one value per line")
            }
            BrokenRule::MinLength(1) => f.write_str("must not be empty"),
            BrokenRule::MinLength(n) => write!(f, "must have at least {n} characters"),
            BrokenRule::MaxLength(1) => f.write_str("must have at most 1 character"),
            BrokenRule::MaxLength(n) => write!(f, "must have at most {n} characters"),
            BrokenRule::Pattern(pattern) => write!(f, "must match the pattern {pattern}"),
            BrokenRule::Format(format) => write!(f, "must be {}", format.expected()),
            BrokenRule::Minimum(n) => write!(f, "must be {} or more", text(n)),
            BrokenRule::Maximum(n) => write!(f, "must be {} or less", text(n)),
            BrokenRule::ExclusiveMinimum(n) => write!(f, "must be more than {}", text(n)),
            BrokenRule::ExclusiveMaximum(n) => write!(f, "must be less than {}", text(n)),
            BrokenRule::MultipleOf(n) => write!(f, "must be a multiple of {}", text(n)),
            BrokenRule::Const(value) => write!(f, "must be {value}"),
            BrokenRule::Enum(options) => write_options(f, options),
            BrokenRule::MinItems(1) => f.write_str("pick at least 1 option"),
            BrokenRule::MinItems(n) => write!(f, "pick at least {n} options"),
            BrokenRule::MaxItems(1) => f.write_str("pick at most 1 option"),
            BrokenRule::MaxItems(n) => write!(f, "pick at most {n} options"),
            BrokenRule::UniqueItems => f.write_str("each option can be picked once"),
            BrokenRule::MinLines(1) => f.write_str("write at least 1 line"),
            BrokenRule::MinLines(n) => write!(f, "write at least {n} lines"),
            BrokenRule::MaxLines(1) => f.write_str("write at most 1 line"),
            BrokenRule::MaxLines(n) => write!(f, "write at most {n} lines"),
            BrokenRule::UniqueLines => f.write_str("each line can be written once"),
            BrokenRule::AdditionalProperties => {
                f.write_str("the form has no such field and takes no others")
            }
        }
    }
}

/// The most options that a message lists; a longer list is counted instead.
const OPTIONS_SPELLED: usize = 8;

fn write_options(f: &mut fmt::Formatter<'_>, options: &ChoiceOptions) -> fmt::Result {
    f.write_str("must be one of ")?;
    for (i, option) in options.iter().take(OPTIONS_SPELLED).enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        f.write_str(&option.value)?;
    }
    match options.len().checked_sub(OPTIONS_SPELLED) {
        Some(more @ 1..) => write!(f, " and {more} more"),
        _ => Ok(()),
    }
}

impl Violation {
    /// Returns the field's name; empty for a violation of the content as a whole.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the broken rule, with its limit.
    pub fn rule(&self) -> &BrokenRule {
        &self.rule
    }

    /// Returns the rule in words for a person, without the field's name: show it beside the field.
    pub fn message(&self) -> String {
        self.rule.to_string()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.field {
            "" => write!(f, "the answer {}", self.rule),
            field => write!(f, "{field}: {}", self.rule),
        }
    }
}

/// Serializes as `{"field", "rule", "message"}`.
impl Serialize for Violation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut violation = serializer.serialize_struct("Violation", 3)?;
        violation.serialize_field("field", &*self.field)?;
        violation.serialize_field("rule", self.rule.code())?;
        violation.serialize_field("message", &self.message())?;
        violation.end()
    }
}

/// Every rule that one answer breaks, in the form's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Violations(pub(crate) Vec<Violation>);

impl Violations {
    /// Returns `true` if there are no violations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of violations.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns an iterator over the violations.
    pub fn iter(&self) -> std::slice::Iter<'_, Violation> {
        self.0.iter()
    }

    /// Returns the violations of one field.
    pub fn for_field<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a Violation> {
        self.0
            .iter()
            .filter(move |violation| violation.field() == field)
    }
}

impl IntoIterator for Violations {
    type Item = Violation;
    type IntoIter = std::vec::IntoIter<Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Violations {
    type Item = &'a Violation;
    type IntoIter = std::slice::Iter<'a, Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Violations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, violation) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            violation.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}
