//! Forms as servers send them: an illegal schema that a person can still fill in is read by a fixed table.
//!
//! The strict parser runs first, so that a legal schema is the same form in both readings. Otherwise each field is read
//! strictly if that is possible, and by the table if not: `flat` puts definitions in place, `value` finds the kind of
//! field, `options` reads lists of options, `scalar` removes the rules that cannot be enforced. `adjustment` is the
//! table. Nested objects and lists of objects stay unreadable.

mod adjustment;
mod flat;
mod options;
mod scalar;
mod value;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

pub use self::adjustment::{Adjustment, AdjustmentKind};
use self::flat::Flat;
use super::defect::{At, Defect, DefectCode, Defects, Note, ParseFindings};
use super::kind::FieldReader;
use super::pattern::Budget;
use super::text::clip;
use super::{Field, Form, FormLimits, Kind, parse};
use crate::json::Json;
use crate::pointer;

/// The most keywords and options that one reading looks at. Definitions can be read in place many times, so the
/// length of the text does not limit them.
const STEPS: usize = 200_000;

/// The most bytes that one reading copies or compares: a definition that many fields share is copied into each.
const BYTES: usize = 8 << 20;

/// The most adjustments that are listed.
const ADJUSTMENTS: usize = 1_000;

/// Reads a schema text.
pub(super) fn text(text: &str, limits: &FormLimits) -> Result<Form, Defects> {
    let mut schema = parse::tree(text, limits)?;
    if let Ok(form) = parse::read(&schema, limits) {
        return Ok(form);
    }
    schema.spell(text);
    LenientReader::new(&schema, limits).document()
}

/// Reads a schema that is already a value.
pub(super) fn value(value: &Value, limits: &FormLimits) -> Result<Form, Defects> {
    document(&Json::from_value(value), limits)
}

fn document(schema: &Json<'_>, limits: &FormLimits) -> Result<Form, Defects> {
    match parse::read(schema, limits) {
        Ok(form) => Ok(form),
        Err(_) => LenientReader::new(schema, limits).document(),
    }
}

/// The mark of a part that no reading can make readable. The reason is among the reader's defects.
#[derive(Debug)]
struct UnreadablePart;

/// A location in the schema, and the field that it belongs to.
#[derive(Clone)]
struct SchemaLocation {
    field: Option<String>,
    pointer: String,
}

impl SchemaLocation {
    fn root() -> Self {
        SchemaLocation {
            field: None,
            pointer: String::new(),
        }
    }

    fn of_field(name: &str) -> Self {
        let properties = Self::root().child("properties");
        SchemaLocation {
            field: Some(name.to_owned()),
            ..properties.child(name)
        }
    }

    fn child(&self, key: &str) -> Self {
        let key = pointer::token(key);
        SchemaLocation {
            field: self.field.clone(),
            pointer: format!("{}/{key}", self.pointer),
        }
    }
}

/// Returns each defect once. A definition that several alternatives share has the same ones each time.
fn distinct_defects(mut defects: Vec<Defect>) -> Vec<Defect> {
    let mut known = HashSet::new();
    defects.retain(|defect| {
        let named = (defect.pointer.clone(), defect.code, defect.message.clone());
        known.insert(named)
    });
    defects
}

/// The state of one reading.
struct LenientReader<'j, 'a> {
    root: &'j Json<'a>,
    limits: &'j FormLimits,
    patterns: Budget,
    steps: usize,
    bytes: usize,
    /// Set once more is needed than `steps` or `bytes` have left.
    is_overspent: bool,
    adjustments: Vec<Adjustment>,
    notes: Vec<Note>,
    defects: Vec<Defect>,
}

/// A field before it is known whether it is required.
struct FieldResult {
    title: Option<Box<str>>,
    description: Option<Box<str>>,
    /// `None` for a field that accepts no value but null.
    kind: Option<Kind>,
    nullable: bool,
    /// `required: true` in the field itself, as in JSON Schema draft 3.
    required: bool,
}

impl<'j, 'a> LenientReader<'j, 'a> {
    fn new(root: &'j Json<'a>, limits: &'j FormLimits) -> Self {
        LenientReader {
            root,
            limits,
            patterns: Budget::new(limits),
            steps: STEPS,
            bytes: BYTES,
            is_overspent: false,
            adjustments: Vec::new(),
            notes: Vec::new(),
            defects: Vec::new(),
        }
    }

