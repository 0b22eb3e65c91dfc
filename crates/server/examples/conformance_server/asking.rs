//! Tools and a prompt that ask through `Elicit`, the same on every revision.

use mcp_elicit_server::{Elicit, ElicitError};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, GetPromptResult, PromptMessage, Role};
use rmcp::{ErrorData, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Conformance, outcome, text};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Name {
    pub(crate) name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Context {
    pub(crate) context: String,
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

#[tool_router(router = asking_tools, vis = "pub(crate)")]
impl Conformance {
    #[tool(
        name = "test_elicitation",
        description = "Asks with the message it is given"
    )]
    async fn elicitation(
        &self,
        elicit: Elicit,
        Parameters(Message { message }): Parameters<Message>,
    ) -> Result<CallToolResult, ErrorData> {
        let schema = json!({
            "type": "object",
            "properties": {
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" }
            },
            "required": ["username", "email"]
        });
        Ok(text(format!(
            "User response: {}",
            outcome(&elicit, &message, &schema).await?
        )))
    }

    #[tool(
        name = "test_elicitation_sep1034_defaults",
        description = "Asks with defaults of every kind"
    )]
    async fn defaults(&self, elicit: Elicit) -> Result<CallToolResult, ErrorData> {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                "verified": { "type": "boolean", "default": true }
            }
        });
        let outcome = outcome(&elicit, "Please check these values", &schema).await?;
        Ok(text(format!("Elicitation completed: {outcome}")))
    }

    #[tool(
        name = "test_input_required_result_elicitation",
        description = "Asks for a name"
    )]
    async fn name(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let Name { name } = elicit.form("What is your name?").key("user_name").await?;
        Ok(format!("Hello, {name}!"))
    }

    #[tool(
        name = "test_input_required_result_request_state",
        description = "Asks for a yes"
    )]
    async fn state(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let Sure { ok } = elicit.form("Please confirm").key("confirm").await?;
        // The handler gets here only with a state that was opened and verified.
        Ok(format!("state-ok: {ok}"))
    }

    #[tool(
        name = "test_input_required_result_tampered_state",
        description = "Asks for a yes"
    )]
    async fn tampered(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let Sure { ok } = elicit.form("Please confirm").key("confirm").await?;
        Ok(format!("confirmed: {ok}"))
    }

    #[tool(
        name = "test_input_required_result_multi_round",
        description = "Asks twice, one after the other"
    )]
    async fn rounds(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let Name { name } = elicit
            .form("Step 1: What is your name?")
            .key("step1")
            .await?;
        let Colour { color } = elicit
            .form("Step 2: What is your favorite color?")
            .key("step2")
            .await?;
        Ok(format!("{name} likes {color}"))
    }

    #[tool(
        name = "test_streaming_elicitation",
        description = "Asks for a name, for clients that watch the stream"
    )]
    async fn streaming(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let Name { name } = elicit.form("What is your name?").key("user_name").await?;
        Ok(format!("Hello, {name}!"))
    }
}

/// The prompt that asks.
pub(crate) async fn prompt(elicit: Elicit) -> Result<GetPromptResult, ErrorData> {
    let Context { context } = elicit
        .form("What context should the prompt use?")
        .key("user_context")
        .await?;
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(
        Role::User,
        format!("Use this context: {context}"),
    )]))
}
