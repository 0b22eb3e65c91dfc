//! Clients of the rounds era (2026-07-28): the declarations of each of their requests, the questions in
//! `input_required`, and the contents of their retries.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::{
    Capability, Id, InputRequest, InputRequired, InputResponses, Meta, Revision, members, message,
    meta, method,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::negotiation::with_declared;
use super::peer_info::{bounded_capabilities, bounded_info};
use super::pushed_client::in_revision;
use super::{Client, Server};
use crate::frame_edit::{ErrorResponse, Splice};
use crate::parts::asks::UnusableReply;
use crate::parts::calls::Call;
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::request_state::StateClaims;
use crate::parts::server_round::Round;
use crate::{AskId, AskedVia, Audience, CallId, CallKind, Relay, Timer, Timestamp};

const REVISION: Revision = Revision::V2026_07_28;

/// The time that a client has for responses that need no person, such as its roots.
const AT_CLIENT: Duration = Duration::from_secs(10 * 60);

/// A client of this era, as its last request described it.
pub(super) struct RoundsClient {
    /// `clientInfo` of its first request, JSON.
    info: Option<Arc<str>>,
    /// `clientCapabilities`, JSON.
    capabilities: String,
    /// `true` if they have no mode of questions.
    shows_no_question: bool,
}

impl RoundsClient {
    /// Creates a client whose request has this `_meta`.
    pub(super) fn new(meta: &Meta<'_>) -> Self {
        let capabilities = meta.client_capabilities().map_or("{}", RawValue::get);
        Self {
            info: meta
                .client_info()
                .map(|info| bounded_info(info.get()).into()),
            capabilities: bounded_capabilities(capabilities),
            shows_no_question: meta.capability(REVISION).is_none(),
        }
    }

    /// Returns `true` if it declared no mode of questions when it described itself last.
    pub(super) fn shows_no_question(&self) -> bool {
        self.shows_no_question
    }

    /// Returns `clientInfo` of its first request as JSON.
    pub(super) fn info(&self) -> Option<&str> {
        self.info.as_deref()
    }

    /// Returns `clientInfo` of this request as JSON: other clients of the caller may share the session.
    pub(super) fn info_in(&self, frame: Frame<'_>) -> Option<Arc<str>> {
        let named = frame.member(FramePart::Meta, meta::CLIENT_INFO)?;
        let known = self.info.as_ref().filter(|known| ***known == *named);
        Some(known.map_or_else(|| bounded_info(named).into(), Arc::clone))
    }

    /// Returns `clientCapabilities` as JSON.
    pub(super) fn capabilities(&self) -> &str {
        &self.capabilities
    }

    /// Returns the capabilities of this client in a session that the gateway opens for it: pushed requests that are not
    /// questions do not reach it.
    pub(super) fn in_session(mut capabilities: Value) -> Value {
        if let Some(all) = capabilities.as_object_mut() {
            all.retain(|name, _| !matches!(name.as_str(), "sampling" | "roots" | "tasks"));
        }
        capabilities
    }
}

/// The rules of this era's clients.
impl Client {
    /// Returns `true` for a client whose first request may be any: it describes itself (2026-07-28, `_meta` of each
    /// request).
    pub(crate) fn needs_no_opening(&self) -> bool {
        self.answers_with_retries()
    }

    /// Returns `true` for a client that is asked in the result of a call, under a key, and answers by making that call
    /// again (2026-07-28, multi round-trip requests). It is never asked outside a call.
    pub(crate) fn is_asked_in_results(&self) -> bool {
        self.answers_with_retries()
    }

    /// Returns `true` for a client that gives a request up by closing the stream of its response (2026-07-28,
    /// transports).
    pub(crate) fn cancels_by_closing_stream(&self) -> bool {
        self.answers_with_retries()
    }

    /// Returns `true` for a client that gets the log messages of a request only from the level that the request names
    /// (2026-07-28, logging).
    pub(crate) fn has_log_level_per_request(&self) -> bool {
        self.answers_with_retries()
    }

    /// Returns the answer to a request of the server, in place of a client that gets no pushed requests (2026-07-28,
    /// changelog); `None` for any other client.
    pub(crate) fn answer_instead(&self, id: &Id, method: &str) -> Option<String> {
        if !self.answers_with_retries() {
            return None;
        }
        if method == "ping" {
            return Some(message::result(id, &members::raw_value(&json!({}))));
        }
        let why = format!("the client speaks {REVISION}, which has no pushed `{method}`");
        Some(ErrorResponse::new(-32601, why).to_response(id))
    }

