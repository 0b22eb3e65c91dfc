//! Frames from the client: passed on, put into the server's era, or answered here.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_elicit_core::wire::{
    Cancelled, Capability, Envelope, Era, FrameDefect, Id, Revision, frame, members, message,
    method,
};
use serde_json::json;
use serde_json::value::RawValue;

use super::calls::{self, Call};
use super::client_waits::is_timeout;
use super::frame_edit::{self, ErrorResponse, OWN};
use super::handshake::{Client, Server};
use super::{CallId, CallKind, ClientForward, Effect, Ending, Relay, StreamId, Timestamp};
use mcp_elicit_core::wire::frame::FrameIndex;

/// The number of requests that may wait for the server's era to be known.
const WAITING: usize = 256;

impl Relay {
    pub(super) fn client_request(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        text: &str,
        index: &FrameIndex,
    ) -> ClientForward {
        let Some(method) = index.method.clone().map(|range| &text[range]) else {
            return ClientForward::AsIs(None);
        };
        if frame_edit::id_of(text, index).is_none() {
            // Its answer could not be told from another's (JSON-RPC 2.0, and MCP has no null either).
            let why = "a request's id must be a string or a number";
            return self.reject_under(stream, None, -32600, why);
        }
        match method {
            method::INITIALIZE => return self.client_initializes(stream, text, index),
            method::DISCOVER => return self.client_discovers(now, stream, text, index),
            _ => {}
        }
        if matches!(self.client, Client::Unknown) {
            self.learn_rounds_client(text, index);
        }
        match (&self.client, &self.server) {
            (_, Server::Gone) => self.reject(stream, text, index, &self.server_ended()),
            (_, Server::Probing(_)) => self.wait_for_era(stream, text, index),
            (Client::Rounds { .. }, Server::Unknown) => {
                self.begin_probe(now);
                self.wait_for_era(stream, text, index)
            }
            // Before any opening: the server's own business.
            (Client::Unknown | Client::Pushed { .. }, Server::Unknown) | (Client::Unknown, _) => {
                self.start(stream, text, index, None, None, Capability::NONE)
            }
            (_, Server::Pushed { .. } | Server::Rounds { .. }) => {
                self.route(now, stream, text, index, method)
            }
        }
    }

    /// The request waits until the server's era is known.
    pub(super) fn wait_for_era(
        &mut self,
        stream: StreamId,
        text: &str,
        index: &FrameIndex,
    ) -> ClientForward {
        if self.waiting.len() >= WAITING {
            let why = "too many requests wait for the server's first answer";
            return self.reject(stream, text, index, &ErrorResponse::new(-32000, why));
        }
        self.waiting.push_back((stream, text.as_bytes().to_vec()));
        ClientForward::Handled
    }

