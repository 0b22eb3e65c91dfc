//! The lenient reading of an object, for the last reader of a message.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::members::{self, MemberName};

/// The members of a JSON object as most readers understand them: each name once, with its last value, at its first
/// position.
/// [`Frame`](super::Frame) and [`Members`](super::members::Members) refuse a duplicate member, because a relay and the
/// peer behind it could see two different messages. A client is the last reader of a message, so it can use this type.
/// The text that this type writes has each name once.
#[derive(Clone, Default)]
pub struct LenientMembers<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> LenientMembers<'a> {
    /// Reads an object; `None` if the text is not a JSON object, or if a name is not Unicode.
    ///
    /// ```
    /// use mcp_elicit_core::wire::LenientMembers;
    ///
    /// let members = LenientMembers::read(r#"{"a": 1, "b": 2, "\u0061": 3}"#).unwrap();
    /// assert_eq!(members.to_raw().get(), r#"{"a":3,"b":2}"#);
    /// ```
    pub fn read(text: &'a str) -> Option<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = deserializer.deserialize_map(LastOfEach).ok()?;
        deserializer.end().ok()?;
        Some(members)
    }

    /// Returns the value of a member.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| &**value)
    }

    /// Replaces a member, or adds it at the end.
    pub fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, place)) => *place = Cow::Owned(value),
            None => self
                .0
                .push((Cow::Owned(name.to_owned()), Cow::Owned(value))),
        }
    }

    /// Replaces the members for which `change` returns a value; it is called with the position and the value of each.
    pub fn replace_each(
        &mut self,
        mut change: impl FnMut(usize, &RawValue) -> Option<Box<RawValue>>,
    ) {
        for (position, (_, value)) in self.0.iter_mut().enumerate() {
            if let Some(changed) = change(position, value) {
                *value = Cow::Owned(changed);
            }
        }
    }

    /// Returns the object as a new raw value.
    pub fn to_raw(&self) -> Box<RawValue> {
        members::raw(self.to_text())
    }

    /// Returns the object as a new text.
    pub fn to_text(&self) -> String {
        members::object_text(self.0.iter().map(|(key, value)| (&**key, &**value)))
    }
}

impl fmt::Debug for LenientMembers<'_> {
    /// Formats the names only: the values may be a person's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(key, _)| key);
        f.debug_set().entries(names).finish()
    }
}

struct LastOfEach;

impl<'de> Visitor<'de> for LastOfEach {
    type Value = LenientMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::<(Cow<'_, str>, Cow<'_, RawValue>)>::new();
        let mut positions = HashMap::<Cow<'_, str>, usize>::new();
        while let Some(MemberName(key)) = map.next_key()? {
            let value = Cow::Borrowed(map.next_value::<&RawValue>()?);
            match positions.entry(key.clone()) {
                Entry::Occupied(position) => members[*position.get()].1 = value,
                Entry::Vacant(vacant) => {
                    vacant.insert(members.len());
                    members.push((key, value));
                }
            }
        }
        Ok(LenientMembers(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_anew_has_each_name_once() {
        let mut members =
            LenientMembers::read(r#" {"a" : [1, 2], "b":1.0,"a":{"x": 1},"c":"\u00e9"} "#).unwrap();
        assert_eq!(members.get("a").unwrap().get(), r#"{"x": 1}"#);
        assert!(members.get("z").is_none());
        members.set("b", members::raw_text("new"));
        members.set("d\"", members::raw_text("more"));
        assert_eq!(
            members.to_raw().get(),
            r#"{"a":{"x": 1},"b":"new","c":"\u00e9","d\"":"more"}"#
        );
        let mut seen = Vec::new();
        members.replace_each(|position, value| {
            seen.push(value.get().to_owned());
            (position == 0).then(|| members::raw_text("first"))
        });
        assert_eq!(seen.len(), 4);
        assert_eq!(members.get("a").unwrap().get(), r#""first""#);
        assert!(!format!("{members:?}").contains("first"));
    }

    #[test]
    fn what_is_no_object_or_has_a_name_that_cannot_be_read_is_refused() {
        for text in ["[1]", "7", "{", r#"{"a":1} x"#, r#"{"\ud800":1}"#, ""] {
            assert!(LenientMembers::read(text).is_none(), "{text}");
        }
    }
}
