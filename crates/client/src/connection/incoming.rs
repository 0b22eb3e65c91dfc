//! A server's messages, read into rmcp's types, however they are written.
//!
//! rmcp refuses a message as soon as one member has another type than it expects. Here such a message is read as far as
//! it can be: a line that is no message is passed over, text that is almost JSON is mended, the result of a handshake is
//! fitted ([`misfit`](mcp_elicit_core::misfit)), and an id that rmcp cannot hold is replaced and written back in the
//! response. Everything that was not as the protocol has it is reported as a [`ProtocolFinding`]. The result of a request that
//! has a [`ResultSlot`] is kept as it was written.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mcp_elicit_core::misfit::{ResultKind, fit, fit_error, mend};
use mcp_elicit_core::text::{beginning, without_mark};
use mcp_elicit_core::wire::{LenientMembers, members};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions as _, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::finding::ProtocolFinding;
use super::transport_error::Health;
use crate::{exact_content, raw_params};

/// The largest number of requests whose responses are awaited; the oldest is forgotten first.
const MOST_WAITING: usize = 1024;
/// The longest part of an id that is named, in bytes.
const LONGEST_ID: usize = 60;

/// The place for a request's result, as the server wrote it. It travels in the request's extensions.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResultSlot(Arc<OnceLock<Box<RawValue>>>);

impl ResultSlot {
    /// Takes the result; `None` before the response.
    pub(crate) fn take(self) -> Option<Box<RawValue>> {
        self.0.get().cloned()
    }
}

/// A text of the server, read.
pub(super) enum Heard {
    /// A message, and the text in which rmcp can read it.
    Message(
        Box<ServerJsonRpcMessage>,
        #[cfg_attr(
            not(feature = "http"),
            expect(dead_code, reason = "rmcp reads the text of events over HTTP itself")
        )]
        Vec<u8>,
    ),
    /// The messages of a batch.
    Batch(Vec<ServerJsonRpcMessage>),
    /// No message, or one that nobody waits for.
    Stray,
    /// Text that begins like JSON and is none.
    Broken {
        /// The parser's message.
        why: String,
        /// The request that it seems to answer.
        answers: Option<RequestId>,
    },
}

/// Both directions of one connection: which responses are awaited, and which ids were replaced.
#[derive(Debug, Clone)]
pub(super) struct PendingMessages {
    state: Arc<Mutex<IncomingState>>,
    health: Health,
}

#[derive(Debug, Default)]
struct IncomingState {
    waiting: VecDeque<AwaitedRequest>,
    /// The ids of the server's requests that rmcp cannot hold, by those in their place.
    replaced: BTreeMap<String, Box<RawValue>>,
    numbered: u64,
}

/// A request whose response is awaited.
#[derive(Debug)]
struct AwaitedRequest {
    id: RequestId,
    handshake: Option<HandshakeRequest>,
    slot: Option<ResultSlot>,
}

/// A request whose result rmcp must be able to read.
#[derive(Debug)]
enum HandshakeRequest {
    Initialize { asked: String },
    Discover,
}

impl PendingMessages {
    pub(super) fn new(health: Health) -> Self {
        Self {
            state: Arc::default(),
            health,
        }
    }

    fn lock(&self) -> MutexGuard<'_, IncomingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a message that is about to be sent.
    pub(super) fn sends(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else {
            return;
        };
        let handshake = match &request.request {
            ClientRequest::InitializeRequest(initialize) => Some(HandshakeRequest::Initialize {
                asked: initialize.params.protocol_version.to_string(),
            }),
            ClientRequest::DiscoverRequest(_) => Some(HandshakeRequest::Discover),
            _ => None,
        };
        let waiting = AwaitedRequest {
            id: request.id.clone(),
            handshake,
            slot: request.request.extensions().get::<ResultSlot>().cloned(),
        };
        let mut state = self.lock();
        if state.waiting.len() == MOST_WAITING {
            state.waiting.pop_front();
        }
        state.waiting.push_back(waiting);
    }

