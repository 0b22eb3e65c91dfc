//! A single value without options: its rules are read strictly, and those that cannot be enforced are removed.

use std::borrow::Cow;

use super::super::defect::{At, Defect, DefectCode, ParseFindings};
use super::super::kind::FieldReader;
use super::super::text::clip;
use super::super::{Kind, Pattern, parse};
use super::flat::Flat;
use super::{AdjustmentKind, LenientReader, SchemaLocation, UnreadablePart};
use crate::json::Json;
use crate::pointer;

/// The type of a single value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarType {
    Text,
    Number,
    Integer,
    Boolean,
}

impl ScalarType {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Integer => "a whole number",
            Self::Boolean => "yes or no",
        }
    }
}

/// Keywords that other readers of this module have used, or that are not rules.
const USED: [&str; 13] = [
    "type",
    "title",
    "description",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "enum",
    "enumNames",
    "nullable",
    "items",
    "required",
    "properties",
];

const BOUNDS_OF_TEXT: [&str; 2] = ["minLength", "maxLength"];
const BOUNDS_OF_NUMBER: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// The bytes as which one compilation of a pattern counts.
const PATTERN_BYTES: usize = 4_096;

/// The way in which a defect of one keyword is removed.
enum Remedy {
    /// The keyword is left out.
    Drop(AdjustmentKind),
    /// The bounds that contradict each other are left out.
    DropBounds,
    /// No reading removes it.
    Unreadable,
}

/// Returns the remedy for a defect of a field with a known type and without options.
fn remedy(defect: &Defect, key: &str) -> Remedy {
    let is_bound = BOUNDS_OF_TEXT.contains(&key) || BOUNDS_OF_NUMBER.contains(&key);
    match defect.code {
        DefectCode::KeywordType if is_bound || key == "multipleOf" => {
            Remedy::Drop(AdjustmentKind::BoundNotEnforced)
        }
        // Members that only objects have say nothing about a value of another type.
        DefectCode::KeywordType | DefectCode::Nested => {
            Remedy::Drop(AdjustmentKind::KeywordIgnored)
        }
        DefectCode::UnsupportedKeyword | DefectCode::EnumNotString => {
            Remedy::Drop(AdjustmentKind::RuleNotEnforced)
        }
        DefectCode::UnsupportedFormat => Remedy::Drop(AdjustmentKind::FormatNotEnforced),
        DefectCode::PatternSyntax | DefectCode::PatternCost => {
            Remedy::Drop(AdjustmentKind::PatternNotEnforced)
        }
        DefectCode::ImpossibleRange if is_bound => Remedy::DropBounds,
        DefectCode::ImpossibleRange => Remedy::Drop(AdjustmentKind::RuleNotEnforced),
        DefectCode::DefaultInvalid => Remedy::Drop(AdjustmentKind::DefaultDropped),
        DefectCode::NotJson
        | DefectCode::TooLarge
        | DefectCode::NotAnObject
        | DefectCode::RootType
        | DefectCode::NoProperties
        | DefectCode::TooManyFields
        | DefectCode::DuplicateField
        | DefectCode::DuplicateMember
        | DefectCode::FieldNotAnObject
        | DefectCode::MissingType
        | DefectCode::TypeList
        | DefectCode::UnknownType
        | DefectCode::Reference
        | DefectCode::ArrayItems
        | DefectCode::NoOptions
        | DefectCode::OptionShape
        | DefectCode::DuplicateOption
        | DefectCode::OptionsTwice
        | DefectCode::TooManyOptions
        | DefectCode::RequiredUnknown => Remedy::Unreadable,
    }
}

impl<'j, 'a> LenientReader<'j, 'a> {
    /// Returns the type that a name means; text for a name that nothing is known of.
    pub(super) fn scalar_type(&mut self, name: &str, place: &SchemaLocation) -> ScalarType {
        let scalar = match name {
            "string" => return ScalarType::Text,
            "number" => return ScalarType::Number,
            "integer" => return ScalarType::Integer,
            "boolean" => return ScalarType::Boolean,
            other => match other.to_ascii_lowercase().as_str() {
                "int" | "integer" | "int32" | "int64" | "long" | "short" | "uint" => {
                    ScalarType::Integer
                }
                "number" | "float" | "double" | "decimal" => ScalarType::Number,
                "bool" | "boolean" | "checkbox" => ScalarType::Boolean,
                _ => ScalarType::Text,
            },
        };
        let why = format!(
            "`{}` is not a type of JSON; the field is read as {}",
            clip(name),
            scalar.words()
        );
        self.adjust(AdjustmentKind::TypeName, &place.child("type"), why);
        scalar
    }

