//! Calls that the gateway runs as tasks of the client.
//!
//! For a client of 2025-11-25, if the server has no tasks: a call that the client makes as a task. For one that declares the
//! extension for 2026-07-28: a held call, in place of being handed back.
//!
//! A call that the client makes as a task goes to the server as a plain call, for which the gateway waits in place of the
//! client: on a stream of the task, whose frames reach no peer. So a person may take any time, and nothing is handed back.
//! The record has the state and the response, so that every session of the caller can answer for the task.

use std::time::Duration;

use mcp_elicit_core::text;
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, FramePart};
use mcp_elicit_core::wire::members::Members;
use mcp_elicit_core::wire::meta::RELATED_TASK;
use mcp_elicit_core::wire::{Id, WireError, members, message, method};
use serde_json::json;
use serde_json::value::RawValue;

use crate::frame_edit::{self, ErrorResponse, Splice};
use crate::hand_back;
use crate::parts::call_budget::{BudgetError, Permit};
use crate::parts::calls::{Call, Request};
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::lookups::EndedLookup;
use crate::parts::own_tasks::{EndedTask, TaskRequest, TaskState, TaskStatus, record_id, task_id};
use crate::{
    CallId, CallKind, ClientForward, ClientFrame, Effect, Ending, FoundTask, Relay, ServerForward,
    StreamId, Timer, Timestamp,
};

const GET: &str = "tasks/get";
const RESULT: &str = "tasks/result";
pub(crate) const CANCEL: &str = "tasks/cancel";
/// Only in the extension for 2026-07-28.
pub(crate) const UPDATE: &str = "tasks/update";
const CALL: &str = "tools/call";

/// The shortest time for which a task is kept.
const LEAST_TTL: Duration = Duration::from_secs(1);
/// The longest message of a state, in characters.
const MESSAGE: usize = 500;

const UNKNOWN: &str = "there is no such task of this caller at this server: it may have expired, or its call has ended. Make the call again: it is a new one, unless its question is still open";
const LOST: &str = "the gateway that ran this task has ended. Make the call again; a question that is open is not asked twice";
const CANCELLED: &str = "the task was cancelled";
const NOT_RECORDED: &str = "the task could not be recorded, so the call was cancelled";
const NOT_STORED: &str = "the call has ended, and its result cannot be stored: the results of this caller's tasks have reached their limit. Fetch results before you begin more tasks, or make calls without tasks";
/// The error of a held call whose gateway stops.
const STOPPED: &str = "the gateway was stopped before the call had ended. Make the call again; a question that is open is not asked twice";

/// Returns a request of this method if it is about a task of the gateway.
pub(crate) fn own_task_in(frame: Frame<'_>, method: &str) -> Option<TaskRequest> {
    let methods = [GET, RESULT, CANCEL, UPDATE];
    let method = methods.into_iter().find(|known| *known == method)?;
    let params = Members::read(frame.params()?, "params").ok()?;
    let task = params.text("taskId").ok()??;
    Some(TaskRequest {
        id: frame.id()?,
        method,
        record: record_id(&task)?.to_owned(),
    })
}

impl Relay {
    /// Handles a request about a task of the gateway, or one that begins one. `None` for any other request.
    pub(crate) fn task_request(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
    ) -> Option<ClientForward> {
        // Another gateway may be the server, with tasks of its own.
        let is_passed =
            !self.settings.tasks || self.client.is_pushed_to() && !self.task_support().runs_tasks();
        if let Some(request) = own_task_in(*frame, method).filter(|_| !is_passed) {
            return Some(self.own_task_request(frame, request));
        }
        if method != CALL
            || !self.task_support().runs_tasks()
            || frame.sole_member(FramePart::Params, "task") == Ok(None)
        {
            return None;
        }
        Some(match self.begin_task(frame) {
            Ok(()) => ClientForward::Handled,
            Err(refusal) => self.effects.reject(frame, &refusal),
        })
    }

