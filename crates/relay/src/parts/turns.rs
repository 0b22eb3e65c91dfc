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
    /// It shares a turn with calls that all wait for an answer.
    Shared,
    /// It has to wait.
    Waits,
}

/// Another call in which the server may be asking now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherCall {
    /// `true` if calls that take turns wait for it.
    pub(crate) is_at_its_turn: bool,
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

    /// Adds a call.
    pub(crate) fn add(&mut self, rule: Rule, other: OtherCall) {
        if rule == Rule::Single || other.is_at_its_turn {
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
    ) -> Turn {
        let takes_turns = match rule {
            Rule::Free => false,
            Rule::Seen => self.askers.may_ask_people(kind, target, shown),
            Rule::Single => true,
        };
        if !takes_turns {
            return Turn::NotTaken;
        }
        if others.is_free {
            Turn::Own
        } else if others.all_wait && !self.askers.knows(kind, target) {
            // A waiting question blocks no call of a tool that was not seen to ask.
            Turn::Shared
        } else {
            Turn::Waits
        }
    }

    /// Records that a question in this mode came up in a call of `target`, or in one of several including it.
    pub(crate) fn saw_asking(&self, kind: CallKind, target: &str, mode: Mode, is_certain: bool) {
        self.askers.saw(kind, target, mode, is_certain);
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
        waits_for_answer: true,
    };
    const WORKS: OtherCall = OtherCall {
        is_at_its_turn: true,
        waits_for_answer: false,
    };

    fn turn(turns: &Turns, rule: Rule, target: &str, others: &[OtherCall]) -> Turn {
        let others = OtherCalls::of(rule, others.iter().copied());
        turns.turn_of(rule, CallKind::Tool, target, Capability::NONE, others)
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
