//! Repeated calls: the retry of a round with its answers, and a call that is made again.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::wire::{Frame, FramePart, InputResponses, Mode, members};

use crate::call_start::Carried;
use crate::era::declared_in;
use crate::frame_edit::{self, ErrorResponse};
use crate::not_a_person::Attempt;
use crate::parts::asks::{Ask, UnusableReply};
use crate::parts::calls::{self, Call};
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::request_state::{CallBinding, ServerState, StateClaims, StateDefect};
use crate::parts::retry_answers::RetryAnswers;
use crate::{
    AskId, CallId, CallKind, ClientForward, ClientFrame, Effect, Ending, Relay, StreamId, Timestamp,
};

/// The most answers of a retry.
const RESPONSES: usize = 1_024;

impl Relay {
    /// Continues with something that the gateway holds, if the request refers to it: a round at the client, a question
    /// that it answers now, or a call that was handed back.
    pub(crate) fn resume_or_find(
        &mut self,
        frame: ClientFrame<'_>,
        kind: CallKind,
    ) -> Option<ClientForward> {
        let index = frame.index();
        if index.request_state.is_some() || index.input_responses.is_some() {
            return Some(match self.client.refusal_of_answers() {
                Some(refusal) => self.effects.reject(frame, &refusal),
                None => self.retry_comes(frame, kind),
            });
        }
        let looks_up = self.unattended.is_in_record() && !frame.is_looked_up();
        if self.unattended.is_empty() {
            self.leave_given_up(frame, kind);
        }
        if self.unattended.is_empty() && !looks_up {
            return None;
        }
        let digest = calls::summary(kind, *frame).ok()?.digest;
        let mut call = self.unattended_call(frame, &digest);
        if call.is_none() {
            self.leave_given_up(frame, kind);
            call = self.unattended_call(frame, &digest);
        }
        if let Some(call) = call {
            if self.has_other_proof(call, frame)
                && let Err(forward) = self.admit(frame, kind)
            {
                return Some(forward);
            }
            if let Some(refused) = self.refuse_made_again(frame, kind, call) {
                return Some(refused);
            }
            self.unattended.remove(call);
            if self.repeats_rounds(call) {
                self.leave_unattended(frame.at(), call);
                self.present_again(call, 0, frame);
            } else {
                self.resume(call, frame);
            }
            return Some(ClientForward::Handled);
        }
        if !looks_up {
            return None;
        }
        self.look_up(frame, kind, digest)
    }

    /// Returns `true` if a call that waits was made with another proof than this request, with which the rules may decide
    /// differently.
    fn has_other_proof(&self, call: CallId, frame: ClientFrame<'_>) -> bool {
        let made_with = self.calls.get(call).and_then(Call::proof);
        made_with.is_some_and(|proof| proof != frame.stream().proof())
    }

    /// Returns the call of this digest that no client waits for, and that the client of this frame can continue.
    fn unattended_call(&self, frame: ClientFrame<'_>, digest: &str) -> Option<CallId> {
        let capability = declared_in(*frame);
        let fits = |call: &CallId| self.can_go_on(*call, |mode| capability.has(mode));
        self.unattended.of(digest).find(fits)
    }

    /// Returns `true` if a client that can be asked in these modes can continue this call, whose open questions are
    /// asked there again.
    fn can_go_on(&self, call: CallId, modes: impl Fn(Mode) -> bool) -> bool {
        if !self.client.is_asked_in_results() {
            return true;
        }
        self.questions_for_client(call).iter().all(|question| {
            self.asks
                .get(*question)
                .is_none_or(|question| modes(question.request().mode()))
        })
    }

