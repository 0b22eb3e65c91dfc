//! Responses of a client that are not an act of a person: an error, a result that is no answer, the same unusable answer
//! twice, or one that came sooner than a person can read. The question moves from the client's own dialog to people,
//! and the call is held as if the client could not be asked.
//!
//! If only the client may answer, there is nobody else: the server gets the client's response, and the audit says that
//! an act is doubted.

use std::time::Duration;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::wire::Action;

use crate::parts::asks::{Ask, Attempts, WrongAnswer};
use crate::{AskId, Audience, ClientFrame, Effect, Relay, Timestamp};

impl Relay {
    /// Returns `true` if people can be asked in the client's place.
    pub(crate) fn can_ask_people_instead(&self) -> bool {
        self.settings.answer_with == Audience::Auto
    }

    /// Returns `true` if this question can move to people. A form that cannot be read is only shown by the client.
    pub(crate) fn can_be_moved(&self, key: AskId) -> bool {
        let form = self.asks.get(key).and_then(Ask::form);
        self.can_ask_people_instead() && !form.is_some_and(Form::is_unread)
    }

    /// Returns the time since the client was asked this, if that is known.
    fn asked_since(&self, now: Timestamp, key: AskId) -> Option<Duration> {
        Some(now.since(self.asks.get(key)?.shown_at()?))
    }

    /// Handles a doubted act of the client. Returns `true` if the question moves to people, so the act does not count.
    pub(crate) fn takes_doubted(&mut self, now: Timestamp, key: AskId, act: Action) -> bool {
        let call = self.asks.get(key).and_then(Ask::call);
        let call = call.and_then(|call| self.calls.get(call));
        let after = self.asked_since(now, key);
        let Some(why) = self.client.doubts(call, act, after) else {
            return false;
        };
        if self.can_be_moved(key) {
            self.move_to_people(now, key, why);
            return true;
        }
        self.tell_doubt(key, why);
        false
    }

    /// Records an unusable answer of the client. Returns the evidence if the question is to move to people.
    pub(crate) fn unusable(&mut self, key: AskId, answer: WrongAnswer) -> Attempt {
        let Some(ask) = self.asks.get_mut(key) else {
            return Attempt::Over;
        };
        let attempts = ask.was_wrong(answer);
        let Attempts {
            count: times,
            are_alike,
            are_empty,
            mistyped,
        } = attempts;
        let is_over = attempts.are_over();
        if self.can_be_moved(key) && (are_alike || is_over) {
            if are_empty && let Some(form) = self.asks.get(key).and_then(Ask::form) {
                self.client.left_unanswered(form.required_kinds());
            }
            // No person types a value of another type: the client's own dialog converts it so.
            self.client.left_unanswered(mistyped);
            return Attempt::Moves(NotAPerson::Unusable { times });
        }
        if is_over {
            Attempt::Over
        } else {
            Attempt::Again
        }
    }

    /// Handles a doubted act in a retry. Returns `true` if the question moves to people; it is added to `moves`.
    pub(crate) fn is_moved(
        &mut self,
        retry: ClientFrame<'_>,
        key: AskId,
        act: Action,
        moves: &mut Vec<(AskId, NotAPerson)>,
    ) -> bool {
        let after = self.asked_since(retry.at(), key);
        let Some(why) = self.client.doubts_retry(*retry, act, after) else {
            return false;
        };
        let is_moved = self.can_be_moved(key);
        if is_moved {
            moves.push((key, why));
        } else {
            self.tell_doubt(key, why);
        }
        is_moved
    }

    /// Counts a retry without any answer to these questions. Those that move to people are added to `moves`.
    pub(crate) fn missing(&mut self, asked: &[AskId], moves: &mut Vec<(AskId, NotAPerson)>) {
        if !self.can_ask_people_instead() {
            return;
        }
        for key in asked {
            if let Attempt::Moves(why) = self.unusable(*key, WrongAnswer::missing()) {
                moves.push((*key, why));
            }
        }
    }

    /// Tells the audit that an act, which counts, is doubted.
    pub(crate) fn tell_doubt(&mut self, key: AskId, why: NotAPerson) {
        if let Some(record) = self.asks.get(key).and_then(Ask::record) {
            let record = record.to_owned();
            self.effects.push(Effect::DoubtAct { record, why });
        }
    }

    /// Moves a question, which no person has answered at the client, to people. Its calls are held.
    pub(crate) fn move_to_people(&mut self, now: Timestamp, key: AskId, why: NotAPerson) {
        let stream = self.calls.stream_in_session(self.asks.call_of(key));
        let open = self.asks.get(key).filter(|ask| ask.is_open());
        let Some((ask, record)) = open.and_then(|ask| Some((ask, ask.record()?.to_owned()))) else {
            // It has ended, or has an answer, meanwhile.
            return;
        };
        let (call, candidates, mode) = (ask.call(), ask.candidates(), ask.request().mode());
        // A client may err because it cannot read this form; it may still show others.
        let is_usual = ask.form().is_none_or(|form| form.adjustments().is_empty());
        // A single call is certain, and in the record.
        let calls = if candidates.len() > 1 {
            self.calls.summaries(&candidates)
        } else {
            Vec::new()
        };
        if is_usual && matches!(why, NotAPerson::Error { .. } | NotAPerson::Malformed) {
            self.client.dialog_failed(mode);
        }
        if let Some(open) = self.asks.move_to_people(key) {
            self.effects
                .withdraw_dialog(stream, &open, "people are asked instead");
        }
        tracing::info!(server = %self.settings.server, %why, "no person answered at the client: people are asked");
        self.effects.push(Effect::MoveToPeople {
            question: key,
            record,
            why,
            calls,
        });
        if let Some(call) = call {
            self.hold_all(now, key, call);
        }
    }
}

/// The continuation after an unusable answer of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The client is asked again.
    Again,
    /// The question moves to people, on this evidence.
    Moves(NotAPerson),
    /// The question fails: nobody else can be asked.
    Over,
}
