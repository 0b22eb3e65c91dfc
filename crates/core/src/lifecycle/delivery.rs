//! The delivery of an answer, after a person gave it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// The number of times that an asker may refuse the same answer before it lapses.
pub(super) const MAX_REFUSALS: u8 = 2;

/// The place that the answer to a question has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// It was given, and is kept for the call that asked or the same call made again.
    Waiting,
    /// It was sent to the asker, and nothing says that the asker did not accept it.
    Delivered,
    /// The asker refused it; it is kept for the same call made again.
    Failed,
    /// It was not delivered and never will be; its value is erased.
    Lapsed,
    /// It was sent, and it is unknown whether the server has it; it is not sent again.
    InDoubt,
}

impl Delivery {
    /// Every word.
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

/// Why an answer was not delivered and never will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lapse {
    /// No call came for it in time.
    #[serde(rename = "kept-too-long")]
    Expired,
    /// The asker refused it twice.
    RefusedTwice,
    /// No call can come for it: it is not known which call asked.
    NoCall,
}

impl Lapse {
    /// Returns the reason in words for a person.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "no call came for the answer in time",
            Self::RefusedTwice => "the server refused the answer twice",
            Self::NoCall => "no call can come for the answer",
        }
    }
}

/// The last time that the asker refused the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RefusedDelivery {
    pub(super) times: u8,
    pub(super) at: Timestamp,
    pub(super) why: String,
}

/// When and why the answer lapsed.
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