    /// Writes a message as the server is to see it: with its own id if that was replaced.
    pub(super) fn written(&self, message: &ClientJsonRpcMessage) -> serde_json::Result<Vec<u8>> {
        let text = exact_content::restored(serde_json::to_string(message)?);
        let id = match message {
            ClientJsonRpcMessage::Response(response) => Some(&response.id),
            ClientJsonRpcMessage::Error(error) => error.id.as_ref(),
            ClientJsonRpcMessage::Request(_) | ClientJsonRpcMessage::Notification(_) => None,
        };
        if let Some(RequestId::String(id)) = id
            && let Some(own) = self.lock().replaced.remove(&**id)
            && let Some(mut members) = LenientMembers::read(&text)
        {
            members.set("id", own);
            return Ok(members.to_text().into_bytes());
        }
        Ok(text.into_bytes())
    }

    /// Returns `true` while the response to this request is awaited.
    pub(super) fn awaits(&self, id: &RequestId) -> bool {
        let state = self.lock();
        state.waiting.iter().any(|waiting| is_same(&waiting.id, id))
    }

    fn take(&self, id: &RequestId) -> Option<AwaitedRequest> {
        let mut state = self.lock();
        let at = state
            .waiting
            .iter()
            .position(|waiting| is_same(&waiting.id, id))?;
        state.waiting.remove(at)
    }

    /// Reads a text of the server, without white space around it.
    pub(super) fn read(&self, text: &[u8]) -> Heard {
        let text = without_mark(text).trim_ascii();
        if !text.starts_with(b"{") && !text.starts_with(b"[") {
            return Heard::Stray;
        }
        let kept = raw_params::keep(text);
        match serde_json::from_slice(&kept) {
            Ok(message) => self.admit(message, kept, text),
            Err(_) => self.read_leniently(text),
        }
    }

    /// Passes a message on, unless it answers nothing. `kept` is the text that rmcp reads, `text` the server's.
    fn admit(&self, message: ServerJsonRpcMessage, kept: Cow<'_, [u8]>, text: &[u8]) -> Heard {
        let id = match &message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = id {
            let Some(waiting) = self.take(id) else {
                return self.unasked(&id.to_string());
            };
            if let ServerJsonRpcMessage::Response(response) = &message {
                let result = std::str::from_utf8(text)
                    .ok()
                    .and_then(LenientMembers::read)
                    .and_then(|members| members.get("result").map(ToOwned::to_owned));
                if let Some(fitted) = self.result_came(waiting, &response.result, result) {
                    return fitted;
                }
            }
        }
        let kept = kept.into_owned();
        Heard::Message(Box::new(message), kept)
    }

    /// Keeps the result where its request wants that. Returns a message in place of a handshake's result that rmcp
    /// cannot read.
    fn result_came(
        &self,
        waiting: AwaitedRequest,
        read: &ServerResult,
        result: Option<Box<RawValue>>,
    ) -> Option<Heard> {
        let result = result?;
        let fitted = match (&waiting.handshake, read) {
            (Some(HandshakeRequest::Initialize { .. }), ServerResult::InitializeResult(_))
            | (Some(HandshakeRequest::Discover), ServerResult::DiscoverResult(_))
            | (None, _) => None,
            (Some(HandshakeRequest::Initialize { asked }), _) => {
                Some(self.initialized(&waiting.id, asked, &result))
            }
            (Some(HandshakeRequest::Discover), _) => Some(self.discovered(&waiting.id, &result)),
        };
        if let Some(slot) = waiting.slot {
            // A second response to one request is not awaited, so the slot is empty.
            let _empty = slot.0.set(result);
        }
        fitted.and_then(|frame| {
            let text = frame.to_string().into_bytes();
            let message = serde_json::from_slice(&text).ok()?;
            Some(Heard::Message(Box::new(message), text))
        })
    }

    fn initialized(&self, id: &RequestId, asked: &str, result: &RawValue) -> Value {
        let mut fitted = fit(ResultKind::Initialize, result.get());
        if fitted.misses("/protocolVersion") || fitted.value["protocolVersion"] == "" {
            fitted.value["protocolVersion"] = asked.into();
        }
        self.found_in("initialize", &fitted.misfits);
        json!({"jsonrpc": "2.0", "id": id, "result": fitted.value})
    }

    /// A server that does not name its versions is taken for one that does not know the method.
    fn discovered(&self, id: &RequestId, result: &RawValue) -> Value {
        let fitted = fit(ResultKind::Discover, result.get());
        self.found_in("server/discover", &fitted.misfits);
        if fitted.value.get("supportedVersions").is_some() {
            return json!({"jsonrpc": "2.0", "id": id, "result": fitted.value});
        }
        let why = "the answer to server/discover names no versions";
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }

