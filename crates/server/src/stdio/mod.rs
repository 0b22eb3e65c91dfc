//! A stdio transport that reads and writes in batches.
//!
//! The transport of rmcp reads each message through a thread pool if it is given [`rmcp::transport::stdio`], tries every
//! kind of message until one fits, and writes each message with a call of its own. Here a pipe is read without a thread,
//! the method selects the kind of message, and what is sent in one turn of the runtime is written at once.
//!
//! - `input` divides the input into lines, within a bound
//! - `message` reads a line as a message
//! - `output` collects messages and writes them

mod input;
mod message;
mod output;

use std::borrow::Cow;
use std::io;

use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::{StdioReader, Transport, stdio_pipes};
use tokio::io::{AsyncRead, AsyncWrite};

use input::{InputBytes, InputLine};
use message::UnreadableLine;
use output::Output;

/// Returns the transport over standard input and output.
///
/// ```no_run
/// use mcp_elicit_server::{ElicitingExt, ServerSettings, stdio};
/// # use rmcp::{ServerHandler, ServiceExt};
/// # struct Deploy;
/// # impl ServerHandler for Deploy {}
///
/// // One connection needs one thread.
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let server = Deploy.eliciting(ServerSettings::default());
///     server.serve(stdio()).await?.waiting().await?;
///     Ok(())
/// }
/// ```
///
/// It differs from rmcp's transport as follows:
///
/// - A request that cannot be read is answered under its own id, with -32700 or -32600, so that the client need not wait
///   for its time limit.
/// - A last message without a line break is read.
/// - Messages of up to 16 MiB are read; a longer one is answered with -32600.
///
/// # Panics
///
/// Panics outside of a tokio runtime with I/O enabled.
pub fn stdio() -> Stdio {
    let (reader, writer) = stdio_pipes();
    Stdio(MessageLines::new(reader, writer))
}

/// The transport of a server over standard input and output, created by [`stdio`].
///
/// ```
/// use mcp_elicit_server::Stdio;
/// use rmcp::RoleServer;
/// use rmcp::transport::Transport;
///
/// assert_eq!(<Stdio as Transport<RoleServer>>::name(), "stdio");
/// ```
#[derive(Debug)]
pub struct Stdio(MessageLines<StdioReader>);

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "stdio".into()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.0.output.send(&item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.0.receive().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.output.close().await
    }
}

/// One JSON-RPC message per line, in both directions.
#[derive(Debug)]
struct MessageLines<R> {
    input: InputBytes<R>,
    output: Output,
}

impl<R: AsyncRead + Send + Unpin> MessageLines<R> {
    fn new(reader: R, writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self {
            input: InputBytes::new(reader),
            output: Output::new(writer),
        }
    }

    /// Returns the next message; `None` at the end of the input, and after an error of reading.
    ///
    /// May be dropped before it returns: the input keeps what it has read.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let unreadable = match self.input.line().await {
                Ok(InputLine::Whole(line)) => match message::read(line) {
                    Ok(message) => return message.into(),
                    Err(unreadable) => unreadable,
                },
                Ok(InputLine::TooLong) => UnreadableLine::too_long(),
                Ok(InputLine::End) => return None,
                Err(error) => {
                    tracing::error!(%error, "the input cannot be read");
                    return None;
                }
            };
            match unreadable {
                UnreadableLine::Refused(id, error) => self.refuse(id, *error).await,
                UnreadableLine::Ignored(why) => tracing::debug!(why, "a message is ignored"),
            }
        }
    }

    /// Answers a message that is none. The next message waits until this has room in the output.
    async fn refuse(&self, id: Option<RequestId>, error: ErrorData) {
        tracing::debug!(message = %error.message, "a message is refused");
        let error = TxJsonRpcMessage::<RoleServer>::error(error, id);
        // What cannot be written is reported to those who wait for a result.
        let _reported_by_the_next_send = self.output.send(&error).await;
    }
}

#[cfg(test)]
mod tests;
