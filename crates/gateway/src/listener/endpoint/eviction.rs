//! Eviction of sessions and their children. Many clients open a session for each call and never end it: if a table is
//! full, the session that has been idle longest ends, and its client opens another after a 404 (2025-11-25, transports,
//! session management).
//!
//! A busy session is never evicted: one with a call, a question, or a request. One that has nothing but a stream that its
//! client listens to is evicted when no other is left: for its own caller, and for a child, for another caller that has
//! fewer sessions.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::response::Response;
use http::StatusCode;

use super::client_session::ClientSession;
use super::header_checks::refusal;
use super::{McpEndpoint, full};
use crate::callers::ProvenCaller;
use crate::config::ServerTarget;
use crate::listener::requests_at_work::TooMany;
use crate::transports::child_limit::{CHILDREN_EACH, ChildLimit, ChildSlot};

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
    /// Returns `true` if its client listens to the session's own stream.
    fn is_listened_to(&self) -> bool;
}

/// Every candidate for eviction is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Takes out the session to evict for one more of this caller; `None` if there is room. A caller with many sessions
/// loses one of its own.
///
/// # Errors
/// If every candidate is busy.
pub(super) fn make_room<N: Clone + Eq + Hash, S: Evictable>(
    sessions: &mut HashMap<N, Arc<S>>,
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
    let idle = take_idle(sessions, only, Idle::Unheard);
    idle.or_else(|| take_idle(sessions, Some(only?), Idle::Listening))
        .map(Some)
        .ok_or(Full)
}

/// A kind of session without a call, a question or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idle {
    /// Its client listens to nothing.
    Unheard,
    /// Its client listens to the session's own stream.
    Listening,
}

/// Takes out the least recently used session of this kind of the caller with the most; of caller `only`, if given.
fn take_idle<N: Clone + Eq + Hash, S: Evictable>(
    sessions: &mut HashMap<N, Arc<S>>,
    only: Option<&str>,
    idle: Idle,
) -> Option<Arc<S>> {
    let mut held_by: HashMap<&str, usize> = HashMap::new();
    for held in sessions.values() {
        *held_by.entry(held.caller()).or_default() += 1;
    }
    // A request or a stream that is being served also holds its session. None can begin meanwhile, because each looks
    // up its session in the table.
    let is_of_kind = |held: &Arc<S>| match idle {
        Idle::Unheard => Arc::strong_count(held) == 1,
        Idle::Listening => held.is_listened_to() && Arc::strong_count(held) == 2,
    };
    let mut candidates: Vec<_> = sessions
        .iter()
        .filter(|(_, held)| only.is_none_or(|only| held.caller() == only) && is_of_kind(held))
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
        // Those of earlier files are gone at some time.
        endpoints.retain(|known| known.strong_count() > 0);
        endpoints.push(endpoint);
    }

    /// Returns a slot for one more child of this endpoint for this caller. If there are too many, an idle session is
    /// evicted: the caller's own if it has too many itself, else preferably one of the same server.
    ///
    /// # Errors
    /// If every child is busy.
    pub(super) async fn slot(
        &self,
        of: &McpEndpoint,
        caller: &ProvenCaller,
    ) -> Result<ChildSlot, NoSlot> {
        let account = self.limit.of(caller);
        if let Some(slot) = account.count() {
            return Ok(slot);
        }
        let is_own = account.is_used_up();
        let idle = if is_own {
            self.take_own(caller.binding())
        } else {
            of.take_idle(None, Idle::Unheard)
                .or_else(|| self.take_idle(None, Idle::Unheard))
                .or_else(|| self.take_listening(caller))
        };
        let wait = match idle {
            Some(held) => {
                held.end();
                ENDING
            }
            None => BUSY,
        };
        let slot = account.count_within(wait).await;
        slot.ok_or(if is_own { NoSlot::Own } else { NoSlot::All })
    }

    fn endpoints(&self) -> Vec<Arc<McpEndpoint>> {
        let endpoints = self
            .endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        endpoints.iter().filter_map(Weak::upgrade).collect()
    }

    fn take_idle(&self, only: Option<&str>, idle: Idle) -> Option<Arc<ClientSession>> {
        let endpoints = self.endpoints();
        let mut taken = endpoints
            .iter()
            .filter_map(|endpoint| endpoint.take_idle(only, idle));
        taken.next()
    }

    /// Takes out an idle session of this caller, preferably one without a stream.
    fn take_own(&self, caller: &str) -> Option<Arc<ClientSession>> {
        let idle = self.take_idle(Some(caller), Idle::Unheard);
        idle.or_else(|| self.take_idle(Some(caller), Idle::Listening))
    }

    /// Takes out a session with nothing but a stream, of the verified caller with the most sessions: no other loses one to
    /// a caller with more.
    fn take_listening(&self, newcomer: &ProvenCaller) -> Option<Arc<ClientSession>> {
        if !newcomer.is_authenticated() {
            return None;
        }
        let mut held_by: HashMap<String, usize> = HashMap::new();
        for endpoint in self.endpoints() {
            if matches!(endpoint.server().target, ServerTarget::Program(_)) {
                for held in endpoint.sessions().values() {
                    *held_by.entry(held.principal.clone()).or_default() += 1;
                }
            }
        }
        let own = held_by.get(newcomer.binding()).copied().unwrap_or_default();
        let mut callers: Vec<_> = held_by
            .into_iter()
            .filter(|(caller, count)| *count > own || caller == newcomer.binding())
            .collect();
        callers.sort_by_key(|(_, count)| usize::MAX - count);
        let mut taken = callers
            .iter()
            .filter_map(|(caller, _)| self.take_idle(Some(caller), Idle::Listening));
        taken.next()
    }
}

