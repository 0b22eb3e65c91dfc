//! Frames from the server: passed on, or taken in when they ask.

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::wire::frame::{self, Frame, FrameIndex, FramePart};
use mcp_elicit_core::wire::members;
use mcp_elicit_core::wire::{
    Cancelled, ElicitationMessage, Id, Progress, Revision, WireError, method,
};
use serde_json::value::RawValue;

use crate::asking_frames::{
    asks_in_result, asks_in_rounds, begins_task, names_questions, resembles_question, wants_links,
};
use crate::era::Server;
use crate::frame_edit::{self, ErrorResponse};
use crate::from_client::OTHER_SPELLING;
use crate::parts::asks::Origin;
use crate::parts::calls::Call;
use crate::parts::past_calls::PastCalls;
use crate::{CallId, Effect, Ending, Relay, ServerForward, StreamId, Timer, Timestamp};

const FORWARD_TO_SESSION: ServerForward = ServerForward::AsIs {
    stream: StreamId::SESSION,
    last: false,
};

impl Relay {
    pub(crate) fn server_request(
        &mut self,
        now: Timestamp,
        via: Option<CallId>,
        frame: Frame<'_>,
    ) -> ServerForward {
        let method = frame.method().unwrap_or_default();
        let Some(id) = frame.id() else {
            tracing::warn!(server = %self.settings.server, "dropped a request with an invalid id");
            return ServerForward::Handled;
        };
        if method == method::CREATE {
            self.pushed_question(now, via, &id, frame);
            return ServerForward::Handled;
        }
        let is_judged = self.settings.decisions.is_some();
        if method::is_like_create(method) || (is_judged && names_questions(frame)) {
            // A client that is not strict may take it for a question, which nobody has checked.
            let refusal = ErrorResponse::new(-32601, OTHER_SPELLING);
            self.effects.tell_server(refusal.to_response(&id), None);
            return ServerForward::Handled;
        }
        if self.answer_for_client(&id, method) {
            return ServerForward::Handled;
        }
        if self.server_requests.is_full() {
            let why = "too many requests wait for the client";
            self.effects
                .tell_server(ErrorResponse::new(-32000, why).to_response(&id), None);
            return ServerForward::Handled;
        }
        let other = self.other_id_at_client(&id);
        let shown = other.clone().unwrap_or_else(|| id.clone());
        self.server_requests.open(shown, id);
        match other {
            None => self.forward_in_session(via),
            Some(other) => {
                self.tell_in_session(via, frame_edit::with_id(frame.text(), &other));
                ServerForward::Handled
            }
        }
    }

    /// Tells the client this on the stream of the call it came with, or on the session's.
    fn tell_in_session(&mut self, via: Option<CallId>, frame: String) {
        let ServerForward::AsIs { stream, last } = self.forward_in_session(via) else {
            return;
        };
        self.effects.tell_client(stream, frame, last);
    }

    /// A frame that is not passed on: the server hears it for a request, the client for the answer to its call.
    pub(crate) fn server_defect(
        &mut self,
        now: Timestamp,
        bytes: &[u8],
        why: &str,
    ) -> ServerForward {
        tracing::warn!(server = %self.settings.server, bytes = bytes.len(), %why, "a message of the server is not passed on");
        let Some(id) = frame::only_id(bytes) else {
            return ServerForward::Handled;
        };
        if frame::has_method(bytes) {
            // A request of the server, whose ids are its own.
            self.effects
                .tell_server(ErrorResponse::new(-32600, why).to_response(&id), None);
        } else if let Some(probe) = self.probe_ended(&id) {
            self.opening_ids.answered(&id);
            let forward = self.probe_refused(now, probe, None);
            self.flush_waiting(now);
            return forward;
        } else if self.listing_ended(now, &id) {
            // Rules go on with what is known of the tools.
        } else if let Some(key) = self.calls.by_upstream(&id) {
            let why = format!(
                "the server {} gave an answer that is not passed on: {why}",
                self.shown_server()
            );
            self.calls.end_upstream(key);
            self.fail(now, key, &ErrorResponse::new(-32603, why));
        } else {
            self.effects
                .tell_server(ErrorResponse::new(-32600, why).to_response(&id), None);
        }
        self.next_turns(now);
        ServerForward::Handled
    }

