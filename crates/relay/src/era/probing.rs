//! Detection of the server's era.
//!
//! A server that speaks both eras is addressed in the pushed one, in which all its tools can ask
//! (`docs/design/server-era.md`). So `initialize` is sent first, and a refusal leads to `server/discover`. A server that
//! asks in results too, or that cannot push in the session that it opened, is addressed in the rounds era if it speaks
//! it. An operator may set the revision.
//!
//! A refusal of `server/discover` may be about the client's params: the gateway then repeats it with its own, since a
//! client does not decide the server's era. Silence leads to the other opening as well, but the first stays open, since
//! a server that starts slowly answers both. A server that exits over an opening is restarted and asked with the other.

use mcp_elicit_core::wire::{Envelope, Id, Revision, asks_in_every_era, members, message, method};
use serde_json::json;
use std::borrow::Cow;
use std::time::Duration;

use super::Server;
use super::handshake::initialize_at;
use super::negotiation::{declare, probe_meta};
use super::probe::{EraOrder, EraProbe, NextStep, Opening, ProbeRequest};
use crate::asking_frames::{asks_in_rounds, wants_links};
use crate::frame_edit::ErrorResponse;
use crate::parts::indexed_frame::IndexedFrame;
use crate::{Effect, Relay, ServerForward, Timer, Timestamp};
use mcp_elicit_core::wire::frame::{Frame, FramePart};

/// The time for the only opening of a server, as a multiple of that for one of two.
const ONLY_OPENING: u32 = 20;
/// The longest part of a server's reason that is repeated, in bytes.
const LONGEST_REASON: usize = 200;

impl Relay {
    /// Returns the time that a server has for its answer to an opening of the gateway's own.
    fn time_for_opening(&self, probe: &EraProbe) -> Option<Duration> {
        if probe.may_ask_both() {
            return Some(self.settings.probe);
        }
        // No other opening follows, so the server may also be downloaded first.
        let is_chosen = self.settings.revision.is_some() && !self.settings.is_pushed;
        is_chosen.then(|| self.settings.probe * ONLY_OPENING)
    }

    /// Starts to ask a server for its era, on behalf of a request that waits.
    pub(crate) fn begin_probe(&mut self, now: Timestamp) {
        let probe = EraProbe::new(EraOrder::of(&self.settings), Opening::Request);
        let first = probe.first();
        self.send_probe(now, probe, first);
    }

    /// Sends this opening: the client's own `server/discover` once, else one of the gateway's.
    pub(super) fn send_probe(&mut self, now: Timestamp, mut probe: EraProbe, step: ProbeRequest) {
        if let Some(time) = self.time_for_opening(&probe) {
            self.timers.set(now.after(time), Timer::Probe);
        }
        let frame = match step {
            ProbeRequest::Discover => {
                if let Some(own) = probe.take_discover()
                    && self.other_id_at_server(&own.id).is_none()
                {
                    self.opening_ids.note(own.id.clone());
                    probe.sent_clients_discover(&own);
                    own.frame
                } else {
                    let id = self.new_id();
                    let declared = self.client.declared(self.settings.answer_with);
                    let params = json!({"_meta": probe_meta(declared)});
                    self.opening_ids.note(id.clone());
                    probe.sent_own_discover(id.clone());
                    message::request(&id, method::DISCOVER, Some(&members::raw_value(&params)))
                }
            }
            ProbeRequest::Initialize => {
                let id = self.new_id();
                let declared = self.client.declared(self.settings.answer_with);
                let revision = self.settings.session_revision();
                let capabilities = self.client.capabilities_in_session();
                let params = json!({
                    "protocolVersion": revision.as_str(),
                    "capabilities": declare(capabilities, declared, revision),
                    "clientInfo": self.client.info_or_own(),
                });
                self.opening_ids.note(id.clone());
                probe.sent_initialize(id.clone());
                message::request(&id, method::INITIALIZE, Some(&members::raw_value(&params)))
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
        Some(match frame.part(FramePart::Result) {
            // No rule applies to an opening, so under rules it must not ask.
            Some(_) if self.settings.decisions.is_some() && asks_in_rounds(frame) => {
                self.probe_refused(now, probe, step, None)
            }
            Some(result) => self.opening_accepted(now, probe, (step, id), frame, result),
            None => self.probe_refused(now, probe, step, Some(frame)),
        })
    }

    /// Ends the opening that was sent under this id, whose response cannot be read.
    pub(crate) fn probe_ended(&mut self, id: &Id) -> Option<(EraProbe, ProbeRequest)> {
        let step = self.server.probe_mut()?.answered(id)?;
        self.timers.cancel(Timer::Probe);
        Some((self.server.take_probe()?, step))
    }

    /// Handles a server that accepted an opening with this result.
    fn opening_accepted(
        &mut self,
        now: Timestamp,
        mut probe: EraProbe,
        (step, id): (ProbeRequest, &Id),
        frame: Frame<'_>,
        result: &str,
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
                if let Some(wanted) = self.settings.revision
                    && told != wanted.as_str()
                {
                    return self.other_revision_agreed(&probe, &told, wanted);
                }
                let prefers_rounds = probe.has_no_session()
                    || (!probe.opening().is_pushed() && asks_in_every_era(result));
                if prefers_rounds && probe.keep_session(revision, result) {
                    self.send_probe(now, probe, ProbeRequest::Discover);
                    return ServerForward::Handled;
                }
                self.server = Server::pushed(revision, result.to_owned());
                if let Opening::Initialize {
                    stream,
                    revision,
                    id: asked,
                } = probe.opening()
                    && asked == id
                    && !self.server.is_newer_than(revision)
                    && !asks_in_every_era(result)
                    && !self.task_support().runs_tasks()
                {
                    return ServerForward::AsIs {
                        stream: *stream,
                        last: true,
                    };
                }
                self.session_is_open(&probe);
            }
            ProbeRequest::Discover => {
                if probe.keep_discovered(result) {
                    self.timers
                        .set(now.after(self.settings.probe), Timer::Probe);
                    self.server = Server::probing(probe);
                    return ServerForward::Handled;
                }
                self.use_rounds(&probe, result.to_owned());
                if let Opening::Discover { stream, id: asked } = probe.opening()
                    && asked == id
                    && !self.task_support().adds_extension()
                {
                    return ServerForward::AsIs {
                        stream: *stream,
                        last: true,
                    };
                }
                self.discovered(&probe);
            }
        }
        ServerForward::Handled
    }

