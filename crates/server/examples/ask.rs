//! One tool, one question: the smallest server that asks, and the one that the benchmarks drive.
//!
//! `cargo run -p mcp-elicit-server --example ask` speaks on stdin and stdout, `-- --listen 127.0.0.1:8080` over HTTP at
//! `/mcp`.

mod listen;

use mcp_elicit_server::{AskOutcome, Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Contact {
    /// Your full name
    name: String,
    /// Your email address
    #[schemars(email)]
    #[expect(dead_code, reason = "asked for, checked, and not used here")]
    email: String,
    /// Your age
    #[schemars(range(min = 18))]
    #[expect(dead_code, reason = "asked for, checked, and not used here")]
    age: Option<f64>,
}

#[derive(Clone, Copy)]
struct Asker;

#[tool_router]
impl Asker {
    #[tool(description = "Asks for contact information")]
    async fn ask(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let asked = elicit.form::<Contact>("Please provide your contact information");
        Ok(match asked.key("contact").outcome().await? {
            AskOutcome::Accept(contact) => format!("accept:{}", contact.name),
            AskOutcome::Decline => "decline:".into(),
            AskOutcome::Cancel => "cancel:".into(),
        })
    }
}

#[tool_handler(name = "asker", version = "1.0.0")]
impl ServerHandler for Asker {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Made once, outside the factory: a client without a session gets a new server for each of its requests.
    let settings = ServerSettings::default().audience("ask");
    listen::serve(std::env::args().skip(1), move || {
        Asker.eliciting(settings.clone())
    })
    .await
}
