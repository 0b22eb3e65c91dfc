//! The contents of a record in numbers, and which ended questions are deleted.

use mcp_elicit_core::lifecycle::Timestamp;

/// Ended questions to be deleted. Those that need another action stay: an answer that may still be delivered, arguments
/// that a rule keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// Only those that ended before this moment.
    pub before: Timestamp,
    /// Only those of this caller ([`Body::principal`](super::Body::principal)).
    pub principal: Option<String>,
    /// Only those that this server asked ([`Body::server_address`](super::Body::server_address)) and on which nobody acted;
    /// none of a rule, in which people may have agreed or commented.
    pub unanswered_of: Option<String>,
}

impl Purge {
    /// Deletes what ended before this moment, of every caller.
    pub fn before(before: Timestamp) -> Self {
        Self {
            before,
            principal: None,
            unanswered_of: None,
        }
    }

    /// Deletes what has ended, of this caller alone.
    pub fn of(principal: String) -> Self {
        Self {
            principal: Some(principal),
            ..Self::before(Timestamp::from_millis(i64::MAX.unsigned_abs()))
        }
    }
}

/// The bytes that the questions of one caller and one server keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOf {
    /// The caller ([`Body::principal`](super::Body::principal)).
    pub caller: String,
    /// The server that asked ([`Body::server_address`](super::Body::server_address)); `None` for approvals, for which the
    /// gateway asks.
    pub server: Option<String>,
    /// The bytes.
    pub bytes: u64,
}

/// The contents of a record in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordContents {
    /// Questions that wait for people.
    pub waiting: u64,
    /// Questions with an answer that was not delivered.
    pub undelivered: u64,
    /// Questions that have ended.
    pub ended: u64,
    /// The time at which the oldest of those that have ended did so.
    pub oldest_ended: Option<Timestamp>,
    /// Calls in progress that no client waits for.
    pub running_calls: u64,
    /// Results that wait for their call made again.
    pub results: u64,
    /// Approvals that are valid for a while.
    pub grants: u64,
    /// Messages to people, of every state.
    pub messages: u64,
    /// Links of the audit.
    pub links: u64,
}
