//! The delivery of a person's answer.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// The number of times that the server may refuse the same answer before it lapses.
pub(super) const MAX_REFUSALS: u8 = 2;

/// The delivery state of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// Given, and kept for the call that asked or the same call made again.
    Waiting,
    /// Sent to the server, which has not refused it.
    Delivered,
    /// Refused by the server; kept for the same call made again.
    Failed,
    /// Never delivered; its value is erased.
    Lapsed,
    /// Sent, and it is unknown whether the server has it; it is not sent again.
    InDoubt,
}

impl Delivery {
    /// Every delivery state.
    pub const ALL: [Self; 5] = [
        Self::Waiting,
        Self::Delivered,
        Self::Failed,
        Self::Lapsed,
        Self::InDoubt,
    ];

    /// Returns the word in records and on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Lapsed => "lapsed",
            Self::InDoubt => "in-doubt",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason why an answer was never delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lapse {
    /// No call requested it in time.
    #[serde(rename = "kept-too-long")]
    Expired,
    /// The server refused it twice.
    RefusedTwice,
    /// No call can request it, because the call that asked is unknown.
    NoCall,
    /// The record was restored from a backup, and the answer may have been delivered after the backup was made.
    Restored,
}

impl Lapse {
    /// Returns the reason in words for a person.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "no call came for the answer in time",
            Self::RefusedTwice => "the server refused the answer twice",
            Self::NoCall => "no call can come for the answer",
            Self::Restored => {
                "the record was restored from a backup, and the answer may have been delivered since"
            }
        }
    }
}

/// The last time that the server refused the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RefusedDelivery {
    pub(super) times: u8,
    pub(super) at: Timestamp,
    pub(super) why: String,
}

/// The time and the reason of the lapse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lapsed {
    pub(super) at: Timestamp,
    pub(super) why: Lapse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_the_one_that_is_written() {
        for delivery in Delivery::ALL {
            assert_eq!(serde_json::to_value(delivery).unwrap(), delivery.as_str());
        }
    }
}
