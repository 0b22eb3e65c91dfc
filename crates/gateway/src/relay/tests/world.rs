//! The world around a relay: peers as values, a record that counts deliveries, a clock that only this file moves.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use crate::relay::{
    Asked, Door, Down, Effect, Event, Moment, Place, QuestionKey, Relay, Settings, Up,
};
use mcp_elicit_core::wire::{Action, Capability, Revision};

pub(super) const ANSWER: &str = r#"{"name":"Ada","age":36}"#;

/// What the tool of the server asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Nothing,
    Form,
    Url,
    /// -32042 before, plain after the visit.
    Visit,
    TwoInSequence,
    TwoAtOnce,
}

/// One record of the store.
pub(super) struct Kept {
    pub(super) asked: Box<Asked>,
    pub(super) key: Option<QuestionKey>,
    pub(super) reply: Option<String>,
    pub(super) deliveries: u32,
    pub(super) ended: bool,
}

/// The server: raw, of one revision, with a tool `ask`.
pub(super) struct Peer {
    pub(super) revision: Revision,
    pub(super) asks: Asks,
    /// Calls that wait for pushed answers: id of the call, answers so far, ids of open questions.
    calls: Vec<(Value, Vec<String>, Vec<u64>)>,
    next: u64,
    visited: bool,
    /// Every answer that reached the server.
    pub(super) answers: Vec<String>,
    pub(super) seen: Vec<Value>,
    pub(super) declared: Capability,
}

pub(super) struct World {
    pub(super) relay: Relay,
    pub(super) now: Moment,
    pub(super) server: Peer,
    pub(super) client: Client,
    pub(super) store: HashMap<String, Kept>,
    pub(super) to_client: VecDeque<(Door, String)>,
    pub(super) to_server: VecDeque<String>,
    /// Events of the record that wait, when it is slow.
    pub(super) events: VecDeque<Event>,
    /// Whether the desk answers at once.
    pub(super) desk: Option<Action>,
    next_record: u64,
    pub(super) restarts: u32,
}

/// The client: raw, of one revision and capability. Collects the results of its calls.
pub(super) struct Client {
    pub(super) revision: Revision,
    pub(super) capability: Capability,
    pub(super) answer: Action,
    pub(super) content: String,
    requests: HashMap<String, Value>,
    next: u64,
    pub(super) results: Vec<(u64, Value)>,
    pub(super) progress: Vec<Value>,
    pub(super) asked: Vec<Value>,
    pub(super) opened: Option<Value>,
    pub(super) endings: HashMap<String, u32>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "age": {"type": "integer", "minimum": 18}}})
}

impl Peer {
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

    fn receive(&mut self, frame: &str) -> Vec<String> {
        let frame: Value = serde_json::from_str(frame).unwrap();
        self.seen.push(frame.clone());
        let id = frame["id"].clone();
        match frame["method"].as_str() {
            Some("initialize") if self.revision < Revision::V2026_07_28 => {
                self.declared =
                    Capability::of_client(&frame["params"]["capabilities"], self.revision);
                vec![json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": self.revision.as_str(),
                    "capabilities": {"tools": {}}, "serverInfo": {"name": "peer", "version": "1"}}}).to_string()]
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
        self.declared = Capability::of_client(capabilities, self.revision);
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

impl Client {
    fn meta(&self) -> Value {
        let mut capabilities = json!({});
        if let Some(elicitation) = self.capability.to_value(self.revision) {
            capabilities["elicitation"] = elicitation;
        }
        json!({
            "io.modelcontextprotocol/protocolVersion": self.revision.as_str(),
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        })
    }

    pub(super) fn open(&mut self) -> String {
        if self.revision == Revision::V2026_07_28 {
            return self
                .request("server/discover", &json!({"_meta": self.meta()}))
                .1;
        }
        let capabilities = self.meta()["io.modelcontextprotocol/clientCapabilities"].clone();
        let params = json!({"protocolVersion": self.revision.as_str(), "capabilities": capabilities,
            "clientInfo": {"name": "raw", "version": "1"}});
        self.request("initialize", &params).1
    }

