//! An object's members as raw bytes: parsed in one pass, changed without touching the rest.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::WireError;
use super::frame::{each_key, skip_string, skip_value, unescaped};
use super::spelling::is_nearly;

/// A JSON object's members in order, each value as written.
///
/// A duplicate member is an error: a relay and the peer behind it could otherwise see two different messages.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    source: &'a str,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

#[derive(Deserialize)]
pub(super) struct MemberName<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Reads members, and stops with an error at one too many.
struct MembersVisitor<'v> {
    most: usize,
    /// Set to `true` at one too many.
    has_more: &'v mut bool,
}

impl<'de> Visitor<'de> for MembersVisitor<'_> {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(MemberName(key)) = map.next_key()? {
            if members.len() == self.most {
                *self.has_more = true;
                return Err(A::Error::custom("too many members"));
            }
            members.push((key, map.next_value()?));
        }
        Ok(members)
    }
}

impl<'a> Members<'a> {
    /// Reads an object. `location` names it in an error.
    pub fn read(raw: &'a RawValue, location: &'static str) -> Result<Self, WireError> {
        Self::read_text(raw.get(), location)
    }

    /// Reads an object from text. `location` names it in an error.
    pub fn read_text(source: &'a str, location: &'static str) -> Result<Self, WireError> {
        let visitor = MembersVisitor {
            most: usize::MAX,
            has_more: &mut false,
        };
        Self::visited(source, location, visitor)
    }

    /// Reads an object of at most `most` members, like [`read`](Self::read). `None` if it has more; their number does not
    /// matter then.
    pub fn read_at_most(
        raw: &'a RawValue,
        location: &'static str,
        most: usize,
    ) -> Result<Option<Self>, WireError> {
        let mut has_more = false;
        let visitor = MembersVisitor {
            most,
            has_more: &mut has_more,
        };
        match Self::visited(raw.get(), location, visitor) {
            Err(_) if has_more => Ok(None),
            read => read.map(Some),
        }
    }

    fn visited(
        source: &'a str,
        location: &'static str,
        visitor: MembersVisitor<'_>,
    ) -> Result<Self, WireError> {
        if !is_object(source) {
            return Err(WireError::NotObject { location });
        }
        let mut deserializer = serde_json::Deserializer::from_str(source);
        let members = deserializer
            .deserialize_map(visitor)
            .and_then(|members| deserializer.end().map(|()| members))
            .map_err(|error| WireError::from(&error))?;
        if has_double(&members) {
            return Err(WireError::Duplicate { location });
        }
        Ok(Self { source, members })
    }

