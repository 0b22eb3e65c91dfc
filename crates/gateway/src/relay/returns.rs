//! Calls that come back: the retry of a round with its answers, and a call that was handed back and is made again.

use std::collections::HashSet;

use mcp_elicit_core::wire::{Envelope, Era, Id, InputRequired, InputResponses, rounds};

use super::calls::{self, Call};
use super::frame::{self, OWN, Refusal};
use super::glance::{self, Glance};
use super::question::{AtClient, Origin, Step};
use super::{CallKind, Door, Ending, Moment, QuestionKey, Relay, Up};

/// A rounds client's retry that waits for its answers to be recorded; then it goes on as it came.
pub(super) struct Retry {
    door: Door,
    text: String,
    waits_for: HashSet<QuestionKey>,
}

impl Relay {
    /// Whether the request goes on with something the gateway holds: a round that the client was sent, a question
    /// that it answers now, or a call that was handed back.
    pub(super) fn resumes(
        &mut self,
        now: Moment,
        door: Door,
        text: &str,
        glance: &Glance,
        kind: CallKind,
    ) -> Option<Up> {
        let params = glance.params.as_ref()?;
        if self.client.era() == Some(Era::Rounds)
            && let Some(range) = glance::member(text.as_bytes(), params, "requestState")
        {
            let state: String = serde_json::from_str(&text[range]).ok()?;
            if state.starts_with(OWN) {
                return Some(self.handle_returns(now, door, text, glance, &state));
            }
            return self.echo_returns(door, text, glance, &state);
        }
        if self.parked.is_empty() {
            return None;
        }
        let digest = calls::calling(kind, text)?.digest;
        let call = self.unpark(&digest)?;
        self.resume(now, call, door, text, glance);
        Some(Up::Taken)
    }

    /// The client retries a call that the gateway sent back to it with a state of its own.
    fn handle_returns(
        &mut self,
        now: Moment,
        door: Door,
        text: &str,
        glance: &Glance,
        state: &str,
    ) -> Up {
        let Some(&key) = self.handles.get(state) else {
            let why =
                "this `requestState` is not known here (any more); make the call again without it";
            return self.refuse(door, text, glance, &Refusal::new(-32602, why));
        };
        let params = glance
            .params
            .as_ref()
            .and_then(|range| frame::raw_at(text, range));
        let responses = match params.map(InputResponses::of_params) {
            Some(Ok(responses)) => responses.unwrap_or_default(),
            Some(Err(_)) | None => {
                return self.refuse(
                    door,
                    text,
                    glance,
                    &Refusal::new(-32602, "`inputResponses` must be an object"),
                );
            }
        };
        match self.answers_of_round(key, &responses) {
            Ok(answers) => {
                self.handles.remove(state);
                for (question, reply) in answers {
                    self.client_settles(question, reply);
                }
                self.others_of_round(now, key, &responses);
                self.resume(now, key, door, text, glance);
                Up::Taken
            }
            Err(refusal) => self.refuse(door, text, glance, &refusal),
        }
    }

    /// The client retries a call whose questions went to it as the server wrote them.
    fn echo_returns(&mut self, door: Door, text: &str, glance: &Glance, state: &str) -> Option<Up> {
        let asked: Vec<(QuestionKey, String)> = self.echoes(state);
        if asked.is_empty() {
            return None;
        }
        let params = glance
            .params
            .as_ref()
            .and_then(|range| frame::raw_at(text, range))?;
        let responses = InputResponses::of_params(params).ok()??;
        let mut answers = Vec::new();
        let mut unanswered = Vec::new();
        for (key, entry) in asked {
            match self.answer_for(key, &entry, &responses) {
                Ok(Some(reply)) => answers.push((key, reply)),
                Ok(None) => unanswered.push(key),
                Err(refusal) => return Some(self.refuse(door, text, glance, &refusal)),
            }
        }
        if answers.is_empty() {
            return None;
        }
        for key in unanswered {
            self.drop_question(key, Ending::CallEnded);
        }
        let waits_for = answers.iter().map(|(key, _)| *key).collect();
        self.retries.insert(
            state.to_owned(),
            Retry {
                door,
                text: text.to_owned(),
                waits_for,
            },
        );
        for (key, reply) in answers {
            self.client_settles(key, reply);
        }
        Some(Up::Taken)
    }

    /// The answer to one of a retry's questions is out of the record; the retry goes on with its last.
    pub(super) fn retry_goes_on(&mut self, state: &str, question: QuestionKey) {
        let Some(retry) = self.retries.get_mut(state) else {
            return;
        };
        retry.waits_for.remove(&question);
        if !retry.waits_for.is_empty() {
            return;
        }
        let Some(Retry { door, text, .. }) = self.retries.remove(state) else {
            return;
        };
        let Some(glance) = Glance::at(text.as_bytes()) else {
            return;
        };
        let kind = glance
            .method
            .clone()
            .and_then(|range| CallKind::of_method(&text[range]));
        let (capability, changed) = self.rounds_capability(&text, &glance);
        if let Up::Forward(call) = self.start(door, &text, &glance, kind, changed, capability) {
            self.tell_server(text, call);
        }
    }

    /// A retry that cannot go on since its answer was lost to another.
    pub(super) fn retry_fails(&mut self, state: &str, refusal: &Refusal) {
        if let Some(Retry { door, text, .. }) = self.retries.remove(state)
            && let Some(glance) = Glance::at(text.as_bytes())
        {
            self.refuse(door, &text, &glance, refusal);
        }
    }

    /// The questions that went to the client with this state, and the keys they have there.
    pub(super) fn echoes(&self, state: &str) -> Vec<(QuestionKey, String)> {
        let mut found = Vec::new();
        for key in self.questions.keys() {
            if let Some(question) = self.questions.get(key)
                && let Origin::Echo {
                    entry,
                    state: known,
                } = &question.origin
                && known == state
                && question.step == Step::Open
                && question.at_client == Some(AtClient::Round)
            {
                found.push((key, entry.clone()));
            }
        }
        found
    }

    /// `inputResponses` and `requestState` belong to one retry, not to the call.
    pub(super) fn retry_frame(
        call: &Call,
        required: &InputRequired,
        responses: &InputResponses,
        id: &Id,
    ) -> Option<String> {
        let frame = call.frame()?;
        let envelope = Envelope::parse_within(frame.as_bytes(), usize::MAX).ok()?;
        let params = rounds::retry_params(envelope.params(), required, responses).ok()?;
        let with_params = envelope.with_body(&params).ok()?;
        let envelope = Envelope::parse_within(with_params.as_bytes(), usize::MAX).ok()?;
        Some(envelope.with_id(id))
    }
}
