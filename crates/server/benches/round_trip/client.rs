//! The client, and the transports to a server.

use std::fmt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_elicit_testkit::peers::{Listening, PeerProgram};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, Implementation, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::gateway::{Between, Middle};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Era {
    Pushed,
    Rounds,
}

impl Era {
    pub(crate) const ALL: [Self; 2] = [Self::Pushed, Self::Rounds];
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pushed => "pushed",
            Self::Rounds => "rounds",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

impl Transport {
    pub(crate) const ALL: [Self; 2] = [Self::Stdio, Self::Http];
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        })
    }
}

/// Answers every question in the same way, or none.
#[derive(Clone)]
pub(crate) struct ScriptedUser {
    era: Era,
    silent: bool,
    asked: Arc<AtomicUsize>,
}

impl ScriptedUser {
    pub(crate) fn answering(era: Era) -> Self {
        Self {
            era,
            silent: false,
            asked: Arc::default(),
        }
    }

    pub(crate) fn silent() -> Self {
        Self {
            silent: true,
            ..Self::answering(Era::Pushed)
        }
    }

    /// Returns the number of questions so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn lifecycle(&self) -> ClientLifecycleMode {
        match self.era {
            Era::Pushed => ClientLifecycleMode::Initialize,
            Era::Rounds => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        }
    }
}

impl ClientHandler for ScriptedUser {
    fn get_info(&self) -> ClientConfig {
        let capabilities = json!({ "elicitation": { "form": {} } });
        let capabilities =
            serde_json::from_value(capabilities).expect("the capabilities are legal");
        let mut config = ClientConfig::new(capabilities, Implementation::new("bench", "1"));
        if self.era == Era::Pushed {
            config.protocol_version = ProtocolVersion::V_2025_11_25;
        }
        config
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.silent {
            std::future::pending::<()>().await;
        }
        let content = json!({ "name": "Ada Lovelace", "email": "ada@example.com", "age": 36 });
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

type Client = RunningService<RoleClient, ScriptedUser>;

/// A server's process and its client. The process ends on drop.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Ends>);

struct Ends {
    client: Client,
    server: Server,
    /// The program in between, which ends on drop.
    _between: Option<Between>,
}

enum Server {
    Child(Child),
    Listening(Listening),
}

pub(crate) async fn connect(server: &PeerProgram, era: Era, transport: Transport) -> Connection {
    connect_as(ScriptedUser::answering(era), server, transport).await
}

pub(crate) async fn connect_as(
    person: ScriptedUser,
    server: &PeerProgram,
    transport: Transport,
) -> Connection {
    match transport {
        Transport::Stdio => {
            let (client, child) = spawn(person, server).await;
            Connection::new(client, Server::Child(child), None)
        }
        Transport::Http => {
            let listening = server.listen();
            let client = reach(person, listening.url()).await;
            Connection::new(client, Server::Listening(listening), None)
        }
    }
}

/// The same with this program in between.
pub(crate) async fn connect_through(
    middle: Middle<'_>,
    server: &PeerProgram,
    era: Era,
    transport: Transport,
) -> Connection {
    let person = ScriptedUser::answering(era);
    match transport {
        Transport::Stdio => {
            let (between, program) = middle.before(server);
            let (client, child) = spawn(person, &program).await;
            Connection::new(client, Server::Child(child), Some(between))
        }
        Transport::Http => {
            let server = server.listen();
            let (between, url) = middle.listening_before(&server);
            let client = reach(person, &url).await;
            Connection::new(client, Server::Listening(server), Some(between))
        }
    }
}

async fn spawn(person: ScriptedUser, program: &PeerProgram) -> (Client, Child) {
    let mut command = Command::from(program.clone().with(["stdio"]).command());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().expect("the server starts");
    let stdout = child.stdout.take().expect("stdout is piped");
    let stdin = child.stdin.take().expect("stdin is piped");
    let lifecycle = person.lifecycle();
    let client = person.serve_with_lifecycle((stdout, stdin), lifecycle);
    (client.await.expect("the server answers"), child)
}

async fn reach(person: ScriptedUser, url: &str) -> Client {
    // If reqwest is built with the whole workspace, it supports TLS and requires a provider, even for plain HTTP.
    let _chosen_already = rustls::crypto::ring::default_provider().install_default();
    let transport = StreamableHttpClientTransport::from_uri(url.to_owned());
    let lifecycle = person.lifecycle();
    let client = person.serve_with_lifecycle(transport, lifecycle);
    client.await.expect("the server answers")
}

impl Connection {
    fn new(client: Client, server: Server, between: Option<Between>) -> Self {
        Self(Arc::new(Ends {
            client,
            server,
            _between: between,
        }))
    }

    /// Calls the tool that asks this number of questions.
    pub(crate) async fn call(&self, questions: u32) {
        let result = self
            .0
            .client
            .call_tool_with_mrtr_max_rounds(request(questions), 64)
            .await
            .expect("the call succeeds");
        assert_ne!(result.is_error, Some(true), "{result:?}");
    }

    /// Calls the tool, and does not answer in rounds.
    pub(crate) async fn call_once(&self) {
        let response = self.0.client.call_tool_once(request(1)).await;
        let response = response.expect("the call succeeds");
        assert!(matches!(response, CallToolResponse::InputRequired(_)));
    }

    /// Returns the resident memory of the server's process in bytes, if the system reports it.
    pub(crate) fn resident(&self) -> f64 {
        let id = match &self.0.server {
            Server::Child(child) => child.id().unwrap_or_default(),
            Server::Listening(listening) => listening.running.child.id(),
        };
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kilobytes.unwrap_or(f64::NAN) * 1024.0
    }
}

/// Returns the request. Other SDKs have the tool for one question under the same name.
fn request(questions: u32) -> CallToolRequestParams {
    if questions == 1 {
        return CallToolRequestParams::new("contact");
    }
    let arguments = json!({ "questions": questions });
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new("contacts").with_arguments(arguments)
}
