//! The server that the official conformance suite drives: `-- --listen 127.0.0.1:8080`, MCP at `/mcp`.
//!
//! The tools that ask use the API of this crate (`asking`, `in_tasks`). Those that also need sampling or roots ask by
//! hand (`by_hand`), which shows that one wrapper serves both. Everything else is in `plain`.

#![expect(
    deprecated,
    reason = "the suite still tests logging and resource subscriptions"
)]

#[path = "../listen/mod.rs"]
mod listen;

mod asking;
mod by_hand;
mod in_tasks;
mod plain;
mod reconnection;
mod schemas;

use listen::over_http;
use mcp_elicit_server::{Elicit, ElicitingExt, ServerSettings};
use rmcp::handler::server::router::prompt::PromptRouter;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{
    CallToolResult, CancelTaskParams, CompleteRequestParams, CompleteResult, ContentBlock,
    GetTaskParams, GetTaskResult, Implementation, ListResourceTemplatesResult, ListResourcesResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, RoleServer, ServerHandler, prompt_handler, tool_handler};

#[derive(Clone)]
pub(crate) struct Conformance {
    tools: ToolRouter<Self>,
    prompts: PromptRouter<Self>,
    tasks: TaskManager,
}

impl Conformance {
    fn new() -> Self {
        Self {
            tools: Self::asking() + Self::in_tasks() + Self::plain_tools() + schemas::tools(),
            prompts: Self::prompts(),
            tasks: TaskManager::new(),
        }
    }
}

#[tool_handler(router = self.tools)]
#[prompt_handler(router = self.prompts)]
impl ServerHandler for Conformance {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_logging()
            .enable_completions()
            .enable_tasks()
            .build();
        let mut config = ServerConfig::new(capabilities);
        config.server_info =
            Implementation::new("mcp-elicit-conformance", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(plain::resources())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(plain::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        plain::read(&request.uri)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks
            .update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = ServerSettings::default().audience("conformance");
    let server = Conformance::new();
    let wrapped = move || server.clone().eliciting(settings.clone());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, address] = &arguments[..]
        && flag == "--listen"
    {
        let listener = tokio::net::TcpListener::bind(address).await?;
        let router = over_http::router(axum::Router::new(), wrapped);
        return over_http::run(listener, reconnection::with_streams_that_end(router)).await;
    }
    listen::serve(arguments.into_iter(), wrapped).await
}

/// Returns the result with which most tools of the suite end.
fn text(words: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(words)])
}

/// Parses a form that the suite describes.
fn form(schema: &serde_json::Value) -> Result<mcp_elicit_core::form::Form, ErrorData> {
    mcp_elicit_core::form::Form::from_value(schema)
        .map_err(|defects| ErrorData::internal_error(defects.to_string(), None))
}

/// Returns the outcome of a question in the words that the suite expects.
async fn outcome(
    elicit: &Elicit,
    message: &str,
    schema: &serde_json::Value,
) -> Result<String, ErrorData> {
    let asked = elicit.ask(message, form(schema)?);
    Ok(match asked.outcome().await? {
        mcp_elicit_server::AskOutcome::Accept(answers) => {
            format!("action=accept, content={}", answers.into_value())
        }
        mcp_elicit_server::AskOutcome::Decline => "action=decline".into(),
        mcp_elicit_server::AskOutcome::Cancel => "action=cancel".into(),
    })
}
