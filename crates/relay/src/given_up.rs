//! Calls that their client has given up without a word.
//!
//! Some clients stop waiting for a call and send no `notifications/cancelled` (every 1.x of the SDK for Python). What
//! they send is the same call again. If the first still waits for a person, the second takes its place: nothing is
//! asked or done twice, and the result goes to the call that is waited for.
//!
//! | seen | read as |
//! | --- | --- |
//! | the same call at once, or before the first waits for a person | two calls that are meant: each is made |
//! | the same call after a pause ([`PAUSE`]), while the first waits for a person | the first was given up |
//! | the stream of the first was closed | the first was given up |
//! | the same call, and an open stream whose end would cancel the first (2026-07-28 over HTTP) | two calls that are meant |
//!
//! No evidence is perfect. So the first is not left without an answer: it is handed back. A client that does wait for
//! both makes the first again, as every call that is handed back, and gets a result of its own for it.

use crate::held_calls::learn_wait;
use std::time::Duration;

use mcp_elicit_core::wire::{CallFrame, Frame};

use crate::parts::calls::{self, Call};
use crate::{CallId, CallKind, ClientFrame, Relay, StreamId, Timestamp};

/// The pause after which the same call made again shows that the first was given up. Clients that make calls at once
/// send them within milliseconds.
const PAUSE: Duration = Duration::from_secs(1);
/// The part of the time between two identical calls that counts as the client's timeout. The rest is its pause before
/// it tries again.
const PART_OF_GAP: f64 = 0.5;

impl Relay {
    /// Leaves an earlier call without a client, and hands it back, if the client that makes the same call now has
    /// given it up.
    pub(crate) fn leave_given_up(&mut self, frame: ClientFrame<'_>, kind: CallKind) {
        let now = frame.at();
        if let Some(key) = self.given_up_call(now, kind, *frame) {
            self.learn_from_gap(now, key);
            self.make_room(now, key);
        }
    }

    /// Returns a call with the contents of this one that its client has given up.
    pub(crate) fn given_up_call(
        &self,
        now: Timestamp,
        kind: CallKind,
        frame: Frame<'_>,
    ) -> Option<CallId> {
        if self.waiting_calls.is_empty() || self.is_cancelled_by_closing_stream() {
            return None;
        }
        let call = CallFrame::read(frame.text(), frame.index()).ok()?;
        if !self.waiting_calls.has_target(&call.target) {
            return None;
        }
        let digest = calls::summary(kind, frame).ok()?.digest;
        let mut alike = self.waiting_calls.of(&digest);
        alike.find(|key| self.seems_given_up(now, *key))
    }

    fn is_cancelled_by_closing_stream(&self) -> bool {
        self.settings.client_streams && self.client.cancels_by_closing_stream()
    }

    fn seems_given_up(&self, now: Timestamp, key: CallId) -> bool {
        let Some(call) = self.calls.get(key) else {
            return false;
        };
        let waits = self.holds.is_held(key) || !call.asks().is_empty();
        let since = call.waited_for_since();
        let is_of_task = call.stream().is_some_and(StreamId::is_of_task);
        waits && !is_of_task && since.is_some_and(|since| now.since(since) >= PAUSE)
    }

    /// Learns from the time between two identical calls how long this client waits. Once per call: after that, the
    /// client may be answering a hand-back.
    fn learn_from_gap(&mut self, now: Timestamp, key: CallId) {
        if let Some(call) = self.calls.get_mut(key)
            && let Some(since) = call.waited_for_since()
            && call.yields_to_repeat()
        {
            let gap = now.since(since);
            learn_wait(&self.settings, &self.client, gap.mul_f64(PART_OF_GAP));
        }
    }

    /// Hands back a call in whose place its client has made the same one again.
    fn make_room(&mut self, now: Timestamp, key: CallId) {
        let told = self.hand_back_frame(key);
        if self.calls.get(key).is_some_and(Call::is_queued) {
            self.end_in_time(now, key);
        }
        if !self.leave_approval(key) {
            self.leave_unattended(now, key);
        }
        if let Some((stream, frame)) = told {
            self.effects.tell_client(stream, frame, true);
        }
    }
}
