//! The client of the matrix: raw, of one revision and capability, over stdio or HTTP.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use super::{Capability, NEWEST, REVISIONS};
use crate::gateway::Gateway;
use crate::http::PATIENCE;

/// The client.
pub(super) struct Client<'g> {
    revision: &'static str,
    capability: Capability,
    way: Way<'g>,
    next: u64,
    /// The number of wrong answers to forms before the right ones.
    pub(super) wrong: u32,
    /// `true` if they all break the same rule; otherwise each breaks another one than the answer before.
    pub(super) alike: bool,
    /// The error with which it answers the next question.
    pub(super) error: Option<i64>,
    /// The action with which it answers every question at once, as a program does.
    pub(super) instant: Option<&'static str>,
    /// The params of every question that it was asked.
    pub(super) asked: Vec<Value>,
    /// The levels of the log messages that reached it.
    pub(super) logged: Vec<String>,
}

enum Way<'g> {
    Stdio(&'g mut Gateway),
    Http(Http),
}

struct Http {
    at: String,
    /// Sent as `Authorization`.
    name: String,
    session: Option<String>,
    to: mpsc::Sender<Value>,
    from: mpsc::Receiver<Value>,
}

/// A call that was sent, and its first request.
struct Sent {
    first: u64,
    frame: Value,
}

impl<'g> Client<'g> {
    /// Creates the client at the other end of the gateway's pipes.
    pub(super) fn on_stdio(
        gateway: &'g mut Gateway,
        revision: &'static str,
        capability: Capability,
    ) -> Self {
        Self::opened(Way::Stdio(gateway), revision, capability)
    }

    /// Creates a client of this name over HTTP.
    pub(super) fn over_http(
        at: &str,
        name: &str,
        revision: &'static str,
        capability: Capability,
    ) -> Self {
        let (to, from) = mpsc::channel();
        let way = Way::Http(Http {
            at: at.to_owned(),
            name: name.to_owned(),
            session: None,
            to,
            from,
        });
        Self::opened(way, revision, capability)
    }

