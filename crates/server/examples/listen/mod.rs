//! Serves the examples: on stdin and stdout, or with `--listen ADDR` over HTTP at `/mcp`.

pub(crate) mod over_http;

use std::error::Error;

use mcp_elicit_server::stdio;
use rmcp::{ServerHandler, ServiceExt};
use tokio::net::TcpListener;

/// Serves as `arguments` say, until the client disconnects, or forever.
///
/// `server` is called for each session, and for each request of a client that has no session.
pub(crate) async fn serve<S: ServerHandler>(
    arguments: impl Iterator<Item = String>,
    server: impl Fn() -> S + Send + Sync + 'static,
) -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = arguments.collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            server().serve(stdio()).await?.waiting().await?;
            Ok(())
        }
        ["--listen", address] => {
            let listener = TcpListener::bind(address).await?;
            over_http::serve(listener, axum::Router::new(), server).await
        }
        _ => Err("no arguments for stdio, or --listen ADDR for HTTP".into()),
    }
}
