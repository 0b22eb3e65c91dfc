use mcp_elicit_core::answer::Outcome;
use thiserror::Error;

/// The person's action, and their further choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// The outcome.
    pub outcome: Outcome,
    /// `true` if the person was warned that the form asks for a credential and allowed it to be sent.
    pub allows_credentials: bool,
    /// `true` if the person also declined every later question of this server. The caller enforces it.
    pub from_now_on: bool,
}

/// The reason why a question ended without an action. None is a decline or a cancel, because no person chose one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FrontendError {
    /// The person stopped the program (Ctrl-C), which is not an action on the question.
    #[error("interrupted before the question was answered")]
    Interrupted,
    /// The input ended before the answer was complete.
    #[error("the input ended before the question was answered{}", at(field.as_deref()))]
    EndOfInput {
        /// The field that was waiting, if any.
        field: Option<String>,
    },
    /// The question was withdrawn: by the server, or because its call ended.
    #[error("the question was withdrawn: {why}")]
    Withdrawn {
        /// The reason, written for a person.
        why: String,
    },
    /// The question's own deadline passed.
    #[error("the time to answer ran out")]
    Expired,
    /// Input that is not from a person kept giving invalid answers.
    #[error("gave up after {tries} refused answers{}", at(field.as_deref()))]
    Refused {
        /// The number of consecutive invalid answers.
        tries: u32,
        /// The invalid field, if there was one.
        field: Option<String>,
    },
    /// There is no terminal to ask in.
    #[error("there is no terminal to ask in")]
    NoTerminal,
    /// Reading from or writing to the person failed.
    #[error("the terminal failed")]
    Broken(#[from] std::io::Error),
}

fn at(field: Option<&str>) -> String {
    field
        .map(|name| format!(" (at {name:?})"))
        .unwrap_or_default()
}
