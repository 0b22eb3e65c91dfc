//! HTTP by hand: exactly the bytes that an attacker would choose.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &'_ str| {
            line.split_once(':')
                .is_some_and(|(key, _)| key.eq_ignore_ascii_case(name))
        };
        let found = self.head.lines().find(|candidate| line(candidate))?;
        Some(found.split_once(':')?.1.trim())
    }
}

/// Returns the host and port of a link.
pub(crate) fn host(link: &str) -> String {
    let rest = link.strip_prefix("http://").expect("a loopback link");
    rest.split('/').next().expect("a host").to_owned()
}

/// Sends `head` (request line and headers, one per line) and `body`, and reads the response to its end.
pub(crate) async fn send(at: &str, head: &[String], body: &str) -> Reply {
    let mut stream = TcpStream::connect(at).await.expect("the server listens");
    let mut head = head.to_vec();
    head.push("Connection: close".to_owned());
    if !body.is_empty() {
        head.push(format!("Content-Length: {}", body.len()));
    }
    let text = format!("{}\r\n\r\n{body}", head.join("\r\n"));
    // The server may answer and close before it has read a body that is too long.
    let _ = stream.write_all(text.as_bytes()).await;
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0);
    Reply {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// A browser with a session, at one site.
pub(crate) struct Visitor {
    pub(crate) host: String,
    pub(crate) cookie: String,
    /// The path below which the pages are served.
    pub(crate) base: String,
}

impl Visitor {
    /// Signs in through the link.
    pub(crate) async fn enter(link: &str) -> Self {
        let host = host(link);
        let path = link.split_once(&host).expect("the host is in the link").1;
        let reply = send(
            &host,
            &[format!("GET {path} HTTP/1.1"), format!("Host: {host}")],
            "",
        )
        .await;
        let cookie = reply.header("set-cookie").expect("the link signs in");
        let path = cookie.split("Path=").nth(1).expect("the cookie has a path");
        Self {
            cookie: cookie.split(';').next().expect("a cookie").to_owned(),
            base: path.split(';').next().unwrap_or_default().to_owned(),
            host,
        }
    }

    /// Requests a page below the base path.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.get_as_is(&format!("{}{path}", self.base)).await
    }

    /// Requests exactly this path.
    pub(crate) async fn get_as_is(&self, path: &str) -> Reply {
        let head = [
            format!("GET {path} HTTP/1.1"),
            format!("Host: {}", self.host),
            format!("Cookie: {}", self.cookie),
        ];
        send(&self.host, &head, "").await
    }

    /// Returns the target of a redirect, relative to the path of the pages.
    pub(crate) fn inside<'a>(&self, reply: &'a Reply) -> Option<&'a str> {
        reply.header("location")?.strip_prefix(&self.base)
    }

    /// Returns the head of a POST as the project's own pages send it.
    pub(crate) fn post_head(&self, path: &str) -> Vec<String> {
        vec![
            format!("POST {}{path} HTTP/1.1", self.base),
            format!("Host: {}", self.host),
            format!("Cookie: {}", self.cookie),
            format!("Origin: http://{}", self.host),
            "Content-Type: application/x-www-form-urlencoded".to_owned(),
        ]
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Reply {
        send(&self.host, &self.post_head(path), body).await
    }

    /// Returns the value of a hidden control of a page.
    pub(crate) async fn hidden(&self, path: &str, name: &str) -> String {
        let page = self.get(path).await.body;
        let at = page
            .find(&format!("name=\"{name}\" value=\""))
            .expect("the page has the control");
        let rest = &page[at + name.len() + 15..];
        rest[..rest.find('"').expect("the value ends")].to_owned()
    }
}
