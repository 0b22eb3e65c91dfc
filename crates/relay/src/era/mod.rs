//! The eras: the state of each side, and the translation between them.
//!
//! | file | contents |
//! | --- | --- |
//! | `pushed_client` | a client that has a session: it is pushed questions, and responds |
//! | `rounds_client` | a client whose retries answer what it was asked in `input_required` |
//! | `pushed_server` | a server that pushes its questions |
//! | `rounds_server` | a server that asks in its results |
//!
//! Everything else asks [`Client`] and [`Server`] for what it needs to know, by meaning, and the relay to translate.

mod pushed_client;
mod pushed_server;
mod rounds_client;
mod rounds_server;

use crate::CallKind;
use crate::ClientFrame;
use crate::calls::Call;
use crate::era_probe::EraProbe;
use crate::from_client::Carried;
use crate::from_client::Start;
use crate::negotiation::own_info;
use crate::{ClientForward, Relay};
use mcp_elicit_core::wire::{Capability, Era, Mode, Revision, meta};
use serde_json::Value;

/// The state of the client.
pub(crate) enum Client {
    /// It has not spoken yet.
    Unknown,
    /// It opened a session with `initialize`.
    Pushed {
        /// The revision spoken with it.
        revision: Revision,
        /// The modes that it can ask in, in this session.
        capability: Capability,
        /// `clientInfo`, JSON.
        info: String,
        /// `capabilities`, JSON.
        capabilities: String,
    },
    /// Each of its requests speaks for itself.
    Rounds {
        /// `clientInfo`, JSON, as last seen.
        info: Option<String>,
        /// `clientCapabilities`, JSON, as last seen.
        capabilities: String,
    },
}

impl Client {
    /// Returns `true` for a client of the pushed era: it has a session, in which requests are pushed to it.
    pub(crate) fn is_pushed_to(&self) -> bool {
        matches!(self, Self::Pushed { .. })
    }

    /// Returns `true` for a client of the rounds era: each request speaks for itself, and retries answer questions.
    pub(crate) fn answers_with_retries(&self) -> bool {
        matches!(self, Self::Rounds { .. })
    }

    /// Returns the modes that the client can ask in: in its session, or in this call.
    pub(crate) fn capability(&self, call: Option<&Call>) -> Capability {
        match (self, call) {
            (Self::Pushed { capability, .. }, _) => *capability,
            (Self::Rounds { .. }, Some(call)) => call.capability(),
            (Self::Rounds { .. } | Self::Unknown, _) => Capability::NONE,
        }
    }

    /// Returns `true` for a client that knows `notifications/elicitation/complete`: url mode came after 2025-06-18, and the
    /// notification went with the pushed era.
    pub(crate) fn knows_completion(&self) -> bool {
        !self.answers_with_retries() && self.has_url_mode()
    }

    /// Returns a result of the gateway's own as this client reads it: `resultType` is the rounds era's.
    pub(crate) fn own_result(&self, mut result: Value) -> Value {
        if !self.answers_with_retries()
            && let Some(members) = result.as_object_mut()
        {
            members.shift_remove("resultType");
        }
        result
    }

    pub(crate) fn info(&self) -> Option<String> {
        match self {
            Self::Unknown => None,
            Self::Pushed { info, .. } => Some(info.clone()),
            Self::Rounds { info, .. } => info.clone(),
        }
    }

    /// `clientInfo` as the server is told it: the gateway's own where the client gave none.
    pub(crate) fn info_or_own(&self) -> Value {
        self.info()
            .and_then(|info| serde_json::from_str(&info).ok())
            .unwrap_or_else(own_info)
    }

    /// Returns whether the revision of a pushed client has url mode.
    fn has_url_mode(&self) -> bool {
        !matches!(self, Self::Pushed { revision, .. } if !revision.has_mode(Mode::Url))
    }

