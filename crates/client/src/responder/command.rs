//! A responder that runs a program: a hook in any language.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io::PipeWriter;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::wire::Capability;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::program::{QuestionProgram, answer_of};
use super::{RespondFuture, Responder, ResponderError};
use crate::question::Question;

/// The longest answer that is read, in bytes.
const ANSWER_LIMIT: u64 = 1024 * 1024;

/// The time to read the rest of the answer of a program that has ended. It passes only if another process still has its
/// stdout.
const REST_OF_ANSWER: Duration = Duration::from_millis(200);

/// A program run for each question. It reads the question from stdin as one line of JSON, and writes `{"action",
/// "content"}` to stdout. No output means that it cannot show the question; an exit code other than zero means that it
/// failed. Invalid content is returned to it with every violation, up to twice.
///
/// The answer is taken when the program exits, also if a process that it leaves behind keeps its stdout. On
/// Unix, the processes of its group are killed then, and with it if the question ends first.
///
/// The program may add `"reason"` to a decline, and must add `"allowCredentials": true` if the question has
/// `asksForCredential`.
///
/// ```
/// use mcp_elicit_client::ClientSettings;
/// use mcp_elicit_client::core::wire::Capability;
/// use mcp_elicit_client::responder::Command;
///
/// let dialog = Command::new("my-dialog", ["--on-top"]).showing(Capability::FORM);
/// let settings = ClientSettings::default().responder(dialog);
/// ```
#[derive(Clone)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    /// Its whole environment; `None` for that of this process.
    environment: Option<Vec<(OsString, OsString)>>,
    /// The pipe for its stderr; `None` for that of this process.
    stderr: Option<Arc<PipeWriter>>,
    modes: Capability,
}

impl Command {
    /// Creates a responder from a program that shows forms and URLs.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Command;
    ///
    /// let dialog = Command::new("my-dialog", ["--on-top"]);
    /// ```
    pub fn new(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: None,
            stderr: None,
            modes: Capability::BOTH,
        }
    }

    /// Sets the whole environment of the program, which otherwise has that of this process.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Command;
    ///
    /// let usual = std::env::vars_os().filter(|(name, _)| name != "DATABASE_URL");
    /// let dialog = Command::new("my-dialog", ["--on-top"]).environment(usual);
    /// ```
    #[must_use]
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.environment = Some(variables.into_iter().collect());
        self
    }

    /// Writes the program's stderr into this pipe, and not to that of this process.
    ///
    /// ```
    /// use std::io::{BufRead as _, BufReader};
    /// use mcp_elicit_client::responder::Command;
    ///
    /// let (reader, writer) = std::io::pipe()?;
    /// let dialog = Command::new("my-dialog", ["--on-top"]).stderr(writer);
    /// std::thread::spawn(move || {
    ///     for line in BufReader::new(reader).lines().map_while(Result::ok) {
    ///         eprintln!("my-dialog: {}", line.escape_debug());
    ///     }
    /// });
    /// # let _ = dialog;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn stderr(mut self, pipe: PipeWriter) -> Self {
        self.stderr = Some(Arc::new(pipe));
        self
    }

    /// Sets the modes that the program can show.
    ///
    /// ```
    /// use mcp_elicit_client::core::wire::Capability;
    /// use mcp_elicit_client::responder::{Command, Responder};
    ///
    /// let dialog = Command::new("my-dialog", ["--on-top"]).showing(Capability::FORM);
    /// assert_eq!(dialog.modes(), Capability::FORM);
    /// ```
    #[must_use]
    pub fn showing(mut self, modes: Capability) -> Self {
        self.modes = modes;
        self
    }
}

/// Formats everything but the environment, which may have secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("modes", &self.modes)
            .finish_non_exhaustive()
    }
}

impl QuestionProgram for Command {
    async fn exchange(&self, line: &str) -> Result<String, ResponderError> {
        let failed = |error: std::io::Error| {
            ResponderError::failed(format!("cannot run the program ({})", error.kind()))
        };
        let stderr = match &self.stderr {
            Some(pipe) => Stdio::from(pipe.try_clone().map_err(failed)?),
            None => Stdio::inherit(),
        };
        let mut command = CommandWrap::with_new(&self.program, |command| {
            command
                .args(&self.arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(stderr);
            if let Some(environment) = &self.environment {
                let variables = environment.iter().map(|(name, value)| (name, value));
                command.env_clear().envs(variables);
            }
        });
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        let mut running = RunningProgram(command.spawn().map_err(failed)?);
        let (stdin, stdout) = (running.0.stdin().take(), running.0.stdout().take());
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(ResponderError::failed(
                "the program has no stdin and stdout",
            ));
        };
        let telling = async move {
            // A program may ignore its stdin.
            let _closed_early = stdin.write_all(format!("{line}\n").as_bytes()).await;
        };
        let mut answer = Vec::new();
        let read_into = &mut answer;
        let reading = async move {
            let mut stdout = stdout.take(ANSWER_LIMIT);
            while stdout.read_buf(read_into).await? > 0 {}
            Ok(())
        };
        let (status, read) = {
            // Concurrently, because a program may write before it has read all of a long question.
            let mut talking = pin!(async { tokio::join!(telling, reading).1 });
            // Only the program itself: those that it leaves behind are killed, not waited for.
            let program = running.0.inner_mut();
            tokio::select! {
                read = &mut talking => (program.wait().await, read),
                status = program.wait() => {
                    let rest = tokio::time::timeout(REST_OF_ANSWER, &mut talking).await;
                    (status, rest.unwrap_or(Ok(())))
                }
            }
        };
        read.map_err(failed)?;
        let status = status.map_err(failed)?;
        if status.success() {
            String::from_utf8(answer).map_err(|_| ResponderError::failed("its answer is not UTF-8"))
        } else {
            Err(ResponderError::failed(format!(
                "the program failed ({status})"
            )))
        }
    }
}

/// A running program, killed with all its children when its answer is no longer waited for.
struct RunningProgram(Box<dyn ChildWrapper>);

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _nobody_left = self.0.start_kill();
    }
}

impl Responder for Command {
    fn name(&self) -> Cow<'static, str> {
        "command".into()
    }

    fn modes(&self) -> Capability {
        self.modes
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        Box::pin(answer_of(self, question))
    }
}
