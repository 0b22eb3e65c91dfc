//! The client over HTTP, and the parts of HTTP/1.1 and server-sent events that both ends need.

use std::io::{self, BufRead, BufReader, Read, Take, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::run::now;
use crate::say::{INITIALIZE, INITIALIZED, LIST, RepeatedCall, WrittenFrame, answer_to};

/// The size of a read buffer, in bytes.
const BUFFER: usize = 256 * 1024;
/// The longest silence of a connection.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// The first line and headers of a message, with names in lower case.
pub(crate) struct HttpHead {
    pub(crate) first: String,
    headers: Vec<(String, String)>,
}

impl HttpHead {
    /// Reads the head of a message.
    pub(crate) fn read(reader: &mut impl BufRead) -> io::Result<Self> {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => {
                    headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
                }
                None => return Ok(Self { first, headers }),
            }
        }
    }

    /// Returns the value of this header; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value)
    }
}

/// The body of a message: of known length, in chunks, or absent.
pub(crate) enum HttpBody<'a, R> {
    Length(Take<&'a mut R>),
    Chunks {
        reader: &'a mut R,
        left: usize,
        ended: bool,
    },
}

impl<'a, R: BufRead> HttpBody<'a, R> {
    /// Returns the body that follows this head.
    pub(crate) fn of(head: &HttpHead, reader: &'a mut R) -> Self {
        if head.get("transfer-encoding") == "chunked" {
            return Self::Chunks {
                reader,
                left: 0,
                ended: false,
            };
        }
        let length = head.get("content-length").parse().unwrap_or(0);
        Self::Length(reader.take(length))
    }
}

impl<R: BufRead> Read for HttpBody<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (reader, left, ended) = match self {
            Self::Length(body) => return body.read(into),
            Self::Chunks { ended: true, .. } => return Ok(0),
            Self::Chunks {
                reader,
                left,
                ended,
            } => (reader, left, ended),
        };
        let mut line = String::new();
        if *left == 0 {
            reader.read_line(&mut line)?;
            let size = line.trim().split(';').next().unwrap_or_default();
            *left = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            if *left == 0 {
                reader.read_line(&mut line)?;
                *ended = true;
                return Ok(0);
            }
        }
        let most = into.len().min(*left);
        let read = reader.read(&mut into[..most])?;
        *left -= read;
        if *left == 0 {
            reader.read_exact(&mut [0; 2])?;
        }
        Ok(read)
    }
}

struct WebConnection {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl WebConnection {
    fn open(host: &str) -> io::Result<Self> {
        let writer = TcpStream::connect(host)?;
        writer.set_nodelay(true)?;
        writer.set_read_timeout(Some(TIME_LIMIT))?;
        let reader = BufReader::with_capacity(BUFFER, writer.try_clone()?);
        Ok(Self { reader, writer })
    }
}

/// A client of the server at an address.
pub(crate) struct Web {
    host: String,
    path: String,
    session: String,
    main: WebConnection,
    /// The connection for answers while a call's stream is open.
    side: Option<WebConnection>,
    next: AtomicU64,
}

impl Web {
    /// Connects to `http://host/path`.
    pub(crate) fn connect(host: &str, path: &str) -> io::Result<Self> {
        Ok(Self {
            host: host.to_owned(),
            path: path.to_owned(),
            session: String::new(),
            main: WebConnection::open(host)?,
            side: None,
            next: AtomicU64::new(10),
        })
    }

    /// Opens the session, up to the response to the first request.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        let head = self.head(INITIALIZE.len());
        let (session, _) = exchange(&mut self.main, &head, INITIALIZE.as_bytes(), |_| Ok(()))?;
        self.session = session;
        let head = self.head(INITIALIZED.len());
        exchange(&mut self.main, &head, INITIALIZED.as_bytes(), |_| Ok(()))?;
        self.say(LIST).map(|_| ())
    }

