//! The arguments of a call: JSON that is parsed without rounding numbers, with limits on depth and length.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The largest arguments that conditions read, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting.
const MAX_DEPTH: usize = 32;
/// The longest list, and the most members of an object.
pub(super) const MAX_ELEMENTS: usize = 1_000;

/// A value of the arguments.
pub(super) enum ArgumentValue<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Cow<'a, str>),
    List(Vec<ArgumentValue<'a>>),
    Object(Vec<(Cow<'a, str>, ArgumentValue<'a>)>),
    /// Too deep, too long, a number that no type represents exactly, or an object with a duplicate member: equal to
    /// nothing, and an error when used. Contains its position, which distinguishes two of them.
    Unreadable(usize),
}

impl<'a> ArgumentValue<'a> {
    /// Reads the arguments of a call; `None` if they are not an object, too large or ambiguous.
    pub(super) fn arguments(text: &'a str) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        let read = Self::read(raw.get(), MAX_DEPTH);
        matches!(read, Self::Object(_)).then_some(read)
    }

    /// Returns a member by its name.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    fn read(text: &'a str, depth: usize) -> Self {
        let read = match text.as_bytes().first() {
            Some(b'n') => Some(Self::Null),
            Some(b't') => Some(Self::Bool(true)),
            Some(b'f') => Some(Self::Bool(false)),
            Some(b'"') => serde_json::from_str::<ArgumentText<'a>>(text)
                .ok()
                .map(|text| Self::Text(text.0)),
            Some(b'[' | b'{') if depth == 0 => None,
            Some(b'[') => list(text, depth),
            Some(b'{') => object(text, depth),
            Some(_) => number(text),
            None => None,
        };
        read.unwrap_or(Self::Unreadable(text.as_ptr() as usize))
    }
}

fn list(text: &str, depth: usize) -> Option<ArgumentValue<'_>> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    if items.len() > MAX_ELEMENTS {
        return None;
    }
    Some(ArgumentValue::List(
        items
            .iter()
            .map(|item| ArgumentValue::read(item.get(), depth - 1))
            .collect(),
    ))
}

fn object(text: &str, depth: usize) -> Option<ArgumentValue<'_>> {
    let ArgumentObject(members) = serde_json::from_str(text).ok()?;
    if members.len() > MAX_ELEMENTS {
        return None;
    }
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.0.as_ref()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let members = members.into_iter();
    Some(ArgumentValue::Object(
        members
            .map(|(name, value)| (name.0, ArgumentValue::read(value.get(), depth - 1)))
            .collect(),
    ))
}

/// Returns a number that an integer or a double represents without loss; a double represents the decimal fraction that
/// it is written as, such as 0.1.
fn number(text: &str) -> Option<ArgumentValue<'static>> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(ArgumentValue::Int(whole));
    }
    let double: f64 = text.parse().ok()?;
    if !double.is_finite() {
        return None;
    }
    let is_held = if text.contains(['.', 'e', 'E']) {
        // Rust writes the fewest digits that distinguish a double from every other.
        decimal(text)? == decimal(&format!("{double:e}"))?
    } else {
        // Rust writes the exact digits of an integral double.
        format!("{double:.0}") == text
    };
    is_held.then_some(ArgumentValue::Double(double))
}

/// Returns a decimal number as its sign, its digits without zeros at either end, and their power of ten. `None` if that
/// power is out of range.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    let exponent = exponent
        .parse::<i64>()
        .ok()?
        .checked_sub(i64::try_from(fraction.len()).ok()?)?
        .checked_add(i64::try_from(all.len() - digits.len()).ok()?)?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some((false, String::new(), 0));
    }
    Some((is_negative, digits.to_owned(), exponent))
}

/// A text, borrowed if it has no escapes.
struct ArgumentText<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for ArgumentText<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = ArgumentText<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(ArgumentText(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(ArgumentText(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// The members of an object in order, duplicates included.
struct ArgumentObject<'a>(Vec<(ArgumentText<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for ArgumentObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = ArgumentObject<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(ArgumentObject(members))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &ArgumentValue<'_>) -> String {
        match json {
            ArgumentValue::Null => "null".to_owned(),
            ArgumentValue::Bool(truth) => truth.to_string(),
            ArgumentValue::Int(whole) => format!("int {whole}"),
            ArgumentValue::Double(double) => format!("double {double}"),
            ArgumentValue::Text(text) => format!("{text:?}"),
            ArgumentValue::List(list) => {
                format!("[{}]", list.iter().map(text).collect::<Vec<_>>().join(","))
            }
            ArgumentValue::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, value)| format!("{name}:{}", text(value)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            ArgumentValue::Unreadable(_) => "unreadable".to_owned(),
        }
    }

    #[test]
    fn numbers_are_exact_or_unreadable() {
        let read =
            |value: &str| text(&ArgumentValue::arguments(&format!("{{\"a\":{value}}}")).unwrap());
        for (value, expected) in [
            ("1", "int 1"),
            ("-9223372036854775808", "int -9223372036854775808"),
            ("9223372036854775808", "double 9223372036854776000"),
            ("9223372036854775809", "unreadable"),
            ("0.1", "double 0.1"),
            ("1e999", "unreadable"),
            ("1.0", "double 1"),
            ("-0.0", "double -0"),
            ("0e5", "double 0"),
            ("1E+2", "double 100"),
            ("100.50e-1", "double 10.05"),
            ("0.30000000000000004", "double 0.30000000000000004"),
            ("1.7976931348623157e308", &format!("double {}", f64::MAX)),
            ("5e-324", &format!("double {}", 5e-324)),
            ("10.0000000000000001", "unreadable"),
            ("9007199254740993.0", "unreadable"),
            ("0.1000000000000000055511151231257827", "unreadable"),
            ("1e-400", "unreadable"),
            ("1e-99999999999999999999", "unreadable"),
            ("\"a\\u0062\"", "\"ab\""),
            ("[true,null]", "[true,null]"),
            ("{\"b\":1,\"b\":2}", "unreadable"),
            ("{\"b\":1,\"\\u0062\":2}", "unreadable"),
        ] {
            assert_eq!(read(value), format!("{{a:{expected}}}"), "{value}");
        }
    }

    #[test]
    fn what_is_too_large_too_deep_or_ambiguous_is_not_read() {
        assert!(ArgumentValue::arguments("[1]").is_none());
        assert!(ArgumentValue::arguments("{\"a\":1,\"a\":1}").is_none());
        assert!(ArgumentValue::arguments("{").is_none());
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_BYTES));
        assert!(ArgumentValue::arguments(&large).is_none());
        let long = format!("{{\"a\":[{}0]}}", "0,".repeat(MAX_ELEMENTS));
        assert_eq!(
            text(&ArgumentValue::arguments(&long).unwrap()),
            "{a:unreadable}"
        );
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(40), "]".repeat(40));
        assert!(text(&ArgumentValue::arguments(&deep).unwrap()).contains("[unreadable]"));
    }
}
