//! The report as Markdown, for the summary of a CI run.

use std::fmt::Write as _;

use super::{RunReport, text};
use crate::finding::CellVerdict;

/// Returns the report as Markdown: one table, and the findings.
pub fn markdown(report: &RunReport) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "### mcp-elicit check: {}\n", cell(&report.server));
    let _ = writeln!(out, "{}\n", report.counts());
    let _ = writeln!(out, "| tool | revision | fail | warn | pass |");
    let _ = writeln!(out, "| --- | --- | --- | --- | --- |");
    for suite in &report.suites {
        let count = |verdict| {
            let all = suite.results.iter();
            all.filter(|result| result.verdict == verdict).count()
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            cell(&suite.tool),
            suite.revision,
            count(CellVerdict::Fail),
            count(CellVerdict::Warn),
            count(CellVerdict::Pass)
        );
    }
    let mut has_any = false;
    for suite in &report.suites {
        for result in &suite.results {
            for finding in &result.findings {
                if !has_any {
                    has_any = true;
                    let _ = writeln!(out, "\n| | tool | revision | cell | finding | clause |");
                    let _ = writeln!(out, "| --- | --- | --- | --- | --- | --- |");
                }
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} (`{}`) | {} |",
                    finding.code.verdict().as_str(),
                    cell(&suite.tool),
                    suite.revision,
                    result.cell,
                    cell(&finding.message),
                    finding.code,
                    cell(&finding.code.clause(suite.revision).cite(suite.revision))
                );
            }
        }
    }
    out
}

/// Returns a server's text as the text of a cell, which starts no markup.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for letter in text::shown(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '!' | '#' | '@' => {
                out.push('\\');
                out.push(letter);
            }
            letter => out.push(letter),
        }
    }
    out
}
