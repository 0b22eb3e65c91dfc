//! The report of a lint.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::presentation::Presentation;
use crate::wire::Revision;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Legal and harmless; worth knowing.
    Note,
    /// It will confuse a person or may endanger them.
    Warning,
    /// It is not legal, or the specification forbids it.
    Error,
}

impl Severity {
    /// Returns `error`, `warning` or `note`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding of a lint. Serializes as `{"level","code","pointer","message","help"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LintFinding {
    /// The severity.
    pub level: Severity,
    /// The stable code, for programs.
    pub code: &'static str,
    /// The location in the given text, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The finding, written for the author.
    pub message: String,
    /// The fix; empty if the message contains it.
    pub help: String,
}

/// The revisions on which a question can be asked as written. Serializes as an object from revision to boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Legal([bool; Revision::ALL.len()]);

impl Legal {
    pub(super) fn everywhere() -> Self {
        Self([true; Revision::ALL.len()])
    }

    pub(super) fn nowhere() -> Self {
        Self([false; Revision::ALL.len()])
    }

    /// Creates the set of the revisions for which `able` returns `true`.
    pub(super) fn judged_by(able: impl Fn(Revision) -> bool) -> Self {
        Self(Revision::ALL.map(able))
    }

    /// Returns the revisions that are in both sets.
    pub(super) fn and(self, other: Self) -> Self {
        Self::judged_by(|revision| self.on(revision) && other.on(revision))
    }

    /// Returns `true` if the question is legal on a revision.
    pub fn on(self, revision: Revision) -> bool {
        Revision::ALL
            .iter()
            .position(|known| *known == revision)
            .is_some_and(|at| self.0[at])
    }
}

impl Serialize for Legal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for revision in Revision::ALL {
            map.serialize_entry(revision.as_str(), &self.on(revision))?;
        }
        map.end()
    }
}

/// All findings of a lint. Serializes as `{"legal":{..},"reading":"..","findings":[..]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LintReport {
    /// The revisions on which the question is legal.
    pub legal: Legal,
    /// The programs that show the form; of several forms, those of the one that the fewest show. `None` without a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<Presentation>,
    /// The findings, the gravest first.
    pub findings: Vec<LintFinding>,
}

impl LintReport {
    /// Returns `true` if there is an error among the findings.
    pub fn has_errors(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.level == Severity::Error)
    }
}

/// The maximum number of findings that are kept: a hostile text may cause one per byte.
const MAX_FINDINGS: usize = 1_000;

/// The code of a finding about a part that a revision does not have.
pub(super) const NOT_IN_REVISION: &str = "not-in-revision";

/// The code of a finding about a part that the official schema of a revision does not accept.
pub(super) const NOT_IN_SCHEMA: &str = "not-in-schema";

/// The collected findings.
#[derive(Debug)]
pub(super) struct LintFindings {
    revision: Option<Revision>,
    reading: Option<Presentation>,
    kept: Vec<LintFinding>,
}

impl LintFindings {
    pub(super) fn new(revision: Option<Revision>) -> Self {
        Self {
            revision,
            reading: None,
            kept: Vec::new(),
        }
    }

    /// Returns the requested revision, if there is one.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// Returns the number of findings so far.
    pub(super) fn count(&self) -> usize {
        self.kept.len()
    }

    /// Raises the findings from `first` on that exclude a revision to errors. For a form that one part excludes from some
    /// revisions and another part from the rest: each alone is a note or a warning, together nothing can ask it.
    pub(super) fn raise_exclusions(&mut self, first: usize) {
        for finding in self.kept.iter_mut().skip(first) {
            if [NOT_IN_REVISION, NOT_IN_SCHEMA].contains(&finding.code) {
                finding.level = Severity::Error;
            }
        }
    }

    /// Notes the programs that show one more form.
    pub(super) fn read(&mut self, reading: Presentation) {
        let rank = |reading: Presentation| match reading {
            Presentation::AsWritten => 0,
            Presentation::Leniently => 1,
            Presentation::OnlyByClients => 2,
        };
        self.reading = self
            .reading
            .filter(|known| rank(*known) > rank(reading))
            .or(Some(reading));
    }

    pub(super) fn put(
        &mut self,
        level: Severity,
        pointer: &str,
        code: &'static str,
        message: impl Into<String>,
        help: &str,
    ) {
        if self.kept.len() < MAX_FINDINGS {
            let (pointer, message, help) = (pointer.to_owned(), message.into(), help.to_owned());
            self.kept.push(LintFinding {
                level,
                code,
                pointer,
                message,
                help,
            });
        }
    }

    pub(super) fn error(
        &mut self,
        pointer: &str,
        code: &'static str,
        message: impl Into<String>,
        help: &str,
    ) {
        self.put(Severity::Error, pointer, code, message, help);
    }

    pub(super) fn warn(
        &mut self,
        pointer: &str,
        code: &'static str,
        message: impl Into<String>,
        help: &str,
    ) {
        self.put(Severity::Warning, pointer, code, message, help);
    }

    pub(super) fn note(
        &mut self,
        pointer: &str,
        code: &'static str,
        message: impl Into<String>,
        help: &str,
    ) {
        self.put(Severity::Note, pointer, code, message, help);
    }

    pub(super) fn into_report(mut self, legal: Legal) -> LintReport {
        self.kept
            .sort_by_key(|finding| std::cmp::Reverse(finding.level));
        LintReport {
            legal,
            reading: self.reading,
            findings: self.kept,
        }
    }
}
