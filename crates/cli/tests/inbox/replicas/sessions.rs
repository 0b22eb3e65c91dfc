//! Sessions of the revisions before 2026-07-28: each is at one gateway.

use mcp_elicit_testkit::postgres::PostgresServer;
use serde_json::json;

use super::replica::Deployment;
use crate::asker::Asker;
use crate::gateway::REVISION;
use crate::http::{Reply, post, send};
use crate::raw::{call, initialize};

/// Makes a request without a body in this session.
fn request(method: &str, at: &str, session: &str) -> Option<Reply> {
    let line = format!("{method} /mcp HTTP/1.1");
    let session = format!("Mcp-Session-Id: {session}");
    send(at, &[&line, &session, "Accept: text/event-stream"], "")
}

#[test]
fn a_session_at_another_gateway_is_404_there_and_stays_where_it_is() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let asker = Asker::start();
    let deployment = Deployment::new(&server.database().address, &asker.url, 3_600);
    let [a, b] = [0, 1].map(|number| deployment.start(number).expect("it starts"));
    let opened = post(
        &a.serving,
        "/mcp",
        None,
        None,
        &initialize(REVISION, &json!({})),
    );
    let session = opened.header("mcp-session-id").unwrap();
    let tell = |at: &str, session: Option<&str>| {
        let body = call(2, "tell", &json!({"n": 7}));
        post(at, "/mcp", None, session, &body)
    };
    let elsewhere = tell(&b.serving, Some(session));
    assert_eq!(elsewhere.status, 404, "{elsewhere:?}");
    let said = elsewhere.json()["error"]["message"].to_string();
    assert!(said.contains("`initialize`"), "it says what to do: {said}");
    for method in ["GET", "DELETE"] {
        let status = request(method, &b.serving, session).map(|reply| reply.status);
        assert_eq!(status, Some(404), "{method}");
    }
    let here = tell(&a.serving, Some(session));
    assert_eq!(here.status, 200, "{here:?}");
    // As the specification has clients do after a 404.
    let opened = post(
        &b.serving,
        "/mcp",
        None,
        None,
        &initialize(REVISION, &json!({})),
    );
    let other = opened.header("mcp-session-id").unwrap();
    let here = tell(&b.serving, Some(other));
    assert_eq!(here.status, 200, "{here:?}");
}