    /// Answers the client's opening, for a server that has opened a session; if the client does not report that it is
    /// `initialized`, the gateway does.
    fn session_is_open(&mut self, probe: &EraProbe) {
        if !probe.opening().is_pushed() {
            self.effects
                .tell_server(message::notification(method::INITIALIZED, None), None);
        }
        self.answer_opening(probe.opening().clone());
    }

    /// Addresses the server in the rounds era.
    fn use_rounds(&mut self, probe: &EraProbe, result: String) {
        if probe.has_session() || probe.has_no_session() {
            self.effects.push(Effect::LeaveSession);
        }
        self.server = Server::rounds(result);
    }

    /// Answers the client's opening, for a server that answered `server/discover`.
    fn discovered(&mut self, probe: &EraProbe) {
        match (probe.opening(), probe.clients_refusal()) {
            (Opening::Discover { stream, id }, Some(refusal)) => {
                // The server has refused the client's own opening, and the response says so.
                let frame = self.refused_opening(id, Some(refusal));
                self.effects.tell_client(*stream, frame, true);
            }
            (opening, _) => self.answer_opening(opening.clone()),
        }
    }

    /// Ends the probe of a server that agrees on another revision than the operator's.
    fn other_revision_agreed(
        &mut self,
        probe: &EraProbe,
        told: &str,
        wanted: Revision,
    ) -> ServerForward {
        let told = mcp_elicit_core::text::beginning(told, 40);
        self.lacks_revision(probe.opening(), wanted, &format!("it agrees on {told}"));
        ServerForward::Handled
    }

    /// Refuses everything for a server that lacks the operator's revision: the client's opening, the requests that
    /// waited for it, and later ones.
    fn lacks_revision(&mut self, opening: &Opening, wanted: Revision, reason: &str) {
        let why = format!(
            "the server {} does not speak {wanted}, which the gateway is told to use with it: {reason}. \
             Let both agree on a revision: leave out `--server-revision` (in the file `revision`), or name one that the server speaks; \
             `mcp-elicit gateway --check` lists them",
            self.shown_server()
        );
        let why = self.settings.masked(&why);
        tracing::warn!(server = %self.settings.server, %why, "the server lacks the revision");
        self.server = Server::unusable(why);
        let refusal = self.server_unusable();
        if let Opening::Initialize { stream, id, .. } | Opening::Discover { stream, id } = opening {
            self.effects
                .tell_client(*stream, refusal.to_response(id), true);
        }
        self.early_requests.reject(&refusal, &mut self.effects);
    }

