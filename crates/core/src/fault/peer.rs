//! The other side is to blame: what it sent, asked or answered is not what the protocol says.

use serde_json::{Value, json};

use super::error::{self, Finding, code};
use crate::answer::CheckError;
use crate::form::Defects;
use crate::link::LinkError;
use crate::wire::{Capability, Mode, Revision, WireError};

/// A fault of the other side.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerFault {
    /// A message, or a part of one, that is not what the protocol says.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A requestedSchema that is not a legal form.
    #[error("the requested form is not legal: {}", first(defects))]
    IllegalForm {
        /// Every defect; the first is named in the error.
        defects: Vec<Finding>,
    },
    /// A URL that must not be opened.
    #[error("the requested link is not legal: {0}")]
    IllegalLink(#[from] LinkError),
    /// A form that asks for a credential, which form mode must never do.
    #[error("the form asks for a credential in {}; use url mode", fields.join(", "))]
    AsksForCredential {
        /// The names of the fields.
        fields: Vec<String>,
    },
    /// The client did not declare what the question needs.
    #[error("the client did not declare elicitation in {mode} mode")]
    CapabilityMissing {
        /// The mode of the question.
        mode: Mode,
        /// The capability that the client declared.
        declared: Capability,
    },
    /// Content that the form refuses, as often as it was asked.
    #[error("the answer does not fit the form: {}", first(violations))]
    WrongAnswer {
        /// Every violation of the last try.
        violations: Vec<Finding>,
        /// The number of times that it was asked.
        attempts: u32,
    },
    /// An answer to a question that was never asked, or was answered before.
    #[error("an answer came to a question that is not open")]
    NotAsked,
    /// A `requestState` that this side did not make, or not for this request, principal or time.
    #[error("the requestState was not accepted")]
    StateRefused,
    /// The other side answered the question with an error of its own.
    #[error("the other side could not ask: error {code}")]
    AnsweredWithError {
        /// Its code.
        code: i64,
    },
    /// The other side took the question back.
    #[error("the question was withdrawn")]
    Withdrawn,
    /// The other side is gone: connection closed, process ended.
    #[error("the other side is gone")]
    Gone,
    /// A revision that this side does not speak.
    #[error("the protocol revision is not supported")]
    UnsupportedRevision {
        /// The mode or feature that was requested.
        requested: String,
    },
    /// An HTTP header that contradicts the body (2026-07-28).
    #[error("the header {header} does not match the message")]
    HeaderMismatch {
        /// The header's name.
        header: &'static str,
    },
}

fn first(findings: &[Finding]) -> String {
    findings
        .first()
        .map_or_else(String::new, |finding| match finding.dotted().as_str() {
            "" => finding.message.clone(),
            location => format!("{location}: {}", finding.message),
        })
}

impl From<&Defects> for PeerFault {
    fn from(defects: &Defects) -> Self {
        Self::IllegalForm {
            defects: Finding::from_defects(defects),
        }
    }
}

impl PeerFault {
    /// Content that still breaks its form after it was asked `attempts` times.
    pub fn wrong_answer(why: &CheckError, attempts: u32) -> Self {
        let mut violations = Finding::from_check(why);
        if violations.is_empty() {
            violations.push(Finding {
                location: String::new(),
                code: "content".to_owned(),
                message: why.to_string(),
            });
        }
        Self::WrongAnswer {
            violations,
            attempts,
        }
    }

    /// The JSON-RPC error code on this revision.
    pub fn code(&self, revision: Revision) -> i32 {
        match self {
            Self::Wire(defect) => wire_code(defect),
            Self::IllegalForm { .. }
            | Self::IllegalLink(_)
            | Self::AsksForCredential { .. }
            | Self::WrongAnswer { .. }
            | Self::NotAsked
            | Self::StateRefused => code::INVALID_PARAMS,
            Self::CapabilityMissing { declared, .. } => capability_code(*declared, revision),
            Self::AnsweredWithError { .. } => code::INTERNAL,
            Self::Withdrawn => code::WITHDRAWN,
            Self::Gone => code::SERVER,
            Self::UnsupportedRevision { .. } => match revision {
                Revision::V2025_06_18 | Revision::V2025_11_25 => code::INVALID_PARAMS,
                Revision::V2026_07_28 => code::UNSUPPORTED_REVISION,
            },
            Self::HeaderMismatch { .. } => match revision {
                Revision::V2025_06_18 | Revision::V2025_11_25 => code::INVALID_REQUEST,
                Revision::V2026_07_28 => code::HEADER_MISMATCH,
            },
        }
    }

