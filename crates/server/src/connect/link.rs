//! The sealed content of a link: only this server can read, change or create one.

#[cfg(feature = "oauth")]
use mcp_elicit_core::text::beginning;
use serde::{Deserialize, Serialize};

use crate::seal::{self, AssociatedData, Keys, SealError};

/// One visit that the server asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LinkToken {
    #[serde(rename = "i")]
    pub(super) id: String,
    #[serde(rename = "p")]
    pub(super) principal: String,
    #[serde(rename = "w")]
    pub(super) purpose: String,
    #[serde(rename = "m")]
    pub(super) message: String,
    #[serde(rename = "x")]
    pub(super) until_ms: u64,
}

impl LinkToken {
    pub(super) fn new(
        principal: String,
        purpose: String,
        message: String,
        until_ms: u64,
    ) -> Result<Self, SealError> {
        Ok(Self {
            id: seal::unguessable()?,
            principal,
            purpose,
            message,
            until_ms,
        })
    }

    pub(super) fn seal(&self, keys: &Keys) -> Result<String, SealError> {
        seal::seal_json(keys, &bound(), self)
    }

    /// Returns the token for a cookie, with the message cut.
    #[cfg(feature = "oauth")]
    pub(super) fn cut(&self) -> Self {
        const MOST: usize = 600;
        let mut ticket = self.clone();
        if ticket.message.len() > MOST {
            ticket
                .message
                .truncate(beginning(&ticket.message, MOST).len());
            ticket.message.push('…');
        }
        ticket
    }

    pub(super) fn open(keys: &Keys, sealed: &str, now_ms: u64) -> Result<Self, SealError> {
        let ticket: Self = seal::open_json(keys, &bound(), sealed)?;
        if now_ms >= ticket.until_ms {
            return Err(SealError::Expired);
        }
        Ok(ticket)
    }
}

/// Binds tokens to links, so that they differ from a `requestState` sealed with the same keys.
fn bound() -> AssociatedData {
    AssociatedData::outside_calls("", "connect")
}
