//! The eras of client and server: the client by how it opens, the server by how it takes that. The client's own opening goes to
//! the server first, with the capability added that the gateway has to give.

use mcp_elicit_core::wire::{
    Capability, Era, Id, Meta, Mode, Revision, members, message, meta, method,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::era_probe::{EraProbe, Opening};
use super::frame_edit::{self, ErrorResponse};
use super::negotiation::own_info;
use super::{ClientForward, Relay, StreamId, Timer, Timestamp};
use mcp_elicit_core::wire::FrameIndex;

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
    pub(super) fn revision(&self) -> Option<Revision> {
        match self {
            Self::Unknown | Self::Probing(_) | Self::Gone => None,
            Self::Pushed { revision, .. } => Some(*revision),
            Self::Rounds { .. } => Some(Revision::V2026_07_28),
        }
    }

    /// A session, opened with this `InitializeResult`, JSON.
    pub(super) fn pushed(revision: Revision, result: String) -> Self {
        Self::Pushed {
            revision,
            info: own_description(&result, Era::Pushed),
            result,
        }
    }

    /// A server that gave this `DiscoverResult`, JSON.
    pub(super) fn rounds(result: String) -> Self {
        Self::Rounds {
            info: own_description(&result, Era::Rounds),
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
            Self::Unknown | Self::Probing(_) | Self::Gone => None,
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
    pub(super) fn client_initializes(
        &mut self,
        stream: StreamId,
        text: &str,
        index: &FrameIndex,
    ) -> ClientForward {
        let Some((id, params)) = opening(text, index) else {
            return self.reject(
                stream,
                text,
                index,
                &ErrorResponse::new(-32602, "`initialize` needs params"),
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
        let opening = Opening::Initialize {
            stream,
            id: id.clone(),
            revision: asked,
        };
        match &self.server {
            Server::Unknown => {}
            Server::Pushed { .. } | Server::Rounds { .. } => {
                self.answer_opening(opening);
                return ClientForward::Handled;
            }
            Server::Probing(_) => return self.wait_for_era(stream, text, index),
            Server::Gone => return self.reject(stream, text, index, &self.server_ended()),
        }
        let mut probe = EraProbe::new(id.clone(), opening);
        if spoken < Revision::LATEST_PUSHED {
            // The server's own revision decides what it can ask; what the client's cannot carry, the gateway does.
            probe.older = Some((spoken, params.to_owned()));
            self.server = Server::Probing(probe);
            let newest = self.initialize_at(&id, params, Revision::LATEST_PUSHED);
            self.tell_server(newest, None);
            return ClientForward::Handled;
        }
        self.server = Server::Probing(probe);
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
        stream: StreamId,
        text: &str,
        index: &FrameIndex,
    ) -> ClientForward {
        let Some((id, params)) = opening(text, index) else {
            return self.reject(
                stream,
                text,
                index,
                &ErrorResponse::new(-32602, "`server/discover` needs params"),
            );
        };
        self.learn_rounds_client(text, index);
        let opening = Opening::Discover {
            stream,
            id: id.clone(),
        };
        match &self.server {
            Server::Unknown => {}
            Server::Pushed { .. } => {
                self.answer_opening(opening);
                return ClientForward::Handled;
            }
            // The server's own answer may change, and may depend on who asks.
            Server::Rounds { .. } => return self.route(now, stream, text, index, method::DISCOVER),
            Server::Probing(_) => return self.wait_for_era(stream, text, index),
            Server::Gone => return self.reject(stream, text, index, &self.server_ended()),
        }
        self.server = Server::Probing(EraProbe::new(id, opening));
        self.at(now.after(self.settings.probe), Timer::Probe);
        let capabilities = Meta::from_params(Some(params))
            .ok()
            .and_then(|meta| meta.client_capabilities());
        let capabilities = capabilities.map_or("{}", RawValue::get);
        let changed = self.with_declared(capabilities, Revision::V2026_07_28);
        match changed.map(|value| meta::with(Some(params), meta::CLIENT_CAPABILITIES, Some(&value)))
        {
            Some(Ok(params)) => self.send_changed(text, index, &params),
            Some(Err(_)) | None => ClientForward::AsIs(None),
        }
    }

    /// Remembers what a request of the rounds era says about its client. `false` when it is none.
    pub(super) fn learn_rounds_client(&mut self, text: &str, index: &FrameIndex) -> bool {
        let params = index
            .params
            .as_ref()
            .and_then(|range| frame_edit::raw_at(text, range));
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
    ) -> ClientForward {
        let Some(value) = value else {
            return ClientForward::AsIs(None);
        };
        let (Ok(all), Some(index)) = (
            members::Members::read(params, "params"),
            FrameIndex::at(text.as_bytes()),
        ) else {
            return ClientForward::AsIs(None);
        };
        let params = all.with(name, Some(&value));
        self.send_changed(text, &index, &params)
    }

    fn send_changed(&mut self, text: &str, index: &FrameIndex, params: &RawValue) -> ClientForward {
        match &index.params {
            Some(range) => {
                self.tell_server(frame_edit::spliced(text, range, params.get()), None);
                ClientForward::Handled
            }
            None => ClientForward::AsIs(None),
        }
    }

    pub(super) fn flush_waiting(&mut self, now: Timestamp) {
        if self.server.revision().is_none() {
            return;
        }
        for (stream, waited) in std::mem::take(&mut self.waiting) {
            if let ClientForward::AsIs(call) = self.client_frame(now, stream, &waited) {
                self.tell_server(String::from_utf8_lossy(&waited).into_owned(), call);
            }
        }
    }

    pub(super) fn reject_waiting(&mut self, why: &str) {
        let refusal =
            ErrorResponse::new(-32603, format!("the server {} {why}", self.shown_server()));
        for (stream, waited) in std::mem::take(&mut self.waiting) {
            if let (Some(index), Ok(text)) = (FrameIndex::at(&waited), std::str::from_utf8(&waited))
            {
                self.reject(stream, text, &index, &refusal);
            }
        }
    }

    pub(super) fn server_ended(&self) -> ErrorResponse {
        ErrorResponse::new(
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

fn own_description(result: &str, era: Era) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    server_info(&result, era).map(Value::to_string)
}

fn opening<'a>(text: &'a str, index: &FrameIndex) -> Option<(Id, &'a RawValue)> {
    let id = frame_edit::id_of(text, index)?;
    let params = frame_edit::raw_at(text, index.params.as_ref()?)?;
    Some((id, params))
}

fn string_member(object: &RawValue, name: &str) -> Option<String> {
    members::member(object, name)
        .and_then(members::text)
        .map(std::borrow::Cow::into_owned)
}
