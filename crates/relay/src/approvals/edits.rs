//! Arguments changed by approvers, which replace the client's; the others stay byte for byte.

use mcp_elicit_core::argument::is_same_argument;
use mcp_elicit_core::pointer;
use mcp_elicit_core::wire::Frame;
use mcp_elicit_core::wire::members::Members;
use serde_json::value::RawValue;

use crate::frame_edit::Splice;
use crate::parts::indexed_frame::IndexedFrame;

/// The changes of approvers to the arguments of a call.
pub(super) struct Edits {
    frame: IndexedFrame,
    pointers: Vec<String>,
}

impl Edits {
    /// Reads the approvers' answers (JSON values by JSON Pointers) to a request. `None` if none differs from its argument.
    pub(super) fn read(frame: Frame<'_>, answers: &str) -> Option<Self> {
        let range = frame.index().arguments.clone()?;
        let mut arguments: Box<RawValue> =
            serde_json::from_str(&frame.text()[range.clone()]).ok()?;
        let mut pointers = Vec::new();
        for (pointer, answer) in Members::read_text(answers, "answers").ok()?.iter() {
            let changed =
                names_of(pointer).and_then(|names| edited_member(&arguments, &names, answer));
            if let Some(changed) = changed {
                arguments = changed;
                pointers.push(pointer.to_owned());
            }
        }
        (!pointers.is_empty()).then(|| Self {
            frame: IndexedFrame::changed(frame, &[Splice::new(range, arguments.get())]),
            pointers,
        })
    }

    /// Returns the request with the changed arguments.
    pub(super) fn frame(&self) -> Frame<'_> {
        self.frame.frame()
    }

    /// Returns JSON Pointers to the arguments that were changed.
    pub(super) fn pointers(&self) -> &[String] {
        &self.pointers
    }

    /// Returns the changed request, and JSON Pointers to the arguments that were changed.
    pub(super) fn into_parts(self) -> (IndexedFrame, Vec<String>) {
        (self.frame, self.pointers)
    }
}

/// Returns the names in a JSON Pointer to a member.
pub(super) fn names_of(pointer: &str) -> Option<Vec<String>> {
    pointer::names(pointer).filter(|names| !names.is_empty())
}

/// Returns the object with another value for the member of this path, if the value differs. A member that the object
/// lacks is added to it; one of an object that is missing itself is not.
fn edited_member(object: &RawValue, names: &[String], value: &RawValue) -> Option<Box<RawValue>> {
    let (name, rest) = names.split_first()?;
    let all = Members::read(object, "arguments").ok()?;
    let Some(before) = all.get(name) else {
        return rest.is_empty().then(|| all.with(name, Some(value)));
    };
    if rest.is_empty() {
        let is_other = !is_same_argument(before.get(), value.get());
        return is_other.then(|| all.with(name, Some(value)));
    }
    let changed = edited_member(before, rest, value)?;
    Some(all.with(name, Some(&changed)))
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::FrameIndex;

    use super::*;

    fn read(call: &str, answers: &str) -> Option<Edits> {
        let index = FrameIndex::at(call.as_bytes()).unwrap();
        Edits::read(Frame::of_text(call, &index), answers)
    }

    #[test]
    fn a_moment_in_another_spelling_is_no_change() {
        let call = CALL.replace("/tmp/a", "2026-02-28t10:00:00z");
        assert!(read(&call, r#"{"/path":"2026-02-28T10:00:00+00:00"}"#).is_none());
        assert!(read(&call, r#"{"/path":"2026-02-28T10:00:01Z"}"#).is_some());
        assert!(read(&call, r#"{"/path":"2026-02-28T10:00:00+02:00"}"#).is_some());
        assert!(read(CALL, r#"{"/path":"/TMP/A"}"#).is_some());
    }

    const CALL: &str = r#"{"id":1,"method":"tools/call","params":{"name":"rm","arguments":{"path":"/tmp/a", "n":12345678901234567890,"deep":{"on":true}}}}"#;

    #[test]
    fn only_what_differs_is_changed_and_the_rest_stays_byte_for_byte() {
        assert!(read(CALL, "{}").is_none());
        assert!(read(CALL, r#"{"/path":"/tmp/\u0061"}"#).is_none());
        let edits = read(CALL, r#"{"/path":"/tmp/b","/deep/on":false}"#).unwrap();
        let (sent, edited) = edits.into_parts();
        let sent = sent.into_text();
        assert_eq!(edited, ["/path", "/deep/on"]);
        assert!(
            sent.contains("12345678901234567890") && sent.contains(r#""/tmp/b""#),
            "{sent}"
        );
        assert!(sent.contains(r#"{"on":false}"#), "{sent}");
    }

    #[test]
    fn an_argument_that_the_call_leaves_out_is_added_where_its_object_is_there() {
        let (sent, edited) = read(CALL, r#"{"/force":true,"/deep/by":"ada"}"#)
            .unwrap()
            .into_parts();
        let sent = sent.into_text();
        assert_eq!(edited, ["/force", "/deep/by"]);
        assert!(
            sent.contains(r#""deep":{"on":true,"by":"ada"},"force":true}"#),
            "{sent}"
        );
        assert!(read(CALL, r#"{"/absent/a":1}"#).is_none());
        assert!(read(CALL, r#"{"/path/a":1}"#).is_none());
    }
}
