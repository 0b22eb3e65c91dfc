//! Defects that make a requestedSchema illegal, and notes on a legal one.

use std::fmt;

use crate::pointer::token;
use crate::text::shortened;

/// One reason why a requestedSchema is not a legal form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Defect {
    /// The location in the schema, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The defect, as a stable code.
    pub code: DefectCode,
    /// The defect and the allowed values, for a person.
    pub message: String,
}

/// The most characters that are shown of a place in the schema, and of what is said of it.
const LOCATION: usize = 200;
const MESSAGE: usize = 500;

impl Defect {
    /// Returns the pointer and the message as they are shown: both may repeat names of a server, of any length.
    pub(crate) fn shown(&self) -> (String, String) {
        let pointer = shortened(&self.pointer, LOCATION);
        (pointer, shortened(&self.message, MESSAGE))
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pointer, message) = self.shown();
        let place = if pointer.is_empty() {
            "the schema"
        } else {
            &pointer
        };
        write!(f, "{place}: {message}")
    }
}

/// The most defects that are named in one text.
const SHOWN: usize = 20;

/// Every defect of one schema, in the order of the text. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defects(pub(crate) Vec<Defect>);

impl Defects {
    /// Returns an iterator over the defects.
    pub fn iter(&self) -> std::slice::Iter<'_, Defect> {
        self.0.iter()
    }

    /// Returns the first defect.
    pub fn first(&self) -> &Defect {
        &self.0[0]
    }
}

impl IntoIterator for Defects {
    type Item = Defect;
    type IntoIter = std::vec::IntoIter<Defect>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Defects {
    type Item = &'a Defect;
    type IntoIter = std::slice::Iter<'a, Defect>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Defects {
    /// Names the first 20 defects, and the number of the others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, defect) in self.0.iter().take(SHOWN).enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            defect.fmt(f)?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for Defects {}

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// Every code, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// Returns the stable spelling, in kebab-case.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $code,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

codes! {
    /// The stable code of a [`Defect`].
    DefectCode {
        /// The text is not JSON.
        NotJson = "not-json",
        /// The text is longer than [`FormLimits::schema_bytes`](super::FormLimits::schema_bytes).
        TooLarge = "too-large",
        /// The schema itself is not a JSON object.
        NotAnObject = "not-an-object",
        /// The schema's `type` is missing or not `object`.
        RootType = "root-type",
        /// The schema has no `properties` object.
        NoProperties = "no-properties",
        /// More fields than [`FormLimits::fields`](super::FormLimits::fields).
        TooManyFields = "too-many-fields",
        /// A field name occurs twice.
        DuplicateField = "duplicate-field",
        /// A member of the schema, other than a field, occurs twice in its object.
        DuplicateMember = "duplicate-member",
        /// A field's schema is not a JSON object.
        FieldNotAnObject = "field-not-an-object",
        /// A field has no `type`.
        MissingType = "missing-type",
        /// A field's `type` is a list of types.
        TypeList = "type-list",
        /// A field's `type` is not one of the five.
        UnknownType = "unknown-type",
        /// A field is itself an object, although forms are flat.
        Nested = "nested",
        /// A `$ref` or `$dynamicRef`.
        Reference = "reference",
        /// An array whose items are not strings from a list.
        ArrayItems = "array-items",
        /// An `enum` on a field that is not a string.
        EnumNotString = "enum-not-string",
        /// A list of options that is empty or not a list.
        NoOptions = "no-options",
        /// An option that is not a string (or not `{const, title}`).
        OptionShape = "option-shape",
        /// An option that occurs twice.
        DuplicateOption = "duplicate-option",
        /// Options given in two ways at once.
        OptionsTwice = "options-twice",
        /// More options than [`FormLimits::options`](super::FormLimits::options).
        TooManyOptions = "too-many-options",
        /// A keyword whose value has the wrong type.
        KeywordType = "keyword-type",
        /// A validation keyword that forms do not have.
        UnsupportedKeyword = "unsupported-keyword",
        /// A `format` that forms do not have.
        UnsupportedFormat = "unsupported-format",
        /// Bounds that no value meets.
        ImpossibleRange = "impossible-range",
        /// A `default` that breaks its own field's rules.
        DefaultInvalid = "default-invalid",
        /// A `pattern` that is not a regular expression.
        PatternSyntax = "pattern-syntax",
        /// A `pattern` over [`FormLimits::pattern_bytes`](super::FormLimits::pattern_bytes),
        /// [`FormLimits::pattern_states`](super::FormLimits::pattern_states) or
        /// [`FormLimits::pattern_memory`](super::FormLimits::pattern_memory).
        PatternCost = "pattern-cost",
        /// `required` names a field that does not exist.
        RequiredUnknown = "required-unknown",
    }
}

/// A remark on a legal form: something is ignored, or not the same in every client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The location in the schema, as an RFC 6901 JSON Pointer.
    pub pointer: String,
    /// The kind of note, as a stable code.
    pub code: NoteCode,
    /// The meaning, for a person.
    pub message: String,
}

codes! {
    /// The stable code of a [`Note`].
    NoteCode {
        /// A keyword that is understood and enforced here, but listed by no revision, so other clients may ignore it.
        NotPortable = "not-portable",
        /// A keyword without effect at this location; ignored.
        NoEffect = "no-effect",
        /// A keyword that no specification defines; ignored.
        UnknownKeyword = "unknown-keyword",
        /// A `pattern` that needs look-around or back-references, which cannot be matched in linear time; not enforced.
        PatternNotEnforced = "pattern-not-enforced",
        /// `enumNames` that do not match `enum` one to one; ignored.
        NamesIgnored = "names-ignored",
        /// `required` names the same field twice.
        DuplicateRequired = "duplicate-required",
    }
}

/// A location in the schema, as a list that grows down the stack; written out only for a finding.
#[derive(Clone, Copy)]
pub(crate) struct At<'p> {
    parent: Option<&'p At<'p>>,
    key: &'p str,
}

