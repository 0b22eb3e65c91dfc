//! The marked properties of one tool's input schema.

use std::borrow::Cow;
use std::fmt;

use http::HeaderName;
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use crate::headers::PARAM_PREFIX;
use mcp_elicit_core::wire::members;

/// The member that marks a property.
pub(super) const MARK: &str = "x-mcp-header";

/// The largest total size of one tool's marks, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// The memory of a mark, and of a step of its path, beside their texts, in bytes.
const MARK_BYTES: usize = 64;
const STEP_BYTES: usize = 32;

/// The marked properties of a tool, each with its path and header.
#[derive(Debug, Default)]
pub(super) struct Marks {
    all: Vec<(Vec<String>, HeaderName)>,
    bytes: usize,
}

impl Marks {
    /// The number of a tool's marks that are read.
    pub(super) const MOST: usize = 16;

    /// Reads an input schema; `None` if it has no mark, or more or longer ones than are read.
    pub(super) fn of(schema: &RawValue) -> Option<Self> {
        let mut marks = Self::default();
        let walk = SchemaWalk {
            part: MarkedPart::Schema,
            path: &mut Vec::new(),
            marks: &mut marks,
        };
        let mut text = serde_json::Deserializer::from_str(schema.get());
        walk.deserialize(&mut text).ok()?;
        (!marks.all.is_empty()).then_some(marks)
    }

    /// Returns them.
    pub(super) fn all(&self) -> &[(Vec<String>, HeaderName)] {
        &self.all
    }

    /// Returns their size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds one, if its header can have this name. Returns `false` if there is no room: its size is counted before
    /// anything is copied, since a schema can have many marks below one long name.
    fn add(&mut self, path: &[Cow<'_, str>], header: &str) -> bool {
        let steps = path.iter().map(|step| step.len() + STEP_BYTES);
        let bytes = self.bytes + MARK_BYTES + header.len() + steps.sum::<usize>();
        if self.all.len() >= Self::MOST || bytes > MAX_BYTES {
            return false;
        }
        let name = (!header.is_empty()).then(|| format!("{PARAM_PREFIX}{header}"));
        if let Some(Ok(header)) = name.map(HeaderName::try_from) {
            let path = path.iter().map(|step| step.as_ref().to_owned());
            self.all.push((path.collect(), header));
            self.bytes = bytes;
        }
        true
    }
}

/// The part of a schema that is read.
#[derive(Clone, Copy)]
enum MarkedPart {
    /// The schema of one value.
    Schema,
    /// The members of an object, by name.
    Properties,
}

/// Reads a part of a schema without keeping it.
struct SchemaWalk<'w, 'de> {
    part: MarkedPart,
    path: &'w mut Vec<Cow<'de, str>>,
    marks: &'w mut Marks,
}

#[derive(Deserialize)]
struct SchemaKey<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for SchemaWalk<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, part: D) -> Result<(), D::Error> {
        part.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SchemaWalk<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a schema")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { part, path, marks } = self;
        while let Some(SchemaKey(key)) = members.next_key()? {
            match (part, &*key) {
                (MarkedPart::Properties, _) => {
                    path.push(key);
                    let part = MarkedPart::Schema;
                    members.next_value_seed(SchemaWalk { part, path, marks })?;
                    path.pop();
                }
                (MarkedPart::Schema, "properties") => {
                    let part = MarkedPart::Properties;
                    members.next_value_seed(SchemaWalk { part, path, marks })?;
                }
                (MarkedPart::Schema, MARK) if !path.is_empty() => {
                    let header = members::text(members.next_value::<&RawValue>()?);
                    if header.is_some_and(|header| !marks.add(path, &header)) {
                        return Err(A::Error::custom("too many marks"));
                    }
                }
                (MarkedPart::Schema, _) => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn marks_of(schema: &Value) -> Option<Marks> {
        Marks::of(&members::raw_value(schema))
    }

    #[test]
    fn marks_below_a_long_name_are_counted_with_it() {
        let schema = |length: usize, marks: usize| {
            let mark = |n| (format!("p{n}"), json!({MARK: format!("h{n}")}));
            let inner: serde_json::Map<_, _> = (0..marks).map(mark).collect();
            json!({"properties": {"n".repeat(length): {"properties": inner}}})
        };
        let marks = marks_of(&schema(4_000, 15)).unwrap();
        assert_eq!(marks.all().len(), 15);
        assert!(marks.bytes() > 15 * 4_000, "{}", marks.bytes());
        assert!(marks_of(&schema(4_500, 15)).is_none());
        assert!(marks_of(&schema(300_000, 1)).is_none());
        assert!(marks_of(&schema(1, Marks::MOST + 1)).is_none());
    }

    #[test]
    fn anything_may_stand_where_a_schema_is_expected() {
        let schema = json!({MARK: "Root", "type": ["object", null], "properties": {
            "a": true, "b": 1, "c": -1, "d": 1.5, "e": "x", "f": null, "g": [{MARK: "No"}],
            "h": {MARK: 7, "properties": [1]}, "i": {MARK: ""}, "properties": {MARK: "P"},
            "last": {"properties": {"x\"y": {MARK: "Last"}}}}});
        let marks = marks_of(&schema).unwrap();
        let found: Vec<_> = marks.all().iter().map(|(path, _)| path.join("/")).collect();
        assert_eq!(found, ["properties", "last/x\"y"]);
        assert!(marks_of(&json!(7)).is_none());
    }
}
