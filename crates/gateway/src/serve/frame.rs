//! A frame on its way: lent by whoever read it, or shared, so that who has to keep it need not copy it.

use bytes::Bytes;

/// The bytes of one frame.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// In a buffer that is used again.
    Lent(&'a [u8]),
    /// To be kept without being copied.
    Shared(&'a Bytes),
}

impl<'a> Frame<'a> {
    /// To be looked at.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    /// To be kept.
    pub fn kept(self) -> Bytes {
        match self {
            Self::Lent(bytes) => Bytes::copy_from_slice(bytes),
            Self::Shared(bytes) => bytes.clone(),
        }
    }
}
