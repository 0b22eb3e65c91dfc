//! Servers of the rounds era (2026-07-28): questions in `input_required`, and requests of the other era to them.

use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::Members;
use mcp_elicit_core::wire::{
    ElicitRequest, Envelope, Id, InputRequest, InputRequired, InputResponses, Meta, Revision,
    SessionVersion, members, message, meta,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::negotiation::declare;
use super::peer_info::bounded_info;
use super::{Client, Server};
use crate::call_start::Start;
use crate::frame_edit::ErrorResponse;
use crate::parts::asks::{Ask, Origin};
use crate::parts::calls::Call;
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::log_levels::LogLevel;
use crate::parts::server_round::{Entry, Round, size_of_other};
use crate::{
    Audience, CallId, CallKind, ClientForward, ClientFrame, Relay, ServerForward, Timer, Timestamp,
};

/// The most requests of a server in one round.
const ENTRIES: usize = 256;

/// The most bytes of the state and the keys of one round, which stay while people think.
const STATE_BYTES: usize = 1024 * 1024;

/// A server of this era: it answered `server/discover`.
pub(super) struct RoundsServer {
    /// `DiscoverResult`, JSON.
    result: String,
    /// Its description of itself, JSON.
    info: Option<String>,
}

impl RoundsServer {
    /// Creates a server that gave this `DiscoverResult` (JSON).
    pub(super) fn new(result: String) -> Self {
        let read: Option<Value> = serde_json::from_str(&result).ok();
        let info =
            read.and_then(|read| description(&read).map(|info| bounded_info(&info.to_string())));
        Self { result, info }
    }

    /// Returns its description of itself, as JSON.
    pub(super) fn info(&self) -> Option<&str> {
        self.info.as_deref()
    }

    /// Returns its `DiscoverResult`.
    pub(super) fn discover_result(&self) -> Value {
        serde_json::from_str(&self.result).unwrap_or_default()
    }

    /// Returns the `InitializeResult` for a client of the other era at this version; `name` is used if the server gave
    /// none.
    pub(super) fn initialize_result(&self, version: SessionVersion, name: &str) -> Value {
        let found: Value = serde_json::from_str(&self.result).unwrap_or_default();
        let info = description(&found).cloned();
        let mut made = json!({
            "protocolVersion": version.as_str(),
            "capabilities": found.get("capabilities").cloned().unwrap_or_else(|| json!({})),
            "serverInfo": info.unwrap_or_else(|| json!({"name": name, "version": "0"})),
        });
        if let Some(instructions) = found.get("instructions") {
            made["instructions"] = instructions.clone();
        }
        made
    }
}

/// Returns the description in a result of a server of this era.
fn description(result: &Value) -> Option<&Value> {
    result.get("_meta")?.get(meta::SERVER_INFO)
}

/// The rules of this era's servers.
impl Server {
    /// Returns `true` for a server that answers `server/discover` (2026-07-28, discovery). Its answer may change and
    /// depend on the caller, and nothing has to be `initialized`.
    pub(crate) fn answers_discover(&self) -> bool {
        self.asks_in_results()
    }

    /// Returns `true` for a server whose result may ask for input before the call continues (2026-07-28, multi
    /// round-trip requests).
    pub(crate) fn may_ask_in_results(&self) -> bool {
        self.asks_in_results()
    }

    /// Returns `true` for a server that sends the log messages of a request only from the level that the request names
    /// (2026-07-28, logging).
    pub(crate) fn has_log_level_per_request(&self) -> bool {
        self.asks_in_results()
    }

    /// Returns the `_meta` of a request that the gateway makes for this client, if the server needs it (2026-07-28,
    /// `_meta` of each request).
    pub(crate) fn request_meta(&self, client: &Client, audience: Audience) -> Option<Value> {
        self.asks_in_results().then(|| meta_for(client, audience))
    }
}

/// Returns the form of a question that may go to the client unchanged, if the client's abilities decide about it.
fn passed_form(audience: Audience, request: &ElicitRequest) -> Option<Form> {
    match (audience, request) {
        (Audience::Auto, ElicitRequest::Form { schema, .. }) => Form::parse(schema.get()).ok(),
        (_, ElicitRequest::Form { .. } | ElicitRequest::Url { .. }) => None,
    }
}

/// Returns the `_meta` of a request that the gateway makes in this era for its client.
fn meta_for(client: &Client, audience: Audience) -> Value {
    let capabilities = client.capabilities();
    let declared = client.declared(audience);
    json!({
        meta::PROTOCOL_VERSION: Revision::V2026_07_28.as_str(),
        meta::CLIENT_INFO: client.info_or_own(),
        meta::CLIENT_CAPABILITIES: declare(capabilities, declared, Revision::V2026_07_28),
    })
}

/// Returns the text of a request with this `_meta`, in which every request of the rounds era describes itself, and with the
/// minimum level of log messages for its client.
pub(super) fn with_meta(text: &str, own: &Value, level: Option<LogLevel>) -> Option<IndexedFrame> {
    let envelope = Envelope::parse_within(text.as_bytes(), usize::MAX).ok()?;
    let mut params = envelope.params().map(ToOwned::to_owned);
    for key in [
        meta::PROTOCOL_VERSION,
        meta::CLIENT_INFO,
        meta::CLIENT_CAPABILITIES,
    ] {
        let value = members::raw_value(own.get(key)?);
        params = Some(meta::with(params.as_deref(), key, Some(&value)).ok()?);
    }
    if let Some(level) = level {
        let level = members::raw_text(level.name());
        params = Some(meta::with(params.as_deref(), meta::LOG_LEVEL, Some(&level)).ok()?);
    }
    IndexedFrame::read(envelope.with_body(params.as_deref()?).ok()?).ok()
}

impl Relay {
    /// Handles a question that the server asked in a round.
    pub(crate) fn asked_in_round(
        &mut self,
        now: Timestamp,
        key: CallId,
        frame: Frame<'_>,
    ) -> ServerForward {
        let part = frame.result();
        let Some(required) = self.next_round(now, key, part, InputRequired::parse) else {
            return ServerForward::Handled;
        };
        if required.requests.iter().flatten().nth(ENTRIES).is_some() {
            let why = format!("the server asks for too much in one round: {ENTRIES} are allowed");
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return ServerForward::Handled;
        }
        let keys = required.requests.iter().flatten().map(|(key, _)| key.len());
        let state = required.state.as_ref().map_or(0, String::len);
        if state + keys.sum::<usize>() > STATE_BYTES {
            let why = format!(
                "the server's `requestState` and the keys of its `inputRequests` have more than {STATE_BYTES} bytes"
            );
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return ServerForward::Handled;
        }
        if required.questions().next().is_some() {
            self.settings.eras.saw_round();
        }
        let asked = part.and_then(|part| members::member(part, "inputRequests"));
        if self.client_answers_all(key, &required) {
            return self.pass_round_on(now, key, &required, frame);
        }
        if let Err(refusal) = self.take_round(now, key, required, asked) {
            self.fail(now, key, &refusal);
        }
        ServerForward::Handled
    }

    /// Returns `true` if the client, which is also of this era, may have the round unchanged, except for its state. A
    /// round without requests may wait until the client returns.
    fn client_answers_all(&self, key: CallId, required: &InputRequired) -> bool {
        let Some(call) = self.calls.get(key) else {
            return false;
        };
        // The answers of a retry, or of the record, belong to questions that the gateway asks.
        let brings_answers = call.rounds().retry_answers().is_some();
        if !self.client.answers_with_retries() || self.settings.holds_rounds() || brings_answers {
            return false;
        }
        let audience = self.settings.answer_with;
        let can = required.questions().all(|(_, request)| {
            let form = passed_form(audience, request);
            call.capability().has(request.mode())
                && self
                    .client
                    .shows(audience, Some(call), request, form.as_ref())
        });
        let asks = required.questions().next().is_some();
        !asks || (call.stream().is_some() && can)
    }

    /// Returns the refusal of a request in a round that the protocol does not define, or that the client would have to
    /// answer but has not declared.
    fn refuse_other(&self, key: CallId, method: &str) -> Option<ErrorResponse> {
        if !self.settings.holds_rounds() {
            return None;
        }
        let capability = match method {
            "roots/list" => "roots",
            "sampling/createMessage" => "sampling",
            _ => {
                let why = "the server asks for something that no round of 2026-07-28 may ask for";
                return Some(ErrorResponse::new(-32603, why));
            }
        };
        if !self.client.answers_with_retries() {
            return None;
        }
        let frame = self.calls.get(key)?.frame()?;
        let envelope = Envelope::parse_within(frame.bytes(), usize::MAX).ok()?;
        let meta = Meta::from_params(envelope.params()).ok()?;
        let declared = meta
            .client_capabilities()
            .and_then(|all| members::member(all, capability));
        if declared.is_some_and(|value| !members::is_null(value)) {
            return None;
        }
        let why = format!(
            "the server asks for `{method}`, and the client has not declared `{capability}`"
        );
        Some(ErrorResponse::new(-32603, why))
    }

    /// Checks that so many bytes of a round may be kept until it is answered.
    pub(super) fn check_round(&self, bytes: usize) -> Result<(), ErrorResponse> {
        let checked = self.calls.budget().check_round(bytes);
        checked.map_err(|fault| fault.refusal_of_round(bytes))
    }

    /// Takes a round that the gateway answers itself, entry by entry.
    pub(super) fn take_round(
        &mut self,
        now: Timestamp,
        key: CallId,
        required: InputRequired,
        asked: Option<&RawValue>,
    ) -> Result<(), ErrorResponse> {
        let requests = required.requests.iter().flatten();
        let others = requests.map(|(_, request)| size_of_other(request));
        self.check_round(others.sum())?;
        let asked = asked.and_then(|asked| Members::read(asked, "inputRequests").ok());
        let mut may_go_on: Vec<&str> = Vec::new();
        let mut entries = Vec::new();
        for (name, request) in required.requests.iter().flatten() {
            let entry = match request {
                InputRequest::Elicit(request) => {
                    let params = asked
                        .as_ref()
                        .and_then(|asked| asked.get(name))
                        .and_then(|request| members::member(request, "params"))
                        .and_then(|params| Members::read(params, "params").ok());
                    let origin = Origin::Round {
                        call: key,
                        entry: name.clone(),
                    };
                    Entry::Question(self.open_ask(
                        now,
                        key.into(),
                        origin,
                        request.clone(),
                        None,
                        params.as_ref(),
                    )?)
                }
                InputRequest::Other { method, raw } => {
                    if !may_go_on.contains(&method.as_str()) {
                        if let Some(refusal) = self.refuse_other(key, method) {
                            return Err(refusal);
                        }
                        may_go_on.push(method);
                    }
                    let stream = self.calls.get(key).and_then(Call::stream);
                    let id = self.push_other(stream, method, raw.get());
                    if id.is_none() && self.client.is_pushed_to() {
                        return Err(ErrorResponse::new(
                            -32603,
                            format!("the server asks for `{method}`, which cannot be passed on"),
                        ));
                    }
                    Entry::Other {
                        id,
                        method: method.clone(),
                        raw: raw.get().to_owned(),
                    }
                }
            };
            entries.push((name.clone(), entry));
        }
        let empty = entries.is_empty();
        let is_others =
            |(_, entry): &(String, Entry)| matches!(entry, Entry::Other { id: None, .. });
        let asks_nobody = !empty && entries.iter().all(is_others);
        if asks_nobody && self.calls.at_client() >= self.settings.pending.unwrap_or(usize::MAX) {
            let why = "too many calls wait for what their clients are to send";
            return Err(ErrorResponse::new(-32000, why));
        }
        if let Some(call) = self.calls.get_mut(key) {
            let rounds = call.rounds().count();
            call.collect(Round::new(required, entries));
            if empty {
                // Only a state: the server wants to be called again, each time after a longer wait.
                let wait = std::time::Duration::from_millis(250).saturating_mul(rounds);
                self.timers.set(now.after(wait), Timer::Retry(key));
            }
        }
        if asks_nobody {
            // No question triggers its sending.
            self.present_round(now, key);
        }
        Ok(())
    }

    /// Handles the response to a request of a round that is not a question. Returns `false` if there is no such
    /// request.
    pub(crate) fn other_replies(&mut self, now: Timestamp, id: &Id, frame: Frame<'_>) -> bool {
        let Some(key) = self.calls.by_pushed(id) else {
            return false;
        };
        let Some(result) = frame.part(FramePart::Result) else {
            let why = "the client could not answer the server's requests";
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return true;
        };
        if let Some(round) = self.calls.get_mut(key).and_then(|call| call.round_mut()) {
            round.answer_pushed(id, result);
        }
        self.collect_round(now, key);
        true
    }

    /// Takes the answers of a round out of the record once all are there, or makes the call again with them.
    pub(crate) fn collect_round(&mut self, now: Timestamp, key: CallId) {
        if let Some(call) = self.calls.get_mut(key) {
            call.recount();
        }
        let Some(round) = self.calls.get(key).and_then(Call::round) else {
            // The call has ended, or was made again with its answers.
            return;
        };
        if round.waits_for_others() {
            // A client that answers with retries is asked for its part now, if it was not asked before.
            self.present_round(now, key);
            self.end_at_client(now, key);
            return;
        }
        if round.is_complete() {
            self.retry_upstream(now, key);
            return;
        }
        let open = round.open();
        let all = open
            .iter()
            .all(|question| self.asks.get(*question).is_some_and(Ask::is_answered));
        if all {
            self.asks
                .begin_delivery(open, &self.calls, &mut self.effects);
        } else {
            // The client may be asked the rest, if the answer was there before the question.
            self.present_round(now, key);
        }
    }

    /// Makes the call again unless the current rules refuse it: with the answers of its round, or unchanged after its
    /// links were visited.
    pub(crate) fn retry_upstream(&mut self, now: Timestamp, key: CallId) {
        if self.calls.get(key).is_none_or(Call::is_finished) {
            return;
        }
        if self.refuse_again(now, key) {
            return;
        }
        let id = self.new_id();
        let retry = self.calls.get_mut(key).and_then(|call| {
            let (required, responses) = match call.take_round() {
                Some(round) => round.into_retry(),
                None => (
                    InputRequired {
                        requests: None,
                        state: None,
                    },
                    InputResponses::default(),
                ),
            };
            call.retry_frame(&required, &responses, &id)
        });
        let Some(frame) = retry else {
            let why = "the call cannot be repeated: its `params` are not an object";
            self.fail(now, key, &ErrorResponse::new(-32602, why));
            return;
        };
        if !self.calls.renew(key, id) {
            let why = "the call cannot be made again: its new id is in use";
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return;
        }
        let records = self.calls.take_deliveries(key);
        let delivery = self.deliveries.begin(records, None);
        self.effects.send_to_server(frame, Some(key), delivery);
    }

    /// Sends a request of a pushed client to a server of the rounds era.
    pub(super) fn pushed_to_rounds(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
    ) -> ClientForward {
        let Some(id) = frame.id() else {
            return ClientForward::AsIs(None);
        };
        match method {
            "logging/setLevel" => return self.set_log_level(frame.stream(), &id, *frame),
            "ping" => {
                // The method does not exist there: the session is the gateway's.
                self.effects.tell_client(
                    frame.stream(),
                    message::result(&id, &members::raw_value(&json!({}))),
                    true,
                );
                return ClientForward::Handled;
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                let why = format!(
                    "the server speaks {}, which has no `{method}`",
                    Revision::V2026_07_28
                );
                self.effects.tell_client(
                    frame.stream(),
                    ErrorResponse::new(-32601, why).to_response(&id),
                    true,
                );
                return ClientForward::Handled;
            }
            _ => {}
        }
        let capability = self.client.capability(None);
        let own = meta_for(&self.client, self.settings.answer_with);
        let Some(changed) = with_meta(frame.text(), &own, self.log_levels.client()) else {
            return self.effects.reject(
                frame,
                &ErrorResponse::new(-32602, "`params` must be an object"),
            );
        };
        let start = Start::new(CallKind::of_method(method), capability);
        self.start(frame, start.changed(Some(changed)))
    }
}
