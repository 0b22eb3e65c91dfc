//! `--start`: each server, started as the gateway starts it, with the check that a gateway makes of its servers.

use std::process::Stdio;
use std::time::Duration;

use mcp_elicit_setup::{Document, Server, State};
use tokio::process::Command;

use super::{Finding, Level};
use crate::commands::setup::Found;

/// The longest time for one server, whose launcher may have to download it.
const WITHIN: Duration = Duration::from_secs(200);

/// The longest part of what a check says, in characters.
const MAX_TEXT: usize = 400;

/// A server that was started.
pub(super) struct Started {
    /// The revisions that it speaks, and those in which it was seen to ask, in words.
    pub(super) revisions: Option<String>,
    pub(super) finding: Option<Finding>,
}

/// Starts a server, reads what it speaks, and ends it. Returns `None` for one that the client does not use now, or that
/// cannot be behind the gateway.
pub(super) async fn start(file: &Found, document: &Document, server: &Server) -> Option<Started> {
    if server.is_disabled() {
        return None;
    }
    let (program, words) = command(server)?;
    let environment = document.environment(server);
    let values = environment.iter().map(|(_, value)| value);
    let finding = |code, level, says: String, next: String| {
        Some(Started {
            revisions: None,
            finding: Some(Finding::new(code, level, says, next).of(file, Some(server))),
        })
    };
    if words.iter().chain(values).any(|word| is_filled_in(word)) {
        return finding(
            "not-started",
            Level::Warning,
            "the client fills in a part of its command, so that it was not started".to_owned(),
            format!(
                "start {}, and look whether it lists the tools",
                file.client.name()
            ),
        );
    }
    let mut check = Command::new(program);
    check
        .args(&words)
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let by_hand = || shell_words::join(words.iter().map(String::as_str));
    let problem = |says: String, next: String| finding("server-fails", Level::Problem, says, next);
    match tokio::time::timeout(WITHIN, check.output()).await {
        Ok(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stderr);
            if output.status.success() {
                return Some(Started {
                    revisions: part(&said, ": speaks ").map(|rest| format!("speaks {rest}")),
                    finding: None,
                });
            }
            let why =
                part(&said, "error: ").unwrap_or_else(|| format!("it ends with {}", output.status));
            let next = part(&said, "next: ");
            problem(
                why,
                next.unwrap_or_else(|| format!("mcp-elicit {}", by_hand())),
            )
        }
        Ok(Err(error)) => problem(
            format!("the gateway cannot be started: {error}"),
            format!("mcp-elicit {}", by_hand()),
        ),
        Err(_) => problem(
            format!("it did not start within {} s", WITHIN.as_secs()),
            format!("mcp-elicit {}", by_hand()),
        ),
    }
}

/// Returns the program and the arguments that check this server.
fn command(server: &Server) -> Option<(std::ffi::OsString, Vec<String>)> {
    let own = || std::env::current_exe().ok().map(Into::into);
    let check = |words: &[&str]| {
        let all = ["gateway", "--check"].iter().chain(words);
        all.map(|word| (*word).to_owned()).collect::<Vec<String>>()
    };
    match server.state() {
        State::Wrapped { program, args } => {
            let rest: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
            Some((program.into(), check(&rest)))
        }
        State::Program { command } => {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let words = [&["--name", server.name(), "--"][..], &command].concat();
            Some((own()?, check(&words)))
        }
        // The credentials stay in the client's file.
        State::Url {
            url,
            has_credentials: false,
        } => Some((
            own()?,
            check(&["--name", server.name(), "--upstream", url.as_str()]),
        )),
        State::Url { .. } | State::Unsupported { .. } => None,
    }
}

/// Returns `true` for a text with a variable that a client replaces.
fn is_filled_in(word: &str) -> bool {
    word.contains("${")
}

/// Returns the rest of the line that has this mark.
fn part(said: &str, mark: &str) -> Option<String> {
    let rest = said.lines().find_map(|line| line.split_once(mark))?.1;
    Some(rest.trim().chars().take(MAX_TEXT).collect())
}
