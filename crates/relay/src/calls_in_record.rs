//! Calls without a waiting client, beyond this session: the record stores them, so that the same call made again finds
//! its result, or follows the call that is still in progress, in any session of the same caller.

use mcp_elicit_core::wire::{Capability, Frame, Id};

use crate::frame_edit::ErrorResponse;
use crate::parts::call_budget::Permit;
use crate::parts::calls::{self, AskingCall, Call, Finished, Request};
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::unattended::EndedLookup;
use crate::{
    CallId, CallKind, ClientForward, ClientFrame, Effect, FoundCall, Relay, StreamId, Timer,
    Timestamp,
};

impl Relay {
    /// Sets whether the record has any call without a waiting client: each call is then looked up there first.
    pub fn set_finds_calls(&mut self, finds: bool) {
        self.unattended.record_has_calls(finds);
    }

    /// Looks up a call that the client has made.
    pub(crate) fn look_up(&mut self, frame: ClientFrame<'_>, digest: String) -> ClientForward {
        match self.calls.budget().permit() {
            Ok(permit) => self.find_call(permit, frame.stream(), frame.to_indexed(), digest),
            Err(fault) => self.effects.reject(frame, &fault.refusal()),
        }
    }

    /// Looks up the call in the record, which reports the result.
    fn find_call(
        &mut self,
        permit: Permit,
        stream: StreamId,
        request: IndexedFrame,
        digest: String,
    ) -> ClientForward {
        let lookup = self.calls.next_key();
        self.unattended
            .begin_lookup(lookup, stream, request, permit);
        self.effects.push(Effect::FindCall {
            lookup,
            digest,
            server_info: self.server_info(),
        });
        ClientForward::Handled
    }

    /// Handles the result of a lookup.
    pub(crate) fn call_found(&mut self, now: Timestamp, lookup: CallId, found: FoundCall) {
        let Some(EndedLookup {
            stream,
            request,
            permit: Some(permit),
        }) = self.unattended.end_lookup(lookup)
        else {
            // No client waits for it.
            return;
        };
        if found == FoundCall::Nothing {
            drop(permit);
            let frame = ClientFrame::of_indexed(&request, stream, now).looked_up();
            let forward = self.client_request(frame);
            self.next_turns(now);
            if let ClientForward::AsIs(call) = forward {
                self.effects.tell_server(request.into_text(), call);
            }
        } else if let Some((key, digest)) = self.admit_unsent(permit, now, stream, request) {
            match found {
                FoundCall::Nothing => {}
                FoundCall::Result(result) => {
                    let end = match IndexedFrame::read(result) {
                        Ok(response) => Finished::Response(response),
                        Err(_) => Finished::Failed(ErrorResponse::unreadable()),
                    };
                    if let Some(call) = self.calls.get_mut(key) {
                        call.finish(end);
                    }
                    self.deliver_finished(key);
                }
                FoundCall::Running { link } => {
                    self.unattended.follow(key, link);
                    self.effects.push(Effect::FollowCall {
                        call: key,
                        digest,
                        server_info: self.server_info(),
                    });
                    self.hold(now, key);
                }
            }
        }
    }

    /// Admits a call that does not go to the server.
    fn admit_unsent(
        &mut self,
        permit: Permit,
        now: Timestamp,
        stream: StreamId,
        request: IndexedFrame,
    ) -> Option<(CallId, String)> {
        let frame = request.frame();
        let kind = CallKind::of_method(frame.method()?)?;
        let id = frame.id()?;
        let digest = calls::summary(kind, frame).ok()?.digest;
        Some((
            self.insert_unsent(permit, now, stream, id, kind, request),
            digest,
        ))
    }

    /// Adds a call with this request, of which the server does not know.
    pub(crate) fn insert_unsent(
        &mut self,
        permit: Permit,
        now: Timestamp,
        stream: StreamId,
        id: Id,
        kind: CallKind,
        frame: IndexedFrame,
    ) -> CallId {
        let request = Request::Call(AskingCall::new(kind, frame, Capability::NONE));
        let call = Call::new(permit, now, stream, id, request).with_upstream_id(self.new_id());
        self.calls.insert_unsent(call)
    }

    /// Looks up a call again, because the call that it follows has ended or its result is in the record.
    pub(crate) fn followed_call_ended(&mut self, key: CallId) {
        if self.followed_task_ended(key) || !self.unattended.end_following(key) {
            return;
        }
        self.end_hold(key);
        let Some(mut call) = self.remove_call(key) else {
            return;
        };
        let digest = call.summary().map(|summary| summary.digest.clone());
        let request = call.frame().cloned();
        if let (Some(stream), Some(request), Some(digest)) = (call.stream(), request, digest) {
            self.find_call(call.into_permit(), stream, request, digest);
        }
    }

    /// Stores a call without a waiting client in the record, for other sessions of the caller.
    pub(crate) fn keep_call(&mut self, key: CallId) {
        // The server does not know of a call that waits for its turn.
        let queued = self.calls.get(key).is_some_and(Call::is_queued);
        if queued || self.unattended.follows(key) {
            return;
        }
        let (server_info, link) = (self.server_info(), self.link_of(key));
        let Some(digest) = self
            .calls
            .get_mut(key)
            .and_then(|call| call.summary().map(|calling| calling.digest.clone()))
        else {
            return;
        };
        self.effects.push(Effect::KeepCall {
            call: key,
            digest,
            server_info,
            link,
        });
    }

    /// Stores the server's answer to a call without a waiting client.
    pub(crate) fn keep_result(&mut self, now: Timestamp, key: CallId, response: Frame<'_>) {
        let result = response.text().to_owned();
        let end = Finished::Response(IndexedFrame::of(response, None));
        self.finish_unattended(now, key, end);
        let call = key;
        self.effects.push(Effect::KeepResult { call, result });
    }

    /// Keeps the end of a call until the call is made again, for a time.
    pub(crate) fn finish_unattended(&mut self, now: Timestamp, key: CallId, end: Finished) {
        self.turns.queue_mut().remove(key);
        if let Some(call) = self.calls.get_mut(key) {
            call.finish(end);
        }
        let at = now.after(self.settings.keep_results);
        self.timers.set(at, Timer::DropUnattended(key));
    }
}
