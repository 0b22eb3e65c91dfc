//! Calls during which the server may ask: from a tool, prompt or resource to its final result, answering every question
//! in between.
//!
//! - [`single_request`]: one request and its response; watches for silence, the connection's end and the caller's stop
//! - [`received`]: results as the server wrote them
//! - [`rounds`]: `input_required`, answered and sent again (2026-07-28)
//! - [`tasks`]: `input_required` inside a task (2026-07-28, tasks extension)
//! - [`pushed_tasks`]: tasks that the caller asks for (2025-11-25)
//! - [`visits`]: the error that requires visits first (2025-11-25)

mod error;
mod pushed_tasks;
mod received;
mod request;
mod rounds;
mod single_request;
mod tasks;
mod visits;

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::misfit::ResultKind;
use mcp_elicit_core::view;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, GetPromptRequestParams, GetPromptResult, JsonObject,
    ReadResourceRequestParams, ReadResourceResult, ServerResult,
};
use tokio_util::sync::CancellationToken;

pub use error::{CallError, CallErrorKind};
pub use received::Received;
use received::RequestReply;
use request::CallRequest;
use rounds::RoundsSoFar;
use visits::CallVisits;

use crate::connection::Connection;
use crate::connection_state::Interruption;

/// Options of one call.
///
/// ```
/// use std::time::Duration;
/// use mcp_elicit_client::CallOptions;
///
/// let options = CallOptions::default().silence(Duration::from_secs(2 * 60)).as_task(true);
/// let stop = options.stop.clone();
/// // From a signal handler or another task:
/// stop.cancel();
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// The longest time without a message of the server. A person's time does not count, and progress restarts it.
    pub silence: Option<Duration>,
    /// Cancelled by the caller to stop the call; the server is notified.
    pub stop: CancellationToken,
    /// Calls a tool as a task, which some servers require for long calls (2025-11-25, `taskSupport`). It has no effect
    /// on 2026-07-28, where the server decides, and on 2025-06-18, which has no tasks.
    pub as_task: bool,
}

impl CallOptions {
    /// Sets [`silence`](Self::silence).
    #[must_use]
    pub fn silence(mut self, longest: impl Into<Option<Duration>>) -> Self {
        self.silence = longest.into();
        self
    }

    /// Sets [`stop`](Self::stop).
    #[must_use]
    pub fn stop(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// Sets [`as_task`](Self::as_task).
    #[must_use]
    pub fn as_task(mut self, as_task: bool) -> Self {
        self.as_task = as_task;
        self
    }
}

impl<H: ClientHandler> Connection<H> {
    /// Calls a tool and answers its questions.
    ///
    /// ```
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    /// use serde_json::json;
    ///
    /// async fn deploy(connection: &Connection<()>) -> Result<(), CallError> {
    ///     let arguments = serde_json::Map::from_iter([("build".to_owned(), json!(7))]);
    ///     let result = connection.call_tool("deploy", arguments, &CallOptions::default()).await?;
    ///     println!("{:?}", result.content);
    ///     Ok(())
    /// }
    /// ```
    pub async fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: JsonObject,
        options: &CallOptions,
    ) -> Result<CallToolResult, CallError> {
        let params = CallToolRequestParams::new(name.into()).with_arguments(arguments);
        let reply = Box::pin(self.drive(CallRequest::Tool(params), options)).await?;
        reply.strictly(ResultKind::Tool, self.health())
    }

    /// Gets a prompt and answers its questions.
    ///
    /// ```
    /// use mcp_elicit_client::rmcp::model::GetPromptRequestParams;
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn greeting(connection: &Connection<()>) -> Result<usize, CallError> {
    ///     let params = GetPromptRequestParams::new("greeting");
    ///     let prompt = connection.get_prompt(params, &CallOptions::default()).await?;
    ///     Ok(prompt.messages.len())
    /// }
    /// ```
    pub async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        options: &CallOptions,
    ) -> Result<GetPromptResult, CallError> {
        let reply = Box::pin(self.drive(CallRequest::Prompt(params), options)).await?;
        reply.strictly(ResultKind::Prompt, self.health())
    }

    /// Reads a resource and answers its questions.
    ///
    /// ```
    /// use mcp_elicit_client::rmcp::model::ReadResourceRequestParams;
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn notes(connection: &Connection<()>) -> Result<usize, CallError> {
    ///     let params = ReadResourceRequestParams::new("file:///notes.txt");
    ///     let resource = connection.read_resource(params, &CallOptions::default()).await?;
    ///     Ok(resource.contents.len())
    /// }
    /// ```
    pub async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        options: &CallOptions,
    ) -> Result<ReadResourceResult, CallError> {
        let reply = Box::pin(self.drive(CallRequest::Resource(params), options)).await?;
        reply.strictly(ResultKind::Resource, self.health())
    }

    async fn drive(
        &self,
        wanted: CallRequest,
        options: &CallOptions,
    ) -> Result<RequestReply, CallError> {
        let context = CallContext {
            call: wanted.call(),
            over: CancellationToken::new(),
            interruption: Arc::default(),
            options,
        };
        let ended = self.drive_to_end(wanted, &context).await;
        // Whatever the server makes of an interrupted question, the call ends in the same way on every revision.
        match context.interruption.take() {
            Some(refusal) => Err(CallError::Question(refusal)),
            None => ended.map_err(|error| error.masked(self.health())),
        }
    }

    async fn drive_to_end(
        &self,
        mut wanted: CallRequest,
        context: &CallContext<'_>,
    ) -> Result<RequestReply, CallError> {
        // Withdraws the call's questions when it is over, also when this future is dropped.
        let _over = context.over.clone().drop_guard();
        let limit = self.eliciting().dispatcher().rounds();
        let mut rounds = RoundsSoFar::new(limit);
        let mut visits = CallVisits::new(limit);
        loop {
            match self.attempt(&wanted, context).await {
                Ok(reply) => match reply.result {
                    ServerResult::InputRequiredResult(required) => {
                        let (responses, state) = rounds.answer(self, required, context).await?;
                        wanted.go_on(responses, state);
                    }
                    ServerResult::CreateTaskResult(created) => {
                        let followed = tasks::follow(self, created.task, context).await;
                        return followed.map(RequestReply::from);
                    }
                    _ => return Ok(reply),
                },
                Err(CallError::Server(error)) if visits::are_required(&error) => {
                    visits.go(self, &error, context).await?;
                    wanted.again();
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes one attempt: as a task if the caller wants one and the revision lets the caller decide.
    async fn attempt(
        &self,
        wanted: &CallRequest,
        context: &CallContext<'_>,
    ) -> Result<RequestReply, CallError> {
        let revision = self.eliciting().line().revision();
        match wanted {
            CallRequest::Tool(params) if pushed_tasks::are_used(revision, context) => {
                pushed_tasks::run(self, params, context).await
            }
            _ => self.once_as_received(wanted.to_request(), context).await,
        }
    }
}

/// The context shared by all requests of one call.
pub(crate) struct CallContext<'o> {
    pub(crate) call: view::CallView,
    /// Cancelled when the call is over.
    pub(crate) over: CancellationToken,
    /// Ends the call when one of its questions is interrupted.
    pub(crate) interruption: Arc<Interruption>,
    pub(crate) options: &'o CallOptions,
}
