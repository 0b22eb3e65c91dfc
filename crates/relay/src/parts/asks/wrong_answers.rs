//! The unusable answers of a client to one question.

use mcp_elicit_core::form::FieldKinds;

/// The number of times that a question is asked in a client's own dialog; the same as on the pages.
const ATTEMPTS: u32 = 3;

/// The unusable answers of a client so far.
pub(super) struct WrongAnswers {
    count: u32,
    last: WrongAnswer,
}

/// An unusable answer of a client.
pub(crate) struct WrongAnswer {
    reason: String,
    breaks: String,
    is_empty: bool,
    mistyped: FieldKinds,
}

/// The unusable answers of a client, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// Their number.
    pub(crate) count: u32,
    /// `true` if the last two are unusable in the same way.
    pub(crate) are_alike: bool,
    /// `true` if the last two have no content at all.
    pub(crate) are_empty: bool,
    /// The kinds of field that the last two gave in another type.
    pub(crate) mistyped: FieldKinds,
}

impl WrongAnswer {
    /// Creates an answer that is unusable for this reason, written for the person. `breaks` names the rules that it
    /// breaks, each with its field; `is_empty` if it has no content at all.
    pub(super) fn new(reason: String, breaks: String, is_empty: bool) -> Self {
        Self {
            reason,
            breaks,
            is_empty,
            mistyped: FieldKinds::default(),
        }
    }

    /// Adds the kinds of the fields whose values have another type than the field.
    pub(super) fn mistyping(self, mistyped: FieldKinds) -> Self {
        Self { mistyped, ..self }
    }

    /// Creates an answer that is absent in a retry without any answer.
    pub(crate) fn missing() -> Self {
        Self {
            reason: "there was no answer".to_owned(),
            breaks: "missing".to_owned(),
            is_empty: false,
            mistyped: FieldKinds::default(),
        }
    }
}

impl WrongAnswers {
    /// Adds an answer to those before it.
    pub(super) fn after(before: Option<Self>, answer: WrongAnswer) -> (Self, Attempts) {
        let count = before.as_ref().map_or(0, |wrong| wrong.count) + 1;
        let last = before.map(|wrong| wrong.last);
        let attempts = Attempts {
            count,
            are_alike: last
                .as_ref()
                .is_some_and(|last| last.breaks == answer.breaks),
            mistyped: last
                .as_ref()
                .filter(|last| last.breaks == answer.breaks)
                .map_or_else(FieldKinds::default, |last| last.mistyped),
            are_empty: answer.is_empty && last.is_some_and(|last| last.is_empty),
        };
        let wrong = Self {
            count,
            last: answer,
        };
        (wrong, attempts)
    }

    /// Returns their number.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the reason why the last one is unusable, for the person.
    pub(super) fn reason(&self) -> &str {
        &self.last.reason
    }
}

impl Attempts {
    /// As many as there may be.
    pub(super) const OVER: Self = Self {
        count: ATTEMPTS,
        are_alike: false,
        are_empty: false,
        mistyped: FieldKinds::NONE,
    };

    /// Returns `true` if the client is not asked again.
    pub(crate) fn are_over(self) -> bool {
        self.count >= ATTEMPTS
    }
}
