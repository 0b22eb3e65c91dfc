//! The bound on the open questions of one caller who has proven who they are, over all sessions: nobody else's are lost among them.
//!
//! The store counts them when the number here says that there may be too many, and when nothing is known here. Of several gateways with one
//! store, each sees what the others have added once it counts again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;

use crate::principal::Principal;
use crate::store::Store as _;
use crate::{Record, RecordError};

/// The most open questions of one caller.
pub const MAX_OPEN_OF_CALLER: usize = 2_000;

/// The most callers of whom a number is known; it is forgotten of all when there are more.
const MOST_CALLERS: usize = 10_000;
/// The time for which a caller who has too many is not counted again.
const PAUSE: Duration = Duration::from_secs(1);

/// The numbers of open questions, by caller. None is too low, but for what other gateways have added.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<String, Known>>);

#[derive(Clone, Copy, Debug)]
struct Known {
    at_most: usize,
    counted_at: Timestamp,
}

impl OpenQuestions {
    /// Adds one of this caller, where it is known that there is room.
    fn add(&self, caller: &str) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(caller) {
            Some(known) if known.at_most < MAX_OPEN_OF_CALLER => {
                known.at_most += 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Returns `true` if too many were counted just now.
    fn are_too_many(&self, caller: &str, now: Timestamp) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(caller).is_some_and(|known| {
            known.at_most >= MAX_OPEN_OF_CALLER && now.since(known.counted_at) < PAUSE
        })
    }

    fn set(&self, caller: &str, at_most: usize, counted_at: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_CALLERS && !all.contains_key(caller) {
            all.clear();
        }
        let known = Known {
            at_most,
            counted_at,
        };
        all.insert(caller.to_owned(), known);
    }
}

impl Record {
    /// Adds a question of this caller, where it is known here that there is room, or nothing bounds the caller.
    pub(crate) fn admit_at_once(&self, caller: &str) -> bool {
        !is_bounded(caller) || self.open_questions.add(caller)
    }

    /// The same with a look at the store.
    pub(crate) async fn admit(&self, caller: &str) -> Result<(), RecordError> {
        let limit = MAX_OPEN_OF_CALLER;
        if self.admit_at_once(caller) {
            return Ok(());
        }
        if self.open_questions.are_too_many(caller, self.now()) {
            return Err(RecordError::TooManyOpen { limit });
        }
        let open = self.store.waiting_of(caller.to_owned()).await?;
        self.open_questions.set(caller, open, self.now());
        if self.open_questions.add(caller) {
            Ok(())
        } else {
            Err(RecordError::TooManyOpen { limit })
        }
    }
}

/// Returns `true` for a caller who has proven who they are. Others have no name of their own.
fn is_bounded(caller: &str) -> bool {
    let caller = Principal::parse(caller);
    matches!(caller, Some(Principal::Key(_) | Principal::Subject { .. }))
}
