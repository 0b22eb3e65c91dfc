//! The callers of tasks. If a server has one identity for all callers of the gateway, it cannot keep their tasks apart,
//! so the gateway does: a task belongs to the caller whose call became it.

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::wire::WireError;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::Members;
use serde_json::value::RawValue;

use crate::frame_edit::{self, ErrorResponse};
use crate::from_server::unreadable;
use crate::parts::calls::Call;
use crate::parts::task_owners::task_in;
use crate::{CallId, ClientForward, ClientFrame, Relay};

impl Relay {
    /// Refuses a request about a task of another caller, or an unknown one.
    pub(crate) fn refuse_foreign_task(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
    ) -> Option<ClientForward> {
        let caller = self.settings.task_caller.as_ref()?;
        if !method.starts_with("tasks/") || method == "tasks/list" {
            return None;
        }
        match frame.params().map(task_in) {
            Some(Ok(Some(task))) if self.settings.task_owners.is_of(&task, caller) => None,
            Some(Err(defect)) => {
                Some(self.reject(frame, &ErrorResponse::new(-32602, defect.to_string())))
            }
            Some(Ok(_)) | None => {
                let why = "no call of this caller has become this task: the gateway keeps the tasks of its callers apart";
                Some(self.reject(frame, &ErrorResponse::new(-32602, why)))
            }
        }
    }

    /// Records the caller of a call that has become a task, who may ask about it.
    pub(crate) fn note_task_owner(&mut self, key: CallId, frame: Frame<'_>) {
        let Some(caller) = self.settings.task_caller.clone() else {
            return;
        };
        let may_become_task = self
            .calls
            .get(key)
            .is_some_and(|call| call.kind().is_some());
        let has = |name| frame.sole_member(FramePart::Result, name) != Ok(None);
        if !may_become_task || !(has("task") || has("taskId")) {
            return;
        }
        let Some(Ok(result)) = frame.result().map(|result| Members::read(result, "result")) else {
            return;
        };
        let begun = result.get("task").map(task_in);
        let begun = begun.and_then(Result::ok).flatten();
        let itself = result.text("taskId").ok().flatten().map(Into::into);
        for task in begun.into_iter().chain(itself) {
            self.settings.task_owners.begin(task, caller.clone());
        }
    }

    /// Returns the response to `tasks/list` without the tasks of other callers; `None` if it contains none of them.
    ///
    /// # Errors
    /// The refusal of a list that cannot be read.
    pub(crate) fn own_tasks(
        &self,
        key: CallId,
        frame: Frame<'_>,
    ) -> Result<Option<String>, ErrorResponse> {
        let lists = self.calls.get(key).is_some_and(Call::lists_tasks);
        let (Some(caller), true) = (&self.settings.task_caller, lists) else {
            return Ok(None);
        };
        let Some(range) = frame.range(FramePart::Result) else {
            return Ok(None);
        };
        let result = frame.result().ok_or_else(unreadable)?;
        let refusal = |defect: WireError| {
            let revision = self.server.revision_or_latest();
            ErrorResponse::fault(PeerFault::from(defect), revision)
        };
        let result = Members::read(result, "result").map_err(refusal)?;
        result.refuse_like(&["tasks"], "result").map_err(refusal)?;
        let Some(tasks) = result.get("tasks") else {
            return Ok(None);
        };
        let tasks: Vec<&RawValue> = serde_json::from_str(tasks.get()).map_err(|_| unreadable())?;
        let is_own = |task: &&&RawValue| matches!(task_in(task), Ok(Some(task)) if self.settings.task_owners.is_of(&task, caller));
        let own: Vec<&RawValue> = tasks.iter().filter(is_own).copied().collect();
        if own.len() == tasks.len() {
            return Ok(None);
        }
        let own = serde_json::value::to_raw_value(&own).map_err(|_| unreadable())?;
        let result = result.with("tasks", Some(&own));
        Ok(Some(frame_edit::spliced(frame.text(), range, result.get())))
    }
}
