//! The queue of calls that wait for their turn with the server.

use crate::held_calls::hold_time;
use std::time::Duration;

use mcp_elicit_core::wire::Mode;

use crate::parts::call_queue::{TurnMarks, TurnState};
use crate::parts::calls::Call;
use crate::parts::turns::{OtherCall, OtherCalls, Rule, Turn, TurnWait};
use crate::turn_sharing::Groups;
use crate::{AskId, AskedVia, CallId, ClientForward, ClientFrame, Relay, Timer, Timestamp};

impl Relay {
    /// Returns `true` if the call must wait for its turn. Otherwise records its turn, if it needs one.
    pub(crate) fn waits_for_turn(&mut self, now: Timestamp, key: CallId) -> bool {
        let rule = self.rule();
        if self.turns.are_free(rule) {
            return false;
        }
        let Some((kind, target)) = self.calls.get(key).and_then(Call::target) else {
            return false;
        };
        let others = self.others_of(Some(key), rule);
        let shown = self.client.shown(self.settings.answer_with);
        if !self.turns.takes_turns(rule, kind, &target, shown) {
            return false;
        }
        let wait = if others.may_be_joined() {
            let groups = self.groups_beside(now, Some(key));
            self.turn_wait_of(now, key, rule, &groups)
        } else {
            TurnWait::NOT_YET
        };
        let turn = self.turns.turn_of(rule, kind, &target, shown, others, wait);
        self.take_turn(key, turn);
        turn == Turn::Waits
    }

    /// Records the turn of a call.
    fn take_turn(&mut self, key: CallId, turn: Turn) {
        if let Some(call) = self.calls.get_mut(key) {
            match turn {
                Turn::Own => call.begin_turn(),
                Turn::SharedAsking => call.share_turn(),
                Turn::NotTaken | Turn::Shared | Turn::Waits => {}
            }
        }
    }

    /// Returns the other calls in which the server may be asking, as far as a turn depends on them.
    fn others_of(&self, key: Option<CallId>, rule: Rule) -> OtherCalls {
        if rule == Rule::Free {
            return OtherCalls::NONE;
        }
        let others = self.calls.asking().filter(|(other, _)| Some(*other) != key);
        let others = others.map(|(_, call)| OtherCall {
            is_at_its_turn: self.is_at_its_turn(call),
            is_given_up: call.is_given_up(),
            waits_for_answer: call.may_wait_for_answer(),
        });
        OtherCalls::of(rule, others)
    }

    /// Returns `true` if calls that take turns wait for this one: it has its turn, or a question to a person is, or may
    /// be, its own.
    fn is_at_its_turn(&self, call: &Call) -> bool {
        let asks_a_person = |key: AskId| {
            let question = self.asks.get(key);
            question.is_some_and(|question| question.via() == AskedVia::People)
        };
        call.has_turn() || call.possible_asks().any(asks_a_person)
    }

    /// Makes the call of this frame wait for its turn; a client that waits long gets it handed back. Refuses it if too many
    /// wait. `is_changed` if it goes to the server with changes.
    pub(crate) fn enqueue(
        &mut self,
        frame: ClientFrame<'_>,
        key: CallId,
        is_changed: bool,
    ) -> ClientForward {
        let now = frame.at();
        if self.turns.queue().is_full()
            && let Some(oldest) = self.turns.queue().oldest_left()
        {
            // The server does not know of it: a repeated call starts from the beginning.
            self.drop_unattended(now, oldest);
        }
        let target = self.calls.get(key).and_then(Call::target);
        let Some(target) = target.filter(|_| !self.turns.queue().is_full()) else {
            self.calls.end_upstream(key);
            self.remove_call(key);
            return self
                .effects
                .reject(frame, &self.turns.queue().refusal(&self.shown_server()));
        };
        let (marks, rule) = (self.turn_marks(), self.rule());
        let state = TurnState::new(marks, self.others_of(Some(key), rule));
        if let Some(call) = self.calls.get_mut(key) {
            call.enqueue(now, is_changed.then(|| frame.to_indexed()));
        }
        self.note_ended(now);
        self.turns.queue_mut().push(key, target, state);
        self.plan_turns(now, now);
        self.hold_queued(now, key);
        ClientForward::Handled
    }

    /// Holds the call like one with an open question, so it is kept alive and handed back. The client is not informed
    /// at once, because the turn mostly comes soon.
    pub(crate) fn hold_queued(&mut self, now: Timestamp, key: CallId) {
        self.calls.learn_token(key, &self.progress_seen);
        self.waiting_calls.add_call(key, self.calls.get_mut(key));
        if let Some(call) = self.calls.get(key) {
            let hold = hold_time(&self.settings, &self.client, now, call);
            let is_waited_for = call.stream().is_some();
            self.holds
                .begin_quietly(now, key, is_waited_for, hold, &mut self.timers);
        }
    }

    /// Returns the marks that change whenever the turn of a call that waits may change.
    fn turn_marks(&self) -> TurnMarks {
        TurnMarks {
            rule: self.rule(),
            shown: self.client.shown(self.settings.answer_with),
            habits: self.turns.habits(),
            calls: self.calls.ended(),
            questions: self.asks.changes(),
        }
    }

