//! Frames from the client: passed on, put into the server's era, or answered here.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_elicit_core::wire::{
    Cancelled, Capability, Envelope, Era, FrameDefect, Id, Revision, frame as frame_index, members,
    message, method,
};
use serde_json::json;
use serde_json::value::RawValue;

use super::calls::{self, Call};
use super::frame::{self, OWN, Refusal};
use super::glance::{self, Glance};
use super::handshake::{Client, Server};
use super::waits::is_timeout;
use super::{CallKey, CallKind, Door, Effect, Ending, Relay, Timestamp, Up};

/// The number of requests that may wait for the server's era to be known.
const WAITING: usize = 256;

impl Relay {
    pub(super) fn client_request(
        &mut self,
        now: Timestamp,
        door: Door,
        text: &str,
        glance: &Glance,
    ) -> Up {
        let Some(method) = glance.method.clone().map(|range| &text[range]) else {
            return Up::Forward(None);
        };
        if frame::id_of(text, glance).is_none() {
            // Its answer could not be told from another's (JSON-RPC 2.0, and MCP has no null either).
            let why = "a request's id must be a string or a number";
            return self.refuse_under(door, None, -32600, why);
        }
        match method {
            method::INITIALIZE => return self.client_initializes(door, text, glance),
            method::DISCOVER => return self.client_discovers(now, door, text, glance),
            _ => {}
        }
        if matches!(self.client, Client::Unknown) {
            self.meet_rounds_client(text, glance);
        }
        match (&self.client, &self.server) {
            (_, Server::Gone) => self.refuse(door, text, glance, &self.gone()),
            (_, Server::Trying(_)) => self.waits(door, text, glance),
            (Client::Rounds { .. }, Server::Unknown) => {
                self.try_discover(now);
                self.waits(door, text, glance)
            }
            // Before any opening: the server's own business.
            (Client::Unknown | Client::Pushed { .. }, Server::Unknown) | (Client::Unknown, _) => {
                self.start(door, text, glance, None, None, Capability::NONE)
            }
            (_, Server::Pushed { .. } | Server::Rounds { .. }) => {
                self.route(now, door, text, glance, method)
            }
        }
    }

    /// The request waits until the server's era is known.
    pub(super) fn waits(&mut self, door: Door, text: &str, glance: &Glance) -> Up {
        if self.waiting.len() >= WAITING {
            let why = "too many requests wait for the server's first answer";
            return self.refuse(door, text, glance, &Refusal::new(-32000, why));
        }
        self.waiting.push_back((door, text.as_bytes().to_vec()));
        Up::Taken
    }

    /// A request of a known client for a known server.
    pub(super) fn route(
        &mut self,
        now: Timestamp,
        door: Door,
        text: &str,
        glance: &Glance,
        method: &str,
    ) -> Up {
        let kind = CallKind::of_method(method);
        if let Some(kind) = kind
            && let Some(up) = self.resumes(now, door, text, glance, kind)
        {
            return up;
        }
        let server_era = self.server.revision().map(Revision::era);
        match (self.client.era(), server_era) {
            (Some(Era::Pushed), Some(Era::Rounds)) => {
                self.pushed_to_rounds(door, text, glance, method)
            }
            (Some(Era::Rounds), Some(Era::Pushed)) => {
                self.rounds_to_pushed(door, text, glance, method)
            }
            (Some(Era::Rounds), _) => {
                let (capability, changed) = self.rounds_capability(text, glance);
                self.start(door, text, glance, kind, changed, capability)
            }
            _ => {
                let capability = self.session_capability();
                self.start(door, text, glance, kind, None, capability)
            }
        }
    }

    /// Returns what a pushed client declared for its session.
    pub(super) fn session_capability(&self) -> Capability {
        match &self.client {
            Client::Pushed { capability, .. } => *capability,
            Client::Unknown | Client::Rounds { .. } => Capability::NONE,
        }
    }

