//! A raw client on stdio, and `mcp-elicit inbox` beside it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-elicit");
/// The server of most tests.
pub(crate) const DEMO_SERVER: [&str; 3] = ["--", PROGRAM, "demo-server"];
/// Longer than anything here takes, so that a hanging test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A raw client on stdio.
pub(crate) struct Raw {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
}

impl Raw {
    /// Starts the client; its stderr goes where the command says.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let lines = lines_of(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            lines,
        }
    }

    pub(crate) fn send(&mut self, frame: &Value) {
        // A gateway that was killed reads no more.
        let _ = writeln!(self.stdin.as_mut().unwrap(), "{frame}");
    }

    pub(crate) fn next(&self) -> Value {
        self.lines
            .recv_timeout(PATIENCE)
            .expect("a message of the gateway")
    }

    /// Returns the response to this request; earlier messages are skipped.
    pub(crate) fn result(&self, id: u64) -> Value {
        loop {
            let frame = self.next();
            if frame["id"] == id && frame["method"].is_null() {
                return frame;
            }
        }
    }

    pub(crate) fn initialize(&mut self, revision: &str, capabilities: &Value) -> Value {
        self.send(&initialize(revision, capabilities));
        let opened = self.result(1);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        opened
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.send(&call(id, tool, arguments));
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(stdout: ChildStdout) -> mpsc::Receiver<Value> {
    let (lines, taken) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let frame = serde_json::from_str(&line).expect("stdout holds frames only");
            if lines.send(frame).is_err() {
                return;
            }
        }
    });
    taken
}

/// Returns the command of a gateway over this state folder; its inbox is at a free port unless the options name one.
/// `server` is a program after `--`, or `--upstream URL`.
pub(crate) fn gateway(state: &Path, options: &[&str], server: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(["gateway", "--state"])
        .arg(state)
        .args(options);
    if !options.contains(&"--inbox") {
        command.args(["--inbox", "127.0.0.1:0"]);
    }
    command.args(server).stderr(Stdio::null());
    command
}

/// Runs another command on the same state folder.
pub(crate) fn command(state: &Path, words: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(words)
        .arg("--state")
        .arg(state)
        .output()
        .unwrap()
}

/// Runs `mcp-elicit inbox …`. Returns its JSON lines.
pub(crate) fn inbox(state: &Path, words: &[&str]) -> (bool, Vec<Value>) {
    let done = command(state, &[&["inbox"], words, &["--json"]].concat());
    let lines = String::from_utf8(done.stdout).unwrap();
    let lines = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    (done.status.success(), lines.collect())
}

pub(crate) fn initialize(revision: &str, capabilities: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "raw", "version": "1"}}})
}

pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}})
}

/// Returns the text of a result.
pub(crate) fn text(frame: &Value) -> &str {
    frame["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}
