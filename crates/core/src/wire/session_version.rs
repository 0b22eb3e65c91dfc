//! The protocol version of a session that a client opens with `initialize`.

use super::Revision;

/// The dated versions of sessions before elicitation, oldest first.
const BEFORE_ELICITATION: [&str; 3] = ["2024-10-07", "2024-11-05", "2025-03-26"];

/// The only version whose messages may be sent in a list (2025-03-26, basic, batching).
const WITH_BATCHES: &str = "2025-03-26";

/// The version of a client's session.
///
/// ```
/// use mcp_elicit_core::wire::{Revision, SessionVersion};
///
/// let older = SessionVersion::for_client("2025-03-26");
/// assert_eq!((older.as_str(), older.rules()), ("2025-03-26", Revision::V2025_06_18));
/// assert_eq!(SessionVersion::for_client("2099-01-01").as_str(), "2025-11-25");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionVersion(&'static str);

impl SessionVersion {
    /// Every version of a session, oldest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        let with_elicitation = Revision::ALL
            .into_iter()
            .filter(|revision| *revision <= Revision::LATEST_PUSHED)
            .map(Revision::as_str);
        BEFORE_ELICITATION
            .into_iter()
            .chain(with_elicitation)
            .map(Self)
    }

    /// Returns the version for a client that requests `asked`: that version, or else the newest that is not newer. A
    /// client that requests a later version, one before all of these, or none in the format of a date, gets the newest
    /// or the oldest (2025-11-25, lifecycle, version negotiation).
    pub fn for_client(asked: &str) -> Self {
        let newest = Self(Revision::LATEST_PUSHED.as_str());
        if !is_date(asked) {
            return newest;
        }
        let not_newer = Self::all().rfind(|version| version.0 <= asked);
        not_newer.unwrap_or(Self(BEFORE_ELICITATION[0]))
    }

    /// Returns the version as it is written on the wire.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Returns the revision whose rules apply to the questions of such a session: the first one that has elicitation
    /// for all versions before it.
    pub fn rules(self) -> Revision {
        self.0.parse().unwrap_or(Revision::V2025_06_18)
    }

    /// Returns `true` if the client may send several messages in one list.
    pub fn has_batches(self) -> bool {
        self.0 == WITH_BATCHES
    }
}

/// Returns `true` for a text in the format of a date.
fn is_date(text: &str) -> bool {
    let digits_and_dashes = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(digits_and_dashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_its_version_or_the_newest_that_is_not_newer() {
        for (asked, given) in [
            ("2024-10-07", "2024-10-07"),
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("2099-12-31", "2025-11-25"),
            ("2025-07-01", "2025-06-18"),
            ("2025-01-01", "2024-11-05"),
            ("2023-01-01", "2024-10-07"),
            ("DRAFT-2027", "2025-11-25"),
            ("1.0", "2025-11-25"),
            ("", "2025-11-25"),
            ("2025-3-26x", "2025-11-25"),
        ] {
            assert_eq!(SessionVersion::for_client(asked).as_str(), given, "{asked}");
        }
        assert!(SessionVersion::all().is_sorted());
    }

    #[test]
    fn only_one_version_has_batches() {
        let with: Vec<_> = SessionVersion::all()
            .filter(|one| one.has_batches())
            .collect();
        assert_eq!(with, [SessionVersion("2025-03-26")]);
    }
}
