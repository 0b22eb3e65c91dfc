//! A connection over Streamable HTTP: every message a POST, and in the pushed era a stream that the server may write to at
//! any time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_elicit_check::{CheckConnection, ReceivedText};
use mcp_elicit_client::tls;
use mcp_elicit_core::text::beginning;
use mcp_elicit_core::wire::method;
use mcp_elicit_core::wire::sse::EventReader;
use mcp_elicit_gateway::headers_of;
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::args::server::ServerAccess;
use crate::failure::Failure;

/// The longest message of a server, in bytes.
const LONGEST: usize = 8 << 20;
/// The most bytes of a server in one cell.
const MOST_BYTES: usize = 64 << 20;
/// The longest wait for the status of a message that gets no response.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// The longest wait for the end of a session.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// The interval at which a wait checks whether the command is stopped.
const STEP: Duration = Duration::from_millis(200);
/// The longest part of a body in an error, in bytes.
const LONGEST_QUOTE: usize = 200;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// A session, or the requests of a client without one.
struct HttpConnection {
    shared: Arc<SharedHttp>,
    received: Receiver<ReceivedText>,
    runtime: Handle,
    tasks: Vec<AbortHandle>,
    stopping: Arc<AtomicBool>,
    begun: Instant,
    ended: Option<String>,
}

/// The parts that the requests in progress use.
struct SharedHttp {
    client: Client,
    url: Url,
    /// The headers of every request.
    headers: HeaderMap,
    session: Mutex<HttpSession>,
    sender: Sender<ReceivedText>,
    bytes: AtomicUsize,
}

#[derive(Clone, Default)]
struct HttpSession {
    id: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

/// Prepares a connection to this URL.
pub(super) fn connect(
    url: &str,
    access: &ServerAccess,
    runtime: &Handle,
    stopping: Arc<AtomicBool>,
) -> Result<Box<dyn CheckConnection>, Failure> {
    tls::ready();
    let unusable = || Failure::usage("invalid URL: expected http or https");
    let url = Url::parse(url).map_err(|error| unusable().because(error))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(unusable());
    }
    let mut headers: HeaderMap = access.headers.iter().cloned().collect();
    if let Some(token) = &access.token {
        let value = HeaderValue::try_from(format!("Bearer {}", token.secret()));
        let mut value = value.map_err(|error| Failure::usage("invalid token").because(error))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let client = Client::builder()
        .redirect(tls::redirects_within_origin())
        .referer(false)
        .user_agent(concat!("mcp-elicit/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| Failure::connection("cannot set up HTTP").because(error))?;
    let (sender, received) = mpsc::channel();
    Ok(Box::new(HttpConnection {
        shared: Arc::new(SharedHttp {
            client,
            url,
            headers,
            session: Mutex::default(),
            sender,
            bytes: AtomicUsize::new(0),
        }),
        received,
        runtime: runtime.clone(),
        tasks: Vec::new(),
        stopping,
        begun: super::now(),
        ended: None,
    }))
}

impl SharedHttp {
    fn session(&self) -> HttpSession {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.clone()
    }

    fn end(&self, why: impl Into<String>) {
        // The receiver has gone with the cell.
        let _ = self.sender.send(ReceivedText::Ended(why.into()));
    }

    /// Passes on the text of one message.
    fn pass(&self, text: &[u8], id: Option<&Value>) {
        let received = match serde_json::from_slice::<Value>(text) {
            Ok(mut frame @ Value::Object(_)) => {
                // The error of a request whose id could not be read is that of this request.
                if let Some(id) = id.filter(|_| frame["id"].is_null() && frame["error"].is_object())
                {
                    frame["id"] = id.clone();
                }
                self.opened(&frame);
                ReceivedText::Frame(frame)
            }
            Ok(_) | Err(_) => ReceivedText::Noise(String::from_utf8_lossy(text).into_owned()),
        };
        let _ = self.sender.send(received);
    }

    /// Remembers the revision of the session, which later requests repeat.
    fn opened(&self, frame: &Value) {
        let Some(revision) = frame["result"]["protocolVersion"].as_str() else {
            return;
        };
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.revision = HeaderValue::from_str(revision).ok();
    }

    async fn post(self: Arc<Self>, frame: Value) {
        let id = frame.get("id").filter(|_| frame["method"].is_string());
        let session = self.session();
        let mut request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, format!("{JSON}, {EVENTS}"));
        if let Some(id) = session.id {
            request = request.header(SESSION, id);
        }
        if let Some(revision) = session.revision {
            request = request.header(VERSION, revision);
        }
        let text = frame.to_string();
        let repeated = headers_of(&text);
        let response = request.headers(repeated).body(text).send().await;
        match response {
            Ok(response) => self.read(response, id).await,
            Err(error) => self.end(mcp_elicit_core::fault::with_causes(&error.without_url())),
        }
    }

    async fn read(&self, response: Response, id: Option<&Value>) {
        let status = response.status();
        if let Some(session) = response.headers().get(SESSION) {
            let mut known = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            known.id = Some(session.clone());
        }
        let media = response.headers().get(CONTENT_TYPE);
        let media = media.and_then(|media| media.to_str().ok());
        let media = media.unwrap_or_default().trim().to_ascii_lowercase();
        if status.is_success() && media.starts_with(EVENTS) {
            return self.read_events(response, id).await;
        }
        let body = self.body(response).await;
        let is_json = serde_json::from_slice::<Value>(&body).is_ok_and(|body| body.is_object());
        let Some(_) = id else {
            // A message without a response: its refusal is an end only if the whole session is refused.
            if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                self.end(format!("HTTP {status}"));
            }
            return;
        };
        if is_json {
            return self.pass(&body, id);
        }
        let text = String::from_utf8_lossy(&body);
        let text = beginning(text.trim(), LONGEST_QUOTE);
        self.end(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                format!("HTTP {status}: use --token-env or --header-env")
            }
            _ if text.is_empty() => format!("HTTP {status} without a body"),
            _ => format!("HTTP {status} with {text:?}, which is not a JSON-RPC message"),
        });
    }

    async fn body(&self, response: Response) -> Vec<u8> {
        let mut body = Vec::new();
        let mut stream = response.bytes_stream();
        while let Some(Ok(chunk)) = stream.next().await {
            if !self.counts(chunk.len()) || body.len() + chunk.len() > LONGEST {
                self.end(format!("a message of more than {LONGEST} bytes"));
                break;
            }
            body.extend_from_slice(&chunk);
        }
        body
    }

    async fn read_events(&self, response: Response, id: Option<&Value>) {
        let mut events = EventReader::default();
        let mut stream = response.bytes_stream();
        while let Some(Ok(chunk)) = stream.next().await {
            if !self.counts(chunk.len()) || events.held() + chunk.len() > LONGEST {
                return self.end(format!("a message of more than {LONGEST} bytes"));
            }
            events.read(&chunk, |event| {
                if event.is_message && !event.data.trim_ascii().is_empty() {
                    self.pass(&event.data, id);
                }
            });
        }
    }

    /// Counts bytes of the server. Returns `false` if they are too many.
    fn counts(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= MOST_BYTES
    }

    /// Reads the stream that the server may write to at any time; not every server has one.
    async fn listen(self: Arc<Self>) {
        let session = self.session();
        let mut request = self
            .client
            .get(self.url.clone())
            .headers(self.headers.clone())
            .header(ACCEPT, EVENTS);
        if let Some(id) = session.id {
            request = request.header(SESSION, id);
        }
        if let Some(revision) = session.revision {
            request = request.header(VERSION, revision);
        }
        if let Ok(response) = request.send().await
            && response.status().is_success()
        {
            self.read_events(response, None).await;
        }
    }

    /// Ends the session.
    async fn delete(self: Arc<Self>) {
        let session = self.session();
        let Some(id) = session.id else { return };
        let request = self.client.delete(self.url.clone());
        let request = request.headers(self.headers.clone()).header(SESSION, id);
        let sent = tokio::time::timeout(ENDS_WITHIN, request.send()).await;
        // The server may have forgotten it, or keep it.
        let _ = sent.map(drop);
    }
}

