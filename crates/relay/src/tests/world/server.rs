//! The server of the simulator: raw, of one revision.

use serde_json::{Value, json};

use mcp_elicit_core::wire::{Capability, Revision};

/// The question of the server's tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tests) enum Asks {
    Nothing,
    Form,
    Url,
    /// -32042 first, no question after the visit.
    Visit,
    TwoInSequence,
    TwoAtOnce,
}

/// The server: raw, of one revision, with a tool `ask`.
pub(in crate::tests) struct Peer {
    pub(in crate::tests) revision: Revision,
    pub(in crate::tests) asks: Asks,
    /// The calls that wait for pushed answers: id of the call, answers so far, ids of open questions.
    calls: Vec<(Value, Vec<String>, Vec<u64>)>,
    next: u64,
    visited: bool,
    /// Every answer that reached the server.
    pub(in crate::tests) answers: Vec<String>,
    /// The errors that it got instead of answers.
    pub(in crate::tests) refusals: Vec<String>,
    pub(in crate::tests) seen: Vec<Value>,
    pub(in crate::tests) declared: Capability,
    /// The pages of its list of tools; empty if it refuses to list them.
    pub(in crate::tests) tools: Vec<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "age": {"type": "integer", "minimum": 18}}})
}

impl Peer {
    pub(super) fn new(revision: Revision, asks: Asks) -> Self {
        Self {
            revision,
            asks,
            calls: Vec::new(),
            next: 0,
            visited: false,
            answers: Vec::new(),
            refusals: Vec::new(),
            seen: Vec::new(),
            declared: Capability::NONE,
            tools: Vec::new(),
        }
    }

    /// Restarts the server, which forgets all questions.
    pub(in crate::tests) fn restart(&mut self) {
        self.calls.clear();
        self.next = 0;
    }

    fn question(&self, number: u64) -> Value {
        if self.asks == Asks::Url {
            self.link(number)
        } else {
            let mut params =
                json!({"message": format!("Who? {number}"), "requestedSchema": schema()});
            if self.revision > Revision::V2025_06_18 {
                params["mode"] = json!("form");
            }
            params
        }
    }

    fn link(&self, number: u64) -> Value {
        let mut params = json!({"mode": "url", "message": "Connect", "url": format!("https://example.com/connect/{number}")});
        if self.revision == Revision::V2025_11_25 {
            params["elicitationId"] = json!(format!("e-{number}"));
        }
        params
    }

    fn result(&self, id: &Value, text: &str) -> String {
        let mut result = json!({"content": [{"type": "text", "text": text}]});
        if self.revision == Revision::V2026_07_28 {
            result["resultType"] = json!("complete");
        }
        json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
    }

