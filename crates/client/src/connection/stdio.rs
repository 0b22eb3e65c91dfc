//! MCP's stdio framing, one JSON message per line, with a limit on reads, and with the exact parameters of questions
//! preserved.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;
use tokio::time::Sleep;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::sync::CancellationToken;

use super::incoming::{Heard, PendingMessages};
use super::transport_error::{Health, TransportError};

/// The most bytes that may wait for a server to read them, including each message's overhead.
pub(super) const UNREAD: usize = 16 * 1024 * 1024;
/// The approximate memory overhead of a waiting message, in bytes.
pub(super) const EACH: usize = 1024;
/// The time in which the last messages must be read once the connection closes.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The time that a response has to follow a line that seems to be its broken beginning.
const SECOND_TRY: Duration = Duration::from_secs(3);

/// A line that seems to be a response and is not JSON. If the request gets no other response soon, it will get none.
struct BrokenResponse {
    answers: RequestId,
    why: String,
    given_up: Pin<Box<Sleep>>,
}

/// A client's transport over a pair of byte streams.
pub(crate) struct LineTransport<R, W> {
    read: FramedRead<R, AnyDelimiterCodec>,
    write: Arc<Mutex<Option<W>>>,
    health: Health,
    messages: PendingMessages,
    /// The rest of a batch.
    batch: VecDeque<ServerJsonRpcMessage>,
    broken: Option<BrokenResponse>,
    limit: usize,
    unread: Arc<AtomicUsize>,
    /// Cancelled once too many bytes wait for the server.
    overfull: CancellationToken,
    /// `true` after a request: its response is sent first, so that responses are counted as fast as requests come.
    yields: bool,
    /// Cancelled once nothing more is to be written.
    closing: CancellationToken,
}

/// A message that waits for the server to read it, counted until it is dropped.
struct UnreadMessage {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl UnreadMessage {
    /// Counts a message; `None` if too much waits before it. A single message may have any length.
    fn count(bytes: usize, of: &Arc<AtomicUsize>) -> Option<Self> {
        let bytes = bytes + EACH;
        let before = of.fetch_add(bytes, Ordering::AcqRel);
        let of = Arc::clone(of);
        let counted = Self { bytes, of };
        (before == 0 || before + bytes <= UNREAD).then_some(counted)
    }
}

impl Drop for UnreadMessage {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl<R: AsyncRead, W> LineTransport<R, W> {
    /// Creates a transport for frames of at most `limit` bytes.
    pub(crate) fn new(read: R, write: W, limit: usize, health: Health) -> Self {
        let codec = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), b"\n".to_vec(), limit);
        Self {
            read: FramedRead::new(read, codec),
            write: Arc::new(Mutex::new(Some(write))),
            messages: PendingMessages::new(health.clone()),
            batch: VecDeque::new(),
            broken: None,
            health,
            limit,
            unread: Arc::default(),
            overfull: CancellationToken::new(),
            yields: false,
            closing: CancellationToken::new(),
        }
    }

    /// Closes the writing side; a write in progress may take half a second more. Returns `false` if the server has not
    /// read it by then, so that it may not see the end of its input.
    pub(crate) async fn close_soon(&mut self) -> bool {
        if let Ok(mut write) = tokio::time::timeout(LAST_WORDS, self.write.lock()).await {
            write.take();
            return true;
        }
        self.closing.cancel();
        self.write.lock().await.take();
        false
    }

    /// Returns the next message, or the error that ends the stream. Safe to drop between polls: a partial line stays in
    /// the frame reader.
    pub(crate) async fn next(&mut self) -> Result<ServerJsonRpcMessage, TransportError>
    where
        R: Unpin,
    {
        if self.yields {
            // Before a message is taken, because it would be lost if this future were dropped.
            tokio::task::yield_now().await;
            self.yields = false;
        }
        loop {
            if let Some(message) = self.batch.pop_front() {
                return Ok(self.passed_on(message));
            }
            let line = tokio::select! {
                () = self.overfull.cancelled() => return Err(TransportError::Unread { limit: UNREAD }),
                why = no_second_try(&mut self.broken) => {
                    self.broken = None;
                    return Err(TransportError::BrokenJson { why });
                }
                line = self.read.next() => line,
            };
            let line = match line {
                None => return Err(TransportError::Closed),
                Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded)) => {
                    return Err(TransportError::TooLarge { limit: self.limit });
                }
                Some(Err(AnyDelimiterCodecError::Io(error))) => {
                    return Err(TransportError::Failed(error.kind().to_string()));
                }
                Some(Ok(line)) => line,
            };
            match self.messages.read(&line) {
                Heard::Message(message, _) => return Ok(self.passed_on(*message)),
                Heard::Batch(messages) => self.batch.extend(messages),
                Heard::Stray => self.health.heard_stray_line(&line),
                Heard::Broken { why, answers } => {
                    self.health.heard_stray_line(&line);
                    if let Some(answers) = answers.filter(|id| self.messages.awaits(id)) {
                        self.broken = Some(BrokenResponse {
                            answers,
                            why,
                            given_up: Box::pin(tokio::time::sleep(SECOND_TRY)),
                        });
                    }
                }
            }
        }
    }

    fn passed_on(&mut self, message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
        self.yields = matches!(message, ServerJsonRpcMessage::Request(_));
        if self
            .broken
            .as_ref()
            .is_some_and(|broken| !self.messages.awaits(&broken.answers))
        {
            self.broken = None;
        }
        message
    }
}

