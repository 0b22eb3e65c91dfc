//! Servers of the pushed era (2025-06-18, 2025-11-25): their pushed questions, and requests of the other era to them.

use std::ops::Range;

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::spelling::has_same_letters;
use mcp_elicit_core::wire::{
    ElicitRequest, Frame, FramePart, Id, Revision, SessionVersion, WireError, meta,
};
use serde_json::{Value, json};

use super::peer_info::bounded_info;
use super::server::ServerEra;
use super::{Server, declared_in};
use crate::asking_frames::asks_in_rounds;
use crate::call_start::{Carried, Start};
use crate::frame_edit::{self, ErrorResponse, Splice};
use crate::parts::asks::Origin;
use crate::parts::indexed_frame::IndexedFrame;
use crate::{CallId, CallKind, ClientForward, ClientFrame, Relay, Timestamp};

/// A server of this era: it has a session, opened with `initialize`.
pub(super) struct PushedServer {
    revision: Revision,
    /// `InitializeResult`, JSON.
    result: String,
    /// Its description of itself, JSON.
    info: Option<String>,
    /// `true` if calls of its tools may become tasks.
    has_tasks: bool,
}

impl PushedServer {
    /// Creates a server that opened a session of this revision with this `InitializeResult` (JSON).
    pub(super) fn new(revision: Revision, result: String) -> Self {
        let read: Option<Value> = serde_json::from_str(&result).ok();
        let info = read.as_ref().and_then(|read| {
            read.get("serverInfo")
                .map(|info| bounded_info(&info.to_string()))
        });
        let has_tasks = read.is_some_and(|read| {
            let tasks = read.pointer("/capabilities/tasks/requests/tools/call");
            tasks.is_some_and(Value::is_object)
        });
        Self {
            revision,
            result,
            info,
            has_tasks,
        }
    }

    /// Returns the session's revision.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns `serverInfo` as JSON.
    pub(super) fn info(&self) -> Option<&str> {
        self.info.as_deref()
    }

    fn result(&self) -> Value {
        serde_json::from_str(&self.result).unwrap_or_default()
    }

    /// Returns `true` if it declared logging.
    pub(super) fn has_logging(&self) -> bool {
        self.result()["capabilities"]["logging"].is_object()
    }

    /// Returns its `InitializeResult` for a client of this version.
    pub(super) fn initialize_result(&self, version: SessionVersion) -> Value {
        let mut result = self.result();
        result["protocolVersion"] = json!(version.as_str().min(self.revision.as_str()));
        result
    }

    /// Returns the `DiscoverResult` for a client of the other era.
    pub(super) fn discover_result(&self) -> Value {
        let found = self.result();
        let mut made = json!({
            "resultType": "complete",
            "supportedVersions": [Revision::V2026_07_28.as_str(), self.revision.as_str()],
            "capabilities": without_subscriptions(found.get("capabilities")),
            "ttlMs": 0,
            "cacheScope": "private",
        });
        if let Some(instructions) = found.get("instructions") {
            made["instructions"] = instructions.clone();
        }
        if let Some(info) = found.get("serverInfo") {
            made["_meta"] = json!({meta::SERVER_INFO: info});
        }
        made
    }
}

/// The capabilities that a client of 2026-07-28 uses through `subscriptions/listen`.
const SUBSCRIBED: [(&str, &str); 4] = [
    ("tools", "listChanged"),
    ("prompts", "listChanged"),
    ("resources", "listChanged"),
    ("resources", "subscribe"),
];

/// Returns a session's capabilities for a client of the other era. Subscriptions are not bridged, and a client may refuse to
/// start if it cannot subscribe to what is declared.
fn without_subscriptions(capabilities: Option<&Value>) -> Value {
    let mut all = capabilities.cloned().unwrap_or_else(|| json!({}));
    for (feature, member) in SUBSCRIBED {
        if let Some(declared) = all.get_mut(feature).and_then(Value::as_object_mut) {
            declared.retain(|name, _| name != member);
        }
    }
    all
}

