//! Placeholders, and the comparison of a message with the expected one.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

const ANYTHING: &str = "$_";
const MORE: &str = "...";
/// The member that every object of the protocol may carry.
const ALWAYS_ALLOWED: &str = "_meta";

/// The value of each placeholder so far.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    known: BTreeMap<String, Value>,
}

/// A message that differs from the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The location of the difference, as a JSON Pointer.
    pub pointer: String,
    /// The expected and the received value.
    pub why: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() {
            "the message"
        } else {
            &self.pointer
        };
        write!(f, "at {place}: {}", self.why)
    }
}

impl std::error::Error for Mismatch {}

/// The kind of string in a pattern.
enum PatternText<'a> {
    Anything,
    Named(&'a str),
    Plain(String),
}

fn text(text: &str) -> PatternText<'_> {
    match text.strip_prefix('$') {
        None | Some("") => PatternText::Plain(text.to_owned()),
        Some(rest) if rest.starts_with('$') => PatternText::Plain(rest.to_owned()),
        Some(_) if text == ANYTHING => PatternText::Anything,
        Some(name) => PatternText::Named(name),
    }
}

impl Bindings {
    /// Returns the value of a placeholder, if known.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.known.get(name)
    }

    /// Sets the value of a placeholder.
    pub fn set(&mut self, name: impl Into<String>, value: Value) {
        self.known.insert(name.into(), value);
    }

    /// Returns the message for a pattern. An unknown placeholder gets its own name as its value.
    pub fn fill(&mut self, pattern: &Value) -> Value {
        match pattern {
            Value::String(string) => self.fill_text(string),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(members) => {
                let filled = members.iter().filter(|(key, _)| *key != MORE);
                Value::Object(
                    filled
                        .map(|(key, value)| (key.clone(), self.fill(value)))
                        .collect(),
                )
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => pattern.clone(),
        }
    }

    fn fill_text(&mut self, string: &str) -> Value {
        match text(string) {
            PatternText::Plain(plain) => plain.into(),
            PatternText::Anything => Value::Null,
            PatternText::Named(name) => self
                .known
                .entry(name.to_owned())
                .or_insert_with(|| name.into())
                .clone(),
        }
    }

    /// Checks that `came` is the message that `pattern` expects. Learns its placeholders only if it is.
    pub fn take(&mut self, pattern: &Value, came: &Value) -> Result<(), Mismatch> {
        let mut learned = self.clone();
        learned.compare(pattern, came, &mut String::new())?;
        *self = learned;
        Ok(())
    }

    fn compare(&mut self, pattern: &Value, came: &Value, at: &mut String) -> Result<(), Mismatch> {
        match (pattern, came) {
            (Value::String(string), _) => self.compare_text(string, came, at),
            (Value::Object(expected), Value::Object(members)) => {
                self.compare_objects(expected, members, at)
            }
            (Value::Array(expected), Value::Array(items)) if expected.len() == items.len() => {
                for (index, (expected, item)) in expected.iter().zip(items).enumerate() {
                    self.below(&index.to_string(), expected, item, at)?;
                }
                Ok(())
            }
            (Value::Number(expected), Value::Number(number)) if same_number(expected, number) => {
                Ok(())
            }
            (expected, came) if expected == came => Ok(()),
            (expected, came) => Err(differ(at, expected, came)),
        }
    }

    fn compare_text(&mut self, string: &str, came: &Value, at: &str) -> Result<(), Mismatch> {
        match text(string) {
            PatternText::Anything => Ok(()),
            PatternText::Plain(plain) if came == &Value::from(plain.as_str()) => Ok(()),
            PatternText::Plain(plain) => Err(differ(at, &plain.into(), came)),
            PatternText::Named(name) => match self.known.get(name) {
                Some(known) if known == came => Ok(()),
                Some(known) => Err(differ(at, known, came)),
                None => {
                    self.known.insert(name.to_owned(), came.clone());
                    Ok(())
                }
            },
        }
    }

    fn compare_objects(
        &mut self,
        expected: &Map<String, Value>,
        came: &Map<String, Value>,
        at: &mut String,
    ) -> Result<(), Mismatch> {
        for (key, pattern) in expected.iter().filter(|(key, _)| *key != MORE) {
            let value = came.get(key).ok_or_else(|| Mismatch {
                pointer: at.clone(),
                why: format!("`{key}` is missing"),
            })?;
            self.below(key, pattern, value, at)?;
        }
        let unexpected = |key: &&String| *key != ALWAYS_ALLOWED && !expected.contains_key(*key);
        match came.keys().find(unexpected) {
            Some(key) if !expected.contains_key(MORE) => Err(Mismatch {
                pointer: at.clone(),
                why: format!("`{key}` was not expected"),
            }),
            _ => Ok(()),
        }
    }

    fn below(
        &mut self,
        key: &str,
        pattern: &Value,
        came: &Value,
        at: &mut String,
    ) -> Result<(), Mismatch> {
        let length = at.len();
        at.push('/');
        at.push_str(&key.replace('~', "~0").replace('/', "~1"));
        self.compare(pattern, came, at)?;
        at.truncate(length);
        Ok(())
    }
}

/// Returns `true` if two numbers are equal, as `1` and `1.0` are.
fn same_number(one: &serde_json::Number, two: &serde_json::Number) -> bool {
    one == two || (one.is_f64() != two.is_f64() && one.as_f64() == two.as_f64())
}

fn differ(at: &str, expected: &Value, came: &Value) -> Mismatch {
    Mismatch {
        pointer: at.to_owned(),
        why: format!("expected {expected}, came {came}"),
    }
}
