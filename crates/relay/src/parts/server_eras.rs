//! The eras in which a server was seen to ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// The observed eras of a server's questions: shared by all relays of one server.
#[derive(Clone, Debug, Default)]
pub struct ServerEras(Arc<Observed>);

#[derive(Debug, Default)]
struct Observed {
    /// It pushed a question in a session.
    pushes: AtomicBool,
    /// It asked in a result of 2026-07-28.
    asks_in_results: AtomicBool,
    /// It tried to ask in a result within a session, so its tools cannot ask there.
    needs_rounds: AtomicBool,
    /// `true` if one of them is new since the last check.
    changed: AtomicBool,
}

/// The same facts as values, as the record stores them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedEras {
    /// `true` if it was seen to push a question in a session (2025-06-18, 2025-11-25).
    pub pushed: bool,
    /// `true` if it was seen to ask in a result (2026-07-28).
    pub rounds: bool,
    /// `true` if it was seen to ask in a result within a session, where no such question can be answered.
    pub needs_rounds: bool,
}

impl AskedEras {
    /// Returns these facts and the others.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self {
            pushed: self.pushed || others.pushed,
            rounds: self.rounds || others.rounds,
            needs_rounds: self.needs_rounds || others.needs_rounds,
        }
    }
}

impl ServerEras {
    fn note(&self, fact: &AtomicBool) {
        if !fact.swap(true, Ordering::Relaxed) {
            self.0.changed.store(true, Ordering::Relaxed);
        }
    }

    /// Records that the server pushed a question in a session.
    pub(crate) fn saw_pushed(&self) {
        self.note(&self.0.pushes);
    }

    /// Records that the server asked in a result of the rounds era.
    pub(crate) fn saw_round(&self) {
        self.note(&self.0.asks_in_results);
    }

    /// Records that the server tried to ask in a result within a session.
    pub(crate) fn saw_round_in_session(&self) {
        self.note(&self.0.needs_rounds);
    }

    /// Returns `true` for a server whose tools were seen to ask only in results, and never in a session. A server that
    /// was seen to do both stays in its session, where no confirmation is skipped.
    pub(crate) fn asks_only_in_rounds(&self) -> bool {
        self.0.needs_rounds.load(Ordering::Relaxed) && !self.0.pushes.load(Ordering::Relaxed)
    }

    /// Returns `true` if a fact is new since the last time.
    pub(crate) fn take_changed(&self) -> bool {
        self.0.changed.swap(false, Ordering::Relaxed)
    }

    /// Returns the facts.
    pub fn known(&self) -> AskedEras {
        AskedEras {
            pushed: self.0.pushes.load(Ordering::Relaxed),
            rounds: self.0.asks_in_results.load(Ordering::Relaxed),
            needs_rounds: self.0.needs_rounds.load(Ordering::Relaxed),
        }
    }

    /// Adds the facts of another process, or an earlier one.
    pub(crate) fn add(&self, known: AskedEras) {
        for (fact, is_known) in [
            (&self.0.pushes, known.pushed),
            (&self.0.asks_in_results, known.rounds),
            (&self.0.needs_rounds, known.needs_rounds),
        ] {
            if is_known {
                fact.store(true, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_also_pushes_stays_in_its_session() {
        let eras = ServerEras::default();
        assert!(!eras.asks_only_in_rounds() && !eras.take_changed());
        eras.saw_round_in_session();
        assert!(eras.asks_only_in_rounds() && eras.take_changed() && !eras.take_changed());
        eras.saw_pushed();
        assert!(!eras.asks_only_in_rounds());
        let other = ServerEras::default();
        other.add(eras.known());
        assert_eq!(other.known(), eras.known());
        assert!(!other.take_changed(), "it is no news");
    }
}
