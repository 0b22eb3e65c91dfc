//! A frame on its way: lent by whoever read it, or seen and shared, so that who has to keep it need not copy it, and who
//! has to know its parts need not look again.

use bytes::Bytes;

use mcp_elicit_core::wire::FrameIndex;

/// One frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frame<'a> {
    /// In a buffer that is used again.
    Lent(&'a [u8]),
    /// To be kept without being copied, with what the scan of its members found.
    Seen(&'a Bytes, &'a FrameIndex),
}

impl<'a> Frame<'a> {
    /// To be looked at.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Seen(bytes, _) => bytes,
        }
    }

    /// Returns bytes that may be kept, without a copy where they are shared.
    pub(crate) fn to_bytes(self) -> Bytes {
        match self {
            Self::Lent(bytes) => Bytes::copy_from_slice(bytes),
            Self::Seen(bytes, _) => bytes.clone(),
        }
    }

    /// Returns where its parts stand; nowhere in what is not a message.
    pub(crate) fn index(self) -> FrameIndex {
        match self {
            Self::Lent(bytes) => FrameIndex::at(bytes).unwrap_or_default(),
            Self::Seen(_, index) => index.clone(),
        }
    }
}
