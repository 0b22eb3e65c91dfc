//! Eviction of sessions and their children. Many clients open a session for each call and never end it: if a table is
//! full, the session that has been idle longest ends, and its client opens another after a 404 (2025-11-25, transports,
//! session management).
//!
//! A busy session is never evicted: one with a call, a question, or a stream that its client listens to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::McpEndpoint;
use crate::config::Target;
use crate::runtime::StartError;
use crate::transports::child_limit::{ChildLimit, ChildSlot};

/// The most sessions with one server, over all clients.
const SESSIONS: usize = 1_000;
/// The most sessions of one caller with one server.
const SESSIONS_EACH: usize = 200;
/// The time in which a child has to end with its session.
const ENDING: Duration = Duration::from_secs(6);
/// The time that a session waits for another's child to end by itself, if all are busy.
const BUSY: Duration = Duration::from_secs(1);

/// A session that may be evicted.
pub(super) trait Evictable {
    /// Returns the caller's name in the record.
    fn caller(&self) -> &str;
    /// Returns the time of the last use, in milliseconds since 1970.
    fn last_used(&self) -> u64;
    /// Returns `true` if it has a call or a question.
    fn has_work(&self) -> bool;
}

/// Every candidate for eviction is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Takes out the session to evict for one more of this caller; `None` if there is room. A caller with many sessions
/// loses one of its own.
///
/// # Errors
/// If every candidate is busy.
pub(super) fn make_room<S: Evictable>(
    sessions: &mut HashMap<String, Arc<S>>,
    caller: &str,
) -> Result<Option<Arc<S>>, Full> {
    let own = sessions.values().filter(|held| held.caller() == caller);
    let only = if own.count() >= SESSIONS_EACH {
        Some(caller)
    } else if sessions.len() >= SESSIONS {
        None
    } else {
        return Ok(None);
    };
    take_idle(sessions, only).map(Some).ok_or(Full)
}

/// Takes out the least recently used idle session of the caller with the most; of caller `only`, if given.
fn take_idle<S: Evictable>(
    sessions: &mut HashMap<String, Arc<S>>,
    only: Option<&str>,
) -> Option<Arc<S>> {
    let mut held_by: HashMap<&str, usize> = HashMap::new();
    for held in sessions.values() {
        *held_by.entry(held.caller()).or_default() += 1;
    }
    // A request or a stream that is being served also holds its session. None can begin meanwhile, because each looks
    // up its session in the table.
    let is_served = |held: &Arc<S>| Arc::strong_count(held) > 1;
    let mut candidates: Vec<_> = sessions
        .iter()
        .filter(|(_, held)| only.is_none_or(|only| held.caller() == only) && !is_served(held))
        .map(|(name, held)| {
            let count = held_by.get(held.caller()).copied().unwrap_or_default();
            (usize::MAX - count, held.last_used(), name, held)
        })
        .collect();
    candidates.sort_by_key(|(most, last_used, ..)| (*most, *last_used));
    let idle = candidates.into_iter().find(|(.., held)| !held.has_work());
    let name = idle.map(|(_, _, name, _)| name.clone())?;
    sessions.remove(&name)
}

/// The children of all servers, and the endpoints whose sessions may be evicted.
#[derive(Default)]
pub(crate) struct SharedChildren {
    pub(super) limit: Arc<ChildLimit>,
    endpoints: Mutex<Vec<Weak<McpEndpoint>>>,
}

impl SharedChildren {
    /// Adds an endpoint.
    pub(super) fn add(&self, endpoint: Weak<McpEndpoint>) {
        let mut endpoints = self
            .endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        endpoints.push(endpoint);
    }

    /// Returns a slot for one more child of this endpoint. If there are too many, an idle session is evicted,
    /// preferably of the same server.
    ///
    /// # Errors
    /// If every child is busy.
    pub(super) async fn slot(&self, of: &McpEndpoint) -> Result<ChildSlot, StartError> {
        if let Some(slot) = self.limit.count() {
            return Ok(slot);
        }
        let wait = match of.take_idle().or_else(|| self.take_idle()) {
            Some(held) => {
                held.end();
                ENDING
            }
            None => BUSY,
        };
        let slot = self.limit.count_within(wait).await;
        slot.ok_or(StartError::TooManyChildren)
    }

