//! The conditions under which this gateway alone decides about a question: no other gateway shares the record, and no earlier one left
//! the same question in it.

pub(crate) mod lock_file;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::lock_file::Mark;
use super::{Record, RecordError};
use crate::store::Store as _;

/// The state of other gateways, and of questions that were left in the record.
#[derive(Default)]
pub(super) struct Presence {
    /// The mark of the lock files when this gateway was found alone; `None` while that is not known, and in company.
    alone: Mutex<Option<Mark>>,
    /// The keys that may be found in the record again (`Row::binding`): too much rather than too little.
    left: Mutex<Left>,
}

/// A key that may be found again, and the time at which that was last known.
#[derive(Default)]
struct Left {
    marks: HashMap<String, u64>,
    last: u64,
    /// The number of marks when the record was last asked.
    known: usize,
}

/// The number of marks that may gather before the record is asked which are still in use.
const GATHERED: usize = 4_096;

impl Presence {
    fn alone(&self) -> MutexGuard<'_, Option<Mark>> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same question may be found in the record from now on. Gives the mark that says so.
    pub(super) fn may_hold(&self, binding: &str) -> u64 {
        let mut left = self.left();
        left.last += 1;
        let mark = left.last;
        left.marks.insert(binding.to_owned(), mark);
        mark
    }

    /// Returns what says that the same question may be found, if anything does.
    pub(super) fn mark_of(&self, binding: &str) -> Option<u64> {
        self.left().marks.get(binding).copied()
    }

    /// The record has nothing to find there, unless something was left behind since this mark.
    pub(super) fn holds_none(&self, binding: &str, mark: u64) {
        let mut left = self.left();
        if left.marks.get(binding) == Some(&mark) {
            left.marks.remove(binding);
        }
    }

    /// Returns `true` if so many marks have gathered that the record is to be asked.
    fn has_gathered(&self) -> bool {
        let left = self.left();
        left.marks.len() > GATHERED.max(2 * left.known)
    }

    /// The record has just these, and what was left behind since this mark.
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
    /// Returns `true` if the record has nothing to say about this question, and nobody else can say anything about it.
    pub(super) fn is_new(&self, binding: &str) -> bool {
        let alone = *self.presence.alone();
        let unchanged = |then| self.lock_file.mark().is_ok_and(|now| now == then);
        alone.is_some_and(unchanged) && self.presence.mark_of(binding).is_none()
    }

    /// Returns `true` if other gateways share the record, or may have since the last check: a command that answers a question is
    /// there for a moment only. Where others share it, rows that this one claimed are for all again; where none does, the rows that
    /// others left are remembered.
    pub async fn check_presence(&self) -> Result<bool, RecordError> {
        let Ok(mark) = self.lock_file.mark() else {
            *self.presence.alone() = None;
            return Ok(true);
        };
        if self.lock_file.has_others() {
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
