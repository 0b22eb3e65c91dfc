//! From a requestedSchema to a form: one walk, every defect.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::defect::{At, Defect, DefectCode, Defects, NoteCode, ParseFindings};
use super::kind::{FieldReader, Keywords, Kind};
use super::text::clip;
use super::{Boolean, Choice, Choices, Field, Form, FormLimits, Number, Text};
use crate::json::Json;

pub(super) fn text(text: &str, limits: &FormLimits) -> Result<Form, Defects> {
    read(&tree(text, limits)?, limits)
}

/// Parses the text of a schema, in which each member must be there once.
pub(super) fn tree<'t>(text: &'t str, limits: &FormLimits) -> Result<Json<'t>, Defects> {
    if text.len() > limits.schema_bytes {
        let message = format!(
            "the schema has {} bytes; {} at most",
            text.len(),
            limits.schema_bytes
        );
        return Err(whole(DefectCode::TooLarge, message));
    }
    match Json::read(text) {
        Ok(schema) => {
            let mut found = ParseFindings::default();
            refuse_duplicates(&schema, &At::ROOT, &mut found);
            if found.defects.is_empty() {
                Ok(schema)
            } else {
                Err(Defects(found.defects))
            }
        }
        Err(error) => Err(whole(DefectCode::NotJson, format!("not JSON: {error}"))),
    }
}

pub(super) fn value(value: &Value, limits: &FormLimits) -> Result<Form, Defects> {
    read(&Json::from_value(value), limits)
}

fn whole(code: DefectCode, message: String) -> Defects {
    Defects(vec![Defect {
        pointer: String::new(),
        code,
        message,
    }])
}

/// Rejects an object in which a member occurs twice, at any depth, because two readers could show two different forms.
/// Duplicate fields are reported with the other defects of the fields.
fn refuse_duplicates(value: &Json<'_>, at: &At<'_>, found: &mut ParseFindings) {
    match value {
        Json::Object(members) => {
            let mut names = (members.len() > 16).then(HashSet::new);
            for (i, (name, value)) in members.iter().enumerate() {
                let at = at.child(name);
                let duplicate = match &mut names {
                    Some(names) => !names.insert(&**name),
                    None => members[..i].iter().any(|(earlier, _)| earlier == name),
                };
                if duplicate && !at.is_field() {
                    let message = "this member is there twice: write each member once";
                    found.defect(&at, DefectCode::DuplicateMember, message);
                }
                refuse_duplicates(value, &at, found);
            }
        }
        Json::List(items) => {
            let nested = |item: &Json<'_>| matches!(item, Json::Object(_) | Json::List(_));
            let items = items.iter().enumerate();
            for (index, item) in items.filter(|(_, item)| nested(item)) {
                refuse_duplicates(item, &at.child(&index.to_string()), found);
            }
        }
        Json::Null | Json::Boolean(_) | Json::Number(..) | Json::Text(_) => {}
    }
}

pub(super) fn read(schema: &Json<'_>, limits: &FormLimits) -> Result<Form, Defects> {
    let mut found = ParseFindings::default();
    let form = read_root(schema, limits, &mut found);
    match form {
        Some(form) if found.defects.is_empty() => Ok(Form {
            notes: found.notes,
            ..form
        }),
        _ => Err(Defects(found.defects)),
    }
}