    fn document(mut self) -> Result<Form, Defects> {
        let form = self.form();
        if self.adjustments.is_empty() {
            // The schema is illegal, such as by a default of null, and others must know that.
            let why = "a part of the schema that has no meaning here is ignored";
            self.adjust(AdjustmentKind::KeywordIgnored, &SchemaLocation::root(), why);
        }
        if self.is_overspent && self.defects.is_empty() {
            self.too_large(&SchemaLocation::root());
        }
        match form {
            Ok(form) if self.defects.is_empty() => Ok(Form {
                notes: self.notes,
                adjustments: self.adjustments,
                ..form
            }),
            _ => Err(Defects(distinct_defects(self.defects))),
        }
    }

    fn adjust(&mut self, kind: AdjustmentKind, place: &SchemaLocation, message: impl Into<String>) {
        // Each adjustment repeats the name of its field, which may be long.
        if !self.takes(place.pointer.len()) {
            return;
        }
        let adjustment = Adjustment {
            pointer: place.pointer.clone(),
            field: place.field.clone(),
            kind,
            message: message.into(),
        };
        // A definition that several alternatives share says the same each time.
        let mut recent = self.adjustments.iter().rev().take(16);
        if self.adjustments.len() < ADJUSTMENTS && !recent.any(|known| *known == adjustment) {
            self.adjustments.push(adjustment);
        }
    }

    fn defect(
        &mut self,
        place: &SchemaLocation,
        code: DefectCode,
        message: impl Into<String>,
    ) -> UnreadablePart {
        self.defects.push(Defect {
            pointer: place.pointer.clone(),
            code,
            message: message.into(),
        });
        UnreadablePart
    }

    /// Counts work, which definitions in place can multiply.
    fn spend(&mut self, steps: usize, place: &SchemaLocation) -> Result<(), UnreadablePart> {
        match self.steps.checked_sub(steps) {
            Some(left) if !self.is_overspent => {
                self.steps = left;
                Ok(())
            }
            _ => Err(self.too_large(place)),
        }
    }

    /// Counts bytes that are copied or compared.
    fn spend_bytes(&mut self, bytes: usize, place: &SchemaLocation) -> Result<(), UnreadablePart> {
        if self.takes(bytes) {
            Ok(())
        } else {
            Err(self.too_large(place))
        }
    }

    /// Counts the texts in a value. Counting ends with the bytes that are left.
    fn spend_value(
        &mut self,
        value: &Json<'_>,
        place: &SchemaLocation,
    ) -> Result<(), UnreadablePart> {
        if take_bytes_of(value, &mut self.bytes).is_none() {
            self.is_overspent = true;
        }
        self.spend_bytes(0, place)
    }

    /// Returns `false` if fewer bytes are left.
    fn takes(&mut self, bytes: usize) -> bool {
        match self.bytes.checked_sub(bytes) {
            Some(left) => self.bytes = left,
            None => self.is_overspent = true,
        }
        !self.is_overspent
    }

    fn too_large(&mut self, place: &SchemaLocation) -> UnreadablePart {
        // Nothing else is read, so that what is left out of one alternative is not spent on the next.
        self.is_overspent = true;
        let why = "the definitions of this form make it too large to show";
        self.defect(place, DefectCode::TooLarge, why)
    }

    fn form(&mut self) -> Result<Form, UnreadablePart> {
        let place = SchemaLocation::root();
        let confirmation = Form::new(Vec::new(), false, self.limits.content_bytes);
        match self.root {
            Json::Null => {
                let why = "there is no schema: the question asks to confirm";
                self.adjust(AdjustmentKind::NoSchema, &place, why);
                return Ok(confirmation);
            }
            Json::Boolean(_) | Json::Number(..) | Json::Text(_) => {
                let why = format!(
                    "a requestedSchema must be an object, not {}",
                    self.root.kind()
                );
                return Err(self.defect(&place, DefectCode::NotAnObject, why));
            }
            Json::List(items) if !items.is_empty() => {
                let why = "a requestedSchema must be an object, not an array";
                return Err(self.defect(&place, DefectCode::NotAnObject, why));
            }
            Json::List(_) | Json::Object(_) => {}
        }
        let flat = self.flatten(self.root, &place)?;
        let flat = self.only_object(flat, &place)?;
        let has_fields = flat
            .properties
            .iter()
            .any(|properties| !is_empty(properties));
        self.check_root_type(&flat, has_fields, &place)?;
        let closed = self.root_rules(&flat, &place);
        if flat.properties.is_empty() {
            let why = "the form has no fields: the question asks to confirm";
            self.adjust(AdjustmentKind::NoProperties, &place, why);
        }
        let fields = self.fields(&flat)?;
        Ok(Form::new(fields, closed, self.limits.content_bytes))
    }

