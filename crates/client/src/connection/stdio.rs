//! MCP's stdio framing, one JSON message per line, with a limit on what is read and the exact parameters of questions
//! kept.

use std::io;
use std::sync::Arc;

use futures::StreamExt as _;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};

use super::transport_error::{Health, TransportError};
use crate::raw_params;

/// A client's transport over a pair of byte streams.
pub(crate) struct Lines<R, W> {
    read: FramedRead<R, AnyDelimiterCodec>,
    write: Arc<Mutex<Option<W>>>,
    health: Health,
    limit: usize,
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
        }
    }

    /// The next message, or why there is none any more. Safe to drop between polls: a partial line stays in the frame
    /// reader.
    pub(crate) async fn next(&mut self) -> Result<ServerJsonRpcMessage, TransportError>
    where
        R: Unpin,
    {
        loop {
            let line = match self.read.next().await {
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
                Some(message) => return Ok(message),
                None => self.health.heard_noise(&line),
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
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let pipe = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            pipe.write_all(&line).await?;
            pipe.flush().await
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
        self.write.lock().await.take();
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
    match serde_json::from_slice(&raw_params::keep(line)) {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.is_data() => Err(TransportError::NotAMessage),
        Err(error) => Err(TransportError::BrokenJson {
            why: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
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
