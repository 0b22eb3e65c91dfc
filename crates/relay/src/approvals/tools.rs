//! The server's tools, requested by the gateway, because a client need not have listed them: if approvers may change
//! arguments of a call, the form's fields come from the tool's schema; and a call that is handed back is a plain result
//! only for a tool without an output schema.

use crate::RelaySettings;
use crate::parts::catalog::Catalog;
use std::time::Duration;

use mcp_elicit_core::wire::frame::Frame;
use mcp_elicit_core::wire::{Id, members, message};
use serde_json::json;
use serde_json::value::RawValue;

use crate::parts::calls::Call;
use crate::parts::timers::Timer;
use crate::{CallId, CallKind, Relay, Timestamp};

/// The time limit for the server's whole list. An approval waits for it, and no person is asked before.
const TIME: Duration = Duration::from_secs(10);

impl Relay {
    /// Requests the server's tools before people are asked about this call.
    pub(crate) fn list_tools_for(&mut self, now: Timestamp, call: CallId) {
        self.list_tools(now);
        self.tool_listing.join(call);
    }

    /// Requests the server's tools when this call is held, if nothing tells whether its tool has an output schema. The
    /// call does not wait for the list: it is held anyway, and what is known counts when it is handed back.
    pub(crate) fn learn_output_schema(&mut self, now: Timestamp, call: CallId) {
        let call = self.calls.get_mut(call);
        let call = call.filter(|call| call.kind() == Some(CallKind::Tool));
        let tool = call.and_then(Call::summary);
        let tool = tool.map(|call| call.target.as_str());
        if tool.is_some_and(|tool| self.catalog.wants_list_for(tool)) && self.may_request_now() {
            self.catalog.list_requested();
            self.list_tools(now);
        }
    }

    /// Returns `true` if the server cannot take a request for the answer to a question of its own. On a pipe, a simple
    /// server asks and reads its next line as the answer.
    fn may_request_now(&self) -> bool {
        self.settings.server_streams
            || self.server.asks_in_results()
            || self.calls.keys(Call::is_upstream).is_empty()
    }

    /// Requests the server's tools, unless that is in progress.
    fn list_tools(&mut self, now: Timestamp) {
        if self.tool_listing.is_running() {
            return;
        }
        let id = self.ask_for_tools(None);
        self.tool_listing.begin(id);
        self.timers.set(now.after(TIME), Timer::ToolsListing);
    }

    fn ask_for_tools(&mut self, cursor: Option<&RawValue>) -> Id {
        let id = self.new_id();
        let mut params = json!({});
        let meta = self
            .server
            .request_meta(&self.client, self.settings.answer_with);
        if let Some(meta) = meta {
            params["_meta"] = meta;
        }
        if let Some(cursor) = cursor {
            params["cursor"] = json!(cursor);
        }
        let params = members::raw_value(&params);
        let frame = message::request(&id, "tools/list", Some(&params));
        self.effects.tell_server(frame, None);
        id
    }

    /// Handles the answer to the gateway's own request for the tools. Returns `true` once it has the whole list.
    pub(crate) fn tools_listed(&mut self, frame: Frame<'_>) -> bool {
        if let Some(result) = frame.result() {
            learn_tools(&mut self.catalog, &self.settings, result);
            let next = members::member(result, "nextCursor");
            let next = next.filter(|next| next.get().starts_with('"'));
            if let Some(cursor) = next.filter(|_| self.tool_listing.may_go_on()) {
                let id = self.ask_for_tools(Some(cursor));
                self.tool_listing.go_on(id);
                return false;
            }
            self.catalog.read_whole();
        }
        true
    }
}

/// Learns from a list of the server's tools.
pub(crate) fn learn_tools(catalog: &mut Catalog, settings: &RelaySettings, result: &RawValue) {
    catalog.learn(result);
    if settings.decisions.is_some() {
        for tool in catalog.learn_facts(result) {
            let tool = settings.masked(&tool);
            tracing::warn!(server = %settings.server, %tool, "the annotations of a tool have changed, which rules may look at");
        }
    }
}