    /// Puts the only object of a root `anyOf` or `oneOf` in place, if the schema has no fields of its own.
    fn only_object(
        &mut self,
        flat: Flat<'j, 'a>,
        place: &SchemaLocation,
    ) -> Result<Flat<'j, 'a>, UnreadablePart> {
        for key in ["anyOf", "oneOf"] {
            let (true, Some(Json::List(entries))) = (flat.properties.is_empty(), flat.get(key))
            else {
                continue;
            };
            let place = place.child(key);
            let mut objects = Vec::new();
            for entry in entries {
                let entry = self.flatten(entry, &place)?;
                if !entry.is_null() {
                    objects.push(entry);
                }
            }
            if let Ok([only]) = <[Flat<'_, '_>; 1]>::try_from(objects.clone()) {
                let why = "the only form among the alternatives is read";
                self.adjust(AdjustmentKind::RootType, &place, why);
                return Ok(flat.without(&[key]).over(&only));
            }
            if objects.iter().any(|object| !object.properties.is_empty()) {
                let why =
                    "the question offers several forms to choose from; a person can be shown one";
                return Err(self.defect(&place, DefectCode::UnsupportedKeyword, why));
            }
        }
        Ok(flat)
    }

    fn check_root_type(
        &mut self,
        flat: &Flat<'_, '_>,
        has_fields: bool,
        place: &SchemaLocation,
    ) -> Result<(), UnreadablePart> {
        let place = place.child("type");
        match flat.get("type") {
            Some(Json::Text(kind)) if kind == "object" => {}
            Some(Json::List(kinds))
                if kinds.iter().any(|kind| kind.as_text() == Some("object")) =>
            {
                self.adjust(AdjustmentKind::RootType, &place, "the answer is an object");
            }
            Some(_) if has_fields => {
                let why = "the form's `type` is ignored, since it has fields";
                self.adjust(AdjustmentKind::RootType, &place, why);
            }
            None if flat.properties.is_empty() => {}
            None => {
                let why = "the form has no `type`; it has fields, so the answer is an object";
                self.adjust(AdjustmentKind::RootType, &place, why);
            }
            Some(_) => {
                let why = "the answer to a question is an object of fields; this schema asks for another type";
                return Err(self.defect(&place, DefectCode::RootType, why));
            }
        }
        Ok(())
    }

    /// Reads the rules of the schema itself. Returns `true` if other fields are rejected.
    fn root_rules(&mut self, flat: &Flat<'_, '_>, place: &SchemaLocation) -> bool {
        let mut closed = false;
        for (key, value) in &flat.keywords {
            let place = place.child(key);
            match (*key, value) {
                ("type", _) => {}
                ("additionalProperties", Json::Boolean(open)) => closed = !open,
                ("additionalProperties", Json::Object(anything)) if anything.is_empty() => {}
                ("additionalProperties", Json::List(nothing)) if nothing.is_empty() => {}
                (key, _) if parse::constrains(key) => {
                    let why = format!("the server's rule `{}` is not checked here", clip(key));
                    self.adjust(AdjustmentKind::RuleNotEnforced, &place, why);
                }
                _ => {}
            }
        }
        closed
    }

    fn fields(&mut self, flat: &Flat<'j, 'a>) -> Result<Vec<Field>, UnreadablePart> {
        let place = SchemaLocation::root().child("properties");
        let mut fields: Vec<Field> = Vec::new();
        for properties in &flat.properties {
            self.spend_bytes(0, &place)?;
            let properties = match properties {
                Json::Object(properties) => properties,
                Json::List(items) if items.is_empty() => {
                    let why = "an empty list stands in place of an empty object and is read as one";
                    self.adjust(AdjustmentKind::EmptyList, &place, why);
                    continue;
                }
                Json::Null => {
                    let why = "the form has no fields: the question asks to confirm";
                    self.adjust(AdjustmentKind::NoProperties, &place, why);
                    continue;
                }
                other => {
                    let why = format!(
                        "`properties` must be an object of fields, not {}",
                        other.kind()
                    );
                    return Err(self.defect(&place, DefectCode::NoProperties, why));
                }
            };
            if fields.len() + properties.len() > self.limits.fields {
                let count = fields.len() + properties.len();
                let why = format!("{count} fields; {} at most", self.limits.fields);
                return Err(self.defect(&place, DefectCode::TooManyFields, why));
            }
            let mut names = HashSet::with_capacity(properties.len());
            for (name, schema) in properties {
                if !names.insert(&**name) {
                    let why = "this field is there twice: give each name once";
                    self.defect(
                        &SchemaLocation::of_field(name),
                        DefectCode::DuplicateField,
                        why,
                    );
                    continue;
                }
                if fields.iter().any(|field| *field.name == **name) {
                    let why = "this field is there twice; the first is shown";
                    self.adjust(AdjustmentKind::AllOf, &SchemaLocation::of_field(name), why);
                    continue;
                }
                // All fields are read, so that every reason is told at once.
                if let Ok(Some(field)) = self.field(name, schema) {
                    fields.push(field);
                }
            }
        }
        self.required(&flat.required, &mut fields);
        Ok(fields)
    }

