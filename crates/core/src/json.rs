//! JSON text parsed once, borrowed where possible, in its written order.
//!
//! `serde_json::Value` owns every string and hashes every key; a question's form is new each time, so every check would
//! pay for that. This tree holds slices of the text instead. It is never public: values leave the crate as
//! `serde_json::Value`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// One JSON value that borrows from its text.
#[derive(Debug, Clone)]
pub(crate) enum Json<'a> {
    Null,
    Boolean(bool),
    /// A number, and its text if that was kept.
    Number(Number, Option<&'a str>),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Parses a whole text; anything after the value is an error. Depth is limited by serde_json (128).
    pub(crate) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Keeps the text of each number that is not held as an integer; `text` is the text that was read.
    pub(crate) fn spell(&mut self, text: &'a str) {
        self.spell_from(&mut Floats { text, at: 0 });
    }

    fn spell_from(&mut self, floats: &mut Floats<'a>) {
        match self {
            // Both are in the order of the text.
            Json::Number(number, text) if number.is_f64() => *text = floats.next(),
            Json::List(items) => items.iter_mut().for_each(|item| item.spell_from(floats)),
            Json::Object(entries) => {
                for (_, value) in entries {
                    value.spell_from(floats);
                }
            }
            Json::Null | Json::Boolean(_) | Json::Number(..) | Json::Text(_) => {}
        }
    }

    /// Returns the same tree for a value that is already parsed. Strings are borrowed.
    pub(crate) fn from_value(value: &'a Value) -> Self {
        match value {
            Value::Null => Json::Null,
            Value::Bool(b) => Json::Boolean(*b),
            Value::Number(n) => Json::Number(n.clone(), None),
            Value::String(s) => Json::Text(Cow::Borrowed(s)),
            Value::Array(items) => Json::List(items.iter().map(Json::from_value).collect()),
            Value::Object(map) => Json::Object(
                map.iter()
                    .map(|(k, v)| (Cow::Borrowed(k.as_str()), Json::from_value(v)))
                    .collect(),
            ),
        }
    }

    /// Returns the kind of JSON value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Boolean(_) => "a boolean",
            Json::Number(..) => "a number",
            Json::Text(_) => "a string",
            Json::List(_) => "an array",
            Json::Object(_) => "an object",
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_number(&self) -> Option<&Number> {
        match self {
            Json::Number(number, _) => Some(number),
            _ => None,
        }
    }

    /// Returns a view for checking, shared with `serde_json::Value`.
    pub(crate) fn given(&self) -> Given<'_> {
        match self {
            Json::Null => Given::Null,
            Json::Boolean(b) => Given::Boolean(*b),
            Json::Number(n, _) => Given::Number(n),
            Json::Text(t) => Given::Text(t),
            Json::List(items) => Given::List(Items::Read(items)),
            Json::Object(_) => Given::Object,
        }
    }

    pub(crate) fn into_value(self) -> Value {
        match self {
            Json::Null => Value::Null,
            Json::Boolean(b) => Value::Bool(b),
            Json::Number(n, _) => Value::Number(n),
            Json::Text(t) => Value::String(t.into_owned()),
            Json::List(items) => Value::Array(items.into_iter().map(Json::into_value).collect()),
            Json::Object(entries) => Value::Object(
                entries
                    .into_iter()
                    .map(|(k, v)| (k.into_owned(), v.into_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

/// The numbers of a JSON text that `serde_json` does not hold as integers, in order.
struct Floats<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Floats<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            let start = self.at;
            self.at += 1;
            match byte {
                b'"' => {
                    while let Some(byte) = bytes.get(self.at) {
                        self.at += if *byte == b'\\' { 2 } else { 1 };
                        if *byte == b'"' {
                            break;
                        }
                    }
                }
                b'-' | b'0'..=b'9' => {
                    let is_part =
                        |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                    while bytes.get(self.at).is_some_and(is_part) {
                        self.at += 1;
                    }
                    let number = &self.text[start..self.at];
                    let is_integer = number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
                    if !is_integer || number == "-0" {
                        return Some(number);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// A content value as a rule sees it, from either tree.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    Null,
    Boolean(bool),
    Number(&'a Number),
    Text(&'a str),
    List(Items<'a>),
    Object,
}

impl<'a> Given<'a> {
    pub(crate) fn from_value(value: &'a Value) -> Self {
        match value {
            Value::Null => Given::Null,
            Value::Bool(b) => Given::Boolean(*b),
            Value::Number(n) => Given::Number(n),
            Value::String(s) => Given::Text(s),
            Value::Array(items) => Given::List(Items::Parsed(items)),
            Value::Object(_) => Given::Object,
        }
    }
}

/// The items of a list, from either tree.
#[derive(Clone, Copy)]
pub(crate) enum Items<'a> {
    Read(&'a [Json<'a>]),
    Parsed(&'a [Value]),
}

impl<'a> Items<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Items::Read(items) => items.len(),
            Items::Parsed(items) => items.len(),
        }
    }

    /// Returns the items as rules see them.
    pub(crate) fn iter(self) -> impl Iterator<Item = Given<'a>> {
        let (read, parsed) = match self {
            Items::Read(items) => (items, [].as_slice()),
            Items::Parsed(items) => ([].as_slice(), items),
        };
        let parsed = parsed.iter().map(Given::from_value);
        read.iter().map(Json::given).chain(parsed)
    }

    /// Returns the items as strings; `None` for an item that is not one.
    pub(crate) fn texts(self) -> impl Iterator<Item = Option<&'a str>> {
        let (read, parsed) = match self {
            Items::Read(items) => (items, [].as_slice()),
            Items::Parsed(items) => ([].as_slice(), items),
        };
        read.iter()
            .map(Json::as_text)
            .chain(parsed.iter().map(Value::as_str))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonReader)
    }
}

struct JsonReader;

impl<'de> Visitor<'de> for JsonReader {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Json<'de>, E> {
        Ok(Json::Boolean(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(n.into(), None))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(n.into(), None))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Json<'de>, E> {
        Ok(Number::from_f64(n).map_or(Json::Null, |n| Json::Number(n, None)))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some((JsonKey(key), value)) = map.next_entry()? {
            entries.push((key, value));
        }
        Ok(Json::Object(entries))
    }
}

struct JsonKey<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for JsonKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyReader;
        impl<'de> Visitor<'de> for KeyReader {
            type Value = JsonKey<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<JsonKey<'de>, E> {
                Ok(JsonKey(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<JsonKey<'de>, E> {
                Ok(JsonKey(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyReader)
    }
}