/// The rules of this era's servers.
impl Server {
    /// Returns `true` for a server that has agreed to ask with `elicitation/create` (2025-11-25, elicitation): no
    /// result, and no status of a task, may contain a question.
    pub(crate) fn must_not_ask_in_results(&self) -> bool {
        self.pushes_questions()
    }

    /// Returns `true` for a server that also pushes the questions of a task after its call has ended (2025-11-25,
    /// tasks).
    pub(crate) fn pushes_questions_of_tasks(&self) -> bool {
        self.pushes_questions()
    }

    /// Returns `true` if a client of 2025-11-25 can be told of tasks that the server does not have.
    pub(crate) fn can_be_given_tasks(&self) -> bool {
        match &self.0 {
            ServerEra::Pushed(server) => {
                server.revision == Revision::V2025_11_25 && !server.has_tasks
            }
            ServerEra::Rounds(_) => true,
            ServerEra::Unknown
            | ServerEra::Probing(_)
            | ServerEra::Unusable(_)
            | ServerEra::Gone => false,
        }
    }

    /// Returns `true` if a server with an open session answers in the form of 2026-07-28: it asks, or has begun a task
    /// that may ask. That revision was not agreed on, so neither the client nor the gateway would handle the answer as
    /// intended.
    pub(crate) fn asks_in_other_revision(&self, frame: Frame<'_>) -> bool {
        self.must_not_ask_in_results() && asks_in_rounds(frame)
    }
}

impl Relay {
    /// Handles a question that the server pushed.
    pub(crate) fn pushed_question(
        &mut self,
        now: Timestamp,
        via: Option<CallId>,
        id: &Id,
        frame: Frame<'_>,
    ) {
        if self.asks.by_server_id(id).is_some() {
            // Answers and refusals of two questions with one id would be indistinguishable.
            if let Some(left_out) = self.settings.reports.next(now) {
                tracing::warn!(server = %self.settings.server, left_out, "dropped a question under the id of one that is open");
            }
            return;
        }
        let revision = self.server.revision_or_latest();
        let params = match frame.part(FramePart::Params) {
            Some(params) => Members::read_text(params, "params"),
            None => Err(WireError::Missing { member: "params" }),
        };
        let request = params
            .as_ref()
            .map_err(WireError::clone)
            .and_then(|params| ElicitRequest::from_members(params, revision));
        let mode = request.as_ref().ok().map(ElicitRequest::mode);
        let in_dialog =
            mode.is_some_and(|mode| self.client.shown(self.settings.answer_with).has(mode));
        let attribution = self.calls.attribute(via, in_dialog);
        if let Ok(request) = &request {
            self.settings.eras.saw_pushed();
            self.seen_asking(&attribution.candidates(), request.mode());
        }
        let origin = Origin::Pushed { id: id.clone() };
        let asked = request
            .map_err(|defect| ErrorResponse::fault(PeerFault::from(defect), revision))
            .and_then(|request| {
                self.open_ask(
                    now,
                    attribution,
                    origin,
                    request,
                    Some(frame),
                    params.as_ref().ok(),
                )
            });
        if let Err(refusal) = asked {
            self.effects.tell_server(refusal.to_response(id), None);
        }
    }

    /// Sends a request of a rounds client to a pushed server.
    pub(super) fn rounds_to_pushed(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
        carried: Carried,
    ) -> ClientForward {
        if method == "subscriptions/listen" {
            let why = "the server has a pushed session: subscriptions are not bridged to it";
            return self.effects.reject(frame, &ErrorResponse::new(-32601, why));
        }
        if method == "tasks/update" {
            let why = "the server has a pushed session, in which tasks do not ask: there is no `tasks/update`";
            return self.effects.reject(frame, &ErrorResponse::new(-32601, why));
        }
        let changed = match without_rounds_members(*frame) {
            Ok(changed) => changed,
            Err(defect) => {
                return self
                    .effects
                    .reject(frame, &ErrorResponse::new(-32602, defect.to_string()));
            }
        };
        let capability = declared_in(*frame);
        let start = Start::new(CallKind::of_method(method), capability);
        self.start(frame, start.changed(changed).carrying(carried))
    }
}

