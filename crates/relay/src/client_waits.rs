//! Calls that the client gave up for lack of time: they wait for being made again, and the next are handed back sooner.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::calls::Call;
use crate::learned::LearnedWait;
use crate::{CallId, Relay, Timer, Timestamp};

/// The number of clients that are remembered.
const REMEMBERED: usize = 256;
/// A call is handed back in this part of the time that its client was seen to wait.
const PART: f64 = 0.75;

/// The times that clients were seen to wait for a call, by their own names: shared by all relays of one server.
#[derive(Clone, Debug, Default)]
pub struct ClientWaits {
    known: Arc<Mutex<BTreeMap<String, Duration>>>,
    /// `true` if a shorter wait was seen since this was last looked at.
    changed: Arc<AtomicBool>,
}

impl ClientWaits {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Duration>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a wait; `true` where it is news.
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

    fn learn(&self, client: String, waited: Duration) {
        if self.note(client, waited) {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    fn of(&self, client: &str) -> Option<Duration> {
        self.all().get(client).copied()
    }

    /// Returns whether a shorter wait was seen since the last time.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Returns all waits.
    pub(crate) fn known(&self) -> Vec<LearnedWait> {
        let wait = |(client, waited): (&String, &Duration)| LearnedWait {
            client: client.clone(),
            millis: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
        };
        self.all().iter().map(wait).collect()
    }

    /// Adds those that another process saw, or an earlier one.
    pub(crate) fn add(&self, learned: &[LearnedWait]) {
        for wait in learned {
            self.note(wait.client.clone(), wait.span());
        }
    }
}

/// Returns whether the reason of a cancellation says that the client's time was up, as the SDKs write it: "timed out after 5s",
/// "McpError: MCP error -32001: Request timed out", "request timeout".
pub(crate) fn is_timeout(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    reason.contains("timed out") || reason.contains("timeout")
}

impl Relay {
    /// Returns how long a call is held for a person: less than the client was seen to wait.
    pub(crate) fn hold_time(&self) -> Duration {
        let client = self.client.info().unwrap_or_default();
        let waits = self.settings.client_waits.of(&client);
        let waits = waits.map(|waits| waits.mul_f64(PART));
        waits.map_or(self.settings.hold, |waits| waits.min(self.settings.hold))
    }

    /// The client's time for a call was up. Where the call waits for a person, it waits on, for being made again; `false`
    /// where it does not.
    pub(crate) fn client_timed_out(&mut self, now: Timestamp, key: CallId) -> bool {
        let Some(call) = self.calls.get(key).filter(|call| waits_for_person(call)) else {
            return false;
        };
        let (waited, queued) = (now.since(call.came_at()), call.is_queued());
        let client = self.client.info().unwrap_or_default();
        self.settings.client_waits.learn(client, waited);
        if queued {
            // The server knows nothing of it, so nothing else ends it.
            self.timers.set(
                now.after(self.settings.open_for),
                Timer::DropUnattended(key),
            );
        }
        self.detach(key);
        true
    }
}

fn waits_for_person(call: &Call) -> bool {
    call.stream().is_some() && (call.may_wait_for_answer() || call.is_queued())
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
