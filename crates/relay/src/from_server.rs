//! Frames from the server: passed on, or handled here if they ask.

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::text::shortened;
use mcp_elicit_core::wire::frame::{self, Frame, FramePart};
use mcp_elicit_core::wire::members;
use mcp_elicit_core::wire::{
    Cancelled, ElicitationMessage, Id, ProgressNotification, WireError, method,
};
use serde_json::value::RawValue;

use crate::asking_frames::{elicitation_in, has_list, names_questions, resembles_question};
use crate::era::Server;
use crate::frame_edit::{self, ErrorResponse, Splice};
use crate::from_client::OTHER_SPELLING;
use crate::parts::asks::Origin;
use crate::parts::past_calls::PastCalls;
use crate::{CallId, Ending, Relay, ServerForward, StreamId, Timestamp};

const FORWARD_TO_SESSION: ServerForward = ServerForward::AsIs {
    stream: StreamId::SESSION,
    last: false,
};

/// The longest id of a server's request, in bytes of JSON: ids are remembered until the request is answered.
const MAX_ID: usize = 1_024;
/// The longest method that a log repeats, in characters.
const LONGEST_METHOD: usize = 60;

impl Relay {
    pub(crate) fn server_request(
        &mut self,
        now: Timestamp,
        via: Option<CallId>,
        frame: Frame<'_>,
    ) -> ServerForward {
        let method = frame.method().unwrap_or_default();
        let Some(id) = frame.id() else {
            // Nothing can be answered under such an id: the server gets an error, so that it need not wait.
            if let Some(left_out) = self.settings.reports.next(now) {
                let method = self.settings.masked(&shortened(method, LONGEST_METHOD));
                tracing::warn!(server = %self.settings.server, method, left_out, "refused a request of the server, whose id is not a string or a number");
            }
            let refusal = ErrorResponse::new(-32600, "a request's id must be a string or a number");
            self.effects.tell_server(refusal.to_unknown(), None);
            return ServerForward::Handled;
        };
        if id.as_json().len() > MAX_ID {
            if let Some(left_out) = self.settings.reports.next(now) {
                tracing::warn!(server = %self.settings.server, left_out, "refused a request of the server, whose id is too long");
            }
            let why = format!("a request's id may have {MAX_ID} bytes: this one is longer");
            let refusal = ErrorResponse::new(-32600, why);
            self.effects.tell_server(refusal.to_unknown(), None);
            return ServerForward::Handled;
        }
        if method == method::CREATE {
            // Once it is being disconnected, no answer would reach it.
            if !self.is_server_closing {
                self.pushed_question(now, via, &id, frame);
            }
            return ServerForward::Handled;
        }
        let is_judged = self.settings.decisions.is_some();
        if method::is_like_create(method) || (is_judged && names_questions(frame)) {
            // A lenient client may take it for a question that was not checked.
            let refusal = ErrorResponse::new(-32601, OTHER_SPELLING);
            self.effects.tell_server(refusal.to_response(&id), None);
            return ServerForward::Handled;
        }
        if let Some(answer) = self.client.answer_instead(&id, method) {
            self.effects.tell_server(answer, None);
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
            None => self.calls.forward_in_session(via),
            Some(other) => {
                self.tell_in_session(via, frame_edit::with_id(frame, &other));
                ServerForward::Handled
            }
        }
    }

    /// Sends this frame to the client on the stream of its call, or on the session's.
    fn tell_in_session(&mut self, via: Option<CallId>, frame: String) {
        let stream = self.calls.stream_in_session(via);
        self.effects.tell_client(stream, frame, false);
    }

