//! Frames from the server: passed on, or taken in when they ask.

use std::borrow::Cow;
use std::ops::Range;

use mcp_elicit_core::wire::members::Members;
use mcp_elicit_core::wire::{
    Cancelled, Complete, ElicitationMessage, Era, Id, Progress, Revision, WireError,
    frame as frame_index, members, message, method, pushed, rounds,
};
use serde_json::value::RawValue;

use super::frame::{self, Refusal};
use super::glance::{self, Glance, Unclear};
use super::handshake::Server;
use super::question::Origin;
use super::{CallKey, Door, Down, Effect, Ending, Relay, Timer, Timestamp};

/// The number of the server's requests, other than questions, that may wait for the client.
const REQUESTS: usize = 1_024;

const FORWARD_TO_SESSION: Down = Down::Forward {
    door: Door::SESSION,
    last: false,
};

impl Relay {
    pub(super) fn server_request(
        &mut self,
        now: Timestamp,
        via: Option<CallKey>,
        text: &str,
        glance: &Glance,
    ) -> Down {
        let method = glance.method.clone().map_or("", |range| &text[range]);
        let Some(id) = frame::id_of(text, glance) else {
            tracing::warn!(server = %self.settings.server, "dropped a request whose id is none");
            return Down::Taken;
        };
        if method == method::CREATE {
            self.pushed_question(now, via, &id, text, glance);
            return Down::Taken;
        }
        if self.client.era() == Some(Era::Rounds) {
            self.answer_for_rounds_client(&id, method);
            return Down::Taken;
        }
        if self.server_requests.len() >= REQUESTS {
            let why = "too many requests wait for the client";
            self.tell_server(Refusal::new(-32000, why).to_response(&id), None);
            return Down::Taken;
        }
        self.server_requests.insert(id);
        self.forward_beside(via)
    }

    /// A frame that is not passed on: the server hears it for a request, the client for the answer to its call.
    pub(super) fn server_defect(&mut self, now: Timestamp, bytes: &[u8], why: &str) -> Down {
        tracing::warn!(server = %self.settings.server, bytes = bytes.len(), %why, "a message of the server is not passed on");
        let Some(id) = frame_index::only_id(bytes) else {
            return Down::Taken;
        };
        if let Some(key) = self.calls.by_upstream(&id) {
            let why = format!(
                "the server {} gave an answer that is not passed on: {why}",
                self.shown_server()
            );
            self.fail(now, key, &Refusal::new(-32603, why));
        } else {
            self.tell_server(Refusal::new(-32600, why).to_response(&id), None);
        }
        Down::Taken
    }

    /// To the stream of the call it came with, or to the session's.
    pub(super) fn forward_beside(&self, via: Option<CallKey>) -> Down {
        let door = via
            .and_then(|key| self.calls.get(key))
            .and_then(|call| call.door);
        Down::Forward {
            door: door.unwrap_or(Door::SESSION),
            last: false,
        }
    }

    pub(super) fn server_notification(
        &mut self,
        now: Timestamp,
        via: Option<CallKey>,
        text: &str,
        glance: &Glance,
    ) -> Down {
        let method = glance.method.clone().map_or("", |range| &text[range]);
        let params = glance
            .params
            .as_ref()
            .and_then(|range| frame::raw_at(text, range));
        match (method, params) {
            (method::PROGRESS, Some(params)) => self.server_progresses(via, text, glance, params),
            (method::CANCELLED, Some(params)) => self.server_cancels(via, params),
            (method::COMPLETE, Some(params)) => self.visit_completed(now, via, params),
            ("notifications/message", _) => self.server_logs(via, text, glance),
            ("notifications/tools/list_changed", _) => {
                self.catalog.forget();
                self.forward_beside(via)
            }
            _ => self.forward_beside(via),
        }
    }

    /// Progress goes to the stream of its call, under the token that the client gave.
    fn server_progresses(
        &mut self,
        via: Option<CallKey>,
        text: &str,
        glance: &Glance,
        params: &RawValue,
    ) -> Down {
        let token = members::member(params, "progressToken").and_then(Id::read);
        let Some(key) = token
            .as_ref()
            .and_then(|token| self.calls.by_upstream_token(token))
        else {
            return self.forward_beside(via);
        };
        let Some(call) = self.calls.get_mut(key) else {
            return Down::Taken;
        };
        if let Ok(progress) = Progress::parse(params) {
            call.progress = progress.progress.as_f64().unwrap_or(call.progress);
        }
        // Nobody waits for a call that was handed back.
        let (Some(door), Some(wanted)) = (call.door, call.token.clone()) else {
            return Down::Taken;
        };
        if call.upstream_token.as_ref().map(Id::as_json) == Some(wanted.as_json()) {
            return Down::Forward { door, last: false };
        }
        let place = glance
            .params
            .as_ref()
            .and_then(|range| glance::member(text.as_bytes(), range, "progressToken"));
        if let Some(place) = place {
            self.tell_client(door, frame::spliced(text, &place, wanted.as_json()), false);
        }
        Down::Taken
    }

