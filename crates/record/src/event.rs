//! Events that a session hears from the record.

use mcp_elicit_core::question::Ending;

/// A number that a session gave one of its questions or calls, and by which it hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub u64);

/// An event that a session hears from the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordEvent {
    /// A person acted.
    Answered {
        /// The question.
        question: SessionKey,
        /// The record's id, where the answer waits to be delivered or written by the session.
        held: Option<String>,
    },
    /// The question ended without an action, and not by this session.
    Ended {
        /// The question.
        question: SessionKey,
        /// The reason.
        ending: Ending,
    },
    /// The call that this one follows has ended, or its result is in the record.
    FollowedCallEnded {
        /// The call that follows.
        call: SessionKey,
    },
    /// Another session of the caller has the result of this call.
    CallTaken {
        /// The call.
        call: SessionKey,
    },
}