    /// Sends calls whose turn has come to the server. The queue is checked only after a change that a waiting call may
    /// depend on.
    pub(crate) fn next_turns(&mut self, now: Timestamp) {
        self.give_turns(now);
        self.update_tasks(now);
    }

    fn give_turns(&mut self, now: Timestamp) {
        while self.turns.queue().has_waiting() {
            let marks = self.turn_marks();
            if self.turns.queue().is_as_at(&marks) {
                return;
            }
            self.note_ended(now);
            let state = TurnState::new(marks, self.others_of(None, marks.rule));
            if self.turns.queue_mut().must_check(state) {
                self.check_queue(now, marks);
            }
        }
    }

    /// Gives each call of the queue its turn, if it has come.
    fn check_queue(&mut self, now: Timestamp, marks: TurnMarks) {
        let TurnMarks { rule, shown, .. } = marks;
        let mut others = self.others_of(None, rule);
        let mut groups = self.groups_for(now, others);
        let mut last = None;
        while let Some((key, (kind, target))) = self.turns.queue().next_after(last) {
            last = Some(key);
            let (kind, target) = (*kind, target.clone());
            let wait = self.turn_wait_of(now, key, rule, &groups);
            let turn = self.turns.turn_of(rule, kind, &target, shown, others, wait);
            if turn == Turn::Waits {
                if let Some(left) = wait.sharing.next_limit(wait.waited) {
                    self.plan_turns(now, now.after(left));
                }
                continue;
            }
            self.turns.queue_mut().remove(key);
            // A call that takes no turn changes nothing for the others.
            if !self.starts_at_its_turn(now, key, turn) || turn != Turn::NotTaken {
                others = self.others_of(None, rule);
                groups = self.groups_for(now, others);
            }
        }
        self.turns
            .queue_mut()
            .checked(TurnState::new(marks, others));
    }

    /// Records the calls and questions that have ended, for calls that wait for them.
    fn note_ended(&mut self, now: Timestamp) {
        let ended = self.calls.ended() + self.asks.ended();
        self.turns.queue_mut().note_ended(now, ended);
    }

    /// Returns the groups of the calls at the server, if a call of the queue could share their turn.
    fn groups_for(&mut self, now: Timestamp, others: OtherCalls) -> Groups {
        if others.is_free() {
            return Groups::default();
        }
        self.groups_beside(now, None)
    }

    /// Plans a check of the calls that wait for their turn at this time.
    fn plan_turns(&mut self, now: Timestamp, at: Timestamp) {
        let at = at.max(now.after(Duration::from_millis(1)));
        if self.turns.queue_mut().plan_check(at) {
            self.timers.set(at, Timer::Turns);
        }
    }

    /// Sends a call that has waited to the server. Returns `false` if the rules stop it.
    fn starts_at_its_turn(&mut self, now: Timestamp, key: CallId, turn: Turn) -> bool {
        if !self.calls.get(key).is_some_and(Call::is_queued) {
            return false;
        }
        self.take_turn(key, turn);
        if self.stops_at_its_turn(now, key) {
            return false;
        }
        self.holds.end(key, &mut self.timers);
        let Some(call) = self.calls.get_mut(key) else {
            return false;
        };
        call.dequeue();
        if let Some(frame) = call.frame().map(|frame| frame.text().to_owned()) {
            let delivery = self.approvals.take_delivery(key);
            self.effects.send_to_server(frame, Some(key), delivery);
        }
        true
    }

    /// Returns `true` if a call of the queue could go to the server now.
    #[cfg(test)]
    pub(crate) fn holds_up_a_call(&mut self, now: Timestamp) -> bool {
        if !self.turns.queue().has_waiting() {
            return false;
        }
        let (rule, shown) = (self.rule(), self.client.shown(self.settings.answer_with));
        let others = self.others_of(None, rule);
        let groups = self.groups_beside(now, None);
        let keys: Vec<_> = self.turns.queue().waiting().collect();
        let waits = |key: CallId| {
            let wait = self.turn_wait_of(now, key, rule, &groups);
            let call = self.calls.get(key).filter(|call| call.is_queued());
            let target = call.and_then(Call::target);
            target.is_some_and(|(kind, target)| {
                self.turns.turn_of(rule, kind, &target, shown, others, wait) == Turn::Waits
            })
        };
        !keys.into_iter().all(waits)
    }

    /// Records that a pushed question came up in one of these calls; it is certain if there is only one.
    pub(crate) fn seen_asking(&mut self, calls: &[CallId], mode: Mode) {
        if self.settings.server_streams || self.client.shown(self.settings.answer_with).has(mode) {
            return;
        }
        let is_certain = calls.len() == 1;
        let surely_asks = |key: &CallId| {
            let target = self.calls.get(*key).and_then(Call::target);
            target.is_some_and(|(kind, target)| self.turns.surely_asks(kind, &target, mode))
        };
        if !is_certain && calls.iter().any(surely_asks) {
            // No other is suspected of what a known one does.
            return;
        }
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
}
