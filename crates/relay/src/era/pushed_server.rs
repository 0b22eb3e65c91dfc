//! Servers of the pushed era (2025-06-18, 2025-11-25): questions that they push, and requests of the other era for them.

use crate::ClientFrame;
use crate::asks::Origin;
use crate::frame_edit::ErrorResponse;
use crate::from_client::Carried;
use crate::from_client::Start;
use crate::{CallId, CallKind, ClientForward, Relay, Timestamp};
use mcp_elicit_core::wire::frame::Frame;
use mcp_elicit_core::wire::{ElicitRequest, Id, Revision};

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
        let revision = self.server.revision().unwrap_or(Revision::LATEST_PUSHED);
        let params = frame.params();
        let request = match params {
            Some(params) => ElicitRequest::parse(params, revision),
            None => Err(mcp_elicit_core::wire::WireError::Missing { member: "params" }),
        };
        let attribution = self.attribute(via, request.as_ref().ok().map(ElicitRequest::mode));
        if let Ok(request) = &request {
            self.seen_asking(&attribution.candidates(), request.mode());
        }
        let origin = Origin::Pushed { id: id.clone() };
        let asked = request
            .map_err(|defect| {
                ErrorResponse::fault(mcp_elicit_core::fault::PeerFault::from(defect), revision)
            })
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
        let start = Start {
            kind: CallKind::of_method(method),
            changed: None,
            capability,
            carried,
        };
        self.start(frame, start)
    }
}