    /// A request of a known client for a known server.
    pub(super) fn route(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        text: &str,
        index: &FrameIndex,
        method: &str,
    ) -> ClientForward {
        let kind = CallKind::of_method(method);
        if let Some(kind) = kind
            && let Some(up) = self.resume_or_find(now, stream, text, index, kind)
        {
            return up;
        }
        let server_era = self.server.revision().map(Revision::era);
        match (self.client.era(), server_era) {
            (Some(Era::Pushed), Some(Era::Rounds)) => {
                self.pushed_to_rounds(stream, text, index, method)
            }
            (Some(Era::Rounds), Some(Era::Pushed)) => {
                self.rounds_to_pushed(stream, text, index, method)
            }
            (Some(Era::Rounds), _) => {
                let (capability, changed) = self.rounds_capability(text, index);
                self.start(stream, text, index, kind, changed, capability)
            }
            _ => {
                let capability = self.session_capability();
                self.start(stream, text, index, kind, None, capability)
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
        stream: StreamId,
        text: &str,
        index: &FrameIndex,
        kind: Option<CallKind>,
        changed: Option<String>,
        capability: Capability,
    ) -> ClientForward {
        let Some(id) = frame_edit::id_of(text, index) else {
            return ClientForward::AsIs(None);
        };
        let mut sent: Cow<'_, str> = changed.map_or(Cow::Borrowed(text), Cow::Owned);
        let mut call = Call::new(self.arrived, stream, id.clone(), kind);
        call.capability = capability;
        call.retry_answers = self.retry_answers.take();
        let method = index.method.clone().map(|range| &text[range]);
        call.log_level = self.requested_log_level(text, index);
        call.lists_tools = method == Some("tools/list");
        if self.calls.by_upstream(&id).is_some() || id.as_json().contains(OWN) {
            // Another client's request, or an earlier one still at work, has this id.
            call.upstream_id = self.own_id();
            if let Ok(envelope) = Envelope::parse_within(sent.as_bytes(), usize::MAX) {
                sent = Cow::Owned(envelope.with_id(&call.upstream_id));
            }
        }
        if self.settings.client_streams {
            self.give_token(&mut call, &mut sent, index);
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
            return ClientForward::Handled;
        }
        match sent {
            Cow::Borrowed(_) => ClientForward::AsIs(Some(key)),
            Cow::Owned(sent) => {
                self.tell_server(sent, Some(key));
                ClientForward::Handled
            }
        }
    }

    /// Progress finds its stream by its token, so two calls must not share one. `index` belongs to the frame as it came.
    fn give_token(&mut self, call: &mut Call, sent: &mut Cow<'_, str>, index: &FrameIndex) {
        let token = match &*sent {
            Cow::Borrowed(as_it_came) => calls::progress_token(as_it_came, index),
            Cow::Owned(changed) => FrameIndex::at(changed.as_bytes())
                .and_then(|index| calls::progress_token(changed, &index)),
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
        index: &FrameIndex,
    ) -> ClientForward {
        let method = index.method.clone().map_or("", |range| &text[range]);
        match method {
            method::CANCELLED => self.client_cancels(now, text, index),
            method::INITIALIZED
                if self.server.revision().map(Revision::era) == Some(Era::Rounds) =>
            {
                ClientForward::Handled
            }
            _ => ClientForward::AsIs(None),
        }
    }

    fn client_cancels(&mut self, now: Timestamp, text: &str, index: &FrameIndex) -> ClientForward {
        if self.settings.client_streams && self.client.era() == Some(Era::Rounds) {
            // Each request is given up by closing its own stream (2026-07-28, transports). Attribution id this is cannot be told.
            return ClientForward::Handled;
        }
        let params = index
            .params
            .as_ref()
            .and_then(|range| frame_edit::raw_at(text, range));
        let Some(Ok(Cancelled {
            request_id: Some(id),
            reason,
        })) = params.map(Cancelled::parse)
        else {
            return ClientForward::AsIs(None);
        };
        let Some(key) = self.calls.by_client(&id) else {
            return ClientForward::AsIs(None);
        };
        if reason.is_some_and(|reason| is_timeout(&reason)) && self.client_timed_out(now, key) {
            return ClientForward::Handled;
        }
        self.give_up(now, key, params, &id)
    }

    /// The client gives a call up: its questions are withdrawn and the server is told.
    fn give_up(
        &mut self,
        now: Timestamp,
        key: CallId,
        params: Option<&RawValue>,
        id: &Id,
    ) -> ClientForward {
        let upstream = self.calls.is_upstream(key);
        self.end_questions_of(now, key, Ending::WithdrawnByClient);
        let Some(call) = self.remove_call(key) else {
            return ClientForward::AsIs(None);
        };
        if !upstream {
            return ClientForward::Handled;
        }
        self.gave_up |= call.kind.is_some();
        self.effects.push_back(Effect::Abandon { call: key });
        if call.upstream_id.as_json() == id.as_json() {
            return ClientForward::AsIs(None);
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
        ClientForward::Handled
    }

    pub(super) fn client_response(
        &mut self,
        now: Timestamp,
        text: &str,
        index: &FrameIndex,
    ) -> ClientForward {
        let Some(id) = frame_edit::id_of(text, index) else {
            return ClientForward::AsIs(None);
        };
        if let Some(key) = self.asks.by_client_id(&id) {
            self.client_replies(now, key, text, index);
            return ClientForward::Handled;
        }
        if self.other_replies(now, &id, text, index) || !self.server_requests.remove(&id) {
            // Late for a question that has ended, or an answer to nothing: answers pass through the record only.
            return ClientForward::Handled;
        }
        ClientForward::AsIs(None)
    }

    /// The stream of a request is closed: in the rounds era that gives the request up (2026-07-28, transports).
    pub(super) fn stream_closed(&mut self, now: Timestamp, stream: StreamId) {
        for key in self.calls.on_stream(stream) {
            let call = self.calls.get(key);
            if call.is_some_and(Call::is_queued) {
                self.remove_call(key);
            } else if call.is_some_and(|call| call.held.is_some()) {
                // A person is being asked: the call waits for being made again.
                self.detach(key);
            } else if self.client.era() == Some(Era::Rounds) {
                self.end_questions_of(now, key, Ending::WithdrawnByClient);
                self.cancel_upstream(key);
                self.remove_call(key);
            }
        }
    }

    /// The server is told that nobody wants the call any more, where it still works on it.
    pub(super) fn cancel_upstream(&mut self, key: CallId) {
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
    pub(super) fn reject(
        &mut self,
        stream: StreamId,
        text: &str,
        index: &FrameIndex,
        refusal: &ErrorResponse,
    ) -> ClientForward {
        if let Some(id) = frame_edit::id_of(text, index) {
            self.tell_client(stream, refusal.to_response(&id), true);
        }
        ClientForward::Handled
    }

    /// A frame that is not passed on, under the id that it has if it has one.
    pub(super) fn reject_defect(
        &mut self,
        stream: StreamId,
        bytes: &[u8],
        defect: FrameDefect,
    ) -> ClientForward {
        if defect == FrameDefect::NotOneObject {
            return self.reject_unreadable(stream, bytes);
        }
        let id = frame::only_id(bytes);
        self.reject_under(stream, id.as_ref(), defect.code(), &defect.to_string())
    }

    pub(super) fn reject_unreadable(&mut self, stream: StreamId, bytes: &[u8]) -> ClientForward {
        let (code, why) = match Envelope::parse_within(bytes, usize::MAX) {
            Ok(_) => (-32600, "the message is not a request".to_owned()),
            Err(defect) => (-32700, defect.to_string()),
        };
        self.reject_under(stream, None, code, &why)
    }

    /// An error for what is no message, under the id that it has if any.
    fn reject_under(
        &mut self,
        stream: StreamId,
        id: Option<&Id>,
        code: i32,
        why: &str,
    ) -> ClientForward {
        let error = members::raw_value(&json!({"code": code, "message": why}));
        self.tell_client(stream, message::error(id, &error), true);
        ClientForward::Handled
    }
}

/// The request with another progress token.
fn with_token(text: &str, token: &Id) -> Option<String> {
    let bytes = text.as_bytes();
    let meta = FrameIndex::at(bytes)?.meta?;
    let range = frame::member(bytes, &meta, "progressToken")?;
    Some(frame_edit::spliced(text, &range, token.as_json()))
}
