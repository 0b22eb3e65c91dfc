//! The limits on the bytes that callers can make the gateway hold, in memory and in the record.

use mcp_elicit_record::stored_bytes::StorageLimits;

/// The limits in bytes. Each is named as its setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLimits {
    /// `caller-call-bytes`: the memory of one caller's open calls and arriving messages, in all sessions.
    pub caller_calls: usize,
    /// `all-call-bytes`: the same of all callers.
    pub all_calls: usize,
    /// `caller-question-bytes`, `all-question-bytes`, `argument-bytes`, `max-record` and `max-open`: the record.
    pub questions: StorageLimits,
}

impl ByteLimits {
    /// The limits without settings.
    pub const DEFAULT: Self = Self {
        caller_calls: 128 * 1024 * 1024,
        all_calls: 512 * 1024 * 1024,
        questions: StorageLimits::DEFAULT,
    };
}

impl Default for ByteLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
