//! The official conformance suite: every scenario that touches elicitation, against `examples/conformance_server`.
//!
//! Reports a skip if the suite cannot run. `tests/conformance/run.sh` runs all other scenarios too.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not there"
)]

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command};

use mcp_elicit_testkit::peers::{PeerProgram, conformance};

const PUSHED: [&str; 4] = [
    "tools-call-elicitation",
    "tools-call-sampling",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
];

const ROUNDS: [&str; 14] = [
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
];

/// The example as a child process that ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let child = Command::new(example())
            .args(["--listen", &address.to_string()])
            .spawn()
            .unwrap();
        let server = Self {
            child,
            url: format!("http://{address}/mcp"),
        };
        while std::net::TcpStream::connect(address).is_err() {
            std::thread::yield_now();
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _already_gone = self.child.wait();
    }
}

/// Returns the path of the example. Cargo builds the examples of a package before it runs its tests, next to them.
fn example() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples").join("conformance_server")
}

/// Runs the whole suite for one revision and returns its summary: a line for each scenario.
fn summary(suite: &PeerProgram, url: &str, revision: &str) -> String {
    let results = tempfile::tempdir().unwrap();
    let results = results.path().to_str().unwrap();
    let suite = suite
        .clone()
        .with(["server", "--url", url, "--suite", "all"]);
    let finished = suite
        .with(["--spec-version", revision, "-o", results])
        .run();
    let (_, summary) = finished
        .stdout
        .split_once("=== SUMMARY ===")
        .expect("the suite sums up");
    summary.to_owned()
}

#[test]
fn a_client_that_comes_back_gets_its_result() {
    let Some(_) = conformance::suite() else {
        return;
    };
    let server = Server::start();
    let verdict = conformance::of_server(&server.url, "server-sse-polling", "2025-11-25").unwrap();
    assert!(verdict.is_good() && verdict.warned.is_empty(), "{verdict}");
    let resumed = "server-sse-disconnect-resume".to_owned();
    assert!(verdict.passed.contains(&resumed), "{verdict}");
}

#[test]
fn every_scenario_that_asks() {
    let Some(suite) = conformance::suite() else {
        return;
    };
    let server = Server::start();
    for (revision, scenarios) in [("2025-11-25", &PUSHED[..]), ("2026-07-28", &ROUNDS[..])] {
        let summary = summary(&suite, &server.url, revision);
        for scenario in scenarios {
            let good = format!("✓ {scenario}: ");
            assert!(
                summary.contains(&good),
                "{scenario} on {revision}:\n{summary}"
            );
        }
    }
}