    /// Returns the value of a member, as written.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.members
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| *value)
    }

    /// Returns a required member.
    pub fn need(&self, member: &'static str) -> Result<&'a RawValue, WireError> {
        self.get(member).ok_or(WireError::Missing { member })
    }

    /// Returns a string member; `null` counts as absent.
    pub fn text(&self, member: &'static str) -> Result<Option<Cow<'a, str>>, WireError> {
        match self.get(member) {
            None => Ok(None),
            Some(value) if is_null(value) => Ok(None),
            Some(value) => text(value).map(Some).ok_or(WireError::Type {
                member,
                expected: "a string",
            }),
        }
    }

    /// Returns a required string member.
    pub fn need_text(&self, member: &'static str) -> Result<Cow<'a, str>, WireError> {
        self.need(member)?;
        self.text(member)?.ok_or(WireError::Type {
            member,
            expected: "a string",
        })
    }

    /// Returns a required object member.
    pub fn need_object(&self, member: &'static str) -> Result<&'a RawValue, WireError> {
        let value = self.need(member)?;
        if is_object(value.get()) {
            Ok(value)
        } else {
            Err(WireError::Type {
                member,
                expected: "an object",
            })
        }
    }

    /// Rejects members whose names have the same letters as one of these in another spelling (`requested_schema`): a
    /// lenient reader confuses them.
    pub fn refuse_like(&self, names: &[&str], location: &'static str) -> Result<(), WireError> {
        if self.members.iter().any(|(key, _)| is_nearly(key, names)) {
            return Err(WireError::Spelling { location });
        }
        Ok(())
    }

    /// Returns names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.members
            .iter()
            .map(|(key, value)| (key.as_ref(), *value))
    }

    /// Returns the object with one member replaced or added at the end (`Some`), or removed (`None`). Every other byte
    /// is unchanged.
    pub fn with(&self, name: &str, value: Option<&RawValue>) -> Box<RawValue> {
        match (self.position(name), value) {
            (Some(at), Some(value)) => self.replaced(at, value),
            (Some(at), None) => self.without(at),
            (None, Some(value)) => self.appended(name, value),
            (None, None) => raw(self.source.to_owned()),
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|(key, _)| key == name)
    }

    fn replaced(&self, at: usize, value: &RawValue) -> Box<RawValue> {
        let (start, end) = self.span(at);
        raw([&self.source[..start], value.get(), &self.source[end..]].concat())
    }

    fn appended(&self, name: &str, value: &RawValue) -> Box<RawValue> {
        // After the last value, or after the opening brace: white space before the closing brace stays.
        let end = match self.members.len() {
            0 => self.source.find('{').map_or(0, |brace| brace + 1),
            count => self.span(count - 1).1,
        };
        let comma = if self.members.is_empty() { "" } else { "," };
        let key = quoted(name);
        raw([
            &self.source[..end],
            comma,
            &key,
            ":",
            value.get(),
            &self.source[end..],
        ]
        .concat())
    }

    fn without(&self, at: usize) -> Box<RawValue> {
        // From the end of the previous value (with its comma) or, for the first, up to the start of the next key.
        let end = self.span(at).1;
        let (from, to) = match (at, self.members.len()) {
            (0, 1) => (self.after_brace(), end),
            (0, _) => (
                self.after_brace(),
                end + self.source[end..].find(',').map_or(0, |comma| comma + 1),
            ),
            (at, _) => (self.span(at - 1).1, end),
        };
        raw([&self.source[..from], &self.source[to..]].concat())
    }

    fn after_brace(&self) -> usize {
        self.source.find('{').map_or(0, |brace| brace + 1)
    }

    fn span(&self, at: usize) -> (usize, usize) {
        let value = self.members[at].1.get();
        span_in(self.source, value)
    }
}

/// Returns the range of `part`, a slice of `source`, in bytes.
pub(super) fn span_in(source: &str, part: &str) -> (usize, usize) {
    let start = (part.as_ptr() as usize).saturating_sub(source.as_ptr() as usize);
    (start, start + part.len())
}

fn has_double(members: &[(Cow<'_, str>, &RawValue)]) -> bool {
    // Few members: compare each pair. Many: sort, so that a hostile object stays cheap.
    if members.len() <= 16 {
        return members
            .iter()
            .enumerate()
            .any(|(at, (key, _))| members[..at].iter().any(|(earlier, _)| earlier == key));
    }
    let mut keys: Vec<&str> = members.iter().map(|(key, _)| key.as_ref()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

/// Returns one member of an object, skipping the others. Of duplicates it returns the last, as most readers do; use
/// [`only_member`] to reject them. `None` if the text is not an object, the member is absent, or a name in the object
/// cannot be read.
pub fn member<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let [value] = several(object, [name]);
    value
}

/// Like [`member`], for several names in one pass.
pub(crate) fn several<'a, const N: usize>(
    object: &'a RawValue,
    names: [&str; N],
) -> [Option<&'a RawValue>; N] {
    find(object, names).last.map(read)
}

/// Like [`member`], but a duplicate member is an error. `location` names the object in it.
pub fn only_member<'a>(
    object: &'a RawValue,
    name: &str,
    location: &'static str,
) -> Result<Option<&'a RawValue>, WireError> {
    let found = find(object, [name]);
    if found.duplicate {
        return Err(WireError::Duplicate { location });
    }
    let [value] = found.last;
    Ok(read(value))
}

fn read(value: Option<&str>) -> Option<&RawValue> {
    serde_json::from_str(value?).ok()
}

/// Members with given names, each as written.
struct FoundMembers<'a, const N: usize> {
    last: [Option<&'a str>; N],
    duplicate: bool,
}

/// Finds members in one scan, like those of a frame. Finds none if a name cannot be read.
fn find<'a, const N: usize>(object: &'a RawValue, names: [&str; N]) -> FoundMembers<'a, N> {
    let text = object.get();
    let (mut last, mut duplicate) = ([None; N], false);
    let whole = each_key(text.as_bytes(), 0, |key, at| {
        let end = skip_value(text.as_bytes(), at)?;
        let name = match memchr::memchr(b'\\', key) {
            None => Cow::Borrowed(key),
            Some(_) => Cow::Owned(unescaped(key)?),
        };
        if let Some(index) = names.iter().position(|known| known.as_bytes() == &*name) {
            duplicate |= last[index].replace(&text[at..end]).is_some();
        }
        Some(end)
    });
    match whole {
        Some(_) => FoundMembers { last, duplicate },
        None => FoundMembers {
            last: [None; N],
            duplicate: false,
        },
    }
}

