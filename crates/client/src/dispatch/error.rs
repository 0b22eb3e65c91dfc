//! Why a server gets no answer to a question. Nothing here is a person's act, so nothing here becomes one.

use std::time::Duration;

use mcp_elicit_core::answer::Violations;
use mcp_elicit_core::fault::{AuthorFault, ErrorObject, Fault, LimitFault, PeerFault, code};
use mcp_elicit_core::form::Defects;
use mcp_elicit_core::link::LinkError;
use mcp_elicit_core::wire::{Capability, Mode, Revision, WireError};
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::json;
use thiserror::Error;

use super::limit::LimitReached;
use crate::consent::PolicyViolation;
use crate::responder::ResponderError;

/// Why a server gets no answer to a question.
///
/// ```
/// use mcp_elicit_client::QuestionError;
/// use mcp_elicit_client::core::wire::Revision;
/// use std::time::Duration;
///
/// let error = QuestionError::TimedOut { after: Duration::from_secs(5 * 60) };
/// assert_eq!(error.code(), "timed-out");
/// println!("the server is told: {}", error.to_error(Revision::LATEST).message);
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// The question is not what the protocol says. The server is to blame.
    #[error("the server's question is malformed: {0}")]
    Malformed(#[from] WireError),
    /// The form is not legal. The server is to blame.
    #[error("the server's form is not legal: {0}")]
    IllegalForm(#[from] Defects),
    /// The URL must not be shown. The server is to blame.
    #[error("the server's URL cannot be used: {0}")]
    BadLink(#[from] LinkError),
    /// The server asked in a mode that was not declared to it.
    #[error("the server asked in {mode} mode, which this client did not declare")]
    Undeclared {
        /// The mode.
        mode: Mode,
        /// The capability that was declared.
        declared: Capability,
    },
    /// The policy forbids the question.
    #[error(transparent)]
    Forbidden(#[from] PolicyViolation),
    /// The server asks too often or too much.
    #[error("the server asks too much: {0}")]
    TooMuch(#[from] LimitReached),
    /// The question's own time ran out.
    #[error("no answer within {} s", after.as_secs_f32())]
    TimedOut {
        /// The time that the question was open.
        after: Duration,
    },
    /// The question was withdrawn, or its call ended.
    #[error("the question was withdrawn: {why}")]
    Withdrawn {
        /// Why, in words for a person.
        why: String,
    },
    /// No responder was available.
    #[error("{why}")]
    NoResponder {
        /// The mode of the question.
        mode: Mode,
        /// The responder's error.
        #[source]
        why: ResponderError,
    },
    /// The answer does not fit the form, so it was not sent. The responder is to blame.
    #[error("the answer does not fit the form: {0}")]
    WrongAnswer(Violations),
    /// The form seems to ask for a credential, and answering it was not explicitly allowed.
    #[error("the form seems to ask for a credential ({fields}); answering it was not explicitly allowed", fields = fields.join(", "))]
    CredentialNotAllowed {
        /// The fields, and `message` for the message.
        fields: Vec<String>,
    },
}

/// The party that has to act before the question can be answered.
///
/// ```
/// use mcp_elicit_client::dispatch::{Blame, QuestionError};
///
/// fn headline(error: &QuestionError) -> &'static str {
///     match error.blame() {
///         Blame::Server => "The server broke the protocol",
///         Blame::NoAnswer => "The question got no answer",
///         Blame::Policy => "Your settings stopped the question",
///         _ => "The question was not answered",
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blame {
    /// The server broke the protocol or asked what it must not.
    Server,
    /// No answer was given, or the answer could not be sent.
    NoAnswer,
    /// The person's policy or a limit stopped it.
    Policy,
}

impl QuestionError {
    /// Returns who has to act.
    ///
    /// ```
    /// use mcp_elicit_client::dispatch::{Blame, QuestionError};
    ///
    /// let error = QuestionError::Withdrawn { why: "its call ended".to_owned() };
    /// assert_eq!(error.blame(), Blame::NoAnswer);
    /// ```
    pub fn blame(&self) -> Blame {
        match self {
            Self::Malformed(_)
            | Self::IllegalForm(_)
            | Self::BadLink(_)
            | Self::Undeclared { .. } => Blame::Server,
            Self::TimedOut { .. }
            | Self::Withdrawn { .. }
            | Self::NoResponder { .. }
            | Self::WrongAnswer(_)
            | Self::CredentialNotAllowed { .. } => Blame::NoAnswer,
            Self::Forbidden(_) | Self::TooMuch(_) => Blame::Policy,
        }
    }

    /// Returns `true` if the call ends with the question, on every revision: the person stopped, or the question was
    /// taken off the screen on this side.
    pub(crate) fn ends_the_call(&self) -> bool {
        matches!(
            self,
            Self::NoResponder {
                why: ResponderError::Interrupted | ResponderError::Withdrawn { .. },
                ..
            }
        )
    }

    /// A word for the record.
    ///
    /// ```
    /// use mcp_elicit_client::QuestionError;
    ///
    /// let error = QuestionError::Withdrawn { why: "its call ended".to_owned() };
    /// assert_eq!(error.code(), "withdrawn");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::IllegalForm(_) => "illegal-form",
            Self::BadLink(_) => "bad-link",
            Self::Undeclared { .. } => "undeclared-mode",
            Self::Forbidden(PolicyViolation::Credential(_)) => "credential-refused",
            Self::Forbidden(_) => "forbidden",
            Self::TooMuch(_) => "too-much",
            Self::TimedOut { .. } => "timed-out",
            Self::Withdrawn { .. } => "withdrawn",
            Self::NoResponder { .. } => "nobody",
            Self::WrongAnswer(_) => "wrong-answer",
            Self::CredentialNotAllowed { .. } => "credential-not-allowed",
        }
    }
}

impl QuestionError {
    /// Returns the error for the server, as its revision spells it. It holds no value of a person.
    ///
    /// ```
    /// use mcp_elicit_client::QuestionError;
    /// use mcp_elicit_client::core::wire::Revision;
    ///
    /// let error = QuestionError::Withdrawn { why: "its call ended".to_owned() };
    /// let sent = error.to_error(Revision::LATEST);
    /// println!("{}: {}", sent.code.0, sent.message);
    /// ```
    pub fn to_error(&self, revision: Revision) -> ErrorData {
        let error = match self.fault() {
            Some(fault) => fault.to_error(revision),
            // No person declined, and nothing broke: the person's policy says no beforehand.
            None => ErrorObject::new(
                code::SERVER,
                "Elicitation refused by policy",
                Some(json!({ "reason": self.to_string() })),
            ),
        };
        ErrorData::new(ErrorCode(error.code), error.message, error.data)
    }

    fn fault(&self) -> Option<Fault> {
        Some(match self {
            Self::Malformed(defect) => PeerFault::Wire(defect.clone()).into(),
            Self::IllegalForm(defects) => PeerFault::from(defects).into(),
            Self::BadLink(fault) => PeerFault::IllegalLink(fault.clone()).into(),
            Self::Undeclared { mode, declared } => PeerFault::CapabilityMissing {
                mode: *mode,
                declared: *declared,
            }
            .into(),
            Self::Forbidden(PolicyViolation::Credential(fields))
            | Self::CredentialNotAllowed { fields } => PeerFault::AsksForCredential {
                fields: fields.clone(),
            }
            .into(),
            Self::Forbidden(
                PolicyViolation::Mode(_) | PolicyViolation::Fields(_) | PolicyViolation::Host(_),
            ) => {
                return None;
            }
            Self::TooMuch(LimitReached::PerMinute { retry_after, .. }) => LimitFault::RateLimited {
                retry_after: *retry_after,
            }
            .into(),
            Self::TooMuch(LimitReached::Pending { limit }) => {
                LimitFault::TooManyPending { limit: *limit }.into()
            }
            Self::TimedOut { after } => LimitFault::TimedOut {
                after: *after,
                seen: true,
            }
            .into(),
            Self::Withdrawn { .. } => PeerFault::Withdrawn.into(),
            Self::NoResponder { mode, why } => responder_fault(*mode, why),
            Self::WrongAnswer(_) => LimitFault::NoAnswer {
                why: "the answer did not fit the form, so it was not sent",
            }
            .into(),
        })
    }
}

/// Returns the fault that a responder's error is for the server.
fn responder_fault(mode: Mode, why: &ResponderError) -> Fault {
    match why {
        ResponderError::TimedOut { within } => LimitFault::TimedOut {
            after: *within,
            seen: true,
        }
        .into(),
        ResponderError::Withdrawn { .. }
        | ResponderError::Interrupted
        | ResponderError::Expired => PeerFault::Withdrawn.into(),
        ResponderError::CannotShow { .. } => AuthorFault::NoResponder { mode }.into(),
        ResponderError::EndOfInput => LimitFault::NoAnswer {
            why: "the input ended first",
        }
        .into(),
        ResponderError::Exhausted => LimitFault::NoAnswer {
            why: "no prepared answer was left",
        }
        .into(),
        ResponderError::NoDefaults { .. } => LimitFault::NoAnswer {
            why: "the form's defaults are not an answer",
        }
        .into(),
        ResponderError::Refused { .. } => LimitFault::NoAnswer {
            why: "the prepared answer did not fit the form, so it was not sent",
        }
        .into(),
        ResponderError::Failed { .. } => AuthorFault::Broken {
            what: "the program that answers questions failed",
        }
        .into(),
    }
}