    pub(super) fn call(&mut self) -> (u64, String) {
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

    fn reply(&self, mode: &str) -> Value {
        match (self.answer, mode) {
            (Action::Accept, "form") => {
                json!({"action": "accept", "content": serde_json::from_str::<Value>(&self.content).unwrap()})
            }
            (action, _) => json!({"action": action.as_str()}),
        }
    }

    /// Takes a frame in; what it sends back.
    fn receive(&mut self, frame: &str) -> Vec<String> {
        let frame: Value = serde_json::from_str(frame).unwrap();
        match frame["method"].as_str() {
            Some("elicitation/create") => {
                let mode = frame["params"]["mode"]
                    .as_str()
                    .unwrap_or("form")
                    .to_owned();
                self.must_have_declared(&mode);
                self.asked.push(frame["params"].clone());
                vec![
                    json!({"jsonrpc": "2.0", "id": frame["id"], "result": self.reply(&mode)})
                        .to_string(),
                ]
            }
            Some("notifications/progress") => {
                self.progress.push(frame["params"].clone());
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
            responses.insert(key, self.reply(&mode));
        }
        params["inputResponses"] = Value::Object(responses);
        params["requestState"] = result["requestState"].clone();
        vec![self.request("tools/call", &params).1]
    }

    /// The text of the only result so far.
    pub(super) fn text(&self) -> String {
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

impl World {
    pub(super) fn new(
        client: Revision,
        capability: Capability,
        server: Revision,
        asks: Asks,
    ) -> Self {
        Self::with(Settings::default(), client, capability, server, asks)
    }

    pub(super) fn with(
        settings: Settings,
        client: Revision,
        capability: Capability,
        server: Revision,
        asks: Asks,
    ) -> Self {
        Self {
            relay: Relay::new(settings),
            now: Moment::from_millis(1_000_000),
            server: Peer {
                revision: server,
                asks,
                calls: Vec::new(),
                next: 0,
                visited: false,
                answers: Vec::new(),
                seen: Vec::new(),
                declared: Capability::NONE,
            },
            client: Client {
                revision: client,
                capability,
                answer: Action::Accept,
                content: ANSWER.to_owned(),
                requests: HashMap::new(),
                next: 0,
                results: Vec::new(),
                progress: Vec::new(),
                asked: Vec::new(),
                opened: None,
                endings: HashMap::new(),
            },
            store: HashMap::new(),
            to_client: VecDeque::new(),
            to_server: VecDeque::new(),
            events: VecDeque::new(),
            desk: Some(Action::Accept),
            next_record: 0,
            restarts: 0,
        }
    }

    /// Opens the session and runs it dry.
    pub(super) fn opened(mut self) -> Self {
        let open = self.client.open();
        self.client_sends(&open);
        self.settle();
        assert!(
            self.client.opened.is_some(),
            "the opening was never answered"
        );
        self
    }

    pub(super) fn call(&mut self) -> u64 {
        let (id, frame) = self.client.call();
        self.client_sends(&frame);
        id
    }

    pub(super) fn client_sends(&mut self, frame: &str) {
        if let Up::Forward(_) = self
            .relay
            .client_frame(self.now, Door::SESSION, frame.as_bytes())
        {
            self.to_server.push_back(frame.to_owned());
        }
        self.effects();
    }

    pub(super) fn server_sends(&mut self, frame: &str) {
        if let Down::Forward { door, .. } =
            self.relay.server_frame(self.now, None, frame.as_bytes())
        {
            self.to_client.push_back((door, frame.to_owned()));
        }
        self.effects();
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.relay.handle(self.now, event);
        self.effects();
    }

    pub(super) fn pass_time(&mut self, by: Duration) {
        self.now = self.now.after(by);
        self.relay.tick(self.now);
        self.effects();
    }

    /// A person answers at the desk; `false` when somebody was first.
    pub(super) fn answer(&mut self, record: &str, action: Action) -> bool {
        let kept = self.store.get_mut(record).unwrap();
        if kept.reply.is_some() || kept.ended {
            return false;
        }
        let content = (action == Action::Accept
            && matches!(
                kept.asked.request,
                mcp_elicit_core::wire::Request::Form { .. }
            ))
        .then_some(ANSWER);
        kept.reply = Some(reply_text(action, content));
        if let Some(question) = kept.key {
            self.events.push_back(Event::Settled { question });
        }
        true
    }

    pub(super) fn open_on_desk(&self) -> Vec<String> {
        let open = |(_, kept): &(&String, &Kept)| {
            kept.reply.is_none() && !kept.ended && kept.asked.place == Place::Desk
        };
        let mut found: Vec<String> = self
            .store
            .iter()
            .filter(open)
            .map(|(id, _)| id.clone())
            .collect();
        found.sort();
        found
    }

    pub(super) fn effects(&mut self) {
        while let Some(effect) = self.relay.effect() {
            match effect {
                Effect::ToClient { door, frame, .. } => self.to_client.push_back((door, frame)),
                Effect::ToServer { frame, .. } => self.to_server.push_back(frame),
                Effect::Record { question, asked } => self.record(question, asked),
                Effect::Settle {
                    question,
                    record,
                    outcome,
                } => {
                    let content = outcome
                        .answers()
                        .map(|answers| answers.to_value().to_string());
                    let kept = self.store.get_mut(&record).unwrap();
                    if kept.reply.is_none() && !kept.ended {
                        kept.reply = Some(reply_text(outcome.action(), content.as_deref()));
                    }
                    self.events.push_back(Event::Settled { question });
                }
                Effect::Take { questions, records } => self.take(questions, &records),
                Effect::End { record, .. } => {
                    let kept = self.store.get_mut(&record).unwrap();
                    kept.ended = true;
                    kept.key = None;
                }
                Effect::Confirm { .. } | Effect::Abandon { .. } => {}
                Effect::Restart => {
                    self.restarts += 1;
                    self.events.push_back(Event::Restarted);
                }
            }
        }
    }

    /// The gateway is killed and started again, its server with it. Only the record stays; whoever called must open a
    /// session and call again.
    pub(super) fn restart(&mut self, settings: Settings) {
        self.relay = Relay::new(settings);
        self.to_client.clear();
        self.to_server.clear();
        self.events.clear();
        for kept in self.store.values_mut() {
            kept.key = None;
        }
        self.server.calls.clear();
        self.server.next = 0;
        self.client.requests.clear();
        self.client.opened = None;
        let open = self.client.open();
        self.client_sends(&open);
        self.settle();
    }

    /// Answers that people gave and that wait to be delivered.
    pub(super) fn undelivered(&self) -> Vec<&str> {
        let waits = |(_, kept): &(&String, &Kept)| {
            kept.reply.is_some() && !kept.ended && kept.deliveries == 0
        };
        let mut found: Vec<&str> = self
            .store
            .iter()
            .filter(waits)
            .map(|(id, _)| id.as_str())
            .collect();
        found.sort_unstable();
        found
    }

    /// The same question of the same call, which nobody waits for since a restart; an answered one first.
    fn left_over(&self, asked: &Asked) -> Option<String> {
        let same = |kept: &Kept| {
            let digest =
                |asked: &Asked| asked.calling.as_ref().map(|calling| calling.digest.clone());
            let said = |asked: &Asked| {
                let params = asked.request.to_raw_params(Revision::LATEST).unwrap();
                params.get().to_owned()
            };
            said(&kept.asked) == said(asked) && digest(&kept.asked) == digest(asked)
        };
        let free = |(_, kept): &(&String, &Kept)| {
            kept.key.is_none() && !kept.ended && kept.deliveries == 0 && same(kept)
        };
        let mut found: Vec<(bool, &String)> = self
            .store
            .iter()
            .filter(free)
            .map(|(id, kept)| (kept.reply.is_none(), id))
            .collect();
        found.sort();
        found.first().map(|(_, id)| (*id).clone())
    }

    fn record(&mut self, question: QuestionKey, asked: Box<Asked>) {
        if let Some(id) = self.left_over(&asked) {
            let kept = self.store.get_mut(&id).unwrap();
            kept.key = Some(question);
            self.events.push_back(Event::Recorded {
                question,
                record: id,
                link: Some("http://inbox/".to_owned()),
                answered: kept.reply.is_some(),
            });
            return;
        }
        self.next_record += 1;
        let id = format!("r{}", self.next_record);
        self.store.insert(
            id.clone(),
            Kept {
                asked,
                key: Some(question),
                reply: None,
                deliveries: 0,
                ended: false,
            },
        );
        self.events.push_back(Event::Recorded {
            question,
            record: id,
            link: Some("http://inbox/".to_owned()),
            answered: false,
        });
    }

    fn take(&mut self, questions: Vec<QuestionKey>, records: &[String]) {
        let free = records.iter().all(|id| {
            self.store[id].reply.is_some()
                && self.store[id].deliveries == 0
                && !self.store[id].ended
        });
        if !free {
            self.events.push_back(Event::NotTaken { questions });
            return;
        }
        let mut replies = Vec::new();
        for (question, id) in questions.into_iter().zip(records) {
            let kept = self.store.get_mut(id).unwrap();
            kept.deliveries += 1;
            replies.push((question, kept.reply.clone().unwrap()));
        }
        self.events.push_back(Event::Taken { replies });
    }

    /// One thing that is under way happens; `false` when nothing is.
    pub(super) fn step(&mut self, which: usize) -> bool {
        let ways = [
            !self.to_client.is_empty(),
            !self.to_server.is_empty(),
            !self.events.is_empty(),
        ];
        let ready: Vec<usize> = (0..3).filter(|at| ways[*at]).collect();
        if ready.is_empty() {
            return false;
        }
        match ready[which % ready.len()] {
            0 => {
                let (_, frame) = self.to_client.pop_front().unwrap();
                for sent in self.client.receive(&frame) {
                    self.client_sends(&sent);
                }
            }
            1 => {
                let frame = self.to_server.pop_front().unwrap();
                for sent in self.server.receive(&frame) {
                    self.server_sends(&sent);
                }
            }
            _ => {
                let event = self.events.pop_front().unwrap();
                self.tell(event);
            }
        }
        true
    }

    /// Runs until nothing is under way; the desk answers what is put there.
    pub(super) fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.step(0) {
                continue;
            }
            let Some(action) = self.desk else { return };
            let Some(record) = self.open_on_desk().first().cloned() else {
                return;
            };
            self.answer(&record, action);
        }
        panic!("the world does not come to rest");
    }
}

fn reply_text(action: Action, content: Option<&str>) -> String {
    match content {
        Some(content) => format!(r#"{{"action":"{action}","content":{content}}}"#),
        None => format!(r#"{{"action":"{action}"}}"#),
    }
}
