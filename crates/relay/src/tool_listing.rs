//! The server's tools, asked for by the gateway: where approvers may change arguments of a call, their fields are made of the tool's schema,
//! and a client need not have listed the tools.

use std::time::Duration;

use mcp_elicit_core::wire::frame::Frame;
use mcp_elicit_core::wire::{Id, members, message};
use serde_json::json;
use serde_json::value::RawValue;

use crate::timers::Timer;
use crate::{CallId, Relay, Timestamp};

/// The time that a server may take for its whole list. The call waits for it, and nobody is asked before.
const TIME: Duration = Duration::from_secs(10);
/// The most pages that are asked for.
const PAGES: usize = 50;

/// The gateway's own request for the tools, while it runs.
#[derive(Default)]
pub(crate) struct ToolListing {
    running: Option<Running>,
}

struct Running {
    /// The id of the request for the page that is awaited.
    id: Id,
    pages: usize,
    /// The calls that wait for it.
    calls: Vec<CallId>,
}

impl Relay {
    /// Asks the server for its tools before people are asked about this call.
    pub(crate) fn list_tools_for(&mut self, now: Timestamp, call: CallId) {
        if let Some(running) = &mut self.tool_listing.running {
            running.calls.push(call);
            return;
        }
        let id = self.ask_for_tools(None);
        self.tool_listing.running = Some(Running {
            id,
            pages: 1,
            calls: vec![call],
        });
        self.timers.set(now.after(TIME), Timer::ToolsListing);
    }

    fn ask_for_tools(&mut self, cursor: Option<&RawValue>) -> Id {
        let id = self.new_id();
        let mut params = json!({});
        if let Some(meta) = self.own_request_meta() {
            params["_meta"] = meta;
        }
        if let Some(cursor) = cursor {
            params["cursor"] = json!(cursor);
        }
        let params = members::raw_value(&params);
        let frame = message::request(&id, "tools/list", Some(&params));
        self.tell_server(frame, None);
        id
    }

    /// Takes the answer to the gateway's own request for the tools. `false` where it is another answer.
    pub(crate) fn tools_listed(&mut self, now: Timestamp, id: &Id, frame: Frame<'_>) -> bool {
        let pages = match &self.tool_listing.running {
            Some(running) if running.id == *id => running.pages,
            _ => return false,
        };
        if let Some(result) = frame.result() {
            self.learn_tools(result);
            let next = members::member(result, "nextCursor");
            let next = next.filter(|next| next.get().starts_with('"'));
            if let Some(cursor) = next.filter(|_| pages < PAGES) {
                let id = self.ask_for_tools(Some(cursor));
                if let Some(running) = &mut self.tool_listing.running {
                    running.id = id;
                    running.pages += 1;
                }
                return true;
            }
            self.catalog.set_whole();
        }
        self.end_listing(now);
        true
    }

    /// Ends the list of tools that was asked for under this id; the server's answer to it cannot be read. `false` where none was.
    pub(crate) fn listing_ended(&mut self, now: Timestamp, id: &Id) -> bool {
        let running = self.tool_listing.running.as_ref();
        let is_asked = running.is_some_and(|running| running.id == *id);
        if is_asked {
            self.end_listing(now);
        }
        is_asked
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

    /// The list is there, or will not come: people are asked about the calls that waited for it.
    pub(crate) fn end_listing(&mut self, now: Timestamp) {
        let Some(running) = self.tool_listing.running.take() else {
            return;
        };
        self.timers.cancel(Timer::ToolsListing);
        for call in running.calls {
            self.open_approval(now, call);
        }
    }
}
