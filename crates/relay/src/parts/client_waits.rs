//! The observed timeouts of clients: later calls are handed back before they pass.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The number of clients that are remembered.
const REMEMBERED: usize = 256;
/// A call is handed back after this part of its client's observed timeout.
const PART: f64 = 0.75;

/// The observed timeouts of clients, by their own names: shared by all relays of one server.
#[derive(Clone, Debug, Default)]
pub struct ClientWaits {
    known: Arc<Mutex<BTreeMap<String, Duration>>>,
    /// `true` if a shorter timeout was observed since the last check.
    changed: Arc<AtomicBool>,
}

/// A client, by its own name, and its observed timeout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedWait {
    client: String,
    millis: u64,
}

impl ClientWaits {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Duration>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a timeout; returns `true` if it is new.
    fn note(&self, client: String, waited: Duration) -> bool {
        let mut all = self.all();
        if let Some(known) = all.get_mut(&client) {
            let shorter = waited < *known;
            *known = waited.min(*known);
            return shorter;
        }
        let room = all.len() < REMEMBERED;
        if room {
            all.insert(client, waited);
        }
        room
    }

    /// Records that a client gave up after this time.
    pub(crate) fn learn(&self, client: String, waited: Duration) {
        if self.note(client, waited) {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the time after which a call is handed back to this client, which is shorter than its observed timeout.
    pub(crate) fn before_end(&self, client: &str) -> Option<Duration> {
        let waited = self.all().get(client).copied();
        waited.map(|waited| waited.mul_f64(PART))
    }

    /// Returns `true` if a shorter timeout was observed since the last check.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Returns all timeouts.
    pub(crate) fn known(&self) -> Vec<LearnedWait> {
        let wait = |(client, waited): (&String, &Duration)| LearnedWait {
            client: client.clone(),
            millis: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
        };
        self.all().iter().map(wait).collect()
    }

    /// Adds those observed by another process, or an earlier one.
    pub(crate) fn add(&self, learned: &[LearnedWait]) {
        for wait in learned {
            self.note(wait.client.clone(), Duration::from_millis(wait.millis));
        }
    }
}

/// Returns `true` if the reason of a cancellation is a timeout, as the SDKs write it: "timed out after 5s", "McpError:
/// MCP error -32001: Request timed out", "request timeout".
pub(crate) fn is_timeout(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    reason.contains("timed out") || reason.contains("timeout")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_sdks_for_their_time_out_are_known() {
        for reason in [
            "timed out after 5.0s",
            "McpError: MCP error -32001: Request timed out",
            "request timeout",
        ] {
            assert!(is_timeout(reason), "{reason}");
        }
        for reason in [
            "",
            "AbortError: This operation was aborted",
            "caller cancelled",
        ] {
            assert!(!is_timeout(reason), "{reason}");
        }
    }
}
