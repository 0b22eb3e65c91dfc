//! Detection of the server's era.
//!
//! The client's own opening is sent first. A refusal leads to the other era's opening, unless the refusal may be about
//! the client's params: the gateway then repeats it with its own, since a client does not decide the server's era.
//! Silence leads to the other opening as well, but the first stays open, since a server that starts slowly answers
//! both. A server that exits on `server/discover` is restarted and asked with `initialize`.

use mcp_elicit_core::wire::{Id, Revision, members, message, method};
use serde_json::json;

use super::Server;
use super::handshake::initialize_at;
use super::negotiation::{declare, probe_meta};
use super::probe::{AfterRefusal, EraProbe, Opening, ProbeRequest};
use crate::asking_frames::{asks_in_rounds, wants_links};
use crate::frame_edit::ErrorResponse;
use crate::{Effect, Relay, ServerForward, Timer, Timestamp};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, FramePart};

impl Relay {
    /// Starts to ask a server for its era, on behalf of a request that waits.
    pub(crate) fn begin_probe(&mut self, now: Timestamp) {
        let id = self.new_id();
        let (probe, request) = EraProbe::for_request(id.clone(), self.settings.is_pushed);
        self.send_probe(now, probe, &id, request);
    }

    /// Asks in the other era.
    fn ask_other(&mut self, now: Timestamp, mut probe: EraProbe) {
        let id = self.new_id();
        let request = probe.ask_other(id.clone());
        self.send_probe(now, probe, &id, request);
    }

    pub(crate) fn send_probe(
        &mut self,
        now: Timestamp,
        probe: EraProbe,
        id: &Id,
        step: ProbeRequest,
    ) {
        let declared = self.client.declared(self.settings.answer_with);
        let frame = match step {
            ProbeRequest::Discover => {
                let params = json!({"_meta": probe_meta(declared)});
                self.timers
                    .set(now.after(self.settings.probe), Timer::Probe);
                message::request(id, method::DISCOVER, Some(&members::raw_value(&params)))
            }
            ProbeRequest::Initialize => {
                let revision = Revision::LATEST_PUSHED;
                let capabilities = self.client.capabilities_in_session();
                let params = json!({
                    "protocolVersion": revision.as_str(),
                    "capabilities": declare(capabilities, declared, revision),
                    "clientInfo": self.client.info_or_own(),
                });
                message::request(id, method::INITIALIZE, Some(&members::raw_value(&params)))
            }
        };
        self.server = Server::probing(probe);
        self.effects.tell_server(frame, None);
    }

    /// Handles the server's response to an opening; returns the frame if it is something else.
    pub(crate) fn probe_answered(
        &mut self,
        now: Timestamp,
        id: &Id,
        frame: Frame<'_>,
    ) -> Option<ServerForward> {
        let step = self.server.probe_mut()?.answered(id)?;
        let probe = self.server.take_probe()?;
        self.timers.cancel(Timer::Probe);
        let forward = match frame.part(FramePart::Result) {
            // No rule applies to an opening, so under rules it must not ask.
            Some(_) if self.settings.decisions.is_some() && asks_in_rounds(frame) => {
                self.probe_refused(now, probe, None)
            }
            Some(result) => self.era_found(&probe, step, id, frame, result.to_owned()),
            None => self.probe_refused(now, probe, Some(frame.text())),
        };
        self.flush_waiting(now);
        Some(forward)
    }

    /// Ends the opening that was sent under this id, whose response cannot be read.
    pub(crate) fn probe_ended(&mut self, id: &Id) -> Option<EraProbe> {
        self.server.probe_mut()?.answered(id)?;
        self.timers.cancel(Timer::Probe);
        self.server.take_probe()
    }

