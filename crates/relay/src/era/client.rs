//! The client's side: its era, and the rules that depend on it.

use std::sync::Arc;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::frame::Frame;
use mcp_elicit_core::wire::{
    Capability, ElicitRequest, Id, Meta, Mode, Revision, SessionVersion, members, message,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::abilities::{Abilities, declares_apps};
use super::pushed_client::PushedClient;
use super::rounds_client::RoundsClient;
use crate::frame_edit::ErrorResponse;
use crate::hand_back::{HANDED_BACK, WAITING};
use crate::parts::calls::Call;
use crate::parts::turns::Rule;
use crate::{AskedVia, Audience, CallKind};

/// The state of the client. Only this module and its files read it.
#[derive(Default)]
pub(crate) struct Client(pub(super) ClientEra, pub(super) Abilities);

/// The era of the client.
#[derive(Default)]
pub(super) enum ClientEra {
    /// The client has not sent anything yet.
    #[default]
    Unknown,
    /// The client opened a session with `initialize`.
    Pushed(PushedClient),
    /// Each request of the client describes itself.
    Rounds(RoundsClient),
}

impl Client {
    /// Records that the client has opened a session with these params of `initialize`, at this version.
    pub(crate) fn open_session(&mut self, params: &RawValue, version: SessionVersion) {
        let client = PushedClient::new(params, version);
        let (info, declares) = (client.info().to_owned(), client.capability());
        self.0 = ClientEra::Pushed(client);
        let shows_apps = declares_apps(&self.capabilities());
        self.1.opened(&info, declares, shows_apps);
    }

    /// Determines the client's era from a request that is not an opening, unless it is known.
    pub(crate) fn learn_from_request(&mut self, frame: Frame<'_>) {
        if self.is_unknown() {
            self.learn_rounds(frame);
        }
    }

    /// Records a `server/discover` of the client. A client with a session stays in it.
    pub(crate) fn learn_from_discover(&mut self, frame: Frame<'_>) {
        if !self.is_pushed_to() {
            self.learn_rounds(frame);
        }
    }

    /// Records a rounds-era request's description of its client.
    fn learn_rounds(&mut self, frame: Frame<'_>) {
        let known = Meta::from_params(frame.params()).ok();
        if let Some(meta) = known.filter(Meta::is_rounds) {
            self.0 = ClientEra::Rounds(RoundsClient::new(&meta));
        }
    }

    /// Returns `true` for a client whose era is unknown.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.0, ClientEra::Unknown)
    }

    /// Returns `true` for a client of the pushed era: requests are pushed to it in its session.
    pub(crate) fn is_pushed_to(&self) -> bool {
        matches!(self.0, ClientEra::Pushed(_))
    }

    /// Returns `true` for a client of the rounds era that declared no mode of questions.
    pub(crate) fn shows_no_question(&self) -> bool {
        matches!(&self.0, ClientEra::Rounds(client) if client.shows_no_question())
    }

    /// Returns `true` for a client of the rounds era: it answers questions with retries.
    pub(super) fn answers_with_retries(&self) -> bool {
        matches!(self.0, ClientEra::Rounds(_))
    }

    /// Returns the revision in which the client declares its capabilities.
    pub(crate) fn revision(&self) -> Revision {
        match &self.0 {
            ClientEra::Pushed(client) => client.revision(),
            ClientEra::Unknown | ClientEra::Rounds(_) => Revision::V2026_07_28,
        }
    }

    /// Returns the modes that the client can ask in: in its session, or in this call.
    pub(crate) fn capability(&self, call: Option<&Call>) -> Capability {
        match (&self.0, call) {
            (ClientEra::Pushed(client), _) => client.capability(),
            (ClientEra::Rounds(_), Some(call)) => call.capability(),
            (ClientEra::Rounds(_) | ClientEra::Unknown, _) => Capability::NONE,
        }
    }

    /// Returns `true` if the client can be asked this for the audience: in its session, or in this call.
    pub(crate) fn can_be_asked(
        &self,
        audience: Audience,
        call: Option<&Call>,
        request: &ElicitRequest,
        form: Option<&Form>,
    ) -> bool {
        let mode = request.mode();
        let declared = match &self.0 {
            ClientEra::Unknown => false,
            ClientEra::Pushed(client) => client.can_show(mode, form),
            // It can only be asked in a call.
            ClientEra::Rounds(_) => self.capability(call).has(mode),
        };
        declared && self.shows(audience, call, request, form)
    }

    /// Returns `true` if a question that is asked in this way may outlive the connection of the party that is asked: an
    /// answer that comes with its own request may come after any restart.
    pub(crate) fn outlives_connection(&self, via: AskedVia) -> bool {
        via == AskedVia::People || !self.answers_on_same_connection()
    }

    /// Returns the rule about calls that may be at once with a server that pushes questions without naming the call.
    pub(super) fn rule_at_pushing_server(&self) -> Rule {
        match &self.0 {
            ClientEra::Unknown => Rule::Free,
            // People who are asked are told the call.
            ClientEra::Pushed(_) => Rule::Seen,
            // A question goes back in the result of its call.
            ClientEra::Rounds(_) => Rule::Single,
        }
    }

    /// Returns `true` for a client that knows `notifications/elicitation/complete`: url mode came after 2025-06-18, and the
    /// notification went with the pushed era.
    pub(crate) fn knows_completion(&self) -> bool {
        match &self.0 {
            ClientEra::Unknown => true,
            ClientEra::Pushed(client) => client.revision().has_mode(Mode::Url),
            ClientEra::Rounds(_) => false,
        }
    }

    /// Returns a result of the gateway in the form for this client: `resultType` belongs to the rounds era.
    pub(crate) fn own_result(&self, mut result: Value) -> Value {
        if !self.answers_with_retries()
            && let Some(members) = result.as_object_mut()
        {
            members.shift_remove("resultType");
        }
        result
    }

    /// Returns the response to a call that is handed back with this message. `may_have_schema` is set if the tool may
    /// have an output schema; `waiting` is the state of an approval that it waits for.
    pub(crate) fn handed_back(
        &self,
        id: &Id,
        kind: CallKind,
        text: String,
        may_have_schema: bool,
        waiting: Option<Value>,
    ) -> String {
        let content = json!({"type": "text", "text": text});
        let mut mark = json!({HANDED_BACK: true});
        if let Some(waiting) = waiting {
            mark[WAITING] = waiting;
        }
        let mut result = json!({"resultType": "complete", "_meta": mark});
        match kind {
            CallKind::Tool => {
                result["content"] = json!([content]);
                // A result without `structuredContent` is valid only for a tool without an output schema.
                if may_have_schema {
                    result["isError"] = json!(true);
                }
            }
            CallKind::Prompt => result["messages"] = json!([{"role": "user", "content": content}]),
            // A resource's content cannot hold other text.
            CallKind::Resource => {
                let error = ErrorResponse::new(-32000, text).with_data(mark);
                return error.to_response(id);
            }
        }
        message::result(id, &members::raw_value(&self.own_result(result)))
    }

    /// Returns `clientInfo` as JSON.
    pub(crate) fn info(&self) -> Option<String> {
        match &self.0 {
            ClientEra::Unknown => None,
            ClientEra::Pushed(client) => Some(client.info().to_owned()),
            ClientEra::Rounds(client) => client.info().map(str::to_owned),
        }
    }

    /// Returns `clientInfo` of this request as JSON, if each request of the client describes itself.
    pub(crate) fn info_in(&self, frame: Frame<'_>) -> Option<Arc<str>> {
        match &self.0 {
            ClientEra::Unknown | ClientEra::Pushed(_) => None,
            ClientEra::Rounds(client) => client.info_in(frame),
        }
    }

    /// Returns `clientInfo` as JSON for a question in this call.
    pub(crate) fn info_for(&self, call: Option<&Call>) -> Option<String> {
        match (&self.0, call) {
            (ClientEra::Rounds(_), Some(call)) => call.client_info().map(ToString::to_string),
            _ => self.info(),
        }
    }

    /// Returns `clientInfo` for the server: the gateway's own if the client gave none, or one that a server could
    /// reject.
    pub(crate) fn info_or_own(&self) -> Value {
        let names_client = |info: &Value| info["name"].is_string() && info["version"].is_string();
        self.info()
            .and_then(|info| serde_json::from_str(&info).ok())
            .filter(names_client)
            .unwrap_or_else(own_info)
    }

    /// Returns the client's capabilities; `null` if it gave none that can be read.
    pub(crate) fn capabilities(&self) -> Value {
        let capabilities = match &self.0 {
            ClientEra::Unknown => return Value::Null,
            ClientEra::Pushed(client) => client.capabilities(),
            ClientEra::Rounds(client) => client.capabilities(),
        };
        serde_json::from_str(capabilities).unwrap_or_default()
    }

    /// Returns the client's capabilities in a session that the gateway opens for it.
    pub(crate) fn capabilities_in_session(&self) -> Value {
        match &self.0 {
            ClientEra::Unknown | ClientEra::Pushed(_) => self.capabilities(),
            ClientEra::Rounds(_) => RoundsClient::in_session(self.capabilities()),
        }
    }
}

/// Returns the `clientInfo` to use if a client gave none.
pub(crate) fn own_info() -> Value {
    json!({"name": "mcp-elicit gateway", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_back_is_marked_whatever_it_is() {
        for (kind, place) in [
            (CallKind::Tool, "/result/_meta"),
            (CallKind::Prompt, "/result/_meta"),
            (CallKind::Resource, "/error/data"),
        ] {
            let id = Id::number(1);
            let frame =
                Client::default().handed_back(&id, kind, "Not done yet".to_owned(), true, None);
            let frame: Value = serde_json::from_str(&frame).unwrap();
            let mark = frame.pointer(place).map(|place| &place[HANDED_BACK]);
            assert_eq!(mark, Some(&Value::Bool(true)), "{frame}");
        }
    }
}
