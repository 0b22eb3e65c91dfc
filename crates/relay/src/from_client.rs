//! Frames from the client: passed on, translated to the server's era, or answered here.

use crate::AskId;
use mcp_elicit_core::wire::frame::Shape;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::spelling::{is_nearly, starts_with_letters};
use mcp_elicit_core::wire::{Cancelled, Id, members, message, method};
use serde_json::value::RawValue;

use crate::approvals::without_unshown;
use crate::call_start::{Carried, Start};
use crate::call_tasks::own_task_in;
use crate::era::Contact;
use crate::frame_edit::{self, ErrorResponse, Splice};
use crate::parts::calls::{self, AskingCall, Call, CallProgress, Request};
use crate::parts::client_waits::is_timeout;
use crate::parts::indexed_frame::IndexedFrame;
use crate::{
    CallId, CallKind, ClientForward, ClientFrame, Effect, Ending, Relay, StreamId, Timestamp,
};

/// The error for a method that nearly matches a significant one.
pub(crate) const OTHER_SPELLING: &str =
    "there is no such method; write it letter by letter as the protocol does";

/// The error for a request with the id of another one in progress.
const SAME_ID: &str = "a request with this id is already in progress";

/// The error for a request without an id.
pub const NEEDS_ID: &str =
    "a request needs an id; without one, only methods that begin with notifications/ are taken";

impl Relay {
    /// Handles a message of the client.
    pub(crate) fn client_message(&mut self, frame: ClientFrame<'_>) -> ClientForward {
        let (now, stream) = (frame.at(), frame.stream());
        let Some(shape) = frame.shape() else {
            return self
                .effects
                .reject_unreadable(stream, frame.text().as_bytes());
        };
        if self.settings.has_callers_to_judge() && !crate::is_json(frame.text()) {
            // A lenient server may find a call in it that was not checked by a rule.
            return self
                .effects
                .reject_unreadable(stream, frame.text().as_bytes());
        }
        let forward = match shape {
            Shape::Request => self.client_request(frame),
            Shape::Notification => self.client_notification(now, stream, *frame),
            Shape::Response => self.client_response(now, *frame),
        };
        self.next_turns(now);
        forward
    }

    pub(crate) fn client_request(&mut self, frame: ClientFrame<'_>) -> ClientForward {
        let Some(method) = frame.method() else {
            return ClientForward::AsIs(None);
        };
        if frame.id().is_none() {
            // Its answer would be indistinguishable from another's (JSON-RPC 2.0; MCP has no null ids either).
            let why = "a request's id must be a string or a number";
            return self.effects.reject_under(frame.stream(), None, -32600, why);
        }
        if let Some(defect) = calls::too_long_target(*frame) {
            let refusal = ErrorResponse::new(-32602, defect.to_string());
            return self.effects.reject(frame, &refusal);
        }
        if let Some(refusal) = self.settings.refusal_of_related_task(*frame) {
            return self.effects.reject(frame, &refusal);
        }
        match method {
            method::INITIALIZE => return self.client_initializes(frame),
            method::DISCOVER => return self.client_discovers(frame),
            _ => {}
        }
        let is_judged = self.settings.has_callers_to_judge() || self.settings.holds_rounds();
        if is_judged && is_nearly_judged(method) {
            // It is not checked as a call, but a lenient server may take it for one.
            return self
                .effects
                .reject(frame, &ErrorResponse::new(-32601, OTHER_SPELLING));
        }
        if own_task_in(*frame, method).is_none() {
            if let Some(refusal) = self.settings.refusal_of_task_request(*frame, method) {
                return self.effects.reject(frame, &refusal);
            }
            if let Some(refused) = self.refuse_task_request(frame, method) {
                return refused;
            }
        }
        self.client.learn_from_request(*frame);
        match self.server.contact() {
            Contact::Gone => self.effects.reject(frame, &self.server_ended()),
            Contact::Probing => self.wait_for_era(frame),
            Contact::Unusable => {
                let refusal = self.server_unusable();
                self.effects.reject(frame, &refusal)
            }
            Contact::New if self.client.needs_no_opening() => {
                self.begin_probe(frame.at());
                self.wait_for_era(frame)
            }
            Contact::Known if !self.client.is_unknown() => self.route(frame, method),
            Contact::New | Contact::Known
                if self.settings.holds_rounds() && CallKind::of_method(method).is_some() =>
            {
                // The era is unknown, so no rule can check it, nor whose answers it carries.
                let why = "the session was not opened: send `initialize` first";
                self.effects.reject(frame, &ErrorResponse::new(-32600, why))
            }
            // Before any opening: such a request is for the server alone.
            Contact::New | Contact::Known => self.start(frame, Start::default()),
        }
    }