    fn era_found(
        &mut self,
        probe: &EraProbe,
        step: ProbeRequest,
        id: &Id,
        frame: Frame<'_>,
        result: String,
    ) -> ServerForward {
        match step {
            ProbeRequest::Initialize => {
                let told = frame
                    .text_member(FramePart::Result, "protocolVersion")
                    .unwrap_or_default();
                let revision = told
                    .parse()
                    .unwrap_or(Revision::V2025_06_18)
                    .min(Revision::LATEST_PUSHED);
                self.server = Server::pushed(revision, result);
            }
            ProbeRequest::Discover => self.server = Server::rounds(result),
        }
        match (probe.opening(), step) {
            (
                Opening::Initialize {
                    stream,
                    revision,
                    id: asked,
                },
                ProbeRequest::Initialize,
            ) if asked == id && !self.server.is_newer_than(revision) => ServerForward::AsIs {
                stream: *stream,
                last: true,
            },
            (Opening::Discover { stream, id: asked }, ProbeRequest::Discover) if asked == id => {
                ServerForward::AsIs {
                    stream: *stream,
                    last: true,
                }
            }
            (Opening::Discover { stream, id: asked }, ProbeRequest::Discover)
                if probe.refusal().is_some() =>
            {
                // The server has refused the client's own opening, and the response says so.
                let frame = self.refused_opening(asked, probe.refusal());
                self.effects.tell_client(*stream, frame, true);
                ServerForward::Handled
            }
            (_, step) => {
                if step == ProbeRequest::Initialize
                    && !matches!(probe.opening(), Opening::Initialize { .. })
                {
                    self.effects
                        .tell_server(message::notification(method::INITIALIZED, None), None);
                }
                self.answer_opening(probe.opening().clone());
                ServerForward::Handled
            }
        }
    }

    pub(crate) fn probe_refused(
        &mut self,
        now: Timestamp,
        probe: EraProbe,
        error: Option<&str>,
    ) -> ServerForward {
        self.after_refusal(now, probe.refused(error));
        ServerForward::Handled
    }

    fn after_refusal(&mut self, now: Timestamp, next: AfterRefusal) {
        match next {
            AfterRefusal::AskOlder(mut probe, revision, params) => {
                let id = self.new_id();
                let frame = initialize_at(self.settings.answer_with, &id, &params, revision);
                probe.ask_older(id);
                self.server = Server::probing(probe);
                self.effects.tell_server(frame, None);
            }
            AfterRefusal::Wait(probe) => {
                let at = now.after(self.settings.probe);
                self.timers.set(at, Timer::Probe);
                self.server = Server::probing(probe);
            }
            AfterRefusal::AskAgain(mut probe) => {
                let id = self.new_id();
                let request = probe.ask_again(id.clone());
                self.send_probe(now, probe, &id, request);
            }
            AfterRefusal::AskOther(probe) => self.ask_other(now, probe),
            AfterRefusal::Failed(opening, error) => {
                self.server = Server::default();
                self.probe_failed(opening, error.as_deref());
            }
        }
    }

    /// Ends the probe of a server of neither era: the client gets the first error of the server.
    fn probe_failed(&mut self, opening: Opening, error: Option<&str>) {
        match opening {
            Opening::Initialize { stream, id, .. } | Opening::Discover { stream, id } => {
                let frame = self.refused_opening(&id, error);
                self.effects.tell_client(stream, frame, true);
            }
            Opening::Request => {}
        }
        self.reject_waiting("answered neither `server/discover` nor `initialize`");
    }

    /// Returns the response to an opening that the server has refused with this error, a whole frame.
    fn refused_opening(&self, id: &Id, error: Option<&str>) -> String {
        let judges_nothing = self.settings.decisions.is_none();
        // No rule applies to an opening, so under rules its links are not passed on.
        let may_pass = |frame: &Frame<'_>| judges_nothing || !wants_links(*frame, true);
        let index = error.and_then(|error| FrameIndex::at(error.as_bytes()));
        let frame = error
            .zip(index.as_ref())
            .map(|(text, index)| Frame::of_text(text, index));
        if let Some(error) = frame.filter(may_pass).and_then(Frame::error) {
            return message::error(Some(id), error);
        }
        let why = format!("{} answers neither era", self.shown_server());
        ErrorResponse::new(-32603, why).to_response(id)
    }

    /// Handles a server that did not answer in time: it is asked in the other era, or given up.
    pub(crate) fn probe_timed_out(&mut self, now: Timestamp) {
        match self.server.take_probe().map(EraProbe::timed_out) {
            // The client's own `initialize` waits for as long as the client does.
            Some(AfterRefusal::Wait(probe)) => self.server = Server::probing(probe),
            Some(next) => self.after_refusal(now, next),
            None => {}
        }
    }

    /// Handles the end of the server. If it ended over the probe, restarts it and returns `true`.
    pub(crate) fn ended_over_probe(&mut self) -> bool {
        let over_probe = self.server.probe().is_some_and(EraProbe::wants_restart);
        if over_probe {
            self.timers.cancel(Timer::Probe);
            self.effects.push(Effect::Restart);
        }
        over_probe
    }

    /// Continues after a restart of a server that ended over the probe.
    pub(crate) fn restarted(&mut self, now: Timestamp) {
        let probe = self.server.take_probe();
        self.server = Server::default();
        if let Some(probe) = probe {
            self.after_refusal(now, probe.restarted());
        }
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