    /// The error's `message`.
    pub(super) fn summary(&self) -> &'static str {
        match self {
            Self::Wire(WireError::NotJson { .. } | WireError::NotUtf8 { .. }) => "Parse error",
            Self::Wire(defect) if wire_code(defect) == code::INVALID_PARAMS => "Invalid params",
            Self::Wire(_) => "Invalid request",
            Self::IllegalForm { .. } => "Invalid schema",
            Self::IllegalLink(_) => "Invalid elicitation URL",
            Self::AsksForCredential { .. } => "Form mode must not ask for credentials",
            Self::CapabilityMissing {
                mode: Mode::Form, ..
            } => "Elicitation not supported",
            Self::CapabilityMissing {
                mode: Mode::Url, ..
            } => "Elicitation in url mode not supported",
            Self::WrongAnswer { .. } => "Elicitation answer does not fit the form",
            Self::NotAsked => "No such open question",
            Self::StateRefused => "Invalid requestState",
            Self::AnsweredWithError { .. } => "Elicitation failed",
            Self::Withdrawn => "Elicitation withdrawn",
            Self::Gone => "Connection closed",
            Self::UnsupportedRevision { .. } => "Unsupported protocol version",
            Self::HeaderMismatch { .. } => "Header mismatch",
        }
    }

    pub(super) fn data(&self, revision: Revision) -> Value {
        match self {
            Self::IllegalForm { defects } => error::illegal_form(defects, revision),
            Self::WrongAnswer { violations, .. } => {
                error::wrong_answer(&self.to_string(), violations)
            }
            Self::CapabilityMissing { mode, declared } => {
                let reason = if declared.is_none() {
                    "Client does not have elicitation capability".to_owned()
                } else {
                    format!("Client does not have elicitation capability for {mode} mode")
                };
                error::missing_capability(&reason, Capability::needed(*mode), revision)
            }
            Self::AsksForCredential { fields } => {
                json!({ "reason": self.to_string(), "fields": fields })
            }
            Self::AnsweredWithError { code } => {
                json!({ "reason": self.to_string(), "peerCode": code })
            }
            Self::UnsupportedRevision { requested } => json!({
                "reason": self.to_string(),
                "supported": Revision::ALL.map(Revision::as_str),
                "requested": requested,
            }),
            Self::Wire(_)
            | Self::IllegalLink(_)
            | Self::NotAsked
            | Self::StateRefused
            | Self::Withdrawn
            | Self::Gone
            | Self::HeaderMismatch { .. } => json!({ "reason": self.to_string() }),
        }
    }
}

/// No elicitation at all is a method the client does not have; a mode it does not have is a wrong parameter
/// (2025-11-25, elicitation, error handling). 2026-07-28 has one code for both.
fn capability_code(declared: Capability, revision: Revision) -> i32 {
    match revision {
        Revision::V2025_06_18 | Revision::V2025_11_25 if declared.is_none() => {
            code::METHOD_NOT_FOUND
        }
        Revision::V2025_06_18 | Revision::V2025_11_25 => code::INVALID_PARAMS,
        Revision::V2026_07_28 => code::MISSING_CAPABILITY,
    }
}

fn wire_code(defect: &WireError) -> i32 {
    match defect {
        WireError::NotUtf8 { .. } | WireError::NotJson { .. } => code::PARSE,
        WireError::TooLarge { .. }
        | WireError::Batch
        | WireError::Version
        | WireError::Shape
        | WireError::NotObject {
            location: "message",
        }
        | WireError::Duplicate {
            location: "message",
        }
        | WireError::Missing { member: "id" }
        | WireError::Type {
            member: "id" | "method",
            ..
        } => code::INVALID_REQUEST,
        WireError::NotObject { .. }
        | WireError::Duplicate { .. }
        | WireError::Spelling { .. }
        | WireError::OtherMode { .. }
        | WireError::Missing { .. }
        | WireError::Type { .. }
        | WireError::TooDeep { .. }
        | WireError::UnknownMode
        | WireError::ModeNotInRevision { .. }
        | WireError::UnknownAction
        | WireError::NothingRequired => code::INVALID_PARAMS,
    }
}