    /// Returns the change of the server's answer to a call of this kind to the form of the client's era; `None` if the
    /// client may have it unchanged.
    pub(crate) fn in_own_era(
        &self,
        server: &Server,
        kind: Option<CallKind>,
        frame: Frame<'_>,
    ) -> Option<Splice> {
        if !self.answers_with_retries() || !server.pushes_questions() {
            return None;
        }
        let range = frame.range(FramePart::Result)?;
        let text = frame.text();
        if text.as_bytes()[range.start] != b'{' {
            // It is not a result of this protocol, so nothing can be added to it.
            return None;
        }
        if frame
            .member_range(FramePart::Result, "resultType")
            .is_some()
        {
            return None;
        }
        let cacheable =
            frame.member_range(FramePart::Result, "ttlMs").is_none() && is_cacheable(kind, frame);
        let stamp = if cacheable {
            r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#
        } else {
            r#""resultType":"complete""#
        };
        Some(Splice::first(text, range, stamp))
    }
}

/// Returns `true` if the answer to a call of this kind must state how long it may be cached, as lists and resources do
/// (2026-07-28, CacheableResult).
fn is_cacheable(kind: Option<CallKind>, frame: Frame<'_>) -> bool {
    let lists = ["tools", "prompts", "resources", "resourceTemplates"];
    kind == Some(CallKind::Resource)
        || lists
            .iter()
            .any(|name| frame.member_range(FramePart::Result, name).is_some())
}

/// Returns the modes that a request declares in its `_meta`.
pub(crate) fn declared_in(frame: Frame<'_>) -> Capability {
    let declared = frame.member(FramePart::Meta, meta::CLIENT_CAPABILITIES);
    declared.map_or(Capability::NONE, capability_in)
}

/// Returns the modes that a request declares in its `_meta`, and the request with the capability that the gateway adds
/// for this audience.
pub(super) fn declared_with_own(
    frame: Frame<'_>,
    audience: Audience,
) -> (Capability, Option<IndexedFrame>) {
    let Some(range) = frame.member_range(FramePart::Meta, meta::CLIENT_CAPABILITIES) else {
        return (Capability::NONE, None);
    };
    let declared = &frame.text()[range.clone()];
    let changed = with_declared(audience, declared, REVISION);
    let changed = changed.map(|value| Splice::new(range, value.get()));
    (
        capability_in(declared),
        changed.map(|splice| IndexedFrame::changed(frame, &[splice])),
    )
}

fn capability_in(declared: &str) -> Capability {
    let all = serde_json::from_str(declared).unwrap_or_default();
    Capability::from_client(&all, REVISION)
}

impl Relay {
    /// Takes a rounds client's responses to the requests that are not questions.
    pub(crate) fn others_of_round(
        &mut self,
        now: Timestamp,
        key: CallId,
        responses: &InputResponses,
        claims: &StateClaims,
    ) {
        if let Some(round) = self.calls.get_mut(key).and_then(|call| call.round_mut()) {
            round.answer_others(responses, |entry| claims.has_other(entry));
        }
        self.collect_round(now, key);
    }

    /// Sends a rounds client its open requests: an `input_required` under a state of the gateway's own.
    pub(crate) fn present_round(&mut self, now: Timestamp, key: CallId) {
        if !self.client.answers_with_retries() {
            return;
        }
        let Some((stream, client_id)) = self
            .calls
            .get(key)
            .and_then(|call| Some((call.stream()?, call.client_id().clone())))
        else {
            // A client that is gone is asked when it makes the call again.
            return;
        };
        let mut questions = Vec::new();
        for question in self.questions_for_client(key) {
            let Some(known) = self.asks.get(question) else {
                continue;
            };
            if known.is_recording() {
                return;
            }
            if known.is_open() {
                questions.push(question);
            }
        }
        let round = self.calls.get(key).and_then(Call::round);
        let others = round.map(Round::others_for_client).unwrap_or_default();
        if questions.is_empty() && others.is_empty() {
            return;
        }
        let Some((round, result)) = self.round_for_client(now, key, &questions, others) else {
            let why = "the questions of this call cannot be put into `input_required`";
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return;
        };
        for question in &questions {
            if let Some(question) = self.asks.get_mut(*question) {
                question.shown_in_round(now);
            }
        }
        if let Some(call) = self.calls.get_mut(key) {
            call.rounds_mut()
                .present(round.requests.unwrap_or_default());
            call.recount();
        }
        if let Some(state) = round.state {
            self.round_states.present(state, key);
        }
        // The same call made again from its first round finds these questions.
        self.leave_unattended(now, key);
        self.end_at_client(now, key);
        self.effects
            .tell_client(stream, message::result(&client_id, &result), true);
    }

