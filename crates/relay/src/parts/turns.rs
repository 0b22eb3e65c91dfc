//! The calls that are with the server at the same time, chosen so that the call of a pushed question is certain.
//!
//! A server that pushes over stdio does not name the call in which it asks. The connection provides the certainty: a
//! call in which the server may ask has it for itself, or takes turns with others. A waiting question blocks no call of
//! a tool that was not seen to ask.
//!
//! | client and server | rule |
//! | --- | --- |
//! | a rounds client, a pushed server | one call at a time on each connection ([`Rule::Single`]); the shell opens more connections |
//! | a pushed client that shows questions itself | all at once: the question stays in the client's own session ([`Rule::Free`]) |
//! | a pushed client, people asked | calls of tools that were seen to ask take turns ([`Rule::Seen`]) |
//! | a server that names the call (streams, rounds) | all at once |
//!
//! No wait for a turn lasts as long as a person takes to answer: after a bounded time ([`Sharing`]) the call shares the
//! turn, and its question names every call that may have asked it.

use crate::parts::calls::Call;
use std::time::Duration;

use mcp_elicit_core::wire::{Capability, Mode};

use crate::CallKind;
use crate::parts::asking_targets::AskingTargets;
use crate::parts::call_queue::CallQueue;

/// The rule about calls that may be with the server at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// All calls.
    Free,
    /// All calls but those of tools that were seen to ask, which take turns.
    Seen,
    /// One call in which the server may ask.
    Single,
}

/// The turn of a call that is to go to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It needs no turn.
    NotTaken,
    /// It has its own turn.
    Own,
    /// It shares a turn with calls that all wait for an answer; it was not seen to ask.
    Shared,
    /// It shares a turn with other calls that may be asking, and may ask too.
    SharedAsking,
    /// It has to wait.
    Waits,
}

/// The times after which a call shares the turn of others. `None` is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// The wait after which it goes beside calls that all wait for an answer.
    pub(crate) beside_waiting: Option<Duration>,
    /// The wait after which it goes beside any calls.
    pub(crate) beside_any: Option<Duration>,
}

impl Sharing {
    /// Nothing needs the one call of a question: it may be asked with all calls that may have asked it.
    pub(crate) const AT_ONCE: Self = Self {
        beside_waiting: Some(Duration::ZERO),
        beside_any: Some(Duration::from_millis(250)),
    };
    /// Another connection could make the call of the question certain, and is started first.
    pub(crate) const AFTER_OTHER_CONNECTIONS: Self = Self {
        beside_waiting: Some(Duration::from_millis(300)),
        beside_any: Some(Duration::from_millis(750)),
    };
    /// No question can be asked unless its call is certain.
    pub(crate) const NEVER: Self = Self {
        beside_waiting: None,
        beside_any: None,
    };

    /// The one call of a question is needed, and waited for at most this long.
    pub(crate) const fn after(wait: Duration) -> Self {
        Self {
            beside_waiting: Some(wait),
            beside_any: Some(wait),
        }
    }

    /// Returns `true` if the wait begins anew whenever a call or a question ends.
    pub(crate) fn waits_for_movement(self) -> bool {
        self.beside_waiting.is_some() && self.beside_waiting == self.beside_any
    }

    /// Returns `true` if a call that has waited this long shares the turn of others that `all_wait` for an answer.
    fn is_reached(self, waited: Duration, all_wait: bool) -> bool {
        let limit = self.beside_waiting.filter(|_| all_wait);
        let limits = limit.into_iter().chain(self.beside_any);
        limits.min().is_some_and(|limit| waited >= limit)
    }

    /// Returns the time from now on until the next of its limits, for a call that has waited this long.
    pub(crate) fn next_limit(self, waited: Duration) -> Option<Duration> {
        let limits = self.beside_waiting.into_iter().chain(self.beside_any);
        let left = limits.filter_map(|limit| limit.checked_sub(waited));
        left.filter(|left| !left.is_zero()).min()
    }
}

/// The wait of a call for its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnWait {
    /// The time that it has waited.
    pub(crate) waited: Duration,
    /// The times after which it shares the turn of others.
    pub(crate) sharing: Sharing,
}

impl TurnWait {
    /// A wait that only begins.
    pub(crate) const NOT_YET: Self = Self {
        waited: Duration::ZERO,
        sharing: Sharing::NEVER,
    };
}

/// Another call in which the server may be asking now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherCall {
    /// `true` if calls that take turns wait for it.
    pub(crate) is_at_its_turn: bool,
    /// `true` if its client has given it up: it holds no turn.
    pub(crate) is_given_up: bool,
    /// `true` if it may be waiting for the answer to a question.
    pub(crate) waits_for_answer: bool,
}

