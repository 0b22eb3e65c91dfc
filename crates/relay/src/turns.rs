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

use std::collections::VecDeque;

use mcp_elicit_core::wire::{Capability, Mode};

use crate::asking_targets::AskingTargets;
use crate::{CallId, CallKind};

/// Which calls may be with the server at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// All.
    Free,
    /// All but those of tools that were seen to ask, which take turns.
    Seen,
    /// One in which the server may ask.
    Single,
}

/// The turn of a call that is to go to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It takes none.
    NotTaken,
    /// It has its own.
    Own,
    /// It goes beside calls that all wait for an answer.
    Shared,
    /// It has to wait.
    Waits,
}

/// Another call in which the server may be asking right now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherCall {
    /// `true` if calls that take turns wait for it.
    pub(crate) is_at_its_turn: bool,
    /// `true` if it may be waiting for the answer to a question.
    pub(crate) waits_for_answer: bool,
}

/// The calls that wait for their turn, and what decides whether one has to.
pub(crate) struct Turns {
    askers: AskingTargets,
    /// Oldest first.
    waiting: VecDeque<CallId>,
    /// `true` if a call was given up that the server may still be at work on.
    gave_up: bool,
}

impl Turns {
    /// No call waits; `askers` are those that were seen to ask.
    pub(crate) fn new(askers: AskingTargets) -> Self {
        Self {
            askers,
            waiting: VecDeque::new(),
            gave_up: false,
        }
    }

    /// Returns `true` where no call takes a turn under this rule.
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
        others: impl Iterator<Item = OtherCall>,
    ) -> Turn {
        let takes_turns = match rule {
            Rule::Free => false,
            Rule::Seen => self.askers.may_ask_people(kind, target, shown),
            Rule::Single => true,
        };
        if !takes_turns {
            return Turn::NotTaken;
        }
        let (mut is_free, mut all_wait) = (true, true);
        for other in others {
            if rule == Rule::Single || other.is_at_its_turn {
                is_free = false;
                all_wait &= other.waits_for_answer;
            }
        }
        if is_free {
            Turn::Own
        } else if all_wait && !self.askers.knows(kind, target) {
            // A waiting question blocks no call of a tool that was not seen to ask.
            Turn::Shared
        } else {
            Turn::Waits
        }
    }

    /// A question in this mode came up in a call of `target`, or in one of several of which this is one.
    pub(crate) fn saw_asking(&self, kind: CallKind, target: &str, mode: Mode, is_certain: bool) {
        self.askers.saw(kind, target, mode, is_certain);
    }

    /// A call of `target` had its turn and did not ask.
    pub(crate) fn did_not_ask(&self, kind: CallKind, target: &str) {
        self.askers.clear_suspicion(kind, target);
    }

    /// Adds a call that waits at the end.
    pub(crate) fn push(&mut self, call: CallId) {
        self.waiting.push_back(call);
    }

    /// Removes a call that waits.
    pub(crate) fn remove(&mut self, call: CallId) {
        self.waiting.retain(|known| *known != call);
    }

    /// Takes all calls that wait out.
    pub(crate) fn take_waiting(&mut self) -> VecDeque<CallId> {
        std::mem::take(&mut self.waiting)
    }

    /// Returns the calls that wait, oldest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = CallId> {
        self.waiting.iter().copied()
    }

    /// Returns `true` while no call waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns how many calls wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Notes that the client gave up a call that the server may still be at work on.
    pub(crate) fn note_given_up(&mut self) {
        self.gave_up = true;
    }

    /// Returns `true` if the server may still be at work on a call that was given up.
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
        let others = others.iter().copied();
        turns.turn_of(rule, CallKind::Tool, target, Capability::NONE, others)
    }

    #[test]
    fn one_at_a_time_goes_alone_or_beside_those_that_wait_for_an_answer() {
        let turns = Turns::new(AskingTargets::default());
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
        let turns = Turns::new(AskingTargets::default());
        assert!(turns.are_free(Rule::Seen));
        turns.saw_asking(CallKind::Tool, "a", Mode::Form, false);
        assert!(!turns.are_free(Rule::Seen));
        assert_eq!(turn(&turns, Rule::Seen, "b", &[WORKS]), Turn::NotTaken);
        assert_eq!(turn(&turns, Rule::Seen, "a", &[WORKS]), Turn::Waits);
        turns.did_not_ask(CallKind::Tool, "a");
        assert_eq!(turn(&turns, Rule::Seen, "a", &[WORKS]), Turn::NotTaken);
    }
}
