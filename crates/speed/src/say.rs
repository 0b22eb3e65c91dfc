//! The messages of both ends, and the minimum of JSON-RPC parsing.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The question that the server asks: three fields.
pub(crate) const FORM: &str = r#"{"mode":"form","message":"Who should be told?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name"},"email":{"type":"string","format":"email"},"copies":{"type":"integer","minimum":1,"maximum":9}},"required":["name","email"]}}"#;

/// The client's answer.
pub(crate) const ANSWER: &str = r#"{"action":"accept","content":{"name":"Grace Hopper","email":"grace@example.com","copies":2}}"#;

/// The server's text after that answer.
pub(crate) const THANKS: &str = "told Grace Hopper";

/// Opens a session of the pushed era with a client that can show forms.
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{}}},"clientInfo":{"name":"speed","version":"1"}}}"#;
/// The notification that the session is open.
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// The first request of a session.
pub(crate) const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

/// A frame, with its parts as written.
#[derive(Deserialize)]
pub(crate) struct WrittenFrame<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
}

impl<'a> WrittenFrame<'a> {
    /// Parses a frame; `None` if the text is not one.
    pub(crate) fn read(text: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Returns the number of a response to this client's call.
    pub(crate) fn number(&self) -> Option<u64> {
        self.id?.get().parse().ok()
    }

    /// Returns `true` if this is the server's question.
    pub(crate) fn asks(&self) -> bool {
        self.method.as_deref() == Some("elicitation/create")
    }
}

/// A call that is repeated, and its expected result.
#[derive(Clone)]
pub(crate) struct RepeatedCall {
    head: &'static str,
    tail: String,
    /// The text that the result must contain.
    want: String,
}

impl RepeatedCall {
    /// Creates a call of `echo` with this number of bytes of text.
    pub(crate) fn echo(bytes: usize) -> Self {
        let text: String = "pack my box with five dozen jugs "
            .chars()
            .cycle()
            .take(bytes)
            .collect();
        let tail = format!(
            r#","method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
        );
        Self {
            head: r#"{"jsonrpc":"2.0","id":"#,
            tail,
            want: text,
        }
    }

    /// Creates a call of `ask`, which asks with a form.
    pub(crate) fn ask() -> Self {
        Self {
            head: r#"{"jsonrpc":"2.0","id":"#,
            tail: r#","method":"tools/call","params":{"name":"ask","arguments":{}}}"#.to_owned(),
            want: THANKS.to_owned(),
        }
    }

    /// Appends the call with this number.
    pub(crate) fn write(&self, number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.head.as_bytes());
        out.extend_from_slice(number.to_string().as_bytes());
        out.extend_from_slice(self.tail.as_bytes());
    }

    /// Checks that the frame has the expected result; returns a description of the difference if not.
    pub(crate) fn check(&self, frame: &WrittenFrame<'_>) -> Result<(), String> {
        let result = frame.result.map_or("an error", RawValue::get);
        // The text is found by its beginning and compared as a whole: a gateway that changes it fails.
        let begin = &self.want[..self.want.len().min(16)];
        let found = result
            .find(begin)
            .is_some_and(|at| result[at..].starts_with(&self.want));
        if found {
            Ok(())
        } else {
            let shown: String = result.chars().take(90).collect();
            Err(format!("not what was to come: {shown}"))
        }
    }
}

/// Returns the answer to the question with this id.
pub(crate) fn answer_to(id: &RawValue) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ANSWER}}}"#)
}