    /// Keeps the request until the server's era is known.
    pub(crate) fn wait_for_era(&mut self, frame: ClientFrame<'_>) -> ClientForward {
        self.wait_early(frame.stream(), frame.to_indexed());
        ClientForward::Handled
    }

    /// Keeps a request, which came on this stream, until the server's era is known.
    pub(crate) fn wait_early(&mut self, stream: StreamId, request: IndexedFrame) {
        let permit = match self.calls.budget().permit() {
            Ok(permit) => permit,
            Err(fault) => {
                let refusal = fault.refusal();
                return self.effects.reject_on(stream, request.frame(), &refusal);
            }
        };
        if let Err(request) = self.early_requests.add(permit, stream, request) {
            let why = "too many requests wait for the server's first answer";
            let refusal = ErrorResponse::new(-32000, why);
            self.effects.reject_on(stream, request.frame(), &refusal);
        }
    }

    /// Routes a request of a known client to a known server.
    pub(crate) fn route(&mut self, frame: ClientFrame<'_>, method: &str) -> ClientForward {
        let kind = CallKind::of_method(method);
        if let Some(refusal) = self.client.refusal_in_session(*frame, method) {
            return self.effects.reject(frame, &refusal);
        }
        if let Some(forward) = self.task_request(frame, method) {
            return forward;
        }
        if let Some(kind) = kind
            && let Some(forward) = self.resume_or_find(frame, kind)
        {
            return forward;
        }
        let admitted = kind.map_or(Ok(None), |kind| self.admit(frame, kind));
        match admitted {
            Ok(digest) => {
                let frame = frame.with_digest(digest.as_deref());
                self.translate_request(frame, method, Carried::default())
            }
            Err(forward) => forward,
        }
    }

    /// Sends the call to the server, unchanged if possible.
    pub(crate) fn start(&mut self, frame: ClientFrame<'_>, start: Start) -> ClientForward {
        let Some(id) = frame.id() else {
            return ClientForward::AsIs(None);
        };
        let (kind, capability) = (start.kind(), start.capability());
        let (changed, carried) = start.into_parts();
        let delivery = carried.delivery_id();
        let permit = match self.calls.budget().permit() {
            Ok(permit) => permit,
            Err(fault) => {
                self.deliveries.end_unsent(delivery, &mut self.effects);
                return self.effects.reject(frame, &fault.refusal());
            }
        };
        let mut changed = changed;
        let log_level = self.requested_log_level(*frame);
        let is_approved = self.approvals.is_starting();
        if is_approved
            && let Some(shown) =
                without_unshown(changed.as_ref().map_or(*frame, IndexedFrame::frame))
        {
            // For a server of another era, the session's description of its client was added.
            changed = Some(shown);
        }
        let as_sent = changed.as_ref().map_or(*frame, IndexedFrame::frame);
        let other = if is_approved {
            // A client's own id could tell the server something that no approver has seen.
            Some(self.new_id())
        } else {
            self.other_id_at_server(&id)
        };
        // Another request has this id (of another client, or an earlier one still in progress), or the gateway may
        // generate it.
        let other_id = other
            .as_ref()
            .and_then(|other| frame_edit::id_splice(as_sent, other));
        let (progress, other_token) = if self.settings.client_streams || is_approved {
            self.give_token(as_sent, is_approved)
        } else {
            (CallProgress::default(), None)
        };
        let splices: Vec<Splice> = other_id.into_iter().chain(other_token).collect();
        if !splices.is_empty() {
            changed = Some(IndexedFrame::changed(as_sent, &splices));
        }
        let client_info = if is_approved {
            self.approvals.client_of_starting()
        } else {
            kind.and_then(|_| self.client.info_in(*frame))
        };
        let request = match kind {
            Some(kind) => {
                let kept = changed.clone().unwrap_or_else(|| frame.to_indexed());
                let kept = AskingCall::new(kind, kept, capability);
                Request::Call(kept.with_digest(frame.digest()))
            }
            None => Request::without_questions(frame.method()),
        };
        let mut call = Call::new(permit, frame.at(), frame.stream(), id, request)
            .with_retry_answers(carried.into_answers())
            .with_log_level(log_level)
            .with_progress(progress)
            .with_client_info(client_info);
        call.know_tasks(self.task_support().is_declared_in(*frame));
        if let Some(other) = other {
            call = call.with_upstream_id(other);
        }
        let Some(key) = self.calls.insert(call) else {
            return self
                .effects
                .reject(frame, &ErrorResponse::new(-32600, SAME_ID));
        };
        self.approvals.started(key);
        if kind.is_some() && self.waits_for_turn(frame.at(), key) {
            return self.enqueue(frame, key, changed.is_some());
        }
        if let Some(call) = self.calls.get_mut(key) {
            call.starts();
        }
        match changed {
            None => ClientForward::AsIs(Some(key)),
            Some(sent) => {
                let approval = self.approvals.take_delivery(key);
                let sent = sent.text().to_owned();
                self.effects
                    .send_to_server(sent, Some(key), delivery.or(approval));
                ClientForward::Handled
            }
        }
    }

