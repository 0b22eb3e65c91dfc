//! Capability negotiation: declarations to a server of either era, and answers to a client of either era.

use mcp_elicit_core::wire::{Capability, Mode, Revision, members, message, meta};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::probe::Opening;
use super::{Client, own_info};
use crate::{Audience, Relay};

impl Relay {
    /// Answers an opening with the known facts about the server.
    pub(crate) fn answer_opening(&mut self, opening: Opening) {
        let (stream, id, result) = match opening {
            Opening::Request => return,
            Opening::Initialize {
                stream,
                id,
                revision,
            } => {
                let result = self
                    .server
                    .initialize_result(&revision, &self.settings.server);
                (stream, id, self.task_support().with_tasks(result))
            }
            Opening::Discover { stream, id } => {
                let result = self.server.discover_result();
                (stream, id, self.task_support().with_extension(result))
            }
        };
        let frame = message::result(&id, &members::raw_value(&result));
        self.effects.tell_client(stream, frame, true);
    }
}

impl Client {
    /// Returns the capability that the gateway declares to the server for this client.
    pub(super) fn declared(&self, audience: Audience) -> Capability {
        let client = Capability::from_client(&self.capabilities(), self.revision());
        audience.declared(client)
    }
}

/// Returns the `_meta` of the gateway's own `server/discover`, which declares this capability. It contains nothing of
/// the client's that a server could refuse.
pub(super) fn probe_meta(declared: Capability) -> Value {
    let revision = Revision::V2026_07_28;
    json!({
        meta::PROTOCOL_VERSION: revision.as_str(),
        meta::CLIENT_INFO: own_info(),
        meta::CLIENT_CAPABILITIES: declare(json!({}), declared, revision),
    })
}

/// Returns a client's capabilities with those that the gateway adds, so that the server asks if this audience is asked;
/// `None` if nothing is missing.
pub(super) fn with_declared(
    audience: Audience,
    capabilities: &str,
    revision: Revision,
) -> Option<Box<RawValue>> {
    let all: Value = serde_json::from_str(capabilities).unwrap_or_default();
    let client = Capability::from_client(&all, revision);
    let declared = audience.declared(client);
    let missing = [Mode::Form, Mode::Url]
        .into_iter()
        .any(|mode| revision.has_mode(mode) && declared.has(mode) && !client.has(mode));
    let changes = missing || (declared != Capability::NONE && has_list(&all["elicitation"]));
    changes.then(|| members::raw_value(&declare(all, declared, revision)))
}

/// Returns `true` for a list in place of an object, or an object with one: PHP writes an empty object as `[]`.
fn has_list(elicitation: &Value) -> bool {
    let modes = elicitation.as_object();
    elicitation.is_array() || modes.is_some_and(|modes| modes.values().any(Value::is_array))
}

/// Adds elicitation to capabilities; members that the client wrote in it stay.
pub(super) fn declare(capabilities: Value, declared: Capability, revision: Revision) -> Value {
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
