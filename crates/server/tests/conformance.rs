//! The official conformance suite: every scenario that touches elicitation, against `examples/conformance`.
//!
//! Skips, and says so, where the suite cannot run. `tests/conformance/run.sh` runs everything else as well.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command};

use mcp_elicit_testkit::peers::conformance;

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

/// The example as a child that ends with the test.
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

/// Cargo builds the examples of a package before it runs its tests, next to them.
fn example() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples").join("conformance")
}

#[test]
fn every_scenario_that_asks() {
    if conformance::suite().is_none() {
        return;
    }
    let server = Server::start();
    let pushed = PUSHED.map(|scenario| (scenario, "2025-11-25"));
    let rounds = ROUNDS.map(|scenario| (scenario, "2026-07-28"));
    for (scenario, revision) in pushed.into_iter().chain(rounds) {
        let verdict =
            conformance::of_server(&server.url, scenario, revision).expect("the suite is there");
        assert!(verdict.is_good(), "{revision}: {verdict}");
    }
}
