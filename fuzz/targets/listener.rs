//! Any HTTP requests to the listener's router: each is answered with a status that clients can act on, errors are JSON-RPC, and no page
//! elsewhere and no body that is not declared as JSON is let in. An error has the id of its request as it is written, or none. The input is text: requests as they stand on the wire, one after
//! the other behind a line of `===`. `SESSION` in it stands for the session that was opened last.
#![no_main]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use axum::response::IntoResponse as _;
use futures::stream::{self, StreamExt as _};
use http_body_util::BodyExt as _;
use libfuzzer_sys::fuzz_target;
use mcp_elicit_gateway::config::Config;
use mcp_elicit_gateway::{Runtime as Gateway, router};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

/// Requests of one input.
const REQUESTS: usize = 8;

/// The time that a request may take before its client leaves.
const PATIENCE: Duration = Duration::from_millis(40);

struct Site {
    runtime: Runtime,
    config: Config,
    gateway: Gateway,
}

static SITE: LazyLock<Site> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (config, gateway) = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let server = Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, server).await });
        let text = format!(
            "record = \"memory\"\nstate = \"/nonexistent\"\n[servers.up]\nurl = \"http://{at}/\"\n"
        );
        let mut config = Config::parse(&text).expect("a configuration");
        let gateway = Gateway::open(&mut config).await.expect("a record in memory");
        (config, gateway)
    });
    Site {
        runtime,
        config,
        gateway,
    }
});

/// The server behind the gateway: of 2025-11-25, with a tool that answers at once and a prompt that asks.
async fn answer(request: Request<Body>) -> Response<Body> {
    let body = request
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes());
    let frame: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    let (id, method) = (&frame["id"], frame["method"].as_str());
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let reply = match method {
        None => return StatusCode::ACCEPTED.into_response(),
        Some(_) if id.is_null() => return StatusCode::ACCEPTED.into_response(),
        Some("initialize") => result(json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "prompts": {}}, "serverInfo": {"name": "up", "version": "1"}})),
        Some("tools/call") => result(json!({"content": [{"type": "text", "text": "done"}]})),
        Some("prompts/get") => {
            let asked = json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {
                "message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}});
            // The stream stays open: the answer goes to another request.
            let event = Ok::<_, Infallible>(Bytes::from(format!("data: {asked}\n\n")));
            let events = stream::iter([event]).chain(stream::pending());
            let kind = [("content-type", "text/event-stream")];
            return (kind, Body::from_stream(events)).into_response();
        }
        Some(_) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}})
        }
    };
    axum::Json(reply).into_response()
}

/// A request as it stands in the input; `None` where it can be none.
fn request(text: &[u8], session: &str) -> Option<Request<Body>> {
    let text = String::from_utf8_lossy(text).replace("SESSION", session);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let mut line = lines.next()?.split(' ');
    let method = Method::from_bytes(line.next()?.as_bytes()).ok()?;
    let mut request = Request::builder().method(method).uri(line.next()?);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request = request.header(name, HeaderValue::from_bytes(value.trim().as_bytes()).ok()?);
    }
    request.body(Body::from(body.to_owned())).ok()
}

/// Returns `true` if nothing may come of this request, whatever it says.
fn is_to_be_refused(request: &Request<Body>) -> bool {
    let headers = request.headers();
    let is = |name: &str, own: &[&str]| {
        let values: Vec<_> = headers.get_all(name).iter().collect();
        matches!(values.as_slice(), [only] if only.to_str().is_ok_and(|only| own.contains(&only.to_ascii_lowercase().as_str())))
    };
    let host = headers
        .get("host")
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let own = [
        format!("http://{host}").to_ascii_lowercase(),
        format!("https://{host}").to_ascii_lowercase(),
    ];
    let from_elsewhere =
        headers.contains_key("origin") && !is("origin", &own.each_ref().map(String::as_str));
    let says_json = headers.get("content-type").is_some_and(|kind| {
        kind.to_str()
            .is_ok_and(|kind| kind.to_ascii_lowercase().contains("application/json"))
    });
    request.uri().path().starts_with("/mcp")
        && (from_elsewhere || (request.method() == Method::POST && !says_json))
}

/// Statuses that the listener answers with.
const STATUSES: [u16; 14] = [
    200, 202, 204, 400, 403, 404, 405, 408, 409, 413, 415, 502, 503, 401,
];

/// The id of a message, as it is written.
fn id_of(message: &[u8]) -> Option<String> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(message).ok()?;
    Some(members.get("id")?.get().to_owned())
}

async fn check(app: &Router, request: Request<Body>) -> Option<String> {
    let (refused, is_head) = (is_to_be_refused(&request), request.method() == Method::HEAD);
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("the body of the input").to_bytes();
    let asked = id_of(&body);
    let request = Request::from_parts(head, Body::from(body));
    let Ok(Ok(response)) = tokio::time::timeout(PATIENCE, app.clone().oneshot(request)).await
    else {
        return None;
    };
    let status = response.status();
    assert!(
        STATUSES.contains(&status.as_u16()),
        "{status} is not documented"
    );
    assert!(
        !(refused && status.is_success()),
        "{status} for a request from elsewhere"
    );
    let header = |name: &str| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let session = header("mcp-session-id");
    if header("content-type").as_deref() == Some("application/json") && !is_head {
        let body = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        let text = String::from_utf8_lossy(&body);
        // Numbers beyond every range are JSON too.
        let is_message = text.contains("\"jsonrpc\":\"2.0\"");
        assert!(is_message, "{text}");
        // Of a body that is no JSON, the id may be known nevertheless.
        if let (Some(answered), Some(asked)) = (id_of(&body), asked) {
            assert!(
                answered == "null" || answered == asked,
                "{answered} for {asked}"
            );
        }
    } else {
        // A stream is read for as long as this client stays.
        let _ = tokio::time::timeout(PATIENCE, response.into_body().collect()).await;
    }
    session
}

fuzz_target!(|input: &[u8]| {
    SITE.runtime.block_on(async {
        let app = router(SITE.gateway.clone(), &SITE.config, true);
        let mut session = "none".to_owned();
        let mut opened = Vec::new();
        let mut rest = input;
        for _ in 0..REQUESTS {
            let end = rest.windows(5).position(|at| at == b"\n===\n");
            let text = end.map_or(rest, |end| &rest[..end]);
            if let Some(request) = request(text, &session)
                && let Some(name) = check(&app, request).await
            {
                opened.push(name.clone());
                session = name;
            }
            let Some(end) = end else { break };
            rest = &rest[end + 5..];
        }
        for session in opened {
            let end = Request::delete("/mcp")
                .header("host", "localhost")
                .header("mcp-session-id", session);
            let end = app
                .clone()
                .oneshot(end.body(Body::empty()).expect("a request"));
            let _ = end.await;
        }
    });
});