    /// Handles a client's retry of a call. Its state may be one that this gateway sealed.
    fn retry_comes(&mut self, frame: ClientFrame<'_>, kind: CallKind) -> ClientForward {
        let Some(state) = frame.index().request_state.clone() else {
            return self.reject_state(frame, StateDefect::Missing);
        };
        let Ok(state) = serde_json::from_str::<String>(&frame.text()[state]) else {
            return self.reject_state(frame, StateDefect::NotText);
        };
        let binding = CallBinding::of_frame(kind, *frame);
        let claims = match self.round_states.open(&binding, &state, frame.at()) {
            Ok(claims) => claims,
            Err(defect) => return self.reject_state(frame, defect),
        };
        let params = frame.params();
        let Some(Ok(responses)) = params.map(InputResponses::from_params) else {
            let why = "`inputResponses` must be an object with each key once";
            return self.effects.reject(frame, &ErrorResponse::new(-32602, why));
        };
        let responses = responses.unwrap_or_default();
        if responses.keys().nth(RESPONSES).is_some() {
            let why = format!("`inputResponses` has too many members: {RESPONSES} are allowed");
            return self.effects.reject(frame, &ErrorResponse::new(-32602, why));
        }
        match claims.server() {
            // If rounds are now held here, no passed round may continue.
            Some(server) if !self.settings.holds_rounds() => {
                self.client_round_retried(frame, &state, &claims, server, &responses, &binding)
            }
            Some(_) => self.starts_anew(frame, &state, &claims, responses),
            None => self.own_round_returns(frame, &state, &claims, responses),
        }
    }

    fn reject_state(&mut self, frame: ClientFrame<'_>, why: StateDefect) -> ClientForward {
        tracing::info!(server = %self.settings.server, %why, "a `requestState` was refused");
        self.effects
            .reject(frame, &ErrorResponse::new(-32602, why.to_string()))
    }

    /// Handles a client's retry of a round of the gateway's own.
    fn own_round_returns(
        &mut self,
        frame: ClientFrame<'_>,
        state: &str,
        claims: &StateClaims,
        responses: InputResponses,
    ) -> ClientForward {
        let waits = |key: &CallId| {
            self.calls
                .get(*key)
                .is_some_and(|call| call.stream().is_none())
        };
        let Some(key) = self.round_states.call(state).filter(waits) else {
            return self.starts_anew(frame, state, claims, responses);
        };
        if let Err(fault) = self.calls.budget().check_gain() {
            return self.effects.reject(frame, &fault.refusal());
        }
        if self.has_other_proof(key, frame) {
            let Some(first) = with_server_state(*frame, None, true) else {
                return self.reject_state(frame, StateDefect::Foreign);
            };
            if !self.admit_first(frame, &first) {
                return ClientForward::Handled;
            }
        }
        if let Some(repeated) = claims.repeated() {
            let call = self.calls.get(key);
            if !call.is_some_and(|call| call.rounds().repeats_answers(repeated, &responses)) {
                return self.starts_anew(frame, state, claims, responses);
            }
            self.round_states.use_up(state);
            if !self.present_again(key, repeated, frame) {
                self.unattended.remove(key);
                self.resume(key, frame);
            }
            return ClientForward::Handled;
        }
        let sorted = match self.sorted_answers(frame, key, &responses, claims) {
            Ok(sorted) => sorted,
            Err(refusal) => return self.effects.reject(frame, &refusal),
        };
        if let Some(refusal) = self.refuse_undeclared(frame, key, |ask| sorted.settles(*ask)) {
            return self.effects.reject(frame, &refusal);
        }
        self.round_states.use_up(state);
        if !responses.is_empty()
            && let Some(call) = self.calls.get_mut(key)
        {
            call.rounds_mut().answer_presented(&responses);
            call.recount();
        }
        let SortedAnswers {
            right,
            failed,
            moves,
        } = sorted;
        for (question, outcome) in right {
            let ask = self.asks.get(question);
            let reply = ask.and_then(|ask| ask.reply_in_retry(&outcome, &responses));
            self.asks
                .client_answered(question, outcome, reply, &mut self.effects);
        }
        for (question, refusal) in failed {
            self.question_fails(frame.at(), question, Ending::ClientFailed, &refusal);
        }
        for (question, why) in moves {
            if !matches!(why, NotAPerson::TooFast { .. })
                && let Some(call) = self.calls.get_mut(key)
            {
                call.ask_people();
            }
            self.move_to_people(frame.at(), question, why);
        }
        self.others_of_round(frame.at(), key, &responses, claims);
        self.unattended.remove(key);
        self.resume(key, frame);
        ClientForward::Handled
    }

