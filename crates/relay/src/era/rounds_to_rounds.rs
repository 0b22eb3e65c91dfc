//! Rounds that a client of the rounds era has as the server wrote them, and the retries that answer them.
//!
//! Everything but the state is the server's: the client has the gateway's state, with the server's inside, and the
//! retry continues with the server's again. The first answer counts: if it came from a page of the inbox, the retry
//! continues with that answer.
//!
//! This applies only if the client may answer every question of the server. Under an operator's rules, and if people
//! are asked in its place, the gateway answers each round itself (`server_round`).

use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::wire::{Frame, InputRequired, InputResponses};
use serde_json::Value;

use crate::call_start::Carried;
use crate::frame_edit::ErrorResponse;
use crate::not_a_person::Attempt;
use crate::parts::asks::{Ask, Origin, RoundId, UnusableReply};
use crate::parts::calls::Call;
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::passed_rounds::{ClientAnswers, Retry, with_state};
use crate::parts::request_state::{CallBinding, ServerState, StateClaims};
use crate::retries::with_server_state;
use crate::{
    AskId, CallId, ClientForward, ClientFrame, Effect, Ending, Relay, ServerForward, Timestamp,
};

impl Relay {
    /// Sends the round to the client as the server wrote it, once its questions are recorded.
    pub(crate) fn pass_round_on(
        &mut self,
        now: Timestamp,
        key: CallId,
        required: &InputRequired,
        frame: Frame<'_>,
    ) -> ServerForward {
        let server = ServerState::new(required.state.clone());
        let number = self.round_states.next_number();
        if required.questions().next().is_none() {
            // Nothing needs to be recorded: the client and the server handle it.
            self.send_round(now, key, frame, number, Vec::new(), server);
            return ServerForward::Handled;
        }
        let round = RoundId::new(number);
        if let Err(refusal) = self.check_round(frame.text().len()) {
            self.fail(now, key, &refusal);
            return ServerForward::Handled;
        }
        let kept = IndexedFrame::of(frame, None);
        let state = required.state.as_ref().map_or(0, String::len);
        let bytes = self.calls.budget().round(kept.size() + 2 * state);
        self.passed_rounds.begin(round, server, kept.clone(), bytes);
        for (entry, request) in required.questions() {
            let origin = Origin::PassedRound {
                entry: entry.to_owned(),
                round,
            };
            match self.open_ask(now, key.into(), origin, request.clone(), None, None) {
                Ok(question) => {
                    self.passed_rounds.add(round, question);
                }
                Err(refusal) => {
                    self.fail(now, key, &refusal);
                    self.passed_rounds.remove(round);
                    return ServerForward::Handled;
                }
            }
        }
        if let Some(call) = self.calls.get_mut(key) {
            call.pass_round(round, kept);
        }
        ServerForward::Handled
    }

    /// Handles a recorded question of a passed round; after the last one the round is sent.
    pub(crate) fn client_round_recorded(&mut self, now: Timestamp, key: CallId) {
        let call = self.calls.get(key);
        let questions = call.map_or_else(Vec::new, |call| call.asks().to_vec());
        let waits = |question: &AskId| self.asks.get(*question).is_some_and(Ask::is_recording);
        if questions.iter().any(waits) {
            return;
        }
        let call = self.calls.get_mut(key);
        let Some((round, passed)) = call.and_then(Call::take_passing_round) else {
            // The call has ended, or its client has the round.
            return;
        };
        let mut asked = Vec::new();
        for key in questions {
            if let Some(question) = self.asks.get_mut(key) {
                question.shown_in_round(now);
                question.leave_call();
                asked.extend(question.entry_and_record());
            }
        }
        let Some(server) = self.passed_rounds.server_state(round) else {
            let why = "the server's questions have ended";
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return;
        };
        let number = round.number();
        if let Some(state) = self.send_round(now, key, passed.frame(), number, asked, server) {
            self.passed_rounds.sent(round, state);
        }
    }

    /// Sends the round to the client under a state of the gateway's, with the server's inside.
    fn send_round(
        &mut self,
        now: Timestamp,
        key: CallId,
        round: Frame<'_>,
        number: u64,
        asked: Vec<(String, String)>,
        server: ServerState,
    ) -> Option<String> {
        let state = self.sealed_state(now, key, number, asked, Some(server));
        let sent = state.as_deref().and_then(|state| with_state(round, state));
        let Some(sent) = sent else {
            let why = "the server's question cannot be given a state";
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return None;
        };
        if let ServerForward::AsIs { stream, last } = self.finish(now, key, sent.frame()) {
            self.effects.tell_client(stream, sent.into_text(), last);
        }
        state
    }

