//! Calls that come back: the retry of a round with its answers, and a call that is made again.

use data_encoding::HEXLOWER;
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::question::outcome_json;
use mcp_elicit_core::wire::call_frame::canonical;
use mcp_elicit_core::wire::{
    ElicitRequest, Envelope, Era, Id, InputRequired, InputResponses, Mode, members, rounds,
};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::calls::{self, Call};
use super::frame::{self, Refusal};
use super::glance::Glance;
use super::question::{BadReply, Origin, OwnReply};
use super::request_state::{CallBinding, ServerState, StateClaims, StateDefect};
use super::{CallKey, CallKind, Door, Ending, QuestionKey, Relay, Timestamp, Up};

/// The number of used states that are remembered.
const SPENT: usize = 4_096;

/// The answers that a retry brought for a call that no longer runs, which starts anew.
pub(super) struct Brought {
    responses: InputResponses,
    /// The questions under the retry's state: keys with the records of the questions.
    asked: Vec<(String, String)>,
}

impl Relay {
    /// Returns whether this state is of a round that a call of this relay waits with, or waited.
    pub(super) fn knows_state(&self, state: &str) -> bool {
        self.handles.contains_key(state) || self.spent.iter().any(|known| known == state)
    }

    /// Returns whether the request goes on with something the gateway holds: a round that the client was sent, a question
    /// that it answers now, or a call that was handed back.
    pub(super) fn resumes(
        &mut self,
        now: Timestamp,
        door: Door,
        text: &str,
        glance: &Glance,
        kind: CallKind,
    ) -> Option<Up> {
        if self.client.era() == Some(Era::Rounds)
            && (glance.request_state.is_some() || glance.input_responses.is_some())
        {
            return Some(self.retry_comes(now, door, text, glance, kind));
        }
        if self.parked.is_empty() && !self.finds_calls {
            return None;
        }
        let digest = calls::calling(kind, text).ok()?.digest;
        let (capability, _) = self.rounds_capability(text, glance);
        let call = self.unpark(&digest, |relay, call| {
            relay.can_go_on(call, |mode| capability.has(mode))
        });
        if let Some(call) = call {
            if self.repeats_rounds(call) {
                self.leave_at_client(call);
                self.present_again(call, 0, door, glance, text);
            } else {
                self.resume(now, call, door, text, glance);
            }
            return Some(Up::Taken);
        }
        self.finds_calls.then(|| self.find_call(door, text, digest))
    }

    /// Returns whether a client that can be asked in these modes can take up this call: what waits for it is asked there again.
    fn can_go_on(&self, call: CallKey, modes: impl Fn(Mode) -> bool) -> bool {
        if self.client.era() != Some(Era::Rounds) {
            return true;
        }
        self.questions_for_client(call).iter().all(|question| {
            self.questions
                .get(*question)
                .is_none_or(|question| modes(question.request.mode()))
        })
    }

    /// The client retries a call under a state that this gateway sealed for it, or under none of its own.
    fn retry_comes(
        &mut self,
        now: Timestamp,
        door: Door,
        text: &str,
        glance: &Glance,
        kind: CallKind,
    ) -> Up {
        let state = glance.request_state.clone();
        let state = state.and_then(|range| serde_json::from_str::<String>(&text[range]).ok());
        let binding = CallBinding::of_frame(kind, text);
        let claims = state
            .as_deref()
            .ok_or(StateDefect::Foreign)
            .and_then(|state| self.seal.open(&binding, state, now));
        let (state, claims) = match (state, claims) {
            (Some(state), Ok(claims)) if !self.spent.contains(&state) => (state, claims),
            (_, Ok(_)) => return self.refuse_state(door, text, glance, StateDefect::Used),
            (_, Err(defect)) => return self.refuse_state(door, text, glance, defect),
        };
        let params = glance
            .params
            .as_ref()
            .and_then(|range| frame::raw_at(text, range));
        let Some(Ok(responses)) = params.map(InputResponses::from_params) else {
            let why = "`inputResponses` must be an object with each key once";
            return self.refuse(door, text, glance, &Refusal::new(-32602, why));
        };
        let responses = responses.unwrap_or_default();
        match &claims.server {
            Some(server) => {
                let server = server.clone();
                self.echo_returns(
                    door, text, glance, &state, &claims, &server, &responses, &binding,
                )
            }
            None => self.own_round_returns(now, door, text, glance, state, claims, responses),
        }
    }

