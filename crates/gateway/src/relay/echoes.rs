//! Rounds that a client of the rounds era has as the server wrote them, and the retries that answer them.
//!
//! A retry is told by the server's `requestState` and by what it calls: a server may give every call the same state.
//! Whoever answers first is heard: where that was a page of the inbox, the retry goes on with that answer.

use std::collections::HashMap;

use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::wire::{Envelope, InputRequired, InputResponses, members};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls;
use super::frame::{self, Refusal};
use super::glance::Glance;
use super::question::{AtClient, EchoKey, Origin, Step};
use super::{CallKey, CallKind, Door, Down, Ending, Moment, QuestionKey, Relay, Up};

/// A round that the client has as the server wrote it.
pub(super) struct Echo {
    state: String,
    /// What is called, as a digest: the retry calls the same.
    digest: Option<String>,
    /// Its questions that nobody has taken an answer of.
    open: Vec<QuestionKey>,
    /// The retry that waits for its answers to be recorded; then it goes on as it came.
    retry: Option<Retry>,
}

struct Retry {
    door: Door,
    text: String,
    /// What the client answered, as the record would have it, by the keys of the round.
    own: HashMap<String, Value>,
    /// What the record has for it, by the keys of the round.
    replies: Vec<(String, String)>,
}

impl Retry {
    /// What the record has that the client did not answer itself.
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
        let mut responses = InputResponses::of_params(params).ok()?.unwrap_or_default();
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
    pub(super) fn echo_round(
        &mut self,
        now: Moment,
        key: CallKey,
        required: &InputRequired,
        text: &str,
    ) -> Down {
        let asks = required.questions().next().is_some();
        let Some(state) = required.state.clone().filter(|_| asks) else {
            // Nothing to record: the client and the server settle it.
            let Some(glance) = Glance::at(text.as_bytes()) else {
                return Down::Taken;
            };
            return self.finish(now, key, text, &glance);
        };
        let digest = self
            .calls
            .get_mut(key)
            .and_then(|call| Some(call.calling()?.digest.clone()));
        self.last_echo += 1;
        let round = EchoKey(self.last_echo);
        self.echoes.insert(
            round,
            Echo {
                state,
                digest,
                open: Vec::new(),
                retry: None,
            },
        );
        for (entry, request) in required.questions() {
            let origin = Origin::Echo {
                entry: entry.to_owned(),
                round,
            };
            match self.raise(now, key.into(), origin, request.clone(), None) {
                Ok(question) => {
                    if let Some(echo) = self.echoes.get_mut(&round) {
                        echo.open.push(question);
                    }
                }
                Err(refusal) => {
                    self.fail(now, key, &refusal);
                    self.echoes.remove(&round);
                    return Down::Taken;
                }
            }
        }
        if let Some(call) = self.calls.get_mut(key) {
            call.demand = Some(text.to_owned());
        }
        Down::Taken
    }

