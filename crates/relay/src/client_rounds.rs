//! Rounds that a client of the rounds era has as the server wrote them, and the retries that answer them.
//!
//! All but the state is the server's: the client carries the gateway's, with the server's inside, and the retry goes on with
//! the server's again. Whoever answers first is heard: where that was a page of the inbox, the retry goes on with that
//! answer.

use crate::ClientFrame;
use crate::from_client::Carried;
use std::collections::HashMap;

use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::wire::{Envelope, InputRequired, InputResponses, members};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::asks::{Origin, RoundId, Shown, Step, UnusableReply, message_again};
use crate::frame_edit::{self, ErrorResponse};
use crate::from_server::with_id;
use crate::request_state::{CallBinding, ServerState, StateClaims};
use crate::retries::with_server_state;
use crate::{
    AskId, CallId, ClientForward, Effect, Ending, Relay, ServerForward, StreamId, Timestamp,
};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, FramePart};

/// A round that the client has as the server wrote it.
pub(crate) struct ClientRound {
    /// The state that the client carries, once the round is out.
    state: Option<String>,
    /// The state that the server gave.
    server: ServerState,
    /// The round as the server wrote it, for asking again.
    text: String,
    /// Its questions that nobody has taken an answer of.
    open: Vec<AskId>,
    /// The retry that waits for its answers to be recorded; then it goes on as it came.
    retry: Option<Retry>,
}

struct Retry {
    stream: StreamId,
    at: Timestamp,
    text: String,
    /// The client's answers, as the record would have them, by the keys of the round.
    own: HashMap<String, Value>,
    /// The record's answers for it, by the keys of the round.
    replies: Vec<(String, String)>,
    /// The records of what it brings to the server.
    records: Vec<String>,
}

impl Retry {
    /// Returns what the record has that the client did not answer itself.
    fn others(&self) -> impl Iterator<Item = &(String, String)> {
        self.replies.iter().filter(|(entry, reply)| {
            let reply: Value = serde_json::from_str(reply).unwrap_or_default();
            self.own.get(entry) != Some(&plain(&reply["action"], &reply["content"]))
        })
    }

    /// The retry with the answers that the record has; `None` where it may go on as it came.
    fn changed(&self) -> Option<String> {
        self.others().next()?;
        let envelope = Envelope::parse_within(self.text.as_bytes(), usize::MAX).ok()?;
        let params = envelope.params()?;
        let mut responses = InputResponses::from_params(params)
            .ok()?
            .unwrap_or_default();
        for (entry, reply) in self.others() {
            responses.insert(entry, serde_json::from_str::<Box<RawValue>>(reply).ok()?);
        }
        let params = members::Members::read(params, "params")
            .ok()?
            .with("inputResponses", Some(&responses.to_raw()));
        envelope.with_body(&params).ok()
    }
}

fn plain(action: &Value, content: &Value) -> Value {
    json!([action, content])
}

impl Relay {
    /// The client gets the round as the server wrote it, once its questions are written down.
    pub(crate) fn pass_round_on(
        &mut self,
        now: Timestamp,
        key: CallId,
        required: &InputRequired,
        text: &str,
    ) -> ServerForward {
        let server = ServerState {
            state: required.state.clone(),
        };
        let number = self.next_state();
        if required.questions().next().is_none() {
            // Nothing to record: the client and the server settle it.
            self.send_round(now, key, text, number, Vec::new(), server);
            return ServerForward::Handled;
        }
        let round = RoundId(number);
        self.client_rounds.insert(
            round,
            ClientRound {
                state: None,
                server,
                text: text.to_owned(),
                open: Vec::new(),
                retry: None,
            },
        );
        for (entry, request) in required.questions() {
            let origin = Origin::ClientRound {
                entry: entry.to_owned(),
                round,
            };
            match self.open_ask(now, key.into(), origin, request.clone(), None, None) {
                Ok(question) => {
                    if let Some(echo) = self.client_rounds.get_mut(&round) {
                        echo.open.push(question);
                    }
                }
                Err(refusal) => {
                    self.fail(now, key, &refusal);
                    self.client_rounds.remove(&round);
                    return ServerForward::Handled;
                }
            }
        }
        if let Some(call) = self.calls.get_mut(key) {
            call.demand = Some(text.to_owned());
        }
        ServerForward::Handled
    }

    /// A question of a round that the client gets as it is has been written; with the last one the round goes out.
    pub(crate) fn client_round_recorded(&mut self, now: Timestamp, key: CallId) {
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let questions = call.questions.clone();
        let waits = |question: &AskId| {
            self.asks
                .get(*question)
                .is_some_and(|q| q.step == Step::Writing)
        };
        if questions.iter().any(waits) {
            return;
        }
        let Some(text) = self.calls.get_mut(key).and_then(|call| {
            call.questions.clear();
            call.demand.take()
        }) else {
            return;
        };
        let mut asked = Vec::new();
        let mut round = None;
        for key in questions {
            if let Some(question) = self.asks.get_mut(key) {
                question.shown = Some(Shown::Round);
                question.call = None;
                asked.extend(Some(question.entry.clone()).zip(question.record.clone()));
                if let Origin::ClientRound { round: known, .. } = &question.origin {
                    round = Some(*known);
                }
            }
        }
        let Some(round) = round else {
            return;
        };
        let Some(server) = self
            .client_rounds
            .get(&round)
            .map(|echo| echo.server.clone())
        else {
            return;
        };
        let state = self.send_round(now, key, &text, round.0, asked, server);
        if let Some(echo) = self.client_rounds.get_mut(&round) {
            echo.state = state;
        }
    }

