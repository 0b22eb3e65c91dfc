//! Servers of the rounds era (2026-07-28): questions that come as `input_required`.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::wire::{Era, Id, InputRequest, InputRequired, InputResponses, members};
use serde_json::value::RawValue;

use super::frame::{self, Refusal};
use super::glance::Glance;
use super::question::{Origin, Step};
use super::round::{Entry, Round};
use super::{CallKey, Down, Effect, QuestionKey, Relay, Timer, Timestamp};

impl Relay {
    /// The server asks in a round.
    pub(super) fn asked_in_round(
        &mut self,
        now: Timestamp,
        key: CallKey,
        text: &str,
        glance: &Glance,
    ) -> Down {
        let part = glance.result.as_ref();
        let part = part.and_then(|range| frame::raw_at(text, range));
        let Some(required) = self.next_round(now, key, part, InputRequired::parse) else {
            return Down::Taken;
        };
        let asked = part.and_then(|part| members::member(part, "inputRequests"));
        if self.client_answers_all(key, &required) {
            return self.echo_round(now, key, &required, text);
        }
        if let Err(refusal) = self.take_round(now, key, required, asked) {
            self.fail(now, key, &refusal);
        }
        Down::Taken
    }

    /// Returns whether the client, of this era too, may have the round as it is, but for its state. One that asks nothing may wait
    /// until the client is back.
    fn client_answers_all(&self, key: CallKey, required: &InputRequired) -> bool {
        let Some(call) = self.calls.get(key) else {
            return false;
        };
        if self.client.era() != Some(Era::Rounds) {
            return false;
        }
        let to_client = !matches!(self.settings.answer_with, super::AnswerWith::Desk);
        let can = required
            .questions()
            .all(|(_, request)| call.capability.has(request.mode()));
        let asks = required.questions().next().is_some();
        !asks || (call.door.is_some() && to_client && can)
    }

    /// The gateway answers the round itself, piece by piece.
    fn take_round(
        &mut self,
        now: Timestamp,
        key: CallKey,
        required: InputRequired,
        asked: Option<&RawValue>,
    ) -> Result<(), Refusal> {
        let mut entries = Vec::new();
        for (name, request) in required.requests.iter().flatten() {
            let entry = match request {
                InputRequest::Elicit(request) => {
                    let raw = asked
                        .and_then(|asked| members::member(asked, name))
                        .and_then(|request| members::member(request, "params"));
                    let origin = Origin::Round {
                        entry: name.clone(),
                    };
                    Entry::Question(self.raise(
                        now,
                        key.into(),
                        origin,
                        request.clone(),
                        None,
                        raw,
                    )?)
                }
                InputRequest::Other { method, raw } => {
                    let door = self.calls.get(key).and_then(|call| call.door);
                    let id = self.push_other(door, method, raw.get());
                    if id.is_none() && self.client.era() == Some(Era::Pushed) {
                        return Err(Refusal::new(
                            -32603,
                            format!("the server asks for `{method}`, which cannot be passed on"),
                        ));
                    }
                    Entry::Other {
                        id,
                        method: method.clone(),
                        raw: raw.get().to_owned(),
                    }
                }
            };
            entries.push((name.clone(), entry));
        }
        let empty = entries.is_empty();
        if let Some(call) = self.calls.get_mut(key) {
            let rounds = call.rounds;
            call.round = Some(Round { required, entries });
            if empty {
                // Only a state: the server wants to be called again, a little later each time.
                let wait = std::time::Duration::from_millis(250).saturating_mul(rounds);
                self.at(now.after(wait), Timer::Again(key));
            }
        }
        Ok(())
    }

    /// The response to a request of a round that is no question.
    pub(super) fn other_replies(
        &mut self,
        now: Timestamp,
        id: &Id,
        text: &str,
        glance: &Glance,
    ) -> bool {
        let waits = |entry: &(String, Entry)| matches!(&entry.1, Entry::Other { id: Some(known), .. } if known == id);
        let found = self.calls.keys(|call| {
            call.round
                .as_ref()
                .is_some_and(|round| round.entries.iter().any(waits))
        });
        let Some(&key) = found.first() else {
            return false;
        };
        let Some(result) = glance.result.clone().map(|range| text[range].to_owned()) else {
            let why = "the client could not answer what the server needs";
            self.fail(now, key, &Refusal::new(-32603, why));
            return true;
        };
        if let Some(round) = self.calls.get_mut(key).and_then(|call| call.round.as_mut()) {
            for entry in round.entries.iter_mut().filter(|entry| waits(entry)) {
                entry.1 = Entry::Answered(result.clone());
            }
        }
        self.collect_round(now, key);
        true
    }

    /// Takes the answers of a round out of the record once all are there, or makes the call again with them.
    pub(super) fn collect_round(&mut self, now: Timestamp, key: CallKey) {
        let Some(round) = self.calls.get(key).and_then(|call| call.round.as_ref()) else {
            return;
        };
        if round.waits_for_others() {
            // A client that answers with retries is asked for its part now, if that was not done yet.
            self.put_round(key);
            return;
        }
        if round.is_complete() {
            self.again(now, key);
            return;
        }
        let open = round.open();
        let all = open.iter().all(|question| {
            self.questions
                .get(*question)
                .is_some_and(|q| q.step == Step::Settled)
        });
        if all {
            self.take_answers(open);
        }
    }

    /// The call is made again: with the answers of its round, or as it was after its links were visited.
    pub(super) fn again(&mut self, now: Timestamp, key: CallKey) {
        let id = self.own_id();
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        let (required, responses) = match call.round.take() {
            Some(round) => {
                let mut responses = InputResponses::default();
                for (name, entry) in &round.entries {
                    if let Entry::Answered(response) = entry
                        && let Ok(response) = serde_json::from_str::<Box<RawValue>>(response)
                    {
                        responses.insert(name.clone(), response);
                    }
                }
                (round.required, responses)
            }
            None => (
                InputRequired {
                    requests: None,
                    state: None,
                },
                InputResponses::default(),
            ),
        };
        let Some(frame) = self
            .calls
            .get(key)
            .and_then(|call| Self::retry_frame(call, &required, &responses, &id))
        else {
            let why = "the call cannot be made again: its `params` are no object";
            self.fail(now, key, &Refusal::new(-32602, why));
            return;
        };
        self.calls.renew(key, id);
        let delivers = self.calls.get_mut(key);
        let delivers = delivers.map(|call| std::mem::take(&mut call.delivers));
        self.deliveries.begin(delivers.unwrap_or_default(), None);
        self.tell_server(frame, Some(key));
    }

    /// The client answered: the record decides whether it was the first.
    pub(super) fn client_settles(&mut self, key: QuestionKey, outcome: Outcome) {
        let Some(question) = self.questions.get_mut(key) else {
            return;
        };
        let Some(record) = question
            .record
            .clone()
            .filter(|_| question.step == Step::Open)
        else {
            return;
        };
        question.step = Step::Settling;
        self.effects.push_back(Effect::Settle {
            question: key,
            record,
            outcome,
        });
    }
}
