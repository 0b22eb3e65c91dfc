//! The server of the matrix: raw, of one revision, over stdio or HTTP. It runs in the test's process, so that the test
//! sees every message; over stdio, a shell connects its pipes to a socket of the test.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::{BOTH_ERAS, NEWEST, Over};
use crate::http::read_request;

/// Joins the pipes of a process to a socket, until either ends.
const JOINED: &str = "exec 3<>/dev/tcp/127.0.0.1/$0; cat <&3 & cat >&3; kill $!";

/// The server.
pub(super) struct Server {
    shared: Arc<Shared>,
    port: u16,
    over: Over,
}

struct Shared {
    revision: &'static str,
    /// `true` if it also speaks 2026-07-28, where it does not ask.
    has_both_eras: bool,
    /// Every message that reached it.
    seen: Mutex<Vec<Value>>,
    /// Calls that wait for the answer to a question of this id.
    open: Mutex<HashMap<String, Pending>>,
    /// The numbers of the calls that were sent to a link.
    visited: Mutex<Vec<u64>>,
    /// The level that was set.
    level: Mutex<Option<String>>,
    next: AtomicU64,
}

struct Pending {
    call: Value,
    tool: String,
    number: u64,
    /// The number of answers so far.
    answers: u64,
    to: Sink,
}

/// The way to the client for messages that belong to one request.
#[derive(Clone)]
enum Sink {
    Pipe(Arc<Mutex<TcpStream>>),
    Stream(Arc<Mutex<TcpStream>>),
}

impl Sink {
    fn say(&self, frame: &Value) {
        // A disconnected client gets nothing.
        let _ = match self {
            Self::Pipe(pipe) => writeln!(pipe.lock().unwrap(), "{frame}"),
            Self::Stream(stream) => write!(stream.lock().unwrap(), "data: {frame}\n\n"),
        };
    }

    fn end(&self) {
        if let Self::Stream(stream) = self {
            let _ = stream.lock().unwrap().shutdown(Shutdown::Both);
        }
    }
}

impl Server {
    pub(super) fn start(revision: &'static str, over: Over) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let has_both_eras = revision == BOTH_ERAS;
        let shared = Arc::new(Shared {
            revision: if has_both_eras {
                "2025-11-25"
            } else {
                revision
            },
            has_both_eras,
            seen: Mutex::default(),
            open: Mutex::default(),
            visited: Mutex::default(),
            level: Mutex::default(),
            next: AtomicU64::new(0),
        });
        let all = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = all.clone();
                thread::spawn(move || match over {
                    Over::Stdio => shared.serve_pipe(stream),
                    Over::Http => shared.serve_http(stream),
                });
            }
        });
        Self { shared, port, over }
    }

    /// Returns the arguments of a gateway in front of it.
    pub(super) fn target(&self) -> Vec<String> {
        let port = self.port.to_string();
        match self.over {
            Over::Http => vec![
                "--upstream".to_owned(),
                format!("http://127.0.0.1:{port}/mcp"),
            ],
            Over::Stdio => ["--", "bash", "-c", JOINED, &port]
                .map(str::to_owned)
                .into(),
        }
    }

    /// Returns every message that has reached it so far.
    pub(super) fn seen(&self) -> Vec<Value> {
        self.shared.seen.lock().unwrap().clone()
    }
}

impl Shared {
    fn serve_pipe(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let to = Sink::Pipe(Arc::new(Mutex::new(stream.try_clone()?)));
        for line in BufReader::new(stream).lines() {
            let frame: Value = serde_json::from_str(&line?).expect("a message");
            if let Some(reply) = self.take(&frame, &to) {
                to.say(&reply);
            }
        }
        Ok(())
    }

