//! The gateway's own request for the server's tools, and the calls that wait for it.

use mcp_elicit_core::wire::Id;

use crate::CallId;

/// The most pages that are requested.
const PAGES: usize = 50;

/// The gateway's own request for the tools.
#[derive(Default)]
pub(crate) struct ToolListing {
    running: Option<Running>,
}

struct Running {
    /// The id of the current page's request.
    id: Id,
    pages: usize,
    /// The calls that wait for it.
    calls: Vec<CallId>,
}

impl ToolListing {
    /// Makes the call wait for the list, if it is being requested.
    pub(crate) fn join(&mut self, call: CallId) {
        if let Some(running) = &mut self.running {
            running.calls.push(call);
        }
    }

    /// Begins with the first page, requested under this id. No call waits for it yet.
    pub(crate) fn begin(&mut self, id: Id) {
        self.running = Some(Running {
            id,
            pages: 1,
            calls: Vec::new(),
        });
    }

    /// Returns `true` while the list is being requested.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Returns `true` if a page is awaited under this id.
    pub(crate) fn awaits(&self, id: &Id) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.id == *id)
    }

    /// Returns `true` if one more page may be requested.
    pub(crate) fn may_go_on(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.pages < PAGES)
    }

    /// Continues with the next page, requested under this id.
    pub(crate) fn go_on(&mut self, id: Id) {
        if let Some(running) = &mut self.running {
            running.id = id;
            running.pages += 1;
        }
    }

    /// Ends the request. Returns the calls that waited for it; `None` if none was running.
    pub(crate) fn end(&mut self) -> Option<Vec<CallId>> {
        self.running.take().map(|running| running.calls)
    }
}
