//! Who speaks which era, and an answer to `initialize` and `server/discover` for a client of either.
//!
//! The client's own opening goes to the server first, with the capability added that the gateway has to give. A server
//! that refuses it is asked in the other era's way, and the client gets its answer in its own. A server that does not
//! survive the question (some end when the first message is not `initialize`) is started anew.

use mcp_elicit_core::wire::{
    Capability, Era, Id, Meta, Mode, Revision, members, message, meta, method,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::frame::{self, Refusal};
use super::glance::{self, Glance};
use super::{CallKey, Door, Down, Effect, Moment, Relay, Timer, Up};

/// What is known of the client.
pub(super) enum Client {
    /// It has not spoken yet.
    Unknown,
    /// It opened a session with `initialize`.
    Pushed {
        /// The revision spoken with it.
        revision: Revision,
        /// What it can ask in this session.
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

    fn capabilities(&self) -> &str {
        match self {
            Self::Unknown => "{}",
            Self::Pushed { capabilities, .. } | Self::Rounds { capabilities, .. } => capabilities,
        }
    }
}

/// What is known of the server.
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
    },
    /// It answered `server/discover`.
    Rounds {
        /// `DiscoverResult`, JSON.
        result: String,
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

    /// `serverInfo`, JSON.
    pub(super) fn info(&self) -> Option<String> {
        let (result, path) = match self {
            Self::Unknown | Self::Trying(_) | Self::Gone => return None,
            Self::Pushed { result, .. } => (result, "/serverInfo".to_owned()),
            Self::Rounds { result } => (
                result,
                format!("/_meta/{}", meta::SERVER_INFO.replace('/', "~1")),
            ),
        };
        let result: Value = serde_json::from_str(result).ok()?;
        result.pointer(&path).map(Value::to_string)
    }
}

/// A question about the era under way.
pub(super) struct Trial {
    /// The id it went out with.
    id: Id,
    /// What went out.
    step: Step,
    /// Why: whoever waits for the outcome.
    opener: Opener,
    /// The error that the first step brought.
    refusal: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Initialize,
    Discover,
}

/// Whose message opened the conversation.
#[derive(Clone)]
enum Opener {
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

impl Relay {
    /// The client opens a session.
    pub(super) fn client_initializes(
        &mut self,
        now: Moment,
        door: Door,
        text: &str,
        glance: &Glance,
    ) -> Up {
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
            capability: Capability::of_client(&declared, spoken),
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
            Server::Trying(_) => {
                self.waiting.push_back((door, text.as_bytes().to_vec()));
                return Up::Taken;
            }
            Server::Gone => return self.refuse(door, text, glance, &self.gone()),
        }
        self.server = Server::Trying(Trial {
            id,
            step: Step::Initialize,
            opener,
            refusal: None,
        });
        let _ = now;
        let capabilities = self.with_declared(capabilities, spoken);
        self.forward_with(text, params, "capabilities", capabilities)
    }

    /// The client asks which revisions the server speaks.
    pub(super) fn client_discovers(
        &mut self,
        now: Moment,
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
            Server::Trying(_) => {
                self.waiting.push_back((door, text.as_bytes().to_vec()));
                return Up::Taken;
            }
            Server::Gone => return self.refuse(door, text, glance, &self.gone()),
        }
        self.server = Server::Trying(Trial {
            id,
            step: Step::Discover,
            opener,
            refusal: None,
        });
        self.at(now.after(self.settings.probe), Timer::Probe);
        let capabilities = Meta::of_params(Some(params))
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
        let Ok(meta) = Meta::of_params(params) else {
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

    /// Asks the server for its era on behalf of a request that waits.
    pub(super) fn try_discover(&mut self, now: Moment, opener_request: bool) {
        if !opener_request || !matches!(self.server, Server::Unknown) {
            return;
        }
        self.send_probe(now, Step::Discover, Opener::Request, None);
    }

    fn send_probe(&mut self, now: Moment, step: Step, opener: Opener, refusal: Option<String>) {
        let id = self.own_id();
        let info = self.client.info().unwrap_or_else(|| own_info().to_string());
        let frame = match step {
            Step::Discover => {
                let params = json!({"_meta": self.rounds_meta(&info)});
                self.at(now.after(self.settings.probe), Timer::Probe);
                message::request(&id, method::DISCOVER, Some(&members::raw_value(&params)))
            }
            Step::Initialize => {
                let revision = Revision::LATEST_PUSHED;
                let capabilities: Value =
                    serde_json::from_str(self.client.capabilities()).unwrap_or_default();
                let capabilities = declare(capabilities, self.declared(), revision);
                let info: Value = serde_json::from_str(&info).unwrap_or_else(|_| own_info());
                let params = json!({"protocolVersion": revision.as_str(), "capabilities": capabilities, "clientInfo": info});
                message::request(&id, method::INITIALIZE, Some(&members::raw_value(&params)))
            }
        };
        self.server = Server::Trying(Trial {
            id,
            step,
            opener,
            refusal,
        });
        self.tell_server(frame, None);
    }

    /// `_meta` of a request that the gateway makes in the rounds era for a pushed client.
    pub(super) fn rounds_meta(&self, info: &str) -> Value {
        let capabilities: Value =
            serde_json::from_str(self.client.capabilities()).unwrap_or_default();
        let info: Value = serde_json::from_str(info).unwrap_or_else(|_| own_info());
        json!({
            meta::PROTOCOL_VERSION: Revision::V2026_07_28.as_str(),
            meta::CLIENT_INFO: info,
            meta::CLIENT_CAPABILITIES: declare(capabilities, self.declared(), Revision::V2026_07_28),
        })
    }

    /// Takes the server's answer to an opening; gives it back when it is none.
    pub(super) fn trial_answered(
        &mut self,
        now: Moment,
        id: &Id,
        text: &str,
        glance: &Glance,
    ) -> Option<Down> {
        if !matches!(&self.server, Server::Trying(trial) if trial.id == *id) {
            return None;
        }
        let Server::Trying(trial) = std::mem::replace(&mut self.server, Server::Unknown) else {
            return None;
        };
        self.cancel_timers(|timer| *timer == Timer::Probe);
        let down = match &glance.result {
            Some(range) => self.trial_won(trial, text, range.clone()),
            None => self.trial_lost(now, trial, Some(text)),
        };
        self.flush_waiting(now);
        Some(down)
    }

    fn trial_won(&mut self, trial: Trial, text: &str, range: std::ops::Range<usize>) -> Down {
        let result = text[range.clone()].to_owned();
        match trial.step {
            Step::Initialize => {
                let version = glance::member(text.as_bytes(), &range, "protocolVersion");
                let told = version
                    .and_then(|range| serde_json::from_str::<String>(&text[range]).ok())
                    .unwrap_or_default();
                let revision = told
                    .parse()
                    .unwrap_or(Revision::V2025_06_18)
                    .min(Revision::LATEST_PUSHED);
                self.server = Server::Pushed { revision, result };
            }
            Step::Discover => self.server = Server::Rounds { result },
        }
        match (&trial.opener, trial.step) {
            (Opener::Initialize { door, revision, .. }, Step::Initialize)
                if !self.must_pretend(revision) =>
            {
                Down::Forward {
                    door: *door,
                    last: true,
                }
            }
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

    /// Whether the client asked for an older revision than the server gives, and the gateway stands between them.
    fn must_pretend(&self, asked: &str) -> bool {
        match (asked.parse::<Revision>(), self.server.revision()) {
            (Ok(asked), Some(given)) => asked < given,
            (Err(_), _) | (_, None) => false,
        }
    }

    fn trial_lost(&mut self, now: Moment, trial: Trial, error: Option<&str>) -> Down {
        let refusal = trial.refusal.clone().or_else(|| error.map(str::to_owned));
        let tried_first = match trial.opener {
            Opener::Initialize { .. } => Step::Initialize,
            Opener::Discover { .. } | Opener::Request => Step::Discover,
        };
        if trial.step == tried_first {
            let other = if tried_first == Step::Initialize {
                Step::Discover
            } else {
                Step::Initialize
            };
            self.send_probe(now, other, trial.opener, refusal);
            return Down::Taken;
        }
        self.server = Server::Unknown;
        match trial.opener {
            Opener::Initialize { door, id, .. } | Opener::Discover { door, id } => {
                let said = refusal.as_deref().and_then(error_of);
                let frame = match said {
                    Some(error) => message::error(Some(&id), &error),
                    None => Refusal::new(
                        -32603,
                        format!("{} answers neither era", self.settings.server),
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

    /// The server said nothing in time: it is asked the other way, or given up.
    pub(super) fn probe_timed_out(&mut self, now: Moment) {
        match std::mem::replace(&mut self.server, Server::Unknown) {
            Server::Trying(trial) if trial.step == Step::Discover => {
                self.trial_lost(now, trial, None);
            }
            other => self.server = other,
        }
    }

    /// The server ended. When it did so over a question about its era, it is started anew; `true` then.
    pub(super) fn ended_over_probe(&mut self) -> bool {
        let over_probe =
            matches!(&self.server, Server::Trying(trial) if trial.step == Step::Discover);
        if over_probe {
            self.cancel_timers(|timer| *timer == Timer::Probe);
            self.effects.push_back(Effect::Restart);
        }
        over_probe
    }

    /// The server runs again after it ended over a question about its era.
    pub(super) fn restarted(&mut self, now: Moment) {
        match std::mem::replace(&mut self.server, Server::Unknown) {
            Server::Trying(trial) => {
                self.trial_lost(now, trial, None);
            }
            Server::Unknown | Server::Pushed { .. } | Server::Rounds { .. } | Server::Gone => {}
        }
    }

    /// Answers an opening from what is known of the server.
    fn answer_opener(&mut self, opener: Opener) {
        match opener {
            Opener::Request => {}
            Opener::Initialize { door, id, revision } => {
                let result = self.initialize_result(&revision);
                self.tell_client(
                    door,
                    message::result(&id, &members::raw_value(&result)),
                    true,
                );
            }
            Opener::Discover { door, id } => {
                let result = self.discover_result();
                self.tell_client(
                    door,
                    message::result(&id, &members::raw_value(&result)),
                    true,
                );
            }
        }
    }

    fn initialize_result(&self, asked: &str) -> Value {
        let spoken = asked
            .parse::<Revision>()
            .unwrap_or(Revision::LATEST_PUSHED)
            .min(Revision::LATEST_PUSHED);
        match &self.server {
            Server::Pushed { result, revision } => {
                let mut result: Value = serde_json::from_str(result).unwrap_or_default();
                result["protocolVersion"] = json!(spoken.min(*revision).as_str());
                result
            }
            Server::Rounds { result } => {
                let found: Value = serde_json::from_str(result).unwrap_or_default();
                let info = found
                    .pointer(&format!("/_meta/{}", meta::SERVER_INFO.replace('/', "~1")))
                    .cloned();
                let info =
                    info.unwrap_or_else(|| json!({"name": self.settings.server, "version": "0"}));
                let mut made = json!({
                    "protocolVersion": spoken.as_str(),
                    "capabilities": found.get("capabilities").cloned().unwrap_or_else(|| json!({})),
                    "serverInfo": info,
                });
                if let Some(instructions) = found.get("instructions") {
                    made["instructions"] = instructions.clone();
                }
                made
            }
            Server::Unknown | Server::Trying(_) | Server::Gone => json!({}),
        }
    }

    fn discover_result(&self) -> Value {
        let Server::Pushed { result, revision } = &self.server else {
            return json!({});
        };
        let found: Value = serde_json::from_str(result).unwrap_or_default();
        let mut made = json!({
            "resultType": "complete",
            "supportedVersions": [Revision::V2026_07_28.as_str(), revision.as_str()],
            "capabilities": found.get("capabilities").cloned().unwrap_or_else(|| json!({})),
            "ttlMs": 0,
            "cacheScope": "private",
        });
        if let Some(instructions) = found.get("instructions") {
            made["instructions"] = instructions.clone();
        }
        if let Some(info) = found.get("serverInfo") {
            made["_meta"] = json!({meta::SERVER_INFO: info});
        }
        made
    }

    /// What the gateway declares to the server for this client.
    fn declared(&self) -> Capability {
        let revision = match &self.client {
            Client::Pushed { revision, .. } => *revision,
            Client::Unknown | Client::Rounds { .. } => Revision::V2026_07_28,
        };
        let all: Value = serde_json::from_str(self.client.capabilities()).unwrap_or_default();
        self.settings
            .answer_with
            .declared(Capability::of_client(&all, revision))
    }

    /// The client's capabilities with what the gateway adds; `None` when nothing is missing.
    pub(super) fn with_declared(
        &self,
        capabilities: &str,
        revision: Revision,
    ) -> Option<Box<RawValue>> {
        let all: Value = serde_json::from_str(capabilities).unwrap_or_default();
        let client = Capability::of_client(&all, revision);
        let declared = self.settings.answer_with.declared(client);
        let missing = [Mode::Form, Mode::Url]
            .into_iter()
            .any(|mode| revision.has_mode(mode) && declared.has(mode) && !client.has(mode));
        missing.then(|| members::raw_value(&declare(all, declared, revision)))
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

    fn flush_waiting(&mut self, now: Moment) {
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
        let refusal = Refusal::new(-32603, format!("the server {} {why}", self.settings.server));
        for (door, waited) in std::mem::take(&mut self.waiting) {
            if let (Some(glance), Ok(text)) = (Glance::at(&waited), std::str::from_utf8(&waited)) {
                self.refuse(door, text, &glance, &refusal);
            }
        }
    }

    pub(super) fn gone(&self) -> Refusal {
        Refusal::new(
            -32603,
            format!("the server {} has ended", self.settings.server),
        )
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

    /// Whether this call belongs to a client that is told nothing of the server's own revision.
    pub(super) fn is_call_of(&self, call: CallKey, era: Era) -> bool {
        self.calls.get(call).is_some() && self.client.era() == Some(era)
    }
}

/// `clientInfo` where no client gave one.
fn own_info() -> Value {
    json!({"name": "mcp-elicit gateway", "version": env!("CARGO_PKG_VERSION")})
}

/// Capabilities with elicitation declared; what the client wrote in it stays.
fn declare(capabilities: Value, declared: Capability, revision: Revision) -> Value {
    let mut all = match capabilities {
        Value::Object(all) => all,
        _ => Map::new(),
    };
    let Some(mut modes) = declared.to_value(revision) else {
        return Value::Object(all);
    };
    if let (Some(Value::Object(known)), Value::Object(modes)) = (all.get("elicitation"), &mut modes)
    {
        for (name, value) in known {
            if value.is_object() || !modes.contains_key(name) {
                modes.insert(name.clone(), value.clone());
            }
        }
    }
    all.insert("elicitation".to_owned(), modes);
    Value::Object(all)
}

fn opening<'a>(text: &'a str, glance: &Glance) -> Option<(Id, &'a RawValue)> {
    let id = frame::id_at(text.as_bytes(), glance.id.as_ref()?)?;
    let params = frame::raw_at(text, glance.params.as_ref()?)?;
    Some((id, params))
}

fn string_member(object: &RawValue, name: &str) -> Option<String> {
    members::member(object, name)
        .and_then(members::text)
        .map(std::borrow::Cow::into_owned)
}

fn error_of(text: &str) -> Option<Box<RawValue>> {
    let range = Glance::at(text.as_bytes())?.error?;
    frame::raw_at(text, &range).map(ToOwned::to_owned)
}