    /// Handles a frame that is not passed on: the server gets an error for a request, the client for the answer to its
    /// call.
    pub(crate) fn server_defect(
        &mut self,
        now: Timestamp,
        bytes: &[u8],
        why: &str,
    ) -> ServerForward {
        if let Some(left_out) = self.settings.reports.next(now) {
            let shown = self.settings.masked(why);
            tracing::warn!(server = %self.settings.server, bytes = bytes.len(), why = %shown, left_out, "a message of the server is not passed on");
        }
        let Some(id) = frame::only_id(bytes) else {
            return ServerForward::Handled;
        };
        if frame::has_method(bytes) {
            // A request of the server, whose ids are its own.
            self.effects
                .tell_server(ErrorResponse::new(-32600, why).to_response(&id), None);
        } else if let Some((probe, step)) = self.probe_ended(&id) {
            self.opening_ids.answered(&id);
            return self.probe_refused(now, probe, step, None);
        } else if self.task_questions.awaits(&id) {
            self.task_answer_refused(&id, why);
        } else if self.tool_listing.awaits(&id) {
            // Rules continue with the known facts about the tools.
            self.end_listing(now);
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
        ServerForward::Handled
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
                    self.task_status(now, via, frame, params)
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
            (method::TASK_STATUS, Some(params)) => self.task_status(now, via, frame, params),
            ("notifications/message", _) => self.server_logs(via, frame),
            ("notifications/tools/list_changed", _) => {
                self.catalog.forget();
                self.calls.forward_in_session(via)
            }
            _ if resembles_question(method) => {
                // A lenient client may take it for a question that was not checked.
                tracing::warn!(server = %self.settings.server, "dropped a notification that is nearly a question");
                ServerForward::Handled
            }
            _ => self.calls.forward_in_session(via),
        }
    }

    /// Handles the status of a task, which is passed on without the questions that other people are asked, and not at all if
    /// one may not be asked.
    fn task_status(
        &mut self,
        now: Timestamp,
        via: Option<CallId>,
        frame: Frame<'_>,
        params: &RawValue,
    ) -> ServerForward {
        match self.judge_status(now, params, None) {
            Ok(None) => self.calls.forward_in_session(via),
            Ok(Some(params)) => {
                if let Some(range) = frame.range(FramePart::Params) {
                    let notice = frame_edit::spliced(frame.text(), range, params.get());
                    self.tell_in_session(via, notice);
                }
                ServerForward::Handled
            }
            Err(_) => {
                tracing::warn!(server = %self.settings.server, "the status of a task is not passed on, since its questions are not the caller's");
                ServerForward::Handled
            }
        }
    }

    /// Forwards progress to the stream of its call, under the token that the client gave.
    fn server_progresses(
        &mut self,
        via: Option<CallId>,
        frame: Frame<'_>,
        params: &RawValue,
    ) -> ServerForward {
        let token = members::member(params, "progressToken").and_then(Id::read);
        let told = ProgressNotification::parse(params).ok();
        let told = told.and_then(|progress| progress.progress.as_f64());
        let Some(key) = token
            .as_ref()
            .and_then(|token| self.calls.by_upstream_token(token))
        else {
            // The token may be of a request whose parts are not read, or of a task.
            if let Some((token, told)) = token.zip(told) {
                self.progress_seen.note(token, told);
            }
            return self.calls.forward_in_session(via);
        };
        let Some(call) = self.calls.get_mut(key) else {
            return ServerForward::Handled;
        };
        let raised = told.and_then(|told| call.progress_mut().report(told));
        // No client waits for a call that was handed back.
        let (Some(stream), Some(wanted)) = (call.stream(), call.progress().token().cloned()) else {
            return ServerForward::Handled;
        };
        let same_token =
            call.progress().upstream_token().map(Id::as_json) == Some(wanted.as_json());
        if same_token && raised.is_none() {
            return ServerForward::AsIs {
                stream,
                last: false,
            };
        }
        let mut changes = vec![("progressToken", wanted.as_json().to_owned())];
        changes.extend(raised.map(|raised| ("progress", raised.to_string())));
        let splice = |(name, value)| {
            let range = frame.member_range(FramePart::Params, name)?;
            Some(Splice::new(range, value))
        };
        let splices: Option<Vec<Splice>> = changes.into_iter().map(splice).collect();
        // A report that does not have each of them as a member by its plain name is none that the client could read.
        if let Some(splices) = splices {
            let text = frame_edit::with_splices(frame.text(), &splices);
            self.effects.tell_client(stream, text, false);
        }
        ServerForward::Handled
    }