    /// Begins a task: its call goes to the server as a plain one.
    fn begin_task(&mut self, frame: ClientFrame<'_>) -> Result<(), ErrorResponse> {
        let unreadable = |defect: WireError| ErrorResponse::new(-32602, defect.to_string());
        let (Some(id), Some(params)) = (frame.id(), frame.params()) else {
            return Err(ErrorResponse::new(-32602, "`tools/call` needs params"));
        };
        let params = Members::read(params, "params").map_err(unreadable)?;
        params
            .refuse_like(&["task"], "params")
            .map_err(unreadable)?;
        let task = params.need_object("task").map_err(unreadable)?;
        let task = Members::read(task, "task").map_err(unreadable)?;
        let asked = match task.get("ttl").filter(|ttl| !members::is_null(ttl)) {
            Some(ttl) => Some(read_ttl(ttl)?),
            None => None,
        };
        let permit = self.calls.budget().permit().map_err(BudgetError::refusal)?;
        let plain = params.with("task", None);
        let Some(range) = frame.range(FramePart::Params) else {
            return Err(ErrorResponse::new(-32602, "`tools/call` needs params"));
        };
        let own_id = frame_edit::id_splice(*frame, &self.new_id());
        let plain = Splice::new(range.clone(), plain.get());
        let splices = own_id.iter().chain([&plain]);
        let request = IndexedFrame::read(frame_edit::with_splices(frame.text(), splices))
            .map_err(|defect| ErrorResponse::new(defect.code().into(), defect.to_string()))?;
        let now = frame.at();
        let stream = self.new_task(now, permit, (frame.stream(), id), asked);
        let call = ClientFrame::of_indexed(&request, stream, now);
        if let ClientForward::AsIs(call) = self.route(call, CALL) {
            self.effects.tell_server(request.into_text(), call);
        }
        Ok(())
    }

    /// Records a task, whose creator waits for its id, and returns the stream of its call. `ttl` is the time for which the
    /// client wants it to be kept.
    fn new_task(
        &mut self,
        now: Timestamp,
        permit: Permit,
        creator: (StreamId, Id),
        ttl: Option<Duration>,
    ) -> StreamId {
        let longest = self.settings.open_for + self.settings.keep_results;
        let time = ttl.map_or(longest, |ttl| ttl.clamp(LEAST_TTL, longest));
        let state = TaskState::new(now, time);
        let key = self.calls.next_key();
        let stored = serde_json::to_string(&state).unwrap_or_default();
        let begun = self.own_tasks.begin(key, permit, creator, state);
        let (stream, until) = begun;
        self.timers.set(until, Timer::TaskOver(stream));
        self.effects.push(Effect::BeginTask {
            task: key,
            state: stored,
            until,
            server_info: self.server_info(),
        });
        stream
    }

    /// Makes a held call a task of a client that knows the extension for 2026-07-28, instead of handing it back. Returns
    /// `false` if it cannot be one.
    pub(crate) fn hand_back_as_task(&mut self, now: Timestamp, key: CallId) -> bool {
        let Some(call) = self.calls.get(key).filter(|call| call.knows_tasks()) else {
            return false;
        };
        let (stream, id, is_queued) = (call.stream(), call.client_id().clone(), call.is_queued());
        let is_tool = call.kind() == Some(CallKind::Tool);
        let (Some(stream), true, Ok(permit)) = (stream, is_tool, self.calls.budget().permit())
        else {
            return false;
        };
        let to = self.new_task(now, permit, (stream, id), None);
        let own = self.new_id();
        self.holds.end(key, &mut self.timers);
        self.calls.attach(key, now, to, Some(own));
        if !is_queued {
            self.hold(now, key);
        }
        true
    }

    /// Handles the record's answer to a new task.
    pub(crate) fn task_begun(&mut self, now: Timestamp, key: CallId, record: Option<String>) {
        let Some(stream) = self.own_tasks.stream_of(key) else {
            // Its time is over already, which ended its call.
            return;
        };
        let is_kept = record.is_some();
        if let Some((to, id, state)) = self.own_tasks.created(stream, record.clone()) {
            let answer = match record {
                Some(record) => {
                    let created = if self.client.is_pushed_to() {
                        json!({"task": state.to_task(&record)})
                    } else {
                        let mut task = state.to_extension_task(&record);
                        task["resultType"] = json!("task");
                        task
                    };
                    message::result(&id, &members::raw_value(&created))
                }
                None => ErrorResponse::new(-32603, NOT_RECORDED).to_response(&id),
            };
            self.effects.tell_client(to, answer, true);
        }
        if !is_kept {
            self.stop_call_of_task(now, stream);
            self.forget_task(stream);
        } else if !self.settings.client_streams
            && let Some(task) = self.own_tasks.task_id(stream)
        {
            for dialog in self.own_tasks.take_dialogs(stream) {
                self.tell_dialog(StreamId::SESSION, &task, &dialog);
            }
        }
    }