    /// The server takes back a question, or another request.
    fn server_cancels(&mut self, via: Option<CallKey>, params: &RawValue) -> Down {
        let id = Cancelled::parse(params)
            .ok()
            .and_then(|cancelled| cancelled.request_id);
        let Some(key) = id.as_ref().and_then(|id| self.questions.by_server_id(id)) else {
            if let Some(id) = &id {
                self.server_requests.remove(id);
            }
            return self.forward_beside(via);
        };
        self.drop_question(key, Ending::WithdrawnByServer);
        Down::Taken
    }

    pub(super) fn server_response(&mut self, now: Timestamp, text: &str, glance: &Glance) -> Down {
        let Some(id) = frame::id_of(text, glance) else {
            return FORWARD_TO_SESSION;
        };
        if let Some(down) = self.trial_answered(now, &id, text, glance) {
            return down;
        }
        let Some(key) = self.calls.by_upstream(&id) else {
            // An answer to a call that was given up: the client knows that id for another, or not at all.
            return Down::Taken;
        };
        match self.bearing(key, text, glance) {
            Some(ElicitationMessage::InputRequired) => self.asked_in_round(now, key, text, glance),
            Some(ElicitationMessage::UrlRequired) => self.visits_required(now, key, text, glance),
            Some(
                ElicitationMessage::Create
                | ElicitationMessage::Complete
                | ElicitationMessage::Task,
            )
            | None => self.finish(now, key, text, glance),
        }
    }

    /// Returns whether the response asks, told from two members and no more. Where two readers could see different things, what
    /// asks counts: it is read in full then, and refused if need be.
    fn bearing(&self, key: CallKey, text: &str, glance: &Glance) -> Option<ElicitationMessage> {
        self.calls.get(key)?.kind?;
        if let Some(error) = &glance.error
            && says(text, error, "code", wants_visits)
        {
            return Some(ElicitationMessage::UrlRequired);
        }
        let in_rounds = matches!(self.server, Server::Rounds { .. });
        let result = glance.result.as_ref().filter(|_| in_rounds)?;
        says(text, result, "resultType", asks).then_some(ElicitationMessage::InputRequired)
    }

    /// The server is done with a call: the client gets the answer, now or when it comes for it.
    pub(super) fn finish(
        &mut self,
        now: Timestamp,
        key: CallKey,
        text: &str,
        glance: &Glance,
    ) -> Down {
        self.calls.settle_upstream(key);
        self.turn_ends(key);
        self.end_questions_of(now, key, Ending::CallEnded);
        let Some(call) = self.calls.get_mut(key) else {
            return Down::Taken;
        };
        let Some(door) = call.door else {
            self.keep_result(now, key, text.to_owned());
            return Down::Taken;
        };
        if call.lists_tools
            && let Some(result) = glance.result.as_ref()
            && let Some(result) = frame::raw_at(text, result)
        {
            self.catalog.learn(result);
        }
        let same_id = call.client_id.as_json() == call.upstream_id.as_json();
        let client_id = call.client_id.clone();
        let translated = self.in_clients_era(key, text, glance);
        self.remove_call(key);
        match (translated, same_id) {
            (None, true) => Down::Forward { door, last: true },
            (translated, _) => {
                let frame = with_id(translated.as_deref().unwrap_or(text), &client_id);
                self.tell_client(door, frame, true);
                Down::Taken
            }
        }
    }

    /// The answer that a call brought while nobody waited goes to who waits now.
    pub(super) fn deliver_finished(&mut self, key: CallKey) {
        let Some((text, door, client_id)) = self
            .calls
            .get_mut(key)
            .and_then(|call| Some((call.finished.take()?, call.door?, call.client_id.clone())))
        else {
            return;
        };
        if let Some(glance) = Glance::at(text.as_bytes()) {
            let translated = self.in_clients_era(key, &text, &glance);
            let frame = with_id(translated.as_deref().unwrap_or(&text), &client_id);
            self.tell_client(door, frame, true);
        }
        self.remove_call(key);
    }

    /// The call ends with an error of the gateway's own.
    pub(super) fn fail(&mut self, now: Timestamp, key: CallKey, refusal: &Refusal) {
        self.end_questions_of(now, key, Ending::CallEnded);
        self.keep_undelivered(key);
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let frame = refusal.to_response(&call.client_id);
        if let Some(door) = call.door {
            self.remove_call(key);
            self.tell_client(door, frame, true);
            return;
        }
        self.calls.settle_upstream(key);
        if let Some(call) = self.calls.get_mut(key) {
            call.finished = Some(frame);
        }
        let at = now.after(self.settings.keep_results);
        self.at(at, Timer::Forget(key));
        self.drop_call(key);
    }

