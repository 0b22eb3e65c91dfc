//! The facts that a cell saw.

use std::time::Duration;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::{Mode, Revision};
use serde_json::Value;

use crate::contents;

/// A frame, as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SentFrame {
    /// `true` if the server sent it.
    pub from_server: bool,
    /// Its text, cut.
    pub text: String,
}

/// A question as it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedQuestion {
    /// The params of `elicitation/create`.
    pub params: Value,
    /// Its key among the `inputRequests`; `None` if it was pushed.
    pub key: Option<String>,
    /// The mode that it claims.
    pub mode: Mode,
    /// `true` if it was listed in the error -32042.
    pub in_error: bool,
}

impl ObservedQuestion {
    /// Reads a question from its params.
    pub(crate) fn read(params: Value, key: Option<String>) -> Self {
        let mode = if params["mode"] == "url" {
            Mode::Url
        } else {
            Mode::Form
        };
        Self {
            params,
            key,
            mode,
            in_error: false,
        }
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        self.params["message"].as_str().unwrap_or_default()
    }

    /// Returns the form, as far as it can be read; `None` for a URL.
    pub fn form(&self) -> Option<Form> {
        match self.mode {
            Mode::Url => None,
            Mode::Form => Form::from_value_leniently(&self.params["requestedSchema"]).ok(),
        }
    }

    /// Returns `true` if both are the same question, whenever they were asked.
    pub fn is_same(&self, other: &Self) -> bool {
        self.mode == other.mode
            && self.message() == other.message()
            && self.params["requestedSchema"] == other.params["requestedSchema"]
    }

    /// Returns `true` if this asks `other` once more, with a reason or without: under the same key, or with its message.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        let same_key = self.key.is_some() && self.key == other.key;
        let words = other.message();
        self.mode == other.mode && (same_key || !words.is_empty() && self.message().contains(words))
    }

    /// Returns the contents that break one rule each.
    pub(crate) fn violations(&self) -> Vec<(&'static str, Value)> {
        self.form()
            .map(|form| contents::violations(&form))
            .unwrap_or_default()
    }
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEnd {
    /// A result.
    Result {
        /// `isError`.
        is_error: bool,
        /// Its texts, or the result itself if it has none.
        text: String,
    },
    /// A JSON-RPC error.
    Error {
        /// The code.
        code: i64,
        /// The message.
        message: String,
    },
    /// No response within the time limit.
    Never,
    /// The connection ended.
    Died(String),
    /// More questions or frames than a call can need.
    Flood,
    /// The cell itself left, or withdrew the call.
    Left,
}

impl CallEnd {
    /// Returns `true` for a result that is no error.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Result { is_error, .. } if !is_error)
    }

    /// Returns the text of a result.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Result { text, .. } => Some(text),
            Self::Error { .. } | Self::Never | Self::Died(_) | Self::Flood | Self::Left => None,
        }
    }
}

/// The effects of a cell's calls, by the command of `--effect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEffects {
    /// The number of effects: lines, or the difference of two numbers.
    pub count: u64,
}

impl CallEffects {
    /// Compares the output of the command before and after a cell. One whole number is compared as a number; of any other
    /// output the lines that were added or removed are counted, whichever are more.
    pub fn between(before: &str, after: &str) -> Self {
        let number = |text: &str| text.trim().parse::<i64>().ok();
        if let (Some(before), Some(after)) = (number(before), number(after)) {
            return Self {
                count: before.abs_diff(after),
            };
        }
        let missing = |from: &str, among: &str| {
            let mut rest: Vec<&str> = among.lines().collect();
            let lines = from.lines().filter(|line| {
                let at = rest.iter().position(|other| other == line);
                if let Some(at) = at {
                    rest.swap_remove(at);
                }
                at.is_none()
            });
            lines.count() as u64
        };
        Self {
            count: missing(after, before).max(missing(before, after)),
        }
    }
}

/// The facts of one cell.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and no two exclude each other"
)]
pub struct Observation {
    /// The reason why the cell does not apply to this tool.
    pub not_applicable: Option<String>,
    /// `true` if the tool is not offered to a client with these capabilities.
    pub not_offered: bool,
    /// The questions, in order.
    pub asked: Vec<ObservedQuestion>,
    /// The ends of the calls, in their order.
    pub ends: Vec<CallEnd>,
    /// `true` if `elicitation/create` was pushed on 2026-07-28.
    pub pushed_in_rounds: bool,
    /// `true` if the answered question was asked again, with a reason or without.
    pub asked_again: bool,
    /// `true` if it was asked again in the same words.
    pub without_reason: bool,
    /// `true` if another question followed the answered one.
    pub went_on: bool,
    /// `Some(true)` if the call ended while its answer was withheld.
    pub gave_up: Option<bool>,
    /// `Some(false)` if the server did not respond to a request after the call.
    pub responds: Option<bool>,
    /// `Some(false)` if the process had to be told to end.
    pub exits: Option<bool>,
    /// The effect, if there is a command for it.
    pub effect: Option<CallEffects>,
    /// The frames, at most [`Observation::FRAMES`].
    pub frames: Vec<SentFrame>,
    /// The time that the cell took.
    pub took: Duration,
}

impl Observation {
    /// The number of kept frames.
    pub const FRAMES: usize = 40;

    /// Creates the observation of a cell that does not apply.
    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self {
            not_applicable: Some(why.into()),
            ..Self::default()
        }
    }

    /// Returns the last end.
    pub fn end(&self) -> Option<&CallEnd> {
        self.ends.last()
    }
}

/// The questions of a tool, learned by the first call.
#[derive(Clone, Debug)]
pub struct LearnedQuestions {
    /// The revision.
    pub revision: Revision,
    /// The first call.
    pub accept: Observation,
}

impl LearnedQuestions {
    /// Returns the first question with a form, and its position.
    pub(crate) fn form_question(&self) -> Option<(usize, &ObservedQuestion)> {
        let mut all = self.accept.asked.iter().enumerate();
        all.find(|(_, asked)| asked.form().is_some())
    }

    /// Returns each rule that a question has, with the position of the first question that has it.
    pub(crate) fn rules(&self) -> Vec<(&'static str, usize)> {
        let mut found: Vec<(&'static str, usize)> = Vec::new();
        for (at, asked) in self.accept.asked.iter().enumerate() {
            for (rule, _) in asked.violations() {
                if !found.iter().any(|(known, _)| *known == rule) {
                    found.push((rule, at));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::CallEffects;

    #[test]
    fn effects_are_counted_in_lines_or_in_a_number() {
        for (before, after, count) in [
            ("", "", 0),
            ("", "done\n", 1),
            ("done\n", "done\ndone\n", 1),
            ("a\nb\n", "b\nc\nd\n", 2),
            ("a\nb\n", "", 2),
            ("3\n", "5\n", 2),
            (" 7", "7\n", 0),
        ] {
            let found = CallEffects::between(before, after);
            assert_eq!(found.count, count, "{before:?} {after:?}");
        }
    }
}