    /// To the stream of the call it came with, or to the session's.
    pub(crate) fn forward_in_session(&self, via: Option<CallId>) -> ServerForward {
        let stream = via
            .and_then(|key| self.calls.get(key))
            .and_then(Call::stream);
        ServerForward::AsIs {
            stream: stream.unwrap_or(StreamId::SESSION),
            last: false,
        }
    }

    pub(crate) fn server_notification(
        &mut self,
        now: Timestamp,
        via: Option<CallId>,
        frame: Frame<'_>,
    ) -> ServerForward {
        let method = frame.method().unwrap_or_default();
        let params = frame.params();
        if self.settings.is_of_foreign_task(frame) {
            tracing::debug!(server = %self.settings.server, "a notification about a task of another caller is not passed on");
            return ServerForward::Handled;
        }
        if self.settings.decisions.is_some() && names_questions(frame) {
            return match params {
                Some(params)
                    if frame.sole_member(FramePart::Params, "inputRequests") != Ok(None) =>
                {
                    self.task_status(now, via, params)
                }
                Some(_) | None => {
                    tracing::warn!(server = %self.settings.server, "dropped a notification that nearly asks");
                    ServerForward::Handled
                }
            };
        }
        match (method, params) {
            (method::PROGRESS, Some(params)) => self.server_progresses(via, frame, params),
            (method::CANCELLED, Some(params)) => self.server_cancels(via, params),
            (method::COMPLETE, Some(params)) => self.url_completed(now, via, params),
            (method::TASK_STATUS, Some(params)) => self.task_status(now, via, params),
            ("notifications/message", _) => self.server_logs(via, frame),
            ("notifications/tools/list_changed", _) => {
                self.catalog.forget();
                self.forward_in_session(via)
            }
            _ if resembles_question(method) => {
                // A client that is not strict may take it for a question, which nobody has checked.
                tracing::warn!(server = %self.settings.server, "dropped a notification that is nearly a question");
                ServerForward::Handled
            }
            _ => self.forward_in_session(via),
        }
    }

    /// The status of a task is not passed on where its questions are not the caller's.
    fn task_status(
        &mut self,
        now: Timestamp,
        via: Option<CallId>,
        params: &RawValue,
    ) -> ServerForward {
        if self.judge_status(now, params).is_ok() {
            return self.forward_in_session(via);
        }
        tracing::warn!(server = %self.settings.server, "the status of a task is not passed on, since its questions are not the caller's");
        ServerForward::Handled
    }

    /// Progress goes to the stream of its call, under the token that the client gave.
    fn server_progresses(
        &mut self,
        via: Option<CallId>,
        frame: Frame<'_>,
        params: &RawValue,
    ) -> ServerForward {
        let token = members::member(params, "progressToken").and_then(Id::read);
        let Some(key) = token
            .as_ref()
            .and_then(|token| self.calls.by_upstream_token(token))
        else {
            return self.forward_in_session(via);
        };
        let Some(call) = self.calls.get_mut(key) else {
            return ServerForward::Handled;
        };
        if let Ok(progress) = Progress::parse(params) {
            call.progress_mut().note(progress.progress.as_f64());
        }
        // Nobody waits for a call that was handed back.
        let (Some(stream), Some(wanted)) = (call.stream(), call.progress().token().cloned()) else {
            return ServerForward::Handled;
        };
        if call.progress().upstream_token().map(Id::as_json) == Some(wanted.as_json()) {
            return ServerForward::AsIs {
                stream,
                last: false,
            };
        }
        if let Some(place) = frame.member_range(FramePart::Params, "progressToken") {
            self.effects.tell_client(
                stream,
                frame_edit::spliced(frame.text(), &place, wanted.as_json()),
                false,
            );
        }
        ServerForward::Handled
    }