    fn found_in(&self, method: &str, misfits: &[mcp_elicit_core::misfit::Misfit]) {
        for misfit in misfits {
            let of = format!("the server's answer to {method}");
            self.health.found(ProtocolFinding::misfit(of, misfit));
        }
    }

    fn unasked(&self, id: &str) -> Heard {
        let id = self.health.masked(id);
        let id = beginning(&id, LONGEST_ID);
        self.health.found(ProtocolFinding::general(format!(
            "the server answered the request {id:?}, which was not made or has its answer already"
        )));
        Heard::Stray
    }

    /// Reads a text that rmcp cannot read.
    fn read_leniently(&self, text: &[u8]) -> Heard {
        let text = match json_of(text) {
            Ok((text, why)) => {
                for why in why {
                    self.health.found(ProtocolFinding::general(format!(
                        "the server sent a message that is not JSON: {why}"
                    )));
                }
                text
            }
            Err(why) => {
                let answers = answered_by(text);
                return Heard::Broken { why, answers };
            }
        };
        if text.starts_with('[') {
            return self.read_batch(&text);
        }
        let Some(members) = LenientMembers::read(&text) else {
            return Heard::Stray;
        };
        if members.get("method").and_then(members::text).is_some() {
            self.read_request(members)
        } else {
            self.read_response(&members)
        }
    }

    /// Reads a batch (2025-03-26). A list of anything else is no message.
    fn read_batch(&self, text: &str) -> Heard {
        let Ok(entries) = serde_json::from_str::<Vec<Box<RawValue>>>(text) else {
            return Heard::Stray;
        };
        let is_message = |entry: &RawValue| {
            LenientMembers::read(entry.get()).is_some_and(|entry| entry.get("jsonrpc").is_some())
        };
        if entries.is_empty() || !entries.iter().all(|entry| is_message(entry)) {
            return Heard::Stray;
        }
        let read = entries
            .iter()
            .filter_map(|entry| match self.read(entry.get().as_bytes()) {
                Heard::Message(message, _) => Some(*message),
                Heard::Batch(_) | Heard::Stray | Heard::Broken { .. } => None,
            });
        Heard::Batch(read.collect())
    }

    /// Reads a request or a notification. Without `jsonrpc` it is more likely a line of a log.
    fn read_request(&self, mut members: LenientMembers<'_>) -> Heard {
        let Some(version) = members.get("jsonrpc") else {
            return Heard::Stray;
        };
        if members.get("result").is_some() || members.get("error").is_some() {
            return Heard::Stray;
        }
        if members::text(version).as_deref() != Some("2.0") {
            self.wrong_version(Some(version));
            members.set("jsonrpc", members::raw_value(&json!("2.0")));
        }
        let id = members.get("id").map(ToOwned::to_owned);
        if let Some(id) = id.filter(|id| serde_json::from_str::<RequestId>(id.get()).is_err()) {
            let shown = self.health.masked(id.get());
            let shown = beginning(&shown, LONGEST_ID);
            self.health.found(ProtocolFinding::general(format!(
                "the server asked with the id {shown}, which is neither a string nor a whole number of 64 bits"
            )));
            let own = self.replace_id(id);
            members.set("id", members::raw_value(&json!(own)));
        }
        let text = members.to_text();
        let kept = raw_params::keep(text.as_bytes());
        match serde_json::from_slice(&kept) {
            Ok(message) => Heard::Message(Box::new(message), kept.into_owned()),
            Err(_) => Heard::Stray,
        }
    }

    fn replace_id(&self, id: Box<RawValue>) -> String {
        let mut state = self.lock();
        state.numbered += 1;
        let own = format!("mcp-elicit/id-{}", state.numbered);
        if state.replaced.len() == MOST_WAITING {
            state.replaced.pop_first();
        }
        state.replaced.insert(own.clone(), id);
        own
    }

