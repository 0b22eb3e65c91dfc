//! Failures of commands, in words for people, with exit codes. The libraries have typed errors; only here do they
//! become a sentence, its causes and the next step.

use std::error::Error;
use std::process::ExitCode;

use mcp_elicit_core::fault::causes;

/// The exit status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done, with a positive result.
    Done = 0,
    /// The tool or the server reported an error, or the result is negative.
    Refused = 1,
    /// The command line or an input file cannot be used.
    Usage = 2,
    /// The connection failed, or the peer broke the protocol.
    Connection = 3,
    /// A question could not be answered.
    Unanswered = 4,
    /// The person declined or cancelled a question, and the call ended without its work. This is not an error.
    Declined = 5,
    /// People are still being asked: the same call, made again, continues.
    HandedBack = 6,
    /// The person ended the process before its work was done; the code that a shell shows for Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The reason why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
    lines: Vec<String>,
    silent: bool,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            lines: Vec::new(),
            silent: false,
        }
    }

    /// Creates a failure for an error that the tool or the server reported.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// Creates a failure for a command line or an input file that cannot be used.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates a failure for a connection that failed, or a peer that broke the protocol.
    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self::new(Exit::Connection, message)
    }

    /// Creates a failure for a question that could not be answered.
    pub(crate) fn unanswered(message: impl Into<String>) -> Self {
        Self::new(Exit::Unanswered, message)
    }

    /// Creates a failure for a call that ended because the person declined or cancelled.
    pub(crate) fn declined(message: impl Into<String>) -> Self {
        Self::new(Exit::Declined, message)
    }

    /// Creates a failure for a call that was handed back while people are asked.
    pub(crate) fn handed_back(message: impl Into<String>) -> Self {
        Self::new(Exit::HandedBack, message)
    }

    /// Creates a failure for a process that the person ended.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self::new(Exit::Interrupted, message)
    }

    /// Creates a silent failure for a closed output, which is not an error here.
    pub(crate) fn reader_gone() -> Self {
        Self {
            silent: true,
            ..Self::new(Exit::Done, "the reader of the output has gone")
        }
    }

    /// Replaces the first sentence.
    #[must_use]
    pub(crate) fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Adds the next step: a whole sentence.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the output of another program, line by line, below a heading.
    #[must_use]
    pub(crate) fn telling(mut self, heading: &str, lines: Vec<String>) -> Self {
        self.lines.push(heading.to_owned());
        self.lines
            .extend(lines.into_iter().map(|line| format!("  {line}")));
        self
    }

    /// Adds the underlying error with its causes. It must not contain anything that could be a person's value.
    #[must_use]
    pub(crate) fn because(mut self, error: impl Error) -> Self {
        self.causes.extend(causes(&error));
        self
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns the sentence that says what happened.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the causes, the nearest first.
    pub(crate) fn causes(&self) -> &[String] {
        &self.causes
    }

    /// Returns the added output of another program.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns the next step.
    pub(crate) fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns `true` if nothing is to be printed.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }
}

/// Converts a failed write to stdout or stderr.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::reader_gone();
        }
        Self::usage("cannot write the output").because(error)
    }
}
