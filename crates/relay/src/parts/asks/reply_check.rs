//! The check of a client's reply against the question that it answers.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::fault::{Finding, PeerFault};
use mcp_elicit_core::wire::{ElicitResult, InputResponses, Revision};

use super::Ask;
use crate::frame_edit::ErrorResponse;

/// The reason why a reply of a client is unusable.
pub(crate) enum UnusableReply {
    /// It breaks the protocol.
    Malformed(Box<ErrorResponse>),
    /// It does not answer the question, which may be asked again.
    Wrong {
        /// The error for the server after the last attempt.
        refusal: Box<ErrorResponse>,
        /// The reason for the person.
        reason: String,
    },
}

impl Ask {
    /// Checks a reply against the question.
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

    /// Returns the checked reply under this key in a retry of this revision; `None` if there is none.
    pub(crate) fn reply_in(
        &self,
        entry: &str,
        responses: &InputResponses,
        revision: Revision,
    ) -> Result<Option<Outcome>, UnusableReply> {
        match responses.reply_to(entry, self.request().mode()) {
            None => Ok(None),
            Some(Err(defect)) => Err(UnusableReply::Malformed(Box::new(ErrorResponse::fault(
                PeerFault::from(defect),
                revision,
            )))),
            Some(Ok(reply)) => self.check(&reply, revision).map(Some),
        }
    }
}