    /// Handles the retry of a call whose questions went to the client as the server wrote them.
    pub(crate) fn client_round_retried(
        &mut self,
        frame: ClientFrame<'_>,
        state: &str,
        claims: &StateClaims,
        server: &ServerState,
        responses: &InputResponses,
        binding: &CallBinding,
    ) -> ClientForward {
        let Some(retry) = with_server_state(*frame, server.state(), false) else {
            let why = "`params` must be an object with each member once";
            return self.effects.reject(frame, &ErrorResponse::new(-32602, why));
        };
        if let Err(fault) = self.calls.budget().check() {
            // Its state is valid for another attempt.
            return self.effects.reject(frame, &fault.refusal());
        }
        let Some((round, asked)) = self.passed_rounds.by_state(state) else {
            // The gateway was restarted, or another one has the round.
            if !self.settings.server_streams && !claims.asked().is_empty() {
                // The state is another process's of the server, which this one may not be able to read.
                return self.starts_anew(frame, state, claims, responses.clone());
            }
            // The server is one for all gateways: it continues with the client's answers, which also end the record's
            // questions.
            self.round_states.use_up(state);
            for (_, record) in claims.asked() {
                self.effects.push(Effect::End {
                    record: record.clone(),
                    ending: Ending::CallEnded,
                });
            }
            return self.pass_on(frame.stream(), frame.at(), retry, Carried::default());
        };
        let mut answers = Vec::new();
        let mut answered = Vec::new();
        let mut unanswered = Vec::new();
        let mut own = ClientAnswers::default();
        let mut wrong = Vec::new();
        let mut moves = Vec::new();
        for key in asked.iter().copied() {
            let Some(question) = self.asks.get(key) else {
                continue;
            };
            let Origin::PassedRound { entry, .. } = question.origin().clone() else {
                continue;
            };
            if question.is_answered() {
                answered.push(key);
                continue;
            }
            match question.reply_in(&entry, responses, self.client.revision()) {
                Ok(Some(reply)) if self.is_moved(frame, key, reply.action(), &mut moves) => {}
                Ok(Some(reply)) => {
                    let content = reply.answers().map(Answers::to_value);
                    let action = Value::from(reply.action().as_str());
                    own.add(entry, &action, &content.unwrap_or_default());
                    answers.push((key, reply));
                }
                Ok(None) => unanswered.push(key),
                Err(UnusableReply::Malformed(_)) if self.can_be_moved(key) => {
                    moves.push((key, NotAPerson::Malformed));
                }
                Err(UnusableReply::Malformed(refusal)) => {
                    return self.effects.reject(frame, &refusal);
                }
                Err(UnusableReply::Wrong { act, .. })
                    if self.is_moved(frame, key, act, &mut moves) => {}
                Err(UnusableReply::Wrong {
                    refusal, answer, ..
                }) => match self.unusable(key, answer) {
                    Attempt::Again => wrong.push(None),
                    Attempt::Moves(why) => moves.push((key, why)),
                    Attempt::Over => wrong.push(Some(refusal)),
                },
            }
        }
        let can_move = unanswered.iter().any(|key| self.can_be_moved(*key));
        if responses.is_empty() && answered.is_empty() && can_move {
            self.missing(&unanswered, &mut moves);
            wrong.extend(unanswered.iter().map(|_| None));
        }
        if !moves.is_empty() {
            self.round_states.use_up(state);
            return self.take_round_back(frame, round, &asked, answers, &moves);
        }
        if !wrong.is_empty() {
            self.round_states.use_up(state);
            return self.round_again(frame, round, &asked, wrong, binding);
        }
        if answers.is_empty() && answered.is_empty() {
            return self.pass_on(frame.stream(), frame.at(), retry, Carried::default());
        }
        let permit = match self.calls.budget().permit() {
            Ok(permit) => permit,
            Err(fault) => return self.effects.reject(frame, &fault.refusal()),
        };
        self.round_states.use_up(state);
        let retry = Retry::new(permit, frame.stream(), frame.at(), retry, own);
        self.passed_rounds.came_back(round, retry);
        for key in unanswered {
            self.drop_question(key, Ending::CallEnded);
        }
        for (key, reply) in answers {
            self.asks
                .client_answered(key, reply, None, &mut self.effects);
        }
        if !answered.is_empty() {
            self.asks
                .begin_delivery(answered, &self.calls, &mut self.effects);
        }
        ClientForward::Handled
    }

    /// Sends the round again with the reasons why answers of the retry are unusable, a few times.
    fn round_again(
        &mut self,
        frame: ClientFrame<'_>,
        round: RoundId,
        asked: &[AskId],
        wrong: Vec<Option<Box<ErrorResponse>>>,
        binding: &CallBinding,
    ) -> ClientForward {
        if let Some(refusal) = wrong.into_iter().flatten().next() {
            for key in asked {
                self.drop_question(*key, Ending::ClientFailed);
            }
            return self.effects.reject(frame, &refusal);
        }
        let (mut records, mut reasons) = (Vec::new(), Vec::new());
        for question in asked.iter().filter_map(|key| self.asks.get(*key)) {
            records.extend(question.entry_and_record());
            let reason = question.reason().map(str::to_owned);
            reasons.extend(reason.map(|reason| (question.entry().to_owned(), reason)));
        }
        let number = self.round_states.next_number();
        let id = frame.id();
        let server = self.passed_rounds.server_state(round);
        let state =
            self.round_states
                .seal_asking(frame.at(), binding, number, records, Vec::new(), server);
        let sent = state.and_then(|state| {
            let again = self.passed_rounds.again(round, &id?, &state, &reasons)?;
            Some((again, state))
        });
        let Some((again, state)) = sent else {
            let why = "the question cannot be asked again";
            return self.effects.reject(frame, &ErrorResponse::new(-32603, why));
        };
        self.passed_rounds.sent(round, state);
        self.effects.tell_client(frame.stream(), again, true);
        ClientForward::Handled
    }

    /// Handles the answer to one of a retry's questions, taken from the record; the retry continues after its last.
    pub(crate) fn retry_goes_on(
        &mut self,
        round: RoundId,
        entry: &str,
        reply: String,
        record: String,
    ) {
        let ready = self.passed_rounds.answered(round, entry, reply, record);
        if let Some(retry) = ready {
            let (stream, at, request, records) = retry.into_parts();
            let carried = Carried::delivery(self.deliveries.begin(records, None));
            self.pass_on(stream, at, request, carried);
        }
    }

    /// Ends a retry whose answer was lost to another.
    pub(crate) fn retry_fails(&mut self, round: RoundId, refusal: &ErrorResponse) {
        let Some((stream, request, records)) = self.passed_rounds.fail(round) else {
            // No client waits for an answer to it.
            return;
        };
        self.effects.return_unsent(records);
        self.effects.reject_on(stream, request.frame(), refusal);
    }
}
