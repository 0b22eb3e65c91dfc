//! `traceparent` in the requests of calls (SEP-414), and the calls that a shell traces. The relay writes no spans.

use mcp_elicit_core::wire::frame::{Frame, FrameIndex, FramePart};
use mcp_elicit_core::wire::{Id, members};

use crate::{AskId, CallId, Relay, frame_edit};

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
pub fn with_trace_parent(text: &str, trace_parent: &str) -> Option<String> {
    let index = FrameIndex::at(text.as_bytes())?;
    let frame = Frame::of_text(text, &index);
    let value = members::quoted(trace_parent);
    if let Some(range) = frame.member_range(FramePart::Meta, TRACE_PARENT) {
        return Some(frame_edit::spliced(text, &range, &value));
    }
    let is_object = |part| frame.part(part).is_some_and(|text| text.starts_with('{'));
    let member = format!("\"{TRACE_PARENT}\":{value}");
    if let Some(range) = &index.meta {
        let first = || frame_edit::with_first(text, range, &member);
        return is_object(FramePart::Meta).then(first);
    }
    let params = index.params.as_ref()?;
    let meta = format!("\"_meta\":{{{member}}}");
    is_object(FramePart::Params).then(|| frame_edit::with_first(text, params, &meta))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let changed = with_trace_parent(request, "new");
            assert_eq!(changed.as_deref(), Some(expected));
        }
        for request in [
            r#"{"id":1,"method":"tools/call"}"#,
            r#"{"id":1,"method":"tools/call","params":[]}"#,
            r#"{"id":1,"method":"tools/call","params":{"_meta":null}}"#,
            "no message",
        ] {
            assert_eq!(with_trace_parent(request, "new"), None, "{request}");
        }
    }
}
