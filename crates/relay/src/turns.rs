//! Which calls are with the server at the same time, so that it is certain whose question a pushed one is.
//!
//! A server that pushes over stdio does not say in which call it asks. What is certain comes from the connection: a call in
//! which the server may ask has it for itself, or takes turns with others. A waiting question blocks no call of a tool that
//! was not seen to ask.
//!
//! | client and server | rule |
//! | --- | --- |
//! | a rounds client, a pushed server | one call at a time on each connection ([`Rule::Single`]); the shell opens more connections |
//! | a pushed client that shows questions itself | all at once: the question passes in the client's own session ([`Rule::Free`]) |
//! | a pushed client, people asked | calls of tools that were seen to ask take turns ([`Rule::Seen`]) |
//! | a server that says it (streams, rounds) | all at once |

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcp_elicit_core::wire::{Capability, Mode};

use crate::calls::{self, Call};
use crate::learned::LearnedAsker;
use crate::settings::Audience;
use crate::{AskId, AskedVia, CallId, CallKind, Relay, StreamId, Timer, Timestamp};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, FramePart};

/// The number of tools, prompts and resources of one server that are remembered.
const REMEMBERED: usize = 4_096;

/// The tools, prompts and resources that were seen to ask: shared by all relays of one server.
#[derive(Clone, Debug, Default)]
pub struct AskingTargets {
    known: Arc<Mutex<BTreeMap<(&'static str, String), Habit>>>,
    /// `true` if one was seen to ask since this was last looked at.
    changed: Arc<AtomicBool>,
}

/// The known behaviour of one tool, prompt or resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// One of several of which one asked.
    Suspected,
    /// It asked in these modes.
    Asks { form: bool, url: bool },
}

impl Habit {
    fn has(self, mode: Mode) -> bool {
        match (self, mode) {
            (Self::Suspected, _) => true,
            (Self::Asks { form, .. }, Mode::Form) => form,
            (Self::Asks { url, .. }, Mode::Url) => url,
        }
    }
}

impl AskingTargets {
    fn all(&self) -> MutexGuard<'_, BTreeMap<(&'static str, String), Habit>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether one was seen to ask since the last time.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Returns those that were seen to ask for certain.
    pub(crate) fn certain(&self) -> Vec<LearnedAsker> {
        let all = self.all();
        let certain = all
            .iter()
            .filter_map(|((kind, target), habit)| match *habit {
                Habit::Asks { form, url } => Some(LearnedAsker {
                    kind: (*kind).to_owned(),
                    target: target.clone(),
                    form,
                    url,
                }),
                Habit::Suspected => None,
            });
        certain.collect()
    }

    /// Adds those that another process saw, or an earlier one.
    pub(crate) fn add(&self, learned: &[LearnedAsker]) {
        let kinds = [CallKind::Tool, CallKind::Prompt, CallKind::Resource];
        for asker in learned {
            let Some(kind) = kinds.into_iter().find(|kind| kind.word() == asker.kind) else {
                continue;
            };
            let known = self.changed.load(Ordering::Relaxed);
            self.set(kind, &asker.target, |before| match before {
                Some(Habit::Asks { form, url }) => Habit::Asks {
                    form: form || asker.form,
                    url: url || asker.url,
                },
                Some(Habit::Suspected) | None => Habit::Asks {
                    form: asker.form,
                    url: asker.url,
                },
            });
            self.changed.store(known, Ordering::Relaxed);
        }
    }

    fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    fn get(&self, kind: CallKind, target: &str) -> Option<Habit> {
        self.all().get(&(kind.word(), target.to_owned())).copied()
    }

    fn set(&self, kind: CallKind, target: &str, change: impl FnOnce(Option<Habit>) -> Habit) {
        let mut all = self.all();
        let key = (kind.word(), target.to_owned());
        if all.len() < REMEMBERED || all.contains_key(&key) {
            let known = all.get(&key).copied();
            let now = change(known);
            if known != Some(now) && now != Habit::Suspected {
                self.changed.store(true, Ordering::Relaxed);
            }
            all.insert(key, now);
        }
    }

    fn clear(&self, kind: CallKind, target: &str) {
        let mut all = self.all();
        let key = (kind.word(), target.to_owned());
        if all.get(&key) == Some(&Habit::Suspected) {
            all.remove(&key);
        }
    }
}

