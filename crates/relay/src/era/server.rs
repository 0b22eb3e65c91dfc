//! The server's side: its era, and the rules that depend on it.

use mcp_elicit_core::wire::Revision;
use serde_json::{Value, json};

use super::probe::EraProbe;
use super::pushed_server::PushedServer;
use super::rounds_server::RoundsServer;

/// The state of the server. Only this module and its files read it.
#[derive(Default)]
pub(crate) struct Server(pub(super) ServerEra);

/// The era of the server.
#[derive(Default)]
pub(super) enum ServerEra {
    /// The server was not contacted yet.
    #[default]
    Unknown,
    /// The server is being asked for its era.
    Probing(EraProbe),
    /// The server has a session, opened with `initialize`.
    Pushed(PushedServer),
    /// The server answered `server/discover`.
    Rounds(RoundsServer),
    /// The server has ended.
    Gone,
}

/// The state of the contact with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// The server was not contacted yet.
    New,
    /// The server is being asked for its era.
    Probing,
    /// The server's era is known.
    Known,
    /// The server has ended.
    Gone,
}

impl Server {
    /// Creates a server that opened a session of this revision with this `InitializeResult` (JSON).
    pub(crate) fn pushed(revision: Revision, result: String) -> Self {
        Self(ServerEra::Pushed(PushedServer::new(revision, result)))
    }

    /// Creates a server that gave this `DiscoverResult` (JSON).
    pub(crate) fn rounds(result: String) -> Self {
        Self(ServerEra::Rounds(RoundsServer::new(result)))
    }

    /// Creates a server that is being asked for its era.
    pub(crate) fn probing(probe: EraProbe) -> Self {
        Self(ServerEra::Probing(probe))
    }

    /// Creates a server that has ended.
    pub(crate) fn gone() -> Self {
        Self(ServerEra::Gone)
    }

    /// Returns the state of the contact.
    pub(crate) fn contact(&self) -> Contact {
        match &self.0 {
            ServerEra::Unknown => Contact::New,
            ServerEra::Probing(_) => Contact::Probing,
            ServerEra::Pushed(_) | ServerEra::Rounds(_) => Contact::Known,
            ServerEra::Gone => Contact::Gone,
        }
    }

    /// Returns the probe, while the server is being asked for its era.
    pub(crate) fn probe(&self) -> Option<&EraProbe> {
        match &self.0 {
            ServerEra::Probing(probe) => Some(probe),
            _ => None,
        }
    }

    /// Returns the probe mutably, while the server is being asked for its era.
    pub(crate) fn probe_mut(&mut self) -> Option<&mut EraProbe> {
        match &mut self.0 {
            ServerEra::Probing(probe) => Some(probe),
            _ => None,
        }
    }

    /// Takes the probe out, which leaves the server as not contacted; any other state is unchanged.
    pub(crate) fn take_probe(&mut self) -> Option<EraProbe> {
        match std::mem::take(&mut self.0) {
            ServerEra::Probing(probe) => Some(probe),
            other => {
                self.0 = other;
                None
            }
        }
    }

    /// Returns `true` for a server of the pushed era: it pushes its questions in a session.
    pub(super) fn pushes_questions(&self) -> bool {
        matches!(self.0, ServerEra::Pushed(_))
    }

    /// Returns `true` for a server of the rounds era: it asks in its results.
    pub(super) fn asks_in_results(&self) -> bool {
        matches!(self.0, ServerEra::Rounds(_))
    }

    /// Returns the server's revision, once known.
    pub(crate) fn revision(&self) -> Option<Revision> {
        match &self.0 {
            ServerEra::Unknown | ServerEra::Probing(_) | ServerEra::Gone => None,
            ServerEra::Pushed(server) => Some(server.revision()),
            ServerEra::Rounds(_) => Some(Revision::V2026_07_28),
        }
    }

    /// Returns the server's revision, or the latest of the pushed era while it is unknown.
    pub(crate) fn revision_or_latest(&self) -> Revision {
        self.revision().unwrap_or(Revision::LATEST_PUSHED)
    }

    /// Returns `true` if its revision is newer than the one that a client requested, so that the gateway translates.
    pub(super) fn is_newer_than(&self, asked: &str) -> bool {
        match (asked.parse::<Revision>(), self.revision()) {
            (Ok(asked), Some(given)) => asked < given,
            (Err(_), _) | (_, None) => false,
        }
    }

    /// Returns `true` if a session's server declared logging.
    pub(crate) fn has_logging(&self) -> bool {
        match &self.0 {
            ServerEra::Pushed(server) => server.has_logging(),
            _ => false,
        }
    }

    /// Returns `serverInfo` as JSON.
    pub(crate) fn info(&self) -> Option<String> {
        match &self.0 {
            ServerEra::Unknown | ServerEra::Probing(_) | ServerEra::Gone => None,
            ServerEra::Pushed(server) => server.info().map(str::to_owned),
            ServerEra::Rounds(server) => server.info().map(str::to_owned),
        }
    }

    /// Returns the `InitializeResult` for a client that requested `asked`; `name` is used if the server gave none.
    pub(crate) fn initialize_result(&self, asked: &str, name: &str) -> Value {
        let spoken = asked
            .parse::<Revision>()
            .unwrap_or(Revision::LATEST_PUSHED)
            .min(Revision::LATEST_PUSHED);
        match &self.0 {
            ServerEra::Pushed(server) => server.initialize_result(spoken),
            ServerEra::Rounds(server) => server.initialize_result(spoken, name),
            ServerEra::Unknown | ServerEra::Probing(_) | ServerEra::Gone => json!({}),
        }
    }

    /// Returns the `DiscoverResult` for a client, for a server that gave none itself.
    pub(crate) fn discover_result(&self) -> Value {
        match &self.0 {
            ServerEra::Pushed(server) => server.discover_result(),
            _ => json!({}),
        }
    }
}
