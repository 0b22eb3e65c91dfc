//! Why a responder brought no answer. None of these is a decline or a cancel: no person chose one.

use std::time::Duration;

use mcp_elicit_core::answer::Violations;
#[cfg(any(feature = "terminal", feature = "browser"))]
use mcp_elicit_forms::view::FrontendError;
use thiserror::Error;

/// Why a responder brought no answer.
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
    /// It cannot show this question.
    #[error("cannot show the question: {why}")]
    CannotShow {
        /// Why, in words for a person.
        why: String,
    },
    /// It cannot show this question, and the form's fields say why.
    #[error("the form's defaults are not a valid answer: {violations}")]
    NoDefaults {
        /// The fields without a usable default.
        violations: Violations,
    },
    /// Its answer does not fit the form, and there is no person to correct it.
    #[error("the prepared answer does not fit: {violations}")]
    Refused {
        /// Every field that is wrong.
        violations: Violations,
    },
    /// There is no prepared answer left.
    #[error("no prepared answer is left for this question")]
    Exhausted,
    /// The input ended before the answer was complete.
    #[error("the input ended before the question was answered")]
    EndOfInput,
    /// The person stopped the program, which says nothing about the question.
    #[error("interrupted before the question was answered")]
    Interrupted,
    /// The time that this responder gives passed without an answer.
    #[error("no answer within {} s", within.as_secs_f32())]
    TimedOut {
        /// The time it gives.
        within: Duration,
    },
    /// The question's own time ran out while it was shown.
    #[error("the time to answer ran out")]
    Expired,
    /// The question was withdrawn while it was shown.
    #[error("the question was withdrawn: {why}")]
    Withdrawn {
        /// Why, in words for a person.
        why: String,
    },
    /// It broke.
    #[error("the responder failed: {why}")]
    Failed {
        /// The event. Nothing a person typed.
        why: String,
    },
}

impl ResponderError {
    /// It cannot show this question.
    ///
    /// ```
    /// use mcp_elicit_client::responder::ResponderError;
    ///
    /// assert!(matches!(ResponderError::cannot_show("there is no screen"), ResponderError::CannotShow { .. }));
    /// ```
    pub fn cannot_show(why: impl Into<String>) -> Self {
        Self::CannotShow { why: why.into() }
    }

    /// It broke.
    ///
    /// ```
    /// use mcp_elicit_client::responder::ResponderError;
    ///
    /// assert!(matches!(ResponderError::failed("the screen broke"), ResponderError::Failed { .. }));
    /// ```
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed { why: why.into() }
    }

    /// Returns whether another responder should be tried: this one could not, as opposed to a person who walked away.
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

/// Converts the error of a frontend, where a question ended without an action.
#[cfg(any(feature = "terminal", feature = "browser"))]
pub(super) fn from_frontend(why: FrontendError) -> ResponderError {
    match why {
        FrontendError::Interrupted => ResponderError::Interrupted,
        FrontendError::EndOfInput { .. } => ResponderError::EndOfInput,
        FrontendError::Withdrawn { why } => ResponderError::Withdrawn { why },
        FrontendError::Expired => ResponderError::Expired,
        FrontendError::NoTerminal => ResponderError::cannot_show("there is no terminal"),
        // What the system says of reading and writing; nothing a person typed.
        FrontendError::Broken(error) => ResponderError::failed(error.to_string()),
        other => ResponderError::failed(other.to_string()),
    }
}