    fn own_task_request(&mut self, frame: ClientFrame<'_>, request: TaskRequest) -> ClientForward {
        if request.method == CANCEL
            && let Some(stream) = self.own_tasks.running(&request.record)
        {
            self.own_tasks.note_cancelled(&request.record);
            self.cancel_task(frame.at(), stream);
        }
        match self.calls.budget().permit() {
            Ok(permit) => {
                self.find_task(permit, frame.stream(), request);
                ClientForward::Handled
            }
            Err(fault) => self.effects.reject(frame, &fault.refusal()),
        }
    }

    fn find_task(&mut self, mut permit: Permit, stream: StreamId, request: TaskRequest) {
        permit.set_bytes(request.size());
        let lookup = self.calls.next_key();
        self.effects.push(Effect::FindTask {
            lookup,
            id: request.record.clone(),
            server_info: self.server_info(),
        });
        let lookups = self.own_tasks.lookups_mut();
        lookups.begin(lookup, stream, request, permit);
    }

    /// Answers a request about a task of the gateway, which was looked up in the record.
    pub(crate) fn task_found(&mut self, now: Timestamp, lookup: CallId, found: FoundTask) {
        let Some(EndedLookup {
            stream,
            request,
            permit,
        }) = self.own_tasks.lookups_mut().end(lookup)
        else {
            // The record answers each lookup once.
            return;
        };
        let is_cancel = request.method == CANCEL;
        let has_cancelled = is_cancel && self.own_tasks.take_cancelled(&request.record);
        let Some(permit) = permit else {
            // The client has closed its stream, so it no longer waits.
            return;
        };
        let is_running = matches!(found, FoundTask::Running(_));
        let cancels = is_cancel && is_running;
        let waits = is_running && [RESULT, CANCEL].contains(&request.method);
        if cancels {
            self.effects.push(Effect::CancelTask {
                id: request.record.clone(),
                server_info: self.server_info(),
            });
        }
        if !self.client.is_pushed_to() {
            let answer = extension_answer(now, request, found);
            self.effects.tell_client(stream, answer, true);
            return;
        }
        if waits {
            if cancels {
                self.own_tasks.note_cancelled(&request.record);
            }
            self.follow_task(now, permit, stream, request);
            return;
        }
        let answer = answer_in_session(now, request, found, has_cancelled);
        drop(permit);
        self.effects.tell_client(stream, answer, true);
    }

    /// Keeps a request until its task has ended, which runs in this or another session.
    fn follow_task(
        &mut self,
        now: Timestamp,
        permit: Permit,
        stream: StreamId,
        request: TaskRequest,
    ) {
        let call = Request::without_questions(Some(request.method));
        let call = Call::new(permit, now, stream, request.id.clone(), call);
        let key = self.calls.insert_unsent(call);
        self.effects.push(Effect::FollowTask {
            call: key,
            id: request.record.clone(),
        });
        let task = task_id(&request.record);
        for dialog in self.own_tasks.follow(key, request) {
            self.tell_dialog(stream, &task, &dialog);
        }
    }

    /// Looks up a task again for a request for its result, because it has ended. Returns `false` if the call is no such
    /// request.
    pub(crate) fn followed_task_ended(&mut self, key: CallId) -> bool {
        let Some(request) = self.own_tasks.end_following(key) else {
            return false;
        };
        if let Some(call) = self.remove_call(key)
            && let Some(stream) = call.stream()
        {
            self.find_task(call.into_permit(), stream, request);
        }
        true
    }

    /// Handles the cancellation of a task by another session of the caller.
    pub(crate) fn task_cancelled(&mut self, now: Timestamp, task: CallId) {
        if let Some(stream) = self.own_tasks.stream_of(task) {
            self.cancel_task(now, stream);
        }
    }

    /// Cancels a running task: its questions are withdrawn, and the server is told.
    fn cancel_task(&mut self, now: Timestamp, stream: StreamId) {
        self.stop_call_of_task(now, stream);
        let response = ErrorResponse::new(-32000, CANCELLED).to_unknown();
        let message = Some(CANCELLED.to_owned());
        self.end_task(now, stream, (TaskStatus::Cancelled, message), response);
    }