    /// Returns what the client says that it can do; `null` where it said nothing that can be read.
    pub(crate) fn capabilities(&self) -> Value {
        match self {
            Self::Unknown => Value::Null,
            Self::Pushed { capabilities, .. } | Self::Rounds { capabilities, .. } => {
                serde_json::from_str(capabilities).unwrap_or_default()
            }
        }
    }
}

/// The state of the server.
pub(crate) enum Server {
    /// It was not spoken to yet.
    Unknown,
    /// It is being asked.
    Probing(EraProbe),
    /// It has a session, opened with `initialize`.
    Pushed {
        revision: Revision,
        /// `InitializeResult`, JSON.
        result: String,
        /// Its description of itself, JSON.
        info: Option<String>,
    },
    /// It answered `server/discover`.
    Rounds {
        /// `DiscoverResult`, JSON.
        result: String,
        /// Its description of itself, JSON.
        info: Option<String>,
    },
    /// It has ended.
    Gone,
}

impl Server {
    /// Returns `true` for a server of the pushed era: it has a session, in which it pushes its questions.
    pub(crate) fn pushes_questions(&self) -> bool {
        matches!(self, Self::Pushed { .. })
    }

    /// Returns `true` for a server of the rounds era: it asks in its results, and keeps to each request's log level.
    pub(crate) fn asks_in_results(&self) -> bool {
        matches!(self, Self::Rounds { .. })
    }

    pub(crate) fn revision(&self) -> Option<Revision> {
        match self {
            Self::Unknown | Self::Probing(_) | Self::Gone => None,
            Self::Pushed { revision, .. } => Some(*revision),
            Self::Rounds { .. } => Some(Revision::V2026_07_28),
        }
    }

    /// A session, opened with this `InitializeResult`, JSON.
    pub(crate) fn pushed(revision: Revision, result: String) -> Self {
        Self::Pushed {
            revision,
            info: own_description(&result, Era::Pushed),
            result,
        }
    }

    /// A server that gave this `DiscoverResult`, JSON.
    pub(crate) fn rounds(result: String) -> Self {
        Self::Rounds {
            info: own_description(&result, Era::Rounds),
            result,
        }
    }

    /// Returns whether a session's server declared that it logs.
    pub(crate) fn has_logging(&self) -> bool {
        let Self::Pushed { result, .. } = self else {
            return false;
        };
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        result["capabilities"]["logging"].is_object()
    }

    /// `serverInfo`, JSON.
    pub(crate) fn info(&self) -> Option<String> {
        match self {
            Self::Unknown | Self::Probing(_) | Self::Gone => None,
            Self::Pushed { info, .. } | Self::Rounds { info, .. } => info.clone(),
        }
    }
}

impl Relay {
    /// A request of a known client for a known server goes to the server, in the server's era.
    pub(crate) fn translate_request(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
        carried: Carried,
    ) -> ClientForward {
        match (&self.client, &self.server) {
            (Client::Pushed { .. }, Server::Rounds { .. }) => self.pushed_to_rounds(frame, method),
            (Client::Rounds { .. }, Server::Pushed { .. }) => {
                self.rounds_to_pushed(frame, method, carried)
            }
            (Client::Rounds { .. }, _) => {
                let (capability, changed) = self.rounds_capability(*frame);
                let start = Start {
                    kind: CallKind::of_method(method),
                    changed,
                    capability,
                    carried,
                };
                self.start(frame, start)
            }
            (Client::Unknown | Client::Pushed { .. }, _) => {
                let start = Start {
                    kind: CallKind::of_method(method),
                    capability: self.client.capability(None),
                    ..Start::default()
                };
                self.start(frame, start)
            }
        }
    }
}

/// Returns where a server of this era says who it is, in what it answered its opening with.
pub(crate) fn server_info(result: &Value, era: Era) -> Option<&Value> {
    match era {
        Era::Pushed => result.get("serverInfo"),
        Era::Rounds => result.get("_meta")?.get(meta::SERVER_INFO),
    }
}

fn own_description(result: &str, era: Era) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    server_info(&result, era).map(Value::to_string)
}
