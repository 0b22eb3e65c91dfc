//! The reasons why a server gets no answer to a question. None of them is a person's action, or is sent as one.

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

/// The reason why a server gets no answer to a question.
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
    /// The question breaks the protocol. The server is to blame.
    #[error("the server's question is malformed: {0}")]
    Malformed(#[from] WireError),
    /// The form cannot be shown to a person. The server is to blame.
    #[error("the server asks {message:?}, and its form cannot be shown to a person: {defects}")]
    IllegalForm {
        /// The beginning of the server's message.
        message: String,
        /// Every reason.
        defects: Defects,
    },
    /// The URL must not be shown. The server is to blame.
    #[error("the server's URL cannot be used: {0}")]
    BadLink(#[from] LinkError),
    /// The server asked in a mode that this client did not declare.
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
    /// The server exceeds a limit.
    #[error("the server asks too much: {0}")]
    TooMuch(#[from] LimitReached),
    /// The question's time limit passed.
    #[error("no answer within {} s", after.as_secs_f32())]
    TimedOut {
        /// The time that the question was open.
        after: Duration,
    },
    /// The question was withdrawn, or its call ended.
    #[error("the question was withdrawn: {why}")]
    Withdrawn {
        /// The reason, written for a person.
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
    /// The answer breaks the form's rules, so it was not sent. The responder is to blame.
    #[error("the answer does not fit the form: {0}")]
    WrongAnswer(Violations),
    /// The form seems to ask for a credential, and answering it was not explicitly allowed.
    #[error("the form seems to ask for a credential ({fields}); answering it was not explicitly allowed", fields = fields.join(", "))]
    CredentialNotAllowed {
        /// The fields; `message` stands for the message.
        fields: Vec<String>,
    },
}

/// The party that has to act before the question can be answered. The list is complete.
///
/// ```
/// use mcp_elicit_client::dispatch::{Blame, QuestionError};
///
/// fn headline(error: &QuestionError) -> &'static str {
///     match error.blame() {
///         Blame::Server => "The server broke the protocol",
///         Blame::NoAnswer => "The question got no answer",
///         Blame::Policy => "Your settings stopped the question",
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The server broke the protocol or asked a forbidden question.
    Server,
    /// No answer was given, or the answer could not be sent.
    NoAnswer,
    /// The person's policy or a limit prevented it.
    Policy,
}

impl QuestionError {
    /// Returns the party that has to act.
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
            | Self::IllegalForm { .. }
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

    /// Returns `true` if the call ends with the question, on every revision: the person stopped the program, or this
    /// client withdrew the question.
    pub(crate) fn ends_the_call(&self) -> bool {
        matches!(
            self,
            Self::NoResponder {
                why: ResponderError::Interrupted | ResponderError::Withdrawn { .. },
                ..
            }
        )
    }

    /// Returns the name of the error for records.
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
            Self::IllegalForm { .. } => "illegal-form",
            Self::BadLink(_) => "bad-link",
            Self::Undeclared { .. } => "undeclared-mode",
            Self::Forbidden(PolicyViolation::Credential(_)) => "credential-refused",
            Self::Forbidden(
                PolicyViolation::Mode(_) | PolicyViolation::Fields(_) | PolicyViolation::Host(_),
            ) => "forbidden",
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
    /// Returns the error for the server, as its revision spells it. It contains no values of a person.
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
            Self::IllegalForm { defects, .. } => PeerFault::from(defects).into(),
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

/// Converts a responder's error into the fault for the server.
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
        ResponderError::Refused { .. } | ResponderError::NotAsked { .. } => LimitFault::NoAnswer {
            why: "the answer did not fit the form, so it was not sent",
        }
        .into(),
        ResponderError::Failed { .. } => AuthorFault::Broken {
            what: "the program that answers questions failed",
        }
        .into(),
    }
}