    /// Ends the call of a task, which is not wanted any more.
    fn stop_call_of_task(&mut self, now: Timestamp, stream: StreamId) {
        self.unattended.lookups_mut().stream_closed(stream);
        for key in self.calls.on_stream(stream) {
            self.end_questions_of(now, key, Ending::WithdrawnByClient);
            self.cancel_upstream(key);
            self.remove_call(key);
        }
    }

    fn end_task(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        status: (TaskStatus, Option<String>),
        response: String,
    ) {
        let keep = self.settings.keep_results;
        let Some(end) = self.own_tasks.end(now, stream, status, response, keep) else {
            // It has ended before: its first end counts.
            return;
        };
        self.timers.cancel(Timer::TaskOver(stream));
        self.timers.set(end.until, Timer::TaskOver(stream));
        self.effects.push(Effect::EndTask {
            task: end.key,
            ended: serde_json::to_string(&end.ended).unwrap_or_default(),
            until: end.until,
        });
    }

    /// Ends a task whose time is over, and forgets it.
    pub(crate) fn task_over(&mut self, now: Timestamp, stream: StreamId) {
        self.stop_call_of_task(now, stream);
        self.forget_task(stream);
    }

    fn forget_task(&mut self, stream: StreamId) {
        self.timers.cancel(Timer::TaskOver(stream));
        if let Some(call) = self.own_tasks.remove(stream) {
            self.effects.push(Effect::DropCall { call });
        }
    }

    /// Handles the frames for the clients of tasks, and the changes of their questions.
    pub(crate) fn update_tasks(&mut self, now: Timestamp) {
        if self.own_tasks.is_empty() {
            return;
        }
        for (stream, frame, last) in self.effects.take_task_frames() {
            if last {
                self.call_of_task_ended(now, stream, frame);
            } else {
                self.task_tells(stream, frame);
            }
        }
        for stream in self.own_tasks.take_touched() {
            self.questions_of_task_changed(now, stream);
        }
    }

    fn call_of_task_ended(&mut self, now: Timestamp, stream: StreamId, response: String) {
        let index = FrameIndex::at(response.as_bytes()).unwrap_or_default();
        let frame = Frame::of_text(&response, &index);
        let status = if let Some(error) = frame.error() {
            let message = members::member(error, "message").and_then(members::text);
            (
                TaskStatus::Failed,
                message.map(|message| text::shortened(&message, MESSAGE)),
            )
        } else if frame.member(FramePart::Result, "isError") == Some("true") {
            let why = "the tool has reported an error: `tasks/result` has it".to_owned();
            (TaskStatus::Failed, Some(why))
        } else {
            (TaskStatus::Completed, None)
        };
        self.end_task(now, stream, status, response);
    }

    /// Sends a frame of a task's call to the client: a dialog goes to a request for the task's result, if streams are
    /// separate.
    fn task_tells(&mut self, stream: StreamId, text: String) {
        let follower = self.own_tasks.newest_follower(stream);
        let to = follower.and_then(|key| self.calls.get(key)?.stream());
        let Ok(frame) = IndexedFrame::read(text) else {
            // The gateway sends no client a text that is not a frame.
            return;
        };
        if frame.frame().method() != Some(method::CREATE) {
            let to = to.unwrap_or(StreamId::SESSION);
            self.effects.tell_client(to, frame.into_text(), false);
            return;
        }
        let session = (!self.settings.client_streams).then_some(StreamId::SESSION);
        match to.or(session).zip(self.own_tasks.task_id(stream)) {
            Some((to, task)) => self.tell_dialog(to, &task, &frame),
            // No request can carry it yet, or the record has not said yet what the task is called.
            None => self.own_tasks.keep_dialog(stream, frame),
        }
    }

    /// Sends a dialog of a task to the client, if its question is still open.
    fn tell_dialog(&mut self, to: StreamId, task: &str, dialog: &IndexedFrame) {
        let frame = dialog.frame();
        let question = frame.id().and_then(|id| self.asks.by_client_id(&id));
        if question.is_some() {
            let named = related_splice(frame, FramePart::Params, task);
            let text = frame_edit::with_splices(frame.text(), &named);
            self.effects.tell_client(to, text, false);
        }
    }