/// The other calls in which the server may be asking now, as far as the turn of a call depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherCalls {
    /// `true` if there is none that a call which takes turns would wait for.
    is_free: bool,
    /// `true` if each of those may be waiting for the answer to a question.
    all_wait: bool,
}

impl OtherCalls {
    /// No other call.
    pub(crate) const NONE: Self = Self {
        is_free: true,
        all_wait: true,
    };
    /// One call that waits for no answer.
    #[cfg(test)]
    pub(crate) const BUSY: Self = Self {
        is_free: false,
        all_wait: false,
    };

    /// Derives the facts that a turn under this rule depends on.
    pub(crate) fn of(rule: Rule, others: impl Iterator<Item = OtherCall>) -> Self {
        let mut all = Self::NONE;
        for other in others {
            all.add(rule, other);
            if !all.is_free && !all.all_wait {
                break;
            }
        }
        all
    }

    /// Returns `true` if there is none that a call which takes turns would wait for.
    pub(crate) fn is_free(self) -> bool {
        self.is_free
    }

    /// Returns `true` if there is one, and a call may go beside all of them without a wait.
    pub(crate) fn may_be_joined(self) -> bool {
        !self.is_free && self.all_wait
    }

    /// Adds a call.
    pub(crate) fn add(&mut self, rule: Rule, other: OtherCall) {
        let counts = rule == Rule::Single || other.is_at_its_turn;
        if counts && !other.is_given_up {
            self.is_free = false;
            self.all_wait &= other.waits_for_answer;
        }
    }
}

/// The calls that wait for their turn, and the facts that decide about turns.
pub(crate) struct Turns {
    askers: AskingTargets,
    queue: CallQueue,
    /// `true` if a call was given up that the server may still be processing.
    gave_up: bool,
}

impl Turns {
    /// Creates an empty queue of at most `most_waiting` calls; `askers` are those that were seen to ask.
    pub(crate) fn new(askers: AskingTargets, most_waiting: usize) -> Self {
        Self {
            askers,
            queue: CallQueue::new(most_waiting),
            gave_up: false,
        }
    }

    /// Returns `true` if no call takes a turn under this rule.
    pub(crate) fn are_free(&self, rule: Rule) -> bool {
        rule == Rule::Free || (rule == Rule::Seen && self.askers.is_empty())
    }

    /// Returns the turn of a call of `target` beside `others`, for a client that shows these modes itself.
    pub(crate) fn turn_of(
        &self,
        rule: Rule,
        kind: CallKind,
        target: &str,
        shown: Capability,
        others: OtherCalls,
        wait: TurnWait,
    ) -> Turn {
        if !self.takes_turns(rule, kind, target, shown) {
            return Turn::NotTaken;
        }
        if others.is_free {
            Turn::Own
        } else if others.all_wait && !self.askers.knows(kind, target) {
            // A waiting question blocks no call of a tool that was not seen to ask.
            Turn::Shared
        } else if wait.sharing.is_reached(wait.waited, others.all_wait) {
            Turn::SharedAsking
        } else {
            Turn::Waits
        }
    }

    /// Returns `true` if calls of `target` take turns under this rule.
    pub(crate) fn takes_turns(
        &self,
        rule: Rule,
        kind: CallKind,
        target: &str,
        shown: Capability,
    ) -> bool {
        match rule {
            Rule::Free => false,
            Rule::Seen => self.askers.may_ask_people(kind, target, shown),
            Rule::Single => true,
        }
    }

    /// Returns `true` if this tool, prompt or resource was certainly seen to ask in this mode.
    pub(crate) fn surely_asks(&self, kind: CallKind, target: &str, mode: Mode) -> bool {
        self.askers.surely_asks(kind, target, mode)
    }

    /// Records that a question in this mode came up in a call of `target`, or in one of several including it.
    pub(crate) fn saw_asking(&self, kind: CallKind, target: &str, mode: Mode, is_certain: bool) {
        self.askers.saw(kind, target, mode, is_certain);
    }

    /// Handles the end of a call at the server: if it had its turn and did not ask, it is no longer suspected.
    pub(crate) fn turn_ends(&self, call: Option<&mut Call>) {
        if let Some(call) = call
            && call.end_turn()
            && let Some((kind, target)) = call.target()
        {
            self.did_not_ask(kind, &target);
        }
    }

    /// Records that a call of `target` had its turn and did not ask.
    pub(crate) fn did_not_ask(&self, kind: CallKind, target: &str) {
        self.askers.clear_suspicion(kind, target);
    }

    /// Returns a number that increases when a tool is seen to ask, or no longer suspected.
    pub(crate) fn habits(&self) -> u64 {
        self.askers.changes()
    }

    /// Returns the calls that wait for their turn.
    pub(crate) fn queue(&self) -> &CallQueue {
        &self.queue
    }

    /// Returns the queue mutably.
    pub(crate) fn queue_mut(&mut self) -> &mut CallQueue {
        &mut self.queue
    }

