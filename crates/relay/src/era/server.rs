//! The server's side: its era, and the rules that depend on it.

use mcp_elicit_core::wire::{ASKS_IN_EVERY_ERA, Revision, SessionVersion};
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
    Probing(Box<EraProbe>),
    /// The server has a session, opened with `initialize`.
    Pushed(PushedServer),
    /// The server answered `server/discover`.
    Rounds(RoundsServer),
    /// The server lacks the revision that the operator set, for this reason.
    Unusable(String),
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
    /// The server lacks the revision that the operator set.
    Unusable,
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
        Self(ServerEra::Probing(Box::new(probe)))
    }

    /// Creates a server that lacks the revision which the operator set, for this reason.
    pub(crate) fn unusable(why: String) -> Self {
        Self(ServerEra::Unusable(why))
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
            ServerEra::Unusable(_) => Contact::Unusable,
            ServerEra::Gone => Contact::Gone,
        }
    }

    /// Returns the reason why a server cannot be used that lacks the operator's revision.
    pub(crate) fn why_unusable(&self) -> Option<&str> {
        match &self.0 {
            ServerEra::Unusable(why) => Some(why),
            _ => None,
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

    /// Records that the session, which the next answer opens, has no id.
    pub(crate) fn note_no_session(&mut self) {
        if let Some(probe) = self.probe_mut() {
            probe.note_no_session();
        }
    }

    /// Takes the probe out, which leaves the server as not contacted; any other state is unchanged.
    pub(crate) fn take_probe(&mut self) -> Option<EraProbe> {
        match std::mem::take(&mut self.0) {
            ServerEra::Probing(probe) => Some(*probe),
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
    pub(crate) fn asks_in_results(&self) -> bool {
        matches!(self.0, ServerEra::Rounds(_))
    }

    /// Returns the server's revision, once known.
    pub(crate) fn revision(&self) -> Option<Revision> {
        match &self.0 {
            ServerEra::Unknown
            | ServerEra::Probing(_)
            | ServerEra::Unusable(_)
            | ServerEra::Gone => None,
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
        let given = self.revision().map(Revision::as_str);
        given.is_some_and(|given| SessionVersion::for_client(asked).as_str() < given)
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
            ServerEra::Unknown
            | ServerEra::Probing(_)
            | ServerEra::Unusable(_)
            | ServerEra::Gone => None,
            ServerEra::Pushed(server) => server.info().map(str::to_owned),
            ServerEra::Rounds(server) => server.info().map(str::to_owned),
        }
    }

    /// Returns the `InitializeResult` for a client that requested `asked`; `name` is used if the server gave none.
    ///
    /// It leaves out that the server asks in every era: a client that has read it would go on with requests of 2026-07-28
    /// on the same connection, which a session of the gateway does not take.
    pub(crate) fn initialize_result(&self, asked: &str, name: &str) -> Value {
        let version = SessionVersion::for_client(asked);
        let mut result = match &self.0 {
            ServerEra::Pushed(server) => server.initialize_result(version),
            ServerEra::Rounds(server) => server.initialize_result(version, name),
            ServerEra::Unknown
            | ServerEra::Probing(_)
            | ServerEra::Unusable(_)
            | ServerEra::Gone => json!({}),
        };
        if let Some(capabilities) = result.get_mut("capabilities")
            && let Some(capabilities) = capabilities.as_object_mut()
            && let Some(experimental) = capabilities.get_mut("experimental")
            && let Some(declared) = experimental.as_object_mut()
            && declared.remove(ASKS_IN_EVERY_ERA).is_some()
            && declared.is_empty()
        {
            capabilities.remove("experimental");
        }
        result
    }

    /// Returns the `DiscoverResult` for a client.
    pub(crate) fn discover_result(&self) -> Value {
        match &self.0 {
            ServerEra::Pushed(server) => server.discover_result(),
            ServerEra::Rounds(server) => server.discover_result(),
            ServerEra::Unknown
            | ServerEra::Probing(_)
            | ServerEra::Unusable(_)
            | ServerEra::Gone => json!({}),
        }
    }
}
