//! Finding out which era the server speaks.
//!
//! The client's own opening goes up first. A refusal leads to the other era's question; silence leads to it as well, but
//! the first question stays open, since a server that starts slowly answers both. A server that does not survive
//! `server/discover` is started anew and asked with `initialize`.

use mcp_elicit_core::wire::{Era, Id, Revision, members, message, method};
use serde_json::json;
use serde_json::value::RawValue;

use crate::frame_edit::ErrorResponse;
use crate::handshake::{Server, in_session};
use crate::negotiation::declare;
use crate::{Effect, Relay, ServerForward, StreamId, Timer, Timestamp};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, FramePart};

/// A question about the era under way.
pub(crate) struct EraProbe {
    /// The requests that are not answered yet, by the ids that they went out with.
    open: Vec<(Id, Step)>,
    /// `true` if both eras were asked.
    both: bool,
    /// `true` if the server was started anew over it.
    restarted: bool,
    /// Why: whoever waits for the outcome.
    opening: Opening,
    /// The first error that came.
    refusal: Option<String>,
    /// The client's own revision and params, where the server was asked for a newer one first.
    pub(crate) older: Option<(Revision, Box<RawValue>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Initialize,
    Discover,
}

/// The era of the message that opened the conversation.
#[derive(Clone)]
pub(crate) enum Opening {
    /// The client's `initialize`, asking for this revision.
    Initialize {
        stream: StreamId,
        id: Id,
        revision: String,
    },
    /// The client's `server/discover`.
    Discover { stream: StreamId, id: Id },
    /// Some other request of the rounds era, which waits.
    Request,
}

impl Opening {
    /// Returns what goes out first for it.
    fn first_step(&self) -> Step {
        match self {
            Self::Initialize { .. } => Step::Initialize,
            Self::Discover { .. } | Self::Request => Step::Discover,
        }
    }
}

impl EraProbe {
    /// The client's own opening goes out under this id.
    pub(crate) fn new(id: Id, opening: Opening) -> Self {
        Self {
            open: vec![(id, opening.first_step())],
            both: false,
            restarted: false,
            opening,
            refusal: None,
            older: None,
        }
    }

    fn waits_for(&self, step: Step) -> bool {
        self.open.iter().any(|(_, open)| *open == step)
    }
}

impl Relay {
    /// Asks a server that was not spoken to yet for its era, on behalf of a request that waits.
    pub(crate) fn begin_probe(&mut self, now: Timestamp) {
        let id = self.outbox.new_id();
        let mut probe = EraProbe::new(id.clone(), Opening::Request);
        let step = if self.settings.is_pushed {
            probe.open = vec![(id.clone(), Step::Initialize)];
            probe.both = true;
            Step::Initialize
        } else {
            Step::Discover
        };
        self.send_probe(now, probe, &id, step);
    }

    /// Asks in the era that was not asked yet.
    fn ask_other(&mut self, now: Timestamp, mut probe: EraProbe) {
        let id = self.outbox.new_id();
        let step = match probe.opening.first_step() {
            Step::Initialize => Step::Discover,
            Step::Discover => Step::Initialize,
        };
        probe.both = true;
        probe.open.push((id.clone(), step));
        self.send_probe(now, probe, &id, step);
    }

    fn send_probe(&mut self, now: Timestamp, probe: EraProbe, id: &Id, step: Step) {
        let frame = match step {
            Step::Discover => {
                let params = json!({"_meta": self.rounds_meta()});
                self.timers
                    .set(now.after(self.settings.probe), Timer::Probe);
                message::request(id, method::DISCOVER, Some(&members::raw_value(&params)))
            }
            Step::Initialize => {
                let revision = Revision::LATEST_PUSHED;
                let capabilities = match self.client.era() {
                    Some(Era::Rounds) => in_session(self.client.capabilities()),
                    Some(Era::Pushed) | None => self.client.capabilities(),
                };
                let params = json!({
                    "protocolVersion": revision.as_str(),
                    "capabilities": declare(capabilities, self.declared(), revision),
                    "clientInfo": self.client.info_or_own(),
                });
                message::request(id, method::INITIALIZE, Some(&members::raw_value(&params)))
            }
        };
        self.server = Server::Probing(probe);
        self.tell_server(frame, None);
    }

    /// Takes the server's answer to an opening; gives it back when it is none.
    pub(crate) fn probe_answered(
        &mut self,
        now: Timestamp,
        id: &Id,
        frame: Frame<'_>,
    ) -> Option<ServerForward> {
        let Server::Probing(probe) = &mut self.server else {
            return None;
        };
        let at = probe.open.iter().position(|(open, _)| open == id)?;
        let (_, step) = probe.open.remove(at);
        let Server::Probing(probe) = std::mem::replace(&mut self.server, Server::Unknown) else {
            return None;
        };
        self.timers.cancel(Timer::Probe);
        let forward = match frame.part(FramePart::Result) {
            Some(result) => self.era_found(probe, step, id, frame, result.to_owned()),
            None => self.probe_refused(now, probe, Some(frame.text())),
        };
        self.flush_waiting(now);
        Some(forward)
    }