    /// The call goes to the server, as it came when nothing stands against it.
    pub(super) fn start(
        &mut self,
        door: Door,
        text: &str,
        glance: &Glance,
        kind: Option<CallKind>,
        changed: Option<String>,
        capability: Capability,
    ) -> Up {
        let Some(id) = frame::id_of(text, glance) else {
            return Up::Forward(None);
        };
        let mut sent: Cow<'_, str> = changed.map_or(Cow::Borrowed(text), Cow::Owned);
        let mut call = Call::new(self.arrived, door, id.clone(), kind);
        call.capability = capability;
        call.brought = self.brought.take();
        let method = glance.method.clone().map(|range| &text[range]);
        call.log_level = self.wanted_log_level(text, glance);
        call.lists_tools = method == Some("tools/list");
        if self.calls.by_upstream(&id).is_some() || id.as_json().contains(OWN) {
            // Another client's request, or an earlier one still at work, has this id.
            call.upstream_id = self.own_id();
            if let Ok(envelope) = Envelope::parse_within(sent.as_bytes(), usize::MAX) {
                sent = Cow::Owned(envelope.with_id(&call.upstream_id));
            }
        }
        if self.settings.many_doors {
            self.give_token(&mut call, &mut sent, glance);
        }
        if kind.is_some() {
            let shared = match &sent {
                Cow::Borrowed(sent) => {
                    let same = |frame: &Bytes| frame.as_ptr() == sent.as_ptr();
                    self.arriving.clone().filter(same)
                }
                Cow::Owned(_) => None,
            };
            call.keep(shared.unwrap_or_else(|| Bytes::copy_from_slice(sent.as_bytes())));
        }
        let key = self.calls.insert(call);
        if kind.is_some() && self.waits_for_turn(key) {
            let original = Bytes::copy_from_slice(text.as_bytes());
            self.queue(self.arrived, key, original);
            return Up::Taken;
        }
        match sent {
            Cow::Borrowed(_) => Up::Forward(Some(key)),
            Cow::Owned(sent) => {
                self.tell_server(sent, Some(key));
                Up::Taken
            }
        }
    }

    /// Progress finds its stream by its token, so two calls must not share one. `glance` is at the frame as it came.
    fn give_token(&mut self, call: &mut Call, sent: &mut Cow<'_, str>, glance: &Glance) {
        let token = match &*sent {
            Cow::Borrowed(as_it_came) => calls::progress_token(as_it_came, glance),
            Cow::Owned(changed) => Glance::at(changed.as_bytes())
                .and_then(|glance| calls::progress_token(changed, &glance)),
        };
        let Some(token) = token else {
            return;
        };
        call.token = Some(token.clone());
        if self.calls.by_upstream_token(&token).is_none() {
            call.upstream_token = Some(token);
            return;
        }
        let own = self.own_id();
        if let Some(changed) = with_token(sent, &own) {
            *sent = Cow::Owned(changed);
            call.upstream_token = Some(own);
        }
    }

    pub(super) fn client_notification(
        &mut self,
        now: Timestamp,
        text: &str,
        glance: &Glance,
    ) -> Up {
        let method = glance.method.clone().map_or("", |range| &text[range]);
        match method {
            method::CANCELLED => self.client_cancels(now, text, glance),
            method::INITIALIZED
                if self.server.revision().map(Revision::era) == Some(Era::Rounds) =>
            {
                Up::Taken
            }
            _ => Up::Forward(None),
        }
    }

    fn client_cancels(&mut self, now: Timestamp, text: &str, glance: &Glance) -> Up {
        if self.settings.many_doors && self.client.era() == Some(Era::Rounds) {
            // Each request is given up by closing its own stream (2026-07-28, transports). Whose id this is cannot be told.
            return Up::Taken;
        }
        let params = glance
            .params
            .as_ref()
            .and_then(|range| frame::raw_at(text, range));
        let Some(Ok(Cancelled {
            request_id: Some(id),
            reason,
        })) = params.map(Cancelled::parse)
        else {
            return Up::Forward(None);
        };
        let Some(key) = self.calls.by_client(&id) else {
            return Up::Forward(None);
        };
        if reason.is_some_and(|reason| is_timeout(&reason)) && self.client_timed_out(now, key) {
            return Up::Taken;
        }
        self.give_up(now, key, params, &id)
    }

