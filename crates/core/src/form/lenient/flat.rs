//! The keywords of a schema with its references and `allOf` in place.

use std::borrow::Cow;

use super::super::defect::DefectCode;
use super::super::parse::constrains;
use super::super::text::clip;
use super::{AdjustmentKind, LenientReader, SchemaLocation, UnreadablePart};
use crate::json::Json;
use crate::pointer;

/// The deepest chain of references and alternatives.
const DEPTH: usize = 24;

/// Keywords whose values are schemas: each is counted where it is read.
const SCHEMAS: [&str; 3] = ["anyOf", "oneOf", "items"];

/// The keywords of one schema. Of a keyword that several parts have, the first is used.
#[derive(Clone, Default)]
pub(super) struct Flat<'j, 'a> {
    pub(super) keywords: Vec<(&'j str, &'j Json<'a>)>,
    /// The `properties` and the `required` of every part.
    pub(super) properties: Vec<&'j Json<'a>>,
    pub(super) required: Vec<&'j Json<'a>>,
}

impl<'j, 'a> Flat<'j, 'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'j Json<'a>> {
        let found = self.keywords.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| *value)
    }

    pub(super) fn text(&self, key: &str) -> Option<&'j str> {
        self.get(key).and_then(Json::as_text)
    }

    pub(super) fn has(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.get(key).is_some())
    }

    pub(super) fn without(mut self, keys: &[&str]) -> Self {
        self.keywords.retain(|(name, _)| !keys.contains(name));
        self
    }

    /// Returns the keywords of both; those of `self` are used first.
    pub(super) fn over(mut self, other: &Flat<'j, 'a>) -> Self {
        for (key, value) in &other.keywords {
            if self.get(key).is_none() {
                self.keywords.push((key, value));
            }
        }
        self.properties.extend(&other.properties);
        self.required.extend(&other.required);
        self
    }

    /// Returns `true` if the schema accepts only null.
    pub(super) fn is_null(&self) -> bool {
        match (self.get("const"), self.get("enum"), self.get("type")) {
            (Some(Json::Null), _, _) => true,
            (None, Some(Json::List(options)), _) if !options.is_empty() => {
                options.iter().all(|option| matches!(option, Json::Null))
            }
            (None, _, Some(Json::Text(name))) => name == "null",
            (None, _, Some(Json::List(names))) => {
                !names.is_empty() && names.iter().all(|name| name.as_text() == Some("null"))
            }
            _ => false,
        }
    }
}

impl<'j, 'a> LenientReader<'j, 'a> {
    /// Returns the keywords of a schema with its references and `allOf` in place.
    pub(super) fn flatten(
        &mut self,
        schema: &'j Json<'a>,
        place: &SchemaLocation,
    ) -> Result<Flat<'j, 'a>, UnreadablePart> {
        let mut flat = Flat::default();
        self.flatten_into(schema, place, 0, &mut flat)?;
        Ok(flat)
    }

