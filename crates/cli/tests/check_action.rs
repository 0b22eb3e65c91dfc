//! The script of the GitHub action, with this program in place of the npm package.
#![cfg(unix)]

use mcp_elicit_testkit::peers::{Finished, PeerProgram};

const ME: &str = env!("CARGO_BIN_EXE_mcp-elicit");

fn action(inputs: &[(&str, &str)]) -> Finished {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../action/check.sh");
    let mut step = PeerProgram::new("bash")
        .with([script])
        .env("CHECK_PROGRAM", ME);
    for (name, value) in inputs {
        step = step.env(name, *value);
    }
    step.run()
}

#[test]
fn a_step_has_the_verdict_and_writes_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.md");
    let server = format!("'{ME}' demo-server");
    // The demo server waits for a person without end, which is a warning.
    for (fail_on, code) in [("fail", 0), ("warn", 1), ("never", 0)] {
        let ran = action(&[
            ("CHECK_SERVER", &server),
            ("CHECK_TOOLS", "deploy\n\nconnect-account {}\n"),
            ("CHECK_TIME", "2s"),
            ("CHECK_FAIL_ON", fail_on),
            ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
        ]);
        assert_eq!(
            ran.status.code(),
            Some(code),
            "{fail_on}: {}\n{}",
            ran.stdout,
            ran.stderr
        );
        assert!(
            ran.stdout.contains("| deploy | 2026-07-28 |"),
            "{}",
            ran.stdout
        );
    }
    let summary = std::fs::read_to_string(summary).unwrap();
    assert_eq!(summary.matches("### mcp-elicit check").count(), 3);
    assert!(
        summary.contains("| connect-account | 2025-11-25 |"),
        "{summary}"
    );
}

#[test]
fn a_step_without_a_verdict_fails_whatever_is_allowed() {
    for (inputs, code, says) in [
        (
            vec![("CHECK_SERVER", "")],
            2,
            "name the command that starts the server",
        ),
        (
            vec![("CHECK_SERVER", "true"), ("CHECK_FAIL_ON", "sometimes")],
            2,
            "is not fail, warn or never",
        ),
        (
            vec![
                ("CHECK_SERVER", "/nothing/there"),
                ("CHECK_FAIL_ON", "never"),
            ],
            3,
            "nothing/there",
        ),
        (
            vec![
                ("CHECK_SERVER", "http://127.0.0.1:1/mcp"),
                ("CHECK_FAIL_ON", "never"),
            ],
            3,
            "error",
        ),
    ] {
        let ran = action(&inputs);
        assert_eq!(
            ran.status.code(),
            Some(code),
            "{inputs:?}: {}\n{}",
            ran.stdout,
            ran.stderr
        );
        assert!(ran.stderr.contains(says), "{inputs:?}: {}", ran.stderr);
    }
}
