use mcp_elicit_core::answer::Outcome;
use thiserror::Error;

/// The person's action, and their further choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// The outcome.
    pub outcome: Outcome,
    /// `true` if they were warned that the form asks for a credential and allowed it to be sent.
    pub allows_credentials: bool,
    /// `true` if they declined every later question of this server too. The caller enforces it.
    pub from_now_on: bool,
}

/// Why a question ended without an action. None of these is a decline or a cancel: no person chose one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FrontendError {
    /// The person stopped the program (Ctrl-C), which says nothing about the question.
    #[error("interrupted before the question was answered")]
    Interrupted,
    /// The input ended before the answer was complete.
    #[error("the input ended before the question was answered{}", at(field.as_deref()))]
    EndOfInput {
        /// The field that was waiting, if one was.
        field: Option<String>,
    },
    /// The question was withdrawn: by the server, or because its call ended.
    #[error("the question was withdrawn: {why}")]
    Withdrawn {
        /// Why, in words for a person.
        why: String,
    },
    /// The question's own deadline passed.
    #[error("the time to answer ran out")]
    Expired,
    /// Input that is not a person kept giving answers that the form refuses.
    #[error("gave up after {tries} refused answers{}", at(field.as_deref()))]
    Refused {
        /// The number of answers in a row that were refused.
        tries: u32,
        /// The field that refused them, if one did.
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
