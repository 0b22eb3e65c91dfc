//! The client of the simulator: raw, of one revision and capability.

use std::collections::HashMap;

use serde_json::{Value, json};

use mcp_elicit_core::wire::{Action, Capability, Revision};

use super::ANSWER;

/// The client: raw, of one revision and capability. Collects the results of its calls.
pub(in crate::tests) struct Client {
    pub(in crate::tests) revision: Revision,
    pub(in crate::tests) capability: Capability,
    pub(in crate::tests) answer: Action,
    pub(in crate::tests) content: String,
    /// The number of wrong answers to forms before the right one.
    pub(in crate::tests) wrong_answers: u32,
    /// The text of its answers to every question, in place of a person's: `result` or `error`, as a member.
    pub(in crate::tests) program: Option<(&'static str, Value)>,
    /// `true` if it declares tasks: when it opens a session, or in each request.
    pub(in crate::tests) has_tasks: bool,
    requests: HashMap<String, Value>,
    next: u64,
    pub(in crate::tests) results: Vec<(u64, Value)>,
    pub(in crate::tests) progress: Vec<Value>,
    pub(in crate::tests) asked: Vec<Value>,
    /// The requests that were cancelled.
    pub(in crate::tests) cancelled: Vec<Value>,
    pub(in crate::tests) opened: Option<Value>,
    pub(in crate::tests) endings: HashMap<String, u32>,
}

impl Client {
    pub(super) fn new(revision: Revision, capability: Capability) -> Self {
        Self {
            revision,
            capability,
            answer: Action::Accept,
            content: ANSWER.to_owned(),
            wrong_answers: 0,
            program: None,
            has_tasks: false,
            requests: HashMap::new(),
            next: 0,
            results: Vec::new(),
            progress: Vec::new(),
            asked: Vec::new(),
            cancelled: Vec::new(),
            opened: None,
            endings: HashMap::new(),
        }
    }

    /// Ends the session, with all requests in progress.
    pub(super) fn restart(&mut self) {
        self.requests.clear();
        self.opened = None;
    }

