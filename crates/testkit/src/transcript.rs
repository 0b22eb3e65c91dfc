//! Wire conversations as readable text: one situation per file, replayed by every suite.
//!
//! ```text
//! # A form is pushed and accepted.
//! # Anything after a hash at the start of a line is for people; the first such line is the title.
//! revision: 2025-11-25
//!
//! C->S {"jsonrpc": "2.0", "id": "$call", "method": "tools/call", "params": {"name": "greet"}}
//! S->C {"jsonrpc": "2.0", "id": "$ask", "method": "elicitation/create",
//!       "params": {"mode": "form", "message": "Who?", "requestedSchema": {"...": "..."}}}
//! person: accept {"name": "Ada"}
//! C->S {"jsonrpc": "2.0", "id": "$ask", "result": {"action": "accept", "content": {"name": "Ada"}}}
//! outcome: answered
//! S->C {"jsonrpc": "2.0", "id": "$call", "result": {"content": "$_"}}
//! ```
//!
//! - `C->S` and `S->C` are messages; `S->C?` is an optional message. Indented lines continue a message.
//! - `person:` is the person's next action: `accept JSON`, `accept` (a url), `decline`, `cancel`.
//! - `time: 300` lets this many seconds pass without an action.
//! - `outcome:` is the word under which the last question is recorded.
//! - A string `"$name"` stands for a value that is not known in advance: its first occurrence defines it. `"$_"`
//!   matches any value. `"$$"` at the start of a string is a plain `$`. A member `"...": "..."` in an object allows
//!   more members than are written; `_meta` is always allowed.
//!
//! [`Transcript`] reads the file, [`replay::Replay`] plays one side of it against a real peer, and
//! [`Transcript::bound`] returns the whole conversation with every placeholder filled in.

mod pattern;
mod read;
pub mod replay;

use std::path::{Path, PathBuf};

use serde_json::Value;

pub use pattern::{Bindings, Mismatch};
pub use read::TranscriptError;

/// A whole conversation.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The first comment.
    pub title: String,
    /// The revision that both sides speak, such as `2025-11-25`.
    pub revision: String,
    /// The events, in order.
    pub lines: Vec<TranscriptLine>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub struct TranscriptLine {
    /// The line number, from 1.
    pub number: usize,
    /// The event.
    pub event: TranscriptEvent,
}

/// The kinds of events.
#[derive(Clone, Debug)]
pub enum TranscriptEvent {
    /// A message.
    Says {
        /// The side that sends it.
        side: Side,
        /// `true` if it may be absent.
        optional: bool,
        /// The message, with placeholders.
        pattern: Value,
    },
    /// The person's next action.
    Person {
        /// `accept`, `decline` or `cancel`.
        action: String,
        /// The content of an accepted form.
        content: Option<Value>,
    },
    /// Seconds without an action.
    Time {
        /// The number.
        seconds: u64,
    },
    /// The word under which the last question is recorded now.
    Outcome {
        /// The word.
        phase: String,
    },
}

/// The two sides of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The MCP client.
    Client,
    /// The MCP server.
    Server,
}

impl Side {
    /// Returns the other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    fn arrow(self) -> &'static str {
        match self {
            Self::Client => "C->S",
            Self::Server => "S->C",
        }
    }
}

/// A line with every placeholder filled in.
#[derive(Clone, Debug)]
pub struct BoundLine {
    /// The line number, from 1.
    pub number: usize,
    /// The event. A message contains its text as written in the file, with placeholders replaced.
    pub event: TranscriptEvent,
}

impl Transcript {
    /// Parses the text of a transcript.
    pub fn parse(text: &str) -> Result<Self, TranscriptError> {
        read::transcript(text)
    }

    /// Reads and parses a file.
    pub fn read(path: &Path) -> Result<Self, TranscriptError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| TranscriptError::file(path, &error))?;
        Self::parse(&text).map_err(|unreadable| unreadable.within(path))
    }

    /// Reads every transcript of the project. Returns each with its path, sorted by path.
    pub fn all() -> Result<Vec<(PathBuf, Self)>, TranscriptError> {
        let mut paths = Vec::new();
        read::collect(&folder(), &mut paths)?;
        paths.sort();
        paths
            .into_iter()
            .map(|path| Self::read(&path).map(|transcript| (path, transcript)))
            .collect()
    }

    /// Returns the conversation with a value for every placeholder: its own name, as a string.
    pub fn bound(&self) -> Vec<BoundLine> {
        let mut bindings = Bindings::default();
        self.lines
            .iter()
            .map(|line| BoundLine {
                number: line.number,
                event: line.event.bound(&mut bindings),
            })
            .collect()
    }
}

impl TranscriptEvent {
    fn bound(&self, bindings: &mut Bindings) -> Self {
        match self {
            Self::Says {
                side,
                optional,
                pattern,
            } => Self::Says {
                side: *side,
                optional: *optional,
                pattern: bindings.fill(pattern),
            },
            Self::Person { .. } | Self::Time { .. } | Self::Outcome { .. } => self.clone(),
        }
    }
}

/// Returns the folder of the project's transcripts.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts")
}

#[cfg(test)]
mod tests;
