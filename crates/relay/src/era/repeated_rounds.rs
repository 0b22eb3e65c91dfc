//! Calls that a framework makes again from the first round each time it continues. The answered rounds are presented
//! again, in order, up to the one that waits.
//!
//! The answers to a repeated round must equal the given ones, which are in the record and with the server already.

use mcp_elicit_core::wire::{InputRequired, message};

use crate::parts::request_state::CallBinding;
use crate::{CallId, ClientFrame, Relay};

impl Relay {
    /// Returns `true` if a client that makes this call again has to repeat rounds before it reaches the one that waits.
    pub(crate) fn repeats_rounds(&self, key: CallId) -> bool {
        let call = self.calls.get(key);
        !self.asks.waits_for_people(self.calls.get(key))
            && !self.unattended.follows(key)
            && call.is_some_and(|call| !call.is_finished() && !call.rounds().answered().is_empty())
    }

    /// Presents the answered round at this position again. Returns `false` if there is none.
    pub(crate) fn present_again(&mut self, key: CallId, at: usize, frame: ClientFrame<'_>) -> bool {
        let number = self.round_states.next_number();
        let Some(call) = self.calls.get(key) else {
            return false;
        };
        let (Some(round), Some(kind)) = (call.rounds().answered().get(at), call.kind()) else {
            return false;
        };
        let binding = CallBinding::of_frame(kind, *frame);
        let state = self
            .round_states
            .seal_repeating(frame.at(), &binding, number, at + 1);
        let required = InputRequired {
            requests: Some(round.requests().to_vec()),
            state: state.clone(),
        };
        let id = frame.id();
        let (Some(state), Some(id), Ok(result)) = (state, id, required.to_result()) else {
            return false;
        };
        self.round_states.present(state, key);
        self.effects
            .tell_client(frame.stream(), message::result(&id, &result), true);
        true
    }
}
