//! Reached limits: time, rate, size or number. No person acted, so none of them is ever reported as an action.

use std::time::Duration;

use serde_json::{Value, json};

use super::error::code;

/// A configured limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitFault {
    /// The deadline passed without an answer.
    #[error("{}", if *.seen { "User did not respond within timeout period" } else { "The question was shown to nobody within the timeout period" })]
    TimedOut {
        /// The time that the question was open.
        after: Duration,
        /// `true` if a person saw it.
        seen: bool,
    },
    /// No answer could be sent: the input ended, no prepared answer was left, or the prepared one did not fit.
    #[error("the question was not answered: {why}")]
    NoAnswer {
        /// The reason, safe to send to the server. It contains no input of a person.
        why: &'static str,
    },
    /// Too many questions in too little time.
    #[error("too many questions; try again later")]
    RateLimited {
        /// The time after which asking makes sense again.
        retry_after: Duration,
    },
    /// Too many questions wait for an answer.
    #[error("{limit} questions wait for an answer already")]
    TooManyPending {
        /// The limit.
        limit: usize,
    },
    /// One call asked too many questions.
    #[error("one call may ask {limit} questions")]
    TooManyQuestions {
        /// The limit.
        limit: usize,
    },
    /// One call took too many rounds.
    #[error("one call may take {limit} rounds")]
    TooManyRounds {
        /// The limit.
        limit: usize,
    },
    /// A message or a part of one is too large. Sizes in bytes.
    #[error("{what} has {bytes} bytes and at most {limit} are allowed")]
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// The size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

impl LimitFault {
    /// Returns the JSON-RPC error code, the same on every revision.
    pub const fn code(&self) -> i32 {
        match self {
            Self::TimedOut { .. }
            | Self::NoAnswer { .. }
            | Self::RateLimited { .. }
            | Self::TooManyPending { .. }
            | Self::TooManyQuestions { .. }
            | Self::TooManyRounds { .. } => code::SERVER,
            Self::TooLarge { .. } => code::INVALID_REQUEST,
        }
    }

    /// Returns the error's `message`.
    pub(super) const fn summary(&self) -> &'static str {
        match self {
            Self::TimedOut { .. } => "Elicitation timeout",
            Self::NoAnswer { .. } => "Elicitation not answered",
            Self::RateLimited { .. } => "Elicitation rate limit exceeded",
            Self::TooManyPending { .. } => "Too many open questions",
            Self::TooManyQuestions { .. } => "Too many questions",
            Self::TooManyRounds { .. } => "Too many rounds",
            Self::TooLarge { .. } => "Too large",
        }
    }

    pub(super) fn data(&self) -> Value {
        let reason = self.to_string();
        match self {
            Self::TimedOut { after, seen } => {
                json!({ "reason": reason, "timeoutSeconds": seconds(*after), "seen": seen })
            }
            Self::NoAnswer { .. } => json!({ "reason": reason }),
            Self::RateLimited { retry_after } => {
                json!({ "reason": reason, "retryAfterSeconds": seconds(*retry_after) })
            }
            Self::TooManyPending { limit }
            | Self::TooManyQuestions { limit }
            | Self::TooManyRounds { limit } => {
                json!({ "reason": reason, "limit": limit })
            }
            Self::TooLarge { bytes, limit, .. } => {
                json!({ "reason": reason, "bytes": bytes, "limitBytes": limit })
            }
        }
    }
}

/// Returns whole seconds, rounded up, so that waiting that long is always enough.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
