//! The report for programs: one JSON object per line.

use serde_json::{Value, json};

use super::RunReport;
use crate::finding::{CellFinding, CellVerdict};

/// Returns the lines: one `cell` for each cell, and a `summary` at the end.
pub fn lines(report: &RunReport) -> Vec<Value> {
    let mut lines = Vec::new();
    for suite in &report.suites {
        for result in &suite.results {
            let findings = |all: &[CellFinding]| -> Vec<Value> {
                all.iter()
                    .map(|finding| {
                        json!({
                            "code": finding.code.as_str(),
                            "verdict": finding.code.verdict(),
                            "message": finding.message,
                            "clause": finding.code.clause(suite.revision).cite(suite.revision),
                        })
                    })
                    .collect()
            };
            let mut line = json!({
                "event": "cell",
                "tool": suite.tool,
                "revision": suite.revision,
                "cell": result.cell.to_string(),
                "verdict": result.verdict,
                "seconds": result.took.as_secs_f64(),
            });
            if let Some(why) = &result.why {
                line["why"] = json!(why);
            }
            if !result.findings.is_empty() {
                line["findings"] = findings(&result.findings).into();
            }
            if !result.allowed.is_empty() {
                line["allowed"] = findings(&result.allowed).into();
            }
            if result.verdict == CellVerdict::Fail {
                let frames = result.frames.iter().map(|frame| {
                    let from = if frame.from_server {
                        "server"
                    } else {
                        "client"
                    };
                    json!({"from": from, "text": frame.text})
                });
                line["frames"] = frames.collect();
            }
            lines.push(line);
        }
    }
    let mut summary = json!({
        "event": "summary",
        "server": report.server,
        "verdict": report.verdict(),
        "seconds": report.took.as_secs_f64(),
        "not_spoken": report.not_spoken,
    });
    for verdict in CellVerdict::ALL {
        summary["counts"][verdict.as_str()] = json!(report.count(verdict));
    }
    lines.push(summary);
    lines
}