/// The members of `_meta` with which a request of the rounds era describes itself.
const OF_ROUNDS: [&str; 4] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
];

/// Returns the request without the members of the rounds era; `None` if it has none. A server of both eras with an open
/// session would otherwise answer it as one of the rounds era, and ask in its result.
fn without_rounds_members(frame: Frame<'_>) -> Result<Option<IndexedFrame>, WireError> {
    let mut changed = None;
    let index = frame.index();
    let object = |range: &&Range<usize>| frame.text()[range.start..].starts_with('{');
    if let Some(range) = index.meta.as_ref().filter(object) {
        let all = Members::read_text(&frame.text()[range.clone()], "_meta")?;
        let is_of_rounds = |name: &str| OF_ROUNDS.iter().any(|known| has_same_letters(name, known));
        if all.iter().any(|(name, _)| is_of_rounds(name)) {
            let left = all.iter().filter(|(name, _)| !is_of_rounds(name));
            let left: Vec<String> = left
                .map(|(name, value)| format!("{}:{}", members::raw_text(name), value.get()))
                .collect();
            let left = format!("{{{}}}", left.join(","));
            let splice = Splice::new(range.clone(), left);
            changed = Some(IndexedFrame::changed(frame, &[splice]));
        }
    }
    if index.request_state.is_none() && index.input_responses.is_none() {
        return Ok(changed);
    }
    let frame = changed.as_ref().map_or(frame, IndexedFrame::frame);
    let (Some(params), Some(range)) = (frame.params(), frame.range(FramePart::Params)) else {
        return Ok(changed);
    };
    let without_state = Members::read(params, "params")?.with("requestState", None);
    let params = Members::read(&without_state, "params")?.with("inputResponses", None);
    let text = frame_edit::spliced(frame.text(), range, params.get());
    let read = IndexedFrame::read(text);
    read.map(Some)
        .map_err(|_| WireError::NotObject { location: "params" })
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::FrameIndex;

    use super::*;

    fn sent(params: &str) -> String {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#);
        let index = FrameIndex::at(text.as_bytes()).unwrap();
        let changed = without_rounds_members(Frame::of_text(&text, &index)).unwrap();
        let changed = changed.map_or(text, IndexedFrame::into_text);
        let index = FrameIndex::at(changed.as_bytes()).unwrap();
        changed[index.params.unwrap()].to_owned()
    }

    #[test]
    fn a_pushed_server_gets_nothing_that_only_requests_of_the_rounds_era_have() {
        for (before, after) in [
            (r#"{"name":"t"}"#, r#"{"name":"t"}"#),
            (
                r#"{"name":"t","_meta":null}"#,
                r#"{"name":"t","_meta":null}"#,
            ),
            (
                r#"{"name":"t","_meta":{ "progressToken":1 }}"#,
                r#"{"name":"t","_meta":{ "progressToken":1 }}"#,
            ),
            (
                r#"{"_meta":{"progressToken":12345678901234567890,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/related-task":{"taskId":"t"}},"n":1e-7}"#,
                r#"{"_meta":{"progressToken":12345678901234567890,"io.modelcontextprotocol/related-task":{"taskId":"t"}},"n":1e-7}"#,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28","IO.modelcontextprotocol/client_info":5,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}}"#,
                r#"{"_meta":{}}"#,
            ),
            (
                r#"{"requestState":"s","name":"t","inputResponses":{"a":{"action":"accept"}},"_meta":{"io.modelcontextprotocol/clientInfo":{}}}"#,
                r#"{"name":"t","_meta":{}}"#,
            ),
        ] {
            assert_eq!(sent(before), after, "{before}");
        }
    }
}
