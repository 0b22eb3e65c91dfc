//! Calls that nobody waits for, beyond this session: the record knows them, so that the same call made again finds its
//! result, or follows the call that is still at work, in whatever session of the same caller.

use crate::calls::{self, Call};
use crate::{
    CallId, CallKind, ClientForward, Effect, FoundCall, Relay, StreamId, Timer, Timestamp,
};
use mcp_elicit_core::wire::{Frame, FrameIndex};

impl Relay {
    /// Sets whether the record knows any call that nobody waits for: then each call is looked up there first.
    pub fn set_finds_calls(&mut self, finds: bool) {
        self.looks_up_calls = finds;
    }

    /// Looks the call up in the record, which tells what it found.
    pub(crate) fn find_call(
        &mut self,
        stream: StreamId,
        text: &str,
        digest: String,
    ) -> ClientForward {
        self.lookups.push(stream);
        self.effects.push_back(Effect::FindCall {
            stream,
            frame: text.to_owned(),
            digest,
            server_info: self.server.info(),
        });
        ClientForward::Handled
    }

    /// The record has looked the call up.
    pub(crate) fn call_found(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        text: &str,
        found: FoundCall,
    ) {
        // Nobody waits for it where the client has closed its stream.
        let Some(at) = self.lookups.iter().position(|known| *known == stream) else {
            return;
        };
        self.lookups.swap_remove(at);
        let finds = std::mem::take(&mut self.looks_up_calls);
        if found == FoundCall::Nothing {
            if let ClientForward::AsIs(call) = self.client_frame(now, stream, text.as_bytes()) {
                self.tell_server(text.to_owned(), call);
            }
        } else if let Some((key, digest)) = self.admit_unsent(now, stream, text) {
            match found {
                FoundCall::Result(result) => {
                    if let Some(call) = self.calls.get_mut(key) {
                        call.finished = Some(result);
                    }
                    self.deliver_finished(key);
                }
                FoundCall::Running | FoundCall::Nothing => {
                    self.following.insert(key);
                    self.effects.push_back(Effect::FollowCall {
                        call: key,
                        digest,
                        server_info: self.server.info(),
                    });
                    self.hold(now, key);
                }
            }
        }
        self.looks_up_calls = finds;
    }

    /// Takes a call in that does not go to the server.
    fn admit_unsent(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        text: &str,
    ) -> Option<(CallId, String)> {
        let index = FrameIndex::at(text.as_bytes())?;
        let frame = Frame::of_text(text, &index);
        let kind = CallKind::of_method(frame.method()?)?;
        let id = frame.id()?;
        let digest = calls::summary(kind, frame).ok()?.digest;
        let mut call = Call::new(now, stream, id, Some(kind));
        call.upstream_id = self.own_id();
        call.keep(bytes::Bytes::copy_from_slice(text.as_bytes()));
        let key = self.calls.insert(call);
        self.calls.end_upstream(key);
        Some((key, digest))
    }

    /// The call that this one follows has ended, or its result is in the record: it is looked up once more.
    pub(crate) fn followed_call_ended(&mut self, key: CallId) {
        if !self.following.remove(&key) {
            return;
        }
        self.end_hold(key);
        let Some(call) = self.remove_call(key) else {
            return;
        };
        let mut call = call;
        let digest = call.summary().map(|summary| summary.digest.clone());
        if let (Some(stream), Some(text), Some(digest)) = (call.stream, call.frame(), digest) {
            self.find_call(stream, text, digest);
        }
    }

    /// Nobody waits for the call: the record is told, for other sessions of the caller.
    pub(crate) fn keep_call(&mut self, key: CallId) {
        // The server knows nothing of one that waits for its turn.
        let queued = self.calls.get(key).is_some_and(Call::is_queued);
        if queued || self.following.contains(&key) {
            return;
        }
        let server_info = self.server.info();
        let Some(digest) = self
            .calls
            .get_mut(key)
            .and_then(|call| call.summary().map(|calling| calling.digest.clone()))
        else {
            return;
        };
        self.effects.push_back(Effect::KeepCall {
            call: key,
            digest,
            server_info,
        });
    }

    /// The server has answered a call that nobody waits for.
    pub(crate) fn keep_result(&mut self, now: Timestamp, key: CallId, result: String) {
        if let Some(call) = self.calls.get_mut(key) {
            call.finished = Some(result.clone());
        }
        let at = now.after(self.settings.keep_results);
        self.at(at, Timer::DropUnattended(key));
        let call = key;
        self.effects.push_back(Effect::KeepResult { call, result });
    }

    /// The call is waited for again here, or has ended: the record is told.
    pub(crate) fn drop_call(&mut self, key: CallId) {
        self.effects.push_back(Effect::DropCall { call: key });
    }
}
