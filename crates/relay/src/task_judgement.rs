//! The questions of a server's tasks (tasks extension of 2026-07-28), which stand in the status of the task.
//!
//! A client that shows questions reads its own there, and answers with `tasks/update`. All others are put to people: those
//! that a rule addresses to them, and those of a client that shows none. They are taken out of the status that the client
//! gets, which says that the task is working, and the gateway sends the answer. A question that a rule refuses makes the
//! status an error.
//!
//! Nothing is asked before the client reads the status: the gateway makes no `tasks/get` of its own.

use std::collections::BTreeSet;

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::text;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::{ElicitRequest, Id, InputRequest, WireError, message, rounds};
use serde_json::json;
use serde_json::value::RawValue;

use crate::asking_frames::elicitation_in;
use crate::call_tasks::{CANCEL, UPDATE};
use crate::decisions::{Planned, RuleRefusal};
use crate::frame_edit::{self, ErrorResponse};
use crate::hand_back;
use crate::new_asks::check;
use crate::parts::asks::{Attribution, Origin};
use crate::parts::calls::Call;
use crate::parts::task_owners::MOST_MEMBERS;
use crate::parts::task_questions::{AskedBefore, Moment};
use crate::{
    AskId, Audience, CallId, CallSummary, ClientForward, ClientFrame, Ending, Relay, Timestamp,
};

/// The most questions of a task.
const QUESTIONS: usize = 1_024;
/// The statuses of a task that has ended.
const OVER: [&str; 3] = ["completed", "failed", "cancelled"];
/// The longest reason of a server that is repeated, in characters.
const REASON: usize = 500;

/// The party that is asked a question of a task.
enum AskedInTask {
    /// The client, which reads it in the status.
    Client,
    /// People, or nobody any more: it has an answer, or the task is cancelled.
    NotClient,
}

impl Relay {
    /// Handles a request about a task. Refuses it if it answers questions that the client was not shown, because others
    /// may have to answer them.
    pub(crate) fn refuse_task_request(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
    ) -> Option<ClientForward> {
        if !method.starts_with("tasks/") {
            return None;
        }
        if method == CANCEL {
            self.withdraw_cancelled(frame.params());
        }
        let decides = self.settings.decisions.is_some();
        // Also before the server's revision is known: it may have tasks of an earlier session.
        let may_ask = self.server.revision().is_none() || self.server.may_ask_in_results();
        if !decides && (!may_ask || self.settings.answer_with == Audience::Client) {
            return None;
        }
        if decides && self.server.pushes_questions_of_tasks() {
            self.past_calls.note_task_request(*frame);
        }
        if let Some(id) = frame.id() {
            self.task_questions.begin_request(frame.stream(), id);
        }
        let params = frame.params()?;
        match self.task_questions.take_shown(params, decides) {
            Ok(true) => None,
            Ok(false) => {
                tracing::warn!(server = %self.settings.server, "answers to questions of a task that were not shown are refused");
                let why = "the gateway has not shown this client the question of this task that it answers: read it with \
                           `tasks/get`; a question that other people are asked, or that a rule refuses, cannot be answered";
                Some(self.effects.reject(frame, &ErrorResponse::new(-32602, why)))
            }
            Err(defect) => {
                let why = format!("it cannot be checked which questions it answers: {defect}");
                Some(self.effects.reject(frame, &ErrorResponse::new(-32602, why)))
            }
        }
    }