fn read_root(schema: &Json<'_>, limits: &FormLimits, found: &mut ParseFindings) -> Option<Form> {
    let at = At::ROOT;
    let Json::Object(keywords) = schema else {
        let message = format!("a requestedSchema must be an object, not {}", schema.kind());
        found.defect(&at, DefectCode::NotAnObject, message);
        return None;
    };
    let (mut kind, mut properties, mut required, mut closed) = (None, None, None, false);
    for (key, value) in keywords {
        match &**key {
            "type" => kind = Some(value),
            "properties" => properties = Some(value),
            "required" => required = Some(value),
            "additionalProperties" => closed = read_closed(value, &at, found),
            "$ref" | "$dynamicRef" | "$recursiveRef" => refuse_reference(&at.child(key), found),
            "$schema" | "$id" | "$comment" | "$defs" | "definitions" | "title" | "description"
            | "examples" | "default" => {}
            key if constrains(key) => {
                let message =
                    format!("`{key}` is not part of a form: use type, properties and required");
                found.defect(&at.child(key), DefectCode::UnsupportedKeyword, message);
            }
            key => unknown(key, &at, found),
        }
    }
    match kind {
        Some(Json::Text(kind)) if kind == "object" => {}
        Some(_) => found.defect(
            &at.child("type"),
            DefectCode::RootType,
            "a form's `type` must be \"object\"",
        ),
        None => found.defect(
            &at,
            DefectCode::RootType,
            "a form needs \"type\": \"object\"",
        ),
    }
    let fields = match properties {
        Some(Json::Object(properties)) => read_fields(properties, limits, found),
        Some(other) => {
            let message = format!(
                "`properties` must be an object of fields, not {}",
                other.kind()
            );
            found.defect(&at.child("properties"), DefectCode::NoProperties, message);
            None
        }
        None => {
            found.defect(
                &at,
                DefectCode::NoProperties,
                "a form needs `properties`; an empty object asks only to confirm",
            );
            None
        }
    };
    let mut fields = fields?;
    if let Some(required) = required {
        read_required(required, &mut fields, found);
    }
    Some(Form::new(fields, closed, limits.content_bytes))
}

/// Reads `additionalProperties`: `false`, which schema generators add, is allowed; a schema is not.
fn read_closed(value: &Json<'_>, at: &At<'_>, found: &mut ParseFindings) -> bool {
    match value {
        Json::Boolean(true) => false,
        // The schema that accepts everything, which some generators write for `true`.
        Json::Object(anything) if anything.is_empty() => false,
        Json::Boolean(false) => {
            let message = "`additionalProperties: false` is enforced here, but no revision of MCP lists it: leave it out";
            found.note(
                &at.child("additionalProperties"),
                NoteCode::NotPortable,
                message,
            );
            true
        }
        _ => {
            let message = "only true or false; a form has no fields beside its `properties`";
            found.defect(
                &at.child("additionalProperties"),
                DefectCode::UnsupportedKeyword,
                message,
            );
            false
        }
    }
}

fn read_fields(
    properties: &[(std::borrow::Cow<'_, str>, Json<'_>)],
    limits: &FormLimits,
    found: &mut ParseFindings,
) -> Option<Vec<Field>> {
    let at_root = At::ROOT;
    let at = at_root.child("properties");
    if properties.len() > limits.fields {
        let message = format!("{} fields; {} at most", properties.len(), limits.fields);
        found.defect(&at, DefectCode::TooManyFields, message);
        return None;
    }
    let mut fields: Vec<Field> = Vec::with_capacity(properties.len());
    let mut patterns = super::pattern::Budget::new(limits);
    let mut names = (properties.len() > 16).then(HashSet::new);
    for (i, (name, schema)) in properties.iter().enumerate() {
        let at = at.child(name);
        let duplicate = match &mut names {
            Some(names) => !names.insert(&**name),
            None => properties[..i].iter().any(|(earlier, _)| earlier == name),
        };
        if duplicate {
            found.defect(
                &at,
                DefectCode::DuplicateField,
                "this field is there twice: give each name once",
            );
        }
        let mut reader = FieldReader {
            at,
            limits,
            found,
            patterns: &mut patterns,
        };
        // A field that could not be read still has a name, so that `required` is checked correctly.
        let (title, description, kind) = read_field(schema, &mut reader).unwrap_or((
            None,
            None,
            Kind::Boolean(Boolean::default()),
        ));
        fields.push(Field {
            name: Arc::from(&**name),
            title,
            description,
            required: false,
            nullable: false,
            null_when_empty: false,
            kind,
        });
    }
    Some(fields)
}

