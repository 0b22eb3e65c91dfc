//! Calls that nobody waits for, beyond this session: the record knows them, so that the same call made again finds its
//! result, or follows the call that is still at work, in whatever session of the same caller.

use super::calls::{self, Call};
use super::frame;
use super::glance::Glance;
use super::{CallKey, CallKind, Door, Effect, FoundCall, Relay, Timer, Timestamp, Up};

impl Relay {
    /// Sets whether the record knows any call that nobody waits for: then each call is looked up there first.
    pub fn set_finds_calls(&mut self, finds: bool) {
        self.finds_calls = finds;
    }

    /// Looks the call up in the record, which tells what it found.
    pub(super) fn find_call(&mut self, door: Door, text: &str, digest: String) -> Up {
        self.finding.push(door);
        self.effects.push_back(Effect::FindCall {
            door,
            frame: text.to_owned(),
            digest,
            server_info: self.server.info(),
        });
        Up::Taken
    }

    /// The record has looked the call up.
    pub(super) fn call_found(&mut self, now: Timestamp, door: Door, text: &str, found: FoundCall) {
        // Nobody waits for it where the client has closed its stream.
        let Some(at) = self.finding.iter().position(|known| *known == door) else {
            return;
        };
        self.finding.swap_remove(at);
        let finds = std::mem::take(&mut self.finds_calls);
        if found == FoundCall::Nothing {
            if let Up::Forward(call) = self.client_frame(now, door, text.as_bytes()) {
                self.tell_server(text.to_owned(), call);
            }
        } else if let Some((key, digest)) = self.admit_unsent(now, door, text) {
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
        self.finds_calls = finds;
    }

    /// Takes a call in that does not go to the server.
    fn admit_unsent(
        &mut self,
        now: Timestamp,
        door: Door,
        text: &str,
    ) -> Option<(CallKey, String)> {
        let glance = Glance::at(text.as_bytes())?;
        let kind = CallKind::of_method(&text[glance.method.clone()?])?;
        let id = frame::id_of(text, &glance)?;
        let digest = calls::calling(kind, text).ok()?.digest;
        let mut call = Call::new(now, door, id, Some(kind));
        call.upstream_id = self.own_id();
        call.keep(bytes::Bytes::copy_from_slice(text.as_bytes()));
        let key = self.calls.insert(call);
        self.calls.settle_upstream(key);
        Some((key, digest))
    }

    /// The call that this one follows has ended, or its result is in the record: it is looked up once more.
    pub(super) fn followed_call_ended(&mut self, key: CallKey) {
        if !self.following.remove(&key) {
            return;
        }
        self.stop_holding(key);
        let Some(call) = self.remove_call(key) else {
            return;
        };
        if let (Some(door), Some(text), Some(kind)) = (call.door, call.frame(), call.kind)
            && let Ok(calling) = calls::calling(kind, text)
        {
            let text = text.to_owned();
            self.find_call(door, &text, calling.digest);
        }
    }

    /// Nobody waits for the call: the record is told, for other sessions of the caller.
    pub(super) fn keep_call(&mut self, key: CallKey) {
        // The server knows nothing of one that waits for its turn.
        let queued = self.calls.get(key).is_some_and(Call::is_queued);
        if queued || self.following.contains(&key) {
            return;
        }
        let server_info = self.server.info();
        let Some(digest) = self
            .calls
            .get_mut(key)
            .and_then(|call| call.calling().map(|calling| calling.digest.clone()))
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
    pub(super) fn keep_result(&mut self, now: Timestamp, key: CallKey, result: String) {
        if let Some(call) = self.calls.get_mut(key) {
            call.finished = Some(result.clone());
        }
        let at = now.after(self.settings.keep_results);
        self.at(at, Timer::Forget(key));
        let call = key;
        self.effects.push_back(Effect::KeepResult { call, result });
    }

    /// The call is waited for again here, or has ended: the record is told.
    pub(super) fn drop_call(&mut self, key: CallKey) {
        self.effects.push_back(Effect::DropCall { call: key });
    }
}