    /// Serves one request per connection.
    fn serve_http(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        let Some((first, body)) = read_request(&mut reader)? else {
            return Ok(());
        };
        if !first.starts_with("POST") {
            return writer.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        let frame: Value = serde_json::from_slice(&body).expect("a message");
        let head = "Connection: close\r\nMcp-Session-Id: s";
        if frame["method"] == "tools/call" {
            write!(
                writer,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{head}\r\n\r\n"
            )?;
            let to = Sink::Stream(Arc::new(Mutex::new(writer)));
            if let Some(reply) = self.take(&frame, &to) {
                to.say(&reply);
                to.end();
            }
            return Ok(());
        }
        // Only a call has messages beside its response.
        let nowhere = Sink::Stream(Arc::new(Mutex::new(writer.try_clone()?)));
        let Some(reply) = self.take(&frame, &nowhere) else {
            return write!(
                writer,
                "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n{head}\r\n\r\n"
            );
        };
        let reply = reply.to_string();
        let length = reply.len();
        write!(
            writer,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{head}\r\n\r\n{reply}"
        )
    }

    fn in_rounds(&self) -> bool {
        self.revision == NEWEST
    }

    fn take(&self, frame: &Value, to: &Sink) -> Option<Value> {
        self.seen.lock().unwrap().push(frame.clone());
        let id = frame["id"].clone();
        let Some(method) = frame["method"].as_str() else {
            self.answered(frame);
            return None;
        };
        let result = match method {
            "initialize" if !self.in_rounds() => {
                json!({"protocolVersion": self.revision, "capabilities": {"tools": {}, "logging": {}},
                    "serverInfo": {"name": "matrix", "version": "1"}})
            }
            "server/discover" if self.in_rounds() || self.has_both_eras => {
                json!({"resultType": "complete", "supportedVersions": [NEWEST], "capabilities": {"tools": {}, "logging": {}},
                    "ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "matrix", "version": "1"}}})
            }
            "logging/setLevel" if !self.in_rounds() => {
                *self.level.lock().unwrap() = frame["params"]["level"].as_str().map(str::to_owned);
                json!({})
            }
            "ping" => json!({}),
            "tools/call" => return self.call(&id, &frame["params"], to),
            _ if id.is_null() => return None,
            _ => {
                let error = json!({"code": -32601, "message": format!("no {method}")});
                return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn call(&self, id: &Value, params: &Value, to: &Sink) -> Option<Value> {
        let tool = params["name"].as_str().unwrap_or_default();
        if self.has_both_eras
            && params["_meta"]["io.modelcontextprotocol/protocolVersion"] == NEWEST
        {
            return Some(self.result(id, "done without asking"));
        }
        let number = params["arguments"]["n"].as_u64().unwrap_or(0);
        match tool {
            "log" => {
                self.log(params, to);
                return Some(self.result(id, "plain"));
            }
            "visit" => {
                let mut visited = self.visited.lock().unwrap();
                if visited.contains(&number) {
                    return Some(self.result(id, "visited"));
                }
                visited.push(number);
                let error = json!({"code": -32042, "message": "visit", "data": {"elicitations": [self.link(number)]}});
                return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            "plain" => return Some(self.result(id, "plain")),
            _ => {}
        }
        if self.in_rounds() {
            return Some(self.round(id, tool, number, params));
        }
        self.push(Pending {
            call: id.clone(),
            tool: tool.to_owned(),
            number,
            answers: 0,
            to: to.clone(),
        });
        None
    }

    fn push(&self, pending: Pending) {
        let id = format!("q{}", self.next.fetch_add(1, Ordering::Relaxed));
        let params = self.question(&pending.tool, pending.number);
        let frame =
            json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
        let to = pending.to.clone();
        self.open.lock().unwrap().insert(id, pending);
        to.say(&frame);
    }

    /// Accepts a client's answer to a pushed question.
    fn answered(&self, frame: &Value) {
        let id = frame["id"].as_str().unwrap_or_default();
        let Some(mut pending) = self.open.lock().unwrap().remove(id) else {
            return;
        };
        pending.answers += 1;
        let accepted = frame["result"]["action"] == "accept";
        if accepted && pending.answers < questions(&pending.tool) {
            self.push(pending);
            return;
        }
        let text = match frame["error"]["code"].as_i64() {
            Some(code) => format!("error:{code}"),
            None => verdict(&pending.tool, &frame["result"]),
        };
        pending.to.say(&self.result(&pending.call, &text));
        pending.to.end();
    }

    /// Serves a call of the rounds era. Its state contains the number of answered questions, and the call.
    fn round(&self, id: &Value, tool: &str, number: u64, params: &Value) -> Value {
        let answered = match params["requestState"].as_str() {
            None => 0,
            Some(state) => match state.split_once(':') {
                Some((answered, of)) if of == number.to_string() => answered.parse().unwrap_or(0),
                _ => {
                    let error = json!({"code": -32602, "message": "another call's state"});
                    return json!({"jsonrpc": "2.0", "id": id, "error": error});
                }
            },
        };
        let answer = &params["inputResponses"]["a"];
        if answered >= questions(tool) || (answered > 0 && answer["action"] != "accept") {
            return self.result(id, &verdict(tool, answer));
        }
        let asked = json!({"method": "elicitation/create", "params": self.question(tool, number)});
        let result = json!({"resultType": "input_required", "requestState": format!("{}:{number}", answered + 1),
            "inputRequests": {"a": asked}});
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    }

    fn question(&self, tool: &str, number: u64) -> Value {
        if tool == "url" {
            return self.link(number);
        }
        let mut params = json!({"message": format!("Who is {number}?"), "requestedSchema": {
            "type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "age": {"type": "integer", "minimum": 18}}}});
        if tool == "outside" {
            params["requestedSchema"] = outside();
        }
        if tool == "unknown" {
            params["x-hint"] = json!({"a": 1});
            params["_meta"] = json!({"vendor/x": 2});
            params["requestedSchema"]["properties"]["name"]["x-widget"] = json!("big");
        }
        params
    }

    fn link(&self, number: u64) -> Value {
        let mut params = json!({"mode": "url", "message": "Connect", "url": format!("https://example.com/{number}")});
        if !self.in_rounds() {
            params["elicitationId"] = json!(format!("e-{number}"));
        }
        params
    }

    fn log(&self, params: &Value, to: &Sink) {
        let level = if self.in_rounds() {
            let level = params["_meta"]["io.modelcontextprotocol/logLevel"].as_str();
            level.map_or_else(|| "none".to_owned(), str::to_owned)
        } else {
            let level = self.level.lock().unwrap().clone();
            level.unwrap_or_else(|| "debug".to_owned())
        };
        let wanted: &[&str] = match level.as_str() {
            "debug" | "info" => &["info", "error"],
            "warning" | "error" => &["error"],
            _ => &[],
        };
        for level in wanted {
            to.say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": "d"}}));
        }
    }

    fn result(&self, id: &Value, text: &str) -> Value {
        let mut result = json!({"content": [{"type": "text", "text": text}]});
        if self.in_rounds() {
            result["resultType"] = json!("complete");
        }
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    }
}

/// Returns a form with fields that no revision lists: optional as `null`, options that are integers, an unknown format.
pub(super) fn outside() -> Value {
    json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"},
        "age": {"anyOf": [{"type": "integer", "minimum": 18}, {"type": "null"}], "default": null},
        "level": {"type": "integer", "enum": [1, 2]},
        "phone": {"type": "string", "format": "phone"}}})
}

fn questions(tool: &str) -> u64 {
    if tool == "two" { 2 } else { 1 }
}

/// Returns the tool's text about an answer.
fn verdict(tool: &str, answer: &Value) -> String {
    if tool == "unknown" {
        return answer.to_string();
    }
    match answer["action"].as_str() {
        Some("accept") => format!(
            "accept:{}",
            answer["content"]["name"].as_str().unwrap_or("-")
        ),
        Some(action) => action.to_owned(),
        None => "nothing".to_owned(),
    }
}
