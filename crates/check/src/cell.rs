//! The cells of the matrix.

use std::fmt;

use mcp_elicit_core::wire::{Capability, Era, Revision};

/// One cell: something that a client or a person may do while a tool asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cell {
    /// Both modes declared, every question accepted with valid content. The other cells are compared with it.
    Accept,
    /// The questions of [`Cell::Accept`] themselves: are they legal?
    Question,
    /// No elicitation declared.
    DeclaredNone,
    /// `"elicitation": {}` declared, which means forms.
    DeclaredEmpty,
    /// Forms alone declared.
    DeclaredForm,
    /// URLs alone declared.
    DeclaredUrl,
    /// Accepted with the required fields alone.
    AcceptLeast,
    /// Declined.
    Decline,
    /// Cancelled.
    Cancel,
    /// Answered with a JSON-RPC error.
    Error,
    /// Not answered for the time limit.
    NoAnswer,
    /// Accepted after that.
    LateAnswer,
    /// The client leaves while it is asked.
    Disconnect,
    /// The same answer sent twice.
    AnswerTwice,
    /// Two calls at once, answered in reverse.
    TwoCalls,
    /// Content that breaks one rule of the form: the JSON Schema keyword.
    Wrong(&'static str),
    /// Content with a member that the form does not have.
    UnknownMember,
    /// Accepted without `content`.
    NoContent,
    /// `"content": null`.
    NullContent,
    /// `content` is a list.
    ListContent,
    /// Declined with valid content.
    DeclineWithContent,
    /// An action that the protocol does not have.
    UnknownAction,
    /// The state of a round with one changed character.
    StateChanged,
    /// The state of another tool.
    StateOfOtherTool,
    /// The state of a call with other arguments.
    StateOfOtherArguments,
    /// A finished round sent once more.
    StateTwice,
    /// The answers without the state.
    NoState,
    /// The state without an answer to the asked key.
    MissingKey,
    /// The answers with one more key.
    ExtraKey,
    /// An answer under an id that was never asked, before the right one.
    UnknownId,
    /// The call withdrawn while it asks.
    Cancelled,
}

/// The groups of cells, as reports list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CellGroup {
    /// The declared modes.
    Declared,
    /// A person's and a client's acts.
    Acts,
    /// Contents that must not count as an answer.
    Content,
    /// The state of rounds (2026-07-28).
    Rounds,
    /// Pushed questions (2025-06-18, 2025-11-25).
    Pushed,
}

impl Cell {
    /// Every cell, in the order of reports. Rules stand for themselves in [`Cell::RULES`].
    pub const FIXED: [Self; 30] = [
        Self::Accept,
        Self::Question,
        Self::DeclaredNone,
        Self::DeclaredEmpty,
        Self::DeclaredForm,
        Self::DeclaredUrl,
        Self::AcceptLeast,
        Self::Decline,
        Self::Cancel,
        Self::Error,
        Self::NoAnswer,
        Self::LateAnswer,
        Self::Disconnect,
        Self::AnswerTwice,
        Self::TwoCalls,
        Self::UnknownMember,
        Self::NoContent,
        Self::NullContent,
        Self::ListContent,
        Self::DeclineWithContent,
        Self::UnknownAction,
        Self::StateChanged,
        Self::StateOfOtherTool,
        Self::StateOfOtherArguments,
        Self::StateTwice,
        Self::NoState,
        Self::MissingKey,
        Self::ExtraKey,
        Self::UnknownId,
        Self::Cancelled,
    ];

    /// The rules of a form that a cell may break.
    pub const RULES: [&str; 15] = [
        "required",
        "type",
        "enum",
        "const",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ];

    /// Returns the group of the cell.
    pub const fn group(self) -> CellGroup {
        match self {
            Self::Question
            | Self::DeclaredNone
            | Self::DeclaredEmpty
            | Self::DeclaredForm
            | Self::DeclaredUrl => CellGroup::Declared,
            Self::Accept
            | Self::AcceptLeast
            | Self::Decline
            | Self::Cancel
            | Self::Error
            | Self::NoAnswer
            | Self::LateAnswer
            | Self::Disconnect
            | Self::AnswerTwice
            | Self::TwoCalls => CellGroup::Acts,
            Self::Wrong(_)
            | Self::UnknownMember
            | Self::NoContent
            | Self::NullContent
            | Self::ListContent
            | Self::DeclineWithContent
            | Self::UnknownAction => CellGroup::Content,
            Self::StateChanged
            | Self::StateOfOtherTool
            | Self::StateOfOtherArguments
            | Self::StateTwice
            | Self::NoState
            | Self::MissingKey
            | Self::ExtraKey => CellGroup::Rounds,
            Self::UnknownId | Self::Cancelled => CellGroup::Pushed,
        }
    }

