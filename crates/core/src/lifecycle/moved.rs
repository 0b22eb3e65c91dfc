//! The evidence that a client's response is not an act of a person, for which a question moves from the client's own
//! dialog to people.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use crate::wire::Action;

/// The evidence that a client's response is not an act of a person. It contains no values and no text of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum NotAPerson {
    /// The client responded with an error.
    Error {
        /// The error's code.
        code: i64,
    },
    /// The response is not an answer of this protocol.
    Malformed,
    /// The client gave unusable answers.
    Unusable {
        /// The number of unusable answers.
        times: u32,
    },
    /// No person sits at the client, according to its profile.
    NoPerson {
        /// The action that the client sent.
        act: Action,
    },
    /// The answer came sooner than a person can read a question.
    TooFast {
        /// The action that the client sent.
        act: Action,
        /// The time since the client was asked, in milliseconds.
        after_ms: u64,
    },
}

impl NotAPerson {
    /// Returns the word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error { .. } => "error",
            Self::Malformed => "malformed",
            Self::Unusable { .. } => "unusable",
            Self::NoPerson { .. } => "no-person",
            Self::TooFast { .. } => "too-fast",
        }
    }
}

impl fmt::Display for NotAPerson {
    /// Writes the evidence in words for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error { code } => write!(f, "the client answered with error {code}"),
            Self::Malformed => f.write_str("the client's response is not an answer"),
            Self::Unusable { times: 1 } => f.write_str("the client's answer cannot be used"),
            Self::Unusable { times } => {
                write!(f, "{times} answers of the client cannot be used")
            }
            Self::NoPerson { act } => write!(
                f,
                "the client answered {act}, and its profile says that no person sits there"
            ),
            Self::TooFast { act, after_ms } => write!(
                f,
                "the client answered {act} {after_ms} ms after it was asked, sooner than a person can read"
            ),
        }
    }
}

/// The move of a question from the client's own dialog to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The time of the move.
    pub at: Timestamp,
    /// The evidence that no person answered in the dialog.
    #[serde(flatten)]
    pub why: NotAPerson,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Records of other versions contain these texts.
    #[test]
    fn a_move_is_stored_in_this_spelling() {
        let all = [
            (
                NotAPerson::Error { code: -32601 },
                json!({"at": 7, "why": "error", "code": -32601}),
            ),
            (NotAPerson::Malformed, json!({"at": 7, "why": "malformed"})),
            (
                NotAPerson::Unusable { times: 2 },
                json!({"at": 7, "why": "unusable", "times": 2}),
            ),
            (
                NotAPerson::NoPerson {
                    act: Action::Accept,
                },
                json!({"at": 7, "why": "no-person", "act": "accept"}),
            ),
            (
                NotAPerson::TooFast {
                    act: Action::Decline,
                    after_ms: 2,
                },
                json!({"at": 7, "why": "too-fast", "act": "decline", "after_ms": 2}),
            ),
        ];
        for (why, stored) in all {
            let at = Timestamp::from_millis(7);
            let moved = Moved { at, why };
            assert_eq!(serde_json::to_value(moved).unwrap(), stored);
            assert_eq!(
                serde_json::from_value::<Moved>(stored.clone()).unwrap(),
                moved
            );
            assert_eq!(stored["why"], why.as_str());
        }
    }
}
