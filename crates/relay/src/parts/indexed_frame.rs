//! Frames that are kept with the positions of their members, so that no text is scanned again.

use std::sync::Arc;

use bytes::Bytes;
use mcp_elicit_core::wire::{Frame, FrameDefect, FrameIndex, Id};

use crate::frame_edit::{self, Splice};

/// The text of a frame with the positions of its members. A copy shares both.
#[derive(Clone)]
pub(crate) struct IndexedFrame {
    /// The frame, which is text.
    bytes: Bytes,
    index: Arc<FrameIndex>,
}

impl IndexedFrame {
    /// Finds the members of a text that was not scanned before.
    ///
    /// # Errors
    /// If it is not a frame.
    pub(crate) fn read(text: String) -> Result<Self, FrameDefect> {
        let index = FrameIndex::read(text.as_bytes())?;
        Ok(Self {
            bytes: text.into(),
            index: Arc::new(index),
        })
    }

    /// Keeps a frame; `bytes` are its own bytes if they may be kept without a copy.
    pub(crate) fn of(frame: Frame<'_>, bytes: Option<&Bytes>) -> Self {
        let copy = || Bytes::copy_from_slice(frame.text().as_bytes());
        Self {
            bytes: bytes.map_or_else(copy, Bytes::clone),
            index: Arc::new(frame.index().clone()),
        }
    }

    /// Returns a frame with these changes, whose ranges do not overlap. Each is a whole value, or within one whose own
    /// members have no positions, so the positions of the others follow from the lengths.
    pub(crate) fn changed(frame: Frame<'_>, splices: &[Splice]) -> Self {
        Self {
            bytes: frame_edit::with_splices(frame.text(), splices).into(),
            index: Arc::new(moved(frame.index(), splices)),
        }
    }

    /// Returns the frame under another id.
    pub(crate) fn with_id(&self, id: &Id) -> Self {
        match frame_edit::id_splice(self.frame(), id) {
            Some(splice) => Self::changed(self.frame(), &[splice]),
            None => self.clone(),
        }
    }

    /// Returns the text with the positions of its members.
    pub(crate) fn frame(&self) -> Frame<'_> {
        Frame::of_text(self.text(), &self.index)
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        // Each constructor has the bytes from a text.
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// Returns the size of the text, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes of the text.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the bytes of the text.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Returns the text, without a copy if nothing else shares it.
    pub(crate) fn into_text(self) -> String {
        String::from_utf8(self.bytes.into()).unwrap_or_default()
    }
}

/// Returns the positions of the members of a frame after these changes.
fn moved(index: &FrameIndex, splices: &[Splice]) -> FrameIndex {
    let after = |at: usize| {
        let before = splices.iter().filter(|splice| splice.range().end <= at);
        before.fold(at, |at, splice| {
            at + splice.text().len() - splice.range().len()
        })
    };
    let mut moved = index.clone();
    let places = [
        &mut moved.id,
        &mut moved.method,
        &mut moved.params,
        &mut moved.meta,
        &mut moved.name,
        &mut moved.uri,
        &mut moved.arguments,
        &mut moved.request_state,
        &mut moved.input_responses,
        &mut moved.result,
        &mut moved.error,
    ];
    for range in places.into_iter().flatten() {
        *range = after(range.start)..after(range.end);
    }
    moved
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::FramePart;

    use super::*;

    /// Returns each frame with an id and a member of each kind that has a position.
    fn frames() -> Vec<String> {
        let params = [
            r#""name":"t""#,
            r#""uri":"u:1""#,
            r#""arguments":{"a":[1,2]}"#,
            r#""requestState":"s""#,
            r#""inputResponses":{}"#,
            r#""_meta":{"progressToken": 7 ,"traceparent":"x"}"#,
        ];
        let mut frames = Vec::new();
        for at in 0..params.len() {
            let mut params = params;
            params.rotate_left(at);
            let params = params.join(" , ");
            frames.push(format!(
                r#"{{"id": 1 ,"method":"tools/call","params":{{{params}}} }}"#
            ));
            frames.push(format!(
                r#"{{"params":{{ {params}}},"method":"tools/call","id":"a"}}"#
            ));
        }
        frames.push(r#"{"result":{"resultType":"x"},"id":3}"#.to_owned());
        frames.push(r#"{ "id":3, "result": {} }"#.to_owned());
        frames.push(r#"{"error":{"code":1},"id":-3}"#.to_owned());
        frames
    }

    #[test]
    fn the_positions_after_changes_are_those_of_a_new_scan() {
        for text in frames() {
            let read = IndexedFrame::read(text).unwrap();
            let frame = read.frame();
            let index = frame.index();
            let token = frame.member_range(FramePart::Meta, "progressToken");
            let first = [&index.result, &index.meta];
            let first = first
                .into_iter()
                .flatten()
                .map(|range| Splice::first(frame.text(), range, r#""first":true"#));
            for new in ["5", "\"much longer than it was before\""] {
                let values = [&index.id, &token, &index.arguments];
                let mut splices: Vec<Splice> = values
                    .into_iter()
                    .flatten()
                    .map(|range| Splice::new(range.clone(), new))
                    .chain(first.clone())
                    .collect();
                for _ in 0..splices.len() {
                    splices.rotate_left(1);
                    for some in 0..=splices.len() {
                        let changed = IndexedFrame::changed(frame, &splices[..some]);
                        let again = FrameIndex::read(changed.bytes()).unwrap();
                        assert_eq!(*changed.index, again, "{}", changed.text());
                    }
                }
            }
        }
    }

    #[test]
    fn a_frame_under_the_id_that_it_has_is_shared() {
        let read = IndexedFrame::read(r#"{"id":1,"method":"ping"}"#.to_owned()).unwrap();
        let same = read.with_id(&Id::number(1));
        assert_eq!(same.bytes().as_ptr(), read.bytes().as_ptr());
        let other = read.with_id(&Id::text("b"));
        assert_eq!(other.text(), r#"{"id":"b","method":"ping"}"#);
        assert_eq!(other.frame().id(), Some(Id::text("b")));
        assert_eq!(other.frame().method(), Some("ping"));
    }

    #[test]
    fn its_size_is_known() {
        // An index is kept for each open call, each waiting request and each round at a client.
        assert_eq!(size_of::<FrameIndex>(), 272);
        assert_eq!(size_of::<IndexedFrame>(), 40);
    }
}
