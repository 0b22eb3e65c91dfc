//! The same over Streamable HTTP: sessions for the pushed era, none for rounds.

use mcp_elicit_server::{ElicitingExt, ServerSettings};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientServiceExt, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;

use crate::asker::Asker;
use crate::harness::{Act, REVISIONS, ScriptedUser, said};

/// Serves on a free port until the test ends. Returns the URL.
async fn serve(config: StreamableHttpServerConfig) -> String {
    let settings = ServerSettings::default();
    let service = StreamableHttpService::new(
        move || Ok(Asker.eliciting(settings.clone())),
        LocalSessionManager::default().into(),
        config,
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await
    });
    url
}

async fn call(
    person: &ScriptedUser,
    url: &str,
    tool: &'static str,
) -> Result<(String, bool), ServiceError> {
    // If reqwest is built with the whole workspace, it supports TLS and requires a provider, even for plain HTTP.
    let _chosen_already = rustls::crypto::ring::default_provider().install_default();
    let transport = StreamableHttpClientTransport::from_uri(url.to_owned());
    let client = person
        .clone()
        .serve_with_lifecycle(transport, person.lifecycle())
        .await
        .unwrap();
    let result = client.call_tool(CallToolRequestParams::new(tool)).await;
    client.cancel().await.unwrap();
    result.map(|result| said(&result))
}

#[tokio::test]
async fn the_same_on_every_revision() {
    let url = serve(StreamableHttpServerConfig::default()).await;
    let production = || Act::Accept(json!({ "environment": "production" }));
    let table = [
        (
            "deploy",
            vec![production(), Act::Accept(json!({ "confirm": true }))],
            ("Production None", false),
        ),
        (
            "deploy",
            vec![production(), Act::Decline],
            ("The user declined to answer \"Production?\".", true),
        ),
        (
            "age",
            vec![
                Act::Accept(json!({ "age": 7 })),
                Act::Accept(json!({ "age": 70 })),
            ],
            ("70", false),
        ),
        ("polite", vec![Act::Cancel], ("whatever", false)),
    ];
    for revision in REVISIONS {
        for (tool, acts, (text, is_error)) in &table {
            let person = ScriptedUser::answering(revision, acts.clone());
            let result = call(&person, &url, tool).await.unwrap();
            assert_eq!(
                result,
                ((*text).to_owned(), *is_error),
                "{tool} on {revision}"
            );
        }
    }
}

#[tokio::test]
async fn without_a_session_a_pushed_question_is_refused_and_does_not_hang() {
    let mut config = StreamableHttpServerConfig::default();
    config.legacy_session_mode = false;
    let url = serve(config).await;
    let person = ScriptedUser::answering("2025-11-25", []);
    let error = call(&person, &url, "age").await.unwrap_err().to_string();
    assert!(
        error.contains("session") || error.contains("-32601"),
        "{error}"
    );
    assert_eq!(
        call(&person, &url, "fallback").await.unwrap().0,
        "a",
        "the fallback holds here too"
    );
    let person = ScriptedUser::answering("2026-07-28", [Act::Accept(json!({ "age": 40 }))]);
    assert_eq!(
        call(&person, &url, "age").await.unwrap().0,
        "40",
        "rounds need no session"
    );
}
