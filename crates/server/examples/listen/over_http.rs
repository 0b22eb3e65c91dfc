//! MCP at `/mcp`, together with the server's own pages.

use std::error::Error;

use axum::serve::ListenerExt;
use rmcp::ServerHandler;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::net::TcpListener;

/// Serves forever. `server` is called for each session, and for each request of a client that has no session.
pub(crate) async fn serve<S: ServerHandler>(
    listener: TcpListener,
    pages: axum::Router,
    server: impl Fn() -> S + Send + Sync + 'static,
) -> Result<(), Box<dyn Error>> {
    run(listener, router(pages, server)).await
}

/// Returns the pages together with MCP.
pub(crate) fn router<S: ServerHandler>(
    pages: axum::Router,
    server: impl Fn() -> S + Send + Sync + 'static,
) -> axum::Router {
    let mcp = StreamableHttpService::new(
        move || Ok(server()),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    pages.nest_service("/mcp", mcp)
}

/// Serves `router` forever.
pub(crate) async fn run(listener: TcpListener, router: axum::Router) -> Result<(), Box<dyn Error>> {
    // Without TCP_NODELAY a question over server-sent events can wait 40 ms for an acknowledgement.
    let listener = listener.tap_io(|stream| {
        let _slower_but_right = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}
