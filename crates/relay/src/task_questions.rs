//! The questions of tasks (tasks extension of 2026-07-28). The client reads them with `tasks/get` and answers with `tasks/update`, so
//! the gateway asks nobody about them. They pass only where an operator's decisions leave them to the caller.

use std::collections::{BTreeMap, BTreeSet};

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::{ElicitRequest, InputRequest, InputResponses, WireError, rounds};
use serde_json::value::RawValue;

use crate::calls::Call;
use crate::decisions::{Planned, RuleRefusal};
use crate::frame_edit::ErrorResponse;
use crate::from_server::unreadable;
use crate::new_asks::check;
use crate::past_calls::size_of;
use crate::{CallId, CallSummary, ClientForward, ClientFrame, Relay, Timestamp};

/// The number of tasks that are remembered.
const REMEMBERED: usize = 1_024;
/// The size of the names and arguments of their calls and of the keys of their questions, in bytes.
const BYTES: usize = 4 * 1024 * 1024;
/// The most questions of a task.
const QUESTIONS: usize = 1_024;

/// The tasks that calls became, by their ids. A task that is forgotten is one of an unknown call.
#[derive(Default)]
pub(crate) struct TaskQuestions {
    tasks: BTreeMap<String, Task>,
    last: u64,
}

/// A task.
#[derive(Default)]
struct Task {
    /// Which one it is: later ones have greater numbers.
    number: u64,
    call: Option<CallSummary>,
    /// The keys of the questions that the client was shown.
    shown: BTreeSet<String>,
}

impl Task {
    fn size(&self, id: &str) -> usize {
        let call = self.call.as_ref().map_or(0, size_of);
        id.len() + call + self.shown.iter().map(String::len).sum::<usize>()
    }
}

impl TaskQuestions {
    fn call_of(&self, id: &str) -> Option<&CallSummary> {
        self.tasks.get(id)?.call.as_ref()
    }

    /// A call became this task.
    fn begin(&mut self, id: String, call: Option<CallSummary>) {
        let shown = BTreeSet::new();
        self.last += 1;
        let number = self.last;
        self.tasks.insert(
            id,
            Task {
                number,
                call,
                shown,
            },
        );
        self.forget_oldest();
    }

    /// The client is shown questions of this task under these keys, and no others.
    fn show(&mut self, id: &str, keys: BTreeSet<String>) {
        if !keys.is_empty() && !self.tasks.contains_key(id) {
            self.begin(id.to_owned(), None);
        }
        if let Some(task) = self.tasks.get_mut(id) {
            task.shown = keys;
        }
        self.forget_oldest();
    }

    fn was_shown(&self, id: &str, key: &str) -> bool {
        let task = self.tasks.get(id);
        task.is_some_and(|task| task.shown.contains(key))
    }

    /// Returns whether the client was shown all questions that these params answer.
    fn were_shown(&self, params: &RawValue) -> Result<bool, WireError> {
        let all = Members::read(params, "params")?;
        all.refuse_like(&["taskId", "inputResponses"], "params")?;
        let answers = all
            .get("inputResponses")
            .filter(|answers| !members::is_null(answers));
        let Some(answers) = answers else {
            return Ok(true);
        };
        let task = all.need_text("taskId")?;
        let answers = InputResponses::parse(answers)?;
        let mut keys = answers.keys();
        Ok(keys.all(|key| self.was_shown(&task, key)))
    }

    fn forget_oldest(&mut self) {
        let mut bytes: usize = self.tasks.iter().map(|(id, task)| task.size(id)).sum();
        while self.tasks.len() > REMEMBERED || bytes > BYTES {
            let oldest = self.tasks.iter().min_by_key(|(_, task)| task.number);
            let Some(id) = oldest.map(|(id, _)| id.clone()) else {
                return;
            };
            if let Some(task) = self.tasks.remove(&id) {
                bytes -= task.size(&id);
            }
        }
    }
}

impl Relay {
    /// A request about a task. Refused where it answers questions that the client was not shown: they may be for others to answer.
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
                           `tasks/get`; one that a rule gives to other people, or refuses, cannot be answered";
                Some(self.reject(frame, &ErrorResponse::new(-32602, why)))
            }
            Err(defect) => {
                let why = format!("no rule of the gateway can be judged: {defect}");
                Some(self.reject(frame, &ErrorResponse::new(-32602, why)))
            }
        }
    }

    /// Judges the questions in a response that says how a task is, or that a call became one. `Err` where they are not the caller's.
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
        let result = frame.result().ok_or_else(unreadable)?;
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

    /// Refuses the response to a call that has questions and does not say, in the protocol's words, that it asks: a client that is less strict
    /// may ask them.
    fn judge_odd_round(&self, key: CallId, frame: Frame<'_>) -> Result<(), ErrorResponse> {
        let asked = frame.sole_member(FramePart::Result, "inputRequests");
        if matches!(asked, Ok(None | Some("null"))) || self.elicitation_in(key, frame).is_some() {
            return Ok(());
        }
        let why = "the result has `inputRequests`, and its `resultType` does not say that it asks";
        Err(ErrorResponse::new(-32603, why))
    }

    /// Judges the questions that the status of a task holds.
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
            self.tell_not_asked(call, &refusal);
        }
        let why = format!("nobody is asked the question of this task: {refusal}");
        Some(ErrorResponse::new(-32000, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_is_too_large_to_be_remembered_is_none_that_was_shown() {
        let mut tasks = TaskQuestions::default();
        let keys = || BTreeSet::from(["k".to_owned()]);
        tasks.show("a", keys());
        let large = "x".repeat(BYTES + 1);
        tasks.show(&large, keys());
        assert!(!tasks.was_shown(&large, "k"));
        tasks.show("b", keys());
        assert!(tasks.was_shown("b", "k"));
    }
}
