//! Values that count once, in every process that shares the record, and after a restart.

use mcp_elicit_core::lifecycle::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::store::{RecordStore as _, UsedValue};
use crate::{Record, RecordError};

/// A kind of values that count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsedKind {
    /// A signature of a request of Slack.
    SlackSignature,
    /// A login that has ended at the provider.
    Login,
}

impl UsedKind {
    /// Returns the word that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SlackSignature => "slack",
            Self::Login => "login",
        }
    }
}

impl Record {
    /// Stores that a value was used, until that time. Returns `false` if it was used before, or if so many values of
    /// its kind are stored that there is no room. The use survives a loss of power.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn use_once(
        &self,
        kind: UsedKind,
        value: &[u8],
        until: Timestamp,
    ) -> Result<bool, RecordError> {
        let used = UsedValue {
            kind,
            digest: digest(value),
            until,
        };
        Ok(self.store.use_once(used, self.now()).await?)
    }

    /// Returns `true` if a value was used.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn is_used(&self, kind: UsedKind, value: &[u8]) -> Result<bool, RecordError> {
        Ok(self.store.is_used(kind, digest(value)).await?)
    }
}

fn digest(value: &[u8]) -> [u8; 32] {
    Sha256::digest(value).into()
}
