//! The task backend: `tasks/get` shows the question as `input_required`, `tasks/update` brings the response.
//!
//! The operation of a task lives on the server, so nothing is replayed. The task has its own cancellation, because the
//! token of the call that created the task is cancelled as soon as that call is answered. An ask that ends without a
//! response (deadline passed, future dropped) removes its question from the list.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use mcp_elicit_core::wire::{Capability, Revision};
use rmcp::model::{ElicitRequest, InputRequest};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager};
use serde_json::Value;
use tokio::time::Instant;

use super::question_params::{params, read_reply};
use super::{AdmitFn, AskResult};
use crate::error::ElicitError;
use crate::question::OutgoingQuestion;

/// The task whose operation asks.
pub(crate) struct InTask {
    revision: Revision,
    capability: Capability,
    manager: TaskManager,
    task: TaskContext,
    /// Uses per author's key: keys must be unique over the life of a task.
    keys: Mutex<HashMap<String, u32>>,
}

impl fmt::Debug for InTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InTask")
            .field("task", &self.task.task_id())
            .finish_non_exhaustive()
    }
}

impl InTask {
    pub(crate) fn new(
        revision: Revision,
        capability: Capability,
        manager: TaskManager,
        task: TaskContext,
    ) -> Self {
        Self {
            revision,
            capability,
            manager,
            task,
            keys: Mutex::default(),
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn capability(&self) -> Capability {
        self.capability
    }

    pub(crate) async fn put(
        &self,
        question: &OutgoingQuestion,
        admit: AdmitFn<'_>,
    ) -> Result<AskResult, ElicitError> {
        admit()?;
        let since = Instant::now();
        let key = self.fresh_key(question.key.as_deref().unwrap_or("question"));
        let request =
            InputRequest::Elicitation(ElicitRequest::new(params(question, self.revision)?));
        let withdraw = RemoveOnDrop {
            of: self,
            key: &key,
        };
        let answer = self.task.request_input(key.clone(), request);
        let answered = tokio::time::timeout(question.timeout, answer).await;
        drop(withdraw);
        match answered {
            Ok(Ok(value)) => Ok(AskResult::fresh(
                read_reply(&value, question.mode()),
                since.elapsed(),
            )),
            Ok(Err(TaskExit::Cancelled)) => Err(ElicitError::CallCancelled),
            Ok(Err(TaskExit::Error(error))) => Err(ElicitError::Author(error.message.into_owned())),
            Err(_) => Err(ElicitError::TimedOut {
                after: question.timeout,
            }),
        }
    }

    fn fresh_key(&self, base: &str) -> String {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let used = keys.entry(base.to_owned()).or_default();
        *used += 1;
        if *used == 1 {
            base.to_owned()
        } else {
            format!("{base}-{used}")
        }
    }
}

/// A guard that removes a question from the list when its ask ends. rmcp removes only questions that were answered or
/// cancelled, so this gives an answer that is not waited for; a question that is already off the list stays so.
struct RemoveOnDrop<'a> {
    of: &'a InTask,
    key: &'a str,
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        let nothing = [(self.key.to_owned(), Value::Null)];
        if let Err(error) = self.of.manager.update_task(self.of.task.task_id(), nothing) {
            tracing::debug!(%error, "a question of a task that is gone could not be withdrawn");
        }
    }
}
