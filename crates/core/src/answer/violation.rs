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
    pub(crate) rule: Rule,
}

/// The rule of a field that was broken, with its limit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Rule {
    /// The field is required and has no value. Null is not a value.
    Required,
    /// The value has the wrong type.
    Type(Expected),
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
pub enum Expected {
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

impl Rule {
    /// Returns the stable code: the JSON Schema keyword of the rule. A choice is `enum` however its options are
    /// spelled.
    pub const fn code(&self) -> &'static str {
        match self {
            Rule::Required => "required",
            Rule::Type(_) => "type",
            Rule::MinLength(_) => "minLength",
            Rule::MaxLength(_) => "maxLength",
            Rule::Pattern(_) => "pattern",
            Rule::Format(_) => "format",
            Rule::Minimum(_) => "minimum",
            Rule::Maximum(_) => "maximum",
            Rule::ExclusiveMinimum(_) => "exclusiveMinimum",
            Rule::ExclusiveMaximum(_) => "exclusiveMaximum",
            Rule::MultipleOf(_) => "multipleOf",
            Rule::Const(_) => "const",
            Rule::Enum(_) => "enum",
            Rule::MinItems(_) | Rule::MinLines(_) => "minItems",
            Rule::MaxItems(_) | Rule::MaxLines(_) => "maxItems",
            Rule::UniqueItems | Rule::UniqueLines => "uniqueItems",
            Rule::AdditionalProperties => "additionalProperties",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Required => f.write_str("a value is required"),
            Rule::Type(Expected::Object) => f.write_str("must be an object of fields"),
            Rule::Type(Expected::Text) => f.write_str("must be text"),
            Rule::Type(Expected::Number) => f.write_str("must be a number"),
            Rule::Type(Expected::Integer) => f.write_str("must be a whole number"),
            Rule::Type(Expected::Boolean) => f.write_str("must be yes or no"),
            Rule::Type(Expected::Choices) => f.write_str("must be a list of options"),
            Rule::Type(Expected::Scalar) => f.write_str("has none of the types of this field"),
            Rule::Type(Expected::List) => f.write_str("must be a list, one value per line"),
            Rule::MinLength(1) => f.write_str("must not be empty"),
            Rule::MinLength(n) => write!(f, "must have at least {n} characters"),
            Rule::MaxLength(1) => f.write_str("must have at most 1 character"),
            Rule::MaxLength(n) => write!(f, "must have at most {n} characters"),
            Rule::Pattern(pattern) => write!(f, "must match the pattern {pattern}"),
            Rule::Format(format) => write!(f, "must be {}", format.expected()),
            Rule::Minimum(n) => write!(f, "must be {} or more", text(n)),
            Rule::Maximum(n) => write!(f, "must be {} or less", text(n)),
            Rule::ExclusiveMinimum(n) => write!(f, "must be more than {}", text(n)),
            Rule::ExclusiveMaximum(n) => write!(f, "must be less than {}", text(n)),
            Rule::MultipleOf(n) => write!(f, "must be a multiple of {}", text(n)),
            Rule::Const(value) => write!(f, "must be {value}"),
            Rule::Enum(options) => write_options(f, options),
            Rule::MinItems(1) => f.write_str("pick at least 1 option"),
            Rule::MinItems(n) => write!(f, "pick at least {n} options"),
            Rule::MaxItems(1) => f.write_str("pick at most 1 option"),
            Rule::MaxItems(n) => write!(f, "pick at most {n} options"),
            Rule::UniqueItems => f.write_str("each option can be picked once"),
            Rule::MinLines(1) => f.write_str("write at least 1 line"),
            Rule::MinLines(n) => write!(f, "write at least {n} lines"),
            Rule::MaxLines(1) => f.write_str("write at most 1 line"),
            Rule::MaxLines(n) => write!(f, "write at most {n} lines"),
            Rule::UniqueLines => f.write_str("each line can be written once"),
            Rule::AdditionalProperties => {
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
    pub fn rule(&self) -> &Rule {
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