    /// Records that the client gave up a call that the server may still be processing.
    pub(crate) fn note_given_up(&mut self) {
        self.gave_up = true;
    }

    /// Returns `true` if the server may still be processing a call that was given up.
    pub(crate) fn has_given_up_call(&self) -> bool {
        self.gave_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: OtherCall = OtherCall {
        is_at_its_turn: true,
        is_given_up: false,
        waits_for_answer: true,
    };
    const WORKS: OtherCall = OtherCall {
        is_at_its_turn: true,
        is_given_up: false,
        waits_for_answer: false,
    };

    fn turn_after(
        turns: &Turns,
        rule: Rule,
        target: &str,
        others: &[OtherCall],
        wait: TurnWait,
    ) -> Turn {
        let others = OtherCalls::of(rule, others.iter().copied());
        turns.turn_of(rule, CallKind::Tool, target, Capability::NONE, others, wait)
    }

    fn turn(turns: &Turns, rule: Rule, target: &str, others: &[OtherCall]) -> Turn {
        let wait = TurnWait {
            waited: Duration::ZERO,
            sharing: Sharing::NEVER,
        };
        turn_after(turns, rule, target, others, wait)
    }

    #[test]
    fn a_call_that_asks_shares_the_turn_of_others_after_a_bounded_wait() {
        let turns = Turns::new(AskingTargets::default(), 8);
        turns.saw_asking(CallKind::Tool, "a", Mode::Form, true);
        let of = |sharing, millis, others: &[OtherCall]| {
            let waited = Duration::from_millis(millis);
            let wait = TurnWait { waited, sharing };
            turn_after(&turns, Rule::Seen, "a", others, wait)
        };
        let exact = Sharing::after(Duration::from_secs(10));
        for (sharing, millis, other, expected) in [
            (Sharing::AT_ONCE, 0, WAITS, Turn::SharedAsking),
            (Sharing::AT_ONCE, 249, WORKS, Turn::Waits),
            (Sharing::AT_ONCE, 250, WORKS, Turn::SharedAsking),
            (exact, 9_999, WAITS, Turn::Waits),
            (exact, 10_000, WAITS, Turn::SharedAsking),
            (exact, 10_000, WORKS, Turn::SharedAsking),
            (Sharing::NEVER, 1_000_000, WAITS, Turn::Waits),
        ] {
            assert_eq!(
                of(sharing, millis, &[other]),
                expected,
                "{sharing:?} {millis}"
            );
            assert_eq!(of(sharing, millis, &[]), Turn::Own);
        }
    }

    #[test]
    fn the_next_limit_of_a_wait_is_in_the_future() {
        let millis = |left: Option<Duration>| left.map(|left| left.as_millis());
        let next =
            |sharing: Sharing, waited| millis(sharing.next_limit(Duration::from_millis(waited)));
        assert_eq!(next(Sharing::AT_ONCE, 0), Some(250));
        assert_eq!(next(Sharing::AT_ONCE, 250), None);
        assert_eq!(next(Sharing::AFTER_OTHER_CONNECTIONS, 100), Some(200));
        assert_eq!(next(Sharing::AFTER_OTHER_CONNECTIONS, 300), Some(450));
        assert_eq!(next(Sharing::NEVER, 5), None);
    }

    #[test]
    fn one_at_a_time_goes_alone_or_beside_those_that_wait_for_an_answer() {
        let turns = Turns::new(AskingTargets::default(), 8);
        assert_eq!(turn(&turns, Rule::Single, "a", &[]), Turn::Own);
        assert_eq!(turn(&turns, Rule::Single, "a", &[WORKS]), Turn::Waits);
        assert_eq!(turn(&turns, Rule::Single, "a", &[WAITS]), Turn::Shared);
        assert_eq!(
            turn(&turns, Rule::Single, "a", &[WAITS, WORKS]),
            Turn::Waits
        );
        turns.saw_asking(CallKind::Tool, "a", Mode::Form, true);
        assert_eq!(turn(&turns, Rule::Single, "a", &[WAITS]), Turn::Waits);
    }

    #[test]
    fn calls_that_were_seen_to_ask_take_turns_and_no_others() {
        let turns = Turns::new(AskingTargets::default(), 8);
        assert!(turns.are_free(Rule::Seen));
        turns.saw_asking(CallKind::Tool, "a", Mode::Form, false);
        assert!(!turns.are_free(Rule::Seen));
        assert_eq!(turn(&turns, Rule::Seen, "b", &[WORKS]), Turn::NotTaken);
        assert_eq!(turn(&turns, Rule::Seen, "a", &[WORKS]), Turn::Waits);
        turns.did_not_ask(CallKind::Tool, "a");
        assert_eq!(turn(&turns, Rule::Seen, "a", &[WORKS]), Turn::NotTaken);
    }
}
