//! A person's refusal: an answer, reported as a fault only to callers that cannot go on without an accept.

use serde_json::{Value, json};

use super::error::code;
use crate::wire::Action;

/// A refusal where an accept was needed. Only a person's own action creates one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PersonFault {
    /// The person declined.
    #[error("the person declined to answer")]
    Declined,
    /// The person dismissed the question.
    #[error("the person dismissed the question without a choice")]
    Cancelled,
}

impl PersonFault {
    /// Returns the person's action.
    pub const fn action(self) -> Action {
        match self {
            Self::Declined => Action::Decline,
            Self::Cancelled => Action::Cancel,
        }
    }

    /// Returns the JSON-RPC error code, the same on every revision.
    pub const fn code(self) -> i32 {
        match self {
            Self::Declined | Self::Cancelled => code::SERVER,
        }
    }

    /// Returns the error's `message`.
    pub(super) const fn summary(self) -> &'static str {
        match self {
            Self::Declined => "Elicitation declined",
            Self::Cancelled => "Elicitation cancelled",
        }
    }

    pub(super) fn data(self) -> Value {
        json!({ "reason": self.to_string(), "action": self.action().as_str() })
    }
}