    /// Keeps a frame of the server for the task on whose stream it would be forwarded.
    pub(crate) fn take_for_task(&mut self, forward: ServerForward, text: &str) -> ServerForward {
        match forward {
            ServerForward::AsIs { stream, last } if stream.is_of_task() => {
                self.effects.tell_client(stream, text.to_owned(), last);
                ServerForward::Handled
            }
            other => other,
        }
    }

    fn questions_of_task_changed(&mut self, now: Timestamp, stream: StreamId) {
        let call = self.calls.on_stream(stream).first().copied();
        let waits = |key: &CallId| self.calls.get(*key).is_some_and(Call::may_wait_for_answer);
        let (status, message) = match call.filter(waits) {
            Some(key) => (TaskStatus::InputRequired, Some(self.waiting_message(key))),
            None => (TaskStatus::Working, None),
        };
        if let Some((task, state)) = self.own_tasks.change(now, stream, status, message) {
            let state = serde_json::to_string(state).unwrap_or_default();
            self.effects.push(Effect::UpdateTask { task, state });
        }
    }

    /// Returns a sentence about the question that this call waits for, with the address of its page.
    fn waiting_message(&self, key: CallId) -> String {
        let link = self.link_of(key);
        match (self.approval_progress(key), link) {
            (Some((_, progress)), link) => {
                let page = link.map_or_else(String::new, |link| format!(": {link}"));
                format!("{}{page}", hand_back::waiting_words(&progress))
            }
            (None, _) if !self.asks.waits_for_people(self.calls.get(key)) => {
                "Waiting for the client's answer: its question comes with `tasks/result`".to_owned()
            }
            (None, link) => hand_back::waiting_for_person(link.as_deref()),
        }
    }
}

/// Returns the response to the call of a task whose gateway stops, with the stream that it is for.
pub(crate) fn stopped_frame(call: &Call) -> Option<(StreamId, String)> {
    let response = ErrorResponse::new(-32603, STOPPED).to_response(call.client_id());
    Some((call.stream()?, response))
}

/// Returns the end of a task as a failed one, because its response cannot be stored.
pub fn ended_without_result(ended: &str) -> String {
    let Ok(EndedTask { state, .. }) = serde_json::from_str(ended) else {
        return String::new();
    };
    let ended = EndedTask {
        state: state.failed(NOT_STORED),
        response: ErrorResponse::new(-32000, NOT_STORED).to_unknown(),
    };
    serde_json::to_string(&ended).unwrap_or_default()
}

/// Reads the time for which the client wants a task to be kept.
fn read_ttl(ttl: &RawValue) -> Result<Duration, ErrorResponse> {
    let millis = ttl.get().parse::<f64>().ok();
    let millis = millis.filter(|millis| millis.is_finite() && *millis >= 0.0);
    let time = millis.map(|millis| Duration::try_from_secs_f64(millis / 1_000.0));
    match time {
        Some(Ok(time)) => Ok(time),
        Some(Err(_)) => Ok(Duration::MAX),
        None => Err(ErrorResponse::new(
            -32602,
            "`task.ttl` must be a number of milliseconds",
        )),
    }
}

/// Returns the answer to a request of 2025-11-25 about a task of the gateway, which need not wait for the end of the task;
/// `has_cancelled` if it has cancelled the task.
fn answer_in_session(
    now: Timestamp,
    request: TaskRequest,
    found: FoundTask,
    has_cancelled: bool,
) -> String {
    let TaskRequest { id, method, record } = request;
    let refuse = |code, why: &str| ErrorResponse::new(code, why).to_response(&id);
    let state_of = |text: &str| serde_json::from_str::<TaskState>(text).ok();
    let told =
        |state: &TaskState| message::result(&id, &members::raw_value(&state.to_task(&record)));
    match (method, found) {
        (_, FoundTask::Nothing) => refuse(-32602, UNKNOWN),
        (RESULT, FoundTask::Lost(_)) => refuse(-32603, LOST),
        (CANCEL, FoundTask::Lost(_)) => refuse(-32602, LOST),
        (_, FoundTask::Running(state)) => {
            state_of(&state).map_or_else(|| refuse(-32603, UNKNOWN), |state| told(&state))
        }
        (_, FoundTask::Lost(state)) => {
            let failed =
                |state: TaskState| state.became(now, TaskStatus::Failed, Some(LOST.to_owned()));
            let state = state_of(&state).map(failed);
            state.map_or_else(|| refuse(-32603, UNKNOWN), |state| told(&state))
        }
        (method, FoundTask::Finished(ended)) => match serde_json::from_str::<EndedTask>(&ended) {
            Ok(ended) if method == RESULT => related(ended.response, &id, &record),
            Ok(ended) if method == CANCEL && !(has_cancelled && ended.state.is_cancelled()) => {
                refuse(-32602, "the task has ended, so it cannot be cancelled")
            }
            Ok(ended) => told(&ended.state),
            Err(_) => refuse(-32603, UNKNOWN),
        },
    }
}