    /// Sets the end of a call whose client has a round without a question that could end it.
    pub(super) fn end_at_client(&mut self, now: Timestamp, key: CallId) {
        let is_open = |question: &AskId| {
            self.asks
                .get(*question)
                .is_some_and(|ask| !ask.has_answer())
        };
        let waits = |call: &Call| {
            call.stream().is_none()
                && call.round().is_some_and(Round::waits_for_others)
                && !call.asks().iter().any(is_open)
        };
        if self.calls.get(key).is_some_and(waits) {
            let at = now.after(AT_CLIENT.min(self.settings.open_for));
            self.timers.cancel(Timer::DropUnattended(key));
            self.timers.set(at, Timer::DropUnattended(key));
        }
    }

    /// Returns a round with these questions and other requests under a new state, and the result that has it; `None` if
    /// one of the questions cannot be asked there.
    fn round_for_client(
        &mut self,
        now: Timestamp,
        key: CallId,
        questions: &[AskId],
        others: Vec<(String, InputRequest)>,
    ) -> Option<(InputRequired, Box<RawValue>)> {
        let mut requests = others;
        let other = |(entry, _): &(String, InputRequest)| StateClaims::other(entry.clone());
        let mut asked: Vec<(String, String)> = requests.iter().map(other).collect();
        for question in questions {
            let question = self.asks.get(*question)?;
            asked.push(question.entry_and_record()?);
            let request = in_revision(question, REVISION)?;
            let params = request.to_raw_params(REVISION).ok()?;
            let params = question.unknown().added_to(&params)?;
            let request = format!(
                r#"{{"method":"{}","params":{}}}"#,
                method::CREATE,
                params.get()
            );
            requests.push((
                question.entry().to_owned(),
                InputRequest::Other {
                    method: method::CREATE.to_owned(),
                    raw: RawValue::from_string(request).ok()?,
                },
            ));
        }
        let number = self.round_states.next_number();
        let round = InputRequired {
            requests: Some(requests),
            state: Some(self.sealed_state(now, key, number, asked, None)?),
        };
        let result = round.to_result().ok()?;
        Some((round, result))
    }

    /// Returns the questions of a call that its client is to answer.
    pub(crate) fn questions_for_client(&self, key: CallId) -> Vec<AskId> {
        let Some(call) = self.calls.get(key) else {
            return Vec::new();
        };
        let for_client = |question: &&AskId| {
            self.asks
                .get(**question)
                .is_some_and(|question| question.via() == AskedVia::Client)
        };
        call.asks().iter().filter(for_client).copied().collect()
    }

    /// Returns the open questions of a call that the client was asked under this state.
    pub(crate) fn asked_in_round_of(&self, key: CallId, claims: &StateClaims) -> Vec<AskId> {
        let mut questions = self.questions_for_client(key);
        questions.retain(|question| {
            let known = self.asks.get(*question);
            known.filter(|known| known.is_open()).is_some_and(|known| {
                let record = known.record();
                record.is_some_and(|record| claims.asks(known.entry(), record))
            })
        });
        questions
    }

    /// Returns the answers in a retry to the questions under its state, each checked.
    pub(crate) fn answers_of_round(
        &self,
        key: CallId,
        responses: &InputResponses,
        claims: &StateClaims,
    ) -> Vec<(AskId, Result<Outcome, UnusableReply>)> {
        let mut answers = Vec::new();
        for question in self.asked_in_round_of(key, claims) {
            let Some(known) = self.asks.get(question) else {
                continue;
            };
            let reply = known.reply_in(known.entry(), responses, REVISION);
            answers.extend(reply.transpose().map(|reply| (question, reply)));
        }
        answers
    }

    /// Updates a call that continues with this request: its progress token, and the client's description of itself.
    pub(crate) fn learn_from_retry(&mut self, key: CallId, frame: Frame<'_>) {
        let Ok(meta) = Meta::from_params(frame.params()) else {
            // What the request before it said still counts.
            return;
        };
        let capability = meta.capability(REVISION);
        let rounds = self.client.answers_with_retries();
        if let Some(call) = self.calls.get_mut(key) {
            call.made_again(meta.progress_token(), rounds.then_some(capability));
        }
    }
}
