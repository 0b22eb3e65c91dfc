//! A raw client on stdio, and `mcp-elicit inbox` beside it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-elicit");
/// Nothing here takes this long; a test that hangs fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A raw client on stdio.
pub(crate) struct Raw {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
}

impl Raw {
    pub(crate) fn gateway(state: &Path, more: &[&str], server: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["gateway", "--state"]).arg(state).args(more);
        if !more.contains(&"--inbox") {
            command.args(["--inbox", "127.0.0.1:0"]);
        }
        if !server.is_empty() {
            command.arg("--").args(server);
        }
        Self::start(command)
    }

    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
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
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{frame}").unwrap();
    }

    pub(crate) fn next(&self) -> Value {
        self.lines
            .recv_timeout(PATIENCE)
            .expect("a message of the gateway")
    }

    /// The response to this request; what comes before it is passed over.
    pub(crate) fn answer(&self, id: u64) -> Value {
        loop {
            let frame = self.next();
            if frame["id"] == id && frame["method"].is_null() {
                return frame;
            }
        }
    }

    pub(crate) fn initialize(&mut self, revision: &str, capabilities: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "raw", "version": "1"}}}));
        let opened = self.answer(1);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        opened
    }

    pub(crate) fn call(&mut self, id: u64, name: &str) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": {}, "_meta": {"progressToken": "p"}}}));
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn lines_of(stdout: ChildStdout) -> mpsc::Receiver<Value> {
    let (lines, taken) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let Ok(frame) = serde_json::from_str(&line) else {
                continue;
            };
            if lines.send(frame).is_err() {
                return;
            }
        }
    });
    taken
}

/// `mcp-elicit inbox …`; its JSON lines.
pub(crate) fn inbox(state: &Path, words: &[&str]) -> (bool, Vec<Value>) {
    let done = Command::new(PROGRAM)
        .arg("inbox")
        .args(words)
        .arg("--json")
        .arg("--state")
        .arg(state)
        .output()
        .unwrap();
    let lines = String::from_utf8(done.stdout).unwrap();
    (
        done.status.success(),
        lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect(),
    )
}

/// The text of a result.
pub(crate) fn text(frame: &Value) -> String {
    frame["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