/// The reason why no child may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSlot {
    /// All children of the gateway are busy.
    All,
    /// All children of this caller are.
    Own,
}

impl NoSlot {
    /// Returns the response to the request that needs a child.
    pub(super) fn response(self) -> Response {
        match self {
            Self::All => full(),
            Self::Own => {
                let why = format!(
                    "{CHILDREN_EACH} servers of this caller are at work; wait until calls have ended, or end sessions (DELETE)"
                );
                let refused = refusal(StatusCode::TOO_MANY_REQUESTS, -32000, &why);
                TooMany::retry_later(refused)
            }
        }
    }
}

impl McpEndpoint {
    /// Takes out a session of this kind with a child, of caller `only` if given.
    fn take_idle(&self, only: Option<&str>, idle: Idle) -> Option<Arc<ClientSession>> {
        match &self.server().target {
            ServerTarget::Program(_) => take_idle(&mut self.sessions(), only, idle),
            ServerTarget::Url(_) => None,
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
        listens: bool,
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

        fn is_listened_to(&self) -> bool {
            self.listens
        }
    }

    type Table = HashMap<String, Arc<Held>>;

    fn add(table: &mut Table, caller: &str, last_used: u64, has_work: bool) {
        let held = Held {
            caller: caller.to_owned(),
            last_used,
            has_work,
            listens: false,
        };
        table.insert(format!("{caller} {last_used}"), Arc::new(held));
    }

    /// Adds a session with a stream. Returns the part that serves it.
    fn add_listening(table: &mut Table, caller: &str, last_used: u64, has_work: bool) -> Arc<Held> {
        let held = Arc::new(Held {
            caller: caller.to_owned(),
            last_used,
            has_work,
            listens: true,
        });
        table.insert(format!("{caller} {last_used}"), held.clone());
        held
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
        // A request holds its session.
        let served = table.get("busy 7").cloned();
        assert_eq!(ends(&mut table, "busy"), Err(Full));
        drop(served);
        assert_eq!(ends(&mut table, "busy"), Ok(Some(("busy".to_owned(), 7))));
    }

    #[test]
    fn a_session_with_only_a_stream_ends_after_those_without_and_for_its_own_caller() {
        let mut table = Table::new();
        let mut served = vec![add_listening(&mut table, "busy", 0, true)];
        for at in 1..SESSIONS_EACH as u64 {
            served.push(add_listening(&mut table, "busy", at, false));
        }
        let request = table.get("busy 1").cloned();
        assert_eq!(ends(&mut table, "busy"), Ok(Some(("busy".to_owned(), 2))));
        add(&mut table, "busy", 1_000, false);
        assert_eq!(
            ends(&mut table, "busy"),
            Ok(Some(("busy".to_owned(), 1_000)))
        );
        drop((served, request));
    }
}
