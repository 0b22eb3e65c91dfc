//! The servers: one with this crate, and one with rmcp alone. Both ask for the same contact as the servers of
//! `tests/peers`.

use std::sync::LazyLock;

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
    ElicitRequestParams, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult,
    RequestStateCodec, RequestStateError, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Serves `ours`, `bare`, or `piped`, which is `bare` with the faster of rmcp's two transports, on `stdio` or `http 0`.
pub(crate) async fn serve(which: &str, how: &[&str]) {
    if which == "ours" {
        let settings = ServerSettings::default();
        let server = move || Ours.eliciting(settings.clone());
        if how.first() == Some(&"http") {
            over_http(server).await;
        } else {
            over_stdio(server(), mcp_elicit_server::stdio()).await;
        }
    } else {
        let codec = RequestStateCodec::try_new(vec![7; 32]).expect("the key is long enough");
        let server = move || Bare(codec.clone());
        match how.first() {
            Some(&"http") => over_http(server).await,
            _ if which == "piped" => over_stdio(server(), rmcp::transport::stdio_pipes()).await,
            _ => over_stdio(server(), rmcp::transport::stdio()).await,
        }
    }
}

async fn over_stdio<E, A>(
    server: impl ServerHandler,
    transport: impl rmcp::transport::IntoTransport<RoleServer, E, A>,
) where
    E: std::error::Error + Send + Sync + 'static,
{
    let running = server.serve(transport).await;
    running.expect("the client begins").waiting().await.ok();
}

async fn over_http<S: ServerHandler>(server: impl Fn() -> S + Send + Sync + 'static) {
    let service = StreamableHttpService::new(
        move || Ok(server()),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    println!(
        "{}",
        json!({ "listening": format!("http://{address}/mcp") })
    );
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _slower_but_right = stream.set_nodelay(true);
    });
    let app = axum::Router::new().nest_service("/mcp", service);
    axum::serve(listener, app).await.expect("it serves");
}

fn config() -> ServerConfig {
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
}

#[derive(Deserialize, JsonSchema)]
struct Contact {
    /// Your full name
    name: String,
    /// Your email address
    #[schemars(email)]
    #[expect(dead_code, reason = "asked for and checked")]
    email: String,
    /// Your age
    #[schemars(range(min = 18))]
    #[expect(dead_code, reason = "asked for and checked")]
    age: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
struct Contacts {
    questions: u64,
}

#[derive(Clone)]
struct Ours;

#[tool_router]
impl Ours {
    #[tool]
    async fn contact(&self, elicit: Elicit) -> Result<String, ElicitError> {
        Ok(elicit.form::<Contact>("Contact 0").await?.name)
    }

    #[tool]
    async fn contacts(
        &self,
        elicit: Elicit,
        Parameters(Contacts { questions }): Parameters<Contacts>,
    ) -> Result<String, ElicitError> {
        let mut names = String::new();
        for number in 0..questions {
            let contact = elicit.form::<Contact>(format!("Contact {number}")).await?;
            names += &contact.name;
        }
        Ok(names)
    }
}

/// Created once: by default, rmcp's macro creates the router of all tools for every call.
static TOOLS: LazyLock<ToolRouter<Ours>> = LazyLock::new(Ours::tool_router);

#[tool_handler(router = TOOLS)]
impl ServerHandler for Ours {
    fn get_info(&self) -> ServerConfig {
        config()
    }
}

#[derive(Clone)]
struct Bare(RequestStateCodec);

/// Created once, as in the other server.
static SCHEMA: LazyLock<ElicitationSchema> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "Your full name" },
            "email": { "type": "string", "format": "email", "description": "Your email address" },
            "age": { "type": "number", "minimum": 18, "description": "Your age" }
        },
        "required": ["name", "email"]
    });
    serde_json::from_value(schema).expect("the schema is legal")
});

fn params(number: u64) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("Contact {number}"),
        requested_schema: SCHEMA.clone(),
    }
}

fn text(words: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(words)]).into()
}

fn name_in(content: &Value) -> &str {
    content["name"].as_str().unwrap_or_default()
}

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        config()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.as_ref();
        let questions = arguments.and_then(|arguments| arguments.get("questions")?.as_u64());
        let questions = questions.unwrap_or(1);
        let version = context.protocol_version();
        if version.is_some_and(|version| !version.has_initialize()) {
            return self.by_rounds(&request, questions);
        }
        let mut names = String::new();
        for number in 0..questions {
            let reply = context.peer.create_elicitation(params(number)).await;
            let reply =
                reply.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            names += reply.content.as_ref().map(name_in).unwrap_or_default();
        }
        Ok(text(names))
    }
}

impl Bare {
    fn by_rounds(
        &self,
        request: &CallToolRequestParams,
        questions: u64,
    ) -> Result<CallToolResponse, ErrorData> {
        let broken = |error: RequestStateError| ErrorData::invalid_params(error.to_string(), None);
        let (mut number, mut names) = (0, String::new());
        if let Some(state) = &request.request_state {
            let state: Value = self.0.open_json(state).map_err(broken)?;
            let replies = request.input_responses.as_ref();
            let reply = replies.and_then(|replies| replies.get("contact"));
            names.push_str(state["names"].as_str().unwrap_or_default());
            names += reply
                .map(|reply| name_in(&reply["content"]))
                .unwrap_or_default();
            number = state["number"].as_u64().unwrap_or_default() + 1;
        }
        if number == questions {
            return Ok(text(names));
        }
        let state = json!({ "number": number, "names": names });
        let state = self.0.seal_json(&state).map_err(broken)?;
        let question = InputRequest::Elicitation(ElicitRequest::new(params(number)));
        let requests = InputRequests::from([("contact".to_owned(), question)]);
        Ok(InputRequiredResult::new(Some(requests), Some(state)).into())
    }
}
