//! The server behind every work: `echo`, `ask` and `mirror`, over stdio and HTTP.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::say::{FORM, THANKS, WrittenFrame};
use crate::web::{HttpBody, HttpHead};

/// The size of a read or write buffer, in bytes.
const BUFFER: usize = 256 * 1024;

#[derive(Deserialize)]
struct ToolCallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: HashMap<Cow<'a, str>, &'a RawValue>,
}

/// The treatment of a frame.
enum FrameTreatment {
    Say(String),
    /// Asks, and responds to this request after the answer.
    Ask(String),
    /// A response to a question.
    Answered {
        question: u64,
        good: bool,
    },
    Nothing,
}

fn then(frame: &WrittenFrame<'_>) -> FrameTreatment {
    let Some(id) = frame.id.map(RawValue::get) else {
        return FrameTreatment::Nothing;
    };
    let result = |result: &str| {
        FrameTreatment::Say(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ))
    };
    let Some(method) = frame.method.as_deref() else {
        let good = frame
            .result
            .is_some_and(|result| result.get().contains("Grace Hopper"));
        return frame.number().map_or(FrameTreatment::Nothing, |question| {
            FrameTreatment::Answered { question, good }
        });
    };
    let params = frame.params.map_or("{}", RawValue::get);
    match method {
        "initialize" => result(
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"speed","version":"1"}}"#,
        ),
        "tools/list" => result(
            r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}},{"name":"mirror","inputSchema":{"type":"object"}}]}"#,
        ),
        "ping" => result("{}"),
        "tools/call" => match serde_json::from_str::<ToolCallParams<'_>>(params) {
            Ok(call) if call.name == "ask" => FrameTreatment::Ask(id.to_owned()),
            Ok(call) if call.name == "mirror" => result(&format!(
                r#"{{"content":[{{"type":"text","text":"seen"}}],"structuredContent":{{"seen":{params}}},"x-new":{{"rate":1e-7}}}}"#
            )),
            Ok(call) => {
                let text = call.arguments.get("text").map_or("\"\"", |text| text.get());
                result(&format!(
                    r#"{{"content":[{{"type":"text","text":{text}}}]}}"#
                ))
            }
            Err(_) => refuse(id, -32602),
        },
        _ => refuse(id, -32601),
    }
}

fn refuse(id: &str, code: i32) -> FrameTreatment {
    FrameTreatment::Say(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"}}}}"#
    ))
}

fn question(number: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"elicitation/create","params":{FORM}}}"#)
}

fn thanks(id: &str, good: bool) -> String {
    let text = if good {
        THANKS
    } else {
        "the question was refused"
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

/// Serves one client on stdin and stdout.
pub(crate) fn stdio() -> io::Result<()> {
    let mut reader = BufReader::with_capacity(BUFFER, io::stdin());
    let mut writer = io::BufWriter::with_capacity(BUFFER, io::stdout().lock());
    let mut waiting: HashMap<u64, String> = HashMap::new();
    let (mut line, mut asked) = (Vec::new(), 0);
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let said = WrittenFrame::read(&line).map_or(FrameTreatment::Nothing, |frame| then(&frame));
        let out = match said {
            FrameTreatment::Say(text) => Some(text),
            FrameTreatment::Ask(id) => {
                asked += 1;
                waiting.insert(asked, id);
                Some(question(asked))
            }
            FrameTreatment::Answered { question, good } => {
                waiting.remove(&question).map(|id| thanks(&id, good))
            }
            FrameTreatment::Nothing => None,
        };
        if let Some(out) = out {
            writer.write_all(out.as_bytes())?;
            writer.write_all(b"\n")?;
        }
        if reader.buffer().is_empty() {
            writer.flush()?;
        }
    }
}

/// The pending questions of all connections.
#[derive(Default)]
struct PendingQuestions {
    asked: AtomicU64,
    sessions: AtomicU64,
    questions: Mutex<HashMap<u64, Sender<bool>>>,
}

/// Serves HTTP on this port, with a thread for each connection.
pub(crate) fn http(port: &str) -> io::Result<()> {
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    let waiting = Arc::new(PendingQuestions::default());
    for stream in listener.incoming() {
        let (stream, waiting) = (stream?, waiting.clone());
        std::thread::spawn(move || connection(stream, &waiting));
    }
    Ok(())
}

fn connection(stream: TcpStream, waiting: &PendingQuestions) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(BUFFER, stream.try_clone()?);
    let mut writer = stream;
    let mut body = Vec::new();
    loop {
        let head = HttpHead::read(&mut reader)?;
        body.clear();
        HttpBody::of(&head, &mut reader).read_to_end(&mut body)?;
        if !head.first.starts_with("POST") {
            let status = if head.first.starts_with("GET") {
                "405 Method Not Allowed"
            } else {
                "200 OK"
            };
            write!(writer, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        let frame = WrittenFrame::read(&body);
        let opens = frame
            .as_ref()
            .is_some_and(|frame| frame.method.as_deref() == Some("initialize"));
        match frame.map_or(FrameTreatment::Nothing, |frame| then(&frame)) {
            FrameTreatment::Say(text) => {
                let session = if opens {
                    let number = waiting.sessions.fetch_add(1, Ordering::Relaxed);
                    format!("mcp-session-id: session-{number}\r\n")
                } else {
                    String::new()
                };
                let mut out = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{session}content-length: {}\r\n\r\n",
                    text.len()
                );
                out.push_str(&text);
                writer.write_all(out.as_bytes())?;
            }
            FrameTreatment::Ask(id) => ask(&mut writer, waiting, &id)?,
            FrameTreatment::Answered { question, good } => {
                let asker = waiting
                    .questions
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&question);
                if let Some(asker) = asker {
                    let _gone = asker.send(good);
                }
                accepted(&mut writer)?;
            }
            FrameTreatment::Nothing => accepted(&mut writer)?,
        }
    }
}

fn accepted(writer: &mut TcpStream) -> io::Result<()> {
    writer.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
}

/// Asks on the call's own stream of events, and ends the stream with the response to the call.
fn ask(writer: &mut TcpStream, waiting: &PendingQuestions, id: &str) -> io::Result<()> {
    let number = waiting.asked.fetch_add(1, Ordering::Relaxed) + 1;
    let (answered, answer) = channel();
    waiting
        .questions
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(number, answered);
    let event = |text: &str| format!("{:x}\r\ndata: {text}\n\n\r\n", text.len() + 8);
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    writer.write_all(format!("{head}{}", event(&question(number))).as_bytes())?;
    let good = answer.recv().unwrap_or(false);
    writer.write_all(format!("{}0\r\n\r\n", event(&thanks(id, good))).as_bytes())
}