    /// The client gets the round under a state of the gateway's, with the server's inside.
    fn send_round(
        &mut self,
        now: Timestamp,
        key: CallId,
        text: &str,
        number: u64,
        asked: Vec<(String, String)>,
        server: ServerState,
    ) -> Option<String> {
        let state = self.sealed_state(now, key, number, asked, Some(server));
        let sent = state.as_deref().and_then(|state| with_state(text, state));
        let sent = sent.and_then(|text| Some((FrameIndex::at(text.as_bytes())?, text)));
        let Some((index, text)) = sent else {
            let why = "the server's question cannot be given a state";
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return None;
        };
        let frame = Frame::of_text(&text, &index);
        if let ServerForward::AsIs { stream, last } = self.finish(now, key, frame) {
            self.tell_client(stream, text, last);
        }
        state
    }

    /// The client retries a call whose questions went to it as the server wrote them.
    #[expect(
        clippy::too_many_arguments,
        reason = "a frame, where it came from, and what was read of it"
    )]
    pub(crate) fn client_round_retried(
        &mut self,
        frame: ClientFrame<'_>,
        state: &str,
        claims: &StateClaims,
        server: &ServerState,
        responses: &InputResponses,
        binding: &CallBinding,
    ) -> ClientForward {
        let Some(retry) = with_server_state(*frame, server.state.as_deref(), false) else {
            let why = "`params` must be an object with each member once";
            return self.reject(frame, &ErrorResponse::new(-32602, why));
        };
        let mut known = self.client_rounds.iter();
        let known = known.find(|(_, echo)| echo.state.as_deref() == Some(state));
        let Some((round, asked)) = known.map(|(round, echo)| (*round, echo.open.clone())) else {
            // The gateway was started anew, or the round's time is over: what the record still asks, the client has
            // answered with this.
            self.mark_used(state.to_owned());
            for (_, record) in &claims.asked {
                self.effects.push_back(Effect::End {
                    record: record.clone(),
                    ending: Ending::CallEnded,
                });
            }
            return self.pass_on(frame.stream(), frame.at(), retry, Carried::default());
        };
        let mut answers = Vec::new();
        let mut answered = Vec::new();
        let mut unanswered = Vec::new();
        let mut own = HashMap::new();
        let mut wrong = Vec::new();
        for key in asked.iter().copied() {
            let Some(question) = self.asks.get(key) else {
                continue;
            };
            let Origin::ClientRound { entry, .. } = question.origin.clone() else {
                continue;
            };
            if question.step == Step::Answered {
                answered.push(key);
                continue;
            }
            match self.answer_for(key, &entry, responses) {
                Ok(Some(reply)) => {
                    let content = reply.answers().map(Answers::to_value);
                    let action = Value::from(reply.action().as_str());
                    own.insert(entry, plain(&action, &content.unwrap_or_default()));
                    answers.push((key, reply));
                }
                Ok(None) => unanswered.push(key),
                Err(UnusableReply::Malformed(refusal)) => {
                    return self.reject(frame, &refusal);
                }
                Err(UnusableReply::Wrong { refusal, reason }) => wrong.push((key, refusal, reason)),
            }
        }
        if !wrong.is_empty() {
            self.mark_used(state.to_owned());
            return self.round_again(frame, round, &asked, wrong, binding);
        }
        if answers.is_empty() && answered.is_empty() {
            return self.pass_on(frame.stream(), frame.at(), retry, Carried::default());
        }
        self.mark_used(state.to_owned());
        if let Some(echo) = self.client_rounds.get_mut(&round) {
            echo.retry = Some(Retry {
                stream: frame.stream(),
                at: frame.at(),
                text: retry,
                own,
                replies: Vec::new(),
                records: Vec::new(),
            });
        }
        for key in unanswered {
            self.drop_question(key, Ending::CallEnded);
        }
        for (key, reply) in answers {
            self.client_answered(key, reply);
        }
        if !answered.is_empty() {
            self.begin_delivery(answered);
        }
        ClientForward::Handled
    }

    /// Answers of the retry cannot be used: the client is asked the round again with the reasons, a few times.
    #[expect(
        clippy::too_many_arguments,
        reason = "a frame, where it came from, and what was read of it"
    )]
    fn round_again(
        &mut self,
        frame: ClientFrame<'_>,
        round: RoundId,
        asked: &[AskId],
        wrong: Vec<(AskId, Box<ErrorResponse>, String)>,
        binding: &CallBinding,
    ) -> ClientForward {
        for (key, refusal, reason) in wrong {
            let question = self.asks.get_mut(key);
            if !question.is_some_and(|question| question.was_wrong(reason)) {
                for key in asked {
                    self.drop_question(*key, Ending::ClientFailed);
                }
                return self.reject(frame, &refusal);
            }
        }
        let (mut records, mut reasons) = (Vec::new(), Vec::new());
        for question in asked.iter().filter_map(|key| self.asks.get(*key)) {
            records.extend(Some(question.entry.clone()).zip(question.record.clone()));
            reasons.extend(Some(question.entry.clone()).zip(question.reason.clone()));
        }
        let number = self.next_state();
        let id = frame.id();
        let sent = self.client_rounds.get(&round).and_then(|echo| {
            let server = Some(echo.server.clone());
            let state = self.state_for(frame.at(), binding, number, records, server)?;
            let again = with_reasons(&with_state(&echo.text, &state)?, &reasons)?;
            Some((with_id(&again, &id?), state))
        });
        let Some((again, state)) = sent else {
            let why = "the question cannot be asked again";
            return self.reject(frame, &ErrorResponse::new(-32603, why));
        };
        if let Some(echo) = self.client_rounds.get_mut(&round) {
            echo.state = Some(state);
        }
        self.tell_client(frame.stream(), again, true);
        ClientForward::Handled
    }

    /// Returns whether a retry waits for the answers of this round.
    pub(crate) fn client_round_is_back(&self, round: RoundId) -> bool {
        self.client_rounds
            .get(&round)
            .is_some_and(|echo| echo.retry.is_some())
    }

    /// A question of the round is no more.
    pub(crate) fn client_round_loses(&mut self, round: RoundId, question: AskId) {
        if let Some(echo) = self.client_rounds.get_mut(&round) {
            echo.open.retain(|known| *known != question);
            if echo.open.is_empty() && echo.retry.is_none() {
                self.client_rounds.remove(&round);
            }
        }
    }

    /// The answer to one of a retry's questions is out of the record; the retry goes on with its last.
    pub(crate) fn retry_goes_on(
        &mut self,
        round: RoundId,
        entry: &str,
        reply: String,
        record: Option<String>,
    ) {
        let Some(echo) = self.client_rounds.get_mut(&round) else {
            return;
        };
        let Some(retry) = echo.retry.as_mut() else {
            return;
        };
        retry.replies.push((entry.to_owned(), reply));
        retry.records.extend(record);
        if !echo.open.is_empty() {
            return;
        }
        let Some(mut retry) = self
            .client_rounds
            .remove(&round)
            .and_then(|echo| echo.retry)
        else {
            return;
        };
        let records = std::mem::take(&mut retry.records);
        let text = retry.changed().unwrap_or(retry.text);
        let carried = Carried {
            answers: None,
            delivery: self.deliveries.begin(records, None),
        };
        self.pass_on(retry.stream, retry.at, text, carried);
    }

    /// A retry that cannot go on since its answer was lost to another.
    pub(crate) fn retry_fails(&mut self, round: RoundId, refusal: &ErrorResponse) {
        let Some(echo) = self.client_rounds.get_mut(&round) else {
            return;
        };
        let retry = echo.retry.take();
        if echo.open.is_empty() {
            self.client_rounds.remove(&round);
        }
        if let Some(Retry { stream, text, .. }) = retry
            && let Some(index) = FrameIndex::at(text.as_bytes())
        {
            let frame = Frame::of_text(&text, &index);
            self.reject_on(stream, frame, refusal);
        }
    }
}