    pub(crate) fn probe_refused(
        &mut self,
        now: Timestamp,
        probe: EraProbe,
        step: ProbeRequest,
        error: Option<Frame<'_>>,
    ) -> ServerForward {
        self.next_step(now, probe.refused(step, error));
        ServerForward::Handled
    }

    fn next_step(&mut self, now: Timestamp, next: NextStep) {
        match next {
            NextStep::AskOlder(mut probe, version, params) => {
                let id = self.new_id();
                let frame = initialize_at(self.settings.answer_with, &id, &params, &version);
                probe.sent_initialize(id);
                self.server = Server::probing(probe);
                self.effects.tell_server(frame, None);
            }
            NextStep::Wait(probe) => {
                let at = now.after(self.settings.probe);
                self.timers.set(at, Timer::Probe);
                self.server = Server::probing(probe);
            }
            NextStep::Ask(probe, step) => self.send_probe(now, probe, step),
            NextStep::UseSession(probe, session) => {
                self.server = Server::pushed(session.revision, session.result);
                self.session_is_open(&probe);
            }
            NextStep::UseRounds(probe, result) => {
                self.use_rounds(&probe, result);
                self.discovered(&probe);
            }
            NextStep::Failed(opening, error) => {
                self.server = Server::default();
                let error = error.as_ref().map(IndexedFrame::frame);
                self.probe_failed(opening, error);
            }
        }
    }

    /// Ends the probe of a server of neither era: the client gets the first error of the server.
    fn probe_failed(&mut self, opening: Opening, error: Option<Frame<'_>>) {
        if let Some(wanted) = self.settings.revision {
            let reason = self.reason_of_refusal(error);
            self.lacks_revision(&opening, wanted, &reason);
            return;
        }
        match opening {
            Opening::Initialize { stream, id, .. } | Opening::Discover { stream, id } => {
                let frame = self.refused_opening(&id, error);
                self.effects.tell_client(stream, frame, true);
            }
            Opening::Request => {}
        }
        self.reject_waiting("answered neither `server/discover` nor `initialize`");
    }

    /// Returns the server's reason for refusing an opening in one revision, from its error, a whole frame.
    fn reason_of_refusal(&self, frame: Option<Frame<'_>>) -> String {
        let said = frame.and_then(|frame| {
            let text = frame.text().as_bytes();
            let envelope = Envelope::parse_within(text, usize::MAX).ok()?;
            let message = members::member(envelope.error()?, "message");
            let message = message.and_then(members::text).map(Cow::into_owned);
            Some((envelope.error_code(), message.unwrap_or_default()))
        });
        match said {
            Some((Some(code), message))
                if frame.is_some_and(|frame| self.may_pass_error(frame)) =>
            {
                let message = mcp_elicit_core::text::beginning(&message, LONGEST_REASON);
                format!("it refused with {message:?} (error {code})")
            }
            Some((Some(code), _)) => format!("it refused (error {code})"),
            Some((None, _)) => "it refused".to_owned(),
            None => "it gave no answer to the opening of this revision".to_owned(),
        }
    }

    /// Returns `true` if this error of an opening, a whole frame, may go to the client. No rule applies to an opening,
    /// so under rules its links are not passed on.
    fn may_pass_error(&self, error: Frame<'_>) -> bool {
        self.settings.decisions.is_none() || !wants_links(error, true)
    }

    /// Returns the response to an opening that the server has refused with this error, a whole frame.
    fn refused_opening(&self, id: &Id, error: Option<Frame<'_>>) -> String {
        if let Some(frame) = error
            && self.may_pass_error(frame)
            && let Some(error) = frame.error()
        {
            return message::error(Some(id), error);
        }
        let why = format!("{} answers neither era", self.shown_server());
        ErrorResponse::new(-32603, why).to_response(id)
    }

    /// Handles a server that did not answer in time: it is asked in the other era, or given up.
    pub(crate) fn probe_timed_out(&mut self, now: Timestamp) {
        match self.server.take_probe().map(EraProbe::timed_out) {
            Some(NextStep::Wait(probe))
                if self.time_for_opening(&probe).is_some() && !probe.may_ask_both() =>
            {
                self.probe_failed(probe.opening().clone(), None);
            }
            // The client's own `initialize` waits for as long as the client does.
            Some(NextStep::Wait(probe)) => self.server = Server::probing(probe),
            Some(next) => self.next_step(now, next),
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
            self.next_step(now, probe.restarted());
        }
    }
}