    /// A question of a round that the client gets as it is has been written; with the last one the round goes out.
    pub(super) fn echo_recorded(&mut self, now: Moment, key: CallKey) {
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let questions = call.questions.clone();
        let waits = |question: &QuestionKey| {
            self.questions
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
        for question in questions {
            if let Some(question) = self.questions.get_mut(question) {
                question.at_client = Some(AtClient::Round);
                question.call = None;
            }
        }
        if let Some(glance) = Glance::at(text.as_bytes())
            && let Down::Forward { door, last } = self.finish(now, key, &text, &glance)
        {
            self.tell_client(door, text, last);
        }
    }

    /// The client retries a call whose questions went to it as the server wrote them.
    pub(super) fn echo_returns(
        &mut self,
        door: Door,
        text: &str,
        glance: &Glance,
        kind: CallKind,
        state: &str,
    ) -> Option<Up> {
        let round = self.echo_of(kind, text, state)?;
        let asked = self.echoes.get(&round)?.open.clone();
        let params = glance
            .params
            .as_ref()
            .and_then(|range| frame::raw_at(text, range))?;
        let responses = InputResponses::of_params(params).ok()?.unwrap_or_default();
        let mut answers = Vec::new();
        let mut answered = Vec::new();
        let mut unanswered = Vec::new();
        let mut own = HashMap::new();
        for key in asked {
            let Some(question) = self.questions.get(key) else {
                continue;
            };
            let Origin::Echo { entry, .. } = question.origin.clone() else {
                continue;
            };
            if question.step == Step::Settled {
                answered.push(key);
                continue;
            }
            match self.answer_for(key, &entry, &responses) {
                Ok(Some(reply)) => {
                    let content = reply.answers().map(Answers::to_value);
                    let action = Value::from(reply.action().as_str());
                    own.insert(entry, plain(&action, &content.unwrap_or_default()));
                    answers.push((key, reply));
                }
                Ok(None) => unanswered.push(key),
                Err(refusal) => return Some(self.refuse(door, text, glance, &refusal)),
            }
        }
        if answers.is_empty() && answered.is_empty() {
            return None;
        }
        self.echoes.get_mut(&round)?.retry = Some(Retry {
            door,
            text: text.to_owned(),
            own,
            replies: Vec::new(),
        });
        for key in unanswered {
            self.drop_question(key, Ending::CallEnded);
        }
        for (key, reply) in answers {
            self.client_settles(key, reply);
        }
        if !answered.is_empty() {
            self.take_answers(answered);
        }
        Some(Up::Taken)
    }

    /// The oldest round under this state that was not answered yet: one of the same call, or the only one there is.
    fn echo_of(&self, kind: CallKind, text: &str, state: &str) -> Option<EchoKey> {
        let digest = calls::calling(kind, text)
            .ok()
            .map(|calling| calling.digest);
        let sent = |echo: &Echo| {
            echo.open.iter().all(|key| {
                self.questions
                    .get(*key)
                    .is_some_and(|question| question.at_client == Some(AtClient::Round))
            })
        };
        let waits = |echo: &Echo| echo.state == state && echo.retry.is_none() && sent(echo);
        let mut found = self.echoes.iter().filter(|(_, echo)| waits(echo));
        let same = |(_, echo): &(&EchoKey, &Echo)| echo.digest == digest;
        if let Some((round, _)) = found.clone().find(same) {
            return Some(*round);
        }
        let (round, _) = found.next()?;
        found.next().is_none().then_some(*round)
    }

    /// Whether a retry waits for the answers of this round.
    pub(super) fn echo_is_back(&self, round: EchoKey) -> bool {
        self.echoes
            .get(&round)
            .is_some_and(|echo| echo.retry.is_some())
    }

    /// A question of the round is no more.
    pub(super) fn echo_loses(&mut self, round: EchoKey, question: QuestionKey) {
        if let Some(echo) = self.echoes.get_mut(&round) {
            echo.open.retain(|known| *known != question);
            if echo.open.is_empty() && echo.retry.is_none() {
                self.echoes.remove(&round);
            }
        }
    }

    /// The answer to one of a retry's questions is out of the record; the retry goes on with its last.
    pub(super) fn retry_goes_on(&mut self, round: EchoKey, entry: &str, reply: String) {
        let Some(echo) = self.echoes.get_mut(&round) else {
            return;
        };
        let Some(retry) = echo.retry.as_mut() else {
            return;
        };
        retry.replies.push((entry.to_owned(), reply));
        if !echo.open.is_empty() {
            return;
        }
        let Some(retry) = self.echoes.remove(&round).and_then(|echo| echo.retry) else {
            return;
        };
        let text = retry.changed().unwrap_or(retry.text);
        let door = retry.door;
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
    pub(super) fn retry_fails(&mut self, round: EchoKey, refusal: &Refusal) {
        let Some(echo) = self.echoes.get_mut(&round) else {
            return;
        };
        let retry = echo.retry.take();
        if echo.open.is_empty() {
            self.echoes.remove(&round);
        }
        if let Some(Retry { door, text, .. }) = retry
            && let Some(glance) = Glance::at(text.as_bytes())
        {
            self.refuse(door, &text, &glance, refusal);
        }
    }
}
