//! Transitions of a question, and the reasons to refuse one.

use serde::{Deserialize, Serialize};

use super::delivery::Lapse;
use super::moved::NotAPerson;
use super::phase::Phase;
use crate::answer::Outcome;
use crate::wire::Action;

/// An event that changes a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// A frontend showed it to a person.
    Show,
    /// It moves from the client's own dialog to people. This is not an action of a person.
    MoveToPeople {
        /// The evidence that no person answered in the dialog.
        why: NotAPerson,
    },
    /// A person acted.
    Act {
        /// The person's action. Only an [`Outcome`] creates one, so an accept's content has passed the form's check.
        act: PersonAction,
        /// The principal, or the frontend that was used.
        by: String,
    },
    /// The deadline passed.
    Expire,
    /// The question is no longer wanted.
    Withdraw {
        /// The reason.
        why: Withdrawal,
    },
    /// A component failed.
    Fail {
        /// The reason, safe for a log: no value, no text of the peer.
        why: String,
    },
    /// The end is delivered to the server. Accepted at most once, unless the server refuses it.
    Deliver,
    /// The server refused the delivered answer, which may be delivered once more.
    Refuse {
        /// The server's message, safe for a log: no value.
        why: String,
    },
    /// It is unknown whether the server has the answer that was sent.
    Doubt {
        /// The reason, safe for a log: no value.
        why: String,
    },
    /// The answer will not be delivered.
    Lapse {
        /// The reason.
        why: Lapse,
    },
}

/// A person's action, without the answers.
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
    /// Creates the transition for a person's outcome.
    pub fn acted(outcome: &Outcome, by: impl Into<String>) -> Self {
        Self::Act {
            act: outcome.into(),
            by: by.into(),
        }
    }
}

/// The reason why a question is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Withdrawal {
    /// The server cancelled it.
    ByAsker,
    /// The caller cancelled its call.
    CallCancelled,
    /// Its call ended without it.
    CallEnded,
    /// The server's process or connection is gone.
    AskerGone,
    /// The caller whose call it was asked for cannot come back.
    CallerGone,
}

impl Withdrawal {
    /// Returns the withdrawal with this name in records.
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

    /// Returns the reason in words for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ByAsker => "the server took it back",
            Self::CallCancelled => "its caller cancelled the call",
            Self::CallEnded => "the call ended without it",
            Self::AskerGone => "the server is gone",
            Self::CallerGone => "the caller is gone",
        }
    }

    /// Returns the word in records.
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

/// The reason why a transition was refused. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// The question has ended: another transition was first.
    #[error("the question is {phase} already")]
    Ended {
        /// The phase in which it ended.
        phase: Phase,
    },
    /// The deadline has passed; only expiry can follow.
    #[error("the time to answer is over")]
    Late,
    /// Expiry before the deadline.
    #[error("the deadline has not come")]
    NotDue,
    /// The question has not ended, so there is nothing to deliver.
    #[error("the question is still open")]
    Open,
    /// The end was delivered before.
    #[error("the end was delivered already")]
    Delivered,
    /// The answer was not delivered, so the server cannot refuse it.
    #[error("the answer was not delivered")]
    NotDelivered,
    /// The answer has lapsed.
    #[error("the answer has lapsed")]
    Lapsed,
    /// The question has changed since it was read.
    #[error("the question has changed and is {phase} now")]
    Changed {
        /// The current phase.
        phase: Phase,
    },
}
