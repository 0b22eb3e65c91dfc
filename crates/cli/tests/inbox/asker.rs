//! A server of the rounds era that asks one value for each call and records every answer that reaches it; its tool
//! `tell` asks nothing. It runs in the test's process, so that it outlives a gateway that is killed.

use std::io::{self, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::http::{header_in, read_head_and_body};

type Told = Arc<Mutex<Vec<(u64, String)>>>;
/// The `traceparent` of each call, in `_meta` and in the header.
type Traces = Arc<Mutex<Vec<[Option<String>; 2]>>>;

/// The server.
pub(crate) struct Asker {
    pub(crate) url: String,
    told: Told,
    traces: Traces,
}

impl Asker {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (told, traces) = (Told::default(), Traces::default());
        let remembers = (told.clone(), traces.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (told, traces) = remembers.clone();
                thread::spawn(move || serve(stream, &told, &traces));
            }
        });
        Self { url, told, traces }
    }

    /// Returns the `traceparent` of each call that reached it, in `_meta` and in the header.
    #[cfg(feature = "full")]
    pub(crate) fn traces(&self) -> Vec<[Option<String>; 2]> {
        self.traces.lock().unwrap().clone()
    }

    /// Returns every answer that reached it: the call's number, and the value or the action.
    pub(crate) fn told(&self) -> Vec<(u64, String)> {
        self.told.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, told: &Told, traces: &Traces) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some((head, body)) = read_head_and_body(&mut reader)? {
        let said = serde_json::from_slice::<Value>(&body).ok();
        let call = said.as_ref().filter(|said| said["method"] == "tools/call");
        if let Some(call) = call {
            let in_meta = call["params"]["_meta"]["traceparent"].as_str();
            let both = [in_meta, header_in(&head, "traceparent")];
            let both = both.map(|trace| trace.map(str::to_owned));
            traces.lock().unwrap().push(both);
        }
        let answer = said
            .filter(|_| head.starts_with("POST"))
            .and_then(|frame| answer(&frame, told));
        let out = match answer {
            Some(answer) => {
                let text = answer.to_string();
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
                    text.len()
                )
            }
            None => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        writer.write_all(out.as_bytes())?;
    }
    Ok(())
}

fn answer(frame: &Value, told: &Told) -> Option<Value> {
    let id = frame.get("id")?;
    let result = |result: Value| Some(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let params = &frame["params"];
    match frame["method"].as_str()? {
        "server/discover" => result(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete",
            "serverInfo": {"name": "asker", "version": "1"}, "ttlMs": 0, "cacheScope": "private"})),
        "tools/list" => result(json!({
            "tools": [{"name": "note", "inputSchema": {"type": "object"}}, {"name": "tell", "inputSchema": {"type": "object"}}],
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})),
        "tools/call" => {
            let number = params["arguments"]["n"].as_u64()?;
            if params["name"] == "tell" {
                let text = format!("told {number}");
                return result(
                    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}),
                );
            }
            let Some(said) = params["inputResponses"].get("value") else {
                let form = json!({"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]});
                let question = json!({"method": "elicitation/create", "params": {
                    "mode": "form", "message": format!("Value for {number}?"), "requestedSchema": form}});
                return result(json!({
                    "resultType": "input_required", "requestState": number.to_string(), "inputRequests": {"value": question}}));
            };
            let value = said["content"]["value"]
                .as_str()
                .or(said["action"].as_str())
                .unwrap_or("nothing")
                .to_owned();
            told.lock().unwrap().push((number, value.clone()));
            result(json!({"resultType": "complete", "content": [{"type": "text", "text": value}]}))
        }
        _ => Some(
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}),
        ),
    }
}
