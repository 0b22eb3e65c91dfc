//! Finding out which era the server speaks.
//!
//! The client's own opening goes up first. A refusal leads to the other era's question; silence leads to it as well, but
//! the first question stays open, since a server that starts slowly answers both. A server that does not survive
//! `server/discover` is started anew and asked with `initialize`.

use mcp_elicit_core::wire::{Era, Id, Revision, members, message, method};
use serde_json::json;
use serde_json::value::RawValue;

use super::frame::{self, Refusal};
use super::glance::{self, Glance};
use super::handshake::{Server, in_session};
use super::openings::declare;
use super::{Door, Down, Effect, Relay, Timer, Timestamp};

/// A question about the era under way.
pub(super) struct Trial {
    /// The requests that are not answered yet, by the ids that they went out with.
    open: Vec<(Id, Step)>,
    /// `true` if both eras were asked.
    both: bool,
    /// `true` if the server was started anew over it.
    restarted: bool,
    /// Why: whoever waits for the outcome.
    opener: Opener,
    /// The first error that came.
    refusal: Option<String>,
    /// The client's own revision and params, where the server was asked for a newer one first.
    pub(super) older: Option<(Revision, Box<RawValue>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Initialize,
    Discover,
}

/// The era of the message that opened the conversation.
#[derive(Clone)]
pub(super) enum Opener {
    /// The client's `initialize`, asking for this revision.
    Initialize {
        door: Door,
        id: Id,
        revision: String,
    },
    /// The client's `server/discover`.
    Discover { door: Door, id: Id },
    /// Some other request of the rounds era, which waits.
    Request,
}

impl Opener {
    /// Returns what goes out first for it.
    fn first_step(&self) -> Step {
        match self {
            Self::Initialize { .. } => Step::Initialize,
            Self::Discover { .. } | Self::Request => Step::Discover,
        }
    }
}

impl Trial {
    /// The client's own opening goes out under this id.
    pub(super) fn new(id: Id, opener: Opener) -> Self {
        Self {
            open: vec![(id, opener.first_step())],
            both: false,
            restarted: false,
            opener,
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
    pub(super) fn try_discover(&mut self, now: Timestamp) {
        let id = self.own_id();
        let mut trial = Trial::new(id.clone(), Opener::Request);
        let step = if self.settings.is_pushed {
            trial.open = vec![(id.clone(), Step::Initialize)];
            trial.both = true;
            Step::Initialize
        } else {
            Step::Discover
        };
        self.send_probe(now, trial, &id, step);
    }

    /// Asks in the era that was not asked yet.
    fn ask_other(&mut self, now: Timestamp, mut trial: Trial) {
        let id = self.own_id();
        let step = match trial.opener.first_step() {
            Step::Initialize => Step::Discover,
            Step::Discover => Step::Initialize,
        };
        trial.both = true;
        trial.open.push((id.clone(), step));
        self.send_probe(now, trial, &id, step);
    }

    fn send_probe(&mut self, now: Timestamp, trial: Trial, id: &Id, step: Step) {
        let frame = match step {
            Step::Discover => {
                let params = json!({"_meta": self.rounds_meta()});
                self.at(now.after(self.settings.probe), Timer::Probe);
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
        self.server = Server::Trying(trial);
        self.tell_server(frame, None);
    }

    /// Takes the server's answer to an opening; gives it back when it is none.
    pub(super) fn trial_answered(
        &mut self,
        now: Timestamp,
        id: &Id,
        text: &str,
        glance: &Glance,
    ) -> Option<Down> {
        let Server::Trying(trial) = &mut self.server else {
            return None;
        };
        let at = trial.open.iter().position(|(open, _)| open == id)?;
        let (_, step) = trial.open.remove(at);
        let Server::Trying(trial) = std::mem::replace(&mut self.server, Server::Unknown) else {
            return None;
        };
        self.cancel_timers(|timer| *timer == Timer::Probe);
        let down = match &glance.result {
            Some(range) => self.trial_won(trial, step, id, text, range.clone()),
            None => self.trial_lost(now, trial, Some(text)),
        };
        self.flush_waiting(now);
        Some(down)
    }

    fn trial_won(
        &mut self,
        trial: Trial,
        step: Step,
        id: &Id,
        text: &str,
        range: std::ops::Range<usize>,
    ) -> Down {
        let result = text[range.clone()].to_owned();
        match step {
            Step::Initialize => {
                let version = glance::member(text.as_bytes(), &range, "protocolVersion");
                let told = version
                    .and_then(|range| serde_json::from_str::<String>(&text[range]).ok())
                    .unwrap_or_default();
                let revision = told
                    .parse()
                    .unwrap_or(Revision::V2025_06_18)
                    .min(Revision::LATEST_PUSHED);
                self.server = Server::pushed(revision, result);
            }
            Step::Discover => self.server = Server::rounds(result),
        }
        match (&trial.opener, step) {
            (
                Opener::Initialize {
                    door,
                    revision,
                    id: asked,
                },
                Step::Initialize,
            ) if asked == id && !self.must_pretend(revision) => Down::Forward {
                door: *door,
                last: true,
            },
            (Opener::Discover { door, .. }, Step::Discover) => Down::Forward {
                door: *door,
                last: true,
            },
            (_, step) => {
                if step == Step::Initialize && !matches!(trial.opener, Opener::Initialize { .. }) {
                    self.tell_server(message::notification(method::INITIALIZED, None), None);
                }
                self.answer_opener(trial.opener);
                Down::Taken
            }
        }
    }

    /// Returns whether the client asked for an older revision than the server gives, and the gateway stands between them.
    fn must_pretend(&self, asked: &str) -> bool {
        match (asked.parse::<Revision>(), self.server.revision()) {
            (Ok(asked), Some(given)) => asked < given,
            (Err(_), _) | (_, None) => false,
        }
    }

    fn trial_lost(&mut self, now: Timestamp, mut trial: Trial, error: Option<&str>) -> Down {
        trial.refusal = trial.refusal.or_else(|| error.map(str::to_owned));
        if let (Some((revision, params)), true) = (trial.older.take(), error.is_some()) {
            // It does not negotiate: it is asked for the client's own revision.
            let id = self.own_id();
            let frame = self.initialize_at(&id, &params, revision);
            trial.open.push((id, Step::Initialize));
            self.server = Server::Trying(trial);
            self.tell_server(frame, None);
            return Down::Taken;
        }
        if !trial.open.is_empty() {
            // The other question came first and is not answered yet.
            self.at(now.after(self.settings.probe), Timer::Probe);
            self.server = Server::Trying(trial);
            return Down::Taken;
        }
        if !trial.both {
            self.ask_other(now, trial);
            return Down::Taken;
        }
        self.server = Server::Unknown;
        match trial.opener {
            Opener::Initialize { door, id, .. } | Opener::Discover { door, id } => {
                let said = trial.refusal.as_deref().and_then(error_of);
                let frame = match said {
                    Some(error) => message::error(Some(&id), &error),
                    None => Refusal::new(
                        -32603,
                        format!("{} answers neither era", self.shown_server()),
                    )
                    .to_response(&id),
                };
                self.tell_client(door, frame, true);
            }
            Opener::Request => {}
        }
        self.refuse_waiting("answered neither `server/discover` nor `initialize`");
        Down::Taken
    }

    /// The server said nothing in time: it is asked the other way too, or given up.
    pub(super) fn probe_timed_out(&mut self, now: Timestamp) {
        match std::mem::replace(&mut self.server, Server::Unknown) {
            Server::Trying(trial) if !trial.both => self.ask_other(now, trial),
            Server::Trying(mut trial) if !trial.waits_for(Step::Initialize) => {
                trial.open.clear();
                self.trial_lost(now, trial, None);
            }
            other => self.server = other,
        }
    }

    /// The server ended. When it did so over a question about its era, it is started anew; `true` then.
    pub(super) fn ended_over_probe(&mut self) -> bool {
        let over_probe = matches!(&self.server, Server::Trying(trial) if trial.waits_for(Step::Discover) && !trial.restarted);
        if over_probe {
            self.cancel_timers(|timer| *timer == Timer::Probe);
            self.effects.push_back(Effect::Restart);
        }
        over_probe
    }

    /// The server runs again after it ended over a question about its era.
    pub(super) fn restarted(&mut self, now: Timestamp) {
        match std::mem::replace(&mut self.server, Server::Unknown) {
            Server::Trying(mut trial) => {
                trial.open.clear();
                trial.restarted = true;
                // `initialize` was refused before, or is still to be asked of the new one.
                trial.both = trial.opener.first_step() == Step::Initialize;
                self.trial_lost(now, trial, None);
            }
            Server::Unknown | Server::Pushed { .. } | Server::Rounds { .. } | Server::Gone => {}
        }
    }

    /// The door that waits for the opening, for a server that ends over it.
    pub(super) fn refuse_opener(&mut self, why: &str) {
        if let Server::Trying(Trial {
            opener: Opener::Initialize { door, id, .. } | Opener::Discover { door, id },
            ..
        }) = &self.server
        {
            let frame = Refusal::new(-32603, why).to_response(id);
            let door = *door;
            self.tell_client(door, frame, true);
        }
    }
}

fn error_of(text: &str) -> Option<Box<RawValue>> {
    let range = Glance::at(text.as_bytes())?.error?;
    frame::raw_at(text, &range).map(ToOwned::to_owned)
}
