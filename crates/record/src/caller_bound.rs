//! The bound on the open questions of one caller who has proven who they are, over all sessions: nobody else's are lost among them.
//!
//! Questions are counted here as they are asked. The store counts when the number here reaches the bound, and when nothing is known here. Of
//! several gateways with one store, each sees what the others have added once it counts again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::known::KnownRow;
use crate::principal::Principal;
use crate::store::Store as _;
use crate::{Record, RecordError};

/// The most open questions of one caller.
pub const MAX_OPEN_OF_CALLER: usize = 1_000;

/// The most callers of whom a number is known; it is forgotten of all when there are more.
const MOST_CALLERS: usize = 10_000;

/// The numbers of open questions, by caller. None is too low, but for what other gateways have added.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<String, Known>>);

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    at_most: usize,
    /// The number of questions that were ever added: those added during a count may not be in it.
    added: usize,
}

impl OpenQuestions {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one of this caller, where it is known that there is room.
    fn add(&self, caller: &str) -> bool {
        match self.all().get_mut(caller) {
            Some(known) if known.at_most < MAX_OPEN_OF_CALLER => {
                known.at_most += 1;
                known.added += 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Returns the number to be given to [`Self::counted`].
    fn begin_count(&self, caller: &str) -> usize {
        self.all().get(caller).map_or(0, |known| known.added)
    }

    /// Notes that so many were open at some time since the count was begun.
    fn counted(&self, caller: &str, open: usize, begun_at: usize) {
        let mut all = self.all();
        if all.len() >= MOST_CALLERS && !all.contains_key(caller) {
            all.clear();
        }
        let known = all.entry(caller.to_owned()).or_default();
        known.at_most = open + known.added.saturating_sub(begun_at);
    }
}

impl Record {
    /// Adds a question of this caller, where it is known here that there is room, or nothing bounds the caller.
    pub(crate) fn admit_at_once(&self, caller: &str) -> bool {
        !is_bounded(caller) || self.open_questions.add(caller)
    }

    /// The same with a look at the store.
    pub(crate) async fn admit(&self, caller: &str) -> Result<(), RecordError> {
        if self.admit_at_once(caller) {
            return Ok(());
        }
        let begun_at = self.open_questions.begin_count(caller);
        // Before the store counts: one that is written meanwhile may count twice, and never not at all.
        let unwritten = self.unwritten_of(caller);
        let written = self.store.waiting_of(caller.to_owned()).await?;
        let open = unwritten + written;
        self.open_questions.counted(caller, open, begun_at);
        if self.open_questions.add(caller) {
            Ok(())
        } else {
            let limit = MAX_OPEN_OF_CALLER;
            Err(RecordError::TooManyOpen { limit })
        }
    }

    /// The number of open questions of this caller that the store was not given yet.
    fn unwritten_of(&self, caller: &str) -> usize {
        let is_one = |known: &KnownRow| {
            known.written.is_none()
                && known.row.exclusive
                && known.row.lifecycle.is_open()
                && known.row.body.principal == caller
        };
        let live = self.live();
        let known = live.values().filter_map(|live| live.known.as_deref());
        known.filter(|known| is_one(known)).count()
    }
}

fn is_bounded(caller: &str) -> bool {
    Principal::parse(caller).is_some_and(|caller| caller.is_verified())
}
