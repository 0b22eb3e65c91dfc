//! Lint rules for a url-mode request's URL.

use super::question::LocatedQuestion;
use super::report::{Legal, LintFindings, NOT_IN_REVISION, Severity};
use crate::link::{Link, SendRule, WarningLevel};
use crate::wire::{Mode, Revision};

/// Lints a link. Url mode came with 2025-11-25, which alone requires an `elicitationId`.
pub(super) fn look(
    question: &LocatedQuestion<'_>,
    url: &str,
    has_id: bool,
    findings: &mut LintFindings,
) -> Legal {
    let at = question.member("url");
    let legal = Legal::judged_by(|revision| {
        revision.has_mode(Mode::Url) && (has_id || revision != Revision::V2025_11_25)
    });
    for revision in Revision::ALL
        .into_iter()
        .filter(|revision| !legal.on(*revision))
    {
        let (message, help) = if revision.has_mode(Mode::Url) {
            (
                format!("{revision} needs an `elicitationId`"),
                "add one that nobody can guess",
            )
        } else {
            (format!("{revision} has no url mode"), "")
        };
        match findings.revision() {
            Some(asked) if asked == revision => {
                findings.error(&at, NOT_IN_REVISION, message, help);
            }
            None => findings.note(&at, NOT_IN_REVISION, message, help),
            Some(_) => {}
        }
    }
    match Link::parse(url) {
        Err(fault) => {
            findings.error(&at, fault.code(), fault.to_string(), "");
            return Legal::nowhere();
        }
        Ok(link) => {
            for caution in link.warnings() {
                let level = match (caution.asking(), caution.level()) {
                    (SendRule::MustNot, _) => Severity::Error,
                    (SendRule::ShouldNot, _)
                    | (SendRule::May, WarningLevel::Danger | WarningLevel::Careful) => {
                        Severity::Warning
                    }
                    (SendRule::May, WarningLevel::Note) => Severity::Note,
                };
                findings.put(level, &at, caution.code(), caution.to_string(), "");
            }
        }
    }
    legal
}
