//! The form language: a `requestedSchema`, parsed.
//!
//! A [`Form`] is legal by construction. It comes from a text ([`Form::parse`]), a value ([`Form::from_value`]), a Rust
//! type ([`Form::from_type`]) or a builder ([`Form::builder`]), all of which run the one parser. `parse` walks the
//! schema; one file per kind of field has that kind's rules for reading, checking and emitting. `lenient` reads illegal
//! schemas of servers that a person can still fill in ([`Form::parse_leniently`]); `emitted` reads answers to the legal
//! spelling of such a form.

mod boolean;
mod build;
mod choice;
mod choices;
mod defect;
#[cfg(feature = "schemars")]
mod derive;
mod emit;
mod emitted;
mod field_kind;
mod format;
mod kind;
mod lenient;
mod limits;
mod lines;
mod number;
pub(crate) mod parse;
mod pattern;
pub(crate) mod text;
mod union;

use std::sync::Arc;

use serde_json::Value;

pub use self::boolean::Boolean;
pub use self::build::{FieldBuilder, FormBuilder, IntoOption};
pub use self::choice::{Choice, ChoiceOption, ChoiceOptions};
pub use self::choices::Choices;
pub use self::defect::{Defect, DefectCode, Defects, Note, NoteCode};
pub use self::emit::UnsupportedForm;
pub use self::field_kind::{FieldKind, FieldKinds};
pub use self::format::Format;
pub use self::kind::Kind;
pub use self::lenient::{Adjustment, AdjustmentKind};
pub use self::limits::FormLimits;
pub use self::lines::Lines;
pub use self::number::Number;
pub use self::pattern::Pattern;
pub use self::text::Text;
pub use self::union::Union;

/// A requestedSchema: a flat list of fields (elicitation, "Requested Schema").
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    fields: Vec<Field>,
    notes: Vec<Note>,
    adjustments: Vec<Adjustment>,
    /// The reason why the schema could not be read, in place of its fields.
    unread: Option<Box<str>>,
    /// Positions of the fields sorted by name; empty for a form short enough for a linear search.
    by_name: Vec<u32>,
    /// `additionalProperties: false`.
    closed: bool,
    content_bytes: usize,
}

/// The most fields that are searched linearly; longer forms use a binary search.
const LOOKED_THROUGH: usize = 12;

impl Form {
    /// Parses a requestedSchema with the default [`FormLimits`].
    ///
    /// # Errors
    /// Every [`Defect`] of the schema at once.
    pub fn parse(text: &str) -> Result<Self, Defects> {
        parse::text(text, &FormLimits::default())
    }

    /// Parses a requestedSchema with other limits.
    ///
    /// # Errors
    /// Every [`Defect`] of the schema at once.
    pub fn parse_with(text: &str, limits: &FormLimits) -> Result<Self, Defects> {
        parse::text(text, limits)
    }

    /// Reads a requestedSchema from a value with the default [`FormLimits`].
    ///
    /// # Errors
    /// Every [`Defect`] of the schema at once.
    pub fn from_value(schema: &Value) -> Result<Self, Defects> {
        parse::value(schema, &FormLimits::default())
    }

    /// Reads a requestedSchema from a value with other limits; those on bytes do not apply.
    ///
    /// # Errors
    /// Every [`Defect`] of the schema at once.
    pub fn from_value_with(schema: &Value, limits: &FormLimits) -> Result<Self, Defects> {
        parse::value(schema, limits)
    }

    /// Parses a requestedSchema as servers send them: an illegal schema that a person can still fill in becomes a form,
    /// and [`adjustments`](Self::adjustments) lists the differences. A legal schema is the same form as with
    /// [`parse`](Self::parse), without adjustments.
    ///
    /// ```
    /// use mcp_elicit_core::form::{AdjustmentKind, Form};
    ///
    /// let schema = r#"{"type":"object","properties":{"level":{"type":"integer","enum":[1,2,3]}}}"#;
    /// assert!(Form::parse(schema).is_err());
    /// let form = Form::parse_leniently(schema)?;
    /// assert_eq!(form.adjustments()[0].kind, AdjustmentKind::TypedOptions);
    /// # Ok::<(), mcp_elicit_core::form::Defects>(())
    /// ```
    ///
    /// # Errors
    /// The defects that no reading can remove, such as a nested object.
    pub fn parse_leniently(text: &str) -> Result<Self, Defects> {
        lenient::text(text, &FormLimits::default())
    }