    fn era_found(
        &mut self,
        probe: EraProbe,
        step: Step,
        id: &Id,
        frame: Frame<'_>,
        result: String,
    ) -> ServerForward {
        match step {
            Step::Initialize => {
                let version = frame.member(FramePart::Result, "protocolVersion");
                let told = version
                    .and_then(|version| serde_json::from_str::<String>(version).ok())
                    .unwrap_or_default();
                let revision = told
                    .parse()
                    .unwrap_or(Revision::V2025_06_18)
                    .min(Revision::LATEST_PUSHED);
                self.server = Server::pushed(revision, result);
            }
            Step::Discover => self.server = Server::rounds(result),
        }
        match (&probe.opening, step) {
            (
                Opening::Initialize {
                    stream,
                    revision,
                    id: asked,
                },
                Step::Initialize,
            ) if asked == id && !self.must_answer_older(revision) => ServerForward::AsIs {
                stream: *stream,
                last: true,
            },
            (Opening::Discover { stream, .. }, Step::Discover) => ServerForward::AsIs {
                stream: *stream,
                last: true,
            },
            (_, step) => {
                if step == Step::Initialize && !matches!(probe.opening, Opening::Initialize { .. })
                {
                    self.tell_server(message::notification(method::INITIALIZED, None), None);
                }
                self.answer_opening(probe.opening);
                ServerForward::Handled
            }
        }
    }

    /// Returns whether the client asked for an older revision than the server gives, and the gateway stands between them.
    fn must_answer_older(&self, asked: &str) -> bool {
        match (asked.parse::<Revision>(), self.server.revision()) {
            (Ok(asked), Some(given)) => asked < given,
            (Err(_), _) | (_, None) => false,
        }
    }

    fn probe_refused(
        &mut self,
        now: Timestamp,
        mut probe: EraProbe,
        error: Option<&str>,
    ) -> ServerForward {
        probe.refusal = probe.refusal.or_else(|| error.map(str::to_owned));
        if let (Some((revision, params)), true) = (probe.older.take(), error.is_some()) {
            // It does not negotiate: it is asked for the client's own revision.
            let id = self.outbox.new_id();
            let frame = self.initialize_at(&id, &params, revision);
            probe.open.push((id, Step::Initialize));
            self.server = Server::Probing(probe);
            self.tell_server(frame, None);
            return ServerForward::Handled;
        }
        if !probe.open.is_empty() {
            // The other question came first and is not answered yet.
            self.timers
                .set(now.after(self.settings.probe), Timer::Probe);
            self.server = Server::Probing(probe);
            return ServerForward::Handled;
        }
        if !probe.both {
            self.ask_other(now, probe);
            return ServerForward::Handled;
        }
        self.server = Server::Unknown;
        match probe.opening {
            Opening::Initialize { stream, id, .. } | Opening::Discover { stream, id } => {
                let said = probe.refusal.as_deref().and_then(error_of);
                let frame = match said {
                    Some(error) => message::error(Some(&id), &error),
                    None => ErrorResponse::new(
                        -32603,
                        format!("{} answers neither era", self.shown_server()),
                    )
                    .to_response(&id),
                };
                self.tell_client(stream, frame, true);
            }
            Opening::Request => {}
        }
        self.reject_waiting("answered neither `server/discover` nor `initialize`");
        ServerForward::Handled
    }

    /// The server said nothing in time: it is asked the other way too, or given up.
    pub(crate) fn probe_timed_out(&mut self, now: Timestamp) {
        match std::mem::replace(&mut self.server, Server::Unknown) {
            Server::Probing(probe) if !probe.both => self.ask_other(now, probe),
            Server::Probing(mut probe) if !probe.waits_for(Step::Initialize) => {
                probe.open.clear();
                self.probe_refused(now, probe, None);
            }
            other => self.server = other,
        }
    }

    /// The server ended. When it did so over a question about its era, it is started anew; `true` then.
    pub(crate) fn ended_over_probe(&mut self) -> bool {
        let over_probe = matches!(&self.server, Server::Probing(probe) if probe.waits_for(Step::Discover) && !probe.restarted);
        if over_probe {
            self.timers.cancel(Timer::Probe);
            self.outbox.push(Effect::Restart);
        }
        over_probe
    }

    /// The server runs again after it ended over a question about its era.
    pub(crate) fn restarted(&mut self, now: Timestamp) {
        match std::mem::replace(&mut self.server, Server::Unknown) {
            Server::Probing(mut probe) => {
                probe.open.clear();
                probe.restarted = true;
                // `initialize` was refused before, or is still to be asked of the new one.
                probe.both = probe.opening.first_step() == Step::Initialize;
                self.probe_refused(now, probe, None);
            }
            Server::Unknown | Server::Pushed { .. } | Server::Rounds { .. } | Server::Gone => {}
        }
    }

    /// The stream that waits for the opening, for a server that ends over it.
    pub(crate) fn reject_opening(&mut self, why: &str) {
        if let Server::Probing(EraProbe {
            opening: Opening::Initialize { stream, id, .. } | Opening::Discover { stream, id },
            ..
        }) = &self.server
        {
            let frame = ErrorResponse::new(-32603, why).to_response(id);
            let stream = *stream;
            self.tell_client(stream, frame, true);
        }
    }
}

fn error_of(text: &str) -> Option<Box<RawValue>> {
    let index = FrameIndex::at(text.as_bytes())?;
    Frame::of_text(text, &index).error().map(ToOwned::to_owned)
}