    fn refuse_state(&mut self, door: Door, text: &str, glance: &Glance, why: StateDefect) -> Up {
        tracing::info!(server = %self.settings.server, %why, "a `requestState` was refused");
        self.refuse(door, text, glance, &Refusal::new(-32602, why.to_string()))
    }

    /// The state was used: it opens nothing any more.
    pub(super) fn spend(&mut self, state: String) {
        if self.spent.len() >= SPENT {
            self.spent.pop_front();
        }
        self.spent.push_back(state);
    }

    /// The client retries a call that the gateway sent back to it with questions of its own.
    #[expect(
        clippy::too_many_arguments,
        reason = "a frame, where it came from, and what was read of it"
    )]
    fn own_round_returns(
        &mut self,
        now: Timestamp,
        door: Door,
        text: &str,
        glance: &Glance,
        state: String,
        claims: StateClaims,
        responses: InputResponses,
    ) -> Up {
        let waits = |key: &&CallKey| {
            self.calls
                .get(**key)
                .is_some_and(|call| call.door.is_none())
        };
        let Some(&key) = self.handles.get(&state).filter(waits) else {
            return self.starts_anew(door, text, glance, state, claims, responses);
        };
        if let Some(repeated) = claims.repeated {
            if !self.repeats_answers(key, repeated, &responses) {
                return self.starts_anew(door, text, glance, state, claims, responses);
            }
            self.handles.remove(&state);
            self.spend(state);
            if !self.present_again(key, repeated, door, glance, text) {
                self.unpark_call(key);
                self.resume(now, key, door, text, glance);
            }
            return Up::Taken;
        }
        let (mut right, mut wrong) = (Vec::new(), Vec::new());
        for (question, answer) in self.answers_of_round(key, &responses) {
            match answer {
                Ok(outcome) => right.push((question, outcome)),
                Err(BadReply::Malformed(refusal)) => {
                    return self.refuse(door, text, glance, &refusal);
                }
                Err(BadReply::Wrong { refusal, reason }) => wrong.push((question, refusal, reason)),
            }
        }
        self.handles.remove(&state);
        self.spend(state);
        self.note_answered_round(key, &responses);
        for (question, outcome) in right {
            self.keep_own_words(question, &outcome, &responses);
            self.client_settles(question, outcome);
        }
        for (question, refusal, reason) in wrong {
            let again = self.questions.get_mut(question);
            if !again.is_some_and(|question| question.was_wrong(reason)) {
                self.question_fails(now, question, Ending::ClientFailed, &refusal);
            }
        }
        self.others_of_round(now, key, &responses);
        self.unpark_call(key);
        self.resume(now, key, door, text, glance);
        Up::Taken
    }

    /// The call is not at work any more, as after a restart: it starts anew, and its questions find what the retry brings.
    fn starts_anew(
        &mut self,
        door: Door,
        text: &str,
        glance: &Glance,
        state: String,
        claims: StateClaims,
        responses: InputResponses,
    ) -> Up {
        let Some(first) = with_server_state(text, glance, None, true) else {
            return self.refuse_state(door, text, glance, StateDefect::Foreign);
        };
        self.spend(state);
        self.brought = Some(Brought {
            responses,
            asked: claims.asked,
        });
        self.pass_on(door, first)
    }

    /// The client has answered this question already, before the gateway was started anew: that answer counts, where the
    /// question is the very one of the record.
    pub(super) fn answers_what_was_brought(&mut self, key: QuestionKey, call: CallKey) -> bool {
        let Some(question) = self.questions.get(key) else {
            return false;
        };
        let Some(brought) = self.calls.get(call).and_then(|call| call.brought.as_ref()) else {
            return false;
        };
        let same = |(entry, record): &(String, String)| {
            *entry == question.entry && Some(record) == question.record.as_ref()
        };
        if !brought.asked.iter().any(same) {
            return false;
        }
        match self.answer_for(key, &question.entry, &brought.responses) {
            Ok(Some(outcome)) => {
                let responses = brought.responses.clone();
                self.keep_own_words(key, &outcome, &responses);
                self.client_settles(key, outcome);
                true
            }
            Err(BadReply::Wrong { reason, .. }) => {
                if let Some(question) = self.questions.get_mut(key) {
                    question.was_wrong(reason);
                }
                false
            }
            Ok(None) | Err(BadReply::Malformed(_)) => false,
        }
    }

    /// Keeps what a retry says to a question, for a server that may have it with all its members.
    fn keep_own_words(&mut self, key: QuestionKey, outcome: &Outcome, responses: &InputResponses) {
        let Some(question) = self.questions.get_mut(key) else {
            return;
        };
        let said = responses.get(&question.entry);
        // Content that means nothing is dropped.
        let meant = |said: &&RawValue| {
            outcome.answers().is_some() || members::member(said, "content").is_none()
        };
        question.own_reply = said.filter(meant).map(|said| OwnReply {
            frame: None,
            result: said.get().into(),
            recorded: outcome_json(outcome),
        });
    }

    /// A request of a rounds client goes to the server, not as it came.
    pub(super) fn pass_on(&mut self, door: Door, text: String) -> Up {
        let Some(glance) = Glance::at(text.as_bytes()) else {
            return Up::Taken;
        };
        let method = glance.method.clone().map_or("", |range| &text[range]);
        let up = if self
            .server
            .revision()
            .map(mcp_elicit_core::wire::Revision::era)
            == Some(Era::Pushed)
        {
            self.rounds_to_pushed(door, &text, &glance, method)
        } else {
            let kind = CallKind::of_method(method);
            let (capability, changed) = self.rounds_capability(&text, &glance);
            self.start(door, &text, &glance, kind, changed, capability)
        };
        if let Up::Forward(call) = up {
            self.tell_server(text, call);
        }
        Up::Taken
    }

    pub(super) fn next_state(&mut self) -> u64 {
        self.last_state += 1;
        self.last_state
    }

    /// A state for this call, whose round asks this.
    pub(super) fn sealed_state(
        &self,
        key: CallKey,
        number: u64,
        asked: Vec<(String, String)>,
        server: Option<ServerState>,
    ) -> Option<String> {
        let call = self.calls.get(key)?;
        let binding = CallBinding::of_frame(call.kind?, call.frame()?);
        self.state_for(&binding, number, asked, server)
    }

    /// A state for the call that is bound so.
    pub(super) fn state_for(
        &self,
        binding: &CallBinding,
        number: u64,
        asked: Vec<(String, String)>,
        server: Option<ServerState>,
    ) -> Option<String> {
        let claims = StateClaims {
            expires: self.now.after(self.settings.patience).as_millis(),
            number,
            asked,
            repeated: None,
            server,
        };
        self.seal.seal(binding, &claims)
    }

    /// The key of a question in `inputRequests`: the server's where it asks in rounds; else the same whenever the same
    /// call asks the same question, as often as it asked that before.
    pub(super) fn entry_of(
        &mut self,
        call: Option<CallKey>,
        origin: &Origin,
        request: &ElicitRequest,
    ) -> String {
        if let Origin::Round { entry } | Origin::Echo { entry, .. } = origin {
            return entry.clone();
        }
        let Some(call) = call.and_then(|call| self.calls.get_mut(call)) else {
            return String::new();
        };
        let mut hash = Sha256::new();
        let said = match request {
            ElicitRequest::Form { message, schema } => {
                let schema = canonical(schema.get()).unwrap_or_else(|_| schema.get().to_owned());
                ["form".to_owned(), message.clone(), schema]
            }
            ElicitRequest::Url { message, url, .. } => {
                ["url".to_owned(), message.clone(), url.clone()]
            }
        };
        for part in said {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let digest = HEXLOWER.encode(&hash.finalize()[..8]);
        let before = call.asked_keys.entry(digest.clone()).or_default();
        *before += 1;
        match before {
            1 => format!("ask-{digest}"),
            again => format!("ask-{digest}-{again}"),
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

/// The request with the state that the server gave instead of the gateway's; `first` also takes out the answers.
pub(super) fn with_server_state(
    text: &str,
    glance: &Glance,
    state: Option<&str>,
    first: bool,
) -> Option<String> {
    let params = frame::raw_at(text, glance.params.as_ref()?)?;
    let state = state.map(members::raw_text);
    let mut changed = members::Members::read(params, "params")
        .ok()?
        .with("requestState", state.as_deref());
    if first {
        changed = members::Members::read(&changed, "params")
            .ok()?
            .with("inputResponses", None);
    }
    Some(frame::spliced(text, glance.params.as_ref()?, changed.get()))
}
