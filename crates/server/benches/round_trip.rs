//! What a question costs with this crate, beside rmcp alone, in one run: `cargo bench -p mcp-elicit-server --bench round_trip`.
//!
//! The bare server does what an author does without us: on the pushed era `create_elicitation`, on rounds a state machine
//! written by hand with rmcp's own HMAC seal. It checks nothing; ours checks every answer. Both are driven by the same
//! client in alternating blocks, so that whatever else the machine does hits both.

#![expect(clippy::print_stdout, reason = "the table is what a benchmark is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_elicit_server::{Elicit, ElicitingExt, Settings, Unanswered};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig, ContentBlock,
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, Implementation,
    InputRequest, InputRequests, InputRequiredResult, ProtocolVersion, RequestStateCodec,
    RequestStateError, ServerCapabilities, ServerConfig,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    ClientHandler, ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt, tool,
    tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

const BLOCKS: usize = 12;
const CALLS: usize = 100;

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

#[derive(Clone)]
struct Ours;

#[tool_router]
impl Ours {
    #[tool]
    async fn ask(&self, elicit: Elicit) -> Result<String, Unanswered> {
        Ok(elicit
            .form::<Contact>("Please provide your contact information")
            .await?
            .name)
    }

    #[tool]
    async fn ten(&self, elicit: Elicit) -> Result<String, Unanswered> {
        let mut names = String::new();
        for number in 0..10 {
            names += &elicit
                .form::<Contact>(format!("Contact {number}"))
                .await?
                .name;
        }
        Ok(names)
    }
}

#[tool_handler]
impl ServerHandler for Ours {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[derive(Clone)]
struct Bare(RequestStateCodec);

fn params(message: String) -> ElicitRequestParams {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "Your full name" },
            "email": { "type": "string", "format": "email", "description": "Your email address" },
            "age": { "type": "number", "minimum": 18, "description": "Your age" }
        },
        "required": ["name", "email"]
    });
    let requested_schema = serde_json::from_value(schema).expect("the schema is legal");
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    }
}

fn text(words: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(words)]).into()
}

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let questions = if request.name == "ten" { 10 } else { 1 };
        if context
            .protocol_version()
            .is_some_and(|version| !version.has_initialize())
        {
            return self.by_rounds(&request, questions);
        }
        let mut names = String::new();
        for number in 0..questions {
            let reply = context
                .peer
                .create_elicitation(params(format!("Contact {number}")))
                .await;
            let reply =
                reply.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            names += reply
                .content
                .as_ref()
                .and_then(|content| content["name"].as_str())
                .unwrap_or_default();
        }
        Ok(text(&names))
    }
}

impl Bare {
    fn by_rounds(
        &self,
        request: &CallToolRequestParams,
        questions: u64,
    ) -> Result<CallToolResponse, ErrorData> {
        let broken = |error: RequestStateError| ErrorData::invalid_params(error.to_string(), None);
        let (mut number, mut names) = match &request.request_state {
            None => (0, String::new()),
            Some(state) => {
                let state: Value = self.0.open_json(state).map_err(broken)?;
                let reply = request
                    .input_responses
                    .as_ref()
                    .and_then(|replies| replies.get("contact"));
                let name = reply
                    .and_then(|reply| reply["content"]["name"].as_str())
                    .unwrap_or_default();
                let names = state["names"].as_str().unwrap_or_default().to_owned() + name;
                (state["number"].as_u64().unwrap_or_default() + 1, names)
            }
        };
        if number == questions {
            return Ok(text(&std::mem::take(&mut names)));
        }
        let state = self
            .0
            .seal_json(&json!({ "number": number, "names": names }))
            .map_err(broken)?;
        number += 1;
        let question =
            InputRequest::Elicitation(ElicitRequest::new(params(format!("Contact {number}"))));
        let requests = InputRequests::from([("contact".to_owned(), question)]);
        Ok(InputRequiredResult::new(Some(requests), Some(state)).into())
    }
}

#[derive(Clone)]
struct Client {
    rounds: bool,
    /// While set, nobody answers.
    wait: Option<Arc<Notify>>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = json!({ "elicitation": { "form": {} } });
        let capabilities =
            serde_json::from_value(capabilities).expect("the capabilities are legal");
        let mut config = ClientConfig::new(capabilities, Implementation::new("bench", "1"));
        if !self.rounds {
            config.protocol_version = ProtocolVersion::V_2025_11_25;
        }
        config
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let Some(wait) = &self.wait {
            wait.notified().await;
        }
        let content = json!({ "name": "Ada Lovelace", "email": "ada@example.com", "age": 36 });
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

type Connection = Arc<RunningService<RoleClient, Client>>;

impl Client {
    fn lifecycle(&self) -> ClientLifecycleMode {
        if self.rounds {
            return ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            };
        }
        ClientLifecycleMode::Initialize
    }

