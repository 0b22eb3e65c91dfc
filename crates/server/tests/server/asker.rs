//! A server that asks in every possible way.

use mcp_elicit_core::form::Form;
use mcp_elicit_server::{AskOutcome, Elicit, ElicitError};
use rmcp::model::{
    GetPromptResult, ListResourcesResult, PaginatedRequestParams, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, Role,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, prompt, prompt_handler, prompt_router, tool,
    tool_handler, tool_router,
};
use serde::Deserialize;
use serde_json::json;

#[derive(Clone)]
pub(crate) struct Asker;

#[derive(Debug, schemars::JsonSchema, Deserialize)]
struct Target {
    /// The environment to deploy to
    environment: Environment,
    note: Option<String>,
}

#[derive(Debug, schemars::JsonSchema, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Environment {
    Staging,
    Production,
}

#[derive(schemars::JsonSchema, Deserialize)]
struct Age {
    #[schemars(range(min = 18))]
    age: u8,
}

#[tool_router]
impl Asker {
    #[tool(description = "A form, and a confirmation that depends on it")]
    async fn deploy(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let target = elicit.form::<Target>("Where to?").await?;
        if target.environment == Environment::Production {
            elicit.confirm("Production?").await?;
        }
        Ok(format!("{:?} {:?}", target.environment, target.note))
    }

    #[tool(description = "A choice with titles")]
    async fn choose(&self, elicit: Elicit) -> Result<String, ElicitError> {
        elicit
            .choose("Which?", [("a", "The first"), ("b", "The second")])
            .title("One")
            .default("b")
            .await
    }

    #[tool(description = "A number with a bound")]
    async fn age(&self, elicit: Elicit) -> Result<String, ElicitError> {
        Ok(elicit.form::<Age>("How old?").await?.age.to_string())
    }

    #[tool(description = "Goes on after a refusal")]
    async fn polite(&self, elicit: Elicit) -> Result<String, ElicitError> {
        Ok(match elicit.confirm("Really?").outcome().await? {
            AskOutcome::Accept(()) => "yes",
            AskOutcome::Decline => "no",
            AskOutcome::Cancel => "whatever",
        }
        .to_owned())
    }

    #[tool(description = "Two questions at once")]
    async fn both(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let (one, two) = tokio::join!(
            elicit.choose("One?", ["a", "b"]),
            elicit.choose("Two?", ["c", "d"])
        );
        Ok(format!("{}{}", one?, two?))
    }

    #[tool(description = "The same question in a loop")]
    async fn again(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let mut all = String::new();
        for _ in 0..3 {
            all += &elicit.choose("Next?", ["a", "b", "c"]).await?;
        }
        Ok(all)
    }

    #[tool(description = "A form with rules that no revision lists")]
    async fn strict(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let schema = json!({
            "type": "object",
            "properties": {
                "tag": { "type": "string", "pattern": "^[a-z]+$" },
                "price": { "type": "number", "multipleOf": 0.5 }
            },
            "required": ["tag"]
        });
        let form = Form::from_value(&schema).unwrap();
        Ok(elicit.ask("What tag?", form).await?.to_value().to_string())
    }

    #[tool(description = "Asks without end")]
    async fn endless(&self, elicit: Elicit) -> Result<String, ElicitError> {
        loop {
            elicit.choose("More?", ["a", "b"]).await?;
        }
    }

    #[tool(description = "Has an answer for clients that cannot ask")]
    async fn fallback(&self, elicit: Elicit) -> Result<String, ElicitError> {
        elicit.choose("Which?", ["a", "b"]).or("a".into()).await
    }

    #[tool(description = "A page to have visited")]
    async fn require(&self, elicit: Elicit) -> Result<String, ElicitError> {
        elicit
            .require_url("Sign in first", "https://example.com/connect")
            .await?;
        Ok("visited".into())
    }

    #[tool(description = "A page to visit")]
    async fn visit(&self, elicit: Elicit) -> Result<String, ElicitError> {
        elicit
            .visit("Sign in, please", "https://example.com/connect")
            .await?;
        Ok("visited".into())
    }
}

#[prompt_router]
impl Asker {
    #[prompt(name = "greeting")]
    async fn greeting(&self, elicit: Elicit) -> Result<GetPromptResult, ErrorData> {
        let name = elicit.choose("Who?", ["Ada", "Grace"]).await?;
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(
            Role::User,
            format!("Greet {name}"),
        )]))
    }
}

#[tool_handler]
#[prompt_handler]
impl ServerHandler for Asker {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_prompts()
                .enable_resources()
                .build(),
        )
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let elicit = Elicit::from_context(&context)?;
        let page = elicit.choose("Which page?", ["1", "2"]).await?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text(
            format!("page {page}"),
            request.uri,
        )])
        .into())
    }
}
