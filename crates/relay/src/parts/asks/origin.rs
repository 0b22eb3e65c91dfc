//! The way in which a server asked, and in which it gets the answer.

use mcp_elicit_core::wire::Id;

use crate::CallId;

/// The way in which the server asked, and in which it gets the answer. A question that continues a call has it here.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// A pushed request with this id.
    Pushed { id: Id },
    /// An entry of an `input_required` that the gateway answers itself.
    Round { call: CallId, entry: String },
    /// An entry of an `input_required` that the client answers with its retry.
    PassedRound { entry: String, round: RoundId },
    /// The gateway itself, before the call goes to the server.
    Approval { call: CallId },
    /// A link of a `-32042`; the call is made again after the visit.
    Url { call: CallId },
    /// An entry of the `inputRequests` of a task of the server's, which gets the answer with `tasks/update`.
    Task { task: String, entry: String },
}

/// A round that the client has as the server wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RoundId(u64);

impl RoundId {
    /// Creates the id of a round from its number, which is unique in the session.
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}