pub(super) type FieldParts = (Option<Box<str>>, Option<Box<str>>, Kind);

pub(super) fn read_field(schema: &Json<'_>, reader: &mut FieldReader<'_>) -> Option<FieldParts> {
    let Json::Object(entries) = schema else {
        let message = format!(
            "a field must be an object such as {{\"type\": \"string\"}}, not {}",
            schema.kind()
        );
        reader
            .found
            .defect(&reader.at, DefectCode::FieldNotAnObject, message);
        return None;
    };
    let mut keywords = Keywords::default();
    for (key, value) in entries {
        let slot = match &**key {
            "type" => &mut keywords.kind,
            "title" => &mut keywords.title,
            "description" => &mut keywords.description,
            "default" => &mut keywords.default,
            "const" => &mut keywords.constant,
            "enum" => &mut keywords.options,
            "enumNames" => &mut keywords.names,
            "oneOf" => &mut keywords.one_of,
            "items" => &mut keywords.items,
            "format" => &mut keywords.format,
            "pattern" => &mut keywords.pattern,
            "minLength" => &mut keywords.min_length,
            "maxLength" => &mut keywords.max_length,
            "minimum" => &mut keywords.minimum,
            "maximum" => &mut keywords.maximum,
            "exclusiveMinimum" => &mut keywords.exclusive_minimum,
            "exclusiveMaximum" => &mut keywords.exclusive_maximum,
            "multipleOf" => &mut keywords.multiple_of,
            "minItems" => &mut keywords.min_items,
            "maxItems" => &mut keywords.max_items,
            "uniqueItems" => &mut keywords.unique_items,
            key => {
                other_keyword(key, reader);
                continue;
            }
        };
        *slot = Some(value);
    }
    let title = reader.text("title", keywords.title);
    let description = reader.text("description", keywords.description);
    let kind = read_kind(&keywords, reader)?;
    Some((title, description, kind))
}

const TYPES: &str = "string, number, integer, boolean, or array (of strings from a list)";

fn read_kind(keywords: &Keywords<'_, '_>, reader: &mut FieldReader<'_>) -> Option<Kind> {
    let Some(kind) = keywords.kind else {
        reader.found.defect(
            &reader.at,
            DefectCode::MissingType,
            format!("a field needs a `type`: {TYPES}"),
        );
        return None;
    };
    match kind {
        Json::Text(kind) => match &**kind {
            "array" => return Choices::read(keywords, reader),
            _ if keywords.items.is_some() => {
                reader.defect(
                    "items",
                    DefectCode::UnsupportedKeyword,
                    "`items` is only for \"type\": \"array\"",
                );
            }
            _ => {}
        },
        Json::List(_) => {
            let message = format!(
                "a field has one type, not a list of them: {TYPES}; for a field that may be left empty, leave it out of `required`"
            );
            reader.defect("type", DefectCode::TypeList, message);
            return None;
        }
        other => {
            reader.wrong_type("type", "a string", other);
            return None;
        }
    }
    match kind.as_text().unwrap_or_default() {
        "string" if keywords.options.is_some() || keywords.one_of.is_some() => {
            Choice::read(keywords, reader)
        }
        "string" => {
            super::choice::refuse_options(keywords, "this", reader);
            Some(Text::read(keywords, reader))
        }
        "number" => Some(Number::read(keywords, false, reader)),
        "integer" => Some(Number::read(keywords, true, reader)),
        "boolean" => Some(Boolean::read(keywords, reader)),
        "object" => {
            reader.defect(
                "type",
                DefectCode::Nested,
                format!("a form is flat, a field cannot be an object: {TYPES}"),
            );
            None
        }
        other => {
            let message = format!("Unsupported type '{}': use {TYPES}", clip(other));
            reader.defect("type", DefectCode::UnknownType, message);
            None
        }
    }
}

