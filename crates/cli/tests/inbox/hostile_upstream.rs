//! A hostile server over HTTP: redirects, compressed bodies, and bodies, events and heads that never end. Each call ends
//! with an error or keeps waiting, no other host is contacted, memory stays bounded, and the next call works.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::gateway::{Gateway, REVISION};
use crate::http::read_request;
use crate::raw::text;

const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// A server whose tools are its attacks, and the number of requests that reached the host of its redirects.
struct Hostile {
    url: String,
    elsewhere: Arc<AtomicUsize>,
}

impl Hostile {
    fn start() -> Self {
        let elsewhere = Arc::new(AtomicUsize::new(0));
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("http://{}/mcp", other.local_addr().unwrap());
        let count = elsewhere.clone();
        thread::spawn(move || {
            for _ in other.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let target = target.clone();
                // The gateway closes what it has seen enough of.
                thread::spawn(move || drop(serve(stream, &target)));
            }
        });
        Self { url, elsewhere }
    }
}

fn serve(stream: TcpStream, elsewhere: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some((first, body)) = read_request(&mut reader)? {
        if !first.starts_with("POST") {
            writer.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        }
        let frame: Value = serde_json::from_slice(&body).unwrap_or_default();
        let result = match frame["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": REVISION, "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1"}})
            }
            Some("tools/call") => match frame["params"]["name"].as_str() {
                Some("fine") => json!({"content": [{"type": "text", "text": "fine"}]}),
                attack => {
                    return respond(
                        &mut writer,
                        attack.unwrap_or_default(),
                        &frame["id"],
                        elsewhere,
                    );
                }
            },
            _ if frame["id"].is_null() => {
                writer.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")?;
                continue;
            }
            _ => {
                let error = json!({"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32601, "message": "no"}});
                write_json(&mut writer, &error.to_string())?;
                continue;
            }
        };
        let response = json!({"jsonrpc": "2.0", "id": frame["id"], "result": result});
        write_json(&mut writer, &response.to_string())?;
    }
    Ok(())
}

fn write_json(writer: &mut TcpStream, text: &str) -> std::io::Result<()> {
    write!(writer, "{JSON}Content-Length: {}\r\n\r\n{text}", text.len())
}

/// Writes the same again and again until the gateway closes the connection.
fn forever(writer: &mut TcpStream, head: &str, part: &str) -> std::io::Result<()> {
    writer.write_all(head.as_bytes())?;
    let many = part.repeat(8_192 / part.len() + 1);
    loop {
        writer.write_all(many.as_bytes())?;
    }
}

fn respond(
    writer: &mut TcpStream,
    attack: &str,
    id: &Value,
    elsewhere: &str,
) -> std::io::Result<()> {
    match attack {
        "redirect-302" | "redirect-307" | "redirect-308" => {
            let status = &attack["redirect-".len()..];
            write!(
                writer,
                "HTTP/1.1 {status} Moved\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n"
            )
        }
        "compressed" => {
            // A response in a block of gzip that is stored: nobody has asked for it.
            let text = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}).to_string();
            let length = u16::try_from(text.len()).unwrap();
            let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1];
            bytes.extend(length.to_le_bytes());
            bytes.extend((!length).to_le_bytes());
            bytes.extend(text.as_bytes());
            write!(
                writer,
                "{JSON}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                bytes.len()
            )?;
            writer.write_all(&bytes)
        }
        "endless-json" => forever(writer, &format!("{JSON}\r\n{{\"a\":\""), "x"),
        "endless-line" => forever(writer, &format!("{EVENTS}data: "), "x"),
        "endless-event" => forever(writer, EVENTS, "data: xxxxxxxxxxxxxxxx\n"),
        "endless-head" => forever(writer, "HTTP/1.1 200 OK\r\n", "X-A: xxxxxxxxxxxxxxxx\r\n"),
        "endless-comments" => forever(writer, EVENTS, ": waiting\n\n"),
        _ => Ok(()),
    }
}

#[test]
fn a_hostile_server_over_http_ends_its_own_calls_and_nothing_else() {
    let state = tempfile::tempdir().unwrap();
    let hostile = Hostile::start();
    let more = ["--max-frame", "65536", "--server-revision", REVISION];
    let mut gateway = Gateway::start(state.path(), &more, &["--upstream", &hostile.url]);
    gateway.initialize();
    let attacks = [
        "redirect-302",
        "redirect-307",
        "redirect-308",
        "compressed",
        "endless-json",
        "endless-line",
        "endless-event",
        "endless-head",
        "",
    ];
    for (number, attack) in (2..).step_by(2).zip(attacks) {
        gateway.call(number, attack, &json!({}));
        let ended = gateway.result(number);
        assert!(ended["error"].is_object(), "{attack}: {ended}");
        gateway.call(number + 1, "fine", &json!({}));
        let fine = gateway.result(number + 1);
        assert_eq!(text(&fine), "fine", "after {attack}: {fine}");
    }
    // Comments are no response: the call waits, and others are not held up.
    gateway.call(100, "endless-comments", &json!({}));
    gateway.call(101, "fine", &json!({}));
    assert_eq!(text(&gateway.result(101)), "fine");
    #[cfg(target_os = "linux")]
    assert!(gateway.resident() < 256 * 1024 * 1024);
    assert_eq!(
        hostile.elsewhere.load(Ordering::SeqCst),
        0,
        "no redirect is followed"
    );
}
