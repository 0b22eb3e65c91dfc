//! Servers that end while clients over HTTP continue.

use serde_json::{Value, json};

use crate::attacks::round;
use crate::gateway::{Gateway, NO_LIMITS};
use crate::http::send;
use crate::raw::text;

/// A server of the rounds era that ends with its first call.
const ENDS: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([^,}]*\).*/\1/')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}\n' "$id" "$1"; }
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id" ;;
    *server/discover*) say '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"' ;;
    *) say '"content":[{"type":"text","text":"once"}]'; exit ;;
  esac
done"#;

fn call(at: &str) -> Value {
    round(
        at,
        "ada",
        &json!({}),
        json!({"name": "deploy", "arguments": {}}),
    )
}

/// No session connects the requests of the rounds era, so only the gateway can open another.
#[test]
fn a_program_that_ended_is_started_anew_for_the_next_request_in_rounds() {
    let state = tempfile::tempdir().unwrap();
    let mut more = vec!["--listen", "127.0.0.1:0"];
    more.extend(NO_LIMITS);
    let gateway = Gateway::start(state.path(), &more, &["--", "sh", "-c", ENDS]);
    let at = gateway.serving.clone().unwrap();
    assert_eq!(text(&call(&at)), "once");
    // A call that arrives before the end is known ends with an error; the next one finds another server.
    let again = (0..50)
        .map(|_| call(&at))
        .find(|said| said["result"].is_object());
    assert_eq!(text(&again.expect("a server")), "once");
}

#[test]
fn a_stream_that_never_was_is_not_waited_on() {
    let state = tempfile::tempdir().unwrap();
    let mut more = vec!["--listen", "127.0.0.1:0"];
    more.extend(NO_LIMITS);
    let gateway = Gateway::start(state.path(), &more, &crate::raw::DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let open = crate::raw::initialize("2025-11-25", &json!({})).to_string();
    let head = [
        "POST /mcp HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    ];
    let opened = send(&at, &head, &open).expect("an answer");
    let session = format!(
        "Mcp-Session-Id: {}",
        opened.header("mcp-session-id").unwrap()
    );
    let head = [
        "GET /mcp HTTP/1.1",
        "Accept: text/event-stream",
        "Last-Event-ID: 99-1",
        &session,
    ];
    assert_eq!(send(&at, &head, "").expect("an answer").status, 400);
}