    fn field(
        &mut self,
        name: &'j str,
        schema: &'j Json<'a>,
    ) -> Result<Option<Field>, UnreadablePart> {
        let place = SchemaLocation::of_field(name);
        let read = if let Some(read) = self.strictly(name, schema) {
            read
        } else {
            let flat = self.flatten(schema, &place)?;
            self.value(flat, &place, 0)?
        };
        let Some(kind) = read.kind else {
            let why = format!("`{}` accepts no value, so it is left out", clip(name));
            self.adjust(AdjustmentKind::FieldDropped, &place, why);
            return Ok(None);
        };
        Ok(Some(Field {
            name: Arc::from(name),
            title: read.title,
            description: read.description,
            required: read.required && !read.nullable,
            nullable: read.nullable,
            null_when_empty: read.required && read.nullable,
            kind,
        }))
    }

    /// Reads a legal field.
    fn strictly(&mut self, name: &str, schema: &Json<'_>) -> Option<FieldResult> {
        let root = At::ROOT;
        let properties = root.child("properties");
        let patterns = self.patterns;
        let mut found = ParseFindings::default();
        let mut reader = FieldReader {
            at: properties.child(name),
            limits: self.limits,
            found: &mut found,
            patterns: &mut self.patterns,
        };
        let parts = parse::read_field(schema, &mut reader);
        let Some((title, description, kind)) = parts.filter(|_| found.defects.is_empty()) else {
            self.patterns = patterns;
            return None;
        };
        self.notes.extend(found.notes);
        Some(FieldResult {
            title,
            description,
            kind: Some(kind),
            nullable: false,
            required: false,
        })
    }

    fn required(&mut self, lists: &[&'j Json<'a>], fields: &mut [Field]) {
        let place = SchemaLocation::root().child("required");
        let known = fields.iter().enumerate();
        let known: HashMap<Arc<str>, usize> =
            known.map(|(i, field)| (field.name.clone(), i)).collect();
        for list in lists {
            let Json::List(names) = list else {
                let why = "`required` is not a list of field names and is ignored";
                self.adjust(AdjustmentKind::RequiredDropped, &place, why);
                continue;
            };
            for (i, entry) in names.iter().enumerate() {
                let place = place.child(&i.to_string());
                let position = entry.as_text().and_then(|name| known.get(name));
                let field = position.and_then(|i| fields.get_mut(*i));
                match (field, entry.as_text()) {
                    (Some(field), _) if field.nullable => field.null_when_empty = true,
                    (Some(field), _) => field.required = true,
                    (None, Some(name)) => {
                        let why = format!(
                            "the server requires `{}`, which the form does not have; it is not asked for",
                            clip(name)
                        );
                        self.adjust(AdjustmentKind::RequiredDropped, &place, why);
                    }
                    (None, None) => {
                        let why = "an entry of `required` is not a name and is ignored";
                        self.adjust(AdjustmentKind::KeywordIgnored, &place, why);
                    }
                }
            }
        }
    }
}

/// Takes the bytes of a value from those that are left; `None` if they do not suffice.
fn take_bytes_of(value: &Json<'_>, left: &mut usize) -> Option<()> {
    let own = match value {
        Json::Null | Json::Boolean(_) | Json::List(_) | Json::Object(_) => 1,
        Json::Number(_, written) => written.map_or(0, str::len).max(8),
        Json::Text(text) => text.len() + 1,
    };
    *left = left.checked_sub(own)?;
    match value {
        Json::List(items) => items.iter().try_for_each(|item| take_bytes_of(item, left)),
        Json::Object(members) => members.iter().try_for_each(|(name, value)| {
            *left = left.checked_sub(name.len())?;
            take_bytes_of(value, left)
        }),
        Json::Null | Json::Boolean(_) | Json::Number(..) | Json::Text(_) => Some(()),
    }
}

fn is_empty(properties: &Json<'_>) -> bool {
    match properties {
        Json::Object(properties) => properties.is_empty(),
        Json::List(items) => items.is_empty(),
        Json::Null | Json::Boolean(_) | Json::Number(..) | Json::Text(_) => true,
    }
}
