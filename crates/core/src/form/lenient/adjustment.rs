//! The table of the lenient reading: one row for each difference between a schema and the form that is read from it.

use std::fmt;

/// One difference between an illegal schema and the form that was read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adjustment {
    /// The location in the schema, as a JSON Pointer (RFC 6901). Within a definition that is read in place, it is the
    /// location of the field that refers to it.
    pub pointer: String,
    /// The name of the field; `None` for the schema itself.
    pub field: Option<String>,
    /// The kind of adjustment, as a stable code.
    pub kind: AdjustmentKind,
    /// The meaning, as a sentence for a person.
    pub message: String,
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $code:literal,)+) => {
        /// The kind of an [`Adjustment`]: one row of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum AdjustmentKind { $($(#[$doc])* $variant,)+ }

        impl AdjustmentKind {
            /// Every kind, in order.
            pub const ALL: &'static [AdjustmentKind] = &[$(AdjustmentKind::$variant,)+];

            /// Returns the stable spelling, in kebab-case.
            pub const fn as_str(self) -> &'static str {
                match self { $(AdjustmentKind::$variant => $code,)+ }
            }
        }

        impl fmt::Display for AdjustmentKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

kinds! {
    /// There is no schema, or it is null: the question asks to confirm.
    NoSchema = "no-schema",
    /// The schema has no `properties`: the question asks to confirm.
    NoProperties = "no-properties",
    /// An empty list in place of an empty object, as PHP writes one.
    EmptyList = "empty-list",
    /// The schema's `type` is missing, or is not `object` alone, although it has `properties`.
    RootType = "root-type",
    /// A `$ref` to a definition in the same schema is read in place.
    Reference = "reference",
    /// The members of an `allOf` are read in place.
    AllOf = "all-of",
    /// Null is accepted beside the type: the field may be left empty.
    NullOption = "null-option",
    /// Options that are numbers or booleans: the typed value is sent.
    TypedOptions = "typed-options",
    /// Options in a spelling that no revision lists, such as `oneOf` without `type`.
    OptionsSpelling = "options-spelling",
    /// An option that is null, occurs twice or cannot be shown is left out.
    OptionDropped = "option-dropped",
    /// A list of options without an option is ignored.
    NoOptions = "no-options",
    /// `enumNames` that do not name the options are ignored.
    NamesIgnored = "names-ignored",
    /// A list of values that are written, one per line.
    Lines = "lines",
    /// A value of one of several types: the text is sent as the first type that it fits.
    Union = "union",
    /// An alternative of a union that cannot be shown is left out.
    AlternativeDropped = "alternative-dropped",
    /// The field has no `type`, which is taken from its other keywords, or is text.
    TypeAssumed = "type-assumed",
    /// A `type` that JSON Schema does not have.
    TypeName = "type-name",
    /// A `format` that forms do not have is not enforced.
    FormatNotEnforced = "format-not-enforced",
    /// A `pattern` that cannot be read is not enforced.
    PatternNotEnforced = "pattern-not-enforced",
    /// A bound that is invalid or that no value meets is not enforced.
    BoundNotEnforced = "bound-not-enforced",
    /// A rule that forms do not have is not enforced.
    RuleNotEnforced = "rule-not-enforced",
    /// A `default` that breaks its field's rules is ignored.
    DefaultDropped = "default-dropped",
    /// An entry of `required` that names no field is ignored.
    RequiredDropped = "required-dropped",
    /// A keyword whose value has the wrong type, or that has no meaning there, is ignored.
    KeywordIgnored = "keyword-ignored",
    /// A field that accepts no value is left out.
    FieldDropped = "field-dropped",
}

impl AdjustmentKind {
    /// Returns `true` if the form accepts the same values as the schema.
    pub const fn is_exact(self) -> bool {
        match self {
            Self::NoSchema
            | Self::NoProperties
            | Self::EmptyList
            | Self::RootType
            | Self::Reference
            | Self::AllOf
            | Self::NullOption
            | Self::TypedOptions
            | Self::OptionsSpelling
            | Self::NamesIgnored
            | Self::Lines
            | Self::Union
            | Self::DefaultDropped
            | Self::KeywordIgnored => true,
            Self::OptionDropped
            | Self::NoOptions
            | Self::AlternativeDropped
            | Self::TypeAssumed
            | Self::TypeName
            | Self::FormatNotEnforced
            | Self::PatternNotEnforced
            | Self::BoundNotEnforced
            | Self::RuleNotEnforced
            | Self::RequiredDropped
            | Self::FieldDropped => false,
        }
    }

    /// Returns `true` if the person who answers should know: the server has a rule that is not checked here.
    pub const fn matters_to_a_person(self) -> bool {
        match self {
            Self::FormatNotEnforced
            | Self::PatternNotEnforced
            | Self::BoundNotEnforced
            | Self::RuleNotEnforced
            | Self::NoOptions
            | Self::TypeName
            | Self::RequiredDropped => true,
            Self::NoSchema
            | Self::NoProperties
            | Self::EmptyList
            | Self::RootType
            | Self::Reference
            | Self::AllOf
            | Self::NullOption
            | Self::TypedOptions
            | Self::OptionsSpelling
            | Self::OptionDropped
            | Self::NamesIgnored
            | Self::Lines
            | Self::Union
            | Self::AlternativeDropped
            | Self::TypeAssumed
            | Self::DefaultDropped
            | Self::KeywordIgnored
            | Self::FieldDropped => false,
        }
    }
}
