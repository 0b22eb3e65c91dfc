//! The quick part of `just real-programs`: published servers, clients and one agent, directly and through the gateway. No call that
//! works without the gateway fails with it, and every question reaches the inbox.
#![cfg(unix)]

use std::path::{Path, PathBuf};

use mcp_elicit_testkit::peers::{self, PeerProgram};

/// Runs the quick part with these options more.
fn quick(more: &[&str]) {
    // Both report what is missing, and the second's packages are used here too.
    let (Some(_), Some(peer)) = (
        peers::node_script("ts1-client.mjs"),
        peers::python_script("mcp_client.py"),
    ) else {
        return;
    };
    let python = PathBuf::from(&peer.argv()[0]);
    let mcp2 = python.ancestors().nth(2).unwrap_or(Path::new("/"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run = root.join("tests/real-programs/run.py");
    let done = PeerProgram::new("python3")
        .with([run.display().to_string(), "--quick".to_owned()])
        .with(["--program", env!("CARGO_BIN_EXE_mcp-elicit")])
        .with([
            "--cache".to_owned(),
            peers::cache().join("real-programs").display().to_string(),
        ])
        .with(["--have".to_owned(), format!("mcp2={}", mcp2.display())])
        .with(more.iter().copied())
        .command()
        .output()
        .expect("python3 starts");
    assert!(
        done.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&done.stderr),
        String::from_utf8_lossy(&done.stdout),
    );
}

#[test]
fn published_programs_work_through_the_gateway_as_without_it() {
    quick(&["--agents", "none"]);
}

/// Claude Code without a person, with a scripted model and no network: the inbox is asked, and its answer arrives once.
#[test]
fn an_agent_without_a_person_leaves_its_questions_to_the_inbox() {
    quick(&["--agents", "only"]);
}
