//! The client that the official conformance suite drives: connects to the URL it is given, lists the tools, calls each
//! of them, and accepts what is asked with the form's defaults.
//!
//! `npx @modelcontextprotocol/conformance client --command "target/release/examples/conformance" --scenario NAME`

use std::error::Error;

use mcp_elicit_client::responder::Defaults;
use mcp_elicit_client::{CallOptions, Connection, Eliciting, Options, Settings, Target};
use mcp_elicit_core::wire::Revision;
use serde_json::{Map, Value, json};

#[expect(clippy::print_stderr, reason = "an example talks to its reader")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args()
        .next_back()
        .ok_or("give the server's URL")?;
    let revision: Option<Revision> = match std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION") {
        Ok(text) => Some(text.parse()?),
        Err(_) => None,
    };
    let eliciting = Eliciting::new((), "conformance", Settings::default().responder(Defaults));
    let options = Options {
        revision,
        ..Options::default()
    };
    let connection = Connection::open(&Target::Url(url), eliciting, &options).await?;
    let tools = connection.peer().list_all_tools().await?;
    for (name, arguments) in wanted(&tools) {
        let called = connection
            .call_tool(name.clone(), arguments, &CallOptions::default())
            .await;
        match called {
            Ok(result) => eprintln!("{name}: {}", serde_json::to_string(&result)?),
            Err(error) => eprintln!("{name}: {error}"),
        }
    }
    connection.close().await;
    Ok(())
}

/// The calls that the scenario wants; else each tool once, with arguments that fit its schema.
fn wanted(tools: &[rmcp::model::Tool]) -> Vec<(String, Map<String, Value>)> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
    let context: Value = context
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    if let Some(calls) = context["toolCalls"].as_array() {
        let call = |call: &Value| {
            let arguments = call["arguments"].as_object().cloned().unwrap_or_default();
            Some((call["name"].as_str()?.to_owned(), arguments))
        };
        return calls.iter().filter_map(call).collect();
    }
    let mut calls: Vec<_> = tools
        .iter()
        .map(|tool| (tool.name.to_string(), fitting(&tool.input_schema)))
        .collect();
    // The scenario on JSON Schema wants the first tool's schema back through its echo.
    if let (Some(first), Some((_, echoed))) = (
        tools.first(),
        calls
            .iter_mut()
            .find(|(name, _)| name == "json_schema_echo"),
    ) {
        echoed.insert(
            "schema".to_owned(),
            Value::Object((*first.input_schema).clone()),
        );
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
