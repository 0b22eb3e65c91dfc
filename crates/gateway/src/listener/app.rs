//! The gateway's own HTTP server: every configured server under its path, and the pages for operators.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use mcp_elicit_core::exposition;
use mcp_elicit_forms::web::{self, ConnectionBounds};
use tokio::net::TcpListener;

use crate::callers::resource::Resource;
use crate::config::Config;
use crate::listener::endpoint::header_checks::refusal;
use crate::listener::endpoint::{self, Via};
use crate::listener::metrics::{Metrics, OpenCounts};
use crate::listener::page_access::open_to_allowed;
use crate::listener::peers::Peers;
use crate::listener::server_table::ServerTable;
use crate::runtime::current_file::StopTimes;
use crate::runtime::{Runtime, StartError};
use crate::service_manager::{self, ServiceStage};
use crate::stop_signal::StopSignal;

/// Limits on clients' connections.
const BOUNDS: ConnectionBounds = ConnectionBounds {
    connections: 2_048,
    of_address: 256,
    of_loopback: 1_792,
    head: Duration::from_secs(60),
    head_bytes: 64 * 1024,
    // Endpoints have their own limit, with a JSON response.
    body: Duration::from_secs(2 * 60),
    unread: Duration::from_secs(60),
};

#[derive(Clone)]
struct ListenerState {
    runtime: Runtime,
    table: Arc<ServerTable>,
    metrics: Arc<Metrics>,
    stopping: Arc<AtomicBool>,
}

/// Serves HTTP clients until the operator stops the gateway; held calls are handed back first. The signals that stop it
/// are caught as soon as this returns. Must be called in a tokio runtime.
///
/// Boxed, so that its code is compiled in this crate, with this crate's optimizations.
pub fn serve(
    runtime: Runtime,
    config: &Config,
    listener: TcpListener,
) -> BoxFuture<'_, Result<(), StartError>> {
    let signal = StopSignal::catch(&runtime);
    Box::pin(serve_until_stopped(runtime, config, listener, signal))
}

async fn serve_until_stopped(
    runtime: Runtime,
    config: &Config,
    listener: TcpListener,
    signal: StopSignal,
) -> Result<(), StartError> {
    let at = listener.local_addr();
    let local = at.as_ref().is_ok_and(|at| at.ip().is_loopback());
    if let Ok(at) = at
        && !local
        && !config.insecure
        && !config.auth.is_required()
    {
        return Err(StartError::OpenToNetwork { at });
    }
    let origin = listener.local_addr().ok().map(|at| format!("http://{at}"));
    let (app, peer_app, state) = routes(runtime, config, local, origin);
    let peers = state.runtime.peers.clone();
    let peers = peers.map(|peers| tokio::spawn(serve_peers(peers, peer_app)));
    let counts = (state.metrics.clone(), state.runtime.record.clone());
    tokio::spawn(async move { counts.0.begin(&counts.1).await });
    let stopping = state.clone();
    let closing = state.runtime.clone();
    let stop = async move {
        signal.received().await;
        service_manager::tell(ServiceStage::Stopping);
        stopping.stopping.store(true, Ordering::Relaxed);
        let StopTimes { ready_grace, drain } = stopping.runtime.stop_times();
        tokio::time::sleep(ready_grace).await;
        for endpoint in stopping.table.endpoints() {
            endpoint.drain();
        }
        let ended = stopping.calls_ended();
        if tokio::time::timeout(drain, ended).await.is_err() && !drain.is_zero() {
            tracing::warn!(
                "calls that are still open end with an error: the time to drain is over"
            );
        }
        for endpoint in stopping.table.endpoints() {
            endpoint.drain();
            endpoint.stop();
        }
        stopping.runtime.stop_asking().await;
        // Time for the last responses to be sent.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let end = move || {
            for endpoint in stopping.table.endpoints() {
                endpoint.end_all();
            }
        };
        if let Err(error) = tokio::task::spawn_blocking(end).await {
            tracing::error!(%error, "the sessions could not be ended");
        }
        closing.close().await;
    };
    service_manager::tell(ServiceStage::Ready);
    web::serve(listener, app, BOUNDS, stop).await;
    if let Some(peers) = peers {
        peers.abort();
    }
    Ok(())
}

