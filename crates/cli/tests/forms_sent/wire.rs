//! A client that only reads lines of JSON, so that nothing of this project stands between the SDK and the record.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use mcp_elicit_testkit::peers::PeerProgram;
use serde_json::{Value, json};

/// A session of 2025-11-25 that declares forms.
pub(crate) struct Wire {
    child: Option<Child>,
    write: Box<dyn Write>,
    read: BufReader<Box<dyn Read>>,
    last_id: u64,
}

impl Wire {
    /// Starts the server over stdio.
    pub(crate) fn start(program: &PeerProgram) -> Self {
        let mut child = program
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let write = Box::new(child.stdin.take().expect("stdin is piped"));
        let read: Box<dyn Read> = Box::new(child.stdout.take().expect("stdout is piped"));
        Self::begin(Some(child), write, read)
    }

    /// Connects to a server that reads and writes lines on each connection.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        let write = Box::new(stream.try_clone().expect("a socket has two halves"));
        Self::begin(None, write, Box::new(stream))
    }

    fn begin(child: Option<Child>, write: Box<dyn Write>, read: Box<dyn Read>) -> Self {
        let mut wire = Self {
            child,
            write,
            read: BufReader::new(read),
            last_id: 0,
        };
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": { "form": {} } },
            "clientInfo": { "name": "wire", "version": "1.0.0" } });
        wire.request("initialize", &params);
        wire.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        wire
    }

    /// Returns the names of the kinds.
    pub(crate) fn kinds(&mut self) -> Vec<String> {
        let (_, result) = self.request("tools/call", &json!({ "name": "kinds", "arguments": {} }));
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        serde_json::from_str(text).unwrap_or_else(|_| panic!("no list of kinds: {result}"))
    }

    /// Returns the `requestedSchema` of a kind, or `None` if the SDK refused to ask for it.
    pub(crate) fn form_of(&mut self, kind: &str) -> Option<Value> {
        let params = json!({ "name": "ask", "arguments": { "kind": kind } });
        let (asked, result) = self.request("tools/call", &params);
        let refused = result["isError"] == true;
        assert_ne!(asked.is_some(), refused, "{kind}: {result}");
        asked.map(|mut params| params["requestedSchema"].take())
    }

    /// Returns the params of the question that was asked meanwhile, which is declined, and the result.
    fn request(&mut self, method: &str, params: &Value) -> (Option<Value>, Value) {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut asked = None;
        loop {
            let mut line = String::new();
            let read = self.read.read_line(&mut line).expect("the server writes");
            assert_ne!(read, 0, "the server ended during {method}");
            let mut message: Value = serde_json::from_str(&line).expect("a line of JSON");
            if message["method"] == "elicitation/create" {
                asked = Some(message["params"].take());
                let id = &message["id"];
                self.send(
                    &json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } }),
                );
            } else if message["id"] == id {
                return (asked, message["result"].take());
            }
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.write, "{message}").expect("the server reads");
        self.write.flush().expect("the server reads");
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
