//! The check of a client's reply against the question that it answers.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::fault::{Finding, PeerFault};
use mcp_elicit_core::wire::{ElicitResult, Revision};

use super::Ask;
use crate::frame_edit::ErrorResponse;

/// The reason why a reply of a client settles nothing.
pub(crate) enum UnusableReply {
    /// It is not what the protocol says.
    Malformed(Box<ErrorResponse>),
    /// It does not answer what was asked, and may be asked for again.
    Wrong {
        /// The error for the server in the end.
        refusal: Box<ErrorResponse>,
        /// The reason for the person.
        reason: String,
    },
}

impl Ask {
    /// Checks a reply against what was asked.
    pub(crate) fn check(
        &self,
        reply: &ElicitResult,
        revision: Revision,
    ) -> Result<Outcome, UnusableReply> {
        reply
            .outcome(self.form())
            .map_err(|error| UnusableReply::Wrong {
                refusal: Box::new(ErrorResponse::fault(
                    PeerFault::WrongAnswer {
                        violations: Finding::from_check(&error),
                        attempts: self.wrong_answers() + 1,
                    },
                    revision,
                )),
                reason: error.to_string(),
            })
    }
}