    /// The server takes back a question, or another request.
    fn server_cancels(&mut self, via: Option<CallId>, params: &RawValue) -> ServerForward {
        let Ok(Cancelled {
            request_id: Some(id),
            reason,
        }) = Cancelled::parse(params)
        else {
            return self.forward_in_session(via);
        };
        if let Some(key) = self.asks.by_server_id(&id) {
            self.drop_question(key, Ending::WithdrawnByServer);
            return ServerForward::Handled;
        }
        match self.server_requests.cancelled(&id) {
            Some(shown) if shown != id => {
                let request_id = Some(shown);
                let notice = Cancelled { request_id, reason };
                self.tell_in_session(via, notice.to_message());
                ServerForward::Handled
            }
            // The client may know a question, or another request, by the id of one that has ended.
            None if !self.is_free_at_client(&id) => ServerForward::Handled,
            Some(_) | None => self.forward_in_session(via),
        }
    }

    pub(crate) fn server_response(&mut self, now: Timestamp, frame: Frame<'_>) -> ServerForward {
        let Some(id) = frame.id() else {
            if self.settings.decisions.is_some() {
                // It answers no request, so that no rule can judge what it may ask.
                tracing::warn!(server = %self.settings.server, "dropped a response with an invalid id");
                return ServerForward::Handled;
            }
            return FORWARD_TO_SESSION;
        };
        self.opening_ids.answered(&id);
        if let Some(down) = self.probe_answered(now, &id, frame) {
            return down;
        }
        if self.tools_listed(now, &id, frame) {
            return ServerForward::Handled;
        }
        let Some(key) = self.calls.by_upstream(&id) else {
            // An answer to a call that was given up: the client knows that id for another, or not at all.
            self.past_calls.answered(&id);
            return ServerForward::Handled;
        };
        if self.is_of_other_revision(frame) {
            let refusal = self.other_revision();
            self.calls.end_upstream(key);
            self.fail(now, key, &refusal);
            return ServerForward::Handled;
        }
        let judged = self.judge_task(now, key, frame);
        if let Err(refusal) = judged.and_then(|()| self.judge_links(now, key, frame)) {
            self.calls.end_upstream(key);
            self.fail(now, key, &refusal);
            return ServerForward::Handled;
        }
        self.note_task_owner(key, frame);
        match self.own_tasks(key, frame) {
            Ok(None) => {}
            Ok(Some(text)) => return self.finish_with(now, key, text),
            Err(refusal) => {
                self.calls.end_upstream(key);
                self.fail(now, key, &refusal);
                return ServerForward::Handled;
            }
        }
        match self.elicitation_in(key, frame) {
            Some(ElicitationMessage::InputRequired) => self.asked_in_round(now, key, frame),
            Some(ElicitationMessage::UrlRequired) => self.urls_required(now, key, frame),
            Some(
                ElicitationMessage::Create
                | ElicitationMessage::Complete
                | ElicitationMessage::Task,
            )
            | None => self.finish(now, key, frame),
        }
    }

    /// Returns whether a server with which a session was opened answers in the form of 2026-07-28: that it asks, or has begun a task which
    /// may. Nobody agreed on that revision, so neither the client nor the gateway would treat it as it is meant.
    fn is_of_other_revision(&self, frame: Frame<'_>) -> bool {
        self.server.must_not_ask_in_results() && asks_in_rounds(frame)
    }

    /// The refusal of what a server says in a revision that was not agreed on.
    pub(crate) fn other_revision(&self) -> ErrorResponse {
        tracing::warn!(server = %self.settings.server, "the server asks in the words of a revision that was not agreed on");
        let server = self.shown_server();
        let revision = self.server.revision_or_latest();
        let why = format!(
            "the server {server} answers in a revision that was not agreed on: {revision} was, and this is a form of {}",
            Revision::V2026_07_28
        );
        ErrorResponse::new(-32603, why)
    }