    async fn over_pipe<S: ServerHandler>(&self, server: S) -> Connection {
        let (near, far) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            server
                .serve(far)
                .await
                .expect("the client begins")
                .waiting()
                .await
        });
        Arc::new(
            self.clone()
                .serve_with_lifecycle(near, self.lifecycle())
                .await
                .expect("the server answers"),
        )
    }

    async fn over_http<S: ServerHandler + Clone>(&self, server: S) -> Connection {
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            LocalSessionManager::default().into(),
            StreamableHttpServerConfig::default(),
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("it is bound"));
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            let _slower_but_right = stream.set_nodelay(true);
        });
        tokio::spawn(async move {
            axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await
        });
        // Built together with the whole workspace, reqwest speaks TLS and wants a provider, even for plain HTTP.
        let _chosen_already = rustls::crypto::ring::default_provider().install_default();
        let transport = StreamableHttpClientTransport::from_uri(url);
        Arc::new(
            self.clone()
                .serve_with_lifecycle(transport, self.lifecycle())
                .await
                .expect("the server answers"),
        )
    }
}

async fn call(connection: &Connection, tool: &'static str) {
    let request = CallToolRequestParams::new(tool);
    let result = connection
        .call_tool_with_mrtr_max_rounds(request, 64)
        .await
        .expect("the call succeeds");
    assert_ne!(result.is_error, Some(true));
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// Median microseconds of one call at a time: ours, bare.
async fn one_at_a_time(ours: &Connection, bare: &Connection, tool: &'static str) -> (f64, f64) {
    let mut times = [Vec::new(), Vec::new()];
    for block in 0..=BLOCKS {
        for (connection, times) in [ours, bare].into_iter().zip(&mut times) {
            for _ in 0..CALLS {
                let start = now();
                call(connection, tool).await;
                // The first block warms up.
                if block > 0 {
                    times.push(start.elapsed());
                }
            }
        }
    }
    (median(&mut times[0]), median(&mut times[1]))
}

/// Calls a second with 64 at once: ours, bare. The best of the blocks, since the machine is shared.
async fn many_at_once(ours: &Connection, bare: &Connection) -> (f64, f64) {
    let mut best = [0_f64; 2];
    for _ in 0..BLOCKS {
        for (connection, best) in [ours, bare].into_iter().zip(&mut best) {
            let start = now();
            let calls = (0..64).map(|_| {
                let connection = Arc::clone(connection);
                tokio::spawn(async move {
                    for _ in 0..8 {
                        call(&connection, "ask").await;
                    }
                })
            });
            for task in calls.collect::<Vec<_>>() {
                task.await.expect("no call fails");
            }
            *best = best.max(64.0 * 8.0 / start.elapsed().as_secs_f64());
        }
    }
    (best[0], best[1])
}

/// Resident memory of this process, client and server together, in bytes.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0.0);
    pages * 4096.0
}

/// Bytes that one of 10,000 pending questions costs, client and server together.
async fn pending<S: ServerHandler>(server: S) -> f64 {
    const PENDING: u32 = 10_000;
    let wait = Arc::new(Notify::new());
    let client = Client {
        rounds: false,
        wait: Some(Arc::clone(&wait)),
    };
    let connection = client.over_pipe(server).await;
    let before = resident();
    let calls: Vec<_> = (0..PENDING)
        .map(|_| {
            let connection = Arc::clone(&connection);
            tokio::spawn(async move { call(&connection, "ask").await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let cost = (resident() - before) / f64::from(PENDING);
    for _ in 0..50 {
        wait.notify_waiters();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for task in calls {
        task.abort();
    }
    cost
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("there are threads");
    runtime.block_on(async {
        let codec = RequestStateCodec::try_new(vec![7; 32]).expect("the key is long enough");
        let bare = Bare(codec);
        // The limit per principal has nothing to count here; the limit per call is above ten.
        let ours = || Ours.eliciting(Settings::default());
        println!("| era, transport, what | ours | rmcp alone | ratio |\n| --- | --- | --- | --- |");
        for (era, rounds) in [("pushed", false), ("rounds", true)] {
            let client = Client { rounds, wait: None };
            let pipe = (client.over_pipe(ours()).await, client.over_pipe(bare.clone()).await);
            let http = (client.over_http(ours()).await, client.over_http(bare.clone()).await);
            for (transport, (ours, bare)) in [("pipe", &pipe), ("HTTP", &http)] {
                for tool in ["ask", "ten"] {
                    let (ours, bare) = one_at_a_time(ours, bare, tool).await;
                    let what = if tool == "ask" { "one question" } else { "ten questions" };
                    println!("| {era}, {transport}, {what}, us | {ours:.0} | {bare:.0} | {:.2} |", ours / bare);
                }
                let (ours, bare) = many_at_once(ours, bare).await;
                println!("| {era}, {transport}, 64 at once, calls/s | {ours:.0} | {bare:.0} | {:.2} |", ours / bare);
            }
        }
        let bare_cost = pending(bare.clone()).await;
        let our_cost = pending(ours()).await;
        println!("| pushed, pipe, memory of one of 10,000 pending, bytes, both sides | {our_cost:.0} | {bare_cost:.0} | {:.2} |", our_cost / bare_cost);
    });
}
