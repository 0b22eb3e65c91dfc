//! The defects of a server's result, each with its JSON Pointer and its value, and the result as far as it can be read.
//!
//! A relay passes a result on as it is. A client that shows it to a person needs types, and a single member of the wrong
//! type must not hide everything else. This module compares a result with the members that MCP gives it, names each one
//! that does not fit, and returns a version that does: an optional member that does not fit is left out, a required one
//! is filled, and an entry of a list that cannot be used is left out. The version is for reading only: what is shown as
//! the server's result is the text that the server wrote.
//!
//! - `shape`: the comparison
//! - `results`: the members of each result
//! - `error`: the error object of a response
//! - `mend`: text that is almost JSON

mod error;
mod mend;
mod results;
mod shape;

use std::fmt;

use serde_json::{Map, Value};

pub use error::{FittedError, fit_error};
pub use mend::{Mended, mend};
use shape::Fitting;

use crate::pointer::token;
use crate::text::beginning;

/// The longest part of a value that is named, in bytes.
const LONGEST_VALUE: usize = 120;

/// A member of a result that does not fit the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    pointer: String,
    found: Option<String>,
    expected: &'static str,
}

impl Misfit {
    /// Returns the member's location in the result, as a JSON Pointer (RFC 6901); empty for the whole result.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns the beginning of the value as JSON; `None` if the member is missing.
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// Returns the same misfit in an object that holds the result as this member.
    #[must_use]
    pub fn within(mut self, member: &str) -> Self {
        self.pointer = format!("/{member}{}", self.pointer);
        self
    }

    /// Returns the same misfit with the server's texts changed: its location and the beginning of its value.
    #[must_use]
    pub fn with_texts(mut self, change: impl Fn(&str) -> String) -> Self {
        self.pointer = change(&self.pointer);
        self.found = self.found.as_deref().map(change);
        self
    }

    /// Creates the misfit of a `resultType` that asks for input, of a result that cannot be read as such.
    pub fn of_result_type(found: &str) -> Self {
        let expected = "the type of a result that asks nothing (inputRequests, requestState)";
        Self::of("/resultType", &Value::from(found), expected)
    }

    fn of(pointer: &str, found: &Value, expected: &'static str) -> Self {
        Self {
            pointer: pointer.to_owned(),
            found: Some(start_of(found)),
            expected,
        }
    }

    fn missing(pointer: &str, member: &str, expected: &'static str) -> Self {
        Self {
            pointer: format!("{pointer}/{}", token(member)),
            found: None,
            expected,
        }
    }
}

/// Writes the location, the value and what was expected, as one line.
impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() {
            "the result"
        } else {
            &self.pointer
        };
        match &self.found {
            Some(found) => write!(f, "{pointer}: {found} is not {}", self.expected),
            None => write!(f, "{pointer}: {} is missing", self.expected),
        }
    }
}

/// The results that a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultKind {
    /// `initialize`
    Initialize,
    /// `server/discover`
    Discover,
    /// `tools/call`
    Tool,
    /// `prompts/get`
    Prompt,
    /// `resources/read`
    Resource,
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// A request for input in place of a result (2026-07-28, multi round-trip requests).
    InputRequired,
}

/// A result as far as it can be read.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The result, in which every known member has its type.
    pub value: Value,
    /// The members that did not fit, in the order of the protocol's members; at most 50.
    pub misfits: Vec<Misfit>,
}

impl Fitted {
    /// Returns `true` if the member at this location of the result did not fit.
    pub fn misses(&self, pointer: &str) -> bool {
        self.misfits.iter().any(|misfit| misfit.pointer == pointer)
    }
}

/// Compares a result with the members that MCP gives it.
///
/// ```
/// use mcp_elicit_core::misfit::{ResultKind, fit};
///
/// let result = r#"{"content": [{"type": "hologram"}, {"type": "text", "text": "done"}], "isError": "no"}"#;
/// let fitted = fit(ResultKind::Tool, result);
/// assert_eq!(fitted.value["content"][0]["text"], "done");
/// let misfits: Vec<_> = fitted.misfits.iter().map(ToString::to_string).collect();
/// assert_eq!(misfits[0], r#"/content/0/type: "hologram" is not text, image, audio, resource or resource_link"#);
/// assert_eq!(misfits[1], r#"/isError: "no" is not a boolean"#);
/// ```
pub fn fit(kind: ResultKind, result: &str) -> Fitted {
    let shape = results::of(kind);
    // The misfits of an empty object would add nothing to the reason why the result is none.
    let empty = || {
        let empty = Value::Object(Map::new());
        Fitting::default().fit(shape, &empty).unwrap_or(empty)
    };
    let Ok(value) = serde_json::from_str(result) else {
        let unreadable = Misfit {
            pointer: String::new(),
            found: Some(cut(result)),
            expected: "JSON that can be read",
        };
        return Fitted {
            value: empty(),
            misfits: vec![unreadable],
        };
    };
    let mut fitting = Fitting::default();
    let value = fitting.fit(shape, &value).unwrap_or_else(empty);
    Fitted {
        value,
        misfits: fitting.into_misfits(),
    }
}

fn start_of(value: &Value) -> String {
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    let start = beginning(text, LONGEST_VALUE);
    if start.len() == text.len() {
        text.to_owned()
    } else {
        format!("{start}..")
    }
}

#[cfg(test)]
mod tests;
