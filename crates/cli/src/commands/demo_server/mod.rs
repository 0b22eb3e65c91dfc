//! `mcp-elicit demo-server`: a small MCP server whose tools ask, for trying clients, gateways and this program itself.

mod backups;
mod tools;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::time::Duration;

use axum::serve::ListenerExt as _;
use clap::Args;
use mcp_elicit_gateway::open_to_pages;
use mcp_elicit_server::{ElicitingExt as _, ElicitingServer, ServerSettings};
use rmcp::service::ServerInitializeError;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{RoleServer, Service, ServiceExt as _};

use super::in_runtime;
use crate::args::gateway::check_origins;
use crate::failure::{Exit, Failure};
use crate::output;
use backups::Backups;
use tools::Demo;

/// Serve four tools that ask: deploy, profile, connect-account and plan-trip
///
/// Speaks MCP on stdin and stdout, every revision from 2025-06-18 on.
#[derive(Debug, Args)]
pub(crate) struct DemoServerArgs {
    /// Speak Streamable HTTP at this address instead, under /mcp; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", alias = "http")]
    listen: Option<SocketAddr>,

    /// With `--listen`: let pages of this origin call it, such as http://localhost:5173; repeat for more
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    allow_origin: Vec<String>,

    /// Serve `list_backups` and `delete_backup` instead, which ask nothing: for a gateway that asks before a call
    #[arg(long, conflicts_with = "listen")]
    backups: bool,

    /// Seconds for which a question waits; a person behind a gateway may take longer than one at a terminal [default: 300, and 3600 with a client of 2026-07-28]
    #[arg(long, value_name = "SECONDS", conflicts_with = "backups", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
}

impl DemoServerArgs {
    fn settings(&self) -> ServerSettings {
        let usual = ServerSettings::default();
        match self.timeout.map(Duration::from_secs) {
            Some(timeout) => usual.timeout(timeout).state_lifetime(timeout),
            None => usual,
        }
    }
}

pub(crate) fn run(args: &DemoServerArgs) -> Result<Exit, Failure> {
    in_runtime(async {
        match args.listen {
            Some(address) => over_http(address, args.settings(), &args.allow_origin).await,
            None if args.backups => over_stdio(Backups).await,
            None => over_stdio(server(args.settings())).await,
        }
    })
}

fn server(settings: ServerSettings) -> ElicitingServer<Demo> {
    Demo.eliciting(settings.audience("mcp-elicit demo-server"))
}

async fn over_stdio(server: impl Service<RoleServer>) -> Result<Exit, Failure> {
    let running = match server.serve(mcp_elicit_server::stdio()).await {
        Ok(running) => running,
        // A client may close the connection at any time, which is no error.
        Err(ServerInitializeError::ConnectionClosed(_)) => {
            if std::io::stdin().is_terminal() {
                output::say("the client closed the connection before the MCP handshake");
            }
            return Ok(Exit::Done);
        }
        Err(error) => {
            return Err(
                Failure::connection("the client did not complete the MCP handshake").because(error),
            );
        }
    };
    running
        .waiting()
        .await
        .map_err(|error| Failure::connection("the server stopped unexpectedly").because(error))?;
    Ok(Exit::Done)
}

fn cannot_listen(address: SocketAddr, error: std::io::Error) -> Failure {
    let is_taken = error.kind() == std::io::ErrorKind::AddrInUse;
    let next = if is_taken {
        "something else listens there: name another port, or port 0 for a free one."
    } else {
        "name another address of this machine, such as 127.0.0.1:8080."
    };
    Failure::usage(format!("cannot listen at {address}"))
        .because(error)
        .hint(next)
}

async fn over_http(
    address: SocketAddr,
    settings: ServerSettings,
    origins: &[String],
) -> Result<Exit, Failure> {
    check_origins(origins)?;
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(|error| cannot_listen(address, error))?;
    let bound = listener
        .local_addr()
        .map_err(|error| Failure::usage("cannot read the bound address").because(error))?;
    // Pages that it would serve itself, and the named ones; a program names no origin.
    let own = [
        format!("http://{bound}"),
        format!("http://localhost:{}", bound.port()),
    ];
    let admitted = own.into_iter().chain(origins.iter().cloned());
    let service = StreamableHttpService::new(
        move || Ok(server(settings.clone())),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default().with_allowed_origins(admitted),
    );
    let app = open_to_pages(axum::Router::new().nest_service("/mcp", service), origins);
    // Without this, a small frame that waits for an acknowledgement delays a pushed question by 40 ms.
    let listener = listener.tap_io(|stream| {
        let _slower_but_right = stream.set_nodelay(true);
    });
    output::say(format_args!("demo server at http://{bound}/mcp"));
    let served = axum::serve(listener, app)
        .with_graceful_shutdown(async {
            let _or_never = tokio::signal::ctrl_c().await;
        })
        .await;
    served
        .map_err(|error| Failure::connection("the server stopped unexpectedly").because(error))?;
    Ok(Exit::Done)
}
