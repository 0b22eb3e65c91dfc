//! Small changes to peers' frames, for which the protocol tools in `core::wire` would read more than needed.

use std::ops::Range;

use mcp_elicit_core::fault::Fault;
use mcp_elicit_core::wire::{Frame, Id, Revision, members, message};
use serde_json::{Value, json};

/// The prefix of every id and state that the gateway generates, so that it is recognisable in logs.
pub(crate) const OWN: &str = "mcp-elicit.";

/// Returns `true` if an id or token chosen by a peer equals one that the gateway could generate, however it is written.
pub(crate) fn may_be_own(id: &Id) -> bool {
    id.as_text().is_some_and(|text| text.starts_with(OWN))
}

/// A JSON-RPC error object of the gateway's own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ErrorResponse {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl ErrorResponse {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Creates the refusal of a response of the server that is not JSON.
    pub(crate) fn unreadable() -> Self {
        Self::new(-32603, "the server gave an answer that is not JSON")
    }

    /// Adds data for programs.
    #[must_use]
    pub(crate) fn with_data(self, data: Value) -> Self {
        let data = Some(data);
        Self { data, ..self }
    }

    /// Returns the error of a fault in this revision.
    pub(crate) fn fault(fault: impl Into<Fault>, revision: Revision) -> Self {
        let error = fault.into().to_error(revision);
        Self {
            code: error.code.into(),
            message: error.message,
            data: error.data,
        }
    }

    /// Replaces the message.
    #[must_use]
    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the error response to the request of this id.
    pub(crate) fn to_response(&self, id: &Id) -> String {
        self.to_response_of(Some(id))
    }

    /// Returns the error response to a request whose id cannot be repeated (JSON-RPC 2.0: `null`).
    pub(crate) fn to_unknown(&self) -> String {
        self.to_response_of(None)
    }

    fn to_response_of(&self, id: Option<&Id>) -> String {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        message::error(id, &members::raw_value(&error))
    }
}

/// Returns the frame with the bytes in `range` replaced.
pub(crate) fn spliced(frame: &str, range: &Range<usize>, new: &str) -> String {
    [&frame[..range.start], new, &frame[range.end..]].concat()
}

/// A new text in place of some bytes of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Splice {
    range: Range<usize>,
    text: String,
}

impl Splice {
    /// Creates a text in place of the bytes in `range`.
    pub(crate) fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { range, text }
    }

    /// Creates `"name":value` pairs, given as JSON, at the start of the object in `range` of the frame. It must not have
    /// such members yet.
    pub(crate) fn first(frame: &str, range: &Range<usize>, members: &str) -> Self {
        let inside = range.start + 1;
        let is_empty = frame[inside..range.end].trim_start().starts_with('}');
        let comma = if is_empty { "" } else { "," };
        Self::new(inside..inside, [members, comma].concat())
    }

    /// Returns the bytes that it replaces.
    pub(crate) fn range(&self) -> &Range<usize> {
        &self.range
    }

    /// Returns the new text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Returns the frame with these changes, whose ranges do not overlap.
pub(crate) fn with_splices<'a>(
    frame: &str,
    splices: impl IntoIterator<Item = &'a Splice>,
) -> String {
    let mut splices: Vec<&Splice> = splices.into_iter().collect();
    splices.sort_by_key(|splice| splice.range.start);
    let mut changed = String::with_capacity(frame.len());
    let mut done = 0;
    for splice in splices {
        changed.push_str(&frame[done..splice.range.start]);
        changed.push_str(&splice.text);
        done = splice.range.end;
    }
    changed.push_str(&frame[done..]);
    changed
}

/// Returns the change of a frame's id; `None` if it has this id as written, or none.
pub(crate) fn id_splice(frame: Frame<'_>, id: &Id) -> Option<Splice> {
    let range = frame.index().id.clone()?;
    (frame.text()[range.clone()] != *id.as_json()).then(|| Splice::new(range, id.as_json()))
}

/// Returns the frame under another id.
pub(crate) fn with_id(frame: Frame<'_>, id: &Id) -> String {
    with_splices(frame.text(), &id_splice(frame, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_go_first_in_full_and_empty_objects() {
        let with_first = |frame: &str, range: Range<usize>| {
            with_splices(frame, [&Splice::first(frame, &range, r#""a":1"#)])
        };
        assert_eq!(
            with_first(r#"{"result":{ } }"#, 10..13),
            r#"{"result":{"a":1 } }"#
        );
        assert_eq!(
            with_first(r#"{"result":{"b":2}}"#, 10..17),
            r#"{"result":{"a":1,"b":2}}"#
        );
    }

    #[test]
    fn several_splices_change_their_own_bytes_in_any_order() {
        let frame = "0123456789";
        let one = Splice::new(7..8, "");
        let two = Splice::new(2..2, "ab");
        let three = Splice::new(3..6, "c");
        for splices in [[&one, &two, &three], [&three, &one, &two]] {
            assert_eq!(with_splices(frame, splices), "01ab2c689");
        }
    }

    #[test]
    fn a_splice_touches_nothing_else() {
        let frame = r#"{"id": 12345678901234567890 ,"x":1e-7}"#;
        assert_eq!(
            spliced(frame, &(7..27), "\"a\""),
            r#"{"id": "a" ,"x":1e-7}"#
        );
    }
}
