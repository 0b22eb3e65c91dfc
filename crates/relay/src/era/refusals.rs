//! Refusals for a server that has ended, that cannot be used, or that answers in a revision that was not agreed on.

use mcp_elicit_core::wire::Revision;

use super::probe::Opening;
use crate::Relay;
use crate::frame_edit::ErrorResponse;

impl Relay {
    /// Returns the refusal of a request for a server that has ended.
    pub(crate) fn server_ended(&self) -> ErrorResponse {
        ErrorResponse::new(
            -32603,
            format!("the server {} has ended", self.shown_server()),
        )
    }

    /// Returns the refusal of a request for a server that lacks the operator's revision.
    pub(crate) fn server_unusable(&self) -> ErrorResponse {
        ErrorResponse::new(-32603, self.server.why_unusable().unwrap_or_default())
    }

    /// Returns the refusal of an answer in a revision that was not agreed on.
    pub(crate) fn other_revision(&self) -> ErrorResponse {
        tracing::warn!(server = %self.settings.server, "the server asks as in a revision that was not agreed on");
        let server = self.shown_server();
        let revision = self.server.revision_or_latest();
        let why = format!(
            "the server {server} answered as in {}, which was not agreed on: this session uses {revision}",
            Revision::V2026_07_28
        );
        ErrorResponse::new(-32603, why)
    }

    /// Refuses the requests that wait for the server's era, because the server has done this.
    pub(crate) fn reject_waiting(&mut self, why: &str) {
        let why = format!("the server {} {why}", self.shown_server());
        let refusal = ErrorResponse::new(-32603, why);
        self.early_requests.reject(&refusal, &mut self.effects);
    }

    /// Rejects the opening of a server that ends over it.
    pub(crate) fn reject_opening(&mut self, why: &str) {
        if let Some(probe) = self.server.probe()
            && let Opening::Initialize { stream, id, .. } | Opening::Discover { stream, id } =
                probe.opening()
        {
            let frame = ErrorResponse::new(-32603, why).to_response(id);
            let stream = *stream;
            self.effects.tell_client(stream, frame, true);
        }
    }
}