    pub(super) fn remove_call(&mut self, key: CallKey) -> Option<super::calls::Call> {
        self.keep_undelivered(key);
        let call = self.calls.remove(key)?;
        for state in &call.states {
            self.handles.remove(state);
        }
        if call.held.is_some() || call.door.is_none() {
            self.cancel_timers(|timer| {
                matches!(timer, Timer::Hold(call) | Timer::KeepAlive(call) | Timer::Again(call) | Timer::Forget(call) if *call == key)
            });
            self.following.remove(&key);
            self.unpark_call(key);
        }
        Some(call)
    }

    /// Answers that the call was to bring to the server, and will not, are kept for the next one.
    fn keep_undelivered(&mut self, key: CallKey) {
        let call = self.calls.get_mut(key);
        let records = call.map(|call| std::mem::take(&mut call.delivers));
        if let Some(records) = records.filter(|records| !records.is_empty()) {
            let why = "the call ended before it could be made again".to_owned();
            self.effects.push_back(Effect::Refused { records, why });
        }
    }

    /// Nobody came for what the call brought.
    pub(super) fn forget(&mut self, key: CallKey) {
        if self.remove_call(key).is_some() {
            self.drop_call(key);
        }
    }

    /// The server ended: every call that waits for it ends with a clear error, every question is withdrawn.
    pub(super) fn server_gone(&mut self, now: Timestamp, why: &str) {
        if self.ended_over_probe() {
            return;
        }
        tracing::warn!(server = %self.settings.server, %why, "the server has ended");
        self.refuse_opener(&format!(
            "the server {} ended before it answered: {why}",
            self.shown_server()
        ));
        self.keep_server_name();
        self.server = Server::Gone;
        self.refuse_waiting(&format!("has ended: {why}"));
        for key in self.questions.keys() {
            let echo = self
                .questions
                .get(key)
                .is_some_and(|question| matches!(question.origin, Origin::Echo { .. }));
            if !echo {
                self.drop_question(key, Ending::ServerGone);
            }
        }
        let refusal = Refusal::new(
            -32603,
            format!(
                "the server {} ended while it worked on this: {why}",
                self.shown_server()
            ),
        );
        for key in self.calls.keys(|call| call.finished.is_none()) {
            self.fail(now, key, &refusal);
        }
    }

    /// A request of the server that a client of the rounds era cannot be pushed.
    fn answer_for_rounds_client(&mut self, id: &Id, method: &str) {
        let frame = if method == "ping" {
            message::result(id, &members::raw_value(&serde_json::json!({})))
        } else {
            let why = format!(
                "the client speaks {}, which has no pushed `{method}`",
                Revision::V2026_07_28
            );
            Refusal::new(-32601, why).to_response(id)
        };
        self.tell_server(frame, None);
    }

    /// Forwards `complete` to a client that knows it.
    pub(super) fn forward_complete(
        &self,
        via: Option<CallKey>,
        complete: Option<Complete>,
    ) -> Down {
        match (self.client.era(), complete) {
            (Some(Era::Rounds), Some(_)) => Down::Taken,
            // 2025-06-18 has no url mode.
            (Some(Era::Pushed), Some(_)) if !self.client.has_url_mode() => Down::Taken,
            _ => self.forward_beside(via),
        }
    }
}

/// Returns whether this member of an object says so. Where two readers could see different values of it, it does if either could.
fn says(
    text: &str,
    object: &Range<usize>,
    member: &'static str,
    so: impl Fn(&str) -> bool,
) -> bool {
    match glance::sole_member(text.as_bytes(), object, member) {
        Ok(value) => value.is_some_and(|value| so(&text[value])),
        Err(Unclear) => match frame::raw_at(text, object).map(|raw| Members::read(raw, member)) {
            Some(Ok(all)) => all.get(member).is_some_and(|value| so(value.get())),
            Some(Err(WireError::Duplicate { .. })) => true,
            Some(Err(_)) | None => false,
        },
    }
}

/// Returns whether this code of an error wants links visited.
fn wants_visits(code: &str) -> bool {
    code.parse() == Ok(pushed::URL_REQUIRED_CODE)
}

/// Returns whether this `resultType` asks; a string may be written with escapes.
fn asks(kind: &str) -> bool {
    let kind = serde_json::from_str::<Cow<'_, str>>(kind);
    kind.is_ok_and(|kind| kind == rounds::INPUT_REQUIRED)
}

/// The response under another id.
pub(super) fn with_id(text: &str, id: &Id) -> String {
    let place = Glance::at(text.as_bytes()).and_then(|glance| glance.id);
    match place {
        Some(range) if text[range.clone()] != *id.as_json() => {
            frame::spliced(text, &range, id.as_json())
        }
        _ => text.to_owned(),
    }
}
