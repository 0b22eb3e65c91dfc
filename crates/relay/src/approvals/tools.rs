//! The server's tools, requested by the gateway: if approvers may change arguments of a call, the form's fields come
//! from the tool's schema, and a client need not have listed the tools.

use std::time::Duration;

use mcp_elicit_core::wire::frame::Frame;
use mcp_elicit_core::wire::{Id, members, message};
use serde_json::json;
use serde_json::value::RawValue;

use crate::parts::timers::Timer;
use crate::{CallId, Relay, Timestamp};

/// The time limit for the server's whole list. The call waits for it, and no person is asked before.
const TIME: Duration = Duration::from_secs(10);

impl Relay {
    /// Requests the server's tools before people are asked about this call.
    pub(crate) fn list_tools_for(&mut self, now: Timestamp, call: CallId) {
        if self.tool_listing.join(call) {
            return;
        }
        let id = self.ask_for_tools(None);
        self.tool_listing.begin(id, call);
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

    /// Handles the answer to the gateway's own request for the tools. Returns `false` if it is another answer.
    pub(crate) fn tools_listed(&mut self, now: Timestamp, id: &Id, frame: Frame<'_>) -> bool {
        if !self.tool_listing.awaits(id) {
            return false;
        }
        if let Some(result) = frame.result() {
            self.learn_tools(result);
            let next = members::member(result, "nextCursor");
            let next = next.filter(|next| next.get().starts_with('"'));
            if let Some(cursor) = next.filter(|_| self.tool_listing.may_go_on()) {
                let id = self.ask_for_tools(Some(cursor));
                self.tool_listing.go_on(id);
                return true;
            }
            self.catalog.read_whole();
        }
        self.end_listing(now);
        true
    }

    /// Learns from a list of the server's tools.
    pub(crate) fn learn_tools(&mut self, result: &RawValue) {
        self.catalog.learn(result);
        if self.settings.decisions.is_some() {
            for tool in self.catalog.learn_facts(result) {
                tracing::warn!(server = %self.settings.server, %tool, "the annotations of a tool have changed, which rules may look at");
            }
        }
    }

    /// Ends the request for the tools: people are asked about the calls that waited for it.
    pub(crate) fn end_listing(&mut self, now: Timestamp) {
        let Some(calls) = self.tool_listing.end() else {
            return;
        };
        self.timers.cancel(Timer::ToolsListing);
        for call in calls {
            self.open_approval(now, call);
        }
    }
}
