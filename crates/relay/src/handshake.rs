//! The eras of client and server: the client by how it opens, the server by how it takes that. The client's own opening goes to
//! the server first, with the capability added that the gateway has to give.

use mcp_elicit_core::wire::{
    Capability, Era, Id, Meta, Mode, Revision, members, message, meta, method,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::frame::{self, Refusal};
use super::glance::Glance;
use super::openings::own_info;
use super::trial::{Opener, Trial};
use super::{Door, Relay, Timer, Timestamp, Up};

/// The state of the client.
pub(super) enum Client {
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
    pub(super) fn era(&self) -> Option<Era> {
        match self {
            Self::Unknown => None,
            Self::Pushed { .. } => Some(Era::Pushed),
            Self::Rounds { .. } => Some(Era::Rounds),
        }
    }

    pub(super) fn info(&self) -> Option<String> {
        match self {
            Self::Unknown => None,
            Self::Pushed { info, .. } => Some(info.clone()),
            Self::Rounds { info, .. } => info.clone(),
        }
    }

    /// `clientInfo` as the server is told it: the gateway's own where the client gave none.
    pub(super) fn info_or_own(&self) -> Value {
        self.info()
            .and_then(|info| serde_json::from_str(&info).ok())
            .unwrap_or_else(own_info)
    }

    /// Returns whether the revision of a pushed client has url mode.
    pub(super) fn has_url_mode(&self) -> bool {
        !matches!(self, Self::Pushed { revision, .. } if !revision.has_mode(Mode::Url))
    }

    /// Returns what the client says that it can do; `null` where it said nothing that can be read.
    pub(super) fn capabilities(&self) -> Value {
        match self {
            Self::Unknown => Value::Null,
            Self::Pushed { capabilities, .. } | Self::Rounds { capabilities, .. } => {
                serde_json::from_str(capabilities).unwrap_or_default()
            }
        }
    }
}

/// The state of the server.
pub(super) enum Server {
    /// It was not spoken to yet.
    Unknown,
    /// It is being asked.
    Trying(Trial),
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
    pub(super) fn revision(&self) -> Option<Revision> {
        match self {
            Self::Unknown | Self::Trying(_) | Self::Gone => None,
            Self::Pushed { revision, .. } => Some(*revision),
            Self::Rounds { .. } => Some(Revision::V2026_07_28),
        }
    }

    /// A session, opened with this `InitializeResult`, JSON.
    pub(super) fn pushed(revision: Revision, result: String) -> Self {
        Self::Pushed {
            revision,
            info: said_of_itself(&result, Era::Pushed),
            result,
        }
    }

    /// A server that gave this `DiscoverResult`, JSON.
    pub(super) fn rounds(result: String) -> Self {
        Self::Rounds {
            info: said_of_itself(&result, Era::Rounds),
            result,
        }
    }

    /// Returns whether a session's server declared that it logs.
    pub(super) fn has_logging(&self) -> bool {
        let Self::Pushed { result, .. } = self else {
            return false;
        };
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        result["capabilities"]["logging"].is_object()
    }

    /// `serverInfo`, JSON.
    pub(super) fn info(&self) -> Option<String> {
        match self {
            Self::Unknown | Self::Trying(_) | Self::Gone => None,
            Self::Pushed { info, .. } | Self::Rounds { info, .. } => info.clone(),
        }
    }
}

/// Returns what a client of the rounds era can do in a session that the gateway opens for it: what a server pushes and is no
/// question does not reach it.
pub(super) fn in_session(mut capabilities: Value) -> Value {
    if let Some(all) = capabilities.as_object_mut() {
        all.retain(|name, _| !matches!(name.as_str(), "sampling" | "roots" | "tasks"));
    }
    capabilities
}

impl Relay {
    /// The client opens a session.
    pub(super) fn client_initializes(&mut self, door: Door, text: &str, glance: &Glance) -> Up {
        let Some((id, params)) = opening(text, glance) else {
            return self.refuse(
                door,
                text,
                glance,
                &Refusal::new(-32602, "`initialize` needs params"),
            );
        };
        let asked = string_member(params, "protocolVersion").unwrap_or_default();
        let capabilities = members::member(params, "capabilities").map_or("{}", RawValue::get);
        let spoken = asked
            .parse()
            .unwrap_or(Revision::LATEST_PUSHED)
            .min(Revision::LATEST_PUSHED);
        let declared: Value = serde_json::from_str(capabilities).unwrap_or_default();
        self.client = Client::Pushed {
            revision: spoken,
            capability: Capability::from_client(&declared, spoken),
            info: members::member(params, "clientInfo")
                .map_or("{}", RawValue::get)
                .to_owned(),
            capabilities: capabilities.to_owned(),
        };
        let opener = Opener::Initialize {
            door,
            id: id.clone(),
            revision: asked,
        };
        match &self.server {
            Server::Unknown => {}
            Server::Pushed { .. } | Server::Rounds { .. } => {
                self.answer_opener(opener);
                return Up::Taken;
            }
            Server::Trying(_) => return self.waits(door, text, glance),
            Server::Gone => return self.refuse(door, text, glance, &self.gone()),
        }
        let mut trial = Trial::new(id.clone(), opener);
        if spoken < Revision::LATEST_PUSHED {
            // The server's own revision decides what it can ask; what the client's cannot carry, the gateway does.
            trial.older = Some((spoken, params.to_owned()));
            self.server = Server::Trying(trial);
            let newest = self.initialize_at(&id, params, Revision::LATEST_PUSHED);
            self.tell_server(newest, None);
            return Up::Taken;
        }
        self.server = Server::Trying(trial);
        let capabilities = self.with_declared(capabilities, spoken);
        self.forward_with(text, params, "capabilities", capabilities)
    }

    /// The client's `initialize` at this revision, with what the gateway adds to its capabilities.
    pub(super) fn initialize_at(&self, id: &Id, params: &RawValue, revision: Revision) -> String {
        let capabilities = members::member(params, "capabilities").map_or("{}", RawValue::get);
        let mut params = params.to_owned();
        let revised = members::raw_text(revision.as_str());
        let declared = self.with_declared(capabilities, revision);
        for (name, value) in [
            ("protocolVersion", Some(revised)),
            ("capabilities", declared),
        ] {
            if let (Some(value), Ok(all)) = (value, members::Members::read(&params, "params")) {
                params = all.with(name, Some(&value));
            }
        }
        message::request(id, method::INITIALIZE, Some(&params))
    }

    /// The client asks which revisions the server speaks.
    pub(super) fn client_discovers(
        &mut self,
        now: Timestamp,
        door: Door,
        text: &str,
        glance: &Glance,
    ) -> Up {
        let Some((id, params)) = opening(text, glance) else {
            return self.refuse(
                door,
                text,
                glance,
                &Refusal::new(-32602, "`server/discover` needs params"),
            );
        };
        self.meet_rounds_client(text, glance);
        let opener = Opener::Discover {
            door,
            id: id.clone(),
        };
        match &self.server {
            Server::Unknown => {}
            Server::Pushed { .. } => {
                self.answer_opener(opener);
                return Up::Taken;
            }
            // The server's own answer may change, and may depend on who asks.
            Server::Rounds { .. } => return self.route(now, door, text, glance, method::DISCOVER),
            Server::Trying(_) => return self.waits(door, text, glance),
            Server::Gone => return self.refuse(door, text, glance, &self.gone()),
        }
        self.server = Server::Trying(Trial::new(id, opener));
        self.at(now.after(self.settings.probe), Timer::Probe);
        let capabilities = Meta::from_params(Some(params))
            .ok()
            .and_then(|meta| meta.client_capabilities());
        let capabilities = capabilities.map_or("{}", RawValue::get);
        let changed = self.with_declared(capabilities, Revision::V2026_07_28);
        match changed.map(|value| meta::with(Some(params), meta::CLIENT_CAPABILITIES, Some(&value)))
        {
            Some(Ok(params)) => self.send_changed(text, glance, &params),
            Some(Err(_)) | None => Up::Forward(None),
        }
    }

    /// Remembers what a request of the rounds era says about its client. `false` when it is none.
    pub(super) fn meet_rounds_client(&mut self, text: &str, glance: &Glance) -> bool {
        let params = glance
            .params
            .as_ref()
            .and_then(|range| frame::raw_at(text, range));
        let Ok(meta) = Meta::from_params(params) else {
            return false;
        };
        if !meta.is_rounds() {
            return false;
        }
        self.client = Client::Rounds {
            info: meta.client_info().map(|info| info.get().to_owned()),
            capabilities: meta
                .client_capabilities()
                .map_or("{}", RawValue::get)
                .to_owned(),
        };
        true
    }

    fn forward_with(
        &mut self,
        text: &str,
        params: &RawValue,
        name: &str,
        value: Option<Box<RawValue>>,
    ) -> Up {
        let Some(value) = value else {
            return Up::Forward(None);
        };
        let (Ok(all), Some(glance)) = (
            members::Members::read(params, "params"),
            Glance::at(text.as_bytes()),
        ) else {
            return Up::Forward(None);
        };
        let params = all.with(name, Some(&value));
        self.send_changed(text, &glance, &params)
    }

    fn send_changed(&mut self, text: &str, glance: &Glance, params: &RawValue) -> Up {
        match &glance.params {
            Some(range) => {
                self.tell_server(frame::spliced(text, range, params.get()), None);
                Up::Taken
            }
            None => Up::Forward(None),
        }
    }

    pub(super) fn flush_waiting(&mut self, now: Timestamp) {
        if self.server.revision().is_none() {
            return;
        }
        for (door, waited) in std::mem::take(&mut self.waiting) {
            if let Up::Forward(call) = self.client_frame(now, door, &waited) {
                self.tell_server(String::from_utf8_lossy(&waited).into_owned(), call);
            }
        }
    }

    pub(super) fn refuse_waiting(&mut self, why: &str) {
        let refusal = Refusal::new(-32603, format!("the server {} {why}", self.shown_server()));
        for (door, waited) in std::mem::take(&mut self.waiting) {
            if let (Some(glance), Ok(text)) = (Glance::at(&waited), std::str::from_utf8(&waited)) {
                self.refuse(door, text, &glance, &refusal);
            }
        }
    }

    pub(super) fn gone(&self) -> Refusal {
        Refusal::new(
            -32603,
            format!("the server {} has ended", self.shown_server()),
        )
    }
}

/// Returns where a server of this era says who it is, in what it answered its opening with.
pub(super) fn server_info(result: &Value, era: Era) -> Option<&Value> {
    match era {
        Era::Pushed => result.get("serverInfo"),
        Era::Rounds => result.get("_meta")?.get(meta::SERVER_INFO),
    }
}

fn said_of_itself(result: &str, era: Era) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    server_info(&result, era).map(Value::to_string)
}

fn opening<'a>(text: &'a str, glance: &Glance) -> Option<(Id, &'a RawValue)> {
    let id = frame::id_of(text, glance)?;
    let params = frame::raw_at(text, glance.params.as_ref()?)?;
    Some((id, params))
}

fn string_member(object: &RawValue, name: &str) -> Option<String> {
    members::member(object, name)
        .and_then(members::text)
        .map(std::borrow::Cow::into_owned)
}