    /// The client gives a call up: its questions are withdrawn and the server is told.
    fn give_up(&mut self, now: Timestamp, key: CallKey, params: Option<&RawValue>, id: &Id) -> Up {
        let upstream = self.calls.is_upstream(key);
        self.end_questions_of(now, key, Ending::WithdrawnByClient);
        let Some(call) = self.remove_call(key) else {
            return Up::Forward(None);
        };
        if !upstream {
            return Up::Taken;
        }
        self.gave_up |= call.kind.is_some();
        self.effects.push_back(Effect::Abandon { call: key });
        if call.upstream_id.as_json() == id.as_json() {
            return Up::Forward(None);
        }
        let own = call.upstream_id.to_raw();
        if let Some(params) =
            params.and_then(|params| members::Members::read(params, "params").ok())
        {
            let params = params.with("requestId", Some(&own));
            self.tell_server(
                message::notification(method::CANCELLED, Some(&params)),
                None,
            );
        }
        Up::Taken
    }

    pub(super) fn client_response(&mut self, now: Timestamp, text: &str, glance: &Glance) -> Up {
        let Some(id) = frame::id_of(text, glance) else {
            return Up::Forward(None);
        };
        if let Some(key) = self.questions.by_client_id(&id) {
            self.client_replies(now, key, text, glance);
            return Up::Taken;
        }
        if self.other_replies(now, &id, text, glance) || !self.server_requests.remove(&id) {
            // Late for a question that has ended, or an answer to nothing: answers pass through the record only.
            return Up::Taken;
        }
        Up::Forward(None)
    }

    /// The stream of a request is closed: in the rounds era that gives the request up (2026-07-28, transports).
    pub(super) fn door_closed(&mut self, now: Timestamp, door: Door) {
        for key in self.calls.at_door(door) {
            let call = self.calls.get(key);
            if call.is_some_and(Call::is_queued) {
                self.remove_call(key);
            } else if call.is_some_and(|call| call.held.is_some()) {
                // A person is being asked: the call waits for being made again.
                self.park(key);
            } else if self.client.era() == Some(Era::Rounds) {
                self.end_questions_of(now, key, Ending::WithdrawnByClient);
                self.cancel_upstream(key);
                self.remove_call(key);
            }
        }
    }

    /// The server is told that nobody wants the call any more, where it still works on it.
    pub(super) fn cancel_upstream(&mut self, key: CallKey) {
        if !self.calls.is_upstream(key) {
            return;
        }
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let id = call.upstream_id.clone();
        self.gave_up |= call.kind.is_some();
        self.effects.push_back(Effect::Abandon { call: key });
        let notice = Cancelled {
            request_id: Some(id),
            reason: None,
        };
        self.tell_server(notice.to_message(), None);
    }

    /// A request is refused; other frames have nobody to tell.
    pub(super) fn refuse(
        &mut self,
        door: Door,
        text: &str,
        glance: &Glance,
        refusal: &Refusal,
    ) -> Up {
        if let Some(id) = frame::id_of(text, glance) {
            self.tell_client(door, refusal.to_response(&id), true);
        }
        Up::Taken
    }

    /// A frame that is not passed on, under the id that it has if it has one.
    pub(super) fn refuse_defect(&mut self, door: Door, bytes: &[u8], defect: FrameDefect) -> Up {
        if defect == FrameDefect::NotOneObject {
            return self.refuse_unreadable(door, bytes);
        }
        let id = frame_index::only_id(bytes);
        self.refuse_under(door, id.as_ref(), defect.code(), &defect.to_string())
    }

    pub(super) fn refuse_unreadable(&mut self, door: Door, bytes: &[u8]) -> Up {
        let (code, why) = match Envelope::parse_within(bytes, usize::MAX) {
            Ok(_) => (-32600, "the message is not a request".to_owned()),
            Err(defect) => (-32700, defect.to_string()),
        };
        self.refuse_under(door, None, code, &why)
    }

    /// An error for what is no message, under the id that it has if any.
    fn refuse_under(&mut self, door: Door, id: Option<&Id>, code: i32, why: &str) -> Up {
        let error = members::raw_value(&json!({"code": code, "message": why}));
        self.tell_client(door, message::error(id, &error), true);
        Up::Taken
    }
}

/// The request with another progress token.
fn with_token(text: &str, token: &Id) -> Option<String> {
    let bytes = text.as_bytes();
    let meta = Glance::at(bytes)?.meta?;
    let range = glance::member(bytes, &meta, "progressToken")?;
    Some(frame::spliced(text, &range, token.as_json()))
}
