//! A client of 2026-07-28, which has no session: each of its requests may go to any gateway.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::send_within;
use crate::raw::call;

/// Makes the call of this number once: as a client that has a dialog of its own or none, and perhaps with the members of
/// a retry. Returns the response, or `None` if the connection ends or says nothing for this time.
pub(crate) fn make_call(
    at: &str,
    number: u64,
    has_dialog: bool,
    retry: Option<&Value>,
    patience: Duration,
) -> Option<Value> {
    let capabilities = if has_dialog {
        json!({"elicitation": {"form": {}}})
    } else {
        json!({})
    };
    let mut frame = call(number, "note", &json!({"n": number}));
    frame["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities});
    for (name, value) in retry.and_then(Value::as_object).into_iter().flatten() {
        frame["params"][name] = value.clone();
    }
    let host = format!("Host: {at}");
    let head = [
        "POST /mcp HTTP/1.1",
        &host,
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: note",
    ];
    let reply = send_within(at, &head, &frame.to_string(), patience)?;
    let events = reply.body.lines().map(|line| {
        let event = line.strip_prefix("data:");
        event.unwrap_or(line)
    });
    let mut frames = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
    // An error of the whole request has no id.
    frames.find(|frame| frame["id"] == number || frame.get("error").is_some())
}
