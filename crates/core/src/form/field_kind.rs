//! The kinds of field as a client may be able to show them, and sets of them.

use std::fmt;

use super::{Form, Format, Kind};

/// A kind of field, as clients differ in showing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldKind {
    /// Text without a format.
    Text,
    /// Any number.
    Number,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
    /// One option of a list.
    Choice,
    /// Several options of a list.
    Choices,
    /// A date.
    Date,
    /// A date with its time.
    DateTime,
    /// A mail address.
    Email,
    /// A URI.
    Uri,
    /// A value of one of several types, which no revision lists.
    Union,
    /// Several values that the person writes, which no revision lists.
    Lines,
}

impl FieldKind {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::Text,
        Self::Number,
        Self::Integer,
        Self::Boolean,
        Self::Choice,
        Self::Choices,
        Self::Date,
        Self::DateTime,
        Self::Email,
        Self::Uri,
        Self::Union,
        Self::Lines,
    ];

    /// Returns the word in configuration files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Choice => "choice",
            Self::Choices => "choices",
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Union => "union",
            Self::Lines => "lines",
        }
    }

    /// Returns the kind with this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns the kind of a field.
    pub fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Text(text) => match text.format {
                None => Self::Text,
                Some(Format::Email) => Self::Email,
                Some(Format::Uri) => Self::Uri,
                Some(Format::Date) => Self::Date,
                Some(Format::DateTime) => Self::DateTime,
            },
            Kind::Number(_) => Self::Number,
            Kind::Integer(_) => Self::Integer,
            Kind::Boolean(_) => Self::Boolean,
            Kind::Choice(_) => Self::Choice,
            Kind::Choices(_) => Self::Choices,
            Kind::Union(_) => Self::Union,
            Kind::Lines(_) => Self::Lines,
        }
    }

    const fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of kinds of field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldKinds(u16);

impl FieldKinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// Every kind.
    pub const ALL: Self = Self((1 << FieldKind::ALL.len()) - 1);

    /// Returns `true` if no kind is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns `true` if this kind is in it.
    pub const fn contains(self, kind: FieldKind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Returns `true` if each kind of `other` is in it.
    pub const fn contains_all(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Returns the kinds of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the kinds that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns its kinds, in order.
    pub fn iter(self) -> impl Iterator<Item = FieldKind> {
        FieldKind::ALL
            .into_iter()
            .filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<FieldKind> for FieldKinds {
    fn from_iter<T: IntoIterator<Item = FieldKind>>(kinds: T) -> Self {
        let add = |all: u16, kind: FieldKind| all | kind.bit();
        Self(kinds.into_iter().fold(0, add))
    }
}

impl Form {
    /// Returns the kinds of its fields.
    pub fn kinds(&self) -> FieldKinds {
        let kinds = self
            .fields()
            .iter()
            .map(|field| FieldKind::of(field.kind()));
        kinds.collect()
    }

    /// Returns the kinds of its required fields.
    pub fn required_kinds(&self) -> FieldKinds {
        let required = self.fields().iter().filter(|field| field.required());
        required.map(|field| FieldKind::of(field.kind())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_word_and_a_place_of_its_own() {
        for kind in FieldKind::ALL {
            assert_eq!(FieldKind::named(kind.as_str()), Some(kind));
            let only: FieldKinds = [kind].into_iter().collect();
            assert_eq!(only.iter().collect::<Vec<_>>(), [kind]);
            assert!(FieldKinds::ALL.contains(kind));
            assert!(!FieldKinds::ALL.without(only).contains(kind));
        }
        assert_eq!(FieldKind::named("list"), None);
        assert_eq!(FieldKinds::ALL.iter().count(), FieldKind::ALL.len());
    }

    #[test]
    fn the_kinds_of_a_form_are_those_of_its_fields() {
        let form = Form::parse(
            r#"{"type":"object","required":["n","d"],"properties":{"n":{"type":"integer"},
            "d":{"type":"string","format":"date"},"t":{"type":"string","maxLength":3},
            "c":{"type":"string","enum":["a","b"]},"s":{"type":"array","items":{"type":"string","enum":["a"]}}}}"#,
        )
        .unwrap();
        let words = |kinds: FieldKinds| {
            let words: Vec<_> = kinds.iter().map(FieldKind::as_str).collect();
            words.join(" ")
        };
        assert_eq!(words(form.kinds()), "text integer choice choices date");
        assert_eq!(words(form.required_kinds()), "integer date");
    }
}