    /// Gives the call, which is to go to the server as this frame, a progress token of its own: a report finds its stream
    /// by the token, so two calls must not share one. The client's own token stays if it is free, unless the call was
    /// approved. Returns the change of the frame, too.
    fn give_token(
        &mut self,
        frame: Frame<'_>,
        is_approved: bool,
    ) -> (CallProgress, Option<Splice>) {
        let Some(token) = calls::progress_token(frame) else {
            return (CallProgress::default(), None);
        };
        let own = if is_approved {
            Some(self.new_token())
        } else {
            self.other_token(&token)
        };
        let Some(own) = own else {
            return (CallProgress::with_tokens(token.clone(), Some(token)), None);
        };
        let changed = token_splice(frame, &own);
        let upstream = changed.is_some().then_some(own);
        (CallProgress::with_tokens(token, upstream), changed)
    }

    pub(crate) fn client_notification(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        frame: Frame<'_>,
    ) -> ClientForward {
        let method = frame.method().unwrap_or_default();
        if self.settings.is_of_foreign_task(frame) {
            if let Some(left_out) = self.settings.reports.next(now) {
                tracing::warn!(server = %self.settings.server, left_out, "a client's notification about a task of another caller is not passed on");
            }
            return ClientForward::Handled;
        }
        match method {
            method::CANCELLED => self.client_cancels(now, frame),
            method::INITIALIZED if self.server.answers_discover() => ClientForward::Handled,
            _ if method::is_notification(method) => ClientForward::AsIs(None),
            // A server might act on a call without an id, although no one was asked about it.
            _ => self.effects.reject_under(stream, None, -32600, NEEDS_ID),
        }
    }

    fn client_cancels(&mut self, now: Timestamp, frame: Frame<'_>) -> ClientForward {
        if self.settings.client_streams && self.client.cancels_by_closing_stream() {
            // The request with this id is ambiguous.
            return ClientForward::Handled;
        }
        let params = frame.params();
        let Some(Ok(Cancelled {
            request_id: Some(id),
            reason,
        })) = params.map(Cancelled::parse)
        else {
            return ClientForward::AsIs(None);
        };
        // Some clients name a request by the same value in the other JSON type.
        let meant = id.in_other_type().filter(|other| {
            self.calls.by_client(&id).is_none() && self.calls.by_client(other).is_some()
        });
        let written = id.clone();
        let id = meant.unwrap_or(id);
        if let Some(list) = self.batch_responses.cancelled(&id) {
            self.effects.tell_client(StreamId::SESSION, list, true);
        }
        let Some(key) = self.calls.by_client(&id) else {
            return ClientForward::AsIs(None);
        };
        if reason.is_some_and(|reason| is_timeout(&reason)) && self.client_timed_out(now, key) {
            return ClientForward::Handled;
        }
        self.give_up(now, key, params, &written)
    }

    /// Gives up a call for the client, which named it by this id: withdraws its questions and tells the server.
    fn give_up(
        &mut self,
        now: Timestamp,
        key: CallId,
        params: Option<&RawValue>,
        id: &Id,
    ) -> ClientForward {
        let upstream = self.calls.is_upstream(key);
        self.end_questions_of(now, key, Ending::WithdrawnByClient);
        let Some(call) = self.remove_call(key) else {
            return ClientForward::AsIs(None);
        };
        if !upstream {
            return ClientForward::Handled;
        }
        if call.kind().is_some() {
            self.turns.note_given_up();
        }
        self.effects.push(Effect::Abandon { call: key });
        if call.upstream_id().as_json() == id.as_json() {
            return ClientForward::AsIs(None);
        }
        let own = call.upstream_id().to_raw();
        if let Some(params) =
            params.and_then(|params| members::Members::read(params, "params").ok())
        {
            let params = params.with("requestId", Some(&own));
            self.effects.tell_server(
                message::notification(method::CANCELLED, Some(&params)),
                None,
            );
        }
        ClientForward::Handled
    }