    fn opened(way: Way<'g>, revision: &'static str, capability: Capability) -> Self {
        let mut client = Self {
            revision,
            capability,
            way,
            next: 0,
            wrong: 0,
            alike: false,
            error: None,
            instant: None,
            asked: Vec::new(),
            logged: Vec::new(),
        };
        if client.in_rounds() {
            return client;
        }
        let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": revision,
            "capabilities": client.capabilities(), "clientInfo": {"name": "matrix", "version": "1"}}});
        let opened = client.send_and_wait(&open);
        // A server may speak an older revision of this era only.
        let agreed = REVISIONS
            .into_iter()
            .find(|known| opened["result"]["protocolVersion"] == *known);
        client.revision = agreed
            .filter(|agreed| *agreed <= revision)
            .expect("a revision");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn in_rounds(&self) -> bool {
        self.revision == NEWEST
    }

    fn capabilities(&self) -> Value {
        match self.capability {
            Capability::None => json!({}),
            Capability::Form if self.revision == "2025-06-18" => json!({"elicitation": {}}),
            Capability::Form => json!({"elicitation": {"form": {}}}),
            Capability::Both => json!({"elicitation": {"form": {}, "url": {}}}),
        }
    }

    fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string(), frame);
    }

    /// Sends a message as this text. `frame` contains the members that an HTTP client repeats in headers.
    fn send_text(&mut self, text: &str, frame: &Value) {
        match &mut self.way {
            Way::Stdio(gateway) => {
                writeln!(gateway.stdin.as_mut().unwrap(), "{text}").unwrap();
            }
            Way::Http(http) => http.send(text, frame, self.revision),
        }
    }

    fn next_frame(&self) -> Value {
        match &self.way {
            Way::Stdio(gateway) => gateway.next(),
            Way::Http(http) => http.from.recv_timeout(PATIENCE).expect("a message"),
        }
    }

    fn send_and_wait(&mut self, frame: &Value) -> Value {
        self.send(frame);
        if let Way::Http(http) = &mut self.way
            && frame["method"] == "initialize"
        {
            // The first message is the session's id.
            let named = http.from.recv_timeout(PATIENCE).expect("a session");
            http.session = named["session"].as_str().map(str::to_owned);
        }
        loop {
            let told = self.next_frame();
            if told["id"] == frame["id"] && told["method"].is_null() {
                return told;
            }
        }
    }

    /// Returns the request that calls this tool.
    pub(super) fn call(&mut self, tool: &str, number: u64) -> Value {
        self.next += 1;
        let mut params = json!({"name": tool, "arguments": {"n": number}});
        if self.in_rounds() {
            params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": NEWEST,
                "io.modelcontextprotocol/clientInfo": {"name": "matrix", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities()});
        }
        json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": params})
    }

    /// Makes a call and answers its questions. Returns the result.
    pub(super) fn run(&mut self, tool: &str, number: u64) -> Value {
        let call = self.call(tool, number);
        let id = call["id"].as_u64().unwrap();
        self.run_all(vec![call]).remove(&id).unwrap()
    }

    /// Makes calls at once and answers their questions. Returns the result of each, by its id.
    pub(super) fn run_all(&mut self, calls: Vec<Value>) -> BTreeMap<u64, Value> {
        let count = calls.len();
        let mut sent = HashMap::new();
        for frame in calls {
            self.send(&frame);
            let first = frame["id"].as_u64().unwrap();
            sent.insert(first, Sent { first, frame });
        }
        let mut ended = BTreeMap::new();
        let most = self.next + 20 * u64::try_from(count).unwrap();
        while ended.len() < count {
            assert!(
                self.next < most,
                "asked again and again: {:?}",
                self.asked.last()
            );
            let frame = self.next_frame();
            match frame["method"].as_str() {
                Some("elicitation/create") if self.error.is_some() => {
                    self.asked.push(frame["params"].clone());
                    let error = json!({"code": self.error.take(), "message": "no handler"});
                    self.send(&json!({"jsonrpc": "2.0", "id": frame["id"], "error": error}));
                }
                Some("elicitation/create") => {
                    let result = self.reply(&frame["params"]);
                    self.send(&json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}));
                }
                Some("notifications/message") => {
                    let level = frame["params"]["level"].as_str().unwrap();
                    self.logged.push(level.to_owned());
                }
                Some(_) => {}
                None => {
                    let id = frame["id"].as_u64();
                    let Some(call) = id.and_then(|id| sent.remove(&id)) else {
                        continue;
                    };
                    match self.again(&call, &frame) {
                        Some(again) => {
                            self.send(&again);
                            let id = again["id"].as_u64().unwrap();
                            let first = call.first;
                            sent.insert(
                                id,
                                Sent {
                                    first,
                                    frame: again,
                                },
                            );
                        }
                        None => {
                            ended.insert(call.first, frame);
                        }
                    }
                }
            }
        }
        ended
    }

    /// Returns the same call with the requested answers, if it asked.
    fn again(&mut self, call: &Sent, frame: &Value) -> Option<Value> {
        let mut again = call.frame.clone();
        if frame["result"]["resultType"] == "input_required" {
            assert!(self.in_rounds(), "a pushed client cannot read {frame}");
            let requests = frame["result"]["inputRequests"].as_object();
            let replies = requests.into_iter().flatten();
            let replies = replies.map(|(key, asked)| (key.clone(), self.reply(&asked["params"])));
            again["params"]["inputResponses"] = replies.collect();
            again["params"]["requestState"] = frame["result"]["requestState"].clone();
        } else if frame["error"]["code"] == -32042 {
            for asked in frame["error"]["data"]["elicitations"].as_array().unwrap() {
                self.reply(asked);
            }
        } else {
            return None;
        }
        self.next += 1;
        again["id"] = json!(self.next);
        Some(again)
    }

    /// Answers as the person of this client.
    pub(super) fn reply(&mut self, params: &Value) -> Value {
        self.asked.push(params.clone());
        if let Some(action) = self.instant {
            return json!({"action": action});
        }
        if params["mode"] == "url" {
            assert_eq!(self.capability, Capability::Both, "a link was not declared");
            return json!({"action": "accept"});
        }
        assert_ne!(self.capability, Capability::None, "a form was not declared");
        if self.wrong > 0 {
            self.wrong -= 1;
            let content = if self.alike || self.wrong.is_multiple_of(2) {
                json!({"name": "x", "age": 3})
            } else {
                json!({"age": 36})
            };
            return json!({"action": "accept", "content": content});
        }
        let content = super::content_for(params["message"].as_str().unwrap());
        json!({"action": "accept", "content": content, "x-more": 4, "_meta": {"vendor/y": 3}})
    }

    /// Sends one request, and does not wait for its response.
    pub(super) fn leave(&mut self, frame: &Value) {
        self.send(frame);
    }

    /// Sends one request and returns the response.
    pub(super) fn once(&mut self, frame: &Value) -> Value {
        self.send_and_wait(frame)
    }

    /// Sends a request as this text, and returns the error that it gets.
    pub(super) fn refused(&mut self, text: &str, frame: &Value) -> Value {
        self.send_text(text, frame);
        loop {
            let told = self.next_frame();
            if told["error"].is_object() || told["result"].is_object() {
                return told["error"].clone();
            }
        }
    }

    /// Sets the level of the session's log messages.
    pub(super) fn set_level(&mut self, level: &str) {
        self.next += 1;
        let frame = json!({"jsonrpc": "2.0", "id": self.next, "method": "logging/setLevel", "params": {"level": level}});
        let told = self.send_and_wait(&frame);
        assert_eq!(told["result"], json!({}), "{told}");
    }
}