/// Completes when a broken response was not followed by a whole one.
async fn no_second_try(broken: &mut Option<BrokenResponse>) -> String {
    match broken {
        Some(broken) => {
            broken.given_up.as_mut().await;
            broken.why.clone()
        }
        None => std::future::pending().await,
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let write = Arc::clone(&self.write);
        let (unread, overfull) = (Arc::clone(&self.unread), self.overfull.clone());
        let (closing, ended) = (self.closing.clone(), self.health.ended().clone());
        self.messages.sends(&message);
        let line = self.messages.written(&message);
        async move {
            if overfull.is_cancelled() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let mut line = line?;
            line.push(b'\n');
            let Some(_unread) = UnreadMessage::count(line.len(), &unread) else {
                overfull.cancel();
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            let written = async {
                let mut write = write.lock().await;
                let pipe = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
                pipe.write_all(&line).await?;
                pipe.flush().await
            };
            let given_up = async {
                tokio::select! {
                    () = closing.cancelled() => {}
                    () = overfull.cancelled() => {}
                    () = async {
                        ended.cancelled().await;
                        tokio::time::sleep(LAST_WORDS).await;
                    } => {}
                }
            };
            tokio::select! {
                biased;
                written = written => written,
                () = given_up => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    /// Returns the next message. `None` ends the connection; its [`Health`] holds the reason by then.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(error) => {
                self.health.broke(error);
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.close_soon().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn trouble_of(bytes: &[u8], limit: usize) -> Option<TransportError> {
        let health = Health::default();
        let mut lines = LineTransport::new(bytes, tokio::io::sink(), limit, health.clone());
        while lines.receive().await.is_some() {}
        assert!(health.ended().is_cancelled());
        health.transport_error()
    }

    #[tokio::test]
    async fn what_breaks_a_connection_is_named() {
        assert_eq!(
            trouble_of(&[b'x'; 50], 20).await,
            Some(TransportError::TooLarge { limit: 20 })
        );
        assert_eq!(trouble_of(b"", 20).await, Some(TransportError::Closed));
    }

    fn reply() -> ClientJsonRpcMessage {
        let reply = json!({"jsonrpc": "2.0", "id": "i".repeat(1_000_000), "result": {}});
        serde_json::from_value(reply).unwrap()
    }

    #[tokio::test]
    async fn a_server_that_reads_nothing_neither_fills_the_memory_nor_holds_up_the_end() {
        let (near, _far) = tokio::io::duplex(1_000);
        let (read, write) = tokio::io::split(near);
        let health = Health::default();
        let mut lines = LineTransport::new(read, write, 1_000, health.clone());
        let waiting = tokio::spawn(lines.send(reply()));
        tokio::task::yield_now().await;
        assert!(!lines.close_soon().await);
        assert!(waiting.await.unwrap().is_err());

        let (near, _far) = tokio::io::duplex(1_000);
        let (read, write) = tokio::io::split(near);
        let mut lines = LineTransport::new(read, write, 1_000, health.clone());
        let replies: Vec<_> = (0..20).map(|_| tokio::spawn(lines.send(reply()))).collect();
        assert!(lines.receive().await.is_none());
        let unread = TransportError::Unread { limit: UNREAD };
        assert_eq!(health.transport_error(), Some(unread));
        for reply in replies {
            assert!(reply.await.unwrap().is_err());
        }
    }

    #[tokio::test]
    async fn noise_is_passed_over() {
        let text = b"Server ready\n\r\n{\"level\":30}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"resu\n[1,2]\nnull\n\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n";
        let mut lines = LineTransport::new(&text[..], tokio::io::sink(), 1000, Health::default());
        assert!(matches!(
            lines.receive().await,
            Some(ServerJsonRpcMessage::Request(_))
        ));
    }
}
