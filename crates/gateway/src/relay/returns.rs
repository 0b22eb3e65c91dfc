//! Calls that come back: the retry of a round with its answers, and a call that was handed back and is made again.

use mcp_elicit_core::wire::{Envelope, Era, Id, InputRequired, InputResponses, rounds};

use super::calls::{self, Call};
use super::frame::{self, OWN, Refusal};
use super::glance::Glance;
use super::{CallKind, Door, Moment, Relay, Up};

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
        if self.client.era() == Some(Era::Rounds)
            && let Some(range) = glance.request_state.clone()
        {
            let state: String = serde_json::from_str(&text[range]).ok()?;
            if state.starts_with(OWN) {
                return Some(self.handle_returns(now, door, text, glance, &state));
            }
            return self.echo_returns(door, text, glance, kind, &state);
        }
        if self.parked.is_empty() && !self.finds_calls {
            return None;
        }
        let digest = calls::calling(kind, text).ok()?.digest;
        if let Some(call) = self.unpark(&digest) {
            self.resume(now, call, door, text, glance);
            return Some(Up::Taken);
        }
        self.finds_calls.then(|| self.find_call(door, text, digest))
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
