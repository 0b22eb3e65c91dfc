//! The official conformance suite against a server behind the gateway: the gateway must not break any scenario that the
//! server passes by itself, on every revision that both support. Reports a skip if the suite cannot run.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod example;

use std::collections::BTreeMap;

use mcp_elicit_testkit::peers::{PeerProgram, conformance};

use example::{conformance_server, listening};

/// Runs every scenario of the suite on this revision. Returns each line of the summary, by the scenario's name.
fn results(suite: &PeerProgram, url: &str, revision: &str) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let suite = suite
        .clone()
        .with(["server", "--url", url, "--suite", "all"])
        .with(["--spec-version", revision, "-o"])
        .with([folder.path().to_str().unwrap()]);
    let finished = suite.run();
    let (_, summary) = finished
        .stdout
        .split_once("=== SUMMARY ===")
        .unwrap_or_else(|| panic!("no summary:\n{}\n{}", finished.stdout, finished.stderr));
    let scenario = |line: &str| {
        let (mark, rest) = line.trim().split_once(' ')?;
        let (name, checks) = rest.split_once(": ")?;
        matches!(mark, "✓" | "✗").then(|| (name.to_owned(), format!("{mark} {checks}")))
    };
    summary.lines().filter_map(scenario).collect()
}

/// Some checks of these scenarios require a stream. The gateway sends an immediate response as one JSON body where the
/// server opens a stream; the transport allows both.
const NEEDS_STREAMS: [&str; 2] = ["server-sse-multiple-streams", "server-sse-polling"];

/// One check of this scenario is the same: it reads the stream of a call whose result is immediate.
const ONE_NEEDS_A_STREAM: (&str, &str) = ("server-stateless", "✗ 27 passed, 1 failed");

/// These scenarios send answers without the `requestState` that came with the question. The gateway rejects them with
/// -32602, like a changed state: such answers are to no question that it asked. The suite warns, since a server may
/// have no state.
const ANSWERS_WITHOUT_STATE: [&str; 2] = [
    "input-required-result-ignore-extra-params",
    "input-required-result-missing-input-response",
];

fn is_excused(found: &BTreeMap<String, String>, name: &str) -> bool {
    let (scenario, line) = ONE_NEEDS_A_STREAM;
    let lenient = NEEDS_STREAMS.contains(&name) || ANSWERS_WITHOUT_STATE.contains(&name);
    (lenient && is_good(found, name))
        || (name == scenario && found.get(name).is_some_and(|found| found == line))
}

fn is_good(found: &BTreeMap<String, String>, name: &str) -> bool {
    found.get(name).is_some_and(|line| line.starts_with('✓'))
}

#[test]
fn a_server_passes_behind_the_gateway_what_it_passes_alone() {
    let Some(suite) = conformance::suite() else {
        return;
    };
    let (_server, alone) = listening(&conformance_server());
    let state = tempfile::tempdir().unwrap();
    let gateway = PeerProgram::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .with(["gateway", "--upstream", &alone, "--inbox", "off"])
        .with(["--questions-per-minute", "off", "--state"])
        .with([state.path().to_str().unwrap()]);
    let (_gateway, behind) = listening(&gateway);
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let expected = results(&suite, &alone, revision);
        assert!(expected.len() > 10, "{revision}: {expected:?}");
        assert!(
            expected.values().all(|line| line.starts_with('✓')),
            "{revision}, the server alone: {expected:#?}"
        );
        let found = results(&suite, &behind, revision);
        let differ: Vec<_> = expected
            .iter()
            .filter(|(name, line)| found.get(*name) != Some(line))
            .filter(|(name, _)| !is_excused(&found, name))
            .map(|(name, line)| format!("{name}: alone {line}, behind {:?}", found.get(name)))
            .collect();
        assert!(differ.is_empty(), "{revision}: {differ:#?}");
    }
}