    /// Checks the questions in a response about a task, or one in which a call became a task. Returns the response without
    /// those that people are asked, if there are any. `Err` if one may not be asked.
    pub(crate) fn judge_task(
        &mut self,
        now: Timestamp,
        key: CallId,
        frame: Frame<'_>,
    ) -> Result<Option<String>, ErrorResponse> {
        let decides = self.settings.decisions.is_some();
        let read = self.task_request_ended(key, frame);
        if !(decides || self.asks_people_in_tasks()) || self.server.must_not_ask_in_results() {
            // No question is kept from the client, or every result that asks was refused before.
            return Ok(None);
        }
        if !frame
            .part(FramePart::Result)
            .is_some_and(|part| part.starts_with('{'))
        {
            // An error, or nothing.
            return Ok(None);
        }
        if decides {
            refuse_inner_questions(frame)?;
        }
        let kind = self.calls.get(key).and_then(Call::kind);
        let names_task = frame.sole_member(FramePart::Result, "taskId") != Ok(None);
        let asks = || frame.sole_member(FramePart::Result, "inputRequests") != Ok(None);
        if !names_task && kind.is_some() {
            return self.judge_odd_round(key, frame).map(|()| None);
        }
        if !names_task && !asks() {
            return Ok(None);
        }
        let result = frame.result().ok_or_else(ErrorResponse::unreadable)?;
        let all = Members::read_at_most(result, "result", MOST_MEMBERS);
        if matches!(all, Ok(None)) {
            return Err(too_many_members());
        }
        if kind.is_some() && names_task {
            let task = all.ok().flatten();
            let task = task.and_then(|task| task.text("taskId").ok().flatten());
            if let (Some(task), Some(call)) = (task, self.calls.get_mut(key)) {
                let capability = call.capability();
                let calling = call.summary().cloned();
                self.task_questions.begin(&task, calling, capability);
            }
        }
        if self.asks_as_defined(key, frame) {
            // The gateway reads such a response in full.
            return Ok(None);
        }
        let changed = self.judge_status(now, result, read)?;
        let range = frame.range(FramePart::Result);
        let changed = changed.zip(range);
        Ok(changed.map(|(status, range)| frame_edit::spliced(frame.text(), range, status.get())))
    }

    /// Records the response to a request of the client about a task. Returns when the request was made.
    fn task_request_ended(&mut self, key: CallId, frame: Frame<'_>) -> Option<Moment> {
        let call = self.calls.get(key)?;
        let (stream, id) = (call.stream()?, call.client_id());
        let is_refused = frame.error().is_some();
        self.task_questions.end_request(stream, id, is_refused)
    }

    /// Returns `true` if people may be asked in place of a client that shows no questions.
    fn asks_people_in_tasks(&self) -> bool {
        self.settings.answer_with != Audience::Client && self.server.may_ask_in_results()
    }

    /// Returns `true` if the response to this call asks as the protocol defines.
    fn asks_as_defined(&self, key: CallId, frame: Frame<'_>) -> bool {
        let is_judged = self.settings.decisions.is_some();
        elicitation_in(&self.server, self.calls.get(key), frame, is_judged).is_some()
    }

    /// Refuses the response to a call that has questions but does not ask as the protocol defines: a lenient client may
    /// ask them.
    fn judge_odd_round(&self, key: CallId, frame: Frame<'_>) -> Result<(), ErrorResponse> {
        if self.settings.decisions.is_none() {
            return Ok(());
        }
        let asked = frame.sole_member(FramePart::Result, "inputRequests");
        if matches!(asked, Ok(None | Some("null"))) || self.asks_as_defined(key, frame) {
            return Ok(());
        }
        let why = "the result has `inputRequests`, and its `resultType` does not say that it asks";
        Err(ErrorResponse::new(-32603, why))
    }

    /// Checks the questions in the status of a task, which was requested at the moment `read`, and asks people those that are
    /// theirs. Returns the status without these, if there are any.
    ///
    /// # Errors
    /// If one may not be asked, or people could not be asked and the client was not told so yet.
    pub(crate) fn judge_status(
        &mut self,
        now: Timestamp,
        status: &RawValue,
        read: Option<Moment>,
    ) -> Result<Option<Box<RawValue>>, ErrorResponse> {
        let decides = self.settings.decisions.is_some();
        if !decides && !self.asks_people_in_tasks() {
            return Ok(None);
        }
        let (all, task, requests) = self.questions_in_status(status)?;
        let is_over = all.text("status").ok().flatten();
        let is_over = is_over.is_some_and(|status| OVER.contains(&&*status));
        if is_over && !requests.is_empty() {
            // Nobody waits for their answers.
            self.judge_questions(now, &all, &task, &[], read)?;
            return Ok(Some(all.with("inputRequests", None)));
        }
        self.judge_questions(now, &all, &task, &requests, read)
    }

