//! Transitions of a question, and the reasons to refuse one.

use serde::{Deserialize, Serialize};

use super::delivery::Lapse;
use super::phase::Phase;
use crate::answer::Outcome;
use crate::wire::Action;

/// Something that happens to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// A view put it before a person.
    Show,
    /// A person acted.
    Act {
        /// The person's action. Only an [`Outcome`] makes one, so an accept's content has passed the form's check.
        act: PersonAction,
        /// The person as this side knows them, or the frontend that they used.
        by: String,
    },
    /// The timer rang.
    Expire,
    /// The question is not wanted any more.
    Withdraw {
        /// Why not.
        why: Withdrawal,
    },
    /// Something broke.
    Fail {
        /// The reason, in words fit for a log: no value, no text of the peer.
        why: String,
    },
    /// Its end is delivered to the server. Taken at most once, unless the server refuses it.
    Deliver,
    /// The asker refused the answer that was delivered: it may be delivered once more.
    Refuse {
        /// The asker's words, fit for a log: no value.
        why: String,
    },
    /// It is unknown whether the server has the answer that was sent.
    Doubt {
        /// Why not, fit for a log: no value.
        why: String,
    },
    /// The answer is not delivered any more.
    Lapse {
        /// Why not.
        why: Lapse,
    },
}

/// A person's act, without what the person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonAction(Action);

impl PersonAction {
    /// Returns the person's action.
    pub const fn action(self) -> Action {
        self.0
    }
}

impl From<&Outcome> for PersonAction {
    fn from(outcome: &Outcome) -> Self {
        Self(outcome.action())
    }
}

impl Transition {
    /// A person acted, and this came of it.
    pub fn acted(outcome: &Outcome, by: impl Into<String>) -> Self {
        Self::Act {
            act: outcome.into(),
            by: by.into(),
        }
    }
}

/// Why a question is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Withdrawal {
    /// The asker sent a cancellation.
    ByAsker,
    /// The call that it belongs to was cancelled by its caller.
    CallCancelled,
    /// The call that it belongs to ended without it.
    CallEnded,
    /// The asker's process or connection is gone.
    AskerGone,
    /// The caller whose call it was asked for cannot come back.
    CallerGone,
}

impl Withdrawal {
    /// Returns the withdrawal of a word in records.
    pub fn of_word(word: &str) -> Option<Self> {
        let all = [
            Self::ByAsker,
            Self::CallCancelled,
            Self::CallEnded,
            Self::AskerGone,
            Self::CallerGone,
        ];
        all.into_iter().find(|one| one.as_str() == word)
    }

    /// Returns the words for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ByAsker => "the server took it back",
            Self::CallCancelled => "its caller cancelled the call",
            Self::CallEnded => "the call ended without it",
            Self::AskerGone => "the server is gone",
            Self::CallerGone => "the caller is gone",
        }
    }

    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ByAsker => "by-asker",
            Self::CallCancelled => "call-cancelled",
            Self::CallEnded => "call-ended",
            Self::AskerGone => "asker-gone",
            Self::CallerGone => "caller-gone",
        }
    }
}

/// Why a step was not taken. The state stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// It had ended before: another transition was first.
    #[error("the question is {phase} already")]
    Ended {
        /// The phase in which it ended.
        phase: Phase,
    },
    /// The deadline has passed; only the timeout can follow.
    #[error("the time to answer is over")]
    Late,
    /// The timer rang before the deadline.
    #[error("the deadline has not come")]
    NotDue,
    /// There is no end to tell yet.
    #[error("the question is still open")]
    Open,
    /// Its end was delivered before.
    #[error("the end was delivered already")]
    Delivered,
    /// Its answer is not on its way to the asker.
    #[error("the answer was not delivered")]
    NotDelivered,
    /// Its answer is not delivered any more.
    #[error("the answer has lapsed")]
    Lapsed,
    /// It has changed since it was read.
    #[error("the question has changed and is {phase} now")]
    Changed {
        /// The phase in which it is.
        phase: Phase,
    },
}