    /// Parses a requestedSchema as servers send them, with other limits.
    ///
    /// # Errors
    /// The defects that no reading can remove, such as a nested object.
    pub fn parse_leniently_with(text: &str, limits: &FormLimits) -> Result<Self, Defects> {
        lenient::text(text, limits)
    }

    /// Reads a requestedSchema as servers send them, from a value.
    ///
    /// # Errors
    /// The defects that no reading can remove, such as a nested object.
    pub fn from_value_leniently(schema: &Value) -> Result<Self, Defects> {
        lenient::value(schema, &FormLimits::default())
    }

    fn new(fields: Vec<Field>, closed: bool, content_bytes: usize) -> Self {
        let mut by_name = Vec::new();
        if fields.len() > LOOKED_THROUGH {
            by_name = (0..u32::try_from(fields.len()).unwrap_or(u32::MAX)).collect();
            by_name
                .sort_unstable_by(|a, b| fields[*a as usize].name.cmp(&fields[*b as usize].name));
        }
        Form {
            fields,
            notes: Vec::new(),
            adjustments: Vec::new(),
            unread: None,
            by_name,
            closed,
            content_bytes,
        }
    }

    /// Returns the fields in the schema's order. A form without fields only asks for confirmation.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns an iterator over the fields in the schema's order.
    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.fields.iter()
    }

    /// Returns the field with that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.position(name).map(|i| &self.fields[i])
    }

    /// Returns the notes on a legal form.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the differences between the schema and this form, if the schema is illegal and was
    /// [read leniently](Self::parse_leniently). Empty for a legal schema.
    pub fn adjustments(&self) -> &[Adjustment] {
        &self.adjustments
    }

    /// Creates the form of a schema that cannot be read, for a question that another program shows. Its answers are not
    /// checked, and contain no values. It is never shown.
    pub fn unread(why: &str) -> Self {
        let form = Self::new(Vec::new(), false, FormLimits::default().content_bytes);
        Form {
            unread: Some(why.into()),
            ..form
        }
    }

    /// Returns `true` if the schema could not be read, so that the form cannot be shown or emitted.
    pub fn is_unread(&self) -> bool {
        self.unread.is_some()
    }

    /// Returns the reason why answers of another program that shows the schema itself are not checked by all of its
    /// rules; `None` if they are.
    pub fn unchecked(&self) -> Option<String> {
        if let Some(why) = &self.unread {
            return Some(format!("the form cannot be read: {why}"));
        }
        let all = self.adjustments.iter();
        let mut open = all.filter(|adjustment| !adjustment.kind.is_exact());
        let first = open.next()?;
        Some(match open.count() {
            0 => format!("checked as far as the form can be read: {first}"),
            more => format!("checked as far as the form can be read: {first}, and {more} more"),
        })
    }

    /// Returns `true` if the schema may accept a value of this field that the form refuses, or the other way round.
    pub fn is_read_in_part(&self, field: &str) -> bool {
        let mut all = self.adjustments.iter();
        all.any(|one| !one.kind.is_exact() && one.field.as_deref() == Some(field))
    }

    /// Returns the adjustments that the person who answers should know: rules of the server that are not checked here.
    pub fn remarks(&self) -> impl Iterator<Item = &Adjustment> {
        let adjustments = self.adjustments.iter();
        adjustments.filter(|adjustment| adjustment.kind.matters_to_a_person())
    }

    /// Returns `true` if fields that are not in the form are rejected (`additionalProperties: false`) and not merely
    /// dropped.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// Returns the longest content text that [`check_text`](Self::check_text) reads, in bytes.
    pub(crate) fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        if self.by_name.is_empty() {
            return self.fields.iter().position(|field| &*field.name == name);
        }
        let found = self
            .by_name
            .binary_search_by(|i| (*self.fields[*i as usize].name).cmp(name));
        found.ok().map(|i| self.by_name[i] as usize)
    }
}

impl std::str::FromStr for Form {
    type Err = Defects;

    /// Parses the text with [`Form::parse`].
    fn from_str(text: &str) -> Result<Self, Defects> {
        Self::parse(text)
    }
}

impl TryFrom<&Value> for Form {
    type Error = Defects;

    /// Reads the value with [`Form::from_value`].
    fn try_from(schema: &Value) -> Result<Self, Defects> {
        Self::from_value(schema)
    }
}

impl<'a> IntoIterator for &'a Form {
    type Item = &'a Field;
    type IntoIter = std::slice::Iter<'a, Field>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    name: Arc<str>,
    title: Option<Box<str>>,
    description: Option<Box<str>>,
    required: bool,
    /// `true` if the schema also accepts null, as it may if it was read leniently.
    nullable: bool,
    /// `true` if the schema requires the member and accepts null: left empty, it is sent as null.
    null_when_empty: bool,
    kind: Kind,
}