/// Which calls may be with the server at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// All.
    Free,
    /// All but those of tools that were seen to ask, which take turns.
    Seen,
    /// One in which the server may ask.
    Single,
}

impl Relay {
    fn rule(&self) -> Rule {
        if self.settings.server_streams || !self.server.pushes_questions() {
            return Rule::Free;
        }
        if self.client.answers_with_retries() {
            Rule::Single
        } else if self.client.is_pushed_to() {
            Rule::Seen
        } else {
            Rule::Free
        }
    }

    /// The modes in which a pushed client shows questions itself.
    pub(crate) fn shown_by_client(&self) -> Capability {
        match self.settings.answer_with {
            Audience::Auto | Audience::Client => self.client.capability(None),
            Audience::People => Capability::NONE,
        }
    }

    /// Returns whether calls of this take turns under the rule.
    fn takes_turns(&self, rule: Rule, kind: CallKind, target: &str) -> bool {
        let shown = self.shown_by_client();
        let asks = |mode| {
            let habit = self.settings.askers.get(kind, target);
            habit.is_some_and(|habit| habit.has(mode) && !shown.has(mode))
        };
        match rule {
            Rule::Free => false,
            Rule::Seen => asks(Mode::Form) || asks(Mode::Url),
            Rule::Single => true,
        }
    }

    /// Returns whether the call must wait for its turn. One that need not is noted as having its turn, if it takes turns at all.
    pub(crate) fn waits_for_turn(&mut self, key: CallId) -> bool {
        let rule = self.rule();
        if rule == Rule::Free || (rule == Rule::Seen && self.settings.askers.is_empty()) {
            return false;
        }
        let Some(call) = self.calls.get(key) else {
            return false;
        };
        let Some((kind, target)) = call
            .kind()
            .zip(call.frame())
            .and_then(|(kind, frame)| Some((kind, calls::target(frame)?)))
        else {
            return false;
        };
        if !self.takes_turns(rule, kind, &target) {
            return false;
        }
        let mut free = true;
        let mut all_wait = true;
        for (other, call) in self.calls.asking() {
            if other != key && (rule == Rule::Single || self.is_at_its_turn(call)) {
                free = false;
                all_wait &= call.may_wait_for_answer();
            }
        }
        // A waiting question blocks nobody that was not seen to ask.
        let passes = !free && all_wait && self.settings.askers.get(kind, &target).is_none();
        if !free && !passes {
            return true;
        }
        if let Some(call) = self.calls.get_mut(key) {
            call.set_turn(free);
        }
        false
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
        self.queue.push(key);
        self.hold_queued(now, key);
    }

    /// The call is kept alive and handed back as one that a person is asked in, but not told so at once: mostly its turn
    /// comes soon.
    pub(crate) fn hold_queued(&mut self, now: Timestamp, key: CallId) {
        let (hold, wait) = (self.hold_time(), self.settings.keep_alive);
        if let Some(call) = self.calls.get_mut(key) {
            call.hold();
            call.learn_token();
        }
        self.timers.set(now.after(hold), Timer::Hold(key));
        self.timers.set(now.after(wait), Timer::KeepAlive(key));
    }

