//! The phases of a question. Each is distinct: a timeout is never a decline.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::wire::Action;

/// The phase of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Asked, and not shown to anyone yet.
    Asked,
    /// Shown to a person.
    Shown,
    /// Accepted, with an answer that passed the form's check; in url mode, agreed to visit.
    Answered,
    /// The person said no.
    Declined,
    /// The person dismissed it.
    Cancelled,
    /// The deadline passed before any action.
    TimedOut,
    /// The server withdrew it, or is gone.
    Withdrawn,
    /// The server, the client or the responder failed.
    Failed,
}

impl Phase {
    /// Every phase, in the order in which they can occur.
    pub const ALL: [Self; 8] = [
        Self::Asked,
        Self::Shown,
        Self::Answered,
        Self::Declined,
        Self::Cancelled,
        Self::TimedOut,
        Self::Withdrawn,
        Self::Failed,
    ];

    /// Returns the word in records, logs and stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Shown => "shown",
            Self::Answered => "answered",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed-out",
            Self::Withdrawn => "withdrawn",
            Self::Failed => "failed",
        }
    }

    /// Returns `true` while the question can be answered.
    pub const fn is_open(self) -> bool {
        match self {
            Self::Asked | Self::Shown => true,
            Self::Answered
            | Self::Declined
            | Self::Cancelled
            | Self::TimedOut
            | Self::Withdrawn
            | Self::Failed => false,
        }
    }

    /// Returns the person's action, if a person ended it.
    pub const fn action(self) -> Option<Action> {
        match self {
            Self::Answered => Some(Action::Accept),
            Self::Declined => Some(Action::Decline),
            Self::Cancelled => Some(Action::Cancel),
            Self::Asked | Self::Shown | Self::TimedOut | Self::Withdrawn | Self::Failed => None,
        }
    }

    /// Returns the phase that ends a question after this action.
    pub const fn from_action(action: Action) -> Self {
        match action {
            Action::Accept => Self::Answered,
            Action::Decline => Self::Declined,
            Action::Cancel => Self::Cancelled,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such phase of a question")]
pub struct UnknownPhase;

impl FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|phase| phase.as_str() == text)
            .ok_or(UnknownPhase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for phase in Phase::ALL {
            assert_eq!(phase.as_str().parse(), Ok(phase));
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
        }
        assert_eq!("expired".parse::<Phase>(), Err(UnknownPhase));
    }

    #[test]
    fn only_a_persons_act_is_an_action() {
        for phase in Phase::ALL {
            match phase.action() {
                Some(action) => assert_eq!(Phase::from_action(action), phase),
                None => assert!(!matches!(
                    phase,
                    Phase::Answered | Phase::Declined | Phase::Cancelled
                )),
            }
        }
    }
}