    pub(crate) fn client_response(&mut self, now: Timestamp, frame: Frame<'_>) -> ClientForward {
        // A response without an id of a request answers nothing. A server may take it for the answer to its question, which
        // a rule may have given to others: one looks the id up as text, another takes the next response.
        let Some(id) = frame.id() else {
            return ClientForward::Handled;
        };
        if let Some(error) = self.settings.error_for_foreign_response(frame) {
            self.client_fails_with(now, &id, &error);
            return ClientForward::Handled;
        }
        if let Some(key) = self.answered_question(&id) {
            self.client_replies(now, key, frame);
            return ClientForward::Handled;
        }
        if self.other_replies(now, &id, frame) {
            return ClientForward::Handled;
        }
        let mut answered = self.server_requests.answered(&id);
        if answered.is_none()
            && let Some(other) = id.in_other_type()
        {
            answered = self.server_requests.answered(&other);
        }
        match answered {
            // Too late for a question that has ended, or an answer to no question: answers pass through the record
            // only.
            None => ClientForward::Handled,
            Some(servers) if servers == id => ClientForward::AsIs(None),
            Some(servers) => {
                self.effects
                    .tell_server(frame_edit::with_id(frame, &servers), None);
                ClientForward::Handled
            }
        }
    }

    /// Returns the question that a response of the client answers, which may repeat its id in the other JSON type.
    fn answered_question(&self, id: &Id) -> Option<AskId> {
        self.asks.by_client_id(id).or_else(|| {
            if self.server_requests.has(id) {
                return None;
            }
            self.asks.by_client_id(&id.in_other_type()?)
        })
    }

    /// Handles a response as if the client had answered with this error.
    fn client_fails_with(&mut self, now: Timestamp, id: &Id, error: &ErrorResponse) {
        let Ok(failed) = IndexedFrame::read(error.to_response(id)) else {
            // The gateway writes responses that are frames.
            return;
        };
        let forward = self.client_response(now, failed.frame());
        if matches!(forward, ClientForward::AsIs(_)) {
            self.effects.tell_server(failed.into_text(), None);
        }
    }

    /// Handles the closed stream of a request, which may give up the request.
    pub(crate) fn stream_closed(&mut self, now: Timestamp, stream: StreamId) {
        for key in self.calls.on_stream(stream) {
            let call = self.calls.get(key);
            if call.is_some_and(Call::is_queued) {
                self.remove_call(key);
            } else if self.holds.is_held(key) {
                // A person is being asked: the call waits to be made again.
                self.detach(now, key);
                self.gives_up(key);
            } else if self.client.cancels_by_closing_stream() {
                self.end_questions_of(now, key, Ending::WithdrawnByClient);
                self.cancel_upstream(key);
                self.remove_call(key);
            }
        }
    }

    /// Tells the server that the call is cancelled, if the server is still processing it.
    pub(crate) fn cancel_upstream(&mut self, key: CallId) {
        let Some(call) = self.calls.get(key).filter(|call| call.is_upstream()) else {
            // The server knows nothing of it, or has answered it.
            return;
        };
        let id = call.upstream_id().clone();
        if call.kind().is_some() {
            self.turns.note_given_up();
        }
        self.effects.push(Effect::Abandon { call: key });
        let notice = Cancelled {
            request_id: Some(id),
            reason: None,
        };
        self.effects.tell_server(notice.to_message(), None);
    }
}

/// Returns `true` if a method nearly matches that of an opening, a call or a task, but is none of them: some servers
/// derive a function name from it.
fn is_nearly_judged(method: &str) -> bool {
    const TASKS: &str = "tasks/";
    let openings = [method::INITIALIZE, method::DISCOVER];
    let tasks = ["get", "result", "list", "cancel", "update"];
    is_nearly(method, &openings)
        || is_nearly(method, &method::MAY_ASK)
        || is_nearly(method, &tasks.map(|task| format!("{TASKS}{task}")))
        || (!method.starts_with(TASKS) && starts_with_letters(method, TASKS))
}

/// Returns the change of a request's progress token; `None` if it has none.
pub(crate) fn token_splice(frame: Frame<'_>, token: &Id) -> Option<Splice> {
    let range = frame.member_range(FramePart::Meta, "progressToken")?;
    Some(Splice::new(range, token.as_json()))
}
