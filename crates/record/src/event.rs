//! Events from the record for a session.

use mcp_elicit_core::question::Ending;

/// A number that a session gave one of its questions or calls, used in its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub u64);

/// An event from the record for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordEvent {
    /// A person acted.
    Answered {
        /// The question.
        question: SessionKey,
        /// The record's id, if the session has to deliver the answer or have it written.
        held: Option<String>,
    },
    /// The question ended without an action, and not by this session.
    Ended {
        /// The question.
        question: SessionKey,
        /// The reason.
        ending: Ending,
    },
    /// The same call has come to another gateway, where it has taken over the question.
    TakenOver {
        /// The question.
        question: SessionKey,
    },
    /// The call that this one follows has ended, or its result is in the record.
    FollowedCallEnded {
        /// The call that follows.
        call: SessionKey,
    },
    /// Another session of the caller cancels this task.
    TaskCancelled {
        /// The task.
        task: SessionKey,
    },
    /// Another session of the caller has the result of this call.
    CallTaken {
        /// The call.
        call: SessionKey,
    },
}