fn other_keyword(key: &str, reader: &mut FieldReader<'_>) {
    match key {
        "$ref" | "$dynamicRef" | "$recursiveRef" => {
            refuse_reference(&reader.at.child(key), reader.found);
        }
        "properties" | "patternProperties" | "additionalProperties" | "required" => {
            reader.defect(
                key,
                DefectCode::Nested,
                format!("a form is flat, so a field has no `{key}`"),
            );
        }
        key if constrains(key) => {
            let message = format!(
                "`{key}` is not part of a form: a field has a type, bounds, a format, a pattern or options"
            );
            reader.defect(key, DefectCode::UnsupportedKeyword, message);
        }
        key if annotates(key) => {}
        key => unknown(key, &reader.at, reader.found),
    }
}

fn refuse_reference(at: &At<'_>, found: &mut ParseFindings) {
    found.defect(
        at,
        DefectCode::Reference,
        "references are not part of a form: write the schema out in place",
    );
}

pub(super) fn unknown(key: &str, at: &At<'_>, found: &mut ParseFindings) {
    found.note(
        &at.child(key),
        NoteCode::UnknownKeyword,
        format!("`{}` is not a keyword of forms; ignored", clip(key)),
    );
}

fn read_required(required: &Json<'_>, fields: &mut [Field], found: &mut ParseFindings) {
    let root = At::ROOT;
    let at = root.child("required");
    let Json::List(names) = required else {
        found.defect(
            &at,
            DefectCode::KeywordType,
            format!(
                "`required` must be a list of field names, not {}",
                required.kind()
            ),
        );
        return;
    };
    for (i, name) in names.iter().enumerate() {
        let place = i.to_string();
        let at = at.child(&place);
        let Some(name) = name.as_text() else {
            found.defect(
                &at,
                DefectCode::KeywordType,
                format!(
                    "`required` must be a list of field names, not {}",
                    name.kind()
                ),
            );
            continue;
        };
        // Most schemas list them in the order of the fields.
        let field = match fields.get(i) {
            Some(field) if &*field.name == name => Some(i),
            _ => fields.iter().position(|field| &*field.name == name),
        };
        match field.map(|i| &mut fields[i]) {
            Some(field) if field.required => found.note(
                &at,
                NoteCode::DuplicateRequired,
                "this field is already required",
            ),
            Some(field) => field.required = true,
            None => found.defect(
                &at,
                DefectCode::RequiredUnknown,
                format!("`{}` is not a field of the form", clip(name)),
            ),
        }
    }
}

/// Returns `true` for the validation and applicator keywords of JSON Schema, draft-04 to 2020-12. Those that forms do
/// not support must be reported, because they would otherwise be silently ignored constraints.
pub(crate) fn constrains(key: &str) -> bool {
    matches!(
        key,
        "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "enum"
            | "const"
            | "type"
            | "items"
            | "additionalItems"
            | "prefixItems"
            | "contains"
            | "minContains"
            | "maxContains"
            | "minItems"
            | "maxItems"
            | "uniqueItems"
            | "unevaluatedItems"
            | "properties"
            | "patternProperties"
            | "additionalProperties"
            | "propertyNames"
            | "minProperties"
            | "maxProperties"
            | "required"
            | "dependencies"
            | "dependentRequired"
            | "dependentSchemas"
            | "unevaluatedProperties"
            | "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "multipleOf"
            | "divisibleBy"
            | "disallow"
            | "extends"
            | "minLength"
            | "maxLength"
            | "pattern"
            | "format"
            | "$ref"
            | "$dynamicRef"
            | "$recursiveRef"
    )
}

/// Returns `true` for the annotations and identifiers of JSON Schema, which constrain nothing.
pub(super) fn annotates(key: &str) -> bool {
    matches!(
        key,
        "$comment"
            | "$schema"
            | "$id"
            | "$anchor"
            | "$dynamicAnchor"
            | "$defs"
            | "definitions"
            | "examples"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "contentMediaType"
            | "contentEncoding"
            | "contentSchema"
    )
}