    fn take_idle(&self) -> Option<Arc<super::ClientSession>> {
        let endpoints = self
            .endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut endpoints = endpoints.iter().filter_map(Weak::upgrade);
        endpoints.find_map(|endpoint| endpoint.take_idle())
    }
}

impl McpEndpoint {
    /// Takes out an idle session with a child.
    fn take_idle(&self) -> Option<Arc<super::ClientSession>> {
        match &self.server.target {
            Target::Program(_) => take_idle(&mut self.sessions(), None),
            Target::Url(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Held {
        caller: String,
        last_used: u64,
        has_work: bool,
    }

    impl Evictable for Held {
        fn caller(&self) -> &str {
            &self.caller
        }

        fn last_used(&self) -> u64 {
            self.last_used
        }

        fn has_work(&self) -> bool {
            self.has_work
        }
    }

    type Table = HashMap<String, Arc<Held>>;

    fn add(table: &mut Table, caller: &str, last_used: u64, has_work: bool) {
        let held = Held {
            caller: caller.to_owned(),
            last_used,
            has_work,
        };
        table.insert(format!("{caller} {last_used}"), Arc::new(held));
    }

    /// Returns the caller and the time of the session that is evicted for one more of this caller.
    fn ends(table: &mut Table, caller: &str) -> Result<Option<(String, u64)>, Full> {
        let ended = make_room(table, caller)?;
        Ok(ended.map(|held| (held.caller.clone(), held.last_used)))
    }

    #[test]
    fn a_caller_with_too_many_sessions_loses_its_own_that_was_idle_longest() {
        let mut table = Table::new();
        add(&mut table, "quiet", 0, false);
        for at in 1..SESSIONS_EACH as u64 {
            add(&mut table, "noisy", at, false);
        }
        assert_eq!(ends(&mut table, "noisy"), Ok(None));
        add(&mut table, "noisy", 1_000, false);
        assert_eq!(ends(&mut table, "noisy"), Ok(Some(("noisy".to_owned(), 1))));
        assert_eq!(ends(&mut table, "quiet"), Ok(None));
        assert!(table.contains_key("quiet 0"));
    }

    #[test]
    fn where_the_table_is_full_whoever_holds_most_makes_room() {
        let mut table = Table::new();
        for caller in 0..100_u64 {
            for session in 0..9 {
                add(
                    &mut table,
                    &format!("c{caller}"),
                    caller * 10 + session,
                    false,
                );
            }
        }
        for at in 0..100 {
            add(&mut table, "noisy", 10_000 + at, false);
        }
        assert_eq!(table.len(), SESSIONS);
        let noisy = Some(("noisy".to_owned(), 10_000));
        assert_eq!(ends(&mut table, "newcomer"), Ok(noisy));
        for at in 1..100 {
            add(&mut table, "filler", 20_000 + at, false);
            assert!(ends(&mut table, "newcomer").unwrap().is_some());
        }
        // No caller with few sessions has lost one.
        assert!(table.keys().filter(|name| name.starts_with('c')).count() >= 898);
    }

    #[test]
    fn a_session_at_work_never_ends_for_another() {
        let mut table = Table::new();
        for at in 0..SESSIONS_EACH as u64 {
            add(&mut table, "busy", at, true);
        }
        assert_eq!(ends(&mut table, "busy"), Err(Full));
        assert_eq!(ends(&mut table, "other"), Ok(None));
        table.remove("busy 7");
        add(&mut table, "busy", 7, false);
        // An open stream holds its session.
        let served = table.get("busy 7").cloned();
        assert_eq!(ends(&mut table, "busy"), Err(Full));
        drop(served);
        assert_eq!(ends(&mut table, "busy"), Ok(Some(("busy".to_owned(), 7))));
    }
}