    /// Handles the withdrawal of a question, or of another request.
    fn server_cancels(&mut self, via: Option<CallId>, params: &RawValue) -> ServerForward {
        let Ok(Cancelled {
            request_id: Some(id),
            reason,
        }) = Cancelled::parse(params)
        else {
            return self.calls.forward_in_session(via);
        };
        if let Some(key) = self.asks.by_server_id(&id) {
            self.server_withdraws(key, reason.as_deref());
            return ServerForward::Handled;
        }
        // Some servers name a request by the same value in the other JSON type.
        if !self.server_requests.is_of_server(&id)
            && let Some(meant) = id.in_other_type()
            && let Some(key) = self.asks.by_server_id(&meant)
        {
            self.server_withdraws(key, reason.as_deref());
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
            Some(_) | None => self.calls.forward_in_session(via),
        }
    }

    pub(crate) fn server_response(&mut self, now: Timestamp, frame: Frame<'_>) -> ServerForward {
        let Some(id) = frame.id() else {
            if self.settings.decisions.is_some() {
                // It answers no request, so no rule can be applied to a question in it.
                tracing::warn!(server = %self.settings.server, "dropped a response with an invalid id");
                return ServerForward::Handled;
            }
            return FORWARD_TO_SESSION;
        };
        let was_opening = self.opening_ids.answered(&id);
        if let Some(down) = self.probe_answered(now, &id, frame) {
            return down;
        }
        if was_opening && self.calls.by_upstream(&id).is_none() {
            tracing::debug!(server = %self.settings.server, %id, "dropped the answer to an opening: the era was decided without it");
            return ServerForward::Handled;
        }
        if self.tool_listing.awaits(&id) {
            if self.tools_listed(frame) {
                self.end_listing(now);
            }
            return ServerForward::Handled;
        }
        if self.task_answer_taken(&id, frame) {
            return ServerForward::Handled;
        }
        let Some(key) = self.calls.by_upstream(&id) else {
            return self.unmatched_response(now, &id, frame);
        };
        if has_list(frame) {
            let why = format!(
                "the server {} gave an answer that is not passed on: it is a list, not an object",
                self.shown_server()
            );
            self.calls.end_upstream(key);
            self.fail(now, key, &ErrorResponse::new(-32603, why));
            return ServerForward::Handled;
        }
        if let Some(down) = self.asked_in_session(now, key, frame) {
            return down;
        }
        let judged = self.judge_task(now, key, frame);
        let judged = judged.and_then(|changed| self.judge_links(now, key, frame).map(|()| changed));
        let changed = match judged {
            Ok(changed) => changed,
            Err(refusal) => {
                self.calls.end_upstream(key);
                self.fail(now, key, &refusal);
                return ServerForward::Handled;
            }
        };
        if let (Some(caller), Some(call)) = (&self.settings.task_caller, self.calls.get(key)) {
            let owners = &self.settings.task_owners;
            if call.kind().is_some() {
                owners.call_answered(frame, caller);
            }
            if call.lists_tasks() {
                let revision = self.server.revision_or_latest();
                match owners.own_in_list(frame, caller, revision) {
                    Ok(None) => {}
                    Ok(Some(text)) => return self.finish_with(now, key, text),
                    Err(refusal) => {
                        self.calls.end_upstream(key);
                        self.fail(now, key, &refusal);
                        return ServerForward::Handled;
                    }
                }
            }
        }
        if let Some(changed) = changed {
            return self.finish_with(now, key, changed);
        }
        let is_judged = self.settings.decisions.is_some();
        match elicitation_in(&self.server, self.calls.get(key), frame, is_judged) {
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

    /// Reads the server's requirement from its answer, and counts the round. Returns `None` if this has ended the call.
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
                self.fail(now, key, &ErrorResponse::unreadable());
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

    /// Handles the end of the server: calls that wait for it end with a clear error, and questions are withdrawn.
    pub(crate) fn server_gone(&mut self, now: Timestamp, why: &str) {
        if self.ended_over_probe() || self.is_server_closing {
            return;
        }
        tracing::warn!(server = %self.settings.server, %why, "the server has ended");
        self.reject_opening(&format!(
            "the server {} ended before it answered: {why}",
            self.shown_server()
        ));
        // The known facts about the server are dropped.
        self.reported_name.keep(self.server_info().as_deref());
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

    /// Forwards `notifications/elicitation/complete` to a client that knows it; `is_whole` if the notification can be
    /// read.
    pub(crate) fn forward_complete(&self, via: Option<CallId>, is_whole: bool) -> ServerForward {
        if is_whole && !self.client.knows_completion() {
            return ServerForward::Handled;
        }
        self.calls.forward_in_session(via)
    }
}
