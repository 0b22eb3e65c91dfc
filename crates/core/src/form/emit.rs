//! From a form back to a requestedSchema, in the keywords of a revision.

use std::borrow::Cow;

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::kind::Emit;
use super::{Field, Form, Kind};
use crate::wire::Revision;

/// A form that a revision cannot express.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{field}` picks several options, which revision {revision} cannot ask: ask for one, or once for each"
)]
#[non_exhaustive]
pub struct UnsupportedForm {
    /// The field.
    pub field: String,
    /// The revision.
    pub revision: Revision,
}

impl Form {
    /// Returns the requestedSchema for a revision. Titled options become `enumNames` on 2025-06-18 and `oneOf` on later
    /// revisions. Keywords that are enforced but listed by no revision are kept: clients that implement JSON Schema
    /// know them, and others ignore them.
    ///
    /// The schema is legal for every form, also for one that was [read leniently](Self::parse_leniently): a typed option
    /// becomes a string, and a union or a list that is written becomes a text. [`check_emitted`](Self::check_emitted)
    /// reads the answers of such a schema.
    ///
    /// # Errors
    /// [`UnsupportedForm`] for several choices on 2025-06-18.
    pub fn emit(&self, revision: Revision) -> Result<Value, UnsupportedForm> {
        self.check_words(revision)?;
        let mut properties = Map::with_capacity(self.fields.len());
        for field in &self.fields {
            properties.insert(field.name.to_string(), emit_field(field, revision));
        }
        let mut out = Emit(Map::new());
        out.put("type", "object");
        out.put("properties", properties);
        let required: Vec<_> = self
            .fields
            .iter()
            .filter(|field| field.required)
            .map(Field::name)
            .collect();
        if !required.is_empty() {
            out.put("required", required);
        }
        if self.closed {
            out.put("additionalProperties", false);
        }
        Ok(Value::Object(out.0))
    }

    /// Checks that a revision can express the form, as [`emit`](Self::emit) does.
    ///
    /// # Errors
    /// [`UnsupportedForm`] for several choices on 2025-06-18.
    pub fn check_words(&self, revision: Revision) -> Result<(), UnsupportedForm> {
        let has_no_words = |field: &&Field| {
            revision == Revision::V2025_06_18 && matches!(field.kind, Kind::Choices(_))
        };
        match self.fields.iter().find(has_no_words) {
            Some(field) => Err(UnsupportedForm {
                field: field.name.to_string(),
                revision,
            }),
            None => Ok(()),
        }
    }
}

fn emit_field(field: &Field, revision: Revision) -> Value {
    let mut out = Emit(Map::new());
    out.put(
        "type",
        match &field.kind {
            Kind::Text(_) | Kind::Choice(_) | Kind::Lines(_) => "string",
            Kind::Number(_) => "number",
            Kind::Integer(_) => "integer",
            Kind::Boolean(_) => "boolean",
            Kind::Choices(_) => "array",
            Kind::Union(union) => union.emitted_type(),
        },
    );
    out.put_some("title", field.title.as_deref());
    out.put_some("description", description(field));
    match &field.kind {
        Kind::Text(text) => text.emit(&mut out),
        Kind::Number(number) | Kind::Integer(number) => number.emit(&mut out),
        Kind::Boolean(boolean) => boolean.emit(&mut out),
        Kind::Choice(choice) => choice.emit(revision, &mut out),
        Kind::Choices(choices) => choices.emit(&mut out),
        Kind::Union(union) => union.emit(&mut out),
        Kind::Lines(lines) => lines.emit(&mut out),
    }
    Value::Object(out.0)
}

/// Returns the description, with what a person must know who writes a value of a kind that no revision has.
fn description(field: &Field) -> Option<Cow<'_, str>> {
    let more = match &field.kind {
        Kind::Union(union) => format!("Accepted: {}.", union.types()),
        Kind::Lines(_) => "One value per line.".to_owned(),
        Kind::Text(_)
        | Kind::Number(_)
        | Kind::Integer(_)
        | Kind::Boolean(_)
        | Kind::Choice(_)
        | Kind::Choices(_) => return field.description().map(Cow::from),
    };
    Some(match field.description() {
        Some(description) => format!("{description} {more}").into(),
        None => more.into(),
    })
}

/// Serializes as the requestedSchema of the newest revision, which can express every form.
impl Serialize for Form {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.emit(Revision::V2026_07_28)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}
