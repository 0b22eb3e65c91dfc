//! A host: calls a tool of a server, and the person at this terminal answers what the server asks, under a consent policy.
//!
//! `cargo run -p mcp-elicit-client --example host -- TOOL SERVER [ARGUMENT...]`

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a host prints results for its user"
)]

use std::error::Error;
use std::path::{Path, PathBuf};

use mcp_elicit_client::dispatch::Observer;
use mcp_elicit_client::responder::{Responder, Terminal};
use mcp_elicit_client::{
    CallOptions, ClientSettings, ConnectOptions, Connection, Consent, ElicitingClient, Question,
    QuestionError, Target,
};
use serde_json::{Map, Value};

const POLICY: &str = "consent.toml";

/// Reports refused questions, and saves the policy when the person declines a server permanently.
struct Keeper {
    file: PathBuf,
}

impl Observer for Keeper {
    fn refused(&self, question: Option<&Question>, why: &QuestionError) {
        let message = question.map_or("a question that cannot be read", Question::message);
        eprintln!("{message}: {why}");
    }

    fn consent_changed(&self, consent: &Consent) {
        let written = consent
            .to_toml()
            .map(|text| std::fs::write(&self.file, text));
        if !matches!(written, Ok(Ok(()))) {
            eprintln!("the policy could not be saved");
        }
    }
}

fn settings(
    file: &Path,
    responder: impl Responder + 'static,
) -> Result<ClientSettings, Box<dyn Error>> {
    let consent = if file.exists() {
        std::fs::read_to_string(file)?.parse()?
    } else {
        Consent::default()
    };
    let keeper = Keeper { file: file.into() };
    Ok(ClientSettings::default()
        .responder(responder)
        .consent(consent)
        .observer(keeper))
}

async fn call(connection: &Connection<()>, tool: &str) -> Result<Value, Box<dyn Error>> {
    let result = connection
        .call_tool(tool, Map::new(), &CallOptions::default())
        .await?;
    Ok(serde_json::to_value(result)?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(tool), Some(program)) = (words.next(), words.next()) else {
        return Err("usage: host TOOL SERVER [ARGUMENT...]".into());
    };
    let target = Target::Command {
        program: program.into(),
        arguments: words.map(Into::into).collect(),
    };
    let settings = settings(Path::new(POLICY), Terminal::detect()?)?;
    let eliciting = ElicitingClient::new((), "planner", settings);
    let connection = Connection::open(&target, eliciting, &ConnectOptions::default()).await?;
    let result = call(&connection, &tool).await;
    connection.close().await;
    println!("{:#}", result?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_elicit_client::core::wire::Revision;
    use mcp_elicit_client::responder::Script;
    use rmcp::model::CallToolResult;
    use rmcp::service::{Peer, RoleServer};
    use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Place {
        place: String,
    }
    rmcp::elicit_safe!(Place);

    struct Planner;

    #[tool_router]
    impl Planner {
        #[tool(description = "Plan a stay")]
        async fn plan(&self, peer: Peer<RoleServer>) -> String {
            match peer.elicit::<Place>("Where to?").await {
                Ok(Some(answer)) => format!("to {}", answer.place),
                Ok(None) | Err(_) => "nowhere".into(),
            }
        }
    }

    #[tool_handler(name = "planner", version = "1.0.0")]
    impl ServerHandler for Planner {}

    /// Connects a host with this policy and script to a server in memory, and calls its tool.
    async fn plan(file: &Path, script: Script) -> String {
        let (host, server) = tokio::io::duplex(4096);
        tokio::spawn(async { Planner.serve(server).await.unwrap().waiting().await });
        let eliciting = ElicitingClient::new((), "planner", settings(file, script).unwrap());
        let (read, write) = tokio::io::split(host);
        let options = ConnectOptions::default().revision(Revision::V2025_11_25);
        let connection = Connection::over(read, write, eliciting, &options)
            .await
            .unwrap();
        let result = call(&connection, "plan").await.unwrap();
        connection.close().await;
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        result.content[0].as_text().unwrap().text.clone()
    }

    #[tokio::test]
    async fn a_question_is_answered_unless_the_policy_forbids_it() {
        let folder = std::env::temp_dir().join(format!("host-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(POLICY);
        let answer = || Script::by_name([("place".into(), "Rome".into())]);
        assert_eq!(plan(&file, answer()).await, "to Rome");
        std::fs::write(&file, "[server.planner]\nfields = [\"nights\"]\n").unwrap();
        assert_eq!(plan(&file, answer()).await, "nowhere");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_permanent_decline_is_saved() {
        let file = std::env::temp_dir().join(format!("host-{}.toml", std::process::id()));
        std::fs::write(&file, "[server.planner]\nmodes = [\"form\"]\n").unwrap();
        let settings = settings(&file, Script::decline()).unwrap();
        ElicitingClient::new((), "planner", settings).decline_always();
        let saved = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(saved.contains("answer = \"decline\""), "{saved}");
    }
}
