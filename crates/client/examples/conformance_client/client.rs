//! One scenario of the official conformance suite, played as its client.

#[path = "auth.rs"]
mod auth;

use std::error::Error;

use mcp_elicit_client::responder::Defaults;
use mcp_elicit_client::{
    CallError, CallOptions, ClientSettings, ConnectError, ConnectOptions, Connection,
    ElicitingClient, Target,
};
use mcp_elicit_core::wire::Revision;
use rmcp::transport::{AuthClient, AuthorizationManager};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The number of times that a server may ask for another authorization before the client gives up.
const ENTRIES: usize = 3;

/// The suite's facts about the scenario (`MCP_CONFORMANCE_CONTEXT`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Context {
    #[serde(rename = "toolCalls")]
    tool_calls: Vec<Call>,
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key_pem: Option<String>,
    signing_algorithm: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Plays the scenario that the environment names, against the URL in the last argument.
pub(crate) async fn play() -> Result<(), Box<dyn Error>> {
    let url = std::env::args()
        .next_back()
        .ok_or("give the server's URL")?;
    let context: Context = std::env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let mut entry = None;
    let mut granted = Vec::new();
    for _ in 0..ENTRIES {
        match visit(&url, entry.take(), &context).await? {
            Visit::Done => return Ok(()),
            Visit::Shut { challenge } => {
                let came = auth::authorize(&url, &context, challenge, &granted).await?;
                granted = came.get_current_scopes().await;
                entry = Some(came);
            }
        }
    }
    // A server that keeps asking for other authorizations is given up.
    Ok(())
}

/// The end of a visit.
enum Visit {
    Done,
    /// The server requires an authorization, or another one.
    Shut {
        challenge: String,
    },
}

async fn visit(
    url: &str,
    entry: Option<AuthorizationManager>,
    context: &Context,
) -> Result<Visit, Box<dyn Error>> {
    let connection = match connect(url, entry).await {
        Ok(connection) => connection,
        Err(ConnectError::Unauthorized { challenge, .. }) => return Ok(Visit::Shut { challenge }),
        Err(error) => return Err(error.into()),
    };
    let called = call_all(&connection, context).await;
    connection.close().await;
    match called {
        Ok(()) => Ok(Visit::Done),
        Err(CallError::Unauthorized { challenge, .. }) => Ok(Visit::Shut { challenge }),
        Err(error) => Err(error.into()),
    }
}

async fn connect(
    url: &str,
    entry: Option<AuthorizationManager>,
) -> Result<Connection<()>, ConnectError> {
    let eliciting = ElicitingClient::new(
        (),
        "conformance",
        ClientSettings::default().responder(Defaults),
    );
    let revision = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").ok();
    // The server may agree to an older revision than this client knows.
    let known = revision.and_then(|text| text.parse::<Revision>().ok());
    let options = ConnectOptions::default().revision(known);
    match entry {
        None => Connection::open(&Target::Url(url.to_owned()), eliciting, &options).await,
        Some(entry) => {
            let with_token = |http| AuthClient::new(http, entry);
            Connection::open_wrapped(url, eliciting, &options, with_token).await
        }
    }
}

#[expect(clippy::print_stderr, reason = "an example talks to its reader")]
async fn call_all(connection: &Connection<()>, context: &Context) -> Result<(), CallError> {
    let tools = connection.peer().list_all_tools().await?;
    for call in scenario_calls(&tools, context) {
        let options = CallOptions::default();
        let called = connection
            .call_tool(call.name.clone(), call.arguments, &options)
            .await;
        match called {
            Ok(result) => eprintln!("{}: {result:?}", call.name),
            Err(shut @ CallError::Unauthorized { .. }) => return Err(shut),
            Err(error) => eprintln!("{}: {error}", call.name),
        }
    }
    Ok(())
}

/// Returns the calls that the scenario expects, or else one call of each tool, with arguments that fit its schema.
fn scenario_calls(tools: &[rmcp::model::Tool], context: &Context) -> Vec<Call> {
    if !context.tool_calls.is_empty() {
        let copied = |call: &Call| Call {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        };
        return context.tool_calls.iter().map(copied).collect();
    }
    let mut calls: Vec<_> = tools
        .iter()
        .map(|tool| Call {
            name: tool.name.to_string(),
            arguments: fitting(&tool.input_schema),
        })
        .collect();
    // The scenario on JSON Schema expects the first tool's schema back through its echo tool.
    if let (Some(first), Some(echo)) = (
        tools.first(),
        calls
            .iter_mut()
            .find(|call| call.name == "json_schema_echo"),
    ) {
        let schema = Value::Object((*first.input_schema).clone());
        echo.arguments.insert("schema".to_owned(), schema);
    }
    calls
}

fn fitting(schema: &Map<String, Value>) -> Map<String, Value> {
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let value = |property: &Value| match property["type"].as_str() {
        Some("number" | "integer") => json!(2),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    };
    properties
        .iter()
        .map(|(name, property)| (name.clone(), value(property)))
        .collect()
}