impl Http {
    /// Sends a message. Each message of the response is passed on as it arrives.
    fn send(&self, text: &str, frame: &Value, revision: &str) {
        let mut head = format!(
            "POST /mcp HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.at,
            self.name,
            text.len()
        );
        let opens = frame["method"] == "initialize";
        if !opens {
            let _ = write!(head, "MCP-Protocol-Version: {revision}\r\n");
        }
        if let Some(session) = &self.session {
            let _ = write!(head, "Mcp-Session-Id: {session}\r\n");
        }
        if revision == NEWEST {
            let (method, name) = (frame["method"].as_str(), frame["params"]["name"].as_str());
            let _ = write!(head, "Mcp-Method: {}\r\n", method.unwrap_or_default());
            let _ = write!(head, "Mcp-Name: {}\r\n", name.unwrap_or_default());
        }
        let mut stream = TcpStream::connect(&self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .write_all(format!("{head}\r\n{text}").as_bytes())
            .unwrap();
        let to = self.to.clone();
        let read = move || read(stream, opens, &to);
        if frame["method"].is_null() || frame["id"].is_null() {
            // The following code may rely on it.
            let _ = read();
        } else {
            thread::spawn(read);
        }
    }
}

/// Passes on every message of a response; first the session's id, if this opens one.
fn read(stream: TcpStream, opens: bool, to: &mpsc::Sender<Value>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut session, mut events) = (Value::Null, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(name) = line.strip_prefix("mcp-session-id:") {
            session = json!(name.trim());
        }
        events |= line.starts_with("content-type: text/event-stream");
    }
    if opens {
        to.send(json!({"session": session})).ok()?;
    }
    if !events {
        let mut body = String::new();
        reader.read_to_string(&mut body).ok()?;
        if let Ok(frame) = serde_json::from_str(&body) {
            to.send(frame).ok()?;
        }
        return Some(());
    }
    for line in reader.lines().map_while(Result::ok) {
        let data = line.strip_prefix("data:").map(str::trim);
        if let Some(frame) = data.and_then(|data| serde_json::from_str(data).ok()) {
            to.send(frame).ok()?;
        }
    }
    Some(())
}
