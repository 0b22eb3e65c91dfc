//! A running gateway, its client's end of stdio, and its inbox.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use serde_json::{Value, json};

use crate::http::{PATIENCE, Reply, send};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-elicit");

/// A gateway that runs until this is dropped.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    /// Host and port of the inbox.
    pub(crate) inbox: String,
    /// The link that signs in.
    pub(crate) login: String,
    /// Host and port of `--listen`.
    pub(crate) serving: Option<String>,
    pub(crate) token: String,
    /// All that it said on stderr so far.
    pub(crate) said: Arc<Mutex<String>>,
}

/// Arguments that lift the limits, which most tests here would run into.
pub(crate) const NO_LIMITS: [&str; 4] = ["--pending", "off", "--questions-per-minute", "off"];

impl Gateway {
    /// Starts one over this state folder, in front of `server`: a program behind `--`, or `--upstream URL`.
    pub(crate) fn start(state: &Path, more: &[&str], server: &[&str]) -> Self {
        let inbox = ["--inbox", "127.0.0.1:0"];
        let named = more.contains(&"--inbox");
        let mut child = Command::new(PROGRAM)
            .arg("gateway")
            .args(inbox.iter().filter(|_| !named))
            .arg("--state")
            .arg(state)
            .args(more)
            .args(server)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (links, said) = listen(child.stderr.take().unwrap());
        let login = links
            .recv_timeout(PATIENCE)
            .expect("it says where the inbox is");
        let serving = more.contains(&"--listen").then(|| {
            let link = links
                .recv_timeout(PATIENCE)
                .expect("it says where it serves");
            host(&link)
        });
        Self {
            inbox: host(&login),
            login,
            serving,
            token: std::fs::read_to_string(state.join("inbox.token"))
                .unwrap()
                .trim()
                .to_owned(),
            stdin: child.stdin.take(),
            lines: frames(child.stdout.take().unwrap()),
            child,
            said,
        }
    }

    /// A request of the API, with the token.
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> Option<Reply> {
        api(&self.inbox, &self.token, method, path, body)
    }

    /// The questions that wait; all pages.
    pub(crate) fn waiting(&self) -> Vec<Value> {
        let mut all = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("/api/questions?most=1000{after}");
            let said = self
                .api("GET", &path, "")
                .expect("the inbox answers")
                .json();
            all.extend(said["questions"].as_array().cloned().unwrap_or_default());
            match said["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return all,
            }
        }
    }

    /// Waits until so many questions wait.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Value> {
        for _ in 0..6_000 {
            let said = self.api("GET", "/api/questions?most=1", "");
            if said.is_some_and(|said| said.json()["waiting"] == count) {
                return self.waiting();
            }
            thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!(
            "there never were {count} questions, but {:?}",
            self.waiting()
        );
    }

    /// Hands in a person's act; the status.
    pub(crate) fn answer(&self, id: &str, body: &Value) -> u16 {
        let path = format!("/api/questions/{id}/answer");
        self.api("POST", &path, &body.to_string())
            .map_or(0, |reply| reply.status)
    }

    pub(crate) fn send(&mut self, frame: &Value) {
        // A gateway that was killed reads no more.
        let _ = writeln!(self.stdin.as_mut().unwrap(), "{frame}");
    }

    /// The next message to the client.
    pub(crate) fn next(&self) -> Value {
        self.lines
            .recv_timeout(PATIENCE)
            .expect("a message of the gateway")
    }

    /// The response to this request; what comes before it is passed over.
    pub(crate) fn result(&self, id: u64) -> Value {
        loop {
            let frame = self.next();
            if frame["id"] == id && frame["method"].is_null() {
                return frame;
            }
        }
    }

    /// Opens the session of a client that cannot ask.
    pub(crate) fn initialize(&mut self) {
        self.send(&initialize());
        self.result(1);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.send(&call(id, tool, arguments));
    }

    /// `mcp-elicit`, another command of the same state folder.
    pub(crate) fn command(state: &Path, words: &[&str]) -> Output {
        Command::new(PROGRAM)
            .args(words)
            .arg("--state")
            .arg(state)
            .output()
            .unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request of the API.
pub(crate) fn api(at: &str, token: &str, method: &str, path: &str, body: &str) -> Option<Reply> {
    let line = format!("{method} {path} HTTP/1.1");
    let token = format!("Authorization: Bearer {token}");
    send(at, &[&line, &token, "Content-Type: application/json"], body)
}

pub(crate) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}})
}

pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// The text of a call's result.
pub(crate) fn text(frame: &Value) -> &str {
    frame["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// Host and port of a link.
pub(crate) fn host(link: &str) -> String {
    let rest = link.split_once("://").map_or(link, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest).to_owned()
}

fn frames(stdout: impl Read + Send + 'static) -> mpsc::Receiver<Value> {
    let (lines, taken) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let frame = serde_json::from_str(&line).expect("stdout holds frames only");
            if lines.send(frame).is_err() {
                return;
            }
        }
    });
    taken
}

fn listen(stderr: impl Read + Send + 'static) -> (mpsc::Receiver<String>, Arc<Mutex<String>>) {
    let (links, found) = mpsc::channel();
    let said = Arc::new(Mutex::new(String::new()));
    let all = said.clone();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let link = line
                .strip_prefix("inbox: ")
                .or_else(|| line.strip_prefix("serving: "));
            if let Some(link) = link {
                let _ = links.send(link.to_owned());
            }
            let mut all = all.lock().unwrap();
            all.push_str(&line);
            all.push('\n');
        }
    });
    (found, said)
}