impl<'p> At<'p> {
    pub(crate) const ROOT: At<'static> = At {
        parent: None,
        key: "",
    };

    pub(crate) fn child(&'p self, key: &'p str) -> At<'p> {
        At {
            parent: Some(self),
            key,
        }
    }

    /// Returns `true` if this is the location of a field: a member of the root's `properties`.
    pub(crate) fn is_field(&self) -> bool {
        let properties = self.parent.filter(|parent| parent.key == "properties");
        let root = properties.and_then(|properties| properties.parent);
        root.is_some_and(|root| root.parent.is_none())
    }

    pub(crate) fn pointer(&self) -> String {
        let Some(parent) = self.parent else {
            return String::new();
        };
        let mut pointer = parent.pointer();
        pointer.push('/');
        pointer.push_str(&token(self.key));
        pointer
    }
}

/// The findings that a parse collects.
#[derive(Default)]
pub(crate) struct ParseFindings {
    pub(crate) defects: Vec<Defect>,
    pub(crate) notes: Vec<Note>,
}

impl ParseFindings {
    pub(crate) fn defect(&mut self, at: &At<'_>, code: DefectCode, message: impl Into<String>) {
        self.defects.push(Defect {
            pointer: at.pointer(),
            code,
            message: message.into(),
        });
    }

    pub(crate) fn note(&mut self, at: &At<'_>, code: NoteCode, message: impl Into<String>) {
        self.notes.push(Note {
            pointer: at.pointer(),
            code,
            message: message.into(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_escape_what_rfc_6901_says() {
        let at = At::ROOT.child("properties");
        assert_eq!(at.child("a/b~c").pointer(), "/properties/a~1b~0c");
        assert_eq!(At::ROOT.pointer(), "");
    }

    #[test]
    fn codes_are_distinct() {
        let mut codes: Vec<_> = DefectCode::ALL.iter().map(|c| c.as_str()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), DefectCode::ALL.len());
    }
}