    /// Calls whose turn it is go to the server.
    pub(crate) fn next_turns(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        for key in self.queue.take() {
            let waits = self
                .calls
                .get(key)
                .map(|call| (call.is_queued(), call.stream()));
            match waits {
                // It has ended, or is on its way.
                None | Some((false, _)) => continue,
                // Nobody waits for it: it is started when it is made again.
                Some((true, None)) => {
                    self.queue.push(key);
                    continue;
                }
                Some((true, Some(_))) => {}
            }
            if self.waits_for_turn(key) {
                self.queue.push(key);
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
        for key in calls {
            let Some(call) = self.calls.get_mut(*key) else {
                continue;
            };
            let Some((kind, target)) = call
                .kind()
                .zip(call.frame())
                .and_then(|(kind, frame)| Some((kind, calls::target(frame)?)))
            else {
                continue;
            };
            let certain = calls.len() == 1;
            if certain {
                call.seen_asking();
            }
            self.settings
                .askers
                .set(kind, &target, |known| match known {
                    Some(Habit::Asks { form, url }) => Habit::Asks {
                        form: form || (certain && mode == Mode::Form),
                        url: url || (certain && mode == Mode::Url),
                    },
                    Some(Habit::Suspected) | None if certain => Habit::Asks {
                        form: mode == Mode::Form,
                        url: mode == Mode::Url,
                    },
                    Some(Habit::Suspected) | None => Habit::Suspected,
                });
        }
    }

    /// The server is done with a call: had it its turn and did not ask, it is suspected no longer.
    pub(crate) fn turn_ends(&mut self, key: CallId) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        if !call.end_turn() {
            return;
        }
        if let Some((kind, target)) = call
            .kind()
            .zip(call.frame())
            .and_then(|(kind, frame)| Some((kind, calls::target(frame)?)))
        {
            self.settings.askers.clear(kind, &target);
        }
    }

    /// Since when the oldest call waits that another connection with the server could take.
    pub fn queued_since(&self) -> Option<Timestamp> {
        if self.rule() != Rule::Single {
            return None;
        }
        let waits = |key: CallId| {
            let call = self
                .calls
                .get(key)
                .filter(|_| !self.approvals.is_approved(key));
            call?.movable_since()
        };
        self.queue.iter().find_map(waits)
    }

    /// Takes the oldest call out that waits for its turn, for another connection: its stream, and the request as the client
    /// wrote it.
    pub fn take_queued(&mut self) -> Option<(StreamId, Bytes)> {
        self.queued_since()?;
        let waits = |key: &CallId| {
            let call = self.calls.get(*key);
            let movable = call.is_some_and(|call| call.movable_since().is_some());
            movable && !self.approvals.is_approved(*key)
        };
        let key = self.queue.iter().find(waits)?;
        self.queue.remove(key);
        let call = self.remove_call(key)?;
        call.into_queued()
    }

    /// Returns whether another call in which the server may ask can be made right away, and with certainty.
    pub fn is_free(&self) -> bool {
        let waits = self.early_requests.iter().any(|frame| {
            let index = FrameIndex::at(frame);
            let method = index.and_then(|index| index.method);
            let method = method.and_then(|range| std::str::from_utf8(&frame[range]).ok());
            method.and_then(CallKind::of_method).is_some()
        });
        !waits
            && !self.has_given_up_call()
            && self.queue.is_empty()
            && self.calls.asking().next().is_none()
    }

    /// Returns whether a call was given up that the server may still be at work on: what it asks would be taken for another's.
    pub fn has_given_up_call(&self) -> bool {
        self.queue.has_given_up_call() && self.rule() == Rule::Single
    }

    /// Returns how many calls are on their way or wait for their turn.
    pub fn load(&self) -> usize {
        self.early_requests.len() + self.queue.len() + self.calls.asking().count()
    }

    /// Returns whether more connections with the server could take calls of this one.
    pub fn can_share_calls(&self) -> bool {
        self.rule() == Rule::Single
    }

    /// Returns whether the request goes on with something that is held here: the retry of a round, or a call that was handed back.
    pub fn continues_here(&self, kind: CallKind, frame: Frame<'_>) -> bool {
        let state = frame.member(FramePart::Params, "requestState");
        let state = state.and_then(|state| serde_json::from_str::<String>(state).ok());
        if let Some(state) = state {
            return self.round_states.knows(&state);
        }
        !self.unattended.is_empty()
            && calls::summary(kind, frame)
                .is_ok_and(|calling| self.unattended.of(&calling.digest).next().is_some())
    }

    /// Returns whether the client knows a call by this id.
    pub fn knows_call(&self, id: &mcp_elicit_core::wire::Id) -> bool {
        self.calls.by_client(id).is_some()
    }
}