/// Levels of nesting allowed where a value is taken out of a frame. Forms have four, answers two.
pub const MAX_DEPTH: usize = 64;

/// Levels of nesting allowed in a schema. No form has them, but a client may show another; `serde_json` reads at most
/// 127.
pub const MAX_SCHEMA_DEPTH: usize = 120;

/// Rejects a value nested deeper than [`MAX_DEPTH`], before anything recursive reads it.
pub(super) fn within_depth(value: &RawValue, member: &'static str) -> Result<(), WireError> {
    within(MAX_DEPTH, value, member)
}

/// Rejects a value nested deeper than `limit`, before anything recursive reads it.
pub(super) fn within(
    limit: usize,
    value: &RawValue,
    member: &'static str,
) -> Result<(), WireError> {
    let mut depth = 0_usize;
    let text = value.get().as_bytes();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                // A parsed value has complete strings.
                at = skip_string(text, at).unwrap_or(text.len());
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth > limit {
            return Err(WireError::TooDeep { member, limit });
        }
    }
    Ok(())
}

/// Returns the text of a JSON string, borrowed if it has no escapes. `None` if the value is not a string.
pub fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    token_text(value.get())
}

/// Returns `true` if the value is `null`.
pub fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// Returns `true` if the value is `true` or `false`.
pub fn is_boolean(value: &RawValue) -> bool {
    matches!(value.get(), "true" | "false")
}

/// Returns `true` if the value is a list without entries.
pub fn is_empty_list(value: &RawValue) -> bool {
    let entries = value
        .get()
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    entries.is_some_and(|entries| entries.trim_ascii().is_empty())
}

/// Returns `true` if the text starts an object.
pub(super) fn is_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
        .starts_with('{')
}

/// Returns the JSON string token of a text.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_quoted(&mut quoted, text);
    quoted
}

/// Adds the JSON string token of a text.
pub fn push_quoted(to: &mut String, text: &str) {
    let is_escaped = |byte: u8| byte < b' ' || matches!(byte, b'"' | b'\\');
    if text.bytes().any(is_escaped) {
        to.push_str(&escaped(text));
        return;
    }
    to.push('"');
    to.push_str(text);
    to.push('"');
}

fn escaped(text: &str) -> String {
    serde_json::to_string(text).expect("a text, written to memory")
}

/// Returns a string as a raw value.
pub fn raw_text(text: &str) -> Box<RawValue> {
    raw(quoted(text))
}

/// Returns a value as raw text.
pub fn raw_value(value: &serde_json::Value) -> Box<RawValue> {
    written(value)
}

fn written(value: &serde_json::Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("the keys of a value are strings")
}

/// Joins members into an object, in their order.
pub(super) fn object<'a>(
    members: impl IntoIterator<Item = (&'a str, &'a RawValue)>,
) -> Box<RawValue> {
    raw(object_text(members))
}

/// Joins members into the text of an object, in their order.
pub(super) fn object_text<'a>(
    members: impl IntoIterator<Item = (&'a str, &'a RawValue)>,
) -> String {
    let mut text = String::with_capacity(256);
    text.push('{');
    for (key, value) in members {
        if text.len() > 1 {
            text.push(',');
        }
        push_quoted(&mut text, key);
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    text
}

pub(super) fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).expect("joined from whole JSON tokens")
}

/// Returns the text of a JSON string that was not parsed yet, borrowed if it has no escapes; `None` if it is not a
/// string.
pub(super) fn read_string(json: &str) -> Option<Cow<'_, str>> {
    let MemberName(text) = serde_json::from_str(json).ok()?;
    Some(text)
}

/// Returns the text of a string token of valid JSON, borrowed if it has no escapes; `None` for any other token.
pub(crate) fn token_text(token: &str) -> Option<Cow<'_, str>> {
    let plain = token.strip_prefix('"')?.strip_suffix('"')?;
    if !plain.contains('\\') {
        return Some(Cow::Borrowed(plain));
    }
    serde_json::from_str::<String>(token).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests;