/// The round with another state; all else stays as the server wrote it.
fn with_state(text: &str, state: &str) -> Option<String> {
    let index = FrameIndex::at(text.as_bytes())?;
    let frame = Frame::of_text(text, &index);
    let result = members::Members::read(frame.result()?, "result").ok()?;
    let changed = result.with("requestState", Some(&members::raw_text(state)));
    let range = frame.range(FramePart::Result)?;
    Some(frame_edit::spliced(text, range, changed.get()))
}

/// The round with the reasons why its questions are asked again; all else stays as the server wrote it.
fn with_reasons(text: &str, reasons: &[(String, String)]) -> Option<String> {
    let index = FrameIndex::at(text.as_bytes())?;
    let frame = Frame::of_text(text, &index);
    let mut result = frame.result()?.to_owned();
    for (entry, reason) in reasons {
        let all = members::Members::read(&result, "result").ok()?;
        let requests = members::Members::read(all.get("inputRequests")?, "requests").ok()?;
        let request = members::Members::read(requests.get(entry)?, "request").ok()?;
        let params = members::Members::read(request.get("params")?, "params").ok()?;
        let message = message_again(&params.need_text("message").ok()?, reason);
        let params = params.with("message", Some(&members::raw_text(&message)));
        let request = request.with("params", Some(&params));
        let requests = requests.with(entry, Some(&request));
        let changed = all.with("inputRequests", Some(&requests));
        result = changed;
    }
    let range = frame.range(FramePart::Result)?;
    Some(frame_edit::spliced(text, range, result.get()))
}
