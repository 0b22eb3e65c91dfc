//! Servers with a session whose tools ask only in results of 2026-07-28: the session is left, and the server is
//! addressed in the rounds era from then on.
//!
//! Such a server says so itself, in the answer to the call: it returns the question, or its SDK reports that the tool
//! did. The tool has then ended by asking, so the call may be made again in the rounds era, as a retry would. A server
//! that has pushed a question stays in its session, where no confirmation is skipped.

use mcp_elicit_core::wire::frame::{Frame, FramePart};
use serde_json::json;

use super::Server;
use super::probe::{EraOrder, EraProbe, Opening, ProbeRequest};
use super::rounds_server::with_meta;
use super::{ClientEra, own_info};
use crate::frame_edit::{self, ErrorResponse};
use crate::from_client::token_splice;
use crate::parts::calls::Call;
use crate::parts::indexed_frame::IndexedFrame;
use crate::{CallId, Effect, Relay, ServerForward, StreamId, Timestamp};
use mcp_elicit_core::wire::{Revision, meta};

/// The evidence that a tool asked in a result within a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundInSession {
    /// The question itself, or the SDK's report about it.
    Certain,
    /// An error of an SDK that reports other results with it too.
    Suspected,
}

/// The `resultType` of a round, as JSON.
const INPUT_REQUIRED: &str = "\"input_required\"";

/// The error of `mcp` 2 for Python for a result that the session's revision does not have.
const INVALID_RESULT: &str = "Handler returned an invalid result";

/// Returns the evidence in a response that its tool asked as in 2026-07-28.
fn round_in(frame: Frame<'_>) -> Option<RoundInSession> {
    if frame.part(FramePart::Error).is_none() {
        let kind = frame.index().has_rounds_member;
        let kind = kind.then(|| frame.sole_member(FramePart::Result, "resultType"));
        // A result that two readers could understand differently is refused instead.
        let asks = kind == Some(Ok(Some(INPUT_REQUIRED)));
        return asks.then_some(RoundInSession::Certain);
    }
    let message = frame.text_member(FramePart::Error, "message")?;
    if message.contains("InputRequiredResult") {
        return Some(RoundInSession::Certain);
    }
    (message == INVALID_RESULT).then_some(RoundInSession::Suspected)
}

impl Relay {
    /// Handles the response to a call that asks, or tried to, in a revision that was not agreed on. Returns `None` if
    /// the response does not.
    pub(crate) fn asked_in_session(
        &mut self,
        now: Timestamp,
        key: CallId,
        frame: Frame<'_>,
    ) -> Option<ServerForward> {
        if !self.server.must_not_ask_in_results() {
            return None;
        }
        let is_refused = self.server.asks_in_other_revision(frame);
        let asked = round_in(frame);
        let is_call = self
            .calls
            .get(key)
            .is_some_and(|call| call.kind().is_some());
        let asked = asked.filter(|_| is_call);
        if asked.is_none() && !is_refused {
            return None;
        }
        let asks_only_so = asked.is_some() && {
            self.settings.eras.saw_round_in_session();
            self.settings.eras.asks_only_in_rounds()
        };
        let leaves = asks_only_so && self.settings.revision.is_none() && !self.has_left_session;
        if !leaves {
            if !is_refused {
                return None;
            }
            let refusal = self.other_revision();
            self.calls.end_upstream(key);
            self.fail(now, key, &refusal);
            return Some(ServerForward::Handled);
        }
        self.calls.end_upstream(key);
        let is_alone = self.calls.keys(Call::is_upstream).is_empty() && self.asks.len() == 0;
        if !is_alone {
            let why = format!(
                "the server {} asks as in {}, and other calls are in progress in its session: make the call again",
                self.shown_server(),
                Revision::V2026_07_28
            );
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return Some(ServerForward::Handled);
        }
        tracing::info!(server = %self.settings.server, "the server asks only as in 2026-07-28, and is addressed in that revision from now on");
        let again = match asked {
            Some(RoundInSession::Certain) if !self.approvals.is_approved(key) => {
                self.call_as_it_came(key)
            }
            _ => None,
        };
        if let Some((stream, request)) = again {
            self.remove_call(key);
            self.leave_session(now);
            self.wait_early(stream, request);
        } else {
            let why = format!(
                "the server {} did not ask in its session; the gateway now uses {} with it: make the call again",
                self.shown_server(),
                Revision::V2026_07_28
            );
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            self.leave_session(now);
        }
        Some(ServerForward::Handled)
    }

    /// Returns a call as its client made it, with its stream.
    fn call_as_it_came(&self, key: CallId) -> Option<(StreamId, IndexedFrame)> {
        let call = self.calls.get(key)?;
        let stream = call.stream()?;
        let frame = call.frame()?.frame();
        let progress = call.progress();
        let token = progress.upstream_token().and(progress.token());
        let token = token.and_then(|token| token_splice(frame, token));
        let splices = frame_edit::id_splice(frame, call.client_id())
            .into_iter()
            .chain(token);
        let mut request = IndexedFrame::changed(frame, &splices.collect::<Vec<_>>());
        if let ClientEra::Rounds(client) = &self.client.0 {
            let declared = call.capability();
            let revision = Revision::V2026_07_28;
            let mut capabilities: serde_json::Value =
                serde_json::from_str(client.capabilities()).unwrap_or_default();
            if let (Some(all), None) = (capabilities.as_object_mut(), declared.to_value(revision)) {
                all.remove("elicitation");
            }
            let own = json!({
                meta::PROTOCOL_VERSION: revision.as_str(),
                meta::CLIENT_INFO: self.client.info().and_then(|info| serde_json::from_str(&info).ok()).unwrap_or_else(own_info),
                meta::CLIENT_CAPABILITIES: super::negotiation::declare(capabilities, declared, revision),
            });
            request = with_meta(request.text(), &own, None)?;
        }
        Some((stream, request))
    }

    /// Leaves the session, and asks the server for the rounds era: over HTTP at once, on a new process otherwise,
    /// since an SDK may address a connection in one era only.
    fn leave_session(&mut self, now: Timestamp) {
        self.has_left_session = true;
        self.catalog.forget();
        self.reported_name.keep(self.server_info().as_deref());
        let order = EraOrder {
            first: ProbeRequest::Discover,
            both: true,
        };
        let probe = EraProbe::new(order, Opening::Request);
        if self.settings.server_streams {
            self.effects.push(Effect::LeaveSession);
            self.send_probe(now, probe, ProbeRequest::Discover);
        } else {
            self.server = Server::probing(probe.after_restart(ProbeRequest::Discover));
            self.effects.push(Effect::Restart);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_elicit_core::wire::FrameIndex;

    fn evidence(text: &str) -> Option<RoundInSession> {
        let index = FrameIndex::at(text.as_bytes()).unwrap();
        round_in(Frame::of_text(text, &index))
    }

    #[test]
    fn only_a_question_or_a_known_report_of_one_is_evidence() {
        let certain = [
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Tool 'x' returned an InputRequiredResult to request client input, but the multi-round-trip result type only exists at MCP 2026-07-28"}}"#,
        ];
        for text in certain {
            assert!(evidence(text) == Some(RoundInSession::Certain), "{text}");
        }
        let suspected = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Handler returned an invalid result"}}"#;
        assert!(evidence(suspected) == Some(RoundInSession::Suspected));
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"InputRequiredResult"}]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"it failed: Handler returned an invalid result"}}"#,
        ] {
            assert!(evidence(text).is_none(), "{text}");
        }
    }
}