/// Serves requests of other gateways.
async fn serve_peers(peers: Arc<Peers>, app: Router) {
    if let Err(error) = peers.serve(app).await {
        tracing::error!(%error, "no requests of other gateways can be served");
    }
}

/// Returns the routes of every server and those for operators; `local` if the address is a loopback one. Must be called
/// in a tokio runtime.
pub fn router(runtime: Runtime, config: &Config, local: bool) -> Router {
    routes(runtime, config, local, None).0
}

/// Returns the routes for clients, and those for other gateways.
fn routes(
    runtime: Runtime,
    config: &Config,
    local: bool,
    origin: Option<String>,
) -> (Router, Router, ListenerState) {
    let origin = config.public_url.clone().or(origin).unwrap_or_default();
    let table = ServerTable::new(origin, local, config.public_url.as_deref());
    runtime.serve_at(&table);
    let (mut app, mut peer_app) = (Router::new(), Router::new());
    for path in ["/mcp", "/mcp/", "/mcp/{name}", "/mcp/{name}/"] {
        app = app.route(path, endpoint::routes(&table, Via::Client));
        peer_app = peer_app.route(path, endpoint::routes(&table, Via::Gateway));
    }
    if runtime.callers.issuer().is_some() {
        let path = Resource::metadata_path("/{*path}");
        app = app.route(
            &path,
            get(metadata).with_state((table.clone(), runtime.clone())),
        );
    }
    let state = ListenerState {
        runtime,
        table: table.clone(),
        metrics: Arc::default(),
        stopping: Arc::default(),
    };
    let own = Router::new()
        .route("/health", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(state.clone());
    let app = app.merge(own).fallback(nowhere);
    let app = app.method_not_allowed_fallback(not_taken);
    let app = open_to_allowed(app, table.origins().clone());
    (app, peer_app.fallback(nowhere), state)
}

/// The interval at which a stopping gateway looks for open calls.
const LOOK: Duration = Duration::from_millis(50);

impl ListenerState {
    /// Completes when no client waits for a call.
    async fn calls_ended(&self) {
        while self
            .table
            .endpoints()
            .iter()
            .any(|endpoint| endpoint.has_waiting_clients())
        {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns the response to a page elsewhere that reaches this machine under another name.
    fn refuses(&self, headers: &HeaderMap) -> Option<Response> {
        let refused = !self.table.origin_guard().admits_host(headers);
        refused.then(|| {
            let why = "this address was reached under a name that is not its own; name it with `public-url`\n";
            (StatusCode::FORBIDDEN, why).into_response()
        })
    }
}

/// Responds with the form of servers' addresses, without their names, because the requester may not be a caller.
pub(crate) async fn nowhere() -> Response {
    let why = "no server is served at this path: each is at /mcp/NAME, and the only one of a gateway at /mcp, too";
    refusal(StatusCode::NOT_FOUND, -32600, why)
}

/// Returns the metadata of the server at this path, as a resource of access tokens.
async fn metadata(
    State((table, runtime)): State<(Arc<ServerTable>, Runtime)>,
    Path(path): Path<String>,
) -> Response {
    let Some(at) = table.at(&format!("/{path}")) else {
        return nowhere().await;
    };
    let (Some(current), Some((scopes, issuer))) = (at.current(), runtime.callers.issuer()) else {
        return nowhere().await;
    };
    let name = &current.served().config.settings.server;
    at.resource.document(name, scopes, issuer)
}

async fn not_taken() -> Response {
    let why = "this path takes no such request: servers take POST, GET and DELETE, and /health, /ready and /metrics take GET";
    refusal(StatusCode::METHOD_NOT_ALLOWED, -32600, why)
}

/// The time in which the record answers a probe: those of balancers wait only seconds.
const READY_WITHIN: Duration = Duration::from_secs(2);

async fn ready(State(state): State<ListenerState>, headers: HeaderMap) -> Response {
    if let Some(refused) = state.refuses(&headers) {
        return refused;
    }
    if state.stopping.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    // The cheapest read: probes come often, and a count of open questions takes longer the more there are.
    let read = state.runtime.record.store().audit_end();
    match tokio::time::timeout(READY_WITHIN, read).await {
        Ok(Ok(_)) => "ready\n".into_response(),
        Ok(Err(_)) | Err(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the record cannot be reached\n",
        )
            .into_response(),
    }
}

async fn metrics(State(state): State<ListenerState>, headers: HeaderMap) -> Response {
    if let Some(refused) = state.refuses(&headers) {
        return refused;
    }
    let mut open = OpenCounts {
        call_bytes: state.table.call_bytes(),
        ..OpenCounts::default()
    };
    for endpoint in state.table.endpoints() {
        let (sessions, calls, questions) = endpoint.open();
        open.sessions += sessions;
        open.calls += calls;
        open.questions += questions;
    }
    let text = state
        .metrics
        .text(
            &state.runtime.record,
            open,
            state.runtime.rules_in_force(),
            state.runtime.peers.as_deref(),
            state.runtime.traces.as_deref(),
        )
        .await;
    let headers = [("content-type", exposition::CONTENT_TYPE)];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_path_without_a_server_says_where_servers_are_and_names_none() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let text = format!(
            "listen = \"127.0.0.1:0\"\nrecord = \"memory\"\nstate = {state:?}\n\
             [servers.deploy]\ncommand = [\"true\"]\n[servers.crm]\ncommand = [\"true\"]\n"
        );
        let mut config = Config::parse(&text).unwrap();
        let runtime = Runtime::open(&mut config).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let app = router(runtime, &config, true);
        let bounds = ConnectionBounds::default();
        tokio::spawn(web::serve(listener, app, bounds, std::future::pending()));
        let said = async |method: &str, path: &str| {
            let mut stream = TcpStream::connect(at).await.unwrap();
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).await.unwrap();
            let (head, text) = reply.split_once("\r\n\r\n").unwrap();
            let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
            let allow = head.lines().find_map(|line| line.strip_prefix("allow: "));
            (status, allow.map(str::to_owned), text.to_owned())
        };
        for (method, path) in [
            ("POST", "/mcp/nope"),
            ("POST", "/mcp/deploy//"),
            ("GET", "/mcp/deploy/x"),
            ("POST", "/mcp"),
            ("GET", "/"),
        ] {
            let (status, _, text) = said(method, path).await;
            assert_eq!(status, 404, "{method} {path}");
            assert!(text.contains("each is at /mcp/NAME"), "{path}: {text}");
            assert!(!text.contains("deploy") && !text.contains("crm"), "{text}");
        }
        for (method, path, takes) in [
            ("PUT", "/mcp/deploy", "GET,HEAD,POST,DELETE"),
            ("PUT", "/mcp/deploy/", "GET,HEAD,POST,DELETE"),
            ("POST", "/health", "GET,HEAD"),
        ] {
            let (status, allow, text) = said(method, path).await;
            assert_eq!(status, 405, "{method} {path}");
            assert!(text.contains("takes no such request"), "{text}");
            assert_eq!(allow.as_deref(), Some(takes));
        }
        // A slash at the end is the same address.
        for method in ["POST", "GET", "DELETE"] {
            let (plain, _, text) = said(method, "/mcp/deploy").await;
            assert_ne!(plain, 404, "{method}");
            for path in ["/mcp/deploy/", "/mcp/deploy/?x=1"] {
                let with_slash = said(method, path).await;
                assert_eq!(
                    (with_slash.0, &with_slash.2),
                    (plain, &text),
                    "{method} {path}"
                );
            }
        }
        assert_eq!(said("GET", "/health").await.0, 200);
    }
}
