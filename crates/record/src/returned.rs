//! Questions whose clients have come back for them to this gateway, with a state that another gateway gave them.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::Record;
use crate::store::Row;

/// The most questions that are remembered.
const MOST: usize = 4_096;

/// The questions that a call here may take over from a gateway that runs.
#[derive(Default)]
pub(super) struct ReturnedQuestions(Mutex<LastIds>);

/// The last ids, the oldest first.
#[derive(Default)]
struct LastIds {
    in_order: VecDeque<String>,
    all: HashSet<String>,
}

impl ReturnedQuestions {
    fn add(&self, id: &str) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.all.insert(id.to_owned()) {
            return;
        }
        last.in_order.push_back(id.to_owned());
        if last.in_order.len() > MOST
            && let Some(oldest) = last.in_order.pop_front()
        {
            last.all.remove(&oldest);
        }
    }

    fn has(&self, id: &str) -> bool {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.all.contains(id)
    }
}

impl Record {
    /// Records that the client of these questions has come back for them to this gateway: the same call takes them over when
    /// it asks them here, even from a gateway that runs. A gateway proves this with a state that it gave this client.
    pub fn client_returned(&self, ids: &[String]) {
        for id in ids {
            self.returned.add(id);
        }
    }

    /// Returns `true` if a call of another running gateway has this question, and its client has not come back here.
    pub(super) fn is_elsewhere(&self, row: &Row) -> bool {
        !self.lock_file.is_mine(&row.owner)
            && self.lock_file.is_held(&row.owner)
            && !self.has_returned(row)
    }

    /// Returns `true` if the client of this question has come back here.
    pub(super) fn has_returned(&self, row: &Row) -> bool {
        !row.exclusive && self.returned.has(&row.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_questions_are_remembered() {
        let returned = ReturnedQuestions::default();
        for number in 0..=MOST {
            returned.add(&number.to_string());
            returned.add(&number.to_string());
        }
        assert!(!returned.has("0"));
        assert!(returned.has("1") && returned.has(&MOST.to_string()));
    }
}
