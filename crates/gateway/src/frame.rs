//! A frame in transit: borrowed, or shared with the result of its scan, so that it can be stored without a copy and
//! read without another scan.

use std::borrow::Cow;

use bytes::Bytes;

use mcp_elicit_core::wire::FrameIndex;

/// The bytes of one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FrameBytes<'a> {
    /// In a buffer that is reused.
    Lent(&'a [u8]),
    /// Shared, with the result of the scan of its members.
    Seen(&'a Bytes, &'a FrameIndex),
}

impl<'a> FrameBytes<'a> {
    /// Returns the bytes of the frame.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Seen(bytes, _) => bytes,
        }
    }

    /// Returns bytes for storage, without a copy if they are shared.
    pub(crate) fn to_bytes(self) -> Bytes {
        match self {
            Self::Lent(bytes) => Bytes::copy_from_slice(bytes),
            Self::Seen(bytes, _) => bytes.clone(),
        }
    }

    /// Returns the positions of its parts; empty if it is not a message.
    pub(crate) fn index(self) -> FrameIndex {
        match self {
            Self::Lent(bytes) => FrameIndex::at(bytes).unwrap_or_default(),
            Self::Seen(_, index) => index.clone(),
        }
    }
}

/// Returns the frame as one line for a pipe, where a line break would start another frame. JSON allows line breaks
/// between tokens only, and there each becomes a space. A frame with a line break within a string is cut at it, so that
/// it is not valid JSON.
pub(crate) fn one_line(frame: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr2(b'\n', b'\r', frame) else {
        return Cow::Borrowed(frame);
    };
    let mut line = Vec::with_capacity(frame.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in frame.iter().enumerate() {
        let is_break = at >= first && matches!(byte, b'\n' | b'\r');
        if is_break && in_string {
            break;
        }
        line.push(if is_break { b' ' } else { *byte });
        if is_escaped {
            is_escaped = false;
        } else if in_string && *byte == b'\\' {
            is_escaped = true;
        } else if *byte == b'"' {
            in_string = !in_string;
        }
    }
    Cow::Owned(line)
}

/// Returns shared bytes like [`one_line`], without a copy if they are one line.
pub(crate) fn one_line_of(frame: Bytes) -> Bytes {
    match one_line(&frame) {
        Cow::Borrowed(_) => frame,
        Cow::Owned(line) => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_frame_is_one_line_and_means_the_same() {
        let broken = "{\r\n \"a\":\n[1,\r\"say \\\"\\\\\",\n{\"method\":\"m\"}\n]}";
        let line = one_line(broken.as_bytes());
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
        let meant: Value = serde_json::from_str(broken).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&line).unwrap(), meant);
        let short = Bytes::from_static(b"{\"a\":\"\\n\"}");
        assert_eq!(one_line_of(short.clone()).as_ptr(), short.as_ptr());
    }

    #[test]
    fn a_frame_with_a_break_within_a_string_is_no_json_any_more() {
        for broken in [
            "{\"a\":\"x\n{\\\"method\\\":1}\"}",
            "{\"a\":\"x\\\ny\"}",
            "{\"a\rb\":1}",
        ] {
            let line = one_line(broken.as_bytes());
            assert!(!line.contains(&b'\n') && !line.contains(&b'\r'), "{broken}");
            assert!(serde_json::from_slice::<Value>(&line).is_err(), "{broken}");
            assert!(FrameIndex::at(&line).is_none(), "{broken}");
        }
    }
}