    /// Reads a value of one type.
    pub(super) fn scalar(
        &mut self,
        scalar: ScalarType,
        flat: &Flat<'j, 'a>,
        place: &SchemaLocation,
    ) -> Result<Kind, UnreadablePart> {
        let mut keywords: Vec<(Cow<'_, str>, Json<'_>)> = flat
            .keywords
            .iter()
            .filter(|(key, _)| !USED.contains(key))
            // The default of an optional field that is left empty.
            .filter(|(key, value)| *key != "default" || !matches!(value, Json::Null))
            .map(|(key, value)| (Cow::Borrowed(*key), (*value).clone()))
            .collect();
        let (mut foreign_pattern, mut other_format) = (None, None);
        loop {
            self.spend_attempt(&keywords, place)?;
            let patterns = self.patterns;
            let (kind, found) = self.attempt(scalar, &keywords);
            let Some(defect) = found.defects.first() else {
                self.notes.extend(found.notes);
                let Some(kind) = kind else {
                    let why = "this field cannot be read";
                    return Err(self.defect(place, DefectCode::UnknownType, why));
                };
                return Ok(with_unenforced(kind, foreign_pattern, other_format));
            };
            self.patterns = patterns;
            let key = defect.pointer.rsplit('/').next().unwrap_or_default();
            let key = pointer::name(key);
            let before = keywords.len();
            match remedy(defect, &key) {
                Remedy::Drop(kind) => {
                    let value = keywords.iter().find(|(name, _)| *name == key);
                    let text = value.and_then(|(_, value)| value.as_text());
                    match kind {
                        AdjustmentKind::PatternNotEnforced => {
                            foreign_pattern = text.map(Pattern::foreign);
                        }
                        AdjustmentKind::FormatNotEnforced => other_format = text.map(Into::into),
                        _ => {}
                    }
                    let why = sentence(kind, &key, text);
                    self.adjust(kind, &place.child(&key), why);
                    keywords.retain(|(name, _)| *name != key);
                }
                Remedy::DropBounds => {
                    self.adjust(
                        AdjustmentKind::BoundNotEnforced,
                        &place.child(&key),
                        format!(
                            "no value meets the bounds of this field, so they are not checked ({})",
                            defect.message
                        ),
                    );
                    keywords.retain(|(name, _)| {
                        !BOUNDS_OF_TEXT.contains(&&**name) && !BOUNDS_OF_NUMBER.contains(&&**name)
                    });
                }
                Remedy::Unreadable => {
                    self.defects.push(Defect {
                        pointer: place.child(&key).pointer,
                        ..defect.clone()
                    });
                    return Err(UnreadablePart);
                }
            }
            if keywords.len() == before {
                self.defects.push(defect.clone());
                return Err(UnreadablePart);
            }
        }
    }

    /// Counts one more reading of the keywords.
    fn spend_attempt(
        &mut self,
        keywords: &[(Cow<'_, str>, Json<'_>)],
        place: &SchemaLocation,
    ) -> Result<(), UnreadablePart> {
        for (key, value) in keywords {
            self.spend_value(value, place)?;
            if key == "pattern" {
                self.spend_bytes(PATTERN_BYTES, place)?;
            }
        }
        Ok(())
    }

    /// Reads the keywords strictly.
    fn attempt(
        &mut self,
        scalar: ScalarType,
        keywords: &[(Cow<'_, str>, Json<'_>)],
    ) -> (Option<Kind>, ParseFindings) {
        let mut members = vec![(Cow::Borrowed("type"), Json::Text(scalar.name().into()))];
        members.extend(keywords.iter().cloned());
        let mut found = ParseFindings::default();
        let mut reader = FieldReader {
            at: At::ROOT,
            limits: self.limits,
            found: &mut found,
            patterns: &mut self.patterns,
        };
        let parts = parse::read_field(&Json::Object(members), &mut reader);
        (parts.map(|(_, _, kind)| kind), found)
    }
}

fn sentence(kind: AdjustmentKind, key: &str, value: Option<&str>) -> String {
    match (kind, value) {
        (AdjustmentKind::FormatNotEnforced, Some(name)) => {
            format!(
                "the server asks for the format `{}`, which is not checked here",
                clip(name)
            )
        }
        (AdjustmentKind::PatternNotEnforced, _) => {
            "the server's pattern cannot be read, so it is not checked here".to_owned()
        }
        (AdjustmentKind::DefaultDropped, _) => {
            "the default is not a value that the field accepts, and is ignored".to_owned()
        }
        (AdjustmentKind::RuleNotEnforced, _) => {
            format!("the server's rule `{}` is not checked here", clip(key))
        }
        (AdjustmentKind::BoundNotEnforced, _) => {
            format!(
                "the server's bound `{}` is not valid and is not checked",
                clip(key)
            )
        }
        _ => format!("`{}` has no meaning here and is ignored", clip(key)),
    }
}

/// Keeps the rules that are not enforced: a person may know their meaning, and they may show that a credential is asked
/// for.
fn with_unenforced(kind: Kind, pattern: Option<Pattern>, other_format: Option<Box<str>>) -> Kind {
    match kind {
        Kind::Text(text) => Kind::Text(super::super::Text {
            pattern: pattern.or(text.pattern),
            other_format,
            ..text
        }),
        kind => kind,
    }
}
