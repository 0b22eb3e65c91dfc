//! The call of a request: parsed once, digested in a canonical spelling, and rejected if it cannot be shown to a person
//! in full.

use std::borrow::Cow;
use std::fmt;

use super::frame::FrameIndex;
use super::members::token_text;
use crate::digest::{MAX_ARGUMENT_DEPTH, canonical};

/// The name and arguments of a `tools/call`, `prompts/get` or `resources/read`.
#[derive(Clone, PartialEq, Eq)]
pub struct CallFrame<'a> {
    /// The name, or the resource's URI.
    pub target: Cow<'a, str>,
    /// The arguments as the client wrote them, JSON.
    pub arguments: Option<&'a str>,
}

/// The reason why a call cannot be shown to a person in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallDefect {
    /// The name or URI is missing or is not text.
    #[error("the name of the called item cannot be read")]
    Target,
    /// The arguments are not JSON, or hold text that is not Unicode.
    #[error("the arguments are not JSON text that can be shown")]
    Unreadable,
    /// An object in the arguments has a duplicate member.
    #[error("the arguments have a member twice: write each once, and call again")]
    Duplicate,
    /// The arguments are nested deeper than [`MAX_ARGUMENT_DEPTH`] levels.
    #[error("the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels")]
    TooDeep,
    /// A number in the arguments is larger than any number that can be shown.
    #[error("the arguments have a number that is too large to be shown")]
    Number,
}

impl fmt::Debug for CallFrame<'_> {
    /// Hides the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFrame")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl<'a> CallFrame<'a> {
    /// Reads the call of a request whose members are in `index`.
    pub fn read(frame: &'a str, index: &FrameIndex) -> Result<Self, CallDefect> {
        let method = index.method.clone().map(|range| &frame[range]);
        let target = match method {
            Some("tools/call" | "prompts/get") => &index.name,
            Some("resources/read") => &index.uri,
            _ => &None,
        };
        let target = target.clone().ok_or(CallDefect::Target)?;
        Ok(Self {
            target: token_text(&frame[target]).ok_or(CallDefect::Target)?,
            arguments: index.arguments.clone().map(|range| &frame[range]),
        })
    }

    /// Returns the arguments in canonical spelling: members sorted by name, numbers as written. Empty without
    /// arguments.
    pub fn canonical_arguments(&self) -> Result<String, CallDefect> {
        self.arguments.map_or(Ok(String::new()), canonical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_says_what_it_calls() {
        let read = |frame: &'static str| {
            let index = FrameIndex::read(frame.as_bytes()).unwrap();
            CallFrame::read(frame, &index)
        };
        let call = read(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"secret"}}}"#,
        )
        .unwrap();
        assert_eq!(call.target, "t");
        assert_eq!(call.arguments, Some(r#"{"a":"secret"}"#));
        assert!(!format!("{call:?}").contains("secret"));
        let resource =
            read(r#"{"id":1,"method":"resources/read","params":{"name":"no","uri":"a:\u0062"}}"#);
        assert_eq!(resource.unwrap().target, "a:b");
        for nameless in [
            r#"{"id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"id":1,"method":"tools/call","params":{"uri":"a"}}"#,
            r#"{"id":1,"method":"tools/call","params":["name"]}"#,
            r#"{"id":1,"method":"tools/list","params":{"name":"t"}}"#,
        ] {
            assert_eq!(read(nameless), Err(CallDefect::Target), "{nameless}");
        }
    }
}
