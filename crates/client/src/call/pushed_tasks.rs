//! Tasks of 2025-11-25: the caller requests one, and the server asks on the stream of `tasks/result`, which it holds
//! until the task has ended (2025-11-25, tasks). rmcp has no types for them, so they are sent and read as plain JSON.

use std::time::Duration;

use mcp_elicit_core::wire::Revision;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientRequest, CustomRequest, CustomResult, ServerResult,
};
use serde_json::{Value, json};

use super::tasks::pause;
use super::{CallContext, CallError, RequestReply};
use crate::connection::Connection;

/// The time that a server has to notice that its task was cancelled.
const CANCEL_WAIT: Duration = Duration::from_secs(1);

/// Returns `true` if a call is made as a task: the caller requests it and the revision supports it.
pub(super) fn are_used(revision: Revision, context: &CallContext<'_>) -> bool {
    context.options.as_task && revision == Revision::V2025_11_25
}

/// Calls the tool as a task and waits for its result. Questions on the way are pushed and answered as usual.
pub(super) async fn run<H: ClientHandler>(
    connection: &Connection<H>,
    params: &CallToolRequestParams,
    context: &CallContext<'_>,
) -> Result<RequestReply, CallError> {
    let asked = json!({ "name": params.name, "arguments": params.arguments, "task": {} });
    let created = value_of(
        &connection
            .once(request("tools/call", asked), context)
            .await?,
    )?;
    let task = &created["task"];
    let Some(id) = task["taskId"].as_str() else {
        // A server that creates no task has answered already.
        return Ok(ServerResult::CustomResult(CustomResult::new(created)).into());
    };
    let poll = pause(task["pollInterval"].as_u64());
    let ended = to_end(connection, id, poll, context).await;
    if matches!(
        ended,
        Err(CallError::Stopped | CallError::Question(_) | CallError::Silent { .. })
    ) {
        let cancel = request("tasks/cancel", json!({ "taskId": id }));
        let sent = connection.peer().send_request(cancel);
        let _best_effort = tokio::time::timeout(CANCEL_WAIT, sent).await;
    }
    ended
}

/// Waits for the result, and meanwhile polls the task, whose server may work in silence.
async fn to_end<H: ClientHandler>(
    connection: &Connection<H>,
    id: &str,
    poll: Duration,
    context: &CallContext<'_>,
) -> Result<RequestReply, CallError> {
    let wanted = request("tasks/result", json!({ "taskId": id }));
    let mut result = std::pin::pin!(connection.once_as_received(wanted, context));
    let mut looking = std::pin::pin!(look_after(connection, id, poll, context));
    tokio::select! {
        result = &mut result => result,
        gone = &mut looking => match gone {
            Some(why) => Err(why),
            // The task is over, so the result is on its way.
            None => result.await,
        },
    }
}

/// Polls until the task has ended; returns the reason why it can no longer be polled, if there is one.
async fn look_after<H: ClientHandler>(
    connection: &Connection<H>,
    id: &str,
    poll: Duration,
    context: &CallContext<'_>,
) -> Option<CallError> {
    loop {
        tokio::time::sleep(poll).await;
        let look = request("tasks/get", json!({ "taskId": id }));
        let found = connection.once(look, context).await;
        let task = match found.and_then(|found| value_of(&found)) {
            Ok(task) => task,
            // The task may have been deleted with its result, which `tasks/result` returns.
            Err(CallError::Server(_)) => return None,
            Err(why) => return Some(why),
        };
        connection.eliciting().line().saw_activity();
        match task["status"].as_str() {
            Some("working" | "input_required") => {}
            Some("completed" | "failed") => return None,
            Some("cancelled") => return Some(CallError::TaskCancelled),
            _ => return Some(CallError::UnexpectedResponse),
        }
    }
}

fn request(method: &str, params: Value) -> ClientRequest {
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

fn value_of(result: &ServerResult) -> Result<Value, CallError> {
    serde_json::to_value(result).map_err(|_| CallError::UnexpectedResponse)
}