    fn head(&self, length: usize) -> String {
        let session = if self.session.is_empty() {
            String::new()
        } else {
            format!(
                "mcp-protocol-version: 2025-11-25\r\nmcp-session-id: {}\r\n",
                self.session
            )
        };
        format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{session}content-length: {length}\r\n\r\n",
            self.path, self.host
        )
    }

    /// Sends a request and returns the response to it as received.
    pub(crate) fn say(&mut self, request: &str) -> io::Result<Vec<u8>> {
        let head = self.head(request.len());
        let mut found = None;
        exchange(&mut self.main, &head, request.as_bytes(), |frame| {
            if WrittenFrame::read(frame).is_some_and(|frame| frame.method.is_none()) {
                found = Some(frame.to_vec());
            }
            Ok(())
        })?;
        found.ok_or_else(|| io::Error::other("no answer came"))
    }

    fn call(&mut self, job: &RepeatedCall, number: u64, text: &mut Vec<u8>) -> io::Result<()> {
        text.clear();
        job.write(number, text);
        let head = self.head(text.len());
        // Cut before the content length of the answer, which is not known yet.
        let answer_head = self.head(0);
        let answer_head = answer_head.trim_end().trim_end_matches('0');
        let mut side = self.side.take();
        let mut done = Err(io::Error::other("no answer came"));
        let host = &self.host;
        let sent = exchange(&mut self.main, &head, text, |frame| {
            let Some(frame) = WrittenFrame::read(frame) else {
                return Ok(());
            };
            if frame.asks() {
                let answer = frame.id.map(answer_to).unwrap_or_default();
                let connection = match &mut side {
                    Some(connection) => connection,
                    None => side.insert(WebConnection::open(host)?),
                };
                let head = format!("{answer_head}{}\r\n\r\n", answer.len());
                exchange(connection, &head, answer.as_bytes(), |_| Ok(()))?;
            } else if frame.method.is_none() && frame.id.is_some() {
                done = job.check(&frame).map_err(io::Error::other);
            }
            Ok(())
        });
        self.side = side;
        sent?;
        done
    }

    /// Makes one call after another until `most` are made or `budget` is spent. Returns the duration of each.
    pub(crate) fn one_by_one(
        &mut self,
        job: &RepeatedCall,
        most: usize,
        budget: Duration,
    ) -> io::Result<Vec<Duration>> {
        let (mut took, begun, mut text) = (Vec::new(), now(), Vec::new());
        while took.len() < most && begun.elapsed() < budget {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let sent = now();
            self.call(job, number, &mut text)?;
            took.push(sent.elapsed());
        }
        Ok(took)
    }

    /// Keeps `window` calls unanswered, each on its own connection, for about `time`. Returns the number of responses
    /// per second.
    pub(crate) fn at_once(
        &mut self,
        job: &RepeatedCall,
        window: u64,
        time: Duration,
    ) -> io::Result<f64> {
        let mut callers = Vec::new();
        for _ in 0..window {
            let mut caller = Self::connect(&self.host, &self.path)?;
            caller.session.clone_from(&self.session);
            callers.push(caller);
        }
        let next = &self.next;
        let begun = now();
        let counts: Vec<io::Result<u32>> = thread::scope(|threads| {
            let running: Vec<_> = callers
                .iter_mut()
                .map(|caller| {
                    threads.spawn(move || {
                        let (mut done, mut text) = (0, Vec::new());
                        while begun.elapsed() < time {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            caller.call(job, number, &mut text)?;
                            done += 1;
                        }
                        Ok(done)
                    })
                })
                .collect();
            running
                .into_iter()
                .map(|caller| {
                    caller
                        .join()
                        .unwrap_or_else(|_| Err(io::Error::other("a caller broke")))
                })
                .collect()
        });
        let mut done = 0;
        for count in counts {
            done += count?;
        }
        Ok(f64::from(done) / begun.elapsed().as_secs_f64())
    }
}

/// Sends a message and passes every frame of the response to `each`. Returns the session that it names, and its first
/// line.
fn exchange(
    connection: &mut WebConnection,
    head: &str,
    body: &[u8],
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(String, String)> {
    let mut message = Vec::with_capacity(head.len() + body.len());
    message.extend_from_slice(head.as_bytes());
    message.extend_from_slice(body);
    connection.writer.write_all(&message)?;
    let head = HttpHead::read(&mut connection.reader)?;
    let body = HttpBody::of(&head, &mut connection.reader);
    if head.get("content-type").starts_with("text/event-stream") {
        events(body, &mut each)?;
    } else {
        let mut whole = Vec::new();
        let mut body = body;
        body.read_to_end(&mut whole)?;
        if !whole.is_empty() {
            each(&whole)?;
        }
    }
    let good = head.first.contains(" 2");
    if good {
        Ok((head.get("mcp-session-id").to_owned(), head.first))
    } else {
        Err(io::Error::other(format!("it said {}", head.first.trim())))
    }
}

/// Passes the data of every event to `each` until the body ends.
fn events(body: impl Read, each: &mut impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(BUFFER, body);
    let (mut line, mut data) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let text = line.trim_ascii_end();
        if let Some(more) = text.strip_prefix(b"data:") {
            data.extend_from_slice(more);
        } else if text.is_empty() && !data.is_empty() {
            each(&data)?;
            data.clear();
        }
    }
}
