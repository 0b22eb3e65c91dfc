//! A JSON-RPC id as written, compared by its meaning.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::value::RawValue;

use super::members;

/// A request's id, or a progress token: a string or a number, kept byte for byte.
///
/// `12345678901234567890`, `1.0` and `"\u0061"` are sent as they were received. Two ids are equal if they mean the
/// same: `"a"` and `"\u0061"`, or `1` and `1.0`, since a peer may respell an id in its response. A string is never
/// equal to a number.
#[derive(Clone)]
pub struct Id {
    raw: Box<RawValue>,
    meaning: Meaning,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Meaning {
    Integer(i128),
    // Not a whole number, or beyond i128: compared as written.
    Number(Box<str>),
    Text(Box<str>),
}

impl Id {
    /// Reads an id; `None` if the value is neither a string nor a number.
    pub fn read(raw: &RawValue) -> Option<Self> {
        let token = raw.get();
        let meaning = match token.as_bytes().first()? {
            b'"' => {
                let text: String = serde_json::from_str(token).ok()?;
                Meaning::Text(text.into())
            }
            b'-' | b'0'..=b'9' => number(token),
            _ => return None,
        };
        Some(Self {
            raw: raw.to_owned(),
            meaning,
        })
    }

    /// Creates an id from text.
    pub fn text(text: &str) -> Self {
        Self {
            raw: members::raw_text(text),
            meaning: Meaning::Text(text.into()),
        }
    }

    /// Creates an id from a number.
    pub fn number(number: u64) -> Self {
        Self {
            raw: members::raw_value(&number.into()),
            meaning: Meaning::Integer(i128::from(number)),
        }
    }

    /// Returns the JSON token as written, including quotes.
    pub fn as_json(&self) -> &str {
        self.raw.get()
    }

    /// Returns the decoded text; `None` for a number.
    pub fn as_text(&self) -> Option<&str> {
        match &self.meaning {
            Meaning::Text(text) => Some(text),
            Meaning::Integer(_) | Meaning::Number(_) => None,
        }
    }

    /// Returns the id in the other JSON type: the text of a whole number, or the whole number that a text writes. `None`
    /// for any other id.
    ///
    /// A string and a number are two ids, but some peers respell one as the other.
    pub fn in_other_type(&self) -> Option<Self> {
        match &self.meaning {
            Meaning::Integer(whole) => Some(Self::text(&whole.to_string())),
            Meaning::Text(text) => {
                let whole: i128 = text.parse().ok()?;
                let raw = RawValue::from_string(whole.to_string()).ok()?;
                (raw.get() == &**text).then_some(Self {
                    raw,
                    meaning: Meaning::Integer(whole),
                })
            }
            Meaning::Number(_) => None,
        }
    }

    /// Returns the id as a raw JSON value.
    pub fn to_raw(&self) -> Box<RawValue> {
        self.raw.clone()
    }
}

fn number(token: &str) -> Meaning {
    if let Ok(whole) = token.parse::<i128>() {
        return Meaning::Integer(whole);
    }
    // `1.0` and `1e2` mean whole numbers; within 2^53 a double tells which without rounding.
    match token.parse::<f64>() {
        Ok(value) if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 => {
            format!("{value:.0}")
                .parse()
                .map_or_else(|_| Meaning::Number(token.into()), Meaning::Integer)
        }
        _ => Meaning::Number(token.into()),
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.meaning == other.meaning
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning.hash(state);
    }
}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Id {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.meaning.cmp(&other.meaning)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.as_json())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn id(token: &str) -> Id {
        Id::read(&RawValue::from_string(token.to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn an_id_stays_as_written() {
        for token in [
            "12345678901234567890",
            "1.0",
            "-7",
            "1e-7",
            "\"abc\"",
            "\"\\u0061\"",
            "\"\"",
        ] {
            assert_eq!(id(token).as_json(), token);
            assert_eq!(id(token).to_raw().get(), token);
        }
        for token in ["null", "true", "{}", "[1]"] {
            let raw = RawValue::from_string(token.to_owned()).unwrap();
            assert!(Id::read(&raw).is_none(), "{token}");
        }
    }

    #[test]
    fn an_id_is_written_in_the_other_type_only_if_it_means_a_whole_number() {
        for (token, other) in [
            ("1", "\"1\""),
            ("1.0", "\"1\""),
            ("-7", "\"-7\""),
            ("\"0\"", "0"),
            ("\"12345678901234567890\"", "12345678901234567890"),
        ] {
            let found = id(token).in_other_type();
            assert_eq!(found.as_ref().map(Id::as_json), Some(other), "{token}");
        }
        for token in [
            "\"01\"", "\"+1\"", "\" 1\"", "\"1.0\"", "\"a\"", "\"\"", "1.5",
        ] {
            assert!(id(token).in_other_type().is_none(), "{token}");
        }
    }

    #[test]
    fn ids_are_compared_by_meaning() {
        assert_eq!(id("1"), id("1.0"));
        assert_eq!(id("100"), id("1e2"));
        assert_eq!(id("0"), id("-0"));
        assert_eq!(id("\"a\""), id("\"\\u0061\""));
        assert_eq!(id("\"a\""), Id::text("a"));
        assert_eq!(id("7"), Id::number(7));
        assert_ne!(id("1"), id("\"1\""));
        assert_ne!(id("12345678901234567890"), id("12345678901234567891"));
        let set: HashSet<Id> = [id("1"), id("1.0"), id("\"1\"")].into();
        assert_eq!(set.len(), 2);
        assert_eq!(id("\"\\u0061b\"").as_text(), Some("ab"));
        assert_eq!(id("1").as_text(), None);
    }
}
