//! Servers of the pushed era (2025-06-18, 2025-11-25): questions that they push, and requests of the other era for them.

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::wire::{ElicitRequest, Frame, Id, Revision, WireError, meta};
use serde_json::{Value, json};

use crate::asks::Origin;
use crate::call_start::{Carried, Start};
use crate::frame_edit::ErrorResponse;
use crate::{CallId, CallKind, ClientForward, ClientFrame, Relay, Timestamp};

/// A server of this era: it has a session, opened with `initialize`.
pub(super) struct PushedServer {
    revision: Revision,
    /// `InitializeResult`, JSON.
    result: String,
    /// Its description of itself, JSON.
    info: Option<String>,
}

impl PushedServer {
    /// A server that opened a session of this revision with this `InitializeResult`, JSON.
    pub(super) fn new(revision: Revision, result: String) -> Self {
        let read: Option<Value> = serde_json::from_str(&result).ok();
        let info = read.and_then(|read| read.get("serverInfo").map(Value::to_string));
        Self {
            revision,
            result,
            info,
        }
    }

    /// Returns the revision spoken with it.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// `serverInfo`, JSON.
    pub(super) fn info(&self) -> Option<&str> {
        self.info.as_deref()
    }

    fn result(&self) -> Value {
        serde_json::from_str(&self.result).unwrap_or_default()
    }

    /// Returns whether it declared that it logs.
    pub(super) fn has_logging(&self) -> bool {
        self.result()["capabilities"]["logging"].is_object()
    }

    /// Returns its `InitializeResult` for a client with which this revision is spoken.
    pub(super) fn initialize_result(&self, spoken: Revision) -> Value {
        let mut result = self.result();
        result["protocolVersion"] = json!(spoken.min(self.revision).as_str());
        result
    }

    /// Returns the `DiscoverResult` for a client of the other era.
    pub(super) fn discover_result(&self) -> Value {
        let found = self.result();
        let mut made = json!({
            "resultType": "complete",
            "supportedVersions": [Revision::V2026_07_28.as_str(), self.revision.as_str()],
            "capabilities": found.get("capabilities").cloned().unwrap_or_else(|| json!({})),
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

impl Relay {
    /// The server pushed a question.
    pub(crate) fn pushed_question(
        &mut self,
        now: Timestamp,
        via: Option<CallId>,
        id: &Id,
        frame: Frame<'_>,
    ) {
        if self.asks.by_server_id(id).is_some() {
            // An answer could not be told from the other's, nor could a refusal.
            tracing::warn!(server = %self.settings.server, "dropped a question under the id of one that is open");
            return;
        }
        let revision = self.server.revision_or_latest();
        let params = frame.params();
        let request = match params {
            Some(params) => ElicitRequest::parse(params, revision),
            None => Err(WireError::Missing { member: "params" }),
        };
        let attribution = self.attribute(via, request.as_ref().ok().map(ElicitRequest::mode));
        if let Ok(request) = &request {
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
                    Some(frame.text()),
                    params,
                )
            });
        if let Err(refusal) = asked {
            self.tell_server(refusal.to_response(id), None);
        }
    }

    /// A request of a rounds client for a pushed server.
    pub(crate) fn rounds_to_pushed(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
        carried: Carried,
    ) -> ClientForward {
        if method == "subscriptions/listen" {
            let why = "the server has a pushed session: subscriptions are not bridged to it";
            return self.reject(frame, &ErrorResponse::new(-32601, why));
        }
        let (capability, _) = self.rounds_capability(*frame);
        let start = Start::new(CallKind::of_method(method), capability);
        self.start(frame, start.carrying(carried))
    }
}