impl CheckConnection for HttpConnection {
    fn send(&mut self, frame: &Value) {
        let posted = Arc::clone(&self.shared).post(frame.clone());
        if frame["method"].is_string() && frame.get("id").is_some() {
            let task = self.runtime.spawn(posted);
            self.tasks.push(task.abort_handle());
            return;
        }
        // In order: the server must have taken it before the next message.
        let taken = async { tokio::time::timeout(TAKEN_WITHIN, posted).await };
        if self.runtime.block_on(taken).is_err() {
            self.shared.end("it does not take a message");
        }
        if frame["method"] == method::INITIALIZED {
            let task = self.runtime.spawn(Arc::clone(&self.shared).listen());
            self.tasks.push(task.abort_handle());
        }
    }

    fn next(&mut self, within: Duration) -> ReceivedText {
        if let Some(why) = &self.ended {
            return ReceivedText::Ended(why.clone());
        }
        let mut left = within;
        loop {
            if self.stopping.load(Ordering::Acquire) {
                return ReceivedText::Ended("stopped".to_owned());
            }
            let step = left.min(STEP);
            match self.received.recv_timeout(step) {
                Ok(ReceivedText::Ended(why)) => {
                    self.ended = Some(why.clone());
                    return ReceivedText::Ended(why);
                }
                Ok(received) => return received,
                Err(RecvTimeoutError::Timeout) if step < left => left -= step,
                Err(_) => return ReceivedText::Silence,
            }
        }
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn leave(&mut self) -> Option<bool> {
        for task in self.tasks.drain(..) {
            task.abort();
        }
        self.runtime.block_on(Arc::clone(&self.shared).delete());
        None
    }
}

impl Drop for HttpConnection {
    fn drop(&mut self) {
        self.leave();
    }
}
