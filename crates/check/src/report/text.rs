//! The report for people.

use std::fmt::Write as _;

use mcp_elicit_core::view::sanitize::acts_on_a_screen;

use super::{RunReport, Suite};
use crate::finding::CellVerdict;
use crate::judge::CellResult;

/// The most frames that are shown of a cell.
const FRAMES: usize = 16;
/// The longest shown part of a frame, in characters.
const LONGEST: usize = 220;

/// Returns the report for a terminal: of each suite the verdicts in one line each, and the failures with their frames.
pub fn text(report: &RunReport) -> String {
    let mut out = String::new();
    for suite in &report.suites {
        write_suite(&mut out, suite);
    }
    for revision in &report.not_spoken {
        let _ = writeln!(out, "{revision}: the server does not speak it");
    }
    let seconds = report.took.as_secs_f64();
    let _ = write!(
        out,
        "{}: {} in {seconds:.1} s",
        report.server,
        report.counts()
    );
    out
}

fn write_suite(out: &mut String, suite: &Suite) {
    let _ = writeln!(out, "{}", suite.name());
    for verdict in [
        CellVerdict::Pass,
        CellVerdict::NotAsked,
        CellVerdict::NotApplicable,
    ] {
        let all = suite.results.iter();
        let cells: Vec<String> = all
            .filter(|result| result.verdict == verdict)
            .map(|result| result.cell.to_string())
            .collect();
        if !cells.is_empty() {
            let _ = writeln!(out, "  {:<15}{}", verdict.as_str(), cells.join(", "));
        }
    }
    for verdict in [CellVerdict::Warn, CellVerdict::Fail] {
        for result in &suite.results {
            if result.verdict == verdict {
                write_result(out, suite, result);
            }
        }
    }
    for result in &suite.results {
        for finding in &result.allowed {
            let _ = writeln!(out, "  allowed        {}: {}", result.cell, finding.code);
        }
    }
    out.push('\n');
}

fn write_result(out: &mut String, suite: &Suite, result: &CellResult) {
    for finding in &result.findings {
        let _ = writeln!(
            out,
            "  {:<15}{}: {} ({})\n                 {}",
            finding.code.verdict().as_str(),
            result.cell,
            shown(&finding.message),
            finding.code,
            finding.code.clause(suite.revision).cite(suite.revision)
        );
    }
    if result.verdict != CellVerdict::Fail {
        return;
    }
    let skipped = result.frames.len().saturating_sub(FRAMES);
    if skipped > 0 {
        let _ = writeln!(out, "                   ({skipped} frames before)");
    }
    for frame in result.frames.iter().skip(skipped) {
        let arrow = if frame.from_server { "<-" } else { "->" };
        let _ = writeln!(out, "                   {arrow} {}", shown(&frame.text));
    }
}

/// Returns a server's text on one line, without control characters and those that hide or reorder others, cut.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|letter| match letter {
            '\u{2028}' | '\u{2029}' => ' ',
            letter if letter.is_control() => ' ',
            letter if acts_on_a_screen(letter) => '\u{fffd}',
            letter => letter,
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    shown
}