    /// Sorts the answers in the retry of a round. `Err` if the retry is refused; the round is unchanged then.
    fn sorted_answers(
        &mut self,
        frame: ClientFrame<'_>,
        key: CallId,
        responses: &InputResponses,
        claims: &StateClaims,
    ) -> Result<SortedAnswers, Box<ErrorResponse>> {
        let mut sorted = SortedAnswers::default();
        let answers = self.answers_of_round(key, responses, claims);
        if answers.is_empty() {
            let asked = self.asked_in_round_of(key, claims);
            self.missing(&asked, &mut sorted.moves);
        }
        for (question, answer) in answers {
            let act = match &answer {
                Ok(outcome) => Some(outcome.action()),
                Err(UnusableReply::Wrong { act, .. }) => Some(*act),
                Err(UnusableReply::Malformed(_)) => None,
            };
            if act.is_some_and(|act| self.is_moved(frame, question, act, &mut sorted.moves)) {
                continue;
            }
            let (unusable, refusal) = match answer {
                Ok(outcome) => {
                    sorted.right.push((question, outcome));
                    continue;
                }
                Err(UnusableReply::Malformed(_)) if self.can_be_moved(question) => {
                    sorted.moves.push((question, NotAPerson::Malformed));
                    continue;
                }
                Err(UnusableReply::Malformed(refusal)) => return Err(refusal),
                Err(UnusableReply::Wrong {
                    refusal, answer, ..
                }) => (answer, refusal),
            };
            match self.unusable(question, unusable) {
                Attempt::Again => {}
                Attempt::Moves(why) => sorted.moves.push((question, why)),
                Attempt::Over => sorted.failed.push((question, refusal)),
            }
        }
        Ok(sorted)
    }

    /// Returns the refusal of a retry that would be asked again, besides the questions that it answers, in a mode that
    /// it does not declare. The round is unchanged.
    fn refuse_undeclared(
        &self,
        frame: ClientFrame<'_>,
        key: CallId,
        is_answered: impl Fn(&AskId) -> bool,
    ) -> Option<ErrorResponse> {
        let declared = declared_in(*frame);
        let questions = self.questions_for_client(key);
        let left = questions.iter().filter(|question| !is_answered(question));
        let mut left = left.filter_map(|question| self.asks.get(*question));
        let undeclared = |ask: &&Ask| ask.is_open() && !declared.has(ask.request().mode());
        let mode = left.find(undeclared)?.request().mode();
        let fault = PeerFault::CapabilityMissing { mode, declared };
        Some(ErrorResponse::fault(fault, self.client.revision()))
    }

    /// Restarts a call that is not in progress here: after a restart, or since another gateway has it. Its questions are taken
    /// over, and find the retry's answers.
    pub(crate) fn starts_anew(
        &mut self,
        frame: ClientFrame<'_>,
        state: &str,
        claims: &StateClaims,
        responses: InputResponses,
    ) -> ClientForward {
        let Some(first) = with_server_state(*frame, None, true) else {
            return self.reject_state(frame, StateDefect::Foreign);
        };
        if let Err(fault) = self.calls.budget().check() {
            // Its state is valid for another attempt.
            return self.effects.reject(frame, &fault.refusal());
        }
        self.round_states.use_up(state);
        let records = claims.records();
        if !records.is_empty() {
            for ask in self.asks.of_records(&records) {
                self.leave_to_retry(frame.at(), ask);
            }
            self.effects.push(Effect::ClientReturned { records });
        }
        // A call that starts has to be admitted, even if it was admitted before.
        if !self.admit_first(frame, &first) {
            return ClientForward::Handled;
        }
        let after = self.round_states.age(claims, frame.at());
        let answers = RetryAnswers::new(
            responses,
            claims.asked().to_vec(),
            frame.to_indexed(),
            after,
        )
        .with_earlier(claims.carried());
        let carried = Carried::answers(answers);
        self.pass_on(frame.stream(), frame.at(), first, carried)
    }

    /// Asks for the operator's decision about the call of a retry, whose first request had this text. Returns `false` if
    /// it may not proceed now.
    fn admit_first(&mut self, frame: ClientFrame<'_>, first: &IndexedFrame) -> bool {
        let again = ClientFrame::of_indexed(first, frame.stream(), frame.at());
        let kind = again.method().and_then(CallKind::of_method);
        let Some(Err(forward)) = kind.map(|kind| self.admit(again, kind)) else {
            return true;
        };
        if let ClientForward::AsIs(call) = forward {
            let first = first.text().to_owned();
            self.effects.send_to_server(first, call, None);
        }
        false
    }