    /// Returns whether the response asks, told from two members and no more. Where two readers could see different things, what
    /// asks counts: it is read in full then, and refused if need be.
    pub(crate) fn elicitation_in(
        &self,
        key: CallId,
        frame: Frame<'_>,
    ) -> Option<ElicitationMessage> {
        self.calls.get(key)?.kind()?;
        if wants_links(frame, self.settings.decisions.is_some()) {
            return Some(ElicitationMessage::UrlRequired);
        }
        let may_ask = self.server.may_ask_in_results();
        (may_ask && asks_in_result(frame)).then_some(ElicitationMessage::InputRequired)
    }

    /// Returns what the server needs before the call can go on, read out of its answer; the round is counted. `None` when the
    /// call has ended over it.
    pub(crate) fn next_round<T>(
        &mut self,
        now: Timestamp,
        key: CallId,
        part: Option<&RawValue>,
        read: impl FnOnce(&RawValue) -> Result<T, WireError>,
    ) -> Option<T> {
        self.calls.end_upstream(key);
        let revision = self.server.revision_or_latest();
        let required = match part.map(read) {
            Some(Ok(required)) => required,
            Some(Err(defect)) => {
                let refusal = ErrorResponse::fault(PeerFault::from(defect), revision);
                self.fail(now, key, &refusal);
                return None;
            }
            None => {
                self.fail(now, key, &unreadable());
                return None;
            }
        };
        let most = self.settings.rounds;
        if let Err(fault) = self.calls.get_mut(key)?.rounds_mut().begin_round(most) {
            self.fail(now, key, &ErrorResponse::fault(fault, revision));
            return None;
        }
        Some(required)
    }

    /// The server is done with a call: the client gets the answer, now or when it comes for it.
    pub(crate) fn finish(
        &mut self,
        now: Timestamp,
        key: CallId,
        frame: Frame<'_>,
    ) -> ServerForward {
        if let Some(text) = self.approvals.added_to(key, frame) {
            self.approvals.forget(key);
            return self.finish_with(now, key, text);
        }
        self.calls.end_upstream(key);
        if self.became_task(key, frame) {
            self.remember_task(key, frame);
        }
        self.turn_ends(key);
        self.end_questions_of(now, key, Ending::CallEnded);
        let Some(call) = self.calls.get_mut(key) else {
            return ServerForward::Handled;
        };
        let Some(stream) = call.stream() else {
            self.keep_result(now, key, frame.text().to_owned());
            return ServerForward::Handled;
        };
        let lists_tools = call.lists_tools();
        if lists_tools && let Some(result) = frame.result() {
            self.learn_tools(result);
        }
        let Some(call) = self.calls.get(key) else {
            return ServerForward::Handled;
        };
        let same_id = call.client_id().as_json() == call.upstream_id().as_json();
        let client_id = call.client_id().clone();
        let translated = self.in_clients_era(key, frame);
        self.remove_call(key);
        match (translated, same_id) {
            (None, true) => ServerForward::AsIs { stream, last: true },
            (translated, _) => {
                let frame =
                    frame_edit::with_id(translated.as_deref().unwrap_or(frame.text()), &client_id);
                self.effects.tell_client(stream, frame, true);
                ServerForward::Handled
            }
        }
    }

    /// The server is done with a call, and the client gets this text for its answer.
    fn finish_with(&mut self, now: Timestamp, key: CallId, text: String) -> ServerForward {
        if let Some(index) = FrameIndex::at(text.as_bytes())
            && let ServerForward::AsIs { stream, last } =
                self.finish(now, key, Frame::of_text(&text, &index))
        {
            self.effects.tell_client(stream, text, last);
        }
        ServerForward::Handled
    }

    /// The answer that a call brought while nobody waited goes to who waits now.
    pub(crate) fn deliver_finished(&mut self, key: CallId) {
        let Some((text, stream, client_id)) = self.calls.get_mut(key).and_then(Call::take_finished)
        else {
            return;
        };
        if let Some(index) = FrameIndex::at(text.as_bytes()) {
            let translated = self.in_clients_era(key, Frame::of_text(&text, &index));
            let frame = frame_edit::with_id(translated.as_deref().unwrap_or(&text), &client_id);
            self.effects.tell_client(stream, frame, true);
        }
        self.remove_call(key);
    }

