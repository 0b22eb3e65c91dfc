//! The access tokens with which calls came. A token that was revoked ends its calls, and no others.

use std::collections::BTreeSet;

use mcp_elicit_core::fault::PeerFault;

use crate::frame_edit::ErrorResponse;
use crate::parts::asks::Origin;
use crate::{AccessNumber, CallId, Effect, Ending, Relay, Timestamp};

/// The error of a call whose access token has ended.
const ENDED: &str = "the access token of this call was revoked while the server worked on it";

impl Relay {
    /// Returns the access tokens with which open calls came.
    pub fn accesses(&self) -> BTreeSet<AccessNumber> {
        let accesses = self.calls.accesses();
        accesses.filter(|access| access.is_some()).collect()
    }

    /// Hands back the held calls that came with these access tokens, to be made again by the same caller.
    pub(crate) fn hand_back_of(&mut self, now: Timestamp, accesses: &[AccessNumber]) {
        for key in self.holds.all() {
            if self.came_with(key, accesses) {
                self.hand_back(now, key);
            }
        }
    }

    /// Ends the calls that came with these access tokens. Their questions stay for the same calls made again.
    pub(crate) fn end_accesses(&mut self, now: Timestamp, accesses: &[AccessNumber]) {
        for key in self.calls.keys(|call| accesses.contains(&call.access())) {
            self.holds.end(key, &mut self.timers);
            self.turns.queue_mut().leave(key);
            if let Some(stream) = self.calls.detach(key)
                && let Some(call) = self.calls.get(key)
            {
                let frame = ErrorResponse::new(-32603, ENDED).to_response(call.client_id());
                self.effects.tell_client(stream, frame, true);
            } else {
                self.effects.push(Effect::DropCall { call: key });
            }
            if !self.leave_approval(key) {
                self.leave_questions_of(now, key);
                self.cancel_upstream(key);
                self.remove_call(key);
            }
        }
    }

    fn came_with(&self, key: CallId, accesses: &[AccessNumber]) -> bool {
        let call = self.calls.get(key);
        call.is_some_and(|call| accesses.contains(&call.access()))
    }

    /// Leaves the questions of a call to the record, where the same call made again finds them. The server is told that
    /// they have no answer.
    pub(crate) fn leave_questions_of(&mut self, now: Timestamp, call: CallId) {
        let asks = self.calls.get(call).map(|call| call.asks().to_vec());
        for key in asks.unwrap_or_default() {
            if self.reassign(now, key, call) {
                continue;
            }
            let Some(question) = self.end_ask(key, Ending::CallEnded, false) else {
                continue;
            };
            if let Some(record) = question.record().map(str::to_owned) {
                self.effects.push(Effect::Leave { record });
            }
            if let Origin::Pushed { id } = question.origin() {
                let revision = self.server.revision_or_latest();
                let refusal = ErrorResponse::fault(PeerFault::Withdrawn, revision);
                self.effects.tell_server(refusal.to_response(id), None);
            }
        }
    }
}
