//! The kinds of calls during which a server may ask.

use std::fmt;
use std::str::FromStr;

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
    /// Returns the kind of call that this method makes; `None` if a server may not ask during it (2026-07-28, MRTR,
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
}

impl fmt::Display for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The word is not a [`CallKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of call; use tool, prompt or resource")]
pub struct UnknownCallKind;

/// Reads the word of [`CallKind::word`].
impl FromStr for CallKind {
    type Err = UnknownCallKind;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        [Self::Tool, Self::Prompt, Self::Resource]
            .into_iter()
            .find(|kind| kind.word() == word)
            .ok_or(UnknownCallKind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_reads_what_it_writes() {
        for kind in [CallKind::Tool, CallKind::Prompt, CallKind::Resource] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("tools/call".parse::<CallKind>(), Err(UnknownCallKind));
    }
}
