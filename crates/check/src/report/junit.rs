//! The report as JUnit XML: a suite for each tool and revision, a case for each cell.

use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};

use super::{RunReport, text};
use crate::finding::CellVerdict;
use crate::judge::CellResult;

/// The report cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be written as JUnit")]
pub struct JunitError(#[source] quick_junit::SerializeError);

/// Returns the report as JUnit XML.
///
/// # Errors
/// If it cannot be written.
pub fn junit(report: &RunReport) -> Result<String, JunitError> {
    let mut all = Junit::new("mcp-elicit check");
    all.set_time(report.took);
    for suite in &report.suites {
        let mut one = TestSuite::new(xml_text(&suite.name()));
        for result in &suite.results {
            let mut case = TestCase::new(result.cell.to_string(), status(result));
            case.set_classname(format!(
                "{}.{}",
                xml_text(&text::shown(&suite.tool)),
                suite.revision
            ));
            case.set_time(result.took);
            if result.verdict == CellVerdict::Fail {
                let frames = result.frames.iter().map(|frame| {
                    let arrow = if frame.from_server { "<-" } else { "->" };
                    format!("{arrow} {}\n", xml_text(&text::shown(&frame.text)))
                });
                case.set_system_out(frames.collect::<String>());
            } else if result.verdict == CellVerdict::Warn {
                case.set_system_out(format!("warning: {}", messages(result)));
            }
            one.add_test_case(case);
        }
        all.add_test_suite(one);
    }
    all.to_string().map_err(JunitError)
}

fn messages(result: &CellResult) -> String {
    let messages = result
        .findings
        .iter()
        .map(|finding| format!("{}: {}", finding.code, text::shown(&finding.message)));
    xml_text(&messages.collect::<Vec<_>>().join("; "))
}

/// Replaces the characters that no XML 1.0 document may contain, not even escaped: readers refuse the whole file.
fn xml_text(text: &str) -> String {
    let is_allowed = |letter: char| {
        let is_text = letter >= ' ' && !matches!(letter, '\u{fffe}' | '\u{ffff}');
        is_text || matches!(letter, '\t' | '\n' | '\r')
    };
    text.chars()
        .map(|letter| {
            if is_allowed(letter) {
                letter
            } else {
                '\u{fffd}'
            }
        })
        .collect()
}

/// A warning is a success in JUnit, which has no such status.
fn status(result: &CellResult) -> TestCaseStatus {
    match result.verdict {
        CellVerdict::Fail => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(messages(result));
            if let Some(first) = result.findings.first() {
                status.set_type(first.code.as_str());
            }
            status
        }
        CellVerdict::Pass | CellVerdict::Warn => TestCaseStatus::success(),
        CellVerdict::NotAsked | CellVerdict::NotApplicable => {
            let mut status = TestCaseStatus::skipped();
            let why = result.why.as_deref();
            status.set_message(xml_text(&text::shown(
                why.unwrap_or("the tool asked nothing"),
            )));
            status
        }
    }
}