    /// The call ends with an error of the gateway's own.
    pub(crate) fn fail(&mut self, now: Timestamp, key: CallId, refusal: &ErrorResponse) {
        self.end_questions_of(now, key, Ending::CallEnded);
        self.keep_undelivered(key);
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let frame = refusal.to_response(call.client_id());
        if let Some(stream) = call.stream() {
            self.remove_call(key);
            self.effects.tell_client(stream, frame, true);
            return;
        }
        self.remember_given_up(key);
        self.calls.end_upstream(key);
        self.finish_unattended(key, frame);
        let at = now.after(self.settings.keep_results);
        self.timers.set(at, Timer::DropUnattended(key));
        self.effects.push(Effect::DropCall { call: key });
    }

    /// Returns whether the response says that the call goes on as a task of 2025-11-25, whose questions are pushed.
    fn became_task(&self, key: CallId, frame: Frame<'_>) -> bool {
        let may_ask = |call: &Call| call.kind().is_some();
        self.settings.decisions.is_some()
            && self.server.pushes_questions_of_tasks()
            && self.calls.get(key).is_some_and(may_ask)
            && begins_task(frame)
    }

    pub(crate) fn remove_call(&mut self, key: CallId) -> Option<Call> {
        self.keep_undelivered(key);
        self.remember_given_up(key);
        let approval = self.approvals.forget(key);
        self.undelivered_approval(approval);
        let call = self.calls.remove(key)?;
        self.turns.queue_mut().remove(key);
        self.round_states.remove_call(key);
        if self.holds.end(key, &mut self.timers) || call.stream().is_none() {
            self.timers.cancel_call(key);
            self.unattended.end_following(key);
            self.unattended.remove(key);
        }
        Some(call)
    }

    /// Answers that the call was to bring to the server, and will not, are kept for the next one.
    fn keep_undelivered(&mut self, key: CallId) {
        let call = self.calls.get_mut(key);
        let records = call.map(|call| call.rounds_mut().take_deliveries());
        if let Some(records) = records.filter(|records| !records.is_empty()) {
            let why = "the call ended before it could be made again".to_owned();
            self.effects.push(Effect::DeliveryRefused { records, why });
        }
    }

    /// Nobody came for what the call brought.
    pub(crate) fn drop_unattended(&mut self, now: Timestamp, key: CallId) {
        self.end_questions_of(now, key, Ending::CallEnded);
        if self.remove_call(key).is_some() {
            self.effects.push(Effect::DropCall { call: key });
        }
    }

    /// The server ended: every call that waits for it ends with a clear error, every question is withdrawn.
    pub(crate) fn server_gone(&mut self, now: Timestamp, why: &str) {
        if self.ended_over_probe() {
            return;
        }
        tracing::warn!(server = %self.settings.server, %why, "the server has ended");
        self.reject_opening(&format!(
            "the server {} ended before it answered: {why}",
            self.shown_server()
        ));
        self.keep_server_name();
        self.server = Server::gone();
        self.reject_waiting(&format!("has ended: {why}"));
        for key in self.asks.keys() {
            let question = self.asks.get(key);
            let is_clients = question
                .is_some_and(|question| matches!(question.origin(), Origin::PassedRound { .. }));
            if !is_clients {
                self.drop_question(key, Ending::ServerGone);
            }
        }
        let refusal = ErrorResponse::new(
            -32603,
            format!(
                "the server {} ended while it worked on this: {why}",
                self.shown_server()
            ),
        );
        for key in self.calls.keys(|call| !call.is_finished()) {
            self.fail(now, key, &refusal);
        }
        self.past_calls = PastCalls::default();
    }

    /// Forwards `notifications/elicitation/complete` to a client that knows it; `is_whole` where the notification can be read.
    pub(crate) fn forward_complete(&self, via: Option<CallId>, is_whole: bool) -> ServerForward {
        if is_whole && !self.client.knows_completion() {
            return ServerForward::Handled;
        }
        self.forward_in_session(via)
    }
}

/// The refusal of a response that is not JSON.
pub(crate) fn unreadable() -> ErrorResponse {
    ErrorResponse::new(-32603, "the server gave an answer that is not JSON")
}
