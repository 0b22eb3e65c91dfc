//! The guide's first server in full: one tool that asks, on stdin and stdout, or over HTTP if an address is given.
//!
//! `cargo run -p mcp-elicit-server --example served`, or with `-- 127.0.0.1:8080` over HTTP at `/mcp`.

#![expect(clippy::print_stderr, reason = "a server's stderr is for its operator")]

use std::process::ExitCode;

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings, stdio};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Stay {
    /// Where do you want to go?
    place: String,
    /// For how many nights?
    #[schemars(range(min = 1, max = 30))]
    nights: u8,
}

#[derive(Clone)]
struct Planner;

#[tool_router]
impl Planner {
    #[tool(description = "Plan a stay")]
    async fn plan(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let stay: Stay = elicit.form("Tell me about your stay").await?;
        elicit
            .confirm(format!("Book {} in {}?", stay.nights, stay.place))
            .await?;
        let number: u32 = elicit.step("book", || async { 4711 }).await?;
        Ok(format!("Booked as number {number}"))
    }
}

#[tool_handler(name = "planner", version = "1.0.0")]
impl ServerHandler for Planner {}

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("planner: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let settings = ServerSettings::default().audience("planner");
    let Some(address) = std::env::args().nth(1) else {
        let server = Planner.eliciting(settings);
        server.serve(stdio()).await?.waiting().await?;
        return Ok(());
    };
    let mcp = StreamableHttpService::new(
        move || Ok(Planner.eliciting(settings.clone())),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", mcp)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};

    #[tokio::test]
    async fn a_trip_is_booked_after_a_yes() {
        let stay = serde_json::json!({ "place": "Rome", "nights": 3 });
        let user = ScriptedUser::answering([ScriptedAnswer::accept(stay), ScriptedAnswer::yes()]);
        let said = user
            .run(|elicit| super::Planner.plan(elicit))
            .await
            .unwrap();
        assert_eq!(said.unwrap(), "Booked as number 4711");
    }
}
