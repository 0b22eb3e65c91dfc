//! The conditions under which this gateway alone decides about a question: no other gateway shares the record, and no
//! earlier one left the same question in it.

pub(crate) mod lock_file;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::lock_file::Mark;
use super::{Record, RecordError};
use crate::store::RecordStore as _;

/// The state of other gateways, and of questions left in the record.
#[derive(Default)]
pub(super) struct Presence {
    /// The mark of the lock files when this gateway was found alone; `None` while that is unknown, and if others run.
    alone: Mutex<Option<Mark>>,
    /// `true` if other gateways shared the record when they were last looked for.
    shared: AtomicBool,
    /// `true` from the time at which a change of others is noticed, until it is read.
    unread: AtomicBool,
    /// The deduplication keys that the record may have (`Row::binding`): too many rather than too few.
    left: Mutex<LeftKeys>,
}

/// A set of keys, each with the mark at which it was last known.
#[derive(Default)]
struct LeftKeys {
    marks: HashMap<String, u64>,
    last: u64,
    /// The number of keys when the record was last queried.
    known: usize,
}

/// The number of keys that may accumulate before the record is queried for those still in use.
const GATHERED: usize = 4_096;

impl Presence {
    fn alone(&self) -> MutexGuard<'_, Option<Mark>> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, LeftKeys> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if other gateways shared the record when they were last looked for.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }

    /// Returns `true` if a change of others is not read yet.
    pub(super) fn has_unread(&self, has_changed: bool) -> bool {
        self.unread.fetch_or(has_changed, Ordering::AcqRel) || has_changed
    }

    /// Records that all changes of others that were noticed are read.
    pub(super) fn has_read(&self) {
        self.unread.store(false, Ordering::Release);
    }

    /// Records that the same question may be found in the record from now on. Returns the mark.
    pub(super) fn may_hold(&self, binding: &str) -> u64 {
        let mut left = self.left();
        left.last += 1;
        let mark = left.last;
        left.marks.insert(binding.to_owned(), mark);
        mark
    }

    /// Returns the mark at which the same question was last known to be findable, if any.
    pub(super) fn mark_of(&self, binding: &str) -> Option<u64> {
        self.left().marks.get(binding).copied()
    }

    /// Records that the record has no such question, unless one was left since this mark.
    pub(super) fn holds_none(&self, binding: &str, mark: u64) {
        let mut left = self.left();
        if left.marks.get(binding) == Some(&mark) {
            left.marks.remove(binding);
        }
    }

    /// Returns `true` if enough keys have accumulated to query the record.
    fn has_gathered(&self) -> bool {
        let left = self.left();
        left.marks.len() > GATHERED.max(2 * left.known)
    }

    /// Records that the record has exactly these questions, and those left since this mark.
    fn holds_only(&self, bindings: Vec<String>, since: u64) {
        let mut left = self.left();
        left.marks.retain(|_, mark| *mark > since);
        for binding in bindings {
            left.marks.entry(binding).or_insert(since);
        }
        left.known = left.marks.len();
    }
}

impl Record {
    /// Returns `true` if the record has no such question, and no other gateway can have changed that.
    pub(super) fn is_new(&self, binding: &str) -> bool {
        let alone = *self.presence.alone();
        let unchanged = |then| self.lock_file.mark().is_ok_and(|now| now == then);
        alone.is_some_and(unchanged) && self.presence.mark_of(binding).is_none()
    }

    /// Returns `true` if other gateways share the record, or may have since the last check, such as a command that
    /// answers a question and exits. If others share it, exclusive rows of this gateway become shared; otherwise the
    /// rows that others left are remembered.
    pub async fn check_presence(&self) -> Result<bool, RecordError> {
        let has_others = self.lock_file.has_others();
        self.presence.shared.store(has_others, Ordering::Release);
        let Ok(mark) = self.lock_file.mark() else {
            *self.presence.alone() = None;
            return Ok(true);
        };
        if has_others {
            *self.presence.alone() = None;
            self.share_all().await?;
            return Ok(true);
        }
        let known = *self.presence.alone() == Some(mark);
        if known && !self.presence.has_gathered() {
            return Ok(false);
        }
        let since = self.presence.left().last;
        let left = self.store.left_over().await?;
        self.presence.holds_only(left, since);
        *self.presence.alone() = Some(mark);
        Ok(!known)
    }
}
