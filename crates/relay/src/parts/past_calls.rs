//! The calls that have ended here, but that their server may still be processing: the client gave them up, or they
//! continue as tasks. A server that does not name the call of a question may mean one of them. Their number and size
//! are limited.

use std::collections::VecDeque;

use mcp_elicit_core::wire::{Frame, Id, members};

use crate::CallSummary;
use crate::parts::calls::Call;

/// The number of calls that are remembered.
const REMEMBERED: usize = 256;
/// The size of their names and arguments, in bytes.
const BYTES: usize = 4 * 1024 * 1024;

/// The calls, oldest first.
#[derive(Default)]
pub(crate) struct PastCalls {
    calls: VecDeque<PastCall>,
    bytes: usize,
    /// `true` if one was forgotten, or could not be read.
    is_incomplete: bool,
}

/// A call that has ended here.
struct PastCall {
    /// The id under which the server may still answer it; a task is answered already.
    id: Option<Id>,
    /// The id of the task that it became.
    task: Option<String>,
    call: CallSummary,
}

impl PastCall {
    /// Returns the size of its names and arguments, in bytes. The server chooses the name of a task.
    fn size(&self) -> usize {
        let id = self.id.as_ref().map_or(0, |id| id.as_json().len());
        id + self.task.as_ref().map_or(0, String::len) + size_of(&self.call)
    }
}

impl PastCalls {
    /// Records that the client has given up a call that the server is still processing.
    pub(crate) fn given_up(&mut self, call: &mut Call) {
        if call.kind().is_some() {
            let id = call.upstream_id().clone();
            self.add(Some(id), None, call.summary().cloned());
        }
    }

    /// Records that the server has answered the call with this frame, so that it continues as a task.
    pub(crate) fn became_task(&mut self, call: &mut Call, frame: Frame<'_>) {
        let task = frame.result().and_then(|result| {
            let task = members::member(result, "task")?;
            Some(members::text(members::member(task, "taskId")?)?.into_owned())
        });
        self.add(None, task, call.summary().cloned());
    }

    /// Adds a call that has ended here; the oldest are forgotten.
    fn add(&mut self, id: Option<Id>, task: Option<String>, call: Option<CallSummary>) {
        let Some(call) = call else {
            self.is_incomplete = true;
            return;
        };
        let call = PastCall { id, task, call };
        self.bytes += call.size();
        self.calls.push_back(call);
        while self.calls.len() > REMEMBERED || self.bytes > BYTES {
            let Some(oldest) = self.calls.pop_front() else {
                return;
            };
            self.bytes -= oldest.size();
            self.is_incomplete = true;
        }
    }

    /// Records that the server has answered this id: it has finished with the call.
    pub(crate) fn answered(&mut self, id: &Id) {
        self.calls.retain(|past| past.id.as_ref() != Some(id));
        self.bytes = self.calls.iter().map(PastCall::size).sum();
    }

    /// Returns `true` if the server may still answer this id.
    pub(crate) fn has(&self, id: &Id) -> bool {
        self.calls.iter().any(|past| past.id.as_ref() == Some(id))
    }

    fn has_task(&self, id: &str) -> bool {
        let mut tasks = self.calls.iter().filter_map(|past| past.task.as_deref());
        tasks.any(|task| task == id)
    }

    /// Records a client's request about a task, which may continue it: a task of an earlier session belongs to a call
    /// that is unknown here.
    pub(crate) fn note_task_request(&mut self, frame: Frame<'_>) {
        let task = frame
            .params()
            .and_then(|params| members::member(params, "taskId"));
        let Some(task) = task else {
            return;
        };
        let is_known = members::text(task).is_some_and(|task| self.has_task(&task));
        if !is_known {
            self.is_incomplete = true;
        }
    }

    /// Returns the remembered calls.
    pub(crate) fn all(&self) -> impl Iterator<Item = &CallSummary> {
        self.calls.iter().map(|past| &past.call)
    }

    /// Returns `true` if there may be others.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }
}

/// Returns the size of a call's name and arguments, in bytes.
pub(crate) fn size_of(call: &CallSummary) -> usize {
    call.target.len() + call.arguments.as_ref().map_or(0, String::len)
}
