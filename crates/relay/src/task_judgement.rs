//! The questions of tasks (tasks extension of 2026-07-28). The client reads them with `tasks/get` and answers with
//! `tasks/update`, so the gateway does not ask them. They are passed on only if an operator's decisions leave them to
//! the caller.

use std::collections::BTreeSet;

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::{ElicitRequest, InputRequest, WireError, rounds};
use serde_json::value::RawValue;

use crate::decisions::{Planned, RuleRefusal};
use crate::frame_edit::ErrorResponse;
use crate::new_asks::check;
use crate::parts::calls::Call;
use crate::{CallId, CallSummary, ClientForward, ClientFrame, Relay, Timestamp};

/// The most questions of a task.
const QUESTIONS: usize = 1_024;

impl Relay {
    /// Handles a request about a task. Refuses it if it answers questions that the client was not shown, because others
    /// may have to answer them.
    pub(crate) fn refuse_task_request(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
    ) -> Option<ClientForward> {
        if self.settings.decisions.is_none() || !method.starts_with("tasks/") {
            return None;
        }
        if self.server.pushes_questions_of_tasks() {
            self.past_calls.note_task_request(*frame);
        }
        let params = frame.params()?;
        match self.task_questions.were_shown(params) {
            Ok(true) => None,
            Ok(false) => {
                tracing::warn!(server = %self.settings.server, "answers to questions of a task that were not shown are refused");
                let why = "the gateway has not shown this client the question of this task that it answers: read it with \
                           `tasks/get`; a question that a rule addresses to other people, or refuses, cannot be answered";
                Some(self.effects.reject(frame, &ErrorResponse::new(-32602, why)))
            }
            Err(defect) => {
                let why = format!("no rule of the gateway can be judged: {defect}");
                Some(self.effects.reject(frame, &ErrorResponse::new(-32602, why)))
            }
        }
    }

    /// Checks the questions in a response about a task, or one in which a call became a task. `Err` if they are not the
    /// caller's.
    pub(crate) fn judge_task(
        &mut self,
        now: Timestamp,
        key: CallId,
        frame: Frame<'_>,
    ) -> Result<(), ErrorResponse> {
        if self.settings.decisions.is_none() || self.server.must_not_ask_in_results() {
            // Every result that asks was refused before.
            return Ok(());
        }
        if !frame
            .part(FramePart::Result)
            .is_some_and(|part| part.starts_with('{'))
        {
            // An error, or nothing.
            return Ok(());
        }
        let kind = self.calls.get(key).and_then(Call::kind);
        let names_task = frame.sole_member(FramePart::Result, "taskId") != Ok(None);
        let asks = || frame.sole_member(FramePart::Result, "inputRequests") != Ok(None);
        if !names_task && kind.is_some() {
            return self.judge_odd_round(key, frame);
        }
        if !names_task && !asks() {
            return Ok(());
        }
        let result = frame.result().ok_or_else(ErrorResponse::unreadable)?;
        if kind.is_some() && names_task {
            let calling = self.calls.get_mut(key).and_then(Call::summary).cloned();
            let task = Members::read(result, "result").ok();
            let task = task.and_then(|task| task.text("taskId").ok().flatten());
            if let Some(task) = task {
                self.task_questions.begin(task.into_owned(), calling);
            }
        }
        if kind.is_some() && self.elicitation_in(key, frame).is_some() {
            // The gateway reads such a response in full.
            return Ok(());
        }
        self.judge_status(now, result)
    }

    /// Refuses the response to a call that has questions but does not ask as the protocol defines: a lenient client may
    /// ask them.
    fn judge_odd_round(&self, key: CallId, frame: Frame<'_>) -> Result<(), ErrorResponse> {
        let asked = frame.sole_member(FramePart::Result, "inputRequests");
        if matches!(asked, Ok(None | Some("null"))) || self.elicitation_in(key, frame).is_some() {
            return Ok(());
        }
        let why = "the result has `inputRequests`, and its `resultType` does not say that it asks";
        Err(ErrorResponse::new(-32603, why))
    }

    /// Checks the questions in the status of a task.
    pub(crate) fn judge_status(
        &mut self,
        now: Timestamp,
        status: &RawValue,
    ) -> Result<(), ErrorResponse> {
        if self.settings.decisions.is_none() {
            return Ok(());
        }
        let unreadable = |defect: WireError| {
            let revision = self.server.revision_or_latest();
            ErrorResponse::fault(PeerFault::from(defect), revision)
        };
        let all = Members::read(status, "result").map_err(unreadable)?;
        all.refuse_like(&["taskId", "inputRequests"], "result")
            .map_err(unreadable)?;
        let task = all.text("taskId").map_err(unreadable)?;
        let requests = all
            .get("inputRequests")
            .filter(|requests| !members::is_null(requests));
        let Some(requests) = requests else {
            return Ok(());
        };
        if self.server.must_not_ask_in_results() {
            return Err(self.other_revision());
        }
        let requests = rounds::read_requests(requests).map_err(unreadable)?;
        let task = task.unwrap_or_default();
        let mut keys = BTreeSet::new();
        for (name, request) in requests {
            if let InputRequest::Other { method, .. } = &request
                && !["roots/list", "sampling/createMessage"].contains(&method.as_str())
            {
                let why = "the task asks for something that no round of 2026-07-28 may ask for";
                self.task_questions.show(&task, BTreeSet::new());
                return Err(ErrorResponse::new(-32603, why));
            }
            if let InputRequest::Elicit(request) = &request {
                let call = self.task_questions.call_of(&task).cloned();
                let refusal = self.refusal_in_task(now, call.as_ref(), request);
                if let Some(refusal) = refusal {
                    self.task_questions.show(&task, BTreeSet::new());
                    return Err(refusal);
                }
            }
            keys.insert(name);
        }
        if keys.len() > QUESTIONS {
            let why = "the task asks too many questions at once";
            return Err(ErrorResponse::new(-32603, why));
        }
        self.task_questions.show(&task, keys);
        Ok(())
    }

    /// Returns the refusal of a question of a task that is not the caller's.
    fn refusal_in_task(
        &mut self,
        now: Timestamp,
        call: Option<&CallSummary>,
        request: &ElicitRequest,
    ) -> Option<ErrorResponse> {
        let checked = match check(request) {
            Ok(checked) => checked,
            Err(fault) => {
                let revision = self.server.revision_or_latest();
                return Some(ErrorResponse::fault(fault, revision));
            }
        };
        let refusal = match self.planned_for(now, call, checked.parts(request)) {
            Planned::Caller { .. } => return None,
            Planned::Refuse(refusal) => refusal,
            Planned::People(asked) => RuleRefusal {
                rule: asked.rule,
                reason: "it asks people, and the question of a task cannot be put to them; make the call without \
                         the tasks extension"
                    .to_owned(),
            },
        };
        if self.limits.admit_report(now) {
            self.settings.tell_not_asked(call, &refusal);
        }
        let why = format!("nobody is asked the question of this task: {refusal}");
        Some(ErrorResponse::new(-32000, why))
    }
}
