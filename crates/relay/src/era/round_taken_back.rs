//! A passed round that is taken back from the client, because no person answers there: the gateway asks people, and
//! makes the call again with their answers.
//!
//! The questions stay in the record, so that people find those that moved, and answers that were given before count.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::wire::Frame;
use mcp_elicit_core::wire::{InputRequired, members};

use super::rounds_client::declared_with_own;
use crate::frame_edit::ErrorResponse;
use crate::parts::asks::{Ask, RoundId};
use crate::parts::calls::{AskingCall, Call, Request};
use crate::parts::indexed_frame::IndexedFrame;
use crate::retries::with_server_state;
use crate::{
    AskId, CallId, CallKind, ClientForward, ClientFrame, Effect, Ending, Relay, Timestamp,
};

impl Relay {
    /// Takes a round back with this retry of the client. `given` are its usable answers; the questions of `moves` go to
    /// people, and so do those that it did not answer.
    pub(super) fn take_round_back(
        &mut self,
        frame: ClientFrame<'_>,
        round: RoundId,
        asked: &[AskId],
        given: Vec<(AskId, Outcome)>,
        moves: &[(AskId, NotAPerson)],
    ) -> ClientForward {
        let (Some(asked_in), Some(first)) = (
            self.passed_rounds.frame(round),
            with_server_state(*frame, None, true),
        ) else {
            let why = "the question cannot be asked again";
            return self.effects.reject(frame, &ErrorResponse::new(-32603, why));
        };
        let key = match self.insert_taken_back(frame, &first) {
            Ok(key) => key,
            Err(refusal) => return self.effects.reject(frame, &refusal),
        };
        for (question, outcome) in given {
            self.asks
                .client_answered(question, outcome, None, &mut self.effects);
            // The answer waits in the record for the same question of the same call, which follows.
            self.drop_question(question, Ending::CallEnded);
        }
        for (question, why) in moves {
            let record = self.asks.get(*question).and_then(Ask::record);
            if let Some(record) = record.map(str::to_owned) {
                self.effects.push(Effect::MoveToPeople {
                    question: *question,
                    record,
                    why: *why,
                    calls: Vec::new(),
                });
            }
        }
        for question in asked {
            let left = self.take_question(*question);
            if let Some(record) = left.and_then(|ask| ask.record().map(str::to_owned)) {
                self.effects.push(Effect::Leave { record });
            }
        }
        self.collect_taken_back(frame.at(), key, asked_in.frame());
        ClientForward::Handled
    }

    /// Adds the call of a round that is taken back, which the server does not process now.
    fn insert_taken_back(
        &mut self,
        frame: ClientFrame<'_>,
        first: &IndexedFrame,
    ) -> Result<CallId, ErrorResponse> {
        let call = first.frame();
        let kind = call.method().and_then(CallKind::of_method);
        let (kind, id) = kind.zip(frame.id()).ok_or_else(ErrorResponse::unreadable)?;
        let permit = match self.calls.budget().permit() {
            Ok(permit) => permit,
            Err(fault) => return Err(fault.refusal()),
        };
        let (capability, changed) = declared_with_own(call, self.settings.answer_with);
        let sent = changed.unwrap_or_else(|| first.clone());
        let kept = AskingCall::new(kind, sent, capability);
        let mut call = Call::new(permit, frame.at(), frame.stream(), id, Request::Call(kept));
        call.describe_client(self.client.info_in(*frame));
        call.ask_people();
        Ok(self.calls.insert_unsent(call))
    }

    /// Asks the questions of the round again, in the gateway's own call.
    fn collect_taken_back(&mut self, now: Timestamp, key: CallId, round: Frame<'_>) {
        let part = round.result();
        let Some(required) = self.next_round(now, key, part, InputRequired::parse) else {
            // That has ended the call.
            return;
        };
        let asked = part.and_then(|part| members::member(part, "inputRequests"));
        if let Err(refusal) = self.take_round(now, key, required, asked) {
            self.fail(now, key, &refusal);
        }
    }
}
