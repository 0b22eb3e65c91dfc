//! Received frames: their text, the positions of their members, their stream and their time.

use std::ops::Deref;

use bytes::Bytes;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::{Frame, FrameIndex};

use crate::StreamId;

/// A frame of the client.
#[derive(Clone, Copy)]
pub(crate) struct ClientFrame<'a> {
    frame: Frame<'a>,
    stream: StreamId,
    at: Timestamp,
    bytes: Option<&'a Bytes>,
    looked_up: bool,
    digest: Option<&'a str>,
}

impl<'a> ClientFrame<'a> {
    /// Creates a frame that came on this stream; `bytes` are those of the frame if they may be kept without a copy.
    pub(crate) const fn new(
        frame: Frame<'a>,
        stream: StreamId,
        at: Timestamp,
        bytes: Option<&'a Bytes>,
    ) -> Self {
        Self {
            frame,
            stream,
            at,
            bytes,
            looked_up: false,
            digest: None,
        }
    }

    /// Creates a frame with this text on this stream, which is processed again here.
    pub(crate) const fn of_text(
        text: &'a str,
        index: &'a FrameIndex,
        stream: StreamId,
        at: Timestamp,
    ) -> Self {
        Self::new(Frame::of_text(text, index), stream, at, None)
    }

    /// Returns the frame marked as a call that the record does not know.
    pub(crate) const fn looked_up(self) -> Self {
        Self {
            looked_up: true,
            ..self
        }
    }

    /// Returns `true` for a call that was looked up in the record and not found.
    pub(crate) const fn is_looked_up(self) -> bool {
        self.looked_up
    }

    /// Returns the frame with the digest of its call.
    pub(crate) const fn with_digest(self, digest: Option<&'a str>) -> Self {
        Self { digest, ..self }
    }

    /// Returns the digest of the call, if it was computed.
    pub(crate) const fn digest(self) -> Option<&'a str> {
        self.digest
    }

    /// Returns its stream.
    pub(crate) const fn stream(self) -> StreamId {
        self.stream
    }

    /// Returns the time of its arrival.
    pub(crate) const fn at(self) -> Timestamp {
        self.at
    }

    /// Returns this text of the frame for storage: the frame's own bytes if the text is all of them.
    pub(crate) fn bytes_of(self, text: &str) -> Bytes {
        let same = |bytes: &&Bytes| bytes.as_ptr() == text.as_ptr() && bytes.len() == text.len();
        let shared = self.bytes.filter(same);
        shared.map_or_else(|| Bytes::copy_from_slice(text.as_bytes()), Bytes::clone)
    }
}

impl<'a> Deref for ClientFrame<'a> {
    type Target = Frame<'a>;

    fn deref(&self) -> &Frame<'a> {
        &self.frame
    }
}