    pub(in crate::tests) fn receive(&mut self, frame: &str) -> Vec<String> {
        let frame: Value = serde_json::from_str(frame).unwrap();
        self.seen.push(frame.clone());
        let id = frame["id"].clone();
        match frame["method"].as_str() {
            Some("initialize") if self.revision < Revision::V2026_07_28 => {
                self.declared =
                    Capability::from_client(&frame["params"]["capabilities"], self.revision);
                vec![json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": self.revision.as_str(),
                    "capabilities": {"tools": {}, "logging": {}}, "serverInfo": {"name": "peer", "version": "1"}}}).to_string()]
            }
            Some("server/discover") if self.revision == Revision::V2026_07_28 => {
                vec![json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "peer", "version": "1"}}}}).to_string()]
            }
            Some("tools/call") if self.revision == Revision::V2026_07_28 => {
                self.call_in_rounds(&id, &frame["params"])
            }
            Some("tools/call") => self.call_pushed(&id),
            Some("tools/list") if !self.tools.is_empty() => {
                let page = frame["params"]["cursor"].as_str().unwrap_or("0");
                let page: usize = page.parse().unwrap();
                let mut result = json!({"tools": self.tools[page]});
                if page + 1 < self.tools.len() {
                    result["nextCursor"] = json!((page + 1).to_string());
                }
                if self.revision == Revision::V2026_07_28 {
                    result["resultType"] = json!("complete");
                    let meta = &frame["params"]["_meta"];
                    assert!(meta["io.modelcontextprotocol/protocolVersion"].is_string());
                }
                vec![json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()]
            }
            Some(method) if !id.is_null() => {
                let error = json!({"code": -32601, "message": format!("no {method}")});
                vec![json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()]
            }
            Some(_) => Vec::new(),
            None => self.answered(&frame),
        }
    }

    fn call_in_rounds(&mut self, id: &Value, params: &Value) -> Vec<String> {
        let capabilities = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        self.declared = Capability::from_client(capabilities, self.revision);
        let state = params["requestState"].as_str().unwrap_or("0");
        let round: u64 = state.parse().unwrap();
        let keys: &[&str] = if self.asks == Asks::TwoAtOnce {
            &["a", "b"]
        } else {
            &["a"]
        };
        if round > 0 {
            for key in keys {
                let answer = &params["inputResponses"][key];
                if answer["action"] == "accept"
                    || answer["action"] == "decline"
                    || answer["action"] == "cancel"
                {
                    self.answers.push(answer.to_string());
                }
            }
        }
        let rounds = match self.asks {
            Asks::Nothing => 0,
            Asks::TwoInSequence => 2,
            _ => 1,
        };
        if round >= rounds {
            return vec![self.result(
                id,
                &self.verdict(&[params["inputResponses"]["a"].to_string()]),
            )];
        }
        let requests: serde_json::Map<String, Value> = keys
            .iter()
            .enumerate()
            .map(|(at, key)| {
                let number = round * 10 + at as u64;
                let params = if self.asks == Asks::Visit {
                    self.link(number)
                } else {
                    self.question(number)
                };
                (
                    (*key).to_owned(),
                    json!({"method": "elicitation/create", "params": params}),
                )
            })
            .collect();
        let result = json!({"resultType": "input_required", "requestState": (round + 1).to_string(), "inputRequests": requests});
        vec![json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()]
    }

    fn verdict(&self, answers: &[String]) -> String {
        let last = answers
            .last()
            .and_then(|answer| serde_json::from_str::<Value>(answer).ok())
            .unwrap_or_default();
        match (self.asks, last["action"].as_str()) {
            (Asks::Nothing, _) => "plain".to_owned(),
            (_, Some("accept")) => {
                format!("accept:{}", last["content"]["name"].as_str().unwrap_or("-"))
            }
            (_, Some(action)) => action.to_owned(),
            (_, None) => "error".to_owned(),
        }
    }

    fn call_pushed(&mut self, id: &Value) -> Vec<String> {
        match self.asks {
            Asks::Nothing => vec![self.result(id, "plain")],
            Asks::Visit if self.visited => vec![self.result(id, "accept:-")],
            Asks::Visit => {
                self.visited = true;
                let error = json!({"code": -32042, "message": "visit", "data": {"elicitations": [self.link(1)]}});
                vec![json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()]
            }
            asks => {
                let count = if asks == Asks::TwoAtOnce { 2 } else { 1 };
                let asked: Vec<u64> = (0..count).map(|at| self.next + at + 1).collect();
                self.next += count;
                self.calls.push((id.clone(), Vec::new(), asked.clone()));
                asked.into_iter().map(|number| self.push(number)).collect()
            }
        }
    }

    fn push(&self, number: u64) -> String {
        let params = self.question(number);
        json!({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params})
            .to_string()
    }

    fn answered(&mut self, frame: &Value) -> Vec<String> {
        let id = frame["id"].as_u64().unwrap_or_default();
        let Some(at) = self
            .calls
            .iter()
            .position(|(_, _, open)| open.contains(&id))
        else {
            panic!("the server got an answer to nothing: {frame}");
        };
        if frame["result"].is_object() {
            self.answers.push(frame["result"].to_string());
        } else {
            self.refusals.push(frame["error"].to_string());
        }
        let (call, answers, open) = &mut self.calls[at];
        answers.push(frame["result"].to_string());
        open.retain(|known| *known != id);
        if !open.is_empty() {
            return Vec::new();
        }
        if self.asks == Asks::TwoInSequence && answers.len() < 2 {
            self.next += 1;
            open.push(self.next);
            let number = self.next;
            return vec![self.push(number)];
        }
        let (call, answers) = (call.clone(), answers.clone());
        self.calls.remove(at);
        vec![self.result(&call, &self.verdict(&answers))]
    }
}