impl Field {
    /// Returns the key in the content.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Returns the schema's `title`.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns the label that a person reads: the title, or the name if there is none.
    pub fn label(&self) -> &str {
        self.title
            .as_deref()
            .filter(|title| !title.trim().is_empty())
            .unwrap_or(&self.name)
    }

    /// Returns the schema's `description`.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns `true` if the field is required.
    pub fn required(&self) -> bool {
        self.required
    }

    /// Returns `true` if null in an answer means that the field was left empty: its schema lists null beside the type,
    /// and was [read leniently](Form::parse_leniently).
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// Returns `true` if the answers contain null for the field when it is left empty: its schema requires it and
    /// accepts null.
    pub fn null_when_empty(&self) -> bool {
        self.null_when_empty
    }

    /// Returns the type of the field.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns the `default`, which obeys the field's own rules.
    pub fn default(&self) -> Option<Value> {
        self.kind.default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn wrap(properties: &str) -> String {
        format!(r#"{{"type":"object","properties":{properties}}}"#)
    }

    #[track_caller]
    pub(crate) fn form(properties: &str) -> Form {
        Form::parse(&wrap(properties)).unwrap_or_else(|defects| panic!("{defects}"))
    }

    /// Returns each defect as "pointer code".
    pub(crate) fn defects(properties: &str) -> Vec<String> {
        defects_of(&wrap(properties))
    }

    pub(crate) fn defects_of(schema: &str) -> Vec<String> {
        let list = |defects: &Defects| {
            defects
                .iter()
                .map(|d| format!("{} {}", d.pointer, d.code))
                .collect()
        };
        let from_text = Form::parse(schema).map_or_else(|defects| list(&defects), |_| Vec::new());
        if let Ok(value) = serde_json::from_str::<Value>(schema)
            && value.to_string().len() == schema.len()
        {
            let from_value =
                Form::from_value(&value).map_or_else(|defects| list(&defects), |_| Vec::new());
            assert_eq!(from_text, from_value, "text and value differ");
        }
        from_text
    }

    pub(crate) fn notes(properties: &str) -> Vec<String> {
        form(properties)
            .notes()
            .iter()
            .map(|n| format!("{} {}", n.pointer, n.code))
            .collect()
    }

    /// Returns the codes of the rules that content breaks, whichever way it is passed in.
    #[track_caller]
    pub(crate) fn broken(form: &Form, content: &str) -> Vec<&'static str> {
        let value: Value = serde_json::from_str(content).unwrap();
        let codes = |violations: &crate::answer::Violations| {
            violations
                .iter()
                .map(|v| v.rule().code())
                .collect::<Vec<_>>()
        };
        let by_value = codes(&form.violations(&value));
        let by_text = match form.check_text(content) {
            Ok(_) => Vec::new(),
            Err(crate::answer::CheckError::Violations(violations)) => codes(&violations),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(by_value, by_text);
        by_value
    }

    #[test]
    fn all_defects_at_once_in_order() {
        let schema = r#"{"type":"object","$ref":"x","properties":{
            "a":{"type":"string","minLength":"1"},
            "b":{"type":["string","null"]},
            "c":{"type":"object","properties":{}},
            "d":{"type":"uuid"},
            "e":{"enum":["x"]},
            "f":true,
            "g/h":{"type":"string","not":{}},
            "i":{"type":"array","items":{"type":"string"}},
            "j":{"$ref":"y"}
        },"required":["a","zz",3],"minProperties":1}"#;
        assert_eq!(
            defects_of(schema),
            [
                "/$ref reference",
                "/minProperties unsupported-keyword",
                "/properties/a/minLength keyword-type",
                "/properties/b/type type-list",
                "/properties/c/properties nested",
                "/properties/c/type nested",
                "/properties/d/type unknown-type",
                "/properties/e missing-type",
                "/properties/f field-not-an-object",
                "/properties/g~1h/not unsupported-keyword",
                "/properties/i/items array-items",
                "/properties/j/$ref reference",
                "/properties/j missing-type",
                "/required/1 required-unknown",
                "/required/2 keyword-type",
            ]
        );
    }

