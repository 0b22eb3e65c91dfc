//! HTTP by hand: exactly the bytes that an attacker would choose.

use std::io::{self, BufRead, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Longer than anything here takes, so that a hanging test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Reads a request of the gateway, for a server in the test: its first line and its body; `None` at the end of the
/// connection.
pub(crate) fn read_request(reader: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let request = read_head_and_body(reader)?;
    Ok(request.map(|(head, body)| (head.lines().next().unwrap_or_default().to_owned(), body)))
}

/// Reads a request with its whole head.
pub(crate) fn read_head_and_body(
    reader: &mut impl BufRead,
) -> io::Result<Option<(String, Vec<u8>)>> {
    let (mut head, mut length) = (String::new(), 0);
    if reader.read_line(&mut head)? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        head.push_str(&line);
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

/// Returns the value of a header.
pub(crate) fn header_in<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the response in the body, or in the last event of a stream.
    pub(crate) fn response(&self) -> Value {
        let mut lines = self.body.lines().rev();
        let event = lines.find_map(|line| line.strip_prefix("data:"));
        serde_json::from_str(event.unwrap_or(&self.body)).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header_in(&self.head, name)
    }
}

/// Posts a message to an MCP endpoint at this path, with the token and in the session that the caller has.
pub(crate) fn post(
    at: &str,
    path: &str,
    token: Option<&str>,
    session: Option<&str>,
    message: &Value,
) -> Reply {
    let line = format!("POST {path} HTTP/1.1");
    let token = token.map(|token| format!("Authorization: Bearer {token}"));
    let session = session.map(|session| format!("Mcp-Session-Id: {session}"));
    let mut head = vec![
        line.as_str(),
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    ];
    head.extend(token.as_deref());
    head.extend(session.as_deref());
    let reply = send(at, &head, &message.to_string());
    reply.unwrap_or_else(|| panic!("no answer to {message}"))
}

/// Sends the head (one header per line, without `Host`) and the body. Returns `None` if the peer closed the connection
/// without a response.
pub(crate) fn send(at: &str, head: &[&str], body: &str) -> Option<Reply> {
    let mut all = head.to_vec();
    let host = format!("Host: {at}");
    all.insert(1, &host);
    send_as_is(at, &all, body)
}

/// The same with a chosen `Host`, or none.
pub(crate) fn send_as_is(at: &str, head: &[&str], body: &str) -> Option<Reply> {
    send_within(at, head, body, PATIENCE)
}

/// The same, given up when the peer sends nothing for this time. What has come by then is read.
pub(crate) fn send_within(
    at: &str,
    head: &[&str],
    body: &str,
    patience: Duration,
) -> Option<Reply> {
    let mut stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    let length = format!("Content-Length: {}", body.len());
    let mut head = head.to_vec();
    head.push("Connection: close");
    if !body.is_empty() {
        head.push(&length);
    }
    // A peer may answer and close before it has read a body that is too long.
    let _ = stream.write_all(format!("{}\r\n\r\n{body}", head.join("\r\n")).as_bytes());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    read(&bytes)
}

pub(crate) fn read(bytes: &[u8]) -> Option<Reply> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut reply = Reply {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_owned(),
        body: body.to_owned(),
    };
    if reply.header("transfer-encoding") == Some("chunked") {
        reply.body = joined(&reply.body);
    }
    Some(reply)
}

/// Returns the chunks of a body, joined.
fn joined(mut rest: &str) -> String {
    let mut whole = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = after.get(..size).filter(|_| size > 0) else {
            break;
        };
        whole.push_str(chunk);
        rest = after.get(size + 2..).unwrap_or_default();
    }
    whole
}
