//! Every way in which a command fails, in words for people, with its exit code. Libraries below have typed errors;
//! here, and nowhere else, they become a sentence, its causes and what to do next.

use std::error::Error;
use std::process::ExitCode;

use mcp_elicit_core::fault::causes;

/// The exit status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done, and the answer is good.
    Done = 0,
    /// The tool or the server reported an error, or the answer to what was asked here is no.
    Refused = 1,
    /// The command line or an input file cannot be used.
    Usage = 2,
    /// No connection, or the other side broke the protocol.
    Connection = 3,
    /// A question could not be answered.
    Unanswered = 4,
    /// The person declined or cancelled a question, and the call ended without its work. A person's no is not an error.
    Declined = 5,
    /// People are still asked: the same call, made again, goes on.
    HandedBack = 6,
    /// The person ended the process before its work was done; what a shell shows for Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do its work.
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

    /// The tool or the server reported an error.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// The command line or an input file cannot be used.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// No connection, or the other side broke the protocol.
    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self::new(Exit::Connection, message)
    }

    /// A question could not be answered.
    pub(crate) fn unanswered(message: impl Into<String>) -> Self {
        Self::new(Exit::Unanswered, message)
    }

    /// The person declined or cancelled, and the call ended there.
    pub(crate) fn declined(message: impl Into<String>) -> Self {
        Self::new(Exit::Declined, message)
    }

    /// The call was handed back while people are asked.
    pub(crate) fn handed_back(message: impl Into<String>) -> Self {
        Self::new(Exit::HandedBack, message)
    }

    /// The person ended the process.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self::new(Exit::Interrupted, message)
    }

    /// The reader of our output has gone, which is not an error here.
    pub(crate) fn reader_gone() -> Self {
        Self {
            silent: true,
            ..Self::new(Exit::Done, "the reader of the output has gone")
        }
    }

    /// The same with another first sentence.
    #[must_use]
    pub(crate) fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Adds what to do next: a whole sentence.
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

    /// Adds the error below, with its own causes. Nothing that could hold a person's value belongs here.
    #[must_use]
    pub(crate) fn because(mut self, error: impl Error) -> Self {
        self.causes.extend(causes(&error));
        self
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns what happened, in one sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Why, the nearest cause first.
    pub(crate) fn causes(&self) -> &[String] {
        &self.causes
    }

    /// Returns the output of another program that was added.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns what to do next.
    pub(crate) fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns `true` if to end without a word.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }
}

/// A write to stdout or stderr that failed.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::reader_gone();
        }
        Self::usage("cannot write the output").because(error)
    }
}
