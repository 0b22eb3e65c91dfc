//! Capability negotiation: declarations to a server of either era, and answers to a client of either era.

use mcp_elicit_core::wire::{Capability, Era, Mode, Revision, members, message, meta};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::Relay;
use crate::era::{Client, Server, server_info};
use crate::era_probe::Opening;

impl Relay {
    /// `_meta` of a request that the gateway makes in the rounds era for a pushed client.
    pub(crate) fn rounds_meta(&self) -> Value {
        let capabilities = self.client.capabilities();
        json!({
            meta::PROTOCOL_VERSION: Revision::V2026_07_28.as_str(),
            meta::CLIENT_INFO: self.client.info_or_own(),
            meta::CLIENT_CAPABILITIES: declare(capabilities, self.declared(), Revision::V2026_07_28),
        })
    }

    /// Answers an opening from what is known of the server.
    pub(crate) fn answer_opening(&mut self, opening: Opening) {
        let (stream, id, result) = match opening {
            Opening::Request => return,
            Opening::Initialize {
                stream,
                id,
                revision,
            } => (stream, id, self.initialize_result(&revision)),
            Opening::Discover { stream, id } => (stream, id, self.discover_result()),
        };
        let frame = message::result(&id, &members::raw_value(&result));
        self.tell_client(stream, frame, true);
    }

    fn initialize_result(&self, asked: &str) -> Value {
        let spoken = asked
            .parse::<Revision>()
            .unwrap_or(Revision::LATEST_PUSHED)
            .min(Revision::LATEST_PUSHED);
        match &self.server {
            Server::Pushed {
                result, revision, ..
            } => {
                let mut result: Value = serde_json::from_str(result).unwrap_or_default();
                result["protocolVersion"] = json!(spoken.min(*revision).as_str());
                result
            }
            Server::Rounds { result, .. } => {
                let found: Value = serde_json::from_str(result).unwrap_or_default();
                let info = server_info(&found, Era::Rounds).cloned();
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
            Server::Unknown | Server::Probing(_) | Server::Gone => json!({}),
        }
    }

    fn discover_result(&self) -> Value {
        let Server::Pushed {
            result, revision, ..
        } = &self.server
        else {
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
        if let Some(info) = server_info(&found, Era::Pushed) {
            made["_meta"] = json!({meta::SERVER_INFO: info});
        }
        made
    }

    /// Returns what the gateway declares to the server for this client.
    pub(crate) fn declared(&self) -> Capability {
        let revision = match &self.client {
            Client::Pushed { revision, .. } => *revision,
            Client::Unknown | Client::Rounds { .. } => Revision::V2026_07_28,
        };
        let client = Capability::from_client(&self.client.capabilities(), revision);
        self.settings.answer_with.declared(client)
    }

    /// The client's capabilities with what the gateway adds; `None` when nothing is missing.
    pub(crate) fn with_declared(
        &self,
        capabilities: &str,
        revision: Revision,
    ) -> Option<Box<RawValue>> {
        let all: Value = serde_json::from_str(capabilities).unwrap_or_default();
        let client = Capability::from_client(&all, revision);
        let declared = self.settings.answer_with.declared(client);
        let missing = [Mode::Form, Mode::Url]
            .into_iter()
            .any(|mode| revision.has_mode(mode) && declared.has(mode) && !client.has(mode));
        missing.then(|| members::raw_value(&declare(all, declared, revision)))
    }
}

/// `clientInfo` where no client gave one.
pub(crate) fn own_info() -> Value {
    json!({"name": "mcp-elicit gateway", "version": env!("CARGO_PKG_VERSION")})
}

/// Capabilities with elicitation declared; what the client wrote in it stays.
pub(crate) fn declare(capabilities: Value, declared: Capability, revision: Revision) -> Value {
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
