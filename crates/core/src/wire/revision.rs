//! The dated protocol revisions that have elicitation, and their two eras.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A dated revision of the Model Context Protocol that has elicitation. Ordered by date.
///
/// Revisions before 2025-06-18 have no elicitation and so no variant here: reading one is [`UnknownRevision`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Revision {
    /// The first revision with elicitation: form only, no `mode`.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// Adds url mode, defaults everywhere, titled and several choices.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// Stateless: a question is a result, and its answer comes with the retry.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 3] = [Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision of the pushed era, which `initialize` offers first.
    pub const LATEST_PUSHED: Self = Self::V2025_11_25;

    /// Returns the revision as it is written on the wire, such as `2025-11-25`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the era of this revision.
    pub const fn era(self) -> Era {
        match self {
            Self::V2025_06_18 | Self::V2025_11_25 => Era::Pushed,
            Self::V2026_07_28 => Era::Rounds,
        }
    }

    /// Returns `true` if this revision has this mode. Url mode came with 2025-11-25.
    pub const fn has_mode(self, mode: Mode) -> bool {
        match (self, mode) {
            (_, Mode::Form) | (Self::V2025_11_25 | Self::V2026_07_28, Mode::Url) => true,
            (Self::V2025_06_18, Mode::Url) => false,
        }
    }

    /// Returns `true` if a form may ask for several choices (`"type": "array"`), which came with 2025-11-25.
    pub const fn has_several_choices(self) -> bool {
        match self {
            Self::V2025_06_18 => false,
            Self::V2025_11_25 | Self::V2026_07_28 => true,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
            .ok_or(UnknownRevision)
    }
}

/// The text is not a revision that has elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a protocol revision with elicitation; known are 2025-06-18, 2025-11-25 and 2026-07-28"
)]
pub struct UnknownRevision;

/// The way in which servers ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// The server pushes a request `elicitation/create` and waits for its response (2025-06-18, 2025-11-25).
    Pushed,
    /// The server returns `input_required` and the client retries with the answers (2026-07-28).
    Rounds,
}

/// The kind of question: elicitation's `mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A form whose answers pass through the client.
    Form,
    /// A link to visit, whose outcome the client never sees.
    Url,
}

impl Mode {
    /// Returns the mode as it is written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Url => "url",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads the word of [`Mode::as_str`].
impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Form, Self::Url]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or(UnknownMode)
    }
}

/// The text is not a [`Mode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode; use form or url")]
pub struct UnknownMode;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_reads_what_it_writes() {
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
            let json = serde_json::to_string(&revision).unwrap();
            assert_eq!(json, format!("\"{revision}\""));
            assert_eq!(serde_json::from_str::<Revision>(&json).unwrap(), revision);
        }
        assert!(Revision::ALL.is_sorted());
        assert_eq!(Revision::ALL.last(), Some(&Revision::LATEST));
    }

    #[test]
    fn a_mode_reads_what_it_writes() {
        for mode in [Mode::Form, Mode::Url] {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        assert_eq!("Form".parse::<Mode>(), Err(UnknownMode));
    }

    #[test]
    fn a_revision_without_elicitation_is_unknown() {
        assert_eq!("2025-03-26".parse::<Revision>(), Err(UnknownRevision));
        assert_eq!("".parse::<Revision>(), Err(UnknownRevision));
    }
}
