//! The conditions under which this gateway alone decides about a question: no other gateway shares the record, and no earlier one left
//! the same question in it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lease::Mark;
use super::{Book, BookFault};
use crate::store::Store as _;

/// The state of other gateways, and of questions that were left in the record.
#[derive(Default)]
pub(super) struct Company {
    /// The mark of the leases when this gateway was found alone; `None` while that is not known, and in company.
    alone: Mutex<Option<Mark>>,
    /// The keys that may be found in the record again (`Row::same`): too much rather than too little.
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

impl Company {
    fn alone(&self) -> MutexGuard<'_, Option<Mark>> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same question may be found in the record from now on. Gives the mark that says so.
    pub(super) fn left_behind(&self, same: &str) -> u64 {
        let mut left = self.left();
        left.last += 1;
        let mark = left.last;
        left.marks.insert(same.to_owned(), mark);
        mark
    }

    /// Returns what says that the same question may be found, if anything does.
    pub(super) fn mark_of(&self, same: &str) -> Option<u64> {
        self.left().marks.get(same).copied()
    }

    /// The record has nothing to find there, unless something was left behind since this mark.
    pub(super) fn nothing_left(&self, same: &str, mark: u64) {
        let mut left = self.left();
        if left.marks.get(same) == Some(&mark) {
            left.marks.remove(same);
        }
    }

    /// Returns whether so many marks have gathered that the record is to be asked.
    fn has_gathered(&self) -> bool {
        let left = self.left();
        left.marks.len() > GATHERED.max(2 * left.known)
    }

    /// The record has just these, and what was left behind since this mark.
    fn are_left(&self, same: Vec<String>, since: u64) {
        let mut left = self.left();
        left.marks.retain(|_, mark| *mark > since);
        for same in same {
            left.marks.entry(same).or_insert(since);
        }
        left.known = left.marks.len();
    }
}

impl Book {
    /// Returns whether the record has nothing to say about this question, and nobody else can say anything about it.
    pub(super) fn is_new(&self, same: &str) -> bool {
        let alone = *self.company.alone();
        let unchanged = |then| self.lease.mark().is_ok_and(|now| now == then);
        alone.is_some_and(unchanged) && self.company.mark_of(same).is_none()
    }

    /// Looks whether other gateways share the record. In company, what this one claimed is for all again; alone, what
    /// others left is remembered. Returns whether others share it, or may have since the last look: a command that answers a
    /// question is there for a moment only.
    pub async fn look_for_company(&self) -> Result<bool, BookFault> {
        let Ok(mark) = self.lease.mark() else {
            *self.company.alone() = None;
            return Ok(true);
        };
        if self.lease.has_company() {
            *self.company.alone() = None;
            self.share_all().await?;
            return Ok(true);
        }
        let known = *self.company.alone() == Some(mark);
        if known && !self.company.has_gathered() {
            return Ok(false);
        }
        let since = self.company.left().last;
        let left = self.store.left_over().await?;
        self.company.are_left(left, since);
        *self.company.alone() = Some(mark);
        Ok(!known)
    }
}
