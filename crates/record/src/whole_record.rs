//! The limits on the whole record: its size, and its open questions of all callers. They refuse only new questions:
//! answers and deliveries are always written.
//!
//! Questions count as they are asked. The store is measured again a minute after the last time, its open questions
//! also when their limit seems to be reached.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::lifecycle::Timestamp;

use crate::store::{RecordStore as _, Row};
use crate::stored_bytes::StorageLimits;
use crate::{Record, RecordError};

/// The time after which the store is measured again, in milliseconds.
const AGAIN: u64 = 60 * 1_000;
/// The same while the record has its most bytes.
const AGAIN_WHEN_FULL: u64 = 5 * 1_000;

/// A reached limit of the whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WholeRecordLimit {
    /// `max-record`: its size, in bytes.
    #[error("the record has its most bytes, {0} (`max-record`)")]
    Bytes(u64),
    /// `max-open`: its open questions.
    #[error("{0} questions of all callers wait for an answer already (`max-open`)")]
    Open(u64),
}

/// The record as it was measured, with what was added since.
#[derive(Debug, Default)]
pub(crate) struct WholeRecord {
    measured: Mutex<Measured>,
    /// Locked while the store is measured.
    measuring: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    bytes: u64,
    open: u64,
    /// `None` until the store was first measured.
    at: Option<Timestamp>,
    /// The number of measurements.
    count: u64,
    /// The bytes and the questions ever added: those added during a measurement may not be in it.
    added: [u64; 2],
}

impl Measured {
    /// Returns `true` if this was measured in the last milliseconds.
    fn is_within(&self, millis: u64, now: Timestamp) -> bool {
        self.at
            .is_some_and(|at| now.as_millis().abs_diff(at.as_millis()) < millis)
    }

    /// Adds a question if there is room.
    fn add(&mut self, bytes: u64, limits: StorageLimits) -> Result<(), WholeRecordLimit> {
        if let Some(most) = limits.of_record.filter(|most| self.bytes + bytes > *most) {
            return Err(WholeRecordLimit::Bytes(most));
        }
        if let Some(most) = limits.open.filter(|most| self.open >= *most) {
            return Err(WholeRecordLimit::Open(most));
        }
        self.bytes += bytes;
        self.open += 1;
        self.added = [self.added[0] + bytes, self.added[1] + 1];
        Ok(())
    }
}

impl WholeRecord {
    /// Forgets the measurement, which was made for other limits.
    pub(crate) fn measure_anew(&self) {
        self.measured().at = None;
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// Returns `true` if the whole record certainly has room for a question, which counts from now on.
    pub(crate) fn admit_to_whole_at_once(&self, row: &Row) -> bool {
        let limits = self.limits().storage;
        if limits.of_record.is_none() && limits.open.is_none() {
            return true;
        }
        let mut measured = self.whole.measured();
        measured.is_within(AGAIN, self.now()) && measured.add(row.stored_bytes(), limits).is_ok()
    }

    /// Adds a question like [`Self::admit_to_whole_at_once`], and measures the store if necessary.
    pub(crate) async fn admit_to_whole(&self, row: &Row) -> Result<(), RecordError> {
        if self.admit_to_whole_at_once(row) {
            return Ok(());
        }
        let before = self.whole.measured().count;
        let measuring = self.whole.measuring.lock().await;
        let limits = self.limits().storage;
        let bytes = row.stored_bytes();
        let known = *self.whole.measured();
        let now = self.now();
        // Another question that waited has measured.
        let is_known = known.count != before && known.is_within(AGAIN, now);
        let is_over = |most| known.bytes + bytes > most;
        let is_still_full =
            limits.of_record.is_some_and(is_over) && known.is_within(AGAIN_WHEN_FULL, now);
        if !is_known && !is_still_full {
            self.measure(limits).await?;
        }
        drop(measuring);
        let added = self.whole.measured().add(bytes, limits);
        added.map_err(RecordError::Full)
    }

    async fn measure(&self, limits: StorageLimits) -> Result<(), RecordError> {
        let before = self.whole.measured().added;
        let bytes = match limits.of_record {
            Some(_) => self.store.size().await?.map_or(0, |size| size.used),
            None => 0,
        };
        let open = match limits.open {
            Some(_) => u64::try_from(self.store.waiting().await?).unwrap_or(u64::MAX),
            None => 0,
        };
        let mut measured = self.whole.measured();
        let added = measured.added;
        *measured = Measured {
            bytes: bytes + (added[0] - before[0]),
            open: open + (added[1] - before[1]),
            at: Some(self.now()),
            count: measured.count + 1,
            added,
        };
        Ok(())
    }
}
