//! A server started as a child process, in its own process group, with its last stderr lines; nothing of it survives.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio_util::sync::CancellationToken;

use super::stdio::LineTransport;
use super::transport_error::{Health, TransportError};

/// The time that a server has to exit after its stdin closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// The number of stderr lines that are kept to explain an exit.
const STDERR_LINES: usize = 20;
/// The longest wait for the rest of a server's stderr after its exit.
const DRAIN_WAIT: Duration = Duration::from_millis(500);
/// The longest kept stderr line, in bytes.
const STDERR_LINE: u64 = 2_000;

/// The last lines that a server wrote to stderr, to explain its exit.
///
/// ```
/// use mcp_elicit_client::connection::Stderr;
///
/// async fn explanation(stderr: &Stderr) -> Vec<String> {
///     stderr.drained().await;
///     let panic = stderr.panic();
///     if panic.is_empty() { stderr.lines() } else { panic }
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stderr {
    lines: Arc<Mutex<VecDeque<String>>>,
    panic: Arc<Mutex<Vec<String>>>,
    ended: CancellationToken,
}

impl Stderr {
    /// Returns the lines so far, oldest first, at most twenty. The two lines of the last panic of a Rust program come
    /// before them if a backtrace has displaced them.
    pub fn lines(&self) -> Vec<String> {
        let last = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let panic = self.panic();
        let is_displaced = panic.first().is_some_and(|first| !last.contains(first));
        let panic = panic.into_iter().filter(|_| is_displaced);
        panic.chain(last.iter().cloned()).collect()
    }

    /// Returns the two lines of the last panic of a Rust program: its place and its message. Empty without one.
    pub fn panic(&self) -> Vec<String> {
        self.panic
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits until the stderr of an exited server has been read to its end; at most half a second, since a child of the
    /// server may keep the pipe open.
    pub async fn drained(&self) {
        let _still_open = tokio::time::timeout(DRAIN_WAIT, self.ended.cancelled()).await;
    }

    fn push(&self, line: String) {
        let mut panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        if line.starts_with("thread ") && line.contains(" panicked at ") {
            *panic = vec![line.clone()];
        } else if panic.len() == 1 {
            panic.push(line.clone());
        }
        drop(panic);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// The transport over a child's stdin and stdout.
pub(crate) struct Child {
    lines: LineTransport<ChildStdout, ChildStdin>,
    process: Box<dyn ChildWrapper>,
    health: Health,
    ended: bool,
}

impl Child {
    /// Starts `program`. Must be called within a tokio runtime.
    pub(crate) fn start(
        program: &OsString,
        arguments: &[OsString],
        environment: &[(OsString, OsString)],
        limit: usize,
        health: Health,
    ) -> io::Result<(Self, Stderr)> {
        // On Windows, `npx` is the script `npx.cmd`, which is started only by its whole name.
        #[cfg(windows)]
        let program = &which::which(program).map_or_else(|_| program.clone(), OsString::from);
        let mut command = CommandWrap::with_new(program, |command| {
            command
                .args(arguments)
                .envs(environment.iter().map(|(name, value)| (name, value)))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        });
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        let mut process = command.spawn()?;
        let taken = |what| io::Error::other(format!("the child has no {what}"));
        let stdin = process.stdin().take().ok_or_else(|| taken("stdin"))?;
        let stdout = process.stdout().take().ok_or_else(|| taken("stdout"))?;
        let stderr = process.stderr().take().ok_or_else(|| taken("stderr"))?;
        let kept = Stderr::default();
        tokio::spawn(keep_stderr(stderr, kept.clone()));
        let lines = LineTransport::new(stdout, stdin, limit, health.clone());
        Ok((
            Self {
                lines,
                process,
                health,
                ended: false,
            },
            kept,
        ))
    }

    /// Closes stdin, waits, terminates the process, waits, and kills the whole group: the shutdown of the
    /// specification's stdio transport.
    async fn end(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        // A server that has not read its input does not see the end of it either.
        let sees_end = self.lines.close_soon().await;
        if !(sees_end && self.has_exited_within(GRACE).await) {
            #[cfg(unix)]
            let asked = self.process.signal(SIGTERM).is_ok();
            #[cfg(not(unix))]
            let asked = false;
            if asked {
                self.has_exited_within(GRACE).await;
            }
        }
        self.ended = true;
        // Grandchildren survive a server that does not end them; the group still includes them.
        let _nobody_left = self.process.start_kill();
        let _reaped = tokio::time::timeout(GRACE, self.process.wait()).await;
        Ok(())
    }

    /// Returns the reason for the end: a server that closes its stdout has usually exited, and its status says more.
    async fn how_it_ended(&mut self) -> TransportError {
        match tokio::time::timeout(GRACE, self.process.inner_mut().wait()).await {
            Ok(Ok(status)) => TransportError::Ended {
                status: status.to_string(),
            },
            _ => TransportError::Closed,
        }
    }

    /// Watches the process itself and not its group: a server may leave helpers that never exit.
    async fn has_exited_within(&mut self, grace: Duration) -> bool {
        tokio::time::timeout(grace, self.process.inner_mut().wait())
            .await
            .is_ok()
    }
}

#[cfg(unix)]
const SIGTERM: i32 = 15;

impl Transport<RoleClient> for Child {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let sent = self.lines.send(message);
        async move {
            match sent.await {
                // The process has exited or is exiting; its status, which the reading side sees, says more than a
                // broken pipe.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                sent => sent,
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let trouble = match self.lines.next().await {
            Ok(message) => return Some(message),
            Err(TransportError::Closed) => self.how_it_ended().await,
            Err(trouble) => trouble,
        };
        self.health.broke(trouble);
        None
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.end().await
    }
}

/// Kills the process of a connection that is dropped without being closed.
impl Drop for Child {
    fn drop(&mut self) {
        if !self.ended {
            let _nobody_left = self.process.start_kill();
        }
    }
}

async fn keep_stderr(stderr: ChildStderr, kept: Stderr) {
    let _ended = kept.ended.clone().drop_guard();
    let mut read = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut read)
            .take(STDERR_LINE)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                tracing::debug!(target: "mcp_elicit_client::stderr", "{text}");
                kept.push(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Stderr;

    #[test]
    fn a_backtrace_does_not_displace_the_message_of_a_panic() {
        let stderr = Stderr::default();
        for line in [
            "starting",
            "",
            "thread 'main' (7) panicked at src/main.rs:3:5:",
            "index out of bounds",
        ] {
            stderr.push(line.to_owned());
        }
        assert_eq!(stderr.lines().len(), 4);
        for frame in 0..30 {
            stderr.push(format!("  {frame}: a_frame"));
        }
        let lines = stderr.lines();
        assert_eq!(
            lines[..3],
            [
                "thread 'main' (7) panicked at src/main.rs:3:5:",
                "index out of bounds",
                "  10: a_frame"
            ]
        );
        stderr.push("thread pool is idle".to_owned());
        stderr.push("thread 'a' panicked at b.rs:1:1:".to_owned());
        assert_eq!(stderr.panic(), ["thread 'a' panicked at b.rs:1:1:"]);
    }
}
