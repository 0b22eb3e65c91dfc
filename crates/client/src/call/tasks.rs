//! Tasks (2026-07-28, the tasks extension): the call runs on the server, and asks through `tasks/get`.

use std::collections::BTreeSet;
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{
    CancelTaskParams, ClientRequest, CustomResult, ErrorData, GetTaskParams, GetTaskRequest,
    InputRequests, ServerResult, Task, TaskPayload, UpdateTaskParams, UpdateTaskRequest,
};
use serde_json::Value;

use super::rounds::answer_all;
use super::{CallContext, CallError};
use crate::connection::Connection;

/// The interval at which a task is polled when the server names none.
const USUAL_POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(30);

/// Follows a task to its result, and answers its questions. Each key is answered once, however often a poll lists it.
pub(super) async fn follow<H: ClientHandler>(
    connection: &Connection<H>,
    task: Task,
    context: &CallContext<'_>,
) -> Result<ServerResult, CallError> {
    let followed = follow_to_end(connection, &task, context).await;
    if matches!(
        followed,
        Err(CallError::Stopped | CallError::Question(_) | CallError::Silent { .. })
    ) {
        let asked = connection
            .peer()
            .cancel_task(CancelTaskParams::new(task.task_id));
        let _best_effort = tokio::time::timeout(USUAL_POLL, asked).await;
    }
    followed
}

async fn follow_to_end<H: ClientHandler>(
    connection: &Connection<H>,
    task: &Task,
    context: &CallContext<'_>,
) -> Result<ServerResult, CallError> {
    let mut answered = BTreeSet::new();
    let mut poll = task.poll_interval_ms;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause(poll)) => {}
            () = context.options.stop.cancelled() => return Err(CallError::Stopped),
        }
        let request =
            ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(&task.task_id)));
        let ServerResult::GetTaskResult(got) = connection.once(request, context).await? else {
            return Err(CallError::UnexpectedResponse);
        };
        poll = got.task.task.poll_interval_ms.or(poll);
        match got.task.payload {
            TaskPayload::Working => {}
            TaskPayload::InputRequired { input_requests } => {
                let new: InputRequests = input_requests
                    .into_iter()
                    .filter(|(key, _)| !answered.contains(key))
                    .collect();
                if new.is_empty() {
                    continue;
                }
                answered.extend(new.keys().cloned());
                let responses = answer_all(connection, new, context).await?;
                let update =
                    UpdateTaskRequest::new(UpdateTaskParams::new(&task.task_id, responses));
                connection
                    .once(ClientRequest::UpdateTaskRequest(update), context)
                    .await?;
            }
            TaskPayload::Completed { result } => {
                return Ok(ServerResult::CustomResult(CustomResult::new(
                    Value::Object(result),
                )));
            }
            TaskPayload::Failed { error } => {
                let error: Result<ErrorData, _> = serde_json::from_value(Value::Object(error));
                return Err(error.map_or(CallError::UnexpectedResponse, CallError::Server));
            }
            TaskPayload::Cancelled => return Err(CallError::TaskCancelled),
            _ => return Err(CallError::UnexpectedResponse),
        }
    }
}

pub(super) fn pause(poll_ms: Option<u64>) -> Duration {
    poll_ms
        .map_or(USUAL_POLL, Duration::from_millis)
        .clamp(SHORTEST_POLL, LONGEST_POLL)
}
