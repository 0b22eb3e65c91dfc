//! Reports: text for people, JSON lines, JUnit and Markdown.

mod junit;
mod lines;
mod markdown;
mod text;

use std::time::Duration;

use mcp_elicit_core::wire::Revision;

pub use junit::{JunitError, junit};
pub use lines::lines;
pub use markdown::markdown;
pub use text::text;

use crate::finding::{CellVerdict, Code};
use crate::judge::CellResult;

/// The cells of one tool on one revision.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The tool.
    pub tool: String,
    /// The revision.
    pub revision: Revision,
    /// The results.
    pub results: Vec<CellResult>,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The server, as it was named.
    pub server: String,
    /// One for each tool and revision.
    pub suites: Vec<Suite>,
    /// The revisions that were asked for and that the server does not speak.
    pub not_spoken: Vec<Revision>,
    /// The time of the whole run.
    pub took: Duration,
}

impl RunReport {
    /// Allows these codes: their findings are listed and cause no verdict.
    pub fn allow(&mut self, codes: &[Code]) {
        for suite in &mut self.suites {
            for result in &mut suite.results {
                result.allow(codes);
            }
        }
    }

    /// Returns the gravest verdict.
    pub fn verdict(&self) -> CellVerdict {
        let results = self.suites.iter().flat_map(|suite| &suite.results);
        results
            .map(|result| result.verdict)
            .max()
            .unwrap_or(CellVerdict::NotApplicable)
    }

    /// Returns the number of cells with this verdict.
    pub fn count(&self, verdict: CellVerdict) -> usize {
        let results = self.suites.iter().flat_map(|suite| &suite.results);
        results.filter(|result| result.verdict == verdict).count()
    }

    /// Returns the counts of all verdicts, as in `3 fail, 1 warn`.
    pub fn counts(&self) -> String {
        let all = CellVerdict::ALL.map(|verdict| (verdict, self.count(verdict)));
        let some = all.iter().filter(|(_, count)| *count > 0);
        let words: Vec<String> = some
            .map(|(verdict, count)| format!("{count} {}", verdict.as_str()))
            .collect();
        words.join(", ")
    }
}

impl Suite {
    /// Returns the name of the suite, on one line.
    pub fn name(&self) -> String {
        format!("{} on {}", text::shown(&self.tool), self.revision)
    }
}

#[cfg(test)]
mod tests;
