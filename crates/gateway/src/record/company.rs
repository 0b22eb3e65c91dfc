//! Whether this gateway may be sure of a question by itself: no other gateway shares the record, and no earlier one left
//! the same question in it.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lease::Mark;
use super::{Book, BookFault};
use crate::store::Store as _;

/// What is known of other gateways, and of what was left in the record.
#[derive(Default)]
pub(super) struct Company {
    /// The mark of the leases when this gateway was found alone; `None` while that is not known, and in company.
    alone: Mutex<Option<Mark>>,
    /// What may be found in the record again (`Row::same`): too much rather than too little.
    left: Mutex<HashSet<String>>,
}

impl Company {
    fn alone(&self) -> MutexGuard<'_, Option<Mark>> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, HashSet<String>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same question may be found in the record from now on.
    pub(super) fn left_behind(&self, same: &str) {
        self.left().insert(same.to_owned());
    }

    /// The record is about to be looked into for the same question.
    pub(super) fn looked_for(&self, same: &str) {
        self.left().remove(same);
    }
}

impl Book {
    /// Whether the record has nothing to say about this question, and nobody else can say anything about it.
    pub(super) fn is_new(&self, same: &str) -> bool {
        let alone = *self.company.alone();
        let unchanged = |then| self.lease.mark().is_ok_and(|now| now == then);
        alone.is_some_and(unchanged) && !self.company.left().contains(same)
    }

    /// Looks whether other gateways share the record. In company, what this one claimed is for all again; alone, what
    /// others left is remembered.
    pub async fn look_for_company(&self) -> Result<(), BookFault> {
        let Ok(mark) = self.lease.mark() else {
            *self.company.alone() = None;
            return Ok(());
        };
        if self.lease.has_company() {
            *self.company.alone() = None;
            return self.share_all().await;
        }
        if *self.company.alone() == Some(mark) {
            return Ok(());
        }
        let left = self.store.left_over().await?;
        self.company.left().extend(left);
        *self.company.alone() = Some(mark);
        Ok(())
    }
}
