//! Inside a task: `tasks/get` shows the question as `input_required`, `tasks/update` brings the reply.
//!
//! The operation behind a task lives on the server, so nothing is replayed. Its cancellation is the task's own: the
//! token of the call that made the task fires as soon as that call is answered.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use mcp_elicit_core::wire::{Capability, Revision};
use rmcp::model::{ElicitRequest, InputRequest};
use rmcp::task_manager::{TaskContext, TaskExit};
use tokio::time::Instant;

use super::rounds::{params, read_reply};
use super::{Admit, Put};
use crate::question::Question;
use crate::unanswered::Unanswered;

/// The task whose operation asks.
pub(crate) struct InTask {
    revision: Revision,
    capability: Capability,
    task: TaskContext,
    /// Keys must be unique over the life of a task, however often the author uses one.
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
    pub(crate) fn new(revision: Revision, capability: Capability, task: TaskContext) -> Self {
        Self {
            revision,
            capability,
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
        question: &Question,
        admit: Admit<'_>,
    ) -> Result<Put, Unanswered> {
        admit()?;
        let since = Instant::now();
        let key = self.fresh_key(question.key.as_deref().unwrap_or("question"));
        let request =
            InputRequest::Elicitation(ElicitRequest::new(params(question, self.revision)?));
        let answer = self.task.request_input(key, request);
        match tokio::time::timeout(question.timeout, answer).await {
            Ok(Ok(value)) => Ok(Put::fresh(
                read_reply(&value, question.mode()),
                since.elapsed(),
            )),
            Ok(Err(TaskExit::Cancelled)) => Err(Unanswered::CallCancelled),
            Ok(Err(TaskExit::Error(error))) => Err(Unanswered::Author(error.message.into_owned())),
            Err(_) => Err(Unanswered::TimedOut {
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
