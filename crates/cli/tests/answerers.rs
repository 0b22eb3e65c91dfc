//! Responders that answer immediately beside the inbox: the operator's program, and the person at the terminal while
//! stdin and stdout carry the protocol. The program is a real one; the terminal is a real pseudo-terminal.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod raw;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use raw::{DEMO_SERVER, PROGRAM, Raw, gateway, inbox, text};
use serde_json::{Value, json};

const SERVER: [&str; 2] = [PROGRAM, "demo-server"];

/// Writes a shell script for the operator.
fn script(folder: &Path, lines: &str) -> PathBuf {
    let path = folder.join("answer it.sh");
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

/// Starts a client that cannot be asked, before a gateway whose questions go to this program.
fn asked_by(folder: &Path, lines: &str, more: &[&str]) -> Raw {
    let command = format!("'{}' --for team", script(folder, lines).display());
    let mut options = vec!["--answer-with", "command", "--answer-command", &command];
    options.extend(more);
    let mut raw = Raw::start(gateway(&folder.join("state"), &options, &DEMO_SERVER));
    raw.initialize("2025-11-25", &json!({}));
    raw.call(2, "deploy", &json!({}));
    raw
}

#[test]
fn a_program_answers() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("asked");
    let lines = format!(
        r#"echo "$@" > '{0}.words'; cat > '{0}'; echo '{{"action":"accept","content":{{"environment":"staging"}}}}'"#,
        note.display()
    );
    let raw = asked_by(folder.path(), &lines, &[]);
    let done = raw.result(2);
    assert!(text(&done).contains("staging"), "{done}");
    let asked: Value = serde_json::from_str(&fs::read_to_string(&note).unwrap()).unwrap();
    // A server without a configured name is known by its command and by the name that it reports.
    assert_eq!(
        (&asked["mode"], &asked["claimed"]),
        (&json!("form"), &json!("mcp-elicit-demo"))
    );
    let server = asked["server"].as_str().unwrap();
    assert!(server.ends_with("mcp-elicit demo-server"), "{asked}");
    assert!(
        asked["requestedSchema"]["properties"]["environment"].is_object(),
        "{asked}"
    );
    let words = fs::read_to_string(note.with_extension("words")).unwrap();
    assert_eq!(words.trim(), "--for team");
    let (_, ended) = inbox(&folder.path().join("state"), &["list", "--ended"]);
    assert_eq!(ended[0]["by"], "command", "{ended:?}");
}

#[test]
fn a_program_declines_for_its_person() {
    let folder = tempfile::tempdir().unwrap();
    let raw = asked_by(folder.path(), r#"echo '{"action":"decline"}'"#, &[]);
    let done = raw.result(2);
    let (_, ended) = inbox(&folder.path().join("state"), &["list", "--ended"]);
    assert_eq!(ended[0]["phase"], "declined", "{ended:?} {done}");
}

/// A program that fails, or whose answer the form rejects, has no effect: the question stays in the inbox.
#[test]
fn a_program_that_fails_leaves_the_question_to_the_inbox() {
    for lines in [
        "exit 3",
        "true",
        r#"echo '{"action":"accept","content":{"environment":"the moon"}}'"#,
        r#"echo '{"action":"accept","content":{"environment":"production","environment":"production"}}'"#,
    ] {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let raw = asked_by(folder.path(), lines, &[]);
        let told = raw.next();
        assert_eq!(told["method"], "notifications/progress", "{told}");
        let (_, open) = inbox(&state, &["list"]);
        let id = open[0]["id"].as_str().unwrap();
        assert!(
            inbox(&state, &["accept", id, "environment=staging"]).0,
            "{lines}"
        );
        let done = raw.result(2);
        assert!(text(&done).contains("staging"), "{lines}: {done}");
    }
}

/// The first program never ends: the second question is asked beside it. Its stderr goes to the log as text.
#[test]
fn a_program_that_hangs_keeps_no_later_question_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let lines = format!(
        r#"if mkdir '{}'; then exec sleep 3600; fi; printf '\033]0;title\007\n' >&2; echo '{{"action":"accept","content":{{"environment":"staging"}}}}'"#,
        folder.path().join("hangs").display()
    );
    let command = format!("'{}'", script(folder.path(), &lines).display());
    let options = ["--answer-with", "command", "--answer-command", &command];
    let mut gateway = gateway(&folder.path().join("state"), &options, &DEMO_SERVER);
    gateway.stderr(std::process::Stdio::piped());
    let mut raw = Raw::start(gateway);
    let mut stderr = raw.child.stderr.take().unwrap();
    let log = std::thread::spawn(move || {
        let mut log = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut log).map(|_| log)
    });
    raw.initialize("2025-11-25", &json!({}));
    raw.call(2, "deploy", &json!({}));
    while !folder.path().join("hangs").exists() {
        std::thread::yield_now();
    }
    raw.call(3, "deploy", &json!({}));
    let done = raw.result(3);
    assert!(text(&done).contains("staging"), "{done}");
    drop(raw);
    let log = log.join().unwrap().unwrap();
    assert!(
        log.contains(r"(answer-command): \u{1b}]0;title\u{7}"),
        "{log}"
    );
}

/// Without an inbox, no one else can answer: the server gets an error, which is not a decline.
#[test]
fn a_program_that_fails_alone_fails_the_question() {
    let folder = tempfile::tempdir().unwrap();
    let raw = asked_by(folder.path(), "exit 3", &["--inbox", "off"]);
    let done = raw.result(2);
    assert!(done.to_string().contains("nobody could be asked"), "{done}");
    assert!(!done.to_string().contains("declined"), "{done}");
}

mod at_a_terminal {
    use std::fs::{File, OpenOptions, read_to_string};
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::Command;