    #[test]
    fn roots() {
        for (schema, expected) in [
            ("", " not-json"),
            ("[]", " not-an-object"),
            (r#"{"properties":{}}"#, " root-type"),
            (r#"{"type":"array","properties":{}}"#, "/type root-type"),
            (r#"{"type":"object"}"#, " no-properties"),
            (
                r#"{"type":"object","properties":[]}"#,
                "/properties no-properties",
            ),
            (
                r#"{"type":"object","properties":{},"required":"a"}"#,
                "/required keyword-type",
            ),
            (
                r#"{"type":"object","properties":{},"additionalProperties":{"type":"string"}}"#,
                "/additionalProperties unsupported-keyword",
            ),
        ] {
            assert_eq!(defects_of(schema), [expected], "{schema}");
        }
        for open in ["true", "{}"] {
            let schema =
                format!(r#"{{"type":"object","properties":{{}},"additionalProperties":{open}}}"#);
            assert!(!Form::parse(&schema).unwrap().closed(), "{open}");
        }
        assert_eq!(
            defects_of(
                r#"{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"string"}}}"#
            ),
            ["/properties/a duplicate-field"]
        );
    }

    #[test]
    fn a_member_that_stands_twice_is_refused_at_any_depth() {
        for (schema, place) in [
            (
                r#"{"type":"object","properties":{},"type":"object"}"#,
                "/type",
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":"string"}},"properties":{}}"#,
                "/properties",
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":"string","title":"Keep","title":"Delete"}}}"#,
                "/properties/a/title",
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":"string","t\u0069tle":"Keep","title":"Delete"}}}"#,
                "/properties/a/title",
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"x","title":"X","const":"y"}]}}}"#,
                "/properties/a/oneOf/0/const",
            ),
            (
                r#"{"type":"object","properties":{},"x-own":{"a":[{"b":1,"b":2}]}}"#,
                "/x-own/a/0/b",
            ),
        ] {
            assert_eq!(
                defects_of(schema),
                [format!("{place} duplicate-member")],
                "{schema}"
            );
        }
    }

    #[test]
    fn a_form_without_fields_asks_to_confirm() {
        let form = form("{}");
        assert!(form.fields().is_empty());
        assert_eq!(broken(&form, "{}"), [""; 0]);
        assert_eq!(broken(&form, "[]"), ["type"]);
    }

    #[test]
    fn order_is_kept_and_annotations_are_no_defects() {
        let form = Form::parse(
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","x-order":1,"type":"object","properties":{
                "z":{"type":"string","title":"Zed","description":"last letter","examples":["q"],"x-ui":"wide"},
                "a":{"type":"boolean","minLength":2}},"required":["a"]}"#,
        )
        .unwrap();
        let names: Vec<_> = form.fields().iter().map(Field::name).collect();
        assert_eq!(names, ["z", "a"]);
        assert_eq!(form.field("z").unwrap().label(), "Zed");
        assert!(form.field("a").unwrap().required());
        let notes: Vec<_> = form
            .notes()
            .iter()
            .map(|n| format!("{} {}", n.pointer, n.code))
            .collect();
        assert_eq!(
            notes,
            [
                "/x-order unknown-keyword",
                "/properties/z/x-ui unknown-keyword",
                "/properties/a/minLength no-effect"
            ]
        );
    }

    #[test]
    fn limits_hold() {
        let limits = FormLimits {
            schema_bytes: 200,
            fields: 2,
            options: 2,
            ..FormLimits::default()
        };
        let codes = |schema: &str| Form::parse_with(schema, &limits).unwrap_err().first().code;
        assert_eq!(
            codes(&wrap(&format!(
                "{{\"a\":{{\"type\":\"string\",\"title\":\"{}\"}}}}",
                "x".repeat(200)
            ))),
            DefectCode::TooLarge
        );
        assert_eq!(
            codes(&wrap(
                r#"{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}}"#
            )),
            DefectCode::TooManyFields
        );
        assert_eq!(
            codes(&wrap(r#"{"a":{"type":"string","enum":["a","b","c"]}}"#)),
            DefectCode::TooManyOptions
        );
    }

    #[test]
    fn many_fields_are_found() {
        let properties: Vec<_> = (0..200)
            .map(|i| format!(r#""f{i}":{{"type":"integer","minimum":{i}}}"#))
            .collect();
        let form = form(&format!("{{{}}}", properties.join(",")));
        assert_eq!(form.position("f137"), Some(137));
        assert_eq!(form.position("nope"), None);
        assert_eq!(
            broken(&form, r#"{"f199":198,"f3":1,"f0":0}"#),
            ["minimum", "minimum"]
        );
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_crash() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(defects_of(&deep), [" not-json"]);
    }
}
