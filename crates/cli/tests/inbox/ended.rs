//! Servers that end while clients over HTTP continue.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::attacks::round;
use crate::gateway::{Gateway, NO_LIMITS};
use crate::http::{PATIENCE, post, read, send};
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

/// The connection of a client may break before it has read what was written.
#[test]
fn the_answer_of_a_stream_can_be_resumed_after_it_was_written() {
    let state = tempfile::tempdir().unwrap();
    let mut more = vec!["--listen", "127.0.0.1:0"];
    more.extend(NO_LIMITS);
    let gateway = Gateway::start(state.path(), &more, &crate::raw::DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let open = crate::raw::initialize("2025-11-25", &json!({}));
    let opened = post(&at, "/mcp", None, None, &open);
    let session = opened.header("mcp-session-id").unwrap();
    let call = crate::raw::call(2, "deploy", &json!({})).to_string();
    let mut stream = TcpStream::connect(&at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Mcp-Session-Id: {session}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{call}",
        call.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The stream begins before the answer is there.
    let mut bytes = vec![0; 12];
    stream.read_exact(&mut bytes).unwrap();
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(gateway.answer(&id, &json!({"action": "decline"})), 200);
    stream.read_to_end(&mut bytes).unwrap();
    let told = read(&bytes).expect("a response");
    let event = told.body.lines().find_map(|line| line.strip_prefix("id: "));
    let stream = event.and_then(|id| id.split('-').next()).expect("a stream");
    let seen = format!("Last-Event-ID: {stream}-0");
    let session = format!("Mcp-Session-Id: {session}");
    let head = [
        "GET /mcp HTTP/1.1",
        "Accept: text/event-stream",
        &seen,
        &session,
    ];
    for _ in 0..2 {
        let again = send(&at, &head, "").expect("an answer");
        assert_eq!((again.status, again.response()), (200, told.response()));
    }
}
