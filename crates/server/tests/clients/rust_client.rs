//! The same plays with rmcp's own client.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_elicit_testkit::peers::PeerProgram;
use rmcp::model::{
    CallToolRequestParams, ClientConfig, ElicitRequestParams, ElicitResult, Implementation,
    ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};

use crate::scenario::{Outcome, Play, SCENARIOS, Told};

#[derive(Clone)]
struct ScriptedUser {
    revision: &'static str,
    capable: bool,
    answers: Vec<Value>,
    delay: Duration,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for ScriptedUser {
    fn get_info(&self) -> ClientConfig {
        let capabilities = if self.capable {
            json!({ "elicitation": { "form": {} } })
        } else {
            json!({})
        };
        let capabilities = serde_json::from_value(capabilities).unwrap();
        let mut info = ClientConfig::new(capabilities, Implementation::new("rust-client", "1"));
        info.protocol_version = version(self.revision);
        info
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap();
        let turn = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(request["message"].as_str().unwrap().to_owned());
            asked.len() - 1
        };
        tokio::time::sleep(self.delay).await;
        let answer = &self.answers[turn.min(self.answers.len() - 1)];
        Ok(serde_json::from_value(answer.clone()).unwrap())
    }
}

fn version(revision: &str) -> ProtocolVersion {
    serde_json::from_value(json!(revision)).unwrap()
}

/// Plays everything over HTTP at `url`, or with `server` as a child process on stdio.
pub(crate) fn play(
    revision: &'static str,
    url: Option<&str>,
    server: &PeerProgram,
) -> BTreeMap<String, Told> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut told = BTreeMap::new();
    for play in &SCENARIOS {
        let one = runtime.block_on(one(play, revision, url, server));
        told.insert(play.name.to_owned(), one);
    }
    told
}

async fn one(play: &Play, revision: &'static str, url: Option<&str>, server: &PeerProgram) -> Told {
    let person = ScriptedUser {
        revision,
        capable: play.capable,
        answers: serde_json::from_value((play.answers)()).unwrap(),
        delay: Duration::from_millis(play.delay_ms),
        asked: Arc::default(),
    };
    let asked = Arc::clone(&person.asked);
    let lifecycle = match revision {
        "2026-07-28" => ClientLifecycleMode::Discover {
            preferred_versions: vec![version(revision)],
        },
        _ => ClientLifecycleMode::Initialize,
    };
    let mut child = None;
    let client = if let Some(url) = url {
        // If reqwest is built with the whole workspace, it supports TLS and requires a provider, even for plain HTTP.
        let _chosen_already = rustls::crypto::ring::default_provider().install_default();
        let transport = StreamableHttpClientTransport::from_uri(url.to_owned());
        person.serve_with_lifecycle(transport, lifecycle).await
    } else {
        let mut command = tokio::process::Command::from(server.command());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut started = command.spawn().unwrap();
        let pipes = (
            started.stdout.take().unwrap(),
            started.stdin.take().unwrap(),
        );
        child = Some(started);
        person.serve_with_lifecycle(pipes, lifecycle).await
    };
    let client = client.unwrap();
    let result = client
        .call_tool(CallToolRequestParams::new(play.tool))
        .await;
    let result = match result {
        Ok(result) => {
            let text = result.content[0].as_text().unwrap().text.clone();
            Outcome::of(&text, result.is_error == Some(true))
        }
        Err(ServiceError::McpError(error)) => Outcome::Error(i64::from(error.code.0)),
        Err(other) => panic!("{revision}, {}: {other}", play.name),
    };
    client.cancel().await.unwrap();
    drop(child);
    let asked = asked.lock().unwrap().clone();
    Told::new(result, asked)
}
