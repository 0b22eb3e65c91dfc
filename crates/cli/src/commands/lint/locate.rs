//! Finds the place of a JSON Pointer in the source text, byte by byte, to be shown to a person.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use mcp_elicit_core::pointer;
use mcp_elicit_core::text::beginning;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Returns the place of a pointer: the member with its value if that is short, else the member's name, else the
/// beginning of the value. A pointer that does not resolve gives the deepest place on its way. Returns `None` if the
/// text is not JSON.
pub(super) fn locate(text: &str, pointer: &str) -> Option<Range<usize>> {
    let root: &RawValue = serde_json::from_str(text).ok()?;
    let mut here = SourceSpan {
        key: None,
        value: range_in(text, root.get()),
    };
    for step in pointer.split('/').skip(1) {
        let name = pointer::name(step);
        let Some(next) = child(text, &text[here.value.clone()], &name) else {
            break;
        };
        here = next;
    }
    Some(here.shown(text))
}

/// Returns the place at which a text stops being JSON.
pub(super) fn broken_at(text: &str) -> Option<Range<usize>> {
    let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
    let line_start: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let at = beginning(text, line_start + error.column().saturating_sub(1)).len();
    let width = text[at..].chars().next().map_or(0, char::len_utf8);
    Some(at..at + width)
}

struct SourceSpan {
    key: Option<Range<usize>>,
    value: Range<usize>,
}

impl SourceSpan {
    fn shown(self, text: &str) -> Range<usize> {
        let is_scalar = !text[self.value.clone()].starts_with(['{', '[']);
        match self.key {
            Some(key) if is_scalar && !text[key.start..self.value.end].contains('\n') => {
                key.start..self.value.end
            }
            Some(key) => key,
            None if is_scalar => self.value,
            None => self.value.start..self.value.start + 1,
        }
    }
}

/// Returns the last member with this name, or the item with this index.
fn child(text: &str, value: &str, name: &str) -> Option<SourceSpan> {
    if value.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(value).ok()?;
        let item = items.get(name.parse::<usize>().ok()?)?;
        return Some(SourceSpan {
            key: None,
            value: range_in(text, item.get()),
        });
    }
    let WrittenMembers(members) = serde_json::from_str(value).ok()?;
    let mut before = range_in(text, value).start;
    let mut found = None;
    for (key, value) in members {
        let value = range_in(text, value.get());
        if key == name {
            let between = &text[before..value.start];
            let (open, close) = (between.find('"')?, between.rfind('"')?);
            found = Some(SourceSpan {
                key: Some(before + open..before + close + 1),
                value: value.clone(),
            });
        }
        before = value.end;
    }
    found
}

/// Returns the range of a piece within its text.
fn range_in(text: &str, piece: &str) -> Range<usize> {
    let start = piece.as_ptr() as usize - text.as_ptr() as usize;
    start..start + piece.len()
}

/// An object's members as written: in order, including duplicates.
struct WrittenMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for WrittenMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersInOrder;

        impl<'de> Visitor<'de> for MembersInOrder {
            type Value = WrittenMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(WrittenMembers(members))
            }
        }

        deserializer.deserialize_map(MembersInOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#" {"params" : {"message": "é, \"x\"",
  "properties":{ "a/b~c" :{"enum":["x",
 "y", {"z":1}]}, "d":"1st", "d":"2nd"}}} "#;

    fn at(pointer: &str) -> &'static str {
        &TEXT[locate(TEXT, pointer).expect("JSON")]
    }

    #[test]
    fn places_are_found() {
        assert_eq!(at(""), "{");
        assert_eq!(at("/params"), "\"params\"");
        assert_eq!(at("/params/message"), r#""message": "é, \"x\"""#);
        assert_eq!(at("/params/properties/a~1b~0c"), "\"a/b~c\"");
        assert_eq!(at("/params/properties/a~1b~0c/enum/1"), "\"y\"");
        assert_eq!(at("/params/properties/a~1b~0c/enum/2"), "{");
        assert_eq!(at("/params/properties/a~1b~0c/enum/2/z"), "\"z\":1");
        assert_eq!(at("/params/properties/d"), r#""d":"2nd""#);
    }

    #[test]
    fn a_pointer_that_leads_nowhere_gives_the_nearest_place() {
        assert_eq!(at("/params/nothing/at/all"), "\"params\"");
        assert_eq!(at("/params/properties/a~1b~0c/enum/99"), "\"enum\"");
        assert_eq!(at("/params/message/0"), r#""message": "é, \"x\"""#);
        assert_eq!(locate("{", ""), None);
        assert_eq!(locate("", "/a"), None);
    }

    #[test]
    fn where_a_text_breaks() {
        assert_eq!(broken_at("{\n  \"a\": nul,\n}"), Some(12..13));
        assert_eq!(broken_at(""), Some(0..0));
        assert_eq!(broken_at("{\"é"), Some(2..4));
        assert_eq!(broken_at("{}"), None);
    }

    #[test]
    fn escaped_names_are_found_by_what_they_mean() {
        let text = r#"{"\u0061b":1}"#;
        assert_eq!(&text[locate(text, "/ab").expect("JSON")], r#""\u0061b":1"#);
    }
}
