//! How the examples are served: on stdin and stdout, or with `--listen ADDR` over HTTP at `/mcp`.

use std::error::Error;
use std::net::SocketAddr;

use axum::serve::ListenerExt;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ServerHandler, ServiceExt};

/// Serves as `arguments` say, until the client goes, or for ever.
///
/// `server` is called for each session, and for each request of a client that has no session.
pub(crate) async fn serve<S: ServerHandler>(
    arguments: impl Iterator<Item = String>,
    server: impl Fn() -> S + Send + Sync + 'static,
) -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = arguments.collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            server()
                .serve(rmcp::transport::stdio())
                .await?
                .waiting()
                .await?;
            Ok(())
        }
        ["--listen", address] => listen(server, address.parse()?).await,
        _ => Err("no arguments for stdio, or --listen ADDR for HTTP".into()),
    }
}

async fn listen<S: ServerHandler>(
    server: impl Fn() -> S + Send + Sync + 'static,
    address: SocketAddr,
) -> Result<(), Box<dyn Error>> {
    let service = StreamableHttpService::new(
        move || Ok(server()),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    // Without TCP_NODELAY a question over server-sent events can wait 40 ms for an acknowledgement.
    let listener = tokio::net::TcpListener::bind(address)
        .await?
        .tap_io(|stream| {
            let _slower_but_right = stream.set_nodelay(true);
        });
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