    /// Reads the status of a task: its members, the id, and the requests in it.
    #[expect(
        clippy::type_complexity,
        reason = "three parts of one text, which are read together"
    )]
    fn questions_in_status<'a>(
        &self,
        status: &'a RawValue,
    ) -> Result<(Members<'a>, String, Vec<(String, InputRequest)>), ErrorResponse> {
        let unreadable = |defect: WireError| {
            let revision = self.server.revision_or_latest();
            ErrorResponse::fault(PeerFault::from(defect), revision)
        };
        let all = few_members(status, unreadable)?;
        all.refuse_like(&["taskId", "inputRequests"], "result")
            .map_err(unreadable)?;
        let task = all.text("taskId").map_err(unreadable)?;
        let task = task.unwrap_or_default().into_owned();
        let requests = all
            .get("inputRequests")
            .filter(|requests| !members::is_null(requests));
        let Some(requests) = requests else {
            return Ok((all, task, Vec::new()));
        };
        if self.server.must_not_ask_in_results() {
            return Err(self.other_revision());
        }
        let counted = Members::read_at_most(requests, "inputRequests", QUESTIONS);
        if counted.map_err(unreadable)?.is_none() {
            let why = "the task asks too many questions at once";
            return Err(ErrorResponse::new(-32603, why));
        }
        let requests = rounds::read_requests(requests).map_err(unreadable)?;
        Ok((all, task, requests))
    }

    fn judge_questions(
        &mut self,
        now: Timestamp,
        all: &Members<'_>,
        task: &str,
        requests: &[(String, InputRequest)],
        read: Option<Moment>,
    ) -> Result<Option<Box<RawValue>>, ErrorResponse> {
        let open: BTreeSet<&str> = requests.iter().map(|(entry, _)| entry.as_str()).collect();
        if self.task_questions.status_read(task, &open, read) {
            self.withdraw_others(task, &open, Ending::WithdrawnByServer);
        }
        if requests.is_empty() {
            return Ok(None);
        }
        let mut shown = Vec::new();
        let mut left_out = BTreeSet::new();
        for (entry, request) in requests {
            let asked = match request {
                InputRequest::Elicit(request) => self.ask_in_task(now, task, entry, request, read),
                InputRequest::Other { method, .. } => {
                    if self.task_questions.has_response(task, entry, request, read) {
                        Ok(AskedInTask::NotClient)
                    } else {
                        self.other_in_task(method)
                    }
                }
            };
            match asked {
                Ok(AskedInTask::Client) => shown.push((entry.as_str(), request)),
                Ok(AskedInTask::NotClient) => {
                    left_out.insert(entry.clone());
                }
                Err(refusal) => {
                    self.task_questions.show(task, []);
                    return Err(refusal);
                }
            }
        }
        self.task_questions.show(task, shown);
        if left_out.is_empty() {
            return Ok(None);
        }
        Ok(self.status_without(all, task, &left_out))
    }

    /// Returns the refusal of a request of a task that is no question, if no round may have it.
    fn other_in_task(&self, method: &str) -> Result<AskedInTask, ErrorResponse> {
        let is_known = ["roots/list", "sampling/createMessage"].contains(&method);
        if is_known || self.settings.decisions.is_none() {
            return Ok(AskedInTask::Client);
        }
        let why = "the task asks for something that no round of 2026-07-28 may ask for";
        Err(ErrorResponse::new(-32603, why))
    }

    /// Decides who is asked a question of a task, and asks people unless they were asked before.
    fn ask_in_task(
        &mut self,
        now: Timestamp,
        task: &str,
        entry: &str,
        request: &ElicitRequest,
        read: Option<Moment>,
    ) -> Result<AskedInTask, ErrorResponse> {
        if self.ask_of_task(task, entry).is_some() {
            return Ok(AskedInTask::NotClient);
        }
        let before = self
            .task_questions
            .take_asked_before(task, entry, request, read);
        match before {
            Some(AskedBefore::Answered) => return Ok(AskedInTask::NotClient),
            Some(AskedBefore::Failed(why)) => {
                let why = format!(
                    "a question of this task has no answer: {why}. It is asked again when the task is read again, until it is cancelled"
                );
                return Err(ErrorResponse::new(-32000, why));
            }
            None => {}
        }
        let checked = match check(request) {
            Ok(checked) => checked,
            // The client is shown it as the server wrote it.
            Err(_) if self.settings.decisions.is_none() && self.is_clients(task, request) => {
                return Ok(AskedInTask::Client);
            }
            Err(fault) => {
                let revision = self.server.revision_or_latest();
                return Err(ErrorResponse::fault(fault, revision));
            }
        };
        let calls = self.task_questions.calls_of(task);
        let call = calls.known.first();
        match self.planned_in_task(now, &calls, checked.parts(request)) {
            Planned::Caller { .. }
                if !self.asks_people_in_tasks() || self.is_clients(task, request) =>
            {
                return Ok(AskedInTask::Client);
            }
            Planned::People(asked) if self.settings.answer_with == Audience::Client => {
                let refusal = RuleRefusal {
                    rule: asked.rule,
                    reason: "it asks people, and there is no inbox".to_owned(),
                };
                return Err(self.refused_in_task(now, call, &refusal));
            }
            Planned::Caller { .. } | Planned::People(_) => {}
            Planned::Refuse(refusal) => {
                return Err(self.refused_in_task(now, call, &refusal));
            }
        }
        if self.task_questions.is_cancelled_since(task, read) {
            return Ok(AskedInTask::NotClient);
        }
        let origin = Origin::Task {
            task: task.to_owned(),
            entry: entry.to_owned(),
        };
        self.open_ask(
            now,
            Attribution::default(),
            origin,
            request.clone(),
            None,
            None,
        )?;
        Ok(AskedInTask::NotClient)
    }

    fn refused_in_task(
        &mut self,
        now: Timestamp,
        call: Option<&CallSummary>,
        refusal: &RuleRefusal,
    ) -> ErrorResponse {
        if self.limits.admit_report(now) {
            self.settings.tell_not_asked(call, refusal);
        }
        let why = format!("nobody is asked the question of this task: {refusal}");
        ErrorResponse::new(-32000, why)
    }

    /// Returns `true` if the client of this task shows the question itself.
    fn is_clients(&self, task: &str, request: &ElicitRequest) -> bool {
        let audience = self.settings.answer_with;
        let can = match self.task_questions.capability_of(task) {
            Some(declared) => declared.has(request.mode()),
            None => !self.client.shows_no_question(),
        };
        can && self.client.shows(audience, None, request, None)
    }

    /// Returns the open question with this key of a task.
    fn ask_of_task(&self, task: &str, entry: &str) -> Option<AskId> {
        let mut asks = self.asks_of_task(task);
        asks.find(|(_, known)| *known == entry).map(|(key, _)| key)
    }

    /// Returns the open questions of a task that people are asked, with their keys.
    fn asks_of_task(&self, task: &str) -> impl Iterator<Item = (AskId, &str)> {
        let keys = self.asks.keys().into_iter();
        keys.filter_map(move |key| match self.asks.get(key)?.origin() {
            Origin::Task { task: of, entry } if of == task => Some((key, entry.as_str())),
            _ => None,
        })
    }

    /// Withdraws the questions of a task except for those under these keys.
    fn withdraw_others(&mut self, task: &str, open: &BTreeSet<&str>, ending: Ending) {
        let asks = self.asks_of_task(task);
        let others: Vec<AskId> = asks
            .filter(|(_, entry)| !open.contains(entry))
            .map(|(key, _)| key)
            .collect();
        for key in others {
            self.drop_question(key, ending);
        }
    }

    /// Withdraws the questions of the task that these params name, which the client cancels.
    fn withdraw_cancelled(&mut self, params: Option<&RawValue>) {
        let task = params.and_then(|params| Members::read(params, "params").ok());
        let task = task.and_then(|params| params.text("taskId").ok().flatten());
        if let Some(task) = task {
            self.task_questions.cancel(&task);
            self.withdraw_others(&task, &BTreeSet::new(), Ending::WithdrawnByClient);
        }
    }

    /// Returns the status without the questions under these keys. If no other is left, the task is working, since there
    /// is nothing that the client could answer.
    fn status_without(
        &self,
        all: &Members<'_>,
        task: &str,
        left_out: &BTreeSet<String>,
    ) -> Option<Box<RawValue>> {
        let requests = Members::read(all.get("inputRequests")?, "inputRequests").ok()?;
        let mut left = String::new();
        for (entry, request) in requests
            .iter()
            .filter(|(entry, _)| !left_out.contains(*entry))
        {
            left.push_str(if left.is_empty() { "{" } else { "," });
            members::push_quoted(&mut left, entry);
            left.push(':');
            left.push_str(request.get());
        }
        if !left.is_empty() {
            left.push('}');
            let left = RawValue::from_string(left).ok()?;
            return Some(all.with("inputRequests", Some(&left)));
        }
        let working = members::raw_text("working");
        let said = members::raw_text(&self.waiting_message_of(task));
        let status = all.with("inputRequests", None);
        let status = Members::read(&status, "result").ok()?;
        let status = status.with("status", Some(&working));
        let status = Members::read(&status, "result").ok()?;
        Some(status.with("statusMessage", Some(&said)))
    }

    /// Returns a sentence about the questions of a task that people are asked, with the address of the first.
    fn waiting_message_of(&self, task: &str) -> String {
        let mut asks = self.asks_of_task(task).peekable();
        if asks.peek().is_none() {
            return "The server has the answer".to_owned();
        }
        let link = asks.find_map(|(key, _)| self.asks.get(key)?.link());
        hand_back::waiting_for_person(link)
    }

    /// Sends the answer of people to a task.
    pub(crate) fn answer_task(
        &mut self,
        task: String,
        entry: String,
        request: &ElicitRequest,
        reply: &str,
        record: String,
    ) {
        let meta = self
            .server
            .request_meta(&self.client, self.settings.answer_with);
        let params = format!(
            r#"{{"taskId":{},"inputResponses":{{{}:{reply}}},"_meta":{}}}"#,
            members::quoted(&task),
            members::quoted(&entry),
            meta.unwrap_or_else(|| json!({})),
        );
        let Ok(params) = RawValue::from_string(params) else {
            self.effects.return_unsent(vec![record]);
            return;
        };
        let id = self.new_id();
        let frame = message::request(&id, UPDATE, Some(&params));
        self.task_questions.answered(id, task, entry, request);
        let delivery = self.deliveries.begin(vec![record], None);
        self.effects.send_to_server(frame, None, delivery);
    }

    /// Handles the server's response to the answer of people to a task. Returns `false` if it is another response.
    pub(crate) fn task_answer_taken(&mut self, id: &Id, frame: Frame<'_>) -> bool {
        if !self.task_questions.awaits(id) {
            return false;
        }
        match frame.error() {
            Some(error) => {
                let why = members::member(error, "message").and_then(members::text);
                self.task_answer_refused(id, &why.unwrap_or_default());
            }
            None => self.task_questions.answer_taken(id),
        }
        true
    }

    /// Handles the server's refusal of an answer: the client reads it instead of the status of the task.
    pub(crate) fn task_answer_refused(&mut self, id: &Id, why: &str) {
        let why = text::shortened(&self.settings.masked(why), REASON);
        tracing::warn!(server = %self.settings.server, %why, "the server refused the answer to a question of a task");
        self.task_questions
            .answer_refused(id, &format!("the server refused the answer: {why}"));
    }
}