    fn flatten_into(
        &mut self,
        schema: &'j Json<'a>,
        place: &SchemaLocation,
        depth: usize,
        flat: &mut Flat<'j, 'a>,
    ) -> Result<(), UnreadablePart> {
        if depth > DEPTH {
            let why = "the references lead back to themselves, so there is no end to this field";
            return Err(self.defect(&place.child("$ref"), DefectCode::Reference, why));
        }
        let keywords = match schema {
            Json::Object(keywords) => keywords,
            // The schema that accepts everything.
            Json::Boolean(true) => return Ok(()),
            Json::List(items) if items.is_empty() => {
                let why = "an empty list stands in place of an empty object and is read as one";
                self.adjust(AdjustmentKind::EmptyList, place, why);
                return Ok(());
            }
            other => {
                let why = format!("a schema must be an object, not {}", other.kind());
                return Err(self.defect(place, DefectCode::FieldNotAnObject, why));
            }
        };
        self.spend(keywords.len() + 1, place)?;
        let (mut reference, mut parts) = (None, None);
        for (key, value) in keywords {
            match (&**key, value) {
                ("$ref", value) => reference = Some(value),
                ("allOf", Json::List(members)) => parts = Some(members),
                ("properties", value) => {
                    if let Json::Object(members) = value {
                        self.spend_bytes(members.len(), place)?;
                    }
                    flat.properties.push(value);
                }
                ("required", value) => {
                    self.spend_value(value, place)?;
                    flat.required.push(value);
                }
                // Some serializers write null for a keyword that is not set.
                (key, Json::Null) if !matches!(key, "const" | "default") => {
                    let why = format!("`{}` is null and is read as absent", clip(key));
                    self.adjust(AdjustmentKind::KeywordIgnored, &place.child(key), why);
                }
                (key, value) => self.put(key, value, place, flat)?,
            }
        }
        if let Some(reference) = reference {
            let target = self.definition(reference, place)?;
            self.flatten_into(target, place, depth + 1, flat)?;
        }
        if let Some(parts) = parts {
            if !parts.is_empty() {
                let why = "the parts of `allOf` are read in place";
                self.adjust(AdjustmentKind::AllOf, &place.child("allOf"), why);
            }
            for part in parts {
                self.flatten_into(part, place, depth + 1, flat)?;
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        key: &'j str,
        value: &'j Json<'a>,
        place: &SchemaLocation,
        flat: &mut Flat<'j, 'a>,
    ) -> Result<(), UnreadablePart> {
        const TEXTS: [&str; 5] = ["title", "description", "default", "enumNames", "nullable"];
        // Other members say nothing about the value.
        if !constrains(key) && !TEXTS.contains(&key) {
            return Ok(());
        }
        let first = flat.get(key);
        if first.is_some() || !SCHEMAS.contains(&key) {
            self.spend_value(value, place)?;
        }
        match first {
            None => flat.keywords.push((key, value)),
            Some(first) if constrains(key) && !same(first, value) => {
                let why = format!("`{key}` is there with two values; the second is not checked");
                self.adjust(AdjustmentKind::RuleNotEnforced, &place.child(key), why);
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Counts the keywords that are copied into one more alternative.
    pub(super) fn spend_keywords(
        &mut self,
        flat: &Flat<'_, '_>,
        place: &SchemaLocation,
    ) -> Result<(), UnreadablePart> {
        let copied = |(key, _): &&(&str, _)| !SCHEMAS.contains(key);
        let mut values = flat.keywords.iter().filter(copied);
        values.try_for_each(|(_, value)| self.spend_value(value, place))
    }

    /// Returns the definition that a `$ref` names, which must be in this schema.
    fn definition(
        &mut self,
        reference: &'j Json<'a>,
        place: &SchemaLocation,
    ) -> Result<&'j Json<'a>, UnreadablePart> {
        let name = reference.as_text().unwrap_or_default();
        let pointer = name.strip_prefix('#').map(percent_decoded);
        let mut looked_at = 0;
        let target = pointer.and_then(|pointer| point(self.root, &pointer, &mut looked_at));
        self.spend_bytes(looked_at, place)?;
        let place = place.child("$ref");
        let Some(target) = target else {
            let why = format!(
                "`{}` refers to no definition of this form, so the field is not known",
                clip(name)
            );
            return Err(self.defect(&place, DefectCode::Reference, why));
        };
        let name = clip(name.rsplit('/').next().unwrap_or_default());
        let why = format!("the definition `{name}` of the same form is read in place");
        self.adjust(AdjustmentKind::Reference, &place, why);
        Ok(target)
    }
}

/// Returns the value at a JSON Pointer, and adds the members among which it was searched.
fn point<'j, 'a>(root: &'j Json<'a>, pointer: &str, looked_at: &mut usize) -> Option<&'j Json<'a>> {
    if pointer.is_empty() {
        return Some(root);
    }
    let mut at = root;
    for token in pointer.strip_prefix('/')?.split('/').take(DEPTH) {
        let token = pointer::name(token);
        at = match at {
            Json::Object(members) => {
                *looked_at += members.len();
                let found = members.iter().find(|(name, _)| **name == *token);
                found.map(|(_, value)| value)?
            }
            Json::List(items) => items.get(token.parse::<usize>().ok()?)?,
            Json::Null | Json::Boolean(_) | Json::Number(..) | Json::Text(_) => return None,
        };
    }
    (pointer.split('/').count() <= DEPTH).then_some(at)
}

/// Decodes `%20` and its like, which the fragment of a URI may have.
fn percent_decoded(text: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy()
}

pub(super) fn same(a: &Json<'_>, b: &Json<'_>) -> bool {
    match (a, b) {
        (Json::Null, Json::Null) => true,
        (Json::Boolean(a), Json::Boolean(b)) => a == b,
        (Json::Number(a, _), Json::Number(b, _)) => {
            crate::number::compare(a, b) == std::cmp::Ordering::Equal
        }
        (Json::Text(a), Json::Text(b)) => a == b,
        (Json::List(a), Json::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            let mut pairs = a.iter().zip(b);
            a.len() == b.len() && pairs.all(|((k, a), (l, b))| k == l && same(a, b))
        }
        _ => false,
    }
}