    pub(in crate::tests) fn meta(&self) -> Value {
        let mut capabilities = json!({});
        if let Some(elicitation) = self.capability.to_value(self.revision) {
            capabilities["elicitation"] = elicitation;
        }
        if self.has_tasks && self.revision == Revision::V2026_07_28 {
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        json!({
            "io.modelcontextprotocol/protocolVersion": self.revision.as_str(),
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        })
    }

    pub(in crate::tests) fn open(&mut self) -> String {
        if self.revision == Revision::V2026_07_28 {
            return self
                .request("server/discover", &json!({"_meta": self.meta()}))
                .1;
        }
        let mut capabilities = self.meta()["io.modelcontextprotocol/clientCapabilities"].clone();
        if self.has_tasks {
            capabilities["tasks"] = json!({"requests": {"elicitation": {"create": {}}}});
        }
        let params = json!({"protocolVersion": self.revision.as_str(), "capabilities": capabilities,
            "clientInfo": {"name": "raw", "version": "1"}});
        self.request("initialize", &params).1
    }

    pub(in crate::tests) fn call(&mut self) -> (u64, String) {
        let mut params = json!({"name": "ask", "arguments": {"n": 1}, "_meta": {"progressToken": self.next + 100}});
        if self.revision == Revision::V2026_07_28 {
            params["_meta"] = self.meta();
            params["_meta"]["progressToken"] = json!(self.next + 100);
        }
        self.request("tools/call", &params)
    }

    fn request(&mut self, method: &str, params: &Value) -> (u64, String) {
        self.next += 1;
        let frame = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.requests.insert(self.next.to_string(), frame.clone());
        (self.next, frame.to_string())
    }

    fn reply(&mut self, mode: &str) -> Value {
        if mode == "form" && self.wrong_answers > 0 {
            self.wrong_answers -= 1;
            return json!({"action": "accept", "content": {"name": "Ada", "age": 3}});
        }
        match (self.answer, mode) {
            (Action::Accept, "form") => {
                json!({"action": "accept", "content": serde_json::from_str::<Value>(&self.content).unwrap()})
            }
            (action, _) => json!({"action": action.as_str()}),
        }
    }

    /// Processes a frame. Returns the frames that it sends back.
    pub(super) fn receive(&mut self, frame: &str) -> Vec<String> {
        let frame: Value = serde_json::from_str(frame).unwrap();
        match frame["method"].as_str() {
            Some("elicitation/create") => {
                let mode = frame["params"]["mode"]
                    .as_str()
                    .unwrap_or("form")
                    .to_owned();
                self.must_have_declared(&mode);
                self.asked.push(frame["params"].clone());
                if let Some((member, value)) = &self.program {
                    let mut response = json!({"jsonrpc": "2.0", "id": frame["id"]});
                    response[*member] = value.clone();
                    return vec![response.to_string()];
                }
                vec![
                    json!({"jsonrpc": "2.0", "id": frame["id"], "result": self.reply(&mode)})
                        .to_string(),
                ]
            }
            Some("notifications/progress") => {
                self.progress.push(frame["params"].clone());
                Vec::new()
            }
            Some("notifications/cancelled") => {
                self.cancelled.push(frame["params"].clone());
                Vec::new()
            }
            Some(_) => Vec::new(),
            None => self.finished(&frame),
        }
    }

    fn must_have_declared(&self, mode: &str) {
        let mode = if mode == "url" {
            mcp_elicit_core::wire::Mode::Url
        } else {
            mcp_elicit_core::wire::Mode::Form
        };
        assert!(
            self.capability.has(mode),
            "asked in a mode that was not declared"
        );
        assert!(
            self.revision.has_mode(mode),
            "asked in a mode that the revision does not have"
        );
    }

    fn finished(&mut self, frame: &Value) -> Vec<String> {
        let id = frame["id"].to_string();
        *self.endings.entry(id.clone()).or_default() += 1;
        let Some(request) = self.requests.get(&id).cloned() else {
            panic!("an answer to no request: {frame}")
        };
        let result = &frame["result"];
        if self.revision < Revision::V2026_07_28 {
            assert_ne!(
                result["resultType"], "input_required",
                "a pushed client cannot read this: {frame}"
            );
        }
        if request["method"] == "server/discover" || request["method"] == "initialize" {
            self.opened = Some(frame.clone());
            if self.revision < Revision::V2026_07_28 {
                return vec![
                    json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
                ];
            }
            return Vec::new();
        }
        if result["resultType"] == "input_required" {
            return self.retry(&request, result);
        }
        if frame["error"]["code"] == -32042 {
            // The client visits by itself and calls again.
            for asked in frame["error"]["data"]["elicitations"].as_array().unwrap() {
                self.must_have_declared("url");
                self.asked.push(asked.clone());
            }
            return vec![self.request("tools/call", &request["params"]).1];
        }
        self.results
            .push((frame["id"].as_u64().unwrap(), frame.clone()));
        Vec::new()
    }

    fn retry(&mut self, request: &Value, result: &Value) -> Vec<String> {
        let mut params = request["params"].clone();
        let mut responses = serde_json::Map::new();
        for (key, asked) in result["inputRequests"]
            .as_object()
            .cloned()
            .unwrap_or_default()
        {
            let mode = asked["params"]["mode"]
                .as_str()
                .unwrap_or("form")
                .to_owned();
            self.must_have_declared(&mode);
            self.asked.push(asked["params"].clone());
            match &self.program {
                // It has nothing to say.
                Some((_, Value::Null)) => {}
                Some((_, value)) => drop(responses.insert(key, value.clone())),
                None => drop(responses.insert(key, self.reply(&mode))),
            }
        }
        params["inputResponses"] = Value::Object(responses);
        params["requestState"] = result["requestState"].clone();
        vec![self.request("tools/call", &params).1]
    }

    /// Returns the text of the only result so far.
    pub(in crate::tests) fn text(&self) -> String {
        match self.results.last() {
            Some((_, frame)) if frame["error"].is_object() => {
                format!("error {}", frame["error"]["code"])
            }
            Some((_, frame)) => frame["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or("-")
                .to_owned(),
            None => "nothing".to_owned(),
        }
    }
}
