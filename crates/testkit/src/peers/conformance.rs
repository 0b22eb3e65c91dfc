//! The official conformance suite, run against a server or a client of this project.
//!
//! ```no_run
//! use mcp_elicit_testkit::peers::conformance;
//!
//! let scenario = "input-required-result-multi-round";
//! let Some(verdict) = conformance::of_server("http://127.0.0.1:8080/mcp", scenario, "2026-07-28") else { return };
//! assert!(verdict.is_good(), "{verdict}");
//! ```

use std::fmt;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{PeerProgram, cache, tool};

/// The suite's verdict on one scenario.
#[derive(Clone, Debug)]
pub struct ScenarioVerdict {
    /// The scenario's name.
    pub scenario: String,
    /// The ids of the checks that passed.
    pub passed: Vec<String>,
    /// The ids of the checks that failed, each with the reason.
    pub failed: Vec<(String, String)>,
    /// The ids of the checks that the suite only warns of, each with the reason.
    pub warned: Vec<(String, String)>,
    /// The suite's output, for a run that checked nothing.
    pub said: String,
}

impl ScenarioVerdict {
    /// Returns `true` if something was checked and nothing failed.
    pub fn is_good(&self) -> bool {
        self.failed.is_empty() && !self.passed.is_empty()
    }
}

impl fmt::Display for ScenarioVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed) = (self.passed.len(), self.failed.len());
        writeln!(f, "{}: {passed} passed, {failed} failed", self.scenario)?;
        for (check, why) in &self.failed {
            writeln!(f, "  {check}: {why}")?;
        }
        for (check, why) in &self.warned {
            writeln!(f, "  warning, {check}: {why}")?;
        }
        if passed + failed == 0 {
            writeln!(f, "{}", self.said)?;
        }
        Ok(())
    }
}

/// Runs one scenario against the server at this URL, on this revision. Returns `None`, and reports it on stderr, if the
/// suite cannot run.
///
/// # Panics
///
/// If the suite cannot be installed, does not end, or writes something that is not a verdict.
pub fn of_server(url: &str, scenario: &str, revision: &str) -> Option<ScenarioVerdict> {
    run(&["server", "--url", url], scenario, revision)
}

/// Runs one scenario against the client that this command line starts. The suite adds its URL as the last argument and
/// sets `MCP_CONFORMANCE_SCENARIO` and `MCP_CONFORMANCE_PROTOCOL_VERSION`. Returns `None`, and reports it on stderr, if
/// the suite cannot run.
///
/// # Panics
///
/// As [`of_server`].
pub fn of_client(command: &str, scenario: &str, revision: &str) -> Option<ScenarioVerdict> {
    run(&["client", "--command", command], scenario, revision)
}

/// Runs a scenario of an extension as [`of_client`] does. The scenario belongs to no revision and uses this one.
///
/// # Panics
///
/// As [`of_server`].
pub fn of_client_beyond(command: &str, scenario: &str, revision: &str) -> Option<ScenarioVerdict> {
    run(
        &["client", "--command", command, "--force"],
        scenario,
        revision,
    )
}

/// Returns the suite, for arguments of your own, such as `["server", "--url", url, "--suite", "all"]`.
pub fn suite() -> Option<PeerProgram> {
    let script = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    tool("conformance", script)
}

fn run(target: &[&str], scenario: &str, revision: &str) -> Option<ScenarioVerdict> {
    let suite = suite()?;
    // Each run has its own folder, because the suite names its results by the second.
    let results = cache().join("conformance-results");
    fs::create_dir_all(&results).expect("the results folder can be made");
    let results = tempfile::tempdir_in(&results).expect("a folder for this run can be made");
    let program = suite.with(target.iter().copied());
    let program = program.with(["--scenario", scenario, "--spec-version", revision, "-o"]);
    let finished = program
        .with([results.path().to_str().expect("the path is UTF-8")])
        .run();
    let mut verdict = ScenarioVerdict {
        scenario: scenario.to_owned(),
        passed: Vec::new(),
        failed: Vec::new(),
        warned: Vec::new(),
        said: format!("{}{}", finished.stdout, finished.stderr),
    };
    for checks in checks_in(results.path()) {
        for check in checks.as_array().into_iter().flatten() {
            verdict.count(check);
        }
    }
    Some(verdict)
}

impl ScenarioVerdict {
    fn count(&mut self, check: &Value) {
        let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
        match text("status").as_str() {
            "SUCCESS" => self.passed.push(text("id")),
            "FAILURE" => self.failed.push((text("id"), text("errorMessage"))),
            "WARNING" => self.warned.push((text("id"), text("errorMessage"))),
            // Information and skipped checks do not affect the verdict.
            _ => {}
        }
    }
}

/// Returns every `checks.json` below the folder of one run.
fn checks_in(folder: &Path) -> Vec<Value> {
    let entries = fs::read_dir(folder).expect("the folder of this run can be listed");
    let read = |path: &Path| {
        let text = fs::read_to_string(path.join("checks.json")).ok()?;
        Some(serde_json::from_str(&text).expect("checks.json is JSON"))
    };
    entries
        .flatten()
        .filter_map(|entry| read(&entry.path()))
        .collect()
}
