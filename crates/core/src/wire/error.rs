//! Errors of a frame or a part of one. The peer is to blame for all of them.

use super::revision::{Mode, Revision};

/// A frame, or a part of one, that breaks the protocol.
///
/// It never contains text from the frame, which may hold a person's values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The frame is longer than the limit. Sizes in bytes.
    #[error("the message has {bytes} bytes and at most {limit} are allowed")]
    TooLarge {
        /// The size of the frame.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("the message is not UTF-8: byte {offset} starts no character")]
    NotUtf8 {
        /// The offset of the first invalid byte, from 0.
        offset: usize,
    },
    /// The text is not JSON.
    #[error("the message is not JSON: {problem} at line {line}, column {column}")]
    NotJson {
        /// The kind of problem.
        problem: JsonProblem,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// A JSON array. 2025-06-18 removed batches from the protocol.
    #[error("batches are not part of the protocol since 2025-06-18; send one message at a time")]
    Batch,
    /// The value is JSON, but not an object.
    #[error("`{location}` must be an object")]
    NotObject {
        /// The member, or `message` for the whole frame.
        location: &'static str,
    },
    /// A member occurs twice, so that two readers could see two different messages.
    #[error("`{location}` has the same member twice")]
    Duplicate {
        /// The object.
        location: &'static str,
    },
    /// A member's name has the same letters as a significant one, in another spelling, so that two readers could see
    /// two different messages.
    #[error(
        "`{location}` has a member whose name is spelled unusually: write names as the protocol does"
    )]
    Spelling {
        /// The object.
        location: &'static str,
    },
    /// `jsonrpc` is not `"2.0"`.
    #[error("`jsonrpc` must be \"2.0\"")]
    Version,
    /// A required member is missing.
    #[error("`{member}` is missing")]
    Missing {
        /// The member.
        member: &'static str,
    },
    /// A member has the wrong type or an empty value.
    #[error("`{member}` must be {expected}")]
    Type {
        /// The member.
        member: &'static str,
        /// The type that it must have.
        expected: &'static str,
    },
    /// Members that exclude each other, or none of those that form a message.
    #[error("a message has either `method`, or `result`, or `error`")]
    Shape,
    /// A value nested deeper than any in the protocol.
    #[error("`{member}` is nested deeper than {limit} levels")]
    TooDeep {
        /// The member.
        member: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The mode is neither form nor url.
    #[error("`mode` must be \"form\" or \"url\"")]
    UnknownMode,
    /// A mode that this revision does not have.
    #[error("{mode} mode is not part of {revision}")]
    ModeNotInRevision {
        /// The mode.
        mode: Mode,
        /// The revision.
        revision: Revision,
    },
    /// A question with a member of the other mode, so that two readers could see two different questions.
    #[error("a question in {mode} mode must not have `{member}`")]
    OtherMode {
        /// The mode of the question.
        mode: Mode,
        /// The member of the other mode.
        member: &'static str,
    },
    /// The action is not accept, decline or cancel.
    #[error("`action` must be \"accept\", \"decline\" or \"cancel\"")]
    UnknownAction,
    /// An `input_required` without requests and without state.
    #[error("`input_required` needs `inputRequests` or `requestState`")]
    NothingRequired,
}

/// The kind of error in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonProblem {
    /// The text breaks the grammar.
    Syntax,
    /// The text ends too early.
    Truncated,
    /// The text is JSON that cannot be represented, such as half a surrogate pair.
    Content,
}

impl std::fmt::Display for JsonProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Syntax => "syntax error",
            Self::Truncated => "the text ends too early",
            Self::Content => "a value that cannot be read",
        })
    }
}

impl From<&serde_json::Error> for WireError {
    /// Keeps the position and drops serde_json's message, which may quote the text.
    fn from(error: &serde_json::Error) -> Self {
        use serde_json::error::Category;
        Self::NotJson {
            problem: match error.classify() {
                Category::Syntax => JsonProblem::Syntax,
                Category::Eof => JsonProblem::Truncated,
                Category::Data | Category::Io => JsonProblem::Content,
            },
            line: error.line(),
            column: error.column(),
        }
    }
}
