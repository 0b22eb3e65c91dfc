//! Tools, prompts and resources that the suite requires and that do not ask.

#![expect(deprecated, reason = "the suite still tests logging")]

use std::time::Duration;

use mcp_elicit_server::Elicit;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    AudioContent, CallToolResult, ContentBlock, GetPromptResult, ListResourceTemplatesResult,
    ListResourcesResult, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
    PromptMessage, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, Role,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, prompt, prompt_router, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Conformance, asking, reconnection, text};

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

#[derive(Deserialize, JsonSchema)]
struct TwoArguments {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
struct ResourceArgument {
    /// URI of the resource to embed
    #[serde(rename = "resourceUri")]
    resource_uri: String,
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> ResourceContents {
    ResourceContents::text(text, uri).with_mime_type(mime_type)
}

#[tool_router(router = plain, vis = "pub(crate)")]
impl Conformance {
    /// Returns the tools that do not ask, and those that build their own rounds.
    pub(crate) fn plain_tools() -> rmcp::handler::server::router::tool::ToolRouter<Self> {
        Self::plain() + Self::by_hand_tools()
    }

    /// Returns the tools that ask.
    pub(crate) fn asking() -> rmcp::handler::server::router::tool::ToolRouter<Self> {
        Self::asking_tools()
    }

    #[tool(name = "test_simple_text", description = "Text")]
    async fn simple_text(&self) -> CallToolResult {
        text("This is a simple text response for testing.")
    }

    #[tool(name = "test_image_content", description = "An image")]
    async fn image(&self) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::image(PNG, "image/png")])
    }

    #[tool(name = "test_audio_content", description = "A sound")]
    async fn audio(&self) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::Audio(AudioContent::new(
            WAV,
            "audio/wav",
        ))])
    }

    #[tool(name = "test_embedded_resource", description = "A resource")]
    async fn embedded(&self) -> CallToolResult {
        let words = "This is an embedded resource content.";
        CallToolResult::success(vec![ContentBlock::resource(embedded(
            "test://embedded-resource",
            "text/plain",
            words,
        ))])
    }

    #[tool(
        name = "test_multiple_content_types",
        description = "Text, an image and a resource"
    )]
    async fn mixed(&self) -> CallToolResult {
        let words = r#"{"test":"data","value":123}"#;
        CallToolResult::success(vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PNG, "image/png"),
            ContentBlock::resource(embedded(
                "test://mixed-content-resource",
                "application/json",
                words,
            )),
        ])
    }

    #[tool(name = "test_error_handling", description = "An error")]
    async fn error(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )])
    }

    #[tool(name = "test_tool_with_logging", description = "Says what it does")]
    async fn logging(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        for words in [
            "Tool execution started",
            "Tool processing data",
            "Tool execution completed",
        ] {
            log(&context, words).await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(text("done"))
    }

    #[tool(
        name = "test_logging_tool",
        description = "Says what it does if it may"
    )]
    async fn logging_at_level(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        log(&context, "Tool execution started").await?;
        Ok(text("done"))
    }

    #[tool(name = "test_tool_with_progress", description = "Tells how far it is")]
    async fn progress(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        for step in [0, 50, 100] {
            if let Some(token) = context.meta.get_progress_token() {
                let progress =
                    ProgressNotificationParam::new(token, f64::from(step)).with_total(100.0);
                context
                    .peer
                    .notify_progress(progress)
                    .await
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(text("done"))
    }

    #[tool(
        name = "test_reconnection",
        description = "Ends the stream of its call before the result is there"
    )]
    async fn reconnection(&self, context: RequestContext<RoleServer>) -> CallToolResult {
        reconnection::until_client_is_back(&context).await;
        text("The client came back for this.")
    }
}

/// Sends `words` as a log message to clients that ask for it: on 2026-07-28, only if the request asks for a log.
async fn log(context: &RequestContext<RoleServer>, words: &str) -> Result<(), ErrorData> {
    let rounds = context
        .protocol_version()
        .is_some_and(|version| !version.has_initialize());
    if rounds && context.meta.log_level().is_none() {
        return Ok(());
    }
    let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(words));
    let told = context.peer.notify_logging_message(message).await;
    told.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

#[prompt_router(router = "prompts", vis = "pub(crate)")]
impl Conformance {
    #[prompt(name = "test_simple_prompt", description = "Text")]
    async fn simple_prompt(&self) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(
            Role::User,
            "This is a simple prompt for testing.",
        )]
    }

    #[prompt(
        name = "test_prompt_with_arguments",
        description = "Text with two arguments"
    )]
    async fn prompt_with_arguments(
        &self,
        Parameters(TwoArguments { arg1, arg2 }): Parameters<TwoArguments>,
    ) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(
            Role::User,
            format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"),
        )]
    }

    #[prompt(
        name = "test_prompt_with_embedded_resource",
        description = "A resource and text"
    )]
    async fn prompt_with_resource(
        &self,
        Parameters(ResourceArgument { resource_uri }): Parameters<ResourceArgument>,
    ) -> Vec<PromptMessage> {
        let resource = embedded(
            &resource_uri,
            "text/plain",
            "Embedded resource content for testing.",
        );
        vec![
            PromptMessage::new(Role::User, ContentBlock::resource(resource)),
            PromptMessage::new_text(Role::User, "Please process the embedded resource above."),
        ]
    }

    #[prompt(name = "test_prompt_with_image", description = "An image and text")]
    async fn prompt_with_image(&self) -> Vec<PromptMessage> {
        vec![
            PromptMessage::new(Role::User, ContentBlock::image(PNG, "image/png")),
            PromptMessage::new_text(Role::User, "Please analyze the image above."),
        ]
    }

    #[prompt(
        name = "test_input_required_result_prompt",
        description = "Asks for its context"
    )]
    async fn prompt_that_asks(&self, elicit: Elicit) -> Result<GetPromptResult, ErrorData> {
        asking::prompt(elicit).await
    }
}

pub(crate) fn resources() -> ListResourcesResult {
    let text = Resource::new("test://static-text", "Static text")
        .with_description("A text")
        .with_mime_type("text/plain");
    let binary = Resource::new("test://static-binary", "Static binary")
        .with_description("A picture")
        .with_mime_type("image/png");
    ListResourcesResult {
        resources: vec![text, binary],
        ..ListResourcesResult::default()
    }
}

pub(crate) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new("test://template/{id}/data", "Template")
        .with_mime_type("application/json");
    ListResourceTemplatesResult {
        resource_templates: vec![template],
        ..ListResourceTemplatesResult::default()
    }
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let contents = match uri {
        "test://static-text" => embedded(
            uri,
            "text/plain",
            "This is the content of the static text resource.",
        ),
        "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        _ => {
            let id = uri
                .strip_prefix("test://template/")
                .and_then(|rest| rest.strip_suffix("/data"));
            let Some(id) = id else {
                return Err(ErrorData::resource_not_found(
                    "Resource not found",
                    Some(json!({ "uri": uri })),
                ));
            };
            let words =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            embedded(uri, "application/json", &words.to_string())
        }
    };
    Ok(ReadResourceResult::new(vec![contents]).into())
}
