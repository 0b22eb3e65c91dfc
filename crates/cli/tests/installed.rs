//! An installed program tells its version, the completions of shells and the manual pages.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::path::Path;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_mcp-elicit");
    Command::new(program).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Returns `true` if this program can be started here.
fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn the_version_has_a_line_and_its_details() {
    let short = run(&["-V"]);
    assert_eq!(text(&short.stdout), "mcp-elicit 0.1.0\n");
    let long = run(&["--version"]);
    let lines: Vec<_> = text(&long.stdout).lines().collect();
    assert_eq!(lines[0], "mcp-elicit 0.1.0");
    assert!(lines[1].starts_with("commit: "), "{lines:?}");
    assert!(["features: full", "features: default"].contains(&lines[2]));
    assert_eq!(
        lines[3],
        "protocol revisions: 2025-06-18, 2025-11-25, 2026-07-28"
    );
}

#[test]
fn bash_completes_commands_and_options() {
    let script = run(&["completions", "bash"]);
    assert!(script.status.success());
    // As the shell does when Tab is pressed: the registered function gets the command, the word and the one before it.
    let line = "registered=$(complete -p mcp-elicit); registered=${registered#*-F }; COMP_WORDS=(mcp-elicit \"$@\"); \
                COMP_CWORD=$#; ${registered%% *} mcp-elicit \"${@: -1}\" \"${COMP_WORDS[$# - 1]}\"; echo \"${COMPREPLY[*]}\"";
    // In a file: the script is longer than an argument may be.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    std::fs::write(&file, format!("{}\n{line}", text(&script.stdout))).unwrap();
    let ask = |words: &[&str]| {
        let run = Command::new("bash")
            .arg(&file)
            .args(words)
            .output()
            .unwrap();
        text(&run.stdout).trim().to_owned()
    };
    assert_eq!(ask(&["gat"]), "gateway");
    assert!(ask(&["inbox", "acc"]).contains("accept"));
    assert!(ask(&["call", "--answ"]).contains("--answers"));
}

#[test]
fn every_shell_gets_a_script_and_no_other() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&["completions", shell]);
        assert!(script.status.success(), "{shell}");
        assert!(text(&script.stdout).contains("gateway"), "{shell}");
    }
    let other = run(&["completions", "csh"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("possible values"), "{other:?}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man/man1");
    let written = run(&["man", pages.to_str().unwrap()]);
    assert!(written.status.success(), "{written:?}");
    for name in ["mcp-elicit", "mcp-elicit-call", "mcp-elicit-inbox-accept"] {
        let page = pages.join(format!("{name}.1"));
        let source = std::fs::read_to_string(&page).unwrap();
        assert!(source.contains(".SH SYNOPSIS"), "{name}");
        if is_there("man") {
            shown_without_a_complaint(&page);
        }
    }
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = run(&["man", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("name a folder"));
}

fn shown_without_a_complaint(page: &Path) {
    let shown = Command::new("man")
        .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
        .arg(page)
        .output()
        .unwrap();
    assert!(shown.status.success(), "{shown:?}");
    assert!(shown.stderr.is_empty(), "{}", text(&shown.stderr));
}