    /// Returns the reason why a revision does not have the cell; `None` if it has it.
    pub fn absent(self, revision: Revision) -> Option<&'static str> {
        let modes = revision != Revision::V2025_06_18;
        match (self, revision.era()) {
            (Self::DeclaredForm | Self::DeclaredUrl, _) if !modes => {
                Some("2025-06-18 has no modes")
            }
            (
                Self::Error
                | Self::NoAnswer
                | Self::LateAnswer
                | Self::AnswerTwice
                | Self::UnknownId
                | Self::Cancelled,
                Era::Rounds,
            ) => Some("a server of this revision does not wait for an answer"),
            (cell, Era::Pushed) if cell.group() == CellGroup::Rounds => {
                Some("this revision has no rounds")
            }
            _ => None,
        }
    }

    /// Returns `true` if its call may have an effect: a person accepts, and the content is valid.
    pub const fn accepts(self) -> bool {
        matches!(
            self,
            Self::Accept
                | Self::Question
                | Self::DeclaredEmpty
                | Self::DeclaredForm
                | Self::DeclaredUrl
                | Self::AcceptLeast
                | Self::LateAnswer
                | Self::AnswerTwice
                | Self::TwoCalls
                | Self::UnknownMember
                | Self::StateOfOtherTool
                | Self::StateOfOtherArguments
                | Self::StateTwice
                | Self::NoState
                | Self::ExtraKey
                | Self::UnknownId
        )
    }

    /// Returns the modes that the cell declares.
    pub const fn declares(self) -> Capability {
        match self {
            Self::DeclaredNone => Capability::NONE,
            Self::DeclaredEmpty | Self::DeclaredForm => Capability::FORM,
            Self::DeclaredUrl => Capability::URL,
            _ => Capability::BOTH,
        }
    }
}

impl fmt::Display for Cell {
    /// Writes the stable name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept => "accept",
            Self::Question => "question",
            Self::DeclaredNone => "declared-none",
            Self::DeclaredEmpty => "declared-empty",
            Self::DeclaredForm => "declared-form",
            Self::DeclaredUrl => "declared-url",
            Self::AcceptLeast => "accept-least",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
            Self::Error => "error",
            Self::NoAnswer => "no-answer",
            Self::LateAnswer => "late-answer",
            Self::Disconnect => "disconnect",
            Self::AnswerTwice => "answer-twice",
            Self::TwoCalls => "two-calls",
            Self::Wrong(rule) => return write!(f, "wrong-{rule}"),
            Self::UnknownMember => "unknown-member",
            Self::NoContent => "no-content",
            Self::NullContent => "null-content",
            Self::ListContent => "list-content",
            Self::DeclineWithContent => "decline-with-content",
            Self::UnknownAction => "unknown-action",
            Self::StateChanged => "state-changed",
            Self::StateOfOtherTool => "state-of-other-tool",
            Self::StateOfOtherArguments => "state-of-other-arguments",
            Self::StateTwice => "state-twice",
            Self::NoState => "no-state",
            Self::MissingKey => "missing-key",
            Self::ExtraKey => "extra-key",
            Self::UnknownId => "unknown-id",
            Self::Cancelled => "cancelled",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_cell_has_a_name_of_its_own() {
        let rules = Cell::RULES.map(Cell::Wrong);
        let names: Vec<_> = Cell::FIXED
            .iter()
            .chain(&rules)
            .map(ToString::to_string)
            .collect();
        let different: HashSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
    }

    #[test]
    fn each_era_lacks_the_cells_of_the_other() {
        for cell in Cell::FIXED {
            let lacks = |revision| cell.absent(revision).is_some();
            match cell.group() {
                CellGroup::Rounds => {
                    assert!(lacks(Revision::V2025_11_25) && !lacks(Revision::V2026_07_28));
                }
                CellGroup::Pushed => {
                    assert!(!lacks(Revision::V2025_11_25) && lacks(Revision::V2026_07_28));
                }
                CellGroup::Declared | CellGroup::Acts | CellGroup::Content => {
                    assert!(!lacks(Revision::V2025_11_25));
                }
            }
        }
    }
}
