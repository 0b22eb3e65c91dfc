//! Faults of the author of the local program, who asks something that cannot or must not be asked.

use serde_json::{Value, json};

use super::error::{self, Finding, code};
use crate::form::{Defects, UnsupportedForm};
use crate::link::LinkError;
use crate::wire::{Capability, Mode, Revision, UnsupportedQuestion};

/// A fault of the local program. The caller learns that it failed and why; only the author can fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorFault {
    /// An illegal form, found before it is sent.
    #[error("this form is not legal: {}", defects.first().map_or("", |defect| &defect.message))]
    IllegalForm {
        /// Every defect.
        defects: Vec<Finding>,
    },
    /// An illegal link, found before it is sent.
    #[error("this link is not legal: {0}")]
    IllegalLink(#[from] LinkError),
    /// A form that the revision cannot express.
    #[error("this form cannot be asked on {revision}: {}", findings.first().map_or("", |finding| &finding.message))]
    UnsupportedForm {
        /// The revision of the connection.
        revision: Revision,
        /// The parts that cannot be expressed.
        findings: Vec<Finding>,
    },
    /// A question that the revision cannot express.
    #[error(transparent)]
    UnsupportedQuestion(#[from] UnsupportedQuestion),
    /// A form that asks for a credential, which form mode must never do.
    #[error("this form asks for a credential in {}; ask with a url instead", fields.join(", "))]
    AsksForCredential {
        /// The names of the fields.
        fields: Vec<String>,
    },
    /// No available responder can show the question to a person.
    #[error("no responder for {mode} mode")]
    NoResponder {
        /// The mode of the question.
        mode: Mode,
    },
    /// A question outside the requests that allow one (2026-07-28: tools/call, prompts/get, resources/read).
    #[error("questions cannot be asked here")]
    NotHere,
    /// The local program failed.
    #[error("{what}")]
    Broken {
        /// The reason, safe to send to the caller.
        what: &'static str,
    },
}

impl From<&Defects> for AuthorFault {
    fn from(defects: &Defects) -> Self {
        Self::IllegalForm {
            defects: Finding::from_defects(defects),
        }
    }
}

impl From<UnsupportedForm> for AuthorFault {
    fn from(unsupported: UnsupportedForm) -> Self {
        let finding = Finding {
            location: format!("/properties/{}", unsupported.field),
            code: "unsayable".to_owned(),
            message: unsupported.to_string(),
        };
        Self::UnsupportedForm {
            revision: unsupported.revision,
            findings: vec![finding],
        }
    }
}

impl AuthorFault {
    /// Returns the JSON-RPC error code on this revision.
    pub fn code(&self, revision: Revision) -> i32 {
        match self {
            Self::NoResponder { .. } => match revision {
                Revision::V2025_06_18 | Revision::V2025_11_25 => code::METHOD_NOT_FOUND,
                Revision::V2026_07_28 => code::MISSING_CAPABILITY,
            },
            Self::IllegalForm { .. }
            | Self::IllegalLink(_)
            | Self::UnsupportedForm { .. }
            | Self::UnsupportedQuestion(_)
            | Self::AsksForCredential { .. }
            | Self::NotHere
            | Self::Broken { .. } => code::INTERNAL,
        }
    }

    /// Returns the error's `message`.
    pub(super) fn summary(&self) -> &'static str {
        match self {
            Self::NoResponder { .. } => "Elicitation not supported",
            Self::IllegalForm { .. }
            | Self::IllegalLink(_)
            | Self::UnsupportedForm { .. }
            | Self::UnsupportedQuestion(_)
            | Self::AsksForCredential { .. }
            | Self::NotHere => "The question cannot be asked",
            Self::Broken { .. } => "Internal error",
        }
    }

    pub(super) fn data(&self, revision: Revision) -> Value {
        let reason = self.to_string();
        match self {
            Self::IllegalForm { defects }
            | Self::UnsupportedForm {
                findings: defects, ..
            } => {
                let mut data = error::illegal_form(defects, revision);
                data["reason"] = reason.into();
                data
            }
            Self::AsksForCredential { fields } => json!({ "reason": reason, "fields": fields }),
            Self::NoResponder { mode } => {
                error::missing_capability(&reason, Capability::needed(*mode), revision)
            }
            Self::IllegalLink(_)
            | Self::UnsupportedQuestion(_)
            | Self::NotHere
            | Self::Broken { .. } => {
                json!({ "reason": reason })
            }
        }
    }
}
