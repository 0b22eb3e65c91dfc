//! One verdict, as it is written.

use mcp_elicit_core::answer::{Answers, CheckError};
use mcp_elicit_core::form::{DefectCode, Defects, Form, Note, NoteCode};
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use crate::failure::Exit;

/// A rule that the content breaks.
#[derive(Debug, serde::Serialize)]
pub(super) struct Broken {
    pub(super) field: String,
    rule: &'static str,
    pub(super) message: String,
}

/// A defect that makes the schema illegal.
#[derive(Debug, serde::Serialize)]
pub(super) struct Flaw {
    pub(super) pointer: String,
    code: &'static str,
    pub(super) message: String,
}

/// The verdict on one schema and one content.
#[derive(Debug)]
pub(super) enum ContentVerdict {
    /// The schema is legal; these are the rules that the content breaks.
    Judged {
        violations: Vec<Broken>,
        /// Fields that the form does not have.
        ignored: Vec<String>,
        /// Rules that were not checked, each with its place and the reason.
        unchecked: Vec<Note>,
    },
    /// The schema is illegal.
    Illegal(Vec<Flaw>),
}

impl ContentVerdict {
    /// Judges two inputs of arbitrary bytes.
    pub(super) fn of(schema: &[u8], content: &[u8]) -> Self {
        match std::str::from_utf8(schema) {
            Ok(text) => match Form::parse(text) {
                Ok(form) => Self::of_bytes(&form, content),
                Err(defects) => Self::illegal(&defects),
            },
            Err(error) => {
                let message = format!(
                    "the schema is not UTF-8 from byte {} on",
                    error.valid_up_to()
                );
                Self::Illegal(vec![Flaw {
                    pointer: String::new(),
                    code: DefectCode::NotJson.as_str(),
                    message,
                }])
            }
        }
    }

    /// Judges a content against a form.
    pub(super) fn of_text(form: &Form, content: &str) -> Self {
        let (violations, ignored) = match form.check_text(content) {
            Ok(answers) => (Vec::new(), ignored(&answers)),
            Err(error) => (broken(error), Vec::new()),
        };
        let unchecked = form.notes().iter();
        Self::Judged {
            violations,
            ignored,
            unchecked: unchecked
                .filter(|note| note.code == NoteCode::PatternNotEnforced)
                .cloned()
                .collect(),
        }
    }

    fn of_bytes(form: &Form, content: &[u8]) -> Self {
        match std::str::from_utf8(content) {
            Ok(text) => Self::of_text(form, text),
            Err(error) => {
                let message = format!(
                    "the content is not UTF-8 from byte {} on",
                    error.valid_up_to()
                );
                Self::Judged {
                    violations: vec![unreadable(message)],
                    ignored: Vec::new(),
                    unchecked: Vec::new(),
                }
            }
        }
    }

    pub(super) fn illegal(defects: &Defects) -> Self {
        let flaws = defects.iter().map(|defect| Flaw {
            pointer: defect.pointer.clone(),
            code: defect.code.as_str(),
            message: defect.message.clone(),
        });
        Self::Illegal(flaws.collect())
    }

    pub(super) fn legal(&self) -> bool {
        matches!(self, Self::Judged { .. })
    }

    pub(super) fn valid(&self) -> bool {
        self.legal() && self.violations().is_empty()
    }

    pub(super) fn violations(&self) -> &[Broken] {
        match self {
            Self::Judged { violations, .. } => violations,
            Self::Illegal(_) => &[],
        }
    }

    pub(super) fn defects(&self) -> &[Flaw] {
        match self {
            Self::Judged { .. } => &[],
            Self::Illegal(defects) => defects,
        }
    }

    pub(super) fn ignored(&self) -> &[String] {
        match self {
            Self::Judged { ignored, .. } => ignored,
            Self::Illegal(_) => &[],
        }
    }

    pub(super) fn unchecked(&self) -> &[Note] {
        match self {
            Self::Judged { unchecked, .. } => unchecked,
            Self::Illegal(_) => &[],
        }
    }

    pub(super) fn exit(&self) -> Exit {
        match (self.legal(), self.valid()) {
            (false, _) => Exit::Usage,
            (true, false) => Exit::Refused,
            (true, true) => Exit::Done,
        }
    }
}

fn ignored(answers: &Answers) -> Vec<String> {
    answers.ignored().to_vec()
}

fn broken(error: CheckError) -> Vec<Broken> {
    match error {
        CheckError::Violations(violations) => violations
            .iter()
            .map(|violation| Broken {
                field: violation.field().to_owned(),
                rule: violation.rule().code(),
                message: violation.message(),
            })
            .collect(),
        unread @ (CheckError::Broken(_) | CheckError::TooLarge { .. }) => {
            vec![unreadable(unread.to_string())]
        }
    }
}

fn unreadable(message: String) -> Broken {
    Broken {
        field: String::new(),
        rule: "json",
        message,
    }
}

/// Serializes as `{"schema","valid","violations","defects"}`.
impl Serialize for ContentVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut verdict = serializer.serialize_struct("Verdict", 4)?;
        verdict.serialize_field("schema", if self.legal() { "ok" } else { "illegal" })?;
        verdict.serialize_field("valid", &self.valid())?;
        verdict.serialize_field("violations", self.violations())?;
        verdict.serialize_field("defects", self.defects())?;
        verdict.end()
    }
}
