//! The kinds of calls during which a server may ask.

use serde::{Deserialize, Serialize};

/// The kinds of calls during which a server may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// `tools/call`
    Tool,
    /// `prompts/get`
    Prompt,
    /// `resources/read`
    Resource,
}

impl CallKind {
    /// Returns the kind of call that this method makes; `None` when a server may not ask during it (2026-07-28, MRTR,
    /// supported requests).
    pub fn of_method(method: &str) -> Option<Self> {
        match method {
            "tools/call" => Some(Self::Tool),
            "prompts/get" => Some(Self::Prompt),
            "resources/read" => Some(Self::Resource),
            _ => None,
        }
    }

    /// Returns the word for people: `tool`, `prompt` or `resource`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// Returns the kind of this [`CallKind::word`].
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Tool, Self::Prompt, Self::Resource]
            .into_iter()
            .find(|kind| kind.word() == word)
    }
}