    use mcp_elicit_testkit::pty::{self, TestTerminal};

    use super::*;

    #[test]
    fn the_person_answers_while_pipes_carry_the_protocol() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = folder.path().join(name);
            assert!(
                Command::new("mkfifo")
                    .arg(&path)
                    .status()
                    .unwrap()
                    .success()
            );
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        let mut command = pty::command("sh");
        command.args([
            "-c",
            r#"exec "$0" "$@" < to > from 2> said"#,
            PROGRAM,
            "gateway",
        ]);
        command.args([
            "--answer-with",
            "terminal",
            "--inbox",
            "off",
            "--state",
            "state",
            "--",
        ]);
        command.args(SERVER);
        command.cwd(folder.path());
        let mut terminal = TestTerminal::start(command, 100, 40);

        let mut stdin = OpenOptions::new().write(true).open(&to).unwrap();
        let mut answers = BufReader::new(File::open(&from).unwrap()).lines();
        let mut send = |frame: Value| writeln!(stdin, "{frame}").unwrap();
        send(
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}}),
        );
        answers.next().unwrap().unwrap();
        send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        send(
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "deploy", "arguments": {}}}),
        );
        terminal.wait_for("Environment");
        terminal.press_for(" ", "● staging");
        terminal.press_for("\t\t", "▸ Send");
        terminal.press("\r");
        let done: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert!(text(&done).contains("staging"), "{done}");
        // The gateway ends when its stdin does.
        drop(stdin);
        assert!(terminal.ended_well());
    }

    #[test]
    fn a_no_to_every_later_question_holds_as_long_as_the_gateway_runs() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["to", "from"] {
            let made = Command::new("mkfifo")
                .arg(folder.path().join(name))
                .status();
            assert!(made.unwrap().success());
        }
        let mut command = pty::command("sh");
        let gateway = r#"exec "$0" "$@" < to > from 2> said"#;
        command.args([
            "-c",
            gateway,
            PROGRAM,
            "gateway",
            "--answer-with",
            "terminal",
        ]);
        command.args(["--inbox", "off", "--state", "state", "--"]);
        command.args(SERVER);
        command.cwd(folder.path());
        let mut terminal = TestTerminal::start(command, 100, 40);

        let to = folder.path().join("to");
        let mut stdin = OpenOptions::new().write(true).open(to).unwrap();
        let from = File::open(folder.path().join("from")).unwrap();
        let mut answers = BufReader::new(from).lines();
        let mut send = |frame: Value| writeln!(stdin, "{frame}").unwrap();
        let mut result = |id: u64| loop {
            let frame: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
            if frame["id"] == id {
                break frame;
            }
        };
        send(
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}}),
        );
        result(1);
        send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let call = |id: u64, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
        send(call(2, "deploy"));
        terminal.wait_for("Environment");
        terminal.press_for("\x12", "Decline this and every later question");
        terminal.press("y");
        assert!(text(&result(2)).contains("declined"));
        // No key is pressed for these.
        for (id, tool) in [(3, "deploy"), (4, "plan-trip")] {
            send(call(id, tool));
            let done = result(id);
            assert!(text(&done).contains("declined"), "{done}");
        }
        drop(stdin);
        assert!(terminal.ended_well());
        let said = read_to_string(folder.path().join("said")).unwrap();
        assert!(said.contains("until this gateway ends"), "{said}");
    }

    /// A gateway with a question on the terminal, once as a screen and once line by line.
    #[test]
    fn a_signal_gives_the_terminal_back() {
        for (options, shown) in [("", "Esc cancel"), ("--plain", "Environment:")] {
            for signal in ["-TERM", "-INT"] {
                let folder = tempfile::tempdir().unwrap();
                for name in ["to", "from"] {
                    let made = Command::new("mkfifo")
                        .arg(folder.path().join(name))
                        .status();
                    assert!(made.unwrap().success());
                }
                let gateway = format!(
                    r#"exec "$0" gateway {options} --answer-with terminal --inbox off --state state -- "$0" demo-server < to > from 2> said"#
                );
                let mut command = pty::command("sh");
                command.args(["-c", &gateway, PROGRAM]);
                command.cwd(folder.path());
                let mut terminal = TestTerminal::start(command, 100, 40);
                let to = folder.path().join("to");
                let mut stdin = OpenOptions::new().write(true).open(to).unwrap();
                let from = File::open(folder.path().join("from")).unwrap();
                let mut answers = BufReader::new(from).lines();
                let mut send = |frame: Value| writeln!(stdin, "{frame}").unwrap();
                send(
                    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}}),
                );
                answers.next().unwrap().unwrap();
                send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                send(
                    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "deploy", "arguments": {}}}),
                );
                terminal.wait_for(shown);
                assert_eq!(terminal.is_given_back(), options == "--plain");
                let process = terminal.process().unwrap().to_string();
                let killed = Command::new("kill").args([signal, &process]).status();
                assert!(killed.unwrap().success());
                terminal.ended();
                assert!(terminal.is_given_back(), "{options} {signal}");
                // The signal must not have caused an answer.
                let rest: Vec<_> = answers.map_while(Result::ok).collect();
                let said = read_to_string(folder.path().join("said")).unwrap();
                assert!(!rest.join("\n").contains("declined"), "{rest:?} {said}");
            }
        }
    }

    /// Without a terminal, the gateway reports it at its start, not when a question comes.
    #[test]
    fn no_terminal_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let done = Command::new("setsid")
            .args([
                "--wait",
                PROGRAM,
                "gateway",
                "--answer-with",
                "terminal",
                "--state",
            ])
            .arg(folder.path())
            .arg("--")
            .args(SERVER)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            !done.status.success() && said.contains("no terminal"),
            "{said}"
        );
    }
}
