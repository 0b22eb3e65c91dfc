//! `mcp-elicit check` as a whole: this project's server, servers that do not behave, and bad input.

use std::collections::BTreeMap;

use mcp_elicit_testkit::peers::PeerProgram;
use serde_json::Value;

/// A short wait for the cells in which a server is given no answer: no test waits for a slow server with it.
const SHORT: &str = "2s";

fn me() -> PeerProgram {
    PeerProgram::new(env!("CARGO_BIN_EXE_mcp-elicit"))
}

fn check(words: &[&str]) -> mcp_elicit_testkit::peers::Finished {
    me().with(["check"]).with(words.iter().copied()).run()
}

/// Returns the cells by `tool revision cell`, with verdict and codes, and the summary.
fn cells(stdout: &str) -> (BTreeMap<String, String>, Value) {
    let lines = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"));
    let mut lines: Vec<Value> = lines.collect();
    let summary = lines.pop().expect("a summary");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let cells = lines.iter().map(|line| {
        let key = format!(
            "{} {} {}",
            text(&line["tool"]),
            text(&line["revision"]),
            text(&line["cell"])
        );
        let codes = line["findings"].as_array().into_iter().flatten();
        let codes: Vec<String> = codes.map(|finding| text(&finding["code"])).collect();
        (
            key,
            format!("{} {}", text(&line["verdict"]), codes.join(" "))
                .trim()
                .to_owned(),
        )
    });
    (cells.collect(), summary)
}

#[test]
fn this_projects_server_passes_on_three_revisions() {
    let server = env!("CARGO_BIN_EXE_mcp-elicit");
    let ran = check(&[
        "--tool",
        "deploy",
        "--tool",
        "plan-trip",
        "--tool",
        "profile",
        "--tool",
        "connect-account",
        "--time",
        SHORT,
        "--json",
        "--",
        server,
        "demo-server",
    ]);
    let (cells, summary) = cells(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{}\n{}", ran.stderr, ran.stdout);
    assert_eq!(summary["counts"]["fail"], 0);
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        for cell in [
            "accept",
            "question",
            "decline",
            "cancel",
            "two-calls",
            "wrong-required",
            "wrong-enum",
            "unknown-action",
        ] {
            assert_eq!(
                cells[&format!("deploy {revision} {cell}")],
                "pass",
                "{cell} on {revision}"
            );
        }
    }
    for cell in [
        "state-changed",
        "state-of-other-tool",
        "missing-key",
        "extra-key",
    ] {
        assert_eq!(
            cells[&format!("deploy 2026-07-28 {cell}")],
            "pass",
            "{cell}"
        );
    }
    // The first answers of a call need no state: nothing has happened before them.
    assert_eq!(
        cells["deploy 2026-07-28 no-state"],
        "warn missing-state-accepted"
    );
    // A person may take as long as they need, so the server has no time limit of its own; the call's client has.
    assert_eq!(cells["deploy 2025-11-25 no-answer"], "warn no-timeout");
    assert_eq!(cells["deploy 2025-06-18 declared-url"], "not-applicable");
    assert_eq!(cells["deploy 2025-11-25 state-changed"], "not-applicable");
}

#[test]
fn the_reports_are_written_and_a_finding_can_be_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (xml, markdown) = (path("check.xml"), path("summary.md"));
    std::fs::write(&markdown, "# Before\n").unwrap();
    let server = env!("CARGO_BIN_EXE_mcp-elicit");
    let ran = check(&[
        "--tool",
        "deploy",
        "--revision",
        "2025-11-25",
        "--time",
        SHORT,
        "--allow",
        "no-timeout",
        "--junit",
        &xml,
        "--markdown",
        &markdown,
        "--",
        server,
        "demo-server",
    ]);
    assert_eq!(ran.status.code(), Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("deploy on 2025-11-25"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("allowed        no-answer: no-timeout"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("checking"), "{}", ran.stderr);
    let xml = std::fs::read_to_string(xml).unwrap();
    assert!(
        xml.contains("<testsuite name=\"deploy on 2025-11-25\""),
        "{xml}"
    );
    let summary = std::fs::read_to_string(markdown).unwrap();
    assert!(
        summary.starts_with("# Before\n### mcp-elicit check"),
        "{summary}"
    );
}

/// Servers that never get as far as a question.
#[cfg(unix)]
#[test]
fn a_server_that_does_not_start_is_told_in_one_sentence() {
    let cases = [
        (vec!["/nothing/there"], "cannot start /nothing/there"),
        (
            vec!["sh", "-c", "echo no such module >&2; exit 4"],
            "its stderr ends with \"no such module\"",
        ),
        (
            vec!["sh", "-c", "echo Hello; exec cat >/dev/null"],
            "it printed \"Hello\", which is not a JSON-RPC message",
        ),
        (
            vec!["sh", "-c", "while :; do echo Hello; done"],
            "messages before it answered",
        ),
        (
            vec![
                "sh",
                "-c",
                "while :; do echo '{\"jsonrpc\":\"2.0\",\"method\":\"x\"}'; done",
            ],
            "messages before it answered",
        ),
        (
            vec!["sh", "-c", "tr '\\0' 'a' </dev/zero"],
            "a message of more than 8388608 bytes",
        ),
    ];
    for (server, says) in cases {
        let revision = [
            "--tool",
            "t",
            "--revision",
            "2025-11-25",
            "--time",
            "1s",
            "--",
        ];
        let ran = check(&[&revision[..], &server].concat());
        let told = format!("{server:?}: {}", ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{told}");
        assert!(ran.stderr.contains(says), "{told}");
        assert_eq!(ran.stdout, "", "{told}");
    }
}

#[test]
fn a_command_line_that_cannot_be_used_says_what_can() {
    let server = env!("CARGO_BIN_EXE_mcp-elicit");
    let end = ["--revision", "2025-11-25", "--", server, "demo-server"];
    for (words, says) in [
        (vec!["--tool", "deply"], "connect-account, deploy"),
        (vec![], "--all-read-only"),
        (
            vec!["--tool", "deploy", "--allow", "nothing"],
            "known are asked-undeclared",
        ),
    ] {
        let ran = check(&[&words[..], &end].concat());
        assert_eq!(ran.status.code(), Some(2), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{words:?}: {}", ran.stderr);
    }
    let ran = check(&["--tool", "deploy", "--revision", "2024-11-05", "--", server]);
    assert_eq!(ran.status.code(), Some(2));
}

/// The server tells its process id through a pipe, so that the test knows that it runs.
#[cfg(unix)]
#[test]
fn an_interrupted_check_leaves_no_process() {
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe").display().to_string();
    let run = |program: &str, words: &[&str]| {
        let status = Command::new(program)
            .args(words)
            .stderr(Stdio::null())
            .status();
        status.expect("it starts").success()
    };
    assert!(run("mkfifo", &[&pipe]));
    let script = format!("echo $$ >'{pipe}'; trap '' TERM; while :; do sleep 1; done");
    let mut check = me()
        .with([
            "check",
            "--tool",
            "t",
            "--revision",
            "2025-11-25",
            "--time",
            "600s",
            "--",
            "sh",
            "-c",
            &script,
        ])
        .command()
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the check starts");
    let server = std::fs::read_to_string(&pipe).expect("the server tells its id");
    assert!(run("kill", &["-0", server.trim()]), "the server runs");
    assert!(run("kill", &["-INT", &check.id().to_string()]));
    let status = check.wait().expect("the check ends");
    assert_eq!(status.code(), Some(130));
    assert!(!run("kill", &["-0", server.trim()]), "no server is left");
}