/// Returns the answer to a request of the extension for 2026-07-28 about a task of the gateway.
fn extension_answer(now: Timestamp, request: TaskRequest, found: FoundTask) -> String {
    let TaskRequest { id, method, record } = request;
    let (id, record) = (&id, &*record);
    let refuse = |code, why: &str| ErrorResponse::new(code, why).to_response(id);
    let told = |state: &TaskState, outcome: Option<(&str, &str, &RawValue)>| {
        let mut task = state.to_extension_task(record);
        task["resultType"] = json!("complete");
        if let Some((status, ..)) = outcome {
            task["status"] = json!(status);
        }
        let task = members::raw_value(&task);
        match (outcome, Members::read(&task, "result")) {
            (Some((_, name, value)), Ok(all)) => message::result(id, &all.with(name, Some(value))),
            _ => message::result(id, &task),
        }
    };
    match (method, found) {
        (_, FoundTask::Nothing) => refuse(-32602, UNKNOWN),
        (RESULT, _) => refuse(
            -32601,
            "there is no `tasks/result` in 2026-07-28: `tasks/get` has the result",
        ),
        // Nothing that the client could answer is open in a task of the gateway.
        (UPDATE | CANCEL, _) => {
            message::result(id, &members::raw_value(&json!({"resultType": "complete"})))
        }
        (_, FoundTask::Running(state)) => match serde_json::from_str::<TaskState>(&state) {
            Ok(state) => told(&state, None),
            Err(_) => refuse(-32603, UNKNOWN),
        },
        (_, FoundTask::Lost(state)) => match serde_json::from_str::<TaskState>(&state) {
            Ok(state) => {
                let state = state.became(now, TaskStatus::Failed, Some(LOST.to_owned()));
                let error = members::raw_value(&json!({"code": -32603, "message": LOST}));
                told(&state, Some(("failed", "error", &error)))
            }
            Err(_) => refuse(-32603, UNKNOWN),
        },
        (_, FoundTask::Finished(ended)) => {
            let Ok(EndedTask { state, response }) = serde_json::from_str(&ended) else {
                return refuse(-32603, UNKNOWN);
            };
            let Ok(response) = IndexedFrame::read(response) else {
                return refuse(-32603, UNKNOWN);
            };
            let frame = response.frame();
            let result = frame.result().map(|result| ("completed", "result", result));
            let error = || frame.error().map(|error| ("failed", "error", error));
            let outcome = result.or_else(error).filter(|_| !state.is_cancelled());
            told(&state, outcome)
        }
    }
}

/// Returns the response to the `tasks/result` of this id, which names its task; `response` is that of the task's call.
fn related(response: String, id: &Id, record: &str) -> String {
    let Ok(response) = IndexedFrame::read(response) else {
        return ErrorResponse::new(-32603, UNKNOWN).to_response(id);
    };
    let frame = response.frame();
    let id = frame_edit::id_splice(frame, id);
    let named = related_splice(frame, FramePart::Result, &task_id(record));
    frame_edit::with_splices(frame.text(), id.iter().chain(&named))
}

/// Returns the change that attaches this part of a frame to a task in `_meta`; `None` if it has no such part.
fn related_splice(frame: Frame<'_>, part: FramePart, task: &str) -> Option<Splice> {
    let all = Members::read_text(frame.part(part)?, "result").ok()?;
    let empty = members::raw_value(&json!({}));
    let meta = all.get("_meta").filter(|meta| meta.get().starts_with('{'));
    let meta = Members::read(meta.unwrap_or(&empty), "_meta").ok()?;
    let named = members::raw_value(&json!({"taskId": task}));
    let all = all.with("_meta", Some(&meta.with(RELATED_TASK, Some(&named))));
    Some(Splice::new(frame.range(part)?.clone(), all.get()))
}
