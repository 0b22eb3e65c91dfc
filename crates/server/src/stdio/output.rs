//! The output: messages are collected, and written by a task in as few writes as possible.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::service::TxJsonRpcMessage;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

/// The number of collected bytes from which a sender waits until some of them are written.
const FULL: usize = 1024 * 1024;

/// The memory in bytes that a buffer keeps for the next messages.
const RETAINED: usize = 256 * 1024;

/// The sender's side. Its drop ends the writing task once everything is written.
#[derive(Debug)]
pub(super) struct Output(Arc<SharedOutput>);

#[derive(Debug, Default)]
struct SharedOutput {
    state: Mutex<OutputState>,
    /// Wakes the task: there is something to write, or nothing more will come.
    changed: Notify,
    /// Wakes the senders: something was written, or nothing more will be.
    written: Notify,
}

#[derive(Debug, Default)]
struct OutputState {
    /// The messages that are written next.
    collected: Vec<u8>,
    /// True once no more messages come.
    closed: bool,
    /// The end of the writing task.
    ended: Option<OutputEnd>,
}

#[derive(Debug, Clone)]
enum OutputEnd {
    Closed,
    Failed(io::ErrorKind, String),
}

impl OutputEnd {
    fn error(&self) -> io::Error {
        match self {
            Self::Closed => io::Error::new(io::ErrorKind::NotConnected, "the transport is closed"),
            Self::Failed(kind, text) => io::Error::new(*kind, text.clone()),
        }
    }
}

impl Output {
    pub(super) fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let shared = Arc::new(SharedOutput::default());
        tokio::spawn(write_all(shared.clone(), writer));
        Self(shared)
    }

    /// Collects a message. The future ends when the collected messages take less than a megabyte.
    ///
    /// # Errors
    ///
    /// The error of an earlier write, or of a transport that is closed.
    pub(super) fn send(
        &self,
        message: &TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let collected = self.0.collect(message);
        let shared = self.0.clone();
        async move {
            if collected? {
                shared.room().await?;
            }
            Ok(())
        }
    }

    /// Waits until everything is written, and ends the writing task.
    ///
    /// # Errors
    ///
    /// The error of a write.
    pub(super) async fn close(&self) -> io::Result<()> {
        self.0.lock().closed = true;
        self.0.changed.notify_one();
        match self.0.end().await {
            OutputEnd::Closed => Ok(()),
            failed @ OutputEnd::Failed(..) => Err(failed.error()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_one();
    }
}

impl SharedOutput {
    fn lock(&self) -> MutexGuard<'_, OutputState> {
        // Every change of the state is one assignment or one append.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a message; returns whether its sender has to wait.
    fn collect(&self, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<bool> {
        let mut state = self.lock();
        if let Some(end) = &state.ended {
            return Err(end.error());
        }
        if state.closed {
            return Err(OutputEnd::Closed.error());
        }
        let before = state.collected.len();
        if let Err(error) = serde_json::to_writer(&mut state.collected, message) {
            // Half a message must not reach the client.
            state.collected.truncate(before);
            return Err(error.into());
        }
        state.collected.push(b'\n');
        let full = state.collected.len() >= FULL;
        drop(state);
        if before == 0 {
            self.changed.notify_one();
        }
        Ok(full)
    }

    /// Waits until a message can be collected without a wait.
    async fn room(&self) -> io::Result<()> {
        loop {
            let written = self.written.notified();
            tokio::pin!(written);
            written.as_mut().enable();
            {
                let state = self.lock();
                if let Some(end) = &state.ended {
                    return Err(end.error());
                }
                if state.collected.len() < FULL {
                    return Ok(());
                }
            }
            written.await;
        }
    }

    async fn end(&self) -> OutputEnd {
        loop {
            let written = self.written.notified();
            tokio::pin!(written);
            written.as_mut().enable();
            if let Some(end) = &self.lock().ended {
                return end.clone();
            }
            written.await;
        }
    }
}

/// Writes what is collected until the output is closed or a write fails.
async fn write_all(shared: Arc<SharedOutput>, mut writer: impl AsyncWrite + Unpin) {
    let mut batch = Vec::new();
    let end = loop {
        let closed = {
            let mut state = shared.lock();
            std::mem::swap(&mut state.collected, &mut batch);
            state.closed
        };
        if !batch.is_empty() {
            shared.written.notify_waiters();
            if let Err(error) = write(&mut writer, &batch).await {
                break OutputEnd::Failed(error.kind(), error.to_string());
            }
            batch.clear();
            batch.shrink_to(RETAINED);
        } else if closed {
            break match writer.shutdown().await {
                Ok(()) => OutputEnd::Closed,
                Err(error) => OutputEnd::Failed(error.kind(), error.to_string()),
            };
        } else {
            shared.changed.notified().await;
        }
    };
    let mut state = shared.lock();
    state.collected = Vec::new();
    state.ended = Some(end);
    drop(state);
    shared.written.notify_waiters();
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), batch: &[u8]) -> io::Result<()> {
    writer.write_all(batch).await?;
    writer.flush().await
}
