//! Calls that go to the server in turn: those that have to wait do so here.

use bytes::Bytes;
use mcp_elicit_core::wire::{Capability, Mode};

use crate::calls::Call;
use crate::settings::Audience;
use crate::turns::{OtherCall, Turn};
use crate::{AskId, AskedVia, CallId, Relay, Timestamp};

impl Relay {
    /// The modes in which a pushed client shows questions itself.
    pub(crate) fn shown_by_client(&self) -> Capability {
        match self.settings.answer_with {
            Audience::Auto | Audience::Client => self.client.capability(None),
            Audience::People => Capability::NONE,
        }
    }

    /// Returns whether the call must wait for its turn. One that need not is noted as having its turn, if it takes turns at all.
    pub(crate) fn waits_for_turn(&mut self, key: CallId) -> bool {
        let rule = self.rule();
        if self.turns.are_free(rule) {
            return false;
        }
        let Some((kind, target)) = self.calls.get(key).and_then(Call::target) else {
            return false;
        };
        let others = self.calls.asking().filter(|(other, _)| *other != key);
        let others = others.map(|(_, call)| OtherCall {
            is_at_its_turn: self.is_at_its_turn(call),
            waits_for_answer: call.may_wait_for_answer(),
        });
        let shown = self.shown_by_client();
        let turn = self.turns.turn_of(rule, kind, &target, shown, others);
        if let (Turn::Own | Turn::Shared, Some(call)) = (turn, self.calls.get_mut(key)) {
            call.set_turn(turn == Turn::Own);
        }
        turn == Turn::Waits
    }

    /// Returns whether calls that take turns wait for this one: it has its turn, or a person is asked something that is, or
    /// may be, its question.
    fn is_at_its_turn(&self, call: &Call) -> bool {
        let asks_a_person = |key: AskId| {
            let question = self.asks.get(key);
            question.is_some_and(|question| question.via() == AskedVia::People)
        };
        call.has_turn() || call.possible_asks().any(asks_a_person)
    }

    /// The call waits for its turn. A client that waits long gets it handed back.
    pub(crate) fn enqueue(&mut self, now: Timestamp, key: CallId, original: Bytes) {
        if let Some(call) = self.calls.get_mut(key) {
            call.enqueue(now, original);
        }
        self.turns.push(key);
        self.hold_queued(now, key);
    }

    /// The call is kept alive and handed back as one that a person is asked in, but not told so at once: mostly its turn
    /// comes soon.
    pub(crate) fn hold_queued(&mut self, now: Timestamp, key: CallId) {
        let hold = self.hold_time();
        if let Some(call) = self.calls.get_mut(key) {
            call.learn_token();
            let is_waited_for = call.stream().is_some();
            self.holds
                .begin_quietly(now, key, is_waited_for, hold, &mut self.timers);
        }
    }

    /// Calls whose turn it is go to the server, as far as they may by now.
    pub(crate) fn next_turns(&mut self, now: Timestamp) {
        if self.turns.is_empty() {
            return;
        }
        for key in self.turns.take_waiting() {
            let waits = self
                .calls
                .get(key)
                .map(|call| (call.is_queued(), call.stream()));
            match waits {
                // It has ended, or is on its way.
                None | Some((false, _)) => continue,
                // Nobody waits for it: it is started when it is made again.
                Some((true, None)) => {
                    self.turns.push(key);
                    continue;
                }
                Some((true, Some(_))) => {}
            }
            if self.waits_for_turn(key) {
                self.turns.push(key);
                continue;
            }
            if self.stops_at_its_turn(now, key) {
                continue;
            }
            self.end_hold(key);
            let Some(call) = self.calls.get_mut(key) else {
                continue;
            };
            call.dequeue();
            if let Some(frame) = call.frame().map(str::to_owned) {
                let delivery = self.approvals.take_delivery(key);
                self.outbox.send_to_server(frame, Some(key), delivery);
            }
        }
    }

    /// A pushed question came up in one of these calls: what they call is seen to ask, for certain where it is one.
    pub(crate) fn seen_asking(&mut self, calls: &[CallId], mode: Mode) {
        if self.settings.server_streams || self.shown_by_client().has(mode) {
            return;
        }
        let is_certain = calls.len() == 1;
        for key in calls {
            let Some(call) = self.calls.get_mut(*key) else {
                continue;
            };
            let Some((kind, target)) = call.target() else {
                continue;
            };
            if is_certain {
                call.seen_asking();
            }
            self.turns.saw_asking(kind, &target, mode, is_certain);
        }
    }

    /// The server is done with a call: had it its turn and did not ask, it is suspected no longer.
    pub(crate) fn turn_ends(&mut self, key: CallId) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        if call.end_turn()
            && let Some((kind, target)) = call.target()
        {
            self.turns.did_not_ask(kind, &target);
        }
    }
}
