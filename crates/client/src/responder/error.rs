//! The reasons why a responder obtained no answer. None is a decline or a cancel, because no person chose one.

use std::time::Duration;

use mcp_elicit_core::answer::Violations;
#[cfg(any(feature = "terminal", feature = "browser"))]
use mcp_elicit_forms::view::FrontendError;
use thiserror::Error;

/// The kinds of [`ResponderError`], each with its advice. The list is complete, so that a host which handles all of them
/// does not compile with a version that has another: see [`ResponderError::kind`].
///
/// ```
/// use mcp_elicit_client::responder::{ResponderError, ResponderErrorKind};
///
/// assert_eq!(ResponderError::Exhausted.kind(), ResponderErrorKind::NothingPrepared);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponderErrorKind {
    /// The person stopped the program.
    Interrupted,
    /// No answer was prepared for this question.
    NothingPrepared,
    /// The prepared answer does not fit the question.
    DoesNotFit,
    /// The input ended before the answer was complete.
    EndOfInput,
    /// The question ended first: its time ran out, or it was withdrawn.
    Ended,
    /// The responder cannot show the question, or it failed.
    Unable,
}

/// The reason why a responder obtained no answer.
///
/// ```
/// use mcp_elicit_client::responder::ResponderError;
///
/// let error = ResponderError::cannot_show("there is no screen");
/// assert!(error.passes_on());
/// assert!(!ResponderError::failed("the screen broke").passes_on());
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResponderError {
    /// The responder cannot show this question.
    #[error("cannot show the question: {why}")]
    CannotShow {
        /// The reason, written for a person.
        why: String,
    },
    /// The responder cannot show this question, because fields have no default.
    #[error("the form's defaults are not a valid answer: {violations}")]
    NoDefaults {
        /// The fields without a usable default.
        violations: Violations,
    },
    /// The answer does not fit the form, and there is no person to correct it.
    #[error("the answer does not fit: {violations}")]
    Refused {
        /// The violation of every wrong field.
        #[from]
        violations: Violations,
    },
    /// The answer has a value that the form does not ask for. It is not sent without it: the person meant it.
    #[error("the answer does not fit: {why}")]
    NotAsked {
        /// The names of the values, without the values, and what the form asks for.
        why: String,
    },
    /// There is no prepared answer left.
    #[error("no prepared answer is left for this question")]
    Exhausted,
    /// The input ended before the answer was complete.
    #[error("the input ended before the question was answered")]
    EndOfInput,
    /// The person stopped the program, which is not an action on the question.
    #[error("interrupted before the question was answered")]
    Interrupted,
    /// The responder's own time limit passed.
    #[error("no answer within {} s", within.as_secs_f32())]
    TimedOut {
        /// The time limit.
        within: Duration,
    },
    /// The question's time limit passed while it was shown.
    #[error("the time to answer ran out")]
    Expired,
    /// The question was withdrawn while it was shown.
    #[error("the question was withdrawn: {why}")]
    Withdrawn {
        /// The reason, written for a person.
        why: String,
    },
    /// The responder failed.
    #[error("the responder failed: {why}")]
    Failed {
        /// The reason, without any input of a person.
        why: String,
    },
}

impl ResponderError {
    /// Returns the error of a responder that cannot show this question.
    ///
    /// ```
    /// use mcp_elicit_client::responder::ResponderError;
    ///
    /// assert!(matches!(ResponderError::cannot_show("there is no screen"), ResponderError::CannotShow { .. }));
    /// ```
    pub fn cannot_show(why: impl Into<String>) -> Self {
        Self::CannotShow { why: why.into() }
    }

    /// Returns the error of a responder that failed.
    ///
    /// ```
    /// use mcp_elicit_client::responder::ResponderError;
    ///
    /// assert!(matches!(ResponderError::failed("the screen broke"), ResponderError::Failed { .. }));
    /// ```
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed { why: why.into() }
    }

    /// Returns the kind of the error, from a complete list.
    ///
    /// ```
    /// use mcp_elicit_client::responder::{ResponderError, ResponderErrorKind};
    ///
    /// let error = ResponderError::EndOfInput;
    /// assert_eq!(error.kind(), ResponderErrorKind::EndOfInput);
    /// ```
    pub fn kind(&self) -> ResponderErrorKind {
        match self {
            Self::Interrupted => ResponderErrorKind::Interrupted,
            Self::NoDefaults { .. } | Self::Exhausted => ResponderErrorKind::NothingPrepared,
            Self::Refused { .. } | Self::NotAsked { .. } => ResponderErrorKind::DoesNotFit,
            Self::EndOfInput => ResponderErrorKind::EndOfInput,
            Self::TimedOut { .. } | Self::Expired | Self::Withdrawn { .. } => {
                ResponderErrorKind::Ended
            }
            Self::CannotShow { .. } | Self::Failed { .. } => ResponderErrorKind::Unable,
        }
    }

    /// Returns `true` if another responder should be tried: this one was unable, which differs from a person who walked
    /// away.
    ///
    /// ```
    /// use mcp_elicit_client::responder::ResponderError;
    ///
    /// assert!(!ResponderError::Interrupted.passes_on());
    /// ```
    pub fn passes_on(&self) -> bool {
        matches!(
            self,
            Self::CannotShow { .. } | Self::NoDefaults { .. } | Self::Exhausted
        )
    }
}

/// Converts the error of a frontend whose question ended without an action.
#[cfg(any(feature = "terminal", feature = "browser"))]
pub(super) fn from_frontend(why: FrontendError) -> ResponderError {
    match why {
        FrontendError::Interrupted => ResponderError::Interrupted,
        FrontendError::EndOfInput { .. } => ResponderError::EndOfInput,
        FrontendError::Withdrawn { why } => ResponderError::Withdrawn { why },
        FrontendError::Expired => ResponderError::Expired,
        FrontendError::NoTerminal => ResponderError::cannot_show("there is no terminal"),
        // The system's message about reading and writing; it contains no input of a person.
        FrontendError::Broken(error) => ResponderError::failed(error.to_string()),
        other => ResponderError::failed(other.to_string()),
    }
}
