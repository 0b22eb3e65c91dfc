//! `traceparent` in the requests of calls (SEP-414), and the calls that a shell traces. The relay writes no spans.

use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::{Id, members};

use crate::frame_edit::{self, Splice};
use crate::{AskId, CallId, Relay};

/// The member of `_meta` with the span that made the request.
pub const TRACE_PARENT: &str = "traceparent";

impl Relay {
    /// Returns the id under which the client knows this call.
    pub fn client_id_of(&self, call: CallId) -> Option<&Id> {
        Some(self.calls.get(call)?.client_id())
    }

    /// Returns the call that a response of the server with this id ends.
    pub fn call_answered_by(&self, id: &Id) -> Option<CallId> {
        self.calls.by_upstream(id)
    }

    /// Returns the call of an open question, if it is known.
    pub fn call_of_question(&self, question: AskId) -> Option<CallId> {
        self.asks.get(question)?.call()
    }
}

/// Returns a request with this `traceparent` in its `_meta`, in place of another one; `None` if it has no params.
pub fn with_trace_parent(frame: Frame<'_>, trace_parent: &str) -> Option<String> {
    let text = frame.text();
    let value = members::quoted(trace_parent);
    if let Some(range) = frame.member_range(FramePart::Meta, TRACE_PARENT) {
        return Some(frame_edit::spliced(text, &range, &value));
    }
    let is_object = |part| frame.part(part).is_some_and(|text| text.starts_with('{'));
    let member = format!("\"{TRACE_PARENT}\":{value}");
    let (part, member) = match frame.range(FramePart::Meta) {
        Some(_) => (FramePart::Meta, member),
        None => (FramePart::Params, format!("\"_meta\":{{{member}}}")),
    };
    let range = frame.range(part).filter(|_| is_object(part))?;
    let first = Splice::first(text, range, &member);
    Some(frame_edit::with_splices(text, [&first]))
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::FrameIndex;

    use super::*;

    fn changed(request: &str) -> Option<String> {
        let index = FrameIndex::at(request.as_bytes())?;
        with_trace_parent(Frame::of_text(request, &index), "new")
    }

    #[test]
    fn a_request_gets_the_trace_parent_in_its_meta_and_nothing_else_changes() {
        for (request, expected) in [
            (
                r#"{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1,"traceparent":"old","y":2}}}"#,
                r#"{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1,"traceparent":"new","y":2}}}"#,
            ),
            (
                r#"{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1}}}"#,
                r#"{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"traceparent":"new","x":1}}}"#,
            ),
            (
                r#"{"id":1,"method":"tools/call","params":{"name":"a","_meta":{ }}}"#,
                r#"{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"traceparent":"new" }}}"#,
            ),
            (
                r#"{"id":1,"method":"tools/call","params":{ "name":"a"}}"#,
                r#"{"id":1,"method":"tools/call","params":{"_meta":{"traceparent":"new"}, "name":"a"}}"#,
            ),
        ] {
            assert_eq!(changed(request).as_deref(), Some(expected));
        }
        for request in [
            r#"{"id":1,"method":"tools/call"}"#,
            r#"{"id":1,"method":"tools/call","params":[]}"#,
            r#"{"id":1,"method":"tools/call","params":{"_meta":null}}"#,
            "no message",
        ] {
            assert_eq!(changed(request), None, "{request}");
        }
    }
}
