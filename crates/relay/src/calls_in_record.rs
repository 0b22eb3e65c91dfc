//! Calls without a waiting client, beyond this session: the record stores them, so that the same call made again finds
//! its result, or follows the call that is still in progress, in any session of the same caller.

use mcp_elicit_core::wire::Capability;

use crate::frame_edit::ErrorResponse;
use crate::parts::call_budget::Permit;
use crate::parts::calls::{AskingCall, Call, Finished, Request};
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::lookups::EndedLookup;
use crate::parts::unattended::MadeCall;
use crate::{
    CallId, CallKind, ClientForward, ClientFrame, Effect, FoundCall, Relay, StreamId, Timestamp,
};

impl Relay {
    /// Sets whether the record has any call without a waiting client: each call is then looked up there first.
    pub fn set_finds_calls(&mut self, finds: bool) {
        self.unattended.record_has_calls(finds);
    }

    /// Looks up a call that the client has made.
    pub(crate) fn look_up(
        &mut self,
        frame: ClientFrame<'_>,
        kind: CallKind,
        digest: String,
    ) -> Option<ClientForward> {
        let permit = match self.calls.budget().permit() {
            Ok(permit) => permit,
            Err(fault) => return Some(self.effects.reject(frame, &fault.refusal())),
        };
        let made = MadeCall {
            kind,
            id: frame.id()?,
            digest,
            request: frame.to_indexed(),
        };
        self.find_call(permit, frame.stream(), made);
        Some(ClientForward::Handled)
    }

    /// Looks up the call in the record, which reports the result.
    fn find_call(&mut self, mut permit: Permit, stream: StreamId, made: MadeCall) {
        permit.set_bytes(made.request.size());
        let lookup = self.calls.next_key();
        self.effects.push(Effect::FindCall {
            lookup,
            digest: made.digest.clone(),
            server_info: self.server_info(),
        });
        let lookups = self.unattended.lookups_mut();
        lookups.begin(lookup, stream, made, permit);
    }

    /// Handles the result of a lookup.
    pub(crate) fn call_found(&mut self, now: Timestamp, lookup: CallId, found: FoundCall) {
        let Some(EndedLookup {
            stream,
            request: made,
            permit: Some(permit),
        }) = self.unattended.lookups_mut().end(lookup)
        else {
            // No client waits for it.
            return;
        };
        match found {
            FoundCall::Nothing => {
                drop(permit);
                let frame = ClientFrame::of_indexed(&made.request, stream, now).looked_up();
                let forward = self.client_request(frame);
                self.next_turns(now);
                if let ClientForward::AsIs(call) = forward {
                    self.effects.tell_server(made.request.into_text(), call);
                }
            }
            FoundCall::Result(result) => {
                let end = match IndexedFrame::read(result) {
                    Ok(response) => Finished::Response(response),
                    Err(_) => Finished::Failed(ErrorResponse::unreadable().into()),
                };
                self.tell_end(stream, &made.id, Some(made.kind), &end);
            }
            FoundCall::Running { link } => {
                let digest = made.digest.clone();
                let key = self.insert_unsent(permit, now, stream, made);
                self.unattended.follow(key, digest.clone(), link);
                self.effects.push(Effect::FollowCall {
                    call: key,
                    digest,
                    server_info: self.server_info(),
                });
                self.hold(now, key);
            }
        }
    }

    /// Adds a call of which the server does not know.
    pub(crate) fn insert_unsent(
        &mut self,
        permit: Permit,
        now: Timestamp,
        stream: StreamId,
        made: MadeCall,
    ) -> CallId {
        let kept = AskingCall::new(made.kind, made.request, Capability::NONE);
        let request = Request::Call(kept.with_digest(Some(&made.digest)));
        let call = Call::new(permit, now, stream, made.id, request).with_upstream_id(self.new_id());
        self.calls.insert_unsent(call)
    }

    /// Looks up a call again, because the call that it follows has ended or its result is in the record.
    pub(crate) fn followed_call_ended(&mut self, key: CallId) {
        if self.followed_task_ended(key) {
            return;
        }
        let Some(digest) = self.unattended.end_following(key) else {
            // It was given up meanwhile.
            return;
        };
        self.holds.end(key, &mut self.timers);
        // Without a stream no client waits for it. What follows a call is one.
        if let Some(call) = self.remove_call(key)
            && let Some(stream) = call.stream()
            && let Some((kind, request)) = call.kind().zip(call.frame().cloned())
        {
            let id = call.client_id().clone();
            let made = MadeCall {
                kind,
                id,
                digest,
                request,
            };
            self.find_call(call.into_permit(), stream, made);
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
            // Another session could not find it: nothing that cannot be read has a digest.
            return;
        };
        self.effects.push(Effect::KeepCall {
            call: key,
            digest,
            server_info,
            link,
        });
    }
}
