//! The same handlers on whichever revision you name: see how a client asks on each of them.
//!
//! `cargo run -p mcp-elicit-server --example revisions 2025-06-18` speaks on stdin and stdout and knows no other
//! revision; `-- 2025-06-18 --listen 127.0.0.1:8080` does so over HTTP at `/mcp`. The test `clients` puts real clients
//! before it.

mod listen;

use std::borrow::Cow;
use std::time::Duration;

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::model::{Implementation, ProtocolVersion, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Target {
    /// The environment to run the build in
    environment: Environment,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Environment {
    Staging,
    Production,
}

#[derive(Clone)]
struct Deployer {
    revision: ProtocolVersion,
}

#[tool_router]
impl Deployer {
    #[tool(description = "Asks where to, and makes sure where it matters")]
    async fn deploy(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let target = elicit.form::<Target>("Where to?").await?;
        if target.environment == Environment::Production {
            elicit.confirm("Deploy to production?").await?;
        }
        Ok(format!("deployed to {:?}", target.environment))
    }

    #[tool(description = "Asks two questions at once")]
    async fn both(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let (first, second) = tokio::join!(
            elicit.choose("The first?", ["a", "b"]),
            elicit.choose("The second?", ["a", "b"]),
        );
        Ok(first? + &second?)
    }

    #[tool(description = "Asks for several of a list, which the oldest revision cannot say")]
    async fn toppings(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let asked = elicit.choose_many("Which toppings?", ["cheese", "ham", "olives"]);
        Ok(asked
            .at_least(1)
            .default(["ham", "olives"])
            .await?
            .join(" and "))
    }

    #[tool(description = "Waits for an answer a second long")]
    async fn hasty(&self, elicit: Elicit) -> Result<String, ElicitError> {
        elicit
            .confirm("Now?")
            .timeout(Duration::from_secs(1))
            .await?;
        Ok("now".into())
    }
}

#[tool_handler]
impl ServerHandler for Deployer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("deployer", "1.0.0"))
            .with_protocol_version(self.revision.clone())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Owned(vec![self.revision.clone()])
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let revision = arguments.next().ok_or("which revision?")?;
    let revision = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .find(|known| known.as_str() == revision)
        .ok_or("no such revision")?;
    let server = Deployer {
        revision: revision.clone(),
    };
    let settings = ServerSettings::default().audience("revisions");
    listen::serve(arguments, move || {
        server.clone().eliciting(settings.clone())
    })
    .await
}
