//! MCP's stdio framing, one JSON message per line, with a limit on what is read and the exact parameters of questions
//! kept.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::sync::CancellationToken;

use super::transport_error::{Health, TransportError};
use crate::raw_params;

/// Bytes that may wait for a server to read, with the memory that each message takes beside its own.
const UNREAD: usize = 16 * 1024 * 1024;
/// The memory that a message takes beside its own while it waits, in bytes, about.
const EACH: usize = 1024;
/// The time that the last messages may take to be read once the connection is to end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A client's transport over a pair of byte streams.
pub(crate) struct Lines<R, W> {
    read: FramedRead<R, AnyDelimiterCodec>,
    write: Arc<Mutex<Option<W>>>,
    health: Health,
    limit: usize,
    unread: Arc<AtomicUsize>,
    /// Cancelled once too much waits for the server to read.
    overfull: CancellationToken,
    /// `true` after a request: whoever responds to it comes first, so that responses are counted as fast as requests come.
    yields: bool,
    /// Cancelled once nothing is to be written any more.
    closing: CancellationToken,
}

/// A message that waits for the server to read, counted until this is dropped.
struct Unread {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Unread {
    /// Counts a message; `None` where too much waits before it. One alone may be as long as it is.
    fn count(bytes: usize, of: &Arc<AtomicUsize>) -> Option<Self> {
        let bytes = bytes + EACH;
        let before = of.fetch_add(bytes, Ordering::AcqRel);
        let of = Arc::clone(of);
        let counted = Self { bytes, of };
        (before == 0 || before + bytes <= UNREAD).then_some(counted)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl<R: AsyncRead, W> Lines<R, W> {
    /// Frames of at most `limit` bytes.
    pub(crate) fn new(read: R, write: W, limit: usize, health: Health) -> Self {
        let codec = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), b"\n".to_vec(), limit);
        Self {
            read: FramedRead::new(read, codec),
            write: Arc::new(Mutex::new(Some(write))),
            health,
            limit,
            unread: Arc::default(),
            overfull: CancellationToken::new(),
            yields: false,
            closing: CancellationToken::new(),
        }
    }

    /// Closes the writing side; what is being written may take half a second more. Returns `false` where the server has not read it by
    /// then, so that it may not see the end of its input.
    pub(crate) async fn close_soon(&mut self) -> bool {
        if let Ok(mut write) = tokio::time::timeout(LAST_WORDS, self.write.lock()).await {
            write.take();
            return true;
        }
        self.closing.cancel();
        self.write.lock().await.take();
        false
    }

    /// The next message, or why there is none any more. Safe to drop between polls: a partial line stays in the frame
    /// reader.
    pub(crate) async fn next(&mut self) -> Result<ServerJsonRpcMessage, TransportError>
    where
        R: Unpin,
    {
        if self.yields {
            // Before a message is taken, which would be lost where this is dropped.
            tokio::task::yield_now().await;
            self.yields = false;
        }
        loop {
            let line = tokio::select! {
                () = self.overfull.cancelled() => return Err(TransportError::Unread { limit: UNREAD }),
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
            match read_line(&line)? {
                Some(message) => {
                    self.yields = matches!(message, ServerJsonRpcMessage::Request(_));
                    return Ok(message);
                }
                None => self.health.heard_stray_line(&line),
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
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
        async move {
            if overfull.is_cancelled() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let Some(_unread) = Unread::count(line.len(), &unread) else {
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

    /// `None` ends the connection; why is in its [`Health`] by then.
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

/// Servers print by mistake what belongs to stderr; a line that does not even begin like JSON is passed over, as the
/// official SDKs do. One that begins like a message and is none means that an answer is lost, so it ends the
/// connection rather than letting a call wait for ever.
fn read_line(line: &[u8]) -> Result<Option<ServerJsonRpcMessage>, TransportError> {
    let line = line
        .strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(line)
        .trim_ascii();
    if !line.starts_with(b"{") && !line.starts_with(b"[") {
        return Ok(None);
    }
    match raw_params::read(line) {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.is_data() => Err(TransportError::NotAMessage),
        Err(error) => Err(TransportError::BrokenJson {
            why: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn trouble_of(bytes: &[u8], limit: usize) -> Option<TransportError> {
        let health = Health::default();
        let mut lines = Lines::new(bytes, tokio::io::sink(), limit, health.clone());
        while lines.receive().await.is_some() {}
        assert!(health.ended().is_cancelled());
        health.transport_error()
    }

    #[tokio::test]
    async fn what_breaks_a_connection_is_named() {
        assert_eq!(
            trouble_of(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\n", 1000).await,
            {
                Some(TransportError::BrokenJson {
                    why: "EOF while parsing a value at line 1 column 33".to_owned(),
                })
            }
        );
        assert_eq!(
            trouble_of(b"{\"hello\":1}\n", 1000).await,
            Some(TransportError::NotAMessage)
        );
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
        let mut lines = Lines::new(read, write, 1_000, health.clone());
        let waiting = tokio::spawn(lines.send(reply()));
        tokio::task::yield_now().await;
        assert!(!lines.close_soon().await);
        assert!(waiting.await.unwrap().is_err());

        let (near, _far) = tokio::io::duplex(1_000);
        let (read, write) = tokio::io::split(near);
        let mut lines = Lines::new(read, write, 1_000, health.clone());
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
        let text = b"Server ready\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n";
        let mut lines = Lines::new(&text[..], tokio::io::sink(), 1000, Health::default());
        assert!(matches!(
            lines.receive().await,
            Some(ServerJsonRpcMessage::Request(_))
        ));
    }
}
