//! The limits on the bytes that questions keep in the record: those of each authenticated caller, and those of all.
//!
//! Open questions and ended ones count alike, until they are deleted. Questions are added here as they are asked; the
//! store adds up its rows at the start, from time to time, and when a limit is reached. Of several gateways with one
//! record, each sees the others' questions when it adds up again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::lifecycle::Timestamp;

use crate::principal::Principal;
use crate::store::{Body, Row, Store as _};
use crate::{Record, RecordError};

/// The limits, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageLimits {
    /// `caller-question-bytes`: all questions of one authenticated caller.
    pub of_caller: u64,
    /// `all-question-bytes`: all questions.
    pub of_all: u64,
    /// `argument-bytes`: the arguments stored with one question. Larger ones are not stored, and not shown.
    pub arguments: usize,
}

impl StorageLimits {
    /// The limits without settings.
    pub const DEFAULT: Self = Self {
        of_caller: 64 * 1024 * 1024,
        of_all: 1024 * 1024 * 1024,
        arguments: 1024 * 1024,
    };
}

impl Default for StorageLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The least bytes of a row besides its arguments, its answer and its question: names, times and entries of the audit,
/// roughly. A row with longer names counts them.
pub(crate) const ROW: u64 = 1_024;
/// The time after which the store adds up its rows again, in milliseconds.
const AGAIN: u64 = 10 * 60 * 1_000;
/// The same when a limit is reached. Until then, questions of that caller are refused without looking.
const AGAIN_WHEN_FULL: u64 = 5 * 1_000;

impl Row {
    /// Returns the bytes that the row keeps in the record.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let sealed = [&self.arguments, &self.content];
        let sealed: usize = sealed.into_iter().flatten().map(Vec::len).sum();
        let params = self.params.as_ref().map_or(0, String::len);
        let row = self.body.text_bytes().max(ROW);
        row.saturating_add(u64::try_from(sealed + params).unwrap_or(u64::MAX))
    }
}

impl Body {
    /// Returns the bytes of its texts, most of which are written by the server or the client.
    fn text_bytes(&self) -> u64 {
        let perhaps = [
            &self.address,
            &self.elicitation_id,
            &self.server_info,
            &self.client_info,
            &self.target,
            &self.unchecked,
        ];
        let lists = [&self.others, &self.fields, &self.cautions];
        let texts = [&self.server, &self.message, &self.principal].into_iter();
        let texts = texts.chain(perhaps.into_iter().flatten());
        let texts = texts.chain(lists.into_iter().flatten());
        let bytes: usize = texts.map(String::len).sum();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// The bytes as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct StoredBytes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    all: u64,
    by_caller: HashMap<String, u64>,
    /// Bytes ever added, to find those that were added while the store added up.
    added: u64,
    /// The time when the store last added up.
    at: Option<Timestamp>,
}

/// A reached limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageLimit {
    /// The name of the setting.
    pub name: &'static str,
    /// The most bytes.
    pub most: u64,
}

impl StoredBytes {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a question if there is room.
    fn add(&self, caller: &str, bytes: u64, limits: StorageLimits) -> Result<(), StorageLimit> {
        let mut known = self.known();
        let is_over = |held: u64, most| held.saturating_add(bytes) > most;
        if is_over(known.all, limits.of_all) {
            return Err(StorageLimit {
                name: "all-question-bytes",
                most: limits.of_all,
            });
        }
        let own = known.by_caller.get(caller).copied().unwrap_or(0);
        let is_verified = Principal::parse(caller).is_some_and(|caller| caller.is_verified());
        if is_verified && is_over(own, limits.of_caller) {
            return Err(StorageLimit {
                name: "caller-question-bytes",
                most: limits.of_caller,
            });
        }
        known.all += bytes;
        known.added += bytes;
        *known.by_caller.entry(caller.to_owned()).or_default() += bytes;
        Ok(())
    }

    /// Returns `true` if the store should add up again.
    fn is_due(&self, now: Timestamp, is_full: bool) -> bool {
        let after = if is_full { AGAIN_WHEN_FULL } else { AGAIN };
        let at = self.known().at;
        at.is_none_or(|at| {
            let since = now.as_millis().abs_diff(at.as_millis());
            since >= after
        })
    }

    /// Sets the bytes that the store has added up since `added_before`. What was added meanwhile may count twice until
    /// the next time, and never not at all.
    fn set(&self, stored: Vec<(String, u64)>, added_before: u64, now: Timestamp) {
        let mut known = self.known();
        let meanwhile = known.added - added_before;
        let sum = stored.iter().map(|(_, bytes)| bytes).sum::<u64>();
        known.all = sum.saturating_add(meanwhile);
        known.by_caller = stored.into_iter().collect();
        if meanwhile > 0 {
            for bytes in known.by_caller.values_mut() {
                *bytes = bytes.saturating_add(meanwhile);
            }
        }
        known.at = Some(now);
    }
}

impl Record {
    /// Sets the limits on the bytes of questions.
    #[must_use]
    pub fn with_storage_limits(mut self, limits: StorageLimits) -> Self {
        self.storage_limits = limits;
        self
    }

    /// Returns the most bytes of arguments that are stored with a question.
    pub(crate) fn most_arguments(&self) -> usize {
        self.storage_limits.arguments
    }

    /// Adds the bytes of a question if there is certainly room.
    pub(crate) fn admit_bytes_at_once(&self, row: &Row) -> Result<(), StorageLimit> {
        let (caller, bytes) = (&row.body.principal, row.stored_bytes());
        self.stored_bytes.add(caller, bytes, self.storage_limits)
    }

    /// Adds the bytes of a question like [`Self::admit_bytes_at_once`], asking the store if a limit seems to be reached.
    pub(crate) async fn admit_bytes(&self, row: &Row) -> Result<(), RecordError> {
        if self.admit_bytes_at_once(row).is_ok() {
            return Ok(());
        }
        if self.stored_bytes.is_due(self.now(), true) {
            self.add_up().await?;
        }
        self.admit_bytes_at_once(row).map_err(RecordError::TooLarge)
    }

    /// Adds up the stored bytes if that is due.
    pub(crate) async fn add_up_when_due(&self) -> Result<(), RecordError> {
        if self.stored_bytes.is_due(self.now(), false) {
            self.add_up().await?;
        }
        Ok(())
    }

    async fn add_up(&self) -> Result<(), RecordError> {
        let added = self.stored_bytes.known().added;
        let stored = self.store.stored_bytes().await?;
        self.stored_bytes.set(stored, added, self.now());
        Ok(())
    }
}