/// Reads a result of a server, or an object in it, that has at most [`MOST_MEMBERS`].
///
/// # Errors
/// If it has more, which would take long to read, or cannot be read.
fn few_members(
    result: &RawValue,
    unreadable: impl FnOnce(WireError) -> ErrorResponse,
) -> Result<Members<'_>, ErrorResponse> {
    let read = Members::read_at_most(result, "result", MOST_MEMBERS).map_err(unreadable)?;
    read.ok_or_else(too_many_members)
}

fn too_many_members() -> ErrorResponse {
    let why = format!("the result is about a task and has more than {MOST_MEMBERS} members");
    ErrorResponse::new(-32603, why)
}

/// Refuses a response with questions in a place where no revision has them, such as the `task` of an earlier draft: a lenient
/// client may ask them.
fn refuse_inner_questions(frame: Frame<'_>) -> Result<(), ErrorResponse> {
    let inner = ["task", "tasks", "result"];
    let has_inner = inner
        .iter()
        .any(|member| frame.sole_member(FramePart::Result, member) != Ok(None));
    if !has_inner {
        return Ok(());
    }
    let result = frame.result().ok_or_else(ErrorResponse::unreadable)?;
    let unreadable = |_: WireError| ErrorResponse::unreadable();
    let all = few_members(result, unreadable)?;
    let asks = |value: &RawValue| {
        let members = few_members(value, unreadable)?;
        members
            .refuse_like(&["inputRequests"], "result")
            .map_err(unreadable)?;
        let asked = members.get("inputRequests");
        Ok::<bool, ErrorResponse>(asked.is_some_and(|asked| !members::is_null(asked)))
    };
    for member in inner {
        let Some(value) = all.get(member) else {
            continue;
        };
        let asks = if value.get().starts_with('{') {
            asks(value)?
        } else if value.get().starts_with('[') {
            let list: Vec<&RawValue> =
                serde_json::from_str(value.get()).map_err(|_| ErrorResponse::unreadable())?;
            let objects = list
                .into_iter()
                .filter(|value| value.get().starts_with('{'));
            objects
                .map(asks)
                .collect::<Result<Vec<bool>, _>>()?
                .contains(&true)
        } else {
            false
        };
        if asks {
            let why = "the result has `inputRequests` inside of another member, where the protocol has none";
            return Err(ErrorResponse::new(-32603, why));
        }
    }
    Ok(())
}
