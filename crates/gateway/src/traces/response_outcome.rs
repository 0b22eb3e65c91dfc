//! The outcome of a response, without anything that a peer wrote in it.

use std::borrow::Cow;

use mcp_elicit_core::wire::frame::Frame;
use mcp_elicit_core::wire::members::{Members, text};
use mcp_elicit_relay::{HANDED_BACK, NOT_CALLED};
use serde_json::value::RawValue;

/// The outcome of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseOutcome {
    /// `ok`, `error`, `tool-error`, `input-required`, `handed-back` or `not-called`.
    pub(super) word: &'static str,
    /// The class of the error: the code, or `tool_error`.
    pub(super) error: Option<Cow<'static, str>>,
}

/// The outcome of a call that is to be made again.
const CALLED_AGAIN: [&str; 2] = ["handed-back", "input-required"];

impl ResponseOutcome {
    /// Creates an outcome without an error.
    pub(super) const fn of(word: &'static str) -> Self {
        Self { word, error: None }
    }

    /// Reads the outcome of a response.
    pub(super) fn read(frame: Frame<'_>) -> Self {
        let Some(result) = frame.result() else {
            let data = frame.error().and_then(|error| member_of(error, "data"));
            if let Some(word) = data.and_then(marked) {
                return Self::of(word);
            }
            let code = frame.error_code().map(|code| code.to_string());
            return Self {
                word: "error",
                error: Some(code.map_or("unknown".into(), Cow::Owned)),
            };
        };
        let Ok(members) = Members::read(result, "result") else {
            return Self::of("ok");
        };
        let is = |name, value| members.get(name).and_then(text).as_deref() == Some(value);
        let is_error = members
            .get("isError")
            .is_some_and(|raw| raw.get() == "true");
        let mark = members.get("_meta").and_then(marked);
        match mark {
            Some(word) => Self::of(word),
            None if is("resultType", "input_required") => Self::of("input-required"),
            None if is_error => Self {
                word: "tool-error",
                error: Some("tool_error".into()),
            },
            None => Self::of("ok"),
        }
    }

    /// Returns `true` if the call continues when it is made again.
    pub(super) fn continues(&self) -> bool {
        CALLED_AGAIN.contains(&self.word)
    }
}

fn member_of<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    Members::read(object, "object").ok()?.get(name)
}

/// Returns the outcome in the gateway's own marks.
fn marked(marks: &RawValue) -> Option<&'static str> {
    let marks = Members::read(marks, "marks").ok()?;
    let has = |name| marks.get(name).is_some();
    if has(HANDED_BACK) {
        Some("handed-back")
    } else {
        has(NOT_CALLED).then_some("not-called")
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::frame::FrameIndex;

    use super::*;

    #[test]
    fn an_outcome_is_a_word_and_nothing_of_the_response() {
        for (response, word, error) in [
            (r#""result":{"content":[]}"#, "ok", None),
            (r#""result":{"isError":false}"#, "ok", None),
            (
                r#""result":{"isError":true}"#,
                "tool-error",
                Some("tool_error"),
            ),
            (
                r#""result":{"resultType":"input_required"}"#,
                "input-required",
                None,
            ),
            (
                r#""result":{"isError":true,"_meta":{"mcp-elicit/handed-back":true}}"#,
                "handed-back",
                None,
            ),
            (
                r#""result":{"_meta":{"mcp-elicit/not-called":"declined"}}"#,
                "not-called",
                None,
            ),
            (
                r#""error":{"code":-32602,"message":"secret"}"#,
                "error",
                Some("-32602"),
            ),
            (
                r#""error":{"code":1,"message":"m","data":{"mcp-elicit/handed-back":true}}"#,
                "handed-back",
                None,
            ),
            (r#""error":{"message":"secret"}"#, "error", Some("unknown")),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,{response}}}"#);
            let index = FrameIndex::at(text.as_bytes()).unwrap();
            let outcome = ResponseOutcome::read(Frame::of_text(&text, &index));
            assert_eq!(
                (outcome.word, outcome.error.as_deref()),
                (word, error),
                "{text}"
            );
        }
    }
}