    /// Uses the client's answer to this question from before a restart of the gateway, or from another gateway, if the
    /// question is exactly that of the record. If no person gave it, people are asked.
    pub(crate) fn uses_retry_answer(&mut self, now: Timestamp, key: AskId, call: CallId) -> bool {
        let Some(question) = self.asks.get(key) else {
            return false;
        };
        let made = self.calls.get(call);
        let Some((retry_answers, made)) =
            made.and_then(|call| Some((call.rounds().retry_answers()?, call.frame()?)))
        else {
            return false;
        };
        let (entry, record) = (question.entry(), question.record());
        let Some(responses) = retry_answers.to(entry, record) else {
            return false;
        };
        let answer = match question.reply_in(entry, responses, self.client.revision()) {
            Ok(Some(outcome)) => {
                let (act, after) = (outcome.action(), retry_answers.after());
                let doubt = self.client.doubts_retry(made.frame(), act, Some(after));
                let reply = question.reply_in_retry(&outcome, responses);
                Ok((outcome, reply, doubt))
            }
            Err(UnusableReply::Wrong { answer, .. }) => Err(Some(answer)),
            Ok(None) | Err(UnusableReply::Malformed(_)) => Err(None),
        };
        if let Some(record) = record.map(str::to_owned)
            && let Some(call) = self.calls.get_mut(call)
        {
            call.rounds_mut().retry_answer_used(&record);
        }
        match answer {
            Ok((_, _, Some(why))) if self.can_be_moved(key) => {
                self.move_to_people(now, key, why);
                true
            }
            Ok((outcome, reply, doubt)) => {
                if let Some(why) = doubt {
                    self.tell_doubt(key, why);
                }
                self.asks
                    .client_answered(key, outcome, reply, &mut self.effects);
                true
            }
            Err(wrong) => {
                if let (Some(wrong), Some(question)) = (wrong, self.asks.get_mut(key)) {
                    question.was_wrong(wrong);
                }
                false
            }
        }
    }

    /// Sends a changed request of a rounds client to the server.
    pub(crate) fn pass_on(
        &mut self,
        stream: StreamId,
        at: Timestamp,
        request: IndexedFrame,
        carried: Carried,
    ) -> ClientForward {
        let delivery = carried.delivery_id();
        let frame = ClientFrame::of_indexed(&request, stream, at);
        let method = frame.method().unwrap_or_default();
        let forward = self.translate_request(frame, method, carried);
        if let ClientForward::AsIs(call) = forward {
            self.effects
                .send_to_server(request.into_text(), call, delivery);
        }
        ClientForward::Handled
    }

    /// Returns a state for this call, whose round asks these questions.
    pub(crate) fn sealed_state(
        &self,
        now: Timestamp,
        key: CallId,
        number: u64,
        asked: Vec<(String, String)>,
        server: Option<ServerState>,
    ) -> Option<String> {
        let call = self.calls.get(key);
        let answers = call.and_then(|call| call.rounds().retry_answers());
        let carried = answers.map(RetryAnswers::unused).unwrap_or_default();
        let seal = |binding: &CallBinding| {
            self.round_states
                .seal_asking(now, binding, number, asked, carried, server)
        };
        if let Some(binding) = self.approvals.binding_of(key) {
            return seal(binding);
        }
        let call = call?;
        seal(&CallBinding::of_frame(call.kind()?, call.frame()?.frame()))
    }
}

/// The answers in the retry of a round.
#[derive(Default)]
struct SortedAnswers {
    /// Usable answers.
    right: Vec<(AskId, Outcome)>,
    /// Questions that fail, with the error for the server.
    failed: Vec<(AskId, Box<ErrorResponse>)>,
    /// Questions that no person answered at the client.
    moves: Vec<(AskId, NotAPerson)>,
}

impl SortedAnswers {
    /// Returns `true` if the client is not asked this question again.
    fn settles(&self, ask: AskId) -> bool {
        self.right.iter().any(|(answered, _)| *answered == ask)
            || self.moves.iter().any(|(moved, _)| *moved == ask)
    }
}

/// Returns the request with the server's state in place of the gateway's; `first` also removes the answers.
pub(crate) fn with_server_state(
    frame: Frame<'_>,
    state: Option<&str>,
    first: bool,
) -> Option<IndexedFrame> {
    let state = state.map(members::raw_text);
    let mut changed = members::Members::read(frame.params()?, "params")
        .ok()?
        .with("requestState", state.as_deref());
    if first {
        changed = members::Members::read(&changed, "params")
            .ok()?
            .with("inputResponses", None);
    }
    let range = frame.range(FramePart::Params)?;
    IndexedFrame::read(frame_edit::spliced(frame.text(), range, changed.get())).ok()
}