    fn read_response(&self, members: &LenientMembers<'_>) -> Heard {
        let (result, error) = (members.get("result"), members.get("error"));
        let version = members.get("jsonrpc");
        let is_null = |value: &RawValue| value.get() == "null";
        let error = error.filter(|error| !is_null(error) || result.is_none());
        if result.is_none() && error.is_none() {
            return Heard::Stray;
        }
        let id = members.get("id").filter(|id| !is_null(id));
        let Some(id) = id else {
            // An error may have no id (JSON-RPC 2.0, response object).
            return match (error, version) {
                (Some(error), Some(_)) => self.error_came(&json!(null), error),
                _ => Heard::Stray,
            };
        };
        let Ok(awaited) = serde_json::from_str::<RequestId>(id.get()) else {
            return match version {
                Some(_) => self.unasked(id.get()),
                None => Heard::Stray,
            };
        };
        if !self.awaits(&awaited) {
            return match version {
                Some(_) => self.unasked(id.get()),
                None => Heard::Stray,
            };
        }
        if version.and_then(members::text).as_deref() != Some("2.0") {
            self.wrong_version(version);
        }
        match (result, error) {
            (_, Some(error)) => {
                self.take(&awaited);
                self.error_came(&json!(awaited), error)
            }
            (Some(result), None) => {
                let text = format!(
                    r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
                    json!(awaited),
                    result.get()
                );
                let kept = raw_params::keep(text.as_bytes());
                match serde_json::from_slice(&kept) {
                    Ok(message) => self.admit(message, kept, text.as_bytes()),
                    Err(error) => Heard::Broken {
                        why: error.to_string(),
                        answers: Some(awaited),
                    },
                }
            }
            (None, None) => Heard::Stray,
        }
    }

    fn error_came(&self, id: &Value, error: &RawValue) -> Heard {
        let error = serde_json::from_str(error.get()).unwrap_or_default();
        let fitted = fit_error(&error);
        for misfit in &fitted.misfits {
            let of = "an error of the server".to_owned();
            let misfit = misfit.clone().within("error");
            self.health.found(ProtocolFinding::misfit(of, &misfit));
        }
        let frame = match id {
            Value::Null => json!({"jsonrpc": "2.0", "error": fitted.value}),
            id => json!({"jsonrpc": "2.0", "id": id, "error": fitted.value}),
        };
        let text = frame.to_string().into_bytes();
        match serde_json::from_slice(&text) {
            Ok(message) => Heard::Message(Box::new(message), text),
            Err(_) => Heard::Stray,
        }
    }

    fn wrong_version(&self, version: Option<&RawValue>) {
        let found = version.map_or("missing", |version| beginning(version.get(), LONGEST_ID));
        self.health.found(ProtocolFinding::general(format!(
            "the member jsonrpc of a message is {found}; it must be \"2.0\""
        )));
    }
}

/// Returns the text as JSON, with what was mended; the parser's message if it is not JSON.
fn json_of(text: &[u8]) -> Result<(Cow<'_, str>, Vec<&'static str>), String> {
    let why = match std::str::from_utf8(text) {
        Err(error) => error.to_string(),
        Ok(text) => match check(text) {
            Ok(()) => return Ok((Cow::Borrowed(text), Vec::new())),
            Err(why) => why,
        },
    };
    let mended = mend(text).ok_or_else(|| why.clone())?;
    match check(&mended.text) {
        Ok(()) => Ok((Cow::Owned(mended.text), mended.why)),
        Err(_) => Err(why),
    }
}

fn check(text: &str) -> Result<(), String> {
    // A value refuses half surrogate pairs, which a skipped value does not look at.
    if text.contains("\\u") {
        serde_json::from_str::<Value>(text).map(drop)
    } else {
        serde_json::from_str::<IgnoredAny>(text).map(drop)
    }
    .map_err(|error| error.to_string())
}

/// Returns the id of the request that a broken text seems to answer.
fn answered_by(text: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(text);
    if !text.contains("\"jsonrpc\"") || !(text.contains("\"result\"") || text.contains("\"error\""))
    {
        return None;
    }
    let (_, after) = text.split_once("\"id\"")?;
    let value = after.trim_start().strip_prefix(':')?;
    serde_json::Deserializer::from_str(value)
        .into_iter::<RequestId>()
        .next()?
        .ok()
}

/// Compares ids as rmcp does: a number may come back as text.
fn is_same(sent: &RequestId, received: &RequestId) -> bool {
    match (sent, received) {
        (RequestId::Number(sent), RequestId::String(text)) => {
            text.parse::<i64>().is_ok_and(|number| number == *sent)
        }
        (sent, received) => sent == received,
    }
}

#[cfg(test)]
mod tests;
