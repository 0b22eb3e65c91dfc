//! Received frames: their text, the positions of their members, their stream and their time.

use std::ops::Deref;

use bytes::Bytes;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::Frame;

use crate::StreamId;
use crate::parts::indexed_frame::IndexedFrame;

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

    /// Creates a frame on this stream that was kept, and is processed now.
    pub(crate) fn of_indexed(frame: &'a IndexedFrame, stream: StreamId, at: Timestamp) -> Self {
        Self::new(frame.frame(), stream, at, Some(frame.bytes()))
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

    /// Returns the frame for storage, with its own bytes if they may be kept without a copy.
    pub(crate) fn to_indexed(self) -> IndexedFrame {
        IndexedFrame::of(self.frame, self.bytes)
    }
}

impl<'a> Deref for ClientFrame<'a> {
    type Target = Frame<'a>;

    fn deref(&self) -> &Frame<'a> {
        &self.frame
    }
}
