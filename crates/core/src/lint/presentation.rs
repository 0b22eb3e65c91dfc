//! The form that is read from a schema with defects, and the programs that show it.

use serde::Serialize;

use super::question::{LocatedQuestion, Slip};
use super::report::{LintFindings, Severity};
use crate::form::{AdjustmentKind, Defects, Form};

/// The programs that show a form to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Presentation {
    /// Every client, as it is written.
    AsWritten,
    /// The inbox, the terminal and the page, as the findings `read-as` say. Clients get it as it is written.
    Leniently,
    /// Only clients that show such forms themselves, since they get it as it is written.
    OnlyByClients,
}

impl Presentation {
    /// Returns the programs that show the form, in words.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::AsWritten => {
                "every client, the inbox, the terminal and the page, as it is written"
            }
            Self::Leniently => {
                "the inbox, the terminal and the page, read as the notes say; a client gets it as it is written, and may refuse it"
            }
            Self::OnlyByClients => {
                "not the inbox, the terminal and the page; a client gets it as it is written, and may show or refuse it"
            }
        }
    }
}

/// Adds a finding for each difference between the schema and the form that is read from it.
pub(super) fn look(
    question: &LocatedQuestion<'_>,
    form: &Result<Form, Defects>,
    findings: &mut LintFindings,
) -> Presentation {
    if let Some(slip) = question.slip {
        let (at, message, help) = match slip {
            Slip::OtherKey => (
                question.at(""),
                "`schema` is read as the `requestedSchema` that was probably meant",
                "name it `requestedSchema`",
            ),
            Slip::Missing => (
                question.params(),
                "there is no `requestedSchema`: the question is read as one that asks to confirm",
                "send {\"type\": \"object\", \"properties\": {}}",
            ),
        };
        findings.warn(&at, "read-as", message, help);
    }
    let Ok(form) = form else {
        return Presentation::OnlyByClients;
    };
    for adjustment in form.adjustments() {
        if question.slip == Some(Slip::Missing) && adjustment.kind == AdjustmentKind::NoSchema {
            continue;
        }
        let level = match adjustment.kind {
            // Another question than the one that was written.
            AdjustmentKind::NoSchema
            | AdjustmentKind::NoProperties
            | AdjustmentKind::EmptyList
            | AdjustmentKind::RootType
            | AdjustmentKind::FieldDropped
            | AdjustmentKind::AlternativeDropped => Severity::Warning,
            _ => Severity::Note,
        };
        let at = question.at(&adjustment.pointer);
        let message = format!("read so: {}", adjustment.message);
        findings.put(level, &at, "read-as", message, "");
    }
    if form.adjustments().is_empty() && question.slip.is_none() {
        Presentation::AsWritten
    } else {
        Presentation::Leniently
    }
}
